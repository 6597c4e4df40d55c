package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"pgregory.net/rapid"
)

// failing is the execution of a program.
type failing struct {
	rt       *vkomp.Runtime
	k        vkomp.Kernel
	cells    []byte
	one, out []float32
	events   []vkomp.Event
	gates    failGates
	// inline are the labels of the undeferred tasks whose bodies are running.
	inline []string
	ending []context.CancelCauseFunc
	ended  bool

	mu sync.Mutex
	// done says that a body has succeeded.
	ran, done []bool
	got       []string
}

var (
	errFails  = errors.New("BROKEN")
	errAlike  = errors.New("ALIKE")
	errEnding = errors.New("ENDED")
)

// failContext is the context of a region, and what belongs to it.
type failContext struct {
	ctx    context.Context
	outer  *failContext
	inline bool
	region *failRegion
}

// locked calls f, which uses what bodies use too.
func (f *failing) locked(use func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	use()
}

// settle waits until the tasks that are not complete wait for events.
func (f *failing) settle() {
	for settled := false; !settled; runtime.Gosched() {
		g := f.rt.Graph()
		held := make(map[uint64]bool)
		for changed := true; changed; {
			changed, settled = false, true
			for _, t := range g.Tasks {
				switch {
				case t.State == vkomp.GraphComplete || held[t.ID]:
				case f.holds(t.Label), t.State == vkomp.GraphWaiting &&
					slices.ContainsFunc(g.Edges, func(e vkomp.GraphEdge) bool { return e.To == t.ID && held[e.From] }):
					held[t.ID], changed = true, true
				default:
					settled = false
				}
			}
		}
	}
}

// holds reports whether the task with that label does not end before the next step: it executes the steps, or waits for
// nothing but its event.
func (f *failing) holds(label string) (holds bool) {
	f.locked(func() {
		holds = slices.Contains(f.inline, label) ||
			slices.ContainsFunc(f.gates, func(s *failStep) bool { return s.label() == label && f.done[s.id] })
	})
	return holds
}

// region executes steps and returns their errors.
func (f *failing) region(c failContext, steps []failStep) error {
	var errs []error
	for k := range steps {
		s := &steps[k]
		err := f.step(c, s)
		f.locked(func() { f.got[s.id] = said(err) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// step executes a step.
func (f *failing) step(c failContext, s *failStep) error {
	if s.outside && c.outer != nil {
		c = *c.outer
	}
	ctx := c.ctx
	if s.ending {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		f.ending = append(f.ending, end)
		if f.ended {
			end(errEnding)
		}
		c.ctx = ctx
	}
	if c.inline {
		if s.kind != "task" && s.kind != "target" || s.cancels || s.fulfills {
			f.settle()
		}
		if ctx.Err() == nil && f.gates.hold(s, c.region.steps, c.region.final) {
			if err := f.free(); err != nil {
				return err
			}
		}
	}
	c.region.steps = append(c.region.steps, s)
	var depend []vkomp.Depend
	for _, i := range s.items {
		item := vkomp.InOutAllMemory()
		if !i.kind.AllMemory() {
			item = vkomp.DependOn(i.kind, f.cells[i.from:i.to])
		}
		depend = append(depend, item)
	}
	switch s.kind {
	case "fulfill":
		return f.fulfill(s.of)
	case "end":
		f.ended = true
		for _, end := range f.ending {
			end(errEnding)
		}
		return nil
	case "cancel":
		return f.rt.CancelTaskgroup(ctx)
	case "point":
		return f.rt.CancellationPoint(ctx)
	case "wait":
		return f.rt.Taskwait(ctx)
	case "wait depend":
		return f.rt.Taskwait(ctx, depend...)
	case "join":
		return f.rt.TaskwaitNoWait(ctx, depend...)
	case "group", "data":
		return f.within(c, s, depend)
	case "update":
		motion := vkomp.To(f.out[s.id : s.id+1])
		if s.ends != "" {
			motion = motion.Present()
		}
		return f.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{motion}, Depend: depend, NoWait: !s.undeferred, Label: s.label()})
	case "target":
		x := vkomp.To(f.one[s.id : s.id+1])
		if s.ends == "ABSENT" {
			x = x.Present()
		}
		length := uint32(1)
		if s.host {
			length = uint32(s.id)
		}
		return f.rt.Target(ctx, vkomp.Target{
			Label: s.label(), Kernel: f.k, Range: vkomp.Range{X: 1}, If: vkomp.If(!s.host), NoWait: !s.undeferred, Depend: depend,
			Args: []vkomp.Arg{x, vkomp.ToFrom(f.out[s.id : s.id+1]), vkomp.Value(length), vkomp.Value(float32(1))},
		})
	}
	return f.task(c, s, depend)
}

// within executes a taskgroup or target data region.
func (f *failing) within(c failContext, s *failStep, depend []vkomp.Depend) error {
	body := func(ctx context.Context) (err error) {
		inner := failContext{ctx, &c, c.inline, c.region}
		if s.noGroup {
			inner = c
		}
		if err = f.region(inner, s.body); !s.pass {
			err = nil
		}
		if c.inline {
			f.settle()
			if c.ctx.Err() == nil || s.kind == "data" {
				err = errors.Join(err, f.free())
			}
		}
		return err
	}
	if s.kind == "group" {
		return f.rt.Taskgroup(c.ctx, body)
	}
	of := vkomp.ToFrom(f.out[s.id : s.id+1])
	if s.ends != "" {
		of = of.Present()
	}
	return f.rt.TargetData(c.ctx, vkomp.TargetData{Label: s.label(), Maps: []vkomp.Arg{of}, If: vkomp.If(!s.host), NoGroup: s.noGroup, Depend: depend}, body)
}

// task generates an explicit task.
func (f *failing) task(c failContext, s *failStep, depend []vkomp.Depend) error {
	t := vkomp.Task{Label: s.label(), Depend: depend, If: vkomp.If(!s.undeferred), Final: s.final, Mergeable: s.mergeable}
	inner := failContext{inline: c.inline && (s.undeferred || c.region.final), region: &failRegion{final: c.region.final || s.final}}
	if s.merges(c.region.final) {
		inner = c
	}
	t.Body = func(ctx context.Context) error {
		f.locked(func() { f.ran[s.id] = true })
		inner.ctx = ctx
		err := f.region(inner, s.body)
		if !s.pass {
			err = nil
		}
		if s.cancels {
			err = errors.Join(err, f.rt.CancelTaskgroup(ctx))
		}
		if s.fulfills {
			f.locked(func() { f.gates.remove(s.of) })
			if f.events[s.of] != (vkomp.Event{}) {
				err = errors.Join(err, f.events[s.of].Fulfill())
			}
		}
		err = errors.Join(err, s.end())
		f.locked(func() { f.done[s.id] = err == nil })
		return err
	}
	if s.detach {
		t.Detach = &f.events[s.id]
	}
	if inner.inline {
		f.locked(func() { f.inline = append(f.inline, s.label()) })
		defer f.locked(func() { f.inline = f.inline[:len(f.inline)-1] })
	}
	err := f.rt.Task(c.ctx, t)
	if f.events[s.id] != (vkomp.Event{}) {
		f.locked(func() { f.gates = append(f.gates, s) })
	}
	if (s.cancels || s.fulfills) && c.inline {
		f.settle()
	}
	return err
}

// end ends a body.
func (s *failStep) end() error {
	switch s.ends {
	case "BROKEN":
		return fmt.Errorf("%w%d", errFails, s.id)
	case "ALIKE":
		return errAlike
	case "PANIC":
		panic("PANIC")
	case "GOEXIT":
		runtime.Goexit()
	case "CANCELLED":
		return vkomp.ErrCancelled
	}
	return nil
}

// fulfill fulfills the event of a task, if it was generated.
func (f *failing) fulfill(id int) error {
	f.locked(func() { f.gates.remove(id) })
	if f.events[id] == (vkomp.Event{}) {
		return nil
	}
	err := f.events[id].Fulfill()
	f.settle()
	return err
}

// free fulfills all events.
func (f *failing) free() (err error) {
	for _, s := range slices.Clone(f.gates) {
		err = errors.Join(err, f.fulfill(s.id))
	}
	return err
}

var sentinels = map[error]string{
	errAlike: "ALIKE", errEnding: "ENDED", vkomp.ErrCancelled: "CANCELLED", vkomp.ErrNotPresent: "ABSENT",
	vkomp.ErrInvalidArgument: "INVALID", vkomp.ErrFulfilled: "FULFILLED",
}

// after returns the number in the text that err adds to that of another error, 0 if there is none.
func after(err, inner error, text string) (n int) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(err.Error(), inner.Error()), text, &n)
	return n
}

// said returns what an error says: the labels of tasks, and in capitals what has happened to them.
func said(err error) string {
	switch e := err.(type) {
	case nil:
		return ""
	case *vkomp.TaskError:
		if e.Dependent {
			return e.Task + "<-" + said(e.Cause)
		}
		return e.Task + "(" + said(e.Cause) + ")"
	case *vkomp.PanicError:
		return "PANIC"
	case interface{ Unwrap() []error }:
		var all []string
		for _, err := range e.Unwrap() {
			all = append(all, said(err))
		}
		if more := after(err, e.Unwrap()[0], " (and %d more like it)"); more > 0 {
			return fmt.Sprintf("%s*%d", all[0], more+1)
		}
		return both(all...)
	}
	inner := errors.Unwrap(err)
	switch {
	case sentinels[err] != "":
		return sentinels[err]
	case strings.HasPrefix(err.Error(), "BROKEN"):
		return err.Error()
	case inner == nil && strings.Contains(err.Error(), "Goexit"):
		return "GOEXIT"
	case inner == nil:
		return "? " + err.Error()
	}
	if n := after(err, inner, " (%d dependent tasks not run)"); n > 0 {
		return countDropped(said(inner), n)
	}
	return said(inner)
}

// failOutcome is what came of a program, in a line for each step: what it has returned, and whether its body or kernel has
// succeeded or has failed by itself. The last line is what Close has returned.
func failOutcome(got []string, ran []bool, closed string) string {
	lines := make([]string, len(got))
	for id := range got {
		lines[id] = fmt.Sprintf("%d ran %v: %s", id, ran[id], got[id])
	}
	return strings.Join(append(lines, "close: "+closed), "\n")
}

// mostOutcomes is the number of outcomes at which programs with more are no longer compared.
const mostOutcomes = 10000

// expected returns the outcomes that the documentation allows.
func expected(steps []failStep, n int) (list []string) {
	var choices, of []int
	for {
		at := 0
		m := &failModel{got: make([]string, n), ran: make([]bool, n), choose: func(n int) int {
			if at == len(choices) {
				choices, of = append(choices, 0), append(of, n)
			}
			at++
			return choices[at-1]
		}}
		m.region(steps, failPlace{ctx: context.Background(), region: &failRegion{}, inline: true})
		o := failOutcome(m.got, m.ran, m.close())
		list = append(list, o)
		for at = len(choices) - 1; at >= 0 && choices[at] == of[at]-1; at-- {
		}
		if at < 0 || len(list) == mostOutcomes {
			return list
		}
		choices, of = choices[:at+1], of[:at+1]
		choices[at]++
	}
}

// execute executes a program.
func (d *failDraw) execute(t rapid.TB, steps []failStep) string {
	threads := d.oneOf([]string{"1", "8"}, "threads")
	early := d.chance(50, "close with open gates")
	set := environment("OMP_CANCELLATION", "true", "OMP_NUM_THREADS", threads)
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: func(name string) (string, bool) {
		if value, ok := set(name); ok {
			return value, ok
		}
		return os.LookupEnv(name)
	}})
	must(t, err)
	f := &failing{
		rt: rt, cells: make([]byte, 3), one: constant(d.ids, 1), out: constant(d.ids, 0), events: make([]vkomp.Event, d.ids),
		ran: make([]bool, d.ids), done: make([]bool, d.ids), got: make([]string, d.ids),
	}
	all := make([]*failStep, d.ids)
	var index func(steps []failStep)
	index = func(steps []failStep) {
		for k := range steps {
			all[steps[k].id] = &steps[k]
			index(steps[k].body)
		}
	}
	index(steps)
	source := shaders.Saxpy
	source.Host = func(c *vkomp.HostCall) error {
		s := all[vkomp.HostValue[uint32](c, 0)]
		if s.ends != "" {
			return s.end()
		}
		vkomp.HostSlice[float32](c, 1)[0] += vkomp.HostSlice[float32](c, 0)[0]
		return nil
	}
	f.k, err = rt.NewKernel(source)
	must(t, err)
	_ = f.region(failContext{ctx: context.Background(), inline: true, region: &failRegion{}}, steps)
	f.settle()
	closed := ""
	if len(f.gates) > 0 && early {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errEnding)
		if closed = said(rt.CloseContext(ctx)); closed == "ENDED" { // or no task waits for one of the events
			closed = ""
		}
	}
	must(t, f.free())
	closed += said(rt.Close())
	for id, s := range all {
		if s != nil && s.kind != "task" {
			f.ran[id] = f.out[id] == 1
		}
	}
	return failOutcome(f.got, f.ran, closed)
}

// Each task of the program is run or not, and each failure is reported, as the documentation says.
func TestFailuresOfRandomPrograms(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{})
	must(t, err)
	device := rt.NumDevices() > 0
	must(t, rt.Close())
	failed := 0
	rapid.Check(t, func(r *rapid.T) {
		d := &failDraw{T: r, device: device}
		steps := d.steps(2, true, false, false)
		want := expected(steps, d.ids)
		got := d.execute(r, steps)
		if len(want) == mostOutcomes {
			r.Skip("too many outcomes to compare")
		}
		if strings.Contains(got, "BROKEN") {
			failed++
		}
		if slices.Contains(want, got) {
			return
		}
		var program strings.Builder
		for k := range steps {
			steps[k].write(&program, "")
		}
		r.Errorf("%s\nan outcome that is none of %d (-want +got):\n%s", program.String(), len(want), cmp.Diff(strings.Split(want[0], "\n"), strings.Split(got, "\n")))
	})
	if failed == 0 {
		t.Error("no task has failed: the random programs are of no use")
	}
}
