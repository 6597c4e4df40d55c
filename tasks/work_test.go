package tasks

import (
	"context"
	"errors"
	"testing"
)

// Next returns a task only if all that Run would do is to call its runner's Start.
func TestNext(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	cancelled := NewGroup(nil)
	cancelled.Cancel()
	open, end := context.WithCancel(t.Context())
	defer end()
	for name, c := range map[string]struct {
		make func(s *script, w *Work)
		next bool
		want []string
	}{
		"ready":        {func(s *script, w *Work) { s.ready(t, w, Task{Label: "a"}) }, true, []string{"start a"}},
		"open context": {func(s *script, w *Work) { s.ready(t, w, Task{Label: "a", Context: open}) }, true, []string{"start a"}},
		"open group":   {func(s *script, w *Work) { s.ready(t, w, Task{Label: "a", Group: NewGroup(nil)}) }, true, []string{"start a"}},
		"ended context": {
			func(s *script, w *Work) { s.ready(t, w, Task{Label: "a", Context: ended}) }, false, []string{"drop a"},
		},
		"cancelled group": {
			func(s *script, w *Work) { s.ready(t, w, Task{Label: "a", Group: cancelled}) }, false, []string{"drop a without failure"},
		},
		"ended context in an open group": {
			func(s *script, w *Work) { s.ready(t, w, Task{Label: "a", Group: NewGroup(nil), Context: ended}) }, false, []string{"drop a"},
		},
		"restarted": {
			func(s *script, w *Work) {
				n := s.ready(t, w, Task{Label: "a"})
				w.Run()
				w.Restart(n)
			}, false, []string{"start a", "start a"},
		},
		"of a failed predecessor": {
			func(s *script, w *Work) {
				items := []Depend{{Kind: DependInOut, Ptr: s.storage("x"), Size: 4}}
				n := s.ready(t, w, Task{Label: "a", Depend: items})
				w.Run()
				s.ready(t, w, Task{Label: "b", Depend: items})
				n.Complete(errors.New("failure"), w)
			}, false, []string{"start a", "drop b"},
		},
		"a call": {
			func(s *script, w *Work) { w.Defer(func(*Work) { s.say("called") }) }, false, []string{"called"},
		},
		"nothing": {func(*script, *Work) {}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := newScript(), NewWork()
			c.make(s, w)
			n := w.Next()
			if (n != nil) != c.next {
				t.Errorf("got %v", n)
			}
			if n != nil {
				if n != w.Next() {
					t.Error("Next has taken the task")
				}
				w.Take()
				if !w.Empty() {
					t.Error("Take has not")
				}
				n.Runner().Start(n, w)
			}
			w.Finish()
			s.expect(t, c.want...)
		})
	}
}

// ready adds a task whose start is left to w.
func (s *script) ready(t *testing.T, w *Work, task Task) *Node {
	t.Helper()
	task.Runner, task.Held = scripted{s, task.Label, false}, true
	n, err := s.scope.Add(&task, w)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The mark of a creation does not stay with the work, which the next one to have it may use for something else.
func TestFinishedWorkCreatesNothing(t *testing.T) {
	w := NewWork()
	w.Creates = true
	w.Finish()
	if w.Creates {
		t.Error("the next one creates")
	}
}

// Goroutines announce waits that may block, and no others.
func TestWaitsAreAnnounced(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, wait := range map[string]func(s *script, n *Node, g *Group) error{
		"scope":  func(s *script, _ *Node, _ *Group) error { return s.scope.Wait(ended, nil) },
		"group":  func(_ *script, _ *Node, g *Group) error { return g.Wait(ended, nil) },
		"node":   func(_ *script, n *Node, _ *Group) error { return n.Wait(ended, nil) },
		"itself": func(_ *script, n *Node, _ *Group) error { n.BeforeWait(); return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			s, g := newScript(), NewGroup(nil)
			waits := 0
			s.graph.OnWait(func() {
				waits++
				// Nothing is locked.
				s.graph.Counts()
				s.graph.Snapshot()
			})
			n := s.add(Task{Label: "a", Group: g})
			if err := wait(s, n, g); !errors.Is(err, context.Canceled) || waits != 1 {
				t.Errorf("%v, %d waits", err, waits)
			}
			if name == "itself" {
				return
			}
			if s.complete("a", nil); s.scope.Wait(ended, nil) != nil || g.Wait(ended, nil) != nil || n.Wait(ended, nil) != nil || waits != 1 {
				t.Errorf("%d waits", waits)
			}
		})
	}
}
