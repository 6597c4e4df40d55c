package main

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// patternKind is one of Task Bench's dependence patterns (Slaughter et al., "Task Bench: A
// Parameterized Benchmark for Evaluating Parallel Runtime Performance", SC 2020, table 2), or
// random, which is vkomp's own.
type patternKind uint8

const (
	// trivial has no dependences.
	trivial patternKind = iota
	// noComm is an independent chain for each point.
	noComm
	// stencil1D depends on a point and its neighbours. The periodic form wraps around at the
	// edges.
	stencil1D
	stencil1DPeriodic
	// dom sweeps an area diagonally: the width grows by a point with each step, and shrinks
	// again at the end.
	dom
	// tree is a binary tree from one root; after that parents and children alternate.
	tree
	// fft is a butterfly with another distance in each step.
	fft
	// allToAll depends on the whole previous step.
	allToAll
	// nearest depends on radix points around its own.
	nearest
	// spread depends on radix distant points, which are others in each step.
	spread
	// randomNearest depends on a random part of the points of nearest, and on its own.
	randomNearest
	// random depends on up to radix random points.
	random
	patternKinds
)

var patternNames = [patternKinds]string{"trivial", "no_comm", "stencil_1d", "stencil_1d_periodic", "dom", "tree",
	"fft", "all_to_all", "nearest", "spread", "random_nearest", "random"}

func (k patternKind) String() string { return patternNames[k] }

// parsePatterns parses a list of names separated by commas, or "all".
func parsePatterns(names string) ([]patternKind, error) {
	var kinds []patternKind
	for _, name := range strings.Split(names, ",") {
		if name == "all" {
			for k := range patternKinds {
				kinds = append(kinds, k)
			}
			continue
		}
		k := slices.Index(patternNames[:], name)
		if k < 0 {
			return nil, fmt.Errorf("-pattern %s: the patterns are all, %s", name, strings.Join(patternNames[:], ", "))
		}
		kinds = append(kinds, patternKind(k))
	}
	return kinds, nil
}

const (
	// radixMost bounds a pattern's radix, and with it the number of spans of a task's inputs:
	// a random choice among twice as many neighbours has at most radixMost spans.
	radixMost = 8
	// patternPeriod is the number of steps after which spread and randomNearest repeat.
	patternPeriod = 3
	// connected is the share of neighbours on which randomNearest depends.
	connected = 0.25
)

// pattern is a graph of tasks: rows of at most width points, one row for each step. A point depends
// on some points of the row before.
type pattern struct {
	kind         patternKind
	width, steps int
	// radix is a parameter of nearest, spread, randomNearest and random.
	radix int
	seed  uint64
}

// span is the points from first to last.
type span struct{ first, last int }

// points returns the number of points.
func (s span) points() int { return s.last - s.first + 1 }

// row returns the points of a step. Rows are never empty.
func (p *pattern) row(step int) span {
	switch p.kind {
	case dom:
		first := max(0, step+p.width-p.steps)
		return span{first, first + min(p.width, step+1, p.steps-step) - 1}
	case tree:
		if step < bits.Len(uint(p.width)) {
			return span{0, min(p.width, 1<<step) - 1}
		}
	}
	return span{0, p.width - 1}
}

// inputs appends the points of step-1 on which a point depends, as ascending spans that do not
// touch. Step 0 has none.
func (p *pattern) inputs(step, point int, to []span) []span {
	if step == 0 {
		return to
	}
	choice := inputSet{row: p.row(step - 1), spans: to, start: len(to)}
	w := p.width
	switch p.kind {
	case trivial:
	case noComm:
		choice.add(point, point)
	case stencil1D:
		choice.add(point-1, point+1)
	case stencil1DPeriodic:
		if point == w-1 {
			choice.add(0, 0)
		}
		choice.add(point-1, point+1)
		if point == 0 {
			choice.add(w-1, w-1)
		}
	case dom:
		choice.add(point-1, point)
	case tree:
		choice.add(point/2, point/2)
	case fft:
		distance := 1
		if levels := bits.Len(uint(w - 1)); levels > 0 {
			distance = 1 << ((step + levels - 1) % levels)
		}
		choice.add(point-distance, point-distance)
		choice.add(point, point)
		choice.add(point+distance, point+distance)
	case allToAll:
		choice.add(0, w-1)
	case nearest:
		choice.add(point-p.radix/2, point+(p.radix-1)/2)
	case spread:
		var taken [radixMost]int
		for i := range p.radix {
			taken[i] = point + i*w/p.radix
			if i > 0 {
				taken[i] += step % patternPeriod
			}
			taken[i] %= w
		}
		choice.addSorted(taken[:p.radix])
	case randomNearest:
		for i := point - p.radix/2; i <= point+(p.radix-1)/2; i++ {
			draw := mix(p.seed, uint64(step%patternPeriod), uint64(point), uint64(i))
			if i == point || float64(draw>>11)/(1<<53) < connected {
				choice.add(i, i)
			}
		}
	case random:
		var taken [radixMost]int
		many := int(mix(p.seed, uint64(step), uint64(point), 0) % uint64(p.radix+1))
		for i := range many {
			taken[i] = int(mix(p.seed, uint64(step), uint64(point), uint64(i+1)) % uint64(w))
		}
		choice.addSorted(taken[:many])
	}
	return choice.spans
}

// mostInputs returns a number of inputs that no task exceeds. It does not depend on the number of steps.
func (p *pattern) mostInputs() int {
	switch p.kind {
	case trivial:
		return 0
	case noComm, tree:
		return 1
	case dom:
		return 2
	case stencil1D, stencil1DPeriodic, fft:
		return 3
	case allToAll:
		return p.width
	}
	return p.radix
}

// tasks returns the number of tasks.
func (p *pattern) tasks() int {
	n := 0
	for step := range p.steps {
		n += p.row(step).points()
	}
	return n
}

// inputSet collects points in ascending order.
type inputSet struct {
	row   span
	spans []span
	start int
}

// add adds those points from first to last that are in the row and not in the set yet.
func (c *inputSet) add(first, last int) {
	first, last = max(first, c.row.first), min(last, c.row.last)
	if first > last {
		return
	}
	if n := len(c.spans); n > c.start && first <= c.spans[n-1].last+1 {
		c.spans[n-1].last = max(c.spans[n-1].last, last)
		return
	}
	c.spans = append(c.spans, span{first, last})
}

func (c *inputSet) addSorted(points []int) {
	slices.Sort(points)
	for _, i := range points {
		c.add(i, i)
	}
}

// mix hashes values with the finalizer of SplitMix64.
func mix(values ...uint64) uint64 {
	h := uint64(0)
	for _, v := range values {
		h += v + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
