package order

import (
	"cmp"
	"io"
	"maps"
	"slices"
)

// trace is a log reduced to its events: synchronization, and the orders that accesses need. The
// latter do not depend on the former, so only the engine has to run for a changed trace.
type trace struct {
	events []event
	// hostAccesses says that the trace has accesses of the host.
	hostAccesses bool
	interval     int
	replays      [deaf + 1]rehearsal
}

// rehearsal is a replay of the unchanged trace.
type rehearsal struct {
	// checkpoints[i] is the engine before event i*interval.
	checkpoints []*engine
	// missing holds what is wrong in it; it is empty with hearsAll.
	missing map[loss]bool
}

// loss is an order that is missing, or the event at which something else is wrong.
type loss struct {
	need  *need
	event *event
}

func lossOf(ev *event, n *need) loss {
	if n != nil {
		ev = nil // a changed event has the same needs
	}
	return loss{n, ev}
}

// readTrace checks a log and keeps it as a trace.
func readTrace(log io.Reader, o Options) (*trace, *Report, error) {
	t := &trace{}
	c := newChecker(o)
	c.trace = func(ev *event) { t.events = append(t.events, *ev) }
	err := c.run(log)
	if err != nil {
		return nil, c.report, err
	}
	t.hostAccesses = slices.ContainsFunc(t.events, func(ev event) bool { return ev.kind == evHost })
	t.checkpoint()
	return t, c.report, nil
}

func (t *trace) checkpoint() {
	const most = 2000
	t.interval = max(32, len(t.events)/most)
	t.checkpointEvery()
}

// checkpointEvery keeps a copy of the engine before every interval-th event.
func (t *trace) checkpointEvery() {
	t.foretell()
	for hears := range t.replays {
		r := &t.replays[hears]
		*r = rehearsal{missing: map[loss]bool{}}
		e := newEngine()
		e.hears = hearing(hears)
		e.found = func(_ problem, ev *event, n *need) { r.missing[lossOf(ev, n)] = true }
		for i := range t.events {
			if i%t.interval == 0 {
				r.checkpoints = append(r.checkpoints, e.clone())
			}
			e.do(&t.events[i])
		}
	}
}

// foretell adds each order that the host needs after a command to the first signal after the
// command. A scheduler has to provide it there, because the host may act at once, even if in this
// run it acted so late that other signals had told it.
func (t *trace) foretell() {
	type told struct {
		pos uint64
		by  *event
	}
	lanes := map[int][]told{}
	pos := map[int]uint64{}
	for i := range t.events {
		ev := &t.events[i]
		ev.foretold = nil
		switch ev.kind {
		case evQueue, evCommand:
			pos[ev.queue] = ev.pos
		case evSignal, evFence, evIdle:
			lanes[ev.queue] = append(lanes[ev.queue], told{pos[ev.queue], ev})
		case evHost:
			for _, n := range ev.needs {
				lane := lanes[(n.column-1)/deviceClasses]
				k, _ := slices.BinarySearchFunc(lane, n.pos, func(s told, pos uint64) int { return cmp.Compare(s.pos, pos) })
				if k < len(lane) {
					lane[k].by.foretold = append(lane[k].by.foretold, n)
				}
			}
		}
	}
}

// change is a change of a trace: the event at index at is replaced by with, or removed if that is
// nil; if to is not -1 it is moved before the event at index to.
type change struct {
	at   int
	with *event
	to   int
}

// replay reports whether the changed trace lacks an order that the unchanged one has, or has any
// other violation.
func (t *trace) replay(hears hearing, c change) (wrong bool) {
	checkpoints, missing := t.replays[hears].checkpoints, t.replays[hears].missing
	from := c.at
	if c.to >= 0 {
		from = min(from, c.to)
	}
	e := checkpoints[from/t.interval].clone()
	e.found = func(_ problem, ev *event, n *need) { wrong = wrong || !missing[lossOf(ev, n)] }
	for i := from / t.interval * t.interval; i < len(t.events) && !wrong; i++ {
		if i > c.at && i%t.interval == 0 && e.equal(checkpoints[i/t.interval]) {
			return false
		}
		if i == c.to {
			e.do(c.with)
		}
		if i != c.at {
			e.do(&t.events[i])
		} else if c.with != nil && c.to < 0 {
			e.do(c.with)
		}
	}
	if !wrong {
		e.end()
	}
	return wrong
}

// changed returns the changed events.
func (t *trace) changed(c change) []*event {
	out := make([]*event, 0, len(t.events))
	for i := range t.events {
		if i == c.to {
			out = append(out, c.with)
		}
		if i != c.at {
			out = append(out, &t.events[i])
		} else if c.with != nil && c.to < 0 {
			out = append(out, c.with)
		}
	}
	return out
}

func (k knowledge) clone() knowledge {
	return knowledge{k.done.clone(), k.available.clone(), k.read.clone(), k.written.clone()}
}

func (k knowledge) equal(o knowledge) bool {
	return k.done.equal(o.done) && k.available.equal(o.available) && k.read.equal(o.read) && k.written.equal(o.written)
}

func (e *engine) clone() *engine {
	c := &engine{
		lanes: make([]*lane, len(e.lanes)), host: e.host.clone(), hostParts: e.hostParts, hostPos: e.hostPos, hears: e.hears,
		semaphores: make(map[int]*semaphore, len(e.semaphores)), fences: maps.Clone(e.fences),
	}
	for i, l := range e.lanes {
		if l == nil {
			continue
		}
		n := *l
		for k := range n.after {
			n.after[k] = l.after[k].clone()
		}
		n.hostRead, n.hostWritten = l.hostRead.clone(), l.hostWritten.clone()
		c.lanes[i] = &n
	}
	for id, s := range e.semaphores {
		n := *s
		n.signals, n.waiting = slices.Clip(s.signals), slices.Clip(s.waiting)
		c.semaphores[id] = &n
	}
	return c
}

// equal reports whether both engines will find the same from here on.
func (e *engine) equal(o *engine) bool {
	if !e.host.equal(o.host) || e.hostPos != o.hostPos || len(e.lanes) != len(o.lanes) ||
		len(e.semaphores) != len(o.semaphores) || len(e.fences) != len(o.fences) || !equalParts(e.hostParts, o.hostParts) {
		return false
	}
	for i, l := range e.lanes {
		m := o.lanes[i]
		if (l == nil) != (m == nil) {
			return false
		}
		if l == nil {
			continue
		}
		for k := range l.after {
			if !l.after[k].equal(m.after[k]) {
				return false
			}
		}
		if !l.hostRead.equal(m.hostRead) || !l.hostWritten.equal(m.hostWritten) || !equalParts(l.parts, m.parts) ||
			!slices.EqualFunc(l.submitted, m.submitted, submission.equal) {
			return false
		}
	}
	for id, s := range e.semaphores {
		t := o.semaphores[id]
		if t == nil || s.last != t.last || s.passed != t.passed || s.by != t.by || s.pos != t.pos || len(s.waiting) != len(t.waiting) ||
			!slices.EqualFunc(s.signals, t.signals, func(a, b signal) bool { return a.equal(&b) }) {
			return false
		}
	}
	for id, s := range e.fences {
		if t := o.fences[id]; t == nil || !s.equal(t) {
			return false
		}
	}
	return true
}

func (s submission) equal(o submission) bool {
	return s.pos == o.pos && s.done.equal(o.done) && s.available.equal(o.available)
}

func (s *signal) equal(o *signal) bool {
	if s.value == o.value && s.queue == o.queue && len(s.done) > 0 && len(o.done) > 0 && &s.done[0] == &o.done[0] {
		return true // the same signal, whose vectors never change
	}
	return s.value == o.value && s.queue == o.queue && s.done.equal(o.done) && s.available.equal(o.available) &&
		s.hostRead.equal(o.hostRead) && s.hostWritten.equal(o.hostWritten) && equalParts(s.parts, o.parts)
}

func equalParts(a, b []part) bool {
	return slices.EqualFunc(a, b, func(p, q part) bool {
		return p.section == q.section && p.class == q.class && p.available.equal(q.available) && p.read.equal(q.read) && p.written.equal(q.written)
	})
}
