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
	// after is the call after which the thread begins, -1 for none.
	after int
	now   *moment
}

// advance makes calls until one has to wait, or until the thread's time is ahead.
func (t *thread) advance(m *model, now float64) (moved bool) {
	if t.now == nil {
		switch {
		case t.after < 0:
			t.now = &moment{}
		case m.calls[t.after] == nil:
			return false
		default:
			t.now = m.calls[t.after]
			m.wake(t.now)
		}
	}
	for t.next < len(t.calls) && t.now.at <= now {
		c := t.calls[t.next]
		end := t.call(m, c.Call)
		if end == nil {
			return moved
		}
		t.now = end
		m.calls[c.index] = end
		t.next++
		moved = true
		m.wake(end)
	}
	return moved
}

// call returns when a call has returned, or nil if it has to wait.
func (t *thread) call(m *model, c *order.Call) *moment {
	now := t.now
	for _, s := range c.After {
		end := m.ends[s]
		if end == nil {
			return nil
		}
		now = m.until(now, end.at, float64(m.profile.Families[end.family].Polled), "another thread learns of an end")
	}
	switch c.Kind {
	case order.CallRecord:
		for range c.Commands.Others {
			now = m.spend(now, float64(m.profile.RecordCommand), "record commands")
		}
		for range c.Commands.Barriers {
			now = m.spend(now, float64(m.profile.RecordBarrier), "record barriers")
		}
	case order.CallSubmit:
		return t.submit(m, c, now)
	case order.CallSee:
		return t.see(m, c, now)
	case order.CallSignal:
		for _, p := range c.Points {
			m.signal(p, now, nil)
		}
		for _, f := range c.Fences {
			m.fences[f] = &signal{at: now, family: -1}
		}
	case order.CallFlush:
		return m.host(now, c, "host writes", m.profile.host(c.Properties).Write)
	case order.CallInvalidate:
		return m.host(now, c, "host reads", m.profile.host(c.Properties).Read)
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

// submit passes batches to their queue, after what the log has of that queue before them.
func (t *thread) submit(m *model, c *order.Call, now *moment) *moment {
	if len(c.Batches) == 0 {
		return now
	}
	q := m.byQueue[c.Batches[0].Queue]
	first := q.batches[q.given]
	if first.Batch != &c.Batches[0] {
		return nil
	}
	now = m.spend(now, float64(q.f.Submit), "submit")
	for range c.Batches {
		q.batches[q.given].given = now
		q.given++
	}
	return now
}

// see returns when the host has learned what the call shows.
func (t *thread) see(m *model, c *order.Call, now *moment) *moment {
	end := now
	for _, p := range c.Points {
		s := m.reached(p, 0)
		if s == nil {
			if p.Value == 0 {
				continue
			}
			return nil
		}
		end = latest(end, m.learn(now, s, c.Polled))
	}
	for _, f := range c.Fences {
		s := m.fences[f]
		if s == nil {
			return nil
		}
		end = latest(end, m.learn(now, s, c.Polled))
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
			end = latest(end, m.learn(now, &signal{at: q.now, family: q.family}, c.Polled))
		}
	}
	return end
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
