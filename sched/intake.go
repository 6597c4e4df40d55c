package sched

import (
	"runtime"
	"sync/atomic"

	"github.com/vkomp/vkomp/tasks"
)

// intake has resident tasks that are to start. Goroutines that create many tasks leave them here, so that
// they need neither the scheduler's lock nor the driver: another goroutine, the placer, starts the tasks and
// submits their batches, and what it works with stays in the cache of one processor.
//
//	goroutine 1   create ──▶ create ──▶ create ──▶
//	                 └────────┐└────────┐└─────┐
//	goroutine 2   create ──▶ │create ──▶│      │
//	                 └──────┐│└────────┐│      │
//	placer                  lock: start 4 ──▶ submit ──▶ lock: start 9 ──▶
//
// There is a placer only while many tasks are in flight and more are created: one task alone is placed by
// the goroutine that creates it, when its construct returns. It ends when it has nothing to do for some
// microseconds. A goroutine that is about to wait for tasks starts what is left itself.
//
// Where goroutines run one at a time, as with GOMAXPROCS 1, the placer comes to run only when the others wait or
// have used up their time. Besides, a goroutine that has created many tasks, or is about to wait, does what the
// placer would do. To create a thousand tasks and then to start them takes less time than to start each when it
// is created, because what either works with stays in the cache.
//
// The placer may call functions of the program, through tasks that are no resident tasks: it runs what has
// become ready while the intake is closed, when it has started all that was in it.
type intake struct {
	// many is the number of tasks in flight, and of those started since the last placer has ended, from which
	// on there is a placer: 0 for never.
	many int
	// turns says that goroutines run one at a time. created counts the tasks that they have created since the
	// placer, or one of them in its place, has last started what was left.
	turns   bool
	created atomic.Uint32
	// open says that tasks can be left here. running counts the goroutines that run what has become ready:
	// the placer, and those that have taken its turn.
	open    atomic.Bool
	running atomic.Int32
	// last is the last task that was added; resident.next links it to those before it.
	last atomic.Pointer[resident]
	// left is the number of tasks in the intake, and turning that of tasks from it that are to become targets:
	// neither is counted in life.live.
	left, turning atomic.Int64

	// The following fields are guarded by Scheduler.mu.

	// rest are tasks that were taken and not started, the first one first.
	rest *resident
	// placing says that there is a placer.
	placing bool
	// alone counts the tasks that were started without a placer since there was one.
	alone int
}

const (
	// placerTasks is intake.many unless there is to be no placer.
	placerTasks = 32
	// placerLooks is how often the placer looks for another task before it ends, where goroutines run at the
	// same time.
	placerLooks = 5000
	// mostLeft is the number of tasks in the intake from which on those who add more start some: the placer
	// may have to wait for a processor. Where goroutines run one at a time, it is also the number of tasks that
	// are created before a goroutine starts what is left. Of a chain, for example, only the first task is in the
	// intake then, and the others follow it. With 2,048, tasks of a stencil take longer: they no longer fit into
	// the cache.
	mostLeft = 1024
	// settleTurns is how often a goroutine that creates a compound task lets the placer run first.
	settleTurns = 16
	// startsAtOnce is the number of tasks that are started in a row without the lock being given up.
	startsAtOnce = 64
)

// init sets up the intake of a scheduler. A random placement does without a placer: it would not depend on
// its seed alone.
func (in *intake) init(p Placement) {
	if p != PlaceRandom {
		in.many, in.turns = placerTasks, runtime.GOMAXPROCS(0) == 1
	}
}

// add adds a task, and returns how many there are.
func (in *intake) add(l *resident) (left int64) {
	left = in.left.Add(1)
	for {
		last := in.last.Load()
		l.next = last
		if in.last.CompareAndSwap(last, l) {
			return left
		}
	}
}

// takeLocked takes all tasks that were added.
func (in *intake) takeLocked() {
	for l := in.last.Swap(nil); l != nil; {
		in.rest, l, l.next = l, l.next, in.rest
	}
}

// awaits waits for a task, for some microseconds where goroutines run at the same time, and reports whether
// there is one.
func (in *intake) awaits() bool {
	if in.turns {
		return in.left.Load() > 0
	}
	for range placerLooks {
		if in.left.Load() > 0 {
			return true
		}
	}
	return false
}

// leave leaves a task to the placer, if there is one. Otherwise it reports false.
func (s *Scheduler) leave(l *resident, w *tasks.Work) bool {
	in := &s.intake
	if !in.open.Load() {
		return false
	}
	left := in.add(l)
	switch {
	case !in.open.Load():
		// The placer may not have seen it.
		s.startLeft(w)
	case left >= mostLeft && s.mu.TryLock():
		s.startSomeLocked(w)
		s.unlockLocked(w)
	}
	return true
}

// startLeft starts the tasks that are in the intake now.
func (s *Scheduler) startLeft(w *tasks.Work) {
	in := &s.intake
	for most := int(in.left.Load()); most > 0; {
		started := s.startSome(w)
		if started == 0 {
			return // others have started them
		}
		most -= started
	}
}

// settleIntake starts what is in the intake, and gives the placer some time for what becomes ready by that.
func (s *Scheduler) settleIntake() {
	in := &s.intake
	for range settleTurns {
		if in.left.Load() == 0 && in.running.Load() == 0 {
			return
		}
		s.takeTurn()
		w := tasks.NewWork()
		s.startLeft(w)
		w.Finish()
		runtime.Gosched()
	}
}

// countCreated counts a task that the calling goroutine has created, where goroutines run one at a time. When
// there have been many, the goroutine does what the placer would do.
func (s *Scheduler) countCreated() {
	if s.intake.turns && s.intake.created.Add(1) >= mostLeft {
		s.takeTurn()
	}
}

// takeTurn has the calling goroutine do what the placer would do, where goroutines run one at a time and there is
// a placer: it starts the tasks in the intake, and those that become ready by that.
func (s *Scheduler) takeTurn() {
	if s.intake.turns && s.intake.open.Load() {
		s.turn(tasks.NewWork())
	}
}

// turn closes the intake, starts what is in it, and then runs w, to which that has added what became ready. It
// reports whether there was anything to run. The intake is opened again when the last goroutine that does this is
// done.
func (s *Scheduler) turn(w *tasks.Work) (ready bool) {
	in := &s.intake
	in.running.Add(1)
	in.open.Store(false)
	in.created.Store(0)
	defer s.endTurn()
	defer w.Finish()
	s.startLeft(w)
	return !w.Empty()
}

// endTurn is the end of turn.
func (s *Scheduler) endTurn() {
	in := &s.intake
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.running.Add(-1) == 0 {
		in.open.Store(in.placing)
	}
}

// startSome starts some of the tasks in the intake, and returns how many.
func (s *Scheduler) startSome(w *tasks.Work) int {
	s.mu.Lock()
	defer s.unlockLocked(w)
	return s.startSomeLocked(w)
}

// startSomeLocked is startSome for a caller that holds mu. It ends with a task that closes a batch, so that
// an idle device gets that at once.
func (s *Scheduler) startSomeLocked(w *tasks.Work) (started int) {
	in := &s.intake
	if in.rest == nil {
		in.takeLocked()
	}
	for in.rest != nil && started < startsAtOnce {
		l := in.rest
		in.rest, l.next = l.next, nil
		in.left.Add(-1)
		started++
		if n := l.node; !s.startResidentLocked(l, w) {
			in.turning.Add(1)
			w.Defer(func(w *tasks.Work) {
				in.turning.Add(-1)
				l.becomeTarget().Start(n, w)
			})
		}
		if s.order.Unsubmitted() {
			break
		}
	}
	return started
}

// startedAloneLocked counts a task that the goroutine which has created it has started. After some of them
// it starts a placer.
func (s *Scheduler) startedAloneLocked() {
	in := &s.intake
	if in.many == 0 || in.placing || s.life.closing {
		return
	}
	if in.alone++; in.alone >= in.many && s.life.live >= in.many {
		in.placing = true
		in.open.Store(true)
		s.life.waiters.Go(s.place)
	}
}

// place is the placer.
func (s *Scheduler) place() {
	over := false
	defer func() {
		if !over {
			// A function of the program has ended the goroutine.
			s.life.waiters.Go(s.place)
		}
	}()
	for s.placeUntilReady() {
	}
	s.mu.Lock()
	s.intake.placing, s.intake.alone, over = false, 0, true
	s.intake.open.Store(false)
	s.mu.Unlock()
	// The intake was open until now.
	w := tasks.NewWork()
	defer w.Finish()
	s.startLeft(w)
}

// placeUntilReady starts the tasks in the intake and those that are added, until others become ready by that
// or none comes any more. Then it has a turn, and reports whether any were ready.
func (s *Scheduler) placeUntilReady() (ready bool) {
	w := tasks.NewWork()
	for w.Empty() && s.intake.awaits() {
		s.startSome(w)
	}
	return s.turn(w)
}
