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
	// created numbers the tasks.
	created uint64
	// found are the predecessors of the task that is being added, and completing
	// the tasks that are: working memory.
	found, completing []*Node
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
	// importers counts the importing tasks of this scope that are not complete.
	importers int
	// lingerer is the complete exporting task whose children these are; lingering
	// counts the children that are such. exported are the scopes of included ones.
	lingerer  *Node
	lingering int
	exported  []*Scope

	live int
	// first and last are the ends of the list of the children that are not gone.
	first, last *Node

	index index
	// epoch counts the tasks with omp_all_memory, which is the location everything.
	epoch      uint64
	everything location
	// The heads of lists: locations with tasks that are not complete, without, and
	// those kept for the poison alone.
	liveLocations, deadLocations, poisoned location
	dead                                   int
	scratch                                []*location

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
	// Context drops the task when it ends before the task starts. May be nil.
	Context context.Context
	// Group is the innermost taskgroup that the task belongs to, or nil.
	Group *Group
	// Event, if not nil, makes the task detachable; Add sets it before the task
	// can start.
	Event *Event
	// Transparency is that of a task whose children's scope is Inner, from
	// NewInner.
	Transparency Transparency
	Inner        *Scope
}

func (s *Scope) lock()   { s.family.mu.Lock() }
func (s *Scope) unlock() { s.family.mu.Unlock() }

// Add makes a task of the scope, with a dependence on each earlier sibling
// that the items of depend name, and puts it into w if nothing holds it back.
// The node is for the task's Runner, and for a caller who holds it. On an error
// nothing was added. Add keeps nothing of t.Depend itself.
func (s *Scope) Add(t *Task, w *Work) (*Node, error) {
	for k := range t.Depend {
		if err := t.Depend[k].check(k); err != nil {
			return nil, fmt.Errorf("task %q: %w", t.Label, err)
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
	n.id = s.graph.tasks.Add(1)
	n.label, n.domain, n.runner, n.group = t.Label, t.Domain, t.Runner, t.Group
	n.included, n.detached = t.Included, t.Event != nil
	n.exports, n.imports, n.inner = t.Transparency&Export != 0, t.Transparency&Import != 0, t.Inner
	n.state, n.dropped, n.fulfilled = StateWaiting, false, false
	n.ctx = nil
	if t.Context != nil && t.Context.Done() != nil {
		n.ctx = t.Context
	}
	n.waiting, n.left, n.refs = 1, 1, 1
	if t.Event != nil {
		n.left++
		*t.Event = Event{n, n.generation}
	}
	if t.Included || t.Held {
		n.refs++
	}
	s.live++
	s.listed(n, true)
	n.group.add()

	s.family.found = s.family.found[:0]
	n.locks = false
	if len(t.Depend) > 0 {
		s.name(n, t.Depend)
		for i := range n.items {
			s.follow(n, &n.items[i])
		}
		s.followFurther(n)
		// Recording comes after every look-up, so that no item of the task finds
		// the task itself.
		for i := range n.items {
			s.record(&n.items[i])
		}
	}
	if n.domain == AnyDomain {
		n.domain = s.commonDomain()
	}
	if n.inner != nil {
		n.inner.id = n.id
	}
	if n.imports {
		n.inner.outer, n.inner.before = s, n.seq
		s.importers++
	}
	s.edges(n)
	n.release(w)
	return n, nil
}

// name makes the accesses of the task's depend items, one for each section: a
// section named with several types excludes all that any of them does.
func (s *Scope) name(n *Node, items []Depend) {
	if len(items) > cap(n.items) {
		n.items = make([]access, 0, len(items))
	}
	n.items = n.items[:0]
	for k := range items {
		d := &items[k]
		a := access{node: n, class: d.Kind.class(), kind: d.Kind, ptr: d.Ptr}
		switch {
		case d.Kind.AllMemory():
			a.loc, a.ptr = &s.everything, nil
			s.everything.refs++
		case d.empty():
			continue
		default:
			a.loc = s.locate(d.section())
		}
		if a.loc.seen == n.seq {
			a.loc.refs--
			for i := range n.items {
				if same := &n.items[i]; same.loc == a.loc && same.class != a.class {
					same.class, same.kind = classOut, DependInOut
				}
			}
			continue
		}
		a.loc.seen = n.seq
		n.items = append(n.items, a)
	}
	for i := range n.items {
		n.locks = n.locks || n.items[i].class == classMutex
	}
}

// follow collects the tasks of the scope that n follows by one item.
func (s *Scope) follow(n *Node, a *access) {
	if a.loc == &s.everything {
		if !allMemoryFollows {
			return
		}
		for l := s.liveLocations.after; l != nil && l != &s.liveLocations; l = l.after {
			s.followOn(n, l, classOut)
		}
		for l := s.poisoned.after; l != nil && l != &s.poisoned; l = l.after {
			n.infect(l, classOut)
		}
		return
	}
	s.followOn(n, a.loc, a.class)
	for i := range a.loc.overlaps {
		s.followOn(n, a.loc.overlaps[i].with, a.class)
	}
}

// followOn collects the tasks that n follows because it uses the location, or
// one that overlaps it, as class says.
func (s *Scope) followOn(n *Node, l *location, c class) {
	n.infect(l, c)
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

// followFurther collects the tasks that n follows by omp_all_memory, and those of
// other scopes that transparent tasks let it see.
func (s *Scope) followFurther(n *Node) {
	if len(n.items) == 0 {
		return
	}
	if allMemoryOrders {
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
			s.followIn(n, from.inner, ^uint64(0))
		}
		if s.graph.keep {
			s.graph.keepEdge(from, n, false)
			s.graph.edges.Add(1)
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
	if k := len(s.family.found); k > 0 {
		s.graph.edges.Add(uint64(k))
		s.family.found = s.family.found[:0]
	}
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

// listed puts n into the list of the scope's tasks, or takes it out.
func (s *Scope) listed(n *Node, in bool) {
	if in {
		n.before, n.after = s.last, nil
		if s.last == nil {
			s.first = n
		} else {
			s.last.after = n
		}
		s.last = n
		s.graph.keepNode(n)
		return
	}
	if n.before == nil {
		s.first = n.after
	} else {
		n.before.after = n.after
	}
	if n.after == nil {
		s.last = n.before
	} else {
		n.after.before = n.before
	}
	n.before, n.after = nil, nil
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
