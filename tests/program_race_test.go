package tests

import (
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// racesOf runs a function on a runtime that looks for races, and returns what Close reports.
func racesOf(t *testing.T, threads string, f func(*vkomp.Runtime, affine) error) error {
	t.Helper()
	o := vkomp.Options{Race: true}
	environment("OMP_NUM_THREADS", threads)(&o)
	rt, err := vkomp.Open(o)
	succeed(t, err)
	succeed(t, f(rt, newCompiledAffine(t, rt)))
	return rt.Close()
}

// Programs whose dependences order all of their accesses have no races, whether they are run anew or replayed
// before the replay before is complete.
func TestRandomProgramsHaveNoRaces(t *testing.T) {
	vktest.LongConcurrent(t)
	for seed := range uint64(programSeeds / 4) {
		all, privates, _ := newProgram(seed)
		threads := []string{"1", "8"}[seed%2]
		if err := racesOf(t, threads, func(rt *vkomp.Runtime, k affine) error {
			_, err := execute(rt, k, all, privates)
			return err
		}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if err := racesOf(t, threads, func(rt *vkomp.Runtime, k affine) error {
			_, err := replayProgram(t.Context(), rt, k, replayable(all), privates, 1+int(seed%3), 10, true)
			return err
		}); err != nil {
			t.Errorf("seed %d, replayed: %v", seed, err)
		}
	}
}

// A task without depend items races with itself in the replay after, if that does not wait for the replay before.
func TestTasksOfReplaysThatOverlapRace(t *testing.T) {
	vktest.LongConcurrent(t)
	found := 0
	for seed := range uint64(programSeeds / 10) {
		all, privates, _ := newProgram(seed)
		steps := replayable(all)
		for _, st := range steps {
			if st.kind != targetStep {
				continue
			}
			st.items, st.derive, st.onHost = nil, false, false
			found++
			for _, overlap := range []bool{false, true} {
				err := racesOf(t, "8", func(rt *vkomp.Runtime, k affine) error {
					_, err := replayProgram(t.Context(), rt, k, []*step{st}, privates, 1, 3, overlap)
					return err
				})
				if raced := err != nil && strings.Contains(err.Error(), "race between tasks"); raced != overlap {
					t.Errorf("seed %d, overlapping %t: %v", seed, overlap, err)
				}
			}
			break
		}
	}
	if found == 0 {
		t.Error("no program has a target task")
	}
}
