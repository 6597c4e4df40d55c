package tests

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
)

// The tests here restate behaviour cases of the OpenMP examples and of the OpenMP validation and
// verification suite, and have their names. To detect a wrong order of host tasks, the first
// task is blocked until the second would have run if it could. For tasks on a device the results
// are checked, which depend on the order.

func TestC46UndeferredTaskHonoursDepend(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	x := []int{0}
	release := make(chan struct{})
	generate(t, rt, vkomp.Task{Label: "first", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: body(func() { <-release; x[0] = 1 })})
	var early atomic.Bool
	generate(t, rt, vkomp.Task{Label: "opens", Body: body(func() {
		// The undeferred task is in the graph, so its construct is executing.
		awaitState(rt, "second", vkomp.GraphWaiting)
		close(release)
	})})
	generate(t, rt, vkomp.Task{
		Label: "second", If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.InOut(x)},
		Body: body(func() { early.Store(x[0] != 1); x[0] = 2 }),
	})
	if x[0] != 2 || early.Load() {
		t.Errorf("x = %d after the undeferred task, which ran early: %v", x[0], early.Load())
	}
	wait(t, rt)
}

func TestC46UndeferredTaskHonoursDependOfTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		x := make([]uint32, 64)
		for round := range uint32(20) {
			offload(t, rt, k.set(x, 3*round, vkomp.Out(x)))
			generate(t, rt, vkomp.Task{If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: body(func() {
				checkAll(t, "x in the undeferred task", x, 3*round)
				for i := range x {
					x[i]++
				}
			})})
			checkAll(t, "x after the undeferred task", x, 3*round+1)
			// An included target task is undeferred too.
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: body(func() {
				for i := range x {
					x[i] *= 2
				}
			})})
			included := k.add(x, 1, vkomp.InOut(x))
			included.NoWait = false
			offload(t, rt, included)
			checkAll(t, "x after the included target task", x, 2*(3*round+1)+1)
		}
	})
}

func TestC47InOutSetMembersRunAtOnceAndAfterWhatPrecedes(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	const n = 16
	arr := make([]int64, n)
	release := make(chan struct{})
	var wrong atomic.Int64
	for i := range arr {
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(arr[i : i+1])}, Body: body(func() {
			if i == 0 {
				<-release
			}
			arr[i] = int64(i + 1)
		})})
	}
	met := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	for member, add := range []int64{2, 3} {
		for i := range arr {
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOutSet(arr[i : i+1])}, Body: body(func() {
				if atomic.LoadInt64(&arr[i]) < int64(i+1) {
					wrong.Add(1)
				}
				if i == 0 {
					// Both run at the same time: neither could end otherwise.
					close(met[member])
					<-met[1-member]
				}
				atomic.AddInt64(&arr[i], add)
			})})
		}
	}
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(arr)}, Body: body(func() {
		for i, v := range arr {
			if v != int64(i+6) {
				t.Errorf("arr[%d] = %d for the reader, want %d", i, v, i+6)
			}
		}
	})})
	// One place is left for all other tasks: those that can run have run.
	letReadyRunTwice(t, rt)
	if v := atomic.LoadInt64(&arr[0]); v != 0 {
		t.Errorf("arr[0] = %d before its out task ended", v)
	}
	close(release)
	wait(t, rt)
	if wrong.Load() != 0 {
		t.Errorf("%d inoutset tasks ran before the out task", wrong.Load())
	}
}

// letReadyRunTwice waits until ready tasks, and those that become ready by them, have run.
func letReadyRunTwice(t testing.TB, rt *vkomp.Runtime) {
	t.Helper()
	letReadyRun(t, rt)
	letReadyRun(t, rt)
}

func TestC47InOutSetOfTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		// Members of the set use different elements, because nothing orders them.
		arr, sum := make([]uint32, 256), make([]uint32, 256)
		left, right := arr[:128], arr[128:]
		for round := range uint32(10) {
			offload(t, rt, k.set(arr, round, vkomp.Out(arr)))
			offload(t, rt, k.on(left, left, 3, 0, 2, vkomp.InOutSet(arr)))
			offload(t, rt, k.on(right, right, 3, 0, 2, vkomp.InOutSet(arr)))
			offload(t, rt, k.on(sum, arr, 7, 1, 0, vkomp.In(arr), vkomp.InOut(sum)))
		}
		wait(t, rt)
		want := uint32(0)
		for round := range uint32(10) {
			want = 7*want + 3*round + 2
		}
		checkAll(t, "sum", sum, want)
	})
}

func TestC48MutexInOutSetDiamond(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", "4")
	for range 50 {
		a, b, c, d := []int{0}, []int{0}, []int{0}, []int{0}
		var inside atomic.Int32
		exclusive := func(from []int) func(context.Context) error {
			return body(func() {
				if inside.Add(1) != 1 {
					t.Error("T4 and T5 overlapped")
				}
				rt.Taskyield(context.Background())
				c[0] += from[0]
				inside.Add(-1)
			})
		}
		for _, task := range []vkomp.Task{
			{Label: "T1", Depend: []vkomp.Depend{vkomp.Out(c)}, Body: body(func() { c[0] = 1 })},
			{Label: "T2", Depend: []vkomp.Depend{vkomp.Out(a)}, Body: body(func() { a[0] = 2 })},
			{Label: "T3", Depend: []vkomp.Depend{vkomp.Out(b)}, Body: body(func() { b[0] = 3 })},
			{Label: "T4", Depend: []vkomp.Depend{vkomp.In(a), vkomp.MutexInOutSet(c)}, Body: exclusive(a)},
			{Label: "T5", Depend: []vkomp.Depend{vkomp.In(b), vkomp.MutexInOutSet(c)}, Body: exclusive(b)},
			{Label: "T6", Depend: []vkomp.Depend{vkomp.In(c)}, Body: body(func() { d[0] = c[0] })},
		} {
			generate(t, rt, task)
		}
		wait(t, rt)
		if d[0] != 6 {
			t.Fatalf("d = %d, want 6", d[0])
		}
	}
}

func TestC48MutexInOutSetMemberWaitsForTheOtherToEnd(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	a, b, c := []int{0}, []int{0}, []int{0, 0, 0}
	began, release := make(chan struct{}), make(chan struct{})
	var second atomic.Bool
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(a), vkomp.MutexInOutSet(c[:2])}, Body: body(func() { close(began); <-release; c[1]++ })})
	<-began
	// One common element is enough, as in any kind of dependence.
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(b), vkomp.MutexInOutSet(c[1:])}, Body: body(func() { second.Store(true); c[1]++ })})
	letReadyRunTwice(t, rt)
	if second.Load() {
		t.Error("two tasks with mutexinoutset of one element overlapped")
	}
	close(release)
	wait(t, rt)
	if c[1] != 2 || !second.Load() {
		t.Errorf("c[1] = %d, want 2", c[1])
	}
}

func TestC48MutexInOutSetMembersRunInEitherOrder(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	a, b, c := []int{0}, []int{0}, []int{0}
	for _, late := range []string{"T4", "T5"} {
		release := make(chan struct{})
		ran := newOrder(2)
		first := func(of []int, label string) {
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(of)}, Body: body(func() {
				if label == late {
					<-release
				}
			})})
		}
		first(a, "T4")
		first(b, "T5")
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(a), vkomp.MutexInOutSet(c)}, Body: body(func() { ran.add("T4") })})
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(b), vkomp.MutexInOutSet(c)}, Body: body(func() { ran.add("T5") })})
		letReadyRunTwice(t, rt)
		close(release)
		wait(t, rt)
		if events := ran.so(); len(events) != 2 || events[1] != late {
			t.Errorf("ran %q, want %s last", events, late)
		}
	}
}

func TestC48MutexInOutSetDiamondOfTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 64
		for round := range 20 {
			a, b, c, d := make([]uint32, n), make([]uint32, n), make([]uint32, n), make([]uint32, n)
			offload(t, rt, k.set(c, 1, vkomp.Out(c)))
			offload(t, rt, k.set(a, 2, vkomp.Out(a)))
			offload(t, rt, k.set(b, 3, vkomp.Out(b)))
			offload(t, rt, k.on(c, a, 1, 1, 0, vkomp.In(a), vkomp.MutexInOutSet(c)))
			if round%2 == 0 {
				offload(t, rt, k.on(c, b, 1, 1, 0, vkomp.In(b), vkomp.MutexInOutSet(c)))
			} else {
				// A host task excludes a target task too.
				generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(b), vkomp.MutexInOutSet(c)}, Body: body(func() {
					for i := range c {
						c[i] += b[i]
					}
				})})
			}
			offload(t, rt, k.on(d, c, 0, 1, 0, vkomp.In(c), vkomp.Out(d)))
			wait(t, rt)
			checkAll(t, "d", d, 6)
		}
	})
}

func TestC49AllMemoryIsABarrierAmongDependentTasks(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", "3")
	a, d := []int{1}, []int{1}
	seen := newOrder(3)
	release, last := make(chan struct{}), make(chan struct{})
	for _, task := range []vkomp.Task{
		// T1 and T5 have no dependences: T1 runs from before all others until after them,
		// and T5 runs while T2 is blocked.
		{Label: "T1", Body: body(func() { <-last })},
		{Label: "T2", Depend: []vkomp.Depend{vkomp.Out(a)}, Body: body(func() { <-release; a[0] = 3 })},
		{Label: "T3", Depend: []vkomp.Depend{vkomp.Out(d)}, Body: body(func() { d[0] = 3 })},
		{Label: "T4", Depend: []vkomp.Depend{vkomp.InOutAllMemory()}, Body: body(func() {
			if a[0] != 3 || d[0] != 3 {
				t.Errorf("T4 sees a = %d and d = %d, want 3 and 3", a[0], d[0])
			}
			seen.add("T4")
			a[0]++
			d[0]++
		})},
		{Label: "T5", Body: body(func() { seen.add("T5"); close(release) })},
		{Label: "T6", Depend: []vkomp.Depend{vkomp.In(a), vkomp.In(d)}, Body: body(func() {
			if a[0] != 4 || d[0] != 4 {
				t.Errorf("T6 sees a = %d and d = %d, want 4 and 4", a[0], d[0])
			}
			seen.add("T6")
			close(last)
		})},
	} {
		generate(t, rt, task)
	}
	wait(t, rt)
	if got, want := seen.so(), []string{"T5", "T4", "T6"}; !slices.Equal(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
}

func TestC49AllMemoryIsABarrierAmongTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		a, d, e := make([]uint32, 64), make([]uint32, 64), make([]uint32, 64)
		want := uint32(0)
		for round := range uint32(10) {
			offload(t, rt, k.set(a, round, vkomp.Out(a)))
			offload(t, rt, k.set(d, 3, vkomp.Out(d)))
			// It reads a and changes d without naming them in depend clauses.
			offload(t, rt, k.on(d, a, 5, 1, 0, vkomp.InOutAllMemory()))
			offload(t, rt, k.on(e, d, 7, 1, 0, vkomp.In(d), vkomp.InOut(e)))
			want = 7*want + 5*3 + round
		}
		wait(t, rt)
		checkAll(t, "e", e, want)
	})
}

func TestC51IteratorFanIn(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	const n = 40
	v := make([]int, n)
	sum := 0
	for held := 0; held < n; held += 13 {
		release := make(chan struct{})
		var readerRan atomic.Bool
		for i := range v {
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(v[i : i+1])}, Body: body(func() {
				if i == held {
					<-release
				}
				v[i]++
			})})
		}
		reader := vkomp.Task{
			Depend: vkomp.Iterate(0, n, 1, func(i int) vkomp.Depend { return vkomp.In(v[i : i+1]) }),
			Body: body(func() {
				readerRan.Store(true)
				for _, x := range v {
					sum += x
				}
			}),
		}
		generate(t, rt, reader)
		letReadyRunTwice(t, rt)
		if readerRan.Load() {
			t.Errorf("the reader ran before writer %d ended", held)
		}
		close(release)
		wait(t, rt)
	}
	if want := n * (1 + 2 + 3 + 4); sum != want {
		t.Errorf("the readers have seen %d in sum, want %d", sum, want)
	}
}

func TestC51IteratorFanInOfTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n, tile = 16, 64
		v, sum := make([]uint32, n*tile), make([]uint32, n*tile)
		part := func(i int) []uint32 { return v[i*tile : (i+1)*tile] }
		for i := range n {
			offload(t, rt, k.set(part(i), 5, vkomp.Out(part(i))))
		}
		reader := k.on(sum, v, 0, 2, 1, vkomp.Iterate(0, n, 1, func(i int) vkomp.Depend { return vkomp.In(part(i)) })...)
		offload(t, rt, reader)
		wait(t, rt)
		checkAll(t, "sum", sum, 11)
	})
}

func TestC53TaskwaitDependWaitsForASubset(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		x, y, z := []int{0}, []int{0}, make([]uint32, 64)
		release := make(chan struct{})
		var ended atomic.Bool
		generate(t, rt, vkomp.Task{Label: "B", Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: body(func() { <-release; y[0] = 2; ended.Store(true) })})
		generate(t, rt, vkomp.Task{Label: "A", Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: body(func() { x[0] = 1 })})
		offload(t, rt, k.set(z, 3, vkomp.InOut(z)))
		wait(t, rt, vkomp.In(x))
		if x[0] != 1 || ended.Load() {
			t.Errorf("x = %d, and B had ended: %v", x[0], ended.Load())
		}
		wait(t, rt, vkomp.In(z))
		checkAll(t, "z", z, 3)
		// B is still blocked: neither wait was for it.
		generate(t, rt, vkomp.Task{Label: "opens", Body: body(func() {
			awaitState(rt, "taskwait", vkomp.GraphWaiting)
			close(release)
		})})
		wait(t, rt, vkomp.In(x), vkomp.In(y))
		if x[0] != 1 || y[0] != 2 {
			t.Errorf("x = %d and y = %d, want 1 and 2", x[0], y[0])
		}
		wait(t, rt)
	})
}

func TestC54TaskwaitNoWaitIsAJoin(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	const n = 100
	s, arr := []int{1}, make([]int, n)
	for i := range arr {
		arr[i] = 1
	}
	release := make(chan struct{})
	var first, second atomic.Bool
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(s)}, Body: body(func() { <-release; s[0]++; first.Store(true) })})
	if err := rt.TaskwaitNoWait(t.Context(), vkomp.InOut(s), vkomp.Out(arr)); err != nil {
		t.Fatal(err)
	}
	if first.Load() {
		t.Error("the join blocked until the first task was complete")
	}
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(arr)}, Body: body(func() {
		second.Store(true)
		if !first.Load() {
			t.Error("the second task started before the first ended")
		}
		for i := range arr {
			arr[i]++
		}
	})})
	letReadyRunTwice(t, rt)
	if second.Load() {
		t.Error("the second task has run")
	}
	close(release)
	wait(t, rt)
	sum := 0
	for _, v := range arr {
		sum += v
	}
	if s[0] != 2 || sum != 2*n {
		t.Errorf("s = %d and the sum is %d, want 2 and %d", s[0], sum, 2*n)
	}
}

func TestC54JoinBetweenHostAndTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 64
		join := func(depend ...vkomp.Depend) {
			t.Helper()
			if err := rt.TaskwaitNoWait(t.Context(), depend...); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			s, mid, end := make([]uint32, n), make([]uint32, n), make([]uint32, n)
			a, b := []byte{0}, []byte{0}
			release := make(chan struct{})
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(s)}, Body: body(func() {
				<-release
				for i := range s {
					s[i] = 5
				}
			})})
			// The target tasks do not name the storage that they read; joins order them.
			join(vkomp.In(s), vkomp.Out(a))
			offload(t, rt, k.on(mid, s, 0, 3, 0, vkomp.In(a), vkomp.Out(mid)))
			join(vkomp.In(mid), vkomp.Out(b))
			offload(t, rt, k.on(end, mid, 0, 2, 1, vkomp.In(b), vkomp.Out(end)))
			close(release)
			wait(t, rt)
			checkAll(t, "mid", mid, 15)
			checkAll(t, "end", end, 31)
		}
	})
}

func TestC56DependObjectLifeCycle(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", places)
	const n = 50
	a, b := make([]int, n), []int{0}
	for i := range a {
		a[i] = i
	}
	var object vkomp.Depobj
	if err := object.Init(vkomp.InOut(a)); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var second atomic.Bool
	increment := body(func() {
		<-release
		for i := range a {
			a[i]++
		}
	})
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{object.Depend()}, Body: increment})
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(a)}, Body: body(func() {
		second.Store(true)
		for i, v := range a {
			if v != i+1 {
				t.Errorf("pass 1: a[%d] = %d for the second task, want %d", i, v, i+1)
			}
		}
		b[0] += 2
	})})
	letReadyRunTwice(t, rt)
	if second.Load() {
		t.Error("pass 1: the second task did not wait for the first")
	}
	close(release)
	wait(t, rt)

	if err := object.Update(vkomp.DependIn); err != nil {
		t.Fatal(err)
	}
	// Both overlap: each waits until the other has begun.
	met := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{object.Depend()}, Body: body(func() {
		close(met[0])
		<-met[1]
		for i := range a {
			a[i]++
		}
	})})
	generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(a)}, Body: body(func() {
		close(met[1])
		<-met[0]
		b[0] += 3
	})})
	wait(t, rt)
	if err := object.Destroy(); err != nil {
		t.Fatal(err)
	}
	for i, v := range a {
		if v != i+2 {
			t.Fatalf("a[%d] = %d, want %d", i, v, i+2)
		}
	}
	if b[0] != 5 {
		t.Errorf("b = %d, want 5", b[0])
	}
}

func TestC56DependObjectOnTargetTasks(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		a, b, c := make([]uint32, 64), make([]uint32, 64), make([]uint32, 64)
		var object vkomp.Depobj
		if err := object.Init(vkomp.InOut(a)); err != nil {
			t.Fatal(err)
		}
		want := uint32(0)
		for round := range uint32(10) {
			offload(t, rt, k.on(a, a, 3, 0, round, object.Depend()))
			want = 3*want + round
		}
		if err := object.Update(vkomp.DependIn); err != nil {
			t.Fatal(err)
		}
		offload(t, rt, k.on(b, a, 0, 1, 1, object.Depend(), vkomp.Out(b)))
		offload(t, rt, k.on(c, a, 0, 1, 2, object.Depend(), vkomp.Out(c)))
		offload(t, rt, k.set(a, 9, vkomp.InOut(a)))
		wait(t, rt)
		checkAll(t, "a", a, 9)
		checkAll(t, "b", b, want+1)
		checkAll(t, "c", c, want+2)
	})
}
