package vkomp

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// InitialDeviceNumber is another number for the initial device anywhere a
// device number goes (omp_initial_device, OpenMP 5.2).
const InitialDeviceNumber = -1

// Device is a handle for one device of a Runtime: 0..n-1 are Vulkan devices, n
// is the initial device, that is the host. The zero Device stands for the
// default device.
type Device struct {
	d *device
}

// Number returns the device's number. That of the zero Device is
// InitialDeviceNumber-1, which is no device's.
func (d Device) Number() int {
	if d.d == nil {
		return InitialDeviceNumber - 1
	}
	return d.d.number
}

// IsInitial reports whether d is the initial device.
func (d Device) IsInitial() bool { return d.d != nil && d.d.physical == nil }

// DeviceInfo describes a device.
type DeviceInfo struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Type is "discrete", "integrated", "virtual", "software", "other" or, for
	// the initial device, "initial".
	Type    string `json:"type"`
	UUID    string `json:"uuid,omitempty"`
	Driver  string `json:"driver,omitempty"`
	Vulkan  string `json:"vulkan,omitempty"`
	Default bool   `json:"default"`
	// Memory is the device-local memory in bytes.
	Memory uint64 `json:"memoryBytes,omitempty"`
	// MaxStorageBufferRange bounds one kernel argument, in bytes.
	MaxStorageBufferRange uint64 `json:"maxStorageBufferRange,omitempty"`
	PushDescriptors       bool   `json:"pushDescriptors"`
	SubgroupSize          uint32 `json:"subgroupSize,omitempty"`
}

// Info describes the device; it does not open it. That of the zero Device is
// empty.
func (d Device) Info() DeviceInfo {
	if d.d == nil {
		return DeviceInfo{}
	}
	info := DeviceInfo{
		Number:  d.d.number,
		Name:    "host",
		Type:    "initial",
		Default: d.d.rt.DefaultDevice() == d,
	}
	if d.d.physical == nil {
		return info
	}
	p := d.d.physical.Properties()
	info.Name, info.Type = p.Name, p.Type.String()
	info.UUID = vk.UUIDString(p.UUID)
	info.Driver = strings.TrimSpace(p.DriverName + " " + p.DriverInfo)
	info.Vulkan = vk.Version(p.APIVersion)
	for _, h := range p.MemoryHeaps {
		if h.DeviceLocal {
			info.Memory += h.Size
		}
	}
	info.MaxStorageBufferRange = uint64(p.Limits.MaxStorageBufferRange)
	info.PushDescriptors = p.Features.PushDescriptor
	info.SubgroupSize = p.Features.SubgroupSize
	return info
}

// device is one device of a runtime. A Vulkan device is opened when it is first
// used.
type device struct {
	rt     *Runtime
	number int
	// physical is nil for the initial device.
	physical *vk.PhysicalDevice

	mu        sync.Mutex
	scheduler *sched.Scheduler
	closed    bool
}

// open returns the device's scheduler, opening the device if need be.
func (d *device) open() (*sched.Scheduler, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.scheduler != nil {
		return d.scheduler, nil
	}
	o := &d.rt.options
	vd, err := d.physical.Open(vk.DeviceOptions{NoPushDescriptors: o.NoPushDescriptors})
	if err != nil {
		return nil, fmt.Errorf("open device %d (%s): %w", d.number, d.physical.Properties().Name, err)
	}
	s, err := sched.New(sched.FromVulkan(vd), sched.Options{
		Domain:          tasks.Domain(d.number + 1),
		HideHostVisible: o.Staging,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open device %d (%s): %w", d.number, d.physical.Properties().Name, err), vd.Close())
	}
	d.scheduler = s
	d.rt.log.Info("device opened", "device", d.number, "name", d.physical.Properties().Name)
	return s, nil
}

// opened returns the scheduler of a device in use, else nil.
func (d *device) opened() *sched.Scheduler {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scheduler
}

func (d *device) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.scheduler == nil {
		return nil
	}
	err := d.scheduler.Close()
	d.scheduler = nil
	return err
}
