package race

import (
	"maps"
	"slices"
	"sync"

	"github.com/vkomp/vkomp/tasks"
)

// Conflict is a pair of accesses that no path orders.
type Conflict struct {
	// First was made before Second.
	First, Second             *Task
	FirstAccess, SecondAccess *Access
	// Start and Size are the bytes that the two have in common, as far as they were
	// looked at together.
	Start, Size uint64
}

// Detector is the graph of one program.
type Detector struct {
	report func(Conflict)

	mu      sync.Mutex
	clock   clock
	number  uint64
	initial *Task
	history map[Space]*history
	// remembered counts accesses in the histories, kept how many the last sweep left.
	remembered, kept int
	// keptAlone: it left many although nothing but the initial task was active.
	keptAlone bool
	// active are the tasks that may still have accesses checked, or make tasks: those
	// that have not started, and those whose body has not returned.
	active []*Task
	sweeps uint64
	// trails counts those made, visits the searches through them.
	trails, visits uint64
	// ready are tasks that nothing is ahead of any more.
	ready []*Task
}

// New returns the detector of a program that is at its beginning. report hears of each
// conflict, and calls nothing of the detector but what tasks know of themselves.
func New(report func(Conflict)) *Detector {
	d := &Detector{report: report, history: make(map[Space]*history)}
	d.clock.reset()
	d.initial = &Task{detector: d, body: true, started: true, running: true, open: -1, inGroup: -1}
	d.initial.position = d.clock.build()
	d.initial.first, d.initial.after = d.initial.position, d.initial.position
	d.activate(d.initial)
	return d
}

// Initial returns the initial task.
func (d *Detector) Initial() *Task { return d.initial }

// NewGroup returns the set of a taskgroup inside of parent, or of none if that is nil.
func (d *Detector) NewGroup(parent *Group) *Group {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := &Group{parent: parent}
	if parent != nil {
		parent.inner = append(parent.inner, g)
	}
	return g
}

// Create makes a task. The calls of one region are in the order of its program.
func (d *Detector) Create(s Spec) *Task {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := s.Parent
	d.settle(p)
	d.number++
	t := &Task{
		detector: d, info: s.Info, parent: p, group: s.Group, number: d.number, accesses: s.Accesses,
		body: s.Body, event: s.Event, included: s.Included, created: p.position, holds: 1, active: -1, open: -1, inGroup: -1,
		imports: s.Transparency&tasks.Import != 0, exports: s.Transparency&tasks.Export != 0,
	}
	if p.ended {
		// A context that outlived its task.
		d.clock.reset()
		p.merge(&d.clock)
		t.created = d.clock.build()
	}
	if t.included {
		p.blocked++
	}
	t.items, t.all = itemsOf(s.Depend, t.imports)
	t.depth = p.depth + 1
	t.shares = p.shares || slices.ContainsFunc(t.items, func(i item) bool { return i.class >= excludes })
	if t.imports {
		t.view = &view{siblings: p.depends.snapshot(), outer: p.view, regions: 1}
		if p.view != nil {
			p.view.regions++
		}
	}
	p.depends.name(t)
	d.visits++
	for v := p.view; v != nil; v = v.outer {
		v.siblings.find(t)
		v.imported.visit(d.visits, func(children *depends) { children.find(t) })
	}
	t.search()
	t.open = len(p.children.open)
	p.children.open = append(p.children.open, t)
	if t.group != nil {
		t.inGroup = len(t.group.members.open)
		t.group.members.open = append(t.group.members.open, t)
	}
	d.activate(t)
	if t.waiting == 0 {
		d.start(t)
		d.run()
	}
	return t
}

// Begin says that the task's body runs.
func (d *Detector) Begin(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(t)
	t.running = true
}

// End says that the task's body is done, or never runs; failed that it has failed.
func (d *Detector) End(t *Task, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(t)
	d.ended(t, failed)
	d.run()
}

// Fulfill says that the task's event is fulfilled. By whom is not known: the end of the
// task follows what the initial task and every body that runs has come to, which can
// be more than the fulfilment follows, and is not less.
func (d *Detector) Fulfill(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.fulfilled || t.ended {
		return
	}
	d.clock.reset()
	for _, r := range d.active {
		if r.running {
			d.clock.add(r.position)
		}
	}
	t.told, t.fulfilled = d.clock.build(), true
	if t.returned {
		d.end(t)
	}
	d.run()
}

// Returned says that the region of the task's parent goes on when the task, an included
// one, is complete.
func (d *Detector) Returned(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.force(t)
	p := t.parent
	p.blocked--
	d.clock.reset()
	d.clock.add(p.position)
	t.merge(&d.clock)
	p.goOn()
	if t.exported != nil && t.exported.lingers(&d.clock) {
		p.depends.included = append(p.depends.included, t)
		p.depends.hold(t)
	} else if t.holds == 0 {
		t.release()
	}
	t.included = false
	p.pruneNames(64)
	d.sweep()
}

// Abandoned says that nobody waits for an included task any more: it goes on as if it
// were deferred.
func (d *Detector) Abandoned(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.parent.blocked--
	t.included = false
	if t.ended && t.holds == 0 {
		t.release()
	}
}

// merge adds what somebody follows who follows the end of the task.
func (t *Task) merge(c *clock) {
	c.add(t.after)
	c.addEntry(t.at)
}

// goOn puts the region where the clock's merge is.
func (t *Task) goOn() {
	if !t.ended {
		t.position = t.detector.clock.build()
	}
}

// Wait is a wait of a region that has begun.
type Wait struct {
	task *Task
	// open and ended are the children that it is for; group the taskgroup, or nil.
	open  []*Task
	ended map[uint32]uint32
	group *Group
}

// Wait says that the region of t begins to wait for its children. Waited or GaveUp says
// what became of that.
func (d *Detector) Wait(t *Task) *Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.blocked++
	return &Wait{task: t, open: slices.Clone(t.children.open), ended: maps.Clone(t.children.ended)}
}

// WaitGroup says that the region of t begins to wait for the tasks of a taskgroup, those
// made meanwhile too.
func (d *Detector) WaitGroup(t *Task, g *Group) *Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.blocked++
	return &Wait{task: t, group: g}
}

// GaveUp says that the region goes on without what it waited for.
func (d *Detector) GaveUp(w *Wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.task.blocked--
}

// Waited says that the wait is over, and what it was for complete.
func (d *Detector) Waited(w *Wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := w.task
	t.blocked--
	if w.group != nil {
		d.forceGroup(w.group)
		w.ended = w.group.members.ended
		if p := w.group.parent; p != nil {
			p.inner = slices.DeleteFunc(p.inner, func(g *Group) bool { return g == w.group })
		}
	}
	for _, c := range w.open {
		d.force(c)
	}
	d.settle(t)
	d.clock.reset()
	d.clock.add(t.position)
	for chain, position := range w.ended {
		d.clock.addEntry(entry{chain, position})
	}
	for _, c := range w.open {
		c.merge(&d.clock)
	}
	t.goOn()
	t.children.forget(&d.clock)
	t.pruneNames(0)
	d.sweep()
}

// forceGroup ends the members of a taskgroup that is complete.
func (d *Detector) forceGroup(g *Group) {
	for _, inner := range g.inner {
		d.forceGroup(inner)
	}
	for len(g.members.open) > 0 {
		d.force(g.members.open[0])
	}
}

// Close settles what is left: every task is complete.
func (d *Detector) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.active) > 1 {
		d.force(d.active[1])
	}
}
