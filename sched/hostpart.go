package sched

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/tasks"
)

// announceTransfersLocked tells other tasks what the task's transfers, which are planned, are about
// to do to storage that they may use as well; mu is held. It allocates nothing and cannot
// fail.
func (s *Scheduler) announceTransfersLocked(t *target) {
	for i := range t.transfers.list {
		x := &t.transfers.list[i]
		if x.kind.updates() && x.block != nil {
			stateOf(x.block).dirty = true
		}
		switch x.phase {
		case phaseRequested:
			if x.block != nil && x.outsideBatch() {
				t.fillLocked(stateOf(x.block))
			}
		case phaseHome:
			if x.absent() {
				continue
			}
			s.presence.hostWrites.add(&t.parked, x.hostSpan())
			if x.outsideBatch() {
				x.src.Readers = append(x.src.Readers, &t.order)
				s.presence.reading++
			}
		}
	}
}

// withdrawTransfersLocked undoes announceTransfersLocked when the task is complete, but for what others
// have to know for longer; mu is held.
func (s *Scheduler) withdrawTransfersLocked(t *target) {
	for i := range t.transfers.list {
		x := &t.transfers.list[i]
		if x.phase != phaseHome || x.absent() {
			continue
		}
		s.presence.hostWrites.remove(&t.parked, x.hostSpan())
		if !x.outsideBatch() {
			continue
		}
		s.presence.reading--
		readers := x.src.Readers
		last := len(readers) - 1
		k := slices.Index(readers, &t.order)
		readers[k], readers[last] = readers[last], nil
		x.src.Readers = readers[:last]
	}
}

// beginTransfersLocked does what comes before the task's commands: the host's part of its
// transfers, and those to the device that go chunk by chunk. It then waits for the contents of
// blocks that the task uses and another one fills. It gives mu up while it does so.
func (s *Scheduler) beginTransfersLocked(t *target, w *tasks.Work) error {
	ts := &t.transfers
	err := error(nil)
	if ts.planned.has(phaseEnter) || ts.planned.has(phaseRequested) {
		s.mu.Unlock()
		var bytes uint64
		bytes, err = s.bringIn(t, w)
		s.mu.Lock()
		s.stats.BytesToDevice += bytes
	}
	for i := range t.entry.uses {
		if u := &t.entry.uses[i]; u.Present != nil && !u.Created {
			s.waitUntilFilledLocked(t, stateOf(u.Present))
		}
	}
	for i := range ts.list {
		x := &ts.list[i]
		if (x.phase == phaseRequested || x.phase == phaseHome) && x.block != nil {
			s.waitUntilFilledLocked(t, stateOf(x.block))
		}
	}
	return err
}

// bringIn does the host's part of the transfers that come before the task's commands, and
// those to the device that go chunk by chunk. It returns how many bytes of host storage were
// copied.
func (s *Scheduler) bringIn(t *target, w *tasks.Work) (copied uint64, err error) {
	m, ts := &s.memory, &t.transfers
	for i := range ts.list {
		if x := &ts.list[i]; x.phase <= phaseRequested && x.path.reads != nil {
			x.path.reads(m, ts, x)
		}
	}
	err = ts.invalidate(m)
	for p := phaseEnter; p <= phaseRequested; p++ {
		if ts.planned.has(p) {
			n, copying := t.beginPhase(m, p)
			copied += n
			err = cmp.Or(err, copying)
		}
	}
	err = cmp.Or(err, ts.flush(m))
	for i := range ts.list {
		x := &ts.list[i]
		if err != nil || x.phase > phaseRequested || x.path.bring == nil {
			continue
		}
		t.tell(ompt.ScopeBegin, x.op)
		if err = x.path.bring(m, ts, x, s.newLane(t, x, w)); err == nil {
			copied += x.size
		}
		t.tell(ompt.ScopeEnd, x.op)
	}
	return copied, err
}

// beginPhase does the host's part of the transfers of one phase that comes before commands,
// and returns how many bytes of host storage it has copied. A failure of one keeps no other
// from being made.
func (t *target) beginPhase(m *allocation.Memory, p transferPhase) (copied uint64, err error) {
	ts := &t.transfers
	for i := range ts.list {
		x := &ts.list[i]
		if x.phase != p || x.path.begin == nil {
			continue
		}
		// A transfer that the device makes without host storage is reported when it is placed.
		told := x.op
		if !x.kind.fromHost() && !x.path.inPlace {
			told = nil
		}
		t.tell(ompt.ScopeBegin, told)
		n, copying := x.path.begin(m, ts, x)
		t.tell(ompt.ScopeEnd, told)
		copied += n
		err = cmp.Or(err, copying)
	}
	return copied, err
}

// endTransfers does the host's part of the transfers to the host, which planExitLocked has listed,
// and returns how many bytes of host storage it has copied. After a failure no other is made.
// It is called without mu.
func (s *Scheduler) endTransfers(t *target, w *tasks.Work) (copied uint64, err error) {
	m, ts := &s.memory, &t.transfers
	if len(ts.ends) == 0 {
		return 0, nil
	}
	for _, i := range ts.ends {
		if x := &ts.list[i]; x.path.reads != nil {
			x.path.reads(m, ts, x)
		}
	}
	err = ts.invalidate(m)
	for _, i := range ts.ends {
		x := &ts.list[i]
		t.tell(ompt.ScopeBegin, x.op)
		switch {
		case err != nil:
		case x.path.bring != nil:
			err = x.path.bring(m, ts, x, s.newLane(t, x, w))
			copied += x.size
		default:
			var n uint64
			n, err = x.path.end(x)
			copied += n
		}
		t.tell(ompt.ScopeEnd, x.op)
	}
	return copied, err
}
