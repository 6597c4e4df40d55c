package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/transfer"
)

// newOpLocked returns a new operation of the task.
func (o *observed) newOpLocked(op ompt.DataOp) *construct.Op {
	n := len(o.ops)
	if n == cap(o.ops) {
		o.ops = append(o.ops, new(construct.Op))
	} else if o.ops = o.ops[:n+1]; o.ops[n] == nil {
		o.ops[n] = new(construct.Op)
	}
	o.ops[n].DataOp = op
	return o.ops[n]
}

func (o *observed) resetOps() {
	for _, op := range o.ops {
		*op = construct.Op{}
	}
	o.ops = o.ops[:0]
}

// dataOpLocked returns an operation on bytes of the host and of device memory, nil if no observer wants
// to hear of operations.
func (t *target) dataOpLocked(kind ompt.TargetDataOp, host unsafe.Pointer, m *allocation.Allocation, at, bytes uint64, label string) *construct.Op {
	if !t.traits.has(observedOps) {
		return nil
	}
	s := t.s
	op := ompt.DataOp{
		Type: kind, Bytes: bytes, Label: label,
		SrcAddr: uint64(uintptr(host)), SrcDeviceNum: s.numbers.Host,
		DestAddr: s.pointers.To(m).Address + at, DestDeviceNum: s.numbers.Device,
	}
	if kind == ompt.TargetDataTransferFromDevice {
		op.SrcAddr, op.DestAddr = op.DestAddr, op.SrcAddr
		op.SrcDeviceNum, op.DestDeviceNum = op.DestDeviceNum, op.SrcDeviceNum
	}
	return t.newOpLocked(op)
}

// observeEntryLocked makes the operations and the mapped items of a task that has entered: of what
// its entry has done, and of what is to come.
func (s *Scheduler) observeEntryLocked(t *target) {
	o := t.observed
	o.items = o.items[:0]
	o.resetOps()
	for i := range t.entry.uses {
		u, m := &t.entry.uses[i], &t.Enter[i]
		if u.Present == nil {
			continue
		}
		state := stateOf(u.Present)
		at := blockAt(u.Present)
		o.mapsLocked(s, m, state, at+u.Offset)
		if state.Shared {
			continue
		}
		if block := u.Present; u.Created && !state.told {
			state.told = true
			o.due = append(o.due, t.dataOpLocked(ompt.TargetDataAlloc, block.Section.Ptr, state.Allocation, at, block.Storage.Size, m.Label))
		}
	}
	if len(t.Enter) == 0 {
		for i := range t.Exit {
			m := &t.Exit[i]
			if block, offset, err := s.presence.table.Lookup(m.Section); err == nil && block != nil && m.Size > 0 {
				o.mapsLocked(s, m, stateOf(block), blockAt(block)+offset)
			}
		}
	}
	for i := range t.transfers.All {
		x := &t.transfers.All[i]
		x.Op = s.transferOpLocked(t, x)
	}
	if t.Kernel != nil {
		var groups [3]uint64
		t.Kernel.Groups(&t.Range, &groups)
		o.submitsLocked(s, t.Kernel.Name(), groups)
	}
}

// submitsLocked makes the operation that launches a kernel with so many workgroups.
func (o *observed) submitsLocked(s *Scheduler, kernel string, groups [3]uint64) {
	o.submit = o.newOpLocked(ompt.DataOp{SrcDeviceNum: ompt.NoDevice, DestDeviceNum: s.numbers.Device})
	o.submit.Kernel, o.submit.Teams = kernel, groups[0]*groups[1]*groups[2]
}

// mapsLocked adds a list item that is mapped to a block, at an offset from its allocation.
func (o *observed) mapsLocked(s *Scheduler, m *memory.Map, state *blockState, at uint64) {
	o.items = append(o.items, ompt.MapItem{
		HostAddr: uintptr(m.Ptr), DeviceAddr: s.pointers.To(state.Allocation).Address + at, Bytes: m.Size, Flags: flagsOf(m, state.Shared),
	})
}

// submitOp returns the operation that launches the kernel, nil if no observer wants to hear of it.
func (t *target) submitOp() *construct.Op {
	if t.traits.has(observedOps) {
		return t.submit
	}
	return nil
}

// transferOpLocked returns the operation of a transfer, nil if it moves nothing or if no observer wants
// to hear of operations.
func (s *Scheduler) transferOpLocked(t *target, x *transfer.Transfer) *construct.Op {
	if !t.traits.has(observedOps) || x.Absent() {
		return nil
	}
	dst, src := x.Places()
	// Maps and updates of storage that host and device share move nothing. Memory routines copy.
	asked := x.Kind == transfer.CopyToDevice || x.Kind == transfer.CopyToHost
	switch {
	case x.Kind == transfer.Attach:
		return nil
	case x.Kind.FromHost() && (asked || !x.Dst.Shared):
		return t.dataOpLocked(ompt.TargetDataTransferToDevice, x.HostSpan().Ptr, x.Dst, dst.Start, x.Size, x.Label)
	case x.Kind.ToHost() && (asked || !x.Src.Shared):
		return t.dataOpLocked(ompt.TargetDataTransferFromDevice, x.HostSpan().Ptr, x.Src, src.Start, x.Size, x.Label)
	case x.Kind == transfer.CopyWithin:
		return t.newOpLocked(ompt.DataOp{
			Type: ompt.TargetDataTransfer, Bytes: x.Size, Label: x.Label,
			SrcAddr: s.pointers.To(x.Src).Address + src.Start, SrcDeviceNum: s.numbers.Device,
			DestAddr: s.pointers.To(x.Dst).Address + dst.Start, DestDeviceNum: s.numbers.Device,
		})
	case x.Kind == transfer.Fill:
		return t.newOpLocked(ompt.DataOp{
			Type: ompt.TargetDataMemset, Bytes: x.Size, Label: x.Label, SrcDeviceNum: ompt.NoDevice,
			DestAddr: s.pointers.To(x.Dst).Address + dst.Start, DestDeviceNum: s.numbers.Device,
		})
	}
	return nil
}

// observeExitLocked makes the operations for the blocks that the exit of t, which has begun, removes.
func (s *Scheduler) observeExitLocked(t *target) {
	for i := range t.exit.items {
		e := &t.exit.items[i]
		if !e.Remove {
			continue
		}
		block := e.Present
		if state := stateOf(block); state.told && state.goneBy == nil {
			state.goneBy = t
			t.due = append(t.due, t.dataOpLocked(ompt.TargetDataDelete, block.Section.Ptr, state.Allocation, blockAt(block), block.Storage.Size, block.Label))
		}
	}
}

// flagsOf returns the flags of a list item. shared says that host and device share its storage.
func flagsOf(m *memory.Map, shared bool) ompt.MapFlag {
	f := typeFlags[m.Type] | presenceFlags[m.Presence]
	if m.Always {
		f |= ompt.MapFlagAlways
	}
	if m.Delete {
		f |= ompt.MapFlagDelete
	}
	if m.Close {
		f |= ompt.MapFlagClose
	}
	if shared {
		f |= ompt.MapFlagShared
	}
	return f
}

var typeFlags = [...]ompt.MapFlag{
	memory.MapAlloc: ompt.MapFlagAlloc, memory.MapTo: ompt.MapFlagTo, memory.MapFrom: ompt.MapFlagFrom,
	memory.MapToFrom: ompt.MapFlagTo | ompt.MapFlagFrom, memory.MapRelease: ompt.MapFlagRelease, memory.MapDelete: ompt.MapFlagDelete,
}

var presenceFlags = [...]ompt.MapFlag{memory.MustBePresent: ompt.MapFlagPresent, memory.IfPresent: ompt.MapFlagImplicit}
