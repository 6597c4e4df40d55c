package construct_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// watcher is an observer that writes down what it hears.
type watcher struct {
	tasks.Witness
	heard  []string
	leaves bool
}

func (w *watcher) Interest() (run, operations bool) { return true, false }
func (w *watcher) Created(n *tasks.Node, depend []tasks.Depend) {
	w.heard = append(w.heard, "created")
	if w.leaves {
		runtime.Goexit()
	}
}
func (w *watcher) Begin()                               { w.heard = append(w.heard, "begin") }
func (w *watcher) Map([]ompt.MapItem)                   {}
func (w *watcher) Op(ompt.ScopeEndpoint, *construct.Op) {}
func (w *watcher) End(error)                            { w.heard = append(w.heard, "end") }
func (w *watcher) Release()                             {}
func (w *watcher) Dropped()                             {}

// nothing is the runner of a task that does nothing.
type nothing struct{}

func (nothing) Start(n *tasks.Node, w *tasks.Work) { construct.Pass(n, w) }
func (nothing) Recycle()                           {}

func TestObserverHearsOfATaskBeforeItStarts(t *testing.T) {
	var graph tasks.Graph
	seen := &watcher{}
	c := construct.Construct{Label: "task", Scope: graph.NewScope(), NoWait: true, Observer: seen}
	w := tasks.NewWork()
	_, err := c.Add(t.Context(), &tasks.Task{Runner: nothing{}}, w, nil)
	if err != nil || !slices.Equal(seen.heard, []string{"created"}) {
		t.Fatalf("%v; it has heard %v", err, seen.heard)
	}
	w.Finish()
	if want := []string{"created", "begin", "end"}; !slices.Equal(seen.heard, want) {
		t.Errorf("it has heard %v, want %v", seen.heard, want)
	}
	if err := c.Scope.Wait(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestTaskWhoseObserverLeavesIsNobodysToWaitFor(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		var graph tasks.Graph
		scope, left := graph.NewScope(), false
		over := make(chan struct{})
		go func() {
			defer close(over)
			c := construct.Construct{Label: "task", Scope: scope, NoWait: noWait, Observer: &watcher{leaves: true}}
			w := tasks.NewWork()
			defer w.Finish()
			_, _ = c.Add(t.Context(), &tasks.Task{Runner: nothing{}}, w, func() { left = true })
			t.Error("Add returned")
		}()
		<-over
		if left == noWait {
			t.Errorf("nowait %v: left %v", noWait, left)
		}
		if err := scope.Wait(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
}

func TestDeferredTaskIsDroppedWhenItsContextHasEnded(t *testing.T) {
	var graph tasks.Graph
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	for _, noWait := range []bool{false, true} {
		c := construct.Construct{Label: "task", Scope: graph.NewScope(), NoWait: noWait}
		w := tasks.NewWork()
		_, err := c.Add(ctx, &tasks.Task{Runner: nothing{}}, w, nil)
		w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Scope.Wait(t.Context(), nil); errors.Is(err, mine) != noWait {
			t.Errorf("nowait %v: %v", noWait, err)
		}
	}
}
