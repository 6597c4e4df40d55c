package sched

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
)

// onQueues is a memory mode of a device with several queues.
var onQueues = memoryMode{name: "on many queues", memory: discreteMemory, share: ShareNothing, queues: manyQueues}

// use sends all kernels and copies to one queue until it is called again.
func (r *rig) use(queue int) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.order.PlaceOn(r.s.order.All()[queue:queue+1], nil)
}

// stall keeps the last submission of a queue from being complete until the result is called,
// though its commands run. Other submissions go on.
func (r *rig) stall(queue int) (resume func()) {
	var last *fakeBatch
	r.d.set(func() {
		r.d.held, r.d.upTo = true, ^uint64(0)
		all := r.d.queues[queue].all
		last = all[len(all)-1]
		last.left++
	})
	return func() { r.d.set(func() { r.d.held = false; last.left-- }) }
}

// commands returns the commands with a label in the order of their submission.
func (r *rig) commands(label string) []*command {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	found := slices.Concat(r.d.order.retired, r.d.order.open)
	found = slices.DeleteFunc(found, func(c *command) bool { return c.label != label })
	slices.SortFunc(found, func(a, b *command) int { return cmp.Compare(a.number, b.number) })
	return found
}

// lastBatch returns the last submission of a queue.
func (r *rig) lastBatch(queue int) *fakeBatch {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	all := r.d.queues[queue].all
	return all[len(all)-1]
}

// countsWaits is a device that counts how many waits of the host have begun.
type countsWaits struct {
	*fakeDevice
	begun atomic.Int64
}

func (d *countsWaits) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	d.begun.Add(1)
	return d.fakeDevice.Wait(queue, value, timeout)
}

func TestChainAcrossQueuesHasOneWaitALink(t *testing.T) {
	const links = 60
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := &countsWaits{fakeDevice: newFakeDeviceWith(t, manyQueues, unifiedMemory, seed)}
			s, err := New(d, Options{Domain: rigDomain, Sharing: ShareNothing, Placement: PlaceRandom, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"add": loadKernel(t, "add")}}
			r.scope = r.graph.NewScope()
			defer r.close()
			r.compile()
			x := filled(16, 1)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			r.d.hold()
			waits, hostWaits := r.d.waits, d.begun.Load()
			for i := range links {
				r.run(launch{label: fmt.Sprint("link ", i), kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
			}
			// No link of the chain waits for the host: all of them are placed while nothing
			// runs, and the host has begun no more waits than one for each queue's waiter.
			if got := r.dispatches(); got != links {
				t.Errorf("%d of %d links are placed", got, links)
			}
			if got := d.begun.Load() - hostWaits; got > int64(len(manyQueues)) {
				t.Errorf("%d waits of the host", got)
			}
			r.d.release()
			r.taskwait()
			crossings := 0
			chain := r.commands("add")
			for i := range chain[1:] {
				if chain[i].queue != chain[i+1].queue {
					crossings++
				}
			}
			if got := r.d.waits - waits; got != crossings || crossings < links/3 {
				t.Errorf("%d semaphore waits for %d crossings", got, crossings)
			}
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			r.expect("x", x, filled(16, 1+links)...)
		})
	}
}

// A task that depends on tasks of several queues waits only for those that do not follow from
// the other waits: who waits for y need not wait for x, which y waited for.
func TestImpliedWaitsAreDropped(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y, z, zero := filled(16, 1), filled(16, 2), filled(16, 3), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(z), to(zero)}, included: true})
	on := func(queue int, label string, out, a, b []uint32) {
		r.use(queue)
		r.run(launch{label: label, kernel: "mix", args: []arg{alloc(out), alloc(a), alloc(b)}, in: [][]uint32{a, b}, out: [][]uint32{out}})
	}
	r.d.hold()
	on(0, "x", x, zero, zero)
	on(1, "y after x", y, x, zero)
	on(2, "z after both", z, x, y)
	if want, got := []timeline.Point{{Queue: 1, Value: r.lastBatch(1).value}}, r.lastBatch(2).waits; !slices.Equal(got, want) {
		t.Errorf("a diamond's last task waits for %v, want %v", got, want)
	}
	on(0, "x after all", x, y, z)
	if want, got := []timeline.Point{{Queue: 2, Value: r.lastBatch(2).value}}, r.lastBatch(0).waits; !slices.Equal(got, want) {
		t.Errorf("a fan-in waits for %v, want %v", got, want)
	}
	before := r.d.waits
	on(0, "again", x, y, z)
	r.d.release()
	r.taskwait()
	if r.d.waits != before {
		t.Errorf("%d waits for what the queue follows already", r.d.waits-before)
	}
	r.use(0)
	r.run(launch{label: "exit", exit: []arg{from(x), from(y), from(z), {s: zero, kind: memory.MapRelease}}, included: true})
	r.expect("x", x, filled(16, 147)...)
}

func TestRoundTripNeedsNoBarrier(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	before := r.s.Stats()
	for i, queue := range []int{0, 1, 0, 2, 1} {
		r.use(queue)
		r.run(launch{label: fmt.Sprint("link ", i), kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
	}
	after := r.s.Stats()
	// The first link has a barrier, behind the copy to the device that is complete.
	if got := after.Barriers - before.Barriers; got > 1 {
		t.Errorf("%d barriers", got)
	}
	if got := after.SemaphoreWaits - before.SemaphoreWaits; got != 4 {
		t.Errorf("%d waits", got)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 6)...)
}

// Commands that are pending on a queue go to the device in a batch of their own when the next
// task has to wait for another queue. Otherwise they would wait with it.
func TestWorkPendingBeforeACrossingIsNotDelayed(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	r.d.hold()
	add := func(queue int, label string, out []uint32) {
		r.use(queue)
		r.run(launch{label: label, kernel: "add", args: []arg{alloc(out)}, constant: 1, out: [][]uint32{out}})
	}
	for range order.MaxInFlight {
		add(1, "in flight", y)
	}
	add(0, "other queue", x)
	add(1, "pending", y)
	add(1, "crossing", x)
	r.s.mu.Lock()
	q := r.s.order.All()[1]
	pending := q.InFlight()[len(q.InFlight())-1].Value()
	r.s.mu.Unlock()
	resume := r.stall(0)
	r.eventually("what was pending is complete", func() bool { return q.Completed() == pending })
	r.s.mu.Lock()
	if done := r.s.order.All()[0].InFlight(); len(done) == 0 {
		t.Error("the other queue is done, and proves nothing")
	}
	if len(q.InFlight()) != 1 || len(q.InFlight()[0].Tasks()) != 1 || labelOf(q.InFlight()[0].Tasks()[0]) != "crossing" || q.InFlight()[0].WaitsFor(0) == 0 {
		t.Errorf("in flight on the waiting queue are %v", q.InFlight())
	}
	r.s.mu.Unlock()
	resume()
	r.taskwait()
	r.use(0)
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 3)...)
	r.expect("y", y, filled(16, 4)...)
}

// What another queue wrote, and the host has seen complete, needs a barrier and no semaphore
// wait. One barrier makes everything visible that the host had seen by then.
func TestCompletedWorkOfAnotherQueueCostsOneBarrier(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 2)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	cost := func(queue int, label string, out []uint32) (barriers, waits uint64) {
		r.use(queue)
		before := r.s.Stats()
		r.run(launch{label: label, kernel: "add", args: []arg{alloc(out)}, constant: 1, out: [][]uint32{out}})
		r.taskwait()
		after := r.s.Stats()
		return after.Barriers - before.Barriers, after.SemaphoreWaits - before.SemaphoreWaits
	}
	cost(0, "x", x)
	cost(0, "y", y)
	if b, w := cost(1, "x on another queue", x); b != 1 || w != 0 {
		t.Errorf("%d barriers and %d waits for what is complete", b, w)
	}
	if b, w := cost(1, "y on another queue", y); b != 0 || w != 0 {
		t.Errorf("%d barriers and %d waits for what an earlier barrier made visible", b, w)
	}
	cost(0, "y again", y)
	if b, w := cost(1, "y on another queue", y); b != 1 || w != 0 {
		t.Errorf("%d barriers and %d waits for what was complete after the last barrier", b, w)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("y", y, filled(16, 6)...)
}

// Two tasks that write different bytes of one block need no order between them.
func TestWritesOfOtherBytesNeedNoOrder(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(64, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	part := func(i int) []uint32 { return x[16*i : 16*i+16] }
	add := func(i int) {
		r.run(launch{label: fmt.Sprint("part ", i), kernel: "add", args: []arg{alloc(part(i))}, constant: 1, out: [][]uint32{part(i)}})
	}
	add(0)
	add(3)
	r.taskwait()
	r.busy()
	for _, i := range []int{1, 2, 0} {
		add(i)
	}
	r.s.mu.Lock()
	var levels []int32
	for _, task := range r.s.order.All()[0].Pending().Tasks() {
		levels = append(levels, task.At.Level)
	}
	r.s.mu.Unlock()
	// The first two tasks write parts that nobody uses. The third one writes part 0, which a
	// complete task has written: that write must be made visible to it, by a barrier that the
	// other two do not need.
	if want := []int32{0, 0, 1}; !slices.Equal(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, slices.Concat(filled(16, 3), filled(48, 2))...)
}

func TestIndependentChainsShareTheirBarriers(t *testing.T) {
	const chains, length = 12, 20
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16*chains, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.busy()
	for c := range chains {
		part := x[16*c : 16*c+16]
		for i := range length {
			r.run(launch{label: fmt.Sprintf("chain %d link %d", c, i), kernel: "add", args: []arg{alloc(part)}, constant: 1, out: [][]uint32{part}})
		}
	}
	submits := r.d.submits
	r.d.release()
	r.taskwait()
	if r.d.submits != submits+1 {
		t.Fatalf("%d submissions, not one batch", r.d.submits-submits)
	}
	if got := r.d.barriers[len(r.d.barriers)-1]; got < length-1 || got > length+1 {
		t.Errorf("%d barriers for chains of %d", got, length)
	}
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*chains, length)...)
}
