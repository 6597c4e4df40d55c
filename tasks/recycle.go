package tasks

func (s *Scope) newNodeLocked() *Node {
	n := s.spareNodes
	if n == nil {
		n = &Node{scope: s, family: s.family}
		n.items, n.successors = n.firstItems[:0], n.firstEdges[:0]
		return n
	}
	s.spareNodes, n.nextBlocked = n.nextBlocked, nil
	s.spareNodeCount--
	return n
}

// maxKept is the largest number of items, successors or predecessors for which a node keeps memory.
const maxKept = 64

// forgetLocked drops a reference to the node. When there are none left, the node is reset, except
// for its memory.
func (n *Node) forgetLocked() {
	n.refs--
	s := n.scope
	if n.refs > 0 || s.graph.keep {
		return
	}
	n.items, n.successors, n.predecessors = n.items[:0], n.successors[:0], n.predecessors[:0]
	n.toLocked(phaseFree)
	if n.unusualLocked() {
		n.resetLocked()
	}
	if s.spareNodeCount < maxSpare {
		n.nextBlocked, s.spareNodes = s.spareNodes, n
		s.spareNodeCount++
	}
}

// unusualLocked reports whether the node has more to reset than most nodes.
func (n *Node) unusualLocked() bool {
	return n.traits != 0 || n.notes != 0 || n.outcome != undecided || n.inner != nil || n.failedBy != nil || n.failure != nil || n.signal != nil ||
		cap(n.items) > maxKept || cap(n.successors) > maxKept || cap(n.predecessors) > maxKept
}

func (n *Node) resetLocked() {
	n.generation++
	n.ctx, n.group, n.inner, n.witness = nil, nil, nil, nil
	n.dropTrailsLocked()
	n.traits, n.notes, n.outcome = 0, 0, undecided
	n.failedBy, n.failure = nil, nil
	if n.signal != nil {
		select {
		case <-n.signal:
		default:
		}
	}
	if cap(n.items) > maxKept {
		n.items = n.firstItems[:0]
	}
	if cap(n.successors) > maxKept {
		n.successors = n.firstEdges[:0]
	}
	if cap(n.predecessors) > maxKept {
		n.predecessors = nil
	}
}
