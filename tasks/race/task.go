package race

import (
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// Space is a storage of its own: the same bytes of two spaces have nothing to do with
// each other.
type Space uint64

// Access is storage that a task uses.
type Access struct {
	Space Space
	// Size is in bytes, from Start on.
	Start, Size uint64
	Write       bool
	// Unnamed: depend items cannot name the storage. Those of an inoutset then stand
	// for it, whatever bytes they are of.
	Unnamed bool
	// Local: the access is in the way of nobody but tasks of the same region, and those
	// that they make.
	Local bool
	// Keep, if not nil, is kept reachable as long as the access is remembered.
	Keep unsafe.Pointer
	// Label is for the report.
	Label string
}

// end returns the first byte behind the access.
func (a *Access) end() uint64 { return a.Start + a.Size }

// Spec describes a task that is made.
type Spec struct {
	// Info is the caller's, for the report.
	Info any
	// Parent is the task whose region makes it, Group the innermost taskgroup or nil.
	Parent *Task
	Group  *Group
	// Depend is not kept, Accesses is.
	Depend   []tasks.Depend
	Accesses []Access
	// Body: Begin and End will say when the task's body runs. A task without one ends
	// as soon as its place in the graph is settled.
	Body bool
	// Event: the task is not complete before Fulfill, unless its body fails.
	Event bool
	// Included: the parent's region waits for the task, until Returned or Abandoned.
	Included     bool
	Transparency tasks.Transparency
}

// Task is a task of the graph, and its region.
type Task struct {
	detector *Detector
	info     any
	parent   *Task
	// depth is 0 for the initial task.
	depth int
	group *Group
	// number is in the order of making.
	number   uint64
	accesses []Access
	// items are the depend items, disjoint and in order; all: omp_all_memory is one.
	items []item
	all   bool
	// shares: some item of the task, or of one that it descends from, says that others may use the storage in no order. The task then
	// takes the place of no access that it follows: who may be unordered with the task
	// need not be so with that.
	shares bool

	body, event, included, imports, exports bool
	// started: the place in the graph is settled, and the accesses checked. running: the
	// body is, and returned: it has. fulfilled: the event is. ended: what follows the task
	// can have its place.
	started, running, returned, fulfilled, ended bool
	// foreign: it follows more than siblings of its taskgroup, and what its parent did.
	foreign bool

	// created is what the parent followed when it made the task. Before the start
	// ahead are the predecessors, of which waiting have not ended; behind are those that
	// wait for this one.
	created *set
	ahead   []*Task
	waiting int
	behind  []*Task
	// trails are those of the tasks ahead that have ended, of which the task has looked
	// where the first ones lead, searched in number. Once it has started, trail is what
	// becomes of them, and of an exporting task that has ended leads to its children too.
	trails   []*trail
	searched int
	trail    *trail
	// met is the number of the last task that found this one ahead.
	met uint64

	// at is the task's place on a chain. after is what somebody follows besides who
	// follows the end of the task; until then it is what the task itself follows.
	at    entry
	after *set
	// told is what the fulfilment of the event follows.
	told *set
	// holds counts what remembers the task: accesses in a history, places among the
	// users of storage, and that it has not started.
	holds int32
	// kept is the number of the last sweep that had to keep the task's accesses.
	kept uint64

	// position is what the region follows by now; first is what it followed first.
	position, first *set
	children        children
	depends         depends
	// exported are the users of the region's storage that the trail leads to, nil for none.
	exported *depends
	// view is what the children of an importing task see.
	view *view
	// blocked counts the waits of the region that are under way.
	blocked int
	// active is the task's index in Detector.active, open that in the parent's
	// children, inGroup that in the group's members; -1 for none.
	active, open, inGroup int
}

// Info returns what the caller gave Create.
func (t *Task) Info() any { return t.info }

// Number returns the task's number, in the order of making.
func (t *Task) Number() uint64 { return t.number }

// Sibling reports whether depend items can order the two tasks.
func (t *Task) Sibling(o *Task) bool { return t.parent == o.parent }

// Names reports whether depend items of the task name all of the bytes, as storage
// that it writes if write.
func (t *Task) Names(start, end uint64, write bool) bool {
	if t.all {
		return true
	}
	for _, i := range t.items {
		if i.start <= start && start < i.end && (!write || i.class != reads) {
			start = i.end
		}
	}
	return start >= end
}

// hold remembers t in one place more.
func (t *Task) hold() {
	t.holds++
	if t.holds == 1 && t.started {
		t.detector.clock.remember(t.at.chain)
	}
}

// drop is the reverse of hold.
func (t *Task) drop() {
	t.holds--
	if t.holds > 0 {
		return
	}
	if t.started {
		t.detector.clock.forget(t.at.chain)
	}
	if t.ended && !t.included {
		t.release()
	}
}

// release forgets the users of the region's storage, and the trail: nobody follows t any
// more who has not ended.
func (t *Task) release() {
	t.depends.release()
	trail := t.trail
	t.trail, t.exported = nil, nil
	trail.drop()
}

// follow makes p one of those that t, which is being made, or which has not started,
// follows.
func (t *Task) follow(p *Task) {
	if p == t || p.met == t.number {
		return
	}
	p.met = t.number
	t.ahead = append(t.ahead, p)
	if p.parent != t.parent || p.group != t.group {
		t.foreign = true
	}
	if !p.ended {
		t.waiting++
		p.behind = append(p.behind, t)
		return
	}
	t.carry(p)
}

// followChildren makes t follow the children of p, which has ended, if p exports them.
func (t *Task) followChildren(p *Task) {
	if p.exported != nil {
		p.exported.find(t)
	}
}

// children are what a wait of a region, or of a taskgroup, follows: tasks that have not
// ended, and the merged ends of those that have.
type children struct {
	open  []*Task
	ended map[uint32]uint32
}

// end merges the end of t; in whole, or where the wait follows what t follows in any
// case, where t is.
func (c *children) end(t *Task, whole bool) {
	if c.ended == nil {
		c.ended = make(map[uint32]uint32)
	}
	c.endEntry(t.at)
	if whole {
		for _, e := range t.after.entries {
			c.endEntry(e)
		}
	}
}

func (c *children) endEntry(e entry) {
	if e.position > c.ended[e.chain] {
		c.ended[e.chain] = e.position
	}
}

// Group is the set of a taskgroup: tasks made in it, and their descendants.
type Group struct {
	parent  *Group
	members children
	// inner are the taskgroups in it that nobody has waited for.
	inner []*Group
}
