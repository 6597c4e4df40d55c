package cost

import (
	"fmt"

	"github.com/vkomp/vkomp/tests/order"
)

// thing is a call with its index in the run.
type thing struct {
	*order.Call
	index int
}

// thread is a thread of the host.
type thread struct {
	number int
	calls  []thing
	next   int
	now    *moment
	// heard is the number of the run's calls of which the thread knows what they showed.
	heard int
}

// advance makes calls until one has to wait, or until the thread's time is ahead.
func (t *thread) advance(m *model, now float64) (moved bool) {
	for t.next < len(t.calls) && t.now.at <= now {
		c := t.calls[t.next]
		end := t.call(m, c)
		if end == nil {
			return moved
		}
		t.now = end
		t.next++
		moved = true
		m.wake(end)
	}
	return moved
}

// call returns when a call has returned, or nil if it has to wait.
func (t *thread) call(m *model, c thing) *moment {
	if c.Kind == order.CallSee {
		return t.see(m, c)
	}
	if m.order[m.made] != c.index {
		return nil
	}
	now := latest(t.now, m.begun)
	for ; t.heard < c.index; t.heard++ {
		known, ok := m.shown(t.heard)
		if !ok {
			return nil
		}
		t.now = latest(t.now, known)
	}
	now = latest(now, t.now)
	m.begun = now
	m.made++
	switch c.Kind {
	case order.CallRecord:
		for range c.Commands.Others {
			now = m.spend(now, float64(m.profile.RecordCommand), "record commands")
		}
		for range c.Commands.Barriers {
			now = m.spend(now, float64(m.profile.RecordBarrier), "record barriers")
		}
	case order.CallSubmit:
		return t.submit(m, c.Call, now)
	case order.CallSignal:
		for _, p := range c.Points {
			m.signal(p, now, nil)
		}
		for _, f := range c.Fences {
			m.fences[f] = &signal{at: now, family: -1}
		}
	case order.CallFlush:
		return m.host(now, c.Call, "host writes", m.profile.host(c.Properties).Write)
	case order.CallInvalidate:
		return m.host(now, c.Call, "host reads", m.profile.host(c.Properties).Read)
	}
	return now
}

// host returns when the host has accessed memory.
func (m *model) host(now *moment, c *order.Call, what string, r Rate) *moment {
	name := what + " memory of its own"
	switch {
	case c.Properties&hostCached != 0:
		name = what + " memory that it caches"
	case c.Properties&deviceLocal != 0:
		name = what + " memory of the device"
	}
	now = m.spend(now, r.nanoseconds(c.Bytes), name)
	m.all[now.part].Bytes += c.Bytes
	return now
}

// submit passes batches to their queue.
func (t *thread) submit(m *model, c *order.Call, now *moment) *moment {
	if len(c.Batches) == 0 {
		return now
	}
	q := m.byQueue[c.Batches[0].Queue]
	now = m.spend(now, float64(q.f.Submit), "submit")
	for range c.Batches {
		b := q.batches[q.given]
		delete(m.fences, b.Fence) // of an earlier submission
		b.given = now
		q.given++
	}
	return now
}

// see returns when the host has learned what the call shows.
func (t *thread) see(m *model, c thing) *moment {
	var points, others []*signal
	for _, p := range c.Points {
		s := m.reached(p, 0)
		if s == nil {
			return nil
		}
		points = append(points, s)
	}
	for _, f := range c.Fences {
		s := m.fences[f]
		if s == nil {
			return nil
		}
		others = append(others, s)
	}
	for _, totals := range c.Idle {
		q := m.byQueue[totals]
		if q == nil {
			continue // nothing was ever submitted to it
		}
		if q.idleBefore(c.Line) {
			return nil
		}
		if q.done > 0 {
			others = append(others, &signal{at: q.now, family: q.family})
		}
	}
	end := t.now
	for i, s := range points {
		known := m.learn(t.now, s, c.Polled)
		if k := m.known[c.Points[i]]; k == nil || known.at < k.at {
			m.known[c.Points[i]] = known
		}
		end = latest(end, known)
	}
	for _, s := range others {
		end = latest(end, m.learn(t.now, s, c.Polled))
	}
	m.calls[c.index] = end
	return end
}

// shown returns when the host knew what a call showed, or false if it does not yet. It knows a value
// as soon as one thread does.
func (m *model) shown(index int) (known *moment, ok bool) {
	c := &m.run.Calls[index]
	if c.Kind != order.CallSee {
		return nil, true
	}
	if len(c.Fences)+len(c.Idle) > 0 {
		return m.calls[index], m.calls[index] != nil
	}
	for _, p := range c.Points {
		at := m.known[p]
		if at == nil {
			return nil, false
		}
		known = latest(known, at)
	}
	return known, true
}

// learn returns when a thread that waits or polls from now on knows of a signal.
func (m *model) learn(now *moment, s *signal, polled bool) *moment {
	if s.family < 0 {
		return latest(now, s.at)
	}
	f := &m.profile.Families[s.family]
	if polled {
		return m.until(now, s.at, float64(f.Polled), "learn of an end by polling")
	}
	return m.until(now, s.at, float64(f.Blocked), "learn of an end by waiting")
}

func (t *thread) state() string {
	if t.next == len(t.calls) {
		return ""
	}
	return fmt.Sprintf("line %d: thread %d waits for what does not happen", t.calls[t.next].Line, t.number)
}
