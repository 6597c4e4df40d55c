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
	"github.com/vkomp/vkomp/vk"
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
	// Construct is what all constructs have in common. Its Priority, Place, Observer and Always
	// are ignored: ObserverOf gives the observer, and the task always runs.
	construct.Construct
	// Parts are objects of one device, each of them once.
	Parts []Part
	// Included, if not nil, says that the task is included, and is used to wait for its
	// predecessors.
	Included *Included
	// ObserverOf returns the Observer of the task on a device, or nil; it may be nil itself.
	ObserverOf func(device int) construct.Observer
}

// Generate generates the task, if one of the objects has targetsync. Without nowait and
// without depend it is merged: there is no task, only the order of the foreign work.
// Otherwise it is a task of the scope. Generate does not wait; see [Included].
//
// generated reports whether the construct has been carried out. If it has, an error is the
// failure of earlier work given to Submit, or says that later work on an object's own queue
// could not be ordered after the construct.
func (d *Device) Generate(t Task) (generated bool, err error) {
	c := &interopConstruct{device: d}
	c.parts = c.first[:0]
	for _, p := range t.Parts {
		if p.Object == None || p.Object.state.sequence == nil {
			continue
		}
		seq := p.Object.state.sequence
		switch {
		case seq.device != d:
			return false, fmt.Errorf("%w: %v is none of device %d", ErrInvalid, p.Object, d.Number)
		case slices.ContainsFunc(c.parts, func(p part) bool { return p.sequence == seq }):
			return false, fmt.Errorf("%w: %v is in a construct twice", ErrInvalid, p.Object)
		}
		c.parts = append(c.parts, part{sequence: seq, action: p.Action})
	}
	if len(c.parts) == 0 {
		return true, nil
	}
	slices.SortFunc(c.parts, func(a, b part) int { return cmp.Compare(a.sequence.number, b.sequence.number) })
	w := tasks.NewWork()
	defer w.Finish()
	if generated, err = c.generate(&t, w); !generated {
		return false, err
	}
	if c.observer != nil {
		construct.Created(c.observer, c.made, t.Depend, w, nil)
	}
	// Unless the task waits for the host, this submits it. The objects' own queues, which
	// orderOwn makes wait for it, then wait only for what has been submitted.
	w.Run()
	for _, p := range c.parts {
		err = errors.Join(err, p.orderOwn())
	}
	return true, err
}

// interopConstruct is a construct in the sequences of its objects, in each of which it has a
// value. It is sent when it has come to the first step of all of them, and in all of them at
// once; otherwise two constructs could each wait for the other.
type interopConstruct struct {
	device *Device
	// parts are in the order of their sequences' numbers. Most constructs have one part, for which
	// first is room.
	parts []part
	first [1]part
	// started says that the task has started; a merged construct counts as started from the
	// beginning. node is the task, from then on. The device's order guards both.
	started bool
	node    *tasks.Node
	// merged says that the construct has no task.
	merged bool
	// included, if not nil, is told when the predecessors of the task are complete.
	included *Included
	// observer observes the task, or is nil. made is the task as Scope.Add returned it.
	observer construct.Observer
	made     *tasks.Node
}

// part is a construct in the sequence of one object.
type part struct {
	sequence *sequence
	action   Action
	// step is the step with the construct, nil if the construct has no value in the sequence.
	step *step
	// last is the value that later work on the object's own queue has to wait for.
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
		p.sequence.adding.Lock()
		defer p.sequence.adding.Unlock()
	}
	if err := c.usable(); err != nil {
		return false, err
	}
	c.merged = !t.NoWait && len(t.Depend) == 0
	if !c.merged {
		if t.ObserverOf != nil {
			c.observer = t.ObserverOf(c.device.Number)
		}
		// Generate waits for no task. Foreign work waits for the end of this one, so it always
		// runs.
		common := t.Construct
		common.Observer, common.NoWait, common.Always = c.observer, true, true
		task := tasks.Task{
			Domain: c.device.Domain, Runner: c,
			// The construct keeps the node until it is sent.
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
	connects := c.connects()
	for i := range c.parts {
		p := &c.parts[i]
		if !c.merged || connects {
			p.step = p.sequence.addConstructLocked(c)
		}
		p.last = p.sequence.last.Load()
	}
	c.device.advanceLocked(w, c.parts[0].sequence)
	return true, err
}

// gather adds a step for what was submitted to the object's own queue before. No other
// sequence is locked meanwhile, because the holder of the queue's lock may be waiting for one.
func (p *part) gather(w *tasks.Work) error {
	seq := p.sequence
	if p.action == ActionInit || !seq.implicit.Load() {
		return nil
	}
	seq.adding.Lock()
	defer seq.adding.Unlock()
	if !seq.implicit.Load() || seq.destroyed.Load() {
		return nil
	}
	if err := seq.gatherLocked(w); err != nil && seq.lost() == nil {
		return err
	}
	// On a lost device there is nothing to order any more.
	return nil
}

// connects reports whether the construct orders what comes before it in one sequence before
// what comes after it in another.
func (c *interopConstruct) connects() bool {
	before := slices.ContainsFunc(c.parts, func(p part) bool { return p.action != ActionInit })
	after := slices.ContainsFunc(c.parts, func(p part) bool { return p.action != ActionDestroy })
	return len(c.parts) > 1 && before && after
}

// usable returns an error if an object has been destroyed in the meantime, or if the device is
// lost and the construct does not only destroy objects.
func (c *interopConstruct) usable() error {
	for _, p := range c.parts {
		if p.sequence.destroyed.Load() {
			return fmt.Errorf("%w: %s was destroyed", ErrInvalid, p.sequence.name)
		}
		if p.action == ActionDestroy {
			continue
		}
		if err := p.sequence.lost(); err != nil {
			return err
		}
	}
	return nil
}

// failuresLocked returns the failures of the foreign work that comes immediately before the
// construct, with no other construct in between, and forgets them if forget is set. The
// device's order is held.
func (c *interopConstruct) failuresLocked(forget bool) error {
	var errs []error
	for _, p := range c.parts {
		if first := p.sequence.firstConstructLocked(); first != nil && first != c {
			continue
		}
		errs = append(errs, p.sequence.failures...)
		if forget {
			p.sequence.failures = nil
		}
	}
	return errors.Join(errs...)
}

// orderOwn makes the object's own queue wait for the construct before it begins later work.
func (p *part) orderOwn() error {
	if p.action == ActionDestroy || p.action == ActionInit && p.step == nil {
		return nil
	}
	p.sequence.adding.Lock()
	defer p.sequence.adding.Unlock()
	if !p.sequence.implicit.Load() {
		return nil
	}
	err := p.sequence.queue.Order(p.sequence.at(p.last), nil)
	if errors.Is(err, vk.ErrClosed) {
		return nil // with the runtime being closed, there is no later work on the queue
	}
	return err
}

// Start implements tasks.Runner.
func (c *interopConstruct) Start(n *tasks.Node, w *tasks.Work) {
	if c.device.Scheduler.Postpone(n) {
		return
	}
	// Deferred, because an observer may end the goroutine.
	defer c.begin(n, w)
	if c.observer != nil {
		c.observer.Begin()
	}
}

// begin records that the task has started.
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
	c.device.advanceLocked(w, c.parts[0].sequence)
}

// Recycle implements tasks.Runner.
func (*interopConstruct) Recycle() {}

// dueLocked reports whether everything before the construct has been sent. Merged constructs are
// sent in the order of the program, as included tasks are executed. The device's order is held.
func (c *interopConstruct) dueLocked() bool {
	for _, p := range c.parts {
		if p.sequence.steps[0] != p.step || c.merged && p.step.firstMergedLocked() != c {
			return false
		}
	}
	return true
}

// firstMergedLocked returns the first merged construct of a step.
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
			if p.sequence.steps[0] != p.step {
				return p.sequence.name
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
		value := p.sequence.sent + 1
		f.Waits = append(f.Waits, p.sequence.before(value)...)
		f.Signals = append(f.Signals, p.sequence.at(value)...)
		points = append(points, point{p.sequence, value, value})
	}
	// Foreign work waits for the values of a construct even if that could not be submitted.
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
		p.sequence.sentLocked()
	}
}

// submitLocked makes the construct's submission. An error is also the failure of the task.
func (c *interopConstruct) submitLocked(f sched.Foreign, w *tasks.Work) error {
	if c.merged {
		err := c.device.Shared.Order(f.Waits, f.Signals)
		if err != nil {
			// The next construct reports it, so the object must not be one that ends here.
			k := slices.IndexFunc(c.parts, func(p part) bool { return p.action != ActionDestroy })
			seq := c.parts[k].sequence
			seq.failures = append(seq.failures, err)
		}
		return err
	}
	if c.device.lost() != nil && !slices.ContainsFunc(c.parts, func(p part) bool { return p.action != ActionDestroy }) {
		// On a lost device there is no order to keep, and the task has no other purpose.
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

// complete signals, from the host, the values of a construct that could not be submitted. Its
// task has failed, but it is complete only when everything before it is, so complete waits.
func (c *interopConstruct) complete(points []point) {
	_ = c.node.Wait(context.Background(), nil)
	c.node.Release()
	c.device.order.Lock()
	defer c.device.order.Unlock()
	c.device.signalFromHostLocked(points)
}
