package race

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// slice returns the k-th slice of 64 bytes that programs here use. It has an address and no
// memory.
func slice(k int) (p unsafe.Pointer, start uint64) {
	start = 1<<32 + 64*uint64(k)
	address := uintptr(start)
	return *(*unsafe.Pointer)(unsafe.Pointer(&address)), start
}

func reading(k int) (tasks.Depend, Access) {
	p, start := slice(k)
	return tasks.Depend{Kind: tasks.DependIn, Ptr: p, Size: 64}, Access{Start: start, Size: 64}
}

func writing(k int) (tasks.Depend, Access) {
	d, a := reading(k)
	d.Kind, a.Write = tasks.DependInOut, true
	return d, a
}

// using returns a task that reads slices and writes one.
func using(parent *Task, to int, from ...int) Spec {
	s := Spec{Parent: parent}
	add := func(d tasks.Depend, a Access) {
		s.Depend, s.Accesses = append(s.Depend, d), append(s.Accesses, a)
	}
	for _, k := range from {
		add(reading(k))
	}
	add(writing(to))
	return s
}

// noConflicts returns a detector that fails the test if it reports anything.
func noConflicts(t testing.TB) *Detector {
	return New(func(c Conflict) { t.Fatalf("reported: %+v", c) })
}

func (d *Detector) sizes() (remembered, named, chains int) {
	return d.remembered, d.initial.depends.named, len(d.clock.chains)
}

// TestMemoryFollowsWhatHasNotBeenWaitedFor runs long programs that wait now and then, or use
// the same storage again and again: what the detector keeps must be bounded all the time.
func TestMemoryFollowsWhatHasNotBeenWaitedFor(t *testing.T) {
	const rounds = 2000
	for name, round := range map[string]func(d *Detector, k int){
		"taskwait after tasks on ever new slices": func(d *Detector, k int) {
			for i := range 10 {
				d.Create(using(d.Initial(), 10*k+i))
			}
			d.Waited(d.Wait(d.Initial()))
		},
		"chains on the same slices without a wait": func(d *Detector, k int) {
			for i := range 10 {
				d.Create(using(d.Initial(), i, 20+i))
			}
		},
		"stencil over the same slices without a wait": func(d *Detector, k int) {
			from, to := 0, 20
			if k%2 == 1 {
				from, to = to, from
			}
			for i := range 10 {
				d.Create(using(d.Initial(), to+i, from+(i+9)%10, from+i, from+(i+1)%10))
			}
		},
		"included tasks on ever new slices": func(d *Detector, k int) {
			s := using(d.Initial(), k)
			s.Included = true
			d.Returned(d.Create(s))
		},
		"taskgroups around tasks on ever new slices": func(d *Detector, k int) {
			g := d.NewGroup(nil)
			for i := range 10 {
				s := using(d.Initial(), 10*k+i)
				s.Group = g
				d.Create(s)
			}
			d.Waited(d.WaitGroup(d.Initial(), g))
		},
		"host tasks with children that they wait for": func(d *Detector, k int) {
			s := using(d.Initial(), k)
			s.Body = true
			host := d.Create(s)
			d.Begin(host)
			d.Create(using(host, 1<<20+k))
			d.Waited(d.Wait(host))
			d.End(host, false)
			d.Waited(d.Wait(d.Initial()))
		},
		"a chain of tasks that write a slice with inoutset items": func(d *Detector, k int) {
			s := using(d.Initial(), 0)
			item, a := writing(1)
			item.Kind = tasks.DependInOutSet
			s.Depend, s.Accesses = append(s.Depend, item), []Access{a}
			d.Create(s)
		},
		"host tasks whose children use the same slices, and are not waited for": func(d *Detector, k int) {
			s := using(d.Initial(), 0)
			s.Body, s.Transparency = true, tasks.ImpEx
			host := d.Create(s)
			d.Begin(host)
			d.Create(using(host, 1, 2))
			d.End(host, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := noConflicts(t)
			for k := range rounds {
				round(d, k)
				if remembered, named, chains := d.sizes(); remembered > 100 || named > 200 || chains > 200 || len(d.clock.touched) > 200 {
					t.Fatalf("round %d: %d accesses and %d places are remembered, %d chains", k, remembered, named, chains)
				}
				if n := len(d.initial.children.ended); n > 200 {
					t.Fatalf("round %d: %d ends", k, n)
				}
			}
		})
	}
}

// The initial task waits during the whole program, for one task that generates all others and
// waits for them. What the detector keeps must be bounded although the initial task's wait does
// not end.
func TestMemoryOfAProgramInOneBodyIsBounded(t *testing.T) {
	d := noConflicts(t)
	root := d.Create(Spec{Parent: d.Initial(), Body: true})
	d.Begin(root)
	waits := d.Wait(d.Initial())
	for k := range 50_000 {
		d.Create(using(root, k))
		if k%100 == 99 {
			d.Waited(d.Wait(root))
		}
		if d.remembered > 2*manyRemembered+1000 {
			t.Fatalf("%d accesses are remembered after %d tasks", d.remembered, k+1)
		}
	}
	d.End(root, false)
	d.Waited(waits)
	if remembered, named, _ := d.sizes(); remembered != 0 || named != 0 {
		t.Errorf("%d accesses and %d places are remembered when all is waited for", remembered, named)
	}
}

// TestTasksContinueTheChainsOfThoseBeforeOmpAllMemory uses ever new slices, and lets a task with omp_all_memory order
// some of the tasks after the others: there are as many chains as the graph is wide.
func TestTasksContinueTheChainsOfThoseBeforeOmpAllMemory(t *testing.T) {
	d := noConflicts(t)
	const phases, width = 50, 10
	for phase := range phases {
		for i := range width {
			d.Create(using(d.Initial(), phase*width+i))
		}
		d.Create(Spec{Parent: d.Initial(), Depend: []tasks.Depend{{Kind: tasks.DependInOutAllMemory}}})
	}
	if _, _, chains := d.sizes(); chains > 2*width {
		t.Errorf("%d chains in a graph that is %d wide", chains, width)
	}
}

// 20,000 tasks may use one slice at the same time, and then one task follows all of them.
func TestManyUsersOfOneSlice(t *testing.T) {
	for name, kind := range map[string]tasks.DependKind{"in": tasks.DependIn, "inoutset": tasks.DependInOutSet, "mutexinoutset": tasks.DependMutexInOutSet} {
		t.Run(name, func(t *testing.T) {
			d := noConflicts(t)
			for range 20_000 {
				s := using(d.Initial(), 0)
				s.Depend[0].Kind, s.Accesses[0].Write = kind, kind != tasks.DependIn
				d.Create(s)
			}
			d.Create(using(d.Initial(), 0))
			if remembered, _, _ := d.sizes(); remembered != 1 {
				t.Errorf("%d accesses are remembered after a write that follows all", remembered)
			}
		})
	}
}

// exportingChain generates a chain of n exporting tasks, calls region for the body of each, and
// returns how many bytes the detector has allocated and how many trails it has made.
func exportingChain(t *testing.T, n int, how tasks.Transparency, region func(d *Detector, e *Task, k int)) (bytes, trails uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := noConflicts(t)
	for k := range n {
		s := using(d.Initial(), 0)
		s.Body, s.Transparency = true, how
		e := d.Create(s)
		d.Begin(e)
		region(d, e, k)
		d.End(e, false)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, d.trails
}

// A task at the end of a chain of exporting tasks can depend on the children of them all. The
// memory for that must grow with the number of tasks, and not with its square.
func TestChainOfExportingTasksTakesAsMuchMemoryAsTasks(t *testing.T) {
	for name, region := range map[string]func(d *Detector, e *Task, k int){
		"no children":                 func(d *Detector, e *Task, k int) {},
		"children on a slice of each": func(d *Detector, e *Task, k int) { d.Create(using(e, 1+k)) },
		"children that are waited for": func(d *Detector, e *Task, k int) {
			d.Create(using(e, 1))
			d.Waited(d.Wait(e))
		},
	} {
		for _, how := range []tasks.Transparency{tasks.Export, tasks.ImpEx} {
			t.Run(fmt.Sprint(name, ", ", how), func(t *testing.T) {
				const n = 500
				some, _ := exportingChain(t, n, how, region)
				many, trails := exportingChain(t, 4*n, how, region)
				if lasting := name == "children on a slice of each"; lasting && trails != 4*n || !lasting && trails != 0 {
					t.Errorf("%d trails for %d tasks", trails, 4*n)
				}
				if many > 5*some {
					t.Errorf("%d tasks allocate %d bytes, %d tasks %d", n, some, 4*n, many)
				}
			})
		}
	}
}

// When the children of all tasks of a chain have been waited for, the detector looks at the
// whole chain: not recursively, or a long one would overflow the stack.
func TestLongChainOfExportingTasksNeedsNoDeepStack(t *testing.T) {
	// A stack of this size would overflow if each task took a frame.
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 17))
	d := noConflicts(t)
	g := d.NewGroup(nil)
	for k := range 6000 {
		s := using(d.Initial(), 0)
		s.Body, s.Transparency, s.Group = true, tasks.Export, g
		e := d.Create(s)
		d.Begin(e)
		s = using(e, 1+k)
		s.Group = g
		d.Create(s)
		d.End(e, false)
	}
	d.Waited(d.WaitGroup(d.Initial(), g))
	d.Create(using(d.Initial(), 0))
	if last := d.initial.depends.last(0); last.trail != nil {
		t.Error("the trail leads to children that have been waited for")
	}
}

// Tasks that depend on two exporting tasks by many ways share one trail to their children.
func TestTasksOfOneWidthShareTheirTrails(t *testing.T) {
	const width = 10
	d := noConflicts(t)
	for i := range 2 {
		d.exporting(5*i, 100+i)
	}
	made := uint64(0)
	for k := range 100 * width {
		from, to, i := 0, width, k%width
		if k/width%2 == 1 {
			from, to = to, from
		}
		d.Create(using(d.Initial(), to+i, from+(i+width-1)%width, from+i, from+(i+1)%width))
		if k == 20*width {
			made = d.trails
		}
	}
	if d.trails != made {
		t.Errorf("%d trails were made when all tasks followed both, and %d later", made, d.trails-made)
	}
	// This task writes what the children write, and follows them: its trail leads nowhere.
	d.Create(using(d.Initial(), 0, 100, 101))
	if last := d.initial.depends.last(0); last.trail != nil {
		t.Error("the trail leads to children that the task follows")
	}
}

// A task depends on two tasks, and the trail of one of them leads wherever the other's does: it
// has that trail, and no new one is made.
func TestTrailsThatLeadNowhereElseAreNotJoined(t *testing.T) {
	d := noConflicts(t)
	for i := range 2 {
		d.exporting(i, 100+i)
	}
	d.Create(using(d.Initial(), 2, 0, 1)) // follows both
	for range 100 {
		d.Create(using(d.Initial(), 3, 0)) // follows the first
		d.Create(using(d.Initial(), 2, 3))
	}
	// One trail for each exporting task, and one that joins them.
	if d.trails != 3 {
		t.Errorf("%d trails were made, want 3", d.trails)
	}
}

// An exporting task that depends on the child of the one before needs no trail to that child.
func TestTrailLeavesOutTheChildrenThatItsTaskFollows(t *testing.T) {
	d := noConflicts(t)
	first := d.exporting(0, 99).trail
	d.exporting(0, 100)
	for k := range 100 {
		e := d.exporting(0, 101+k, 100+k)
		if got := e.trail.before; len(got) != 1 || got[0] != first {
			t.Fatalf("behind task %d the trail leads to %+v", k, got)
		}
	}
}

// exporting generates an exporting task that uses slices, with a child that writes one.
func (d *Detector) exporting(to, child int, from ...int) *Task {
	s := using(d.Initial(), to, from...)
	s.Body, s.Transparency = true, tasks.Export
	e := d.Create(s)
	d.Begin(e)
	d.Create(using(e, child))
	d.End(e, false)
	return e
}

// last returns the last task that names a slice.
func (d *depends) last(k int) (last *Task) {
	_, start := slice(k)
	d.by.overlapping(start, start+1, func(at *segment[users]) { last = at.value.last[0] })
	return last
}

func benchmark(b *testing.B, step func(d *Detector, k int)) {
	b.ReportAllocs()
	d := noConflicts(b)
	for k := range b.N {
		step(d, k)
	}
}

func BenchmarkChain(b *testing.B) {
	benchmark(b, func(d *Detector, k int) { d.Create(using(d.Initial(), 0, 1)) })
}

func BenchmarkIndependentWithoutWait(b *testing.B) {
	benchmark(b, func(d *Detector, k int) { d.Create(using(d.Initial(), k)) })
}

func BenchmarkStencil100Wide(b *testing.B) { benchmarkStencil(b, 100) }

func BenchmarkStencil1000Wide(b *testing.B) { benchmarkStencil(b, 1000) }

func benchmarkStencil(b *testing.B, width int) {
	benchmark(b, func(d *Detector, k int) {
		i, from, to := k%width, 0, width
		if k/width%2 == 1 {
			from, to = to, from
		}
		d.Create(using(d.Initial(), to+i, from+(i+width-1)%width, from+i, from+(i+1)%width))
	})
}

func BenchmarkAllToAll100Wide(b *testing.B) {
	const width = 100
	benchmark(b, func(d *Detector, k int) {
		i, from, to := k%width, 0, width
		if k/width%2 == 1 {
			from, to = to, from
		}
		all := make([]int, width)
		for j := range all {
			all[j] = from + j
		}
		d.Create(using(d.Initial(), to+i, all...))
	})
}

func BenchmarkRacing(b *testing.B) {
	b.ReportAllocs()
	d := New(func(Conflict) {})
	for range b.N {
		s := using(d.Initial(), 0)
		s.Depend = nil
		d.Create(s)
	}
}
