package order

import (
	"testing"

	"github.com/vkomp/vkomp/vk"
	"pgregory.net/rapid"
)

// work places a kernel of so many invocations on a queue.
func work(t *testing.T, o *Queues, q *Queue, invocations uint64) SyncPoint {
	t.Helper()
	at := dispatch(t, o, q).At
	o.CountDispatches(q, 1, Launch{Invocations: invocations})
	return at
}

// Queues that draw take turns, but not with one that waits for foreign work, whose end nobody
// knows.
func TestWorkBesideForeignWorkTakesAnotherQueueThatDraws(t *testing.T) {
	o, _ := newStanding([]QueueInfo{{Compute: true, Draws: true}, {Compute: true, Draws: true}})
	first, second := o.All()[0], o.All()[1]
	work(t, o, first, 100_000)
	submit(t, o, first)
	if q := o.KernelQueue(new(WaitSet), Launch{Invocations: 16}); q != first {
		t.Error("a kernel goes to a queue that has to wait for its turn")
	}
	// A queue whose own work takes long keeps the other from its turn as well.
	work(t, o, first, 2*foreignCost)
	submit(t, o, first)
	if q := o.KernelQueue(new(WaitSet), Launch{Invocations: 16}); q != first {
		t.Error("a kernel goes to a queue that has to wait long for its turn")
	}
	first.Pending().AddForeign(Foreign{Waits: make([]vk.SemaphoreValue, 1)})
	submit(t, o, first)
	if q := o.KernelQueue(new(WaitSet), Launch{Invocations: 16}); q != second {
		t.Error("a kernel goes behind foreign work")
	}
}

// A kernel that follows a long one of another queue goes where the way is shortest: to the same
// queue, and if that has much to do until then to one of another family rather than of its own, unless one of
// the two draws.
func TestCrossingsHaveTheCostOfTheirFamilies(t *testing.T) {
	for name, c := range map[string]struct {
		queues []QueueInfo
		want   int
	}{
		"async":                        {[]QueueInfo{{Compute: true}, {Compute: true}}, 1},
		"async and another":            {[]QueueInfo{{Compute: true}, {Compute: true}, {Family: 1, Compute: true}}, 2},
		"that take turns":              {[]QueueInfo{{Compute: true, Draws: true}, {Compute: true, Draws: true}}, 0},
		"that take turns, and another": {[]QueueInfo{{Compute: true, Draws: true}, {Compute: true, Draws: true}, {Family: 1, Compute: true}}, 0},
		"async and one that draws":     {[]QueueInfo{{Compute: true}, {Compute: true}, {Family: 1, Compute: true, Draws: true}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := newStanding(c.queues)
			first := o.All()[0]
			at := work(t, o, first, 100_000)
			submit(t, o, first)
			var s WaitSet
			s.Add(at)
			if q := o.KernelQueue(&s, Launch{Invocations: 16}); q != first {
				t.Errorf("a link of a chain goes to queue %d", q.Index())
			}
			for range 2 {
				// What comes behind the predecessor takes longer than any crossing but the longest.
				work(t, o, first, 20_000)
			}
			if q := o.KernelQueue(&s, Launch{Invocations: 16}); int(q.Index()) != c.want {
				t.Errorf("it goes to queue %d, want %d", q.Index(), c.want)
			}
		})
	}
}

// A kernel that has to see what is complete on another queue begins on an idle one with a barrier that waits
// for nothing: it does not come behind the first of several that need no order.
func TestABarrierBeforeTheFirstCommandCostsNothing(t *testing.T) {
	o, _ := newStanding([]QueueInfo{{Compute: true}, {Compute: true}})
	first, second := o.All()[0], o.All()[1]
	// On its own queue it is visible already, by the barrier before another kernel.
	var s WaitSet
	at := work(t, o, first, 16)
	s.Add(at)
	dispatch(t, o, first, at)
	submit(t, o, first)
	complete(o, first, first.Sent())
	work(t, o, first, 16)
	submit(t, o, first)
	if q := o.KernelQueue(&s, Launch{Invocations: 16}); q != second {
		t.Error("a kernel waits for one that it need not follow")
	}
}

// Commands wait for more only beside a queue that is certain to come to an end.
func TestNothingIsGatheredBesideAQueueThatWaits(t *testing.T) {
	three := []QueueInfo{{Compute: true}, {Compute: true}, {Compute: true}}
	for name, c := range map[string]struct {
		// busy submits something to the second queue.
		busy func(o *Queues, first, second *Queue)
		want bool
	}{
		"that works": {func(o *Queues, first, second *Queue) {
			work(t, o, second, 16)
			submit(t, o, second)
		}, true},
		"for foreign work": {func(o *Queues, first, second *Queue) {
			second.Pending().AddForeign(Foreign{Waits: make([]vk.SemaphoreValue, 1)})
			work(t, o, second, 16)
			submit(t, o, second)
			second.completedCost = second.cost // as if it was expected to end at once
		}, false},
		"for a queue that waits for foreign work": {func(o *Queues, first, second *Queue) {
			first.Pending().AddForeign(Foreign{Waits: make([]vk.SemaphoreValue, 1)})
			at := work(t, o, first, 16)
			submit(t, o, first)
			dispatch(t, o, second, at)
			submit(t, o, second)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := newStanding(three)
			c.busy(o, o.All()[0], o.All()[1])
			idle := o.All()[2]
			work(t, o, idle, 16)
			if err := flush(o, idle, Gather); err != nil {
				t.Fatal(err)
			}
			if gathered := d.submitted[2] == 0; gathered != c.want {
				t.Errorf("the commands wait for more: %v", gathered)
			}
			if err := flush(o, idle, Refill); err != nil || d.submitted[2] == 0 {
				t.Errorf("%v, and they are not submitted when a queue has done something", err)
			}
		})
	}
}

// Idle queues of a family are alike, so one of them stands for all: the choice is that among all queues.
func TestEarliestIsTheEarliestOfAll(t *testing.T) {
	infos := []QueueInfo{{Compute: true}, {Compute: true}, {Compute: true}, {Compute: true}, {Family: 1, Compute: true, Draws: true}, {Family: 1, Compute: true, Draws: true}, {Family: 2, Compute: true}, {Family: 2, Compute: true}}
	rapid.Check(t, func(r *rapid.T) {
		o, _ := newStanding(infos)
		var points []SyncPoint
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			q := o.All()[rapid.IntRange(0, len(infos)-1).Draw(r, "queue")]
			switch rapid.IntRange(0, 4).Draw(r, "do") {
			case 0, 1:
				var after []SyncPoint
				if len(points) > 0 && rapid.Bool().Draw(r, "behind another") {
					after = append(after, rapid.SampledFrom(points).Draw(r, "point"))
				}
				points = append(points, dispatch(t, o, q, after...).At)
				o.CountDispatches(q, 0, Launch{Invocations: rapid.Uint64Range(0, 40_000).Draw(r, "invocations")})
			case 2:
				if !q.pending.Empty() {
					submit(t, o, q)
				}
			case 3:
				complete(o, q, q.sent)
			default:
				var s WaitSet
				for range rapid.IntRange(0, 3).Draw(r, "points") {
					if len(points) > 0 {
						s.Add(rapid.SampledFrom(points).Draw(r, "point"))
					}
				}
				work := rapid.Uint64Range(0, 20_000).Draw(r, "work")
				got, best, first := o.earliest(o.All(), &s, work), o.All()[0], ^uint64(0)
				for _, q := range o.All() {
					if at := o.finishOn(q, &s, work); at < first {
						best, first = q, at
					}
				}
				if got != best {
					t.Fatalf("queue %d is chosen, and queue %d finishes in %d ns", got.Index(), best.Index(), first)
				}
			}
		}
	})
}
