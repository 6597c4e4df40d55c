package tasks

import (
	"cmp"
	"slices"
)

// State is the state of a task.
type State uint8

const (
	// StateWaiting: a predecessor is in its way.
	StateWaiting State = iota
	// StateStarted: it was given to its Runner.
	StateStarted
	// StatePlaced: a device has it and keeps its order.
	StatePlaced
	// StateComplete: it is done, has failed, or was not run.
	StateComplete
)

// String returns the name of the state in graphs.
func (s State) String() string {
	switch s {
	case StateWaiting:
		return "waiting"
	case StateStarted:
		return "started"
	case StatePlaced:
		return "placed"
	}
	return "complete"
}

// Snapshot is the task graph at one moment.
type Snapshot struct {
	// Tasks are ordered by ID.
	Tasks []TaskInfo
	Edges []EdgeInfo
}

// TaskInfo describes one task of a snapshot.
type TaskInfo struct {
	// ID numbers the tasks of a graph from 1. Parent is the ID of the explicit task that
	// generated this one, 0 for the initial task.
	ID, Parent uint64
	Label      string
	Domain     Domain
	Included   bool
	State      State
	// Failure is the error with which the task failed or was not run, nil if it did not fail.
	Failure error
	// Depend are the items of the task's depend clauses.
	Depend []Depend
}

// Outstanding counts incomplete tasks with the same label and state.
type Outstanding struct {
	Label  string // the tasks' label
	Domain Domain // the tasks' domain
	State  State  // the tasks' state
	// AwaitsEvent says that their bodies have ended, but their events are not fulfilled.
	AwaitsEvent bool
	// Count is the number of tasks.
	Count int
}

// EdgeInfo is a dependence of task To on task From.
type EdgeInfo struct {
	From, To uint64 // IDs of tasks
	// Exclusion says that the two only exclude each other (mutexinoutset); From was
	// generated first.
	Exclusion bool
}

// Snapshot returns the tasks that are not complete and the edges between them, or everything
// since the beginning if Keep was called. Tasks of different scopes are read at slightly
// different moments.
func (g *Graph) Snapshot() Snapshot {
	var snap Snapshot
	if g.keep {
		g.mu.Lock()
		nodes := slices.Clone(g.kept)
		snap.Edges = slices.Clone(g.keptEdges)
		g.mu.Unlock()
		known := uint64(0)
		for _, n := range nodes {
			n.scope.lock()
			snap.Tasks = append(snap.Tasks, n.infoLocked())
			n.scope.unlock()
			known = max(known, n.seq)
		}
		// An edge is added after both of its tasks.
		snap.Edges = slices.DeleteFunc(snap.Edges, func(e EdgeInfo) bool { return e.To > known })
	} else {
		known := make(map[uint64]bool)
		for _, s := range g.scopes() {
			s.lock()
			for _, n := range s.children {
				snap.Tasks = append(snap.Tasks, n.infoLocked())
				known[n.seq] = true
				for _, e := range n.successors {
					snap.Edges = append(snap.Edges, EdgeInfo{From: n.seq, To: e.to.seq, Exclusion: e.exclusion})
				}
			}
			s.unlock()
		}
		snap.Edges = slices.DeleteFunc(snap.Edges, func(e EdgeInfo) bool { return !known[e.From] || !known[e.To] })
	}
	slices.SortFunc(snap.Tasks, func(a, b TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(snap.Edges, func(a, b EdgeInfo) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	snap.Edges = slices.Compact(snap.Edges)
	return snap
}

// Outstanding returns the tasks that are not complete, as at most that many kinds: first kinds
// that wait for no other task, and of these the largest. more counts the tasks of other kinds.
func (g *Graph) Outstanding(kinds int) (list []Outstanding, more int) {
	counts := make(outstanding)
	for _, s := range g.scopes() {
		s.lock()
		counts.addLocked(s.children, nil)
		s.unlock()
	}
	return counts.list(kinds)
}

// Outstanding is [Graph.Outstanding] for the scope's own tasks.
func (s *Scope) Outstanding(kinds int) (list []Outstanding, more int) {
	return s.outstandingOf(nil, kinds)
}

// Outstanding is [Scope.Outstanding] for those tasks of the group that are children of its region's task.
func (g *Group) Outstanding(kinds int) (list []Outstanding, more int) {
	g.mu.Lock()
	s := g.scope
	g.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	return s.outstandingOf(g, kinds)
}

// outstandingOf is Outstanding for the tasks of a group, nil for all.
func (s *Scope) outstandingOf(in *Group, kinds int) (list []Outstanding, more int) {
	counts := make(outstanding)
	s.lock()
	counts.addLocked(s.children, in)
	s.unlock()
	return counts.list(kinds)
}

// outstanding are the numbers of incomplete tasks of each kind, which is an Outstanding without a count.
type outstanding map[Outstanding]int

// addLocked counts those of the tasks of a scope that are not complete and belong to a group; nil stands for any.
func (o outstanding) addLocked(nodes []*Node, in *Group) {
	for _, n := range nodes {
		if !n.phase.complete() && !n.notes.has(joining) && in.encloses(n.specials().group) {
			o[Outstanding{Label: n.label, Domain: n.domain, State: n.phase.state(), AwaitsEvent: n.awaitsEventLocked()}]++
		}
	}
}

// list returns the kinds and what more there is, as Graph.Outstanding does.
func (o outstanding) list(kinds int) (list []Outstanding, more int) {
	for kind, count := range o {
		kind.Count = count
		list = append(list, kind)
	}
	slices.SortFunc(list, func(a, b Outstanding) int {
		return cmp.Or(
			cmp.Compare(min(b.State, StateStarted), min(a.State, StateStarted)),
			cmp.Compare(b.Count, a.Count), cmp.Compare(a.Label, b.Label), cmp.Compare(a.State, b.State))
	})
	if len(list) > kinds {
		for _, kind := range list[kinds:] {
			more += kind.Count
		}
		list = list[:kinds]
	}
	return list, more
}

// awaitsEventLocked reports whether the task would be complete if its event were fulfilled.
func (n *Node) awaitsEventLocked() bool {
	over := n.phase == phaseFinished || n.phase == phaseExecuted
	return over && n.left == 1 && n.traits.has(detached) && !n.notes.has(fulfilled)
}

// infoLocked describes the task.
func (n *Node) infoLocked() TaskInfo {
	i := TaskInfo{
		ID: n.seq, Parent: n.scope.id, Label: n.label, Domain: n.domain,
		Included: n.notes.has(included), State: n.phase.state(), Failure: n.failureLocked(),
	}
	for k := range n.items {
		a := &n.items[k]
		i.Depend = append(i.Depend, Depend{Kind: a.kind, Ptr: a.ptr, Size: uint64(a.loc.size)})
	}
	return i
}
