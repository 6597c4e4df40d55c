package sched

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// kernels are those of which the device has pipelines.
type kernels struct {
	// known are those that tasks have used and that are not closed, released those that
	// are closed and have pipelines still.
	known    map[*kernel.Kernel]*deviceKernel
	released map[*deviceKernel]struct{}
	// compiling counts pipelines being made: Close waits for them.
	compiling int
}

// deviceKernel is a kernel on the scheduler's device: the pipelines that it has there.
// Each is compiled when it is first needed, on a goroutine of its own, since a driver may
// take any time over it. They are destroyed when the kernel is closed and no task uses it
// any more, or with the scheduler.
type deviceKernel struct {
	*kernel.Kernel
	s *Scheduler
	// refs counts who keeps the pipelines: the scheduler until the kernel is closed, each
	// task from its making until it is complete, and each compilation.
	refs atomic.Int64
	// ready are the pipelines by plan.fold, nil where there is none.
	ready [kernel.Folds]atomic.Pointer[vk.Pipeline]
	// compilations are those under way, by plan.fold; Scheduler.mu guards them.
	compilations [kernel.Folds]*compilation

	// destroying guards destroyed, and is held while the pipelines are destroyed. It is
	// taken before Scheduler.mu.
	destroying lockrank.Mutex[lockrank.KernelDestroying]
	destroyed  bool
}

// compilation is the making of one pipeline. Everybody who needs it meanwhile shares it.
type compilation struct {
	// done is closed at the end.
	done chan struct{}
	// pipeline and err are the result. They are read once over is set, which Scheduler.mu
	// guards, or done closed.
	over     bool
	pipeline vk.Pipeline
	err      error
	// parked are the deferred tasks that need the pipeline to start; Scheduler.mu guards
	// them.
	parked parkedTasks
}

// useLocked returns the kernel on this device and keeps its pipelines until release; mu is held.
func (s *Scheduler) useLocked(k *kernel.Kernel) (*deviceKernel, error) {
	if k.Closed() {
		return nil, fmt.Errorf("kernel %q is %w", k.Name(), ErrClosed)
	}
	d := s.kernels.known[k]
	if d == nil {
		d = &deviceKernel{Kernel: k, s: s}
		d.refs.Store(1)
		s.kernels.known[k] = d
	}
	d.refs.Add(1)
	return d, nil
}

// release is the opposite of use. It may be called with any lock held.
func (d *deviceKernel) release() {
	if d.refs.Add(-1) == 0 {
		go d.destroy()
	}
}

// destroy destroys the pipelines, which nobody uses.
func (d *deviceKernel) destroy() {
	d.destroying.Lock()
	defer d.destroying.Unlock()
	if d.destroyed {
		return
	}
	d.destroyed = true
	for i := range d.ready {
		if p := d.ready[i].Load(); p != nil {
			d.s.device.DestroyPipeline(*p)
		}
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	delete(d.s.kernels.released, d)
}

// Release gives up a kernel that was closed: its pipelines are destroyed when the tasks
// that use it are complete. It does not wait for them.
func (s *Scheduler) Release(k *kernel.Kernel) {
	s.mu.Lock()
	d := s.kernels.known[k]
	if d != nil {
		delete(s.kernels.known, k)
		s.kernels.released[d] = struct{}{}
	}
	s.mu.Unlock()
	if d != nil && d.refs.Add(-1) == 0 {
		d.destroy()
	}
}

// destroyKernels destroys all pipelines. No task is left, and none is made any more.
func (s *Scheduler) destroyKernels() {
	s.mu.Lock()
	all := slices.AppendSeq(slices.Collect(maps.Values(s.kernels.known)), maps.Keys(s.kernels.released))
	s.kernels.known = nil
	s.mu.Unlock()
	for _, d := range all {
		d.destroy()
	}
}

// Compiling returns the labels of the kernels that are being compiled.
func (s *Scheduler) Compiling() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compilingNowLocked()
}

func (s *Scheduler) compilingNowLocked() (labels []string) {
	if s.kernels.compiling == 0 {
		return nil
	}
	look := func(d *deviceKernel) {
		if d.compilations != [kernel.Folds]*compilation{} {
			labels = append(labels, d.Name())
		}
	}
	for _, d := range s.kernels.known {
		look(d)
	}
	for d := range s.kernels.released {
		look(d)
	}
	slices.Sort(labels)
	return labels
}

// pipeline gives the task the pipeline of its kernel. While that is compiled an included
// construct waits, as long as ctx lasts; a deferred task does so itself (see compiledLocked).
func (s *Scheduler) pipeline(ctx context.Context, t *target) error {
	if p := t.dispatch.kernel.ready[t.dispatch.plan.Fold].Load(); p != nil {
		t.dispatch.pipeline = *p
		return nil
	}
	c, err := s.compile(t.dispatch.kernel, t.dispatch.plan.Fold)
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
	t.dispatch.pipeline = c.pipeline
	return c.err
}

// awaitCompilation waits for the end of a compilation; the error is the cause of ctx's end,
// or the loss of the device, if that comes first.
func (s *Scheduler) awaitCompilation(ctx context.Context, c *compilation, place tasks.Place) error {
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-c.done:
	case <-s.loss.told:
	case <-ctx.Done():
	}
	select {
	case <-c.done:
		return nil
	default:
	}
	if err := s.Lost(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// compiledLocked reports whether the task has its pipeline, or the error with which the
// compilation ended that it was to have it from. Else the task is started again at the end
// of that. mu is held.
func (t *target) compiledLocked(n *tasks.Node) (bool, error) {
	c := t.dispatch.compilation
	switch {
	case c == nil:
		return true, nil
	case !c.over:
		t.to(taskCompiling)
		c.parked = append(c.parked, n)
		return false, nil
	}
	t.dispatch.compilation, t.dispatch.pipeline = nil, c.pipeline
	return c.err == nil, c.err
}

// compile returns the compilation of a pipeline, beginning it if there is none. What
// can be told without the driver is its error.
func (s *Scheduler) compile(d *deviceKernel, fold int) (*compilation, error) {
	if err := d.Supported(s.props); err != nil {
		return nil, err
	}
	options, err := d.PipelineOptions(fold, s.props)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return nil, err
	}
	if c := d.compilations[fold]; c != nil {
		return c, nil
	}
	c := &compilation{done: make(chan struct{})}
	if p := d.ready[fold].Load(); p != nil {
		// It has just ended.
		c.over, c.pipeline = true, *p
		close(c.done)
		return c, nil
	}
	d.compilations[fold] = c
	d.refs.Add(1)
	s.kernels.compiling++
	go s.runCompilation(c, d, fold, options)
	return c, nil
}

// runCompilation has the driver compile a pipeline, which is kept whoever still waits.
func (s *Scheduler) runCompilation(c *compilation, d *deviceKernel, fold int, o vk.PipelineOptions) {
	var p vk.Pipeline
	// A tool that hears of it may end the goroutine.
	err := errors.New("the compilation was cut off")
	defer func() { s.endCompilation(c, d, fold, p, err) }()
	err = protect.Call(func() (err error) {
		p, err = s.device.CreatePipeline(o)
		return err
	})
}

// endCompilation lets those go on who wait for the pipeline.
func (s *Scheduler) endCompilation(c *compilation, d *deviceKernel, fold int, p vk.Pipeline, err error) {
	if err != nil {
		err = fmt.Errorf("kernel %q: %w", d.Name(), err)
	}
	// Deferred, because an observer of a task that goes on may end the goroutine.
	defer d.release()
	w := tasks.NewWork()
	s.mu.Lock()
	c.over, c.pipeline, c.err = true, p, err
	if err == nil {
		d.ready[fold].Store(&p)
	}
	d.compilations[fold] = nil
	c.parked.restart(w)
	close(c.done)
	// Close waits for this.
	s.kernels.compiling--
	s.life.wake.Broadcast()
	s.mu.Unlock()
	w.Finish()
}

// restartCompilingLocked lets the deferred tasks that wait for compilations try again, of a device
// that is lost: they fail then, however long the driver still compiles. mu is held.
func (s *Scheduler) restartCompilingLocked(w *tasks.Work) {
	restart := func(d *deviceKernel) {
		for _, c := range d.compilations {
			if c != nil {
				c.parked.restart(w)
			}
		}
	}
	for _, d := range s.kernels.known {
		restart(d)
	}
	for d := range s.kernels.released {
		restart(d)
	}
}
