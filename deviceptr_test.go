package vkomp_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestZeroDevicePtrIsNil(t *testing.T) {
	var p vkomp.DevicePtr
	if !p.IsNil() || p.Address() != 0 || p.Device() != (vkomp.Device{}) || p.String() != "nil" || p.Add(8) != p {
		t.Errorf("the zero DevicePtr is %v at %#x", p, p.Address())
	}
	if p := vkomp.HostPtr[int32](nil); !p.IsNil() || p != (vkomp.DevicePtr{}) {
		t.Errorf("the HostPtr of a nil slice is %v", p)
	}
}

func TestHostPtrIsWhereTheSliceIs(t *testing.T) {
	s := make([]float64, 10)
	p := vkomp.HostPtr(s)
	if at := uint64(uintptr(unsafe.Pointer(&s[0]))); p.IsNil() || p.Address() != at || p.Device() != (vkomp.Device{}) {
		t.Errorf("%v, want %#x", p, at)
	}
	if q := p.Add(24); q.Address() != uint64(uintptr(unsafe.Pointer(&s[3]))) || q.Add(-24) != p || q == p {
		t.Errorf("24 bytes past %v is %v", p, q)
	}
	if p != vkomp.HostPtr(s) || p == vkomp.HostPtr(s[:9]) {
		t.Error("pointers are equal that reach different storage, or different that are the same")
	}
	if got, want := p.String(), fmt.Sprintf("%#x in a []float64", p.Address()); got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	if vkomp.HostPtr(make([]int32, 0)).IsNil() {
		t.Error("the HostPtr of an empty slice is nil")
	}
}

func TestDevicePtrAddsBytes(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p := alloc(t, d, 100)
		q := p.Add(40)
		if q.Address() != p.Address()+40 || q.Add(-40) != p || q == p || q.Device() != d {
			t.Errorf("40 bytes past %v is %v", p, q)
		}
		want := fmt.Sprintf("%#x on device %d", p.Address(), d.Number())
		if d.IsInitial() {
			want = fmt.Sprintf("%#x on the initial device", p.Address())
		}
		if p.String() != want {
			t.Errorf("it is %q, want %q", p, want)
		}
	})
}

func TestSlicesWithGoPointersAreRefusedByName(t *testing.T) {
	type node struct {
		Value int32
		Next  *node
	}
	ctx := t.Context()
	rt := vktest.Open(t)
	for _, d := range []vkomp.Device{rt.DefaultDevice(ctx), rt.InitialDevice()} {
		p, bad := alloc(t, d, 64), vkomp.HostPtr(make([]node, 4))
		for what, err := range map[string]error{
			"memcpy to":         rt.Memcpy(ctx, bad, p, 8),
			"memcpy from":       rt.Memcpy(ctx, p, bad, 8),
			"memcpy of nothing": rt.Memcpy(ctx, p, bad, 0),
			"memcpy async":      rt.MemcpyAsync(ctx, p, bad, 8),
			"memset":            rt.InitialDevice().Memset(ctx, bad, 1, 8),
		} {
			refused(t, what, err, vkomp.ErrInvalidArgument, strings.Fields(what)[0], "vkomp_test.node.Next is a ptr")
		}
		if !d.IsInitial() {
			refused(t, "associate", d.AssociatePtr(ctx, bad, p, 8, 0), vkomp.ErrInvalidArgument, "node.Next")
			refused(t, "disassociate", d.DisassociatePtr(ctx, bad), vkomp.ErrInvalidArgument, "node.Next")
		}
		if d.IsPresent(bad) || d.IsAccessible(bad, 8) || !d.MappedPtr(bad).IsNil() {
			t.Error("storage with Go pointers is there for a device")
		}
	}
}
