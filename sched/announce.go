package sched

import (
	"slices"

	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// announceTransfersLocked tells other tasks what the task's transfers, which are planned, are about to
// do to storage that they may use as well. It cannot fail.
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
			s.presence.hostWrites.collect(x.HostSpan(), x.ByDevice())
			if x.OutsideBatch() {
				x.Src.Readers = append(x.Src.Readers, &t.order.Task)
			}
		}
	}
	s.presence.hostWrites.add(&t.parked)
}

// withdrawTransfersLocked undoes announceTransfersLocked when the task ends. Blocks stay dirty.
func (s *Scheduler) withdrawTransfersLocked(t *target) {
	for i := range t.transfers.All {
		x := &t.transfers.All[i]
		if x.Phase != transfer.ToHost || x.Absent() {
			continue
		}
		s.presence.hostWrites.collect(x.HostSpan(), x.ByDevice())
		if !x.OutsideBatch() {
			continue
		}
		readers := x.Src.Readers
		last := len(readers) - 1
		k := slices.Index(readers, &t.order.Task)
		readers[k], readers[last] = readers[last], nil
		x.Src.Readers = readers[:last]
	}
	s.presence.hostWrites.remove(&t.parked)
}

// beginTransfersLocked begins the task's transfers (see transfer.List.Begin), and then waits for the
// first contents of blocks that the task uses and another task fills. It unlocks mu while it does so.
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
