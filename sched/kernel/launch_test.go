package kernel

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/vk"
)

// load loads a kernel of the scheduler's testdata.
func load(t *testing.T, name string) *Kernel {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", name+".spv"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(name, code, "main", nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A plan has every workgroup of the range in one dispatch, and each dispatch within the
// device's limits.
func TestPlanCoversTheRangeOnce(t *testing.T) {
	k := load(t, "set")
	rapid.Check(t, func(t *rapid.T) {
		var p vk.Properties
		var g [3]uint64
		for d := range g {
			p.Limits.MaxComputeWorkGroupCount[d] = rapid.Uint32Range(1, 9).Draw(t, "limit")
			g[d] = rapid.Uint64Range(1, 30).Draw(t, "groups")
		}
		limit := p.Limits.MaxComputeWorkGroupCount
		plan, err := k.PlanDispatch(&g, &p, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalidLaunch) {
				t.Fatal(err)
			}
			// One dimension of a flat range may be as long as its layers, which stand along z, fit.
			layers := uint64(1)
			for d := range g {
				layers *= (g[d]-1)/uint64(limit[d]) + 1
			}
			long := g[0] > uint64(limit[0]) && g[1] > uint64(limit[1])
			if layers == 1 || g[2] == 1 && !long && layers <= uint64(limit[2]) {
				t.Fatalf("%v workgroups are refused where %v are possible: %v", g, limit, err)
			}
			return
		}
		seen := make(map[[3]uint64]int)
		for _, c := range plan.Calls {
			for d := range c.Count {
				if c.Count[d] == 0 || uint64(c.Base[d])+uint64(c.Count[d]) > uint64(limit[d]) {
					t.Fatalf("call %+v exceeds %v", c, limit)
				}
			}
			for x := range c.Count[0] {
				for y := range c.Count[1] {
					for z := range c.Count[2] {
						at := [3]uint64{uint64(c.Base[0] + x), uint64(c.Base[1] + y), uint64(c.Base[2] + z)}
						if plan.Fold > 0 {
							// This is what the folded kernel computes from its workgroup's
							// index.
							at[plan.Fold-1] += at[2] * uint64(limit[plan.Fold-1])
							at[2] = 0
						}
						seen[at]++
					}
				}
			}
		}
		if uint64(len(seen)) != g[0]*g[1]*g[2] {
			t.Fatalf("%d workgroups of %v", len(seen), g)
		}
		for at, n := range seen {
			if n != 1 || at[0] >= g[0] || at[1] >= g[1] || at[2] >= g[2] {
				t.Fatalf("workgroup %v runs %d times, of %v", at, n, g)
			}
		}
	})
}

func TestLongestPlan(t *testing.T) {
	k := load(t, "set")
	p := vk.Properties{Limits: vk.Limits{MaxComputeWorkGroupCount: [3]uint32{5, 4, 6}}}
	for d, longest := range []uint64{30, 24} {
		g := [3]uint64{1, 1, 1}
		g[d] = longest
		if plan, err := k.PlanDispatch(&g, &p, nil); err != nil || plan.Fold != d+1 || len(plan.Calls) != 1 {
			t.Errorf("%v workgroups: %+v, %v", g, plan, err)
		}
		g[d]++
		if _, err := k.PlanDispatch(&g, &p, nil); !errors.Is(err, ErrInvalidLaunch) {
			t.Errorf("%v workgroups: %v", g, err)
		}
	}
}

func TestGroupsCoverTheRange(t *testing.T) {
	k := load(t, "set")
	for _, c := range []struct{ in, want [3]uint64 }{
		{[3]uint64{1, 1, 1}, [3]uint64{1, 1, 1}},
		{[3]uint64{4, 2, 3}, [3]uint64{1, 2, 3}},
		{[3]uint64{5, 1, 1}, [3]uint64{2, 1, 1}},
		{[3]uint64{0, 1, 1}, [3]uint64{}},
		{[3]uint64{4, 0, 1}, [3]uint64{}},
	} {
		var got [3]uint64
		if k.Groups(&c.in, &got); got != c.want {
			t.Errorf("range %v: %v workgroups, want %v", c.in, got, c.want)
		}
	}
}

func TestBindingBeginsAtTheAlignedAddressBelow(t *testing.T) {
	p := &vk.Properties{Name: "fake", Limits: vk.Limits{MinStorageBufferOffsetAlignment: 64, MaxStorageBufferRange: 1024}}
	mix, plain := load(t, "mix"), load(t, "stencil")
	elements := func(stride uint32) *Kernel {
		return &Kernel{buffers: []Binding{{Used: true, Stride: stride, offsetAt: 8}}}
	}
	for _, c := range []struct {
		name         string
		k            *Kernel
		offset, size uint64
		before       uint64
		padded, cut  bool
		want         vk.BufferRange
		elements     uint32
		refused      string
	}{
		{name: "aligned", k: mix, offset: 128, size: 64, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 64}},
		{name: "residual in elements", k: mix, offset: 148, size: 64, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 84}, elements: 5},
		{name: "whole words", k: mix, offset: 128, size: 6, padded: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 8}},
		{name: "other data in the last word", k: mix, offset: 128, size: 6, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 6}},
		{name: "no member for the offset", k: plain, offset: 148, size: 64, refused: "vkomp_offset_0"},
		{name: "part of an element", k: mix, offset: 146, size: 64, refused: "whole number"},
		{name: "too large with the residual", k: mix, offset: 148, size: 1020, refused: "maxStorageBufferRange"},
		{name: "too large with an earlier element", k: elements(12), offset: 376, before: 376, size: 920, refused: "maxStorageBufferRange"},
		{name: "bytes in the last word", k: elements(1), offset: 128, size: 6, padded: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 6}},
		{name: "half a last word", k: elements(2), offset: 128, size: 6, padded: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 6}},
		{name: "elements of several sizes", k: elements(0), offset: 128, size: 6, padded: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 8}},
		{name: "cut", k: mix, offset: 148, size: 5000, padded: true, cut: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 1024}, elements: 5},
		{name: "not cut", k: mix, offset: 148, size: 500, cut: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 520}, elements: 5},
		{name: "the residual is whole elements", k: elements(12), offset: 128 + 24, size: 12, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 36}, elements: 2},
		{name: "an earlier element is aligned", k: elements(12), offset: 128 + 32, before: 96, size: 12, want: vk.BufferRange{Buffer: 7, Offset: 64, Size: 108}, elements: 8},
		{name: "an earlier element is outside of the storage", k: elements(12), offset: 128 + 32, before: 95, size: 12, refused: "32 bytes past a multiple of 64"},
		{name: "no element is aligned", k: elements(12), offset: 1<<20 + 2, before: 1 << 20, size: 12, refused: "whole number of elements of 12 bytes"},
		{name: "as large as can be", k: mix, offset: 0, size: 1024, want: vk.BufferRange{Buffer: 7, Size: 1024}},
	} {
		t.Run(c.name, func(t *testing.T) {
			push := make([]byte, 32)
			binary.NativeEndian.PutUint32(push[8:], 99)
			got, err := c.k.Bind(0, &Argument{Buffer: 7, Offset: c.offset, Size: c.size, Before: c.before, Padded: c.padded, Cut: c.cut}, p, push)
			if c.refused != "" {
				if !errors.Is(err, ErrInvalidLaunch) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
			if n := binary.NativeEndian.Uint32(push[8:]); n != c.elements {
				t.Errorf("the kernel is told %d elements, want %d", n, c.elements)
			}
		})
	}
}
