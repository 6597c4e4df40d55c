package vkomp_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk/spirv"
)

// The member of push constants that tells a kernel where its argument begins counts elements: it cannot move what
// a block has before them. So an argument with such members is bound where it begins, or not at all.
func TestBlockWithAHeaderIsBoundWhereItBegins(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, vkomp.KernelSource{Name: "header", SPIRV: headerSPIRV, Host: func(c *vkomp.HostCall) error {
			v := vkomp.HostSlice[uint32](c, 0)
			for i := range v[1:] {
				v[1+i] += v[0]
			}
			return nil
		}})
		run := func(ctx context.Context, v []uint32) error {
			return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(v) - 1}, Args: []vkomp.Arg{vkomp.ToFrom(v), vkomp.Value(uint32(len(v) - 1))}})
		}
		for _, mapped := range []bool{false, true} {
			for start := range 5 {
				x := make([]uint32, 64)
				for i := range x {
					x[i] = uint32(100 + i)
				}
				want := slices.Clone(x)
				part := x[start : start+9]
				var err error
				if mapped {
					must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
						err = run(ctx, part)
						return nil
					}))
				} else {
					err = run(t.Context(), part)
				}
				switch {
				case err == nil:
					for i := range 8 {
						want[start+1+i] += want[start]
					}
				case mapped && start > 0:
					refused(t, "a part", err, vkomp.ErrInvalidLaunch, "vkomp_offset_0", "4 bytes of members before")
				default:
					t.Errorf("mapped %v, from %d: %v", mapped, start, err)
				}
				if !slices.Equal(x, want) {
					t.Errorf("mapped %v, from %d: %d, want %d", mapped, start, x, want)
				}
			}
		}
	})
}

// Modules made of WGSL have the offset members in a structure, for which the program passes one value. What that has there
// does not matter.
func TestOffsetMembersInTheStructureOfTheBlock(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "within", SPIRV: withinSPIRV})
	type arguments struct{ N, Offset1, Offset0 uint32 }
	x, y := make([]uint32, 64), make([]uint32, 64)
	for i := range x {
		x[i] = uint32(100 + i)
	}
	want := slices.Clone(y)
	must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(ctx context.Context) error {
		for start := range 5 {
			from, to := x[start:start+9], y[start*10+1:][:9]
			for i := range from {
				want[start*10+1+i] = 2 * from[i]
			}
			err := rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 9}, NoWait: true, Args: []vkomp.Arg{vkomp.To(from), vkomp.From(to), vkomp.Value(arguments{9, 7, 7})}})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	if !slices.Equal(y, want) {
		t.Errorf("%d, want %d", y, want)
	}
}

// Sizes of blocks and of push constants are those for the kernel's specialization constants.
func TestSizesFollowSpecializationConstants(t *testing.T) {
	rt := vktest.Open(t)
	value := map[uint32]func() vkomp.Arg{
		2: func() vkomp.Arg { return vkomp.Value([2]uint32{1, 2}) },
		4: func() vkomp.Arg { return vkomp.Value([4]uint32{1, 2, 3, 4}) },
		8: func() vkomp.Arg { return vkomp.Value([8]uint32{1, 2, 3, 4, 5, 6, 7, 8}) },
	}
	for _, n := range []uint32{2, 4, 8} {
		k := newKernel(t, rt, vkomp.KernelSource{Name: "sized", SPIRV: sizedSPIRV, Specialize: map[uint32]uint32{0: n}})
		runOn := func(ctx context.Context, v vkomp.Arg, of uint32) error {
			return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{v, value[of]()}})
		}
		run := func(v []uint32, of uint32) error { return runOn(t.Context(), vkomp.ToFrom(v), of) }
		v := make([]uint32, n)
		if err := run(v, n); err != nil || v[0] != 1 || v[n-1] != n {
			t.Errorf("%d elements: %d, %v", n, v, err)
		}
		refused(t, "an element less", run(v[1:], n), vkomp.ErrInvalidLaunch, "the binding needs at least")
		const aligned = 64 // elements, on all devices
		w := make([]uint32, aligned+n-1)
		must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(w)}}, func(ctx context.Context) error {
			must(t, runOn(ctx, vkomp.Implicit(w), n))
			refused(t, "an element less up to the end", runOn(ctx, vkomp.Implicit(w[aligned:]), n), vkomp.ErrInvalidLaunch, "the binding needs at least")
			return nil
		}))
		for of := range value {
			if of != n {
				refused(t, "another number of values", run(v, of), vkomp.ErrInvalidLaunch, `push-constant member "values"`)
			}
		}
	}
	_, err := rt.NewKernel(vkomp.KernelSource{Name: "special", SPIRV: specialSPIRV, Specialize: map[uint32]uint32{1: 0}})
	refused(t, "no invocations", err, vkomp.ErrInvalidLaunch, "a workgroup of 0×1×1")
}

// Values in the wrong order often have the right sizes. Their bits would be taken for other numbers.
func TestValueOfAnotherKindThanThePushConstants(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		x, y := []float32{1, 2}, []float32{3, 4}
		run := func(values ...vkomp.Arg) error {
			args := append([]vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}, values...)
			return rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(x)}, Args: args})
		}
		n, a := vkomp.Value(uint32(len(x))), vkomp.Value[float32](2)
		refused(t, "the wrong order", run(a, n), vkomp.ErrInvalidLaunch, "value 0 is of type float32", `push-constant member "n"`, "is of kind uint")
		refused(t, "an integer factor", run(n, vkomp.Value(2)), vkomp.ErrInvalidLaunch, "value 1 is of type int, 8 bytes", "is of kind float, 4 bytes")
		refused(t, "an integer factor of 4 bytes", run(n, vkomp.Value(int32(2))), vkomp.ErrInvalidLaunch, "value 1 is of type int32", `push-constant member "a"`, "is of kind float")
		refused(t, "one more", run(n, a, a), vkomp.ErrInvalidLaunch, "takes 2 values", "[n (uint, 4 bytes) a (float, 4 bytes)]")
		must(t, run(n, a))
		if want := []float32{5, 8}; !slices.Equal(y, want) {
			t.Errorf("y = %v, want %v", y, want)
		}
	})
}

func TestKindsOfValuesThatFillPushConstants(t *testing.T) {
	type number float32
	type pair struct{ N, M uint32 }
	float, half, uint, address := spirv.Member{Kind: spirv.ScalarFloat, Width: 4}, spirv.Member{Kind: spirv.ScalarFloat, Width: 2},
		spirv.Member{Kind: spirv.ScalarUint, Width: 4}, spirv.Member{Kind: spirv.ScalarAddress, Width: 8}
	for _, c := range []struct {
		value any
		spirv.Member
		want bool
	}{
		{float32(1), float, true}, {number(1), float, true}, {[2][2]float32{}, float, true}, {pair{}, float, true}, {[4]byte{}, float, true}, {uint64(1), float, true},
		{uint32(1), float, false}, {int32(1), float, false}, {[3]uint32{}, float, false},
		{uint16(1), half, true},
		{int32(1), uint, true}, {uint32(1), uint, true}, {pair{}, uint, true},
		{float32(1), uint, false}, {number(1), uint, false}, {[2]float32{}, uint, false},
		{uint64(1), address, true}, {uintptr(1), address, true}, {float64(1), address, false},
		{float32(1), spirv.Member{}, true}, {uint32(1), spirv.Member{}, true},
	} {
		if got := vkomp.Fills(reflect.TypeOf(c.value), &c.Member); got != c.want {
			t.Errorf("%T for %v of %d bytes: %v, want %v", c.value, c.Kind, c.Width, got, c.want)
		}
	}
}

// A kernel that accesses an argument cannot have one without elements, whether it is launched on a device or runs
// its Host variant. A Host variant of its own can, and so can a launch that runs nothing.
func TestArgumentWithoutElements(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		calls := 0
		host := func(*vkomp.HostCall) error { calls++; return nil }
		k := newKernel(t, rt, vkomp.KernelSource{Name: "double", SPIRV: doubleSPIRV, Host: host})
		run := func(d vkomp.Device, k vkomp.Kernel, r int, v []float32) error {
			return rt.Target(t.Context(), vkomp.Target{Device: d, Kernel: k, Range: vkomp.Range{X: r}, Args: []vkomp.Arg{vkomp.ToFrom(v), vkomp.Value(uint32(len(v)))}})
		}
		for _, d := range []vkomp.Device{{}, rt.InitialDevice()} {
			refused(t, "no elements", run(d, k, 64, nil), vkomp.ErrInvalidLaunch, `binding 0 of kernel "double" has no elements`)
			must(t, run(d, k, 0, nil))
		}
		if calls != 0 {
			t.Errorf("%d calls for nothing", calls)
		}
		only := newKernel(t, rt, vkomp.KernelSource{Name: "host", Host: host})
		must(t, run(rt.InitialDevice(), only, 64, nil))
		must(t, run(rt.InitialDevice(), only, 0, nil))
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
	})
}

// The Host variant gets the value that a Mapper maps, and the kernel its image: sizes are compared with that of the
// image on both.
func TestMapperArgumentFitsTheKernelOnTheHost(t *testing.T) {
	rt := vktest.Open(t)
	type value struct{ header, element *uint32 }
	type image struct{ Header, Element uint32 }
	m := vkomp.Mapper[value, image]{
		Encode: func(i *image, v *value) { *i = image{*v.header, *v.element} },
		Decode: func(v *value, i *image) { *v.element = i.Element },
	}
	k := newKernel(t, rt, vkomp.KernelSource{Name: "header", SPIRV: headerSPIRV, Host: func(c *vkomp.HostCall) error {
		v := vkomp.HostSlice[value](c, 0)
		if len(v) != 1 {
			return errors.New("no value")
		}
		*v[0].element += *v[0].header
		return nil
	}})
	type large struct{ Pad [8]uint32 }
	tooSmall := vkomp.Mapper[large, uint16]{Encode: func(*uint16, *large) {}, Decode: func(*large, *uint16) {}}
	for _, d := range []vkomp.Device{{}, rt.InitialDevice()} {
		header, element := uint32(5), uint32(7)
		run := func(a vkomp.Arg) error {
			return rt.Target(t.Context(), vkomp.Target{Device: d, Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{a, vkomp.Value(uint32(1))}})
		}
		if err := run(m.ToFrom(&value{&header, &element})); err != nil || element != 12 {
			t.Errorf("device %d: %d, %v", d.Number(), element, err)
		}
		refused(t, "a small image", run(tooSmall.ToFrom(&large{})), vkomp.ErrInvalidLaunch, "is 2 bytes, the binding needs at least 4")
	}
}

// What a module needs of Vulkan without a capability of SPIR-V is enabled where the device has it: the validation layer
// has nothing to say.
func TestFeaturesWithoutCapabilityAreEnabled(t *testing.T) {
	rt := vktest.Open(t)
	for file, want := range map[string][]uint32{"zeroed": {16, 16, 16}, "localsizeid": {1, 1, 1}} {
		code, err := os.ReadFile("vk/spirv/testdata/" + file + ".spv")
		must(t, err)
		out := make([]uint32, 64)
		err = rt.Target(t.Context(), vkomp.Target{Kernel: newKernel(t, rt, vkomp.KernelSource{Name: file, SPIRV: code}), Range: vkomp.Range{X: 64}, Args: []vkomp.Arg{vkomp.From(out)}})
		if errors.Is(err, vkomp.ErrUnsupported) {
			t.Logf("%s: %v", file, err)
			continue
		}
		if err != nil || !slices.Equal(out[:3], want) {
			t.Errorf("%s: %d, want %d first; %v", file, out, want, err)
		}
	}
}
