//go:build cgo

package rawvulkan

// #cgo CFLAGS: -std=c11
// #cgo noescape raw_copy_in
// #cgo nocallback raw_copy_in
// #cgo noescape raw_copy_out
// #cgo nocallback raw_copy_out
// #include "raw.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/vk"
)

// stagingHalf is the size of half the staging memory, in bytes: large enough that a piece takes the
// device much longer than its submission.
const stagingHalf = 8 << 20

// Device is a VkDevice with one queue, and the commands that are recorded for it.
type Device struct {
	instance *vk.Instance
	device   *vk.Device
	queue    sync.Locker
	c        *C.raw
	kernels  []C.raw_kernel
	// What Close destroys.
	semaphore vk.Semaphore
	pipelines []vk.Pipeline
	buffers   map[vk.Buffer]vk.Block
	// local is the memory type of buffers; unified says that the host has their bytes. staging is
	// host memory of two halves, made when it is first needed.
	local, host int
	unified     bool
	staging     vk.Block
}

// Available returns an error in a program without cgo.
func Available() error { return nil }

// Open opens a device of its own. The error matches vk.ErrUnsupported if there is none with that
// UUID that can be used.
func Open(o Options) (_ *Device, err error) {
	d := &Device{buffers: map[vk.Buffer]vk.Block{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.instance, err = vk.Open(vk.InstanceOptions{ApplicationName: "rawvulkan", Validation: o.Validation, Logger: o.Logger}); err != nil {
		return nil, err
	}
	for _, p := range d.instance.PhysicalDevices() {
		if vk.UUIDString(p.Properties().UUID) == o.UUID && len(p.Missing()) == 0 {
			return d, d.open(p, o)
		}
	}
	return nil, fmt.Errorf("%w: no device with UUID %q", vk.ErrUnsupported, o.UUID)
}

func (d *Device) open(p *vk.PhysicalDevice, o Options) (err error) {
	d.device, err = p.Open(vk.DeviceOptions{ComputeQueues: 1, TransferQueues: -1, InteropQueues: -1, NoPushDescriptors: o.NoPushDescriptors})
	if err != nil {
		return err
	}
	if err := d.chooseMemory(); err != nil {
		return err
	}
	queue := d.device.Queues()[0]
	d.queue = queue.Locker()
	if d.semaphore, err = d.device.CreateTimeline(0); err != nil {
		return err
	}
	has := p.Properties()
	flag := func(set bool) C.uint32_t {
		if set {
			return 1
		}
		return 0
	}
	push := flag(has.Features.PushDescriptor && !o.NoPushDescriptors)
	synchronization2 := flag(has.Features.Synchronization2 && has.APIVersion >= 1<<22|3<<12 && !o.NoSynchronization2)
	var f C.raw_fault
	d.c = C.raw_open(C.uintptr_t(d.instance.GetInstanceProcAddr()), C.uintptr_t(d.instance.Handle()), C.uintptr_t(d.device.Handle()),
		C.uintptr_t(queue.Handle()), C.uint32_t(queue.Family()), C.vkoHandle(d.semaphore), push, synchronization2, &f)
	return fault(&f)
}

// chooseMemory finds the types of the memory of buffers and of staging memory.
func (d *Device) chooseMemory() error {
	types := d.device.Properties().MemoryTypes
	usable, err := d.device.BlockMemoryTypes(stagingHalf)
	if err != nil {
		return err
	}
	find := func(has, lacks vk.MemoryFlags) int {
		for k, t := range types {
			if usable>>k&1 != 0 && t.Flags&has == has && t.Flags&lacks == 0 {
				return k
			}
		}
		return -1
	}
	const visible = vk.MemoryHostVisible | vk.MemoryHostCoherent
	const special = vk.MemoryProtected | vk.MemoryLazy
	d.local, d.unified = find(vk.MemoryDeviceLocal|visible|vk.MemoryHostCached, special), true
	if d.local < 0 {
		d.unified = false
		if d.local = find(vk.MemoryDeviceLocal, vk.MemoryHostVisible|special); d.local < 0 {
			d.local = find(vk.MemoryDeviceLocal, special)
		}
	}
	if d.host = find(visible|vk.MemoryHostCached, special); d.host < 0 {
		d.host = find(visible, special)
	}
	if d.local < 0 || d.host < 0 {
		return fmt.Errorf("%w: no memory for storage buffers", vk.ErrUnsupported)
	}
	return nil
}

// Close destroys the device and everything that belongs to it.
func (d *Device) Close() error {
	if d.c != nil {
		C.raw_close(d.c)
		d.c = nil
	}
	var err error
	if d.device != nil {
		for _, p := range d.pipelines {
			d.device.DestroyPipeline(p)
		}
		for _, b := range d.buffers {
			d.device.DestroyBlock(b)
		}
		d.device.DestroySemaphore(d.semaphore)
		err = d.device.Close()
	}
	if d.instance != nil {
		err = errors.Join(err, d.instance.Close())
	}
	return err
}

// NewKernel makes a kernel of a module in SPIR-V whose entry point is main. It has that many buffers,
// at bindings 0, 1, …, and is pushed that many words.
func (d *Device) NewKernel(name string, code []byte, buffers, push int) (Kernel, error) {
	if buffers > MaxBuffers || push > MaxPush {
		return Kernel{}, fmt.Errorf("kernel %s has %d buffers and %d words, more than %d and %d", name, buffers, push, MaxBuffers, MaxPush)
	}
	o := vk.PipelineOptions{Code: make([]uint32, len(code)/4), Entry: "main", PushConstants: uint32(4 * push), Label: name}
	for i := range o.Code {
		o.Code[i] = binary.NativeEndian.Uint32(code[4*i:])
	}
	for b := range buffers {
		o.Bindings = append(o.Bindings, uint32(b))
	}
	p, err := d.device.CreatePipeline(o)
	if err != nil {
		return Kernel{}, err
	}
	d.pipelines = append(d.pipelines, p)
	d.kernels = append(d.kernels, C.raw_kernel{
		pipeline: C.vkoHandle(p.Handle), layout: C.vkoHandle(p.Layout), set_layout: C.vkoHandle(p.SetLayout),
		buffers: C.uint32_t(buffers), push_bytes: C.uint32_t(4 * push),
	})
	return Kernel{index: len(d.kernels) - 1, buffers: buffers, push: push}, nil
}

// NewBuffer makes a buffer of size bytes, a multiple of 4, which are all 0.
func (d *Device) NewBuffer(size int) (Buffer, error) {
	block, err := d.newBlock(size, d.local)
	if err != nil {
		return Buffer{}, err
	}
	b := Buffer{block: block, coherent: d.unified}
	if err := d.Fill(b, 0); err != nil {
		d.FreeBuffer(b)
		return Buffer{}, err
	}
	return b, nil
}

func (d *Device) newBlock(size, memoryType int) (vk.Block, error) {
	block, err := d.device.CreateBlock(uint64(size), memoryType)
	if err == nil {
		d.buffers[block.Buffer] = block
	}
	return block, err
}

// FreeBuffer destroys a buffer before Close does.
func (d *Device) FreeBuffer(b Buffer) {
	delete(d.buffers, b.block.Buffer)
	d.device.DestroyBlock(b.block)
}

// c describes a buffer to C.
func (b Buffer) c() C.raw_buffer {
	c := C.raw_buffer{buffer: C.vkoHandle(b.block.Buffer)}
	if b.coherent {
		c.host = b.block.Host
	}
	return c
}

// Copy copies all of a buffer to another one of the same size: a command, its submission and the wait
// for it.
func (d *Device) Copy(to, from Buffer) error {
	if to.Size() != from.Size() {
		return fmt.Errorf("copy of %d bytes to a buffer of %d", from.Size(), to.Size())
	}
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_copy(d.c, C.vkoHandle(from.block.Buffer), C.vkoHandle(to.block.Buffer), C.uint64_t(from.Size()), &f)
	return fault(&f)
}

// Fill sets all words of a buffer: a command, its submission and the wait for it.
func (d *Device) Fill(b Buffer, word uint32) error {
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_fill(d.c, C.vkoHandle(b.block.Buffer), C.uint64_t(b.Size()), C.uint32_t(word), &f)
	return fault(&f)
}

// CopyIn copies the host's bytes to the beginning of a buffer, so many times.
func (d *Device) CopyIn(to Buffer, from []byte, times int) error {
	staging, err := d.prepare(to, len(from))
	if err != nil {
		return err
	}
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_copy_in(d.c, to.c(), unsafe.Pointer(unsafe.SliceData(from)), C.uint64_t(len(from)), C.uint32_t(times), staging, stagingHalf, &f)
	return fault(&f)
}

// CopyOut copies the beginning of a buffer to the host's bytes, so many times.
func (d *Device) CopyOut(to []byte, from Buffer, times int) error {
	staging, err := d.prepare(from, len(to))
	if err != nil {
		return err
	}
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_copy_out(d.c, unsafe.Pointer(unsafe.SliceData(to)), from.c(), C.uint64_t(len(to)), C.uint32_t(times), staging, stagingHalf, &f)
	return fault(&f)
}

// prepare checks a copy between the host and a buffer, and returns the staging memory that it needs.
func (d *Device) prepare(b Buffer, bytes int) (C.raw_buffer, error) {
	if bytes > b.Size() {
		return C.raw_buffer{}, fmt.Errorf("copy of %d bytes to or from a buffer of %d", bytes, b.Size())
	}
	if b.coherent {
		return C.raw_buffer{}, nil
	}
	if d.staging.Size == 0 {
		var err error
		if d.staging, err = d.newBlock(2*stagingHalf, d.host); err != nil {
			return C.raw_buffer{}, err
		}
	}
	return C.raw_buffer{buffer: C.vkoHandle(d.staging.Buffer), host: d.staging.Host}, nil
}

// fault turns an error that C noted into a Go error.
func fault(f *C.raw_fault) error {
	if f.call == nil {
		return nil
	}
	return &vk.Error{Op: C.GoString(f.call), Result: vk.Result(f.result)}
}
