package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// Device is the initial device: explicit tasks and target regions that are Go
// functions, on the program's own storage. It is safe for concurrent use.
type Device struct {
	pool    *Pool
	regions atomic.Uint64
	spare   sync.Pool
}

// NewDevice returns the initial device, which runs at most that many deferred
// bodies at once.
func NewDevice(places int) *Device { return &Device{pool: NewPool(places)} }

// Pool returns the pool that deferred bodies run on. They hold a place of it.
func (h *Device) Pool() *Pool { return h.pool }

// Regions returns the number of target regions that began to run here.
func (h *Device) Regions() uint64 { return h.regions.Load() }

// Region is an explicit task, or a target region of the initial device.
type Region struct {
	// Construct is what it has in common with others. With NoWait the task runs on the pool;
	// otherwise it is undeferred and runs on the goroutine that generates it.
	construct.Construct
	// Target says that it is a target region, to be counted as such.
	Target bool
	// Body is nil for a region that runs nothing and keeps its dependences. The
	// context is Region.Context, or else that given to Run.
	Body func(context.Context) error
	// Context is what the body gets; nil for Run's.
	Context context.Context
	// Event makes the task detachable, and ID gets its number, as in tasks.Task.
	Event *tasks.Event
	ID    *uint64
	// Transparency and Inner are those of tasks.Task.
	Transparency tasks.Transparency
	Inner        *tasks.Scope
	// Ender, if not nil, hears when the body is done, before the task is complete.
	Ender interface{ Ended() }
}

// Run generates the task. An undeferred one is complete when Run returns, with its
// failure, unless ctx ends first: then its cause is returned, and the task is
// dropped if it has not started. The end of ctx drops a deferred one that has not
// started. Run keeps nothing of the depend clause.
func (h *Device) Run(ctx context.Context, r Region) error {
	t, _ := h.spare.Get().(*hostTask)
	if t == nil {
		t = &hostTask{device: h, ready: make(chan struct{}, 1)}
	}
	t.Region, t.Depend = r, nil
	t.state.Store(hostWaiting)
	if t.Context == nil {
		t.Context = ctx
	}
	task := tasks.Task{
		Domain: tasks.Host, Runner: t, Recycler: t,
		Event: r.Event, ID: r.ID, Transparency: r.Transparency, Inner: r.Inner,
	}
	w := tasks.NewWork()
	node, err := r.Add(ctx, &task, w, func() {
		t.state.Store(hostAbandoned) // nobody is there to run it
	})
	w.Finish()
	if err != nil {
		t.giveBack()
		return err
	}
	if r.NoWait {
		return nil
	}
	return t.include(ctx, node)
}

// include waits until an undeferred task may run, and runs it.
func (t *hostTask) include(ctx context.Context, n *tasks.Node) error {
	place := t.Place
	told := false
	select {
	case <-t.ready:
		told = true
	default:
		if place != nil {
			place.Leave()
		}
		select {
		case <-t.ready:
			told = true
		case <-ctx.Done():
		}
		if place != nil {
			place.Return()
		}
	}
	if !told {
		if t.state.CompareAndSwap(hostWaiting, hostAbandoned) {
			// Whoever finds it ready drops it.
			n.Abandon()
			return context.Cause(ctx)
		}
		// It is being told: the token is not for the next task.
		<-t.ready
	}
	if t.state.Load() == hostStarted {
		t.run(n)
	}
	if err := n.Await(ctx, place); err != nil {
		return err
	}
	err := n.Outcome()
	n.Release()
	t.giveBack()
	return err
}

// hostTask is a region of the initial device under way.
type hostTask struct {
	device *Device
	Region
	node  *tasks.Node
	state atomic.Int32
	// ready gets a token when an undeferred task may run, or never will.
	ready chan struct{}
}

const (
	hostWaiting int32 = iota
	hostStarted
	// hostDropped: it is not to be run.
	hostDropped
	// hostAbandoned: the encountering goroutine went away.
	hostAbandoned
)

// Start implements tasks.Runner.
func (t *hostTask) Start(n *tasks.Node, w *tasks.Work) {
	if t.NoWait && t.Body == nil {
		construct.Pass(n, w)
		return
	}
	if t.NoWait {
		t.node = n
		t.device.pool.Submit(t, t.Priority)
		return
	}
	if !t.state.CompareAndSwap(hostWaiting, hostStarted) {
		defer n.Complete(fmt.Errorf("not run: %w", cmp.Or(context.Cause(t.Context), protect.ErrGoexit)), w)
		if t.Observer != nil {
			t.Observer.Dropped()
		}
		return
	}
	t.ready <- struct{}{}
}

// Drop implements tasks.Runner. A deferred task is recycled by now.
func (t *hostTask) Drop(n *tasks.Node) {
	if !n.Included() {
		return
	}
	if t.state.CompareAndSwap(hostWaiting, hostDropped) {
		t.ready <- struct{}{}
	}
}

// Run implements Job.
func (t *hostTask) Run() {
	if !t.dropCancelled() {
		t.run(t.node)
	}
}

func (t *hostTask) dropCancelled() bool {
	w := tasks.NewWork()
	defer w.Finish()
	return t.node.DropCancelled(w)
}

func (t *hostTask) run(n *tasks.Node) {
	err := protect.ErrGoexit
	// Deferred, because a body can leave by runtime.Goexit, and so can an observer.
	defer func() {
		if t.Ender != nil {
			t.Ender.Ended()
		}
		if errors.Is(err, tasks.ErrCancelled) && t.Group.Cancelled() {
			err = nil
		}
		w := tasks.NewWork()
		defer w.Finish()
		construct.Complete(n, err, w)
	}()
	if t.Observer != nil {
		t.Observer.Begin()
	}
	if t.Body == nil {
		err = nil
		return
	}
	if t.Target {
		t.device.regions.Add(1)
	}
	err = t.protected()
}

func (t *hostTask) protected() error {
	return protect.Call(func() error { return t.Body(t.Context) })
}

// Recycle implements tasks.Recycler. The target of an undeferred task is given
// back by Run, which still reads it.
func (t *hostTask) Recycle() {
	if t.NoWait {
		t.giveBack()
	}
}

func (t *hostTask) giveBack() {
	if t.Observer != nil {
		t.Observer.Release()
	}
	t.Region, t.node = Region{}, nil
	t.device.spare.Put(t)
}
