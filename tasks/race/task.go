package race

import (
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// Space is an address space. Accesses in different spaces have no bytes in common.
type Space uint64

// Access is storage that a task reads or writes.
type Access struct {
	// Space is the address space of the bytes.
	Space Space
	// Size is in bytes and counts from Start.
	Start, Size uint64
	Write       bool
	// Unnamed says that depend items cannot name the storage. Inoutset items then
	// allow unordered accesses to it whatever bytes they name.
	Unnamed bool
	// Offset is what to add to an address of Space for the address by which depend items name the
	// byte.
	Offset uint64
	// Local says that the access can only conflict with those of tasks of the same region
	// and their descendants.
	Local bool
	// Keep, if not nil, is kept reachable as long as the access is remembered.
	Keep unsafe.Pointer
	// Label names the storage in reports.
	Label string
}

// end returns the first byte behind the access.
func (a *Access) end() uint64 { return a.Start + a.Size }

// SameNames reports whether depend items name the bytes that the two accesses have in common, and
// by the same addresses.
func (a *Access) SameNames(o *Access) bool {
	return !a.Unnamed && !o.Unnamed && a.Offset == o.Offset
}

// Spec describes a task to create.
type Spec struct {
	// Info is returned by [Task.Info], for reports.
	Info any
	// Parent is the task whose region creates the task; Group is the innermost taskgroup or nil.
	Parent *Task
	Group  *Group
	// The detector keeps Accesses, but not Depend.
	Depend   []tasks.Depend
	Accesses []Access
	// Body says that Begin and End will be called when the task's body runs. A task without a body
	// ends as soon as its place in the graph is known.
	Body bool
	// Event says that the task is incomplete until Fulfill is called, unless its body fails.
	Event bool
	// Included says that the parent's region waits for the task, or for the body of one with an event, until
	// Returned or Abandoned is called.
	Included     bool
	Transparency tasks.Transparency
}

// Task is a task of the graph together with its region.
type Task struct {
	detector *Detector
	info     any
	parent   *Task
	// depth is 0 for the initial task.
	depth int
	group *Group
	// number counts tasks in the order of creation.
	number   uint64
	accesses []Access
	// items are the depend items, disjoint and in ascending order; all says that omp_all_memory
	// is one.
	items []item
	all   bool
	// shares says that an item of the task or of an ancestor allows unordered accesses
	// (inoutset). The accesses of the task then supersede none, because a task that may be
	// unordered with this one need not be so with those that it follows.
	shares bool

	body, event, included, imports, exports bool
	// started says that the place in the graph is known and the accesses are checked, running
	// that the body runs, returned that it has returned, fulfilled that the event is fulfilled,
	// and ended that the tasks that follow it can be placed.
	started, running, returned, fulfilled, ended bool
	// foreign says that it follows tasks other than siblings of its taskgroup and what its parent
	// followed.
	foreign bool

	// created is what the parent followed when it created the task. Until the task starts, ahead
	// are its predecessors, waiting counts those that have not ended, and behind are the tasks that
	// wait for this one.
	created *set
	ahead   []*Task
	waiting int
	behind  []*Task
	// trails are the trails of the predecessors that have ended; searched counts those that were
	// searched. When the task has started, trail combines them. The trail of an exporting task
	// that has ended also leads to its children.
	trails   []*trail
	searched int
	trail    *trail
	// met is the number of the last task that counted this one as a predecessor.
	met uint64

	// at is the task's place on a chain. after is what follows from its end besides its own
	// place; before the end it is what the task itself follows.
	at    entry
	after *set
	// told is what the fulfilment of the event follows.
	told *set
	// holds counts the references that keep the task remembered: accesses in a history, users of
	// storage, and one until it has started.
	holds int32
	// kept is the number of the last sweep that could not drop the task's accesses.
	kept uint64

	// position is what the region follows now; first is what it followed at its beginning.
	position, first *set
	children        children
	depends         depends
	// exported are the users of the region's storage to which the trail leads, or nil.
	exported *depends
	// view is what the children of an importing task can depend on.
	view *view
	// blocked counts the waits in which the region currently is.
	blocked int
	// active, open and inGroup are the task's indices in Detector.active, the parent's children
	// and the group's members, or -1.
	active, open, inGroup int
}

// Info returns Spec.Info.
func (t *Task) Info() any { return t.info }

// Number returns the task's number, in the order of creation.
func (t *Task) Number() uint64 { return t.number }

// Sibling reports whether the two tasks are children of the same task.
func (t *Task) Sibling(o *Task) bool { return t.parent == o.parent }

// Names reports whether depend items of the task name all of the bytes from the address start to
// end, for writing if write is set.
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

// hold adds a reference that keeps t remembered.
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

// release forgets the users of the region's storage and the trail, when no task that has yet to end
// follows t.
func (t *Task) release() {
	t.depends.release()
	trail := t.trail
	t.trail, t.exported = nil, nil
	trail.drop()
}

// follow makes t, which has not started, follow p.
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

// children are the tasks for which a wait of a region or a taskgroup waits: those that have not
// ended, and the merged ends of the others.
type children struct {
	open  []*Task
	ended map[uint32]uint32
}

// end merges the end of t. Unless whole is set, only its place is merged, because the wait
// follows the rest anyway.
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

// Group is the task set of a taskgroup: the tasks created in it and their descendants.
type Group struct {
	parent  *Group
	members children
	// inner are the nested taskgroups that have not been waited for.
	inner []*Group
}
