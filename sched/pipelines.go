package sched

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/pipeline"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// kernels are those that tasks have used, with their pipelines.
type kernels struct {
	pipeline.Cache
	// awaited has the deferred tasks that need a compilation to end before they can start.
	awaited map[*pipeline.Compilation]*parkedTasks
}

// use returns what useLocked does, nil for no kernel. The error may also say that the device takes no task.
func (s *Scheduler) use(k *kernel.Kernel) (own *pipeline.Kernel, err error) {
	if !s.refuses.Load() {
		if k == nil {
			return nil, nil
		}
		if !k.Closed() {
			own = s.kernels.Use(k)
		}
	}
	if own != nil {
		return own, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil || k == nil {
		return nil, err
	}
	return s.useLocked(k)
}

// useLocked returns the kernel on this device. Its pipelines are kept until the result is released.
func (s *Scheduler) useLocked(k *kernel.Kernel) (*pipeline.Kernel, error) {
	if k.Closed() {
		return nil, fmt.Errorf("kernel %q is %w", k.Name(), ErrClosed)
	}
	return s.kernels.UseLocked(k), nil
}

// Release gives up a kernel that was closed: its pipelines are destroyed when the tasks that use it
// are complete. It does not wait for them.
func (s *Scheduler) Release(k *kernel.Kernel) { s.kernels.Release(k) }

// Compiling returns the labels of the kernels that are being compiled, in order.
func (s *Scheduler) Compiling() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compilingLocked(false)
}

// compilingLocked returns the labels of the kernels that are being compiled, in order: of all, or
// of those only that a launch has needed.
func (s *Scheduler) compilingLocked(needed bool) (labels []string) {
	for _, c := range s.kernels.CompilingLocked() {
		if !needed || c.NeededLocked() {
			labels = append(labels, c.Name())
		}
	}
	return slices.Compact(labels)
}

// CompileAhead begins to compile a kernel in the background, so that its first launch need not wait
// for all of it. Whatever prevents that is an error of the first launch, and not of this call.
func (s *Scheduler) CompileAhead(k *kernel.Kernel) {
	if k.Supported(s.props) != nil {
		return
	}
	options, err := k.PipelineOptions(0, s.props)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusalLocked() == nil && !k.Closed() {
		s.kernels.AheadLocked(k, options)
	}
}

// StopCompiling ends what CompileAhead has begun: it waits until the compilations that no launch has
// needed are over. If ctx ends first, the error is an ErrBusy with the cause of ctx. Those that have
// not begun stay queued until ResumeCompiling, after an error as well, or the end of the scheduler.
func (s *Scheduler) StopCompiling(ctx context.Context) error {
	s.mu.Lock()
	s.kernels.HoldAheadLocked()
	underWay := s.kernels.CompilingLocked()
	underWay = slices.DeleteFunc(underWay, (*pipeline.Compilation).NeededLocked)
	s.mu.Unlock()
	for _, c := range underWay {
		select {
		case <-c.Done():
		case <-ctx.Done():
			return fmt.Errorf("%w: kernel %q is still being compiled: %w", ErrBusy, c.Name(), context.Cause(ctx))
		}
	}
	return nil
}

// ResumeCompiling undoes StopCompiling.
func (s *Scheduler) ResumeCompiling() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kernels.ResumeAheadLocked()
}

// pipeline gives the task the pipeline of its kernel. While that is being compiled, an included
// construct waits until ctx ends; a deferred one does not wait, but its task does (see
// compiledLocked).
func (s *Scheduler) pipeline(ctx context.Context, t *target) error {
	k, fold := t.dispatch.kernel, t.dispatch.plan.Fold
	if p := k.Ready(fold); p != nil {
		t.dispatch.pipeline = *p
		return nil
	}
	c, err := s.compile(k, fold)
	if err != nil {
		return err
	}
	if t.NoWait {
		t.dispatch.compilation = c
		return nil
	}
	if err := s.awaitCompilation(ctx, c, t.Place); err != nil {
		return fmt.Errorf("kernel %q is still being compiled: %w", t.Kernel.Name(), err)
	}
	t.dispatch.pipeline, err = c.Result()
	return err
}

// compile returns the compilation of a pipeline, and begins it if there is none. The error says
// what is wrong with the kernel without asking the driver, or that the device takes no task.
func (s *Scheduler) compile(k *pipeline.Kernel, fold int) (*pipeline.Compilation, error) {
	if err := k.Supported(s.props); err != nil {
		return nil, err
	}
	options, err := k.PipelineOptions(fold, s.props)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return nil, err
	}
	return k.CompileLocked(fold, options), nil
}

// mergeLocked is called when a dispatch of a kernel has been added to a stream, whose commands are
// executed so many times. If one dispatch could do it together with an earlier one, the pipeline for that
// is compiled, unless it is there: later dispatches are then merged when they are encoded.
func (s *Scheduler) mergeLocked(stream *vk.Stream, k *pipeline.Kernel, times int) {
	repeat := stream.Repeats()
	if repeat == vk.NoRepeat || s.general {
		return
	}
	switch repeat {
	case vk.RepeatSharedBindings:
		s.compileMergingLocked(kernel.MergingShared, k, times)
		return
	case vk.RepeatSpacedBindings:
		s.compileMergingLocked(kernel.MergingSpaced, k, times)
		// Others are perhaps not spaced, such as those at the ends of an array.
	}
	if s.mergesOwn {
		s.compileMergingLocked(kernel.MergingOwn, k, times)
	}
}

// compileMergingLocked has one of the pipelines compiled that merge, unless it is there.
func (s *Scheduler) compileMergingLocked(merging int, k *pipeline.Kernel, times int) {
	if k.Ready(merging) == nil && s.refusalLocked() == nil {
		k.MergeLocked(merging, s.props, times)
	}
}

// newCopier returns the kernel for copies within the device, nil where none copies. Nobody waits until
// it is compiled: commands copy meanwhile. CompileOwn begins that, or a copy that finds it neither
// compiled nor refused.
func (s *Scheduler) newCopier() *transfer.Copier {
	if s.memory.Profile().KernelCopies == 0 {
		return nil
	}
	k, err := transfer.CopyKernel()
	if err != nil || k.Supported(s.props) != nil {
		return nil
	}
	options, err := k.PipelineOptions(0, s.props)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.kernels.UseLocked(k) // until the device is closed
	return transfer.NewCopier(s.props, func() *vk.Pipeline {
		p := own.Ready(0)
		if p == nil && s.refusalLocked() == nil {
			s.kernels.AheadLocked(k, options)
		}
		return p
	})
}

// CompileOwn is CompileAhead for the kernel with which the scheduler itself copies within the device.
func (s *Scheduler) CompileOwn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.transfers.Copier; c != nil {
		c.Pipeline()
	}
}

// awaitCompilation waits for the end of a compilation. If the context ends or the device is lost
// first, the error is the cause of the one or the other.
func (s *Scheduler) awaitCompilation(ctx context.Context, c *pipeline.Compilation, place tasks.Place) error {
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-c.Done():
	case <-s.loss.told:
	case <-ctx.Done():
	}
	select {
	case <-c.Done():
		return nil
	default:
	}
	if err := s.Lost(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// compiledLocked reports whether the task has its pipeline. If the compilation has failed that it
// was to have it from, that is the error. If the compilation is still under way, the task is
// started again at its end.
func (t *target) compiledLocked(n *tasks.Node) (bool, error) {
	c := t.dispatch.compilation
	switch {
	case c == nil:
		return true, nil
	case !c.OverLocked():
		t.to(taskCompiling)
		t.s.kernels.parkLocked(c, n)
		return false, nil
	}
	var err error
	t.dispatch.compilation = nil
	t.dispatch.pipeline, err = c.Result()
	return err == nil, err
}

// parkLocked lets a task wait for the end of a compilation.
func (k *kernels) parkLocked(c *pipeline.Compilation, n *tasks.Node) {
	if k.awaited == nil {
		k.awaited = make(map[*pipeline.Compilation]*parkedTasks)
	}
	parked := k.awaited[c]
	if parked == nil {
		parked = new(parkedTasks)
		k.awaited[c] = parked
	}
	*parked = append(*parked, n)
}

// compiled starts the tasks again that wait for a compilation, which has ended.
func (s *Scheduler) compiled(c *pipeline.Compilation) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if parked := s.kernels.awaited[c]; parked != nil {
		parked.restart(w)
		delete(s.kernels.awaited, c)
	}
	// Close and Discard wait for the last compilation.
	s.life.wake.Broadcast()
}

// restartCompilingLocked starts all tasks again that wait for compilations. The device is lost, so
// they fail now, however long the driver still compiles.
func (s *Scheduler) restartCompilingLocked(w *tasks.Work) {
	for c, parked := range s.kernels.awaited {
		parked.restart(w)
		delete(s.kernels.awaited, c)
	}
}
