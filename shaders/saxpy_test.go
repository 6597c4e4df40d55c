package shaders

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
)

func TestSaxpyByHand(t *testing.T) {
	y := []float32{10, 20, 30}
	if err := saxpy(2, []float32{1, 2, -3}, y); err != nil {
		t.Fatal(err)
	}
	// 2·1+10, 2·2+20, 2·(−3)+30
	if diff := cmp.Diff([]float32{12, 24, 24}, y); diff != "" {
		t.Error(diff)
	}
}

func TestSaxpyRoundsTheProduct(t *testing.T) {
	// (1+2⁻¹²)² = 1 + 2⁻¹¹ + 2⁻²⁴. The last term is half a unit of the last
	// place and is rounded away before the sum; fused, it would be the result.
	const a = 1 + 1.0/(1<<12)
	y := []float32{-(1 + 1.0/(1<<11))}
	if err := saxpy(a, []float32{a}, y); err != nil {
		t.Fatal(err)
	}
	if y[0] != 0 {
		t.Errorf("got %g, want 0", y[0])
	}
}

func TestSaxpyRefusesDifferentLengths(t *testing.T) {
	y := []float32{1}
	if err := saxpy(1, []float32{1, 2}, y); !errors.Is(err, vkomp.ErrInvalidArgument) || y[0] != 1 {
		t.Errorf("error %v, y %v", err, y)
	}
}
