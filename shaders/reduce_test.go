package shaders

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
)

func TestReduceByHand(t *testing.T) {
	ones := make([]float32, 2*2048+1)
	for i := range ones {
		ones[i] = 1
	}
	for _, c := range []struct {
		name    string
		x, want []float32
	}{
		{"empty", nil, []float32{}},
		{"one", []float32{7}, []float32{7}},
		{"few", []float32{1, 2, -4}, []float32{-1}},
		{"full span", ones[:2048], []float32{2048}},
		{"two spans and one", ones, []float32{2048, 2048, 1}},
	} {
		got := make([]float32, ReducePartials(len(c.x)))
		if err := reduce(c.x, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestReduceAddsLanesBeforeItFoldsThem(t *testing.T) {
	// 2²⁴ + 1 rounds to 2²⁴, so only an order that adds the two ones first
	// gives 2²⁴ + 2. Elements 1 and 65 meet in the first fold, 65 being lane
	// 1 + 64; elements 1 and 129 are both lane 1's own.
	for _, second := range []int{65, 129} {
		x := make([]float32, 130)
		x[0], x[1], x[second] = 1<<24, 1, 1
		got := make([]float32, 1)
		if err := reduce(x, got); err != nil {
			t.Fatal(err)
		}
		if got[0] != 1<<24+2 {
			t.Errorf("ones at 1 and %d: sum %.0f, want %d", second, got[0], 1<<24+2)
		}
	}
	// Element 128 is lane 0's own: each one is lost by itself.
	x := make([]float32, 130)
	x[0], x[1], x[128] = 1<<24, 1, 1
	got := make([]float32, 1)
	if err := reduce(x, got); err != nil {
		t.Fatal(err)
	}
	if got[0] != 1<<24 {
		t.Errorf("ones at 1 and 128: sum %.0f, want %d", got[0], 1<<24)
	}
}

func TestReducePartialsRoundsUp(t *testing.T) {
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 2047: 1, 2048: 1, 2049: 2, 4096: 2, 4097: 3} {
		if got := ReducePartials(n); got != want {
			t.Errorf("ReducePartials(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestReduceRefusesAnotherNumberOfPartials(t *testing.T) {
	if err := reduce(make([]float32, 2049), make([]float32, 1)); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Error(err)
	}
}
