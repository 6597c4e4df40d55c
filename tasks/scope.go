package tasks

import (
	"context"
	"fmt"
	"sync"
)

// maxSpare bounds the nodes, and the locations, that a scope keeps for reuse.
const maxSpare = 4096

// family is one scope, or several that transparent tasks connect: their tasks
// can follow each other, so they share a lock.
type family struct {
	mu sync.Mutex
	// created numbers the tasks; id and lastID are the rest of a block of numbers
	// in the whole graph.
	created, id, lastID uint64
	// tasks and edges are counted here until flush.
	tasks, edges uint64
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

// nextID numbers a task in the graph: in the order of their making as far as the
// tasks of one family go, and of all if the graph is kept.
func (f *family) nextID(g *Graph) uint64 {
	f.tasks++
	if f.id == f.lastID {
		block := uint64(256)
		if g.keep {
			block = 1
		}
		f.lastID = g.ids.Add(block)
		f.id = f.lastID - block
	}
	f.id++
	return f.id
}

// flush hands the counts on to the graph.
func (f *family) flush(g *Graph) {
	g.tasks.Add(f.tasks)
	g.edges.Add(f.edges)
	f.tasks, f.edges = 0, 0
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
	s.lock()
	defer s.unlock()
	if !s.registered {
		s.register()
	}
	n := s.newNode()
	s.family.created++
	n.seq = s.family.created
	n.id = s.family.nextID(s.graph)
	n.label, n.domain, n.runner, n.recycler, n.group = t.Label, t.Domain, t.Runner, t.Recycler, t.Group
	n.included, n.detached = t.Included, t.Event != nil
	n.exports, n.imports, n.inner = t.Transparency&Export != 0, t.Transparency&Import != 0, t.Inner
	n.state, n.dropped, n.fulfilled = StateWaiting, false, false
	n.ctx = nil
	if t.Context != nil && t.Context.Done() != nil {
		n.ctx = t.Context
	}
	n.conditional = n.ctx != nil || n.group != nil
	n.waiting, n.left, n.refs = 1, 1, 1
	if t.Event != nil {
		n.left++
		*t.Event = Event{n, n.generation}
	}
	if t.Included || t.Held {
		n.refs++
	}
	s.live++
	n.place = len(s.children)
	s.children = append(s.children, n)
	if s.graph.keep {
		s.graph.keepNode(n)
	}
	if n.group != nil {
		n.group.add()
	}

	s.family.found = s.family.found[:0]
	n.locks = false
	if len(t.Depend) > 0 {
		s.depend(n, t.Depend)
		s.followFurther(n)
	}
	if n.domain == AnyDomain {
		n.domain = s.commonDomain()
	}
	if n.inner != nil {
		n.inner.id = n.id
	}
	if t.ID != nil {
		*t.ID = n.id
	}
	if n.imports || n.exports {
		n.look(1)
	}
	if n.imports {
		n.inner.outer, n.inner.before = s, n.seq
	}
	if len(s.family.found) > 0 {
		s.edges(n)
	}
	n.release(w)
	return n, nil
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
		var l *location
		switch {
		case d.Kind.AllMemory():
			l = &s.everything
			l.refs++
		case d.empty():
			continue
		default:
			l = s.locate(d.section())
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
		s.follow(n, l, c)
		s.record(a)
		if c == classMutex {
			n.locks = true
		}
	}
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
	n.infect(l, c)
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
	for i, from := range s.family.found {
		s.family.found[i] = nil
		s.edge(from, n)
	}
	s.family.edges += uint64(len(s.family.found))
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
	if last < cap(s.children)/8 && last >= 1024 {
		s.children = append(make([]*Node, 0, 2*last), s.children...)
	}
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
