package vkomp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// Taskwait waits for the children that the current task has generated so far (OpenMP
// taskwait) and returns their failures, joined; of several with the same label and text it
// returns the first with the number of the others. With depend items it waits only for the
// children on which a task with these items would depend (OpenMP 5.0 taskwait with depend),
// and returns the failure of one of them, which counts as reported with the tasks that were
// not run because of it: it is the Cause of a Dependent *TaskError of the wait itself.
// MutexInOutSet is then ErrInvalidDepend.
//
// A Taskwait outside of a [Runtime.Taskgroup] returns failures of the group's tasks, too. The
// group returns them all the same, and until then what depends on these tasks is not run.
//
// If ctx ends first, its cause is returned; without depend items the error also names tasks that
// are not complete. Tasks that were generated with that ctx and have not started are dropped;
// running tasks go on, and their slices belong to the runtime until a later Taskwait has returned.
//
// The body of a task waits with the context that it has got: with another one Taskwait would wait
// for the body's own task.
func (rt *Runtime) Taskwait(ctx context.Context, depend ...Depend) error {
	err, reporting := rt.taskwait(ctx, depend)
	if err != nil && len(depend) == 0 {
		if scope := rt.current(ctx).scope.Load(); scope != nil {
			err = waitEnded(ctx, err, scope)
		}
	}
	if reporting != nil {
		err = errors.Join(err, reporting)
	}
	if err != nil {
		return rt.failure(ctx, err)
	}
	return nil
}

// waitEnded returns the error of a wait for tasks that has returned err. If that is because ctx has ended, the error names
// tasks that are not complete.
func waitEnded(ctx context.Context, err error, in withOutstanding) error {
	if ctx.Err() == nil || ofTask(err) || tasks.OnlyCancelled(err) || errors.Is(err, ErrNotReplayable) {
		return err
	}
	if names := outstandingTasks(in); len(names) > 0 {
		return fmt.Errorf("%w: not complete: %s", err, strings.Join(names, "; "))
	}
	return err
}

// taskwait returns the outcome of the wait, of which listeners hear, and what reporting its progress failed with.
func (rt *Runtime) taskwait(ctx context.Context, depend []Depend) (err, reporting error) {
	c := rt.current(ctx)
	region := c.waiting(ompt.SyncRegionTaskwait, len(depend) > 0)
	return region.While(ctx, func() (err, reporting error) { return c.taskwait(ctx, depend) })
}

// taskwait is the wait itself.
func (c *current) taskwait(ctx context.Context, depend []Depend) (err, reporting error) {
	rt := c.rt
	if recording := c.records(condAbsent); recording != nil {
		return recording.refuse("taskwait", "", waits), nil
	}
	if len(depend) > 0 {
		passed := newItems(depend)
		defer passed.giveBack()
		return rt.reportWhile(ctx, func() error { return rt.join(ctx, "taskwait", passed.items, false) })
	}
	scope := c.scope.Load()
	if scope == nil {
		return nil, nil
	}
	return rt.reportWhile(ctx, func() error { return scope.WaitIn(ctx, c.place, c.group()) })
}

// TaskwaitNoWait generates an empty task with these depend items (OpenMP 5.1 taskwait nowait
// depend), on which later tasks can depend. It does not block, except in a final task, whose tasks
// are all included. The order of target tasks of one device is kept by the device. A call without
// items, or with MutexInOutSet, is ErrInvalidDepend.
func (rt *Runtime) TaskwaitNoWait(ctx context.Context, depend ...Depend) error {
	passed := newItems(depend)
	defer passed.giveBack()
	if err := rt.join(ctx, "taskwait nowait", passed.items, true); err != nil {
		return rt.unrecorded(ctx, condAbsent, err)
	}
	return nil
}

// join generates a join: an empty task, on which others can depend.
func (rt *Runtime) join(ctx context.Context, label string, depend []tasks.Depend, noWait bool) error {
	if err := rt.construct(ctx); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	defer rt.using.leave(rt.using.enter())
	if len(depend) == 0 {
		return fmt.Errorf("%s: %w: nowait needs depend items", label, ErrInvalidDepend)
	}
	for k := range depend {
		if depend[k].Kind == tasks.DependMutexInOutSet {
			return fmt.Errorf("%s: %w: depend item %d is mutexinoutset, which taskwait does not take", label, ErrInvalidDepend, k)
		}
	}
	c := rt.current(ctx)
	var kept *recordedJoin
	recording := c.records(condAbsent)
	if recording != nil {
		var err error
		if kept, err = recording.join(label, depend); err != nil {
			return err
		}
	}
	err := c.join(ctx, label, depend, noWait, observe.Site{})
	if err == nil && kept != nil {
		recording.add(ctx, kept)
	}
	return err
}

// join generates a join that c encounters at a place in the program.
func (c *current) join(ctx context.Context, label string, depend []tasks.Depend, noWait bool, at observe.Site) error {
	d := directive{flags: ompt.TaskTaskwait, device: c.rt.NumDevices(), at: at}
	t := tasks.Task{Domain: tasks.AnyDomain, Runner: joiner{c.rt}}
	noWait = noWait && !c.final
	if !noWait {
		t.Domain = tasks.Host
		d.flags |= ompt.TaskUndeferred
	}
	var r construct.Construct
	r.Label, r.Depend = label, depend
	told := c.encounter(&r, &d)
	w := tasks.NewWork()
	n, err := r.Add(ctx, &t, w, nil)
	w.Finish()
	if err == nil && !noWait {
		// The task is none of the program's, so the error of a wait that is given up does not name it.
		if err = n.Wait(ctx, c.place); err != nil {
			n.Abandon()
		} else {
			err = n.Outcome()
			err = n.ReportFailure(err)
			n.Release()
		}
	}
	return told.done(ctx, err)
}

// joiner runs the empty task of a join on the device of its predecessors.
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

// Recycle implements tasks.Runner.
func (joiner) Recycle() {}

// submitGathered has the devices begin what they have kept for more work to come, because a goroutine
// is about to wait for tasks.
func (rt *Runtime) submitGathered() {
	for _, d := range rt.devices {
		if s := d.opened(); s != nil {
			s.SubmitGathered()
		}
	}
}

// Taskyield lets a ready task run in place of the current one (OpenMP taskyield). It is a
// hint; outside of a task's body it yields the processor.
func (rt *Runtime) Taskyield(ctx context.Context) {
	if place, ok := rt.current(ctx).place.(*taskContext); !ok || !place.yield() {
		runtime.Gosched()
	}
}

// Taskgroup calls body and then waits for all tasks that were generated in it, and for their
// descendants (OpenMP taskgroup construct). It returns the error of body and the first failure
// of a task that no wait inside has reported, and counts the others as reported. A panic in body is
// a *PanicError. ErrCancelled is not an error of the taskgroup that was cancelled, but of those inside
// it. The context that body gets ends with the taskgroup.
//
// If ctx ends first, its cause is returned, as by Taskwait. Failures of the group's tasks, by
// then or later, are returned by the enclosing wait, but do not prevent tasks that are
// generated after the group from running. Tasks that are dropped because ctx has ended do not
// count as failed then.
func (rt *Runtime) Taskgroup(ctx context.Context, body func(ctx context.Context) error) error {
	err := rt.construct(ctx)
	if err == nil && body == nil {
		err = fmt.Errorf("%w: no body", ErrInvalidArgument)
	}
	if c := rt.current(ctx); err == nil && c.records(condAbsent) != nil {
		err = c.recording.refuse("", "", waits)
	}
	if err != nil {
		return rt.unrecorded(ctx, condAbsent, fmt.Errorf("taskgroup: %w", err))
	}
	return rt.taskgroup(ctx, body)
}

// errGroupOver is the cause of a context that the body of a taskgroup has got, after the taskgroup.
var errGroupOver = fmt.Errorf("the taskgroup of the context is over: %w", context.Canceled)

// taskgroup is Taskgroup for a construct that has begun: body is always called.
func (rt *Runtime) taskgroup(ctx context.Context, body func(ctx context.Context) error) (err error) {
	c := rt.current(ctx)
	region := c.waiting(ompt.SyncRegionTaskgroup, false)
	outer := c.group()
	group := tasks.NewGroup(outer)
	bodies, cancel := context.WithCancelCause(ctx)
	defer cancel(errGroupOver)
	c.inside = &taskgroup{group, cancel, region.Group()}
	// The body may call runtime.Goexit, and so may a tool's callback. Then nobody gets what this call returns.
	wait := func() error {
		group.Leave(ctx, c.place)
		return nil
	}
	defer func() {
		waited := false
		defer func() {
			if !waited {
				group.Leave(ctx, c.place)
			}
		}()
		ending, reporting := region.While(ctx, func() (err, reporting error) {
			err, reporting = rt.reportWhile(ctx, wait)
			waited = true
			return err, reporting
		})
		if group.Cancelled() && !outer.Cancelled() && tasks.OnlyCancelled(err) {
			err = nil
		}
		if ending != nil {
			err = errors.Join(err, rt.failure(ctx, waitEnded(ctx, ending, group)))
		}
		if reporting != nil {
			err = errors.Join(err, fmt.Errorf("vkomp: %w", reporting))
		}
	}()
	err = protect.Call(func() error { return body(context.WithValue(bodies, regionKey{rt}, &c)) })
	wait = func() error { return group.Wait(ctx, c.place) }
	return err
}
