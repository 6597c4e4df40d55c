package tasks

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// maxSpare bounds the nodes, and the locations, that a scope keeps for reuse.
const maxSpare = 4096

// recents is the number of recent locations, a power of two.
const recents = 256

// family is one scope, or several that transparent tasks connect: their tasks
// can follow each other, so they share a lock.
type family struct {
	mu lockrank.Mutex[lockrank.Family]
	// last is the number of the last task, end the end of the block of the graph's
	// numbers that it is from.
	last, end uint64
	// tasks and edges are counted here until flushLocked: tasks up to the number counted.
	tasks, edges, counted uint64
	// found are the predecessors of the task that is being added, and completing
	// the tasks that are: working memory.
	found, completing []*Node
	// trails are those of its predecessors that it has not followed yet, and marks counts
	// the searches through trails.
	trails []*trail
	marks  uint64
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
	// imported are the trails of the importing task whose children these are.
	imported []*trail
	// onlookers counts the importing tasks that are not gone and from which children
	// can see this scope. The histories are kept whole for them, up to that seq.
	onlookers  int
	overlooked uint64
	// trail, of the complete exporting task whose children these are, leads here.
	trail *trail
	// lingering counts the complete children that stay for their trails, and
	// keptLingering those that did after the last sweep. exported are the scopes of
	// included exporting tasks.
	lingering, keptLingering int
	exported                 []*Scope

	live int
	// sealed, if not nil, is why the scope takes no task more.
	sealed error
	// children are those that are not gone, in no order.
	children []*Node

	// index has the locations whose sections no others overlap.
	index index
	// tangle has what is shared in part, nil as long as nothing was.
	tangle *tangle
	// epoch counts the tasks with omp_all_memory, which is the location everything.
	epoch      uint64
	everything location
	// poison is the storage of tasks whose failures are not reported, nil if there is none.
	poison *poison
	// locations is the head of the list of all locations, of which dead counts those that
	// are of no task.
	locations location
	dead      int
	scratch   []*location
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
	// quiet: registered, and the graph is not kept.
	quiet bool
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
	// HostOrdered: the task starts when its predecessors are complete, those that the
	// device could keep included.
	HostOrdered bool
	// ID, if not nil, gets the task's number in snapshots before the task can start.
	ID *uint64
	// Event, if not nil, makes the task detachable; Add sets it before the task
	// can start.
	Event *Event
	// Transparency is that of a task whose children's scope is Inner, from
	// NewInner.
	Transparency Transparency
	Inner        *Scope
	// Witness hears what becomes of the task, or is nil. A task with one starts after
	// Node.Go.
	Witness Witness
}

// firstIDLocked takes the next block of numbers in the graph and returns its first: tasks
// are numbered in the order of their making as far as one family goes, and all if
// the graph is kept.
func (f *family) firstIDLocked(g *Graph) uint64 {
	block := uint64(256)
	if g.keep {
		block = 1
	}
	// The number that was one too many is given back.
	f.tasks += f.last - 1 - f.counted
	f.end = g.ids.Add(block)
	f.last = f.end - block + 1
	f.counted = f.last - 1
	return f.last
}

// flushLocked hands the counts on to the graph.
func (f *family) flushLocked(g *Graph) {
	g.tasks.Add(f.tasks + f.last - f.counted)
	g.edges.Add(f.edges)
	f.counted, f.tasks, f.edges = f.last, 0, 0
}

func (s *Scope) lock() { s.family.mu.Lock() }

func (s *Scope) unlock() { s.family.mu.Unlock() }

// Pass counts a task of the scope that is complete as soon as it is made: it has no
// dependences, and its work is done by the caller. It reports false where tasks that
// are complete are kept: then Add has to make it.
func (s *Scope) Pass() bool {
	if s.graph.keep {
		return false
	}
	s.lock()
	defer s.unlock()
	if s.sealed != nil {
		return false
	}
	s.family.tasks++
	return true
}

// Seal has Add return err from now on, but for tasks with Always set.
func (s *Scope) Seal(err error) {
	s.lock()
	defer s.unlock()
	s.sealed = err
}

// Add makes a task of the scope, with a dependence on each earlier sibling
// that the items of depend name, and puts it into w if nothing holds it back. Who adds
// a task with a witness calls Node.Go before w is run.
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
	if s.sealed != nil && !t.Always {
		f.mu.Unlock()
		return nil, fmt.Errorf("task %q: %w", t.Label, s.sealed)
	}
	n := s.newNodeLocked()
	n.toLocked(phaseCreated)
	f.last++
	n.seq = f.last
	n.label, n.domain, n.runner = t.Label, t.Domain, t.Runner
	if t.Recycler != nil {
		n.recycler = t.Recycler
	}
	n.waiting, n.left, n.refs = 1, 1, 1
	s.live++
	n.place = int32(len(s.children))
	s.children = append(s.children, n)
	if t.special() || f.last > f.end || !s.quiet {
		s.addSpecialLocked(n, t)
	}
	if len(t.Depend) > 0 {
		s.dependLocked(n, t.Depend)
		if s.furtherLocked() {
			s.followFurtherLocked(n)
		}
	}
	if n.domain == AnyDomain {
		n.domain = s.commonDomainLocked()
	}
	if n.traits.has(importing) {
		n.lookLocked(1)
	}
	if len(f.found) > 0 {
		s.edgesLocked(n)
	}
	switch {
	case n.waiting == 1 && n.failedBy == nil && !n.traits.has(exclusive):
		n.waiting = 0
		n.toLocked(phaseStarted)
		w.push(n)
	case n.witness == nil:
		n.toLocked(phaseWaiting)
		n.releaseLocked(w)
	}
	// One with a witness is let go by Go: others could let it start before the witness has
	// heard of it.
	f.mu.Unlock()
	return n, nil
}

// special reports whether the task has more to it than a runner and a depend
// clause.
func (t *Task) special() bool {
	return t.Included || t.Held || t.Context != nil || t.Group != nil ||
		t.ID != nil || t.Event != nil || t.Inner != nil || t.Always || t.HostOrdered || t.Witness != nil
}

// addSpecialLocked does for a new task what most do not need.
func (s *Scope) addSpecialLocked(n *Node, t *Task) {
	if !s.registered {
		s.register()
	}
	if s.family.last > s.family.end {
		n.seq = s.family.firstIDLocked(s.graph)
	}
	if s.graph.keep {
		s.graph.keepNode(n)
	}
	if t.Included || t.Held {
		if t.Included {
			n.notes |= included
		}
		n.refs++
	}
	if t.HostOrdered {
		n.traits |= hostOrdered
	}
	if t.Witness != nil {
		n.witness = t.Witness
		n.traits |= witnessed
	}
	if t.Context != nil && t.Context.Done() != nil {
		n.ctx = t.Context
	}
	if t.Group != nil {
		n.group = t.Group
		n.group.add()
	}
	if t.Always {
		n.traits |= always
	} else if n.ctx != nil || n.group != nil {
		n.traits |= conditional
	}
	if t.ID != nil {
		*t.ID = n.seq
	}
	if t.Event != nil {
		n.traits |= detached
		n.left++
		*t.Event = Event{n, n.generation}
	}
	if t.Inner == nil {
		return
	}
	n.inner = t.Inner
	n.inner.id = n.seq
	if t.Transparency&Export != 0 {
		n.traits |= exporting
	}
	if t.Transparency&Import != 0 {
		n.traits |= importing
		n.inner.outer, n.inner.before = s, n.seq
	}
}

// removeLocked takes n out of the scope's children.
func (s *Scope) removeLocked(n *Node) {
	last := len(s.children) - 1
	moved := s.children[last]
	s.children[n.place], moved.place = moved, n.place
	s.children[last] = nil
	s.children = s.children[:last]
	if last < cap(s.children)/8 && cap(s.children) > maxSpare {
		s.shrinkLocked()
	}
}

// shrinkLocked gives memory back of what was a long list of children.
func (s *Scope) shrinkLocked() {
	s.children = append(make([]*Node, 0, max(2*len(s.children), maxSpare)), s.children...)
}
