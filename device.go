package vkomp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/traits"
	"github.com/vkomp/vkomp/vk"
)

// InitialDeviceNumber is another number for the initial device anywhere a
// device number goes (omp_initial_device, OpenMP 5.2).
const InitialDeviceNumber = -1

// InvalidDeviceNumber is no device's number (omp_invalid_device, OpenMP 5.2): using it
// is ErrInvalidDevice.
const InvalidDeviceNumber = InitialDeviceNumber - 1

// Device is a handle for one device of a Runtime: 0..n-1 are Vulkan devices, n
// is the initial device, that is the host. The zero Device stands for the
// default device.
type Device struct {
	d *device
}

// Number returns the device's number. That of the zero Device is
// InvalidDeviceNumber.
func (d Device) Number() int {
	if d.d == nil {
		return InvalidDeviceNumber
	}
	return d.d.number
}

// IsInitial reports whether d is the initial device.
func (d Device) IsInitial() bool { return d.d != nil && d.d.physical == nil }

// Lost returns the error that told of the device's loss, an ErrDeviceLost, and nil while
// the device can be used: before its first use, after a hard pause, and on the initial
// device always. A device can be lost while nobody waits for it: it is so from the
// moment on at which the runtime learns of it.
func (d Device) Lost() error {
	if d.d == nil {
		return nil
	}
	if s := d.d.opened(); s != nil {
		if err := s.Lost(); err != nil {
			return fmt.Errorf("vkomp: device %d: %w", d.d.number, err)
		}
	}
	return nil
}

// DeviceInfo describes a device.
type DeviceInfo struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Type is "discrete", "integrated", "virtual", "software", "other" or, for
	// the initial device, "initial".
	Type   string `json:"type"`
	UUID   string `json:"uuid,omitempty"`
	Driver string `json:"driver,omitempty"`
	Vulkan string `json:"vulkan,omitempty"`
	// Traits are what OMP_AVAILABLE_DEVICES and OMP_DEFAULT_DEVICE can know the device
	// by, as they are written there, the UID last.
	Traits string `json:"traits"`
	// Default: it is the initial task's default device.
	Default bool `json:"default"`
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
		Traits:  d.d.traits.String(),
		Default: d.d.rt.initial.device() == d,
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
	// traits has the device's UID.
	traits traits.Device

	// life is held while the device is opened or closed, the tool's callbacks
	// included; it is taken before mu.
	life sync.Mutex

	// live is scheduler while the device can be used.
	live atomic.Pointer[sched.Scheduler]

	// mu guards what follows. It is held across no call that leaves this
	// package, so that a tool may ask the runtime what it likes.
	mu        sync.Mutex
	scheduler *sched.Scheduler
	vulkan    *vk.Device
	objects   *interop.Device
	closed    bool
	// tool is what the device was opened with, nil without one.
	tool *toolDevice
	// generation is sched.Options.Generation for the next scheduler, past what those
	// before did.
	generation uint32
	past       sched.Stats
}

// open returns the device's scheduler, opening the device if need be.
func (d *device) open() (*sched.Scheduler, error) {
	if s := d.live.Load(); s != nil {
		return s, nil
	}
	if s, err := d.current(); s != nil || err != nil {
		return s, err
	}
	d.life.Lock()
	defer d.life.Unlock()
	if s, err := d.current(); s != nil || err != nil {
		return s, err
	}
	o := &d.rt.options
	p := d.physical.Properties()
	vd, err := d.physical.Open(o.queues())
	if err != nil {
		return nil, fmt.Errorf("open device %d (%s): %w", d.number, p.Name, err)
	}
	var scheduled sched.Device = interopDevice{sched.FromVulkan(vd), d}
	var observed *toolDevice
	if t := d.rt.tool.Load(); t != nil {
		observed = &toolDevice{Device: scheduled, tool: t, number: d.number, modules: make(map[vk.Pipeline]uint64)}
		scheduled = observed
	}
	scheduling := o.MemoryPath.scheduling()
	scheduling.Domain = tasks.Domain(d.number + 1)
	scheduling.LeakSites, scheduling.OwnBuffers = o.LeakSites, o.Robust
	scheduling.Placement, scheduling.Seed = sched.Placement(o.Placement), o.PlacementSeed
	scheduling.Generation = d.generation
	scheduling.Numbers = construct.Numbers{Device: d.number, Host: d.rt.NumDevices()}
	scheduling.Regain, scheduling.Lost, scheduling.Over = d.regain(), d.lost, d.finishInterop
	s, err := sched.New(scheduled, scheduling)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open device %d (%s): %w", d.number, p.Name, err), vd.Close())
	}
	d.rt.log.Info("device opened", "device", d.number, "name", p.Name)
	if observed != nil {
		observed.initialize(s)
	}
	if err := d.declare(s, "declare target", d.rt.declared); err != nil {
		return nil, errors.Join(fmt.Errorf("open device %d (%s): %w", d.number, p.Name, err), s.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scheduler, d.vulkan, d.tool = s, vd, observed
	d.live.Store(s)
	d.objects = interop.NewDevice(d.interopOptions(s))
	return s, nil
}

// current returns the scheduler of a device in use, nil before its first use,
// and ErrClosed after its last.
func (d *device) current() (*sched.Scheduler, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	return d.scheduler, nil
}

// opened returns the scheduler of a device in use, else nil. While the device
// is closed it still is in use.
func (d *device) opened() *sched.Scheduler {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scheduler
}

// interop returns what makes the interop objects of a device that was opened,
// else nil.
func (d *device) interop() *interop.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects
}

// interopOptions say what the interop objects of an open device are made of; d.mu is
// held.
func (d *device) interopOptions(s *sched.Scheduler) interop.Options {
	o := interop.Options{
		Number: d.number,
		Domain: tasks.Domain(d.number + 1),
		Handles: interop.Handles{
			Instance:            d.rt.instance.Handle(),
			PhysicalDevice:      d.physical.Handle(),
			Device:              d.vulkan.Handle(),
			GetInstanceProcAddr: d.rt.instance.GetInstanceProcAddr(),
		},
		Timelines: interopTimelines{d.vulkan},
		Scheduler: s,
		Shared:    d.vulkan.Queues()[0],
		Timeout:   d.rt.options.foreignTimeout(),
	}
	for _, q := range d.vulkan.InteropQueues() {
		o.Own = append(o.Own, q)
	}
	return o
}

func (d *device) close() error {
	d.life.Lock()
	defer d.life.Unlock()
	d.mu.Lock()
	d.closed = true
	d.live.Store(nil)
	s, objects := d.scheduler, d.objects
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	objects.Close()
	err := s.Close()
	if err != nil {
		err = fmt.Errorf("vkomp: device %d (%s): %w", d.number, d.physical.Properties().Name, err)
	}
	d.mu.Lock()
	d.scheduler, d.vulkan = nil, nil
	d.mu.Unlock()
	return err
}

// stats returns the device's totals, of all the times that it was open.
func (d *device) stats() sched.Stats {
	d.mu.Lock()
	s, past := d.scheduler, d.past
	d.mu.Unlock()
	if s == nil {
		return past
	}
	return past.Plus(s.Stats())
}

// pause gives back what the device has for work to come, and, if the pause is a hard one,
// all that it has: its next use opens it again. Nothing else uses the device meanwhile.
func (d *device) pause(kind PauseKind) error {
	d.life.Lock()
	defer d.life.Unlock()
	d.mu.Lock()
	s, objects := d.scheduler, d.objects
	d.mu.Unlock()
	switch {
	case s == nil:
		return nil
	case kind == PauseSoft:
		return s.Relinquish()
	}
	past := d.stats()
	past.Storage, past.Staging = memory.AllocatorStats{}, memory.AllocatorStats{}
	// Before the semaphores go: objects that were destroyed have them still.
	objects.Close()
	generation, err := s.Discard()
	d.rt.race.forget(d, d.rt.declared)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live.Store(nil)
	d.scheduler, d.vulkan, d.objects = nil, nil, nil
	d.generation, d.past = generation, past
	return err
}

// endTool tells the tool of the device's end, if it is open. It goes on without the tool.
func (d *device) endTool() {
	d.life.Lock()
	defer d.life.Unlock()
	d.mu.Lock()
	s, tool := d.scheduler, d.tool
	d.mu.Unlock()
	if s != nil && tool != nil {
		tool.finalize()
	}
}

// busy is ErrBusy where something keeps the device from a hard pause. What the runtime has
// submitted itself is waited for.
func (d *device) busy(ctx context.Context) error {
	s, objects := d.opened(), d.interop()
	if s == nil || objects == nil {
		return nil
	}
	if err := s.Idle(); err != nil {
		return fmt.Errorf("device %d: %w", d.number, err)
	}
	if n := objects.Alive(); n > 0 {
		return fmt.Errorf("%w: device %d has %d interop objects that are not destroyed", ErrBusy, d.number, n)
	}
	objects.Settle(ctx)
	if awaited := objects.Awaits(); len(awaited) > 0 {
		return fmt.Errorf("%w: %s", ErrBusy, strings.Join(awaited, "; "))
	}
	return nil
}

// interopTimelines makes semaphores that can be exported, where the device has such.
type interopTimelines struct{ *vk.Device }

// CreateTimeline implements interop.Timelines.
func (d interopTimelines) CreateTimeline(initial uint64) (vk.Semaphore, error) {
	if initial == 0 && d.Properties().Features.ExternalTimelineFd {
		return d.CreateExportableSemaphore(vk.TimelineSemaphore)
	}
	return d.Device.CreateTimeline(initial)
}

// regain says how a device that is lost can be used again.
func (d *device) regain() string {
	if d.rt.options.Adopt != nil {
		return "the VkDevice is the application's, which is to make another and open a runtime with that"
	}
	return "PauseResource with PauseHard brings the device back"
}

// lost says in the log that the device is lost, and ends the waits for foreign work.
func (d *device) lost(err error) {
	d.rt.log.Error("device lost", "device", d.number, "name", d.physical.Properties().Name, "reason", err)
	if objects := d.interop(); objects != nil {
		objects.Lose()
	}
}

// finishInterop ends what foreign work keeps the device from coming to rest.
func (d *device) finishInterop() {
	if objects := d.interop(); objects != nil {
		objects.Finish()
	}
}

// interopDevice has the interop objects' semaphores given back when nothing uses them
// any more.
type interopDevice struct {
	sched.Device
	d *device
}

// Close implements sched.Device.
func (d interopDevice) Close() error {
	var err error
	if objects := d.d.interop(); objects != nil {
		err = objects.Free()
	}
	return errors.Join(err, d.Device.Close())
}
