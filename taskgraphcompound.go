package vkomp

import (
	"context"

	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
)

// recordedCompound is a run of target constructs in a record that do nothing but run kernels on the same
// device, without parameters. One task does what all of them do where that is possible.
type recordedCompound struct {
	targets []*recordedTarget
	// compound is what they do on the device of s, or nil if one task cannot do it.
	compound *sched.Compound
	s        *sched.Scheduler
}

// withCompounds returns the constructs with runs of target constructs in one.
func withCompounds(constructs []recorded) (all []recorded) {
	for len(constructs) > 0 {
		var run []*recordedTarget
		for _, construct := range constructs {
			t, ok := construct.(*recordedTarget)
			if !ok || len(run) == sched.MaxCompound || t.passed == nil || !t.passed.Plain() || len(run) > 0 && t.passed.device != run[0].passed.device {
				break
			}
			run = append(run, t)
		}
		if len(run) < 2 {
			all = append(all, constructs[0])
			constructs = constructs[1:]
			continue
		}
		all = append(all, &recordedCompound{targets: run})
		constructs = constructs[len(run):]
	}
	return all
}

// replay generates one task, or those of the constructs: listeners are told of each of them, and a graph
// that is kept shows each. An error is that of the first construct that has one.
func (r *recordedCompound) replay(ctx context.Context, c *current, bound *bindings) error {
	if c.rt.events.Load() == nil && !c.rt.options.KeepGraph {
		if s, err := r.targets[0].passed.device.open(); err == nil {
			if ran, err := r.run(ctx, c, s); ran {
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
func (r *recordedCompound) run(ctx context.Context, c *current, s *sched.Scheduler) (ran bool, err error) {
	if r.s != s {
		regions := make([]*sched.Region, len(r.targets))
		for i, t := range r.targets {
			regions[i] = &t.passed.Region
		}
		r.s, r.compound = s, s.NewCompound(regions)
	}
	if r.compound == nil {
		return false, nil
	}
	return s.RunCompound(ctx, r.compound, construct.Construct{Scope: c.children(), Group: c.group(), Place: c.place})
}
