package vkomp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe/tool"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/traits"
	"github.com/vkomp/vkomp/vk"
)

// InitialDeviceNumber is an alternative number of the initial device, valid wherever a
// device number is (omp_initial_device, OpenMP 5.2).
const InitialDeviceNumber = -1

// InvalidDeviceNumber is not the number of any device (omp_invalid_device, OpenMP 5.2):
// using it is ErrInvalidDevice.
const InvalidDeviceNumber = InitialDeviceNumber - 1

// Device is a handle for one device of a Runtime: numbers 0 to n-1 are Vulkan devices, n is
// the initial device, which is the host. In the device clause of a construct the zero Device stands
// for the default device. It is no device itself: methods of it that return an error return
// ErrInvalidDevice, except for Lost. [Runtime.DefaultDevice] returns the default device.
type Device struct {
	d *device
}

// Number returns the device's number, InvalidDeviceNumber for the zero Device.
func (d Device) Number() int {
	if d.d == nil {
		return InvalidDeviceNumber
	}
	return d.d.number
}

// IsInitial reports whether d is the initial device.
func (d Device) IsInitial() bool { return d.d != nil && d.d.physical == nil }

// Lost returns the error with which the device was lost, an ErrDeviceLost, and nil while
// the device can be used: before its first use, after a hard pause, and always on the
// initial device. A device can be lost while nobody waits for it; Lost reports it once the
// runtime has learned of it.
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
	Number int    `json:"number"` // device number
	Name   string `json:"name"`   // name given by the driver
	// Type is "discrete", "integrated", "virtual", "software", "other" or, for the
	// initial device, "initial".
	Type   string `json:"type"`
	UUID   string `json:"uuid,omitempty"`   // VkPhysicalDeviceIDProperties.deviceUUID
	Driver string `json:"driver,omitempty"` // name and version of the Vulkan driver
	Vulkan string `json:"vulkan,omitempty"` // version of Vulkan
	// Traits are the device's traits in the syntax of OMP_AVAILABLE_DEVICES and
	// OMP_DEFAULT_DEVICE, the UID last.
	Traits string `json:"traits"`
	// Default says that this is the initial task's default device.
	Default bool `json:"default"`
	// Memory is the size of the device-local memory in bytes.
	Memory uint64 `json:"memoryBytes,omitempty"`
	// MaxStorageBufferRange is the largest size of a kernel argument in bytes.
	MaxStorageBufferRange uint64 `json:"maxStorageBufferRange,omitempty"`
	PushDescriptors       bool   `json:"pushDescriptors"`        // VK_KHR_push_descriptor
	SubgroupSize          uint32 `json:"subgroupSize,omitempty"` // invocations of a subgroup
}

// Decision is a choice that the runtime makes for a device, from what the device is.
type Decision struct {
	Name   string `json:"name"`   // what is decided, such as "storage"
	Choice string `json:"choice"` // how
	Reason string `json:"reason"` // why
}

// Decisions returns how the runtime uses the device and why, in the order in which it decides,
// without opening the device. The texts are for people. The initial device and the zero Device
// have none.
func (d Device) Decisions() (decisions []Decision) {
	if d.d == nil || d.d.physical == nil {
		return nil
	}
	o := &d.d.rt.options
	queues, interop := d.d.physical.PlanQueues(o.queues())
	for _, made := range sched.Decisions(d.d.physical.Properties(), o.MemoryPath.scheduling(), queues, interop) {
		decisions = append(decisions, Decision(made))
	}
	return append(decisions, d.d.pipelineDecision())
}

// Info describes the device without opening it. It is empty for the zero Device.
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

// device is one device of a runtime. A Vulkan device is opened by its first use.
type device struct {
	rt     *Runtime
	number int
	// physical is nil for the initial device.
	physical *vk.PhysicalDevice
	// traits include the device's UID.
	traits traits.Device

	// life is held while the device is opened or closed, including the tool's
	// callbacks; it is taken before mu.
	life lockrank.Mutex[lockrank.DeviceLife]

	// live is scheduler while the device can be used, else nil.
	live atomic.Pointer[sched.Scheduler]

	// mu guards the fields below. It is not held during calls out of this package, so
	// that a tool may query the runtime in its callbacks.
	mu        lockrank.Mutex[lockrank.DeviceState]
	scheduler *sched.Scheduler
	vulkan    *vk.Device
	objects   *foreign.Device
	closed    bool
	// tool is the tool's device, nil if the device was opened without a tool.
	tool *tool.Device
	// generation is sched.Options.Generation for the next scheduler. past sums up the
	// statistics of earlier schedulers.
	generation uint32
	past       sched.Stats
}

// open returns the device's scheduler, opening the device if need be. The initial device has none.
func (d *device) open() (*sched.Scheduler, error) {
	if s := d.live.Load(); s != nil || d.physical == nil {
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
	opening := o.queues()
	opening.PipelineCache = d.readPipelines()
	vd, err := d.physical.Open(opening)
	if err != nil {
		return nil, fmt.Errorf("open device %d (%s): %w", d.number, p.Name, err)
	}
	var scheduled sched.Device = savedDevice{sched.FromVulkan(vd), d, vd, opening.PipelineCache}
	var observed *tool.Device
	if t := d.rt.tool.Load(); t != nil {
		observed = t.NewDevice(scheduled, d.number)
		scheduled = observed
	}
	scheduling := o.MemoryPath.scheduling()
	scheduling.Domain = tasks.Domain(d.number + 1)
	scheduling.LeakSites, scheduling.OwnBuffers = o.LeakSites, o.Robust
	if scheduling.Threads = d.rt.host.Pool().Places(); scheduling.Threads == runtime.GOMAXPROCS(0) {
		// That is the default. One processor is for the driver: two goroutines that copy on two
		// processors keep a software driver from making the copies of its device.
		scheduling.Threads--
	}
	scheduling.Placement, scheduling.Seed = d.rt.icvs.debug.placement, d.rt.icvs.debug.seed
	scheduling.Late, scheduling.General = d.rt.icvs.debug.late, d.rt.icvs.debug.general
	scheduling.Generation = d.generation
	scheduling.Numbers = construct.Numbers{Device: d.number, Host: d.rt.NumDevices()}
	scheduling.Recovery, scheduling.Lost, scheduling.Finish = d.recovery(), d.lost, d.finishInterop
	s, err := sched.New(scheduled, scheduling)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open device %d (%s): %w", d.number, p.Name, err), vd.Close())
	}
	d.rt.log.Info("device opened", "device", d.number, "name", p.Name)
	if observed != nil {
		observed.Initialize(s)
	}
	if len(d.rt.declared) > 0 {
		if err := d.rt.claim(s, "declare target", d.rt.declared); err != nil {
			return nil, errors.Join(fmt.Errorf("open device %d (%s): %w", d.number, p.Name, err), s.Close())
		}
		s.Declare(d.rt.declared)
	}
	d.repin(s)
	d.mu.Lock()
	d.scheduler, d.vulkan, d.tool = s, vd, observed
	d.live.Store(s)
	d.objects = foreign.NewDevice(d.interopOptionsLocked(s))
	if d.rt.state.Load() != stateOpen {
		// A task opens the device while the runtime is being closed, and Close may have withdrawn foreign work
		// before. There is none here yet, so this only has the device refuse it.
		_ = d.objects.Withdraw()
	}
	d.mu.Unlock()
	// After the device is known to be open: a kernel that is made meanwhile is compiled by
	// NewKernel or here. A tool hears of no pipeline before it has heard of the device.
	s.CompileOwn()
	for _, k := range d.rt.shaders() {
		s.CompileAhead(k)
	}
	return s, nil
}

// current returns the scheduler of a device in use, nil before its first use, and ErrClosed
// after its last.
func (d *device) current() (*sched.Scheduler, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	return d.scheduler, nil
}

// opened returns the scheduler of a device in use, else nil. A device that is being closed
// is still in use.
func (d *device) opened() *sched.Scheduler {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scheduler
}

// interop returns the maker of interop objects of an open device, else nil.
func (d *device) interop() *foreign.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects
}

// interopOptionsLocked returns the options for the interop objects of an open device. The caller
// holds d.mu.
func (d *device) interopOptionsLocked(s *sched.Scheduler) foreign.Options {
	o := foreign.Options{
		Number: d.number,
		Domain: tasks.Domain(d.number + 1),
		Handles: foreign.Handles{
			Instance:            d.rt.instance.Handle(),
			PhysicalDevice:      d.physical.Handle(),
			Device:              d.vulkan.Handle(),
			GetInstanceProcAddr: d.rt.instance.GetInstanceProcAddr(),
		},
		Timelines: interopTimelines{d.vulkan},
		Scheduler: s,
		Shared:    sharedQueue(d.vulkan.Queues()),
		Timeout:   d.rt.options.foreignTimeout(),
	}
	for _, q := range d.vulkan.InteropQueues() {
		o.Own = append(o.Own, q)
	}
	return o
}

// sharedQueue returns the queue of interop objects that have none of their own: one that draws if
// there is one, since foreign work may draw.
func sharedQueue(queues []*vk.Queue) *vk.Queue {
	if k := slices.IndexFunc(queues, (*vk.Queue).Draws); k >= 0 {
		return queues[k]
	}
	return queues[0]
}

func (d *device) close() error {
	d.life.Lock()
	defer d.life.Unlock()
	d.mu.Lock()
	d.closed = true
	d.live.Store(nil)
	s := d.scheduler
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	err := s.Close()
	if err != nil {
		err = fmt.Errorf("vkomp: device %d (%s): %w", d.number, d.physical.Properties().Name, err)
	}
	d.mu.Lock()
	d.scheduler, d.vulkan = nil, nil
	d.mu.Unlock()
	return err
}

// stats returns the device's statistics, summed over all times that it was open.
func (d *device) stats() sched.Stats {
	d.mu.Lock()
	s, past := d.scheduler, d.past
	d.mu.Unlock()
	if s == nil {
		return past
	}
	return past.Plus(s.Stats())
}

// pause frees what the device keeps for later work and, if the pause is a hard one,
// everything: its next use opens it again. Nothing else uses the device during the call.
func (d *device) pause(kind PauseKind) error {
	d.life.Lock()
	defer d.life.Unlock()
	s := d.opened()
	switch {
	case s == nil:
		return nil
	case kind == PauseSoft:
		return s.Relinquish()
	}
	past := d.stats()
	past.Storage, past.Staging = memory.AllocatorStats{}, memory.AllocatorStats{}
	generation, err := s.Discard()
	if events := d.rt.events.Load(); events != nil {
		events.Discarded(d.number)
		events.Declared([]int{d.number}, d.rt.declared)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live.Store(nil)
	d.scheduler, d.vulkan, d.objects = nil, nil, nil
	d.generation, d.past = generation, past
	return err
}

// endTool reports the end of the device to the tool, if the device is open. The device goes
// on without the tool.
func (d *device) endTool() {
	d.life.Lock()
	defer d.life.Unlock()
	d.mu.Lock()
	s, tool := d.scheduler, d.tool
	d.mu.Unlock()
	if s != nil && tool != nil {
		tool.Finalize()
	}
}

// busy returns ErrBusy if something prevents a hard pause of the device together with others. It waits for
// submissions of the runtime itself.
func (d *device) busy(ctx context.Context, pausing []*device) error {
	if d.physical == nil {
		return d.rt.hostMemory.busy(pausing)
	}
	s, objects := d.opened(), d.interop()
	if s == nil || objects == nil {
		return nil
	}
	if err := s.Idle(); err != nil {
		return fmt.Errorf("device %d: %w", d.number, err)
	}
	if err := d.driverPinned(); err != nil {
		return err
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

// stopCompiling ends the compilation of kernels that no construct has used, for a hard pause. It
// waits for those under way until ctx ends; the error is then an ErrBusy. resumeCompiling undoes it.
func (d *device) stopCompiling(ctx context.Context) error {
	s := d.opened()
	if s == nil {
		return nil
	}
	if err := s.StopCompiling(ctx); err != nil {
		return fmt.Errorf("device %d: %w", d.number, err)
	}
	return nil
}

// resumeCompiling lets the device, if it is open, compile kernels again that no construct has used.
func (d *device) resumeCompiling() {
	if s := d.opened(); s != nil {
		s.ResumeCompiling()
	}
}

// interopTimelines makes exportable semaphores if the device supports them.
type interopTimelines struct{ *vk.Device }

// CreateTimeline implements foreign.Timelines.
func (d interopTimelines) CreateTimeline(initial uint64) (vk.Semaphore, error) {
	if initial == 0 && d.Properties().Features.ExternalTimelineFd {
		return d.CreateExportableSemaphore(vk.TimelineSemaphore)
	}
	return d.Device.CreateTimeline(initial)
}

// recovery returns how a lost device can be used again.
func (d *device) recovery() string {
	if d.rt.options.Adopt != nil {
		return "the VkDevice is the application's, which is to make another and open a runtime with that"
	}
	return "PauseResource with PauseHard brings the device back"
}

// lost logs that the device is lost, and ends the waits for foreign work.
func (d *device) lost(err error) {
	d.rt.log.Error("device lost", "device", d.number, "name", d.physical.Properties().Name, "reason", err)
	if objects := d.interop(); objects != nil {
		objects.Lose()
	}
}

// finishInterop ends the foreign work for which the device waits, which can use objects until then. It makes
// them stale before their semaphores are destroyed: objects that were destroyed still refer to them.
func (d *device) finishInterop() {
	if objects := d.interop(); objects != nil {
		objects.Finish()
		objects.Close()
	}
}
