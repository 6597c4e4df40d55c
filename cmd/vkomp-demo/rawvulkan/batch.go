//go:build cgo

package rawvulkan

// #cgo noescape raw_record
// #cgo nocallback raw_record
// #cgo noescape raw_run
// #cgo nocallback raw_run
// #cgo noescape raw_run_each
// #cgo nocallback raw_run_each
// #cgo noescape raw_prepare
// #cgo nocallback raw_prepare
// #cgo noescape raw_replay
// #cgo nocallback raw_replay
// #include "raw.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Batch is a list of launches as C reads it, which holds what a program of its own would have in
// variables. It belongs to its Device.
type Batch struct {
	d        *Device
	launches []C.raw_launch
}

// NewBatch prepares launches, of which there must be at least one.
func (d *Device) NewBatch(launches []Launch) (*Batch, error) {
	if len(launches) == 0 {
		return nil, errors.New("a batch without launches")
	}
	b := &Batch{d: d, launches: make([]C.raw_launch, len(launches))}
	for i, l := range launches {
		if len(l.Buffers) != l.Kernel.buffers || len(l.Push) != l.Kernel.push || l.Groups < 1 {
			return nil, fmt.Errorf("launch %d has %d buffers, %d words and %d workgroups; its kernel takes %d buffers and %d words",
				i, len(l.Buffers), len(l.Push), l.Groups, l.Kernel.buffers, l.Kernel.push)
		}
		c := &b.launches[i]
		c.kernel, c.groups = C.uint32_t(l.Kernel.index), C.uint32_t(l.Groups)
		if l.Barrier {
			c.barrier = 1
		}
		for k, word := range l.Push {
			c.push[k] = C.uint32_t(word)
		}
		for k, r := range l.Buffers {
			if r.Offset < 0 || r.Size < 1 || r.Offset+r.Size > r.Buffer.Size() {
				return nil, fmt.Errorf("launch %d, buffer %d: %d bytes at byte %d of %d", i, k, r.Size, r.Offset, r.Buffer.Size())
			}
			c.buffers[k].buffer, c.buffers[k].offset, c.buffers[k]._range = C.vkoHandle(r.Buffer.block.Buffer), C.uint64_t(r.Offset), C.uint64_t(r.Size)
		}
	}
	var f C.raw_fault
	C.raw_reserve(d.c, C.uint32_t(len(launches)), &f)
	return b, fault(&f)
}

// Record records the launches into a command buffer and submits nothing.
func (b *Batch) Record() error {
	d := b.d
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_record(d.c, unsafe.SliceData(d.kernels), unsafe.SliceData(b.launches), C.uint32_t(len(b.launches)), &f)
	return fault(&f)
}

// Run records the launches, submits them together and waits for them.
func (b *Batch) Run() error {
	d := b.d
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_run(d.c, unsafe.SliceData(d.kernels), unsafe.SliceData(b.launches), C.uint32_t(len(b.launches)), &f)
	return fault(&f)
}

// Prepare records the launches for any number of calls of Replay, between which the Device does nothing
// else.
func (b *Batch) Prepare() error {
	d := b.d
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_prepare(d.c, unsafe.SliceData(d.kernels), unsafe.SliceData(b.launches), C.uint32_t(len(b.launches)), &f)
	return fault(&f)
}

// Replay submits what Prepare has recorded, and waits for it.
func (b *Batch) Replay() error {
	b.d.queue.Lock()
	defer b.d.queue.Unlock()
	var f C.raw_fault
	C.raw_replay(b.d.c, &f)
	return fault(&f)
}

// RunEach records, submits and waits for each launch by itself.
func (b *Batch) RunEach() error {
	d := b.d
	d.queue.Lock()
	defer d.queue.Unlock()
	var f C.raw_fault
	C.raw_run_each(d.c, unsafe.SliceData(d.kernels), unsafe.SliceData(b.launches), C.uint32_t(len(b.launches)), &f)
	return fault(&f)
}
