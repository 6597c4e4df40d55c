package sched

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/vkomp/vkomp/tasks"
)

// HostDevice is the initial device: its target regions are Go functions, on the
// program's own storage. It is safe for concurrent use.
type HostDevice struct {
	// slots bounds the deferred regions that run at once.
	slots   *semaphore.Weighted
	regions atomic.Uint64
}

// NewHostDevice returns the initial device.
func NewHostDevice() *HostDevice {
	return &HostDevice{slots: semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))}
}

// Regions returns the number of target regions that began to run here.
func (h *HostDevice) Regions() uint64 { return h.regions.Load() }

// HostRegion is a target region of the initial device.
type HostRegion struct {
	Label  string
	Scope  *tasks.Scope
	Depend []tasks.Depend
	NoWait bool
	// Body is nil for a region that runs nothing and keeps its dependences.
	Body func() error
}

// Run generates the region's target task: a deferred one runs on a goroutine of
// its own, an included one on the caller's. A ctx that ends before an included
// one could start drops it.
func (h *HostDevice) Run(ctx context.Context, r HostRegion) error {
	t := &hostTask{device: h, HostRegion: r, ready: make(chan struct{})}
	var w tasks.Work
	node, err := r.Scope.Add(tasks.Task{
		Label: r.Label, Domain: tasks.Host, Included: !r.NoWait, Depend: r.Depend, Runner: t,
	}, &w)
	if err != nil {
		return err
	}
	w.Run()
	if r.NoWait {
		return nil
	}
	select {
	case <-t.ready:
	default:
		select {
		case <-t.ready:
		case <-ctx.Done():
			if t.state.CompareAndSwap(hostWaiting, hostDropped) {
				return context.Cause(ctx)
			}
			<-t.ready
		}
	}
	if t.state.Load() == hostStarted {
		t.run(node)
	}
	_, err = node.Completed()
	return err
}

// hostTask is a region of the initial device under way.
type hostTask struct {
	device *HostDevice
	HostRegion
	state atomic.Int32
	// ready is closed when an included task may run, or never will.
	ready chan struct{}
}

const (
	hostWaiting int32 = iota
	hostStarted
	// hostDropped: the encountering goroutine went away, or a predecessor failed.
	hostDropped
)

// Start implements tasks.Runner.
func (t *hostTask) Start(n *tasks.Node, w *tasks.Work) {
	if !t.state.CompareAndSwap(hostWaiting, hostStarted) {
		n.Complete(context.Canceled, w)
		return
	}
	if !t.NoWait {
		close(t.ready)
		return
	}
	go func() {
		// Without a deadline Acquire cannot fail.
		_ = t.device.slots.Acquire(context.Background(), 1)
		defer t.device.slots.Release(1)
		t.run(n)
	}()
}

// Drop implements tasks.Runner.
func (t *hostTask) Drop(*tasks.Node) {
	t.state.Store(hostDropped)
	close(t.ready)
}

func (t *hostTask) run(n *tasks.Node) {
	var err error
	if t.Body != nil {
		t.device.regions.Add(1)
		err = Protect(t.Body)
	}
	var w tasks.Work
	n.Complete(err, &w)
	w.Run()
}

// PanicError is a panic of user code that the runtime called.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic's value and where it happened.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Protect calls f and returns its error, a panic as a *PanicError.
func Protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
