package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// Action is what an interop construct does to an object.
type Action int

const (
	// ActionInit makes the object.
	ActionInit Action = iota
	// ActionUse orders it.
	ActionUse
	// ActionDestroy ends it.
	ActionDestroy
)

// String names the action as its clause does.
func (a Action) String() string { return [...]string{"init", "use", "destroy"}[a] }

// Part is an object in a construct.
type Part struct {
	// Object is the object, Action what the construct does to it.
	Object Object
	Action Action
}

// Task is the empty task of an interop construct (OpenMP 5.1 §2.15.1). Foreign work
// that one of the objects was given before the construct is complete before the task
// begins; foreign work that one of them is given later begins after the task is complete.
type Task struct {
	// Construct is what it has in common with others. Priority, Place, Observer and Always
	// do not count: see ObserverOf, and the task is run in any case.
	construct.Construct
	// Parts are objects of one device, each of them once.
	Parts []Part
	// Included, if not nil, is the wait for the predecessors of a task that is included.
	Included *Included
	// ObserverOf returns the Observer of the task on a device, or nil; it may be nil itself.
	ObserverOf func(device int) construct.Observer
}

// Generate generates the task, if one of the objects has targetsync. Without nowait and
// without depend it is merged: there is no task, only the order of the foreign work.
// Otherwise it is one of the scope's. Nothing here waits: see [Included].
//
// generated tells whether the construct has been carried out. If it has, an error is what
// foreign work of Submit failed with, or says that work to come on an object's own queue
// is not ordered.
func (d *Device) Generate(t Task) (generated bool, err error) {
	c := &interopConstruct{device: d}
	for _, p := range t.Parts {
		if p.Object == None || p.Object.state.stream == nil {
			continue
		}
		st := p.Object.state.stream
		switch {
		case st.device != d:
			return false, fmt.Errorf("%w: %v is none of device %d", ErrInvalid, p.Object, d.Number)
		case slices.ContainsFunc(c.parts, func(p part) bool { return p.stream == st }):
			return false, fmt.Errorf("%w: %v is in a construct twice", ErrInvalid, p.Object)
		}
		c.parts = append(c.parts, part{stream: st, action: p.Action})
	}
	if len(c.parts) == 0 {
		return true, nil
	}
	slices.SortFunc(c.parts, func(a, b part) int { return cmp.Compare(a.stream.number, b.stream.number) })
	w := tasks.NewWork()
	defer w.Finish()
	if generated, err = c.generate(&t, w); !generated {
		return false, err
	}
	if c.observer != nil {
		construct.Created(c.observer, c.made, t.Depend, w, nil)
	}
	// Unless it waits for the host, the task is submitted by this: then no queue is made
	// to wait for what is not.
	w.Run()
	for _, p := range c.parts {
		err = errors.Join(err, p.orderOwn())
	}
	return true, err
}

// interopConstruct is what a construct is to the streams of its objects: a step's value in
// each. It is sent when it is in the first step of all of them, in all at once, or else
// two constructs could each be in the other's way.
type interopConstruct struct {
	device *Device
	// parts are in the order of their streams' numbers.
	parts []part
	// started: its task has; a construct without one has from the beginning. node is the
	// task, which Start gives. The device's order guards both.
	started bool
	node    *tasks.Node
	// merged: it has none.
	merged bool
	// included, if not nil, hears when the predecessors of the task are complete.
	included *Included
	// observer hears what the task does, which is made, or is nil.
	observer construct.Observer
	made     *tasks.Node
}

// part is a construct in one stream.
type part struct {
	stream *stream
	action Action
	// step is nil in a stream where the construct has no value.
	step *step
	// last is what later work on the object's own queue has to wait for.
	last uint64
}

// generate adds the construct and its task, if it has one.
func (c *interopConstruct) generate(t *Task, w *tasks.Work) (generated bool, err error) {
	if err := c.usable(); err != nil {
		return false, err
	}
	for i := range c.parts {
		if err := c.parts[i].gather(w); err != nil {
			return false, err
		}
	}
	for _, p := range c.parts {
		p.stream.adding.Lock()
		defer p.stream.adding.Unlock()
	}
	if err := c.usable(); err != nil {
		return false, err
	}
	c.merged = !t.NoWait && len(t.Depend) == 0
	if !c.merged {
		if t.ObserverOf != nil {
			c.observer = t.ObserverOf(c.device.Number)
		}
		// Nobody waits for it here, and foreign work waits for its end, which has to come.
		common := t.Construct
		common.Observer, common.NoWait, common.Always = c.observer, true, true
		task := tasks.Task{
			Domain: c.device.Domain, Runner: c,
			// Until its submission, see send.
			Held: true,
		}
		common.Fill(&task)
		if c.included = t.Included; c.included != nil {
			c.included.begun = make(chan struct{})
			task.HostOrdered = true
		}
		if c.made, err = t.Scope.Add(&task, w); err != nil {
			return false, err
		}
	}
	c.device.order.Lock()
	defer c.device.order.Unlock()
	if c.merged {
		c.started = true
		err = c.failuresLocked(true)
	}
	joins := c.joins()
	for i := range c.parts {
		p := &c.parts[i]
		if !c.merged || joins {
			p.step = p.stream.addConstructLocked(c)
		}
		p.last = p.stream.last.Load()
	}
	c.device.advanceLocked(w, c.parts[0].stream)
	return true, err
}

// gather makes a step of what was submitted to the object's own queue before. No other
// stream is held meanwhile: whoever holds the queue's lock may be waiting for one.
func (p *part) gather(w *tasks.Work) error {
	st := p.stream
	if p.action == ActionInit || !st.implicit.Load() {
		return nil
	}
	st.adding.Lock()
	defer st.adding.Unlock()
	if !st.implicit.Load() || st.destroyed.Load() {
		return nil
	}
	if err := st.gatherLocked(w); err != nil && st.lost() == nil {
		return err
	}
	// What was submitted to a device that is lost comes to nothing.
	return nil
}

// joins reports whether something can come before the construct in one stream and after
// it in another.
func (c *interopConstruct) joins() bool {
	before := slices.ContainsFunc(c.parts, func(p part) bool { return p.action != ActionInit })
	after := slices.ContainsFunc(c.parts, func(p part) bool { return p.action != ActionDestroy })
	return len(c.parts) > 1 && before && after
}

// usable refuses objects that were destroyed meanwhile, and all but the destruction of
// those of a device that is lost.
func (c *interopConstruct) usable() error {
	for _, p := range c.parts {
		if p.stream.destroyed.Load() {
			return fmt.Errorf("%w: %s was destroyed", ErrInvalid, p.stream.name)
		}
		if p.action == ActionDestroy {
			continue
		}
		if err := p.stream.lost(); err != nil {
			return err
		}
	}
	return nil
}

// failuresLocked returns what foreign work failed with that came before, where no construct is
// between them, and forgets it if that is asked for; the device's order is held.
func (c *interopConstruct) failuresLocked(forget bool) error {
	var errs []error
	for _, p := range c.parts {
		if first := p.stream.firstConstructLocked(); first != nil && first != c {
			continue
		}
		errs = append(errs, p.stream.failure)
		if forget {
			p.stream.failure = nil
		}
	}
	return errors.Join(errs...)
}

// orderOwn has what comes later on the object's own queue wait for the construct.
func (p *part) orderOwn() error {
	if p.action == ActionDestroy || p.action == ActionInit && p.step == nil {
		return nil
	}
	p.stream.adding.Lock()
	defer p.stream.adding.Unlock()
	if !p.stream.implicit.Load() {
		return nil
	}
	return p.stream.queue.Order(p.stream.at(p.last), nil)
}

// Start implements tasks.Runner.
func (c *interopConstruct) Start(n *tasks.Node, w *tasks.Work) {
	// Deferred, because an observer may end the goroutine.
	defer c.begin(n, w)
	if c.observer != nil {
		c.observer.Begin()
	}
}

// begin notes that the task has begun.
func (c *interopConstruct) begin(n *tasks.Node, w *tasks.Work) {
	if c.included != nil {
		c.included.begin(n)
	}
	c.device.order.Lock()
	defer c.device.order.Unlock()
	c.node, c.started = n, true
	for _, p := range c.parts {
		if p.step != nil {
			p.step.started++
		}
	}
	c.device.advanceLocked(w, c.parts[0].stream)
}

// Drop implements tasks.Runner; such a task is always run.
func (*interopConstruct) Drop(*tasks.Node) {}

// dueLocked reports whether nothing is before the construct that is not sent: another of those
// without tasks is before it too, since these come one after the other, as included tasks
// do. The device's order is held.
func (c *interopConstruct) dueLocked() bool {
	for _, p := range c.parts {
		if p.stream.steps[0] != p.step || c.merged && p.step.firstMergedLocked() != c {
			return false
		}
	}
	return true
}

// firstMergedLocked returns the first construct of a step that has no task.
func (s *step) firstMergedLocked() *interopConstruct {
	k := slices.IndexFunc(s.constructs, func(c *interopConstruct) bool { return c.merged })
	return s.constructs[k]
}

// firstLocked returns the first construct of a step that can be sent, or nil; the device's
// order is held.
func (s *step) firstLocked() *interopConstruct {
	if s.started == 0 {
		return nil
	}
	for _, c := range s.constructs {
		if c.started && c.dueLocked() {
			return c
		}
	}
	return nil
}

// awaitsLocked describes what the first construct of the first step waits for; the device's
// order is held.
func (s *step) awaitsLocked() string {
	c := s.constructs[0]
	if c.started {
		for _, p := range c.parts {
			if p.stream.steps[0] != p.step {
				return p.stream.name
			}
		}
	}
	return "its predecessors"
}

// sendLocked submits a construct that is due; the device's order is held.
func (c *interopConstruct) sendLocked(w *tasks.Work) {
	var f sched.Foreign
	var points []point
	for _, p := range c.parts {
		value := p.stream.sent + 1
		f.Waits = append(f.Waits, p.stream.before(value)...)
		f.Signals = append(f.Signals, p.stream.at(value)...)
		points = append(points, point{p.stream, value})
	}
	// Foreign work comes after a construct that could not be submitted all the same.
	switch err := c.submitLocked(f, w); {
	case err != nil && c.merged:
		c.device.signalFromHostLocked(points)
	case err != nil:
		c.device.background.Go(func() { c.complete(points) })
	}
	for _, p := range c.parts {
		k := slices.Index(p.step.constructs, c)
		p.step.constructs = slices.Delete(p.step.constructs, k, k+1)
		p.step.started--
		p.stream.leaveLocked()
	}
}

// submitLocked makes the construct's submission. An error is the task's.
func (c *interopConstruct) submitLocked(f sched.Foreign, w *tasks.Work) error {
	if c.merged {
		err := c.device.Shared.Order(f.Waits, f.Signals)
		if err != nil {
			// For the construct that comes next: of an object that can have one.
			k := slices.IndexFunc(c.parts, func(p part) bool { return p.action != ActionDestroy })
			st := c.parts[k].stream
			st.failure = errors.Join(st.failure, err)
		}
		return err
	}
	if c.device.lost() != nil && !slices.ContainsFunc(c.parts, func(p part) bool { return p.action != ActionDestroy }) {
		// There is no order to keep, which is all that the task is for.
		w.Defer(func(w *tasks.Work) {
			// Deferred, because an observer may end the goroutine.
			defer c.node.Release()
			construct.Complete(c.node, nil, w)
		})
		return nil
	}
	f.Failure = c.failuresLocked(false)
	if err := c.device.Scheduler.Order(c.node, f, w); err != nil {
		return err
	}
	_ = c.failuresLocked(true)
	c.node.Release()
	return nil
}

// complete signals what a construct was to signal that could not be submitted: after its
// task, which what it follows may still hold up.
func (c *interopConstruct) complete(points []point) {
	_ = c.node.Wait(context.Background(), nil)
	c.node.Release()
	c.device.order.Lock()
	defer c.device.order.Unlock()
	c.device.signalFromHostLocked(points)
}
