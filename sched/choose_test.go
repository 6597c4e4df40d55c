package sched

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
)

// kernelsOn returns how many dispatches each queue has had.
func (r *rig) kernelsOn() (n []uint64) {
	for _, q := range r.s.Stats().Queues {
		n = append(n, q.Dispatches)
	}
	return n
}

func (r *rig) copiesOn() (n []uint64) {
	for _, q := range r.s.Stats().Queues {
		n = append(n, q.Copies)
	}
	return n
}

// patient makes commands that are kept for more to come wait for these however long that takes.
func (r *rig) patient() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.order.patience = math.MaxInt64
}

// Whoever waits for a task without saying so, other than in a taskwait, does not wait for the end of
// what happens to run on another queue.
func TestWhatIsKeptForMoreIsSubmittedAfterAWhile(t *testing.T) {
	for name, waiting := range map[string]func(r *rig, x []uint32) (await func()){
		"nobody": func(*rig, []uint32) func() { return func() {} },
		"a host task": func(r *rig, x []uint32) func() {
			done := make(chan struct{})
			r.host("host", [][]uint32{x}, nil, func() { close(done) })
			return func() { <-done }
		},
		"an included construct": func(r *rig, x []uint32) func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.run(launch{label: "second", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}, included: true})
			}()
			return func() { <-done }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, onQueues, 1)
			defer r.close()
			x, y := filled(4, 0), filled(4, 0)
			r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
			r.d.hold()
			before := r.d.submits
			r.run(launch{label: "busy", kernel: "set", args: []arg{alloc(x)}, out: [][]uint32{x}})
			r.run(launch{label: "tiny", kernel: "add", args: []arg{tofrom(y)}, constant: 1, out: [][]uint32{y}})
			await := waiting(r, y)
			r.eventually("the task is submitted", func() bool { return r.d.submissions() > before+1 })
			r.d.release()
			await()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		})
	}
}

// Tasks that follow nothing go to an idle queue as long as a busy one has little to do, and wait
// there for each other: one submission has all of them, without a barrier between them.
func TestIndependentTasksShareABatch(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	r.patient()
	x := filled(4*200, 0)
	r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	r.d.hold()
	before := r.d.submits
	for i := range 200 {
		part := x[4*i : 4*i+4]
		r.run(launch{label: "tiny", kernel: "set", args: []arg{alloc(part)}, out: [][]uint32{part}})
	}
	if got, want := r.kernelsOn(), []uint64{1, 199, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	if n := r.d.submits - before; n != 1 {
		t.Errorf("%d submissions before anybody waits, want that of the first task", n)
	}
	r.s.SubmitGathered()
	if n := r.d.submits - before; n != 2 || r.d.barriers[len(r.d.barriers)-1] != 0 {
		t.Errorf("%d submissions, the last with %d barriers", n, r.d.barriers[len(r.d.barriers)-1])
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

// Tasks that become ready together are submitted together: who waits for them may be waiting already,
// and would not submit what they have left.
func TestTasksThatAreReadyTogetherAreSubmitted(t *testing.T) {
	for i := range 8 {
		general, watches, host, n := i&1 != 0, i&2 != 0, i&4 != 0, 16
		if host {
			n = 1 // and a host task
		}
		t.Run(fmt.Sprintf("general %v, observed %v, host %v", general, watches, host), func(t *testing.T) {
			mode := onQueues
			mode.general = general
			r := newRig(t, mode, 1)
			defer r.close()
			r.watches = watches
			r.patient()
			x, key := filled(4*n+4, 0), filled(1, 0)
			r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
			r.d.hold()
			before := r.d.submits
			r.run(launch{label: "busy", kernel: "set", args: []arg{alloc(x[4*n:])}})
			gate := r.gate(key)
			for i := range n {
				part := x[4*i : 4*i+4]
				r.run(launch{label: "tiny", kernel: "set", args: []arg{alloc(part)}, in: [][]uint32{key}, out: [][]uint32{part}})
			}
			if host {
				r.host("host", [][]uint32{key}, nil, func() {})
			}
			gate.complete(nil)
			r.awaitSubmission()
			if got, want := r.kernelsOn(), []uint64{1, uint64(n), 0, 0}; r.d.submissions() != before+2 || !slices.Equal(got, want) {
				t.Errorf("%d submissions, kernels by queue %v, want 2 and %v", r.d.submissions()-before, got, want)
			}
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		})
	}
}

// Tasks that have become ready together do not wait until the observers of the others have returned.
func TestTasksThatAreReadyTogetherDoNotWaitForObservers(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, key := filled(8, 0), filled(1, 0)
	r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	r.d.hold()
	before := r.d.submissions()
	r.doing("begin", func() {
		r.eventually("the first task is submitted", func() bool { return r.d.submissions() > before })
	})
	gate := r.gate(key)
	r.run(launch{label: "first", kernel: "set", args: []arg{alloc(x[:4])}, in: [][]uint32{key}})
	r.run(launch{label: "leaves", kernel: "set", args: []arg{alloc(x[4:])}, in: [][]uint32{key}})
	gate.complete(nil)
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

// What waits for more commands is submitted when the device has done something, without that
// anybody waits for it.
func TestGatheredTasksFollowWhatIsComplete(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	r.patient()
	x := filled(12, 0)
	r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	r.d.hold()
	before := r.d.submits
	for i := range 3 {
		r.run(launch{label: "tiny", kernel: "set", args: []arg{alloc(x[4*i : 4*i+4])}})
	}
	if n := r.d.submits - before; n != 1 {
		t.Fatalf("%d submissions", n)
	}
	r.d.release()
	r.eventually("all tasks are complete", func() bool { return r.s.life.live == 0 })
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

// A task that follows another queue, one that takes long, one that somebody waits for, and one
// beside a queue that will be busy for long are submitted at once.
func TestOnlyWhatGainsByItWaitsForMoreCommands(t *testing.T) {
	for name, c := range map[string]struct {
		busy, work uint64
		included   bool
		follows    bool
		gathers    bool
	}{
		"short beside short":        {busy: 16, work: 16, gathers: true},
		"long beside short":         {busy: 16, work: long},
		"short beside long":         {busy: long, work: 16},
		"short after another queue": {busy: 16, work: 16, follows: true},
		"short that is waited for":  {busy: 16, work: 16, included: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, onQueues, 1)
			defer r.close()
			r.patient()
			x, z := filled(16, 0), filled(16, 0)
			r.run(launch{label: "enter", enter: []arg{to(x), to(z)}, included: true})
			r.d.hold()
			r.use(0)
			r.heavy("busy", x, c.busy)
			before := r.d.submits
			r.use(1)
			y := z
			if c.follows {
				y = x
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				g := r.region(launch{label: "task", kernel: "add", args: []arg{alloc(y)}, constant: 1, out: [][]uint32{y}, included: c.included})
				g.Range[0] = c.work
				if err := r.s.Run(t.Context(), g); err != nil {
					t.Error(err)
				}
			}()
			if c.included {
				r.eventually("the task is submitted", func() bool { return r.d.submissions() > before })
			} else {
				<-done
			}
			r.d.mu.Lock()
			if gathers := r.d.submits == before; gathers != c.gathers {
				t.Errorf("the task waits for more commands: %v", gathers)
			}
			r.d.mu.Unlock()
			r.d.release()
			<-done
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}, {s: z, kind: memory.MapRelease}}, included: true})
		})
	}
}

// long is a number of invocations that take longer than their submission costs.
const long = 200_000

// heavy runs a kernel on a range of so many invocations. Those beyond the elements of x do
// nothing, but are what the scheduler estimates its cost by.
func (r *rig) heavy(label string, x []uint32, invocations uint64) {
	r.t.Helper()
	g := r.region(launch{label: label, kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
	g.Range = [3]uint64{invocations, 1, 1}
	if err := r.s.Run(r.t.(*testing.T).Context(), g); err != nil {
		r.t.Fatal(err)
	}
}

func TestHeavyTasksSpreadOverAllQueuesThatCompute(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	const tasks = 9
	x := filled(16*tasks, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	for i := range tasks {
		r.heavy("heavy", x[16*i:16*i+16], long)
	}
	if got, want := r.kernelsOn(), []uint64{3, 3, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*tasks, 1)...)
}

// Tasks of a chain stay on one queue, since a crossing to another one would only delay them. A
// task that does not depend on the chain goes elsewhere if the queue has much to do until it could begin.
func TestChainStaysOnItsQueue(t *testing.T) {
	for _, invocations := range []uint64{16, 1000, long} {
		t.Run(fmt.Sprint(invocations), func(t *testing.T) {
			r := newRig(t, onQueues, 1)
			defer r.close()
			x, y := filled(16, 0), filled(16, 0)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			r.d.hold()
			for range 30 {
				r.heavy("link", x, invocations)
			}
			if got := slices.Max(r.kernelsOn()); got != 30 {
				t.Errorf("kernels by queue %v", r.kernelsOn())
			}
			r.heavy("another", y, invocations)
			if apart := slices.Max(r.kernelsOn()) == 30; apart != (invocations == long) {
				t.Errorf("a task that does not depend on the chain is apart from it: %t; kernels by queue %v", apart, r.kernelsOn())
			}
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
			r.expect("x", x, filled(16, 30)...)
		})
	}
}

// A task depends only on work that is complete, of a queue that has much to do. It goes to an idle queue, where
// it needs a barrier and no semaphore wait.
func TestTaskLeavesABusyQueueForWhatIsComplete(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 0), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	r.heavy("x", x, 16)
	r.taskwait()
	r.d.hold()
	r.heavy("y", y, long)
	if got, want := r.kernelsOn(), []uint64{2, 0, 0, 0}; !slices.Equal(got, want) {
		t.Fatalf("kernels by queue %v, want %v", got, want)
	}
	r.heavy("x again", x, 16)
	if got, want := r.kernelsOn(), []uint64{2, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), {s: y, kind: memory.MapRelease}}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

// Small tasks that use what is complete stay on the queue of the others if their kernel has no loop. Nobody knows how
// long one with a loop takes, so that others are not to wait for it. Resident tasks and others do the same.
func TestKernelsWithoutLoopsStayTogether(t *testing.T) {
	const tasks = 8
	for _, c := range []struct {
		kernel   string
		resident bool
		together bool
	}{
		{"add", true, true}, {"add", false, true}, {"addloop", true, false}, {"addloop", false, false},
	} {
		t.Run(fmt.Sprintf("%s, resident %t", c.kernel, c.resident), func(t *testing.T) {
			r := newRig(t, onQueues, 1)
			defer r.close()
			r.watches = false
			r.s.general = !c.resident
			x := filled(16*tasks, 0)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			round := func() {
				for i := range tasks {
					part := x[16*i : 16*i+16]
					r.run(launch{label: "add", kernel: c.kernel, args: []arg{tofrom(part)}, constant: 1, out: [][]uint32{part}})
				}
			}
			round()
			r.taskwait()
			before := r.kernelsOn()
			r.d.hold()
			round()
			used := 0
			for i, n := range r.kernelsOn() {
				if n > before[i] {
					used++
				}
			}
			if (used == 1) != c.together {
				t.Errorf("the kernels are on %d queues: %v, before %v", used, r.kernelsOn(), before)
			}
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			r.expect("x", x, filled(16*tasks, 2)...)
		})
	}
}

func TestLargeCopiesGoToTheQueueThatOnlyTransfers(t *testing.T) {
	for _, c := range []struct {
		bytes  int
		queues []order.QueueInfo
		want   int
	}{
		{order.CopyApart, manyQueues, 3},
		{order.CopyApart - 4, manyQueues, 0},
		{order.CopyApart, manyQueues[:3], 0},
		{16 * order.CopyApart, manyQueues, 3},
	} {
		t.Run(fmt.Sprint(c.bytes, " bytes with ", len(c.queues), " queues"), func(t *testing.T) {
			mode := onQueues
			mode.queues = c.queues
			r := newRig(t, mode, 1)
			defer r.close()
			x := filled(c.bytes/4, 1)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			there := r.copiesOn()
			for q, n := range there {
				if (n > 0) != (q == c.want) {
					t.Errorf("copies by queue %v, want all on queue %d", there, c.want)
				}
			}
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			for q, n := range r.copiesOn() {
				if (n > there[q]) != (q == c.want) {
					t.Errorf("copies by queue there and back %v, and there %v, want all on queue %d", r.copiesOn(), there, c.want)
				}
			}
		})
	}
}

// Copies and fills within the device do not go to the queue that only transfers, which is slow at
// them, not even at random, unless no other may use the memory.
func TestTransfersWithinTheDeviceStayOffQueuesThatOnlyTransfer(t *testing.T) {
	for _, placement := range []Placement{PlaceByFinish, PlaceRandom} {
		for _, families := range []uint64{1<<0 | 1<<1 | 1<<2, 1<<1 | 1<<2, 1 << 2} {
			t.Run(fmt.Sprintf("placement %d, families %#b", placement, families), func(t *testing.T) {
				mode := onQueues
				mode.placement = placement
				r := newRig(t, mode, 1)
				defer r.close()
				const words = 4 * order.CopyApart / 4
				p, q := r.registers(words, families), r.registers(words, families)
				for range 4 {
					r.transfer(launch{label: "fill", included: true}, transfer.Request{Kind: transfer.Fill, Dst: p, Size: 4 * words, Value: 1})
					r.transfer(launch{label: "copy", included: true}, within(q, p, words))
				}
				for _, label := range []string{"fill", "copy"} {
					for _, c := range r.commands(label) {
						if f := manyQueues[c.queue].Family; families>>f&1 == 0 || (f == 2) != (families == 1<<2) {
							t.Errorf("%s on queue %d of family %d", label, c.queue, f)
						}
					}
				}
				r.unregisters(p)
				r.unregisters(q)
			})
		}
	}
}

// drawingQueues are those of a graphics card as it is opened by default: queues that run side by
// side, one that draws, and one that only transfers.
var drawingQueues = []order.QueueInfo{
	{Family: 2, Compute: true, TimestampBits: 64}, {Family: 2, Compute: true, TimestampBits: 64},
	{Family: 0, Compute: true, Draws: true, TimestampBits: 64}, {Family: 1, TimestampBits: 64},
}

func TestTheQueueThatDrawsHasWhatNoOtherCanDo(t *testing.T) {
	mode := onQueues
	mode.queues = drawingQueues
	r := newRig(t, mode, 1)
	defer r.close()
	x, y := filled(16*8, 0), filled(16, 3)
	p := r.registers(16, 1<<0)
	if err := r.s.Associate(sectionOf(y), p, 0, "y"); err != nil {
		t.Fatal(err)
	}
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	for i := range 8 {
		r.heavy("heavy", x[16*i:16*i+16], long)
	}
	if got, want := r.kernelsOn(), []uint64{4, 4, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.run(launch{label: "its own", kernel: "add", args: []arg{tofrom(y)}, constant: 1, out: [][]uint32{y}})
	if got, want := r.kernelsOn(), []uint64{4, 4, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	if err := r.s.Disassociate(sectionOf(y)); err != nil {
		t.Fatal(err)
	}
	r.unregisters(p)
}

// Queues of a family that draws take turns, so that a second one gains nothing.
func TestQueuesThatTakeTurnsAreUsedOneAtATime(t *testing.T) {
	mode := onQueues
	mode.queues = []order.QueueInfo{{Compute: true, Draws: true, TimestampBits: 64}, {Compute: true, Draws: true, TimestampBits: 64}, {Compute: true, Draws: true, TimestampBits: 64}}
	r := newRig(t, mode, 1)
	defer r.close()
	x := filled(16*8, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	for i := range 4 {
		r.heavy("heavy", x[16*i:16*i+16], long)
	}
	if got, want := r.kernelsOn(), []uint64{4, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

func TestCopiesOverlapKernels(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 0), filled(order.CopyApart/4, 7)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	r.heavy("kernel", x, 200_000)
	resume := r.stall(slices.IndexFunc(r.kernelsOn(), func(n uint64) bool { return n > 0 }))
	r.run(launch{label: "upload", enter: []arg{to(y)}, out: [][]uint32{y}})
	q := r.s.order.All()[3]
	r.eventually("the upload is complete", func() bool { return q.Sent() > 0 && q.Completed() == q.Sent() })
	r.s.mu.Lock()
	if len(r.s.order.All()[0].InFlight()) == 0 {
		t.Error("the kernel is complete too, and proves nothing")
	}
	r.s.mu.Unlock()
	resume()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), {s: y, kind: memory.MapRelease}}, included: true})
	r.expect("x", x, filled(16, 1)...)
}

func TestRandomPlacementIsReproducibleAndUsesEveryQueue(t *testing.T) {
	mode := onQueues
	mode.placement = PlaceRandom
	// queues runs a program with a seed and returns on which queues its commands were, by their
	// labels.
	queues := func(seed uint64) (on map[string][]int) {
		r := newRig(t, mode, seed)
		defer r.close()
		x, y := filled(16, 0), filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
		r.d.hold()
		for range 40 {
			r.run(launch{label: "x", kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
			r.transfer(launch{label: "y", out: [][]uint32{y}}, update(transfer.UpdateTo, y))
		}
		r.d.release()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
		r.expect("x", x, filled(16, 40)...)
		on = make(map[string][]int)
		for _, label := range []string{"add", "copy"} {
			for _, c := range r.commands(label) {
				on[label] = append(on[label], c.queue)
			}
		}
		return on
	}
	first := queues(1)
	for range 3 {
		if again := queues(1); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("one seed gave %v and %v", first, again)
		}
	}
	if other := queues(2); fmt.Sprint(other) == fmt.Sprint(first) {
		t.Errorf("two seeds gave %v", first)
	}
	for i, q := range manyQueues {
		if slices.Contains(first["add"], i) != q.Compute {
			t.Errorf("queue %d of %v has kernels: %v", i, manyQueues, first["add"])
		}
		if !slices.Contains(first["copy"], i) {
			t.Errorf("queue %d has no copies: %v", i, first["copy"])
		}
	}
}
