//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Instance is a VkInstance with its physical devices.
type Instance struct {
	c          *C.vko_instance
	address    uintptr // of vkGetInstanceProcAddr
	devices    []*PhysicalDevice
	validation bool
	adopted    bool // the VkInstance and the VkDevice belong to the application
	logger     *slog.Logger
	heard      atomic.Uint64

	mu       lockrank.Mutex[lockrank.VulkanInstance]
	open     int // number of open devices; guarded by mu
	closed   bool
	messages *C.vko_messages // nil without validation and after Close; guarded by mu
}

// Open finds the Vulkan loader and creates an instance. Several instances may be open at
// once. The loader and the drivers that it loads are never unloaded. The error matches
// ErrUnsupported if there is no loader, no driver or, with Validation, no validation
// layer.
func Open(o InstanceOptions) (*Instance, error) {
	getProcAddr, err := loadVulkan(0)
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(o.ApplicationName, 0) {
		return nil, invalid("Open", "ApplicationName contains a zero byte")
	}
	i := &Instance{address: getProcAddr, validation: o.Validation, logger: o.Logger}
	if i.logger == nil {
		i.logger = slog.New(slog.DiscardHandler)
	}
	if o.Validation {
		if i.messages = C.vko_messages_create(); i.messages == nil {
			return nil, &Error{Op: "vkCreateInstance", Result: ErrorOutOfHostMemory}
		}
	}
	application := append([]byte(o.ApplicationName), 0)
	var synchronization C.uint32_t
	if !o.NoSynchronizationChecks {
		synchronization = 1
	}
	var f C.vko_fault
	if C.vko_instance_create(C.uintptr_t(getProcAddr), (*C.char)(unsafe.Pointer(&application[0])),
		i.messages, i.severities(), synchronization, &i.c, &f) != 0 {
		err := startError(faultError("Open", &f))
		i.drain()
		C.vko_messages_destroy(i.messages)
		return nil, err
	}
	C.vko_keep_drivers()
	if err = initInstance(i.Handle()); err == nil {
		i.devices, err = i.enumerate()
	}
	if err != nil {
		i.Close()
		return nil, startError(err)
	}
	i.drain()
	return i, nil
}

// PhysicalDevices returns the devices: discrete, integrated, virtual, software and then
// other ones, and in the driver's order within each class.
func (i *Instance) PhysicalDevices() []*PhysicalDevice { return i.devices }

// Handle returns the VkInstance, 0 once it is closed.
func (i *Instance) Handle() uintptr {
	if i.c == nil {
		return 0
	}
	return uintptr(i.c.handle)
}

// GetInstanceProcAddr returns the address of the loader's vkGetInstanceProcAddr.
func (i *Instance) GetInstanceProcAddr() uintptr { return i.address }

// Messages returns the number of warnings and errors that the validation layer has
// reported. Without validation it stays 0.
func (i *Instance) Messages() uint64 {
	i.drain()
	return i.heard.Load()
}

// Close destroys the instance, unless it is adopted. While devices are open it returns
// ErrBusy and does nothing. Closing again does nothing.
func (i *Instance) Close() error {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return nil
	}
	if i.open > 0 {
		i.mu.Unlock()
		return fmt.Errorf("%w: Instance.Close: %d devices are open", ErrBusy, i.open)
	}
	i.closed = true
	if !i.adopted {
		C.vko_instance_stop_messenger(i.c)
		vulkan.DestroyInstance(dispatchable[vulkan.Instance](uintptr(i.c.handle)), nil)
	}
	C.vko_instance_free(i.c)
	i.c = nil
	i.mu.Unlock()

	i.drain()
	i.mu.Lock()
	C.vko_messages_destroy(i.messages)
	i.messages = nil
	i.mu.Unlock()
	return nil
}

// retain counts a device that is being opened.
func (i *Instance) retain() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return fmt.Errorf("%w: the instance", ErrClosed)
	}
	i.open++
	return nil
}

func (i *Instance) release() {
	i.mu.Lock()
	i.open--
	i.mu.Unlock()
}
