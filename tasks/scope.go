package tasks

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// maxSpare is the largest number of nodes, and of locations, that a scope keeps for reuse.
const maxSpare = 4096

// recents is the number of recent locations. The index of one is recentBits long: see section.recent.
const (
	recentBits = 8
	recents    = 1 << recentBits
)

// family is a scope, or several scopes that transparent tasks connect. Their tasks can depend on
// each other, so they share a lock.
type family struct {
	mu lockrank.Mutex[lockrank.Family]
	// last is the number of the last task, end the end of the block of numbers that the family
	// has from the graph.
	last, end uint64
	// tasks, how many of them are complete, and edges are counted here until flushLocked: tasks up to the
	// number counted.
	tasks, done, edges, counted uint64
	// found are the predecessors of the task that is being added, completing the tasks that are
	// being completed: scratch memory.
	found, completing []*Node
	// emptied are the calls due for WhenEmpty: their scopes have become empty.
	emptied []func(*Work)
	// trails are the trails of these predecessors that the task has not followed yet. marks
	// counts searches through trails.
	trails []*trail
	marks  uint64
}

// Scope holds the children of one task region: dependences exist between them, and Wait waits for
// them.
type Scope struct {
	graph  *Graph
	family *family
	// id is the number of the task whose children these are, 0 for the initial task.
	id uint64

	// The following fields are guarded by family.mu.

	// outer is the scope from which the children import: they can depend on its tasks that
	// were generated before the number before.
	outer  *Scope
	before uint64
	// imported are the trails of the importing task whose children these are.
	imported []*trail
	// onlookers counts the importing tasks that are not gone and whose children can see this
	// scope. The histories are kept complete for them, up to the number overlooked.
	onlookers  int
	overlooked uint64
	// trail leads to these children, if their parent is a complete exporting task.
	trail *trail
	// lingering counts the complete children that stay for their trails, keptLingering those
	// after the last sweep. exported are the scopes of included exporting tasks.
	lingering, keptLingering int
	exported                 []*Scope

	// live counts the children that are not complete, joins those of them that the graph has put between sets.
	live, joins int
	// emptied is the function that WhenEmpty has been given, or nil.
	emptied func(*Scope)
	// sealed, if not nil, is the error with which the scope refuses tasks.
	sealed error
	// children are those that are not gone, in no order.
	children []*Node

	// index has the locations whose sections do not overlap others.
	index index
	// tangle has the history of sections that overlap in part, nil if there were none.
	tangle *tangle
	// epoch counts the tasks with omp_all_memory, which is the location everything.
	epoch      uint64
	everything location
	// failedStorage records the storage of tasks with unreported failures, nil if there are none.
	failedStorage *failedStorage
	// locations is the head of the list of all locations, of which dead counts those without
	// references.
	locations location
	dead      int
	scratch   []*location
	// recent caches locations by address, because most are named again. A scope with few tasks,
	// which located counts, has no cache.
	recent  *[recents]*location
	located int

	// alone says that other scopes had left no nodes when this one had none to spare. It does not look again.
	alone          bool
	spareNodes     []*Node
	spareLocations *location
	spares         int // the number of spareLocations

	waiters      []*waiter
	spareWaiters []*waiter
	// failures are those that no wait in progress will report.
	failures failures

	// registered says that the scope is in the graph's list, which newer and older link;
	// guarded by the graph's lock.
	registered   bool
	newer, older *Scope
	// unkept says that the scope is registered and the graph is not kept.
	unkept bool
}

// Task describes a task to add.
type Task struct {
	// Label names the task in errors and graphs.
	Label string
	// Domain says who can order the task.
	Domain Domain
	// Included says that the generating construct waits for the task and returns its failure,
	// so that no Wait of the scope reports it. The caller holds the node.
	Included bool
	// Held says that the caller holds the node, until Release.
	Held   bool
	Depend []Depend
	// Runner executes the task.
	Runner Runner
	// Context drops the task if it ends before the task starts. May be nil.
	Context context.Context
	// Group is the innermost taskgroup of the task, or nil.
	Group *Group
	// Always says that the task runs whatever happens to its predecessors, its taskgroup and
	// its context, because it releases something.
	Always bool
	// HostOrdered says that the task starts when all its predecessors are complete, including
	// those that the device could order.
	HostOrdered bool
	// ID, if not nil, is set to the task's number before the task can start.
	ID *uint64
	// Event, if not nil, makes the task detachable; Add sets it before the task can start.
	Event *Event
	// Transparency is for a transparent task, whose children's scope is Inner, from NewInner.
	Transparency Transparency
	Inner        *Scope
	// Witness observes the task, or is nil. A task with a witness does not start before
	// Node.Go.
	Witness Witness
}

// takeIDsLocked takes the next block of numbers from the graph and makes its first the last one given. Tasks are
// numbered in the order in which they are generated within a family, and over all families if the
// graph is kept.
func (f *family) takeIDsLocked(g *Graph) {
	block := uint64(256)
	if g.keep {
		block = 1
	}
	// The number beyond the block was not used.
	f.tasks += f.last - 1 - f.counted
	f.end = g.ids.Add(block)
	f.last = f.end - block + 1
	f.counted = f.last - 1
}

// flushLocked adds the counts to the graph's.
func (f *family) flushLocked(g *Graph) {
	g.tasks.Add(f.tasks + f.last - f.counted)
	g.done.Add(f.done)
	g.edges.Add(f.edges)
	f.counted, f.tasks, f.done, f.edges = f.last, 0, 0, 0
}

func (s *Scope) lock() { s.family.mu.Lock() }

func (s *Scope) unlock() { s.family.mu.Unlock() }

// Pass counts a task of the scope that is complete at once: it has no dependences, and the caller
// does its work. It returns false if complete tasks are kept; then the task has to be added.
func (s *Scope) Pass() bool {
	if s.graph.keep {
		return false
	}
	s.lock()
	defer s.unlock()
	if s.sealed != nil {
		return false
	}
	if !s.registered {
		s.register()
	}
	s.family.tasks++
	s.family.done++
	return true
}

// Unpass undoes one Pass: the work has failed, and the task is added after all.
func (s *Scope) Unpass() {
	s.lock()
	defer s.unlock()
	// Below zero if they were flushed meanwhile, which the sums take up.
	s.family.tasks--
	s.family.done--
}

// OnDevice reports whether a task of a device's domain that is added next starts at once, whatever it
// depends on: each earlier task of the scope is complete, or has its position in the order of that device,
// and none has failed so that a task which depends on it would not be run.
func (s *Scope) OnDevice(d Domain) bool {
	s.lock()
	defer s.unlock()
	if s.connectedLocked() || s.failedStorage != nil {
		return false // it may depend on tasks of other scopes, or on one that has failed
	}
	for _, n := range s.children {
		if !n.phase.complete() && (n.domain != d || !n.phase.onDevice() || n.failedBy.Load() != nil || n.specials().failure != nil) {
			return false
		}
	}
	return true
}

// Seal makes Add return err from now on, except for tasks with Always.
func (s *Scope) Seal(err error) {
	s.lock()
	defer s.unlock()
	s.sealed = err
}

// Add adds a task to the scope, with a dependence on each earlier sibling that the items of
// t.Depend name, and puts it into w if it can start. The caller must call Node.Go before it runs
// w if the task has a witness. The node may be used by the task's Runner, and by the caller if it
// holds it. After an error nothing was added. Add does not retain t.Depend.
func (s *Scope) Add(t *Task, w *Work) (*Node, error) {
	for k := range t.Depend {
		if !t.Depend[k].valid() {
			return nil, fmt.Errorf("task %q: %w", t.Label, t.Depend[k].check(k))
		}
	}
	f := s.family
	f.mu.Lock()
	if err := s.sealed; err != nil && !t.Always {
		f.mu.Unlock()
		return nil, fmt.Errorf("task %q: %w", t.Label, err)
	}
	n := s.nextLocked(t.Label, t.Domain, t.Runner)
	if t.special() || !s.unkept {
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
	follows := len(f.found)
	if follows > 0 {
		s.edgesLocked(n)
	}
	// A task with a witness starts after Go, because others could otherwise start it
	// before the witness has observed it.
	switch {
	case n.waiting == 1 && n.failedBy.Load() == nil && !n.traits.has(exclusive):
		n.waiting = 0
		n.toLocked(phaseStarted)
		w.push(n)
	case !n.traits.has(witnessed):
		n.toLocked(phaseWaiting)
		n.releaseLocked(w)
	}
	if follows > s.graph.largeSet {
		s.joinSetsLocked(n, w)
	}
	f.mu.Unlock()
	return n, nil
}

// nextLocked begins the next task of the scope.
func (s *Scope) nextLocked(label string, d Domain, r Runner) *Node {
	n := s.newNodeLocked()
	n.toLocked(phaseCreated)
	f := s.family
	if f.last++; f.last > f.end {
		f.takeIDsLocked(s.graph)
	}
	n.seq = f.last
	// The node may have been another task's. A task that depended on that one and still waits must be able to
	// depend on this one too.
	n.visited = 0
	n.label, n.domain, n.runner = label, d, r
	n.waiting, n.left, n.refs = 1, 1, 1
	s.live++
	n.place = int32(len(s.children))
	s.children = append(s.children, n)
	return n
}

// special reports whether the task has more than a runner and a depend clause.
func (t *Task) special() bool {
	return t.Included || t.Held || t.Context != nil || t.Group != nil ||
		t.ID != nil || t.Event != nil || t.Inner != nil || t.Always || t.HostOrdered || t.Witness != nil
}

// addSpecialLocked handles the properties that most tasks do not have.
func (s *Scope) addSpecialLocked(n *Node, t *Task) {
	if !s.registered {
		s.register()
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
		n.toSpecialLocked().witness = t.Witness
		n.traits |= witnessed
	}
	if t.Context != nil {
		if done := t.Context.Done(); done != nil {
			x := n.toSpecialLocked()
			x.ctx, x.done = t.Context, done
		}
	}
	if t.Group != nil {
		n.toSpecialLocked().group = t.Group
		t.Group.add(s)
	}
	if t.Always {
		n.traits |= always
	} else if x := n.specials(); x.ctx != nil || x.group != nil {
		n.traits |= conditional
	}
	if t.ID != nil {
		*t.ID = n.seq
	}
	if t.Event != nil {
		n.traits |= detached
		n.left++
		*t.Event = Event{n, s, n.toSpecialLocked().generation.Load()}
	}
	if t.Inner == nil {
		return
	}
	n.toSpecialLocked().inner = t.Inner
	t.Inner.id = n.seq
	if t.Transparency&Export != 0 {
		n.traits |= exporting
	}
	if t.Transparency&Import != 0 {
		n.traits |= importing
		t.Inner.outer, t.Inner.before = s, n.seq
	}
}

// removeLocked removes n from the scope's children.
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

// shrinkLocked frees memory of a list of children that was long.
func (s *Scope) shrinkLocked() {
	s.children = append(make([]*Node, 0, max(2*len(s.children), maxSpare)), s.children...)
}
