package sched

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// inBothWays runs a test with resident tasks and with targets only, with and without observers, in every
// memory mode.
func inBothWays(t *testing.T, test func(t *testing.T, r *rig)) {
	for _, mode := range memoryModes {
		for _, mode.general = range []bool{false, true} {
			for _, watches := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/general %v, observed %v", mode.name, mode.general, watches), func(t *testing.T) {
					r := newRig(t, mode, 1)
					defer r.close()
					r.watches = watches
					test(t, r)
				})
			}
		}
	}
}

// residents returns how many resident tasks use the block with a slice. If the slice is not present, ok
// is false.
func (r *rig) residents(x []uint32) (n int, ok bool) {
	block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
	if block == nil {
		return 0, false
	}
	return int(stateOf(block).residents), true
}

// resides checks that one task of x is a resident task, if the rig has such.
func (r *rig) resides(x []uint32) {
	r.t.Helper()
	r.residesTimes(x, 1)
}

// residesTimes checks that so many tasks of x are resident tasks, if the rig has such.
func (r *rig) residesTimes(x []uint32, want int) {
	r.t.Helper()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.general {
		want = 0
	}
	if n, _ := r.residents(x); n != want {
		r.t.Errorf("%d resident tasks, want %d", n, want)
	}
}

// releaseAllButLast gives back the reference of the data region to the block with x, so that the task in
// flight has the last one.
func (r *rig) releaseAllButLast(x []uint32) {
	r.t.Helper()
	r.run(launch{label: "release", exit: []arg{{s: x, kind: memory.MapRelease}}})
	r.eventually("the kernel has the last reference", func() bool {
		block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
		n, _ := block.Count()
		return n == 1
	})
}

func TestRecordOfAResidentTaskIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(resident{}); n > 320 {
		t.Errorf("it has %d bytes", n)
	}
}

func TestDeferredKernelOnPresentStorageIsAResidentTask(t *testing.T) {
	x, y, zero, big := filled(16, 1), filled(16, 1), filled(16, 0), filled(16, 0)
	mix := launch{kernel: "mix", args: []arg{tofrom(x), to(zero), alloc(zero)}, constant: 1, out: [][]uint32{x}}
	for name, c := range map[string]struct {
		change  func(l *launch)
		resides bool
	}{
		"plain":               {func(*launch) {}, true},
		"parts of one block":  {func(l *launch) { l.args[1], l.args[2] = to(x[:8]), to(x[8:]) }, true},
		"priority":            {func(l *launch) { l.priority = 1 }, false},
		"always":              {func(l *launch) { l.args[0].always = true }, false},
		"absent storage":      {func(l *launch) { l.args[0] = tofrom(y) }, false},
		"absent read storage": {func(l *launch) { l.args[1] = to(y) }, false},
		"nothing to do":       {func(l *launch) { l.empty = true }, false},
	} {
		resides := func(t *testing.T, pinned ...[]uint32) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			for _, s := range pinned {
				r.pin(s)
				defer r.unpin(s)
			}
			r.watches = false
			r.run(launch{label: "enter", enter: []arg{to(x), to(zero), to(big)}, included: true})
			r.d.hold()
			l := mix
			l.label, l.args = name, append([]arg(nil), mix.args...)
			c.change(&l)
			r.run(l)
			r.s.mu.Lock()
			n, _ := r.residents(zero)
			if parts, _ := r.residents(x); parts > n {
				n = parts
			}
			r.s.mu.Unlock()
			if n > 0 != c.resides {
				t.Errorf("%d resident tasks", n)
			}
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x), from(zero), from(big)}, included: true})
		}
		t.Run(name, func(t *testing.T) { resides(t) })
		t.Run(name+", other storage is pinned", func(t *testing.T) { resides(t, big) })
		t.Run(name+", its storage is pinned", func(t *testing.T) { resides(t, x, zero) })
	}
}

// keepers returns how many keep the memory to which a pointer points, the program among them.
func (r *rig) keepers(p Pointer) int {
	r.t.Helper()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	m, _, err := r.s.pointers.Find(p, 0)
	if err != nil {
		r.t.Error(err)
		return 0
	}
	return m.Keepers()
}

// A kernel that is given pointers to device memory is a resident task, too, with list items beside them or without.
func TestKernelOnMemoryOfPointersIsAResidentTask(t *testing.T) {
	x, y := filled(16, 1), filled(16, 1)
	toEnd := func(p Pointer) arg { return arg{at: p, s: array32(16), toEnd: true} }
	for name, c := range map[string]struct {
		// args are the kernel's arguments, where 48 elements of 2 lie at p, and q points to x on the device.
		args    func(p, q Pointer) []arg
		change  func(r *rig, g *Region)
		resides bool
		x, p    uint32 // the elements of x and at p afterwards
		unkept  bool   // the task does not use p
	}{
		"pointers alone": {args: func(p, _ Pointer) []arg {
			return []arg{reaches(p, 16), reaches(p.Add(64), 16), reaches(p.Add(128), 16)}
		},
			resides: true, x: 1, p: 11},
		"memory up to its end": {args: func(p, _ Pointer) []arg { return []arg{toEnd(p), to(x), to(y)} },
			resides: true, x: 1, p: 9},
		"an item before pointers": {args: func(p, _ Pointer) []arg { return []arg{tofrom(x), reaches(p, 16), toEnd(p.Add(64))} },
			resides: true, x: 8, p: 2},
		"an item between pointers": {args: func(p, _ Pointer) []arg { return []arg{reaches(p, 16), to(x), reaches(p.Add(64), 16)} },
			resides: true, x: 1, p: 10},
		"items around a pointer": {args: func(p, _ Pointer) []arg { return []arg{tofrom(x), reaches(p, 16), to(y)} },
			resides: true, x: 7, p: 2},
		"a pointer to the storage of an item": {args: func(p, q Pointer) []arg { return []arg{reaches(q, 16), reaches(p, 16), to(y)} },
			change: func(r *rig, _ *Region) {
				// Constructs that find x present leave its block dormant.
				r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
				r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			}, resides: true, x: 7, p: 2},
		"an item without bytes, up to the end of its storage": {args: func(p, _ Pointer) []arg { return []arg{tofrom(x), reaches(p, 16), to(y)} },
			change: func(_ *rig, g *Region) { implicit(g, 0) }, resides: true, x: 7, p: 2},
		"items without bytes alone": {args: func(p, _ Pointer) []arg { return []arg{alloc(x), alloc(y), alloc(y)} },
			change: func(_ *rig, g *Region) { implicit(g, 0, 1, 2) }, resides: true, x: 6, p: 2, unkept: true},
		"an item without bytes that counts nothing": {args: func(p, _ Pointer) []arg { return []arg{tofrom(x), reaches(p, 16), to(y)} },
			change: func(_ *rig, g *Region) { g.Buffers[0].ToEnd, g.Enter[0].Size = true, 0 }, x: 7, p: 2},
		"an item up to the end of its storage": {args: func(p, _ Pointer) []arg { return []arg{tofrom(x), reaches(p, 16), to(y)} },
			change: func(_ *rig, g *Region) { g.Buffers[2].ToEnd = true }, x: 7, p: 2},
		"items in another order": {args: func(p, _ Pointer) []arg { return []arg{reaches(p, 16), to(x), to(y)} },
			change: func(_ *rig, g *Region) { g.Buffers[1].Map, g.Buffers[2].Map = 1, 0 }, x: 1, p: 9},
		"an item that is not bound": {args: func(p, _ Pointer) []arg { return []arg{reaches(p, 16), to(x), to(y)} },
			change: func(_ *rig, g *Region) { g.Buffers[2] = g.Buffers[1] }, x: 1, p: 9},
		"a pointer to storage that a task is about to copy": {args: func(p, q Pointer) []arg { return []arg{reaches(q, 16), reaches(p, 16), to(y)} },
			change: func(r *rig, _ *Region) {
				r.run(launch{label: "always", kernel: "add", args: []arg{{s: x, kind: memory.MapFrom, always: true}}, empty: true})
			}, x: 7, p: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, watches := range []bool{false, true} {
				r := newRig(t, memoryModes[1], 1)
				r.watches = watches
				copy(x, filled(16, 1))
				r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
				p := r.allocate(48)
				q, _ := r.s.MappedPointer(sectionOf(x))
				r.transfer(launch{label: "two", included: true}, toDevice(p, filled(48, 2)))
				r.d.hold()
				g := r.region(launch{label: "kernel", kernel: "mix", args: c.args(p, q), constant: 1, out: [][]uint32{x}})
				// Of memory up to its end the kernel takes as much as of the others.
				copy(g.Values, valueBytes(uint32(16), uint32(1)))
				if c.change != nil {
					c.change(r, g)
				}
				if err := r.s.Run(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				if n := len(r.recordsInFlight()); n > 0 != c.resides {
					t.Errorf("%d resident tasks", n)
				}
				if n := r.keepers(p); n == 1 != c.unkept {
					t.Errorf("%d keep the memory while the task is in flight", n)
				}
				r.d.release()
				r.taskwait()
				if n := r.keepers(p); n != 1 {
					t.Errorf("%d keep the memory when the task has ended", n)
				}
				z := array32(16)
				r.transfer(launch{label: "back", included: true}, toHost(z, p))
				r.expect("p", z, filled(16, c.p)...)
				r.free(p)
				r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
				r.expect("x", x, filled(16, c.x)...)
				r.close()
			}
		})
	}
}

// A kernel gets a pointer to storage of which another task has the last reference: in the order of the program the storage is copied
// back and removed before, and what the kernel writes to the memory stays there.
func TestKernelOnStorageThatATaskTakesAwayIsNoResidentTask(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x := filled(16, 1)
		r.d.hold()
		r.run(launch{label: "maps x", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
		q, ok := r.s.MappedPointer(sectionOf(x))
		if !ok {
			t.Fatal("x is not present")
		}
		r.run(launch{label: "kernel", kernel: "add", args: []arg{reaches(q, 16)}, constant: 4, out: [][]uint32{x}})
		if n := len(r.recordsInFlight()); n > 0 {
			t.Errorf("%d resident tasks", n)
		}
		r.d.release()
		r.taskwait()
		want := uint32(2)
		if r.share {
			want = 6
		}
		r.expect("x", x, filled(16, want)...)
	})
}

// The storage of a slice that device and host share is unmapped before a kernel with a pointer to it starts. What the kernel
// writes is to be visible to the host, which needs a target.
func TestKernelOnSharedStorageIsNoResidentTask(t *testing.T) {
	r := newRig(t, memoryModes[4], 1)
	defer r.close()
	x := filled(16, 1)
	gate := &heldTask{}
	enter := r.region(launch{label: "enter", enter: []arg{to(x)}, included: true})
	enter.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(t.Context(), enter); err != nil {
		t.Fatal(err)
	}
	q, _ := r.s.MappedPointer(sectionOf(x))
	r.add(&tasks.Task{Label: "gate", Domain: tasks.Host, Runner: gate, Depend: depends(tasks.DependInOut, x)})
	r.run(launch{label: "kernel", kernel: "add", args: []arg{reaches(q, 16)}, constant: 4, out: [][]uint32{x}})
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.d.hold()
	gate.complete(nil)
	if n := len(r.recordsInFlight()); n > 0 {
		t.Errorf("%d resident tasks", n)
	}
	r.d.release()
	r.taskwait()
	r.expect("x", x, filled(16, 5)...)
}

// Launches with more arguments and push constants than the record has room for are resident tasks, too, whatever becomes of them.
func TestLargestLaunchIsAResidentTask(t *testing.T) {
	for name, c := range map[string]struct {
		// meanwhile happens while the device has the kernel, or is about to get it.
		meanwhile       func(r *rig, x []uint32)
		fails, pointers bool
	}{
		"nothing happens":             {func(*rig, []uint32) {}, false, false},
		"four of them are pointers":   {func(*rig, []uint32) {}, false, true},
		"it has the last reference":   {func(r *rig, x []uint32) { r.releaseAllButLast(x) }, false, false},
		"its batch is refused":        {func(r *rig, _ []uint32) { r.failNext() }, true, false},
		"it is refused with pointers": {func(r *rig, _ []uint32) { r.failNext() }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWays(t, func(t *testing.T, r *rig) {
				var slices [8][]uint32
				args, enter := make([]arg, 8), make([]arg, 8)
				for i := range slices {
					slices[i] = filled(16, uint32(i+1))
					enter[i] = to(slices[i])
					args[i] = to(slices[i])
				}
				x := slices[0]
				args[0] = tofrom(x)
				r.run(launch{label: "enter", enter: enter, included: true})
				if c.pointers {
					for i := 1; i < 8; i += 2 {
						args[i].at, _ = r.s.MappedPointer(sectionOf(slices[i]))
					}
				}
				r.d.hold()
				r.busy()
				r.run(launch{label: "kernel", kernel: "wide", args: args, constant: 5, out: slices[:]})
				r.eventually("the kernel is placed", func() bool { return r.s.life.live > 0 && len(r.tasksInFlightLocked()) == r.s.life.live })
				if n := len(r.recordsInFlight()); n == 0 != r.s.general {
					t.Errorf("%d resident tasks", n)
				}
				c.meanwhile(r, x)
				r.d.release()
				if err := r.scope.Wait(t.Context(), nil); (err != nil) != c.fails {
					t.Errorf("got %v", err)
				}
				exit := enter[1:]
				if r.s.Present(sectionOf(x)) {
					exit = append(exit, from(x))
				}
				r.run(launch{label: "exit", exit: exit, included: true})
				if !c.fails {
					r.expect("x", x, filled(16, 1+2+3+4+5+6+7+8+5+3)...)
				}
			})
		})
	}
}

// implicit makes an item of a region one without bytes, which is bound up to the end of its storage.
func implicit(g *Region, items ...int) {
	if g.Buffers == nil {
		for i := range g.Enter {
			g.Buffers = append(g.Buffers, Buffer{Map: i})
		}
	}
	for _, i := range items {
		g.Enter[i].Size, g.Enter[i].Presence = 0, memory.IfPresent
		for k := range g.Buffers {
			if g.Buffers[k].Map == i {
				g.Buffers[k].ToEnd = true
			}
		}
	}
}

// The storage of an item without bytes is deleted while a kernel uses it, and mapped anew behind the kernel, whose end leaves that
// alone.
func TestEndOfAnItemWithoutBytesLeavesAloneWhatIsMappedAfterIt(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x, y := filled(16, 1), filled(16, 2)
		r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
		r.d.hold()
		g := r.region(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(y), to(y)}, out: [][]uint32{x}})
		implicit(g, 1, 2)
		if err := r.s.Run(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		r.run(launch{label: "delete", exit: []arg{{s: y, kind: memory.MapDelete}}})
		r.eventually("y is gone", func() bool { _, ok := r.residents(y); return !ok })
		r.run(launch{label: "enter anew", enter: []arg{to(y)}, in: [][]uint32{x}})
		r.d.release()
		r.taskwait()
		if !r.s.Present(sectionOf(y)) {
			t.Fatal("what was mapped anew is gone")
		}
		r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
		r.expect("x", x, filled(16, 7)...)
	})
}

// An item without bytes lies in the block that begins at its pointer, and not in the one that ends there, also when its task
// becomes a target.
func TestItemWithoutBytesBetweenTwoBlocks(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		s := filled(32, 1)
		x, y := s[:16], s[16:]
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.run(launch{label: "enter", enter: []arg{to(y)}, included: true})
		r.d.hold()
		g := r.region(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(y), to(x)}, constant: 1, out: [][]uint32{x}})
		implicit(g, 1)
		if err := r.s.Run(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		r.releaseAllButLast(x)
		r.d.release()
		r.taskwait()
		r.expect("x", x, filled(16, 6)...)
		r.run(launch{label: "exit", exit: []arg{from(y)}, included: true})
	})
}

// A resident task that becomes a target while it is in flight hands over the memory of its pointers, whatever is the reason.
func TestResidentTaskHandsOverTheMemoryOfItsPointers(t *testing.T) {
	for name, c := range map[string]struct {
		// meanwhile happens while the device has the kernel, or is about to get it.
		meanwhile func(r *rig, x []uint32)
		fails     bool
	}{
		"it has the last reference": {func(r *rig, x []uint32) { r.releaseAllButLast(x) }, false},
		"its storage is deleted": {func(r *rig, x []uint32) {
			r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}})
			r.eventually("x is gone", func() bool { _, ok := r.residents(x); return !ok })
		}, false},
		"its batch is refused": {func(r *rig, _ []uint32) { r.failNext() }, true},
	} {
		handsOver := func(t *testing.T, toEnd bool) {
			inBothWays(t, func(t *testing.T, r *rig) {
				x := filled(16, 1)
				p := r.allocate(32)
				r.transfer(launch{label: "two", included: true}, toDevice(p, filled(32, 2)))
				r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
				r.d.hold()
				r.busy()
				g := r.region(launch{label: "kernel", kernel: "mix", args: []arg{reaches(p, 16), tofrom(x), reaches(p.Add(64), 16)}, constant: 1, out: [][]uint32{x}})
				if toEnd {
					implicit(g, 0)
				}
				if err := r.s.Run(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				c.meanwhile(r, x)
				r.d.release()
				if err := r.scope.Wait(t.Context(), nil); (err != nil) != c.fails {
					t.Errorf("got %v", err)
				}
				if n := r.keepers(p); n != 1 {
					t.Errorf("%d keep the memory when the tasks have ended", n)
				}
				if !c.fails {
					z := array32(32)
					r.transfer(launch{label: "back", included: true}, toHost(z, p))
					r.expect("p", z, append(filled(16, 10), filled(16, 2)...)...)
				}
				r.free(p)
				if r.s.Present(sectionOf(x)) {
					r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
				}
			})
		}
		t.Run(name, func(t *testing.T) { handsOver(t, false) })
		t.Run(name+", with an item without bytes", func(t *testing.T) { handsOver(t, true) })
	}
}

// Kernels on present storage are placed at once behind copies to the host that are not over, and on other storage beside them.
// Only where the host reads memory of the device itself, for a construct that waits, kernels on this memory come after that.
func TestKernelBehindACopyToTheHostIsPlacedAtOnce(t *testing.T) {
	for _, mode := range append(slices.Clone(memoryModes), pinnedModes[0]) {
		hostReads := (mode.memory == unifiedMemory || mode.memory == incoherentMemory) && !mode.hidden
		for _, mode.general = range []bool{false, true} {
			for _, awaited := range []bool{false, true} {
				for _, byPointer := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/general %v/awaited %v/by pointer %v", mode.name, mode.general, awaited, byPointer), func(t *testing.T) {
						for seed := range uint64(deviceOrders) {
							behindACopyToTheHost(t, newRig(t, mode, seed), mode.pinned, awaited, byPointer, hostReads && awaited)
						}
					})
				}
			}
		}
	}
}

func behindACopyToTheHost(t *testing.T, r *rig, pinned, awaited, byPointer, comesAfter bool) {
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	if pinned {
		r.pin(x)
		defer r.unpin(x)
	}
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	add := func(s []uint32, c uint32) {
		a := tofrom(s)
		if byPointer {
			a.at, _ = r.s.MappedPointer(sectionOf(s))
		}
		r.run(launch{label: "kernel", kernel: "add", args: []arg{a}, constant: c, out: [][]uint32{s}})
	}
	r.d.hold()
	add(x, 1)
	update := r.region(launch{label: "update", out: [][]uint32{x}, included: awaited})
	update.Transfers = []transfer.Request{{Kind: transfer.UpdateFrom, Host: sectionOf(x), Size: 64}}
	over := make(chan error, 1)
	go func() { over <- r.s.Run(context.Background(), update) }()
	r.eventually("the update has entered", func() bool { return len(r.s.presence.hostWrites.byStart) > 0 })
	add(x, 4)
	add(y, 4)
	// It may be the update's goroutine that starts the kernel.
	parked := 0
	r.eventually("the kernel behind the update has started", func() bool {
		if writes := r.s.presence.hostWrites.byStart; len(writes) > 0 {
			parked = len(*writes[0].writer)
		}
		kernels := 0
		for _, task := range r.tasksInFlightLocked() {
			if t, isTarget := task.Owner.(*target); !isTarget || t.dispatches() {
				kernels++
			}
		}
		return kernels+parked == 3
	})
	if parked == 1 != comesAfter {
		t.Errorf("%d tasks wait for the end of the update", parked)
	}
	want := 3
	switch {
	case r.s.general:
		want = 0
	case comesAfter:
		want = 2
	}
	if n := len(r.recordsInFlight()); n != want {
		t.Errorf("%d resident tasks, want %d", n, want)
	}
	r.d.release()
	if err := <-over; err != nil {
		t.Error(err)
	}
	r.taskwait()
	r.expect("x", x, filled(16, 2)...)
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 6)...)
	r.expect("y", y, filled(16, 5)...)
}

// A task that uses storage on the host comes after what the host is to write there for a task before it: one that copies present
// storage to the device anew, and a kernel that uses the host's storage in place, though it only writes it.
func TestUseOfHostStorageComesAfterCopiesToIt(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y := filled(16, 1), filled(16, 1)
		p := r.allocate(16)
		defer r.free(p)
		r.transfer(launch{label: "seven"}, toDevice(p, filled(16, 7)))
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.taskwait()
		r.d.hold()
		r.run(launch{label: "kernel", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
		r.transfer(launch{label: "update", out: [][]uint32{x}}, transfer.Request{Kind: transfer.UpdateFrom, Host: sectionOf(x), Size: 64})
		r.run(launch{label: "anew", enter: []arg{{s: x, kind: memory.MapTo, always: true}}, out: [][]uint32{x}})
		r.transfer(launch{label: "copy", out: [][]uint32{y}}, toHost(y, p))
		r.run(launch{label: "kernel", kernel: "set", args: []arg{from(y)}, constant: 3, out: [][]uint32{y}})
		r.d.release()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 2)...)
		r.expect("y", y, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
	})
}

// A synchronous kernel on present storage is a resident task, too, whatever becomes of it, and its construct
// returns when it is over.
func TestSynchronousKernelOnPresentStorageIsAResidentTask(t *testing.T) {
	for name, c := range map[string]struct {
		// meanwhile happens while the device has the kernel, which it holds.
		meanwhile func(r *rig, x []uint32)
		// gone says that x is no longer present then, and copied that the kernel's results are in x.
		gone, copied bool
	}{
		"nothing happens": {func(*rig, []uint32) {}, false, false},
		"it has the last reference": {func(r *rig, x []uint32) {
			r.releaseAllButLast(x)
		}, true, true},
		"its storage is deleted": {func(r *rig, x []uint32) {
			r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}})
			r.eventually("x is gone", func() bool { _, ok := r.residents(x); return !ok })
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWays(t, func(t *testing.T, r *rig) {
				x, zero := filled(16, 1), filled(16, 0)
				r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
				r.d.hold()
				before := r.s.Stats()
				l := launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}, included: true}
				over := make(chan error)
				go func() { over <- r.s.Run(context.Background(), r.region(l)) }()
				q := r.s.order.All()[0]
				r.eventually("the construct waits for its queue", func() bool { return q.Drivers() == 1 && q.InFlight() != nil })
				if !r.watches { // otherwise its task is a target
					r.resides(x)
				}
				c.meanwhile(r, x)
				woken := r.wakeUps()
				r.d.release()
				if err := <-over; err != nil {
					t.Error(err)
				}
				r.drivesNothing()
				// It has waited for what its task places at its end, too, in the waiter's place. A construct with
				// an observer comes to wait later, when the waiter may be at it: then either ends the task.
				if n := r.wakeUps() - woken; n != 0 && !r.watches {
					t.Errorf("waiters were woken %d times", n)
				}
				if now := r.s.Stats(); !c.gone && (now.Submissions != before.Submissions+1 || now.Copies != before.Copies) {
					t.Errorf("from %+v to %+v, want one submission without copies", before.Stats, now.Stats)
				}
				r.s.mu.Lock()
				if n, present := r.residents(x); n != 0 || present == c.gone {
					t.Errorf("%d resident tasks are left, x is present: %v", n, present)
				}
				r.s.mu.Unlock()
				if c.copied {
					r.expect("x", x, filled(16, 4)...)
				}
				r.taskwait()
				exit := []arg{from(zero)}
				if !c.gone {
					exit = append(exit, from(x))
				}
				r.run(launch{label: "exit", exit: exit, included: true})
				if !c.gone {
					r.expect("x", x, filled(16, 4)...)
				}
			})
		})
	}
}

// A construct no longer waits for its task, because its context has ended: the task goes on, and what the two
// shared is not used for another construct as long as the task has it.
func TestSynchronousResidentTaskOutlivesItsConstruct(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x, y := filled(16, 1), filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
		r.d.hold()
		ctx, cancel := context.WithCancel(t.Context())
		add := func(s []uint32, ctx context.Context) error {
			l := launch{label: "kernel", kernel: "add", args: []arg{tofrom(s)}, constant: 1, included: true}
			return r.s.Run(ctx, r.region(l))
		}
		over := make(chan error)
		go func() { over <- add(x, ctx) }()
		q := r.s.order.All()[0]
		var first *awaited
		r.eventually("the kernel is in flight", func() bool {
			if len(q.InFlight()) > 0 {
				first = awaitedOf(q.InFlight()[0].Tasks()[0])
			}
			return first != nil
		})
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		go func() { over <- add(y, t.Context()) }()
		r.eventually("the other kernel is in flight", func() bool { return len(q.InFlight()) > 1 })
		r.s.mu.Lock()
		if awaitedOf(q.InFlight()[0].Tasks()[0]) != first || awaitedOf(q.InFlight()[1].Tasks()[0]) == first {
			t.Error("the constructs share one record with their tasks")
		}
		r.s.mu.Unlock()
		r.d.release()
		if err := <-over; err != nil {
			t.Error(err)
		}
		r.taskwait()
		r.s.mu.Lock()
		if first.place != nil {
			t.Error("it has the place of a task that has ended")
		}
		r.s.mu.Unlock()
		r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
		r.expect("x", x, filled(16, 2)...)
		r.expect("y", y, filled(16, 2)...)
	})
}

// An exit construct that no dependence orders gives back the reference of the data region while a kernel
// is in flight. Then the kernel's task has the last one, and copies the results to the host.
func TestLastReferenceOfAResidentTaskCopiesToTheHost(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x, zero := filled(48, 1), filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.d.hold()
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x[16:32]), to(x[:16]), tofrom(x[32:])}, constant: 1, out: [][]uint32{x}})
		r.resides(x)
		r.releaseAllButLast(x)
		x[0] = 7 // it is mapped to only
		r.d.release()
		r.taskwait()
		if _, ok := r.residents(x); ok {
			t.Error("x is present")
		}
		r.expect("x", x, append(append([]uint32{7}, filled(15, 1)...), append(filled(16, 6), filled(16, 1)...)...)...)
		r.run(launch{label: "exit", exit: []arg{{s: zero, kind: memory.MapRelease}}, included: true})
	})
}

// A construct that follows the kernel maps the storage of which the kernel has the last reference: in
// the order of the program the storage is copied back and removed before.
func TestStorageIsMappedAnewAfterItsLastResidentTask(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.d.hold()
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}})
		r.resides(x)
		r.releaseAllButLast(x)
		r.run(launch{label: "maps x", kernel: "mix", args: []arg{from(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}})
		r.s.mu.Lock()
		block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
		if n, _ := block.Count(); n != 1 {
			t.Errorf("%d references: the construct has entered", n)
		}
		r.s.mu.Unlock()
		r.run(launch{label: "enters x", enter: []arg{to(x)}, out: [][]uint32{x}})
		r.d.release()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x), from(zero)}, included: true})
	})
}

// A construct deletes storage that a kernel in flight uses, and another one that follows the kernel maps
// it again: the end of the kernel's task must leave that alone.
func TestEndOfAResidentTaskLeavesAloneWhatIsMappedAfterIt(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.d.hold()
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}})
		r.resides(x)
		r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}})
		r.eventually("x is gone", func() bool { _, ok := r.residents(x); return !ok })
		r.run(launch{label: "enter anew", enter: []arg{to(x)}, out: [][]uint32{x}})
		r.s.mu.Lock()
		if _, ok := r.residents(x); ok {
			t.Error("x was mapped before the kernel's task has ended")
		}
		r.s.mu.Unlock()
		r.d.release()
		r.taskwait()
		r.s.mu.Lock()
		if _, ok := r.residents(x); !ok {
			t.Error("what was mapped anew is gone")
		}
		if r.s.presence.vacant() {
			t.Error("an exit is still to come")
		}
		r.s.mu.Unlock()
		r.run(launch{label: "exit", exit: []arg{from(x), from(zero)}, included: true})
	})
}

// Whether a batch is refused that has the task's command, or the batch before it of another queue, the
// task fails, and so does the one that follows it.
func TestResidentTaskFailsWithItsBatch(t *testing.T) {
	for _, across := range []bool{false, true} {
		for way := range 4 {
			general, watches := way&1 != 0, way&2 != 0
			t.Run(fmt.Sprintf("across queues %v, general %v, observed %v", across, general, watches), func(t *testing.T) {
				mode := onQueues
				mode.general = general
				r := newRig(t, mode, 1)
				defer r.close()
				r.watches = watches
				x, y, zero := filled(16, 1), filled(16, 1), filled(16, 0)
				r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(zero)}, included: true})
				r.use(0)
				r.busy()
				r.run(launch{label: "first", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, out: [][]uint32{x}})
				r.resides(x)
				if across {
					r.use(1)
				}
				r.failNext()
				r.run(launch{label: "second", kernel: "mix", args: []arg{tofrom(y), to(x), to(zero)}, in: [][]uint32{x}, out: [][]uint32{y}})
				r.d.release()
				var failed *tasks.Error
				err := r.scope.Wait(t.Context(), nil)
				if !errors.Is(err, vk.ErrOutOfMemory) || !errors.As(err, &failed) {
					t.Fatalf("got %v", err)
				}
				r.use(0)
				r.run(launch{label: "exit", exit: []arg{from(x), from(y), from(zero)}, included: true})
			})
		}
	}
}

// Whatever way a resident task ends, its record has nothing of it left.
func TestRecycledRecordCarriesNothingOver(t *testing.T) {
	checked := 0
	for name, end := range map[string]func(r *rig){
		"success": func(r *rig) {},
		"refusal": func(r *rig) { r.failNext() },
		"absence": func(r *rig) { r.run(launch{label: "delete", exit: []arg{{s: nil, kind: memory.MapDelete}}}) },
	} {
		recycle := func(t *testing.T, watches, pinned bool) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			r.watches = watches
			x, y := filled(16, 1), filled(16, 0)
			if pinned {
				r.pin(x)
				defer r.unpin(x)
			}
			p := r.allocate(32)
			defer r.free(p)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			var wide []arg
			for range 7 {
				s := filled(16, 1)
				wide = append(wide, to(s))
				r.run(launch{label: "enter", enter: []arg{to(s)}, included: true})
				defer r.run(launch{label: "exit", exit: []arg{{s: s, kind: memory.MapRelease}}, included: true})
			}
			r.d.hold()
			end(r)
			for range 4 {
				r.run(launch{label: "pointers", kernel: "mix", args: []arg{reaches(p, 16), reaches(p.Add(64), 16), reaches(p.Add(64), 16)}, out: [][]uint32{y}})
				r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(x), to(x)}, out: [][]uint32{x}})
				r.run(launch{label: "target", kernel: "mix", args: []arg{tofrom(x), to(y), to(x)}, in: [][]uint32{y}, out: [][]uint32{x}})
				_ = r.s.Run(ended, r.region(launch{label: "dropped", kernel: "mix", args: []arg{tofrom(x), to(x), to(x)}, out: [][]uint32{x}}))
				_ = r.s.Run(ended, r.region(launch{label: "dropped", kernel: "mix", args: []arg{reaches(p, 16), to(x), to(x)}, out: [][]uint32{x}}))
				r.run(launch{label: "wide", kernel: "wide", args: append([]arg{reaches(p, 16)}, wide...), out: [][]uint32{y}})
			}
			records := r.recordsInFlight()
			r.d.release()
			_ = r.scope.Wait(context.Background(), nil)
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			// The free lists have those, too, of the tasks that were not placed, as far as they are kept.
			for {
				list, ok := r.s.residents.lists.Get().(*freeResidents)
				if !ok {
					break
				}
				for _, l := range []*resident{list.spare, list.returned.Load()} {
					for ; l != nil; l = l.next {
						records[l] = true
					}
				}
			}
			for l := range records {
				checked++
				fresh := resident{s: r.s, groups: l.groups, extent: l.extent, fewPush: l.fewPush, watch: l.watch, more: l.more, next: l.next}
				fresh.order.Owner = l
				if got := *l; !reflect.DeepEqual(got, fresh) {
					t.Errorf("%+v", got)
				}
				if l.more != nil {
					if wide := l.more.wide; wide != nil {
						wide.push = [residentPush]byte{} // numbers, which are written before they are read
						if left := leftoversOf(reflect.ValueOf(wide).Elem()); len(left) > 0 {
							t.Errorf("it carries over %v", left)
						}
						l.more.wide = nil
					}
					if left := leftoversOf(reflect.ValueOf(l.more).Elem()); len(left) > 0 {
						t.Errorf("it carries over %v", left)
					}
				}
				if l.watch != nil {
					if left := leftoversOf(reflect.ValueOf(l.watch).Elem()); len(left) > 0 {
						t.Errorf("for the observer it carries over %v", left)
					}
				}
			}
		}
		for _, watches := range []bool{false, true} {
			for _, pinned := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, observed %v, pinned %v", name, watches, pinned), func(t *testing.T) { recycle(t, watches, pinned) })
			}
		}
	}
	if checked == 0 {
		t.Error("no record was checked")
	}
}

// recordsInFlight returns the records of the resident tasks that are placed.
func (r *rig) recordsInFlight() map[*resident]bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	records := make(map[*resident]bool)
	for _, task := range r.tasksInFlightLocked() {
		if l, ok := task.Owner.(*resident); ok {
			records[l] = true
		}
	}
	return records
}

// tasksInFlightLocked returns the tasks that are placed.
func (r *rig) tasksInFlightLocked() (all []*order.Task) {
	for _, q := range r.s.order.All() {
		for _, b := range append(slices.Clone(q.InFlight()), q.Pending()) {
			all = append(all, b.Tasks()...)
		}
	}
	return all
}

// What becomes of a resident task when it starts late: its storage has gone meanwhile, so it is a
// target, which finds that out like any other.
func TestResidentTaskStartsAsATargetWhereItsStorageHasGone(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		gate := &heldTask{}
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.add(&tasks.Task{Label: "gate", Domain: tasks.Host, Runner: gate, Depend: depends(tasks.DependInOut, x)})
		r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}})
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		x[3] = 5
		gate.complete(nil)
		r.taskwait()
		want := filled(16, 4)
		want[3] = 16
		r.expect("x", x, want...)
		r.run(launch{label: "exit", exit: []arg{from(zero)}, included: true})
	})
}

// addressOf matches the addresses of device memory, of which each rig has others.
var addressOf = regexp.MustCompile(`0x[0-9a-f]+`)

// What prevents a launch is the same error, from the same call, whichever way its task goes.
func TestResidentTasksFailAsTargetsDo(t *testing.T) {
	foreign := errors.New("foreign work failed")
	for name, c := range map[string]struct {
		run  func(r *rig, x, y []uint32) error
		want error
		says string
	}{
		"does not fit": {func(r *rig, x, _ []uint32) error {
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(x)}, out: [][]uint32{x}}))
		}, kernel.ErrInvalidLaunch, "binding 2"},
		"binding is not aligned": {func(r *rig, x, y []uint32) error {
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "read", args: []arg{to(x[1:]), to(x), tofrom(y)}, out: [][]uint32{x}}))
		}, kernel.ErrInvalidLaunch, "begins 4 bytes past"},
		"memory of a pointer is too small": {func(r *rig, x, _ []uint32) error {
			p := r.allocate(16)
			defer r.free(p)
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), reaches(p, 16), reaches(p.Add(4), 16)}, out: [][]uint32{x}}))
		}, ErrInvalidPointer, "binding 2"},
		"too many pointers": {func(r *rig, x, _ []uint32) error {
			p := r.allocate(16)
			defer r.free(p)
			a := reaches(p, 16)
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "mix", args: []arg{a, a, a, a, a}, out: [][]uint32{x}}))
		}, kernel.ErrInvalidLaunch, "5"},
		"memory of a pointer is freed": {func(r *rig, x, _ []uint32) error {
			p := r.allocate(16)
			r.free(p)
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "mix", args: []arg{reaches(p, 16), to(x), to(x)}, out: [][]uint32{x}}))
		}, ErrInvalidPointer, "binding 0"},
		"memory of a pointer is not aligned": {func(r *rig, x, y []uint32) error {
			p := r.allocate(32)
			defer r.free(p)
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "read", args: []arg{reaches(p.Add(4), 15), to(x), tofrom(y)}, out: [][]uint32{x}}))
		}, kernel.ErrInvalidLaunch, "begins 4 bytes past"},
		"scope is sealed": {func(r *rig, x, _ []uint32) error {
			scope := r.graph.NewScope()
			scope.Seal(foreign)
			return r.s.Run(context.Background(), r.region(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(x), to(x)}, out: [][]uint32{x}, scope: scope}))
		}, foreign, "task \"kernel\""},
		"predecessor fails": {func(r *rig, x, _ []uint32) error {
			r.d.hold()
			f := &foreignWork{r: r, semaphore: 77}
			if err := f.order(false, foreign, x); err != nil {
				return err
			}
			r.run(launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(x), to(x)}, out: [][]uint32{x}})
			r.d.release()
			return nil
		}, foreign, "foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			var found [4][2]string
			for way := range found {
				general := way&1 != 0
				mode := memoryModes[1]
				mode.general = general
				r := newRig(t, mode, 1)
				r.watches = way&2 != 0
				x, y := filled(16, 1), filled(16, 1)
				r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
				called := c.run(r, x, y)
				waited := r.scope.Wait(t.Context(), nil)
				if err := errors.Join(called, waited); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("general %v: %v", general, err)
				}
				for i, err := range []error{called, waited} {
					found[way][i] = addressOf.ReplaceAllString(fmt.Sprint(err), "address")
				}
				r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
				r.expect("x", x, filled(16, 1)...)
				r.close()
			}
			for _, other := range found[1:] {
				if other != found[0] {
					t.Errorf("%q and %q", found[0], other)
				}
			}
		})
	}
}

// Resident tasks that become ready together, and those behind them, are placed before the device gets any of them, up to
// a number of them: then it has something to do meanwhile.
func TestResidentTasksThatBecomeReadyTogetherAreSubmittedTogether(t *testing.T) {
	const many = 3*groupTasks + 20
	for name, c := range map[string]struct {
		tasks, want int
		chained     bool
		watched     bool
	}{
		"one":              {tasks: 1, want: 1},
		"independent":      {tasks: 40, want: 1},
		"in a row":         {tasks: 40, want: 1, chained: true},
		"many":             {tasks: many, want: order.MaxInFlight},
		"many in a row":    {tasks: many, want: order.MaxInFlight, chained: true},
		"with an observer": {tasks: 40, want: 1, watched: true},
	} {
		t.Run(name, func(t *testing.T) {
			x, key := filled(4*many, 1), filled(1, 0)
			r := newIntakeRig(t, 0, x)
			defer r.close()
			r.watches, r.s.order.patience = c.watched, math.MaxInt64
			r.s.intake.atOnce = groupTasks // also where goroutines run one at a time
			gate := r.gate(key)
			for i := range c.tasks {
				if c.chained {
					i = 0
				}
				l := add1(x[4*i : 4*i+4])
				l.in = [][]uint32{key}
				r.run(l)
			}
			r.d.hold()
			before := r.d.submits
			gate.complete(nil)
			r.awaitSubmission()
			if got := r.d.submits - before; got != c.want {
				t.Errorf("%d tasks in %d submissions, want %d", c.tasks, got, c.want)
			}
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			for i := range c.tasks {
				at, want := 4*i, uint32(2)
				if c.chained {
					at, want = 0, uint32(1+c.tasks)
				}
				r.expect("x", x[at:at+4], filled(4, want)...)
			}
		})
	}
}
