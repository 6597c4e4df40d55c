package pipeline

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"

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
	// known are the kernels that were used and are not closed, and released those that are closed
	// and still have pipelines.
	known    map[*kernel.Kernel]*Kernel
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
	*c = Cache{device: device, mu: mu, ended: ended, known: make(map[*kernel.Kernel]*Kernel), released: make(map[*Kernel]struct{})}
	c.ahead.limit = runtime.GOMAXPROCS(0)
}

// UseLocked returns a kernel on this device, with a reference for the caller.
func (c *Cache) UseLocked(k *kernel.Kernel) *Kernel {
	own := c.known[k]
	if own == nil {
		own = c.add(k)
	}
	own.refs.Add(1)
	return own
}

// add adds a kernel that is used for the first time, with the cache's own reference.
func (c *Cache) add(k *kernel.Kernel) *Kernel {
	own := &Kernel{Kernel: k, cache: c}
	own.refs.Store(1)
	c.known[k] = own
	return own
}

// Release gives up a kernel that was closed: its pipelines are destroyed with the last reference to
// them, and none is compiled any more that nobody has needed. It does not wait for that.
func (c *Cache) Release(k *kernel.Kernel) {
	c.mu.Lock()
	own := c.known[k]
	if own != nil {
		delete(c.known, k)
		c.released[own] = struct{}{}
		for i, q := range own.compilations {
			if q != nil && q.stage == stageQueued {
				c.ahead.remove(q)
				own.compilations[i] = nil
			}
		}
	}
	c.mu.Unlock()
	if own != nil && own.refs.Add(-1) == 0 {
		own.destroy()
	}
}

// Destroy destroys all pipelines. Nobody uses one, and none is compiled any more.
func (c *Cache) Destroy() {
	c.mu.Lock()
	all := slices.AppendSeq(slices.Collect(maps.Values(c.known)), maps.Keys(c.released))
	c.known = nil
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
	for _, own := range c.known {
		look(own)
	}
	for own := range c.released {
		look(own)
	}
	slices.SortFunc(compiling, func(a, b *Compilation) int { return cmp.Compare(a.Name(), b.Name()) })
	return compiling
}
