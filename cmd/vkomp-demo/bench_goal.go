package main

import "fmt"

// benchGoal is a bound on the best value of a figure of vkomp's.
type benchGoal struct {
	figure string
	most   float64
	// of is what most is a multiple of: "" for the unit of the figure, ofRaw for plain Vulkan's
	// time for the same, otherwise another figure.
	of string
}

const ofRaw = "raw"

func (g benchGoal) text(unit string) string {
	if g.of == "" {
		return fmt.Sprintf("≤ %g %s", g.most, unit)
	}
	return fmt.Sprintf("≤ %g × %s", g.most, g.of)
}

// benchVerdict says whether a figure meets a goal: whether Value is at most what Goal says.
type benchVerdict struct {
	Goal  string  `json:"goal"`
	Value float64 `json:"value"`
	Met   bool    `json:"met"`
}

// benchGoals returns the goals for a process that may use so many processors.
func benchGoals(cores int) []benchGoal {
	sync := 1.2
	if cores > 1 {
		// The device's work is done by another processor, which has to be woken.
		sync = 1.5
	}
	goals := []benchGoal{
		{"sync.empty", sync, ofRaw},
		{"sync.inc", sync, ofRaw},
		{"replay.chain", 1.05, ofRaw},
		{"replay.chain", 300, ""},
		{"replay.stencil", 1.05, ofRaw},
		{"replay.stencil", 300, ""},
		{"replay.stencil.whole_steps", 1.2, ofRaw},
		// A pair is two constructs of at most 150 ns.
		{"maphit.enter_exit_among_1", 300, ""},
		{"maphit.enter_exit_among_10000", 300, ""},
		{"maphit.enter_exit_among_100000", 300, ""},
		{"maphit.enter_exit_among_100000", 1.5, "maphit.enter_exit_among_1"},
		{"alloc.pair_mixed_10000live", 150, ""},
		{"memcpy.64MiB.h2d", 1.1, ofRaw},
		{"memcpy.64MiB.d2d", 1.1, ofRaw},
		{"memcpy.64MiB.d2h", 1.1, ofRaw},
		{"memset.64MiB", 1.1, ofRaw},
		{"trace.on.chain", 1.5, "trace.off.chain"},
		{"inflight.chain.heap", 700, ""},
		{"inflight.independent.heap", 700, ""},
		{"inflight.two_items.heap", 700, ""},
		{"inflight.overlapping.heap", 700, ""},
		{"inflight.collector", 15, ""},
	}
	for _, row := range []string{"chain", "chain2", "independent", "fan", "stencil"} {
		create := 450.0
		if row == "stencil" {
			create = 800
		}
		goals = append(goals, benchGoal{row + ".total", 1.5, ofRaw}, benchGoal{row + ".create", 2, ofRaw}, benchGoal{row + ".create", create, ""})
	}
	if cores > 1 {
		// Two goroutines create 1.6 times as fast as one.
		for _, two := range []string{"goroutines.2.create", "goroutines.2_regions.create"} {
			goals = append(goals, benchGoal{two, 1 / 1.6, "goroutines.1.create"})
		}
	}
	return goals
}

// judge adds the verdicts on goals to the figures. A goal whose figure, or what it is a multiple of,
// was not measured has none.
func judge(goals []benchGoal, figures []benchFigure) {
	byName := map[string]*benchFigure{}
	for i := range figures {
		byName[figures[i].Name] = &figures[i]
	}
	for _, g := range goals {
		f := byName[g.figure]
		if f == nil {
			continue
		}
		v := benchVerdict{Goal: g.text(f.Unit), Value: f.Vkomp.Best}
		switch {
		case g.of == "":
		case g.of == ofRaw:
			if f.Raw == nil {
				continue
			}
			v.Value = f.Ratio
		default:
			base := byName[g.of]
			if base == nil {
				continue
			}
			v.Value /= base.Vkomp.Best
		}
		v.Met = v.Value <= g.most
		f.Goals = append(f.Goals, v)
	}
}
