package race

import (
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// slice returns the k-th slice of 64 bytes that programs here use, which is no memory.
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

// quiet returns a detector that fails the test if it reports anything.
func quiet(t testing.TB) *Detector {
	return New(func(c Conflict) { t.Fatalf("reported: %+v", c) })
}

func (d *Detector) sizes() (remembered, named, chains int) {
	return d.remembered, d.initial.depends.named, len(d.clock.chains)
}

// TestMemoryFollowsWhatHasNotBeenWaitedFor carries out long programs that wait, or go
// over the same storage, and looks at what is left in between.
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
	} {
		t.Run(name, func(t *testing.T) {
			d := quiet(t)
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

// TestMemoryOfAProgramInOneBodyIsBounded: the initial task waits all the while for the
// one task that makes the others, and waits for them.
func TestMemoryOfAProgramInOneBodyIsBounded(t *testing.T) {
	d := quiet(t)
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

// TestManyUsersOfOneSlice: 20,000 tasks that may use one slice
// at once, then one that follows them.
func TestManyUsersOfOneSlice(t *testing.T) {
	for name, kind := range map[string]tasks.DependKind{"in": tasks.DependIn, "inoutset": tasks.DependInOutSet, "mutexinoutset": tasks.DependMutexInOutSet} {
		t.Run(name, func(t *testing.T) {
			d := quiet(t)
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

func benchmark(b *testing.B, step func(d *Detector, k int)) {
	b.ReportAllocs()
	d := quiet(b)
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
