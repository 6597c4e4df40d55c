package sched

import (
	"slices"

	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// announceTransfersLocked tells other tasks what the task's transfers, which are planned, are about
// to do to storage that they may use as well; mu is held. It allocates nothing and cannot
// fail.
func (s *Scheduler) announceTransfersLocked(t *target) {
	for i := range t.transfers.All {
		x := &t.transfers.All[i]
		if x.Kind.Updates() && x.Block != nil {
			stateOf(x.Block).dirty = true
		}
		switch x.Phase {
		case transfer.ToDevice:
			if x.Block != nil && x.OutsideBatch() {
				t.fillLocked(stateOf(x.Block))
			}
		case transfer.ToHost:
			if x.Absent() {
				continue
			}
			s.presence.hostWrites.add(&t.parked, x.HostSpan())
			if x.OutsideBatch() {
				x.Src.Readers = append(x.Src.Readers, &t.order)
				s.presence.reading++
			}
		}
	}
}

// withdrawTransfersLocked undoes announceTransfersLocked when the task is complete, but for what others
// have to know for longer; mu is held.
func (s *Scheduler) withdrawTransfersLocked(t *target) {
	for i := range t.transfers.All {
		x := &t.transfers.All[i]
		if x.Phase != transfer.ToHost || x.Absent() {
			continue
		}
		s.presence.hostWrites.remove(&t.parked, x.HostSpan())
		if !x.OutsideBatch() {
			continue
		}
		s.presence.reading--
		readers := x.Src.Readers
		last := len(readers) - 1
		k := slices.Index(readers, &t.order)
		readers[k], readers[last] = readers[last], nil
		x.Src.Readers = readers[:last]
	}
}

// beginTransfersLocked does what comes before the task's commands: the host's part of its
// transfers, and those to the device that go chunk by chunk. It then waits for the contents of
// blocks that the task uses and another one fills. It gives mu up while it does so.
func (s *Scheduler) beginTransfersLocked(t *target, w *tasks.Work) error {
	ts := &t.transfers
	err := error(nil)
	if ts.Begins() {
		s.mu.Unlock()
		var bytes uint64
		bytes, err = ts.Begin(&s.transfers, t, w)
		s.mu.Lock()
		s.stats.BytesToDevice += bytes
	}
	for i := range t.entry.uses {
		if u := &t.entry.uses[i]; u.Present != nil && !u.Created {
			s.waitUntilFilledLocked(t, stateOf(u.Present))
		}
	}
	for i := range ts.All {
		x := &ts.All[i]
		if (x.Phase == transfer.ToDevice || x.Phase == transfer.ToHost) && x.Block != nil {
			s.waitUntilFilledLocked(t, stateOf(x.Block))
		}
	}
	return err
}
