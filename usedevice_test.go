package vkomp_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestUseDeviceSetsPointersAfterTheRegionsMaps(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		for _, noWait := range []bool{false, true} {
			x, y := fill(100, 1), fill(100, 1)
			enter(t, rt, vkomp.To(y))
			var px, py, pa vkomp.DevicePtr
			region := vkomp.TargetData{
				NoWait: noWait, Maps: []vkomp.Arg{vkomp.ToFrom(x)},
				Use: []vkomp.UseDevice{vkomp.UseDevicePtr(x[10:], &px), vkomp.UseDevicePtr(y, &py), vkomp.UseDeviceAddr(x[20:30], &pa)},
			}
			must(t, rt.TargetData(t.Context(), region, func(context.Context) error {
				for what, c := range map[string]struct{ got, want vkomp.DevicePtr }{
					"x": {px, d.MappedPtr(vkomp.HostPtr(x[10:]))},
					"y": {py, d.MappedPtr(vkomp.HostPtr(y))},
					"a": {pa, d.MappedPtr(vkomp.HostPtr(x[20:30]))},
				} {
					if c.got.IsNil() || c.got.Address() != c.want.Address() {
						t.Errorf("%s is %v, want %v", what, c.got, c.want)
					}
				}
				if d.IsInitial() {
					return nil
				}
				if px.Device() != d || py.Device() != d {
					t.Errorf("the pointers are %v and %v", px, py)
				}
				return rt.Memcpy(t.Context(), px, vkomp.HostPtr(fill(90, 5)), 360)
			}))
			must(t, rt.Taskwait(t.Context()))
			if !d.IsInitial() && (x[9] != 1 || x[10] != 5 || present(d, x)) {
				t.Errorf("x = … %d %d …, present: %v", x[9], x[10], present(d, x))
			}
			exit(t, rt, vkomp.Release(y))
			if !d.IsInitial() {
				if present(d, y) {
					t.Error("the region has not let go what it used")
				}
				err := rt.Memcpy(t.Context(), px, vkomp.HostPtr(x), 4)
				refused(t, "the pointer after the region", err, vkomp.ErrInvalidPointer)
			}
		}
	})
}

func TestUseDeviceHoldsWhatIsPresent(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x, y := fill(100, 1), fill(100, 1)
		enter(t, rt, vkomp.To(x), vkomp.To(y))
		var p, q vkomp.DevicePtr
		region := vkomp.TargetData{Use: []vkomp.UseDevice{vkomp.UseDevicePtr(x[50:], &p), vkomp.UseDeviceAddr(y, &q)}}
		must(t, rt.TargetData(t.Context(), region, func(context.Context) error {
			exit(t, rt, vkomp.Release(x), vkomp.Release(y))
			if !present(d, x) || !present(d, y) {
				t.Error("gone, although the region uses it")
			}
			return nil
		}))
		if present(d, x) || present(d, y) {
			t.Error("there after the last region that used it")
		}
	})
}

func TestUseDevicePtrOfAbsentStorageKeepsTheHostPointer(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(100, 1)
		var p, null vkomp.DevicePtr
		region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x[:10])}, Use: []vkomp.UseDevice{vkomp.UseDevicePtr(x[10:], &p), vkomp.UseDevicePtr[uint32](nil, &null)}}
		must(t, rt.TargetData(t.Context(), region, func(context.Context) error {
			if p != vkomp.HostPtr(x[10:]) || !null.IsNil() {
				t.Errorf("the pointers are %v and %v", p, null)
			}
			// The region does not count what is mapped later.
			enter(t, rt, vkomp.To(x[10:]))
			return nil
		}))
		if !present(d, x[10:]) {
			t.Error("the region let go what it did not hold")
		}
		exit(t, rt, vkomp.Release(x[10:]))
	})
}

func TestUseDeviceAddrOfAbsentStorageUndoesTheRegion(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		for _, depend := range [][]vkomp.Depend{nil, {vkomp.InOut(make([]byte, 1))}} {
			x, y := make([]uint32, 100), fill(100, 1)
			for i := range x {
				// Values that device memory is unlikely to contain by chance.
				x[i] = 2654435761 * uint32(i+1)
			}
			before := slices.Clone(x)
			enter(t, rt, vkomp.To(y[:50]))
			var p, q vkomp.DevicePtr
			region := vkomp.TargetData{
				Label: "it", Depend: depend,
				Maps: []vkomp.Arg{vkomp.From(x).Always()},
				Use:  []vkomp.UseDevice{vkomp.UseDevicePtr(y, &p), vkomp.UseDeviceAddr(y, &q)},
			}
			err := rt.TargetData(t.Context(), region, explodes(t))
			refused(t, "present in part", err, vkomp.ErrNotPresent, "use 1", `"it"`)
			if present(d, x) || !slices.Equal(x, before) || !present(d, y) {
				t.Errorf("x present: %v, x = %d, y present: %v", present(d, x), x, present(d, y))
			}
			if !p.IsNil() || !q.IsNil() {
				t.Errorf("a region that failed has set pointers to %v and %v", p, q)
			}
			exit(t, rt, vkomp.Release(y[:50]))
			if present(d, y) {
				t.Error("a region that failed has counted")
			}
			must(t, rt.Taskwait(t.Context()))
		}
	})
}

func TestUseDeviceItemsThatAreNoneAreRefused(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		var p vkomp.DevicePtr
		for what, c := range map[string]struct {
			use  vkomp.UseDevice
			says string
		}{
			"the zero UseDevice": {vkomp.UseDevice{}, "use 0"},
			"no pointer":         {vkomp.UseDevicePtr(fill(1, 1), nil), "use 0"},
			"Go pointers":        {vkomp.UseDeviceAddr([]string{""}, &p), "use 0"},
		} {
			err := rt.TargetData(t.Context(), vkomp.TargetData{Use: []vkomp.UseDevice{c.use}}, explodes(t))
			refused(t, what, err, vkomp.ErrInvalidArgument, c.says)
		}
	})
}

func TestUseDeviceInARegionOfTheHost(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(100, 1)
		enter(t, rt, vkomp.To(x))
		var p, q vkomp.DevicePtr
		region := vkomp.TargetData{If: vkomp.If(false), Use: []vkomp.UseDevice{vkomp.UseDevicePtr(x, &p), vkomp.UseDeviceAddr(x[50:], &q)}}
		broken := errors.New("broken")
		err := rt.TargetData(t.Context(), region, func(context.Context) error {
			if p != vkomp.HostPtr(x) || q != vkomp.HostPtr(x[50:]) {
				t.Errorf("the pointers are %v and %v", p, q)
			}
			return broken
		})
		refused(t, "the body", err, broken)
		exit(t, rt, vkomp.Release(x))
	})
}
