package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// pinnedArray returns a slice of pinned storage of the mode's kind, filled with v. The test has to
// unpin it.
func (r *rig) pinnedArray(mode memoryMode, n int, v uint32) []uint32 {
	r.t.Helper()
	s := filled(n, v)
	if mode.driver {
		section, err := r.s.AllocatePinned(4 * uint64(n))
		if err != nil {
			r.t.Fatal(err)
		}
		s = unsafe.Slice((*uint32)(section.Ptr), n)
		for i := range s {
			if s[i] != 0 {
				r.t.Errorf("element %d of new storage is %d", i, s[i])
			}
			s[i] = v
		}
		return s
	}
	r.pin(s)
	return s
}

// Copies of pinned storage need no staging memory, whatever construct makes them.
func TestPinnedStorageNeedsNoStaging(t *testing.T) {
	for _, mode := range pinnedModes {
		if mode.late != 1 {
			continue
		}
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x, y := r.pinnedArray(mode, 600, 1), r.pinnedArray(mode, 600, 5)
			defer r.unpin(x)
			defer r.unpin(y)
			one := r.pinnedArray(mode, 600, 1)
			defer r.unpin(one)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			r.mix("kernel", x, one, one, 0)
			r.taskwait()
			update := transfer.Request{Kind: transfer.UpdateFrom, Host: sectionOf(x), Size: 2400}
			r.transfer(launch{label: "update from"}, update)
			r.taskwait()
			r.expect("x", x[:3], 5, 5, 5)
			x[1] = 9
			update.Kind = transfer.UpdateTo
			r.transfer(launch{label: "update to"}, update)
			r.run(launch{label: "exit", exit: []arg{from(x)}})
			r.taskwait()
			r.expect("x", x[:3], 5, 9, 5)
			p := r.allocate(600)
			r.transfer(launch{label: "to the device", out: [][]uint32{x}}, toDevice(p, x))
			r.transfer(launch{label: "to the host", in: [][]uint32{x}, out: [][]uint32{y}}, toHost(y, p))
			r.run(launch{label: "target", kernel: "add", args: []arg{tofrom(y)}, constant: 4, out: [][]uint32{y}})
			r.taskwait()
			r.free(p)
			r.expect("y", y[:3], 9, 13, 9)
			s := r.s.Stats()
			if s.Staging.PeakLiveBytes != 0 {
				t.Errorf("%d bytes of staging memory were used", s.Staging.PeakLiveBytes)
			}
			if mode.share == ShareNothing && (s.BytesToDevice != 5*2400 || s.BytesFromDevice != 4*2400) {
				t.Errorf("%d bytes went to the device and %d from there", s.BytesToDevice, s.BytesFromDevice)
			}
		})
	}
}

// A construct that begins to use a block while the task with the last reference to it is in flight
// keeps that task from copying to the host, and the program may write the host's storage then.
func TestExitsCopyToPinnedStorageOnlyWhatIsDue(t *testing.T) {
	for _, mode := range pinnedModes {
		if mode.share == ShareAll {
			continue
		}
		t.Run(mode.name, func(t *testing.T) {
			for seed := range uint64(deviceOrders) {
				r := newRig(t, mode, seed)
				x := r.pinnedArray(mode, 64, 1)
				r.d.hold()
				r.run(launch{label: "target", kernel: "add", args: []arg{tofrom(x)}, constant: 4})
				entered := make(chan struct{})
				go func() {
					defer close(entered)
					r.run(launch{label: "enter", enter: []arg{to(x)}, scope: r.graph.NewScope(), included: true})
				}()
				r.eventually("the construct has entered", func() bool {
					block := r.s.touchedLocked(sectionOf(x))
					n, _ := block.Count()
					return n == 2
				})
				r.d.release()
				<-entered
				x[0] = 77
				r.taskwait()
				r.expect("x", x[:2], 77, 1)
				r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
				r.expect("x", x[:2], 5, 5)
				r.unpin(x)
				r.close()
			}
		})
	}
}

// A construct that finds storage present is complete after another task's copy of it, so that the
// program may write it then.
func TestConstructsAreCompleteAfterCopiesOfPinnedStorage(t *testing.T) {
	for _, mode := range append(queueModes(pinnedModes[0]), pinnedModes[0]) {
		t.Run(mode.name, func(t *testing.T) {
			for seed := range uint64(deviceOrders) {
				completeAfterCopiesOfPinnedStorage(t, newRig(t, mode, seed))
			}
		})
	}
}

func completeAfterCopiesOfPinnedStorage(t *testing.T, r *rig) {
	defer r.close()
	x, y := r.pinnedArray(pinnedModes[0], 64, 1), filled(64, 1)
	defer r.unpin(x)
	r.run(launch{label: "present", enter: []arg{to(y)}, included: true})
	defer r.run(launch{label: "absent", exit: []arg{alloc(y)}, included: true})
	for name, l := range map[string]launch{
		"enter":                       {enter: []arg{to(x)}},
		"exit":                        {exit: []arg{alloc(x)}},
		"kernel that does not use it": {kernel: "read", args: []arg{to(y[:16]), to(x), from(y[16:32])}},
	} {
		r.run(launch{label: "region", enter: []arg{alloc(x)}, included: true})
		r.d.hold()
		again := arg{s: x, kind: memory.MapTo, always: true}
		r.run(launch{label: "in flight", enter: []arg{again}})
		l.label, l.included, l.scope = name, true, r.graph.NewScope()
		complete := make(chan struct{})
		go func() {
			defer close(complete)
			r.run(l)
		}()
		r.d.release()
		<-complete
		x[0]++ // the fake device reports it if the copy has yet to be made
		r.taskwait()
		for range 3 {
			r.run(launch{label: "exit", exit: []arg{alloc(x)}, included: true})
		}
	}
}

// The device writes to pinned storage itself. What the host is to copy there for an earlier task comes
// first.
func TestCopiesToPinnedStorageComeAfterThoseOfTheHost(t *testing.T) {
	for _, mode := range pinnedModes {
		t.Run(mode.name, func(t *testing.T) {
			for seed := range uint64(deviceOrders) {
				r := newRig(t, mode, seed)
				x, y := r.pinnedArray(mode, 64, 0), r.pinnedArray(mode, 64, 3)
				p := r.allocate(64)
				r.transfer(launch{label: "four", out: [][]uint32{x}}, toDevice(p, filled(64, 4)))
				g := r.region(launch{label: "enter", enter: []arg{to(y)}, included: true})
				g.Enter[0].Share = memory.ShareMust
				if err := r.s.Run(context.Background(), g); err != nil {
					t.Fatal(err)
				}
				q, ok := r.s.MappedPointer(sectionOf(y))
				if !ok {
					t.Fatal("y is not mapped")
				}
				r.d.hold()
				// The host copies y, which the device has in place, when the task ends.
				r.transfer(launch{label: "of the host", out: [][]uint32{x}}, toHost(x, q))
				done := make(chan struct{})
				go func() {
					defer close(done)
					r.transfer(launch{label: "of the device", out: [][]uint32{x}}, toHost(x, p))
				}()
				r.d.release()
				<-done
				r.taskwait()
				r.expect("x", x, filled(64, 4)...)
				r.run(launch{label: "exit", exit: []arg{alloc(y)}, included: true})
				r.free(p)
				r.unpin(x)
				r.unpin(y)
				r.close()
			}
		})
	}
}

// Copies from and to pinned storage follow on the device what it writes there for earlier tasks, which nobody waits for. That also
// holds for constructs that wait for their own copies, and where the host could copy them itself.
func TestCopiesOfPinnedStorageFollowThoseOfTheDevice(t *testing.T) {
	for _, mode := range append(slices.Clone(memoryModes), pinnedModes[0]) {
		mode.share = ShareNothing
		for _, updates := range []bool{false, true} {
			for _, awaited := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, updates %v, awaited %v", mode.name, updates, awaited), func(t *testing.T) {
					for seed := range uint64(deviceOrders) {
						deviceWritesPinnedStorage(t, newRig(t, mode, seed), updates, awaited)
					}
				})
			}
		}
	}
}

func deviceWritesPinnedStorage(t *testing.T, r *rig, updates, awaited bool) {
	defer r.close()
	x := filled(16, 1)
	r.pin(x)
	defer r.unpin(x)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	p, q := r.allocate(16), r.allocate(16)
	defer r.free(p)
	defer r.free(q)
	first, second := p, q // where the kernels are, of which nothing uses the second when x is copied there
	toHost, toDevice, toHostAgain := toHost(x, p), toDevice(q, x), toHost(x, q)
	if updates {
		first, _ = r.s.MappedPointer(sectionOf(x))
		second = first
		toHost, toDevice = update(transfer.UpdateFrom, x), update(transfer.UpdateTo, x)
		toHostAgain = toHost
	}
	r.transfer(launch{label: "zero", included: true}, transfer.Request{Kind: transfer.Fill, Dst: first, Size: 64})
	out := [][]uint32{x}
	add := func(c uint32, at Pointer) {
		r.run(launch{label: "add", kernel: "add", args: []arg{reaches(at, 16)}, constant: c, out: out})
	}
	r.d.hold()
	add(5, first)
	r.transfer(launch{label: "to the host", out: out}, toHost) // writes x
	copies := 1
	var over sync.WaitGroup
	copyToo := func(label string, move transfer.Request) {
		copies++
		l := launch{label: label, included: awaited, out: out}
		if awaited {
			over.Go(func() { r.transfer(l, move) })
		} else {
			r.transfer(l, move)
		}
		r.eventually("the copy is placed, or waits for the end of another task", func() bool { return r.copiesInFlightLocked()+r.parkedLocked() == copies })
		if n := r.parkedLocked(); n > 0 {
			t.Errorf("%s: %d tasks wait for the end of another one", label, n)
		}
	}
	copyToo("to the device", toDevice)
	add(7, second)
	copyToo("to the host again", toHostAgain)
	r.d.release()
	over.Wait()
	r.taskwait()
	r.expect("x", x, filled(16, 12)...)
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
}

// copiesInFlightLocked returns how many tasks without kernels are placed.
func (r *rig) copiesInFlightLocked() (n int) {
	for _, task := range r.tasksInFlightLocked() {
		if t, ok := task.Owner.(*target); ok && !t.dispatches() {
			n++
		}
	}
	return n
}

// parkedLocked returns how many tasks wait for the ends of those that write host storage.
func (r *rig) parkedLocked() (n int) {
	seen := make(map[*parkedTasks]bool)
	for _, w := range r.s.presence.hostWrites.byStart {
		if !seen[w.writer] {
			seen[w.writer] = true
			n += len(*w.writer)
		}
	}
	return n
}

// Storage that is pinned can be shared with the device, which then needs no import of its own.
func TestSharedStorageIsThePinnedStorage(t *testing.T) {
	for _, mode := range pinnedModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x, one := r.pinnedArray(mode, 64, 1), filled(16, 1)
			defer r.unpin(x)
			imports := r.d.imports
			part := x[16:32]
			g := r.region(launch{label: "enter", enter: []arg{to(part)}, included: true})
			g.Enter[0].Share = memory.ShareMust
			if err := r.s.Run(context.Background(), g); err != nil {
				t.Fatal(err)
			}
			r.run(launch{label: "in place", kernel: "mix", args: []arg{tofrom(part), to(one), to(one)}, constant: 3, included: true})
			r.expect("x", x[15:33], append(append([]uint32{1}, filled(16, 8)...), 1)...)
			// A copy of the bytes that the kernel has written, and one over them.
			p := r.allocate(64)
			r.transfer(launch{label: "all of it", out: [][]uint32{x}}, toDevice(p, x))
			r.transfer(launch{label: "and back", out: [][]uint32{x}}, toHost(x[8:24], p.Add(4*24)))
			r.taskwait()
			r.expect("x", x[7:25], append(append([]uint32{1}, append(filled(8, 8), filled(8, 1)...)...), 8)...)
			if _, err := r.s.WithdrawPinned(sectionOf(x)); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "is mapped") {
				t.Errorf("the end of pinned storage that is shared: %v", err)
			}
			r.run(launch{label: "exit", exit: []arg{alloc(part)}, included: true})
			r.free(p)
			if mode.share == ShareNothing && r.d.imports != imports {
				t.Errorf("%d imports for storage that is pinned", r.d.imports-imports)
			}
		})
	}
}

// Pinned storage does not end while something uses it, and then it is as it was.
func TestPinnedStorageInUseIsBusy(t *testing.T) {
	for _, mode := range pinnedModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x := r.pinnedArray(mode, 64, 1)
			busy := func(what, named string) {
				t.Helper()
				_, err := r.s.WithdrawPinned(sectionOf(x))
				if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), named) || !strings.Contains(err.Error(), sectionOf(x).String()) {
					t.Errorf("%s: %v", what, err)
				}
			}
			p := r.allocate(64)
			gate := make(chan struct{})
			token := array32(1)
			r.host("gate", nil, [][]uint32{token}, func() { <-gate })
			r.transfer(launch{label: "waits", in: [][]uint32{token}}, toDevice(p, x))
			busy("a task that waits uses it", "1 tasks use")
			close(gate)
			r.taskwait()
			// A kernel on present storage uses it too: it has to copy it if that has gone when it starts.
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			gate = make(chan struct{})
			r.host("gate", nil, [][]uint32{token}, func() { <-gate })
			r.run(launch{label: "waits", kernel: "mix", args: []arg{tofrom(x[:16]), to(x[16:32]), to(x[32:48])}, in: [][]uint32{token}})
			r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
			busy("a kernel that waits uses it", "1 tasks use")
			close(gate)
			r.taskwait()
			r.expect("x", x[:2], 5, 5)
			r.run(launch{label: "enter", enter: []arg{to(x[:10])}, included: true})
			r.run(launch{label: "kernel", kernel: "add", args: []arg{tofrom(x[:10])}, constant: 4})
			r.taskwait()
			busy("it is mapped", "is mapped")
			r.run(launch{label: "exit", exit: []arg{from(x[:10])}, included: true})
			a, err := r.s.WithdrawPinned(sectionOf(x))
			if err != nil || a == nil {
				t.Fatal(a, err)
			}
			if again, err := r.s.WithdrawPinned(sectionOf(x)); again != nil || err != nil {
				t.Errorf("withdrawn twice: %v, %v", again, err)
			}
			r.s.RestorePinned(a)
			if n := r.s.Memory().Pinned; n.Count != 1 || n.Bytes != 256 {
				t.Errorf("pinned: %+v", n)
			}
			r.unpin(x)
			r.free(p)
			if n := r.s.Memory().Pinned; n.Count != 0 {
				t.Errorf("pinned: %+v", n)
			}
		})
	}
}

// Tasks that are not generated, or not run, leave pinned storage as it was.
func TestTasksThatAreNotRunGivePinnedStorageBack(t *testing.T) {
	for _, mode := range pinnedModes {
		for _, mode.general = range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/general %v", mode.name, mode.general), func(t *testing.T) {
				r := newRig(t, mode, 1)
				defer r.close()
				x := r.pinnedArray(mode, 64, 1)
				r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
				gate, errFails := make(chan struct{}), errors.New("fails")
				token := array32(1)
				r.add(&tasks.Task{Label: "fails", Depend: dependOn(nil, [][]uint32{token}), Runner: hostFailure(func() error { <-gate; return errFails })})
				kernel := launch{label: "not run", kernel: "add", args: []arg{tofrom(x)}, constant: 4, in: [][]uint32{token}}
				r.run(kernel)
				invalid := r.region(kernel)
				invalid.Depend = append(invalid.Depend, tasks.Depend{})
				if err := r.s.Run(context.Background(), invalid); !errors.Is(err, tasks.ErrInvalidDepend) {
					t.Errorf("with an invalid depend item: %v", err)
				}
				close(gate)
				if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, errFails) {
					t.Errorf("got %v", err)
				}
				r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
				r.expect("x", x[:2], 1, 1)
				r.unpin(x)
			})
		}
	}
}

// Host storage of which only a part is pinned is an error in all constructs that use its bytes.
func TestHalfPinnedStorageIsAnError(t *testing.T) {
	for _, mode := range pinnedModes {
		if !mode.driver {
			t.Run(mode.name, func(t *testing.T) { halfPinned(t, newRig(t, mode, 1)) })
		}
	}
}

func halfPinned(t *testing.T, r *rig) {
	defer r.close()
	all := filled(3*1024, 1)
	x, end := all[1024:2048], all[2000:2100]
	r.pin(x)
	defer r.unpin(x)
	p := r.allocate(4096)
	defer r.free(p)
	self := r.region(launch{label: "self", enter: []arg{alloc(end)}, included: true})
	self.Enter[0].Share = memory.ShareMust
	move := func(x transfer.Request) *Region {
		g := r.region(launch{label: "transfer", included: true})
		g.Transfers = []transfer.Request{x}
		return g
	}
	for name, g := range map[string]*Region{
		"a map to":        r.region(launch{label: "map", enter: []arg{to(end)}, included: true}),
		"a map alloc":     r.region(launch{label: "map", enter: []arg{alloc(end)}, included: true}),
		"a map from":      r.region(launch{label: "map", kernel: "add", args: []arg{from(end)}, included: true}),
		"an exit":         r.region(launch{label: "map", exit: []arg{from(end)}, included: true}),
		"a self map":      self,
		"a copy to":       move(toDevice(p, all)),
		"a copy from":     move(toHost(all[:1025], p)),
		"an update":       move(transfer.Request{Kind: transfer.UpdateTo, Host: sectionOf(end), Size: 400}),
		"beyond the last": move(toDevice(p, all[2047:2049])),
	} {
		err := r.s.Run(context.Background(), g)
		if !errors.Is(err, memory.ErrPartialOverlap) || !strings.Contains(err.Error(), sectionOf(x).String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, inside := range [][]uint32{x, x[1:5], all[:1024], all[2048:]} {
		r.run(launch{label: "enter", enter: []arg{to(inside)}, included: true})
		r.run(launch{label: "exit", exit: []arg{alloc(inside)}, included: true})
	}
	// Where no bytes are used and nothing stays it does not matter.
	r.run(launch{label: "map", kernel: "add", args: []arg{alloc(end)}, included: true})
}

// Storage cannot be pinned while device and host share it in another way.
func TestSharedStorageIsNotPinned(t *testing.T) {
	r := newRig(t, modeNamed(t, "discrete"), 1)
	defer r.close()
	x := filled(1024, 1)
	g := r.region(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	g.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	if err := r.s.Pin(sectionOf(x[1:2])); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), sectionOf(x).String()) {
		t.Errorf("pinned while shared: %v", err)
	}
	r.run(launch{label: "exit", exit: []arg{alloc(x)}, included: true})
	r.pin(x)
	r.unpin(x)
}

// A pin that fails leaves nothing behind, and transfers go on without.
func TestPinsThatFailChangeNothing(t *testing.T) {
	refused := &vk.Error{Op: "vkAllocateMemory", Result: vk.ErrorInvalidExternalHandle}
	r := newRig(t, modeNamed(t, "discrete"), 1)
	defer r.close()
	r.d.create = func(int) error { return refused }
	x := filled(1024, 1)
	if err := r.s.Pin(sectionOf(x)); !errors.Is(err, refused) {
		t.Error(err)
	}
	if _, err := r.s.AllocatePinned(100); !errors.Is(err, refused) {
		t.Error(err)
	}
	r.d.create = nil
	if n := r.s.Memory(); n.Pinned.Count != 0 || n.Heaps[1].Imported.Count != 0 || n.Heaps[1].Pinned.Count != 0 || n.Heaps[1].Total.BlockBytes != 0 {
		t.Errorf("%+v", n)
	}
	r.run(launch{label: "target", kernel: "add", args: []arg{tofrom(x)}, constant: 4, included: true})
	r.expect("x", x[:2], 5, 5)
}

// What the driver has allocated counts as memory of its heap.
func TestMemoryOfTheDriverIsReported(t *testing.T) {
	r := newRig(t, modeNamed(t, "discrete"), 1)
	defer r.close()
	section, err := r.s.AllocatePinned(10_000)
	if err != nil {
		t.Fatal(err)
	}
	h := r.s.Memory().Heaps[1]
	if h.Pinned.Count != 1 || h.Pinned.Bytes != 10_000 || h.Total.BlockBytes != 10_000 || h.Total.PeakBlockBytes != 10_000 || h.Imported.Count != 0 {
		t.Errorf("%+v", h)
	}
	a, err := r.s.WithdrawPinned(section)
	if err != nil {
		t.Fatal(err)
	}
	r.s.EndPinned(a)
	if h = r.s.Memory().Heaps[1]; h.Pinned.Count != 0 || h.Total.BlockBytes != 0 || h.Total.PeakBlockBytes != 10_000 {
		t.Errorf("%+v", h)
	}
}

// A device that is lost while it copies pinned storage fails the tasks. The storage can be given up
// then, mapped or not, and stays the host's until nothing of the device uses it.
func TestPinnedStorageOfALostDevice(t *testing.T) {
	for _, mode := range pinnedModes {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s/submission %d", mode.name, n), func(t *testing.T) {
				r := newRig(t, mode, uint64(n))
				x, y := r.pinnedArray(mode, 64, 1), r.pinnedArray(mode, 64, 1)
				r.d.submit = func(call int) error {
					if call == n {
						return errLost
					}
					return nil
				}
				failed := false
				for i := range 4 {
					g := r.region(launch{label: fmt.Sprint("target ", i), kernel: "mix", args: []arg{tofrom(x), to(y), to(y)}, included: true})
					if i == 0 {
						g = r.region(launch{label: "enter", enter: []arg{to(x)}, included: true})
						g.Enter[0].Share = memory.Share(n % 2 * int(memory.ShareMust))
					}
					failed = r.s.Run(context.Background(), g) != nil || failed
				}
				p := r.allocateIfPossible(64)
				if !p.IsNil() {
					failed = r.tryTransfer(launch{label: "copy", included: true}, toDevice(p, x)) != nil || failed
				}
				if !failed {
					r.d.mu.Lock()
					r.d.lose()
					r.d.mu.Unlock()
					r.s.Lose(errLost)
				}
				_ = r.scope.Wait(context.Background(), nil)
				r.eventually("the tasks are over", func() bool {
					return r.s.life.live == 0 && r.s.loss.atRest
				})
				r.unpin(x)
				if err := r.s.Close(); err != nil && !errors.Is(err, vk.ErrDeviceLost) {
					t.Error(err)
				}
				r.closed = true
			})
		}
	}
}

// allocateIfPossible returns memory, or the nil pointer on a lost device.
func (r *rig) allocateIfPossible(elements int) Pointer {
	p, err := r.s.Allocate(4 * uint64(elements))
	if err != nil && !errors.Is(err, vk.ErrDeviceLost) {
		r.t.Error(err)
	}
	return p
}

// A discarded device gives up what is pinned, and what is withdrawn at the moment. The end of a
// withdrawal that comes later does nothing.
func TestDiscardedDevicesPinNothing(t *testing.T) {
	r := newRig(t, pinnedModes[0], 1)
	x, y, z := filled(64, 1), filled(64, 1), filled(64, 1)
	for _, s := range [][]uint32{x, y, z} {
		r.pin(s)
	}
	a, err := r.s.WithdrawPinned(sectionOf(y))
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.s.WithdrawPinned(sectionOf(z))
	if err != nil {
		t.Fatal(err)
	}
	g := r.region(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	g.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	r.closed = true
	if _, err := r.s.Discard(); err != nil {
		t.Error(err) // the fake device says which blocks are left
	}
	r.s.EndPinned(a)
	r.s.RestorePinned(b)
	if r.s.memory.HasPinned() {
		t.Error("something is pinned on a device that was discarded")
	}
	if err := r.s.Pin(sectionOf(x)); !errors.Is(err, ErrClosed) {
		t.Errorf("pinned on a device that was discarded: %v", err)
	}
	if _, err := r.s.AllocatePinned(1); !errors.Is(err, ErrClosed) {
		t.Errorf("allocated on a device that was discarded: %v", err)
	}
}

// Where device and host have one memory, targets use pinned storage in place, however small it is.
func TestTargetsUsePinnedStorageInPlace(t *testing.T) {
	r := newRigOn(t, newFakeDevice(t, unifiedMemory, 1), memoryMode{memory: unifiedMemory, share: ShareLarge})
	defer r.close()
	x, y := filled(64, 1), filled(64, 1)
	r.pin(x)
	defer r.unpin(x)
	imports := r.d.imports
	r.run(launch{label: "pinned", kernel: "add", args: []arg{tofrom(x)}, constant: 4, included: true})
	if s := r.s.Stats(); s.BytesToDevice != 0 || s.BytesFromDevice != 0 {
		t.Errorf("%d bytes moved to the device, %d from it", s.BytesToDevice, s.BytesFromDevice)
	}
	r.run(launch{label: "not pinned", kernel: "add", args: []arg{tofrom(y)}, constant: 4, included: true})
	if s := r.s.Stats(); s.BytesToDevice != 256 || s.BytesFromDevice != 256 || r.d.imports != imports {
		t.Errorf("%d bytes moved to the device, %d from it, %d imports", s.BytesToDevice, s.BytesFromDevice, r.d.imports-imports)
	}
	r.expect("x", x, filled(64, 5)...)
	r.expect("y", y, filled(64, 5)...)
}
