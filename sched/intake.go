package sched

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// intake has resident tasks that are to start. Goroutines that create many tasks put them here, and when a
// group of them has been created, one of these goroutines starts all that are here:
//
//	goroutine 1   create ──▶ create ──▶ create ──▶ lock: start 64 ──▶ create ──▶
//	                 └────────┐└────────┐└─────┐   ▲        └──────┐
//	goroutine 2   create ──▶ create ──▶ create ──▶ create ──▶ create ──▶
//	                                                               ▼
//	submitter                                                     submit
//
// To start a task takes what its creation has just touched, which is still in the cache of the processor. A
// goroutine that did nothing but start what others create would fetch each task from theirs, and give it back:
// that takes longer than it takes to start the task. It is batches that change hands, to the goroutine that
// submits them. Besides, what is placed in a row without the device having to be looked at between takes less time,
// and fewer submissions.
//
// The goroutine that starts a group also looks how far the device has come, submits what has collected meanwhile, and
// ends tasks that are complete, which would otherwise take a goroutine that has to be woken for it.
//
// All this is so while the intake is open: one task alone is placed by the goroutine that creates it, when its construct
// returns. The intake opens when many tasks are in flight. What is here then without a group becoming complete is started
//
//   - by a goroutine that is about to wait for tasks.
//   - by the sweeper: a goroutine that there is while no queue has anything to do. It closes the intake when it
//     is empty.
//   - by a timer, since a queue may be busy for long, or have to wait for something that the program does only after
//     what is here. It is the one that submits what has been kept for more commands to come (see gatherTime).
type intake struct {
	// many is the number of tasks in flight, and of those that were started by themselves, from which on the intake is
	// open: 0 for never.
	many int
	// group is the number of tasks that are created until one of their creators starts what is here. serial says
	// that goroutines run one at a time.
	group  uint32
	serial bool
	// atOnce is the number of tasks that are started in a row without the lock being given up, or the device being given
	// any of them.
	atOnce int
	// open says that tasks can be put here.
	open atomic.Bool
	// created counts the tasks that were created since a goroutine has last begun to start what is here, rounds
	// those beginnings, and running the goroutines that are about it.
	created, rounds atomic.Uint32
	running         atomic.Int32
	// last is the last task that was added; resident.next links it to those before it.
	last atomic.Pointer[resident]
	// size is the number of tasks in the intake, and turning that of tasks from it that are to become targets:
	// neither is counted in life.live.
	size, turning atomic.Int64

	// The following fields are guarded by Scheduler.mu.

	// rest are tasks that were taken and not started, the first one first.
	rest *resident
	// sweeping says that there is a sweeper.
	sweeping bool
	// started counts the tasks that were started by themselves since the intake was closed.
	started int
	// startSweeper starts the sweeper.
	startSweeper func()
}

const (
	// manyTasks is intake.many unless each task is to be started when it is created.
	manyTasks = 32
	// groupTasks is intake.group. Fewer tasks are more submissions, and more leave the device without work for
	// longer.
	groupTasks = 64
	// groupTasksSerial is intake.group where goroutines run one at a time. There to create a thousand tasks and then
	// to start them takes less time than to start some now and then, because what either works with stays in the
	// cache. With 2,048, tasks of a stencil take longer: they no longer fit into the cache. It is also
	// intake.atOnce of a software device, which shares the one processor: one submission takes less of it than several.
	groupTasksSerial = 1024
	// mostInIntake is the number of tasks in the intake from which on those who create more have to wait until they can
	// start some, even if another goroutine does.
	mostInIntake = 1024
	// sweepTime is for how long no task must have been created for the sweeper to start those in the intake:
	// goroutines that create them faster may complete a group. It waits for that sweepWaits times at most.
	sweepTime  = 5 * time.Microsecond
	sweepWaits = 4
	// settleTurns is how often a goroutine that creates a compound task lets others run first.
	settleTurns = 16
)

// init sets up the intake of a scheduler for a device of a type, where goroutines run one at a time if serial is set. A
// random placement does without: it would not depend on its seed alone.
func (in *intake) init(p Placement, device vk.DeviceType, serial bool) {
	in.serial, in.atOnce = serial, groupTasks
	if serial && device == vk.DeviceSoftware {
		in.atOnce = groupTasksSerial
	}
	if p == PlaceRandom {
		return
	}
	in.many, in.group = manyTasks, groupTasks
	if serial {
		in.group = groupTasksSerial
	}
}

// add adds a task.
func (in *intake) add(l *resident) {
	in.size.Add(1)
	for {
		last := in.last.Load()
		l.next = last
		if in.last.CompareAndSwap(last, l) {
			return
		}
	}
}

// takeLocked takes all tasks that were added.
func (in *intake) takeLocked() {
	for l := in.last.Swap(nil); l != nil; {
		in.rest, l, l.next = l, l.next, in.rest
	}
}

// toIntake puts a task that its creator is to start into the intake, if that is open. Otherwise it reports false.
func (s *Scheduler) toIntake(l *resident) bool {
	in := &s.intake
	if !in.open.Load() {
		return false
	}
	in.add(l)
	if in.open.Load() {
		s.releaseLater()
	} else {
		// Whoever has closed the intake may not have seen the task.
		s.finishApart(s.startIntake(false))
	}
	return true
}

// countCreated counts a task that the calling goroutine has created. When there has been a group of them, the
// goroutine starts what is in the intake, unless another one is about it and has not fallen far behind.
func (s *Scheduler) countCreated() {
	in := &s.intake
	if in.open.Load() && in.created.Add(1) >= in.group && (in.running.Load() == 0 || in.size.Load() >= mostInIntake) {
		s.finishApart(s.startIntake(true))
	}
}

// startIntake starts what is in the intake and the resident tasks that become ready by that. It calls no function of the
// program. The caller finishes the result, which has what else has become ready. creating says that the goroutine has
// other tasks to create: where another one can at the same time, that one submits the tasks.
func (s *Scheduler) startIntake(creating bool) *tasks.Work {
	in := &s.intake
	w := tasks.NewWork()
	in.running.Add(1)
	defer in.running.Add(-1)
	in.created.Store(0)
	in.rounds.Add(1)
	// Others may create tasks faster than they are started here.
	for most := int(in.size.Load()) + mostInIntake; most > 0; {
		started := s.startSome(w, creating && !in.serial)
		if started == 0 {
			break
		}
		most -= started
	}
	s.finishResidents(w)
	return w
}

// finishApart finishes work for which functions of the program may be called on another goroutine.
func (s *Scheduler) finishApart(w *tasks.Work) {
	if w.Empty() {
		w.Finish()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.stopped { // nobody waits for goroutines that come now
		go w.Finish()
		return
	}
	s.life.goroutines.Go(w.Finish)
}

// startSome starts some of the tasks in the intake and of those in w, finds out what the device has done, and has what
// is due submitted, by another goroutine if apart is set. It returns how many it has started.
func (s *Scheduler) startSome(w *tasks.Work, apart bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := s.startSomeLocked(w)
	s.noticeLocked(w)
	if apart {
		s.order.LeaveClosed()
	} else {
		s.submitClosedLocked(w)
	}
	s.sweepIdleLocked()
	return started
}

// startSomeLocked starts some of the tasks in the intake and of those in w. It submits nothing.
func (s *Scheduler) startSomeLocked(w *tasks.Work) (started int) {
	in := &s.intake
	for ; started < in.atOnce; started++ {
		if in.rest == nil {
			in.takeLocked()
		}
		l := in.rest
		if l != nil {
			in.rest, l.next = l.next, nil
			in.size.Add(-1)
		} else if l = s.takeResident(w); l == nil {
			break
		}
		n := l.node
		if _, ok := s.startResidentLocked(l, w); !ok {
			in.turning.Add(1)
			w.Defer(func(w *tasks.Work) {
				in.turning.Add(-1)
				l.becomeTarget().Start(n, w)
			})
		}
	}
	return started
}

// takeResident takes the next task from w if that is a resident task of this device which can start without a function
// of the program being called, and returns nil otherwise.
func (s *Scheduler) takeResident(w *tasks.Work) *resident {
	l := s.nextResident(w)
	if l == nil || l.observesRun() {
		return nil
	}
	l.node = w.Take()
	return l
}

// nextResident returns the next task in w if that is a resident task of this device, and nil otherwise.
func (s *Scheduler) nextResident(w *tasks.Work) *resident {
	if n := w.Next(); n != nil {
		if l, ok := n.Runner().(*resident); ok && l.s == s {
			return l
		}
	}
	return nil
}

// noticeLocked finds out what the device has done, and closes the batches that are due.
func (s *Scheduler) noticeLocked(w *tasks.Work) {
	if s.loss.err != nil || s.life.stopped {
		return
	}
	urgency := order.Gather
	for _, q := range s.order.All() {
		if q.Sent() == q.Completed() {
			continue
		}
		switch now, err := s.device.Completed(int(q.Index())); {
		case errors.Is(err, vk.ErrDeviceLost):
			s.loseLocked(err)
			return
		case err == nil && now > q.Completed():
			s.arriveLocked(q, now)
			urgency = order.Refill
		}
	}
	s.flushAllLocked(urgency, w)
}

// settleIntake starts what is in the intake and all that becomes ready by that, and gives others who do so some
// time.
func (s *Scheduler) settleIntake() {
	in := &s.intake
	for range settleTurns {
		if in.size.Load() > 0 || in.created.Load() > 0 {
			s.startIntake(false).Finish()
		}
		if in.running.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
}

// startedAloneLocked counts a task that was started by itself. After some of them it opens the intake.
func (s *Scheduler) startedAloneLocked() {
	in := &s.intake
	if in.many == 0 || in.open.Load() || s.life.closing {
		return
	}
	if in.started++; in.started >= in.many && s.life.live >= in.many {
		in.open.Store(true)
	}
}

// sweepIdleLocked starts the sweeper if the intake is open and the device has nothing to do.
func (s *Scheduler) sweepIdleLocked() {
	if in := &s.intake; in.open.Load() && !in.sweeping && !s.life.stopped && s.order.Idle() {
		in.sweeping = true
		in.startSweeper()
	}
}

// sweep is the sweeper. It ends when the device has something to do, after which there may be another one, or the
// intake is closed.
func (s *Scheduler) sweep() {
	in := &s.intake
	waits := 0
	for more := true; more; {
		rounds, created := in.rounds.Load(), in.created.Load()
		for begun := time.Now(); time.Since(begun) < sweepTime; {
			vk.Yield()
			runtime.Gosched()
		}
		if waits++; in.rounds.Load() == rounds && (in.created.Load() == created || waits >= sweepWaits) {
			s.finishApart(s.startIntake(false))
			waits = 0
		}
		more = s.sweepMore()
	}
	if !in.open.Load() && in.size.Load() > 0 {
		// The intake was open until now.
		s.finishApart(s.startIntake(false))
	}
}

// sweepMore reports whether the sweeper has to go on. It closes the intake if it is empty and the device has
// nothing to do.
func (s *Scheduler) sweepMore() bool {
	in := &s.intake
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := s.order.Idle()
	if idle && !s.life.stopped && in.size.Load() > 0 {
		return true
	}
	in.sweeping = false
	if idle || s.life.stopped {
		in.started = 0
		in.open.Store(false)
	}
	return false
}
