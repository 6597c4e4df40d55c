package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// listener writes down what it is told, with its name.
type listener struct {
	name     string
	interest observe.Interest
	heard    *[]string
	// deaf says that it returns no observers of tasks.
	deaf bool
}

func (l *listener) note(format string, args ...any) {
	*l.heard = append(*l.heard, l.name+" "+fmt.Sprintf(format, args...))
}

func (l *listener) Interest() observe.Interest { return l.interest }

func (l *listener) Task(c observe.Construct) construct.Observer {
	met, group := "the initial task", c.Group()
	if o, ok := c.Task().(*observer); ok {
		met = o.l.name + "'s " + o.label
	}
	l.note("task %s by %s in %v", c.Label, met, group)
	if l.deaf {
		return nil
	}
	return &observer{l: l, label: c.Label}
}
func (l *listener) Merged(c observe.Construct) { l.note("merged %s", c.Label) }
func (l *listener) Generated(_ context.Context, c observe.Construct, task construct.Observer, err error) {
	o, _ := task.(*observer)
	l.note("generated %s, its own %v, %v", c.Label, o != nil && o.l == l, err)
}
func (l *listener) Group(o observe.Origin) any {
	l.note("group in %v", o.Group())
	return l.name + "'s group"
}
func (l *listener) RegionBegins(w observe.Wait) { l.note("region begins in %v", w.Group()) }
func (l *listener) RegionEnds(w observe.Wait)   { l.note("region ends in %v", w.Group()) }
func (l *listener) WaitBegins(w observe.Wait) any {
	l.note("wait begins in %v", w.Group())
	return l.name + "'s wait"
}
func (l *listener) WaitEnds(_ context.Context, w observe.Wait, begun any, err error) {
	l.note("%v ends in %v: %v", begun, w.Group(), err)
}
func (l *listener) Storage(s *observe.Storage, do func() error) error {
	l.note("before %s by %v", s.Label, s.Task() != nil)
	err := do()
	l.note("after %s by %v", s.Label, s.Task() != nil)
	return err
}
func (l *listener) Allocated(device int, _ sched.Pointer, size uint64)    { l.note("allocated %d", size) }
func (l *listener) Pointed(device int, _ sched.Pointer, _ unsafe.Pointer) { l.note("pointed") }
func (l *listener) Declared(devices []int, items []memory.Map)            { l.note("declared %v", devices) }
func (l *listener) Discarded(device int)                                  { l.note("discarded %d", device) }

// observer is a listener's observer of one task.
type observer struct {
	l     *listener
	label string
}

func (o *observer) note(what string) { o.l.note("%s: %s", o.label, what) }

func (o *observer) Interest() (run, operations bool)     { return o.l.name == "a", o.l.name == "b" }
func (o *observer) Created(*tasks.Node, []tasks.Depend)  { o.note("created") }
func (o *observer) Begin()                               { o.note("begin") }
func (o *observer) Map([]ompt.MapItem)                   { o.note("map") }
func (o *observer) Op(ompt.ScopeEndpoint, *construct.Op) { o.note("op") }
func (o *observer) End(error)                            { o.note("end") }
func (o *observer) Release()                             { o.note("release") }
func (o *observer) Dropped()                             { o.note("dropped") }
func (o *observer) Fulfilled()                           { o.note("fulfilled") }
func (o *observer) Follows(of tasks.Witness) {
	p := of.(*observer)
	o.note("follows " + p.l.name + "'s " + p.label)
}

// heard calls f with listeners of these names, and returns what they were told. A
// name with a minus stands for a listener that returns no observers, and an empty one for a nil
// listener.
func heard(f func(s *observe.Listeners), names ...string) []string {
	var heard []string
	var all []observe.Listener
	for _, name := range names {
		switch {
		case name == "":
			all = append(all, nil)
		case name[0] == '-':
			all = append(all, &listener{name: name[1:], heard: &heard, deaf: true})
		default:
			all = append(all, &listener{name: name, heard: &heard})
		}
	}
	f(observe.New(all...))
	return heard
}

func TestNobodyListensWithoutListeners(t *testing.T) {
	if s := observe.New(nil, nil); s != nil {
		t.Errorf("two missing listeners are %+v", s)
	}
	var w observe.Waiting
	first, second := errors.New("first"), errors.New("second")
	err, reporting := w.While(t.Context(), func() (error, error) { return first, second })
	if err != first || reporting != second || w.Group() != nil {
		t.Errorf("a wait that nobody listens to: %v, %v, and notes of its taskgroup: %v", err, reporting, w.Group())
	}
}

func TestOneListenerObservesTasksItself(t *testing.T) {
	for _, names := range [][]string{{"a", ""}, {"", "a"}} {
		heard := heard(func(s *observe.Listeners) {
			o := s.Task(observe.Construct{Label: "outer"})
			if _, ok := o.(*observer); !ok {
				t.Errorf("the observer is %T", o)
			}
			inner := observe.Construct{Label: "inner", Origin: observe.Origin{Region: o}}
			s.Generated(t.Context(), inner, s.Task(inner), nil)
		}, names...)
		want := []string{"a task outer by the initial task in <nil>", "a task inner by a's outer in <nil>", "a generated inner, its own true, <nil>"}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("listeners %q (-want +got):\n%s", names, diff)
		}
	}
}

func TestATaskWithoutObserversHasNone(t *testing.T) {
	for _, names := range [][]string{{"-a"}, {"-a", "-b"}} {
		heard(func(s *observe.Listeners) {
			if o := s.Task(observe.Construct{}); o != nil {
				t.Errorf("listeners %q: the observer is %v", names, o)
			}
		}, names...)
	}
}

// Each listener is told of every event once, and of the events of its own observers and
// records.
func TestTwoListenersHearOfEachEventOnce(t *testing.T) {
	failure := errors.New("failure")
	heard := heard(func(s *observe.Listeners) {
		outer := s.Task(observe.Construct{Label: "outer"})
		if run, operations := outer.Interest(); !run || !operations {
			t.Errorf("of interest are runs (%v) and operations (%v): one listener asks for each", run, operations)
		}
		outer.Created(nil, nil)
		outer.Begin()
		w := s.Region(observe.Wait{Origin: observe.Origin{Region: outer}, Kind: ompt.SyncRegionTaskgroup})
		group := w.Group()
		inner := observe.Construct{Label: "inner", Origin: observe.Origin{Region: outer, Taskgroup: group}}
		o := s.Task(inner)
		o.Follows(outer)
		o.Map(nil)
		o.Op(ompt.ScopeBegin, nil)
		o.Dropped()
		s.Generated(t.Context(), inner, o, failure)
		_, _ = w.While(t.Context(), func() (error, error) { return failure, nil })
		outer.(construct.Detached).Fulfilled()
		outer.End(nil)
		outer.Release()
		s.Merged(observe.Construct{Label: "merged"})
		s.Allocated(0, sched.Pointer{}, 5)
		s.Pointed(0, sched.Pointer{}, nil)
		s.Declared([]int{0}, nil)
		s.Discarded(3)
	}, "a", "b")
	both := []string{
		"task outer by the initial task in <nil>", "outer: created", "outer: begin",
		"region begins in <nil>", "group in <nil>", "task inner by NAME's outer in NAME's group", "inner: follows NAME's outer",
		"inner: map", "inner: op", "inner: dropped", "generated inner, its own true, failure",
		"wait begins in NAME's group", "NAME's wait ends in NAME's group: failure", "region ends in NAME's group",
		"outer: fulfilled", "outer: end", "outer: release", "merged merged", "allocated 5", "pointed", "declared [0]", "discarded 3",
	}
	for _, name := range []string{"a", "b"} {
		var got, want []string
		for _, h := range heard {
			if h[:2] == name+" " {
				got = append(got, h[2:])
			}
		}
		for _, w := range both {
			want = append(want, strings.ReplaceAll(w, "NAME", name))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s heard (-want +got):\n%s", name, diff)
		}
	}
	if a, b := slices.Index(heard, "a outer: created"), slices.Index(heard, "b outer: created"); a > b {
		t.Error("the second listener hears first")
	}
}

func TestAListenerWithoutObserversHearsTheRest(t *testing.T) {
	heard := heard(func(s *observe.Listeners) {
		first, second := s.Task(observe.Construct{Label: "first"}), s.Task(observe.Construct{Label: "second", Origin: observe.Origin{}})
		second.Follows(first)
		s.Generated(t.Context(), observe.Construct{Label: "second"}, second, nil)
	}, "-a", "b")
	want := []string{
		"a task first by the initial task in <nil>", "b task first by the initial task in <nil>",
		"a task second by the initial task in <nil>", "b task second by the initial task in <nil>",
		"b second: follows b's first",
		"a generated second, its own false, <nil>", "b generated second, its own true, <nil>",
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMemoryRoutineIsCarriedOutOnce(t *testing.T) {
	failure := errors.New("failure")
	done := 0
	heard := heard(func(s *observe.Listeners) {
		outer := s.Task(observe.Construct{Label: "outer"})
		e := &observe.Storage{Label: "alloc", Origin: observe.Origin{Region: outer}}
		if err := s.Storage(e, func() error { done++; return failure }); err != failure {
			t.Errorf("the routine returns %v", err)
		}
	}, "-a", "b")
	// a has no observer of the task that calls the routine.
	want := []string{"b before alloc by true", "a before alloc by false", "a after alloc by false", "b after alloc by true"}
	if diff := cmp.Diff(want, heard[2:]); diff != "" || done != 1 {
		t.Errorf("done %d times; heard (-want +got):\n%s", done, diff)
	}
}

func TestSitesAreFoundForWhoAsks(t *testing.T) {
	for _, want := range []observe.Interest{{}, {Stack: true}, {Codeptr: true}, {Stack: true, Codeptr: true, Data: true}} {
		s := observe.New(&listener{interest: want, heard: new([]string)})
		site := s.Here()
		if (site.Stack != nil) != want.Stack || (site.Codeptr != 0) != want.Codeptr || s.Data() != want.Data {
			t.Errorf("%+v: the site is %+v, data %v", want, site, s.Data())
		}
	}
}
