package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// busy stops the device and fills it with as many submissions as may be in flight. What is run
// from then on collects in the pending batch.
func (r *rig) busy() {
	r.d.hold()
	for range order.MaxInFlight {
		x := filled(4, 0)
		r.run(launch{label: "busy", kernel: "set", args: []arg{from(x)}})
	}
}

// TestLevels runs the files of testdata/levels: each has a graph, and the levels of the batch
// that it becomes. A line "NAME [KIND=X] ..." is a task on variables of a data region with
// these depend items; all= stands for omp_all_memory, and names what the task writes. Variables
// whose names have the same letter, as x0 and x1, are parts of one block, and x0:2 is both of
// them. KIND=X@Y depends on X and works on Y. "NAME join ..." is a task without work.
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
	batch := r.s.order.All()[0].Pending()
	levels := make(map[int][]string)
	highest := 0
	for _, at := range batch.Tasks() {
		label := labelOf(at)
		if label == "" {
			continue
		}
		at := int(at.At.Level)
		levels[at] = append(levels[at], label)
		highest = max(highest, at)
	}
	var out strings.Builder
	for l := range highest + 1 {
		slices.Sort(levels[l])
		fmt.Fprintf(&out, "level %d: %s\n", l, strings.Join(levels[l], " "))
	}
	r.s.mu.Lock()
	hostRead := batch.HostReads()
	r.s.mu.Unlock()
	r.d.release()
	r.taskwait()
	// The last batch of the device is the one that was pending.
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
	for i := 1; i <= order.MaxInFlight; i++ {
		r.run(launch{label: "task", kernel: "set", args: []arg{from(filled(4, 0))}})
		if r.d.submits != i {
			t.Errorf("%d submissions after %d tasks", r.d.submits, i)
		}
	}
	for range 300 {
		r.run(launch{label: "task", kernel: "set", args: []arg{from(filled(4, 0))}})
	}
	if r.d.submits != order.MaxInFlight {
		t.Errorf("%d submissions while the device is busy", r.d.submits)
	}
	r.d.release()
	r.taskwait()
	if r.d.submits != order.MaxInFlight+1 {
		t.Errorf("%d submissions for what collected", r.d.submits-order.MaxInFlight)
	}
}

// A task of higher priority has the pending batch submitted at once, together with the tasks
// that were in it before: none of them is overtaken.
func TestTaskOfHigherPriorityDoesNotWaitForTheBatchToFill(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.busy()
	for range 10 {
		r.run(launch{label: "task", kernel: "set", args: []arg{from(filled(4, 0))}})
	}
	if r.d.submits != order.MaxInFlight {
		t.Errorf("%d submissions while the device is busy", r.d.submits)
	}
	r.run(launch{label: "urgent", kernel: "set", args: []arg{from(filled(4, 0))}, priority: 1})
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if q := r.s.order.All()[0]; r.d.submits != order.MaxInFlight+1 || !q.Pending().Empty() {
		t.Errorf("%d submissions, nothing left: %v", r.d.submits, q.Pending().Empty())
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
		// Submit signals the device's condition variable.
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
	for i := range order.MaxCommands + 1 {
		if got, want := r.d.submits-before, i/order.MaxCommands; got != want {
			t.Fatalf("%d submissions after %d commands", got, i)
		}
		r.run(launch{label: "task", kernel: "set", args: []arg{alloc(x)}})
		if i == 0 {
			// The tasks write one array without order. The device reports that, and it is not
			// what this test is about.
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

// While a batch is encoded and submitted, other goroutines place commands in the next one.
func TestTasksArePlacedWhileABatchIsSubmitted(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, y := filled(16, 0), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	meanwhile := r.region(launch{label: "meanwhile", kernel: "add", args: []arg{alloc(y)}, constant: 2})
	placed := make(chan error)
	calls := 0
	r.d.set(func() {
		r.d.submit = func(int) error {
			if calls++; calls > 1 {
				return nil
			}
			go func() { placed <- r.s.Run(context.Background(), meanwhile) }()
			return <-placed
		}
	})
	r.run(launch{label: "first", kernel: "add", args: []arg{alloc(x)}, constant: 1})
	r.taskwait()
	if calls < 2 {
		t.Errorf("%d submissions, want one for each task", calls)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 1)...)
	r.expect("y", y, filled(16, 2)...)
}
