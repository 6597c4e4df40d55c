package vk

import (
	"sync"
	"unsafe"
)

// Adoption describes a VkDevice that the application created and goes on using; see
// [Adopt]. Vulkan has no query for what a device was created with, so the application
// says it: by CreateInfo, by Extensions and Features, or by both together.
type Adoption struct {
	Instance, PhysicalDevice, Device uintptr // VkInstance, VkPhysicalDevice, VkDevice

	// GetInstanceProcAddr is the address of the vkGetInstanceProcAddr that the
	// instance was created with; 0 means that of the Vulkan loader which [Open] finds.
	GetInstanceProcAddr uintptr

	// APIVersion is VkApplicationInfo.apiVersion of the instance, encoded as in
	// Properties.APIVersion. It limits the version of the device.
	APIVersion uint32

	// CreateInfo points to the VkDeviceCreateInfo of the device. Its extensions,
	// pEnabledFeatures and pNext chain are read during Adopt. It may be nil.
	CreateInfo unsafe.Pointer

	// Extensions lists the device extensions that are enabled. Those that this package
	// does not use may be left out.
	Extensions []string
	// Features has the Vulkan features that are enabled. What comes with an extension
	// and has no feature of its own (PushDescriptor, MemoryBudget,
	// CalibratedTimestamps, PipelineCreationFeedback, and those whose names begin with
	// External), and the subgroup properties, are not read.
	Features Features

	// Queues are the queues that this package may submit to. At least one must support
	// compute. Of the others it uses those that support transfers and not graphics.
	Queues []AdoptedQueue

	// Families are further queue families on which the application uses blocks of this
	// package: blocks are shared among them and the families of Queues.
	Families []uint32

	// Robust says that kernels are to be confined to their buffers, for which the device needs
	// the feature robustBufferAccess.
	Robust bool
}

// AdoptedQueue is a queue that the application lends.
type AdoptedQueue struct {
	Handle uintptr // VkQueue
	Family uint32  // index of its queue family
	// Locker must be held by anyone who is in a call that uses the VkQueue: by this
	// package and by the application. Several queues may have the same one.
	Locker sync.Locker
}

// check returns an error for a description that no device can have.
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

// checkFamilies returns an error for families or queues that the device does not have.
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
	return knownFamilies(op, a.Families, len(families))
}

// knownFamilies returns an error if one of the families is none of the device's, which has so many.
func knownFamilies(op string, families []uint32, all int) error {
	for _, f := range families {
		if int64(f) >= int64(all) {
			return invalid(op, "family %d, of %d", f, all)
		}
	}
	return nil
}

// queueFamilies returns the device's families, counting only the adopted queues.
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

// queue returns the adopted queue with the given index in a family.
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
