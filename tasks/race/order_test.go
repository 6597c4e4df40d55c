package race

import (
	"fmt"
	"testing"

	"github.com/vkomp/vkomp/tasks"
)

// scenario is a program that the test tells a detector step by step. Its tasks use the slices
// of memory_test.go.
type scenario struct {
	*Detector
	found [][2]any
}

func newScenario() *scenario {
	s := &scenario{}
	s.Detector = New(func(c Conflict) { s.found = append(s.found, [2]any{c.First.Info(), c.Second.Info()}) })
	return s
}

func on(kind tasks.DependKind, k int) tasks.Depend {
	d, _ := reading(k)
	d.Kind = kind
	return d
}

func access(write bool, k int) Access {
	_, a := reading(k)
	a.Write = write
	return a
}

// make generates a task with a parent and a name.
func (s *scenario) make(parent *Task, name string, of Spec) *Task {
	of.Info, of.Parent = name, parent
	return s.Create(of)
}

func (s *scenario) want(t *testing.T, pairs ...[2]any) {
	t.Helper()
	s.Close()
	if len(s.found) != len(pairs) {
		t.Fatalf("found %v, want %v", s.found, pairs)
	}
	for i, p := range pairs {
		if s.found[i] != p {
			t.Errorf("found %v, want %v", s.found, pairs)
		}
	}
}

// The event of a detachable task is fulfilled while the body of a host task runs. A wait for
// the event then follows the beginning of that body, and not its end.
func fulfilledMeanwhile(s *scenario) (host *Task) {
	g := s.NewGroup(nil)
	event := s.make(s.Initial(), "event", Spec{Body: true, Event: true, Group: g})
	s.Begin(event)
	s.End(event, false)
	host = s.make(s.Initial(), "host", Spec{Body: true, Depend: []tasks.Depend{on(tasks.DependIn, 0)}, Accesses: []Access{access(false, 8)}})
	s.Begin(host)
	w := s.WaitGroup(s.Initial(), g)
	s.Fulfill(event)
	s.Waited(w)
	return host
}

func TestEndOfABodyIsNotItsBeginningWhenUsersArePruned(t *testing.T) {
	s := newScenario()
	host := fulfilledMeanwhile(s)
	s.make(host, "child", Spec{Accesses: []Access{access(true, 5)}})
	s.Waited(s.Wait(host))
	s.End(host, false)
	for k := range 4 {
		s.make(s.Initial(), "other", Spec{Depend: []tasks.Depend{on(tasks.DependOut, 10+k)}})
	}
	s.Waited(s.WaitGroup(s.Initial(), s.NewGroup(nil)))
	s.make(s.Initial(), "after", Spec{Depend: []tasks.Depend{on(tasks.DependOut, 0)}, Accesses: []Access{access(true, 5)}})
	s.want(t)
}

func TestEndOfABodyIsNotItsBeginningWhenReadersAreThinnedOut(t *testing.T) {
	s := newScenario()
	host := fulfilledMeanwhile(s)
	reader := Spec{Depend: []tasks.Depend{on(tasks.DependIn, 0)}, Accesses: []Access{access(false, 9)}}
	for range 3 * minCrowd {
		s.make(s.Initial(), "reader", reader)
	}
	s.make(host, "child", Spec{Accesses: []Access{access(true, 5)}})
	s.Waited(s.Wait(host))
	s.End(host, false)
	for range 3 * minCrowd {
		s.make(s.Initial(), "reader", reader)
	}
	s.make(s.Initial(), "after", Spec{Depend: []tasks.Depend{on(tasks.DependOut, 0)}, Accesses: []Access{access(true, 5)}})
	s.want(t)
}

// The last of three writers excludes the second one, which follows the first. There is still a
// race between the first and the last.
func TestExclusionOfASuccessorHidesNoRace(t *testing.T) {
	for _, kind := range []tasks.DependKind{tasks.DependMutexInOutSet, tasks.DependInOutSet} {
		s := newScenario()
		write := []Access{{Space: 7, Start: 1, Size: 1, Write: true, Unnamed: true}}
		s.make(s.Initial(), "first", Spec{Depend: []tasks.Depend{on(tasks.DependOut, 2)}, Accesses: write})
		s.make(s.Initial(), "second", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 2), on(kind, 3)}, Accesses: write})
		s.make(s.Initial(), "third", Spec{Depend: []tasks.Depend{on(kind, 3)}, Accesses: write})
		s.want(t, [2]any{"first", "third"})
	}
}

// A task outside of a region follows a child there, and has the access that comes next. Another child of that region
// still races with the first one, by accesses that only tasks of the region can conflict with.
func TestAccessFromOutsideHidesNoRaceInARegion(t *testing.T) {
	local := func(write bool) Access {
		a := access(write, 5)
		a.Local = true
		return a
	}
	for name, c := range map[string]struct {
		first, outside, second Access
		// others is the number of other tasks outside.
		others int
		// waits says that the second child was created before the others outside, returned that the body of the
		// region has returned as well.
		waits, returned bool
	}{
		"writes":                       {local(true), access(true, 5), local(true), 0, false, false},
		"a write and a read":           {local(true), access(true, 5), local(false), 0, false, false},
		"a read and a write":           {local(false), access(true, 5), local(true), 0, false, false},
		"one can conflict with others": {access(true, 5), access(true, 5), local(true), 0, false, false},
		"crowds of readers":            {local(false), access(false, 5), local(true), 3 * minCrowd, false, false},
		"the second child waits":       {local(true), access(true, 5), local(true), 0, true, false},
		"the region has returned":      {local(true), access(true, 5), local(true), 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario()
			g := s.NewGroup(nil)
			event := s.make(s.Initial(), "event", Spec{Body: true, Event: true, Group: g})
			s.Begin(event)
			s.End(event, false)
			region := s.make(s.Initial(), "region", Spec{Body: true})
			s.Begin(region)
			slow := s.make(region, "slow", Spec{Body: true, Depend: []tasks.Depend{on(tasks.DependOut, 1)}})
			s.Begin(slow)
			first := s.make(region, "first", Spec{Body: true, Accesses: []Access{c.first}})
			s.Begin(first)
			w := s.WaitGroup(s.Initial(), g)
			s.Fulfill(event) // as if by the first child
			s.Waited(w)
			s.End(first, false)
			second := func() {
				s.make(region, "second", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 1)}, Accesses: []Access{c.second}})
			}
			if c.waits {
				second()
			}
			if c.returned {
				s.End(region, false)
			} else {
				s.End(slow, false)
			}
			for range 1 + c.others {
				s.make(s.Initial(), "outside", Spec{Accesses: []Access{c.outside}})
			}
			if !c.waits {
				second()
			}
			s.want(t, [2]any{"first", "second"})
		})
	}
}

// Children of many regions that go on write the same bytes, one after another. Only the first of these races with another
// child of its region.
func TestManyRegionsHideNoRace(t *testing.T) {
	s := newScenario()
	for k := range 2 * maxWrites {
		region := s.make(s.Initial(), "region", Spec{Body: true, Transparency: tasks.ImpEx, Depend: []tasks.Depend{on(tasks.DependInOut, 0)}})
		s.Begin(region)
		s.Begin(s.make(region, "slow", Spec{Body: true, Depend: []tasks.Depend{on(tasks.DependOut, 10+k)}}))
		s.make(region, fmt.Sprint("write ", k), Spec{Depend: []tasks.Depend{on(tasks.DependInOut, 5)}, Accesses: []Access{access(true, 5)}})
		if k == 0 {
			local := access(true, 5)
			local.Local = true
			s.make(region, "second", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 10)}, Accesses: []Access{local}})
		}
		s.End(region, false)
	}
	s.want(t, [2]any{"write 0", "second"})
}

// Two tasks write the bytes of slice 1 in another space, and name them by other slices.
func TestInoutsetItemsNameBytesByOffset(t *testing.T) {
	by := func(k int) Access {
		a, name := access(true, 1), access(true, k)
		a.Offset = name.Start - a.Start
		return a
	}
	unnamed := access(true, 1)
	unnamed.Unnamed = true
	for name, c := range map[string]struct {
		first, second         Access
		firstItem, secondItem int
		races                 bool
	}{
		"both items name the bytes":              {by(3), by(3), 3, 3, false},
		"both items have their address":          {by(3), by(3), 1, 1, true},
		"each item names them in its own way":    {by(3), by(5), 3, 5, true},
		"the items have bytes in common":         {by(3), by(5), 8, 8, false},
		"the first access cannot be named":       {unnamed, by(1), 8, 8, false},
		"the second access cannot be named":      {by(1), unnamed, 3, 3, false},
		"and the items have no bytes in common":  {unnamed, by(3), 8, 3, true},
		"neither do those of two unnamed writes": {unnamed, unnamed, 8, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario()
			s.make(s.Initial(), "first", Spec{Depend: []tasks.Depend{on(tasks.DependInOutSet, c.firstItem)}, Accesses: []Access{c.first}})
			s.make(s.Initial(), "second", Spec{Depend: []tasks.Depend{on(tasks.DependInOutSet, c.secondItem)}, Accesses: []Access{c.second}})
			if c.races {
				s.want(t, [2]any{"first", "second"})
			} else {
				s.want(t)
			}
		})
	}
}

// A task accesses bytes by two names. By one of them the inoutset items allow it to be unordered.
func TestAccessByOneNameHidesNoRaceByAnother(t *testing.T) {
	by := func(write bool, k int) Access {
		a, name := access(write, 1), access(write, k)
		a.Offset = name.Start - a.Start
		return a
	}
	item := []tasks.Depend{on(tasks.DependInOutSet, 3)}
	for name, accesses := range map[string][]Access{
		"two writes":             {by(true, 1), by(true, 3)},
		"two writes, conversely": {by(true, 3), by(true, 1)},
		"two reads":              {by(false, 1), by(false, 3)},
		"a write and a read":     {by(true, 3), by(false, 1)},
		"a read and a write":     {by(false, 1), by(true, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario()
			s.make(s.Initial(), "first", Spec{Depend: item, Accesses: accesses})
			s.make(s.Initial(), "second", Spec{Depend: item, Accesses: []Access{by(true, 1)}})
			s.want(t, [2]any{"first", "second"})
		})
	}
}

// A task that waits for its predecessor may race with what the region does next, although the
// region has waited for other tasks in between.
func TestTaskThatHasNotStartedKeepsWhatItMayRaceWith(t *testing.T) {
	s := newScenario()
	host := s.make(s.Initial(), "host", Spec{Body: true, Event: true, Depend: []tasks.Depend{on(tasks.DependOut, 0)}})
	s.Begin(host)
	s.End(host, false)
	s.make(s.Initial(), "pending", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 0)}, Accesses: []Access{access(true, 1)}})
	s.Returned(s.make(s.Initial(), "included", Spec{Included: true, Accesses: []Access{access(true, 1)}}))
	s.want(t, [2]any{"pending", "included"})
}

// An included exporting task has ended and its construct has not returned. Tasks that follow
// the construct can depend on the children of that task.
func TestIncludedExportingTaskExportsUntilItReturns(t *testing.T) {
	s := newScenario()
	exporter := s.make(s.Initial(), "exporter", Spec{Body: true, Included: true, Transparency: tasks.Export, Accesses: []Access{access(true, 1)}})
	s.Begin(exporter)
	before := s.make(exporter, "before", Spec{Body: true, Depend: []tasks.Depend{on(tasks.DependOut, 6)}})
	s.make(exporter, "child", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 6), on(tasks.DependOut, 7)}, Accesses: []Access{access(true, 1)}})
	s.End(exporter, false)
	s.Begin(before)
	s.End(before, false)
	s.Returned(exporter)
	s.make(s.Initial(), "after", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 7)}, Accesses: []Access{access(true, 1)}})
	s.want(t)
}

// A wait for a taskgroup also waits for the tasks of taskgroups inside of it whose own wait was
// cut short.
func TestTaskgroupIsWaitedForWithThoseInsideThatWereAbandoned(t *testing.T) {
	s := newScenario()
	outer := s.NewGroup(nil)
	inner := s.NewGroup(outer)
	s.make(s.Initial(), "never run", Spec{Body: true, Group: inner, Accesses: []Access{access(true, 1)}})
	s.GaveUp(s.WaitGroup(s.Initial(), inner))
	s.Waited(s.WaitGroup(s.Initial(), outer))
	s.make(s.Initial(), "after", Spec{Accesses: []Access{access(true, 1)}})
	s.want(t)
}

// exporting generates a task that names x, with a child that names y and writes z's bytes.
func (s *scenario) exporting(name string, how tasks.Transparency, x, y, z int) *Task {
	e := s.make(s.Initial(), name, Spec{Body: true, Transparency: how, Depend: []tasks.Depend{on(tasks.DependInOut, x)}})
	s.Begin(e)
	s.make(e, name+"'s child", Spec{Depend: []tasks.Depend{on(tasks.DependInOut, y)}, Accesses: []Access{access(true, z)}})
	s.End(e, false)
	return e
}

// A task can depend on a child of an exporting task through a task between: the predecessors of
// antecedents are predecessors (OpenMP 6.0 §17.9.5).
func TestChildrenOfAnExportingTaskAreFollowedThroughOthers(t *testing.T) {
	for _, matches := range []bool{true, false} {
		s := newScenario()
		s.exporting("exporting", tasks.Export, 0, 1, 5)
		s.make(s.Initial(), "between", Spec{Depend: []tasks.Depend{on(tasks.DependIn, 0), on(tasks.DependOut, 2)}})
		after := Spec{Depend: []tasks.Depend{on(tasks.DependIn, 2)}, Accesses: []Access{access(true, 5)}}
		if !matches {
			s.make(s.Initial(), "after", after)
			s.want(t, [2]any{"exporting's child", "after"})
			continue
		}
		after.Depend = append(after.Depend, on(tasks.DependIn, 1))
		s.make(s.Initial(), "after", after)
		s.want(t)
	}
}

func TestChildrenOfAnImportingTaskFollowThoseOfAnExportingOneBeforeIt(t *testing.T) {
	for name, pairs := range map[string][][2]any{
		"follows":    nil,
		"is apart":   {{"first's child", "second's child"}},
		"is no kin":  {{"first's child", "second's child"}},
		"no imports": {{"first's child", "second's child"}},
	} {
		s := newScenario()
		s.exporting("first", tasks.ImpEx, 0, 1, 5)
		switch name {
		case "follows":
			s.exporting("second", tasks.ImpEx, 0, 1, 5)
		case "is apart":
			s.exporting("second", tasks.ImpEx, 3, 1, 5)
		case "is no kin":
			s.exporting("second", tasks.ImpEx, 0, 4, 5)
		default:
			s.exporting("second", tasks.Export, 0, 1, 5)
		}
		s.want(t, pairs...)
	}
}

// There are two exporting tasks, one behind the other or side by side, and other tasks behind
// both. The last task can depend on the children of each.
func TestChildrenOfSeveralExportingTasksAreFollowedThroughOthers(t *testing.T) {
	reads := func(slices ...int) (depend []tasks.Depend) {
		for _, k := range slices {
			depend = append(depend, on(tasks.DependIn, k))
		}
		return depend
	}
	const first, second, between, last = 10, 11, 20, 21
	for _, chain := range []bool{true, false} {
		for matches := range 4 {
			s := newScenario()
			e1, e2 := 0, 1
			if chain {
				e2 = e1
			}
			s.exporting("E1", tasks.Export, e1, 2, first)
			s.exporting("E2", tasks.Export, e2, 3, second)
			s.make(s.Initial(), "between", Spec{Depend: append(reads(e1, e2), on(tasks.DependOut, between))})
			// This task depends on one of the children. The last task does so by that, and
			// needs an item of its own for the other.
			s.make(s.Initial(), "first or second", Spec{Depend: append(reads(between, 2+matches%2), on(tasks.DependOut, last))})
			depend := reads(last)
			var found [][2]any
			for k, name := range []string{"E1's child", "E2's child"} {
				switch {
				case matches%2 == k:
				case matches/2 == 0:
					depend = append(depend, reads(2+k)...)
				default:
					found = append(found, [2]any{name, "after"})
				}
			}
			s.make(s.Initial(), "after", Spec{Depend: depend, Accesses: []Access{access(true, first), access(true, second)}})
			s.want(t, found...)
		}
	}
}
