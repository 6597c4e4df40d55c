package foreign

import (
	"context"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/tasks"
)

// Included is the wait of a construct whose task is included: one without nowait, with
// depend clauses. Who generates such a task goes on when its predecessors are complete,
// and does not wait for the task itself, which has nothing to do: foreign work that it
// comes after may hold it up.
type Included struct {
	mu lockrank.Mutex[lockrank.InteropIncluded]
	// begun is closed when the predecessors are complete, and nil without a task.
	begun chan struct{}
	// failure is that of a predecessor. left: nobody waits, so it is not asked for.
	failure error
	left    bool
}

// begin ends the wait; n is the task, which is started.
func (i *Included) begin(n *tasks.Node) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.left {
		i.failure = n.ReportPredecessor()
	}
	close(i.begun)
}

// Wait waits until the predecessors of the task are complete, and returns the failure of
// one of them, which no other wait reports then. When ctx ends first its cause is
// returned; the task is not affected. Wait leaves place, if there is one, while it blocks.
// It is called once, after Device.Generate.
func (i *Included) Wait(ctx context.Context, place tasks.Place) error {
	if i.begun == nil {
		return nil
	}
	select {
	case <-i.begun:
		return i.failure
	default:
	}
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-i.begun:
		return i.failure
	case <-ctx.Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case <-i.begun:
		return i.failure
	default:
		i.left = true
		return context.Cause(ctx)
	}
}
