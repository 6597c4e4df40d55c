package vkomp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tasks"
)

// The states of a runtime.
const (
	stateOpen int32 = iota
	// stateClosing means that Close was called. The initial task can generate no more
	// tasks; explicit tasks that are not complete still can.
	stateClosing
	// stateClosed means that all tasks are complete and no more can be generated.
	stateClosed
)

// closing is the progress of Close. The holder of turn uses the other fields.
type closing struct {
	// turn is a semaphore: the Close in progress has sent a token to it.
	turn chan struct{}
	// failed are failures of tasks that were waited for, errs the other errors. The
	// Close that completes the closing returns them.
	failed tasks.Failures
	errs   []error
	// devices is closed when the devices have been closed, and is nil before that
	// begins; devicesErr is written before.
	devices    chan struct{}
	devicesErr error
}

// Close waits for all tasks and for kernels that are being compiled, unmaps storage that is
// still mapped without copying it back, and closes every device. It returns the failures
// that no wait has reported, and ErrLeaked if storage was still mapped or memory from
// [Device.Alloc] or [AllocPinned] was not freed: how much, by label, and with
// Options.LeakSites by the line of the program that asked for it. Declared storage is not a leak, and an association only
// because of its memory.
//
// From the call on, constructs of the initial task that generate tasks return ErrClosed. Tasks
// that have been generated, and constructs in their bodies, go on until all are complete. Storage
// of a [Runtime.TargetData] of the initial task whose body has not returned counts as still mapped. A
// concurrent or later Close waits for the first one and returns nil. Close must not be called from
// the body of a task, for which it would wait.
//
// Close does not wait for foreign work that was announced to an interop object and not
// submitted: this is interop.ErrNeverSubmitted. The log says for which submitted foreign
// work Close waits. If work that is to signal a value itself (interop.Object.Next) takes
// longer than Options.ForeignTimeout, the host signals in its place: interop.ErrNeverSignalled.
// Close waits for work that was given to interop.Object.Submit, or that an object's own queue
// orders, as it does for a kernel: however long it takes.
func (rt *Runtime) Close() error { return rt.CloseContext(context.Background()) }

// CloseContext is Close, but gives up when ctx ends first, because a task can wait for ever,
// for example for an event that nobody fulfills, a kernel can compile or run for ever, and so
// can foreign work that was given to interop.Object.Submit. The error then matches the cause of
// ctx and names, by their labels, the tasks that are not complete, and what else Close waits
// for. Nothing that these use is freed or unmapped, the tasks go on, and constructs of the
// initial task still return ErrClosed. Another Close or CloseContext continues the closing, with
// the time that foreign work has taken so far, and returns everything that both have found.
//
// With the context of a task's body it returns ErrBusy.
func (rt *Runtime) CloseContext(ctx context.Context) error {
	if rt.current(ctx).taskRegion != &rt.initial {
		return fmt.Errorf("vkomp: close: %w: the task that closes the runtime is not complete", ErrBusy)
	}
	rt.state.CompareAndSwap(stateOpen, stateClosing)
	rt.initial.scope.Load().Seal(errClosed)
	c := &rt.closing
	select {
	case c.turn <- struct{}{}:
	default:
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return rt.givenUp(ctx)
		}
	}
	defer func() { <-c.turn }()
	if c.devices == nil {
		c.errs = append(c.errs, rt.withdrawForeign())
		overdue := rt.boundForeign()
		if !rt.drain(ctx) {
			c.errs = append(c.errs, overdue())
			return rt.givenUp(ctx)
		}
		rt.state.Store(stateClosed)
		rt.forgetRecords()
		t := rt.tool.Load()
		if t != nil {
			t.Implicit(ompt.ScopeEnd)
		}
		c.errs = append(c.errs, rt.closeRaces(), rt.hostMemory.close())
		c.devices = make(chan struct{})
		go func() {
			defer close(c.devices)
			c.devicesErr = errors.Join(rt.closePinned(), rt.closeDevices(), overdue())
			if t != nil {
				c.devicesErr = errors.Join(c.devicesErr, t.Failure())
			}
			rt.tool.Store(nil)
			rt.events.Store(nil)
		}()
	}
	select {
	case <-c.devices: // also if ctx has ended
	default:
		select {
		case <-c.devices:
		case <-ctx.Done():
			return rt.givenUp(ctx)
		}
	}
	err := errors.Join(append([]error{c.failed.Report()}, append(c.errs, c.devicesErr)...)...)
	c.errs, c.devicesErr = nil, nil
	return err
}

// closePinned forgets the pinned storage, and returns ErrLeaked if some was not freed. A DeclareTarget
// that is under way can keep it waiting.
func (rt *Runtime) closePinned() error {
	initial := rt.InitialDevice().d
	initial.life.Lock() // for rt.declared
	defer initial.life.Unlock()
	return rt.pinned.close(rt.declared)
}

// drain waits until all tasks are complete. It returns false if ctx ends first.
func (rt *Runtime) drain(ctx context.Context) bool {
	c := &rt.closing
	if !rt.initial.scope.Load().Drain(ctx, &c.failed) {
		return false
	}
	for {
		rt.mu.Lock()
		orphans := slices.Collect(maps.Keys(rt.orphans))
		if len(orphans) == 0 {
			c.failed.Add(&rt.unreported)
			rt.mu.Unlock()
			return true
		}
		rt.mu.Unlock()
		for _, s := range orphans {
			if !s.Drain(ctx, &c.failed) {
				return false
			}
			rt.mu.Lock()
			delete(rt.orphans, s)
			rt.mu.Unlock()
		}
	}
}

// maxOutstanding is the largest number of kinds of tasks that the error of a wait whose context has ended names.
const maxOutstanding = 8

// givenUp returns the error of a CloseContext whose context has ended.
func (rt *Runtime) givenUp(ctx context.Context) error {
	outstanding := append(rt.awaited(), outstandingTasks(&rt.graph)...)
	for _, d := range rt.devices {
		if s := d.opened(); s != nil {
			for _, label := range s.Compiling() {
				outstanding = append(outstanding, fmt.Sprintf("kernel %q (device %d compiles it)", label, d.number))
			}
		}
	}
	if len(outstanding) == 0 {
		outstanding = append(outstanding, "the devices are being given back")
	}
	return fmt.Errorf("vkomp: close: %w: not complete: %s", context.Cause(ctx), strings.Join(outstanding, "; "))
}

// withOutstanding is a graph, a scope or a group of tasks.
type withOutstanding interface {
	Outstanding(kinds int) (list []tasks.Outstanding, more int)
}

// outstandingTasks describes the tasks that are not complete.
func outstandingTasks(in withOutstanding) []string {
	var names []string
	list, more := in.Outstanding(maxOutstanding)
	for _, k := range list {
		names = append(names, outstandingKind(k))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more tasks", more))
	}
	return names
}

// outstandingKind describes tasks of one kind.
func outstandingKind(k tasks.Outstanding) string {
	what := fmt.Sprintf("task %q", k.Label)
	if k.Domain != tasks.Host {
		what = fmt.Sprintf("target task %q of device %d", k.Label, k.Domain-1)
	}
	if k.Count > 1 {
		what = fmt.Sprintf("%d of %s", k.Count, what)
	}
	switch {
	case k.State == tasks.StateWaiting:
		return what + " (waits for other tasks)"
	case k.AwaitsEvent:
		return what + " (its event has not been fulfilled)"
	case k.State == tasks.StatePlaced:
		return what + " (the device has it)"
	}
	return what + " (started)"
}

func (rt *Runtime) closeDevices() error {
	var closing errgroup.Group
	errs := make([]error, len(rt.devices))
	for i, d := range rt.devices {
		closing.Go(func() error {
			errs[i] = d.close()
			return nil
		})
	}
	_ = closing.Wait()
	if rt.instance != nil {
		errs = append(errs, rt.instance.Close())
	}
	return errors.Join(errs...)
}

var errClosed = fmt.Errorf("runtime is %w", ErrClosed)

// open returns an error if the runtime is closed.
func (rt *Runtime) open() error {
	if rt.state.Load() == stateClosed {
		return errClosed
	}
	return nil
}

// usable returns an error if the runtime is closed, or is being closed and ctx is that of the initial task.
func (rt *Runtime) usable(ctx context.Context) error {
	if state := rt.state.Load(); state != stateOpen && (state == stateClosed || rt.current(ctx).taskRegion == &rt.initial) {
		return errClosed
	}
	return nil
}

// construct returns an error if no construct is allowed: the runtime is not usable, or ctx has ended.
func (rt *Runtime) construct(ctx context.Context) error {
	if err := rt.usable(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
