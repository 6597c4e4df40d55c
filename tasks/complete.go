package tasks

// Complete says that the task's body has ended; err is its failure or nil. The dependents of a
// failed task that have not started are completed with an error that names it. The task is
// complete when its predecessors are, including those that the device orders, and its event, if
// it is detachable, is fulfilled; a failed task does not wait for its event.
func (n *Node) Complete(err error, w *Work) {
	f := n.scope.family
	var like likeness
	if err != nil {
		like = n.scope.graph.likenessOf(err) // without the lock, because the error's methods are code of the program
	}
	f.mu.Lock()
	if err == nil {
		n.succeedLocked(w)
	} else {
		n.endLocked(undecided, err, like, w)
	}
	f.mu.Unlock()
}

// CompleteAll is Complete for tasks that have not failed, in this order.
func CompleteAll(nodes []*Node, w *Work) {
	var locked *family
	for _, n := range nodes {
		if f := n.scope.family; f != locked {
			if locked != nil {
				locked.mu.Unlock()
			}
			f.mu.Lock()
			locked = f
		}
		n.succeedLocked(w)
	}
	if locked != nil {
		locked.mu.Unlock()
	}
}

// succeedLocked is Complete for a task that has not failed.
func (n *Node) succeedLocked(w *Work) {
	if n.completesAtOnceLocked() {
		n.completeAtOnceLocked(w)
	} else {
		n.endLocked(undecided, nil, likeness{}, w)
	}
}

// completesAtOnceLocked reports whether the task, whose body has ended, is complete with it, and whether
// there is nothing to be done but to release its successors.
func (n *Node) completesAtOnceLocked() bool {
	s := n.scope
	return n.left == 1 && n.traits == 0 && n.notes == 0 && n.outcome == undecided && n.failedBy.Load() == nil && len(n.predecessors) == 0 &&
		s.trail == nil && s.emptied == nil && s.unkept
}

// completeAtOnceLocked is settleLocked with everything that it calls, for such a task.
func (n *Node) completeAtOnceLocked(w *Work) {
	s := n.scope
	n.toLocked(phaseComplete)
	n.left = 0
	s.live--
	s.family.done++
	if len(s.waiters) > 0 {
		s.childCompleteLocked(n)
	}
	ready := s.family.completing[:0]
	for i := range n.successors {
		e := &n.successors[i]
		to := e.to
		// A node that is kept for reuse must not refer to later ones.
		e.to = nil
		if e.onDevice {
			if to.left--; to.left == 0 {
				ready = append(ready, to)
			}
			if e.released {
				continue
			}
		}
		to.waiting--
		switch {
		case to.waiting > 0:
		case to.failedBy.Load() == nil && !to.traits.has(exclusive):
			to.toLocked(phaseStarted)
			w.push(to)
		default:
			to.waiting++
			to.releaseLocked(w)
		}
	}
	n.dropRunnerLocked()
	n.removeItemsLocked()
	s.removeLocked(n)
	n.toLocked(phaseGone)
	n.successors = n.successors[:0]
	n.forgetLocked()
	s.completeLocked(ready, w)
}

// endLocked ends a task: its body has ended with err, or it is dropped because of err or
// n.failedBy. The task is complete if nothing else prevents it.
func (n *Node) endLocked(o outcome, err error, like likeness, w *Work) {
	if o == dropped {
		n.outcome = dropped
	}
	n.failLocked(err, like)
	if n.left == 1 {
		n.settleLocked(w)
		return
	}
	// Its predecessors on the device, or its event, prevent it from being complete. Its
	// dependents have to know of a failure before that.
	n.left--
	n.toLocked(n.phase.over())
	n.passFailureLocked()
}

// settleLocked removes one of the things that prevent n from being complete.
func (n *Node) settleLocked(w *Work) {
	n.left--
	if n.left > 0 {
		return
	}
	n.scope.completeLocked(append(n.scope.family.completing[:0], n), w)
}

// completeLocked completes tasks that nothing prevents from that any more, and what is complete by that.
// The list is in family.completing, or nil.
func (s *Scope) completeLocked(ready []*Node, w *Work) {
	for len(ready) > 0 {
		last := len(ready) - 1
		next := ready[last]
		ready[last] = nil
		ready = next.completeLocked(ready[:last], w)
	}
	s.family.completing = ready
	for i, f := range s.family.emptied {
		s.family.emptied[i] = nil
		w.Defer(f)
	}
	s.family.emptied = s.family.emptied[:0]
}

// completeLocked makes a task complete and appends to ready the finished successors that waited
// for it.
func (n *Node) completeLocked(ready []*Node, w *Work) []*Node {
	s := n.scope
	n.toLocked(phaseComplete)
	failedBy := n.rootFailureLocked()
	if failedBy == nil && n.failedBy.Load() != nil {
		failedBy = n.inheritLocked()
	}
	s.live--
	if n.notes.has(joining) {
		s.joins--
	} else {
		s.family.done++
	}
	if failedBy != nil || n.specials().group != nil || len(s.waiters) > 0 {
		s.childCompleteLocked(n)
	}
	if n.traits.has(exclusive) {
		n.letGoLocked()
	}
	t := n.endTrailLocked()
	for i := range n.successors {
		e := &n.successors[i]
		if t != nil && !e.released {
			e.to.receiveLocked(t)
		}
		e.passLocked(n, failedBy)
		if e.onDevice {
			e.to.left--
			if e.to.left == 0 {
				ready = append(ready, e.to)
			}
		}
		if !e.released {
			e.to.releaseLocked(w)
		}
		e.to = nil
	}
	n.successors = n.successors[:0]
	if len(n.predecessors) > 0 {
		n.forgetPredecessorsLocked()
	}
	if n.traits.has(exclusive) {
		n.unblockLocked(w)
	}
	n.dropRunnerLocked()
	if n.notes.has(awaited) {
		n.special.signal <- struct{}{}
	}
	if t != nil {
		n.lingerLocked(t)
	} else {
		n.departLocked()
	}
	if s.trail != nil {
		s.closeTrailLocked()
	}
	return ready
}

// departLocked removes a complete task from the histories of its storage.
func (n *Node) departLocked() {
	s := n.scope
	n.toLocked(phaseGone)
	if n.traits.has(importing) {
		n.lookLocked(-1)
	}
	if !s.graph.keep {
		n.removeItemsLocked()
	}
	s.removeLocked(n)
	n.forgetLocked()
	if f := s.emptied; f != nil && !s.lastingLocked() {
		s.emptied = nil
		s.family.emptied = append(s.family.emptied, func(*Work) { f(s) })
	}
}

// removeItemsLocked removes the task's accesses from their locations.
func (n *Node) removeItemsLocked() {
	s := n.scope
	for i := range n.items {
		a := &n.items[i]
		a.remove()
		l := a.loc
		a.loc, a.ptr = nil, nil
		if l.refs--; l.refs == 0 {
			s.diedLocked(l)
		}
	}
}

// dropRunnerLocked forgets the runner of a complete task.
func (n *Node) dropRunnerLocked() {
	r := n.runner
	n.runner = nil
	r.Recycle()
}
