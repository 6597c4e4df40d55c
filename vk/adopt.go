//go:build cgo

package vk

// #include <stdlib.h>
// #include "vko.h"
import "C"

import (
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// Adopt makes an Instance of the application's, which shows one PhysicalDevice. To
// open that makes a Device of the application's VkDevice, and may be done again and
// again: its queues are those adopted, which DeviceOptions is applied to as if the
// device had no others, and its features those that the application enabled.
//
// Neither closing the Device nor closing the Instance destroys anything of the
// application's: what they end are their own objects and their own work, which
// Device.Close waits for. The application keeps what it adopts for as long.
//
// Instance.Messages stays 0: messages go to the application's own messengers.
//
// The error matches ErrUnsupported and names all that is missing where the device
// was made without something that this package cannot do without: Vulkan 1.2, the
// feature timelineSemaphore and a queue that computes. It does so as well where the
// VkInstance is of another Vulkan library than that which the process uses already.
// The error matches ErrInvalid for a description that cannot be true.
func Adopt(a Adoption) (*Instance, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	given := &adopted{Adoption: a}
	given.readClaims()
	getProcAddr, err := loadVulkan(a.GetInstanceProcAddr)
	if err != nil {
		return nil, err
	}
	i := &Instance{address: getProcAddr, adopted: true, logger: slog.New(slog.DiscardHandler)}
	var f C.vko_fault
	if C.vko_instance_adopt(C.uintptr_t(getProcAddr), C.uintptr_t(a.Instance), &i.c, &f) != 0 {
		return nil, faultError("Adopt", &f)
	}
	if err = initInstance(a.Instance); err == nil {
		err = i.adopt(given)
	}
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// adopted is an Adoption with what it says is enabled. What the slices and the
// pointer of the application's had is copied.
type adopted struct {
	Adoption
	extensions C.uint32_t // VKO_EXT_ bits
	features   C.vko_features
}

// readClaims gathers what the application says is enabled.
func (a *adopted) readClaims() {
	if a.CreateInfo != nil {
		C.vko_read_create_info((*C.vkoDeviceCreateInfo)(a.CreateInfo), &a.extensions, &a.features)
	}
	for _, name := range a.Extensions {
		text := C.CString(name)
		a.extensions |= C.vko_extension_bit(text)
		C.free(unsafe.Pointer(text))
	}
	for _, f := range a.Features.fields(&a.features) {
		if *f.enabled {
			*f.c = 1
		}
	}
	a.CreateInfo, a.Extensions = nil, nil
	a.Queues, a.Families = slices.Clone(a.Queues), slices.Clone(a.Families)
}

func (i *Instance) adopt(a *adopted) error {
	handles, err := i.physicalHandles()
	if err != nil {
		return err
	}
	if !slices.Contains(handles, a.PhysicalDevice) {
		return invalid("Adopt", "the instance does not show PhysicalDevice %#x", a.PhysicalDevice)
	}
	p, err := i.describe(a.PhysicalDevice, a)
	if err != nil {
		return err
	}
	if len(p.missing) > 0 {
		return fmt.Errorf("%w: device %q was made without %s", ErrUnsupported, p.properties.Name,
			strings.Join(p.missing, ", "))
	}
	i.devices = []*PhysicalDevice{p}
	return nil
}

// restrict leaves, of what the device has, what it was made with. Between the
// extensions and the features read is called, which reads the features that there
// are with the extensions.
func (a *adopted) restrict(p *PhysicalDevice, read func()) error {
	claimed := a.extensions
	if p.c.version >= C.VKO_API_1_3 {
		claimed &^= C.VKO_EXT_SYNCHRONIZATION2
	}
	var wrong []string
	for rest := claimed &^ p.c.extensions; rest != 0; rest &= rest - 1 {
		wrong = append(wrong, C.GoString(C.vko_extension_name(1<<bits.TrailingZeros32(uint32(rest)))))
	}
	p.c.extensions &= claimed
	read()
	var have, want Features
	claims := want.fields(&a.features)
	for k, f := range have.fields(&p.c.features) {
		if *claims[k].c > *f.c {
			wrong = append(wrong, f.name)
		}
		*f.c = *claims[k].c
	}
	if len(wrong) > 0 {
		return invalid("Adopt", "device %q of Vulkan %s, with the extensions given, does not have %s",
			p.properties.Name, Version(uint32(p.c.version)), strings.Join(wrong, ", "))
	}
	return nil
}
