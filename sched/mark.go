package sched

import (
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/timeline"
)

// mark is a place in the order of a device: a level of the batch that signals value
// on a queue. The zero mark is before everything.
type mark struct {
	value uint64
	level int32
	queue int32
}

// maxLevel is past every level of a batch.
const maxLevel = 1 << 30

// before reports whether m comes before o, which is on the same queue.
func (m mark) before(o mark) bool {
	return m.value < o.value || m.value == o.value && m.level < o.level
}

// trail is a set of marks, the latest on each queue: what follows it follows them
// all, and what they follow. The zero trail is before everything.
type trail struct {
	first mark
	// more are those of other queues than first's.
	more []mark
}

// len and at enumerate the marks.
func (r *trail) len() int {
	if r.first.value == 0 {
		return 0
	}
	return 1 + len(r.more)
}

func (r *trail) at(i int) mark {
	if i == 0 {
		return r.first
	}
	return r.more[i-1]
}

// add adds what m is.
func (r *trail) add(m mark) {
	switch {
	case m.value == 0:
	case r.first.value == 0:
		r.first = m
	case r.first.queue == m.queue:
		if r.first.before(m) {
			r.first = m
		}
	default:
		for i := range r.more {
			if o := &r.more[i]; o.queue == m.queue {
				if o.before(m) {
					*o = m
				}
				return
			}
		}
		if !mutated(queueForgotten) {
			r.more = append(r.more, m)
		}
	}
}

func (r *trail) addAll(o *trail) {
	for i := range o.len() {
		r.add(o.at(i))
	}
}

// equal reports whether both have the same marks, as they were added: false says nothing
// of trails of several queues.
func (r *trail) equal(o *trail) bool { return r.first == o.first && slices.Equal(r.more, o.more) }

// set makes the trail that of one mark, which may be the zero mark.
func (r *trail) set(m mark) { r.first, r.more = m, r.more[:0] }

// setAll makes the trail a copy of another.
func (r *trail) setAll(o *trail) { r.first, r.more = o.first, append(r.more[:0], o.more...) }

// gathering is what commands that are to be placed come after, and the families of
// queues that can run them, as bits, 0 for any.
type gathering struct {
	trail
	families uint64
	// nowhere: there are no such families.
	nowhere bool
}

func (g *gathering) set(m mark) {
	g.trail.set(m)
	g.families, g.nowhere = 0, false
}

func (g *gathering) setAll(r *trail) {
	g.trail.setAll(r)
	g.families, g.nowhere = 0, false
}

// limit leaves out the families that are not among those given, 0 for all.
func (g *gathering) limit(families uint64) {
	switch {
	case families == 0:
	case g.families == 0:
		g.families = families
	default:
		g.nowhere = g.nowhere || g.families&families == 0
		g.families &= families
	}
}

// clock says up to which value each queue's work has happened before, by the index
// of the queue. Its owner is a batch or a queue, and it never shrinks.
type clock []uint64

func (c clock) covers(m mark) bool { return c[m.queue] >= m.value }

func (c clock) join(o clock) {
	for i, v := range o {
		c[i] = max(c[i], v)
	}
}

// freeAfter frees storage whose last use is up to a trail.
func freeAfter(a *memory.Allocator, st memory.Storage, last *trail) {
	var few [8]timeline.Point
	points := few[:0]
	for i := range last.len() {
		m := last.at(i)
		points = append(points, timeline.Point{Queue: timeline.Queue(m.queue), Value: m.value})
	}
	a.Free(st, timeline.FrontierOf(points))
}

// addFrontier adds marks after all commands so far that f covers.
func (s *Scheduler) addFrontier(r *trail, f timeline.Frontier) {
	for i := range f.Len() {
		p := f.At(i)
		q := s.order.queues[p.Queue]
		m := mark{value: p.Value, level: maxLevel, queue: q.index}
		if p.Value == q.pending.value {
			m.level = int32(max(len(q.pending.levels)-1, 0))
		}
		r.add(m)
	}
}

// knownAt returns the value to wait for in order to follow v, one that is submitted,
// and what whoever waits for it follows on other queues besides.
func (q *queue) knownAt(v uint64) (value uint64, known clock) {
	if v <= q.completed {
		// What is reached can be waited for at no cost, and covers the most.
		return q.completed, q.known
	}
	// The values of batches that could not be submitted are skipped: the next one
	// follows what they did.
	i, _ := q.find(v)
	if i == len(q.inFlight) {
		return q.completed, q.known
	}
	if mutated(frontierTooNew) {
		return q.inFlight[i].value, q.pending.clock
	}
	return q.inFlight[i].value, q.inFlight[i].clock
}

// mayFollow is follows for the commands of a task that is not complete: also true where
// the device is done with them, and anything else is not. Who came after them then had
// nothing to wait for, and what follows that does not show it.
func (s *Scheduler) mayFollow(r *trail, m mark) bool {
	return r.len() > 0 && m.value <= s.order.queues[m.queue].completed || s.follows(r, m)
}

// follows reports whether what is after r is known to be after m too: it can be
// without the program having asked for it.
func (s *Scheduler) follows(r *trail, m mark) bool {
	for i := range r.len() {
		a := r.at(i)
		if a.queue == m.queue && !a.before(m) {
			return true
		}
		q := s.order.queues[a.queue]
		known := q.pending.clock
		if a.value <= q.last {
			_, known = q.knownAt(a.value)
		}
		if known.covers(m) {
			return true
		}
	}
	return false
}
