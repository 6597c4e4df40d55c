package races

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/tasks/race"
)

// Host is the number of the host in a Report.
const Host = -1

// Report describes two accesses that the task graph does not order.
type Report struct {
	// First was generated before Second.
	First, Second Access
	// Address is the first byte that both access, and Size the number of such bytes. For a slice
	// the address is that on the host, whichever storage is meant.
	Address, Size uint64
	// Device is the number of the device whose storage is accessed, or Host.
	Device int
	// Advice says what is missing, such as a depend clause.
	Advice string
}

// Access is one side of a Report.
type Access struct {
	// Task is the task's label, and Item names the part of the construct that accesses the bytes.
	Task, Item string
	Write      bool
	// Frames is the stack where the program generates the task, the innermost frame first.
	Frames []runtime.Frame
}

// Detector is the race detector of one runtime. It is a Listener.
type Detector struct {
	graph *race.Detector
	// ofTask reports whether an error is the failure of a task.
	ofTask func(error) bool
	report func(Report)

	mu lockrank.Mutex[lockrank.Races]
	// seen holds the pairs of places that were reported; places caches the place of each stack.
	seen   map[[2]place]bool
	places map[observe.Stack]place
	// storage holds what is known about the devices' storage, by device number.
	storage map[int]*storage
	// allocations is the number of allocations so far.
	allocations race.Space
}

// New returns a detector. It calls report once for each pair of places in the program whose tasks
// race. report is called with locks of the detector held and must not call its methods. ofTask
// reports whether the error of a construct is the failure of a task.
func New(ofTask func(error) bool, report func(Report)) *Detector {
	d := &Detector{ofTask: ofTask, report: report, seen: make(map[[2]place]bool), places: make(map[observe.Stack]place), storage: make(map[int]*storage)}
	d.graph = race.New(d.found)
	return d
}

// Close takes all tasks for complete and reports the remaining races.
func (d *Detector) Close() { d.graph.Close() }

// generatedTask is what a report says about a task.
type generatedTask struct {
	label string
	stack *observe.Stack
}

// Interest implements observe.Listener.
func (d *Detector) Interest() observe.Interest { return observe.Interest{Stack: true, Data: true} }

// taskOf returns the task of a region.
func (d *Detector) taskOf(o *observe.Origin) *race.Task {
	if b, ok := o.Task().(*body); ok {
		return b.task
	}
	return d.graph.Initial()
}

// groupOf returns the innermost taskgroup, or nil.
func groupOf(o *observe.Origin) *race.Group {
	g, _ := o.Group().(*race.Group)
	return g
}

// spec describes the task of a construct.
func (d *Detector) spec(c *observe.Construct, label string, accesses []race.Access) race.Spec {
	return race.Spec{
		Info:   &generatedTask{label, c.Stack},
		Parent: d.taskOf(&c.Origin), Group: groupOf(&c.Origin), Depend: c.Depend, Accesses: accesses,
	}
}

// body observes an explicit task, whose body generates other tasks: when the task is created and
// when its body runs.
type body struct {
	detector *Detector
	spec     race.Spec
	task     *race.Task
}

// Task implements observe.Listener. Tasks without a body of the program's have no observer:
// Generated suffices, since it does not matter when they run.
func (d *Detector) Task(c observe.Construct) construct.Observer {
	if c.Flags&ompt.TaskExplicit == 0 {
		return nil
	}
	b := &body{detector: d, spec: d.spec(&c, c.Label, itemAccesses(c.Depend))}
	b.spec.Body, b.spec.Included, b.spec.Event = true, !c.Deferred(), c.Form == observe.Detachable
	if c.Flags&ompt.TaskImporting != 0 {
		b.spec.Transparency |= tasks.Import
	}
	if c.Flags&ompt.TaskExporting != 0 {
		b.spec.Transparency |= tasks.Export
	}
	return b
}

// Merged implements observe.Listener. The encountering task does what a merged task does.
func (d *Detector) Merged(observe.Construct) {}

// Interest implements construct.Observer.
func (b *body) Interest() (run, operations bool) { return true, false }

// Created implements construct.Observer.
func (b *body) Created(_ *tasks.Node, depend []tasks.Depend) {
	b.spec.Depend = depend
	b.task = b.detector.graph.Create(b.spec)
	b.spec = race.Spec{}
}

// Begin implements construct.Observer.
func (b *body) Begin() { b.detector.graph.Begin(b.task) }

// End implements construct.Observer.
func (b *body) End(err error) { b.detector.graph.End(b.task, err != nil) }

// Fulfilled implements construct.Detached.
func (b *body) Fulfilled() { b.detector.graph.Fulfill(b.task) }

// The other methods of construct.Observer are not needed. A dropped task is taken for
// complete when it is waited for.

func (b *body) Follows(tasks.Witness)                {}
func (b *body) Dropped()                             {}
func (b *body) Map([]ompt.MapItem)                   {}
func (b *body) Op(ompt.ScopeEndpoint, *construct.Op) {}
func (b *body) Release()                             {}

// Generated implements observe.Listener.
func (d *Detector) Generated(ctx context.Context, c observe.Construct, task construct.Observer, err error) {
	// The wait for an included task is cut short when ctx ends.
	cut := !c.Deferred() && err != nil && ctx.Err() != nil && !d.ofTask(err)
	if b, ok := task.(*body); ok {
		switch {
		case b.task == nil || c.Deferred():
		case cut:
			d.graph.Abandoned(b.task)
		default:
			d.graph.Returned(b.task)
		}
		return
	}
	if err != nil && !cut && !d.ofTask(err) && !errors.Is(err, tasks.ErrCancelled) {
		return // no task was generated
	}
	label, a := c.Label, accesses{depend: c.Depend}
	if c.Data != nil {
		d.add(&a, &c, err != nil)
		if c.Data.Ends {
			label += " (end)"
		}
	}
	s := d.spec(&c, label, a.list)
	s.Included = !c.Deferred() && !cut
	t := d.graph.Create(s)
	if s.Included {
		d.graph.Returned(t)
	}
}

// Group implements observe.Listener.
func (d *Detector) Group(o observe.Origin) any { return d.graph.NewGroup(groupOf(&o)) }

// RegionBegins implements observe.Listener.
func (d *Detector) RegionBegins(observe.Wait) {}

// RegionEnds implements observe.Listener.
func (d *Detector) RegionEnds(observe.Wait) {}

// WaitBegins implements observe.Listener.
func (d *Detector) WaitBegins(w observe.Wait) any {
	switch {
	case w.Dependent:
		return nil
	case w.Kind == ompt.SyncRegionTaskgroup:
		return d.graph.WaitGroup(d.taskOf(&w.Origin), groupOf(&w.Origin))
	}
	return d.graph.Wait(d.taskOf(&w.Origin))
}

// WaitEnds implements observe.Listener.
func (d *Detector) WaitEnds(ctx context.Context, _ observe.Wait, begun any, err error) {
	w, ok := begun.(*race.Wait)
	switch {
	case !ok:
	case err != nil && isCause(ctx, err):
		d.graph.GaveUp(w)
	default:
		d.graph.Waited(w)
	}
}

// isCause reports whether the error of a wait is the cause of its context rather than the failure of a task, which is of a
// type of the runtime. The program's type for the cause need not be comparable.
func isCause(ctx context.Context, err error) bool {
	cause := reflect.ValueOf(context.Cause(ctx))
	if !cause.IsValid() || cause.Type() != reflect.TypeOf(err) {
		return false
	}
	return !cause.Comparable() || cause.Equal(reflect.ValueOf(err))
}

// found receives a conflict. The lock of the graph is held.
func (d *Detector) found(c race.Conflict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, second := c.First.Info().(*generatedTask), c.Second.Info().(*generatedTask)
	pair := [2]place{d.place(first.stack), d.place(second.stack)}
	if d.seen[pair] || d.seen[[2]place{pair[1], pair[0]}] {
		return
	}
	d.seen[pair] = true
	d.report(Report{
		First:   accessOf(first, c.FirstAccess),
		Second:  accessOf(second, c.SecondAccess),
		Address: c.Start + c.FirstAccess.Offset, Size: c.Size,
		Device: spaceDevice(c.FirstAccess.Space),
		Advice: advice(&c),
	})
}

func accessOf(t *generatedTask, a *race.Access) Access {
	return Access{Task: t.label, Item: a.Label, Write: a.Write, Frames: t.stack.Frames()}
}

// place is a place in the program: the innermost frame outside of the runtime.
type place struct {
	file string
	line int
}

// maxPlaces is the largest number of stacks whose places are cached.
const maxPlaces = 1 << 12

// place returns the place of a stack in the program; d.mu is held.
func (d *Detector) place(s *observe.Stack) place {
	p, ok := d.places[*s]
	if !ok {
		f := s.Frames()[0]
		p = place{f.File, f.Line}
		if len(d.places) >= maxPlaces {
			clear(d.places)
		}
		d.places[*s] = p
	}
	return p
}

// advice says what would order the two tasks.
func advice(c *race.Conflict) string {
	clause := func(a *race.Access) string {
		if a.Write {
			return "depend(out: " + a.Label + ")"
		}
		return "depend(in: " + a.Label + ")"
	}
	start := c.Start + c.FirstAccess.Offset
	end := start + c.Size
	switch {
	case !c.First.Sibling(c.Second):
		return "different tasks generate the two, and depend orders siblings only: the task that generates the first must wait for it, with Taskwait or in a Taskgroup, before what the second follows"
	case !c.FirstAccess.SameNames(c.SecondAccess):
		return "add depend items in common, of a slice that stands for that memory: out for what writes, in for what reads"
	}
	first, second := c.First.Names(start, end, c.FirstAccess.Write), c.Second.Names(start, end, c.SecondAccess.Write)
	switch {
	case first && second:
		return "their depend items leave the order open: use inout in place of mutexinoutset or inoutset"
	case first:
		return "add " + clause(c.SecondAccess) + " to the second, or wait in between"
	case second:
		return "add " + clause(c.FirstAccess) + " to the first, or wait in between"
	}
	return "add " + clause(c.FirstAccess) + " to the first and " + clause(c.SecondAccess) + " to the second, or wait in between"
}

// dependLabel names an item of a depend clause.
func dependLabel(k int) string {
	if k < len(dependLabels) {
		return dependLabels[k]
	}
	return fmt.Sprintf("depend item %d", k)
}

var dependLabels = func() (labels [16]string) {
	for k := range labels {
		labels[k] = fmt.Sprintf("depend item %d", k)
	}
	return labels
}()
