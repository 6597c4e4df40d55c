package sched

import (
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// implicitly is an item without bytes, which is bound up to the end of its storage.
func implicitly(s []uint32) arg { return arg{s: s, kind: memory.MapAlloc, toEnd: true} }

// A compound task keeps the memory to which its kernels have pointers, and the constructs are run one by one, which is an
// error, when it is freed.
func TestCompoundTaskKeepsTheMemoryOfItsPointers(t *testing.T) {
	for name, of := range map[string]func(p Pointer) arg{
		"a number of bytes": func(p Pointer) arg { return reaches(p, 16) },
		"up to the end":     func(p Pointer) arg { return arg{at: p, s: array32(16), toEnd: true} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			x, first := filled(16, 1), array32(32)
			r.enter(x)
			memory := r.allocate(32)
			r.transfer(launch{label: "first contents", included: true}, toDevice(memory, first))
			second := of(memory.Add(64))
			p := r.compound(adding(of(memory)), adding(second), adding(second), adding(tofrom(x)))
			for range 3 { // it is recorded for the second one
				p.tries(true)
			}
			r.taskwait()
			if n := r.keepers(memory); n != 1 {
				t.Errorf("%d keep the memory when the tasks have ended", n)
			}
			got := array32(32)
			r.transfer(launch{label: "back", included: true}, toHost(got, memory))
			r.expect("the memory", got, append(filled(16, 3), filled(16, 6)...)...)
			r.d.hold()
			p.tries(true)
			if n := r.keepers(memory); n < 2 {
				t.Error("the task in flight does not keep the memory")
			}
			r.free(memory)
			p.tries(false)
			r.d.release()
			r.taskwait()
			p.tries(false)
			again := r.allocate(32) // probably where it was
			p.tries(false)
			r.free(again)
			r.exit(x)
			r.expect("x", x, filled(16, 5)...)
		})
	}
}

// A pointer to memory that was freed is an error also where the kernel runs nothing.
func TestCompoundTaskNeedsTheMemoryOfALaunchThatRunsNothing(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x := array32(16)
	r.enter(x)
	memory := r.allocate(16)
	nothing := adding(reaches(memory, 16))
	nothing.empty = true
	p := r.compound(nothing, adding(tofrom(x)))
	p.tries(true)
	if !p.c.readOnly[0] {
		t.Error("the memory counts as written")
	}
	r.free(memory)
	p.tries(false)
	r.exit(x)
	r.expect("x", x, filled(16, 1)...)
}

// What a task is about to copy or remove is no storage for a compound task, whether its kernels have a pointer to it or an item
// without bytes.
func TestCompoundTaskOnStorageThatItDoesNotMap(t *testing.T) {
	x := array32(32)
	for name, of := range map[string]func(r *rig) arg{
		"a pointer": func(r *rig) arg {
			q, ok := r.s.MappedPointer(sectionOf(x))
			if !ok {
				r.t.Fatal("x is not present")
			}
			return reaches(q, 16)
		},
		"a pointer up to the end": func(r *rig) arg {
			q, _ := r.s.MappedPointer(sectionOf(x))
			return arg{at: q, s: x[:16], toEnd: true}
		},
		"an item without bytes": func(*rig) arg { return implicitly(x[:16]) },
	} {
		add := func(r *rig) *compoundRun {
			l := adding(of(r))
			l.depend, l.only = depends(tasks.DependInOut, x), 16
			return r.compound(l, l)
		}
		for what, about := range map[string]launch{
			"its copy":         {label: "always", kernel: "add", args: []arg{{s: x, kind: memory.MapFrom, always: true}}, empty: true, out: [][]uint32{x}},
			"its removal":      {label: "delete", exit: []arg{{s: x, kind: memory.MapDelete}}, out: [][]uint32{x}},
			"its copy at exit": {label: "exit", exit: []arg{from(x)}, out: [][]uint32{x}},
			"another one":      {label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				clear(x)
				r := newRig(t, memoryModes[1], 1)
				defer r.close()
				r.enter(x)
				p := add(r)
				r.enter(x) // constructs that find x present leave its block dormant
				r.exit(x)
				p.tries(true)
				p.tries(true)
				r.d.hold()
				r.run(about)
				p.tries(what == "another one")
				r.d.release()
				r.taskwait()
				if !r.s.Present(sectionOf(x)) {
					p.tries(false)
					return
				}
				p.tries(true)
				r.exit(x)
				if what == "another one" {
					r.expect("x", x, append(filled(16, 9), filled(16, 1)...)...)
					return
				}
				r.expect("x", x, append(filled(16, 6), filled(16, 0)...)...)
			})
		}
	}
}

// Commands of kernels that find their parts by offsets are encoded once for the same storage and the same values, and anew for others.
func TestCommandsAreEncodedOnceForTheSameValues(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, zero := filled(16, 1), filled(16, 0)
	part := launch{label: "mix", kernel: "mix", args: []arg{tofrom(x[1:]), to(zero[1:]), to(zero[1:])}, constant: 1, out: [][]uint32{x}}
	r.enter(x, zero)
	p := r.compound(part, part)
	other := CompoundValue{Construct: 1, Value: 1, Bytes: valueBytes(2)[0]}
	want := uint32(1)
	for _, c := range []struct {
		recorded int
		values   []CompoundValue
	}{{recorded: 0}, {recorded: 1}, {recorded: 1}, {0, []CompoundValue{other}}, {1, []CompoundValue{other}}, {recorded: 0}, {recorded: 1}} {
		p.tries(true, c.values...)
		r.taskwait()
		if n := r.recordings(); n != c.recorded {
			t.Errorf("%d recordings, want %d", n, c.recorded)
		}
		want = 3*(3*want+1) + uint32(1+len(c.values))
	}
	r.exit(x, zero)
	r.expect("x", x, append([]uint32{1}, filled(15, want)...)...)
}

// Storage of which only a task in flight has a reference goes with that.
func TestCompoundTaskOnStorageThatATaskTakesAway(t *testing.T) {
	for name, of := range map[string]func(r *rig, x []uint32) arg{
		"a pointer": func(r *rig, x []uint32) arg {
			q, _ := r.s.MappedPointer(sectionOf(x))
			return reaches(q, len(x))
		},
		"an item without bytes": func(_ *rig, x []uint32) arg { return implicitly(x) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			x := filled(16, 1)
			r.d.hold()
			r.run(addTo(x))
			p := r.compound(adding(of(r, x)), adding(of(r, x)))
			p.tries(false)
			r.d.release()
			r.taskwait()
			r.expect("x", x, filled(16, 2)...)
		})
	}
}

// Storage that is mapped anew can lie elsewhere, and be longer or shorter.
func TestItemsWithoutBytesFollowTheirStorage(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, filler := array32(80), array32(64)
	l := adding(implicitly(x[16:]))
	l.only, l.depend = 16, depends(tasks.DependInOut, x)
	p := r.compound(l, l)
	for round, n := range []int{48, 32, 80, 80, 48} {
		if round%2 == 1 {
			r.enter(filler)
		}
		p.tries(false)
		r.enter(x[:n])
		for range 3 {
			p.tries(true)
		}
		r.taskwait()
		if got, want := p.c.bound[0].size, uint64(4*(n-16)); got != want {
			t.Errorf("the kernels have %d bytes, want %d", got, want)
		}
		r.exit(x[:n])
		if round%2 == 1 {
			r.exit(filler)
		}
	}
	r.expect("x", x, slices.Concat(filled(16, 0), filled(16, 30), filled(48, 0))...)
}

// A pointer up to the end of memory that is too short for the binding.
func TestCompoundTaskOnTooLittleMemory(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	memory := r.allocate(16)
	r.compound(adding(arg{at: memory.Add(60), s: array32(1), toEnd: true})).tries(true)
	r.compound(adding(arg{at: memory.Add(64), s: array32(1), toEnd: true})).tries(false)
	r.taskwait()
	r.free(memory)
}

// The host can read memory while compound tasks read it, too.
func TestCompoundTaskReadsMemoryBesideTheHost(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, got := array32(16), array32(16)
	r.enter(x)
	memory := r.allocate(16)
	r.transfer(launch{label: "first contents", included: true}, toDevice(memory, filled(16, 1)))
	p := r.compound(launch{label: "mix", kernel: "mix", args: []arg{tofrom(x), reaches(memory, 16), reaches(memory, 16)}, out: [][]uint32{x}})
	r.d.hold()
	p.tries(true)
	r.transfer(launch{label: "read", included: true}, toHost(got, memory))
	r.expect("the memory", got, filled(16, 1)...)
	r.d.release()
	r.taskwait()
	r.free(memory)
	r.exit(x)
}

// A task waits for the first contents of an item, also of one without bytes. A compound task does not map such items.
func TestCompoundTaskOnStorageWithoutItsFirstContents(t *testing.T) {
	r, h := newHookedRig(t, discreteMemory, Options{Chunk: 64})
	defer r.close()
	r.kernels["add"] = loadKernel(t, "add")
	x, y := filled(256, 7), filled(16, 1) // x has 16 chunks
	l := addTo(y)
	l.included = true // the kernel is compiled then
	r.run(l)
	p := r.compound(adding(implicitly(x)))
	tried := false
	h.look = func() error { return errLookMemory } // the copy's waits block
	h.wait = func() {
		tried = true
		p.tries(false)
	}
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true, scope: r.graph.NewScope()})
	if !tried {
		t.Error("the copy did not wait")
	}
	p.tries(true)
	r.taskwait()
	r.exit(x)
	r.expect("x", x, filled(256, 8)...)
}
