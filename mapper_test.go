package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestPanicOfAMapperIsTheTasksFailure(t *testing.T) {
	type value struct{ n int32 }
	type image struct{ N int32 }
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		v := &value{1}
		panics := true
		m := vkomp.Mapper[value, image]{
			Encode: func(i *image, v *value) {
				if panics {
					panic("encode")
				}
				i.N = v.n
			},
			Decode: func(*value, *image) { panic("decode") },
		}
		check := func(what string, err error) {
			t.Helper()
			var p *vkomp.PanicError
			if !errors.As(err, &p) || p.Value != what {
				t.Errorf("%s: %v", what, err)
			}
		}
		check("encode", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}, NoWait: true}))
		check("encode", rt.Taskwait(ctx))
		if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
			t.Errorf("%d allocations of storage and %d of staging left", s.Storage.Allocations, s.Staging.Allocations)
		}
		panics = false
		members := m
		members.Members = func(*value, *image) []vkomp.Member { panic("members") }
		check("members", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{members.To(v)}}))
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
		panics = true
		check("encode", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m.To(v)}}))
		check("decode", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m.From(v)}}))
		check("decode", rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.From(v)}}))
		_ = rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.Delete(v)}})
		if s := rt.Stats(); s.Storage.Allocations != 0 {
			t.Errorf("%d allocations of storage left", s.Storage.Allocations)
		}
	})
}

// half maps X to the device and Y from it; Z and the padding are not mapped.
type half struct {
	X uint8
	Y uint32
	Z uint16
}

var halves = vkomp.Mapper[half, half]{
	Encode: func(i, v *half) { i.X = v.X },
	Decode: func(v, i *half) { v.Y = i.Y },
}

// `update to(s)` copies the members of s that are mapped to, and so on (OpenMP Examples,
// target_update.3): all others stay as they are on both sides.
func TestMembersThatAMapperDoesNotMapStay(t *testing.T) {
	onEveryMemoryPath(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		v, w := &half{1, 2, 3}, &half{4, 5, 6}
		both := func(mapped func(*half) vkomp.Arg) []vkomp.Arg { return []vkomp.Arg{mapped(v), mapped(w)} }
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: both(halves.To)}))
		onDevice := func(v *half) (image half) {
			t.Helper()
			at := d.MappedPtr(vkomp.HostPtr(single(v)))
			must(t, rt.Memcpy(ctx, vkomp.HostPtr(single(&image)), at, int(unsafe.Sizeof(image))))
			return image
		}
		if a, b := onDevice(v), onDevice(w); a != (half{X: 1}) || b != (half{X: 4}) {
			t.Errorf("new images are %v and %v: what Encode does not set is zero", a, b)
		}
		for name, to := range map[string]func() error{
			"update": func() error { return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: both(halves.To)}) },
			"deferred update": func() error {
				return errors.Join(rt.TargetUpdate(ctx, vkomp.TargetUpdate{NoWait: true, Motions: both(halves.To)}), rt.Taskwait(ctx))
			},
			"enter": func() error {
				return errors.Join(
					rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{halves.To(v).Always(), halves.To(w).Always()}}),
					rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: both(halves.Release)}))
			},
			"region": func() error {
				return rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{halves.To(v).Always(), halves.To(w).Always()}}, func(context.Context) error { return nil })
			},
		} {
			for _, at := range []*half{v, w} {
				must(t, d.Memset(ctx, d.MappedPtr(vkomp.HostPtr(single(at))), 7, int(unsafe.Sizeof(*at))))
			}
			v.X, w.X = v.X+1, 0 // as an image may contain from an earlier call
			must(t, to())
			want := half{0, 0x07070707, 0x0707}
			if image := onDevice(w); image != want {
				t.Errorf("%s to: the image is %#v, want %#v", name, image, want)
			}
			if want.X = v.X; onDevice(v) != want {
				t.Errorf("%s to: the image is %#v, want %#v", name, onDevice(v), want)
			}
		}
		for name, from := range map[string]func() error{
			"update": func() error { return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: both(halves.From)}) },
			"deferred update": func() error {
				return errors.Join(rt.TargetUpdate(ctx, vkomp.TargetUpdate{NoWait: true, Motions: both(halves.From)}), rt.Taskwait(ctx))
			},
			"exit": func() error {
				return errors.Join(rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: both(halves.Alloc)}),
					rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{halves.From(v).Always(), halves.From(w).Always()}}))
			},
		} {
			*v, *w = half{1, 2, 3}, half{4, 5, 6}
			must(t, from())
			if *v != (half{1, 0x07070707, 3}) || *w != (half{4, 0x07070707, 6}) {
				t.Errorf("%s from: the values are %#v and %#v: only Y is mapped from", name, *v, *w)
			}
		}
		*v, *w = half{1, 2, 3}, half{4, 5, 6}
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: both(halves.From)}))
		if *v != (half{1, 0x07070707, 3}) || *w != (half{4, 0x07070707, 6}) {
			t.Errorf("exit: the values are %#v and %#v: only Y is mapped from", *v, *w)
		}
	})
}

// An image that is present gets the pointer to a slice that is new, and keeps it whatever Encode
// writes there.
func TestPointersOfImagesThatAreThere(t *testing.T) {
	type value struct{ p []int32 }
	type image struct {
		P    vkomp.DeviceAddress
		A, B uint32
	}
	onEveryMemoryPath(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		v := &value{make([]int32, 8)}
		alone := vkomp.Mapper[value, image]{Encode: func(i *image, v *value) { *i = image{A: 1, B: 2} }}
		whole := alone
		whole.Members = func(v *value, i *image) []vkomp.Member { return []vkomp.Member{vkomp.Attach(&i.P, vkomp.To(v.p))} }
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{alone.To(v)}}))
		at := d.MappedPtr(vkomp.HostPtr(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))))
		check := func(when string) {
			t.Helper()
			var i image
			must(t, rt.Memcpy(ctx, vkomp.HostPtr(single(&i)), at, int(unsafe.Sizeof(i))))
			if want := (image{vkomp.DeviceAddress(d.MappedPtr(vkomp.HostPtr(v.p)).Address()), 1, 2}); i != want || want.P == 0 {
				t.Errorf("%s: the image is %v, want %v", when, i, want)
			}
		}
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{whole.To(v).Always()}}))
		check("after the slice came")
		must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{whole.To(v)}}))
		check("after an update")
		must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{whole.To(v)}, NoWait: true}))
		must(t, rt.Taskwait(ctx))
		check("after a deferred update")
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{whole.Delete(v)}}))
	})
}

// A mapper that ends its goroutine, as t.Fatal does, fails only the task.
func TestMapperThatEndsItsGoroutine(t *testing.T) {
	onEveryMemoryPath(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		leaves := ""
		at := func(where string) {
			if where == leaves {
				runtime.Goexit()
			}
		}
		m := vkomp.Mapper[half, half]{
			Encode: func(i, v *half) { at("encode"); i.X = v.X },
			Decode: func(v, i *half) { at("decode"); v.Y = i.Y },
		}
		v := &half{1, 2, 3}
		for _, noWait := range []bool{false, true} {
			fails := func(where string, err error) {
				t.Helper()
				if noWait {
					must(t, err)
					err = rt.Taskwait(ctx)
				}
				leaves = ""
				var failed *vkomp.TaskError
				if !errors.As(err, &failed) || !strings.Contains(err.Error(), "runtime.Goexit") {
					t.Errorf("%s: %v", where, err)
				}
			}
			leave := func(where string) { leaves = where }
			leave("encode")
			fails("enter", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}, NoWait: noWait}))
			if d.IsPresent(vkomp.HostPtr(single(v))) {
				t.Error("what failed to enter is present")
			}
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
			leave("encode")
			fails("update to", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m.To(v)}, NoWait: noWait}))
			leave("decode")
			fails("update from", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m.From(v)}, NoWait: noWait}))
			leave("decode")
			fails("exit", rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.From(v)}, NoWait: noWait}))
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.Delete(v)}}))
			if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
				t.Errorf("%d allocations of storage and %d of staging left", s.Storage.Allocations, s.Staging.Allocations)
			}
		}
	})
}

// single returns a value as a slice of one element.
func single[T any](v *T) []T { return unsafe.Slice(v, 1) }

// onEveryMemoryPath runs a test on each memory path.
func onEveryMemoryPath(t *testing.T, test func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device)) {
	for _, p := range vktest.Paths {
		t.Run(p.String(), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(p))
			test(t, rt, rt.DefaultDevice(t.Context()))
		})
	}
}

// Only the first byte of a value has a device address: the bytes of its image are others than the value's.
func TestMappedPtrOfAnImage(t *testing.T) {
	type value struct{ a [16]int32 }
	type image struct{ N int32 }
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		m := vkomp.Mapper[value, image]{Encode: func(i *image, v *value) { i.N = v.a[0] }}
		v := &value{[16]int32{7}}
		must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
		p := d.MappedPtr(vkomp.HostPtr(v.a[:]))
		if got := contents(t, rt, p, 4); got[0] != 7 {
			t.Errorf("the image is %v", got)
		}
		if p := d.MappedPtr(vkomp.HostPtr(v.a[1:])); !p.IsNil() {
			t.Errorf("4 bytes into the value is %v", p)
		}
		must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{m.Release(v)}}))
	})
}

// What is mapped as an image of a value in one place, and as a slice or as another image in another, is refused, and nothing
// is copied: the two have different sizes on the device.
func TestImagesAndSlicesOfTheSameStorage(t *testing.T) {
	type value [16]int32
	type small struct{ N int32 }
	shrinks := vkomp.Mapper[value, small]{
		Encode: func(i *small, v *value) { i.N = v[0] },
		Decode: func(v *value, i *small) { v[0] = i.N },
	}
	grows := vkomp.Mapper[small, value]{
		Encode: func(i *value, v *small) { i[0] = v.N },
		Decode: func(v *small, i *value) { v.N = i[0] + i[15] },
	}
	same := vkomp.Mapper[value, value]{Encode: func(i, v *value) { *i = *v }, Decode: func(v, i *value) { *v = *i }}
	for _, path := range vktest.Paths {
		t.Run(path.String(), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			ctx, d := t.Context(), rt.DefaultDevice(t.Context())
			s, q := make([]value, 3), []small{{1}, {2}, {3}}
			for i := range s {
				for k := range s[i] {
					s[i][k] = int32(100*i + k)
				}
			}
			v := &s[1]
			enter := func(maps ...vkomp.Arg) error { return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: maps}) }
			exit := func(noWait bool, maps ...vkomp.Arg) error {
				err := rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: maps, NoWait: noWait})
				return errors.Join(err, rt.Taskwait(ctx))
			}
			unchanged := func(what string, err error, present ...vkomp.DevicePtr) {
				t.Helper()
				refused(t, what, err, vkomp.ErrPartialOverlap, "image")
				for i := range s {
					for k := range s[i] {
						if s[i][k] != int32(100*i+k) {
							t.Fatalf("%s: s[%d] is %v", what, i, s[i])
						}
					}
				}
				if q[1] != (small{2}) {
					t.Errorf("%s: %v", what, q)
				}
				for _, p := range present {
					if !d.IsPresent(p) {
						t.Errorf("%s: %v is not present", what, p)
					}
				}
			}
			for _, noWait := range []bool{false, true} {
				must(t, enter(shrinks.To(v)))
				unchanged("a slice", exit(noWait, vkomp.From(s[1:2])), vkomp.HostPtr(s[1:2]))
				unchanged("another image", exit(noWait, same.From(v)), vkomp.HostPtr(s[1:2]))
				must(t, exit(noWait, shrinks.From(v)))
				must(t, enter(vkomp.To(q)))
				unchanged("an image of an element", exit(noWait, grows.From(&q[1])), vkomp.HostPtr(q))
				must(t, exit(noWait, vkomp.From(q)))
			}
			unchanged("a slice, then an image", enter(vkomp.To(s[1:2]), same.To(v)))
			unchanged("an image, then a slice", enter(same.To(v), vkomp.To(s[1:2])))
			// The storage is mapped otherwise when a region ends: nothing is copied, and its count is given back.
			for _, noWait := range []bool{false, true} {
				region := vkomp.TargetData{Maps: []vkomp.Arg{grows.ToFrom(&q[1])}, NoWait: noWait}
				err := rt.TargetData(ctx, region, func(ctx context.Context) error {
					return errors.Join(rt.Taskwait(ctx),
						rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(q[1:2])}}),
						rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(q)}}))
				})
				unchanged("the end of a region", errors.Join(err, rt.Taskwait(ctx)))
				if d.IsPresent(vkomp.HostPtr(q)) {
					t.Error("the end of a region has given back nothing")
				}
			}
			if n := rt.Stats().Storage.Allocations; n != 0 {
				t.Errorf("%d allocations of storage left", n)
			}
		})
	}
}

// Two items of a construct are one image, and each attaches a pointer of its own.
func TestPointersOfTwoItemsThatAreOneImage(t *testing.T) {
	type value struct{ x, y []int32 }
	type image struct {
		X, Y vkomp.DeviceAddress
		N    int64
	}
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		var seen image
		attach := func(member func(v *value, i *image) vkomp.Member) vkomp.Mapper[value, image] {
			return vkomp.Mapper[value, image]{
				Encode: func(i *image, v *value) { *i = image{N: 7} },
				Decode: func(v *value, i *image) { seen = *i },
				Members: func(v *value, i *image) (members []vkomp.Member) {
					if member != nil {
						members = append(members, member(v, i))
					}
					return members
				},
			}
		}
		v := &value{make([]int32, 4), make([]int32, 4)}
		x := attach(func(v *value, i *image) vkomp.Member { return vkomp.Attach(&i.X, vkomp.To(v.x)) })
		y := attach(func(v *value, i *image) vkomp.Member { return vkomp.Attach(&i.Y, vkomp.To(v.y)) })
		none := attach(nil)
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{x.To(v), y.To(v)}}))
		for _, what := range []string{"the entry", "an update"} {
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{none.From(v)}}))
			if seen.X == 0 || seen.Y == 0 || seen.X == seen.Y || seen.N != 7 {
				t.Errorf("after %s: %x", what, seen)
			}
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{none.To(v)}}))
		}
		// The slices come again, elsewhere, while the image is there with pointers to where they were.
		before, others := seen, make([]int32, 8)
		exit(t, rt, vkomp.Delete(v.x), vkomp.Delete(v.y))
		enter(t, rt, vkomp.To(others[:4]), vkomp.To(others[4:]))
		enter(t, rt, x.To(v).Always(), y.To(v).Always())
		must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{none.From(v)}}))
		address := func(s []int32) vkomp.DeviceAddress {
			return vkomp.DeviceAddress(d.MappedPtr(vkomp.HostPtr(s)).Address())
		}
		if want := (image{address(v.x), address(v.y), 7}); seen != want || seen.Y == before.Y {
			t.Errorf("after the slices came again: %x, want %x; before it was %x", seen, want, before)
		}
		exit(t, rt, x.Delete(v), y.Delete(v), vkomp.Delete(others[:4]), vkomp.Delete(others[4:]))
	})
}

func TestMembersOfAValueAreMappedOneByOne(t *testing.T) {
	type value struct{ x, y []int32 }
	type image struct{ X, Y vkomp.DeviceAddress }
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		var seen image
		mapper := vkomp.Mapper[value, image]{
			Encode: func(*image, *value) {},
			Decode: func(_ *value, i *image) { seen = *i },
			Members: func(v *value, i *image) []vkomp.Member {
				return []vkomp.Member{vkomp.Attach(&i.X, vkomp.To(v.x)), vkomp.Attach(&i.Y, vkomp.ToFrom(v.y))}
			},
		}
		v := &value{[]int32{1, 1, 1, 1}, []int32{2, 2, 2, 2}}
		enter(t, rt, mapper.ToFrom(v))
		px, py := d.MappedPtr(vkomp.HostPtr(v.x)), d.MappedPtr(vkomp.HostPtr(v.y))
		if px.IsNil() || py.IsNil() {
			t.Fatalf("the members are mapped to %v and %v", px, py)
		}
		for _, p := range []vkomp.DevicePtr{px, py} {
			must(t, d.Memset(ctx, p, 3, 16))
		}
		must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{mapper.From(v)}}))
		const threes = 0x03030303
		// A member that is mapped to the device alone does not come back with its value.
		if !slices.Equal(v.x, []int32{1, 1, 1, 1}) || !slices.Equal(v.y, []int32{threes, threes, threes, threes}) {
			t.Errorf("after an update from the device: %x", *v)
		}
		if want := (image{vkomp.DeviceAddress(px.Address()), vkomp.DeviceAddress(py.Address())}); seen != want {
			t.Errorf("the image points to %x, want %x", seen, want)
		}
		exit(t, rt, mapper.Delete(v))
		for name, s := range map[string][]int32{"x": v.x, "y": v.y} {
			if p := d.MappedPtr(vkomp.HostPtr(s)); !p.IsNil() {
				t.Errorf("%s is still mapped, to %v", name, p)
			}
		}
	})
}
