//go:build mutants

package sched

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

// mutants says how often each is wrong: at one in so many of the times that its place
// asks, so that it is not the first thing that shows.
var mutants = map[mutant]uint64{
	barrierDropped:         8,
	copiesUnseen:           4,
	hostBarrierDropped:     4,
	waitDropped:            16,
	waitTooLow:             8,
	waitTooHigh:            64,
	waitImpliedTooEarly:    1,
	frontierTooNew:         1,
	levelTooLow:            4,
	orderedTooHigh:         1,
	seenTooMuch:            1,
	writesForgotten:        1,
	earlierWritesForgotten: 1,
	transfersForgotten:     1,
	predecessorForgotten:   16,
	queueForgotten:         16,
	followsTooMuch:         1,
	memoryReusedEarly:      1,
	hostWritesEarly:        1,
	completeTooEarly:       8,
	exitsUnordered:         1,
}

// theMutant is the one that the environment names in VKOMP_MUTANT, "" for none, with
// VKOMP_MUTANT_SEED to say when it is wrong.
var theMutant, theMutantSeed = func() (mutant, uint64) {
	m, text := mutant(os.Getenv("VKOMP_MUTANT")), os.Getenv("VKOMP_MUTANT_SEED")
	if m != "" && mutants[m] == 0 {
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

// mutantAsked counts the times that the mutant's places asked.
var mutantAsked atomic.Uint64

func mutated(m mutant) bool {
	if m != theMutant {
		return false
	}
	// The finalizer of SplitMix64.
	z := (theMutantSeed<<32 + mutantAsked.Add(1)) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z^z>>31)%mutants[m] == 0
}
