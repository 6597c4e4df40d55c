package vkomp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// Task describes an explicit task on the host (OpenMP task construct).
type Task struct {
	// Body runs on a goroutine of the host pool, which has OMP_NUM_THREADS places, or on the
	// caller's goroutine if the task is undeferred or included. Constructs called with its
	// ctx generate children of this task; the ctx must not be used after Body has returned.
	// Body must not call Runtime.Close, which waits for it, and should block only in waits
	// of the runtime, because only these free its place for other tasks.
	Body func(ctx context.Context) error
	// Depend orders the task among its siblings, including target tasks.
	Depend []Depend
	// If, when false, makes the task undeferred: Task returns when Body has returned (OpenMP 5.2
	// §12.5). Its dependences still hold.
	If Cond
	// Final makes all tasks generated inside final and included.
	Final bool
	// Mergeable lets the runtime run an undeferred or included task as part of the current
	// one, with a ctx of the current task. It does so for a task that has no Depend and is
	// not final inside a task that is not.
	Mergeable bool
	// Priority is a hint: of the ready tasks, those with the highest priority start first.
	// It is limited to OMP_MAX_TASK_PRIORITY, which is 0 by default; a negative one counts as 0.
	Priority int
	// Detach makes the task detachable. The event is set here before the task can start; the
	// task is complete when Body has returned and the event has been fulfilled. If Body
	// fails, or returns ErrCancelled in a cancelled taskgroup, the task does not wait for the
	// event.
	Detach *Event
	// Transparent determines whether the task's children and its siblings can depend on each
	// other (OpenMP 6.0 §17.9.5).
	Transparent Transparency
	// Replayable, when false, keeps the construct out of the record of a [Taskgraph] (OpenMP 6.0
	// replayable clause).
	Replayable Cond
	// Label names the task in errors and graphs; "task" by default.
	Label string
}

// Transparency is the value of the transparent clause, with the values of omp_impex_t
// (OpenMP 6.0 §17.9.5).
type Transparency uint8

const (
	// NotImpex means that dependences are only between siblings.
	NotImpex Transparency = 0
	// Import means that the task's children can depend, through their own depend items, on all
	// tasks on which the task can depend.
	Import Transparency = 1
	// Export means that tasks which depend on the task, directly or through other tasks, can
	// also depend on its children through their own depend items. After an undeferred task all
	// later siblings can. When all of the children are complete, one that has failed keeps no more
	// tasks from running: tasks that are generated then are run, and so are those that depend on
	// it through a task that is not complete by then.
	Export Transparency = 2
	// ImpEx is Import and Export.
	ImpEx Transparency = 3
)

// Event is the event of a detachable task (OpenMP 5.0 omp_event_handle_t). It may be copied.
type Event struct {
	event tasks.Event
}

// Fulfill lets the event's task complete once its body has ended (omp_fulfill_event). It may
// be called on any goroutine, before or after the body has run. Fulfilling an event again is
// ErrFulfilled while its task is not complete; afterwards it has no effect.
func (e Event) Fulfill() (err error) {
	if e.event == (tasks.Event{}) {
		return fmt.Errorf("vkomp: %w: the zero Event is no task's", ErrInvalidArgument)
	}
	// Deferred, because a callback of the tool may end the goroutine.
	defer func() {
		w := tasks.NewWork()
		defer w.Finish()
		if failed := e.event.Fulfill(w); failed != nil {
			err = fmt.Errorf("vkomp: %w", failed)
		}
	}()
	if o, ok := e.event.Witness().(construct.Detached); ok {
		o.Fulfilled()
	}
	return nil
}

// Task generates a task on the host (OpenMP task). For a deferred task, the Taskwait or
// Taskgroup that waits for it returns its failure: a *TaskError with the error that Body
// returned, or a *PanicError. An undeferred or included task is complete when Task returns, unless
// it is detachable and its event is not fulfilled. Task returns its failure, and tasks that are
// generated later run all the same.
//
// A task that has not started when ctx ends is dropped and counts as failed.
func (rt *Runtime) Task(ctx context.Context, t Task) error {
	if err := rt.task(ctx, &t); err != nil {
		return rt.unrecorded(ctx, t.Replayable, err)
	}
	return nil
}

func (rt *Runtime) task(ctx context.Context, t *Task) error {
	label := cmp.Or(t.Label, "task")
	if err := rt.construct(ctx); err != nil {
		return fmt.Errorf("task %q: %w", label, err)
	}
	defer rt.using.leave(rt.using.enter())
	c := rt.current(ctx)
	switch {
	case t.Body == nil:
		return fmt.Errorf("%w: task %q has no body", ErrInvalidArgument, label)
	case t.Detach != nil && t.Mergeable:
		return fmt.Errorf("%w: task %q is both detachable and mergeable", ErrInvalidArgument, label)
	case t.Detach != nil && c.final:
		return fmt.Errorf("%w: task %q is detachable and generated by a final task, where it would be included", ErrInvalidArgument, label)
	case t.Transparent > ImpEx:
		return fmt.Errorf("%w: task %q: transparent(%d) is none of NotImpex, Import, Export, ImpEx", ErrInvalidArgument, label, t.Transparent)
	}
	undeferred := t.If.isFalse() || c.final
	recording := c.records(t.Replayable)
	if recording != nil {
		if why := t.notReplayable(undeferred); why != "" {
			return recording.refuse("task", label, why)
		}
	}
	passed := newItems(t.Depend)
	defer passed.giveBack()
	e := explicitTask{
		region: host.Region{Body: t.Body}, final: c.final || t.Final,
		directive: directive{flags: t.flags(undeferred, c.final || t.Final), device: rt.NumDevices()},
	}
	if t.Detach != nil {
		e.directive.form, e.region.Event = observe.Detachable, &t.Detach.event
	}
	e.region.Transparency = tasks.Transparency(t.Transparent)
	e.region.Label, e.region.Depend, e.region.Priority = label, passed.items, rt.priority(t.Priority)
	if undeferred && t.Mergeable && len(t.Depend) == 0 && (c.final || !t.Final) && c.recording == nil {
		return rt.merge(ctx, c, &e.region.Construct, &e.directive, t.Body)
	}
	var kept *recordedTask
	if recording != nil {
		var err error
		if kept, err = recording.task(&e); err != nil {
			return err
		}
	}
	err := e.generate(ctx, &c)
	if err == nil && kept != nil {
		recording.add(ctx, kept)
	}
	return err
}

// notReplayable says why the task cannot be recorded, "" if it can.
func (t *Task) notReplayable(undeferredTask bool) string {
	switch {
	case undeferredTask:
		return undeferred
	case t.Detach != nil:
		return "it is detachable"
	case t.Transparent != NotImpex:
		return "it is transparent"
	}
	return ""
}

// explicitTask is a task construct whose clauses have been evaluated.
type explicitTask struct {
	// region has the clauses and the body.
	region    host.Region
	directive directive
	final     bool
}

// generate generates the task of the construct, which c encounters.
func (e *explicitTask) generate(ctx context.Context, c *current) error {
	r := e.region
	told := c.encounter(&r.Construct, &e.directive)
	inner := c.rt.newTaskContext(ctx, *c)
	inner.region.final = e.final
	if r.NoWait {
		inner.region.place = inner
	} else {
		inner.region.place = c.place
	}
	if r.Transparency != tasks.Transparency(NotImpex) {
		r.Inner = r.Scope.NewInner()
		inner.region.scope.Store(r.Inner)
	}
	r.Context, r.Ender, r.ID = inner, inner, &inner.region.id
	inner.region.observer = r.Observer
	return told.done(ctx, c.rt.host.Run(ctx, r))
}

// merge runs an undeferred task without depend items as part of the current task. With depend
// items it has to be a task of its own, on which others can depend.
func (rt *Runtime) merge(ctx context.Context, c current, of *construct.Construct, d *directive, body func(context.Context) error) error {
	group := c.group()
	if group.Cancelled() {
		return ErrCancelled
	}
	if events := rt.events.Load(); events != nil {
		d.flags |= ompt.TaskMerged
		events.Merged(c.describe(events, of, d))
	}
	err := protect.Call(func() error { return body(ctx) })
	if err == nil || tasks.OnlyCancelled(err) && group.Cancelled() {
		return nil
	}
	return &TaskError{Task: of.Label, Cause: err}
}

// bodyPlace returns the place of a host task whose body has no context of its own.
func (rt *Runtime) bodyPlace() tasks.Place { return rt.host.Pool() }

// flags returns the OMPT flags of the task.
func (t *Task) flags(undeferred, final bool) ompt.TaskFlag {
	f := ompt.TaskExplicit
	for _, flag := range [...]struct {
		set bool
		is  ompt.TaskFlag
	}{
		{undeferred, ompt.TaskUndeferred},
		{final, ompt.TaskFinal},
		{t.Mergeable, ompt.TaskMergeable},
		{t.Transparent&Import != 0, ompt.TaskImporting},
		{t.Transparent&Export != 0, ompt.TaskExporting},
	} {
		if flag.set {
			f |= flag.is
		}
	}
	return f
}

// priority limits a priority to max-task-priority-var.
func (rt *Runtime) priority(p int) int { return max(0, min(p, rt.icvs.maxPriority)) }

// InFinal reports whether the current task is final or included in a final one
// (omp_in_final): then the tasks that it generates are included.
func (rt *Runtime) InFinal(ctx context.Context) bool { return rt.current(ctx).final }
