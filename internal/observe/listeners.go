package observe

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// Listener is told what a runtime does. Its methods are called without locks of the runtime held,
// except for those that docs/architecture.md lists. Unless said otherwise they may end the
// goroutine (runtime.Goexit), as a program's callbacks may.
type Listener interface {
	// Interest returns what the listener wants to know. It is called once.
	Interest() Interest

	// Task is called when a construct is about to generate a task. It returns the observer of the
	// task, or nil. It does not end the goroutine.
	Task(Construct) construct.Observer
	// Merged is called for a construct whose task is merged: its body runs as part of the
	// encountering task.
	Merged(Construct)
	// Generated is called, if the listener wants Data, at the end of a construct for which Task
	// was called. The task is generated, and complete unless it is deferred; otherwise err says
	// why it was not generated, or how it failed. The argument task is what Task returned, and
	// may have been released.
	Generated(ctx context.Context, c Construct, task construct.Observer, err error)

	// Group is called at the begin of a taskgroup and returns the listener's note of it, or nil.
	// It does not end the goroutine.
	Group(Origin) any
	// RegionBegins is called at the begin of a region in which a task waits for others.
	RegionBegins(Wait)
	// RegionEnds is called at the end of that region.
	RegionEnds(Wait)
	// WaitBegins is called when the wait in the region begins. Its result is passed to WaitEnds.
	WaitBegins(Wait) any
	// WaitEnds is called with the outcome of the wait.
	WaitEnds(ctx context.Context, w Wait, begun any, err error)

	// Storage runs a memory routine by calling do, whose error it returns. do sets the fields of s
	// that describe new memory.
	Storage(s *Storage, do func() error) error
	// Allocated is called when the program receives device memory other than from a routine.
	Allocated(device int, p sched.Pointer, size uint64)
	// Pointed is called when the program receives a pointer to device storage that corresponds
	// to host storage at the given address.
	Pointed(device int, p sched.Pointer, host unsafe.Pointer)
	// Declared is called when devices have received storage for the items that lasts as long as
	// they do.
	Declared(devices []int, items []memory.Map)
	// Discarded is called when all storage of a device has been released.
	Discarded(device int)
}

// Interest is what a listener wants to know.
type Interest struct {
	// Stack and Codeptr ask for the place of constructs in the program.
	Stack, Codeptr bool
	// Data asks for what constructs do to storage.
	Data bool
}

// Listeners are told of all events, in the order given to New. The methods correspond to
// those of Listener.
type Listeners struct {
	all []Listener
	// slots are the listeners' indices in Notes.
	slots    []int
	interest Interest
}

// New returns at most two listeners, or nil if all are nil. A listener that is nil
// still takes up an index in Notes, so that a runtime can replace some listeners by others that
// keep their indices.
func New(listeners ...Listener) *Listeners {
	ls := &Listeners{}
	for slot, l := range listeners {
		if l == nil {
			continue
		}
		ls.all, ls.slots = append(ls.all, l), append(ls.slots, slot)
		i := l.Interest()
		ls.interest.Stack = ls.interest.Stack || i.Stack
		ls.interest.Codeptr = ls.interest.Codeptr || i.Codeptr
		ls.interest.Data = ls.interest.Data || i.Data
	}
	if len(ls.all) == 0 {
		return nil
	}
	return ls
}

// Data reports whether a listener wants to know what constructs do to storage.
func (ls *Listeners) Data() bool { return ls.interest.Data }

// Here returns the place in the program of the caller's caller, as far as a listener wants it.
func (ls *Listeners) Here() Site {
	if !ls.interest.Stack && !ls.interest.Codeptr {
		return Site{}
	}
	return ls.here()
}

func (ls *Listeners) here() (site Site) {
	if ls.interest.Stack {
		site.Stack = new(Stack)
		runtime.Callers(4, site.Stack[:])
	}
	if ls.interest.Codeptr {
		site.Codeptr = Codeptr()
	}
	return site
}

// Task announces the task of a construct, and returns its observer, or nil.
func (ls *Listeners) Task(c Construct) construct.Observer {
	if len(ls.all) == 1 {
		c.slot = ls.slots[0]
		return ls.all[0].Task(c)
	}
	var p pair
	some := false
	for i, l := range ls.all {
		c.slot = ls.slots[i]
		p[c.slot] = l.Task(c)
		some = some || p[c.slot] != nil
	}
	if !some {
		return nil
	}
	return &p
}

// Merged announces a construct whose task is merged.
func (ls *Listeners) Merged(c Construct) {
	for i, l := range ls.all {
		c.slot = ls.slots[i]
		l.Merged(c)
	}
}

// Generated announces the end of a construct.
func (ls *Listeners) Generated(ctx context.Context, c Construct, task construct.Observer, err error) {
	for i, l := range ls.all {
		c.slot = ls.slots[i]
		l.Generated(ctx, c, partOf(task, c.slot), err)
	}
}

// Waiting is a region in which a task waits for others. The zero Waiting has no listeners.
type Waiting struct {
	listeners *Listeners
	wait      Wait
	begun     Notes
}

// Region announces a region in which a task waits for others. If a listener ends the goroutine, the region ends.
func (ls *Listeners) Region(w Wait) Waiting {
	left := true
	defer func() {
		if left {
			ls.regionEnds(w)
		}
	}()
	for i, l := range ls.all {
		w.slot = ls.slots[i]
		l.RegionBegins(w)
	}
	left = false
	return Waiting{listeners: ls, wait: w}
}

func (ls *Listeners) regionEnds(w Wait) {
	for i, l := range ls.all {
		w.slot = ls.slots[i]
		l.RegionEnds(w)
	}
}

// Group announces the taskgroup to which the region belongs, and returns its notes, or nil.
func (w *Waiting) Group() *Notes {
	if w.listeners == nil {
		return nil
	}
	n := new(Notes)
	for i, l := range w.listeners.all {
		w.wait.slot = w.listeners.slots[i]
		n[w.wait.slot] = l.Group(w.wait.Origin)
	}
	w.wait.Taskgroup = n
	return n
}

// While announces the wait around a call of wait, and then the end of the region. wait returns the outcome, which listeners hear,
// and what reporting its progress has failed with. If the goroutine ends meanwhile, which code of the program can do, the wait
// counts as given up.
func (w *Waiting) While(ctx context.Context, wait func() (err, reporting error)) (err, reporting error) {
	if w.listeners == nil {
		return wait()
	}
	left := true
	defer func() {
		if left {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			ctx, err = ended, ended.Err()
		}
		w.end(ctx, err)
	}()
	for i, l := range w.listeners.all {
		w.wait.slot = w.listeners.slots[i]
		w.begun[w.wait.slot] = l.WaitBegins(w.wait)
	}
	err, reporting = wait()
	left = false
	return err, reporting
}

// end announces the outcome of the wait, and the end of the region.
func (w *Waiting) end(ctx context.Context, err error) {
	// Deferred, because a listener may end the goroutine.
	defer w.listeners.regionEnds(w.wait)
	for i, l := range w.listeners.all {
		w.wait.slot = w.listeners.slots[i]
		l.WaitEnds(ctx, w.wait, w.begun[w.wait.slot], err)
	}
}

// Storage runs a memory routine by calling do.
func (ls *Listeners) Storage(e *Storage, do func() error) error {
	for i, l := range ls.all {
		inner := do
		do = func() error {
			outer := e.slot
			e.slot = ls.slots[i]
			err := l.Storage(e, inner)
			e.slot = outer
			return err
		}
	}
	return do()
}

// Allocated announces memory that the program has received.
func (ls *Listeners) Allocated(device int, p sched.Pointer, size uint64) {
	for _, l := range ls.all {
		l.Allocated(device, p, size)
	}
}

// Pointed announces a pointer that the program has received.
func (ls *Listeners) Pointed(device int, p sched.Pointer, host unsafe.Pointer) {
	for _, l := range ls.all {
		l.Pointed(device, p, host)
	}
}

// Declared announces declared storage.
func (ls *Listeners) Declared(devices []int, items []memory.Map) {
	for _, l := range ls.all {
		l.Declared(devices, items)
	}
}

// Discarded announces that all storage of a device has been released.
func (ls *Listeners) Discarded(device int) {
	for _, l := range ls.all {
		l.Discarded(device)
	}
}

// pair is the observer of a task for which two listeners have observers. It has them by their
// indices in Notes; either may be nil.
type pair [maxListeners]construct.Observer

// partOf returns the observer of one listener.
func partOf(o construct.Observer, slot int) construct.Observer {
	if p, ok := o.(*pair); ok {
		return p[slot]
	}
	return o
}

// Interest implements construct.Observer.
func (p *pair) Interest() (run, operations bool) {
	for _, o := range p {
		if o != nil {
			r, ops := o.Interest()
			run, operations = run || r, operations || ops
		}
	}
	return run, operations
}

// Created implements construct.Observer.
func (p *pair) Created(n *tasks.Node, depend []tasks.Depend) {
	for _, o := range p {
		if o != nil {
			o.Created(n, depend)
		}
	}
}

// Follows implements tasks.Witness.
func (p *pair) Follows(of tasks.Witness) {
	q, _ := of.(*pair)
	for slot, o := range p {
		if o != nil && q != nil && q[slot] != nil {
			o.Follows(q[slot])
		}
	}
}

// Begin implements construct.Observer.
func (p *pair) Begin() {
	for _, o := range p {
		if o != nil {
			o.Begin()
		}
	}
}

// Map implements construct.Observer.
func (p *pair) Map(items []ompt.MapItem) {
	for _, o := range p {
		if o != nil {
			o.Map(items)
		}
	}
}

// Op implements construct.Observer.
func (p *pair) Op(end ompt.ScopeEndpoint, op *construct.Op) {
	for _, o := range p {
		if o != nil {
			o.Op(end, op)
		}
	}
}

// End implements construct.Observer.
func (p *pair) End(err error) {
	for _, o := range p {
		if o != nil {
			o.End(err)
		}
	}
}

// Dropped implements tasks.Witness.
func (p *pair) Dropped() {
	for _, o := range p {
		if o != nil {
			o.Dropped()
		}
	}
}

// Fulfilled implements construct.Detached.
func (p *pair) Fulfilled() {
	for _, o := range p {
		if d, ok := o.(construct.Detached); ok {
			d.Fulfilled()
		}
	}
}

// Release implements construct.Observer.
func (p *pair) Release() {
	for _, o := range p {
		if o != nil {
			o.Release()
		}
	}
}
