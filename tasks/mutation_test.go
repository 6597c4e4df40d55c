package tasks

import (
	"fmt"
	"testing"
)

// modelSeeds is the number of histories that the test of the model runs.
const modelSeeds = 3000

// random returns how many of n random histories or programs to run: with -short a quarter, and
// few under Go's race detector, which sees nothing in them: each runs on one goroutine.
func random(n uint64) uint64 {
	switch {
	case goRaces:
		return n / 50
	case testing.Short():
		return n / 4
	}
	return n
}

// oneGoroutine is called first by tests of one goroutine that take seconds below Go's race
// detector, which sees nothing in them.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if goRaces {
		t.Skip("one goroutine: not for the race detector")
	}
}

// holdsUnder runs histories and returns the first seed whose history fails, or −1. It calls
// look with each history.
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

// survive is run for an engine that lacks a rule and may panic.
func (h *history) survive(steps int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return h.run(steps)
}

// pairs counts pairs of host tasks whose items, all of one kind, demand no order: those that
// executed together, and those of which the later ended before the earlier began.
type pairs struct{ together, swapped int }

// TestOrderIsWhatAllPairsOfItemsDemandUnderManySeeds also counts pairs without order, so that
// an engine which orders too much would show.
func TestOrderIsWhatAllPairsOfItemsDemandUnderManySeeds(t *testing.T) {
	oneGoroutine(t)
	counts := map[DependKind]*pairs{DependIn: {}, DependInOutSet: {}, DependMutexInOutSet: {}}
	joins := 0
	seed, h, err := holdsUnder(modelSeeds, func(h *history) {
		countPairs(h, counts)
		joins += h.joins
	})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, h)
	}
	if joins == 0 {
		t.Error("no set was joined")
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

// onlyKind returns the kind of the items that two tasks have for the same storage, 0 if an
// order is demanded, there are several kinds, or their storage does not meet.
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

// String names the items whose relation is in that entry of the table.
func (c class) String() string {
	return [...]string{"in", "out", "mutexinoutset", "inoutset"}[c]
}

// TestModelNoticesEveryRuleTheEngineForgets takes the engine's rules away, one at a time, and
// inverts each entry of the truth table: the model must fail each time.
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
