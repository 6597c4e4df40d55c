package sched

import (
	"slices"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// exits are tasks whose commands are complete and whose own end is to come.
type exits struct {
	// done are those tasks, in the order of their exits; spare is memory for others.
	done, spare []*order.Task
	// finishing is set while a goroutine works them off.
	finishing bool
	// later is finishDone.
	later func(*tasks.Work)
}

// finishDone finishes the tasks that the device is done with, one after the
// other: a task's exit must not overtake that of one it follows. If another
// goroutine is at it, that one sees to what was added.
func (s *Scheduler) finishDone(w *tasks.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exits.finishing {
		return
	}
	s.exits.finishing = true
	defer func() {
		if len(s.exits.done) > 0 {
			// The caller has tasks to start and a construct to return from: other
			// programs' tasks, of which there may always be more, must not keep it.
			s.life.waiters.Go(s.finishRest)
			return
		}
		s.exits.finishing = false
	}()
	s.finishRoundLocked(w)
}

// finishRoundLocked finishes what is in s.exits.done now, under mu, which it gives up
// meanwhile. What is left when an observer ends the goroutine is in s.exits.done again.
func (s *Scheduler) finishRoundLocked(w *tasks.Work) {
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
		t := targetOf(done[next])
		done[next] = nil
		next++
		s.finish(t, w)
	}
}

// finishRest takes over from finishDone until nothing is left.
func (s *Scheduler) finishRest() {
	over := false
	defer func() {
		if !over {
			// An observer ended the goroutine.
			s.life.waiters.Go(s.finishRest)
		}
	}()
	for !over {
		over = s.finishMore()
	}
}

// finishMore finishes what is in s.exits.done now, and reports whether nothing was.
func (s *Scheduler) finishMore() (over bool) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.exits.done) == 0 {
		s.exits.finishing = false
		return true
	}
	s.finishRoundLocked(w)
	return false
}
