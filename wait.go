package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// Taskwait waits for the children that the current task has generated so far
// (OpenMP taskwait) and returns their failures joined; of many with one label and one
// text the first, with the number of the others. With depend items it waits
// only for those that a task with these items would follow (OpenMP 5.0 taskwait
// with depend), and returns the failure of one of them; MutexInOutSet is
// ErrInvalidDepend there.
//
// When ctx ends first its cause is returned. Tasks generated with that ctx which
// have not started are dropped when their turn comes; what runs goes on, and its
// slices stay the runtime's until a later Taskwait returns.
func (rt *Runtime) Taskwait(ctx context.Context, depend ...Depend) error {
	var err error
	if t := rt.tool.Load(); t == nil {
		err = rt.taskwait(ctx, depend)
	} else {
		region := t.sync(rt.current(ctx), ompt.SyncRegionTaskwait)
		region.wait(ompt.ScopeBegin)
		err = rt.taskwait(ctx, depend)
		region.waited()
	}
	if err != nil {
		return rt.failure(ctx, err)
	}
	return nil
}

func (rt *Runtime) taskwait(ctx context.Context, depend []Depend) error {
	if len(depend) > 0 {
		passed := newClauses()
		defer passed.giveBack()
		passed.depend = appendItems(passed.depend, depend)
		return rt.join(ctx, "taskwait", passed.depend, false)
	}
	c := rt.current(ctx)
	scope := c.generated()
	if scope == nil {
		return nil
	}
	w := rt.race.waits(c, nil)
	stop := rt.reports(ctx)
	err := scope.Wait(ctx, c.place)
	reporting := stop()
	rt.race.waited(ctx, w, err)
	if reporting != nil {
		err = errors.Join(err, reporting)
	}
	return err
}

// TaskwaitNoWait generates an empty task with these depend items (OpenMP 5.1
// taskwait nowait depend): a join node that later tasks can depend on, and that
// blocks nobody. Between target tasks of one device the device keeps its order.
func (rt *Runtime) TaskwaitNoWait(ctx context.Context, depend ...Depend) error {
	passed := newClauses()
	defer passed.giveBack()
	passed.depend = appendItems(passed.depend, depend)
	if err := rt.join(ctx, "taskwait nowait", passed.depend, true); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}

// join generates an empty task.
func (rt *Runtime) join(ctx context.Context, label string, depend []tasks.Depend, noWait bool) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	rt.using.RLock()
	defer rt.using.RUnlock()
	if len(depend) == 0 {
		return fmt.Errorf("%s: %w: nowait needs depend items", label, ErrInvalidDepend)
	}
	for k := range depend {
		if depend[k].Kind == tasks.DependMutexInOutSet {
			return fmt.Errorf("%s: %w: depend item %d is mutexinoutset, which taskwait does not take", label, ErrInvalidDepend, k)
		}
	}
	c := rt.current(ctx)
	r := c.construct(label, depend, noWait)
	t := tasks.Task{Domain: tasks.AnyDomain, Runner: joiner{rt}}
	if !noWait {
		t.Domain = tasks.Host
	}
	if tool := rt.tool.Load(); tool != nil {
		flags := ompt.TaskTaskwait
		if !noWait {
			flags |= ompt.TaskUndeferred
		}
		r.Observer = tool.observer(c, 0, rt.NumDevices(), label, flags)
	}
	w := tasks.NewWork()
	n, err := r.Add(ctx, &t, w, nil)
	w.Finish()
	if err == nil && !noWait {
		if err = n.Await(ctx, c.place); err == nil {
			err = n.Outcome()
			n.ReportFailure()
			n.Release()
		}
	}
	rt.race.join(ctx, c, label, depend, noWait, err)
	return err
}

// joiner carries out the empty task of a join, where its predecessors are.
type joiner struct{ rt *Runtime }

// Start implements tasks.Runner.
func (j joiner) Start(n *tasks.Node, w *tasks.Work) {
	if d := n.Domain(); d != tasks.Host {
		if s := j.rt.devices[d-1].opened(); s != nil {
			s.Join(n, w)
			return
		}
	}
	construct.Pass(n, w)
}

// Drop implements tasks.Runner.
func (joiner) Drop(*tasks.Node) {}

// Taskgroup calls body and then waits for all tasks that were generated in it,
// and for their descendants (OpenMP taskgroup construct). It returns the error of
// body, and the first failure of a task that no wait inside has reported; a panic
// in body is a *PanicError. ErrCancelled is no error of the taskgroup that was
// cancelled, but it is one of those inside it.
//
// When ctx ends first its cause is returned, as by Taskwait. What has failed by then, or
// fails later, is returned by the wait around the taskgroup, but keeps nothing from
// running that is generated after it. Tasks that are dropped because ctx has ended are no
// failures then.
func (rt *Runtime) Taskgroup(ctx context.Context, body func(ctx context.Context) error) error {
	if err := rt.construct(ctx); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	if body == nil {
		return fmt.Errorf("vkomp: taskgroup: %w: no body", ErrInvalidArgument)
	}
	return rt.taskgroup(ctx, body)
}

// taskgroup is Taskgroup for a construct that has begun: body is called in any case.
func (rt *Runtime) taskgroup(ctx context.Context, body func(ctx context.Context) error) (err error) {
	c := rt.current(ctx)
	region := rt.tool.Load().sync(c, ompt.SyncRegionTaskgroup)
	outer := c.group()
	group := tasks.NewGroup(outer)
	bodies, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.inside = &taskgroup{group, cancel, rt.race.group(c)}
	// Deferred, because a body can leave by runtime.Goexit.
	defer func() {
		w := rt.race.waits(c, c.inside)
		region.wait(ompt.ScopeBegin)
		stop := rt.reports(ctx)
		ending := group.Wait(ctx, c.place)
		reporting := stop()
		region.waited()
		rt.race.waited(ctx, w, ending)
		if group.Cancelled() && !outer.Cancelled() && errors.Is(err, ErrCancelled) {
			err = nil
		}
		if ending != nil {
			err = errors.Join(err, rt.failure(ctx, ending))
		}
		if reporting != nil {
			err = errors.Join(err, fmt.Errorf("vkomp: %w", reporting))
		}
	}()
	return protect.Call(func() error { return body(context.WithValue(bodies, regionKey{rt}, &c)) })
}

// CancelTaskgroup cancels the innermost taskgroup (OpenMP cancel taskgroup), which
// can be that of a [Runtime.TargetData]: its tasks that have not started are
// dropped, which is no failure; the contexts of the bodies that run end with
// ErrCancelled as their cause; kernels run to their end. It returns ErrCancelled,
// for the body to return, which is no failure of its task then. Unless
// OMP_CANCELLATION is true it does nothing and returns nil. Outside of any
// taskgroup it is ErrInvalidArgument.
func (rt *Runtime) CancelTaskgroup(ctx context.Context) error {
	inside := rt.current(ctx).inside
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

// CancellationPoint returns ErrCancelled when the innermost taskgroup is
// cancelled, else nil (OpenMP cancellation point taskgroup).
func (rt *Runtime) CancellationPoint(ctx context.Context) error {
	if c := rt.current(ctx); c.group().Cancelled() {
		return ErrCancelled
	}
	return nil
}
