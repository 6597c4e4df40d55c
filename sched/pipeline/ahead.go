package pipeline

import (
	"slices"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// ahead are the compilations of a device that begin before anybody needs them. The lock of the
// cache guards it.
type ahead struct {
	// queue are those that have not begun, in the order in which they will.
	queue []*Compilation
	// running counts those that have begun and are not over. There are at most limit, so that
	// the program has threads for its own work: Init sets limit to the number of processors.
	running, limit int
	// held says that none begins (see HoldAheadLocked).
	held bool
}

// beginLocked begins as many compilations as may be under way.
func (a *ahead) beginLocked() {
	for len(a.queue) > 0 && a.running < a.limit && !a.held {
		c := a.queue[0]
		a.queue = slices.Delete(a.queue, 0, 1)
		a.running++
		c.ahead = true
		c.beginLocked()
	}
}

// remove takes a compilation out of the queue.
func (a *ahead) remove(c *Compilation) {
	a.queue = slices.DeleteFunc(a.queue, func(q *Compilation) bool { return q == c })
}

// AheadLocked compiles the pipeline of a kernel for the Plan.Fold 0, which nearly all launches use,
// before anybody needs it, unless it is there, is being compiled or has failed. The options are
// those that PipelineOptions returns. Other folds are for ranges that are longer than the device's
// limits, and are compiled when they are needed.
func (c *Cache) AheadLocked(k *kernel.Kernel, o vk.PipelineOptions) {
	own := c.findOrAdd(k)
	if own.ready[0].Load() != nil || own.compilations[0] != nil {
		return
	}
	own.compilations[0] = own.newCompilation(0, o)
	c.ahead.queue = append(c.ahead.queue, own.compilations[0])
	c.ahead.beginLocked()
}

// fewRepeats is how many launches MergeLocked has to hear of before it has a pipeline compiled: for fewer
// that is not worth it.
const fewRepeats = 8

// MergeLocked is told how many launches of the kernel one dispatch could have done together with others, by the
// pipeline of that number, one of those from kernel.Merging on. After a few it has that compiled, unless it is there, it
// or another one of those is being compiled, it cannot be had, or the kernel was closed: a queued compilation has no
// reference to it. The pipeline for the Plan.Fold 0 has been compiled, and Ready returns it with the Merging of the new one once
// that is there. Nobody waits for that, and whatever prevents it is nobody's error.
func (k *Kernel) MergeLocked(merging int, p *vk.Properties, launches int) {
	if k.ready[merging].Load() != nil || k.compilations[merging] != nil || k.cache.find(k.Kernel) != k {
		return
	}
	if k.repeats[merging] = min(k.repeats[merging]+launches, fewRepeats); k.repeats[merging] < fewRepeats {
		return
	}
	for _, other := range k.compilations[kernel.Merging:] {
		if other != nil && other.stage != stageOver {
			return // the new one is made for the Merging of that
		}
	}
	merged := *k.ready[0].Load()
	c := k.newCompilation(merging, vk.PipelineOptions{})
	c.prepare = func() (vk.PipelineOptions, error) { return k.MergingOptions(merging, merged, p) }
	k.compilations[merging] = c
	k.cache.ahead.queue = append(k.cache.ahead.queue, c)
	k.cache.ahead.beginLocked()
}

// HoldAheadLocked lets no compilation begin that nobody needs, until ResumeAheadLocked.
func (c *Cache) HoldAheadLocked() { c.ahead.held = true }

// ResumeAheadLocked undoes HoldAheadLocked.
func (c *Cache) ResumeAheadLocked() {
	c.ahead.held = false
	c.ahead.beginLocked()
}

// DropAheadLocked forgets the compilations that have not begun.
func (c *Cache) DropAheadLocked() {
	for _, q := range c.ahead.queue {
		q.kernel.compilations[q.fold] = nil
	}
	c.ahead.queue = nil
}
