package tasks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// mute is an error whose text cannot be had.
type mute struct{}

func (mute) Error() string { panic("no text") }

func TestAlikeIsWhatHasOneTextAndOneType(t *testing.T) {
	broken := errors.New("broken")
	stack := func(goroutine, at, line int) error {
		return fmt.Errorf("panic: no\ngoroutine %d [running]:\nmain.f(%#x)\n\tmain.go:%d +%#x", goroutine, at, line, at)
	}
	for _, c := range []struct {
		a, b error
		want bool
	}{
		{broken, errors.New("broken"), true},
		{broken, errors.New("bent"), false},
		{broken, fmt.Errorf("broken%w", errors.New("")), false},
		{fmt.Errorf("%w", broken), fmt.Errorf("%w", errors.New("broken")), true},
		{fmt.Errorf("%w", broken), &Error{Task: "t", Cause: broken}, false},
		{stack(1, 0xc0001, 12), stack(734, 0xc0ffee, 12), true},
		{stack(1, 0xc0001, 12), stack(1, 0xc0001, 13), false},
		// In the first line everything counts.
		{errors.New("at 0xc0001"), errors.New("at 0xc0002"), false},
		{mute{}, mute{}, true},
		{&Error{Task: "t", Cause: broken, alike: 5}, &Error{Task: "t", Cause: broken, alike: 5}, true},
		{&Error{Task: "t", Cause: broken, alike: 5}, &Error{Task: "u", Cause: broken, alike: 5}, false},
		{nil, mute{}, false},
	} {
		if got := alike(c.a) == alike(c.b); got != c.want {
			t.Errorf("%T and %T are alike: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// What a scope remembers of failures does not grow with their number, and none is lost
// from the count.
func TestFailuresOfManyTasksTakeLittleMemory(t *testing.T) {
	const n = 5 * maxKinds
	for name, text := range map[string]func(i int) string{
		"one text":   func(int) string { return "broken" },
		"many texts": func(i int) string { return fmt.Sprint("broken ", i) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			for i := range n {
				s.add(Task{Label: "t"})
				s.complete("t", errors.New(text(i)))
			}
			if kept := len(s.scope.failures.list); kept > maxKinds+1 || kept > 1 && text(0) == text(1) {
				t.Errorf("%d tallies for %d failures", kept, n)
			}
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

			// Scopes of finished tasks: with depend items, and without.
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
			if err := all.Report(); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("scopes: got %.100v…, want %s", err, want)
			}
		})
	}
}

// What a taskgroup has to report is not settled before that has.
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
		more.Join(&all)
		if err := more.Report(); (err == nil) != waited {
			t.Errorf("after the group's wait %v: %v", waited, err)
		}
	}
}
