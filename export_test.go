package vkomp

import (
	"context"
	"time"

	"github.com/vkomp/vkomp/interop"
)

// CheckModule validates a module with the program at a path.
func CheckModule(path string, limit time.Duration, name string, module []byte) error {
	v := validator{path: path, time: limit}
	return v.check(name, module)
}

// ReportWhile calls wait as Taskwait and Taskgroup wait for tasks.
func (rt *Runtime) ReportWhile(ctx context.Context, wait func() error) (err, reporting error) {
	return rt.reportWhile(ctx, wait)
}

// VulkanHandles returns the handles of an open device as package vk knows them.
func VulkanHandles(d Device) interop.Handles {
	d.d.mu.Lock()
	defer d.d.mu.Unlock()
	return interop.Handles{
		Instance:            d.d.rt.instance.Handle(),
		PhysicalDevice:      d.d.physical.Handle(),
		Device:              d.d.vulkan.Handle(),
		GetInstanceProcAddr: d.d.rt.instance.GetInstanceProcAddr(),
	}
}

var (
	TraitsOf     = traitsOf
	DistinctUIDs = distinctUIDs
	VulkanError  = vulkanError
	Fills        = fills
)

// Orphans returns the number of regions of ended tasks that the runtime keeps for their children.
func (rt *Runtime) Orphans() int {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return len(rt.orphans)
}
