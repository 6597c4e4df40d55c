package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// busy stops the device and gives it as much work as it takes before work
// collects; what is run from then on lies in the pending batch.
func (r *rig) busy() {
	r.d.hold()
	for range maxInFlight {
		x := filled(4, 0)
		r.run(launch{label: "busy", kernel: "set", args: []arg{from(x)}})
	}
}

// TestLevels runs the files of testdata/levels: a graph in, the levels of the
// batch it makes out. A line is "NAME [KIND=X] ...": a task on variables of a data
// region, that depends on them so; all= is for omp_all_memory, and names what the
// task writes. Variables whose names share a letter, as x0 and x1, are parts of one
// block, and x0:2 is both of these. KIND=X@Y depends on X and works on Y. "NAME join
// ..." is a task without work.
func TestLevels(t *testing.T) {
	datadriven.Walk(t, "testdata/levels", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "graph" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			return levelsOf(t, d)
		})
	})
}

var levelKinds = map[string]tasks.DependKind{
	"in": tasks.DependIn, "out": tasks.DependOut, "mutex": tasks.DependMutexInOutSet, "set": tasks.DependInOutSet,
	"all": tasks.DependInOutAllMemory,
}

func levelsOf(t *testing.T, d *datadriven.TestData) string {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	const part = 16
	arrays := make(map[byte][]uint32)
	variable := func(name string) []uint32 {
		lo, hi := 0, 1
		if n, _ := fmt.Sscanf(name[1:], "%d:%d", &lo, &hi); n < 2 {
			hi = lo + 1
		}
		return arrays[name[0]][part*lo : part*hi]
	}
	zero := filled(part, 0)
	enter, exit := []arg{to(zero)}, []arg{{s: zero, kind: memory.MapRelease}}
	for c := byte('a'); c <= 'z'; c++ {
		arrays[c] = filled(4*part, 0)
		enter = append(enter, to(arrays[c]))
		exit = append(exit, arg{s: arrays[c], kind: memory.MapRelease})
	}
	r.run(launch{label: "enter", enter: enter, included: true})
	r.busy()
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		l := launch{label: words[0]}
		var writes, reads []arg
		joins := words[1] == "join"
		for _, w := range words[1:] {
			name, clause, _ := strings.Cut(w, "=")
			kind, ok := levelKinds[name]
			if !ok {
				if !joins {
					d.Fatalf(t, "unknown dependence type %q", name)
				}
				continue
			}
			on, with, apart := strings.Cut(clause, "@")
			if !apart {
				with = on
			}
			l.depend = append(l.depend, depends(kind, variable(on))...)
			if kind == tasks.DependIn {
				reads = append(reads, alloc(variable(with)))
			} else {
				writes = append(writes, alloc(variable(with)))
			}
		}
		if joins {
			r.join("", l.depend...)
			continue
		}
		l.kernel = "mix"
		if len(writes) == 0 {
			writes = []arg{alloc(array32(part))}
		}
		reads = append(reads, alloc(zero), alloc(zero))
		l.args = append(writes[:1:1], reads[:2]...)
		r.run(l)
	}
	batch := r.s.order.queues[0].pending
	levels := make(map[int][]string)
	highest := 0
	for _, task := range batch.tasks {
		if task.Label == "" {
			continue
		}
		at := int(task.order.at.Level)
		levels[at] = append(levels[at], task.Label)
		highest = max(highest, at)
	}
	var out strings.Builder
	for l := range highest + 1 {
		slices.Sort(levels[l])
		fmt.Fprintf(&out, "level %d: %s\n", l, strings.Join(levels[l], " "))
	}
	r.s.mu.Lock()
	hostRead := batch.hostRead
	r.s.mu.Unlock()
	r.d.release()
	r.taskwait()
	// The batch was the third after that of the data region.
	barriers := r.d.barriers[len(r.d.barriers)-1]
	if hostRead {
		barriers--
	}
	fmt.Fprintf(&out, "%d barriers\n", barriers)
	r.run(launch{label: "exit", exit: exit, included: true})
	return out.String()
}

func TestIdleQueueIsSubmittedToAtOnce(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.d.hold()
	for i := 1; i <= maxInFlight; i++ {
		r.run(launch{label: "task", kernel: "set", args: []arg{from(filled(4, 0))}})
		if r.d.submits != i {
			t.Errorf("%d submissions after %d tasks", r.d.submits, i)
		}
	}
	for range 300 {
		r.run(launch{label: "task", kernel: "set", args: []arg{from(filled(4, 0))}})
	}
	if r.d.submits != maxInFlight {
		t.Errorf("%d submissions while the device is busy", r.d.submits)
	}
	r.d.release()
	r.taskwait()
	if r.d.submits != maxInFlight+1 {
		t.Errorf("%d submissions for what collected", r.d.submits-maxInFlight)
	}
}

// What collected before it goes with it: nobody is passed over for ever.
func TestTaskOfHigherPriorityDoesNotWaitForTheBatchToFill(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.busy()
	for range 10 {
		r.run(launch{label: "task", kernel: "set", args: []arg{from(filled(4, 0))}})
	}
	if r.d.submits != maxInFlight {
		t.Errorf("%d submissions while the device is busy", r.d.submits)
	}
	r.run(launch{label: "urgent", kernel: "set", args: []arg{from(filled(4, 0))}, priority: 1})
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if q := r.s.order.queues[0]; r.d.submits != maxInFlight+1 || !q.pending.empty() {
		t.Errorf("%d submissions, %d commands left", r.d.submits, q.pending.commands)
	}
}

func TestIncludedTaskDoesNotWaitForTheBatchToFill(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.busy()
	before := r.d.submits
	done := make(chan struct{})
	x := filled(4, 0)
	go func() {
		defer close(done)
		r.run(launch{label: "included", kernel: "set", args: []arg{from(x)}, constant: 3, included: true})
	}()
	r.d.mu.Lock()
	for r.d.submits == before {
		// Submit broadcasts.
		r.d.changed.Wait()
	}
	r.d.mu.Unlock()
	r.d.release()
	<-done
	r.expect("x", x, 3, 4, 5, 6)
}

func TestCapSubmitsWhateverIsInFlight(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.busy()
	before := r.d.submits
	for i := range maxCommands + 1 {
		if got, want := r.d.submits-before, i/maxCommands; got != want {
			t.Fatalf("%d submissions after %d commands", got, i)
		}
		r.run(launch{label: "task", kernel: "set", args: []arg{alloc(x)}})
		if i == 0 {
			// Unordered writes of one array: the device is right to complain, and
			// it is not what this test is about.
			r.d.report = func(string) {}
		}
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
}

func TestInvocationCapSubmitsWhateverIsInFlight(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.busy()
	before := r.d.submits
	g := r.region(launch{label: "large", kernel: "set", args: []arg{from(filled(4, 0))}})
	g.Range = [3]uint64{1 << 15, 1 << 14, 2}
	if err := r.s.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if r.d.submits != before+1 {
		t.Errorf("%d submissions", r.d.submits-before)
	}
}

// Batches are recycled; a level that one of them once had must not stay.
func TestLevelsDoNotGrowWithRecycling(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(4, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.busy()
	for range 50 {
		r.run(launch{label: "link", kernel: "mix", args: []arg{alloc(x), alloc(x), alloc(x)}, out: [][]uint32{x}})
	}
	deep := r.s.order.queues[0].pending
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	deep.reset(deep.value)
	if len(deep.levels) > 0 {
		t.Errorf("%d levels of an empty batch", len(deep.levels))
	}
	if s := deep.level(1); len(deep.levels) != 2 || s.Len() != 0 {
		t.Errorf("%d levels, %d operations in a new one", len(deep.levels), s.Len())
	}
}

// A recycled batch may lie unused for long: it must not keep the program's
// slices reachable.
func TestRecycledBatchLetsGoOfItsTasks(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, one := filled(8, 1), filled(8, 1)
		for i := range uint32(10) {
			r.mix("link", x, one, one, i)
		}
		r.taskwait()
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		if len(r.s.order.queues[0].free) == 0 {
			t.Fatal("no batch was recycled")
		}
		for _, b := range r.s.order.queues[0].free {
			for _, kept := range b.tasks[:cap(b.tasks)] {
				if kept != nil {
					t.Fatalf("a batch keeps task %q", kept.Label)
				}
			}
		}
	})
}

// However many batches a queue has submitted, it needs room for those in flight; and
// however many it had in flight, it keeps a few for those to come.
func TestQueueKeepsFewBatches(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(4, 0)
	r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	q := r.s.order.queues[0]
	for range 50 {
		r.run(launch{label: "set", kernel: "set", args: []arg{alloc(x)}, included: true})
	}
	r.s.mu.Lock()
	room := cap(q.room)
	r.s.mu.Unlock()
	if room > 4*maxInFlight {
		t.Errorf("there is room for %d batches, and %d in flight at most", room, maxInFlight)
	}
	r.d.hold()
	for range 2 * maxFree {
		r.run(launch{label: "set", kernel: "set", args: []arg{alloc(x)}, priority: 1, out: [][]uint32{x}})
	}
	r.s.mu.Lock()
	flying := len(q.inFlight)
	r.s.mu.Unlock()
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if flying != 2*maxFree || len(q.free) > maxFree {
		t.Errorf("%d batches are kept of %d that were in flight", len(q.free), flying)
	}
}
