package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// exit is the exit of a task's maps from the presence table.
type exit struct {
	// items are the result of memory.Table.BeginExit, once the task is exiting.
	items []memory.Exit
	// foreseen has for each item of the task's exit the index of the transfer that was planned for it when the task
	// entered, counted from 1, or 0. It ends with the last item that has one.
	foreseen []int
	// cancelled says that the task has failed and that its exit leaves the blocks present.
	cancelled bool
}

func (e *exit) reset() {
	empty(&e.items)
	empty(&e.foreseen)
	e.cancelled = false
}

// foresee notes the index of the transfer that is planned for an item.
func (e *exit) foresee(item, transfer int) {
	for len(e.foreseen) <= item {
		e.foreseen = append(e.foreseen, 0)
	}
	e.foreseen[item] = transfer + 1
}

// foreseenFor returns the index of the transfer that was planned for an item, or -1.
func (e *exit) foreseenFor(item int) int {
	if item >= len(e.foreseen) {
		return -1
	}
	return e.foreseen[item] - 1
}

// finish does what the host has to do for a task whose commands are complete: the exit of its maps,
// with the copies to the host that are due. Copies that need the device and that nobody foresaw when
// the task was placed go into a batch of their own, and finish is called again when that is
// complete.
func (s *Scheduler) finish(t *target, w *tasks.Work) {
	t.awaitTold()
	s.mu.Lock()
	if t.failed != nil {
		s.endLocked(t, t.failed, w)
		s.mu.Unlock()
		return
	}
	if t.state != taskLate {
		if t.Structured {
			t.exit.items = s.presence.table.BeginExitOf(t.Enter, t.entry.uses, t.exit.items)
		} else {
			if t.Absent {
				s.disclaimLocked(t.Exit)
			}
			t.exit.items = s.presence.table.BeginExit(t.Exit, t.exit.items)
		}
		if t.absentExit {
			// The exit may have found blocks other than those whose memory the task keeps.
			for i := range t.exit.items {
				t.pinLocked(stateOf(t.exit.items[i].Present).Allocation)
			}
		}
		t.to(taskExiting)
		late, err := s.planExitLocked(t, w)
		if err != nil {
			s.endLocked(t, err, w)
			s.unlockLocked(w)
			return
		}
		if t.traits.has(observedOps) {
			s.observeExitLocked(t)
		}
		if late {
			s.flushLocked(s.order.Of(t.order.At), order.AtOnce, w)
			s.unlockLocked(w)
			return
		}
	}
	if !t.transfers.Ends() && !t.traits.has(observedRun) {
		s.endLocked(t, nil, w)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()

	bytes, err := uint64(0), protect.ErrGoexit
	// Deferred, because an observer may end the goroutine.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.BytesFromDevice += bytes
		s.endLocked(t, err, w)
	}()
	if bytes, err = t.transfers.End(&s.transfers, t, w); err != nil || !t.traits.has(observedRun) {
		return
	}
	// Nothing can fail from here on. The observer has to hear that storage is freed before another
	// task can get that storage.
	t.heard = heardEnd
	defer func() { t.Observer.End(nil) }()
	if t.traits.has(observedOps) {
		t.tellDue()
	}
}
