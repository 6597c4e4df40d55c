package pipeline

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/vk"
)

// Compilation is the making of one pipeline, shared by all that need it.
type Compilation struct {
	kernel *Kernel
	fold   int
	// done is closed at the end.
	done chan struct{}
	// over says that pipeline and err are the result. The lock of the cache guards it.
	over     bool
	pipeline vk.Pipeline
	err      error
}

// CompileLocked returns the compilation of the pipeline for a Plan.Fold, and begins it if there is
// none. The options are those that PipelineOptions returns.
func (k *Kernel) CompileLocked(fold int, o vk.PipelineOptions) *Compilation {
	if c := k.compilations[fold]; c != nil {
		return c
	}
	c := &Compilation{kernel: k, fold: fold, done: make(chan struct{})}
	if p := k.ready[fold].Load(); p != nil {
		// It has ended since the caller called Ready.
		c.over, c.pipeline = true, *p
		close(c.done)
		return c
	}
	k.compilations[fold] = c
	k.refs.Add(1)
	go c.run(o)
	return c
}

// Done returns a channel that is closed when the compilation has ended.
func (c *Compilation) Done() <-chan struct{} { return c.done }

// OverLocked reports whether the compilation has ended.
func (c *Compilation) OverLocked() bool { return c.over }

// Result returns the pipeline, or why there is none, of a compilation that has ended. The next
// compilation after one that has failed tries again.
func (c *Compilation) Result() (vk.Pipeline, error) { return c.pipeline, c.err }

// run has the driver compile the pipeline, which is kept whether anybody still waits for it or not.
func (c *Compilation) run(o vk.PipelineOptions) {
	var p vk.Pipeline
	err := errors.New("the compilation was cut off")
	// Deferred, because a tool that hears of the pipeline may end the goroutine.
	defer func() { c.end(p, err) }()
	err = protect.Call(func() (err error) {
		p, err = c.kernel.cache.device.CreatePipeline(o)
		return err
	})
}

// end ends the compilation with its result.
func (c *Compilation) end(p vk.Pipeline, err error) {
	k := c.kernel
	if err != nil {
		err = fmt.Errorf("kernel %q: %w", k.Name(), err)
	}
	// Deferred, because ended may end the goroutine.
	defer k.Release()
	k.cache.mu.Lock()
	c.over, c.pipeline, c.err = true, p, err
	if err == nil {
		k.ready[c.fold].Store(&p)
	}
	k.compilations[c.fold] = nil
	close(c.done)
	k.cache.mu.Unlock()
	k.cache.ended(c)
}
