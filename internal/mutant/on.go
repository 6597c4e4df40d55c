//go:build mutants

package mutant

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

// Rates says how often each mutant is wrong: in one of so many calls of Active, so that
// most of the run goes well.
var Rates = map[Name]uint64{
	BarrierDropped:         8,
	CompoundBarrierDropped: 4,
	CopiesUnseen:           4,
	HostBarrierDropped:     4,
	WaitDropped:            16,
	WaitTooLow:             8,
	WaitTooHigh:            64,
	WaitImpliedTooEarly:    1,
	FrontierTooNew:         1,
	SubmittedOutOfOrder:    1,
	LevelTooLow:            4,
	OrderedTooHigh:         1,
	SeenTooMuch:            1,
	WritesForgotten:        1,
	EarlierWritesForgotten: 1,
	TransfersForgotten:     1,
	PredecessorForgotten:   16,
	QueueForgotten:         16,
	FollowsTooMuch:         1,
	MemoryReusedEarly:      1,
	HostWritesEarly:        1,
	UncachedRead:           8,
	CompleteTooEarly:       8,
	ExitsUnordered:         1,
	FillOnTransferQueue:    1,
	DrawingQueues:          1,
	WiderMasks:             1,
}

// chosen is the mutant that the environment names in VKOMP_MUTANT, "" for none. seed,
// VKOMP_MUTANT_SEED, decides which calls are wrong.
var chosen, seed = func() (Name, uint64) {
	m, text := Name(os.Getenv("VKOMP_MUTANT")), os.Getenv("VKOMP_MUTANT_SEED")
	if m != "" && Rates[m] == 0 {
		panic(fmt.Sprintf("VKOMP_MUTANT: there is no mutant %q of the scheduler", m))
	}
	if text == "" {
		return m, 0
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("VKOMP_MUTANT_SEED: %v", err))
	}
	return m, seed
}()

// asked counts the calls of Active with the chosen mutant.
var asked atomic.Uint64

// Active reports whether the caller is to be wrong as m says.
func Active(m Name) bool {
	if m != chosen {
		return false
	}
	// The finalizer of SplitMix64.
	z := (seed<<32 + asked.Add(1)) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z^z>>31)%Rates[m] == 0
}
