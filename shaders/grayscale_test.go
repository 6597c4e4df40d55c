package shaders

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestGrayscaleByHand(t *testing.T) {
	for _, c := range []struct {
		name         string
		source, want uint32
	}{
		{"black", 0xff000000, 0xff000000},
		{"white", 0xffffffff, 0xffffffff},
		{"clear white", 0x00ffffff, 0x00ffffff},
		// 0.2126·255 = 54.213 → 54 = 0x36
		{"red", 0x800000ff, 0x80363636},
		// 0.7152·255 = 182.376 → 182 = 0xb6
		{"green", 0x8000ff00, 0x80b6b6b6},
		// 0.0722·255 = 18.411 → 18 = 0x12
		{"blue", 0x80ff0000, 0x80121212},
		// 0.7152·14 + 0.0722·76 = 10.0128 + 5.4872 = 15.5 → 16 = 0x10: halves go up
		{"half", 0x014c0e00, 0x01101010},
		// 0.2126·16 + 0.7152·32 + 0.0722·48 = 3.4016 + 22.8864 + 3.4656 = 29.7536 → 30 = 0x1e
		{"mixed", 0xfe302010, 0xfe1e1e1e},
	} {
		got := []uint32{0}
		if err := grayscale([]uint32{c.source}, got); err != nil {
			t.Fatal(err)
		}
		if got[0] != c.want {
			t.Errorf("%s: %#08x becomes %#08x, want %#08x", c.name, c.source, got[0], c.want)
		}
	}
}

func TestGrayscaleWorksInPlace(t *testing.T) {
	p := []uint32{0xff0000ff, 0xff00ff00}
	if err := grayscale(p, p); err != nil {
		t.Fatal(err)
	}
	if p[0] != 0xff363636 || p[1] != 0xffb6b6b6 {
		t.Errorf("%#x", p)
	}
}

func TestGrayscaleRefusesDifferentLengths(t *testing.T) {
	if err := grayscale(make([]uint32, 2), make([]uint32, 1)); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Error(err)
	}
}
