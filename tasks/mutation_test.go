package tasks

import (
	"fmt"
	"testing"
)

// modelSeeds is the number of histories that the model test looks at.
const modelSeeds = 3000

// holdsUnder runs the model under the first seeds and returns the first seed whose
// history it does not hold for, or −1. It gives each history to look.
func holdsUnder(seeds uint64, look func(*history)) (int, *history, error) {
	for seed := range seeds {
		h := seeded(seed)
		if err := h.survive(80); err != nil {
			return int(seed), h, err
		}
		look(h)
	}
	return -1, nil, nil
}

// survive is run, where an engine that has lost a rule may break down.
func (h *history) survive(steps int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return h.run(steps)
}

// pairs counts the pairs of host tasks that meet by items of one kind, which
// demand no order: those under way together, and those of which the later was
// done before the earlier had started.
type pairs struct{ together, swapped int }

// TestOrderIsWhatAllPairsOfItemsDemandUnderManySeeds counts as well, so that no
// order is required where none is demanded.
func TestOrderIsWhatAllPairsOfItemsDemandUnderManySeeds(t *testing.T) {
	counts := map[DependKind]*pairs{DependIn: {}, DependInOutSet: {}, DependMutexInOutSet: {}}
	seed, h, err := holdsUnder(modelSeeds, func(h *history) { countPairs(h, counts) })
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, h)
	}
	for kind, c := range counts {
		t.Logf("%v: %d pairs of host tasks under way together, %d swapped", kind, c.together, c.swapped)
		if c.swapped == 0 {
			t.Errorf("%v: no later task was ever done before an earlier one started", kind)
		}
		if (c.together > 0) != (kind != DependMutexInOutSet) {
			t.Errorf("%v: %d pairs under way together", kind, c.together)
		}
	}
}

func countPairs(h *history, counts map[DependKind]*pairs) {
	for i, later := range h.tasks {
		for _, earlier := range h.tasks[:i] {
			c := counts[onlyKind(earlier, later)]
			if c == nil || !earlier.started || !later.started || later.domain != Host || earlier.domain != Host {
				continue
			}
			switch {
			case later.completedAt <= earlier.startedAt:
				c.swapped++
			case later.startedAt < earlier.completedAt && earlier.startedAt < later.completedAt:
				c.together++
			}
		}
	}
}

// onlyKind returns the one kind of the items by which two tasks meet, 0 if an
// order is demanded or their storage is apart.
func onlyKind(earlier, later *modelTask) DependKind {
	var kind DependKind
	for _, x := range earlier.depend {
		for _, y := range later.depend {
			if relate(x, y) == follows {
				return 0
			}
			y.Kind = DependOut
			if relate(x, y) == follows {
				kind = x.Kind
			}
		}
	}
	return kind
}

// String names the items whose order an entry of the table decides.
func (c class) String() string {
	return [...]string{"in", "out", "mutexinoutset", "inoutset"}[c]
}

// TestModelNoticesEveryRuleTheEngineForgets takes each rule away in turn, and
// turns each entry of the truth table round.
func TestModelNoticesEveryRuleTheEngineForgets(t *testing.T) {
	type rule struct {
		name string
		flag *bool
	}
	rules := []rule{
		{"what comes after omp_all_memory follows it", &allMemoryOrders},
		{"omp_all_memory follows what comes before", &allMemoryFollows},
		{"mutexinoutset excludes", &mutexExcludes},
		{"overlapping storage matches", &overlapsMatch},
	}
	for earlier := range classes {
		for later := range classes {
			rules = append(rules, rule{fmt.Sprintf("%v after %v is ordered: not %v", later, earlier, ordered[earlier][later]), &ordered[earlier][later]})
		}
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			*r.flag = !*r.flag
			defer func() { *r.flag = !*r.flag }()
			seed, _, err := holdsUnder(modelSeeds, func(*history) {})
			if err == nil {
				t.Fatalf("nothing noticed in %d histories", modelSeeds)
			}
			t.Logf("seed %d: %v", seed, err)
		})
	}
}
