package sched

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/pipeline"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// Region is a construct that a target task carries out: map its storage, run a
// kernel, unmap.
type Region struct {
	// Construct is what it has in common with others. A Priority above 0 has the commands
	// submitted at once.
	construct.Construct
	// Enter are the maps of the region's beginning, Exit those of its end. A region has one of
	// them.
	Enter, Exit []memory.Map
	// Structured says that the end of the region unmaps what Enter maps, as that of a target
	// construct does.
	Structured bool
	// Infinite: the blocks that Enter creates count nothing, and no exit removes
	// them (globals that are declared for the target).
	Infinite bool
	// Transfers are made between Enter and Exit, by a construct without a kernel.
	Transfers []Transfer
	// Kernel is nil for a construct that only moves data. Its k-th buffer is
	// Buffers[k], or Enter[k] where Buffers is nil; Values fill its push constants
	// in order.
	Kernel  *kernel.Kernel
	Buffers []Buffer
	// Addresses are values that become device addresses.
	Addresses []Address
	// Pointers point to the storage that the kernel reaches by its address alone.
	Pointers []Pointer
	// Images are the items that are no copies of bytes.
	Images []Image
	// Found, if not nil, has an element for each item of Enter: the task sets those
	// whose storage is on the device.
	Found []bool
	// Range is the number of invocations in each dimension.
	Range [3]uint64
	// Values are read before Run returns, and not kept.
	Values [][]byte
	// Site is where the construct is in the program, for the report of what is left
	// at Close; if nil, where Run is called, where that is asked for.
	Site *memory.Site
}

// target is a target task under way. Until it is placed it belongs to the
// goroutine that starts it, then to Scheduler.mu.
type target struct {
	s    *Scheduler
	node *tasks.Node
	Region

	// dispatch is what Region.Kernel is dispatched with.
	dispatch dispatch
	traits   traits

	// All below is guarded by s.mu, but for what beginTransfers and endTransfers do without it.

	// entry is what the task has of the presence table, transfers what it copies and fills,
	// order where its commands are, exit what becomes of its maps.
	entry     entry
	transfers transfers
	order     order.Task
	exit      exit
	// failed is why the task fails when the commands are complete that it has.
	failed error
	// parked are tasks that wait for this one to finish before they can enter.
	parked parkedTasks
	state  taskState
	notes  notes
	// driven is the queue whose driver it is already.
	driven *order.Queue

	*observed
}

// check refuses a region that this device cannot run, whatever the state of its
// memory.
func (s *Scheduler) check(ctx context.Context, t *target) error {
	if t.Kernel == nil {
		return nil
	}
	p := s.props
	var few [16]uint64 // as many as most kernels have arguments
	sizes := few[:0]
	for k := range t.buffers() {
		sizes = append(sizes, t.bufferSize(k, p))
	}
	buffers := len(sizes)
	for _, v := range t.Values {
		sizes = append(sizes, uint64(len(v)))
	}
	if err := t.Kernel.Fits(p, sizes[:buffers], sizes[buffers:]); err != nil {
		return err
	}
	g := t.Kernel.Groups(t.Range)
	if g[0] == 0 || t.Kernel.Empty(sizes[:buffers]) {
		// Nothing to run: the task keeps its maps and dependences.
		s.share(t)
		t.Kernel = nil
		return nil
	}
	var err error
	if t.dispatch.plan, err = t.Kernel.PlanDispatch(g, p, t.dispatch.plan.Calls); err != nil {
		return err
	}
	if err = s.pipeline(ctx, t); err != nil {
		return err
	}
	t.dispatch.push = t.Kernel.Push(t.dispatch.push, t.Values)
	s.share(t)
	return nil
}

// newTarget returns a target for the region. It copies what the task needs when Run has returned.
func (s *Scheduler) newTarget(r *Region) *target {
	t, _ := s.spare.Get().(*target)
	if t == nil {
		t = &target{s: s}
		t.order.Owner = t
	}
	enter, exit := append(t.Enter[:0], r.Enter...), append(t.Exit[:0], r.Exit...)
	buffers, addresses := append(t.Buffers[:0], r.Buffers...), append(t.Addresses[:0], r.Addresses...)
	t.Region = *r
	t.to(taskCreated)
	t.Enter, t.Exit, t.Depend = enter, exit, nil
	t.Addresses, t.Transfers, t.Pointers = addresses, nil, nil
	t.Images = append([]Image(nil), r.Images...)
	t.dispatch.explicit, t.Buffers = r.Buffers != nil, buffers
	return t
}

// Recycle implements tasks.Recycler. An included task's target is given back by
// Run, which still reads it.
func (t *target) Recycle() {
	t.unpin()
	if t.NoWait {
		t.giveBack()
	}
}

// giveBack keeps the target for another task; nothing refers to it any more.
func (t *target) giveBack() {
	t.unpin()
	if t.notes.has(single) {
		return
	}
	t.forgetObserved()
	// Field by field: a literal would be made apart and copied, all twelve hundred bytes
	// of it.
	empty(&t.Enter)
	empty(&t.Exit)
	empty(&t.Buffers)
	empty(&t.Addresses)
	enter, exit, buffers, addresses := t.Enter, t.Exit, t.Buffers, t.Addresses
	t.Region = Region{}
	t.Enter, t.Exit, t.Buffers, t.Addresses = enter, exit, buffers, addresses
	t.node, t.failed, t.parked = nil, nil, t.parked[:0]
	t.dispatch.reset()
	t.entry.reset()
	t.transfers.reset()
	t.order.Reset()
	t.exit.reset()
	t.to(taskIdle)
	t.traits, t.notes = 0, 0
	t.s.spare.Put(t)
}

// empty takes all out of a slice, which keeps its memory.
func empty[T any](s *[]T) {
	if len(*s) > 0 {
		clear(*s)
		*s = (*s)[:0]
	}
}

// Run generates the region's target task. An included one is complete when Run
// returns, with its failure, unless ctx ends first: then its cause is returned
// and the task goes on as if it were deferred. Of a deferred one only what can
// be told at once is returned, the rest is the scope's to report. Run keeps
// nothing of the region's slices.
func (s *Scheduler) Run(ctx context.Context, r *Region) error {
	if s.hit(r) {
		return nil
	}
	var pipelines *pipeline.Kernel
	s.mu.Lock()
	err := s.refusalLocked()
	if err == nil && r.Kernel != nil {
		pipelines, err = s.useLocked(r.Kernel)
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("target %q: %w", r.Label, err)
	}
	t := s.newTarget(r)
	if s.leakSites && t.Site == nil && len(t.Enter) > 0 {
		t.Site = memory.CallSite()
	}
	t.dispatch.kernel = pipelines
	err = s.resolve(t, r)
	if err == nil {
		err = s.check(ctx, t)
	}
	t.Values = nil
	if err != nil {
		t.giveBack()
		return fmt.Errorf("target %q: %w", r.Label, err)
	}
	task := tasks.Task{Domain: s.domain, Runner: t, Recycler: t}
	// An observer may take its time.
	if !r.NoWait && ctx.Done() == nil && r.Observer == nil {
		t.notes |= driving
	}
	if r.Observer != nil {
		t.observe(r.Observer)
	}
	w := tasks.NewWork()
	node, err := r.Add(ctx, &task, w, nil)
	if err != nil {
		t.giveBack()
		w.Finish()
		return err
	}
	if r.NoWait {
		w.Finish()
		return nil
	}
	if err := s.await(ctx, t, node, r.Place, w); err != nil {
		return err
	}
	err = node.Outcome()
	node.Release()
	t.giveBack()
	return err
}

// await finishes w and is Node.Await then, for which the caller waits for the device itself
// if it can. Where an observer ends the goroutine nobody waits for the task.
func (s *Scheduler) await(ctx context.Context, t *target, node *tasks.Node, place tasks.Place, w *tasks.Work) (err error) {
	over := false
	defer func() {
		if !over {
			node.Abandon()
		}
	}()
	w.Finish()
	err = s.awaitStarted(ctx, t, node, place)
	over = true
	return err
}

func (s *Scheduler) awaitStarted(ctx context.Context, t *target, node *tasks.Node, place tasks.Place) error {
	drives := ctx.Done() == nil
	if done, _ := node.Completed(); done {
		if drives {
			s.drive(t, node)
		}
		return nil
	}
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	if drives {
		s.drive(t, node)
	}
	return node.Await(ctx, nil)
}

// Join carries out a task without work of its own, in place of the runner that
// was started: its order is kept on the device.
func (s *Scheduler) Join(n *tasks.Node, w *tasks.Work) {
	t := s.newTarget(&Region{Construct: construct.Construct{NoWait: true}})
	t.observeJoin(n)
	n.Hand(t, t)
	t.Start(n, w)
}

// Start implements tasks.Runner: it enters the task's storage and places its
// commands.
func (t *target) Start(n *tasks.Node, w *tasks.Work) {
	t.node = n
	if !t.traits.has(observedRun) {
		t.s.start(t, w, nil)
		return
	}
	if t.traits.has(observedOps) {
		t.start = startTelling
	}
	at := startBegins
	defer func() {
		// Deferred, because the observer may end the goroutine.
		switch at {
		case startBegins:
			t.s.refuse(t, protect.ErrGoexit, w)
		case startEntered:
			t.s.handOver(t, protect.ErrGoexit, w)
			t.told()
		case startHandedOver:
			t.told()
		}
	}()
	if t.heard == heardNothing {
		t.heard = heardBegin
		t.Observer.Begin()
	}
	t.s.start(t, w, &at)
}

// startStage is how far the start of an observed task is.
type startStage uint8

const (
	startBegins startStage = iota
	// startEntered: the task has storage, and is not handed over.
	startEntered
	// startHandedOver: what is left to do is to say that the observer has heard of it.
	startHandedOver
	// startOver: nothing is left to do.
	startOver
)

// start enters the task's storage and places its commands. at, nil for a task whose
// observer hears of nothing, is set wherever the observer is called.
func (s *Scheduler) start(t *target, w *tasks.Work, at *startStage) {
	n := t.node
	stage := func(now startStage) {
		if at != nil {
			*at = now
		}
	}
	stage(startOver)
	s.mu.Lock()
	if err := s.refusalLocked(); err != nil {
		s.mu.Unlock()
		s.refuse(t, err, w)
		return
	}
	if ok, err := t.compiledLocked(n); !ok {
		s.mu.Unlock()
		if err != nil {
			s.refuse(t, err, w)
		}
		return
	}
	if parked := s.mustWaitForLocked(t); parked != nil {
		t.to(taskParked)
		*parked = append(*parked, n)
		s.mu.Unlock()
		return
	}
	if err := s.enterLocked(t, w); err != nil {
		if errors.Is(err, memory.ErrOutOfMemory) && s.life.live > 0 {
			// What is in flight will give memory back.
			t.to(taskStarved)
			t.notes |= single
			s.life.starved = append(s.life.starved, t)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		s.refuse(t, err, w)
		return
	}
	t.to(taskEntered)
	s.life.live++
	if !t.traits.has(observedOps) {
		s.handOverLocked(t, s.beginTransfersLocked(t, w), w) // t is not to be read then
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()

	stage(startEntered)
	t.Observer.Map(t.items)
	t.tellDue()
	s.mu.Lock()
	copying := s.beginTransfersLocked(t, w)
	s.mu.Unlock()
	t.tellPlaced(ompt.ScopeBegin)
	stage(startHandedOver)
	s.handOver(t, copying, w)
	t.tellPlaced(ompt.ScopeEnd)
}

func (s *Scheduler) handOver(t *target, copying error, w *tasks.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOverLocked(t, copying, w)
}

// handOverLocked gives a task that has entered to the device; copying is what its copies came
// to.
func (s *Scheduler) handOverLocked(t *target, copying error, w *tasks.Work) {
	err := s.refusalLocked()
	if err == nil && copying != nil {
		err = copying
		for i := range t.entry.uses {
			if u := &t.entry.uses[i]; u.Created && u.CopyIn {
				stateOf(u.Present).broken = err
			}
		}
	}
	if err == nil {
		// It can have failed since the task started.
		err = t.node.FailedBy()
	}
	if err == nil {
		err = t.sharedLocked()
	}
	if err != nil {
		s.endLocked(t, err, w)
		return
	}
	// A batch that cannot be submitted ends its tasks: t is not to be read then.
	now := !t.NoWait || t.Priority > 0
	if err := s.placeLocked(t, w); err != nil {
		s.endLocked(t, err, w)
		// What was placed of it may be all that its queue has.
		for _, q := range s.order.All() {
			s.flushLocked(q, now, w)
		}
		return
	}
	last := s.order.Of(t.order.At)
	var few [8]*order.Queue
	touched := few[:0]
	for i := range t.order.Used.Len() {
		if q := s.order.Of(t.order.Used.At(i)); q != last {
			touched = append(touched, q)
		}
	}
	// The waiter is left alone if Run comes to wait for the queue at once.
	drives := t.notes.has(driving) && w.Empty()
	if drives {
		last.AddDriver()
		t.driven = last
	}
	for _, q := range append(touched, last) {
		s.flushLocked(q, now, w)
	}
	if drives && !w.Empty() {
		t.driven = nil
		s.order.StopDriving(last)
	}
}

// Drop implements tasks.Runner.
func (t *target) Drop(*tasks.Node) {}

// refusalLocked is the reason for which no task can be placed any more.
func (s *Scheduler) refusalLocked() error {
	if s.loss.err != nil {
		return s.loss.err
	}
	if s.life.closing {
		return ErrClosed
	}
	return nil
}
