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

// Adopt returns an Instance for a VkInstance and VkDevice of the application. It has
// one PhysicalDevice; opening that, which may be done repeatedly, makes a Device of
// the application's VkDevice. Its queues are the adopted ones, to which DeviceOptions
// applies as if the device had no others, and its features are those that the
// application enabled.
//
// Closing the Device or the Instance destroys nothing of the application's. They
// destroy only the objects made through this package, and Device.Close waits for
// what was submitted through it. The application must keep what it lends until then.
//
// Instance.Messages stays 0: messages go to the application's own messengers. These may be functions in Go,
// and may not call this package.
//
// The error matches ErrUnsupported and names everything that is missing if the
// device lacks Vulkan 1.2, the feature timelineSemaphore, a compute queue or, with Robust,
// the feature robustBufferAccess. It also matches ErrUnsupported if the VkInstance comes
// from another Vulkan library than the one that the process already uses. It matches
// ErrInvalid for a description that contradicts the device.
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

// adopted is an Adoption with the extensions and features it enables. It holds copies
// of what the application's slices and pointer refer to.
type adopted struct {
	Adoption
	extensions C.uint32_t // VKO_EXT_ bits
	features   C.vko_features
}

// readClaims collects what the application says is enabled.
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

// restrict reduces what the physical device supports to what the device was created
// with. It first restricts the extensions, then calls read, which reads the features
// that these extensions give, and then restricts the features.
func (a *adopted) restrict(p *PhysicalDevice, read func()) error {
	claimed := a.extensions
	if p.c.version >= C.VKO_API_1_3 {
		claimed &^= C.VKO_EXT_IN_1_3
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
