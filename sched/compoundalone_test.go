package sched

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// compoundPair is a Compound of two constructs that share nothing: each adds 1 to a slice of its own.
type compoundPair struct {
	r       *rig
	c       *Compound
	regions [2]launch
}

func (r *rig) pairs(x, y []uint32) *compoundPair {
	r.watches = false
	r.compileMerging("add")
	p := &compoundPair{r: r}
	for i, s := range [][]uint32{x, y} {
		p.regions[i] = launch{label: "add", kernel: "add", args: []arg{tofrom(s)}, constant: 1, out: [][]uint32{s}}
	}
	p.c = r.s.NewCompound([]*Region{r.region(p.regions[0]), r.region(p.regions[1])})
	return p
}

// reach gives the kernels pointers in place of their slices.
func (p *compoundPair) reach(pointers []Pointer) {
	for i := range p.regions {
		p.regions[i].args[0].at = pointers[i]
	}
	p.c = p.r.s.NewCompound([]*Region{p.r.region(p.regions[0]), p.r.region(p.regions[1])})
}

// run runs the pair, and checks whether one task does it. Otherwise it runs the constructs one by one.
func (p *compoundPair) run(asOne bool) {
	p.r.t.Helper()
	ran, err := p.r.s.RunCompound(context.Background(), p.c, construct.Construct{Scope: p.r.scope})
	if ran != asOne || err != nil {
		p.r.t.Errorf("one task: %v, want %v; the error is %v", ran, asOne, err)
	}
	if !ran {
		for _, l := range p.regions {
			p.r.run(l)
		}
	}
}

// recordings returns how many recordings there are.
func (r *rig) recordings() (n int) {
	r.d.set(func() { n = len(r.d.recordings) })
	return n
}

var errBroken = errors.New("broken")

// broken is the runner of a host task that fails at once.
type broken struct{}

func (broken) Start(n *tasks.Node, w *tasks.Work) { n.Complete(errBroken, w) }
func (broken) Recycle()                           {}

// The failure of one construct's storage, or of what it depends on, is not that of the other one.
func TestFailureOfOneConstructIsNotThatOfTheOthers(t *testing.T) {
	for name, fail := range map[string]func(r *rig, x []uint32){
		"what it depends on": func(r *rig, x []uint32) {
			r.add(&tasks.Task{Label: "fails", Depend: dependOn(nil, [][]uint32{x}), Runner: broken{}})
		},
		"its storage": func(r *rig, x []uint32) {
			r.s.mu.Lock()
			block, _, err := r.s.presence.table.Lookup(sectionOf(x))
			stateOf(block).broken = errBroken
			r.s.mu.Unlock()
			if err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			x, y := filled(16, 1), filled(16, 1)
			p := r.pairs(x, y)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			fail(r, x)
			p.run(false)
			if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, errBroken) {
				t.Errorf("the constructs: %v, want %v", err, errBroken)
			}
			r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
			r.expect("x", x, filled(16, 1)...)
			r.expect("y", y, filled(16, 2)...)
		})
	}
}

// One construct waits for foreign work, perhaps work that begins only after the other construct.
func TestCompoundDoesNotWaitForForeignWork(t *testing.T) {
	f := withForeign(t, memoryModes[1], 1)
	r := f.r
	defer r.close()
	x, y, z := filled(16, 1), filled(16, 1), filled(16, 7)
	p := r.pairs(x, y)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(z)}, included: true})
	if err := f.order(false, nil, x); err != nil {
		t.Fatal(err)
	}
	r.d.hold()
	f.copies(x, z)
	if err := f.order(true, nil, x); err != nil {
		t.Fatal(err)
	}
	p.run(false)
	r.d.release()
	r.taskwait()
	p.run(true)
	r.run(launch{label: "exit", exit: []arg{from(x), from(y), from(z)}, included: true, out: [][]uint32{x, y}})
	r.expect("x", x, filled(16, 9)...)
	r.expect("y", y, filled(16, 3)...)
}

// A task in flight removes the storage of one construct whatever its reference count.
func TestCompoundDoesNotWaitForARemoval(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	p := r.pairs(x, y)
	enter := func() { r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true}) }
	enter()
	enter()
	r.d.hold()
	r.run(p.regions[0]) // which the removal follows
	removal := r.region(launch{label: "remove", exit: []arg{{s: x, kind: memory.MapAlloc}}, in: [][]uint32{x}})
	removal.Exit[0].Delete = true
	if err := r.s.Run(t.Context(), removal); err != nil {
		t.Fatal(err)
	}
	if !r.scope.OnDevice(rigDomain) {
		t.Error("the removal is not on the device")
	}
	p.run(false)
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(y)}, included: true, out: [][]uint32{y}})
	r.run(launch{label: "exit", exit: []arg{from(y)}, included: true, out: [][]uint32{y}})
}

// Buffers of different queue families are not for commands of one task.
func TestCompoundOfBuffersForDifferentFamilies(t *testing.T) {
	for _, c := range []struct{ same, pointers bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		same := c.same
		mode := memoryModes[1]
		mode.queues = manyQueues
		r := newRig(t, mode, 1)
		x, y := filled(16, 1), filled(16, 1)
		families := []uint64{1 << 0, 1 << 1}
		if same {
			families[1] = families[0]
		}
		var pointers []Pointer
		for i, s := range [][]uint32{x, y} {
			pointers = append(pointers, r.registers(len(s), families[i]))
			if err := r.s.Associate(sectionOf(s), pointers[i], 0, "associated"); err != nil {
				t.Fatal(err)
			}
		}
		p := r.pairs(x, y)
		if c.pointers {
			p.reach(pointers)
		}
		for range 3 {
			p.run(same)
		}
		r.taskwait()
		for i, s := range [][]uint32{x, y} {
			if err := r.s.Disassociate(sectionOf(s)); err != nil {
				t.Error(err)
			}
			r.unregisters(pointers[i])
		}
		r.close()
	}
}

// A buffer that a program registers may have the handle of an earlier one, which it has destroyed.
func TestRecordingIsNotExecutedWithALaterBufferOfTheSameHandle(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	p := r.pairs(x, y)
	r.run(launch{label: "enter", enter: []arg{to(y)}, included: true})
	handle := uint64(1 << 20)
	for range 3 {
		var next uint64
		r.d.set(func() { next, r.d.handles = r.d.handles, handle })
		pointer := r.registers(len(x), 0)
		r.d.set(func() { r.d.handles = next })
		if err := r.s.Associate(sectionOf(x), pointer, 0, "x"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			p.run(true)
		}
		r.taskwait()
		if n := r.recordings(); n != 1 {
			t.Errorf("%d recordings, want 1", n)
		}
		if err := r.s.Disassociate(sectionOf(x)); err != nil {
			t.Fatal(err)
		}
		r.unregisters(pointer)
	}
	r.run(launch{label: "exit", exit: []arg{from(y)}, included: true, out: [][]uint32{y}})
	r.expect("y", y, filled(16, 10)...)
}

// A soft pause frees recordings, which are made again when they are needed.
func TestRelinquishFreesRecordings(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	p, other := r.pairs(x, y), r.pairs(y, x)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	for range 3 {
		for range 3 {
			p.run(true)
			other.run(true)
		}
		r.taskwait()
		if n := r.recordings(); n != 2 {
			t.Errorf("%d recordings, want 2", n)
		}
		if err := r.s.Relinquish(); err != nil {
			t.Fatal(err)
		}
		if n := r.recordings(); n != 0 {
			t.Errorf("%d recordings are left by Relinquish", n)
		}
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true, out: [][]uint32{x, y}})
	r.expect("x", x, filled(16, 19)...)
	r.expect("y", y, filled(16, 19)...)
}

// Where nothing can be recorded, the commands are encoded each time.
func TestCompoundThatCannotBeRecorded(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	p := r.pairs(x, y)
	calls := 0
	r.d.record = func() error {
		calls++
		return &vk.Error{Op: "vkAllocateCommandBuffers", Result: vk.ErrorOutOfDeviceMemory}
	}
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	for range 4 {
		p.run(true)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true, out: [][]uint32{x, y}})
	if n := r.recordings(); n != 0 || calls == 0 {
		t.Errorf("%d recordings, %d attempts", n, calls)
	}
	r.expect("x", x, filled(16, 5)...)
	r.expect("y", y, filled(16, 5)...)
}

// A recording stays until the tasks in flight that execute it are complete, even if the storage moves.
func TestRecordingStaysWhileItIsExecuted(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	p := r.pairs(x, y)
	pointer := r.allocate(len(x))
	if err := r.s.Associate(sectionOf(x), pointer, 0, "x"); err != nil {
		t.Fatal(err)
	}
	r.run(launch{label: "enter", enter: []arg{to(y)}, included: true})
	for range 2 {
		p.run(true)
	}
	r.taskwait()
	r.d.hold()
	p.run(true)
	r.s.mu.Lock()
	p.c.forgetRecordedLocked() // as if storage had moved, which it can while the task is in flight
	r.s.mu.Unlock()
	if n := r.recordings(); n != 1 {
		t.Errorf("%d recordings, want that which is being executed", n)
	}
	r.d.release()
	r.taskwait()
	if n := r.recordings(); n != 0 {
		t.Errorf("%d recordings, want none", n)
	}
	r.run(launch{label: "exit", exit: []arg{from(y)}, included: true, out: [][]uint32{y}})
	if err := r.s.Disassociate(sectionOf(x)); err != nil {
		t.Error(err)
	}
	r.free(pointer)
	r.expect("y", y, filled(16, 4)...)
}

// A task has entered and is not placed yet when storage of one of its items is replaced, and a task of another scope
// encodes the commands for that. The first one still runs on the storage that it has entered.
func TestCompoundRunsOnTheStorageThatItHasEntered(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x, y := filled(16, 1), filled(16, 1)
	c := r.s.NewCompound([]*Region{r.region(launch{kernel: "mix", args: []arg{tofrom(y), to(x), to(x)}, constant: 1})})
	enter := func(s []uint32) { r.run(launch{label: "enter", enter: []arg{to(s)}, included: true}) }
	run := func(scope *tasks.Scope) (resume func()) {
		return r.stopAfterEntry(x, func() {
			if ran, err := r.s.RunCompound(context.Background(), c, construct.Construct{Scope: scope}); !ran || err != nil {
				t.Errorf("ran is %v, the error %v", ran, err)
			}
		})
	}
	enter(x)
	enter(y)
	first := run(r.scope)
	removal := r.region(launch{label: "remove", exit: []arg{alloc(y)}, included: true})
	removal.Exit[0].Delete = true
	if err := r.s.Run(t.Context(), removal); err != nil {
		t.Fatal(err)
	}
	enter(y)
	other := r.graph.NewScope()
	second := run(other)
	first()
	second()
	if err := other.Wait(t.Context(), nil); err != nil {
		t.Error(err)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("y", y, filled(16, 6)...)
}

// The list of those that may have recordings does not grow with those that are garbage, nor with one that comes often.
func TestRecordersThatAreGarbageAreDropped(t *testing.T) {
	var l recorders
	stays := new(Compound)
	for range 100 {
		l.addLocked(new(Compound))
		l.addLocked(stays)
		if cap(l) == len(l) {
			runtime.GC() // so that the next one finds the others to be garbage
		}
	}
	if len(l) > 32 {
		t.Errorf("%d entries, of which only one is in use", len(l))
	}
	runtime.GC()
	l.forgetLocked()
	runtime.KeepAlive(stays)
}
