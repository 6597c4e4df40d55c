package pipeline

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/striped"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// Device is the part of a device that makes pipelines.
type Device interface {
	// CreatePipeline makes a compute pipeline.
	CreatePipeline(vk.PipelineOptions) (vk.Pipeline, error)
	// DestroyPipeline destroys a pipeline that no incomplete submission uses.
	DestroyPipeline(vk.Pipeline)
}

// Cache has the pipelines of a device.
type Cache struct {
	device Device
	mu     sync.Locker
	// ended is the function passed to Init.
	ended func(*Compilation)
	// known are the kernels that were used and are not closed. The map does not change: another one
	// takes its place, with mu locked. released are those that are closed and still have pipelines.
	known    atomic.Pointer[map[*kernel.Kernel]*Kernel]
	released map[*Kernel]struct{}
	ahead    ahead
	stats    Stats
}

// Stats counts what a device has compiled.
type Stats struct {
	// Pipelines counts the pipelines that were made, Found those of them that the driver says it
	// found in the device's VkPipelineCache.
	Pipelines, Found uint64
}

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	s.Pipelines += o.Pipelines
	s.Found += o.Found
}

// StatsLocked returns the counts so far.
func (c *Cache) StatsLocked() Stats { return c.stats }

// Init makes the cache of a device. mu guards it. ended is called without locks held when a
// compilation has ended.
func (c *Cache) Init(device Device, mu sync.Locker, ended func(*Compilation)) {
	c.device, c.mu, c.ended, c.released = device, mu, ended, make(map[*Kernel]struct{})
	c.known.Store(&map[*kernel.Kernel]*Kernel{})
	c.ahead.limit = runtime.GOMAXPROCS(0)
}

// Use returns a kernel that was used before on this device and is not closed, with a reference for the
// caller, or nil. It needs no lock.
func (c *Cache) Use(k *kernel.Kernel) *Kernel {
	if own := c.find(k); own != nil && own.retain() {
		return own
	}
	return nil
}

// UseLocked returns a kernel on this device, with a reference for the caller.
func (c *Cache) UseLocked(k *kernel.Kernel) *Kernel {
	own := c.findOrAdd(k)
	own.refs.Add(striped.Here(), 1)
	return own
}

// find returns the kernel if it is known, else nil.
func (c *Cache) find(k *kernel.Kernel) *Kernel { return (*c.known.Load())[k] }

// changeKnown has change change a copy of known, which takes its place. The lock is held.
func (c *Cache) changeKnown(change func(map[*kernel.Kernel]*Kernel)) {
	known := maps.Clone(*c.known.Load())
	change(known)
	c.known.Store(&known)
}

// findOrAdd returns a kernel, which it adds if it is used for the first time.
func (c *Cache) findOrAdd(k *kernel.Kernel) *Kernel {
	if own := c.find(k); own != nil {
		return own
	}
	own := &Kernel{Kernel: k, cache: c}
	c.changeKnown(func(known map[*kernel.Kernel]*Kernel) { known[k] = own })
	return own
}

// Release gives up a kernel that was closed: its pipelines are destroyed with the last reference to
// them, and none is compiled any more that nobody has needed. It does not wait for that.
func (c *Cache) Release(k *kernel.Kernel) {
	c.mu.Lock()
	own, unused := c.find(k), false
	if own != nil {
		own.released.Store(true) // before it is forgotten: when Use does not find it, nobody gets a reference
		c.changeKnown(func(known map[*kernel.Kernel]*Kernel) { delete(known, k) })
		c.released[own] = struct{}{}
		for i, q := range own.compilations {
			if q != nil && q.stage == stageQueued {
				c.ahead.remove(q)
				own.compilations[i] = nil
			}
		}
		unused = own.refs.Sum() == 0
	}
	c.mu.Unlock()
	if unused {
		own.destroy()
	}
}

// Destroy destroys all pipelines. Nobody uses one, and none is compiled any more.
func (c *Cache) Destroy() {
	c.mu.Lock()
	all := slices.AppendSeq(slices.Collect(maps.Values(*c.known.Load())), maps.Keys(c.released))
	c.known.Store(&map[*kernel.Kernel]*Kernel{})
	c.mu.Unlock()
	for _, own := range all {
		own.destroy()
	}
}

// CompilingLocked returns the compilations that are under way, in the order of the kernels' names.
func (c *Cache) CompilingLocked() (compiling []*Compilation) {
	look := func(own *Kernel) {
		for _, k := range own.compilations {
			if k != nil && k.stage == stageUnderWay {
				compiling = append(compiling, k)
			}
		}
	}
	for _, own := range *c.known.Load() {
		look(own)
	}
	for own := range c.released {
		look(own)
	}
	slices.SortFunc(compiling, func(a, b *Compilation) int { return cmp.Compare(a.Name(), b.Name()) })
	return compiling
}
