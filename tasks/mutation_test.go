package tasks

import (
	"fmt"
	"testing"
)

// modelSeeds is the number of histories that the model test looks at.
const modelSeeds = 3000

// holdsUnder runs the model under the first seeds and returns the first seed whose
// history it does not hold for, or −1.
func holdsUnder(seeds uint64) (int, error, *history) {
	for seed := range seeds {
		h := seeded(seed)
		if err := h.run(80); err != nil {
			return int(seed), err, h
		}
	}
	return -1, nil, nil
}

func TestOrderIsWhatAllPairsOfItemsDemandUnderManySeeds(t *testing.T) {
	if seed, err, h := holdsUnder(modelSeeds); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, h)
	}
}

// className names the items whose order an entry of the table decides.
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
			seed, err, _ := holdsUnder(modelSeeds)
			if err == nil {
				t.Fatalf("nothing noticed in %d histories", modelSeeds)
			}
			t.Logf("seed %d: %v", seed, err)
		})
	}
}

// TestNoOrderIsRequiredWhereNoneIsDemanded counts, over many histories, the pairs
// of tasks that no item orders: those under way together, and those of which the
// later was done before the earlier had started.
func TestNoOrderIsRequiredWhereNoneIsDemanded(t *testing.T) {
	type count struct{ together, swapped int }
	counts := make(map[DependKind]*count)
	for _, kind := range []DependKind{DependIn, DependInOutSet, DependMutexInOutSet} {
		counts[kind] = &count{}
	}
	for seed := range uint64(modelSeeds / 3) {
		h := seeded(seed)
		h.failing = false
		if err := h.run(80); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, h)
		}
		for i, later := range h.tasks {
			for _, earlier := range h.tasks[:i] {
				c := counts[onlyKind(earlier, later)]
				if c == nil || !earlier.started || !later.started {
					continue
				}
				if later.domain != Host || earlier.domain != Host {
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
