package vkomp

import (
	"github.com/vkomp/vkomp/vk"
)

// SemaphoreValue returns the value of a timeline semaphore of a device in use.
func SemaphoreValue(d Device, s vk.Semaphore) (uint64, error) { return d.d.vulkan.SemaphoreValue(s) }

// SignalSemaphore signals a value of such a semaphore from the host.
func SignalSemaphore(d Device, s vk.Semaphore, value uint64) error {
	return d.d.vulkan.SignalSemaphore(s, value)
}

// CheckInit is the check of an init clause against the restrictions of OpenMP.
var CheckInit = checkInit

// QueueFamilies returns the queue families of a device in use, by VkQueue: of the queues that
// objects can have for their own, and of the one that objects share.
func QueueFamilies(d Device) (own, shared map[uintptr]uint32) {
	own = map[uintptr]uint32{}
	for _, q := range d.d.vulkan.InteropQueues() {
		own[q.Handle()] = q.Family()
	}
	q := sharedQueue(d.d.vulkan.Queues())
	return own, map[uintptr]uint32{q.Handle(): q.Family()}
}

// ClaimTimelineFd makes a device say that it can export timeline semaphores, and reports whether it could not.
func ClaimTimelineFd(d Device) bool {
	f := &d.d.physical.Properties().Features
	could := f.ExternalTimelineFd
	f.ExternalTimelineFd = true
	return !could
}

// HoldLife keeps a device from being opened, closed and paused, as an opening or a DeclareTarget does, until
// release is called.
func HoldLife(d Device) (release func()) {
	d.d.life.Lock()
	return d.d.life.Unlock
}

// Closing reports whether the runtime is closing a device.
func Closing(d Device) bool {
	d.d.mu.Lock()
	defer d.d.mu.Unlock()
	return d.d.closed
}
