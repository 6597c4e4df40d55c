//go:build !race

package vkomp_test

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Not under the race detector, which makes pools drop memory at random.
func TestMemoryRoutinesAllocateNothing(t *testing.T) {
	vktest.Long(t)
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		// A context that never ends, so that a synchronous routine waits for the device until the end.
		ctx := context.Background()
		const size = 200_000
		p, q := alloc(t, d, size), alloc(t, d, size)
		x, y := make([]byte, size), make([]byte, size)
		pinned := allocPinned[byte](t, rt, size, d)
		for name, routine := range map[string]func() error{
			"to the device":       func() error { return rt.Memcpy(ctx, p, vkomp.HostPtr(x), size) },
			"from the device":     func() error { return rt.Memcpy(ctx, vkomp.HostPtr(x), p, size) },
			"from pinned storage": func() error { return rt.Memcpy(ctx, p, vkomp.HostPtr(pinned), size) },
			"to pinned storage":   func() error { return rt.Memcpy(ctx, vkomp.HostPtr(pinned), p, size) },
			"within the device":   func() error { return rt.Memcpy(ctx, q, p, size) },
			"on the host":         func() error { return rt.Memcpy(ctx, vkomp.HostPtr(y), vkomp.HostPtr(x), size) },
			"a few bytes":         func() error { return rt.Memcpy(ctx, p.Add(3), vkomp.HostPtr(x).Add(5), 7) },
			"memset":              func() error { return d.Memset(ctx, p, 3, size) },
			"rect of whole rows":  func() error { return rt.MemcpyRect(ctx, p, vkomp.HostPtr(x), wholeRows) },
			"alloc and free": func() error {
				p, err := d.Alloc(ctx, 1000)
				if err != nil {
					return err
				}
				return d.Free(ctx, p)
			},
			"associate": func() error {
				if err := d.AssociatePtr(ctx, vkomp.HostPtr(x), q, size, 0); err != nil {
					return err
				}
				d.MappedPtr(vkomp.HostPtr(x))
				return d.DisassociatePtr(ctx, vkomp.HostPtr(x))
			},
			"is present": func() error {
				d.IsPresent(vkomp.HostPtr(x))
				d.IsAccessible(p, size)
				return nil
			},
		} {
			if d.IsInitial() && (name == "alloc and free" || name == "associate") {
				continue // there, the one allocates Go memory by design, and the other is refused
			}
			run := func() {
				if err := routine(); err != nil {
					t.Fatal(name, err)
				}
			}
			for range 100 {
				run()
			}
			if n := testing.AllocsPerRun(500, run); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}

var wholeRows = vkomp.Rect{
	Elem: 4, Volume: []int{50, 100}, DstOffsets: []int{0, 0}, SrcOffsets: []int{10, 0}, DstDims: []int{50, 100}, SrcDims: []int{100, 100},
}
