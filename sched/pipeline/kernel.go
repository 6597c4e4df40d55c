package pipeline

import (
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/striped"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// Kernel is a kernel on a device, with the pipelines that it has there.
type Kernel struct {
	*kernel.Kernel
	cache *Cache
	// refs counts the references. released says that the kernel gets no more of them: when there are none
	// left, it is destroyed.
	refs     striped.Count
	released atomic.Bool
	// ready are the compiled pipelines, by the numbers that package kernel has for them, nil where there is none.
	ready [kernel.Pipelines]atomic.Pointer[vk.Pipeline]
	// compilations are those that are queued or under way, or have failed before anybody needed
	// them, in the same order. The lock of the cache guards them.
	compilations [kernel.Pipelines]*Compilation
	// repeats counts the launches that MergeLocked was told of for each pipeline, up to a few. The lock of the cache
	// guards it.
	repeats [kernel.Pipelines]int

	// destroying guards destroyed, and is held while the pipelines are destroyed. It is taken
	// before the lock of the cache.
	destroying lockrank.Mutex[lockrank.KernelDestroying]
	destroyed  bool
}

// Ready returns the pipeline for a Plan.Fold, nil if it has not been compiled yet.
func (k *Kernel) Ready(fold int) *vk.Pipeline { return k.ready[fold].Load() }

// MergingsLocked returns how many of the pipelines that merge are there, or cannot be had. When the number grows, more
// dispatches may be merged, or MergeLocked may have another of these pipelines compiled. The Merging of the pipeline for
// the Plan.Fold 0 stands for those that are there.
func (k *Kernel) MergingsLocked() (n int) {
	for merging := kernel.Merging; merging < kernel.Pipelines; merging++ {
		if c := k.compilations[merging]; k.Ready(merging) != nil || c != nil && c.OverLocked() {
			n++
		}
	}
	return n
}

// retain adds a reference, unless the kernel is released.
func (k *Kernel) retain() bool {
	at := striped.Here()
	k.refs.Add(at, 1)
	if k.released.Load() {
		k.releaseAt(at)
		return false
	}
	return true
}

// Release gives up a reference that Cache.Use or Cache.UseLocked returned. It may be called with any lock held.
func (k *Kernel) Release() { k.releaseAt(striped.Here()) }

// releaseAt is Release in a cell of the count.
func (k *Kernel) releaseAt(at striped.Cell) {
	k.refs.Add(at, -1)
	if k.released.Load() && k.refs.Sum() == 0 {
		go k.destroyUnused()
	}
}

// destroyUnused destroys the pipelines of a released kernel if there are no references. The caller's sum may have
// missed that of a compilation that began meanwhile.
func (k *Kernel) destroyUnused() {
	k.cache.mu.Lock()
	unused := k.refs.Sum() == 0
	k.cache.mu.Unlock()
	if unused {
		k.destroy()
	}
}

// destroy destroys the pipelines, which nobody uses.
func (k *Kernel) destroy() {
	k.destroying.Lock()
	defer k.destroying.Unlock()
	if k.destroyed {
		return
	}
	k.destroyed = true
	for i := range k.ready {
		if p := k.ready[i].Load(); p != nil {
			k.cache.device.DestroyPipeline(*p)
		}
	}
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	delete(k.cache.released, k)
}
