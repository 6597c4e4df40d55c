//go:build mutants

package tests

import (
	"testing"

	"github.com/vkomp/vkomp/internal/mutant"
)

// These mutants leave the order right. They show in what recorded runs cost, by the tests named here.
func TestEveryMutantIsNoticed(t *testing.T) {
	for m, tests := range map[mutant.Name]string{
		mutant.DrawingQueues:       "TestProgramsCostNoMore",
		mutant.FillOnTransferQueue: "TestTransferFamilyMovesNothing",
		mutant.WiderMasks:          "TestChainCostsItsBarriers",
	} {
		t.Run(string(m), func(t *testing.T) {
			if !mutant.Noticed(t, m, tests) {
				t.Errorf("%s does not notice it", tests)
			}
			if mutant.Noticed(t, "", tests) {
				t.Errorf("%s fails without a mutant", tests)
			}
		})
	}
}
