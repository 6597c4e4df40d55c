//go:build mutants

package order

import (
	"testing"

	"github.com/vkomp/vkomp/internal/mutant"
)

// These mutants make the tests of this package fail that are named here. The other mutants show
// in the tests of sched.
func TestEveryMutantIsNoticed(t *testing.T) {
	for m, tests := range map[mutant.Name]string{
		mutant.FollowsTooMuch:      "HistoryKnows",
		mutant.QueueForgotten:      "SyncSetHas",
		mutant.WaitDropped:         "ClocksSay",
		mutant.WaitTooLow:          "ClocksSay",
		mutant.WaitTooHigh:         "ClocksSay",
		mutant.WaitImpliedTooEarly: "ClocksSay",
		mutant.FrontierTooNew:      "ClocksSay",
		mutant.LevelTooLow:         "ClocksSay",
		mutant.SubmittedOutOfOrder: "ClocksSay",
		mutant.CompleteTooEarly:    "ClocksSay",
		mutant.ExitsUnordered:      "Arrivals",
		mutant.HostWritesEarly:     "HostWritesNothing",
		mutant.MemoryReusedEarly:   "ReusedMemory",
		mutant.WritesForgotten:     "FollowCompleteWrites",
		mutant.TransfersForgotten:  "FollowCompleteWrites",
	} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			if !mutant.Noticed(t, m, tests, "-rapid.checks=400") {
				t.Errorf("%s does not notice it", tests)
			}
			if mutant.Noticed(t, "", tests, "-rapid.checks=25") {
				t.Errorf("%s fails without a mutant", tests)
			}
		})
	}
}
