package vk

import (
	"sync"
	"unsafe"
)

// Adoption describes a VkDevice that the application made and goes on using; see
// [Adopt]. Vulkan cannot be asked what a device was made with, so the application
// says it, by CreateInfo, by Extensions and Features, or by both together.
type Adoption struct {
	Instance, PhysicalDevice, Device uintptr // VkInstance, VkPhysicalDevice, VkDevice

	// GetInstanceProcAddr is the address of the vkGetInstanceProcAddr that the
	// instance was made with; 0: that of the Vulkan loader which [Open] finds.
	GetInstanceProcAddr uintptr

	// APIVersion is VkApplicationInfo.apiVersion of the instance, as in
	// Properties.APIVersion. Where the device has a higher one, this holds.
	APIVersion uint32

	// CreateInfo points to the VkDeviceCreateInfo that the device was made with. Its
	// extensions, pEnabledFeatures and pNext chain are read during Adopt; nil: none.
	CreateInfo unsafe.Pointer

	// Extensions has the names of device extensions that are enabled. Those that this
	// package has no use for may be left out.
	Extensions []string
	// Features has what is enabled of the features that Vulkan calls so. What Vulkan
	// has an extension for and no feature (PushDescriptor, MemoryBudget,
	// CalibratedTimestamps, those whose names begin with External), and the figures
	// about subgroups, are not read.
	Features Features

	// Queues are those that this package may submit to. One or more must compute; of
	// the others those are used that can transfer and do not draw.
	Queues []AdoptedQueue

	// Families are those of further queues which the application uses blocks of this
	// package with: blocks are shared among them and the families of Queues.
	Families []uint32
}

// AdoptedQueue is a queue of the application's.
type AdoptedQueue struct {
	Handle uintptr // VkQueue
	Family uint32
	// Locker is held whenever this package is in a call that uses the VkQueue. The
	// application holds it when it is. Several queues may have one.
	Locker sync.Locker
}

// check refuses what no device can be.
func (a *Adoption) check() error {
	const op = "Adopt"
	for _, h := range []struct {
		name   string
		handle uintptr
	}{{"Instance", a.Instance}, {"PhysicalDevice", a.PhysicalDevice}, {"Device", a.Device}} {
		if h.handle == 0 {
			return invalid(op, "no %s", h.name)
		}
	}
	seen := map[uintptr]int{}
	for k, q := range a.Queues {
		switch first, again := seen[q.Handle]; {
		case q.Handle == 0:
			return invalid(op, "queue %d has no Handle", k)
		case q.Locker == nil:
			return invalid(op, "queue %d has no Locker; where nobody else uses the queue, new(sync.Mutex) will do", k)
		case again:
			return invalid(op, "queues %d and %d are the same", first, k)
		}
		seen[q.Handle] = k
	}
	return nil
}

// checkFamilies refuses families that the device does not have.
func (a *Adoption) checkFamilies(families []QueueFamily) error {
	const op = "Adopt"
	counts := make([]int, len(families))
	for k, q := range a.Queues {
		if int64(q.Family) >= int64(len(families)) {
			return invalid(op, "queue %d is of family %d, of %d", k, q.Family, len(families))
		}
		if counts[q.Family]++; counts[q.Family] > families[q.Family].Count {
			return invalid(op, "more than %d queues of family %d", families[q.Family].Count, q.Family)
		}
	}
	for _, f := range a.Families {
		if int64(f) >= int64(len(families)) {
			return invalid(op, "family %d, of %d", f, len(families))
		}
	}
	return nil
}

// queueFamilies gives the device's families with the queues that are adopted alone.
func (a *Adoption) queueFamilies(families []QueueFamily) []QueueFamily {
	adopted := make([]QueueFamily, len(families))
	for k, f := range families {
		adopted[k] = f
		adopted[k].Count = 0
	}
	for _, q := range a.Queues {
		adopted[q.Family].Count++
	}
	return adopted
}

// queue is the index-th queue of a family.
func (a *Adoption) queue(family uint32, index int) AdoptedQueue {
	for _, q := range a.Queues {
		if q.Family != family {
			continue
		}
		if index == 0 {
			return q
		}
		index--
	}
	return AdoptedQueue{}
}
