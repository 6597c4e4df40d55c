package tests

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/segment.spv testdata/segment.comp

//go:embed testdata/segment.spv
var segmentModule []byte

// segment is a structure with a pointer member.
type segment struct {
	name string // stays on the host
	p    []int32
	a, b int32
}

// segmentImage is a segment as the kernel sees it.
type segmentImage struct {
	P    vkomp.DeviceAddress
	A, B int32
}

// segments maps a segment with what it points to.
var segments = vkomp.Mapper[segment, segmentImage]{
	Encode: func(i *segmentImage, v *segment) { i.A, i.B = v.a, v.b },
	Decode: func(v *segment, i *segmentImage) { v.a, v.b = i.A, i.B },
	Members: func(v *segment, i *segmentImage) []vkomp.Member {
		return []vkomp.Member{vkomp.Attach(&i.P, vkomp.ToFrom(v.p))}
	},
}

// segmentSource computes p[i] = p[i]·a + b for the elements of a segment.
var segmentSource = vkomp.KernelSource{
	Name:  "segment",
	SPIRV: segmentModule,
	Host: func(c *vkomp.HostCall) error {
		v := &vkomp.HostSlice[segment](c, 0)[0]
		for i := range vkomp.HostValue[uint32](c, 0) {
			v.p[i] = v.p[i]*v.a + v.b
		}
		return nil
	},
}

func newSegment(n int) *segment {
	v := &segment{name: "v", p: make([]int32, n), a: 2, b: 4}
	for i := range v.p {
		v.p[i] = int32(i)
	}
	return v
}

func alongSegment(k vkomp.Kernel, v *segment, arg vkomp.Arg) vkomp.Target {
	return vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(v.p)}, Args: []vkomp.Arg{arg, vkomp.Value(uint32(len(v.p)))}}
}

// onEveryPath runs a test on each memory path and on the initial device.
func onEveryPath(t *testing.T, test func(t *testing.T, rt *vkomp.Runtime)) {
	t.Run("host", func(t *testing.T) { test(t, vktest.Open(t, vktest.Host)) })
	for _, p := range vktest.Paths {
		t.Run(p.String(), func(t *testing.T) { test(t, vktest.Open(t, vktest.Path(p))) })
	}
}

func TestC38StructurePointerAttachment(t *testing.T) {
	check := func(t *testing.T, v *segment) {
		t.Helper()
		if v.p[0] != 4 || v.p[99] != 202 || v.a != 2 || v.b != 4 || v.name != "v" {
			t.Errorf("p[0] = %d, p[99] = %d, a = %d, b = %d, name %q", v.p[0], v.p[99], v.a, v.b, v.name)
		}
	}
	onEveryPath(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newCaseKernel(t, rt, segmentSource)
		t.Run("the structure and its pointee around the target", func(t *testing.T) {
			v := newSegment(100)
			region := vkomp.TargetData{Maps: []vkomp.Arg{segments.ToFrom(v)}}
			succeed(t, rt.TargetData(t.Context(), region, func(ctx context.Context) error {
				return rt.Target(ctx, alongSegment(k, v, segments.Alloc(v)))
			}))
			check(t, v)
		})
		t.Run("the pointee around the target", func(t *testing.T) {
			v := newSegment(100)
			region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(v.p)}}
			succeed(t, rt.TargetData(t.Context(), region, func(ctx context.Context) error {
				return rt.Target(ctx, alongSegment(k, v, segments.To(v)))
			}))
			check(t, v)
		})
		t.Run("all on the target", func(t *testing.T) {
			v := newSegment(100)
			succeed(t, rt.Target(t.Context(), alongSegment(k, v, segments.ToFrom(v))))
			check(t, v)
		})
		t.Run("deferred", func(t *testing.T) {
			v := newSegment(100)
			for range 3 {
				target := alongSegment(k, v, segments.ToFrom(v))
				target.NoWait, target.DependArgs = true, true
				succeed(t, rt.Target(t.Context(), target))
			}
			succeed(t, rt.Taskwait(t.Context()))
			if v.p[0] != 28 || v.p[99] != 8*99+28 {
				t.Errorf("p[0] = %d, p[99] = %d", v.p[0], v.p[99])
			}
		})
	})
}

// The image outlives its pointee, or the other way round. Addresses are written when either is new,
// and stay when the image is copied again.
func TestC38AttachmentToWhatIsNew(t *testing.T) {
	for _, path := range vktest.Paths {
		t.Run(path.String(), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			k := newCaseKernel(t, rt, segmentSource)
			v := newSegment(10)
			ctx := t.Context()
			empty := vkomp.Mapper[segment, segmentImage]{Encode: segments.Encode, Decode: segments.Decode}

			// First the image, then a target that maps the pointee.
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{empty.To(v)}}))
			v.b = 100 // not copied: the image is present
			succeed(t, rt.Target(ctx, alongSegment(k, v, segments.ToFrom(v))))
			want := []int32{4, 6, 8, 10, 12, 14, 16, 18, 20, 22}
			if !slices.Equal(v.p, want) || v.b != 100 {
				t.Fatalf("p = %v, b = %d", v.p, v.b)
			}

			// Always copies the members and keeps the address.
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{segments.To(v)}}))
			succeed(t, rt.Target(ctx, alongSegment(k, v, segments.Alloc(v)))) // on the device: 2·p + 4
			v.a, v.b = 1, 1000
			succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{empty.To(v)}}))
			v.a, v.b = 0, 0
			succeed(t, rt.Target(ctx, alongSegment(k, v, segments.Alloc(v)))) // + 1000
			succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{segments.From(v)}}))
			if v.p[0] != 1012 || v.p[9] != 1048 || v.a != 1 || v.b != 1000 {
				t.Errorf("p = %v, a = %d, b = %d", v.p, v.a, v.b)
			}
			succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{segments.Delete(v)}}))
			if d := rt.DefaultDevice(ctx); d.IsPresent(vkomp.HostPtr(v.p)) {
				t.Error("the pointee is still present")
			}
		})
	}
}

// Always applies to the members of a mapped value too.
func TestAlwaysHoldsForTheMembersOfAMappedValue(t *testing.T) {
	for _, path := range vktest.Paths {
		t.Run(path.String(), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			ctx := t.Context()
			v := newSegment(10)
			update := func(motion vkomp.Arg) {
				succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{motion}}))
			}
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{segments.To(v)}}))
			v.p[0], v.p[9] = 71, 79
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{segments.To(v).Always()}}))
			clear(v.p)
			update(vkomp.From(v.p))
			if v.p[0] != 71 || v.p[9] != 79 {
				t.Errorf("the device has %v", v.p)
			}
			v.p[0] = 0
			succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{segments.From(v).Always()}}))
			if v.p[0] != 71 {
				t.Errorf("the host has %v", v.p)
			}
			succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{segments.Delete(v)}}))
		})
	}
}

func TestMapperRefusals(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	k := newCaseKernel(t, rt, segmentSource)
	v := newSegment(4)
	type pointing struct{ P *int }
	bare := vkomp.Mapper[segment, segmentImage]{}
	astray := segments
	other := new(segmentImage)
	astray.Members = func(v *segment, _ *segmentImage) []vkomp.Member {
		return []vkomp.Member{vkomp.Attach(&other.P, vkomp.To(v.p))}
	}
	unmapped := segments
	unmapped.Members = func(v *segment, i *segmentImage) []vkomp.Member {
		return []vkomp.Member{vkomp.Attach(&i.P, vkomp.Release(v.p))}
	}
	for name, arg := range map[string]vkomp.Arg{
		"nil":                      segments.To(nil),
		"no Encode":                bare.To(v),
		"no Decode":                bare.From(v),
		"an image with pointers":   (vkomp.Mapper[segment, pointing]{Encode: func(*pointing, *segment) {}}).To(v),
		"an address elsewhere":     astray.To(v),
		"a member that is not one": unmapped.To(v),
		"self":                     segments.To(v).Self(),
		"a section":                segments.To(v).Section(vkomp.Span{Count: 1}),
		"release on a target":      segments.Release(v),
	} {
		if err := rt.Target(ctx, alongSegment(k, v, arg)); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{segments.To(v)}}); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("a declaration: %v", err)
	}

	// The value is present with another mapper.
	type flat struct {
		A, B int32
		Rest [2]int32
	}
	plain := []flat{{A: 1}}
	flats := vkomp.Mapper[flat, segmentImage]{Encode: func(*segmentImage, *flat) {}, Decode: func(*flat, *segmentImage) {}}
	for _, c := range []struct {
		name          string
		first, second vkomp.Arg
	}{
		{"bytes, then an image", vkomp.To(plain), flats.To(&plain[0])},
		{"an image, then bytes", flats.To(&plain[0]), vkomp.To(plain)},
	} {
		succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{c.first}}))
		if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{c.second}}); !errors.Is(err, vkomp.ErrPartialOverlap) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{c.second}}); !errors.Is(err, vkomp.ErrPartialOverlap) {
			t.Errorf("%s: update: %v", c.name, err)
		}
		succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(plain)}}))
	}
}

func ExampleMapper() {
	type list struct {
		values []float32
		scale  float32
	}
	type listOnDevice struct {
		Values vkomp.DeviceAddress // layout(buffer_reference) buffer Floats { float at[]; } values;
		Scale  float32
		_      float32
	}
	lists := vkomp.Mapper[list, listOnDevice]{
		Encode: func(i *listOnDevice, l *list) { i.Scale = l.scale },
		Decode: func(l *list, i *listOnDevice) { l.scale = i.Scale },
		Members: func(l *list, i *listOnDevice) []vkomp.Member {
			return []vkomp.Member{vkomp.Attach(&i.Values, vkomp.ToFrom(l.values))}
		},
	}
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	l := &list{values: []float32{1, 2, 3}, scale: 2}
	ctx := context.Background()
	region := vkomp.TargetData{Maps: []vkomp.Arg{lists.To(l)}}
	err = rt.TargetData(ctx, region, func(ctx context.Context) error {
		l.scale, l.values[0] = 0, 0
		return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{lists.From(l)}})
	})
	fmt.Println(l.scale, l.values, err)
	// Output: 2 [1 2 3] <nil>
}
