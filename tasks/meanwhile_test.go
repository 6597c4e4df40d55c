package tasks

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// What a goroutine does while it waits for tasks can end the wait, which the channel shows.
func TestWaitDoesSomethingMeanwhile(t *testing.T) {
	ctx := context.Background()
	for name, wait := range map[string]func(s *script, n *Node, g *Group, m Meanwhile) error{
		"scope": func(s *script, _ *Node, _ *Group, m Meanwhile) error { return s.scope.WaitWith(ctx, nil, m) },
		"group": func(_ *script, _ *Node, g *Group, m Meanwhile) error { return g.WaitWith(ctx, nil, m) },
		"task": func(_ *script, n *Node, _ *Group, m Meanwhile) error {
			if err := n.AwaitWith(ctx, nil, m); err != nil {
				return err
			}
			return n.Outcome()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, g := newScript(), NewGroup(nil)
			n := s.add(Task{Label: "a", Included: name == "task", Group: g})
			called := 0
			err := wait(s, n, g, func(over <-chan struct{}) {
				called++
				if len(over) != 0 {
					t.Error("the wait is over before the task is complete")
				}
				s.complete("a", errBroken)
				if len(over) != 1 {
					t.Error("the wait is not over")
				}
			})
			if called != 1 || !errors.Is(err, errBroken) {
				t.Errorf("called %d times, the wait got %v", called, err)
			}
			if err := wait(s, n, g, func(<-chan struct{}) { t.Error("called, and there is nothing to wait for") }); err != nil && name != "task" {
				t.Errorf("reported again: %v", err)
			}
		})
	}
}

// A goroutine ends while it waits. The failures that it was to hear of are left to the next wait.
func TestGoroutineEndsMeanwhile(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"scope", "group", "task"} {
		t.Run(name, func(t *testing.T) {
			s, g := newScript(), NewGroup(nil)
			n := s.add(Task{Label: "a", Included: name == "task", Group: g})
			over := make(chan struct{})
			go func() {
				defer close(over)
				leave := func(<-chan struct{}) { runtime.Goexit() }
				switch name {
				case "scope":
					_ = s.scope.WaitWith(ctx, nil, leave)
				case "group":
					_ = g.WaitWith(ctx, nil, leave)
				case "task":
					_ = n.WaitWith(ctx, nil, leave)
				}
				t.Error("the wait returned")
			}()
			<-over
			if n := countWaiters(s.scope); n != 0 {
				t.Errorf("%d waits are left", n)
			}
			s.complete("a", errBroken)
			again := s.scope.Wait(ctx, nil)
			if name == "task" {
				again = n.Wait(ctx, nil)
			}
			if !errors.Is(again, errBroken) {
				t.Errorf("the next wait got %v", again)
			}
		})
	}
}
