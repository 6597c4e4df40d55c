package sched

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/pipeline"
	"github.com/vkomp/vkomp/vk"
)

// Buffer is the storage that is bound to a kernel's binding.
type Buffer struct {
	// Map is the index of an item of Region.Enter, or -1 for the memory at Pointer.
	Map int
	// Pointer is the start of the memory if Map is -1.
	Pointer Pointer
	// Size is the number of bytes at Pointer.
	Size uint64
	// ToEnd binds everything from the item's or the pointer's first byte to the end
	// of the storage, as far as the device can bind.
	ToEnd bool
}

// Address is a value argument that is replaced with the device address of an item's corresponding
// storage when the task runs, or with its host address if it has none.
type Address struct {
	// Value is the index among Region.Values of a value of 8 bytes.
	Value int
	// Map is the index of an item of Region.Enter.
	Map int
}

// dispatch has what the dispatches of a task's kernel need.
type dispatch struct {
	// buffers has room for Region.Buffers, which is nil if those are the items. It is not nil.
	buffers []Buffer
	// kernel has the pipelines of Region.Kernel, and is released by release. pipeline is the one that
	// is dispatched, and compilation, if not nil, makes it.
	kernel      *pipeline.Kernel
	compilation *pipeline.Compilation
	pipeline    vk.Pipeline
	plan        kernel.Plan
	push        []byte
	// compound, if not nil, has the launches of a compound task, which has no Region.Kernel, and
	// kernels their pipelines, which are released by release.
	compound *Compound
	// items are those of a compound task, whose maps are its Enter.
	items   *compoundItems
	kernels []*pipeline.Kernel
	// recorded are the recorded commands that the task's batch executes, or nil. They are released by
	// release.
	recorded *recordedCommands

	// All below is guarded by Scheduler.mu.

	// ranges are the descriptors of the bindings that the kernel uses.
	ranges []vk.BufferRange
	// arguments are the allocations that the kernel uses: first those that are bound, then those
	// that it reaches by their address.
	arguments []argument
	// targets has for each of Region.Buffers the memory to which its pointer points, or that of
	// Compound.memory, and pointed the memory to which Region.Pointers point.
	targets []argument
	pointed []*allocation.Allocation
}

func (d *dispatch) reset() {
	d.compilation, d.pipeline, d.compound, d.items = nil, vk.Pipeline{}, nil, nil
	d.plan.Calls, d.plan.Fold = d.plan.Calls[:0], 0
	d.push, d.ranges = d.push[:0], d.ranges[:0]
	empty(&d.buffers)
	empty(&d.arguments)
	empty(&d.targets)
	empty(&d.pointed)
}

// release gives up the pipelines and the recorded commands that are kept until the task is complete.
func (d *dispatch) release() {
	if d.kernel != nil {
		d.kernel.Release()
		d.kernel = nil
	}
	for _, k := range d.kernels {
		k.Release()
	}
	empty(&d.kernels)
	if d.recorded != nil {
		d.recorded.release()
		d.recorded = nil
	}
}

// resolveArgumentsLocked finds the memory to which the pointers of the task's kernel point, and keeps
// it until the task is complete.
func (s *Scheduler) resolveArgumentsLocked(t *target, r *Region) error {
	for i := range t.Buffers {
		b := &t.Buffers[i]
		withoutElements := b.Pointer.IsNil() && b.Size == 0 && !b.ToEnd
		if b.Map >= 0 || withoutElements {
			t.dispatch.targets = append(t.dispatch.targets, argument{})
			continue
		}
		a, err := s.pointedLocked(b)
		if err != nil {
			return fmt.Errorf("binding %d: %w", i, err)
		}
		t.pinLocked(a.Allocation)
		t.dispatch.targets = append(t.dispatch.targets, a)
	}
	for _, p := range r.Pointers {
		m, _, err := s.pointers.Find(p, 0)
		if err != nil {
			return err
		}
		t.pinLocked(m)
		t.dispatch.pointed = append(t.dispatch.pointed, m)
	}
	return nil
}

// pointedLocked returns the memory to which the pointer of a buffer argument points.
func (s *Scheduler) pointedLocked(b *Buffer) (argument, error) {
	m, at, err := s.pointers.Find(b.Pointer, b.Size)
	if err != nil {
		return argument{}, err
	}
	a := argument{Allocation: m, at: at, size: b.Size, toEnd: b.ToEnd}
	if b.ToEnd {
		a.size = m.Size - at
	}
	return a, nil
}

// argument is device memory that the task's kernel uses, either bound or reached by its address.
type argument struct {
	*allocation.Allocation
	// block is the record of the block that is mapped there, nil for memory of a pointer.
	block *blockState
	// at and size are the bytes of the allocation that are bound. Of an allocation that is reached
	// by its address, size is 0.
	at, size uint64
	// readOnly says that the kernel does not write to the binding.
	readOnly bool
	// toEnd says that the argument is one of Buffer.ToEnd.
	toEnd bool
}

// padded reports whether nothing else lies in the argument's last word of 4 bytes: the argument ends
// at the end of its allocation, whose memory is allocated in larger units and belongs to vkomp alone.
func (a *argument) padded() bool {
	return a.at+a.size == a.Size && !a.Shared && a.Origin != allocation.Registered && a.External == nil
}

// bytes returns the bytes of the allocation that the kernel can access, which are all if it reaches
// the allocation by its address. A device may count all of the last word as bound
// (robustStorageBufferAccessSizeAlignment).
func (a *argument) bytes() order.Span {
	if a.size == 0 {
		return a.Whole()
	}
	return order.Span{Start: a.at, Size: min((a.at+a.size+3)&^3, a.Size) - a.at}
}

// bindable returns how many of the bytes to which a pointer points a binding can have at most.
func (a *argument) bindable(p *vk.Properties) uint64 {
	if a.toEnd {
		return min(a.size, uint64(p.Limits.MaxStorageBufferRange))
	}
	return a.size
}

// usedLocked records that the kernel uses the argument at a sync point of a pending batch.
func (a *argument) usedLocked(at order.SyncPoint) {
	a.Read(at)
	if a.readOnly {
		return
	}
	a.Wrote(a.bytes(), at)
	if a.block != nil {
		a.block.dirty = true
	}
}

// bindLocked returns the descriptor of an argument for binding i of the kernel. It fills in the kernel's
// offset member for the binding, if there is one, in push.
func (a *argument) bindLocked(k *kernel.Kernel, i int, p *vk.Properties, push []byte) (vk.BufferRange, error) {
	return k.Bind(i, &kernel.Argument{
		Buffer: vk.Buffer(a.Block.ID), Offset: a.Offset + a.at, Size: a.size, Before: a.at, Padded: a.padded(), Cut: a.toEnd,
	}, p, push)
}

// dispatches reports whether the task runs a kernel.
func (t *target) dispatches() bool { return t.Kernel != nil || t.dispatch.compound != nil }

// buffers returns the number of the kernel's buffer arguments.
func (r *Region) buffers() int {
	if r.Buffers != nil {
		return len(r.Buffers)
	}
	return len(r.Enter)
}

// buffer returns the kernel's k-th buffer argument.
func (r *Region) buffer(k int) Buffer {
	if r.Buffers != nil {
		return r.Buffers[k]
	}
	return Buffer{Map: k}
}

// bufferSize returns the size of a buffer argument in bytes. The size of an argument that goes to the
// end of its block is not known before the task enters; it counts as large enough.
func (t *target) bufferSize(k int, p *vk.Properties) uint64 {
	b := t.buffer(k)
	switch {
	case b.Map < 0:
		return t.dispatch.targets[k].bindable(p)
	case b.ToEnd:
		return leastSize(t.Kernel, k)
	}
	return t.Enter[b.Map].StorageSize()
}

// leastSize returns the size that stands for that of a kernel's k-th buffer argument until it is known: the least that the binding
// needs.
func leastSize(of *kernel.Kernel, k int) uint64 {
	if k < len(of.Bindings()) {
		return max(of.Bindings()[k].MinSize, 1)
	}
	return 1
}

// bindLocked finds the allocations that the task's kernel uses, makes its descriptors, and
// fills in the addresses among its values.
func (s *Scheduler) bindLocked(t *target) error {
	t.dispatch.ranges, t.dispatch.arguments = t.dispatch.ranges[:0], t.dispatch.arguments[:0]
	if t.dispatch.compound != nil {
		return s.bindCompoundLocked(t)
	}
	if t.Kernel == nil {
		return nil
	}
	for k := range t.Kernel.Bindings() {
		if !t.Kernel.Bindings()[k].Used {
			continue
		}
		a, err := t.argumentLocked(k)
		if err != nil {
			return err
		}
		r, err := a.bindLocked(t.Kernel, k, s.props, t.dispatch.push)
		if err != nil {
			return err
		}
		t.dispatch.ranges = append(t.dispatch.ranges, r)
		t.dispatch.arguments = append(t.dispatch.arguments, a)
	}
	for _, m := range t.dispatch.pointed {
		t.dispatch.arguments = append(t.dispatch.arguments, argument{Allocation: m})
	}
	if t.Buffers == nil {
		return nil
	}
	for _, a := range t.Addresses {
		value := uint64(t.Enter[a.Map].Start())
		if u := &t.entry.uses[a.Map]; u.Present != nil {
			value = s.pointerIntoLocked(u.Present, u.Offset).Address
		}
		binary.NativeEndian.PutUint64(t.dispatch.push[t.Kernel.Values()[a.Value].Offset:], value)
	}
	// The kernel may reach items that no binding names by their address.
	for i := range t.entry.uses {
		if t.entry.uses[i].Present != nil && !t.bound(i) {
			state := stateOf(t.entry.uses[i].Present)
			t.dispatch.arguments = append(t.dispatch.arguments, argument{Allocation: state.Allocation, block: state})
		}
	}
	return nil
}

// argumentLocked returns the storage for the k-th binding.
func (t *target) argumentLocked(k int) (argument, error) {
	b, readOnly := t.buffer(k), t.Kernel.Bindings()[k].ReadOnly
	if b.Map < 0 {
		a := t.dispatch.targets[k]
		a.readOnly = readOnly
		return a, nil
	}
	u, item := &t.entry.uses[b.Map], &t.Enter[b.Map]
	if u.Present == nil {
		return argument{}, fmt.Errorf("binding %d of kernel %q: %s %s: %w", k, t.Kernel.Name(), item.Label, item.Section, memory.ErrNotPresent)
	}
	state := stateOf(u.Present)
	size := item.StorageSize()
	if b.ToEnd {
		size = u.Present.Storage.Size - u.Offset
		if least := t.Kernel.Bindings()[k].MinSize; size < least {
			return argument{}, fmt.Errorf("%w: binding %d of kernel %q: %d bytes of storage from %s on, the binding needs at least %d", kernel.ErrInvalidLaunch, k, t.Kernel.Name(), size, item.Label, least)
		}
	}
	at := blockAt(u.Present) + u.Offset
	return argument{Allocation: state.Allocation, block: state, at: at, size: size, readOnly: readOnly, toEnd: b.ToEnd}, nil
}

// bound reports whether a binding names the item.
func (t *target) bound(item int) bool {
	return slices.ContainsFunc(t.Buffers, func(b Buffer) bool { return b.Map == item })
}
