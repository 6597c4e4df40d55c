package vkomp_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestMemsetSetsItsBytesAndNoOthers(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		const size = 300_000
		p := alloc(t, d, size)
		before := noise(size, 3)
		for _, value := range []byte{0, 1, 0x80, 0xff} {
			for _, part := range []struct{ from, n int }{
				{0, 1}, {1, 1}, {3, 2}, {2, 1}, {5, 3}, {4, 4}, {1, 7}, {7, 64}, {63, 130}, {3, 65}, {2, 129}, {0, 1<<15 + 1}, {1, 99_999}, {100_003, 100_001}, {0, size}, {size - 1, 1}, {12, 0},
			} {
				memcpy(t, rt, p, vkomp.HostPtr(before), size)
				if err := d.Memset(t.Context(), p.Add(part.from), value, part.n); err != nil {
					t.Fatal(err)
				}
				want := append([]byte(nil), before...)
				for i := range part.n {
					want[part.from+i] = value
				}
				if got := contents(t, rt, p, size); !bytes.Equal(got, want) {
					t.Errorf("%d bytes from %d on set to %#x: wrong bytes", part.n, part.from, value)
				}
			}
		}
	})
}

func TestMemsetOfHostStorageOnTheInitialDevice(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		s := make([]uint16, 1000)
		if err := rt.InitialDevice().Memset(t.Context(), vkomp.HostPtr(s).Add(2), 0xab, 1996); err != nil {
			t.Fatal(err)
		}
		for i, v := range s {
			want := uint16(0xabab)
			if i == 0 || i == 999 {
				want = 0
			}
			if v != want {
				t.Fatalf("element %d is %#x, want %#x", i, v, want)
			}
		}
	})
}

func TestMemsetRefuses(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p := alloc(t, d, 100)
		memcpy(t, rt, p, vkomp.HostPtr(make([]byte, 100)), 100)
		for _, async := range []bool{false, true} {
			set := func(p vkomp.DevicePtr, n int) error {
				if async {
					return d.MemsetAsync(ctx, p, 1, n)
				}
				return d.Memset(ctx, p, 1, n)
			}
			refused(t, "nil", set(vkomp.DevicePtr{}, 1), vkomp.ErrInvalidPointer, "memset", "nil")
			refused(t, "a negative count", set(p, -1), vkomp.ErrInvalidArgument, "-1 bytes")
			refused(t, "one byte more", set(p, 101), vkomp.ErrInvalidPointer, "101 bytes", "100 bytes")
			refused(t, "a pointer past the end", set(p.Add(100), 1), vkomp.ErrInvalidPointer, "100 bytes")
			refused(t, "a pointer before the beginning", set(p.Add(-1), 1), vkomp.ErrInvalidPointer)
			for _, nothing := range []vkomp.DevicePtr{{}, p, p.Add(1000)} {
				if err := set(nothing, 0); err != nil {
					t.Errorf("nothing at %v: %v", nothing, err)
				}
			}
		}
		if err := rt.Taskwait(ctx); err != nil {
			t.Error(err)
		}
		if got := contents(t, rt, p, 100); !bytes.Equal(got, make([]byte, 100)) {
			t.Error("a refused memset changed the memory")
		}
	})
}

func TestMemsetAsyncKeepsItsDependences(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		const size = 70_000
		p, back := alloc(t, d, size), make([]byte, size)
		release := make(chan struct{})
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(back)}, Body: func(context.Context) error {
			<-release
			return nil
		}})
		for value := range byte(20) {
			if err := d.MemsetAsync(ctx, p.Add(int(value)), value, size-int(value), vkomp.InOut(back)); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.MemcpyAsync(ctx, vkomp.HostPtr(back), p, size, vkomp.InOut(back)); err != nil {
			t.Fatal(err)
		}
		if back[0] != 0 || back[size-1] != 0 {
			t.Error("tasks ran before what they depend on")
		}
		close(release)
		if err := rt.Taskwait(ctx, vkomp.In(back)); err != nil {
			t.Fatal(err)
		}
		for i, v := range back {
			if v != byte(min(i, 19)) {
				t.Fatalf("byte %d is %d, want %d", i, v, min(i, 19))
			}
		}
	})
}
