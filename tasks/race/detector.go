package race

import (
	"maps"
	"slices"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/tasks"
)

// Conflict is a pair of accesses that no path of the graph orders.
type Conflict struct {
	// First was created before Second.
	First, Second             *Task
	FirstAccess, SecondAccess *Access
	// Start and Size give a range of bytes that the two accesses have in common. A pair can be
	// reported with several ranges.
	Start, Size uint64
}

// Detector holds the task graph of one program.
type Detector struct {
	report func(Conflict)

	mu      lockrank.Mutex[lockrank.RacesGraph]
	clock   clock
	number  uint64
	initial *Task
	history map[Space]*history
	// remembered counts the accesses in the histories; kept is its value after the last sweep.
	remembered, kept int
	// keptAlone is set if the last sweep kept many accesses although only the initial task was
	// active.
	keptAlone bool
	// active are the tasks that can still have accesses to check or create tasks: those that have
	// not started, and those whose body has not returned.
	active []*Task
	sweeps uint64
	// trails counts the trails made, visits the searches through trails.
	trails, visits uint64
	// ready are the tasks without unfinished predecessors that have yet to be started.
	ready []*Task
}

// New returns the detector of a program that is about to begin. It calls report for each
// conflict. That function must not call the detector; it may call the methods of tasks that only
// return properties.
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

// NewGroup returns the set of a taskgroup that is nested in parent, which is nil for an outermost
// one.
func (d *Detector) NewGroup(parent *Group) *Group {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := &Group{parent: parent}
	if parent != nil {
		parent.inner = append(parent.inner, g)
	}
	return g
}

// Create creates a task. The calls for one region must be in the order of its program.
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
		// A context was used after its task had ended.
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

// Begin records that the task's body begins.
func (d *Detector) Begin(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(t)
	t.running = true
}

// End records that the task's body has returned or will never run; failed says whether it failed.
func (d *Detector) End(t *Task, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(t)
	d.ended(t, failed)
	d.run()
}

// Fulfill records that the task's event is fulfilled. It is not known by whom, so the end of the
// task is taken to follow the current points of the initial task and of every running body. That
// can be more than what the fulfilment really follows, and is never less.
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

// Returned records that an included task is complete, or waits for its event alone, and the region of its
// parent goes on.
func (d *Detector) Returned(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := t.parent
	p.blocked--
	if t.event && t.returned && !t.ended {
		// The end of the task, which is still to come, may follow more than its body: later siblings
		// with matching items have to find the task.
		d.clock.reset()
		d.clock.add(p.position)
		d.clock.add(t.position)
		p.goOn()
		t.included = false
		return
	}
	d.force(t)
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

// Abandoned records that nobody waits for an included task any more, which from then on is
// treated like a deferred one.
func (d *Detector) Abandoned(t *Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.parent.blocked--
	t.included = false
	if t.ended && t.holds == 0 {
		t.release()
	}
}

// merge adds to the clock's merge what follows from the end of the task.
func (t *Task) merge(c *clock) {
	c.add(t.after)
	c.addEntry(t.at)
}

// goOn sets the current point of the region to the clock's merge.
func (t *Task) goOn() {
	if !t.ended {
		t.position = t.detector.clock.build()
	}
}

// Wait is a wait that a region has begun.
type Wait struct {
	task *Task
	// open and ended are the children for which the region waits; group is the taskgroup, or nil.
	open  []*Task
	ended map[uint32]uint32
	group *Group
}

// Wait records that the region of t begins to wait for its children. The wait ends with Waited or
// GaveUp.
func (d *Detector) Wait(t *Task) *Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.blocked++
	return &Wait{task: t, open: slices.Clone(t.children.open), ended: maps.Clone(t.children.ended)}
}

// WaitGroup records that the region of t begins to wait for the tasks of a taskgroup, including
// those created during the wait.
func (d *Detector) WaitGroup(t *Task, g *Group) *Wait {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.blocked++
	return &Wait{task: t, group: g}
}

// GaveUp records that the region goes on although the tasks of the wait are not complete.
func (d *Detector) GaveUp(w *Wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.task.blocked--
}

// Waited records that the wait is over and all its tasks are complete.
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

// Close checks what has not been checked yet. Every task must be complete.
func (d *Detector) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.active) > 1 {
		d.force(d.active[1])
	}
}
