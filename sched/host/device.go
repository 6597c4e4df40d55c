package host

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// Device is the initial device. It runs explicit tasks and target regions that are Go functions on
// the program's own storage. It is safe for concurrent use.
type Device struct {
	pool    *Pool
	regions atomic.Uint64
	spare   sync.Pool
}

// NewDevice returns an initial device that runs the bodies of at most that many deferred tasks at
// once.
func NewDevice(places int) *Device { return &Device{pool: NewPool(places)} }

// Pool returns the pool on which the bodies of deferred tasks run. Each of them holds a place of
// it.
func (h *Device) Pool() *Pool { return h.pool }

// Regions returns the number of target regions that have begun on the initial device.
func (h *Device) Regions() uint64 { return h.regions.Load() }

// Region is an explicit task, or a target region of the initial device.
type Region struct {
	// Construct has the clauses. With NoWait the task runs on the pool; otherwise it is undeferred
	// and runs on the goroutine that generates it.
	construct.Construct
	// Target says that the task is a target region, and counts as one in Regions.
	Target bool
	// Body is nil for a region that runs nothing and only keeps its dependences. It is called
	// with Context.
	Body func(context.Context) error
	// Context is passed to the body. If nil, the context of Run is.
	Context context.Context
	// Event makes the task detachable, and ID receives the task's number (see tasks.Task).
	Event *tasks.Event
	ID    *uint64
	// Transparency and Inner are passed on to tasks.Task.
	Transparency tasks.Transparency
	Inner        *tasks.Scope
	// Ender, if not nil, is told once that the body has returned or will not be called, before the
	// task is complete.
	Ender interface{ Ended() }
}

// Run generates the task. An undeferred task is complete when Run returns, and Run returns its
// failure, unless ctx ends first: then Run returns the cause, and the task is dropped if it has
// not started. When Run returns, a detachable task may still wait for its event, and for nothing
// else. A deferred task is dropped if ctx ends before it starts. Run does not keep the depend clause.
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
		Domain: tasks.Host, Runner: t,
		Event: r.Event, ID: r.ID, Transparency: r.Transparency, Inner: r.Inner,
	}
	w := tasks.NewWork()
	node, err := r.Add(ctx, &task, w, func() {
		t.state.Store(hostAbandoned) // nobody is there to run it
	})
	w.Finish()
	if err != nil {
		t.over()
		t.giveBack()
		return err
	}
	if r.NoWait {
		return nil
	}
	return t.include(ctx, node)
}

// include waits until an undeferred task may run, and runs it on the calling goroutine.
func (t *hostTask) include(ctx context.Context, n *tasks.Node) error {
	place := t.Place
	told := false
	select {
	case <-t.ready:
		told = true
	default:
		n.BeforeWait()
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
			// Start or Drop will find the state hostAbandoned, and the task is dropped.
			return n.GiveUp(context.Cause(ctx))
		}
		// Start or Drop has changed the state and is about to send the token, which must not stay
		// in the channel for the next task.
		<-t.ready
	}
	if t.state.Load() == hostStarted {
		t.run(n)
		if !n.Completed() && t.Event != nil {
			n.Abandon()
			return nil
		}
	}
	if err := n.Await(ctx, place); err != nil {
		return err
	}
	err := n.Outcome()
	n.Release()
	t.giveBack()
	return err
}

// hostTask is a task of the initial device that is not complete.
type hostTask struct {
	device *Device
	Region
	node  *tasks.Node
	state atomic.Int32
	// ready receives a token when an undeferred task may run, or is dropped.
	ready chan struct{}
}

const (
	hostWaiting int32 = iota
	hostStarted
	// hostDropped says that the task will not run.
	hostDropped
	// hostAbandoned says that the encountering goroutine no longer waits to run the task.
	hostAbandoned
)

// Start implements tasks.Runner.
func (t *hostTask) Start(n *tasks.Node, w *tasks.Work) {
	if t.NoWait && t.Body == nil {
		t.over()
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
		t.over()
		if t.Observer != nil {
			t.Observer.Dropped()
		}
		return
	}
	t.ready <- struct{}{}
}

// Drop implements tasks.Dropper.
func (t *hostTask) Drop(n *tasks.Node, _ error) {
	t.over()
	if n.Included() && t.state.CompareAndSwap(hostWaiting, hostDropped) {
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
	// Deferred, because a body or an observer can call runtime.Goexit.
	defer func() {
		t.over()
		cancelled := tasks.OnlyCancelled(err) && t.Group.Cancelled()
		if cancelled {
			err = nil
		}
		defer func() {
			w := tasks.NewWork()
			defer w.Finish()
			construct.Complete(n, err, w)
		}()
		if cancelled && n.WaiveEvent() {
			if o, ok := t.Observer.(construct.Detached); ok {
				o.Fulfilled()
			}
		}
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

// over says that the body is not running and will not be called.
func (t *hostTask) over() {
	if t.Ender != nil {
		t.Ender.Ended()
	}
}

func (t *hostTask) protected() error {
	return protect.Call(func() error { return t.Body(t.Context) })
}

// Recycle implements tasks.Runner. An undeferred task is recycled by include, which reads the
// hostTask after the task is complete.
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
