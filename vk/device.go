//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Device is an opened device with its queues.
type Device struct {
	physical *PhysicalDevice
	instance *Instance
	c        *C.vko_device
	handle   vulkan.Device
	queues   []*Queue
	interop  []*Queue

	// life is held for reading by every call that uses the device, except those of
	// Queue, and for writing by Close.
	life   lockrank.RWMutex[lockrank.VulkanDevice]
	closed bool // guarded by life

	// lost says that some call which may wait or submit returned VK_ERROR_DEVICE_LOST.
	lost atomic.Bool

	sampling lockrank.Mutex[lockrank.VulkanSampling] // held by Calibrate

	mu         lockrank.Mutex[lockrank.Leaf] // guards the fields below
	live       map[string]int
	blocks     map[Buffer]Block
	mapped     map[Memory]uint64 // sizes of the mapped allocations, in bytes
	pipelines  map[uint64]Pipeline
	caches     pipelineCaches
	mergings   mergings
	queries    map[uint64]struct{}    // VkQueryPools
	semaphores map[Semaphore]struct{} // without the queues' timelines
	exportable map[any]bool           // keyed by Memory or Semaphore
}

// Open creates a device. It has queues of all families that support compute or
// transfers, up to the numbers in the options and the numbers of the families, and all
// features in Properties.Features are enabled. A physical device may be opened several
// times. The error matches ErrUnsupported if something is missing.
func (p *PhysicalDevice) Open(o DeviceOptions) (*Device, error) {
	if len(p.missing) > 0 {
		return nil, fmt.Errorf("%w: device %q lacks %s", ErrUnsupported, p.properties.Name,
			strings.Join(p.missing, ", "))
	}
	if o.ComputeQueues < 0 {
		return nil, invalid("PhysicalDevice.Open", "%d compute queues", o.ComputeQueues)
	}
	if err := p.instance.retain(); err != nil {
		return nil, err
	}
	d, err := p.open(o)
	p.instance.drain()
	if err != nil {
		p.instance.release()
		return nil, err
	}
	return d, nil
}

// PlanQueues returns the families of the queues that a device opened with these options has, in the
// order of Device.Queues and Device.InteropQueues.
func (p *PhysicalDevice) PlanQueues(o DeviceOptions) (queues, interop []int) {
	return planDevice(p.queueFamilies(), o.ComputeQueues,
		cmp.Or(o.TransferQueues, defaultTransferQueues), cmp.Or(o.InteropQueues, defaultInteropQueues))
}

func (p *PhysicalDevice) open(o DeviceOptions) (*Device, error) {
	queues, interop := p.PlanQueues(o)
	return p.openQueues(queues, interop, o)
}

// openQueues creates a device with one queue for each entry of queues and interop,
// which are queue families and may repeat up to the family's number of queues.
func (p *PhysicalDevice) openQueues(queues, interop []int, o DeviceOptions) (*Device, error) {
	enable := p.c
	if o.NoPushDescriptors || !p.properties.Features.PushDescriptor {
		enable.extensions &^= C.VKO_EXT_PUSH_DESCRIPTOR
	}
	limits := C.vko_limits{
		storage_offset_alignment: C.uint64_t(max(1, p.properties.Limits.MinStorageBufferOffsetAlignment)),
		storage_range:            C.uint64_t(p.properties.Limits.MaxStorageBufferRange),
	}
	for k, n := range p.properties.Limits.MaxComputeWorkGroupCount {
		limits.group_count[k] = C.uint32_t(n)
	}
	families := slices.Concat(queues, interop)
	counts := make([]C.uint32_t, p.c.family_count)
	for _, family := range families {
		counts[family]++
	}
	d := &Device{
		physical:   p,
		instance:   p.instance,
		live:       map[string]int{},
		blocks:     map[Buffer]Block{},
		mapped:     map[Memory]uint64{},
		pipelines:  map[uint64]Pipeline{},
		queries:    map[uint64]struct{}{},
		semaphores: map[Semaphore]struct{}{},
		exportable: map[any]bool{},
	}
	var f C.vko_fault
	var failed C.int32_t
	if a := p.adopted; a != nil {
		// Also those of queues that stay the application's alone: it uses the memory on them.
		for _, q := range a.Queues {
			counts[q.Family]++
		}
		for _, family := range a.Families {
			counts[family]++
		}
		failed = C.vko_device_adopt(p.instance.c, C.uintptr_t(a.Device), &enable, unsafe.SliceData(counts),
			&limits, &d.c, &f)
	} else {
		failed = C.vko_device_create(p.instance.c, C.uintptr_t(p.handle), &enable, unsafe.SliceData(counts),
			&limits, &d.c, &f)
	}
	if failed != 0 {
		return nil, faultError("PhysicalDevice.Open", &f)
	}
	d.handle = dispatchable[vulkan.Device](uintptr(d.c.handle))
	// An application lends its queues in an order of its own.
	before := p.adopted == nil && interopFirst(p.properties.QueueFamilies, queues, interop)
	if err := d.openOwn(families, queueIndices(queues, interop, before), o.PipelineCache); err != nil {
		d.destroy()
		return nil, err
	}
	d.queues, d.interop = d.queues[:len(queues):len(queues)], d.queues[len(queues):]
	return d, nil
}

// openOwn opens a queue for each entry of families, with its index in the family, and the pipeline
// cache. After an error the queues are gone.
func (d *Device) openOwn(families, indices []int, cache []byte) (err error) {
	for k, family := range families {
		var q *Queue
		if q, err = d.openQueue(uint32(family), indices[k]); err != nil {
			break
		}
		d.queues = append(d.queues, q)
	}
	if err == nil {
		d.caches.first, d.caches.slack = cache, cacheSlack
		d.caches.current, err = d.openPipelineCache(cache)
	}
	if err != nil {
		for _, opened := range d.queues {
			opened.destroy()
		}
	}
	return err
}

// destroy destroys the pipeline cache, and the VkDevice unless it is adopted. Its other objects must
// be gone.
func (d *Device) destroy() {
	d.destroyPipelineCache(d.caches.current)
	if d.physical.adopted == nil {
		vulkan.DestroyDevice(d.handle, nil)
	}
	C.vko_device_free(d.c)
	d.c = nil
}

// Properties returns the description of the device.
func (d *Device) Properties() *Properties { return &d.physical.properties }

// Handle returns the VkDevice.
func (d *Device) Handle() uintptr { return address(d.handle) }

// Queues returns the device's queues: first the compute queues, beginning with those of
// families that do not draw, then those that support only transfers. There is at least one
// compute queue, and the list never changes.
func (d *Device) Queues() []*Queue { return d.queues }

// InteropQueues returns queues that the scheduler does not use, for work of others; see
// DeviceOptions.InteropQueues. They support compute. There are none if the device has
// too few queues.
func (d *Device) InteropQueues() []*Queue { return d.interop }

// allQueues returns Queues and InteropQueues.
func (d *Device) allQueues() []*Queue { return slices.Concat(d.queues, d.interop) }

// Trim frees what the device keeps for reuse: the command buffers and descriptor pools
// that no submission in flight uses, and the spare memory of the command pools
// (vkTrimCommandPool). Later submissions allocate anew.
func (d *Device) Trim() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	var errs []error
	for _, q := range d.allQueues() {
		errs = append(errs, q.trim())
	}
	return errors.Join(errs...)
}

// Live returns the number of objects that callers created and did not destroy, by
// Vulkan type, without types of which there are none.
func (d *Device) Live() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.live)
}

// Close waits until the device is idle and destroys it together with objects that the
// caller did not destroy. If there were any, it returns an error that names them; the
// device is closed nevertheless. Closing again does nothing. Of an adopted device Close
// destroys only objects made through this package, and waits only for submissions made
// through it. Before Close the caller must end all waits for semaphores of the device and
// the queues, because objects must not be destroyed while in use.
func (d *Device) Close() error {
	d.life.Lock()
	if d.closed {
		d.life.Unlock()
		return nil
	}
	d.closed = true
	queues := d.allQueues()
	for _, q := range queues {
		q.mu.Lock() // submissions end, and none can follow
	}
	for _, q := range queues {
		for try := 0; ; try++ {
			if r := q.finish(); r == Success || r == ErrorDeviceLost {
				break
			}
			time.Sleep(backoff(try))
		}
	}
	left := d.describeLive()
	for _, b := range d.blocks {
		d.destroyBlock(b)
	}
	for _, p := range d.pipelines {
		d.destroyPipeline(p)
	}
	for p := range d.queries {
		d.destroyQueryPool(p)
	}
	for s := range d.semaphores {
		d.destroySemaphore(s)
	}
	for _, q := range queues {
		q.destroy()
		q.mu.Unlock()
	}
	d.destroy()
	d.life.Unlock()
	d.instance.drain()
	d.instance.release()
	if left != "" {
		return fmt.Errorf("%w: Device.Close: not destroyed before: %s", ErrBusy, left)
	}
	return nil
}

func (d *Device) describeLive() string {
	live := d.Live()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(live)) {
		parts = append(parts, fmt.Sprintf("%d %s", live[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// count adds n to the number of live objects of a type.
func (d *Device) count(kind string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[kind] += n; d.live[kind] == 0 {
		delete(d.live, kind)
	}
}

// enter begins a call that uses the device; d.leave ends it.
func (d *Device) enter() error {
	d.life.RLock()
	if d.closed {
		d.life.RUnlock()
		return d.errClosed()
	}
	return nil
}

func (d *Device) errClosed() error {
	return fmt.Errorf("%w: device %q", ErrClosed, d.physical.properties.Name)
}

// noteLoss records whether the result of a call is the loss of the device, and returns
// the result.
func (d *Device) noteLoss(r Result) Result {
	if r == ErrorDeviceLost {
		d.lost.Store(true)
	}
	return r
}

func (d *Device) leave() {
	d.life.RUnlock()
	d.instance.drain()
}
