package foreign

import (
	"context"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/tasks"
)

// Included is the wait of a construct whose task is included, which is one with depend clauses
// and without nowait. The encountering task continues when the predecessors of the included task
// are complete. It does not wait for that task itself, which is empty but may have to wait for
// foreign work.
type Included struct {
	mu lockrank.Mutex[lockrank.InteropIncluded]
	// begun is closed when the predecessors are complete; it is nil if there is no task.
	begun chan struct{}
	// failure is the failure of a predecessor, or nil.
	failure error
	// abandoned says that nobody waits any more, so that another wait reports the failure.
	abandoned bool
}

// begin ends the wait; n is the task, which has started.
func (i *Included) begin(n *tasks.Node) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.abandoned {
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
		i.abandoned = true
		return context.Cause(ctx)
	}
}
