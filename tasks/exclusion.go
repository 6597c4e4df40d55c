package tasks

// Two tasks with mutexinoutset items for the same storage exclude each other (OpenMP 5.2
// §15.9.5). A task takes all its storage of that type at once, when no predecessor is in its way,
// and releases it when it is complete. Because it takes everything at once, no deadlock is
// possible.
//
// A task of the same device as the holder need not wait until the holder is complete: once the
// holder is placed, the task is ordered after it on the device and becomes the holder.

// acquireLocked takes n's mutexinoutset storage. If another task holds some of it, n is queued
// there instead, and acquireLocked reports false.
func (n *Node) acquireLocked() bool {
	at := n.obstacleLocked()
	if at == nil {
		at = n.queueLocked()
	}
	if at != nil && mutexExcludes {
		n.toLocked(phaseBlocked)
		at.block(n)
		return false
	}
	n.takeLocked()
	return true
}

// queueLocked returns a location with tasks that wait for storage of n. They came first, and one
// of them may need the host although n does not.
func (n *Node) queueLocked() *location {
	for i := range n.items {
		a := &n.items[i]
		if a.class != classMutex {
			continue
		}
		if a.loc.blocked.first != nil {
			return a.loc
		}
		if !a.loc.tangled {
			continue
		}
		for _, h := range n.scope.tangle.holdersOf(a.loc.section) {
			if l := h.value.loc; h.value.held() && n.behindBlockedLocked(l) {
				return l
			}
		}
	}
	return nil
}

// maxLook is the largest number of accesses that are compared to decide whether a task can go
// past the tasks blocked at a location.
const maxLook = 64

// behindBlockedLocked reports whether a task that is blocked at l takes storage that n takes. If
// the comparison would take long, it reports true.
func (n *Node) behindBlockedLocked(l *location) bool {
	looked := 0
	for m := l.blocked.first; m != nil; m = m.special.nextBlocked {
		for i := range m.items {
			for j := range n.items {
				a, b := &m.items[i], &n.items[j]
				looked++
				if looked > maxLook || a.class == classMutex && b.class == classMutex && a.loc.overlaps(b.loc.section) {
					return true
				}
			}
		}
	}
	return false
}

// mutexExcludes is false only in the test that shows that it matters.
var mutexExcludes = true

// obstacleLocked returns a location whose holder prevents n from taking its storage.
func (n *Node) obstacleLocked() *location {
	for i := range n.items {
		a := &n.items[i]
		if a.class != classMutex {
			continue
		}
		if !n.passesLocked(a.loc.holder) {
			return a.loc
		}
		if !a.loc.tangled {
			continue
		}
		for _, h := range n.scope.tangle.holdersOf(a.loc.section) {
			if h.value.held() && !n.passesLocked(h.value.node) {
				return h.value.loc
			}
		}
	}
	return nil
}

// passesLocked reports whether n can take the storage of h.
func (n *Node) passesLocked(h *Node) bool {
	return h == nil || h == n || h.phase.onDevice() && n.keptAfterLocked(h)
}

func (n *Node) takeLocked() {
	for i := range n.items {
		a := &n.items[i]
		if a.class != classMutex {
			continue
		}
		n.followHolderLocked(a.loc.holder)
		if a.loc.gave != nil {
			n.scope.graph.keepEdge(a.loc.gave, n, true)
		}
		if a.loc.tangled {
			n.takeTangledLocked(a.loc)
		}
		a.loc.holder = n
	}
}

// takeTangledLocked is takeLocked for storage of sections that overlap in part.
func (n *Node) takeTangledLocked(l *location) {
	t := n.scope.tangle
	for _, h := range t.holdersOf(l.section) {
		switch {
		case h.value.held():
			n.followHolderLocked(h.value.node)
		case n.scope.graph.keep:
			n.scope.graph.keepEdge(h.value.node, n, true)
		}
	}
	t.take(n, l)
	if t.held.count > 2*t.keptHeld+minSweep && !n.scope.graph.keep {
		t.sweepHolders()
	}
}

// hold is storage that a task has taken through an item for loc, in whole or in part.
type hold struct {
	node *Node
	// generation is that of the task: the node may belong to another by now.
	generation uint64
	loc        *location
}

// held reports whether the task still holds the storage.
func (h *hold) held() bool {
	return h.node.is(h.generation) && !h.node.phase.complete()
}

// holdersOf returns the present and former holders of storage in a section.
func (t *tangle) holdersOf(at section) []*span[hold] {
	t.holders = t.held.appendOverlapping(t.holders[:0], at.start, at.end())
	return t.holders
}

// take makes n the holder of the storage of l. Others that hold parts of it are no longer holders
// there, because n excludes the same tasks.
func (t *tangle) take(n *Node, l *location) {
	start, end := l.start, l.end()
	for _, h := range t.holdersOf(l.section) {
		t.held.remove(h)
		if h.start < start {
			t.held.insert(&span[hold]{start: h.start, end: start, value: h.value})
		}
		if h.end > end {
			t.held.insert(&span[hold]{start: end, end: h.end, value: h.value})
		}
	}
	t.held.insert(&span[hold]{start: start, end: end, value: hold{n, n.special.generation.Load(), l}})
}

// sweepHolders removes former holders.
func (t *tangle) sweepHolders() {
	t.holders = t.held.appendAll(t.holders[:0])
	for _, h := range t.holders {
		if !h.value.held() {
			t.held.remove(h)
		}
	}
	t.keptHeld = t.held.count
}

// followHolderLocked orders n after h on their device.
func (n *Node) followHolderLocked(h *Node) {
	if h == nil || h == n {
		return
	}
	for _, p := range n.predecessors {
		if p == h {
			return
		}
	}
	n.predecessors = append(n.predecessors, h)
	h.refs++
	n.left++
	h.successors = append(h.successors, edge{to: n, onDevice: true, released: true, exclusion: true})
	n.scope.graph.keepEdge(h, n, true)
}

// letGoLocked releases n's storage.
func (n *Node) letGoLocked() {
	for i := range n.items {
		if l := n.items[i].loc; l.holder == n {
			l.holder = nil
			if n.scope.graph.keep {
				l.gave = n
			}
		}
	}
}

// unblockLocked wakes tasks that wait for storage which n has released, or whose order the device
// can keep from now on.
func (n *Node) unblockLocked(w *Work) {
	for i := range n.items {
		if n.items[i].class == classMutex {
			n.items[i].loc.wakeLocked(w)
		}
	}
}

// block makes n wait at l.
func (l *location) block(n *Node) {
	if l.blocked.first == nil {
		l.common = l.section
	}
	for i := range n.items {
		if a := &n.items[i]; a.class == classMutex && a.loc.overlaps(l.section) {
			l.common = l.common.intersect(a.loc.section)
			break
		}
	}
	l.blocked.push(n)
}

// leaveTo makes all remaining tasks blocked at l wait for m, which has just taken its storage, if
// m excludes each of them.
func (l *location) leaveTo(m *Node) {
	if l.blocked.first == nil || l.common.size == 0 {
		return
	}
	for i := range m.items {
		a := &m.items[i]
		if a.class != classMutex || a.loc == l || !a.loc.overlaps(l.common) {
			continue
		}
		if a.loc.blocked.first == nil {
			a.loc.common = l.common
		} else {
			a.loc.common = a.loc.common.intersect(l.common)
		}
		a.loc.blocked.append(&l.blocked)
		return
	}
}

// wakeLocked starts the tasks blocked at l that can go.
func (l *location) wakeLocked(w *Work) {
	var still nodeQueue
	for m := l.blocked.pop(); m != nil; m = l.blocked.pop() {
		switch at := m.obstacleLocked(); at {
		case nil:
			// A predecessor on the device may have failed in the meantime.
			if m.failedBy.Load() != nil {
				m.outcome = dropped
			} else {
				m.takeLocked()
			}
			m.toLocked(phaseStarted)
			w.push(m)
			if l.holder == m {
				// All others here exclude m.
				still.append(&l.blocked)
			} else if m.outcome != dropped {
				l.leaveTo(m)
			}
		case l:
			// The tasks behind it came later.
			still.push(m)
			still.append(&l.blocked)
		default:
			at.block(m)
		}
	}
	l.blocked = still
}

// nodeQueue is a first-in, first-out list linked by special.nextBlocked.
type nodeQueue struct {
	first, last *Node
}

func (q *nodeQueue) push(n *Node) {
	n.special.nextBlocked = nil
	if q.first == nil {
		q.first = n
	} else {
		q.last.special.nextBlocked = n
	}
	q.last = n
}

func (q *nodeQueue) pop() *Node {
	n := q.first
	if n != nil {
		q.first, n.special.nextBlocked = n.special.nextBlocked, nil
	}
	return n
}

// append moves the nodes of other to the end of q.
func (q *nodeQueue) append(other *nodeQueue) {
	if other.first == nil {
		return
	}
	if q.first == nil {
		*q = *other
	} else {
		q.last.special.nextBlocked, q.last = other.first, other.last
	}
	*other = nodeQueue{}
}
