package vkomp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vkomp/vkomp/sched/protect"
)

// Taskgraph describes a taskgraph region (OpenMP 6.0 taskgraph construct): the tasks that its
// block generates are recorded once, and generated again from the record afterwards.
type Taskgraph struct {
	// Records keeps the records of the construct, and says which construct it is: every call that
	// stands for the construct has the same Records, and no other construct has.
	Records *TaskgraphRecords
	// ID tells apart records of the construct (OpenMP graph_id clause): an encounter replays a
	// record with the same ID.
	ID int
	// Reset discards the record, if there is one, and executes the block (OpenMP graph_reset
	// clause).
	Reset bool
	// If, when false, makes the encounter neither make a record nor replay one: it executes the block. Inside the
	// block of another taskgraph its constructs belong to the record of that one.
	If Cond
	// NoGroup lets Taskgraph return before its tasks are complete (OpenMP nogroup clause).
	// Otherwise the region is a taskgroup.
	NoGroup bool
	// Params are the parameters of the taskgraph with their values at this encounter.
	Params []Param
	// Label names the construct in errors; "taskgraph" by default.
	Label string
}

// Taskgraph calls block, and records the constructs that are called with the context that block
// gets: [Runtime.Target], the directives for data, [Runtime.Task], [Runtime.MemcpyAsync],
// [Runtime.MemcpyRectAsync], [Device.MemsetAsync] and [Runtime.TaskwaitNoWait]. Constructs that are
// called with another context, or of another runtime, are executed and not recorded; a block without
// any other leaves no record. A later encounter that finds the record generates their tasks again, in the order of the record, and does not call
// block (OpenMP 6.0 taskgraph construct). It finds the record of a complete earlier encounter with
// the same Records and ID, of the same runtime, whose Params are the same parameters with slices of
// the same lengths, and so are those of the taskgraphs around that the record uses. If only the
// parameters differ, or with Reset, the block is executed and recorded in place of that record.
//
// A record has the clauses as they were evaluated when it was made: devices, slices, values of
// arguments, depend items (those of a [Depobj] too), priorities, and the bodies of tasks with
// the variables that they have captured. Only parameters are looked up at each replay: see
// [ParamSlice] and [ParamVar]. What mapped slices contain is read when the tasks run, as always.
// All other code of the block runs only when the block is executed.
//
// The tasks of a replay are children of the task that encounters the construct, and depend on
// each other and on earlier siblings as the recorded constructs would. Successive Target constructs
// that only run kernels, on storage that stays present or on device memory, may have one task
// together, where all earlier tasks of the region are complete or on the device. If slices or
// pointers are parameters, they have if these were bound to the same ones a few replays ago.
// Failures of a replay's tasks are reported as those
// of the recorded constructs, and so is what has become invalid since: a closed kernel (ErrClosed), freed
// memory (ErrInvalidPointer), a lost device (ErrDeviceLost). An error in a construct ends the replay; the
// record stays. After a hard pause the device is opened again, and
// its storage is absent unless the record maps it. Replays of one record by several goroutines
// generate their tasks one after the other.
//
// Recorded are deferred constructs only. While it is recorded, an undeferred, detachable or
// transparent one returns [ErrNotReplayable], is not executed, and makes the block leave no record;
// so does a construct that waits, such as [Runtime.Taskwait], [Runtime.Taskgroup] and
// [Runtime.TargetData], and [Runtime.Interop]. A construct whose Replayable clause is false is
// executed but not recorded. A Taskgraph inside the block needs NoGroup and no Params; its
// constructs belong to the outer record, and records of its own are neither made nor discarded.
//
// A block that returns an error or panics leaves no record, nor does one of which a construct returns an
// error, or whose context, or that of one of its constructs, has ended when it returns, as when its taskgroup is
// cancelled. Replays have the context of their encounter: values, deadlines and cancellation of contexts that the
// block derives from its own have an effect only when the block is executed. The block's error is returned, as by
// [Runtime.Taskgroup]. Blocks are executed without being recorded if the encountering task is final, and while
// another goroutine records the same construct: nobody waits for that, and a block may encounter its own
// construct again.
func (rt *Runtime) Taskgraph(ctx context.Context, g Taskgraph, block func(ctx context.Context) error) error {
	fail := func(err error) error {
		return rt.unrecorded(ctx, condAbsent, fmt.Errorf("taskgraph %q: %w", cmp.Or(g.Label, "taskgraph"), err))
	}
	if err := rt.construct(ctx); err != nil {
		return fail(err)
	}
	if err := g.check(block != nil); err != nil {
		return fail(err)
	}
	c := rt.current(ctx)
	if outer := c.records(condAbsent); outer != nil {
		switch {
		case !g.NoGroup:
			return fail(outer.refuse("", "", waits))
		case len(g.Params) > 0:
			return fail(outer.refuse("", "", "it has parameters, inside another taskgraph"))
		}
		complete := false
		// Deferred, because the block may call runtime.Goexit.
		defer func() {
			if !complete {
				outer.spoil() // what the block had still to generate is not in the record
			}
		}()
		err := protect.Call(func() error { return block(ctx) })
		complete = err == nil
		return err
	}
	ctx, bound := bind(ctx, g.Params)
	do := block
	if g.If.isFalse() || c.final {
		if g.Reset {
			g.Records.discard(rt, g.ID)
		}
	} else {
		do = func(ctx context.Context) error {
			r, replay := g.Records.encounter(rt, &g, bound)
			switch {
			case replay:
				return r.replay(ctx, bound)
			case r != nil:
				return r.record(ctx, block)
			}
			return block(ctx)
		}
	}
	if g.NoGroup {
		return protect.Call(func() error { return do(ctx) })
	}
	return rt.taskgroup(ctx, do)
}

// check returns an error for a construct that is invalid by itself.
func (g *Taskgraph) check(hasBlock bool) error {
	switch {
	case !hasBlock:
		return fmt.Errorf("%w: no block", ErrInvalidArgument)
	case g.Records == nil:
		return fmt.Errorf("%w: no Records", ErrInvalidArgument)
	}
	for i := range g.Params {
		if g.Params[i].of == nil {
			return fmt.Errorf("%w: parameter %d is the zero Param: make it with Bind", ErrInvalidArgument, i)
		}
		for k := range i {
			if g.Params[k].of == g.Params[i].of {
				return fmt.Errorf("%w: parameters %d and %d are the same one, bound twice", ErrInvalidArgument, k, i)
			}
		}
	}
	return nil
}
