package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

var (
	errSubmitMemory = &vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorOutOfDeviceMemory}
	errBlockMemory  = &vk.Error{Op: "vkAllocateMemory", Result: vk.ErrorOutOfDeviceMemory}
)

// workload is a small program that has a bit of everything: chains, a diamond, several readers
// of one array, a data region, an included task, and tasks that nothing orders.
type workload struct {
	x, y, z, zero, region []uint32
	// included is the error of the included task.
	included error
}

func newWorkload() *workload {
	return &workload{x: filled(16, 1), y: filled(16, 2), z: filled(16, 3), zero: filled(16, 0), region: filled(16, 4)}
}

// run makes the tasks and returns what the final wait reports.
func (p *workload) run(r *rig) error {
	mix := func(label string, included bool, out, a []uint32, in ...[]uint32) error {
		return r.s.Run(context.Background(), r.region(launch{label: label, kernel: "mix", args: []arg{tofrom(out), to(a), to(p.zero)},
			constant: 1, in: append(in, a), out: [][]uint32{out}, included: included}))
	}
	all := [][]uint32{p.region}
	r.s.Run(context.Background(), r.region(launch{label: "enter", enter: []arg{to(p.region)}, out: all}))
	for i := range 3 {
		mix(fmt.Sprint("x ", i), false, p.x, p.zero)
		mix(fmt.Sprint("y ", i), false, p.y, p.x)
	}
	mix("z", false, p.z, p.x, p.y)
	mix("in the region", false, p.region, p.zero)
	p.included = mix("included", true, p.y, p.x)
	mix("last", false, p.z, p.y)
	r.s.Run(context.Background(), r.region(launch{label: "exit", exit: []arg{from(p.region)}, out: all}))
	return r.scope.Wait(context.Background(), nil)
}

// leave deletes what a failure has left mapped by the data region.
func (p *workload) leave(r *rig) {
	r.s.Run(context.Background(), r.region(launch{label: "give up", exit: []arg{{s: p.region, kind: memory.MapDelete}}, included: true}))
}

// check compares the arrays with the result of the same program run sequentially.
func (p *workload) check(t *testing.T) {
	t.Helper()
	want := newWorkload()
	mix := func(out, a []uint32) {
		for i := range out {
			out[i] = 3*out[i] + a[i] + 1
		}
	}
	for range 3 {
		mix(want.x, want.zero)
		mix(want.y, want.x)
	}
	mix(want.z, want.x)
	mix(want.region, want.zero)
	mix(want.y, want.x)
	mix(want.z, want.y)
	for name, pair := range map[string][2][]uint32{"x": {p.x, want.x}, "y": {p.y, want.y}, "z": {p.z, want.z}, "region": {p.region, want.region}} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
}

// inEveryFault runs a test again and again, and makes another call of the device fail each
// time: the first, the second, and so on, until the workload makes no more calls.
func inEveryFault(t *testing.T, test func(t *testing.T, r *rig, n int) (calls int)) {
	for _, mode := range memoryModes {
		for n := 1; ; n++ {
			more := false
			t.Run(fmt.Sprintf("%s/call %d", mode.name, n), func(t *testing.T) {
				r := newRig(t, mode, uint64(n))
				more = test(t, r, n) >= n
			})
			if !more || n > 100 {
				break
			}
		}
	}
}

func TestSubmitOutOfMemoryFailsItsTasksAndNoMore(t *testing.T) {
	inEveryFault(t, func(t *testing.T, r *rig, n int) int {
		defer r.close()
		r.d.submit = func(call int) error {
			if call == n {
				return errSubmitMemory
			}
			return nil
		}
		p := newWorkload()
		err := p.run(r)
		calls := r.d.submits
		if calls < n {
			if err != nil || p.included != nil {
				t.Fatalf("nothing failed, yet: %v, %v", err, p.included)
			}
			p.check(t)
			return calls
		}
		if !errors.Is(errors.Join(err, p.included), vk.ErrOutOfMemory) {
			t.Errorf("call %d failed, the program learned of %v and %v", n, err, p.included)
		}
		p.leave(r)
		r.checkEmpty()
		again := newWorkload()
		if err := errors.Join(again.run(r), again.included); err != nil {
			t.Errorf("the scheduler is not usable afterwards: %v", err)
		}
		again.check(t)
		return calls
	})
}

func TestAllocationFailureFailsItsTasksAndNoMore(t *testing.T) {
	inEveryFault(t, func(t *testing.T, r *rig, n int) int {
		defer r.close()
		r.d.create = func(call int) error {
			// The allocator asks for smaller blocks when a large one fails: all calls of one
			// request have to fail.
			if call >= n && call < n+4 {
				return errBlockMemory
			}
			return nil
		}
		p := newWorkload()
		err := p.run(r)
		calls := r.d.creates
		if calls < n {
			p.check(t)
			return calls
		}
		if all := errors.Join(err, p.included); all != nil && (!errors.Is(all, memory.ErrOutOfMemory) || !errors.Is(all, vk.ErrOutOfMemory)) {
			t.Errorf("the program learned of %v", all)
		}
		p.leave(r)
		r.checkEmpty()
		r.d.create = nil
		again := newWorkload()
		if err := errors.Join(again.run(r), again.included); err != nil {
			t.Errorf("the scheduler is not usable afterwards: %v", err)
		}
		again.check(t)
		return calls
	})
}

func TestLostDeviceFailsEverythingAndCloses(t *testing.T) {
	inEveryFault(t, func(t *testing.T, r *rig, n int) int {
		r.d.submit = func(call int) error {
			if call == n {
				return errLost
			}
			return nil
		}
		p := newWorkload()
		err := errors.Join(p.run(r), p.included)
		calls := r.d.submits
		if calls >= n {
			if !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("the program learned of %v", err)
			}
			x := filled(4, 0)
			late := r.s.Run(context.Background(), r.region(launch{label: "late", kernel: "set", args: []arg{from(x)}, included: true}))
			if !errors.Is(late, vk.ErrDeviceLost) || !strings.Contains(late.Error(), `"late"`) {
				t.Errorf("a later construct got %v", late)
			}
			r.expect("x", x, 0, 0, 0, 0)
		}
		// Close reports what is still mapped: the exit of the data region failed with the
		// device.
		r.s.Close()
		return calls
	})
}

func TestDeviceLostWhileTasksAreInFlight(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			x, zero := filled(16, 1), filled(16, 0)
			r.d.hold()
			for i := range 20 {
				r.mix(fmt.Sprint(i), x, zero, zero, 0)
			}
			r.d.set(func() { r.d.lost = true })
			if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("got %v", err)
			}
			r.checkEmpty()
			r.expect("x", x, filled(16, 1)...)
			if err := r.s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDependentsOfAFailedSubmissionDoNotRun(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y, other, zero := filled(4, 1), filled(4, 1), filled(4, 1), filled(4, 0)
		r.d.submit = func(call int) error {
			if call == 1 {
				return errSubmitMemory
			}
			return nil
		}
		r.mix("first", x, zero, zero, 0)
		r.mix("second", y, x, zero, 0)
		r.mix("third", x, y, zero, 0)
		r.mix("other", other, zero, zero, 0)
		err := r.scope.Wait(context.Background(), nil)
		if err == nil || err.Error() != `task "first": vk: vkQueueSubmit: VK_ERROR_OUT_OF_DEVICE_MEMORY (2 dependent tasks not run)` {
			t.Errorf("got %v", err)
		}
		r.expect("x", x, filled(4, 1)...)
		r.expect("y", y, filled(4, 1)...)
		r.expect("other", other, filled(4, 3)...)
	})
}

// A batch that cannot be submitted fails all its tasks. The error names those that follow none
// of the others, and counts the rest.
func TestFailedBatchNamesItsRoots(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		zero, x, y := filled(4, 0), filled(4, 1), filled(4, 1)
		r.run(launch{label: "enter", enter: []arg{to(zero), to(x), to(y)}, included: true})
		r.busy()
		r.mix("x 1", x, zero, zero, 0)
		r.mix("x 2", x, zero, zero, 0)
		r.mix("y 1", y, zero, zero, 0)
		r.failNext()
		r.d.release()
		err := r.scope.Wait(context.Background(), nil)
		if err == nil {
			t.Fatal("no failure")
		}
		for _, want := range []string{`task "x 1"`, `task "y 1"`, "(1 dependent tasks not run)"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %s", err, want)
			}
		}
		r.run(launch{label: "exit", exit: []arg{from(zero), from(x), from(y)}, included: true})
		r.expect("x", x, filled(4, 1)...)
	})
}

// A copy to the host can turn out to be due only when its task ends, because the task that was
// to make it has gone on. If there is no staging memory for it then, the task fails, and its
// memory is given back exactly once.
func TestLateCopyWithoutMemoryFailsItsTask(t *testing.T) {
	for _, mode := range memoryModes[1:3] {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x, y, last := array32(1<<20+16), filled(16, 0), filled(16, 0)
			r.d.hold()
			r.run(launch{label: "y", kernel: "add", args: []arg{tofrom(y)}, out: [][]uint32{y}})
			r.run(launch{label: "holds x", kernel: "add", args: []arg{alloc(x)}, empty: true, in: [][]uint32{y}})
			r.run(launch{label: "fails", kernel: "set", args: []arg{from(x)}, constant: 1, out: [][]uint32{x}})
			r.run(launch{label: "dependent", kernel: "set", args: []arg{from(x)}, constant: 2, out: [][]uint32{x}})
			r.run(launch{label: "other", kernel: "add", args: []arg{tofrom(last)}, constant: 1})
			r.d.set(func() { r.d.create = func(int) error { return errBlockMemory } })
			r.d.release()
			err := r.scope.Wait(context.Background(), nil)
			if !errors.Is(err, memory.ErrOutOfMemory) || !strings.Contains(err.Error(), `task "fails"`) || !strings.Contains(err.Error(), "(1 dependent tasks not run)") {
				t.Errorf("got %v", err)
			}
			if x[0] != 0 || last[0] != 1 {
				t.Errorf("x = %d, last = %d", x[0], last[0])
			}
		})
	}
}

// failNext makes the next submission fail.
func (r *rig) failNext() { r.failNth(1) }

// failNth makes the n-th submission from now on fail.
func (r *rig) failNth(n int) {
	r.d.set(func() {
		fail := r.d.submits + n
		r.d.submit = func(call int) error {
			if call == fail {
				return errSubmitMemory
			}
			return nil
		}
	})
}

// stopBetweenEntryAndPlace runs a launch that maps region, which is present, on another
// goroutine, and keeps it between its entry and its place: it waits there for the task that
// brings region's contents, which the function pretends to exist. The result lets it go on.
func (r *rig) stopBetweenEntryAndPlace(region []uint32, l launch) (resume func()) {
	return r.stopAfterEntry(region, func() { r.run(l) })
}

// stopAfterEntry is stopBetweenEntryAndPlace for a construct that a function runs.
func (r *rig) stopAfterEntry(region []uint32, run func()) (resume func()) {
	r.s.mu.Lock()
	block, _, err := r.s.presence.table.Lookup(alloc(region).item("").Section)
	if err != nil || block == nil {
		r.t.Fatal(err)
	}
	before, _ := block.Count()
	// The block says that a task which entered last is still bringing its contents, unless it says so already.
	if state := stateOf(block); state.filling == 0 {
		state.filling = r.s.presence.entries
	}
	r.s.mu.Unlock()
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		run()
	}()
	r.eventually("entry", func() bool { n, _ := block.Count(); return n > before })
	return func() {
		r.s.mu.Lock()
		stateOf(block).filling = 0
		r.s.presence.filling.Broadcast()
		r.s.mu.Unlock()
		<-ran
	}
}

// A task found its storage present, and relied on a copy to the device that another task was to
// make. When the submission of that copy fails, the task fails too: its storage has no
// contents.
func TestSharedCopyThatFailedFailsItsSharers(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	region, shared, zero := filled(16, 1), filled(16, 7), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(region)}, included: true})
	r.busy()
	a, b := filled(16, 0), filled(16, 0)
	r.run(launch{label: "a", kernel: "mix", args: []arg{tofrom(a), to(shared), to(zero)}})
	resume := r.stopBetweenEntryAndPlace(region, launch{label: "b", kernel: "mix", args: []arg{tofrom(b), to(shared), alloc(region)}})
	r.failNext()
	r.d.release()
	r.eventually("failure", func() bool { return r.graph.Counts().Failures > 0 })
	resume()
	err := r.scope.Wait(context.Background(), nil)
	if !errors.Is(err, vk.ErrOutOfMemory) || !strings.Contains(err.Error(), `task "b": the copy to storage that it shares failed`) {
		t.Errorf("got %v", err)
	}
	r.expect("a", a, zero...)
	r.expect("b", b, zero...)
	r.run(launch{label: "exit", exit: []arg{from(region)}, included: true})
}

// A task that has entered, and has no place among the device's commands yet, is dropped when a
// task that it depends on fails in the meantime.
func TestFailureReachesATaskBetweenEntryAndPlace(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		region, x, y, zero := filled(16, 1), filled(16, 1), filled(16, 1), filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(region)}, included: true})
		r.busy()
		r.mix("fails", x, zero, zero, 0)
		resume := r.stopBetweenEntryAndPlace(region, launch{label: "dependent", kernel: "mix",
			args: []arg{tofrom(y), alloc(region), alloc(region)}, in: [][]uint32{x}, out: [][]uint32{y}})
		r.failNext()
		r.d.release()
		r.eventually("failure", func() bool { return r.graph.Counts().Failures > 0 })
		resume()
		if err := r.scope.Wait(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "(1 dependent tasks not run)") {
			t.Errorf("got %v", err)
		}
		r.expect("y", y, filled(16, 1)...)
		r.run(launch{label: "exit", exit: []arg{from(region)}, included: true})
	})
}

func TestCloseWaitsForTheDeviceAndFailsWhatWasNotPlaced(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			x, zero := filled(16, 1), filled(16, 0)
			r.d.hold()
			// Nothing else maps x, so each task removes it from the device when it ends: the
			// second waits for that before it enters.
			r.mix("placed", x, zero, zero, 0)
			r.mix("waits", x, zero, zero, 0)
			closed := make(chan error)
			go func() { closed <- r.s.Close() }()
			r.s.mu.Lock()
			for !r.s.life.closing {
				r.s.mu.Unlock()
				r.s.mu.Lock()
			}
			r.s.mu.Unlock()
			select {
			case err := <-closed:
				t.Fatalf("Close returned with work in flight: %v", err)
			default:
			}
			if err := r.s.Run(context.Background(), r.region(launch{label: "late", kernel: "set", args: []arg{from(x)}})); !errors.Is(err, ErrClosed) {
				t.Errorf("a construct after Close got %v", err)
			}
			r.d.release()
			if err := <-closed; err != nil {
				t.Error(err)
			}
			err := r.scope.Wait(context.Background(), nil)
			if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), `"waits"`) {
				t.Errorf("the task that was not placed got %v", err)
			}
			r.expect("x", x, filled(16, 3)...)
			// A closed scheduler refuses before it makes a pipeline: this kernel has none yet.
			if err := r.s.Run(context.Background(), r.region(launch{label: "later", kernel: "stencil", args: []arg{from(x), to(zero), to(zero), to(zero)}})); !errors.Is(err, ErrClosed) {
				t.Errorf("a construct after Close got %v", err)
			}
		})
	}
}

func TestCloseNamesWhatIsStillMapped(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	if err := r.s.Close(); err == nil || !strings.Contains(err.Error(), "1 blocks of storage still mapped") {
		t.Errorf("got %v", err)
	}
}

// endedContext is a context that has ended. It calls ask when it is asked for its error.
type endedContext struct {
	context.Context
	ask func()
}

func (c endedContext) Done() <-chan struct{} { return closedChannel }
func (c endedContext) Err() error {
	c.ask()
	return context.Canceled
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// The context of an included construct has ended, and its task fails just when the construct is
// about to return the context's error. The failure has to be reported by the construct or by
// the next wait: nobody else would.
func TestFailureAtTheEndOfTheContextIsNotLost(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 0)
	r.d.hold()
	ctx := endedContext{context.Background(), func() {
		r.d.set(func() { r.d.lost = true })
		r.eventually("failure", func() bool { return r.graph.Counts().Failures > 0 })
	}}
	err := r.s.Run(ctx, r.region(launch{label: "included", kernel: "set", args: []arg{from(x)}, included: true}))
	if err = errors.Join(err, r.scope.Wait(context.Background(), nil)); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("the program learned of %v", err)
	}
}

// The driver can have memory and fail to map it. The scheduler treats that as it treats memory
// that is not there: it asks for smaller blocks, and uses what others give back.
func TestMemoryThatCannotBeMappedIsAskedForAgain(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		r.d.create = func(call int) error {
			if call == 1 {
				return &vk.Error{Op: "vkMapMemory", Result: vk.ErrorMemoryMap}
			}
			return nil
		}
		x := filled(16, 0)
		r.run(launch{label: "set", kernel: "set", args: []arg{from(x)}, included: true})
		for i := range x {
			r.expect("x", x[i:i+1], uint32(i))
		}
	})
}
