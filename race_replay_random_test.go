package vkomp_test

import (
	"context"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"pgregory.net/rapid"
)

// raceEncounter is an encounter of a taskgraph, behind steps that are not recorded.
type raceEncounter struct {
	before  []raceStep
	noGroup bool
	// swapped says that the slices are bound to the parameters the other way round.
	swapped bool
}

// recordable returns the steps that a record can have, in the form in which it can have them.
func recordable(steps []raceStep) (kept []raceStep) {
	for _, s := range steps {
		if s.isTask() {
			s.noWait, s.group = true, 0
			kept = append(kept, s)
		}
	}
	return kept
}

// swapped is the step with one slice in place of the other.
func (s raceStep) swapped() raceStep {
	s.src.slice, s.dst.slice, s.items = 1-s.src.slice, 1-s.dst.slice, slices.Clone(s.items)
	for i := range s.items {
		s.items[i].slice = 1 - s.items[i].slice
	}
	return s
}

// drawRaceEncounters draws encounters of a taskgraph with this record, and returns the steps that they are in all.
func drawRaceEncounters(r *rapid.T, record []raceStep, parameters bool) (encounters []raceEncounter, all []raceStep) {
	groups := 0
	for range rapid.IntRange(1, 3).Draw(r, "encounters") {
		e := raceEncounter{noGroup: rapid.Bool().Draw(r, "nogroup"), swapped: parameters && rapid.Bool().Draw(r, "swapped")}
		if rapid.Bool().Draw(r, "more") {
			e.before = drawRaceProgram(r)
		}
		last := groups
		for i := range e.before {
			if s := &e.before[i]; s.group > 0 {
				s.group += last
				groups = max(groups, s.group)
			}
		}
		encounters, all = append(encounters, e), append(all, e.before...)
		group := 0
		if !e.noGroup {
			groups++
			group = groups
			all = append(all, raceStep{kind: "begin taskgroup", group: group})
		}
		for _, s := range record {
			if e.swapped {
				s = s.swapped()
			}
			s.group = group
			all = append(all, s)
		}
		if !e.noGroup {
			all = append(all, raceStep{kind: "end taskgroup", group: group})
		}
	}
	return encounters, all
}

// A race is reported exactly if two tasks have one, of which either or both can be of a replay.
func TestRacesOfRandomReplays(t *testing.T) {
	checkRaces(t, func(r *rapid.T) ([]raceStep, func(ctx context.Context, p *racing)) {
		record := recordable(drawRaceProgram(r))
		parameters, inTask := rapid.Bool().Draw(r, "parameters"), rapid.Bool().Draw(r, "in a task")
		encounters, steps := drawRaceEncounters(r, record, parameters)
		return steps, func(ctx context.Context, p *racing) {
			run := func(ctx context.Context) {
				if n := p.replay(ctx, record, encounters, parameters); len(record) > 0 && n != 1 {
					r.Errorf("the block was executed %d times", n)
				}
				p.wait(ctx)
			}
			if inTask {
				p.task(ctx, run)
			} else {
				run(ctx)
			}
		}
	})
}

// replay encounters a taskgraph with this record, and returns how often its block was executed.
func (p *racing) replay(ctx context.Context, record []raceStep, encounters []raceEncounter, parameters bool) (executed int) {
	var records vkomp.TaskgraphRecords
	var x, y vkomp.ParamSlice[float32]
	var memory vkomp.ParamVar[vkomp.DevicePtr]
	for _, e := range encounters {
		p.run(ctx, e.before, 0)
		g := vkomp.Taskgraph{Records: &records, NoGroup: e.noGroup}
		switch {
		case e.swapped:
			g.Params = []vkomp.Param{y.Bind(p.x), memory.Bind(p.memory), x.Bind(p.y)}
		case parameters:
			g.Params = []vkomp.Param{x.Bind(p.x), y.Bind(p.y), memory.Bind(p.memory)}
		}
		must(p.t, p.rt.Taskgraph(ctx, g, func(ctx context.Context) error {
			executed++
			of := *p
			if parameters {
				of.x, of.y, of.memory = x.Get(ctx), y.Get(ctx), memory.Get(ctx)
			}
			of.run(ctx, record, 0)
			return nil
		}))
	}
	return executed
}
