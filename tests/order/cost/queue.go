package cost

import (
	"fmt"

	"github.com/vkomp/vkomp/tests/order"
)

// submitted is a batch of a queue.
type submitted struct {
	*order.Batch
	line    int
	tickets []int // of the waits for binary semaphores
	// given is when its vkQueueSubmit has returned, nil before.
	given *moment
}

// turn is taken by one queue of a family at a time.
type turn struct {
	by   *queue // that executes a submission, nil if none does
	last *queue // that had the turn before
	free *moment
}

// queue is a queue of a device.
type queue struct {
	name   string
	totals *order.QueueTotals
	family int
	f      *Family
	turn   *turn // nil if the family's queues run side by side
	// batches are all that it gets, of which given have been submitted and done executed.
	batches     []*submitted
	given, done int
	// While it executes the batch at index done, executing is set, next is the batch's next command
	// and active counts its commands that have begun and not ended. now is when it can go on.
	executing bool
	next      int
	active    int
	now       *moment
	began     *moment
	// ended is when the last command of the batch that has ended did so.
	ended  *moment
	busy   float64 // nanoseconds
	engine float64 // of flow.share
}

// advance executes commands until one has to wait, or until the queue's time is ahead.
func (q *queue) advance(m *model, now float64) (moved bool) {
	for q.now.at <= now && q.done < len(q.batches) {
		if !q.step(m) {
			return moved
		}
		moved = true
	}
	return moved
}

// step does the next thing: it begins a submission, executes a command, or ends the submission. It
// reports false if that has to wait.
func (q *queue) step(m *model) bool {
	b := q.batches[q.done]
	if !q.executing {
		return q.begin(m, b)
	}
	if q.next == len(b.Commands) {
		return q.end(m, b)
	}
	c := &b.Commands[q.next]
	if c.Kind == order.OperationBarrier {
		if q.active > 0 {
			return false
		}
		name, cost := m.profile.Barriers.of(c.Dependencies)
		q.now = m.spend(latest(q.now, q.ended), float64(cost), name)
	} else {
		if !c.Part {
			q.now = m.spend(q.now, float64(m.profile.Dispatch), "issue commands")
		}
		q.execute(m, c)
	}
	q.next++
	m.wake(q.now)
	return true
}

// begin begins a submission, if it has been submitted and its waits are over.
func (q *queue) begin(m *model, b *submitted) bool {
	if b.given == nil || q.turn != nil && q.turn.by != nil {
		return false
	}
	var waits []*signal
	for i, w := range b.Waits {
		s := m.reached(w, b.tickets[i])
		if s == nil && (w.Value > 0 || w.Binary) {
			return false
		}
		if s != nil {
			waits = append(waits, s)
		}
	}
	begin := q.now
	if q.done == 0 || q.now.at < b.given.at {
		begin = m.until(begin, b.given, float64(q.f.Begin), "begin on an idle queue")
	}
	for _, s := range waits {
		if s.queue == nil {
			begin = latest(begin, s.at)
			continue
		}
		begin = m.until(begin, s.at, m.hop(s.queue, q), fmt.Sprintf("wait, family %d to %d%s", s.queue.family, q.family, sameQueue(s.queue, q)))
	}
	if t := q.turn; t != nil {
		if t.last != nil && t.last != q {
			begin = m.until(begin, t.free, m.hop(t.last, q), fmt.Sprintf("change the queue of family %d", q.family))
		}
		t.by = q
	}
	q.executing, q.next, q.ended = true, 0, nil
	q.now, q.began = begin, begin
	m.wake(begin)
	return true
}

func sameQueue(a, b *queue) string {
	if a == b {
		return ", one queue"
	}
	return ""
}

// hop returns what a wait costs, in nanoseconds: a link without its dispatch.
func (m *model) hop(from, to *queue) float64 {
	link := to.f.Link
	if from != to {
		link = m.profile.Links[from.family][to.family]
	}
	return float64(link - m.profile.Dispatch)
}

// end ends a submission when all its commands have ended.
func (q *queue) end(m *model, b *submitted) bool {
	if q.active > 0 {
		return false
	}
	q.now = latest(q.now, q.ended)
	q.busy += q.now.at - q.began.at
	for _, p := range b.Signals {
		m.signal(p, q.now, q)
	}
	if b.Fence != 0 {
		m.fences[b.Fence] = &signal{at: q.now, family: q.family, queue: q}
	}
	if t := q.turn; t != nil {
		t.by, t.last, t.free = nil, q, q.now
	}
	q.executing = false
	q.done++
	m.wake(q.now)
	return true
}

// execute begins a command.
func (q *queue) execute(m *model, c *order.Operation) {
	a := m.activity(q, c)
	if a.alone <= 0 {
		return
	}
	a.queue, a.begin, a.left = q, q.now, a.alone
	q.active++
	m.flow.begin(a)
}

// ended is called when an activity has ended.
func (m *model) ended(a *activity, at float64) {
	end := m.spend(a.begin, at-a.begin.at, a.name)
	m.all[end.part].Bytes += a.bytes
	a.queue.active--
	a.queue.ended = latest(a.queue.ended, end)
	m.last = latest(m.last, end)
}

// idleBefore reports whether the queue has still to execute what was submitted before a line of
// the log.
func (q *queue) idleBefore(line int) bool {
	return q.done < len(q.batches) && q.batches[q.done].line < line
}

func (q *queue) state() string {
	if q.done == len(q.batches) {
		return ""
	}
	b := q.batches[q.done]
	if b.given == nil {
		return "" // a thread waits
	}
	return fmt.Sprintf("line %d: %v waits for what is not signalled", b.line, b.Submission)
}
