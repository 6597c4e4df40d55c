package sched

import (
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
)

// A task that maps all of x and writes a part of it is in flight. Another task, which nothing
// orders with the first, reads another part that a complete task has written: that write must
// be made visible to it.
func TestCompleteWriteIsSeenUnderOneInFlight(t *testing.T) {
	for _, c := range []struct {
		name           string
		mode           memoryMode
		writer, reader int
	}{
		{"one queue", memoryModes[1], 0, 0},
		{"two queues", onQueues, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.mode, 1)
			defer r.close()
			x, y, zero, others := filled(32, 1), filled(16, 2), filled(16, 0), filled(16*(order.MaxInFlight+1), 0)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(zero), to(others)}, included: true})
			mix := func(queue int, label string, out, a, b []uint32) {
				r.use(queue)
				r.run(launch{label: label, kernel: "mix", args: []arg{alloc(out), alloc(a), alloc(b)}})
			}
			// A task behind it on the reader's queue needs a barrier for x alone.
			mix(c.reader, "sees all", others[16*order.MaxInFlight:], y, zero)
			r.taskwait()
			mix(0, "writes x", x[16:], x[16:], zero)
			r.taskwait()
			r.d.hold()
			r.use(c.reader)
			for i := range order.MaxInFlight {
				r.run(launch{label: "other", kernel: "set", args: []arg{alloc(others[16*i : 16*i+16])}})
			}
			mix(c.writer, "may write x", x, zero, zero)
			mix(c.reader, "reads x", y, x[16:], zero)
			r.d.release()
			r.taskwait()
			r.use(0)
			r.run(launch{label: "exit", exit: []arg{from(x), from(y), {s: zero, kind: memory.MapRelease}, from(others)}, included: true})
			r.expect("y", y, filled(16, 10)...)
		})
	}
}

// Tasks write so many parts of x that its history becomes coarser: a part that a complete task has written
// shares a segment with one whose writer is in flight. The complete write must be made visible to the next
// task on its part.
func TestCompleteWriteIsSeenInACoarseHistory(t *testing.T) {
	const parts = 1100
	for _, c := range []struct {
		name  string
		mode  memoryMode
		queue int
	}{
		{"one queue", memoryModes[1], 0},
		{"one of several queues", onQueues, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.mode, 1)
			defer r.close()
			x := filled(16*parts, 1)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			r.use(c.queue)
			r.run(add1(x[:16]))
			r.taskwait()
			r.d.hold()
			for i := 1; i < parts; i++ {
				r.run(add1(x[16*i : 16*i+16]))
			}
			r.run(add1(x[:16]))
			r.d.release()
			r.taskwait()
			r.use(0)
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			r.expect("x", x, append(filled(16, 3), filled(16*(parts-1), 2)...)...)
		})
	}
}

// Another queue has written x, and the host has seen its end. The barrier to the host of a
// later batch covers that write too: neither the task of that batch nor the next one needs
// another barrier.
func TestBarrierToTheHostIsForOtherQueuesToo(t *testing.T) {
	r := newRig(t, memoryMode{memory: unifiedMemory, share: ShareNothing, queues: manyQueues}, 1)
	defer r.close()
	x, y, z, zero := filled(16, 1), filled(16, 1), filled(16, 1), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(z), to(zero)}, included: true})
	r.use(0)
	r.run(launch{label: "writes x", kernel: "add", args: []arg{alloc(x)}, constant: 1})
	r.taskwait()
	r.use(1)
	r.d.hold()
	before := r.d.submits
	for _, out := range [][]uint32{y, z} {
		r.run(launch{label: "copies x", kernel: "mix", args: []arg{alloc(out), {s: x, kind: memory.MapFrom, always: true}, alloc(zero)}})
	}
	// One barrier makes x visible to the kernel, and one is for the host.
	if got := r.d.barriers[before:]; !slices.Equal(got, []int{2, 0}) {
		t.Errorf("the batches of the tasks have %d barriers", got)
	}
	r.d.release()
	r.taskwait()
	if got := r.d.submits - before; got != 2 {
		t.Errorf("two tasks take %d submissions", got)
	}
	r.expect("x", x, filled(16, 2)...)
	r.use(0)
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}, from(y), from(z), {s: zero, kind: memory.MapRelease}}, included: true})
}
