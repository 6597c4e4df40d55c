package vgpu

import (
	"math"
	"runtime/debug"
	"sync"
)

// collector keeps the garbage collector from running while vgpu's code does. vgpu's binding
// copies slices of structures to C memory, which a finalizer frees that is attached to a
// variable. Nothing refers to that variable any more when Vulkan reads the copy, so a
// collection could free it too early.
var collector struct {
	mu sync.Mutex
	// holders counts the calls of Do in progress; percent and limit are the settings from
	// before the first of them.
	holders int
	percent int
	limit   int64
}

// holdCollector waits for the end of a collection that is in progress, and lets none begin
// until releaseCollector, except by runtime.GC.
func holdCollector() {
	collector.mu.Lock()
	defer collector.mu.Unlock()
	if collector.holders++; collector.holders == 1 {
		collector.limit = debug.SetMemoryLimit(math.MaxInt64)
		// Setting a negative percentage waits for the end of a mark phase that has begun. What
		// is allocated afterwards survives that collection.
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
