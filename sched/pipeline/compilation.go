package pipeline

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/internal/striped"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/vk"
)

// stage is how far a compilation has come.
type stage uint8

const (
	// stageQueued: nobody needs the pipeline yet, and others are compiled before it.
	stageQueued stage = iota
	// stageUnderWay: the driver compiles it.
	stageUnderWay
	// stageOver: the pipeline is there, or the error.
	stageOver
)

// Compilation is the making of one pipeline, shared by all that need it.
type Compilation struct {
	kernel  *Kernel
	fold    int
	options vk.PipelineOptions
	// prepare, if not nil, makes the options.
	prepare func() (vk.PipelineOptions, error)
	// done is closed at the end.
	done chan struct{}
	// The lock of the cache guards the fields below. ahead says that the compilation began before
	// anybody needed it, and needed that somebody has needed it since.
	stage         stage
	ahead, needed bool
	// pipeline and err are the result, from stageOver on.
	pipeline vk.Pipeline
	err      error
}

// CompileLocked returns the compilation of the pipeline for a Plan.Fold, for a caller that needs it.
// It begins at once, if it is not under way or over: whatever is queued does not delay it. The
// options are those that PipelineOptions returns.
func (k *Kernel) CompileLocked(fold int, o vk.PipelineOptions) *Compilation {
	c := k.compilations[fold]
	switch {
	case c == nil:
		c = k.newCompilation(fold, o)
		if p := k.ready[fold].Load(); p != nil {
			// It has ended since the caller called Ready.
			c.stage, c.pipeline = stageOver, *p
			close(c.done)
			return c
		}
		k.compilations[fold] = c
		c.beginLocked()
	case c.stage == stageQueued:
		k.cache.ahead.remove(c)
		c.beginLocked()
	case c.stage == stageOver:
		// It has failed before anybody needed it. The error is the caller's alone (see end).
		k.compilations[fold] = nil
	}
	c.needed = true
	return c
}

// newCompilation returns a compilation that has not begun.
func (k *Kernel) newCompilation(fold int, o vk.PipelineOptions) *Compilation {
	return &Compilation{kernel: k, fold: fold, options: o, done: make(chan struct{})}
}

// beginLocked begins the compilation on a goroutine of its own.
func (c *Compilation) beginLocked() {
	c.stage = stageUnderWay
	c.kernel.refs.Add(striped.Here(), 1)
	go c.run()
}

// Name returns the name of the kernel.
func (c *Compilation) Name() string { return c.kernel.Name() }

// NeededLocked reports whether somebody has needed the pipeline since the compilation began.
func (c *Compilation) NeededLocked() bool { return c.needed }

// Done returns a channel that is closed when the compilation has ended.
func (c *Compilation) Done() <-chan struct{} { return c.done }

// OverLocked reports whether the compilation has ended.
func (c *Compilation) OverLocked() bool { return c.stage == stageOver }

// Result returns the pipeline, or why there is none, of a compilation that has ended. The next
// compilation after one that has failed tries again.
func (c *Compilation) Result() (vk.Pipeline, error) { return c.pipeline, c.err }

// run has the driver compile the pipeline, which is kept whether anybody still waits for it or not.
func (c *Compilation) run() {
	var p vk.Pipeline
	err := errors.New("the compilation was cut off")
	// Deferred, because a tool that hears of the pipeline may end the goroutine.
	defer func() { c.end(p, err) }()
	err = protect.Call(func() (err error) {
		if c.prepare != nil {
			if c.options, err = c.prepare(); err != nil {
				return err
			}
		}
		p, err = c.kernel.cache.device.CreatePipeline(c.options)
		return err
	})
}

// end ends the compilation with its result. If it has failed and nobody has needed it, the kernel
// keeps it for the first that will, unless memory was short: that says nothing about the kernel, nor
// about what there is when somebody needs it.
func (c *Compilation) end(p vk.Pipeline, err error) {
	k := c.kernel
	if err != nil {
		err = fmt.Errorf("kernel %q: %w", k.Name(), err)
	}
	// Deferred, because ended may end the goroutine.
	defer k.Release()
	k.cache.mu.Lock()
	c.stage, c.pipeline, c.err = stageOver, p, err
	c.options, c.prepare = vk.PipelineOptions{}, nil
	if err == nil {
		if c.fold >= kernel.Merging {
			merged := *k.ready[0].Load()
			merged.Merging = p.Merging
			k.ready[0].Store(&merged)
		}
		k.ready[c.fold].Store(&p)
		k.cache.stats.Pipelines++
		if p.Found {
			k.cache.stats.Found++
		}
	}
	if err == nil || c.needed || errors.Is(err, vk.ErrOutOfMemory) {
		k.compilations[c.fold] = nil
	}
	if c.ahead {
		k.cache.ahead.running--
		k.cache.ahead.beginLocked()
	}
	close(c.done)
	k.cache.mu.Unlock()
	k.cache.ended(c)
}
