package sched

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/vk"
)

// A plan covers every workgroup once and stays within the device's limits.
func TestPlanCoversTheRangeOnce(t *testing.T) {
	k := kernel(t, "set")
	rapid.Check(t, func(t *rapid.T) {
		var p vk.Properties
		var g [3]uint64
		for d := range g {
			p.Limits.MaxComputeWorkGroupCount[d] = rapid.Uint32Range(1, 9).Draw(t, "limit")
			g[d] = rapid.Uint64Range(1, 30).Draw(t, "groups")
		}
		limit := p.Limits.MaxComputeWorkGroupCount
		plan, err := k.planDispatch(g, &p, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalidLaunch) {
				t.Fatal(err)
			}
			fits := true
			for d := range g {
				fits = fits && g[d] <= uint64(limit[d])
			}
			if fits {
				t.Fatalf("a range within the limits is refused: %v", err)
			}
			return
		}
		seen := make(map[[3]uint64]int)
		for _, c := range plan.calls {
			for d := range c.count {
				if c.count[d] == 0 || uint64(c.base[d])+uint64(c.count[d]) > uint64(limit[d]) {
					t.Fatalf("call %+v exceeds %v", c, limit)
				}
			}
			for x := range c.count[0] {
				for y := range c.count[1] {
					for z := range c.count[2] {
						at := [3]uint64{uint64(c.base[0] + x), uint64(c.base[1] + y), uint64(c.base[2] + z)}
						if plan.fold > 0 {
							// What the folded kernel makes of its index.
							at[plan.fold-1] += at[2] * uint64(limit[plan.fold-1])
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

func TestGroupsCoverTheRange(t *testing.T) {
	k := kernel(t, "set")
	for _, c := range []struct{ in, want [3]uint64 }{
		{[3]uint64{1, 1, 1}, [3]uint64{1, 1, 1}},
		{[3]uint64{4, 2, 3}, [3]uint64{1, 2, 3}},
		{[3]uint64{5, 1, 1}, [3]uint64{2, 1, 1}},
		{[3]uint64{0, 1, 1}, [3]uint64{}},
		{[3]uint64{4, 0, 1}, [3]uint64{}},
	} {
		if got := k.groups(c.in); got != c.want {
			t.Errorf("range %v: %v workgroups, want %v", c.in, got, c.want)
		}
	}
}

func TestBindingBeginsAtTheAlignedAddressBelow(t *testing.T) {
	p := &vk.Properties{Name: "fake", Limits: vk.Limits{MinStorageBufferOffsetAlignment: 64, MaxStorageBufferRange: 1024}}
	mix, plain := kernel(t, "mix"), kernel(t, "stencil")
	for _, c := range []struct {
		name         string
		k            *Kernel
		offset, size uint64
		padded       bool
		want         vk.BufferRange
		elements     uint32
		refused      string
	}{
		{name: "aligned", k: mix, offset: 128, size: 64, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 64}},
		{name: "residual in elements", k: mix, offset: 148, size: 64, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 84}, elements: 5},
		{name: "whole words", k: mix, offset: 128, size: 6, padded: true, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 8}},
		{name: "other data in the last word", k: mix, offset: 128, size: 6, want: vk.BufferRange{Buffer: 7, Offset: 128, Size: 6}},
		{name: "no member for the offset", k: plain, offset: 148, size: 64, refused: "vkomp_offset_0"},
		{name: "part of an element", k: mix, offset: 146, size: 64, refused: "no whole number"},
		{name: "too large with the residual", k: mix, offset: 148, size: 1020, refused: "maxStorageBufferRange"},
		{name: "as large as can be", k: mix, offset: 0, size: 1024, want: vk.BufferRange{Buffer: 7, Size: 1024}},
	} {
		t.Run(c.name, func(t *testing.T) {
			push := make([]byte, 32)
			binary.NativeEndian.PutUint32(push[8:], 99)
			got, err := c.k.bind(0, 7, c.offset, c.size, c.padded, p, push)
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

func TestLaunchThatDoesNotFitIsRefused(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(8, 0)
	large := array32(1 << 20)
	r.d.props.Limits.MaxStorageBufferRange = 1 << 20
	for _, c := range []struct {
		name, want string
		region     Region
	}{
		{"too few slices", "binding 2", r.region(launch{kernel: "set", args: []arg{from(x)}})},
		{"too many slices", "no binding 2", r.region(launch{kernel: "mix", args: []arg{from(x), to(x), to(x)}})},
		{"too few values", "[n c]", r.region(launch{kernel: "set", args: []arg{from(x)}})},
		{"value of the wrong size", "value 1 is 2 bytes", r.region(launch{kernel: "set", args: []arg{from(x)}})},
		{"slice beyond the device", "maxStorageBufferRange", r.region(launch{kernel: "set", args: []arg{from(large)}})},
	} {
		g := c.region
		g.Label = c.name
		switch c.name {
		case "too few slices":
			g.Kernel = r.kernels["mix"]
		case "too many slices":
			g.Kernel = r.kernels["set"]
		case "too few values":
			g.Values = g.Values[:1]
		case "value of the wrong size":
			g.Values[1] = g.Values[1][:2]
		}
		err := r.s.Run(t.Context(), g)
		if !errors.Is(err, ErrInvalidLaunch) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if n := r.graph.Counts().Tasks; n != 0 {
		t.Errorf("%d tasks were made", n)
	}
}

func TestKernelBeyondTheDeviceIsRefused(t *testing.T) {
	for name, narrow := range map[string]func(*vk.Limits){
		"workgroup of 4×1×1":      func(l *vk.Limits) { l.MaxComputeWorkGroupSize[0] = 2 },
		"4 invocations":           func(l *vk.Limits) { l.MaxComputeWorkGroupInvocations = 3 },
		"20 bytes of push const…": func(l *vk.Limits) { l.MaxPushConstantsSize = 16 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[0], 1)
			defer r.close()
			r.kernels["mix"] = kernel(t, "mix")
			narrow(&r.d.props.Limits)
			x := filled(8, 0)
			err := r.s.Run(t.Context(), r.region(launch{label: "mix", kernel: "mix", args: []arg{from(x), to(x), to(x)}}))
			want, _ := strings.CutSuffix(name, "…")
			if !errors.Is(err, vk.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
