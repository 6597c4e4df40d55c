package sched

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Region is a construct whose target task maps storage, runs a kernel or makes transfers, and
// unmaps the storage.
type Region struct {
	// Construct is what all constructs have in common. If Priority is above 0, the task's
	// commands are submitted at once.
	construct.Construct
	// Enter are the maps at the beginning of the region, Exit those at its end. A region has one
	// of the two lists.
	Enter, Exit []memory.Map
	// Structured says that the end of the region unmaps what Enter maps, as that of a target
	// construct does.
	Structured bool
	// Absent says that the construct is an error if some of the storage that Enter maps is present, and that
	// no exit removes it, even before [Scheduler.Declare] gives it an infinite reference count. A construct
	// with Absent and Exit removes it instead.
	Absent bool
	// Missed says that Hit was called for the construct and has reported false.
	Missed bool
	// Transfers are made between Enter and Exit, by a construct without a kernel.
	Transfers []transfer.Request
	// Kernel is nil for a construct that only moves data. Binding k of the kernel is Buffers[k], or
	// Enter[k] if Buffers is nil. Values fill the push constants in order.
	Kernel  *kernel.Kernel
	Buffers []Buffer
	// Addresses are the values that become device addresses.
	Addresses []Address
	// Pointers point to storage that the kernel accesses by address only.
	Pointers []Pointer
	// Images are the items whose device storage is a converted image of the host's, in the order of the items.
	Images []transfer.Image
	// Found has an element for each item of Enter, or is nil. The task sets those whose storage is
	// on the device.
	Found []bool
	// Range is the number of invocations in each dimension.
	Range [3]uint64
	// Values are only read until Run returns.
	Values [][]byte
	// Site is the place of the construct in the program, for the report of leaks. If it is nil, it
	// is where Run is called, provided that Options.LeakSites asks for it.
	Site *memory.Site
}

// Run generates the region's target task. An included task is complete when Run returns, and Run
// returns its failure, unless ctx ends first: then Run returns the cause, and the task goes on like
// a deferred one. For a deferred task Run returns the errors of the construct itself; the scope
// reports a failure of the task. Run keeps neither the region nor its slices.
func (s *Scheduler) Run(ctx context.Context, r *Region) error {
	if r.mayNeedNoTask() && (s.hit(r) || s.now(r)) {
		return nil
	}
	pipelines, err := s.use(r.Kernel)
	if err != nil {
		return r.refused(err)
	}
	if s.mayReside(r, pipelines) {
		if ran, err := s.runResident(ctx, r, pipelines); ran {
			return err
		}
	}
	t := s.newTarget(r)
	if s.leakSites && t.Site == nil && len(t.Enter) > 0 {
		t.Site = memory.CallSite()
	}
	t.dispatch.kernel = pipelines
	err = s.resolve(t, r)
	if err == nil {
		err = s.prepare(ctx, t)
	}
	t.Values = nil
	if err != nil {
		discard(t)
		return r.refused(err)
	}
	if r.Observer != nil {
		t.observe(r.Observer)
	}
	w := tasks.NewWork()
	t.awaited = s.newAwaited(r, w)
	return s.add(ctx, r, t, t.awaited, w)
}

// refused returns the error for a region whose task is not generated. The label of one without a kernel is the name of its
// directive or routine, or a label of the program.
func (r *Region) refused(err error) error {
	if r.Kernel == nil {
		return fmt.Errorf("%s: %w", r.Label, err)
	}
	return fmt.Errorf("target %q: %w", r.Label, err)
}

// add adds the region's task, whose runner is by, to the graph, and runs w. For an included task it waits,
// with a.
func (s *Scheduler) add(ctx context.Context, r *Region, by runner, a *awaited, w *tasks.Work) error {
	task := tasks.Task{Domain: s.domain, Runner: by}
	node, err := r.Add(ctx, &task, w, nil)
	if err != nil {
		discard(by)
	}
	if err != nil || r.NoWait {
		w.Finish()
		return err
	}
	if err := s.await(ctx, a, node, r.Place, w); err != nil {
		return err // the task goes on, with a
	}
	err = node.Outcome()
	node.Release()
	s.awaits.Put(a)
	return err
}

// runner runs the task of a region.
type runner interface {
	tasks.Runner
	// unpin gives up the allocations that are kept for a task which will not run.
	unpin()
}

// discard recycles the runner of a task that is not generated.
func discard(by runner) {
	by.unpin()
	by.Recycle()
}

// prepare plans the task's dispatch and gives it its pipeline and push constants, or returns an error if the device cannot run
// the region, whatever the state of its memory is.
func (s *Scheduler) prepare(ctx context.Context, t *target) error {
	if t.Kernel == nil {
		return nil
	}
	p := s.props
	var few [16]uint64 // most kernels have no more arguments
	sizes := few[:0]
	for k := range t.buffers() {
		sizes = append(sizes, t.bufferSize(k, p))
	}
	var runs bool
	var err error
	if t.dispatch.plan, runs, err = planLaunch(t.Kernel, &t.Range, p, sizes, t.Values, t.dispatch.plan.Calls); err != nil {
		return err
	}
	s.share(t)
	if !runs {
		// The task runs nothing, but keeps its maps and dependences.
		t.Kernel = nil
		return nil
	}
	if err = s.pipeline(ctx, t); err != nil {
		return err
	}
	t.dispatch.push = t.Kernel.Push(t.dispatch.push, t.Values)
	return nil
}

// planLaunch returns the dispatches of a launch, for which it uses the memory of calls, or an error if
// the launch does not fit the kernel or the device. buffers are the sizes of the buffer arguments in bytes,
// and values the value arguments. runs is false if the launch runs nothing.
func planLaunch(k *kernel.Kernel, extent *[3]uint64, p *vk.Properties, buffers []uint64, values [][]byte, calls []kernel.Call) (plan kernel.Plan, runs bool, err error) {
	plan.Calls = calls[:0]
	if err := k.Fits(p, buffers, values); err != nil {
		return plan, false, err
	}
	var g [3]uint64
	if k.Groups(extent, &g); g[0] == 0 {
		return plan, false, nil
	}
	if err := k.Bindable(buffers); err != nil {
		return plan, false, err
	}
	plan, err = k.PlanDispatch(&g, p, calls)
	return plan, err == nil, err
}
