package vkomp

import (
	"fmt"

	"github.com/vkomp/vkomp/vk"
)

// Adoption describes the VkDevice of an application that has one already, for
// Options.Adopt: its handles, queues with a sync.Locker each that both sides hold while
// they use the queue, and what was enabled when it was made. Features that vkomp needs
// and that are missing are an ErrUnsupported that names them all.
type Adoption = vk.Adoption

// AdoptedQueue is a queue of an Adoption.
type AdoptedQueue = vk.AdoptedQueue

// adoptDevice has the application's device for the one non-host device.
func (rt *Runtime) adoptDevice(a *Adoption) error {
	instance, err := vk.Adopt(*a)
	if err != nil {
		return fmt.Errorf("adopt a device: %w", err)
	}
	rt.instance = instance
	for _, p := range instance.PhysicalDevices() {
		rt.devices = append(rt.devices, &device{rt: rt, physical: p})
	}
	return nil
}
