package sched

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/pipeline"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// What most tasks do is to run a kernel, in one dispatch, on storage that is present before them and after them, or on memory
// to which the program has pointers, so that nothing is allocated, copied or removed. Such a task is a resident task. A target has
// room for everything that a task may do, and thousands of tasks are in flight: what they cost is the memory that is fetched for
// them. The record of a resident task is a few cache lines long, and counts itself in the blocks that it uses instead of being
// listed there.
//
//	created ──▶ placed ──▶ complete
//	   │           │
//	   └─▶ target ◀┘
//
// When it starts, it becomes a target unless all of its storage is present and stays, and is the device's own. It also becomes
// one, which can wait, while the exit of a task in flight looks for storage that is absent, and while the host is going to read
// its memory. When its commands are complete, it becomes one if it has the last reference to a block, or if a block is gone. When
// its batch is refused, it becomes one in order to fail. So all that is out of the ordinary is done in one place, and a test has
// random programs run with and without resident tasks.

// The largest launch of a resident task: buffer arguments, and bytes of push constants. What is beyond recordBindings and recordPush
// is in a residentWide, which few tasks have.
const (
	residentBindings, recordBindings = 8, 4
	residentPush, recordPush         = 128, 48
)

// residentsAtOnce is the number of resident tasks that end in a row without the lock being given up.
const residentsAtOnce = 64

// resident is a resident task. What the end of the task reads comes first.
type resident struct {
	s    *Scheduler
	node *tasks.Node
	// kernel has the pipelines, and is released when the task ends.
	kernel *pipeline.Kernel
	// order has the place of the task's command. fewBlocks has the blocks in which the items lie, from the start of the
	// task on; distinct is their number: see blocks. Scheduler.mu guards them.
	order     order.Task
	fewBlocks [recordBindings]*memory.Present
	distinct  uint8

	// The following fields are set when the task is created.

	// count is the number of items, bindings that of the kernel's buffer arguments, which are more if some are memory
	// of pointers, and pushed that of the bytes of push constants. watched says that the task has an observer.
	count, bindings, pushed uint8
	watched                 bool
	// groups is the number of workgroups, and extent that of invocations.
	groups [3]uint32
	extent [3]uint64
	// fewItems has the items, and fewPush the push constants: see items and push. more is made for the first of the
	// record's tasks that needs it.
	fewItems [2]memory.Map
	more     *residentMore
	fewPush  [recordPush]byte

	// awaited is what the task shares with the construct that waits for it, or nil.
	awaited *awaited
	// watch is what the task's observer needs, or needed of the record's earlier tasks. It is made for
	// the first of them that has an observer.
	watch *residentWatch

	// next links the tasks in the intake, and the records of a free list.
	next *resident
	// list is the free list to which the record is returned.
	list *freeResidents
}

// mayReside reports whether the region's task can be a resident task, if its storage is present. kernel
// is that of the region on this device, or nil.
func (s *Scheduler) mayReside(r *Region, kernel *pipeline.Kernel) bool {
	return kernel != nil && (r.NoWait || r.Observer == nil) && r.plain() && r.buffers() <= residentBindings &&
		!s.leakSites && !s.general && kernel.PushSize() <= residentPush && kernel.Ready(0) != nil
}

// runResident is Run for a region whose task can be a resident task. It reports false, and has done
// nothing, if the task is to be a target: it takes more than one dispatch, or none, or there is an error, which is found
// anew.
func (s *Scheduler) runResident(ctx context.Context, r *Region, pipelines *pipeline.Kernel) (ran bool, err error) {
	var sizes [residentBindings]uint64
	var calls [1]kernel.Call
	plan, runs, err := planLaunch(r.Kernel, &r.Range, s.props, r.sizes(sizes[:0]), r.Values, calls[:0])
	if err != nil || !runs || len(plan.Calls) > 1 || plan.Fold != 0 {
		return false, nil
	}
	l := s.residents.take(s)
	if !l.setArguments(r) {
		discard(l)
		return false, nil
	}
	l.kernel = pipelines
	l.pushed = uint8(pipelines.PushSize())
	if l.pushed > recordPush {
		l.wideOf()
	}
	for d := range l.extent {
		l.extent[d], l.groups[d] = r.Range[d], plan.Calls[0].Count[d]
	}
	r.Kernel.Push(l.push(), r.Values)
	if r.Observer != nil {
		l.observe(r.Observer)
	}
	if r.NoWait {
		defer s.countCreated()
	}
	w := tasks.NewWork()
	w.Creates = true
	l.awaited = s.newAwaited(r, w)
	return true, s.add(ctx, r, l, l.awaited, w)
}

// Start implements tasks.Runner.
func (l *resident) Start(n *tasks.Node, w *tasks.Work) {
	l.node = n
	if l.observesRun() {
		l.startWatched(w)
		return
	}
	s := l.s
	deferred := l.awaited == nil
	if deferred && w.Creates && s.toIntake(l) {
		return
	}
	s.mu.Lock()
	own := l.awaited.ownLocked(w)
	kept, started := s.startResidentLocked(l, w)
	if deferred {
		s.startedAloneLocked()
	}
	// What has become ready together, and by the start of that, is placed before the device is given any of it: that is
	// fewer submissions, and fewer dispatches where launches are merged.
	switch {
	case deferred && !w.Empty() && s.startSomeLocked(w) > 0:
		s.flushAllLocked(order.Refill, w) // as after refillAfterLocked
	case kept != nil:
		s.flushLocked(kept, order.Gather, w)
		s.refillAfterLocked(w)
	}
	s.unlockStartedLocked(own, w)
	if !started {
		l.becomeTarget().Start(n, w)
	}
}

// startResidentLocked enters the task's storage and places its command; then l may be another task's. kept is as the
// result of placeResidentLocked. started is false, and nothing is done, if the task has to be a target.
func (s *Scheduler) startResidentLocked(l *resident, w *tasks.Work) (kept *order.Queue, started bool) {
	launch := &s.launching
	if s.refusalLocked() != nil || !s.enterResidentLocked(l, launch) {
		return nil, false
	}
	return s.placeResidentLocked(l, launch, w), true
}

// Drop implements tasks.Dropper.
func (l *resident) Drop(*tasks.Node, error) { l.unpin() }

// Recycle implements tasks.Runner.
func (l *resident) Recycle() {
	if invariants.Enabled && l.keeps() {
		panic("sched: a resident task still keeps memory")
	}
	if l.kernel != nil {
		l.kernel.Release()
	}
	l.giveBack()
}

// residentLaunch is what the launch of a resident task binds: the first of the arguments and ranges, used in number. The others are
// left over from earlier launches.
type residentLaunch struct {
	arguments [residentBindings]argument
	ranges    [residentBindings]vk.BufferRange
	used      int
}

// enterResidentLocked enters the task's storage, and sets s.order.placing to what its command follows
// because of other tasks. It reports false, and has done nothing, if the task has to be a target. It does not matter
// which host storage tasks in flight are going to write: the task reads none.
func (s *Scheduler) enterResidentLocked(l *resident, launch *residentLaunch) bool {
	k := l.kernel
	l.distinct = 0
	if s.presence.vacant() {
		return false
	}
	bindings := k.Bindings()
	items, pointed, blocks, next := l.items(), l.pointed(), l.blockRoom(), 0
	launch.used = 0
	for i := range int(l.bindings) {
		a := &launch.arguments[launch.used]
		if pointed != nil && pointed[i].Allocation != nil {
			*a = pointed[i]
			if !s.accessibleLocked(a.Allocation) {
				return false
			}
		} else {
			m := &items[next]
			next++
			block, offset := s.stayingLocked(m, 0)
			if block == nil {
				return false
			}
			if !slices.Contains(blocks[:l.distinct], block) {
				blocks[l.distinct] = block
				l.distinct++
			}
			state := stateOf(block)
			if len(state.Readers) > 0 {
				return false // the command might change what the host is still to read
			}
			a.Allocation, a.block, a.at, a.size, a.toEnd = state.Allocation, state, blockAt(block)+offset, m.Size, m.Size == 0
			if a.toEnd {
				a.size = block.Storage.Size - offset
			}
			if l.watched && l.watch.traits.has(observedOps) {
				l.watch.mapsLocked(s, m, state, a.at)
			}
		}
		if !bindings[i].Used {
			continue
		}
		if a.toEnd && a.size < bindings[i].MinSize {
			return false
		}
		a.readOnly = bindings[i].ReadOnly
		var err error
		if launch.ranges[launch.used], err = a.bindLocked(k.Kernel, i, s.props, l.push()); err != nil {
			return false
		}
		launch.used++
	}
	s.order.placing.Set(order.SyncPoint{})
	if len(l.node.Predecessors()) > 0 {
		// One of them can have failed since the task started.
		if afterPredecessorsLocked(l.node, &s.order.placing.SyncSet) != nil || l.node.FailedBy() != nil {
			return false
		}
	}
	l.countLocked()
	return true
}

// accessibleLocked reports whether nothing in flight has to be looked at before a kernel that has a pointer to the memory can
// be placed: see mustWaitToAccessLocked.
func (s *Scheduler) accessibleLocked(m *allocation.Allocation) bool {
	if m.Shared || len(m.Readers) > 0 {
		return false
	}
	for _, block := range m.Blocks {
		s.presence.table.Wake(block)
		if state := stateOf(block); !state.quiet() || !state.outlives(block, 0) {
			return false
		}
	}
	return true
}

// placeResidentLocked places the command of a task that has entered, behind what s.order.placing has. It returns the
// queue in whose pending batch the command is kept, which the caller closes when it is time for that, or nil if that is not
// to be done: a construct waits for the task, or the batch is refused.
func (s *Scheduler) placeResidentLocked(l *resident, launch *residentLaunch, w *tasks.Work) (kept *order.Queue) {
	n, k := l.node, l.kernel
	s.followPinnedOfLocked(l.items())
	for i := range launch.arguments[:launch.used] {
		a := &launch.arguments[i]
		a.Follow(&s.order.placing, a.bytes())
	}
	known := order.Launch{Invocations: l.extent[0] * l.extent[1] * l.extent[2], Bounded: k.Bounded()}
	q := s.order.KernelQueue(&s.order.placing, known)
	b, at, err := s.beginLocked(q, w)
	if err != nil {
		s.endLocked(l.becomeTargetLocked(w), err, w)
		s.flushAllLocked(order.Refill, w)
		return nil
	}
	stream := b.Level(at.Level)
	var timed trace.Timing
	if l.watched {
		timed = l.timeLocked(q, at.Level)
	}
	stream.Dispatch(*k.Ready(0), launch.ranges[:launch.used], l.push(), [3]uint32{}, l.groups)
	s.mergeLocked(stream, k, 1)
	timed.End(stream, vk.StageCompute)
	s.order.CountDispatches(q, 1, known)
	for i := range launch.arguments[:launch.used] {
		launch.arguments[i].usedLocked(at)
	}
	l.order.At = at
	b.AddTask(&l.order)
	n.Placed(w)
	if l.awaited != nil {
		l.awaited.placedLocked(&l.order, q)
		s.flushLocked(q, order.AtOnce, w)
		return nil
	}
	return q
}

// countLocked counts the task in its blocks, whose memory their residents keep.
func (l *resident) countLocked() {
	for _, block := range l.blocks() {
		block.Retain()
		state := stateOf(block)
		if state.residents++; state.residents == 1 {
			state.Pin()
		}
	}
	l.s.life.live++
}

// uncountLocked no longer counts the task among the residents of its blocks. Tasks that wait until these
// have none try again.
func (l *resident) uncountLocked(w *tasks.Work) {
	p := &l.s.presence
	for _, block := range l.blocks() {
		state := stateOf(block)
		if state.residents--; state.residents == 0 {
			state.Unpin()
			if len(state.parked) > 0 {
				state.parked.restart(w)
			}
		}
		if !block.Removed() {
			continue
		}
		if p.orphans--; p.orphans == 0 {
			p.orphaned.restart(w)
		}
	}
}

// endResidents ends the resident tasks in done from *next on, whose commands are complete, up to the
// first task that is none or whose observer hears of its end, or a number of them: others may wait for the
// lock. If one of them has to become a target in order to end, that is the result.
func (s *Scheduler) endResidents(done []*order.Task, next *int, w *tasks.Work) *target {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.exits.ended[:0]
	for len(ended) < residentsAtOnce && *next < len(done) {
		l, ok := done[*next].Owner.(*resident)
		if !ok || l.observesRun() {
			break
		}
		done[*next] = nil
		*next++
		if !l.endLocked(w) {
			s.completeAllLocked(ended, w)
			return l.becomeTargetLocked(w)
		}
		ended = append(ended, l.overLocked(w))
	}
	s.completeAllLocked(ended, w)
	return nil
}

// completeAllLocked completes tasks that are over: s.exits.ended, to which they were added.
func (s *Scheduler) completeAllLocked(ended []*tasks.Node, w *tasks.Work) {
	tasks.CompleteAll(ended, w)
	clear(ended)
	s.exits.ended = ended
	s.life.wake.Broadcast()
}

// endLocked gives back the task's storage. It reports false, and has done nothing, if a block is gone, or is to
// go with the task's reference.
func (l *resident) endLocked(w *tasks.Work) bool {
	blocks := l.blocks()
	for _, block := range blocks {
		if !block.Stays() {
			return false
		}
	}
	l.uncountLocked(w)
	for _, block := range blocks {
		block.Relinquish()
	}
	l.unpinLocked()
	return true
}

// overLocked records that the task, which has given back its storage, is over. The result is for
// completeAllLocked.
func (l *resident) overLocked(w *tasks.Work) *tasks.Node {
	l.s.retryLocked(w)
	l.s.life.live--
	l.awaited.endedLocked()
	return l.node
}

// becomeTarget returns a target for the task, which has not entered.
func (l *resident) becomeTarget() *target {
	s, n := l.s, l.node
	var buffers [residentBindings]Buffer
	t := s.newTarget(&Region{
		Construct: construct.Construct{Label: n.Label(), NoWait: l.awaited == nil},
		Enter:     l.items(), Structured: true, Kernel: l.kernel.Kernel, Buffers: l.buffers(buffers[:0]), Range: l.extent,
	})
	t.node, t.awaited = n, l.awaited
	t.dispatch.kernel, t.dispatch.pipeline = l.kernel, *l.kernel.Ready(0)
	t.dispatch.plan.Calls = append(t.dispatch.plan.Calls[:0], kernel.Call{Count: l.groups})
	t.dispatch.push = append(t.dispatch.push[:0], l.push()...)
	l.handTo(t)
	s.share(t)
	if l.watched {
		l.watch.handTo(t)
		l.watched = false
	}
	n.Hand(t)
	l.giveBack()
	return t
}

// becomeTargetLocked returns a target for the task, which has entered and may be placed.
func (l *resident) becomeTargetLocked(w *tasks.Work) *target {
	s, at := l.s, l.order.At
	var few [residentBindings]*memory.Present
	blocks := append(few[:0], l.blocks()...)
	for _, block := range blocks {
		stateOf(block).Pin()
	}
	l.uncountLocked(w)
	t := l.becomeTarget()
	if t.awaited != nil {
		t.awaited.place = &t.order.Task
	}
	t.to(taskEntered)
	s.presence.entries++
	t.entry.number = s.presence.entries
	for i := range t.Enter {
		m := &t.Enter[i]
		for _, block := range blocks {
			// An item without bytes lies in the block in which its pointer is, and not in one that ends there.
			if start, end := block.Section.Start(), block.Section.End(); start <= m.Start() && m.Start() < end && m.End() <= end {
				t.entry.uses = append(t.entry.uses, memory.Use{Present: block, Offset: uint64(m.Start() - start)})
			}
		}
	}
	if invariants.Enabled && len(t.entry.uses) != len(t.Enter) {
		panic(fmt.Sprintf("sched: %d items use %d blocks", len(t.Enter), len(t.entry.uses)))
	}
	if cap(t.entry.holds) < len(blocks) {
		t.entry.holds = make([]hold, 0, len(blocks))
	}
	for _, block := range blocks {
		if block.Removed() {
			s.noteAbsentExitLocked(t)
		} else {
			t.holdLocked(block, false)
		}
		t.entry.pins = append(t.entry.pins, stateOf(block).Allocation)
	}
	if at.Value != 0 {
		t.order.At = at
		t.order.Used.Add(at)
		t.to(taskPlaced)
	}
	return t
}

// giveBack forgets the task, and keeps the record for another one.
func (l *resident) giveBack() {
	if l.watched {
		l.watch.release()
		l.watched = false
	}
	clear(l.items())
	clear(l.blocks())
	l.node, l.kernel, l.awaited, l.order.At = nil, nil, nil, order.SyncPoint{}
	l.count, l.bindings, l.pushed, l.distinct = 0, 0, 0, 0
	l.s.residents.giveBack(l)
}
