package vkomp

import (
	"context"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
)

// recordedCompound is a run of target constructs in a record that do nothing but run kernels on the same
// device. One task does what all of them do where that is possible. For other values of parameters it is the same
// task; for other slices and pointers it is another one.
type recordedCompound struct {
	targets []*recordedTarget
	// values are the value arguments that are those of parameters, and valueParams says which parameters these are, by
	// their indexes in the record's bindings. others are the parameters to whose slices or memory constructs refer.
	values      []sched.CompoundValue
	valueParams []int
	others      []int
	// made are the tasks for what these were bound to lately, the last one first, at most maxCompounds.
	made []*madeCompound
}

// madeCompound is what the constructs do on the device of s, with the parameters recordedCompound.others bound to these.
// The compound is nil if one task cannot do it, and s if no task was made yet, because they were so bound only once.
type madeCompound struct {
	bound    []boundTo
	s        *sched.Scheduler
	compound *sched.Compound
}

// boundTo is the storage or the memory to which a parameter is bound.
type boundTo struct {
	storage memory.Section
	pointer DevicePtr
}

// maxCompounds is the largest number of tasks of a recordedCompound. A program that replays a record with a few buffers in
// turn finds its tasks again. One that has other buffers each time makes none: that takes longer than to run the
// constructs one by one.
const maxCompounds = 4

// withCompounds returns the constructs with runs of target constructs in one.
func withCompounds(constructs []recorded) (all []recorded) {
	for len(constructs) > 0 {
		var run []*recordedTarget
		for _, construct := range constructs {
			t, ok := construct.(*recordedTarget)
			if !ok || len(run) == sched.MaxCompound || !t.plain || len(run) > 0 && t.target.Device != run[0].target.Device {
				break
			}
			run = append(run, t)
		}
		if len(run) < 2 {
			all = append(all, constructs[0])
			constructs = constructs[1:]
			continue
		}
		all = append(all, newRecordedCompound(run))
		constructs = constructs[len(run):]
	}
	return all
}

func newRecordedCompound(targets []*recordedTarget) *recordedCompound {
	r := &recordedCompound{targets: targets}
	for i, t := range targets {
		for _, p := range t.argPlaces {
			a := &t.args[p.item]
			if a.param == nil || a.kind != argValue {
				r.refersTo(p.param)
				continue
			}
			value := 0
			for k := range t.args[:p.item] {
				if t.args[k].isValue() {
					value++
				}
			}
			r.values = append(r.values, sched.CompoundValue{Construct: i, Value: value})
			r.valueParams = append(r.valueParams, p.param)
		}
		for _, p := range t.itemPlaces {
			r.refersTo(p.param)
		}
	}
	return r
}

// refersTo notes that constructs refer to the slice or the memory of a parameter.
func (r *recordedCompound) refersTo(param int) {
	if !slices.Contains(r.others, param) {
		r.others = append(r.others, param)
	}
}

// replay generates one task, or those of the constructs: listeners are told of each of them, and a graph
// that is kept shows each. An error is that of the first construct that has one.
func (r *recordedCompound) replay(ctx context.Context, c *current, bound *bindings) error {
	if c.rt.events.Load() == nil && !c.rt.options.KeepGraph {
		if s, err := r.targets[0].target.Device.d.open(); err == nil {
			if ran, err := r.run(ctx, c, s, bound); ran {
				return c.returned(ctx, err)
			}
		}
	}
	for _, t := range r.targets {
		if err := t.replay(ctx, c, bound); err != nil {
			return err
		}
	}
	return nil
}

// run generates one task on the device of s, and reports whether it has.
func (r *recordedCompound) run(ctx context.Context, c *current, s *sched.Scheduler, bound *bindings) (ran bool, err error) {
	compound := r.find(c, s, bound)
	if compound == nil {
		return false, nil
	}
	for i, p := range r.valueParams {
		r.values[i].Bytes = bound.params[p].arg.bytes() // as many as when it was recorded: the type is that of the parameter
	}
	ran, err = s.RunCompound(ctx, compound, construct.Construct{Scope: c.children(), Group: c.group(), Place: c.place}, r.values...)
	for i := range r.values {
		r.values[i].Bytes = nil
	}
	return ran, err
}

// find returns the task for what the parameters are bound to, nil if there is none. It makes one if they were so bound
// before, lately.
func (r *recordedCompound) find(c *current, s *sched.Scheduler, bound *bindings) *sched.Compound {
	i := slices.IndexFunc(r.made, func(m *madeCompound) bool { return m.isFor(r.others, bound) })
	again := i >= 0 || len(r.others) == 0
	if i < 0 {
		if len(r.made) < maxCompounds {
			r.made = append(r.made, &madeCompound{bound: make([]boundTo, len(r.others))})
		}
		i = len(r.made) - 1
		m := r.made[i]
		m.s, m.compound = nil, nil
		for k, p := range r.others {
			m.bound[k] = bound.params[p].boundTo()
		}
	}
	m := r.made[i]
	copy(r.made[1:i+1], r.made[:i])
	r.made[0] = m
	if again && m.s != s {
		m.s, m.compound = s, r.make(c, s, bound)
	}
	return m.compound
}

// make returns what the constructs do, with the parameters as they are bound, or nil if one task cannot do it.
func (r *recordedCompound) make(c *current, s *sched.Scheduler, bound *bindings) *sched.Compound {
	regions := make([]*sched.Region, len(r.targets))
	for i, t := range r.targets {
		passed := t.passed
		if passed == nil {
			evaluated, on, err := t.evaluate(c, bound)
			defer evaluated.giveBack()
			if err != nil || on != s || !evaluated.Plain() {
				return nil // its error is that of the construct
			}
			passed = evaluated
		}
		regions[i] = &passed.Region
	}
	return s.NewCompound(regions)
}

// isFor reports whether the task is for what the parameters are bound to.
func (m *madeCompound) isFor(params []int, bound *bindings) bool {
	for i, p := range params {
		if bound.params[p].boundTo() != m.bound[i] {
			return false
		}
	}
	return true
}

// boundTo returns to what the parameter is bound.
func (a *Param) boundTo() boundTo {
	b := boundTo{storage: a.storage}
	if a.arg.kind == argPointer {
		b.pointer = a.arg.at
	}
	return b
}
