package vkomp

import (
	"context"
	"fmt"
)

// CancelTaskgroup cancels the innermost taskgroup (OpenMP cancel taskgroup), which can be
// that of a [Runtime.TargetData]. Its tasks that have not started are dropped, which is not a
// failure; the contexts of running bodies end with ErrCancelled as their cause; running
// kernels complete. It returns ErrCancelled, which the body should return and which is not a
// failure of its task then; another error that is joined with it is, and so is what Err of an ended
// context returns: a body that ends for that reason returns [context.Cause]. Unless OMP_CANCELLATION
// is true CancelTaskgroup does nothing and returns nil. Outside of any taskgroup it is
// ErrInvalidArgument.
func (rt *Runtime) CancelTaskgroup(ctx context.Context) error {
	c := rt.current(ctx)
	inside := c.inside
	if inside == nil {
		return fmt.Errorf("vkomp: cancel taskgroup: %w: the context is of no taskgroup", ErrInvalidArgument)
	}
	if !rt.icvs.cancellation {
		return nil
	}
	inside.group.Cancel()
	inside.cancel(ErrCancelled)
	return ErrCancelled
}

// CancellationPoint returns ErrCancelled if the innermost taskgroup is cancelled, else nil
// (OpenMP cancellation point taskgroup).
func (rt *Runtime) CancellationPoint(ctx context.Context) error {
	if c := rt.current(ctx); c.group().Cancelled() {
		return ErrCancelled
	}
	return nil
}
