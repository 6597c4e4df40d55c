package tests

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// The tests here restate what LLVM's OpenMP tests check about tasks.

// stages checks tasks that run in stages, one stage after the other.
type stages struct {
	t *testing.T
	// size is the number of tasks in each stage.
	size []int
	// alone holds the stages of which only one task may run at a time.
	alone map[int]bool
	began []atomic.Int32
	ended []atomic.Int32
	// pairs are for stages of two tasks that must be able to run at the same time.
	pairs [][2]chan struct{}
}

func newStages(t *testing.T, size []int, alone ...int) *stages {
	s := &stages{t: t, size: size, alone: make(map[int]bool), began: make([]atomic.Int32, len(size)), ended: make([]atomic.Int32, len(size))}
	for _, k := range alone {
		s.alone[k] = true
	}
	for range size {
		s.pairs = append(s.pairs, [2]chan struct{}{make(chan struct{}), make(chan struct{})})
	}
	return s
}

// task returns the body of the k-th task of a stage.
func (s *stages) task(stage, k int) func(context.Context) error {
	return body(func() {
		running := s.began[stage].Add(1) - s.ended[stage].Load()
		if int(running) > s.size[stage] || s.alone[stage] && running != 1 {
			s.t.Errorf("%d tasks of stage %d at once", running, stage)
		}
		for earlier := range stage {
			if n := int(s.ended[earlier].Load()); n != s.size[earlier] {
				s.t.Errorf("a task of stage %d began when %d of %d of stage %d had ended", stage, n, s.size[earlier], earlier)
			}
		}
		if s.size[stage] == 2 && !s.alone[stage] {
			close(s.pairs[stage][k])
			<-s.pairs[stage][1-k]
		}
		s.ended[stage].Add(1)
	})
}

func (s *stages) check() {
	for stage, want := range s.size {
		if n := int(s.ended[stage].Load()); n != want {
			s.t.Errorf("%d of %d tasks of stage %d ran", n, want, stage)
		}
	}
}

func TestL01InOutSetBetweenReadersAndMutexes(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", "4")
	for range 50 {
		i1, i2, i3 := []int{0}, []int{0}, []int{0}
		s := newStages(t, []int{2, 2, 2, 2, 1}, 3, 4)
		depend := [][]vkomp.Depend{
			{vkomp.In(i1), vkomp.In(i2)},
			{vkomp.In(i1), vkomp.InOutSet(i2)},
			{vkomp.In(i1), vkomp.In(i2)},
			{vkomp.MutexInOutSet(i1), vkomp.MutexInOutSet(i3)},
			{vkomp.In(i3)},
		}
		for stage, items := range depend {
			for k := range s.size[stage] {
				generate(t, rt, vkomp.Task{Depend: items, Body: s.task(stage, k)})
			}
		}
		wait(t, rt)
		s.check()
	}
}

func TestL01InOutSetBetweenTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 64
		for range 5 {
			i1, i2, i3 := make([]uint32, n), make([]uint32, 2*n), make([]uint32, n)
			seen := make([]uint32, 2*n)
			offload(t, rt, k.set(i1, 2, vkomp.Out(i1)))
			offload(t, rt, k.on(seen[:n], i1, 0, 1, 0, vkomp.In(i1), vkomp.In(i2)))
			offload(t, rt, k.on(seen[n:], i1, 0, 1, 0, vkomp.In(i1), vkomp.In(i2)))
			offload(t, rt, k.on(i2[:n], i1, 0, 3, 0, vkomp.In(i1), vkomp.InOutSet(i2)))
			offload(t, rt, k.on(i2[n:], i1, 0, 3, 0, vkomp.In(i1), vkomp.InOutSet(i2)))
			offload(t, rt, k.on(i1, i2[n:], 1, 1, 0, vkomp.In(i2), vkomp.MutexInOutSet(i1), vkomp.MutexInOutSet(i3)))
			offload(t, rt, k.on(i3, i2[:n], 1, 1, 0, vkomp.In(i2), vkomp.MutexInOutSet(i1), vkomp.MutexInOutSet(i3)))
			offload(t, rt, k.on(i3, i3, 2, 0, 0, vkomp.InOut(i3)))
			wait(t, rt)
			checkAll(t, "seen", seen, 2)
			checkAll(t, "i1", i1, 8)
			checkAll(t, "i3", i3, 12)
		}
	})
}

func TestL02AllMemoryTasksRunAlone(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", "4")
	for range 50 {
		i1, i2, i3 := []int{0}, []int{0}, []int{0}
		s := newStages(t, []int{2, 1, 1, 2, 1, 1, 1}, 1, 2, 4, 5, 6)
		depend := [][]vkomp.Depend{
			{vkomp.In(i1)},
			{vkomp.InOut(i1)},
			// Items in addition to omp_all_memory have no effect.
			{vkomp.InOutAllMemory(), vkomp.In(i1)},
			{vkomp.In(i1), vkomp.InOutSet(i3)},
			{vkomp.InOutAllMemory(), vkomp.MutexInOutSet(i2)},
			{vkomp.InOutAllMemory()},
			{vkomp.In(i3)},
		}
		for stage, items := range depend {
			for k := range s.size[stage] {
				generate(t, rt, vkomp.Task{Depend: items, Body: s.task(stage, k)})
			}
		}
		wait(t, rt)
		s.check()
	}
}

func TestL04DependObjectsOfEveryKind(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", "4")
	x, y := []int{0}, []int{0}
	var object vkomp.Depobj
	if err := object.Init(vkomp.Out(x)); err != nil {
		t.Fatal(err)
	}
	with := func(kind vkomp.DependKind) []vkomp.Depend {
		t.Helper()
		if err := object.Update(kind); err != nil {
			t.Fatal(err)
		}
		return []vkomp.Depend{object.Depend()}
	}
	for range 50 {
		generate(t, rt, vkomp.Task{Depend: with(vkomp.DependOut), Body: body(func() { x[0] = 10 })})
		generate(t, rt, vkomp.Task{Depend: with(vkomp.DependInOut), Body: body(func() { x[0]++ })})
		var inside atomic.Int32
		for range 5 {
			generate(t, rt, vkomp.Task{Depend: with(vkomp.DependMutexInOutSet), Body: func(ctx context.Context) error {
				if inside.Add(1) != 1 {
					t.Error("two mutexinoutset bodies at once")
				}
				x[0] += 7
				rt.Taskyield(ctx)
				x[0] -= 7
				inside.Add(-1)
				return nil
			}})
		}
		generate(t, rt, vkomp.Task{Depend: with(vkomp.DependIn), Body: body(func() { y[0] = x[0] + 10 })})
		wait(t, rt)
		if y[0] != 21 {
			t.Fatalf("y = %d, want 21", y[0])
		}
	}
	if err := object.Destroy(); err != nil {
		t.Fatal(err)
	}
}

func TestL05EventFulfilledBeforeTheTaskStarts(t *testing.T) {
	for _, threads := range []string{"1", "3"} {
		t.Run(threads+" threads", func(t *testing.T) {
			rt := openHost(t, "OMP_NUM_THREADS", threads)
			x := []int{0}
			release := make(chan struct{})
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: body(func() { <-release; x[0] = 1 })})
			var event vkomp.Event
			generate(t, rt, vkomp.Task{Detach: &event, Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: body(func() { x[0] = 10*x[0] + 2 })})
			if err := event.Fulfill(); err != nil {
				t.Fatal(err)
			}
			close(release)
			wait(t, rt)
			if x[0] != 12 {
				t.Errorf("x = %d after Taskwait, want 12", x[0])
			}
		})
	}
}

func TestL06EmptyDependentTaskBlocksNobody(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		x, y := []int{0}, make([]uint32, 64)
		release := make(chan struct{})
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: body(func() { <-release })})
		offload(t, rt, k.set(y, 1, vkomp.Out(y)))
		for _, depend := range [][]vkomp.Depend{{vkomp.In(x)}, {vkomp.In(y)}, {vkomp.InOut(x), vkomp.InOut(y)}, {vkomp.InOutSet(y)}, {vkomp.InOutAllMemory()}} {
			if err := rt.TaskwaitNoWait(t.Context(), depend...); err != nil {
				t.Fatal(err)
			}
		}
		// The goroutine reaches this point only if it does not wait for the joins.
		close(release)
		wait(t, rt)
		checkAll(t, "y", y, 1)
	})
}

func TestL07SuccessorsOfAnUnfinishedTargetTask(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		a, b := make([]uint32, 64), make([]uint32, 64)
		release := make(chan struct{})
		var successor atomic.Bool
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(a)}, Body: body(func() { <-release })})
		offload(t, rt, k.set(a, 4, vkomp.InOut(a)))
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(a)}, Body: body(func() {
			checkAll(t, "a in the host successor", a, 4)
			successor.Store(true)
		})})
		offload(t, rt, k.on(b, a, 0, 2, 0, vkomp.In(a), vkomp.Out(b)))
		letReadyRunTwice(t, rt)
		if s := rt.Stats(); successor.Load() || s.Dispatches+s.HostRegions != 0 {
			t.Errorf("before the target task could start its host successor had run: %v, and target tasks: %d", successor.Load(), s.Dispatches+s.HostRegions)
		}
		close(release)
		wait(t, rt)
		if !successor.Load() {
			t.Error("the host successor has not run")
		}
		checkAll(t, "b", b, 8)
	})
}

func TestL08HostAndTargetTasksTakeTurns(t *testing.T) {
	vktest.LongConcurrent(t)
	const n = 1024
	for _, threads := range []string{"1", "4"} {
		for _, m := range taskModes {
			t.Run(m.name+", "+threads+" threads", func(t *testing.T) {
				rt := vktest.Open(t, append(m.options[:len(m.options):len(m.options)], environment("OMP_NUM_THREADS", threads))...)
				k := newAffine(t, rt)
				for range 10 {
					x := make([]uint32, n)
					depend := vkomp.InOut(x)
					// Doubling in between reveals a wrong order.
					host := func(v uint32) {
						generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{depend}, Body: body(func() {
							for i := range x {
								x[i] = 3*x[i] + v
							}
						})})
					}
					device := func(v uint32) { offload(t, rt, k.on(x, x, 3, 0, v, depend)) }
					host(1)
					device(2)
					device(4)
					host(8)
					wait(t, rt)
					checkAll(t, "x", x, 3*(3*(3*1+2)+4)+8)

					clear(x)
					for _, step := range []func(){
						func() {
							generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{depend}, Body: body(func() { addTo(x, 1) })})
						},
						func() { offload(t, rt, k.add(x, 2, depend)) },
						func() { offload(t, rt, k.add(x, 4, depend)) },
						func() {
							generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{depend}, Body: body(func() { addTo(x, 8) })})
						},
					} {
						step()
					}
					wait(t, rt)
					checkAll(t, "x", x, 15)
				}
			})
		}
	}
}

func addTo(s []uint32, v uint32) {
	for i := range s {
		s[i] += v
	}
}

func TestL12DeferredTargetTaskThenIncludedOne(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1024
		a := make([]uint32, n)
		for range 20 {
			for i := range a {
				a[i] = uint32(i)
			}
			offload(t, rt, k.add(a, 1, vkomp.InOut(a)))
			included := k.on(a, a, 2, 0, ^uint32(1), vkomp.InOut(a))
			included.NoWait = false
			offload(t, rt, included)
			sum := uint32(0)
			for _, v := range a {
				sum += v
			}
			if sum != 1023*1024 {
				t.Fatalf("the sum is %d, want %d", sum, 1023*1024)
			}
		}
		wait(t, rt)
	})
}

func TestL29DeferredTargetTasksOfManyGoroutinesWaitForNothing(t *testing.T) {
	for name, option := range map[string]func(*vkomp.Options){"device": func(*vkomp.Options) {}, "initial device": vktest.Host} {
		t.Run(name, func(t *testing.T) {
			const goroutines, n = 16, 256
			var log lines
			o := vkomp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			option(&o)
			rt, err := vkomp.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := rt.Close(); err != nil {
					t.Error(err)
				}
			}()
			k := newAffine(t, rt)
			x := make([]uint32, goroutines*n)
			release := make(chan struct{})
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: body(func() { <-release })})
			var all sync.WaitGroup
			failures := make([]error, goroutines)
			for g := range goroutines {
				all.Go(func() {
					mine := x[g*n : (g+1)*n]
					for range 4 {
						failures[g] = errors.Join(failures[g], rt.Target(context.Background(), k.add(mine, uint32(g), vkomp.InOut(mine))))
					}
				})
			}
			// The goroutines end even though no target task could have begun.
			all.Wait()
			if s := rt.Stats(); s.Dispatches+s.HostRegions != 0 {
				t.Errorf("%d target tasks began before their predecessor ended", s.Dispatches+s.HostRegions)
			}
			close(release)
			wait(t, rt)
			if err := errors.Join(failures...); err != nil {
				t.Error(err)
			}
			for g := range goroutines {
				checkAll(t, "x", x[g*n:(g+1)*n], uint32(4*g))
			}
			if text := strings.ToLower(log.String()); strings.Contains(text, "waiting") {
				t.Errorf("the runtime says that it waits:\n%s", text)
			}
		})
	}
}

// lines is a writer for concurrent use.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
