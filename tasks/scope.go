package tasks

import (
	"context"
	"fmt"
	"sync"
)

// maxSpare bounds the nodes, and the locations, that a scope keeps for reuse.
const maxSpare = 4096

// recents is the number of recent locations, a power of two.
const recents = 256

// family is one scope, or several that transparent tasks connect: their tasks
// can follow each other, so they share a lock.
type family struct {
	mu sync.Mutex
	// created numbers the tasks; id and lastID are the rest of a block of numbers
	// in the whole graph.
	created, id, lastID uint64
	// edges are counted here until flush; counted is what created was then.
	edges, counted uint64
	// found are the predecessors of the task that is being added, and completing
	// the tasks that are: working memory.
	found, completing []*Node
	// exported are the scopes of complete exporting tasks among the predecessors.
	exported []*Scope
}

// Scope holds the children of one task region: dependences hold among them,
// and Wait waits for them.
type Scope struct {
	graph  *Graph
	family *family
	// id is that of the task whose children these are, 0 for the initial task.
	id uint64

	// All below is guarded by family.mu.

	// outer is the scope from which the children import: they follow its tasks
	// made before that seq.
	outer  *Scope
	before uint64
	// exporters counts the exporting tasks of this scope that are not gone.
	// onlookers counts those, and the importing tasks from which children can see
	// this scope: the histories are kept whole for them.
	exporters, onlookers int
	// lingerer is the complete exporting task whose children these are; lingering
	// counts the children that are such. exported are the scopes of included ones.
	lingerer  *Node
	lingering int
	exported  []*Scope

	live int
	// children are those that are not gone, in no order.
	children []*Node

	index index
	// epoch counts the tasks with omp_all_memory, which is the location everything.
	epoch      uint64
	everything location
	// The heads of lists: of all locations but those kept for the poison alone,
	// and of these. dead counts the former that are of no task.
	locations, poisoned location
	dead                int
	scratch             []*location
	// recent are locations that items named of late, by address: most are named
	// again. A scope of few tasks, which located counts up to, has none.
	recent  *[recents]*location
	located int

	spareNodes             *Node
	spareLocations         *location
	spareNodeCount, spares int

	waiters      []*waiter
	spareWaiters []*waiter
	// failures are those that no wait under way will report.
	failures failures

	// registered: the scope is in the graph's list, which newer and older link under
	// the graph's lock.
	registered   bool
	newer, older *Scope
}

// Task describes a task to add.
type Task struct {
	// Label names the task in errors and graphs.
	Label string
	// Domain says who can keep the task's order.
	Domain Domain
	// Included: the generating construct waits for the task and returns its
	// failure, so no Wait of the scope reports it. The caller holds the node.
	Included bool
	// Held: the caller holds the node, until Release.
	Held   bool
	Depend []Depend
	Runner Runner
	// Recycler hears when the Runner is let go of. May be nil.
	Recycler Recycler
	// Context drops the task when it ends before the task starts. May be nil.
	Context context.Context
	// Group is the innermost taskgroup that the task belongs to, or nil.
	Group *Group
	// Always: the task is run whatever becomes of its predecessors, its taskgroup
	// and its context, because it gives something back.
	Always bool
	// ID, if not nil, gets the task's number in snapshots before the task can start.
	ID *uint64
	// Event, if not nil, makes the task detachable; Add sets it before the task
	// can start.
	Event *Event
	// Transparency is that of a task whose children's scope is Inner, from
	// NewInner.
	Transparency Transparency
	Inner        *Scope
}

// firstID takes the next block of numbers in the graph and returns its first: tasks
// are numbered in the order of their making as far as one family goes, and all if
// the graph is kept.
func (f *family) firstID(g *Graph) uint64 {
	block := uint64(256)
	if g.keep {
		block = 1
	}
	f.lastID = g.ids.Add(block)
	f.id = f.lastID - block + 1
	return f.id
}

// flush hands the counts on to the graph.
func (f *family) flush(g *Graph) {
	g.tasks.Add(f.created - f.counted)
	g.edges.Add(f.edges)
	f.counted, f.edges = f.created, 0
}

func (s *Scope) lock()   { s.family.mu.Lock() }
func (s *Scope) unlock() { s.family.mu.Unlock() }

// Add makes a task of the scope, with a dependence on each earlier sibling
// that the items of depend name, and puts it into w if nothing holds it back.
// The node is for the task's Runner, and for a caller who holds it. On an error
// nothing was added. Add keeps nothing of t.Depend itself.
func (s *Scope) Add(t *Task, w *Work) (*Node, error) {
	for k := range t.Depend {
		if !t.Depend[k].valid() {
			return nil, fmt.Errorf("task %q: %w", t.Label, t.Depend[k].check(k))
		}
	}
	f := s.family
	f.mu.Lock()
	n := s.newNode()
	f.created++
	f.id++
	n.seq, n.id = f.created, f.id
	n.label, n.domain, n.runner = t.Label, t.Domain, t.Runner
	if t.Recycler != nil {
		n.recycler = t.Recycler
	}
	n.waiting, n.left, n.refs = 1, 1, 1
	s.live++
	n.place = len(s.children)
	s.children = append(s.children, n)
	if t.special() || f.id > f.lastID || !s.registered || s.graph.keep {
		s.addSpecial(n, t)
	}
	f.found = f.found[:0]
	if len(t.Depend) > 0 {
		s.depend(n, t.Depend)
		if s.further() {
			s.followFurther(n)
		}
	}
	if n.domain == AnyDomain {
		n.domain = s.commonDomain()
	}
	if n.imports || n.exports {
		n.look(1)
	}
	if len(f.found) > 0 {
		s.edges(n)
	}
	if n.waiting == 1 && n.failedBy == nil && !n.locks {
		n.waiting, n.state = 0, StateStarted
		w.push(n)
	} else {
		n.release(w)
	}
	f.mu.Unlock()
	return n, nil
}

// special reports whether the task has more to it than a runner and a depend
// clause.
func (t *Task) special() bool {
	return t.Included || t.Held || t.Context != nil || t.Group != nil ||
		t.ID != nil || t.Event != nil || t.Inner != nil || t.Always
}

// addSpecial does for a new task what most do not need.
func (s *Scope) addSpecial(n *Node, t *Task) {
	if !s.registered {
		s.register()
	}
	if s.family.id > s.family.lastID {
		n.id = s.family.firstID(s.graph)
	}
	if s.graph.keep {
		s.graph.keepNode(n)
	}
	if t.Included || t.Held {
		n.included = t.Included
		n.refs++
	}
	n.always = t.Always
	if t.Context != nil && t.Context.Done() != nil {
		n.ctx, n.conditional = t.Context, !t.Always
	}
	if t.Group != nil {
		n.group = t.Group
		n.conditional = !t.Always
		n.group.add()
	}
	if t.ID != nil {
		*t.ID = n.id
	}
	if t.Event != nil {
		n.detached = true
		n.left++
		*t.Event = Event{n, n.generation}
	}
	if t.Inner == nil {
		return
	}
	n.inner = t.Inner
	n.inner.id = n.id
	n.exports, n.imports = t.Transparency&Export != 0, t.Transparency&Import != 0
	if n.imports {
		n.inner.outer, n.inner.before = s, n.seq
	}
}

// depend makes the accesses of the task's depend items, one for each section,
// and collects the tasks of the scope that n follows by them. An item does not
// find the task itself, whatever other items have recorded of it.
func (s *Scope) depend(n *Node, items []Depend) {
	if len(items) > cap(n.items) {
		n.items = make([]access, 0, len(items))
	}
	n.items = n.items[:0]
	for k := range items {
		d := &items[k]
		c := d.Kind.class()
		if c == classMutex && n.imports {
			// Its children follow earlier takers of the storage: none of these may wait
			// for it.
			c = classOut
		}
		var l *location
		switch {
		case d.Kind.AllMemory():
			l = &s.everything
			l.refs++
		case d.empty():
			continue
		default:
			at := d.section()
			if s.recent != nil {
				if l = s.recent[at.start>>3%recents]; l != nil && l.section == at && l.poison == nil {
					if l.refs == 0 {
						s.dead--
					}
					l.refs++
					break
				}
			}
			l = s.locate(at)
		}
		if l.seen == n.seq {
			l.refs--
			s.again(n, l, c)
			continue
		}
		l.seen = n.seq
		n.items = n.items[:len(n.items)+1]
		a := &n.items[len(n.items)-1]
		a.node, a.loc, a.class, a.kind, a.ptr = n, l, c, d.Kind, d.Ptr
		if s.plain(l) {
			// As follow and record do, where there is nothing else to it.
			set := l.cur
			if set != nil && !ordered[l.class][c] {
				set = l.prev
			}
			for ; set != nil; set = set.next {
				if set.node.visited != n.seq {
					s.meet(set.node, n)
				}
			}
			if c == classOut || l.class != c {
				l.prev, l.cur, l.class = l.cur, nil, c
			}
			a.push(&l.cur)
		} else {
			s.follow(n, l, c)
			s.record(a)
		}
		if c == classMutex {
			n.locks = true
		}
	}
}

// plain reports whether the location's two sets are all there is to its history.
func (s *Scope) plain(l *location) bool {
	return len(l.overlaps) == 0 && l.poison == nil && l.epoch == s.epoch && s.onlookers == 0 && l != &s.everything
}

// again is for a section that the task names once more: with several types, it
// excludes all that any of them does.
func (s *Scope) again(n *Node, l *location, c class) {
	locks := false
	for i := range n.items {
		a := &n.items[i]
		if a.loc == l && a.class != c && a.class != classOut {
			a.leave()
			a.class, a.kind = classOut, DependInOut
			s.follow(n, l, classOut)
			s.record(a)
		}
		locks = locks || a.class == classMutex
	}
	n.locks = locks
}

// follow collects the tasks of the scope that n follows by one item.
func (s *Scope) follow(n *Node, l *location, c class) {
	if l == &s.everything {
		if allMemoryOrders {
			s.followOn(n, l, classOut)
		}
		if !allMemoryFollows {
			return
		}
		for l := s.locations.after; l != nil && l != &s.locations; l = l.after {
			s.followOn(n, l, classOut)
		}
		for l := s.poisoned.after; l != nil && l != &s.poisoned; l = l.after {
			n.infect(l, classOut)
		}
		return
	}
	s.followOn(n, l, c)
	for i := range l.overlaps {
		s.followOn(n, l.overlaps[i].with, c)
	}
}

// followOn collects the tasks that n follows because it uses the location, or
// one that overlaps it, as class says.
func (s *Scope) followOn(n *Node, l *location, c class) {
	if l.poison != nil {
		n.infect(l, c)
	}
	if s.exporters > 0 {
		s.followWhole(n, l, c)
		return
	}
	if l.epoch != s.epoch {
		return
	}
	set := l.cur
	if set != nil && !ordered[l.class][c] {
		set = l.prev
	}
	for ; set != nil; set = set.next {
		s.meet(set.node, n)
	}
}

// followWhole is followOn where each predecessor counts, because it may be an
// exporting task.
func (s *Scope) followWhole(n *Node, l *location, c class) {
	for _, set := range [...]*access{l.cur, l.prev, l.older} {
		for a := set; a != nil; a = a.next {
			if ordered[a.class][c] {
				s.meet(a.node, n)
			}
		}
	}
}

// followFurther collects the tasks that n follows by omp_all_memory, and those of
// other scopes that transparent tasks let it see.
func (s *Scope) followFurther(n *Node) {
	if len(n.items) == 0 {
		return
	}
	if allMemoryOrders && (s.everything.cur != nil || s.everything.poison != nil) {
		s.followOn(n, &s.everything, classOut)
	}
	for inner := s; inner.outer != nil; inner = inner.outer {
		s.followIn(n, inner.outer, inner.before)
	}
	if len(s.exported) > 0 {
		kept := s.exported[:0]
		for _, inner := range s.exported {
			if inner.lasting() {
				kept = append(kept, inner)
				s.followIn(n, inner, ^uint64(0))
			}
		}
		clear(s.exported[len(kept):])
		s.exported = kept
	}
	s.followChildren(n)
}

// further reports whether there may be something for followFurther to find.
func (s *Scope) further() bool {
	return s.everything.cur != nil || s.everything.poison != nil || s.outer != nil ||
		len(s.exported) > 0 || len(s.family.exported) > 0
}

// allMemoryOrders is false, and later tasks do not follow one with
// omp_all_memory, or allMemoryFollows, and it follows none, only in the test that
// shows that they matter.
var allMemoryOrders, allMemoryFollows = true, true

// meet collects from as a predecessor of n.
func (s *Scope) meet(from, n *Node) {
	if from.visited == n.seq || from == n {
		return
	}
	from.visited = n.seq
	if from.state == StateComplete {
		if from.exports && from.inner.lasting() {
			s.family.exported = append(s.family.exported, from.inner)
		}
		if s.graph.keep {
			s.graph.keepEdge(from, n, false)
			s.family.edges++
		}
		return
	}
	s.family.found = append(s.family.found, from)
}

// infect makes n fail if a failure at the location is one that it follows.
func (n *Node) infect(l *location, c class) {
	if l.poison == nil {
		return
	}
	if l.clean() {
		if l.refs > 0 {
			l.poison, l.keep = nil, nil
		}
		return
	}
	for k, failed := range l.poison {
		if last := len(failed) - 1; last >= 0 && ordered[k][c] && n.failedBy == nil {
			n.failedBy = failed[last].root
		}
	}
}

// record makes a the newest access of its location.
func (s *Scope) record(a *access) {
	a.join(s)
	if a.loc == &s.everything {
		// Whatever comes later follows the task, and with it all before.
		s.epoch++
		s.everything.epoch = s.epoch
	}
}

// commonDomain returns the domain that all predecessors found have, if it is a
// device's, else Host.
func (s *Scope) commonDomain() Domain {
	d := Host
	for i, from := range s.family.found {
		if i > 0 && from.domain != d {
			return Host
		}
		d = from.domain
	}
	return d
}

// edges makes n a successor of the tasks found.
func (s *Scope) edges(n *Node) {
	for _, from := range s.family.found {
		if n.domain == Host && !s.graph.keep {
			n.waiting++
			from.successors = append(from.successors, edge{to: n})
			continue
		}
		s.edge(from, n)
	}
	s.family.edges += uint64(len(s.family.found))
	if cap(s.family.found) > maxSpare {
		s.family.found = nil
	}
	s.family.found = s.family.found[:0]
}

func (s *Scope) edge(from, to *Node) {
	if s.graph.keep {
		s.graph.keepEdge(from, to, false)
	}
	// The event of a detachable task is the host's to see.
	onDevice := from.domain == to.domain && to.domain != Host && !from.detached
	if onDevice {
		to.predecessors = append(to.predecessors, from)
		from.refs++
		to.left++
	}
	released := onDevice && from.state == StatePlaced
	if !released {
		to.waiting++
	}
	from.successors = append(from.successors, edge{to: to, onDevice: onDevice, released: released})
}

// remove takes n out of the scope's children.
func (s *Scope) remove(n *Node) {
	last := len(s.children) - 1
	moved := s.children[last]
	s.children[n.place], moved.place = moved, n.place
	s.children[last] = nil
	s.children = s.children[:last]
	if last < cap(s.children)/8 && cap(s.children) > maxSpare {
		s.shrink()
	}
}

// shrink gives memory back of what was a long list of children.
func (s *Scope) shrink() {
	s.children = append(make([]*Node, 0, max(2*len(s.children), maxSpare)), s.children...)
}

// poisonItems leaves the failure where later tasks find it.
func (n *Node) poisonItems(t *tally) {
	for i := range n.items {
		a := &n.items[i]
		if a.loc.poison == nil {
			a.loc.poison = new([classes][]*tally)
		}
		if failed := a.loc.poison[a.class]; len(failed) == 0 || failed[len(failed)-1] != t {
			a.loc.poison[a.class] = append(failed, t)
		}
		if a.loc.keep == nil {
			a.loc.keep = a.ptr
		}
	}
}
