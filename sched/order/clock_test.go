package order

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// The tests of this file compare the clocks with a graph of batches, which is made only of the
// waits that the device was given.

var errRefused = &vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorOutOfDeviceMemory}

// fourQueues are two queues of one family, one of another, and one that only transfers.
var fourQueues = []QueueInfo{{Compute: true}, {Compute: true}, {Family: 1, Compute: true}, {Family: 2}}

// naiveBatch is a batch in that graph.
type naiveBatch struct {
	queue         int32
	value         uint64
	failed, ended bool
	// waits are the waits of its submission.
	waits []timeline.Point
	// followed are the sync points that the batch was to follow.
	followed []SyncPoint
	// needs are the batches that it had to follow and that had not ended when its commands were
	// placed.
	needs []*naiveBatch
}

func (b *naiveBatch) String() string { return fmt.Sprintf("%d:%d", b.queue, b.value) }

// batchGraph has the queues, without tasks, stands for their device, and knows which batch
// comes before which.
type batchGraph struct {
	Device // nil: only Submit is called
	t      *rapid.T
	o      Queues
	// batches are the batches of each queue by value, the pending one included.
	batches [][]*naiveBatch
	points  []SyncPoint
	// fail makes the next submission fail. meanwhile, if not nil, is called during that, whose caller has
	// unlocked the queues.
	fail      bool
	meanwhile func()
}

func newBatchGraph(t *rapid.T) *batchGraph {
	g := &batchGraph{t: t}
	g.o.Init(g, fourQueues, new(sync.Mutex), nil, func(*Queue) {})
	g.batches = make([][]*naiveBatch, len(g.o.all))
	return g
}

func (g *batchGraph) batch(queue int32, value uint64) *naiveBatch {
	for n := uint64(len(g.batches[queue])); n < value; n++ {
		g.batches[queue] = append(g.batches[queue], &naiveBatch{queue: queue, value: n + 1})
	}
	return g.batches[queue][value-1]
}

// waitedFor returns the batches that a submission to the queue with these waits comes after, by
// earlier submissions of the queue too.
func (g *batchGraph) waitedFor(queue int32, before uint64, waits []timeline.Point) map[*naiveBatch]bool {
	before--
	seen := make(map[*naiveBatch]bool)
	var follow func(waits []timeline.Point)
	inherit := func(queue int32, upTo uint64, each func(*naiveBatch)) {
		for _, b := range g.batches[queue] {
			if b.value <= upTo && !b.failed {
				each(b)
			}
		}
	}
	follow = func(waits []timeline.Point) {
		for _, p := range waits {
			inherit(int32(p.Queue), p.Value, func(b *naiveBatch) {
				if !seen[b] {
					seen[b] = true
					follow(b.waits)
				}
			})
		}
	}
	follow(waits)
	inherit(queue, before, func(b *naiveBatch) { follow(b.waits) })
	return seen
}

// behind returns the batches that b, which was submitted, comes after.
func (g *batchGraph) behind(b *naiveBatch) map[*naiveBatch]bool {
	return g.waitedFor(b.queue, b.value, b.waits)
}

// meant returns the batches that a command behind the sync point has to come after. A batch
// that has failed is replaced by those that it was to follow.
func (g *batchGraph) meant(m SyncPoint) (all []*naiveBatch) {
	b := g.batch(m.Queue, m.Value)
	if !b.failed {
		return []*naiveBatch{b}
	}
	for _, e := range g.batches[m.Queue][:m.Value-1] {
		if !e.failed {
			all = append(all, e)
		}
	}
	for _, f := range b.followed {
		all = append(all, g.meant(f)...)
	}
	return all
}

// Submit checks the waits of a batch, and that its clock covers what the waits imply.
func (g *batchGraph) Submit(queue int, _ *vk.Stream, waits []timeline.Point, foreign Foreign, signal uint64) error {
	b := g.batch(int32(queue), signal)
	clock := g.o.unsent[0].clock
	if meanwhile := g.meanwhile; meanwhile != nil {
		g.meanwhile = nil
		meanwhile()
	}
	if g.fail {
		g.fail = false
		return errRefused
	}
	for i, p := range waits {
		w := g.batch(int32(p.Queue), p.Value)
		if int(p.Queue) == queue || w.failed || p.Value > g.o.all[p.Queue].sent {
			g.t.Fatalf("%v waits for %v, which is not on its way", b, p)
		}
		others := slices.Delete(slices.Clone(waits), i, i+1)
		if g.waitedFor(b.queue, signal, others)[w] {
			g.t.Fatalf("%v waits for %v, which is implied by %v", b, p, others)
		}
	}
	b.waits = slices.Clone(waits)
	behind := g.behind(b)
	for _, n := range b.needs {
		if n.failed {
			g.t.Fatalf("%v is submitted, though it has commands that follow %v, which was refused", b, n)
		}
		if n.queue != b.queue && !behind[n] {
			g.t.Fatalf("%v with waits %v does not follow %v, which it has to", b, waits, n)
		}
	}
	g.sound(b.String(), clock, behind)
	for o := range behind {
		if !o.ended && clock[o.queue] < o.value {
			g.t.Fatalf("the clock %v of %v does not cover %v, which it follows", clock, b, o)
		}
	}
	return nil
}

// sound checks that whatever a clock covers is really before it. Batches that have ended are
// before everything.
func (g *batchGraph) sound(what string, c Clock, behind map[*naiveBatch]bool) {
	for p, v := range c {
		for _, b := range g.batches[p] {
			if b.value <= v && !b.failed && !behind[b] {
				g.t.Fatalf("the clock %v of %s covers %v, which it does not follow", c, what, b)
			}
		}
	}
}

// put places a command behind sync points on a queue.
func (g *batchGraph) put(queue int32, after []SyncPoint) {
	q := g.o.all[queue]
	var r SyncSet
	for _, m := range after {
		r.Add(m)
	}
	open := make([][]*naiveBatch, r.Len())
	for i := range open {
		open[i] = g.meant(r.At(i))
	}
	level, err := g.o.follow(q, &r)
	if err != nil {
		g.t.Fatal(err)
	}
	b := g.batch(queue, q.pending.value)
	for i := range open {
		m := r.At(i)
		if g.batch(m.Queue, m.Value) != b {
			b.followed = append(b.followed, m)
		}
		for _, n := range append(open[i], g.meant(m)...) {
			if !n.ended {
				b.needs = append(b.needs, n)
			}
		}
		// Commands on the same queue are ordered by their level within the batch.
		if m.Queue == queue && m.Value == q.pending.value && level <= m.Level && !q.pending.clock.Covers(m) {
			g.t.Fatalf("a command after %v is at level %d of the same batch", m, level)
		}
	}
	q.pending.commands++
	q.pending.Level(level).Fill(1, 0, 4, 0)
	g.points = append(g.points, SyncPoint{Value: q.pending.value, Level: level, Queue: queue})
}

// submit submits the batches that are closed. Those that are refused with one whose submission fails
// have to follow it.
func (g *batchGraph) submit() {
	g.o.mu.Lock()
	defer g.o.mu.Unlock()
	for g.o.SubmitClosed() {
		refused := g.o.TakeRefused()
		if len(refused) == 0 {
			g.t.Fatal("a submission has failed, and no batch is refused")
		}
		g.noteRefused(refused)
		for _, r := range refused {
			r.Recycle()
		}
	}
	if refused := g.o.TakeRefused(); len(refused) > 0 {
		g.t.Fatalf("%d batches are refused, and no submission has failed", len(refused))
	}
}

// noteRefused notes the batches that were refused. The first one is that whose submission has failed.
func (g *batchGraph) noteRefused(refused []*Batch) {
	for i, r := range refused {
		b := g.batch(r.queue.index, r.value)
		b.failed = true
		follows := i == 0 || slices.ContainsFunc(refused[:i], func(f *Batch) bool { return f.queue == r.queue })
		for _, m := range b.followed {
			follows = follows || slices.ContainsFunc(refused, func(f *Batch) bool {
				// The next batch of its queue stands for one that was refused before.
				return f.queue.index == m.Queue && (f.value == m.Value || f.value > m.Value && g.batch(m.Queue, m.Value).failed)
			})
		}
		if !follows {
			g.t.Fatalf("%v is refused, and follows none of those before it that are", b)
		}
	}
}

// reach ends a batch in flight, and all that its end implies.
func (g *batchGraph) reach(b *naiveBatch) {
	for o := range g.behind(b) {
		o.ended = true
	}
	for _, o := range g.batches[b.queue][:b.value] {
		if !o.failed {
			for p := range g.behind(o) {
				p.ended = true
			}
			o.ended = true
		}
	}
	g.o.Arrive(g.o.all[b.queue], b.value)
}

// reaching returns the first value, from v on, that the queue will signal or has signalled.
func (g *batchGraph) reaching(q *Queue, v uint64) uint64 {
	for _, b := range g.batches[q.index][:q.last] {
		if b.value >= v && !b.failed && !b.ended {
			return b.value
		}
		if b.value >= v && b.ended {
			return q.completed
		}
	}
	return q.completed
}

func (g *batchGraph) check(t *rapid.T) {
	g.t = t
	for _, q := range g.o.all {
		var want, got []uint64
		for v := uint64(1); v <= q.last; v++ {
			if b := g.batch(q.index, v); !b.failed && !b.ended {
				want = append(want, v)
			}
		}
		for _, b := range q.inFlight {
			got = append(got, b.value)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("queue %d has %v in flight, want %v", q.index, got, want)
		}
		g.flight(q)
		if q.completed > 0 {
			g.sound(fmt.Sprint("what is complete on queue ", q.index), q.known, g.behind(g.batch(q.index, q.completed)))
		}
		for v := uint64(1); v <= q.last; v++ {
			value, known := q.knownAt(v)
			switch b := g.batch(q.index, max(value, 1)); {
			case value != g.reaching(q, v) || b.failed:
				t.Fatalf("to follow %d of queue %d, whose last is %d, one is to wait for %d", v, q.index, q.last, value)
			case value <= q.sent: // the waits of the others are not known yet
				g.sound(fmt.Sprintf("value %d of queue %d", v, q.index), known, g.behind(b))
			}
		}
	}
}

// flight compares what the queue says of its batches in flight with a look at each of them.
func (g *batchGraph) flight(q *Queue) {
	cost := uint64(0)
	for v := uint64(1); v <= q.last; v++ {
		var inFlight *Batch
		for _, b := range q.inFlight {
			if b.value == v {
				inFlight = b
				cost += b.stall()
			}
		}
		if got := q.batchInFlight(v); got != inFlight {
			g.t.Fatalf("in flight with value %d of queue %d is %v, want %v", v, q.index, got, inFlight)
		}
		if got := q.until(SyncPoint{Value: v, Queue: q.index}); got != cost && v > q.completed {
			g.t.Fatalf("value %d of queue %d is %d ns away, want %d", v, q.index, got, cost)
		}
	}
	if got := q.backlog(); got != cost {
		g.t.Fatalf("queue %d has %d ns in flight, want %d", q.index, got, cost)
	}
	kept := 0
	for _, b := range q.room[:cap(q.room)] {
		if b != nil {
			kept++
		}
	}
	if kept != len(q.inFlight) {
		g.t.Fatalf("queue %d keeps %d batches in the place of %d", q.index, kept, len(q.inFlight))
	}
}

func TestClocksSayWhatWaitsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newBatchGraph(t)
		anyQueue := rapid.Int32Range(0, queues-1)
		place := func(t *rapid.T) {
			var after []SyncPoint
			if len(g.points) > 0 {
				// The commands placed last are the most likely to be in flight still.
				recent := g.points[max(0, len(g.points)-10):]
				after = rapid.SliceOfN(rapid.SampledFrom(recent), 0, 4).Draw(t, "after")
			}
			g.put(anyQueue.Draw(t, "queue"), after)
		}
		shut := func(t *rapid.T) {
			if err := g.o.Close(g.o.all[anyQueue.Draw(t, "closed queue")]); err != nil {
				t.Fatal(err)
			}
		}
		put := func(t *rapid.T) {
			g.t = t
			place(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": put, "put another": put, "put one more": put,
			"close": func(t *rapid.T) {
				g.t = t
				shut(t)
			},
			"submit": func(t *rapid.T) {
				g.t = t
				g.fail = rapid.IntRange(0, 4).Draw(t, "fails") == 0
				g.meanwhile = func() {
					for range rapid.IntRange(0, 2).Draw(t, "meanwhile") {
						if rapid.Bool().Draw(t, "closes") {
							shut(t)
						} else {
							place(t)
						}
					}
				}
				g.submit()
				g.fail, g.meanwhile = false, nil
			},
			"end": func(t *rapid.T) {
				g.t = t
				var inFlight []*naiveBatch
				for _, q := range g.o.all {
					for _, b := range q.inFlight {
						if b.stage == submitted {
							inFlight = append(inFlight, g.batch(q.index, b.value))
						}
					}
				}
				if len(inFlight) > 0 {
					g.reach(rapid.SampledFrom(inFlight).Draw(t, "batch"))
				}
			},
			"follows": func(t *rapid.T) {
				g.t = t
				if len(g.points) == 0 {
					return
				}
				some := rapid.SampledFrom(g.points)
				var r SyncSet
				for range rapid.IntRange(1, 3).Draw(t, "points") {
					r.Add(some.Draw(t, "point"))
				}
				m := some.Draw(t, "before")
				target := g.batch(m.Queue, m.Value)
				if !g.o.follows(&r, m) || target.failed {
					return
				}
				for i := range r.Len() {
					a := r.At(i)
					if a.Queue == m.Queue && !a.Before(m) {
						return
					}
					if a.Value > g.o.Of(a).sent {
						// The batch is not submitted: Submit will check what it follows.
						return
					}
					value, _ := g.o.Of(a).knownAt(a.Value)
					if value > 0 && g.behind(g.batch(a.Queue, value))[target] {
						return
					}
				}
				t.Fatalf("what is after %v is taken to be after %v too", r, m)
			},
			"": g.check,
		})
	})
}
