package sched

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// sectionOf returns the storage of a slice.
func sectionOf(s []uint32) memory.Section {
	return memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(s)), Size: 4 * uint64(len(s))}
}

func toDevice(p Pointer, s []uint32) transfer.Request {
	return transfer.Request{Kind: transfer.CopyToDevice, Dst: p, Host: sectionOf(s), Size: 4 * uint64(len(s))}
}

func toHost(s []uint32, p Pointer) transfer.Request {
	return transfer.Request{Kind: transfer.CopyToHost, Src: p, Host: sectionOf(s), Size: 4 * uint64(len(s))}
}

func within(dst, src Pointer, elements int) transfer.Request {
	return transfer.Request{Kind: transfer.CopyWithin, Dst: dst, Src: src, Size: 4 * uint64(elements)}
}

func update(kind transfer.Kind, s []uint32) transfer.Request {
	return transfer.Request{Kind: kind, Host: sectionOf(s), Size: 4 * uint64(len(s)), Label: "item"}
}

// transfer runs a task with transfers.
func (r *rig) transfer(l launch, moves ...transfer.Request) {
	r.t.Helper()
	if err := r.tryTransfer(l, moves...); err != nil {
		r.t.Errorf("%s: %v", l.label, err)
	}
}

func (r *rig) tryTransfer(l launch, moves ...transfer.Request) error {
	g := r.region(launch{label: l.label, in: l.in, out: l.out, depend: l.depend, included: l.included, group: l.group, scope: l.scope})
	g.Transfers = moves
	return r.s.Run(context.Background(), g)
}

func (r *rig) allocate(elements int) Pointer {
	r.t.Helper()
	p, err := r.s.Allocate(4 * uint64(elements))
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) free(p Pointer) {
	r.t.Helper()
	if err := r.s.Free(p); err != nil {
		r.t.Error(err)
	}
}

// on runs a kernel on device memory: the pointers are its buffers.
func (r *rig) on(l launch, elements int, pointers ...Pointer) {
	r.t.Helper()
	for _, p := range pointers {
		l.args = append(l.args, reaches(p, elements))
	}
	r.run(l)
}

func TestCopiesToAndFromAllocations(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		for _, included := range []bool{true, false} {
			x, y := filled(100, 5), filled(100, 0)
			p, q := r.allocate(100), r.allocate(100)
			token := array32(1)
			if !included {
				r.d.hold()
			}
			step := launch{label: "move", included: included, out: [][]uint32{token}}
			r.transfer(step, toDevice(p, x))
			r.on(launch{label: "add", kernel: "add", constant: 3, included: included, out: step.out}, 100, p)
			r.transfer(step, within(q, p, 100))
			r.transfer(step, transfer.Request{Kind: transfer.Fill, Dst: q.Add(7), Size: 10, Value: 0xFF})
			r.transfer(step, toHost(y, q))
			// The copy to the host must not see this fill, which follows it.
			r.transfer(step, transfer.Request{Kind: transfer.Fill, Dst: q, Size: 400, Value: 1})
			r.d.release()
			r.taskwait()
			want := filled(100, 8)
			bytes := unsafe.Slice((*byte)(unsafe.Pointer(&want[0])), 400)
			for i := 7; i < 17; i++ {
				bytes[i] = 0xFF
			}
			r.expect("y", y, want...)
			r.free(p)
			r.free(q)
		}
	})
}

func TestFillsOfEveryOffsetAndLength(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		p := r.allocate(16)
		defer r.free(p)
		token := array32(1)
		for offset := range 9 {
			for size := range 14 {
				got := filled(16, 0x11111111)
				want := filled(16, 0x11111111)
				bytes := unsafe.Slice((*byte)(unsafe.Pointer(&want[0])), 64)
				for i := range size {
					bytes[offset+i] = 0xAB
				}
				r.d.hold() // The device is held, so that deferred transfers go through its commands.
				step := launch{label: "step", out: [][]uint32{token}}
				r.transfer(step, toDevice(p, filled(16, 0x11111111)))
				r.transfer(step, transfer.Request{Kind: transfer.Fill, Dst: p.Add(int64(offset)), Size: uint64(size), Value: 0xAB})
				r.transfer(step, toHost(got, p))
				r.d.release()
				r.taskwait()
				r.expect(fmt.Sprintf("offset %d, %d bytes", offset, size), got, want...)
			}
		}
	})
}

func TestStridedCopiesMoveTheirRows(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y := array32(30), filled(30, 0)
		for i := range x {
			x[i] = uint32(i)
		}
		// Columns 1 to 3 of 5×6, to rows 1… of the device's 6×5.
		in := memory.Rect{Elem: 4, Volume: []uint64{5, 3}, DstOffsets: []uint64{1, 2}, SrcOffsets: []uint64{0, 1}, DstDims: []uint64{6, 5}, SrcDims: []uint64{5, 6}}
		rows, err := in.Rows()
		if err != nil {
			t.Fatal(err)
		}
		p, q := r.allocate(30), r.allocate(30)
		defer r.free(p)
		defer r.free(q)
		token := array32(1)
		for _, included := range []bool{true, false} {
			clear(y)
			if !included {
				r.d.hold()
			}
			step := launch{label: "step", included: included, out: [][]uint32{token}}
			r.transfer(step, transfer.Request{Kind: transfer.Fill, Dst: p, Size: 120}, transfer.Request{Kind: transfer.Fill, Dst: q, Size: 120})
			r.transfer(step, transfer.Request{Kind: transfer.CopyToDevice, Dst: p, Host: sectionOf(x), Rows: &rows})
			out := memory.Rect{Elem: 4, Volume: []uint64{5, 3}, DstOffsets: []uint64{1, 0}, SrcOffsets: []uint64{1, 2}, DstDims: []uint64{6, 5}, SrcDims: []uint64{6, 5}}
			again, _ := out.Rows()
			r.transfer(step, transfer.Request{Kind: transfer.CopyWithin, Dst: q, Src: p, Rows: &again})
			home := memory.Rect{Elem: 4, Volume: []uint64{5, 3}, DstOffsets: []uint64{0, 2}, SrcOffsets: []uint64{1, 0}, DstDims: []uint64{5, 6}, SrcDims: []uint64{6, 5}}
			back, _ := home.Rows()
			r.transfer(step, transfer.Request{Kind: transfer.CopyToHost, Src: q, Host: sectionOf(y), Rows: &back})
			r.d.release()
			r.taskwait()
			want := array32(30)
			for i := range 5 {
				copy(want[6*i+2:6*i+5], x[6*i+1:6*i+4])
			}
			r.expect("y", y, want...)
		}
	})
}

func TestUpdatesMovePresentStorageOnly(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, absent := filled(64, 1), filled(64, 9)
		zero := filled(64, 0)
		r.run(launch{label: "enter", enter: []arg{to(x)}})
		r.taskwait()
		r.d.hold()
		for i := range x {
			x[i] = 2
		}
		all := [][]uint32{x}
		r.transfer(launch{label: "update to", out: all}, update(transfer.UpdateTo, x[16:32]), update(transfer.UpdateTo, absent))
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: all})
		r.transfer(launch{label: "update from", out: all}, update(transfer.UpdateFrom, x[:48]), update(transfer.UpdateFrom, absent))
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: all})
		r.d.release()
		r.taskwait()
		r.expect("x", x, append(append(append(filled(16, 4), filled(16, 7)...), filled(16, 4)...), filled(16, 2)...)...)
		r.expect("absent", absent, filled(64, 9)...)
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}})
		r.taskwait()
	})
}

// A copy to the host is in flight. Tasks that depend on it and read the storage on the host
// must not do so before it has ended.
func TestHostReadsFollowHostWrites(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y, zero := filled(64, 1), filled(64, 0), filled(64, 0)
		p, q := r.allocate(64), r.allocate(64)
		all := [][]uint32{x}
		r.d.hold()
		r.transfer(launch{label: "in", out: all}, toDevice(p, x))
		r.on(launch{label: "add", kernel: "add", constant: 6, out: all}, 64, p)
		r.transfer(launch{label: "out", out: all}, toHost(x, p))
		r.transfer(launch{label: "in again", out: all}, toDevice(q, x))
		r.transfer(launch{label: "out again", out: all}, toHost(y, q))
		r.run(launch{label: "maps", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: all})
		r.d.release()
		r.taskwait()
		r.expect("y", y, filled(64, 7)...)
		r.expect("x", x, filled(64, 22)...)
		r.free(p)
		r.free(q)
	})
}

// A task removes a block and copies its results to the host. An update behind it finds the
// storage absent, and a copy from the host finds the results.
func TestMovesFollowCopyOuts(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y, zero := filled(64, 1), filled(64, 0), filled(64, 0)
		p := r.allocate(64)
		all := [][]uint32{x}
		r.d.hold()
		r.run(launch{label: "maps", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: all})
		r.transfer(launch{label: "update", out: all}, update(transfer.UpdateTo, x))
		r.run(launch{label: "maps", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: all})
		r.transfer(launch{label: "in", out: all}, toDevice(p, x))
		r.transfer(launch{label: "out", out: all}, toHost(y, p))
		r.d.release()
		r.taskwait()
		r.expect("x", x, filled(64, 13)...)
		r.expect("y", y, filled(64, 13)...)
		r.free(p)
	})
}

func TestFreedMemoryIsReusedOnlyAfterItsTasks(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		r.d.hold()
		token := array32(1)
		outs := make([][]uint32, 40)
		for i := range outs {
			outs[i] = filled(4096, 0)
			p := r.allocate(4096)
			x := filled(4096, uint32(i))
			step := launch{label: fmt.Sprint("step ", i), out: [][]uint32{outs[i]}}
			if i%3 == 0 {
				step.out = append(step.out, token)
			}
			r.transfer(step, toDevice(p, x))
			r.on(launch{label: "add", kernel: "add", constant: 100, out: step.out}, 4096, p)
			r.transfer(step, toHost(outs[i], p))
			r.free(p)
			if _, _, err := r.s.pointers.Find(p, 1); !errors.Is(err, ErrInvalidPointer) {
				t.Errorf("a freed pointer: %v", err)
			}
		}
		r.d.release()
		r.taskwait()
		for i := range outs {
			r.expect(fmt.Sprint("out ", i), outs[i], filled(4096, uint32(100+i))...)
		}
	})
}

// Memory is freed while a task that uses it waits for its predecessors: it must not be given to
// anybody else before that task has ended.
func TestFreeBeforeATaskStarts(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, y := filled(64, 3), filled(64, 0)
	gate := make(chan struct{})
	r.host("gate", nil, [][]uint32{x}, func() { <-gate })
	p := r.allocate(64)
	r.transfer(launch{label: "in", out: [][]uint32{x}}, toDevice(p, x))
	r.transfer(launch{label: "out", in: [][]uint32{x}}, toHost(y, p))
	r.free(p)
	q := r.allocate(64)
	r.transfer(launch{label: "other", included: true}, transfer.Request{Kind: transfer.Fill, Dst: q, Size: 256, Value: 0xEE})
	close(gate)
	r.taskwait()
	r.expect("y", y, filled(64, 3)...)
	r.free(q)
}

func TestPointersThatAreRefused(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	p, q := r.allocate(64), r.allocate(64)
	x := filled(64, 0)
	stale := p
	r.free(p)
	p = r.allocate(64)
	for name, err := range map[string]error{
		"free of an interior pointer": r.s.Free(p.Add(4)),
		"second free":                 r.s.Free(stale),
		"copy past the end":           r.tryTransfer(launch{label: "c"}, toDevice(p.Add(4), x)),
		"copy before the beginning":   r.tryTransfer(launch{label: "c"}, toDevice(p.Add(-4), x)),
		"copy to a stale pointer":     r.tryTransfer(launch{label: "c"}, toDevice(stale, x)),
		"copy to nil":                 r.tryTransfer(launch{label: "c"}, toDevice(Pointer{}, x)),
		"copy from past the end":      r.tryTransfer(launch{label: "c"}, toHost(x, p.Add(252))),
		"fill past the end":           r.tryTransfer(launch{label: "c"}, transfer.Request{Kind: transfer.Fill, Dst: p.Add(200), Size: 57}),
	} {
		if !errors.Is(err, ErrInvalidPointer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.tryTransfer(launch{label: "c"}, within(p.Add(4), p, 10)); !errors.Is(err, ErrOverlap) {
		t.Errorf("overlapping copy: %v", err)
	}
	if err := r.s.Free(Pointer{}); err != nil {
		t.Errorf("free of nil: %v", err)
	}
	r.free(p)
	r.free(q)
}

func TestAssociatedMemoryMovesOnlyWhenAsked(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(64, 1), filled(64, 0)
		p := r.allocate(96)
		host := sectionOf(x)
		if err := r.s.Associate(host, p, 64, "x"); err != nil {
			t.Fatal(err)
		}
		if err := r.s.Associate(host, p, 64, "x"); err != nil {
			t.Errorf("the same again: %v", err)
		}
		for name, err := range map[string]error{
			"another offset":  r.s.Associate(host, p, 68, "x"),
			"a part of it":    r.s.Associate(sectionOf(x[:32]), p, 64, "x"),
			"not all of it":   r.s.Disassociate(sectionOf(x[1:])),
			"past the end":    r.s.Associate(sectionOf(filled(90, 0)), p, 64, "y"),
			"freed too early": r.s.Free(p),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if err := r.s.Free(p); !errors.Is(err, ErrBusy) {
			t.Errorf("free of associated memory: %v", err)
		}
		if got, ok := r.s.MappedPointer(sectionOf(x[3:])); !ok || got != p.Add(64+12) {
			t.Errorf("mapped pointer %+v, %v", got, ok)
		}
		all := [][]uint32{x}
		r.d.hold()
		r.transfer(launch{label: "update", out: all}, update(transfer.UpdateTo, x))
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: all})
		r.on(launch{label: "by pointer", kernel: "add", constant: 10, out: all}, 64, p.Add(64))
		r.d.release()
		r.taskwait()
		r.expect("x before the update", x, filled(64, 1)...)
		r.transfer(launch{label: "update", included: true}, update(transfer.UpdateFrom, x))
		r.expect("x", x, filled(64, 14)...)
		r.run(launch{label: "delete", included: true, exit: []arg{{s: x, kind: memory.MapDelete}}})
		if !r.s.Present(host) {
			t.Error("delete ended an association")
		}
		if err := r.s.Disassociate(host); err != nil {
			t.Error(err)
		}
		if err := r.s.Disassociate(host); !errors.Is(err, memory.ErrNotPresent) {
			t.Errorf("second disassociation: %v", err)
		}
		y := filled(64, 0)
		r.transfer(launch{label: "out", included: true}, toHost(y, p.Add(64)))
		r.expect("the memory afterwards", y, filled(64, 14)...)
		r.free(p)
	})
}

func TestDisassociateOfMappedStorage(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(64, 1)
	p := r.allocate(64)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	if err := r.s.Disassociate(sectionOf(x)); !errors.Is(err, ErrAssociated) {
		t.Errorf("disassociate: %v", err)
	}
	if err := r.s.Associate(sectionOf(x), p, 0, "x"); !errors.Is(err, ErrAssociated) {
		t.Errorf("associate: %v", err)
	}
	if err := r.s.Associate(sectionOf(x[:32]), p, 0, "x"); !errors.Is(err, ErrAssociated) {
		t.Errorf("associate a part: %v", err)
	}
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
	r.free(p)
}

// A pointer to mapped storage becomes invalid when the storage is removed. A task that was
// generated with it before keeps the memory until it ends.
func TestMappedPointersGoStale(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, y := filled(64, 5), filled(64, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	p, ok := r.s.MappedPointer(sectionOf(x[16:]))
	if !ok {
		t.Fatal("not mapped")
	}
	gate := make(chan struct{})
	r.host("gate", nil, [][]uint32{y}, func() { <-gate })
	r.transfer(launch{label: "out", out: [][]uint32{y}}, toHost(y[:48], p))
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
	if err := r.tryTransfer(launch{label: "late"}, toHost(y, p)); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("a pointer to what is gone: %v", err)
	}
	close(gate)
	r.taskwait()
	r.expect("y", y, append(filled(48, 5), filled(16, 0)...)...)
}

func TestDeclaredStorageIsNeverRemoved(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		// Declared storage stays, so that the observers would miss its end.
		r.watches = false
		x := filled(64, 5)
		g := r.region(launch{label: "declare", enter: []arg{to(x)}, included: true})
		g.Absent = true
		if err := r.s.Run(context.Background(), g); err != nil {
			t.Fatal(err)
		}
		r.s.Declare(g.Enter)
		if err := r.s.Run(context.Background(), g); !errors.Is(err, ErrAssociated) {
			t.Errorf("declared twice: %v", err)
		}
		for i := range x {
			x[i] = 0
		}
		r.run(launch{label: "delete", included: true, exit: []arg{{s: x, kind: memory.MapDelete}}})
		r.transfer(launch{label: "update", included: true}, update(transfer.UpdateFrom, x))
		r.expect("x", x, filled(64, 5)...)
		// Declared storage is removed with the device alone: this does what closing it does.
		r.s.mu.Lock()
		block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
		_ = r.s.presence.table.Remove(block)
		var w tasks.Work
		r.s.goneLocked(block, &w)
		r.s.mu.Unlock()
	})
}

// Items of one construct may overlap. Each byte is copied once, and two updates that write the
// same bytes are ordered.
func TestItemsOfAConstructThatShareBytes(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(64, 1)
		r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
		for i := range x {
			x[i] = uint32(100 + i)
		}
		always := func(s []uint32) arg { return arg{s: s, kind: memory.MapTo, always: true} }
		token := array32(1)
		before := r.s.Stats().BytesToDevice
		r.busy()
		r.run(launch{label: "always", enter: []arg{always(x[16:48]), always(x[:32]), always(x[8:24])}, out: [][]uint32{token}})
		r.transfer(launch{label: "update", out: [][]uint32{token}}, update(transfer.UpdateTo, x[40:]), update(transfer.UpdateTo, x[32:48]))
		r.d.release()
		r.taskwait()
		if n := r.s.Stats().BytesToDevice - before; n != 4*(48+24+16) {
			t.Errorf("%d bytes copied to the device", n)
		}
		want := append([]uint32(nil), x...)
		clear(x)
		r.run(launch{label: "release", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, want...)
	})
}

// The host writes device memory only when no kernel in flight is still to read it.
func TestUpdateComesAfterTheLastReader(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y, zero := filled(64, 1), filled(64, 0), filled(64, 0)
		p := r.allocate(64)
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.transfer(launch{label: "in", included: true}, toDevice(p, x))
		r.d.hold()
		token := [][]uint32{x}
		r.run(launch{label: "reads x", kernel: "mix", args: []arg{tofrom(y), alloc(x), alloc(zero)}, constant: 1, out: append(token, y)})
		z := filled(64, 0)
		r.transfer(launch{label: "reads p", out: token}, toHost(z, p))
		for i := range x {
			x[i] = 50
		}
		r.transfer(launch{label: "update", out: token}, update(transfer.UpdateTo, x))
		r.transfer(launch{label: "to p", out: token}, toDevice(p, x))
		r.d.release()
		r.taskwait()
		r.expect("y", y, filled(64, 2)...)
		r.expect("z", z, filled(64, 1)...)
		r.free(p)
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}, {s: zero, kind: memory.MapRelease}}, included: true})
	})
}

// Where the device has memory of its own, a kernel copies within it. What comes before and after it
// is ordered as with a copy command, on other queues too.
func TestKernelCopiesWithinTheDevice(t *testing.T) {
	for _, mode := range append(queueModes(memoryModes[1]), memoryModes[0], memoryModes[1]) {
		for seed := range uint64(deviceOrders) {
			t.Run(fmt.Sprintf("%s/%d", mode.name, seed), func(t *testing.T) {
				r := newRig(t, mode, seed)
				defer r.close()
				const words = 1024
				p, q, x := r.allocate(words), r.allocate(words), filled(words, 5)
				before := r.s.Stats().Copies
				step := launch{depend: depends(tasks.DependInOut, x)}
				r.transfer(step, toDevice(p, x))
				r.on(launch{label: "before", kernel: "add", constant: 1, depend: step.depend}, words, p)
				r.transfer(step, transfer.Request{Kind: transfer.Fill, Dst: q, Size: 4 * words, Value: 9})
				r.transfer(step, within(q.Add(64), p.Add(128), words-32))
				r.on(launch{label: "after", kernel: "add", constant: 2, depend: step.depend}, words, q)
				r.transfer(step, toHost(x, q))
				r.taskwait()
				want := filled(words, 0x09090909+2)
				for i := range words - 32 {
					want[16+i] = 5 + 1 + 2
				}
				r.expect("x", x, want...)
				kernels := 0
				if mode.memory == discreteMemory {
					kernels = 1
				}
				if n := len(r.commands("vkomp copy")); n != kernels {
					t.Errorf("%d copies by a kernel, want %d", n, kernels)
				}
				if n := r.s.Stats().Copies - before; kernels > 0 && n != 3 {
					t.Errorf("%d copies are counted", n)
				}
				r.free(p)
				r.free(q)
			})
		}
	}
}

// While a data construct keeps a block, the program can change either copy of it. A task that maps the block anew
// finds what the host has then, although the task before it still has the storage.
func TestStorageThatADataConstructHasKeptIsMappedAnew(t *testing.T) {
	items := func(x, zero []uint32) []arg { return []arg{to(x), to(zero)} }
	for name, enter := range map[string]func(r *rig, x, zero []uint32){
		"created": func(r *rig, x, zero []uint32) {
			r.run(launch{label: "enter", enter: items(x, zero), included: true})
		},
		"created by a task": func(r *rig, x, zero []uint32) {
			r.run(launch{label: "enter", enter: items(x, zero)})
			r.taskwait()
		},
		"found": func(r *rig, x, zero []uint32) {
			r.d.hold()
			r.mix("creates", filled(256, 0), x, zero, 0)
			r.run(launch{label: "enter x", enter: []arg{to(x)}, included: true})
			r.run(launch{label: "enter zero", enter: []arg{to(zero)}, included: true})
			r.d.release()
			r.taskwait()
		},
		"found with others": func(r *rig, x, zero []uint32) {
			r.d.hold()
			r.mix("creates", filled(256, 0), x, zero, 0)
			r.run(launch{label: "enter", enter: items(x, zero), included: true})
			r.d.release()
			r.taskwait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryMemory(t, func(t *testing.T, r *rig) {
				if r.share && strings.HasPrefix(name, "found") {
					return // the data construct waits until the device and the host no longer share the block
				}
				for _, byHost := range []bool{false, true} {
					x, zero, first, second := filled(256, 1), filled(256, 0), filled(256, 0), filled(256, 0)
					enter(r, x, zero)
					want := filled(256, 1)
					if p, ok := r.s.MappedPointer(sectionOf(x)); byHost || !ok {
						x[0] = 9
					} else {
						want[0] = 5
						r.transfer(launch{label: "write", included: true}, toDevice(p, want[:1]))
					}
					r.d.hold()
					r.mix("first", first, x, zero, 0)
					r.run(launch{label: "exit x", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
					r.run(launch{label: "second", kernel: "mix", args: append([]arg{tofrom(second)}, items(x, zero)...), in: [][]uint32{first}, out: [][]uint32{second}})
					r.d.release()
					r.taskwait()
					r.expect("first", first, want...)
					r.expect("second", second, x...)
					r.run(launch{label: "exit zero", exit: []arg{{s: zero, kind: memory.MapRelease}}, included: true})
				}
			})
		})
	}
}
