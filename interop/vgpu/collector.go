package vgpu

import (
	"math"
	"runtime/debug"
	"sync"
)

// collector keeps the garbage collector from running while vgpu's code does. vgpu's binding
// copies slices of structures to memory of C's and has a finalizer free it, of a variable
// that nothing refers to any more by the time that Vulkan reads the copy.
var collector struct {
	mu sync.Mutex
	// holders counts those that keep it; percent and limit are what was set before the
	// first of them.
	holders int
	percent int
	limit   int64
}

// holdCollector waits for a collection that is under way, and lets none begin until
// releaseCollector, but for runtime.GC.
func holdCollector() {
	collector.mu.Lock()
	defer collector.mu.Unlock()
	if collector.holders++; collector.holders == 1 {
		collector.limit = debug.SetMemoryLimit(math.MaxInt64)
		// A negative percentage waits for the marking of a collection that has begun;
		// what is allocated after it outlives the collection.
		collector.percent = debug.SetGCPercent(-1)
	}
}

func releaseCollector() {
	collector.mu.Lock()
	defer collector.mu.Unlock()
	if collector.holders--; collector.holders == 0 {
		debug.SetGCPercent(collector.percent)
		debug.SetMemoryLimit(collector.limit)
	}
}
