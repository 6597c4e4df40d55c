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
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// Device is an opened device with its queues.
type Device struct {
	physical *PhysicalDevice
	instance *Instance
	c        *C.vko_device
	handle   vulkan.Device
	queues   []*Queue
	interop  []*Queue

	// life is read-held by every call into the device but those of Queue, and
	// written by Close.
	life   sync.RWMutex
	closed bool // guarded by life

	// lost: some call that may wait or submit was answered with the device's loss.
	lost atomic.Bool

	sampling sync.Mutex // held by Calibrate; inside life

	mu         sync.Mutex // guards what follows; a leaf
	live       map[string]int
	blocks     map[Buffer]Block
	mapped     map[Memory]uint64 // bytes of the memory that is mapped
	pipelines  map[uint64]Pipeline
	queries    map[uint64]struct{}    // VkQueryPools
	semaphores map[Semaphore]struct{} // those that belong to no queue
	exportable map[any]bool           // each a Memory or a Semaphore
}

// Open makes a device with queues of all its families that compute or transfer,
// up to the numbers of the options and never more of a family than it has, and
// with all features of Properties.Features enabled. A physical device may be
// opened more than once. The error matches ErrUnsupported when something is
// missing.
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

func (p *PhysicalDevice) open(o DeviceOptions) (*Device, error) {
	queues, interop := planDevice(p.queueFamilies(), cmp.Or(o.ComputeQueues, defaultComputeQueues),
		cmp.Or(o.TransferQueues, defaultTransferQueues), cmp.Or(o.InteropQueues, defaultInteropQueues))
	return p.openQueues(queues, interop, o)
}

// openQueues makes a device with a queue for each of the families given, of which
// one may occur as often as it has queues.
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
	clear(counts)
	for _, family := range families {
		q, err := d.openQueue(uint32(family), int(counts[family]))
		counts[family]++
		if err != nil {
			for _, opened := range d.queues {
				opened.destroy()
			}
			d.destroy()
			return nil, err
		}
		d.queues = append(d.queues, q)
	}
	d.queues, d.interop = d.queues[:len(queues):len(queues)], d.queues[len(queues):]
	return d, nil
}

// destroy ends the VkDevice, unless it is adopted; nothing else is left of it.
func (d *Device) destroy() {
	if d.physical.adopted == nil {
		vulkan.DestroyDevice(d.handle, nil)
	}
	C.vko_device_free(d.c)
	d.c = nil
}

// Properties describes the device.
func (d *Device) Properties() *Properties { return &d.physical.properties }

// Handle is the VkDevice.
func (d *Device) Handle() uintptr { return address(d.handle) }

// Queues lists the device's queues: those that compute first, the main family's
// first of all, then those that only transfer. There is at least one, and the
// list stays as it is.
func (d *Device) Queues() []*Queue { return d.queues }

// InteropQueues lists the queues that others than the one who schedules the
// device's work have to themselves; see DeviceOptions.InteropQueues. They compute.
// Where a device has too few queues there is none.
func (d *Device) InteropQueues() []*Queue { return d.interop }

// allQueues lists Queues and InteropQueues.
func (d *Device) allQueues() []*Queue { return slices.Concat(d.queues, d.interop) }

// Trim gives back what the device keeps for work to come: the command buffers and
// descriptor pools that nothing in flight uses, and what the command pools hold beside
// them (vkTrimCommandPool). Work that comes makes them anew.
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

// Live counts the objects made for the caller and not destroyed yet, by their
// Vulkan type; it has no entry of 0.
func (d *Device) Live() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.live)
}

// Close waits until the device is idle and destroys it, with what the caller
// left: then it returns an error that names the left objects, and the device is
// closed all the same. Closing again does nothing. Of a device that is adopted Close
// destroys only what was made here, and waits for what was submitted here. The caller ends
// what waits for the device's queues and semaphores before: what Close destroys must not be
// in use.
func (d *Device) Close() error {
	d.life.Lock()
	if d.closed {
		d.life.Unlock()
		return nil
	}
	d.closed = true
	queues := d.allQueues()
	for _, q := range queues {
		q.mu.Lock() // submissions end, and none follows
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

// count adds to the number of live objects of a kind.
func (d *Device) count(kind string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[kind] += n; d.live[kind] == 0 {
		delete(d.live, kind)
	}
}

// enter begins a call into the device; the caller leaves with d.leave.
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

// answered notes the loss of the device where that is what a call returned, and returns
// the result.
func (d *Device) answered(r Result) Result {
	if r == ErrorDeviceLost {
		d.lost.Store(true)
	}
	return r
}

func (d *Device) leave() {
	d.life.RUnlock()
	d.instance.drain()
}
