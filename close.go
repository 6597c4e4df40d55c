package vkomp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tasks"
)

// The states of a runtime.
const (
	stateOpen int32 = iota
	// stateClosing: Close was called. The initial task generates nothing more; explicit
	// tasks that are not complete do.
	stateClosing
	// stateClosed: all tasks are complete, and nothing generates any.
	stateClosed
)

// closing is what Close has come to. Who holds turn uses the rest.
type closing struct {
	// turn has room for a token, which the Close under way has there.
	turn chan struct{}
	// failed are failures of tasks that were waited for, errs the other errors. The Close
	// that ends it all returns them.
	failed tasks.Failures
	errs   []error
	// devices is closed when the devices have been given back, nil before that begins;
	// devicesErr is written before.
	devices    chan struct{}
	devicesErr error
}

// Close waits for all tasks, and for kernels that are being compiled, unmaps what is left
// without copying it back, and gives every device back. It returns the failures that no
// wait has reported, and ErrLeaked if storage was still mapped or memory from
// [Device.Alloc] not freed: how much, by label, and with Options.LeakSites by the line of
// the program that asked for it. Storage that is declared is no leak, an association only
// by the memory that it keeps.
//
// From the call on, constructs of the initial task are ErrClosed. Tasks that have been
// generated go on as before, and so do the constructs of their bodies, until all are
// complete. A Close beside another one waits for it; that and a later one return nil.
// Close must not be called from the body of a task, for which it waits.
//
// Foreign work that was announced to an interop object and not submitted is not
// waited for: interop.ErrNeverSubmitted. The log says which work that was submitted
// Close waits for; when it does not signal within Options.ForeignTimeout, the host
// does in its place: interop.ErrNeverSignalled.
func (rt *Runtime) Close() error { return rt.CloseContext(context.Background()) }

// CloseContext is Close, but gives up when ctx ends first: a task can wait for ever, for
// an event that nobody fulfills, say, and a kernel can take for ever to compile or to run.
// The error then matches ctx's cause, and names the tasks that are not complete by their
// labels, and what else is waited for. Nothing that these use is given back or unmapped,
// tasks go on, and constructs of the initial task stay ErrClosed; another Close or
// CloseContext goes on with what this one began, and returns all that both have found.
//
// With the context of a task's body it is ErrBusy.
func (rt *Runtime) CloseContext(ctx context.Context) error {
	if rt.current(ctx).taskRegion != &rt.initial {
		return fmt.Errorf("vkomp: close: %w: the task that closes the runtime is not complete", ErrBusy)
	}
	rt.state.CompareAndSwap(stateOpen, stateClosing)
	rt.initial.scope.Seal(errClosed)
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
		rt.tool.Load().implicitTask(ompt.ScopeEnd)
		c.errs = append(c.errs, rt.race.close(), rt.hostMemory.close())
		c.devices = make(chan struct{})
		go func() {
			defer close(c.devices)
			c.devicesErr = errors.Join(rt.closeDevices(), overdue(), rt.tool.Load().failure())
			rt.tool.Store(nil)
		}()
	}
	select {
	case <-c.devices:
	case <-ctx.Done():
		return rt.givenUp(ctx)
	}
	err := errors.Join(append([]error{c.failed.Report()}, append(c.errs, c.devicesErr)...)...)
	c.errs, c.devicesErr = nil, nil
	return err
}

// drain waits until all tasks are complete, and reports whether they are: else ctx has
// ended.
func (rt *Runtime) drain(ctx context.Context) bool {
	c := &rt.closing
	if !rt.initial.scope.Drain(ctx, &c.failed) {
		return false
	}
	for {
		rt.mu.Lock()
		orphans := rt.orphans
		rt.orphans = nil
		if len(orphans) == 0 {
			c.failed.Join(&rt.unreported)
			rt.mu.Unlock()
			return true
		}
		rt.mu.Unlock()
		for i, s := range orphans {
			if !s.Drain(ctx, &c.failed) {
				rt.mu.Lock()
				rt.orphans = append(rt.orphans, orphans[i:]...)
				rt.mu.Unlock()
				return false
			}
		}
	}
}

// maxOutstanding bounds the kinds of tasks that the error of CloseContext names.
const maxOutstanding = 8

// givenUp is the error of a CloseContext whose context has ended.
func (rt *Runtime) givenUp(ctx context.Context) error {
	outstanding := rt.awaited()
	kinds, more := rt.graph.Outstanding(maxOutstanding)
	for _, k := range kinds {
		outstanding = append(outstanding, outstandingTasks(k))
	}
	if more > 0 {
		outstanding = append(outstanding, fmt.Sprintf("%d more tasks", more))
	}
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

// outstandingTasks describes tasks that are not complete.
func outstandingTasks(k tasks.Outstanding) string {
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

// open refuses the use of a closed runtime.
func (rt *Runtime) open() error {
	if rt.state.Load() == stateClosed {
		return errClosed
	}
	return nil
}

// construct refuses a construct on a closed runtime, one of the initial task on a runtime
// that is being closed, and one whose context has ended.
func (rt *Runtime) construct(ctx context.Context) error {
	if state := rt.state.Load(); state != stateOpen && (state == stateClosed || rt.current(ctx).taskRegion == &rt.initial) {
		return errClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
