package tasks

import "slices"

// newNodeLocked returns a node for a task of the scope.
func (s *Scope) newNodeLocked() *Node {
	last := len(s.spareNodes) - 1
	if last < 0 {
		n := &Node{scope: s}
		n.items, n.successors = n.firstItems[:0], n.firstEdges[:0]
		return n
	}
	n := s.spareNodes[last]
	s.spareNodes[last] = nil
	s.spareNodes = s.spareNodes[:last]
	n.scope = s
	return n
}

// spareNodes are nodes for another scope.
type spareNodes struct{ nodes []*Node }

// takeSparesLocked takes the spare nodes of a scope whose region has ended.
func (s *Scope) takeSparesLocked() {
	if s.spareNodes != nil {
		return
	}
	if from, _ := s.graph.spares.Get().(*spareNodes); from != nil {
		s.spareNodes = from.nodes
	}
}

// giveSparesLocked gives the spare nodes of the scope, whose region has ended, to others. A node that has had an
// event stays, because the program may still have that.
func (s *Scope) giveSparesLocked() {
	nodes := slices.DeleteFunc(s.spareNodes, func(n *Node) bool { return n.special != nil && n.special.evented })
	s.spareNodes = nil
	if len(nodes) == 0 {
		return
	}
	for _, n := range nodes {
		n.scope = nil
	}
	s.graph.spares.Put(&spareNodes{nodes})
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
	if len(s.spareNodes) < maxSpare {
		s.spareNodes = append(s.spareNodes, n)
	}
}

// unusualLocked reports whether the node has more to reset than most nodes.
func (n *Node) unusualLocked() bool {
	return n.traits != 0 || n.notes != 0 || n.outcome != undecided || n.failedBy.Load() != nil || n.special != nil ||
		cap(n.items) > maxKept || cap(n.successors) > maxKept || cap(n.predecessors) > maxKept
}

func (n *Node) resetLocked() {
	n.traits, n.notes, n.outcome = 0, 0, undecided
	n.failedBy.Store(nil)
	if x := n.special; x != nil {
		n.dropTrailsLocked()
		if x.signal != nil {
			select {
			case <-x.signal:
			default:
			}
		}
		*x = special{generation: x.generation + 1, evented: x.evented, signal: x.signal, carried: carried{trails: x.trails}}
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
