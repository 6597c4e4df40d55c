package tasks

import "slices"

// newNodeLocked returns a node for a task of the scope.
func (s *Scope) newNodeLocked() *Node {
	if len(s.spareNodes) == 0 && !s.alone {
		s.takeSparesLocked()
	}
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

// magazine has nodes that any scope can use.
type magazine struct{ nodes []*Node }

// magazineNodes is the largest number of nodes in a magazine. A scope takes one after the other, so that one with
// few tasks does not have many nodes.
const magazineNodes = 32

// takeSparesLocked takes nodes of scopes whose regions have ended.
func (s *Scope) takeSparesLocked() {
	if m, _ := s.graph.spares.Get().(*magazine); m != nil {
		s.spareNodes = m.nodes
	} else {
		s.alone = true
	}
}

// giveSparesLocked gives the spare nodes of the scope, whose region has ended, to others.
func (s *Scope) giveSparesLocked() {
	for nodes := range slices.Chunk(s.spareNodes, magazineNodes) {
		// Each has memory of its own: who uses one does not keep the others.
		s.graph.spares.Put(&magazine{slices.Clone(nodes)})
	}
	s.spareNodes, s.alone = nil, false
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
	// Another scope may use the node, and not keep this one.
	n.scope = nil
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
		x.ctx, x.done, x.group, x.inner, x.witness, x.failure, x.failedThrough, x.nextBlocked = nil, nil, nil, nil, nil, nil, nil, nil
		x.carried = carried{trails: x.trails}
		x.generation.Add(1)
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
