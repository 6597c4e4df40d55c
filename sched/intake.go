package sched

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// intake has resident tasks that are to start. Goroutines that create many tasks leave them here, and when a
// group of them has been created, one of these goroutines starts all that is left:
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
// All this is so while many tasks are in flight and more are created: one task alone is placed by the goroutine that
// creates it, when its construct returns. What is left when no group becomes complete, a goroutine starts that is
// about to wait for tasks, or the sweeper, a goroutine that looks for it now and then.
type intake struct {
	// many is the number of tasks in flight, and of those that their creators have started by themselves, from
	// which on tasks are left here: 0 for never.
	many int
	// group is the number of tasks that are created until one of their creators starts what is left, and nap the
	// time between two looks of the sweeper. Where goroutines run one at a time, it is 0: the sweeper comes to run
	// when others wait, or have used up their time.
	group uint32
	nap   time.Duration
	// open says that tasks can be left here.
	open atomic.Bool
	// created counts the tasks that were created since a goroutine has last begun to start what is left. started
	// says that one has since the sweeper has looked, and running counts those that are about it.
	created atomic.Uint32
	started atomic.Bool
	running atomic.Int32
	// last is the last task that was added; resident.next links it to those before it.
	last atomic.Pointer[resident]
	// left is the number of tasks in the intake, and turning that of tasks from it that are to become targets:
	// neither is counted in life.live.
	left, turning atomic.Int64

	// The following fields are guarded by Scheduler.mu.

	// rest are tasks that were taken and not started, the first one first.
	rest *resident
	// sweeping says that there is a sweeper.
	sweeping bool
	// alone counts the tasks that their creators have started by themselves since there was a sweeper.
	alone int
}

const (
	// manyTasks is intake.many unless each task is to be started when it is created.
	manyTasks = 32
	// groupTasks is intake.group. Fewer tasks are more submissions, and more leave the device without work for
	// longer.
	groupTasks = 64
	// groupTasksAlone is intake.group where goroutines run one at a time. There to create a thousand tasks and then
	// to start them takes less time than to start some now and then, because what either works with stays in the
	// cache. With 2,048, tasks of a stencil take longer: they no longer fit into the cache.
	groupTasksAlone = 1024
	// mostLeft is the number of tasks in the intake from which on those who create more have to wait until they can
	// start some, even if another goroutine does.
	mostLeft = 1024
	// napTime is intake.nap, and patientLooks the number of looks after which the sweeper starts what is left even
	// if tasks are being created.
	napTime      = 100 * time.Microsecond
	patientLooks = 2
	// settleTurns is how often a goroutine that creates a compound task lets others run first.
	settleTurns = 16
	// startsAtOnce is the number of tasks that are started in a row without the lock being given up, or the
	// device being given any of them.
	startsAtOnce = 64
)

// init sets up the intake of a scheduler. A random placement does without: it would not depend on its seed
// alone.
func (in *intake) init(p Placement) {
	if p == PlaceRandom {
		return
	}
	in.many, in.group, in.nap = manyTasks, groupTasks, napTime
	if runtime.GOMAXPROCS(0) == 1 {
		in.group, in.nap = groupTasksAlone, 0
	}
}

// add adds a task.
func (in *intake) add(l *resident) {
	in.left.Add(1)
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

// leave leaves a task that its creator is to start in the intake, if that is open. Otherwise it reports false.
func (s *Scheduler) leave(l *resident) bool {
	in := &s.intake
	if !in.open.Load() {
		return false
	}
	in.add(l)
	if !in.open.Load() {
		// The sweeper may not have seen it.
		s.startLeft(false)
	}
	return true
}

// countCreated counts a task that the calling goroutine has created. When there has been a group of them, the
// goroutine starts what is left, unless another one is about it and has not fallen far behind.
func (s *Scheduler) countCreated() {
	in := &s.intake
	if in.open.Load() && in.created.Add(1) >= in.group && (in.running.Load() == 0 || in.left.Load() >= mostLeft) {
		s.startLeft(true)
	}
}

// startLeft starts what is in the intake and what becomes ready by that. creating says that the goroutine has other
// tasks to create. It leaves to others then what takes longer: submissions, if goroutines run at the same time, and
// tasks that are no resident tasks, for which functions of the program may be called.
func (s *Scheduler) startLeft(creating bool) {
	in := &s.intake
	w := tasks.NewWork()
	in.running.Add(1)
	in.created.Store(0)
	in.started.Store(true)
	// Others may create tasks faster than they are started here.
	for most := int(in.left.Load()) + mostLeft; most > 0; {
		started := s.startSome(w, creating && in.nap > 0)
		if started == 0 {
			break
		}
		most -= started
	}
	s.finishResidents(w)
	if creating && !w.Empty() {
		go s.runLeft(w)
	} else {
		s.runLeft(w)
	}
}

// runLeft is the end of startLeft: it starts what has become ready.
func (s *Scheduler) runLeft(w *tasks.Work) {
	defer s.intake.running.Add(-1)
	w.Finish()
}

// startSome starts some of the tasks in the intake and of those in w, finds out what the device has done, and has what
// is due submitted, by another goroutine if leaves is set. It returns how many it has started.
func (s *Scheduler) startSome(w *tasks.Work, leaves bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := s.startSomeLocked(w)
	s.noticeLocked(w)
	if leaves {
		s.order.LeaveClosed()
	} else {
		s.submitClosedLocked(w)
	}
	return started
}

// startSomeLocked starts some of the tasks in the intake and of those in w. It closes no batch.
func (s *Scheduler) startSomeLocked(w *tasks.Work) (started int) {
	in := &s.intake
	for ; started < startsAtOnce; started++ {
		if in.rest == nil {
			in.takeLocked()
		}
		l := in.rest
		if l != nil {
			in.rest, l.next = l.next, nil
			in.left.Add(-1)
		} else if l = nextResident(w); l == nil {
			break
		}
		if n := l.node; !s.startResidentLocked(l, true, w) {
			in.turning.Add(1)
			w.Defer(func(w *tasks.Work) {
				in.turning.Add(-1)
				l.becomeTarget().Start(n, w)
			})
		}
	}
	return started
}

// nextResident takes the next task from w if that is a resident task which can start without a function of the program
// being called, and returns nil otherwise.
func nextResident(w *tasks.Work) *resident {
	n := w.Next()
	if n == nil {
		return nil
	}
	l, ok := n.Runner().(*resident)
	if !ok || l.heard() || l.awaited != nil {
		return nil
	}
	w.Take()
	l.node = n
	return l
}

// noticeLocked finds out what the device has done, and closes the batches that are due.
func (s *Scheduler) noticeLocked(w *tasks.Work) {
	urgency := order.Gather
	for _, q := range s.order.All() {
		if q.Sent() == q.Completed() {
			continue
		}
		// Whoever waits for the queue finds out about errors.
		if now, err := s.device.Completed(int(q.Index())); err == nil && now > q.Completed() {
			s.arriveLocked(q, now)
			urgency = order.Refill
		}
	}
	for _, q := range s.order.All() {
		s.flushLocked(q, urgency, w)
	}
}

// settleIntake starts what is in the intake, and gives others who do so some time.
func (s *Scheduler) settleIntake() {
	in := &s.intake
	for range settleTurns {
		if in.left.Load() > 0 || in.created.Load() > 0 {
			s.startLeft(false)
		}
		if in.running.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
}

// startedAloneLocked counts a task that its creator has started by itself. After some of them it opens the intake.
func (s *Scheduler) startedAloneLocked() {
	in := &s.intake
	if in.many == 0 || in.sweeping || s.life.closing {
		return
	}
	if in.alone++; in.alone >= in.many && s.life.live >= in.many {
		in.sweeping = true
		in.open.Store(true)
		s.life.waiters.Go(s.sweep)
	}
}

// sweep is the sweeper: it starts what is left while those who create tasks do not, and closes the intake when none
// are created.
func (s *Scheduler) sweep() {
	over := false
	defer func() {
		if !over {
			// A function of the program has ended the goroutine.
			s.life.waiters.Go(s.sweep)
		}
	}()
	in := &s.intake
	looks, seen := 0, uint32(0)
	for {
		if in.nap > 0 {
			time.Sleep(in.nap)
		}
		created := in.created.Load()
		if in.started.Swap(false) {
			looks, seen = 0, created
			continue
		}
		if created == 0 && in.left.Load() == 0 {
			break
		}
		if looks++; created != seen && looks < patientLooks {
			seen = created
			continue
		}
		s.startLeft(false)
		in.started.Store(false)
		looks, seen = 0, 0
	}
	s.mu.Lock()
	in.sweeping, in.alone, over = false, 0, true
	in.open.Store(false)
	s.mu.Unlock()
	// The intake was open until now.
	s.startLeft(false)
}
