//go:build mutants

package sched

import (
	"maps"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/internal/mutant"
)

// Every mutant makes tests of this package fail, which are named here: random programs on the
// fake device, and for what these leave out tests of their own. Two mutants are certain to show
// only in the tests of sched/order, and two only in what recorded runs cost.
func TestEveryMutantIsNoticed(t *testing.T) {
	const programs = "RandomPrograms/any_queue"
	except := map[mutant.Name]string{
		mutant.TransfersForgotten:     "SharersComeAfterTheCopy",
		mutant.EarlierWritesForgotten: "CompleteWriteIsSeen",
		mutant.FillOnTransferQueue:    "WithinTheDeviceStay",
		mutant.CompoundBarrierDropped: "CompoundTaskMeans",
	}
	for m := range mutant.Rates {
		switch m {
		case mutant.FollowsTooMuch, mutant.FrontierTooNew, mutant.DrawingQueues, mutant.WiderMasks:
			continue
		}
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			tests := except[m]
			if tests == "" {
				tests = programs
			}
			if !mutant.Noticed(t, m, tests, "-rapid.checks=400") {
				t.Errorf("%s does not notice it", tests)
			}
		})
	}
	for _, tests := range append(slices.Collect(maps.Values(except)), programs) {
		t.Run("none in "+tests, func(t *testing.T) {
			t.Parallel()
			if mutant.Noticed(t, "", tests, "-rapid.checks=25") {
				t.Errorf("%s fails without a mutant", tests)
			}
		})
	}
}
