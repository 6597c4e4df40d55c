package tasks

import (
	"context"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
)

// Each access of a set follows all accesses of the set before: m behind n are m·n edges. So when a second one has
// followed a large set, the graph puts a join in the place of that set: a task of its own, without work, which follows
// the set and which the third access and all after it follow. That leaves 3·n + m edges. Tasks are ordered, and fail, as
// if there were none:
//
//   - It has the domain of the tasks that it follows. A set with tasks of several domains gets a join for each, because
//     what a device orders need not wait for the host.
//   - It is no task of the program: it is not counted among the tasks, never fails, and always runs. It passes failures
//     of its predecessors on at once to the dependents that it has by then. Later ones learn of them as they would
//     without it: from the storage (see failedStorage), and from predecessors that have failed and are not complete. The
//     failure of an exporting task's child reaches those that follow the task through others only while some child is not
//     complete (see trail): behind a join it has one task more to pass through.
//   - It takes no part in exclusion, whatever the class of the set.
//
// There are no joins in kept graphs, which have every edge, before tasks with witnesses, which are told of each
// predecessor, where sections overlap in part, and where transparent tasks look into other scopes.

// largeSet is the number of accesses above which a set is joined. An edge costs 0.05 to 0.15 µs, a join on a device 2 µs.
// Builds that check invariants join the smallest sets, so that their tests have many joins.
func largeSet() int {
	if invariants.Enabled {
		return 1
	}
	return 32
}

// joinLabel is the label of joins in snapshots.
const joinLabel = "join of a set"

// JoinSets has the graph put joins between large sets of tasks, so that m tasks behind a set of n do not have m·n edges.
// r runs them as it would run any join; what it completes them with is ignored. JoinSets must be called before the
// first task is added.
func (g *Graph) JoinSets(r Runner) { g.joiner, g.largeSet = r, largeSet() }

// joinSetsLocked joins the large sets that n has followed as a second access: more are likely to follow them.
func (s *Scope) joinSetsLocked(n *Node, w *Work) {
	if s.graph.joiner == nil || s.graph.keep || n.traits.has(witnessed) || s.connectedLocked() {
		return
	}
	for i := range n.items {
		l := n.items[i].loc
		if l.cur == &n.items[i] && l.cur.next != nil && s.simpleLocked(l) && s.joinableLocked(l.prev) {
			s.joinSetLocked(l, w)
		}
	}
}

// joinableLocked reports whether a set is large and can be joined.
func (s *Scope) joinableLocked(set *access) bool {
	size := 0
	for a := set; a != nil; a = a.next {
		if a.node.traits.has(witnessed|exporting) || a.node.phase.complete() {
			return false
		}
		size++
	}
	return size > s.graph.largeSet
}

// joinSetLocked puts joins in the place of l.prev.
func (s *Scope) joinSetLocked(l *location, w *Work) {
	set := l.prev
	l.prev = nil
	for set != nil {
		j := s.nextLocked(joinLabel, set.node.domain, s.graph.joiner)
		s.joins++
		s.family.tasks-- // below zero if it was flushed meanwhile, which the sum takes up
		j.notes = joining
		j.items = append(j.items[:0], access{node: j, loc: l, class: set.class, kind: set.kind, ptr: set.ptr})
		l.refs++
		j.items[0].push(&l.prev)
		var others *access
		for a := set; a != nil; {
			next := a.next
			a.next, a.prev = nil, nil
			if a.node.domain == j.domain {
				s.meetLocked(a.node, j)
			} else {
				a.push(&others)
			}
			a = next
		}
		set = others
		s.edgesLocked(j)
		j.toLocked(phaseWaiting)
		j.releaseLocked(w)
	}
}

// passThroughLocked is edge.passLocked for an edge from n to the join.
func (j *Node) passThroughLocked(n *Node, failure *Error) {
	x := j.toSpecialLocked()
	x.failing = slices.DeleteFunc(x.failing, func(p *Node) bool { return p == n })
	if !n.phase.complete() {
		x.failing = append(x.failing, n)
	}
	for i := range j.successors {
		j.successors[i].passLocked(n, failure)
	}
}

// passFailingLocked passes on to a new dependent of from what it would learn from each predecessor: it may have failed
// without being complete yet.
func (e *edge) passFailingLocked(from *Node) {
	e.passLocked(from, from.rootFailureLocked())
	for _, p := range from.specials().failing {
		e.passLocked(p, p.rootFailureLocked())
	}
}

// AwaitJoins waits, until ctx ends, for joins in scopes where all tasks are complete: taskgroups and undeferred tasks do not
// wait for joins, which end by themselves. The caller makes sure that no tasks are added.
func (g *Graph) AwaitJoins(ctx context.Context) {
	for _, s := range g.scopes() {
		for j := s.holdJoin(); j != nil; j = s.holdJoin() {
			err := j.Wait(ctx, nil)
			j.Release()
			if err != nil {
				return
			}
		}
	}
}

// holdJoin returns a join that is not complete, which the caller has to release, or nil if there is none or if tasks are not
// complete.
func (s *Scope) holdJoin() *Node {
	s.lock()
	defer s.unlock()
	if s.joins == 0 || s.live > s.joins {
		return nil
	}
	for _, n := range s.children {
		if n.notes.has(joining) && !n.phase.complete() {
			n.refs++
			return n
		}
	}
	return nil
}
