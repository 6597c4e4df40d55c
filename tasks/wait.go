package tasks

import (
	"context"
	"slices"
)

// waiter is a Wait in progress.
type waiter struct {
	// upTo is the number of the last child waited for.
	upTo      uint64
	remaining int
	failures  failures
	// inside is the taskgroup of who waits, or nil.
	inside *Group
	// done has room for one token.
	done chan struct{}
}

// childCompleteLocked updates what waits for n.
func (s *Scope) childCompleteLocked(n *Node) {
	root := n.rootFailureLocked()
	var group *Group
	abandoned, reports := false, false
	if root != nil {
		s.graph.failures.Add(1)
		group, abandoned = n.specials().group.reports()
		// The wait of an abandoned group has already returned that a context had ended.
		reports = !n.notes.has(included) && !(abandoned && n.outcome == dropped)
	}
	var t *tally
	ended := false
	for _, wt := range s.waiters {
		if n.seq > wt.upTo {
			continue
		}
		switch {
		case !reports:
		case t == nil:
			t = wt.failures.note(root, n, group)
		default:
			wt.failures.share(t)
		}
		wt.remaining--
		ended = ended || wt.remaining == 0
	}
	if ended {
		s.endWaitsLocked()
	}
	if reports {
		if t == nil {
			t = s.failures.note(root, n, group)
		}
		if t.scope == nil {
			t.scope = s
		}
		if !abandoned {
			n.failItemsLocked(t)
		}
		group.fail(t)
		if t.over() {
			// The group was abandoned in the meantime.
			t.forgetStorageLocked()
		}
	}
	n.specials().group.done()
}

// endWaitsLocked ends the waits that are satisfied.
func (s *Scope) endWaitsLocked() {
	s.waiters = slices.DeleteFunc(s.waiters, func(wt *waiter) bool {
		if wt.remaining > 0 {
			return false
		}
		for _, t := range wt.failures.list {
			if t.reportedBy(wt.inside) {
				t.reported.Store(true)
			}
			t.returned = true
		}
		wt.done <- struct{}{}
		return true
	})
}

// Wait waits for the children generated so far (OpenMP taskwait: only direct children) and
// returns their failures joined. Each root failure is returned once, without those of its
// dependents; of failures that are alike the first is returned with their number, and errors.Is
// and errors.As find those that they can distinguish, within the bounds of maxDistinct. A failure
// is reported by every wait that is in progress when the task completes, or else by the next one;
// after that storage is no longer marked as failed because of it. If ctx ends first, its cause is
// returned, and nothing counts as reported. Wait leaves place, if there is one, while it blocks.
//
// Failures of a taskgroup's tasks are returned too, and reported by the group's own wait all the same: see WaitIn.
func (s *Scope) Wait(ctx context.Context, place Place) error { return s.WaitIn(ctx, place, nil) }

// WaitIn is Wait for who is inside of a taskgroup, or of none: failures of tasks of this group, and of those around it, count
// as reported.
func (s *Scope) WaitIn(ctx context.Context, place Place, inside *Group) error {
	failed, complete := s.wait(ctx, place, inside)
	if !complete {
		return context.Cause(ctx)
	}
	return report(failed, inside)
}

// Drain is Wait, but leaves the failures to the caller, who reports them with others. It returns
// false if ctx has ended before the children are complete.
func (s *Scope) Drain(ctx context.Context, into *Failures) (complete bool) {
	failed, complete := s.wait(ctx, nil, nil)
	into.take(failed)
	return complete
}

// wait waits for the children generated so far and returns the failures to report, or, if ctx
// ends first, none.
func (s *Scope) wait(ctx context.Context, place Place, inside *Group) (failed []*tally, complete bool) {
	s.lock()
	if s.live == 0 {
		failed := s.takeFailuresLocked()
		s.restLocked()
		s.unlock()
		return failed, true
	}
	wt := s.newWaiterLocked()
	wt.upTo, wt.remaining, wt.inside = s.family.last, s.live, inside
	wt.failures.list = s.takeFailuresLocked()
	s.waiters = append(s.waiters, wt)
	s.unlock()
	s.graph.beforeWait()
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-wt.done:
	case <-ctx.Done():
		if s.abandon(wt) {
			return nil, false
		}
		<-wt.done
	}
	failed = wt.failures.list
	s.lock()
	wt.failures = failures{}
	s.spareWaiters = append(s.spareWaiters, wt)
	if s.live == 0 {
		s.restLocked()
	}
	s.unlock()
	return failed, true
}

// unmarkStorage removes the marks of reported failures from storage. The caller holds no lock of a
// scope.
func unmarkStorage(reported []*tally) {
	tallies := make(map[*Scope][]*tally)
	for _, t := range reported {
		if t.scope != nil {
			tallies[t.scope] = append(tallies[t.scope], t)
		}
	}
	for s, of := range tallies {
		s.lock()
		for _, t := range of {
			t.forgetStorageLocked()
			if t.reported.Load() {
				s.failures.settle(t)
				t.releaseErrorsLocked()
			}
		}
		s.unlock()
	}
}

// takeFailuresLocked removes the failures of the scope and returns those that no other wait has reported.
func (s *Scope) takeFailuresLocked() []*tally {
	if len(s.failures.list) == 0 {
		return nil
	}
	failed := unreported(s.failures.list)
	s.failures = failures{}
	return failed
}

// restLocked frees what a scope without tasks does not need. Programs often name the storage of the last tasks
// again, so up to maxDead dead locations stay.
func (s *Scope) restLocked() {
	s.buryLocked(maxDead)
	if s.tangle != nil && !s.graph.keep {
		s.tangle.rest()
	}
}

func (s *Scope) newWaiterLocked() *waiter {
	if n := len(s.spareWaiters); n > 0 {
		wt := s.spareWaiters[n-1]
		s.spareWaiters = s.spareWaiters[:n-1]
		return wt
	}
	return &waiter{done: make(chan struct{}, 1)}
}

// abandon withdraws an unfinished wait, and reports whether there was one.
func (s *Scope) abandon(wt *waiter) bool {
	s.lock()
	defer s.unlock()
	i := slices.Index(s.waiters, wt)
	if i < 0 {
		return false
	}
	s.waiters = slices.Delete(s.waiters, i, i+1)
	awaited := make(map[*tally]bool)
	for _, other := range s.waiters {
		for _, t := range other.failures.list {
			awaited[t] = true
		}
	}
	s.failures.giveBack(&wt.failures, awaited)
	wt.failures = failures{}
	s.spareWaiters = append(s.spareWaiters, wt)
	return true
}

// Settled reports whether every child is complete and every failure reported.
func (s *Scope) Settled() bool {
	s.lock()
	defer s.unlock()
	return s.settledLocked()
}

// settledLocked is Settled for a caller that holds the lock.
func (s *Scope) settledLocked() bool { return s.live == 0 && len(unreported(s.failures.list)) == 0 }

// Settle passes on the failures that no wait has reported, for a scope whose region has ended,
// once every child is complete. It reports whether that is so.
func (s *Scope) Settle(into *Failures) bool {
	s.lock()
	var failed []*tally
	if s.live == 0 && !s.lastingLocked() {
		failed = s.takeFailuresLocked()
	}
	settled := s.settledLocked()
	s.unlock()
	into.add(failed)
	return settled
}

// WhenEmpty has f called with the scope, without locks, when every child is complete and no task can depend on one any
// more, for a scope whose region has ended. It reports false, and f is not called, if that is so already.
func (s *Scope) WhenEmpty(f func(*Scope)) bool {
	s.lock()
	defer s.unlock()
	if !s.lastingLocked() {
		return false
	}
	s.emptied = f
	return true
}

// Pending reports whether a child is not complete.
func (s *Scope) Pending() bool {
	s.lock()
	defer s.unlock()
	return s.live > 0
}
