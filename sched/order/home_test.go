package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// bounded is a small launch of a kernel without loops, and unbounded one of a kernel with loops.
var bounded, unbounded = Launch{Invocations: 16, Bounded: true}, Launch{Invocations: 16}

// homing is a device with three queues that run side by side. past is a point of the third one that is
// complete.
type homing struct {
	*testing.T
	*Queues
	past SyncPoint
}

func newHoming(t *testing.T) *homing {
	o, _ := newStanding([]QueueInfo{{Compute: true}, {Compute: true}, {Compute: true}})
	h := &homing{T: t, Queues: o}
	last := o.All()[2]
	h.past = h.busy(last, bounded)
	complete(o, last, last.Sent())
	return h
}

// choose returns the queue for a launch that uses what was written at past.
func (h *homing) choose(l Launch) *Queue {
	var s WaitSet
	s.Add(h.past)
	return h.KernelQueue(&s, l)
}

// busy places a launch on a queue and submits it.
func (h *homing) busy(q *Queue, l Launch) SyncPoint {
	h.Helper()
	at := h.pending(q, l)
	submit(h.T, h.Queues, q)
	return at
}

// pending places a launch on a queue, behind others as given.
func (h *homing) pending(q *Queue, l Launch, after ...SyncPoint) SyncPoint {
	h.Helper()
	return placeLaunch(h.T, h.Queues, q, l, after...).At
}

func TestBoundedKernelsStayOnOneQueue(t *testing.T) {
	h := newHoming(t)
	home := h.choose(bounded)
	for range 2 {
		h.busy(home, bounded)
		if q := h.choose(bounded); q != home {
			t.Errorf("a kernel leaves for queue %d", q.Index())
		}
	}
}

// Kernels that follow nothing and kernels with loops go where they finish first, and the others do not follow them.
func TestKernelsWithoutAHomeGoWhereTheyFinishFirst(t *testing.T) {
	for name, choose := range map[string]func(h *homing) *Queue{
		"follows nothing": func(h *homing) *Queue { return h.KernelQueue(new(WaitSet), bounded) },
		"has loops":       func(h *homing) *Queue { return h.choose(unbounded) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHoming(t)
			home := h.choose(bounded)
			h.busy(home, bounded)
			if choose(h) == home {
				t.Error("a kernel waits for another one that it need not follow")
			}
			if h.choose(bounded) != home {
				t.Error("others follow it")
			}
		})
	}
}

func TestBoundedKernelsLeaveAQueueThatHasMuchToDo(t *testing.T) {
	h := newHoming(t)
	home := h.choose(bounded)
	h.busy(home, Launch{Invocations: 160_000 * h.rates.Invocations, Bounded: true}) // 160 µs
	away := h.choose(bounded)
	if away == home {
		t.Fatal("a kernel waits for long")
	}
	complete(h.Queues, home, home.Sent())
	if q := h.choose(bounded); q != away {
		t.Error("the next one returns")
	}
}

// Nobody knows when a kernel with loops is done.
func TestBoundedKernelsDoNotWaitForKernelsWithLoops(t *testing.T) {
	for name, place := range map[string]func(h *homing, q *Queue){
		"in flight": func(h *homing, q *Queue) { h.busy(q, unbounded) },
		"in flight, behind others": func(h *homing, q *Queue) {
			h.busy(q, bounded)
			h.busy(q, unbounded)
		},
		// The queue has something in flight as well: to begin there takes longer than on an idle one.
		"pending": func(h *homing, q *Queue) {
			h.busy(q, bounded)
			h.pending(q, unbounded)
			h.pending(q, bounded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHoming(t)
			home := h.choose(bounded)
			place(h, home)
			if q := h.choose(bounded); q == home {
				t.Error("a kernel waits for one with loops that it need not follow")
			}
			// Batches that are used again have none.
			complete(h.Queues, home, home.Sent())
			for range 3 {
				h.busy(home, bounded)
				complete(h.Queues, home, home.Sent())
			}
			h.home = home
			h.busy(home, bounded)
			if q := h.choose(bounded); q != home {
				t.Error("a kernel leaves the queue when that with loops is complete")
			}
		})
	}
}

// One that follows a kernel with loops on another queue does not wait for it at home, where others would wait, too,
// and neither does one that follows that one.
func TestBoundedKernelsThatFollowKernelsWithLoopsAreNotAtHome(t *testing.T) {
	h := newHoming(t)
	home := h.choose(bounded)
	h.busy(home, bounded)
	away := h.choose(unbounded)
	var s WaitSet
	s.Add(h.busy(away, unbounded))
	if q := h.KernelQueue(&s, bounded); q == home {
		t.Error("it waits at home for a kernel with loops")
	}
	h.home = home
	third := h.All()[3-home.Index()-away.Index()]
	at := h.pending(third, bounded, s.First())
	submit(t, h.Queues, third)
	s.Set(at)
	if q := h.KernelQueue(&s, bounded); q == home {
		t.Error("the one behind it does")
	}
}

// A short wait for another queue is no reason to leave, and one that ends late is.
func TestBoundedKernelsWaitAtHomeForOtherQueuesNotForLong(t *testing.T) {
	for invocations, stays := range map[uint64]bool{16: true, 160_000: false} { // at an invocation a nanosecond
		h := newHoming(t)
		home := h.choose(bounded)
		h.busy(home, bounded)
		other := h.All()[(home.Index()+1)%3]
		h.busy(other, bounded) // so that home is not the only busy queue
		var s WaitSet
		s.Add(h.busy(other, Launch{Invocations: invocations, Bounded: true}))
		if q := h.KernelQueue(&s, bounded); (q == home) != stays {
			t.Errorf("behind %d invocations on queue %d, the kernel goes to queue %d, home is %d", invocations, other.Index(), q.Index(), home.Index())
		}
	}
}

// What a task may use only on some families comes first, and so does what a program chooses at random or by
// PlaceOn. Tasks that may use less than others do not take these along.
func TestTheHomeIsNoChoiceOfAProgram(t *testing.T) {
	h := newHoming(t)
	h.infos[1].Family = 1
	home := h.choose(bounded)
	var s WaitSet
	s.Add(h.past)
	s.Limit(1 << 1)
	if q := h.KernelQueue(&s, bounded); q != h.All()[1] {
		t.Errorf("a kernel goes to queue %d, which may not use its memory", q.Index())
	}
	if q := h.choose(bounded); q != home {
		t.Errorf("the next one goes to queue %d", q.Index())
	}
	for _, only := range h.All() {
		h.PlaceOn([]*Queue{only}, nil)
		if q := h.choose(bounded); q != only {
			t.Errorf("a kernel goes to queue %d, on which none is to be placed", q.Index())
		}
	}
	for _, not := range h.All() {
		h.home = not
		others := slices.DeleteFunc(slices.Clone(h.All()), func(q *Queue) bool { return q == not })
		h.PlaceOn(others, nil)
		if q := h.choose(bounded); q == not {
			t.Errorf("a kernel goes to queue %d, on which none is to be placed", q.Index())
		}
	}
	h.random = rand.New(rand.NewPCG(1, 0))
	seen := make(map[*Queue]bool)
	for range 100 {
		seen[h.choose(bounded)] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d of 3 queues are chosen at random", len(seen))
	}
}
