package vkomp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/tasks/race"
)

// raceDetector tells package race what the program does. A Runtime without Options.Race
// has none; the methods of none do nothing.
type raceDetector struct {
	graph *race.Detector
	log   *slog.Logger

	mu sync.Mutex
	// seen are the pairs of places that were reported; places remembers where stacks are.
	seen   map[[2]racePlace]bool
	places map[raceStack]racePlace
	races  []Race

	storage map[*device]*raceStorage
	// allocations counts those of Alloc.
	allocations race.Space
}

// maxRacePlaces bounds the stacks whose places are remembered.
const maxRacePlaces = 1 << 12

func newRaceDetector(rt *Runtime) *raceDetector {
	r := &raceDetector{log: rt.log, seen: make(map[[2]racePlace]bool), places: make(map[raceStack]racePlace), storage: make(map[*device]*raceStorage)}
	r.graph = race.New(r.found)
	return r
}

// raceTask is what a report tells of a task.
type raceTask struct {
	label string
	stack *raceStack
}

// of returns the task of a region.
func (r *raceDetector) of(c current) *race.Task {
	if c.race == nil {
		return r.graph.Initial()
	}
	return c.race
}

// spec describes a task that c generates, at a place in the program.
func (r *raceDetector) spec(c current, at *raceStack, label string, depend []tasks.Depend, accesses []race.Access) race.Spec {
	s := race.Spec{Info: &raceTask{label, at}, Parent: r.of(c), Depend: depend, Accesses: accesses}
	if c.inside != nil {
		s.Group = c.inside.race
	}
	return s
}

// callers returns the stack of a construct.
func (r *raceDetector) callers() *raceStack {
	if r == nil {
		return nil
	}
	s := new(raceStack)
	runtime.Callers(2, s[:])
	return s
}

// generated tells of a task without a body: err is what generating it, and waiting for
// it unless it is deferred, came to.
func (r *raceDetector) generated(ctx context.Context, c current, at *raceStack, label string, depend []tasks.Depend, accesses []race.Access, noWait bool, err error) {
	var failed *TaskError
	cut := !noWait && err != nil && ctx.Err() != nil && !errors.As(err, &failed)
	if err != nil && !cut && !errors.As(err, &failed) && !errors.Is(err, ErrCancelled) {
		return // there is no task
	}
	s := r.spec(c, at, label, depend, accesses)
	s.Included = !noWait && !cut
	t := r.graph.Create(s)
	if s.Included {
		r.graph.Returned(t)
	}
}

// join tells of an empty task.
func (r *raceDetector) join(ctx context.Context, c current, label string, depend []tasks.Depend, noWait bool, err error) {
	if r != nil {
		r.generated(ctx, c, r.callers(), label, depend, nil, noWait, err)
	}
}

// waits tells that a region begins to wait for its children, with an inside for the
// tasks of that taskgroup.
func (r *raceDetector) waits(c current, inside *taskgroup) *race.Wait {
	switch {
	case r == nil:
		return nil
	case inside != nil:
		return r.graph.WaitGroup(r.of(c), inside.race)
	}
	return r.graph.Wait(r.of(c))
}

// waited tells what became of a wait.
func (r *raceDetector) waited(ctx context.Context, w *race.Wait, err error) {
	switch {
	case w == nil:
	case err != nil && ctx.Err() != nil && err == context.Cause(ctx):
		r.graph.GaveUp(w)
	default:
		r.graph.Waited(w)
	}
}

// group returns the set of a taskgroup in c's region.
func (r *raceDetector) group(c current) *race.Group {
	if r == nil {
		return nil
	}
	var outer *race.Group
	if c.inside != nil {
		outer = c.inside.race
	}
	return r.graph.NewGroup(outer)
}

// task tells of a host task before it can start, and returns its body, which tells when
// it runs. inner is the region of the task.
func (r *raceDetector) task(c current, inner *taskContext, label string, depend []tasks.Depend, t *Task, undeferred bool) func(context.Context) error {
	s := r.spec(c, r.callers(), label, depend, itemAccesses(depend, nil))
	s.Body, s.Included, s.Event, s.Transparency = true, undeferred, t.Detach != nil, tasks.Transparency(t.Transparent)
	made := r.graph.Create(s)
	inner.region.race = made
	if t.Detach != nil {
		t.Detach.race, t.Detach.of = made, r
	}
	body := t.Body
	return func(ctx context.Context) error {
		r.graph.Begin(made)
		failed := true
		// Deferred, because a body can leave by a panic or runtime.Goexit.
		defer func() { r.graph.End(made, failed) }()
		err := body(ctx)
		failed = err != nil
		return err
	}
}

// ran tells what running the task of inner, if it was included, came to.
func (r *raceDetector) ran(ctx context.Context, inner *taskContext, undeferred bool, err error) {
	var failed *TaskError
	switch {
	case r == nil || !undeferred:
	case err != nil && ctx.Err() != nil && !errors.As(err, &failed):
		r.graph.Abandoned(inner.region.race)
	default:
		r.graph.Returned(inner.region.race)
	}
}

// fulfilled tells that an event is about to be.
func (e Event) fulfilled() {
	if e.of != nil {
		e.of.graph.Fulfill(e.race)
	}
}

// close ends what every wait has reported, and returns the races found.
func (r *raceDetector) close() error {
	if r == nil {
		return nil
	}
	r.graph.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, race := range r.races {
		errs = append(errs, fmt.Errorf("vkomp: %w", race))
	}
	return errors.Join(errs...)
}

// found hears of a conflict, with the graph's lock held.
func (r *raceDetector) found(c race.Conflict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, second := c.First.Info().(*raceTask), c.Second.Info().(*raceTask)
	pair := [2]racePlace{r.place(first.stack), r.place(second.stack)}
	if r.seen[pair] || r.seen[[2]racePlace{pair[1], pair[0]}] {
		return
	}
	r.seen[pair] = true
	race := Race{
		First:   accessOf(first, c.FirstAccess),
		Second:  accessOf(second, c.SecondAccess),
		Address: c.Start, Size: c.Size,
		Device: spaceDevice(c.FirstAccess.Space),
		Advice: advice(&c),
	}
	r.races = append(r.races, race)
	r.log.Warn(ErrRace.Error(), "first", race.First.String(), "second", race.Second.String(),
		"address", fmt.Sprintf("%#x", race.Address), "bytes", race.Size, "device", race.Device, "advice", race.Advice)
}

// place returns where in the program a stack is.
func (r *raceDetector) place(s *raceStack) racePlace {
	p, ok := r.places[*s]
	if !ok {
		f := s.frames()[0]
		p = racePlace{f.File, f.Line}
		if len(r.places) >= maxRacePlaces {
			clear(r.places)
		}
		r.places[*s] = p
	}
	return p
}

func accessOf(t *raceTask, a *race.Access) RaceAccess {
	frames := t.stack.frames()
	return RaceAccess{
		Task: t.label, Item: a.Label, Write: a.Write,
		Site: fmt.Sprintf("%s:%d", frames[0].File, frames[0].Line), Function: frames[0].Function, Stack: frames,
	}
}

// advice says what would order the two tasks.
func advice(c *race.Conflict) string {
	clause := func(a *race.Access) string {
		if a.Write {
			return "depend(out: " + a.Label + ")"
		}
		return "depend(in: " + a.Label + ")"
	}
	end := c.Start + c.Size
	switch {
	case !c.First.Sibling(c.Second):
		return "different tasks generate the two, and depend orders siblings only: the task that generates the first must wait for it, with Taskwait or in a Taskgroup, before what the second follows"
	case c.FirstAccess.Unnamed:
		return "add depend items in common, of a slice that stands for that memory: out for what writes, in for what reads"
	}
	first, second := c.First.Names(c.Start, end, c.FirstAccess.Write), c.Second.Names(c.Start, end, c.SecondAccess.Write)
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
