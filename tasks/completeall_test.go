package tasks

import (
	"sync"
	"testing"
)

// Tasks of several scopes are completed together, each under the lock of its own, while others are added there.
func TestTasksOfSeveralScopesAreCompletedTogether(t *testing.T) {
	const each = 100
	s := newScript()
	scopes := []*Scope{s.scope, s.graph.NewScope()}
	var nodes []*Node
	started := make([]*heldRunner, 0, 2*each)
	add := func(scope *Scope, r *heldRunner) *Node {
		w := NewWork()
		defer w.Finish()
		n, err := scope.Add(&Task{Label: "a", Runner: r}, w)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for i := range 2 * each {
		r := &heldRunner{}
		started = append(started, r)
		nodes = append(nodes, add(scopes[i%2], r))
	}
	var others sync.WaitGroup
	for _, scope := range scopes {
		others.Go(func() {
			for range each {
				w := NewWork()
				add(scope, &heldRunner{}).Complete(nil, w)
				w.Finish()
			}
		})
	}
	w := NewWork()
	CompleteAll(nodes, w)
	w.Finish()
	others.Wait()
	for i, r := range started {
		if !r.started || !r.recycled {
			t.Fatalf("task %d: started %v, recycled %v", i, r.started, r.recycled)
		}
	}
	for i, scope := range scopes {
		if !scope.Settled() {
			t.Errorf("scope %d has tasks left", i)
		}
	}
}

// heldRunner is the runner of a task that somebody else completes.
type heldRunner struct{ started, recycled bool }

func (r *heldRunner) Start(*Node, *Work) { r.started = true }
func (r *heldRunner) Recycle()           { r.recycled = true }
