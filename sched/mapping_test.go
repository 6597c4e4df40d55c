package sched

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// Two tasks that nothing orders map the same array. It is copied to the host once, when the
// last of them is complete.
func TestLastOfConcurrentTasksCopiesOut(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(32, 1), filled(32, 0)
		r.d.hold()
		// Both map all of x. That is no data race: the second task has no invocations.
		r.run(launch{label: "first", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 5})
		r.run(launch{label: "empty", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, empty: true})
		r.d.release()
		r.taskwait()
		r.expect("x", x, filled(32, 8)...)
		want := uint64(128)
		if r.share {
			want = 0
		}
		if n := r.s.Stats().BytesFromDevice; n != want {
			t.Errorf("%d bytes copied out, want %d", n, want)
		}
	})
}

// A data region ends while a task that is not ordered with it still has the array mapped. Which
// of the two is the last to remove it, and copies it to the host, shows only when they end.
func TestCopyOutThatWasNotForeseen(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		r.d.hold()
		r.run(launch{label: "keeps x", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 2, out: [][]uint32{x}})
		token := [][]uint32{zero}
		r.run(launch{label: "enter", enter: []arg{to(x)}, out: token})
		r.run(launch{label: "exit", exit: []arg{from(x)}, out: token})
		r.d.release()
		r.taskwait()
		// Whichever of the two ended last has copied x to the host.
		r.expect("x", x, filled(16, 5)...)
	})
}

func TestReadersShareOneCopy(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x := filled(1024, 7)
	r.d.hold()
	var outs [][]uint32
	for i := range 6 {
		outs = append(outs, filled(1024, 0))
		r.run(launch{label: fmt.Sprint("reader ", i), kernel: "mix", args: []arg{tofrom(outs[i]), to(x), to(x)},
			in: [][]uint32{x}, out: [][]uint32{outs[i]}})
	}
	r.d.release()
	r.taskwait()
	for _, out := range outs {
		r.expect("out", out, filled(1024, 14)...)
	}
	if n := r.s.Stats().BytesToDevice; n != 7*4096 {
		t.Errorf("%d bytes to the device for seven arrays of 4096", n)
	}
}

// In the order of the program, an array that one task maps is gone from the device when a task
// that depends on it begins. The scheduler starts the second before the first is complete, and
// must give it the storage and the contents that it would have then.
func TestDependentTasksMeetTheStorageThatOrderDemands(t *testing.T) {
	type step = launch
	x := array32(32)
	zero, other := array32(32), array32(32)
	a, b := x[:16], x[16:]
	all := [][]uint32{a, b}
	mix := func(label string, args ...arg) step {
		return step{label: label, kernel: "mix", args: append(args, to(zero), to(zero))[:3], constant: 1, out: all}
	}
	for _, c := range []struct {
		name  string
		steps []step
		host  bool // a host task between the steps adds 10 to a
		want  [2]uint32
	}{
		{name: "a larger section after a smaller", steps: []step{mix("a", tofrom(a)), mix("x", tofrom(x))}, want: [2]uint32{4, 1}},
		{name: "a smaller section after a larger", steps: []step{mix("x", tofrom(x)), mix("a", tofrom(a))}, want: [2]uint32{4, 1}},
		{name: "to after alloc", steps: []step{{label: "alloc", kernel: "mix", args: []arg{tofrom(other), alloc(x), to(zero)}, out: all}, mix("x", tofrom(x))}, want: [2]uint32{1, 1}},
		{name: "alloc after to", steps: []step{mix("to", to(x)), mix("x", tofrom(x))}, want: [2]uint32{1, 1}},
		{name: "an exit that finds nothing", steps: []step{
			{label: "read", kernel: "mix", args: []arg{to(x), to(zero), to(zero)}, empty: true, out: all},
			{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, out: all}, mix("x", tofrom(x))}, want: [2]uint32{1, 1}},
		{name: "a region that was left", steps: []step{
			{label: "enter", enter: []arg{to(x)}, out: all},
			{label: "exit", exit: []arg{from(x)}, out: all}, mix("x", tofrom(x))}, want: [2]uint32{1, 1}},
		{name: "a region deleted with references left", steps: []step{
			{label: "enter", enter: []arg{to(x)}, out: all}, {label: "enter again", enter: []arg{to(x)}, out: all},
			mix("inside", alloc(x)), {label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}, out: all}, mix("x", tofrom(x))}, want: [2]uint32{1, 1}},
		{name: "the host changes its copy under a region", host: true, steps: []step{
			{label: "enter", enter: []arg{to(x)}, out: all},
			{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, out: all}, mix("x", tofrom(x))}, want: [2]uint32{31, 1}},
		{name: "always from, then changed on the device", steps: []step{
			{label: "enter", enter: []arg{to(x)}, out: all},
			mix("always", arg{s: x, kind: memory.MapFrom, always: true}), mix("changes", alloc(x)),
			{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, out: all}}, want: [2]uint32{1, 1}},
		{name: "always to reads what always from wrote", steps: []step{
			{label: "enter", enter: []arg{to(x)}, out: all},
			mix("always from", arg{s: x, kind: memory.MapFrom, always: true}), mix("changes", alloc(x)), mix("always to", arg{s: x, kind: memory.MapTo, always: true}),
			{label: "exit", exit: []arg{from(x)}, out: all}}, want: [2]uint32{4, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEveryMemory(t, func(t *testing.T, r *rig) {
				clear(x)
				r.d.hold()
				for i, s := range c.steps {
					r.run(s)
					if c.host && i == 0 {
						r.d.release()
						r.host("host", nil, all, func() {
							for k := range a {
								a[k] += 10
							}
						})
						r.taskwait()
						r.d.hold()
					}
				}
				r.d.release()
				r.taskwait()
				r.expect("x", x, append(filled(16, c.want[0]), filled(16, c.want[1])...)...)
			})
		})
	}
}

// Three tasks depend on a reader of the whole array and not on each other, and each maps a cell
// of its own. They do not find the reader's block present, and each of them gets a block for
// its cell.
func TestUnorderedCellsAfterAReaderOfAll(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := array32(48), array32(48)
		cell := func(i int) []uint32 { return x[16*i : 16*i+16] }
		r.d.hold()
		out := array32(48)
		r.run(launch{label: "reader", kernel: "mix", args: []arg{tofrom(out), to(x), to(zero)}, out: [][]uint32{cell(0), cell(1), cell(2)}})
		for i := range 3 {
			r.run(launch{label: fmt.Sprint("cell ", i), kernel: "set", args: []arg{from(cell(i))}, constant: uint32(100 * i), out: [][]uint32{cell(i)}})
		}
		r.d.release()
		r.taskwait()
		for i := range 3 {
			for k, v := range cell(i) {
				if v != uint32(100*i+k) {
					t.Fatalf("cell %d is %v", i, cell(i))
				}
			}
		}
	})
}

func TestRecycledMemoryIsNotTouchedEarly(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		zero := filled(1024, 0)
		r.run(launch{label: "enter", enter: []arg{to(zero)}})
		for i := range uint32(30) {
			x := filled(1024, i)
			r.mix(fmt.Sprint("user ", i), x, zero, zero, 1)
			if i%3 == 0 {
				r.taskwait()
				r.expect("x", x, filled(1024, 3*i+1)...)
			}
		}
		r.taskwait()
		if n := r.s.Stats().Storage.Blocks; n > 1 {
			t.Errorf("%d blocks for one array at a time", n)
		}
		r.run(launch{label: "exit", exit: []arg{{s: zero, kind: memory.MapRelease}}})
	})
}

// Memory in which the device wrote can be written by the host only when a barrier to the host
// has been waited for: it is not enough that a submission with such a barrier is in flight.
func TestHostFillsOnlyMemoryThatItHasSeen(t *testing.T) {
	for seed := range uint64(4) {
		r := newRig(t, memoryModes[0], seed)
		x, y, z, zero := filled(256, 1), filled(64, 1), filled(256, 1), filled(256, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.run(launch{label: "enter again", enter: []arg{to(x)}, included: true})
		r.run(launch{label: "write", kernel: "mix", args: []arg{alloc(x), to(zero), to(zero)}, constant: 9, included: true})
		r.d.hold()
		r.mix("host barrier in flight", y, zero, zero, 0)
		r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}})
		r.mix("recycles x", z, zero, zero, 2)
		r.d.release()
		r.taskwait()
		r.expect("z", z, filled(256, 5)...)
		r.run(launch{label: "exit", exit: []arg{from(zero)}, included: true})
		r.close()
	}
}

// Tasks that start at once on different goroutines map the same array. One of them copies it to
// the device, and the others, which find it present, must not read it before that copy.
func TestSharerWaitsForTheFirstCopy(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			const readers = 6
			for round := range uint32(shareRounds) {
				shared, zero := filled(1<<18, round+1), filled(16, 0)
				var outs [readers][]uint32
				var all sync.WaitGroup
				for i := range readers {
					outs[i] = filled(16, 0)
					all.Go(func() {
						r.run(launch{label: fmt.Sprint("reader ", i), kernel: "mix", args: []arg{tofrom(outs[i]), to(shared), to(zero)}})
					})
				}
				all.Wait()
				r.taskwait()
				for _, out := range outs {
					r.expect("out", out, filled(16, round+1)...)
				}
			}
		})
	}
}

// eventually looks at the scheduler's state until it is as wanted, for states that no event
// announces.
func (r *rig) eventually(what string, reached func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		r.s.mu.Lock()
		ok := reached()
		r.s.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
	r.t.Errorf("%s: not reached", what)
}

// Tasks that follow one another have their exits in that order, even if the goroutine that
// finds the second complete is not the one that works on the first.
func TestExitsKeepTheirOrder(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		all := [][]uint32{x}
		r.run(launch{label: "enter", enter: []arg{to(x)}, out: all, included: true})
		q := r.s
		r.eventually("nobody finishes tasks", func() bool { return !q.exits.finishing })
		r.s.mu.Lock()
		// This stands for another goroutine that is finishing an earlier task.
		q.exits.finishing = true
		r.s.mu.Unlock()
		r.run(launch{label: "changes", kernel: "mix", args: []arg{alloc(x), to(zero), to(zero)}, constant: 1, out: all})
		r.run(launch{label: "exit", exit: []arg{from(x)}, out: all})
		r.eventually("the device is done", func() bool { return len(q.exits.done) == 2 || r.s.life.live == 0 })
		r.s.mu.Lock()
		if len(q.exits.done) != 2 || labelOf(q.exits.done[0]) != "changes" || labelOf(q.exits.done[1]) != "exit" {
			t.Errorf("%d tasks wait for their exit", len(q.exits.done))
		}
		q.exits.finishing = false
		r.s.mu.Unlock()
		var w tasks.Work
		r.s.finishDone(&w)
		w.Run()
		r.taskwait()
		r.expect("x", x, filled(16, 4)...)
	})
}

// A goroutine that finishes tasks may find, when it is done, that others have become complete
// meanwhile, and finishes these too. The tasks that became ready in its first round must not
// wait until then.
func TestFinisherIsNotKeptByWhatOthersAdd(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y, zero := filled(16, 1), filled(16, 1), filled(16, 0)
	q := r.s
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.eventually("nobody finishes tasks", func() bool { return !q.exits.finishing })
	r.s.mu.Lock()
	q.exits.finishing = true
	r.s.mu.Unlock()
	// "enters x" maps x as well, so that the copy to the host, for which "late" has map(always,
	// from), is not made with its kernel and turns out to be due when it ends.
	r.run(launch{label: "late", kernel: "mix", args: []arg{{s: x, kind: memory.MapFrom, always: true}, to(zero), to(zero)}, out: [][]uint32{x}})
	r.run(launch{label: "enters x", kernel: "mix", args: []arg{tofrom(y), alloc(x), to(zero)}, out: [][]uint32{y}})
	r.eventually("the device is done", func() bool { return len(q.exits.done) == 2 })
	ran := make(chan struct{})
	r.host("follows", [][]uint32{y}, nil, func() { close(ran) })

	r.s.mu.Lock()
	rest := q.exits.done[1]
	q.exits.done = q.exits.done[:1]
	q.exits.finishing = false
	r.s.mu.Unlock()
	r.d.set(func() {
		r.d.submit = func(int) error {
			// The scheduler's lock is held here. This stands for another goroutine that sees
			// the second task complete while the first is being finished.
			if rest != nil {
				q.exits.done = append(q.exits.done, rest)
				rest = nil
			}
			return nil
		}
	})
	var w tasks.Work
	r.s.finishDone(&w)
	r.eventually("a task that became ready in the second round runs", func() bool {
		select {
		case <-ran:
			return true
		default:
			return false
		}
	})
	w.Run()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
	r.expect("x", x, filled(16, 3)...)
}

// A copy to the host that is made only when its task ends still comes before a copy from the
// host by a later task, which is ordered behind the first by a task between them.
func TestLateCopyOutComesBeforeACopyInAfterIt(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y, z, zero := filled(16, 1), filled(16, 1), filled(16, 1), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
	r.d.hold()
	r.run(launch{label: "always from", kernel: "mix", args: []arg{{s: x, kind: memory.MapFrom, always: true}, alloc(zero), alloc(zero)}, out: [][]uint32{x}})
	first := r.d.submitted
	r.run(launch{label: "enters x", kernel: "mix", args: []arg{tofrom(z), alloc(x), alloc(zero)}, in: [][]uint32{zero}})
	r.run(launch{label: "between", kernel: "mix", args: []arg{tofrom(y), alloc(zero), alloc(zero)}, out: [][]uint32{x}})
	r.eventually("two submissions", func() bool { return len(r.s.order.All()[0].InFlight()) == 2 })
	r.d.advance(first + 1)
	r.eventually("late copy", func() bool {
		n := len(r.s.order.All()[0].InFlight())
		return n > 0 && r.s.order.All()[0].InFlight()[n-1].Value() > first+1
	})
	r.run(launch{label: "always to", kernel: "mix", args: []arg{{s: x, kind: memory.MapTo, always: true}, alloc(zero), alloc(zero)}, out: [][]uint32{x}})
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(zero)}, included: true})
	r.expect("x", x, filled(16, 9)...)
}

// An exit construct that finds its storage absent does nothing. Its task may still wait for its
// place on the device when a later construct maps the storage: what that has mapped must stay.
func TestExitThatFindsNothingLeavesAloneWhatIsMappedAfterIt(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y := filled(16, 1), filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(y)}, included: true})
		r.d.hold()
		r.adds("in flight", tasks.DependInOut, y, 1)
		r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}, out: [][]uint32{x, y}})
		r.run(launch{label: "enter", enter: []arg{to(x)}, out: [][]uint32{x}})
		r.d.release()
		r.taskwait()
		if n := r.s.presence.table.Len(); n != 2 {
			t.Errorf("%d blocks are mapped", n)
		}
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}, {s: y, kind: memory.MapRelease}}, included: true})
	})
}

// Two exit constructs that nothing orders delete the same storage: one of them removes it, and
// the other finds it absent. A construct that depends on both maps it again, and must wait for
// both: the later exit must not remove the new storage.
func TestExitThatFindsNothingAnyMoreLeavesAloneWhatIsMappedAfterIt(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		y := [][]uint32{filled(16, 1), filled(16, 1), filled(16, 1)}
		r.run(launch{label: "enter", enter: []arg{to(x), to(y[0]), to(y[1]), to(y[2]), to(zero)}, included: true})
		for range 2 { // with these references, neither exit waits for the reader to end
			r.run(launch{label: "enter again", enter: []arg{to(x)}, included: true})
		}
		section := to(x).item("").Section
		before, _, _ := r.s.presence.table.Lookup(section)
		r.d.hold()
		start := r.d.submitted
		r.run(launch{label: "reader", kernel: "mix", args: []arg{alloc(y[0]), alloc(x), alloc(zero)}, in: [][]uint32{x}, out: [][]uint32{y[0]}})
		for _, of := range y[1:] {
			r.adds("in flight", tasks.DependInOut, of, 1)
		}
		for _, of := range [][]uint32{y[2], y[1]} {
			r.run(launch{label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}, in: [][]uint32{x}, out: [][]uint32{of}})
		}
		block := stateOf(before)
		holders := func(n int) func() bool {
			return func() bool { return len(block.holders)+int(block.residents) == n && !r.s.exits.finishing }
		}
		r.eventually("three hold x", holders(3))
		r.d.advance(start + 1)
		r.eventually("the reader is complete", holders(2))
		r.run(launch{label: "enter anew", enter: []arg{to(x)}, out: [][]uint32{x}})
		r.d.advance(start + 2)
		r.eventually("the later exit is waited for, or not", func() bool {
			now, _, _ := r.s.presence.table.Lookup(section)
			return now != nil && now != before || len(r.s.presence.absentExits) == 1 && len(r.s.presence.absentExits[0].parked) == 1
		})
		r.d.release()
		r.taskwait()
		if now, _, _ := r.s.presence.table.Lookup(section); now == nil {
			t.Fatal("what was mapped anew is gone")
		}
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}, {s: zero, kind: memory.MapRelease},
			{s: y[0], kind: memory.MapRelease}, {s: y[1], kind: memory.MapRelease}, {s: y[2], kind: memory.MapRelease}}, included: true})
	})
}

// Two readers map parts of one array that have the same length and different beginnings: each
// must get its own.
func TestStraddlingPartsAreNotTakenForOneAnother(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := array32(48)
		for i := range x {
			x[i] = uint32(i / 16)
		}
		a, b, zero := filled(32, 0), filled(32, 0), filled(32, 0)
		r.d.hold()
		r.run(launch{label: "low", kernel: "mix", args: []arg{tofrom(a), to(x[:32]), to(zero)}, out: [][]uint32{x[:32]}})
		r.run(launch{label: "high", kernel: "mix", args: []arg{tofrom(b), to(x[16:]), to(zero)}, out: [][]uint32{x[16:]}})
		r.d.release()
		r.taskwait()
		r.expect("a", a, append(filled(16, 0), filled(16, 1)...)...)
		r.expect("b", b, append(filled(16, 1), filled(16, 2)...)...)
	})
}
