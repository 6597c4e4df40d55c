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

// Listener hears of what a runtime does. Its methods are called with no lock of the
// runtime's held that is not said otherwise in docs/architecture.md. Unless they say so
// they may end the goroutine (runtime.Goexit), as a program's callbacks do.
type Listener interface {
	// Interest says what the listener asks for; it is asked once.
	Interest() Interest

	// Task is called when a construct is about to generate a task. It returns who hears of
	// the task, or nil. It does not end the goroutine.
	Task(Construct) construct.Observer
	// Merged: a construct of a merged task runs its body as part of the task that meets it.
	Merged(Construct)
	// Generated, if the listener asks for Data: the construct that Task heard of is over. The
	// task is generated, and complete unless it is deferred; or err says why not, or how it
	// failed. task is what Task returned, which may have been released by now.
	Generated(ctx context.Context, c Construct, task construct.Observer, err error)

	// Group returns the listener's note of a taskgroup that begins, or nil. It does not end
	// the goroutine.
	Group(Origin) any
	// RegionBegins and RegionEnds: of a region in which a task waits for others.
	RegionBegins(Wait)
	RegionEnds(Wait)
	// WaitBegins returns what WaitEnds gets with the outcome of the wait in the region.
	WaitBegins(Wait) any
	WaitEnds(ctx context.Context, w Wait, begun any, err error)

	// Storage carries a memory routine out by calling do, which sets what the Storage says
	// of new memory, and returns its error.
	Storage(s *Storage, do func() error) error
	// Allocated: the program has got memory of a device from elsewhere than a routine.
	Allocated(device int, p sched.Pointer, size uint64)
	// Pointed: the program has got a pointer to storage of a device that corresponds to
	// the host's at an address.
	Pointed(device int, p sched.Pointer, host unsafe.Pointer)
	// Declared: devices have the items' storage for ever.
	Declared(devices []int, items []memory.Map)
	// Discarded: nothing is left of a device's storage.
	Discarded(device int)
}

// Detached is what an observer of a detachable task does more than others.
type Detached interface {
	// Fulfilled: the task's event is about to be fulfilled.
	Fulfilled()
}

// Interest is what a listener asks for.
type Interest struct {
	// Stack and Codeptr: where in the program constructs are.
	Stack, Codeptr bool
	// Data: what constructs do to storage.
	Data bool
}

// Stream passes events on to listeners. Its methods are those of Listener; each listener
// hears of an event in the order of New.
type Stream struct {
	listeners []Listener
	// slots are the listeners' places among the notes.
	slots    []int
	interest Interest
}

// New returns the stream of at most two listeners, nil for none. A listener that is nil
// has a place among the notes all the same: streams of the same places can follow one
// another in one runtime.
func New(listeners ...Listener) *Stream {
	s := &Stream{}
	for slot, l := range listeners {
		if l == nil {
			continue
		}
		s.listeners, s.slots = append(s.listeners, l), append(s.slots, slot)
		i := l.Interest()
		s.interest.Stack = s.interest.Stack || i.Stack
		s.interest.Codeptr = s.interest.Codeptr || i.Codeptr
		s.interest.Data = s.interest.Data || i.Data
	}
	if len(s.listeners) == 0 {
		return nil
	}
	return s
}

// Data reports whether a listener asks for what constructs do to storage.
func (s *Stream) Data() bool { return s.interest.Data }

// Here returns where in the program the caller's caller is, as far as a listener asks.
func (s *Stream) Here() Site {
	if !s.interest.Stack && !s.interest.Codeptr {
		return Site{}
	}
	return s.here()
}

func (s *Stream) here() (site Site) {
	if s.interest.Stack {
		site.Stack = new(Stack)
		runtime.Callers(4, site.Stack[:])
	}
	if s.interest.Codeptr {
		site.Codeptr = Codeptr()
	}
	return site
}

// Task announces the task of a construct, and returns its observer, or nil.
func (s *Stream) Task(c Construct) construct.Observer {
	if len(s.listeners) == 1 {
		c.slot = s.slots[0]
		return s.listeners[0].Task(c)
	}
	var p pair
	some := false
	for i, l := range s.listeners {
		c.slot = s.slots[i]
		p[c.slot] = l.Task(c)
		some = some || p[c.slot] != nil
	}
	if !some {
		return nil
	}
	return &p
}

// Merged announces a construct whose task is merged.
func (s *Stream) Merged(c Construct) {
	for i, l := range s.listeners {
		c.slot = s.slots[i]
		l.Merged(c)
	}
}

// Generated announces what came of a construct.
func (s *Stream) Generated(ctx context.Context, c Construct, task construct.Observer, err error) {
	for i, l := range s.listeners {
		c.slot = s.slots[i]
		l.Generated(ctx, c, partOf(task, c.slot), err)
	}
}

// Waiting is a region in which a task waits for others. The zero Waiting is one that nobody
// listens to.
type Waiting struct {
	stream *Stream
	wait   Wait
	begun  Notes
}

// Region announces a region in which a task waits for others.
func (s *Stream) Region(w Wait) Waiting {
	for i, l := range s.listeners {
		w.slot = s.slots[i]
		l.RegionBegins(w)
	}
	return Waiting{stream: s, wait: w}
}

// Group announces a taskgroup, whose region it is, and returns its notes, nil for none.
func (w *Waiting) Group() *Notes {
	if w.stream == nil {
		return nil
	}
	n := new(Notes)
	for i, l := range w.stream.listeners {
		w.wait.slot = w.stream.slots[i]
		n[w.wait.slot] = l.Group(w.wait.Origin)
	}
	w.wait.Taskgroup = n
	return n
}

// Begin announces that the wait begins.
func (w *Waiting) Begin() {
	if w.stream == nil {
		return
	}
	for i, l := range w.stream.listeners {
		w.wait.slot = w.stream.slots[i]
		w.begun[w.wait.slot] = l.WaitBegins(w.wait)
	}
}

// End announces the outcome of the wait, and the end of the region.
func (w *Waiting) End(ctx context.Context, err error) {
	if w.stream == nil {
		return
	}
	for i, l := range w.stream.listeners {
		w.wait.slot = w.stream.slots[i]
		l.WaitEnds(ctx, w.wait, w.begun[w.wait.slot], err)
		l.RegionEnds(w.wait)
	}
}

// Storage carries a memory routine out by do.
func (s *Stream) Storage(e *Storage, do func() error) error {
	for i, l := range s.listeners {
		inner := do
		do = func() error {
			outer := e.slot
			e.slot = s.slots[i]
			err := l.Storage(e, inner)
			e.slot = outer
			return err
		}
	}
	return do()
}

// Allocated announces memory that the program has got.
func (s *Stream) Allocated(device int, p sched.Pointer, size uint64) {
	for _, l := range s.listeners {
		l.Allocated(device, p, size)
	}
}

// Pointed announces a pointer that the program has got.
func (s *Stream) Pointed(device int, p sched.Pointer, host unsafe.Pointer) {
	for _, l := range s.listeners {
		l.Pointed(device, p, host)
	}
}

// Declared announces declared storage.
func (s *Stream) Declared(devices []int, items []memory.Map) {
	for _, l := range s.listeners {
		l.Declared(devices, items)
	}
}

// Discarded announces that nothing is left of a device's storage.
func (s *Stream) Discarded(device int) {
	for _, l := range s.listeners {
		l.Discarded(device)
	}
}

// pair is the observer of a task that two listeners have observers of, by their places
// among the notes; either may be nil.
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

// Fulfilled implements Detached.
func (p *pair) Fulfilled() {
	for _, o := range p {
		if d, ok := o.(Detached); ok {
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
