// Package softdevice is a device for tests, made of Go memory, that carries out copies and fills
// as soon as they are submitted. It knows no kernels but the one that a test gives it, and keeps no order that a test could miss:
// the fake device of package sched, which does its work as late and in as strange an order as
// Vulkan allows, tests order. This one is for rooms below that package.
//
//	d := softdevice.New(t, softdevice.Incoherent)
//	queues := d.Queues()
//
// What the host and the device have of memory that is not coherent are two arrays. They exchange
// bytes at a flush or an invalidation alone, so that a missing one shows. Every other range takes
// along what lies beside it in its units, so that it shows as well if a range is too short, or if
// its units have bytes of others.
package softdevice

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Memory is the shape of a device's memory.
type Memory int

const (
	// Unified memory is local to the device, and coherent with the host.
	Unified Memory = iota
	// Discrete memory cannot be seen by the host, except for staging.
	Discrete
	// Incoherent memory needs flushes and invalidations, that of staging as well.
	Incoherent
	// Window memory is the device's own, and the host can map it and does not cache it. The host
	// may write it and flush what it has written. Whatever it reads is poison. Staging is apart,
	// as for Discrete.
	Window
)

// Unit is the size of the units in which incoherent memory is flushed, in bytes.
const Unit = 64

// Device is a device for tests. It is for one goroutine.
type Device struct {
	t testing.TB
	// Props are the properties of the device, which a test may change before it is used.
	Props vk.Properties
	// Refuse, if not nil, is the error of CreateBlock and ImportBlock.
	Refuse error
	// Budget is what MemoryBudget reports, nil for nothing.
	Budget []vk.HeapBudget
	// Live is the number of blocks that exist.
	Live int
	// Kernel, if not nil, does what a dispatch does with its buffers and push constants.
	Kernel func(buffers [][]byte, push []byte, groups uint32)

	blocks    map[vk.Buffer]*block
	handles   uint64
	completed uint64
	// exchanged counts the ranges that were flushed or invalidated, which goroutines with chunks of
	// their own do at the same time.
	exchanged atomic.Uint64
}

// block is memory as the device and, if it sees it, as the host has it.
type block struct {
	device, host []byte
	// window says that the host reads poison.
	window bool
}

// poison overwrites what the host has of memory that it does not cache.
func (b *block) poison(lo, hi uint64) {
	for i := range b.host[lo:hi] {
		b.host[lo+uint64(i)] = 0xDB
	}
}

// New returns a device with memory of that shape and one queue.
func New(t testing.TB, memory Memory) *Device {
	const mapped = vk.MemoryHostVisible | vk.MemoryHostCoherent
	d := &Device{t: t, blocks: make(map[vk.Buffer]*block), Props: vk.Properties{
		Name: "soft", Type: vk.DeviceIntegrated,
		Limits: vk.Limits{
			MaxStorageBufferRange:               1 << 27,
			MaxPerStageDescriptorStorageBuffers: 8,
			MinStorageBufferOffsetAlignment:     64,
			MaxPushConstantsSize:                128,
			MaxComputeWorkGroupSize:             [3]uint32{128, 128, 64},
			MaxComputeWorkGroupInvocations:      128,
			NonCoherentAtomSize:                 Unit,
			MaxMemoryAllocationCount:            4096,
			MaxMemoryAllocationSize:             1 << 30,
			MinImportedHostPointerAlignment:     4096,
		},
		Features:    vk.Features{RobustBufferAccess2: true, ExternalMemoryHost: true},
		MemoryHeaps: []vk.MemoryHeap{{Size: 1 << 33, DeviceLocal: true}, {Size: 1 << 33}},
	}}
	switch memory {
	case Unified:
		d.Props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal | mapped | vk.MemoryHostCached}}
	case Discrete:
		d.Props.Type = vk.DeviceDiscrete
		d.Props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal}, {Heap: 1, Flags: mapped | vk.MemoryHostCached}}
	case Incoherent:
		d.Props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryHostVisible | vk.MemoryHostCached}}
	case Window:
		d.Props.Type = vk.DeviceDiscrete
		d.Props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryHostVisible}, {Heap: 1, Flags: mapped | vk.MemoryHostCached}}
	}
	return d
}

// Queues returns the device's queue. It has no lock: one goroutine uses it.
func (d *Device) Queues() *order.Queues {
	o := new(order.Queues)
	o.Init(d, []order.QueueInfo{{Compute: true}}, noLock{}, nil, func(*order.Queue) {})
	return o
}

// Properties implements allocation.Device.
func (d *Device) Properties() *vk.Properties { return &d.Props }

// BlockMemoryTypes implements allocation.Device.
func (d *Device) BlockMemoryTypes(uint64) (uint32, error) {
	return 1<<len(d.Props.MemoryTypes) - 1, nil
}

// CreateBlock implements allocation.Device. New memory holds anything but zeros.
func (d *Device) CreateBlock(size uint64, memoryType int) (vk.Block, error) {
	if d.Refuse != nil {
		return vk.Block{}, d.Refuse
	}
	b := &block{device: make([]byte, size)}
	b.device[0] = 0xA5
	for n := 1; n < len(b.device); n *= 2 {
		copy(b.device[n:], b.device[:n])
	}
	made := d.add(b, size, memoryType)
	switch flags := d.Props.MemoryTypes[memoryType].Flags; {
	case flags&vk.MemoryHostVisible == 0:
		return made, nil
	case flags&vk.MemoryHostCoherent != 0:
		b.host = b.device
	default:
		b.host = make([]byte, size)
		if b.window = flags&vk.MemoryHostCached == 0; b.window {
			b.poison(0, size)
		}
	}
	made.Host = unsafe.Pointer(&b.host[0])
	return made, nil
}

// add gives a block its handles.
func (d *Device) add(b *block, size uint64, memoryType int) vk.Block {
	d.handles++
	d.Live++
	d.blocks[vk.Buffer(d.handles)] = b
	return vk.Block{Buffer: vk.Buffer(d.handles), Memory: vk.Memory(d.handles), Size: size, MemoryType: memoryType}
}

// ImportBlock implements allocation.Device. Host and device have the same bytes.
func (d *Device) ImportBlock(host uintptr, size uint64) (vk.Block, error) {
	if d.Refuse != nil {
		return vk.Block{}, d.Refuse
	}
	if align := d.Props.Limits.MinImportedHostPointerAlignment; uint64(host)%align != 0 || size%align != 0 || size == 0 {
		d.t.Errorf("import of %d bytes at %#x", size, host)
	}
	bytes := bytesAt(host, size)
	return d.add(&block{device: bytes, host: bytes}, size, len(d.Props.MemoryTypes)-1), nil
}

// bytesAt returns whole pages of the host, where more than one object of Go can lie.
//
//go:nocheckptr
func bytesAt(host uintptr, size uint64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&host)), size)
}

// DestroyBlock implements allocation.Device.
func (d *Device) DestroyBlock(b vk.Block) {
	if d.blocks[b.Buffer] == nil {
		d.t.Errorf("buffer %d is destroyed and does not exist", b.Buffer)
		return
	}
	delete(d.blocks, b.Buffer)
	d.Live--
}

// Flush implements allocation.Device.
func (d *Device) Flush(ranges []vk.MemoryRange) error {
	d.exchange(ranges, func(b *block) (to, from []byte) { return b.device, b.host })
	return nil
}

// Invalidate implements allocation.Device.
func (d *Device) Invalidate(ranges []vk.MemoryRange) error {
	d.exchange(ranges, func(b *block) (to, from []byte) { return b.host, b.device })
	return nil
}

// exchange copies ranges, and with every other one the whole units that it touches.
func (d *Device) exchange(ranges []vk.MemoryRange, sides func(*block) (to, from []byte)) {
	for _, r := range ranges {
		b := d.blocks[vk.Buffer(r.Memory)]
		if b == nil || b.host == nil || r.Size == 0 || r.Offset+r.Size > uint64(len(b.host)) {
			d.t.Errorf("flush or invalidation of %+v, which is in no block that the host sees", r)
			continue
		}
		lo, hi := r.Offset, r.Offset+r.Size
		if d.exchanged.Add(1)%2 == 0 {
			lo, hi = lo/Unit*Unit, min((hi+Unit-1)/Unit*Unit, uint64(len(b.host)))
		}
		to, from := sides(b)
		if !b.window || &to[0] == &b.device[0] {
			copy(to[lo:hi], from[lo:hi])
		}
		if b.window {
			b.poison(lo, hi)
		}
	}
}

// MemoryBudget implements allocation.Device.
func (d *Device) MemoryBudget() ([]vk.HeapBudget, bool) { return d.Budget, d.Budget != nil }

// Submit implements order.Device. It carries out the commands of the stream.
func (d *Device) Submit(_ int, s *vk.Stream, _ []timeline.Point, _ order.Foreign, signal uint64) error {
	for op := range s.Ops() {
		switch op.Code {
		case vk.OpBarrier:
		case vk.OpCopy:
			for _, r := range op.Regions {
				to, from := d.bytes(op.To, r.DstOffset, r.Size), d.bytes(op.From, r.SrcOffset, r.Size)
				copy(to, from)
			}
		case vk.OpFill:
			for i := range d.bytes(op.Dst.Buffer, op.Dst.Offset, op.Dst.Size) {
				d.blocks[op.Dst.Buffer].device[op.Dst.Offset+uint64(i)] = byte(op.Value >> (8 * (i % 4)))
			}
		case vk.OpDispatch:
			if d.Kernel == nil {
				return errors.New("softdevice: there is no kernel")
			}
			var buffers [][]byte
			for _, b := range op.Bindings {
				if b.Offset%d.Props.Limits.MinStorageBufferOffsetAlignment != 0 || b.Size > uint64(d.Props.Limits.MaxStorageBufferRange) {
					d.t.Errorf("a dispatch binds %d bytes at %d", b.Size, b.Offset)
				}
				buffers = append(buffers, d.bytes(b.Buffer, b.Offset, b.Size))
			}
			d.Kernel(buffers, op.Push, op.Count[0])
		default:
			return fmt.Errorf("softdevice: no operation %v", op.Code)
		}
	}
	d.completed = signal
	return nil
}

// bytes returns bytes of a buffer as the device has them, and reports a range that is in none.
func (d *Device) bytes(b vk.Buffer, offset, size uint64) []byte {
	if d.blocks[b] == nil || size == 0 || offset+size > uint64(len(d.blocks[b].device)) {
		d.t.Errorf("a command uses %d bytes at %d of buffer %d, which has them not", size, offset, b)
		return nil
	}
	return d.blocks[b].device[offset : offset+size]
}

// Completed implements order.Device.
func (d *Device) Completed(int) (uint64, error) { return d.completed, nil }

// Wait implements order.Device. All that was submitted is complete.
func (d *Device) Wait(_ int, value uint64, _ time.Duration) (bool, error) {
	if value > d.completed {
		d.t.Errorf("wait for value %d, and %d was submitted", value, d.completed)
	}
	return true, nil
}

// noLock is the lock of queues that one goroutine uses.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}
