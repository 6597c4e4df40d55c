package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// naiveRow returns a pattern's row as the paper defines it.
func naiveRow(p *pattern, step int) (points []int) {
	for i := range p.width {
		in := true
		switch p.kind {
		case dom:
			// The row has as many points as there are steps before it or after it, counted from the
			// first point; at the end only those that the last step can reach.
			skipped := 0
			for skipped+p.steps < step+p.width {
				skipped++
			}
			after := p.steps - 1 - step
			in = skipped <= i && i-skipped <= step && i-skipped <= after
		case tree:
			in = float64(i) < math.Pow(2, float64(step))
		}
		if in {
			points = append(points, i)
		}
	}
	return points
}

// naiveTakes reports whether a point depends on another, for the patterns without randomness.
func naiveTakes(p *pattern, step, point, from int) bool {
	apart := from - point
	switch p.kind {
	case noComm:
		return apart == 0
	case stencil1D:
		return max(apart, -apart) <= 1
	case stencil1DPeriodic:
		around := ((apart % p.width) + p.width) % p.width
		return around <= 1 || around == p.width-1
	case dom:
		return apart == 0 || apart == -1
	case tree:
		return from == point>>1
	case fft:
		levels := int(math.Ceil(math.Log2(float64(p.width))))
		if levels == 0 {
			return apart == 0
		}
		distance := int(math.Pow(2, float64((step-1)%levels)))
		return apart == 0 || apart == distance || apart == -distance
	case allToAll:
		return true
	case nearest:
		return -(p.radix/2) <= apart && apart < p.radix-p.radix/2
	case spread:
		for i := range p.radix {
			at := point + int(math.Floor(float64(i*p.width)/float64(p.radix)))
			if i > 0 {
				at += step % 3
			}
			if at%p.width == from {
				return true
			}
		}
	}
	return false
}

// graphs calls visit with patterns of all kinds and awkward sizes.
func graphs(t *testing.T, visit func(t *testing.T, p *pattern)) {
	for kind := range patternKinds {
		t.Run(kind.String(), func(t *testing.T) {
			for _, width := range []int{1, 2, 3, 5, 8, 13, 16} {
				for _, steps := range []int{1, 2, 7, 20} {
					for _, radix := range []int{1, 2, 3, 5, 8} {
						visit(t, &pattern{kind: kind, width: width, steps: steps, radix: radix, seed: uint64(width * steps)})
					}
				}
			}
		})
	}
}

func (p *pattern) String() string {
	return fmt.Sprintf("%v %d×%d radix %d", p.kind, p.steps, p.width, p.radix)
}

func expand(spans []span) (points []int) {
	for _, s := range spans {
		for i := s.first; i <= s.last; i++ {
			points = append(points, i)
		}
	}
	return points
}

func TestRowsAreThoseOfTheDefinition(t *testing.T) {
	graphs(t, func(t *testing.T, p *pattern) {
		tasks := 0
		for step := range p.steps {
			want := naiveRow(p, step)
			if diff := cmp.Diff(want, expand([]span{p.row(step)})); diff != "" || len(want) == 0 {
				t.Fatalf("%v: row of step %d (-want +got):\n%s", p, step, diff)
			}
			tasks += len(want)
		}
		if p.tasks() != tasks {
			t.Fatalf("%v: %d tasks, want %d", p, p.tasks(), tasks)
		}
	})
}

func TestInputsAreThoseOfTheDefinition(t *testing.T) {
	graphs(t, func(t *testing.T, p *pattern) {
		if p.kind == randomNearest || p.kind == random {
			return
		}
		for step := range p.steps {
			for _, point := range naiveRow(p, step) {
				var want []int
				for from := range p.width {
					if step > 0 && p.kind != trivial && slices.Contains(naiveRow(p, step-1), from) && naiveTakes(p, step, point, from) {
						want = append(want, from)
					}
				}
				if diff := cmp.Diff(want, expand(p.inputs(step, point, nil))); diff != "" {
					t.Fatalf("%v: inputs of step %d point %d (-want +got):\n%s", p, step, point, diff)
				}
			}
		}
	})
}

func TestNoTaskHasMoreInputsThanThePattern(t *testing.T) {
	graphs(t, func(t *testing.T, p *pattern) {
		for step := range p.steps {
			for _, point := range naiveRow(p, step) {
				if n := len(expand(p.inputs(step, point, nil))); n > p.mostInputs() {
					t.Fatalf("%v: step %d point %d has %d inputs, want %d at most", p, step, point, n, p.mostInputs())
				}
			}
		}
		// A kernel has enough bindings for the inputs of all others.
		if p.kind != allToAll && p.mostInputs() > stressInputs {
			t.Fatalf("%v: %d inputs", p, p.mostInputs())
		}
	})
}

func TestInputsLieInTheRowBeforeInFewSpansThatAscend(t *testing.T) {
	graphs(t, func(t *testing.T, p *pattern) {
		kept := []span{{-7, -7}}
		for step := range p.steps {
			for _, point := range expand([]span{p.row(step)}) {
				spans := p.inputs(step, point, kept)
				if spans[0] != kept[0] {
					t.Fatalf("%v: inputs has changed what it appends to", p)
				}
				spans = spans[1:]
				if step == 0 && len(spans) > 0 || len(spans) > radixMost {
					t.Fatalf("%v: step %d point %d has spans %v", p, step, point, spans)
				}
				before := -2
				for _, s := range spans {
					if row := p.row(step - 1); s.first > s.last || s.first < row.first || s.last > row.last || s.first <= before+1 {
						t.Fatalf("%v: step %d point %d has spans %v of row %v", p, step, point, spans, row)
					}
					before = s.last
				}
			}
		}
	})
}

// takers returns the points of the next step that depend on a point.
func takers(p *pattern, step, point int) (points []int) {
	for _, i := range naiveRow(p, step+1) {
		if slices.Contains(expand(p.inputs(step+1, i, nil)), point) {
			points = append(points, i)
		}
	}
	return points
}

// Task Bench's definition of reverse dependences, for the patterns for which it is another formula.
func TestResultsAreTakenByTheReverseDependences(t *testing.T) {
	graphs(t, func(t *testing.T, p *pattern) {
		for step := range p.steps - 1 {
			next := naiveRow(p, step+1)
			for _, point := range naiveRow(p, step) {
				var want []int
				clip := func(from, to int) {
					for i := from; i <= to; i++ {
						if slices.Contains(next, i) {
							want = append(want, i)
						}
					}
				}
				switch p.kind {
				case dom:
					clip(point, point+1)
				case tree:
					clip(2*point, 2*point+1)
				case nearest:
					clip(point-(p.radix-1)/2, point+p.radix/2)
				case spread:
					taken := map[int]bool{}
					for i := range p.radix {
						back := point - i*p.width/p.radix
						if i > 0 {
							back -= (step + 1) % 3
						}
						taken[((back%p.width)+p.width)%p.width] = true
					}
					for i := range p.width {
						if taken[i] {
							want = append(want, i)
						}
					}
				default:
					return
				}
				if diff := cmp.Diff(want, takers(p, step, point)); diff != "" {
					t.Fatalf("%v: takers of step %d point %d (-want +got):\n%s", p, step, point, diff)
				}
			}
		}
	})
}

func TestDrawnInputsFollowTheSeed(t *testing.T) {
	for _, kind := range []patternKind{randomNearest, random} {
		list := func(seed uint64) (all []span) {
			p := pattern{kind: kind, width: 64, steps: 9, radix: 5, seed: seed}
			for step := range p.steps {
				for point := range p.width {
					all = p.inputs(step, point, append(all, span{-1, -1}))
				}
			}
			return all
		}
		if !slices.Equal(list(1), list(1)) {
			t.Errorf("%v: one seed gives different inputs", kind)
		}
		if slices.Equal(list(1), list(2)) {
			t.Errorf("%v: two seeds give the same inputs", kind)
		}
	}
}

func TestRandomNearestTakesItsOwnPointAndAQuarterOfTheOthers(t *testing.T) {
	p := pattern{kind: randomNearest, width: 500, steps: 5, radix: 5, seed: 9}
	others := 0
	for step := 1; step < 4; step++ {
		for point := 2; point < p.width-2; point++ {
			taken := expand(p.inputs(step, point, nil))
			if !slices.Contains(taken, point) || taken[0] < point-2 || taken[len(taken)-1] > point+2 {
				t.Fatalf("step %d point %d takes %v", step, point, taken)
			}
			others += len(taken) - 1
			if !slices.Equal(taken, expand(p.inputs(step%patternPeriod+patternPeriod, point, nil))) {
				t.Fatalf("step %d point %d takes others a period on", step, point)
			}
		}
	}
	if part := float64(others) / float64(3*(p.width-4)*4); part < 0.22 || part > 0.28 {
		t.Errorf("%.3f of the neighbours taken, want a quarter", part)
	}
}

func TestRandomTakesUpToRadixPointsFromTheWholeRow(t *testing.T) {
	p := pattern{kind: random, width: 40, steps: 60, radix: 4, seed: 3}
	var counts [5]int
	var hit [40]int
	for step := 1; step < p.steps; step++ {
		for point := range p.width {
			taken := expand(p.inputs(step, point, nil))
			if len(taken) > p.radix {
				t.Fatalf("step %d point %d takes %v", step, point, taken)
			}
			counts[len(taken)]++
			for _, i := range taken {
				hit[i]++
			}
		}
	}
	if slices.Min(counts[:]) < 300 || slices.Min(hit[:]) < 60 {
		t.Errorf("inputs a task %v, takers a point %v: some are too rare", counts, hit)
	}
}

func TestPatternsAreNamed(t *testing.T) {
	for names, want := range map[string]int{"all": int(patternKinds), "fft": 1, "fft,tree": 2, "all,fft": int(patternKinds) + 1} {
		kinds, err := parsePatterns(names)
		if err != nil || len(kinds) != want {
			t.Errorf("parsePatterns(%q) = %v, %v", names, kinds, err)
		}
	}
	for k := range patternKinds {
		if kinds, err := parsePatterns(k.String()); err != nil || len(kinds) != 1 || kinds[0] != k {
			t.Errorf("parsePatterns(%q) = %v, %v", k, kinds, err)
		}
	}
	for _, names := range []string{"", "stencil", "fft,", "fft tree"} {
		if _, err := parsePatterns(names); err == nil || !strings.Contains(err.Error(), "the patterns are all, trivial, no_comm") {
			t.Errorf("parsePatterns(%q): error %v", names, err)
		}
	}
}
