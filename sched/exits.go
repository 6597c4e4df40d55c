package sched

import (
	"slices"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// exits are the tasks whose commands are complete and whose exits have yet to be made. Scheduler.mu
// guards them.
type exits struct {
	// done has the tasks in the order of their exits. spare is memory for the next ones.
	done, spare []*order.Task
	// ended has tasks that are to be completed together: scratch memory.
	ended []*tasks.Node
	// finishing says that a goroutine is making the exits.
	finishing bool
	// later is Scheduler.finishDone as a function value, which is made once.
	later func(*tasks.Work)
}

// finishDone finishes the tasks whose commands are complete, one after the other, because the exit of
// a task must not come before that of a task which it follows. If another goroutine is doing so, that
// one finishes the tasks that have been added as well.
func (s *Scheduler) finishDone(w *tasks.Work) { s.finishSome(false, w) }

// finishResidents is finishDone for a goroutine that has something else to do: if there are other tasks than resident
// ones, or ones whose observer hears of their end, it leaves them and those behind them to another goroutine.
func (s *Scheduler) finishResidents(w *tasks.Work) { s.finishSome(true, w) }

// finishSome is finishResidents if residents is set, and finishDone otherwise.
func (s *Scheduler) finishSome(residents bool, w *tasks.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exits.finishing || len(s.exits.done) == 0 {
		return
	}
	s.exits.finishing = true
	defer func() {
		if len(s.exits.done) > 0 {
			// The caller has tasks to start and a construct to return from. Tasks of others, of
			// which there may always be more, must not keep it from that.
			s.life.goroutines.Go(s.finishRest)
			return
		}
		s.exits.finishing = false
	}()
	s.finishRoundLocked(residents, w)
}

// finishRoundLocked finishes the tasks that are in s.exits.done now, and unlocks mu meanwhile. If an
// observer ends the goroutine, the tasks that are left are in s.exits.done again, and so are those that finishResidents
// leaves.
func (s *Scheduler) finishRoundLocked(residents bool, w *tasks.Work) {
	done, next := s.exits.done, 0
	s.exits.done, s.exits.spare = s.exits.spare[:0], nil
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		if next < len(done) {
			s.exits.done = slices.Concat(done[next:], s.exits.done)
		} else {
			s.exits.spare = done[:0]
		}
	}()
	for next < len(done) {
		var t *target
		switch owner := done[next].Owner.(type) {
		case *target:
			t = owner
			done[next] = nil
			next++
		case *resident:
			switch {
			case !owner.observesRun():
				t = s.endResidents(done, &next, w)
			case residents:
				return
			default:
				t = s.endWatched(done, &next, w)
			}
		}
		switch {
		case t == nil:
		case residents:
			next--
			done[next] = &t.order.Task
			return
		default:
			s.finish(t, w)
		}
	}
}

// finishRest takes over from finishDone, on a goroutine of its own, until no task is left.
func (s *Scheduler) finishRest() {
	over := false
	defer func() {
		if !over {
			// An observer ended the goroutine.
			s.life.goroutines.Go(s.finishRest)
		}
	}()
	for !over {
		over = s.finishMore()
	}
}

// finishMore finishes the tasks that are in s.exits.done now, and reports whether there were none.
func (s *Scheduler) finishMore() (over bool) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.exits.done) == 0 {
		s.exits.finishing = false
		return true
	}
	s.finishRoundLocked(false, w)
	return false
}
