package vkomp

import (
	"github.com/vkomp/vkomp/vk"
)

// SemaphoreValue reads the counter of a VkSemaphore of a device in use.
func SemaphoreValue(d Device, s vk.Semaphore) (uint64, error) { return d.d.vulkan.SemaphoreValue(s) }

// CheckInit refuses what OpenMP does not allow in an init clause.
var CheckInit = checkInit

// QueueFamilies has the families of the queues of a device in use, by VkQueue: those
// that objects can have to themselves, and the one that they share.
func QueueFamilies(d Device) (own, shared map[uintptr]uint32) {
	own = map[uintptr]uint32{}
	for _, q := range d.d.vulkan.InteropQueues() {
		own[q.Handle()] = q.Family()
	}
	q := d.d.vulkan.Queues()[0]
	return own, map[uintptr]uint32{q.Handle(): q.Family()}
}
