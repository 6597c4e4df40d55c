package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tasks"
)

// Observer hears what a task does, for a tool. Its methods are called without locks
// held unless they say so, those of one task one after the other. They do not panic, and
// may end the goroutine (runtime.Goexit): what has to be done after them is deferred.
type Observer interface {
	tasks.Witness
	// Interest says whether Begin and End are of interest, and whether Map and Op are, which
	// come between the two: what is not may be left out.
	Interest() (run, operations bool)
	// Created: the task is in the graph; it cannot start before this returns.
	Created(n *tasks.Node, depend []tasks.Depend)
	// Begin: the task starts.
	Begin()
	// Map tells how a target task's items are mapped. They are the caller's again when
	// Map returns.
	Map(items []ompt.MapItem)
	// Op tells of an operation, at its begin and at its end, which is when it has been
	// initiated. At the begin the observer may change it.
	Op(ompt.ScopeEndpoint, *Op)
	// End: the task is about to be complete, err is its failure.
	End(err error)
	// Release: nobody of the scheduler or the graph asks for the task any more. A lock of
	// the graph may be held. It may be left out: where a wait was cut short, say.
	Release()
}

// Complete completes a task without work of its own that has begun: its observer, if any,
// hears of its end before.
func Complete(n *tasks.Node, err error, w *tasks.Work) {
	defer n.Complete(err, w)
	if o, ok := n.Witness().(Observer); ok {
		o.End(err)
	}
}

// Created has the observer of a new task hear of it, and then lets the task start. Where
// the observer ends the goroutine, left is called, which may be nil, and w is run.
func Created(o Observer, n *tasks.Node, depend []tasks.Depend, w *tasks.Work, left func()) {
	over := false
	defer func() {
		if !over && left != nil {
			left()
		}
		n.Go(w)
		if !over {
			w.Run()
		}
	}()
	o.Created(n, depend)
	over = true
}

// Pass carries out a task that does nothing.
func Pass(n *tasks.Node, w *tasks.Work) {
	defer n.Complete(nil, w)
	if o, ok := n.Witness().(Observer); ok {
		o.Begin()
		o.End(nil)
	}
}

// Op is an operation of a target task: a data operation, or, without a Type, the submit
// of its kernel. It is the task's until that is complete.
type Op struct {
	ompt.DataOp
	// ID is the operation's number, TargetID its region's: the observer's to set.
	ID, TargetID ompt.ID
	// Kernel is the kernel's name, Teams the number of workgroups.
	Kernel string
	Teams  uint64
}

// Numbers are those of devices in operations.
type Numbers struct{ Device, Host int }

// observed is what a target task has for its observer. It is made for the first one that
// the target is observed in, and kept with it.
type observed struct {
	// start is startTelling until the observer has heard of all that Start does, if operations
	// are of interest: the task's end waits for that, by wake if it has to.
	start uint32
	wake  chan struct{}
	// begun: Begin was called. ended: End was.
	begun, ended bool
	// ops are the operations; a later task uses them again.
	ops []*Op
	// copyIns are those of uses that are copied in, by item; submit is the kernel's.
	copyIns []*Op
	submit  *Op
	items   []ompt.MapItem
	// stamps are those of the task's commands, for the device's trace.
	stamps []*stamp
	// end is toldEnd, outcome what it completes the task with.
	end     func(*tasks.Work)
	outcome error
	// due are operations to tell of when no lock is held.
	due []*Op
	// goneTold: the observer knows of the storage that goes with the task.
	goneTold bool
}

// What observed.start says.
const (
	startTold uint32 = iota
	startTelling
	// startAwaited: somebody waits for it.
	startAwaited
)

// observe gives the task, which has been created, its observer.
func (t *target) observe(by Observer) {
	t.Observer = by
	t.runs, t.operations = by.Interest()
	if t.runs && t.observed == nil {
		t.observed = new(observed)
		t.end = t.toldEnd
	}
}

// observeJoin is observe for the target of a task that others have made, if it has an
// observer.
func (t *target) observeJoin(n *tasks.Node) {
	if by, ok := n.Witness().(Observer); ok {
		t.observe(by)
	}
}

// forgetObserved lets go of the task's observer, and of what it was told.
func (t *target) forgetObserved() {
	if t.Observer == nil {
		return
	}
	t.Observer.Release()
	if !t.runs {
		return
	}
	o := t.observed
	o.start, o.begun, o.ended, o.goneTold, o.outcome = startTold, false, false, false, nil
	if !t.operations {
		return
	}
	if len(o.ops) > 0 {
		empty(&o.copyIns)
		empty(&o.due)
		o.resetOps()
		o.submit = nil
		o.stamps = o.stamps[:0]
	}
	o.items = o.items[:0]
}

func (o *observed) resetOps() {
	for _, op := range o.ops {
		*op = Op{}
	}
	o.ops = o.ops[:0]
}

// newOp returns a new operation of the task; s.mu is held.
func (t *target) newOp(op ompt.DataOp) *Op {
	o := t.observed
	n := len(o.ops)
	if n == cap(o.ops) {
		o.ops = append(o.ops, new(Op))
	} else if o.ops = o.ops[:n+1]; o.ops[n] == nil {
		o.ops[n] = new(Op)
	}
	o.ops[n].DataOp = op
	return o.ops[n]
}

// transfer returns an operation on bytes of the host and of device memory, nil for a task
// without an observer; s.mu is held.
func (t *target) transfer(kind ompt.TargetDataOp, host unsafe.Pointer, m *store, at, bytes uint64, label string) *Op {
	if !t.operations {
		return nil
	}
	s := t.s
	op := ompt.DataOp{
		Type: kind, Bytes: bytes, Label: label,
		SrcAddr: uint64(uintptr(host)), SrcDeviceNum: s.numbers.Host,
		DestAddr: s.pointer(m).Address + at, DestDeviceNum: s.numbers.Device,
	}
	if kind == ompt.TargetDataTransferFromDevice {
		op.SrcAddr, op.DestAddr = op.DestAddr, op.SrcAddr
		op.SrcDeviceNum, op.DestDeviceNum = op.DestDeviceNum, op.SrcDeviceNum
	}
	return t.newOp(op)
}

// blockAt returns where the block's storage begins in its store.
func blockAt(block *memory.Present) uint64 {
	return block.Storage.Offset - stateOf(block).Offset
}

// observeEntry notes what the entry of t did and what is to come, under mu.
func (s *Scheduler) observeEntry(t *target) {
	o := t.observed
	o.items, o.copyIns = o.items[:0], o.copyIns[:0]
	o.resetOps()
	for i := range t.entry.uses {
		u, m := &t.entry.uses[i], &t.Enter[i]
		if u.Present == nil {
			continue
		}
		state := stateOf(u.Present)
		at := blockAt(u.Present)
		o.items = append(o.items, ompt.MapItem{
			HostAddr: uintptr(m.Ptr), DeviceAddr: s.pointer(state.store).Address + at + u.Offset, Bytes: m.Size, Flags: flagsOf(m, state.shared),
		})
		if state.shared {
			continue
		}
		if block := u.Present; u.Created && !state.told {
			state.told = true
			o.due = append(o.due, t.transfer(ompt.TargetDataAlloc, block.Section.Ptr, state.store, at, block.Storage.Size, m.Label))
		}
		if u.CopyIn {
			for len(o.copyIns) <= i {
				o.copyIns = append(o.copyIns, nil)
			}
			o.copyIns[i] = t.transfer(ompt.TargetDataTransferToDevice, unsafe.Add(m.Ptr, u.Skip), state.store, at+u.Offset+u.Skip, m.StorageSize()-u.Skip, m.Label)
		}
	}
	if len(t.Enter) == 0 {
		for i := range t.Exit {
			m := &t.Exit[i]
			if block, offset, err := s.presence.table.Lookup(m.Section); err == nil && block != nil && m.Size > 0 {
				o.items = append(o.items, ompt.MapItem{
					HostAddr: uintptr(m.Ptr), DeviceAddr: s.pointerInto(block, offset).Address, Bytes: m.Size, Flags: flagsOf(m, stateOf(block).shared),
				})
			}
		}
	}
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if !m.attaches {
			m.op = s.moveOp(t, m)
		}
	}
	for _, st := range t.copies.streams {
		if st.item >= 0 {
			st.op = t.copyInOf(st.item)
		}
	}
	for i := range t.copies.moves {
		if m := &t.copies.moves[i]; m.ring != nil {
			m.ring.op = m.op
		}
	}
	for i := range t.copies.downloads {
		d := &t.copies.downloads[i]
		d.op = t.copyOut(d.block, d.offset, d.size, unsafe.Add(d.block.Section.Ptr, d.offset), d.label)
	}
	if t.Kernel != nil {
		o.submit = t.newOp(ompt.DataOp{SrcDeviceNum: ompt.NoDevice, DestDeviceNum: s.numbers.Device})
		g := t.Kernel.groups(t.Range)
		o.submit.Kernel, o.submit.Teams = t.Kernel.name, g[0]*g[1]*g[2]
	}
}

// copyInOf returns the operation that copies the i-th item in, or nil.
func (t *target) copyInOf(i int) *Op {
	if t.operations && i < len(t.copyIns) {
		return t.copyIns[i]
	}
	return nil
}

// submitOp returns the operation that submits the kernel, or nil.
func (t *target) submitOp() *Op {
	if t.operations {
		return t.submit
	}
	return nil
}

// copyOut returns the operation that copies a part of a block to the host.
func (t *target) copyOut(block *memory.Present, offset, size uint64, host unsafe.Pointer, label string) *Op {
	return t.transfer(ompt.TargetDataTransferFromDevice, host, stateOf(block).store, blockAt(block)+offset, size, label)
}

// moveOp returns the operation of a move, nil where nothing is moved.
func (s *Scheduler) moveOp(t *target, m *move) *Op {
	dst, src := m.places()
	switch {
	case m.Kind.fromHost() && m.dst != nil && !(m.Kind == UpdateTo && m.dst.shared):
		return t.transfer(ompt.TargetDataTransferToDevice, m.hostSpan().Ptr, m.dst, dst.start, m.bytes(), m.Label)
	case m.Kind.toHost() && m.src != nil && !(m.Kind == UpdateFrom && m.src.shared):
		return t.transfer(ompt.TargetDataTransferFromDevice, m.hostSpan().Ptr, m.src, src.start, m.bytes(), m.Label)
	case m.Kind == CopyWithin:
		return t.newOp(ompt.DataOp{
			Type: ompt.TargetDataTransfer, Bytes: m.bytes(), Label: m.Label,
			SrcAddr: s.pointer(m.src).Address + src.start, SrcDeviceNum: s.numbers.Device,
			DestAddr: s.pointer(m.dst).Address + dst.start, DestDeviceNum: s.numbers.Device,
		})
	case m.Kind == Fill:
		return t.newOp(ompt.DataOp{
			Type: ompt.TargetDataMemset, Bytes: m.bytes(), Label: m.Label, SrcDeviceNum: ompt.NoDevice,
			DestAddr: s.pointer(m.dst).Address + dst.start, DestDeviceNum: s.numbers.Device,
		})
	}
	return nil
}

// observeExit notes what will go by t's exit, which has begun, under mu.
func (s *Scheduler) observeExit(t *target) {
	for _, e := range t.exit.items {
		if e.Remove {
			s.observeGone(t, e.Present)
		}
	}
}

// observeGone notes that a block leaves the presence table by t's exit, under mu.
func (s *Scheduler) observeGone(t *target, block *memory.Present) {
	if state := stateOf(block); state.told && state.goneBy == nil {
		state.goneBy = t
		t.due = append(t.due, t.transfer(ompt.TargetDataDelete, block.Section.Ptr, state.store, blockAt(block), block.Storage.Size, block.Label))
	}
}

// tell tells the observer of one end of an operation, nil for none.
func (t *target) tell(end ompt.ScopeEndpoint, o *Op) {
	if o != nil {
		t.Observer.Op(end, o)
	}
}

// tellDue tells of the operations that were put off, both ends.
func (t *target) tellDue() {
	for i, o := range t.due {
		t.Observer.Op(ompt.ScopeBegin, o)
		t.Observer.Op(ompt.ScopeEnd, o)
		t.due[i] = nil
	}
	t.due = t.due[:0]
}

// tellPlaced tells of one end of what t hands to the device: moves that the device makes
// by itself, and the kernel.
func (t *target) tellPlaced(end ompt.ScopeEndpoint) {
	for i := range t.copies.moves {
		if m := &t.copies.moves[i]; m.onDevice() && !m.Kind.fromHost() && !m.Kind.toHost() {
			t.tell(end, m.op)
		}
	}
	t.tell(end, t.submit)
}

// flagsOf are the flags of an item, whose storage may be the host's own.
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
