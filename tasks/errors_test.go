package tasks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mute is an error whose Error panics.
type mute struct{}

func (mute) Error() string { panic("no text") }

// listed is an error whose values cannot be compared.
type listed []string

func (l listed) Error() string { return strings.Join(l, "") }

// panicky is an error whose Unwrap panics.
type panicky struct{}

func (panicky) Error() string { return "broken" }
func (panicky) Unwrap() error { panic("no cause") }

func TestAlikeIsWhatHasOneTextAndOneType(t *testing.T) {
	broken := errors.New("broken")
	again := errors.New("broken")
	failed := func(task string, cause error) error {
		return &Error{Task: task, Cause: cause, likeness: new(Graph).likenessOf(cause)}
	}
	stack := func(goroutine, at, line int) error {
		return fmt.Errorf("panic: no\ngoroutine %d [running]:\nmain.f(%#x)\n\tmain.go:%d +%#x", goroutine, at, line, at)
	}
	for _, c := range []struct {
		a, b error
		// alike says that the two are counted together, roots that they wrap the same errors,
		// and same that they are one error.
		alike, roots, same bool
	}{
		{broken, broken, true, true, true},
		{broken, again, true, false, false},
		{broken, errors.New("bent"), false, false, false},
		{broken, fmt.Errorf("broken%w", errors.New("")), false, false, false},
		{fmt.Errorf("%w", broken), fmt.Errorf("%w", again), true, false, false},
		{fmt.Errorf("%w", broken), fmt.Errorf("%w", broken), true, true, false},
		{fmt.Errorf("%w", broken), &Error{Task: "t", Cause: broken}, false, true, false},
		{errors.Join(broken, mute{}), errors.Join(broken, mute{}), true, true, false},
		{errors.Join(broken), errors.Join(again), true, false, false},
		{errors.Join(broken), errors.Join(panicky{}), false, false, false},
		{errors.Join(broken, fmt.Errorf("%w", again)), errors.Join(fmt.Errorf("%w", broken), again), false, true, false},
		{stack(1, 0xc0001, 12), stack(734, 0xc0ffee, 12), true, false, false},
		{stack(1, 0xc0001, 12), stack(1, 0xc0001, 13), false, false, false},
		{stack(1, 0xc0001, 12), errors.New(strings.Replace(stack(2, 0xc0002, 12).Error(), "[running]", "[running (scan)]", 1)), true, false, false},
		{fmt.Errorf("%w\ncreated by work in goroutine 5\n\twork.go:3", stack(1, 0xc0001, 12)), fmt.Errorf("%w\ncreated by help in goroutine 7\n\thelp.go:8", stack(2, 0xc0002, 12)), true, false, false},
		// Addresses and numbers of goroutines are left out in a stack, but not in the first
		// line.
		{errors.New("at 0xc0001"), errors.New("at 0xc0002"), false, false, false},
		{mute{}, mute{}, true, true, true},
		{panicky{}, panicky{}, true, true, true},
		{listed{"a"}, listed{"a"}, true, true, true},
		{fmt.Errorf("%w: %w", listed{"a"}, broken), fmt.Errorf("%w: %w", listed{"a"}, again), true, false, false},
		{failed("t", broken), failed("t", broken), true, true, true},
		{failed("t", broken), failed("t", again), true, false, false},
		{failed("t", broken), failed("u", broken), false, true, false},
		{errors.Join(failed("t", broken)), errors.Join(failed("t", broken)), true, true, false},
		{errors.Join(failed("t", broken)), errors.Join(failed("t", again)), true, false, false},
		{nil, mute{}, false, false, false},
	} {
		a, b := new(Graph).likenessOf(c.a), new(Graph).likenessOf(c.b)
		if alike, roots, same := a.text == b.text, a.roots == b.roots, a == b; alike != c.alike || roots != c.roots || same != c.same {
			t.Errorf("%T and %T (%.20q): alike %v, of the same roots %v, the same %v, want %v, %v, %v",
				c.a, c.b, textOf(c.b), alike, roots, same, c.alike, c.roots, c.same)
		}
	}
}

// tangledError is an error in whose tree the same causes are found many times.
type tangledError struct {
	causes    []error
	unwrapped *int
}

func (e *tangledError) Error() string { return "broken" }
func (e *tangledError) Unwrap() []error {
	*e.unwrapped++
	return e.causes
}

// The tree of an error can be very large, or have a circle. Only a bounded number of causes is
// looked at.
func TestFewCausesOfAnErrorAreLookedAt(t *testing.T) {
	for name, tangled := range map[string]func(root error, unwrapped *int) error{
		"each cause twice": func(root error, unwrapped *int) error {
			for range 24 {
				root = &tangledError{[]error{root, root}, unwrapped}
			}
			return root
		},
		"its own cause": func(root error, unwrapped *int) error {
			err := &tangledError{unwrapped: unwrapped}
			err.causes = []error{root, err}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			unwrapped := 0
			first := tangled(errBroken, &unwrapped)
			a, b := new(Graph).likenessOf(first), new(Graph).likenessOf(tangled(errors.New("broken"), &unwrapped))
			if unwrapped > 2*maxCauses {
				t.Errorf("%d causes of two errors are looked at, want %d at most", unwrapped, 2*maxCauses)
			}
			if a.text != b.text || a.roots == b.roots || a != new(Graph).likenessOf(first) {
				t.Errorf("likenesses %v and %v of two errors that are alike", a, b)
			}
		})
	}
}

// unlocked is an error that reports when its methods are called with a lock held.
type unlocked struct {
	t     *testing.T
	locks []interface {
		sync.Locker
		TryLock() bool
	}
	calls *int
}

func (u unlocked) check() {
	*u.calls++
	for i, mu := range u.locks {
		if !mu.TryLock() {
			u.t.Errorf("lock %d is held\n%s", i, debug.Stack())
			continue
		}
		mu.Unlock()
	}
}

func (u unlocked) Error() string { u.check(); return "broken" }
func (u unlocked) Unwrap() error { u.check(); return nil }

// The methods of the program's errors may call the package themselves: they must not be called
// with a lock held.
func TestMethodsOfErrorsAreCalledWithoutLocks(t *testing.T) {
	for name, fail := range map[string]func(s *script, err error){
		"complete": func(s *script, err error) { s.complete("t", err) },
		"fail":     func(s *script, err error) { s.nodes["t"].Fail(err); s.complete("t", err) },
		"drop": func(s *script, err error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s.add(Task{Label: "ended", Context: ctx, Depend: s.use(DependInOut, "x")})
			cancel(err)
			s.complete("t", nil)
			s.complete("c", nil)
		},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", the graph is kept ", kept), func(t *testing.T) {
				s, g := newScript(), NewGroup(nil)
				if kept {
					s.graph.Keep()
				}
				calls := 0
				err := unlocked{t: t, calls: &calls}
				err.locks = append(err.locks, &s.scope.family.mu, &g.mu, &s.graph.mu)
				s.add(Task{Label: "t", Group: g, Depend: s.use(DependOut, "x")})
				s.add(Task{Label: "c", Group: g, Depend: s.use(DependIn, "x")})
				fail(s, err)
				s.graph.Snapshot()
				s.add(Task{Label: "d", Depend: s.use(DependIn, "x")})
				if s.waitNow() == nil || calls == 0 {
					t.Errorf("no failure after %d calls", calls)
				}
			})
		}
	}
}

// rooted is an error that wraps several causes.
type rooted struct{ causes []error }

func (r *rooted) Error() string   { return "broken" }
func (r *rooted) Unwrap() []error { return r.causes }

// Failures with the same text are counted together. Those that wrap different errors can still
// be told apart by errors.Is, whether they are of tasks with depend items or without, and
// whether a wait or a finished scope reports them.
func TestFailuresWithOneTextAreFoundByTheirIdentity(t *testing.T) {
	sentinels := make([]error, maxDistinct/2+1)
	for i := range sentinels {
		sentinels[i] = errors.New("sentinel")
	}
	// Many tasks fail with the first sentinel, and few with the others.
	const flood = 100
	for name, failure := range map[string]func(sentinel error) error{
		"itself":    func(sentinel error) error { return sentinel },
		"wrapped":   func(sentinel error) error { return fmt.Errorf("broken: %w", sentinel) },
		"in a list": func(sentinel error) error { return &rooted{[]error{errBroken, sentinel}} },
		"joined":    func(sentinel error) error { return errors.Join(errBroken, sentinel) },
		"of a task": func(sentinel error) error {
			inner := newScript()
			inner.add(Task{Label: "inner"})
			inner.complete("inner", sentinel)
			return inner.waitNow()
		},
	} {
		all := slices.Concat(slices.Repeat(sentinels[:1], flood), sentinels[1:], sentinels)
		check := func(t *testing.T, how string, err error) {
			t.Helper()
			for i, sentinel := range sentinels {
				if !errors.Is(err, sentinel) {
					t.Errorf("%s: the %d. sentinel is not found", how, i)
				}
			}
			if want := fmt.Sprintf("(and %d more like it)", len(all)-1); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %q does not end with %s", how, err, want)
			}
			var failed *Error
			if !errors.As(err, &failed) || failed.Task != "t" {
				t.Errorf("%s: the task is not found", how)
			}
		}
		t.Run(name, func(t *testing.T) {
			for _, items := range []int{0, 1, 2} {
				s := newScript()
				var finished Failures
				for i, sentinel := range all {
					depend := s.use(DependOut, fmt.Sprint("x", i))
					if items == 0 || items == 2 && i%2 == 0 {
						depend = nil
					}
					s.add(Task{Label: "t", Depend: depend})
					s.complete("t", failure(sentinel))

					inner := newScript()
					inner.add(Task{Label: "t", Depend: depend})
					inner.complete("t", failure(sentinel))
					inner.scope.Settle(&finished)
				}
				check(t, fmt.Sprint("wait, items ", items), s.waitNow())
				check(t, fmt.Sprint("scopes, items ", items), finished.Report())
			}
		})
	}
}

// Tasks fail because tasks of an outer scope have failed on which they depend. The wait for
// them reports those failures, each of which can be found by errors.Is.
func TestFailuresOfAnotherScopeAreFoundThroughTheirDependents(t *testing.T) {
	for name, wait := range map[string]func(s *script) error{
		"wait": func(s *script) error { return s.waitNow() },
		"scopes": func(s *script) error {
			var finished Failures
			s.scope.Settle(&finished)
			return finished.Report()
		},
	} {
		t.Run(name, func(t *testing.T) {
			causes := []error{errors.New("broken"), errors.New("broken")}
			s := newScript()
			for i, cause := range causes {
				s.add(Task{Label: "r", Depend: s.use(DependOut, fmt.Sprint("x", i))})
				s.complete("r", cause)
			}
			s.inner("p", Import, Task{})
			for i := range causes {
				s.add(Task{Label: "c", Depend: s.use(DependIn, fmt.Sprint("x", i))})
			}
			s.expect(t, "start r", "start r", "start p", "drop c", "drop c")
			err := wait(s)
			for i, cause := range causes {
				if !errors.Is(err, cause) {
					t.Errorf("the %d. cause is not found in %v", i, err)
				}
			}
			if got, want := fmt.Sprint(err), `task "r": broken (and 1 more like it) (2 dependent tasks not run)`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// What a scope keeps of failures does not grow with their number, and the count stays right.
func TestFailuresOfManyTasksTakeLittleMemory(t *testing.T) {
	const n = 5 * maxKinds
	for name, text := range map[string]func(i int) string{
		"one text":   func(int) string { return "broken" },
		"many texts": func(i int) string { return fmt.Sprint("broken ", i) },
	} {
		t.Run(name, func(t *testing.T) {
			few := func(list []*tally) {
				t.Helper()
				for _, k := range list {
					if len(k.distinct) > maxDistinct {
						t.Errorf("%d failures with one text", len(k.distinct))
					}
				}
			}
			s := newScript()
			for i := range n {
				s.add(Task{Label: "t"})
				s.complete("t", errors.New(text(i)))
			}
			if kept := len(s.scope.failures.list); kept > maxKinds+1 || kept > 1 && text(0) == text(1) {
				t.Errorf("%d tallies for %d failures", kept, n)
			}
			few(s.scope.failures.list)
			want := fmt.Sprintf("(and %d more like it)", n-1)
			if text(0) != text(1) {
				want = fmt.Sprintf("(and %d others)", n-maxKinds-1)
			}
			if err := s.waitNow(); !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), "\n") > maxKinds {
				t.Errorf("got %.100v…, want %s", err, want)
			}
			if err := s.waitNow(); err != nil {
				t.Errorf("reported again: %.100v", err)
			}

			// The scopes' tasks have depend items by turns.
			var all Failures
			for i := range n {
				inner := newScript()
				inner.add(Task{Label: "t", Depend: inner.use(DependOut, "x")[:i%2]})
				inner.complete("t", errors.New(text(i)))
				if !inner.scope.Settle(&all) || !inner.scope.Settled() {
					t.Fatal("a complete scope is not settled")
				}
			}
			if kept := len(all.tallies); kept > maxKinds+1 || kept > 1 && text(0) == text(1) {
				t.Errorf("%d tallies of %d scopes", kept, n)
			}
			few(all.tallies)
			if err := all.Report(); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("scopes: got %.100v…, want %s", err, want)
			}
		})
	}
}

// A program that looks for failures again and again, without waiting for long, keeps one failure of those that are alike,
// also if several goroutines do.
func TestFailuresOfWaitsThatOverlapTakeLittleMemory(t *testing.T) {
	const n = 50
	s := newScript()
	s.add(Task{Label: "slow"})
	for i := range n {
		s.add(Task{Label: "t"})
		s.nodes[fmt.Sprint(i)] = s.nodes["t"]
	}
	start := func() func() {
		ctx, cut := context.WithCancelCause(context.Background())
		wait := startWait(s.scope, ctx)
		return func() {
			t.Helper()
			cut(errCut)
			if err := <-wait; err != errCut {
				t.Fatal(err)
			}
		}
	}
	end := start()
	for i := range n {
		next := start()
		s.complete(fmt.Sprint(i), errBroken)
		end()
		end = next
	}
	end()
	if kept := len(s.scope.failures.list); kept != 1 {
		t.Errorf("%d tallies of failures that are alike", kept)
	}
	s.complete("slow", nil)
	if err, want := s.waitNow(), fmt.Sprintf("task \"t\": broken (and %d more like it)", n-1); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A wait that is given up leaves nothing of failures that a taskgroup has reported meanwhile: later ones of other kinds have
// their own lines.
func TestFailuresThatWereReportedMeanwhileAreForgotten(t *testing.T) {
	s, g := newScript(), NewGroup(nil)
	s.add(Task{Label: "slow"})
	for i := range maxKinds {
		s.add(Task{Label: fmt.Sprint(i), Group: g})
	}
	ctx, cut := context.WithCancelCause(context.Background())
	wait := startWait(s.scope, ctx)
	for i := range maxKinds {
		s.complete(fmt.Sprint(i), fmt.Errorf("broken %d", i))
	}
	if err := g.Wait(t.Context(), nil); err == nil {
		t.Error("the group has no failure")
	}
	cut(errCut)
	if err := <-wait; err != errCut {
		t.Fatal(err)
	}
	for _, label := range []string{"a", "b"} {
		s.add(Task{Label: label})
		s.complete(label, errBroken)
	}
	s.complete("slow", nil)
	if err := s.waitNow(); err == nil || err.Error() != "task \"a\": broken\ntask \"b\": broken" {
		t.Errorf("got %v", err)
	}
}

// A wait does not report what an earlier one that is in progress has got to report.
func TestFailuresBeforeAWaitAreThoseOfTheOneInProgress(t *testing.T) {
	s := newScript()
	for _, name := range []string{"a", "b"} {
		s.add(Task{Label: "t"})
		s.nodes[name] = s.nodes["t"]
	}
	s.complete("a", errBroken)
	first := startWait(s.scope, context.Background())
	second := startWait(s.scope, context.Background())
	s.complete("b", errBroken)
	if err := <-first; err == nil || err.Error() != `task "t": broken (and 1 more like it)` {
		t.Errorf("the first wait: %v", err)
	}
	if err := <-second; err == nil || err.Error() != `task "t": broken` {
		t.Errorf("the second wait: %v", err)
	}
}

// A wait outside of a taskgroup returns the group's failures, and leaves their report to the group. Another one, given up later,
// does not leave them to the next wait, unless more tasks were not run because of them.
func TestFailuresThatAWaitHasReturnedAreNotGivenBack(t *testing.T) {
	// The race detector needs several attempts to see waits and tasks use a tally at the same time.
	for k := range 100 {
		more := k%2 > 0
		s, g := newScript(), NewGroup(nil)
		x := []Depend{{Kind: DependInOut, Ptr: s.storage("x"), Size: 16}}
		s.add(Task{Label: "t", Group: g, Depend: x})
		first := startWait(s.scope, context.Background())
		s.add(Task{Label: "slow"})
		if more {
			s.add(Task{Label: "later", Group: g, Depend: x})
		}
		ctx, cut := context.WithCancelCause(context.Background())
		second := startWait(s.scope, ctx)
		s.complete("t", errBroken)
		cut(errCut)
		if err := <-second; err != errCut {
			t.Fatal(err)
		}
		if err := <-first; err == nil || !errors.Is(err, errBroken) {
			t.Errorf("the first wait: %v", err)
		}
		s.complete("slow", nil)
		want := "<nil>"
		if more {
			want = `task "t": broken (1 dependent tasks not run)`
		}
		if err := s.waitNow(); fmt.Sprint(err) != want {
			t.Errorf("the next wait: %v, want %s", err, want)
		}
		if err := g.Wait(t.Context(), nil); !errors.Is(err, errBroken) {
			t.Errorf("the group: %v", err)
		}
	}
}

// The first of several failures that are alike stands for them, also if a wait has had it and was given up.
func TestFailureThatIsGivenBackStandsForLaterOnes(t *testing.T) {
	s := newScript()
	for _, label := range []string{"slow", "t", "u"} {
		s.add(Task{Label: label})
	}
	ctx, cut := context.WithCancelCause(context.Background())
	wait := startWait(s.scope, ctx)
	s.complete("t", errBroken)
	s.complete("u", errBroken)
	s.add(Task{Label: "t"})
	s.complete("t", errBroken)
	cut(errCut)
	if err := <-wait; err != errCut {
		t.Fatal(err)
	}
	if kept := len(s.scope.failures.list); kept != 2 {
		t.Errorf("%d tallies of two kinds of failures", kept)
	}
	s.complete("slow", nil)
	if err := s.waitNow(); err == nil || err.Error() != "task \"t\": broken (and 1 more like it)\ntask \"u\": broken" {
		t.Errorf("got %v", err)
	}
}

// Another wait in progress reports what one that is given up has found.
func TestFailuresOfWaitsThatWereCutTakeLittleMemory(t *testing.T) {
	const n = 100
	s := newScript()
	s.add(Task{Label: "slow"})
	fail := func(n int) {
		for range n {
			s.add(Task{Label: "t"})
			s.complete("t", errBroken)
		}
	}
	for range n {
		ctx, cut := context.WithCancelCause(context.Background())
		s.add(Task{Label: "t"})
		wait := startWait(s.scope, ctx)
		s.complete("t", errBroken)
		cut(errCut)
		if err := <-wait; err != errCut {
			t.Fatal(err)
		}
		fail(1)
	}
	if kept := len(s.scope.failures.list); kept != 1 {
		t.Errorf("%d tallies of failures that are alike", kept)
	}
	// Another wait in progress reports what one that is cut has found.
	last := startWait(s.scope, context.Background())
	ctx, cut := context.WithCancelCause(context.Background())
	wait := startWait(s.scope, ctx)
	cut(errCut)
	if err := <-wait; err != errCut {
		t.Fatal(err)
	}
	fail(n)
	if kept := len(s.scope.failures.list); kept != 1 {
		t.Errorf("%d tallies of failures that no wait will report, want 1", kept)
	}
	s.complete("slow", nil)
	for _, want := range []struct {
		err  error
		more int
	}{{<-last, 2*n - 1}, {s.waitNow(), n - 1}} {
		if text := fmt.Sprintf("task \"t\": broken (and %d more like it)", want.more); want.err == nil || want.err.Error() != text {
			t.Errorf("got %v, want %s", want.err, text)
		}
	}
}

// Of tasks that fail with the same error only one failure is kept, and a few if each wraps the
// error anew.
func TestFailuresThatAreTheSameAreKeptOnce(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		s := newScript()
		for range 1000 {
			err := errBroken
			if wrapped {
				err = fmt.Errorf("again: %w", errBroken)
			}
			s.add(Task{Label: "t"})
			s.complete("t", err)
		}
		want := 1
		if wrapped {
			want = maxDistinct / 2
		}
		k := s.scope.failures.list[0]
		if got := len(k.distinct.or(k.root)); got != want || len(s.scope.failures.list) != 1 {
			t.Errorf("wrapped %v: %d failures are kept, want %d", wrapped, got, want)
		}
	}
}

// A failure of a taskgroup's task is reported by the taskgroup. The finished scope of the task
// reports it only if the taskgroup has not.
func TestFailuresOfFinishedScopesAreTheirGroupsFirst(t *testing.T) {
	for _, waited := range []bool{false, true} {
		s, g := newScript(), NewGroup(nil)
		var all Failures
		s.add(Task{Label: "t", Group: g})
		s.complete("t", errBroken)
		s.scope.Settle(&all)
		if waited {
			if err := g.Wait(t.Context(), nil); !errors.Is(err, errBroken) {
				t.Errorf("the group: %v", err)
			}
		}
		var more Failures
		more.Add(&all)
		if err := more.Report(); (err == nil) != waited {
			t.Errorf("after the group's wait %v: %v", waited, err)
		}
	}
	// Two groups with failures that look the same report one each.
	groups := []*Group{NewGroup(nil), NewGroup(nil)}
	var all Failures
	for _, g := range groups {
		s := newScript()
		s.add(Task{Label: "t", Group: g})
		s.complete("t", errBroken)
		s.scope.Settle(&all)
	}
	for i, g := range groups {
		if err := g.Wait(t.Context(), nil); !errors.Is(err, errBroken) {
			t.Errorf("group %d: %v", i, err)
		}
	}
}

// Tallies of scopes stay as they are when they are collected, since tasks of other scopes may still look at them.
func TestFailuresThatAreCollectedStayAsTheyAre(t *testing.T) {
	var all Failures
	var scopes []*script
	var was []tally
	for range 3 {
		s := newScript()
		s.add(Task{Label: "t", Depend: s.use(DependOut, "x")})
		s.complete("t", errBroken)
		scopes = append(scopes, s)
	}
	var tallies []*tally
	for _, s := range scopes {
		tallies = append(tallies, s.scope.failures.list...)
	}
	for _, t := range tallies {
		was = append(was, tally{failed: t.failed, dropped: t.dropped, distinct: t.distinct})
	}
	for _, s := range scopes {
		s.scope.Settle(&all)
	}
	for i, k := range tallies {
		if k.failed != was[i].failed || k.dropped != was[i].dropped || len(k.distinct) != len(was[i].distinct) {
			t.Errorf("the tally of scope %d counts %d failed tasks now, it had %d", i, k.failed, was[i].failed)
		}
	}
	if err := all.Report(); err == nil || err.Error() != `task "t": broken (and 2 more like it)` {
		t.Errorf("the report: %v", err)
	}
}

// A failure is not counted with one that has been reported meanwhile, of which nobody would hear any more.
func TestFailuresAfterAReportedOneAreReported(t *testing.T) {
	again := errors.New("again")
	like := new(Graph).likenessOf(again)
	failure := func() *tally {
		return &tally{root: &Error{Task: "t", Cause: again, likeness: like}, failed: 1}
	}
	var f Failures
	first := failure()
	f.add([]*tally{first})
	first.reported.Store(true)
	f.add([]*tally{failure()})
	if err := f.Report(); !errors.Is(err, again) {
		t.Errorf("the second failure: %v", err)
	}
}
