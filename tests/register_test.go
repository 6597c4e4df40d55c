package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/foreign"
	"github.com/vkomp/vkomp/tests/vktest"
)

// withForeignBuffer runs a test with an interop object, foreign code, and a buffer that the code
// has created.
func withForeignBuffer(t *testing.T, rt *vkomp.Runtime, words int, test func(o interop.Object, d vkomp.Device, b vkomp.ForeignBuffer, p vkomp.DevicePtr)) {
	t.Helper()
	ctx := t.Context()
	var o interop.Object
	succeed(t, rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTarget | interop.TypeTargetSync}}}))
	code, err := foreign.Open(o)
	succeed(t, err)
	defer code.Close()
	made, err := code.Buffer(uint64(4 * words))
	succeed(t, err)
	defer code.Free(made)
	b := vkomp.ForeignBuffer{Buffer: made.Buffer, Memory: made.Memory, Size: made.Size, Usage: made.Usage, Exclusive: true, Family: made.Family}
	d := rt.DefaultDevice(ctx)
	p, err := d.Register(ctx, b)
	succeed(t, err)
	test(o, d, b, p)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	succeed(t, rt.Taskwait(ctx), d.Unregister(ended, p))
	if err := rt.Memcpy(ctx, vkomp.HostPtr(make([]uint32, 1)), p, 4); !errors.Is(err, vkomp.ErrInvalidPointer) {
		t.Errorf("a copy in what is not registered any more: %v", err)
	}
}

// A foreign buffer can be used by kernels as a device pointer and as associated storage, and in
// copies, on queues of its family only.
func TestForeignBufferIsUsedInPlace(t *testing.T) {
	vktest.Long(t)
	for _, c := range []struct {
		name    string
		layers  []string
		options []func(*vkomp.Options)
	}{
		{"one queue", nil, nil},
		{"staged", nil, []func(*vkomp.Options){vktest.Staging}},
		{"many queues", []string{"manyqueue"}, nil},
		{"any queue", []string{"manyqueue", "shuffle"}, []func(*vkomp.Options){randomly(5)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.layers) > 0 {
				vktest.Layers(t, c.layers...)
			}
			rt := vktest.Open(t, c.options...)
			k := newAffine(t, rt)
			const n = 1000
			x, y := repeated(n, 7), repeated(n, 0)
			other := repeated(n, 1)
			withForeignBuffer(t, rt, n, func(_ interop.Object, d vkomp.Device, b vkomp.ForeignBuffer, p vkomp.DevicePtr) {
				ctx := t.Context()
				succeed(t, rt.Memcpy(ctx, p, vkomp.HostPtr(x), 4*n))
				add := k.on(other, other, 1, 0, 2, vkomp.InOut(other))
				for i := range 10 {
					// Kernels that use other memory run on any queue.
					offload(t, rt, add)
					onPointer := k.on(x, x, 1, 0, 5, vkomp.InOut(x))
					onPointer.Args[0], onPointer.Args[1] = vkomp.IsDevicePtr(p), vkomp.IsDevicePtr(p)
					offload(t, rt, onPointer)
					if i == 5 {
						succeed(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(y), p, 4*n, vkomp.In(x)))
					}
				}
				succeed(t, rt.Taskwait(ctx))
				if y[n-1] != 7+6*5 {
					t.Errorf("after six rounds the last element is %d, want %d", y[n-1], 7+6*5)
				}
				succeed(t, d.AssociatePtr(ctx, vkomp.HostPtr(x), p, 4*n, 0))
				offload(t, rt, k.add(x, 1000, vkomp.InOut(x)))
				succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x)}, Depend: []vkomp.Depend{vkomp.In(x)}}))
				if err := d.Unregister(ctx, p); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "associated") {
					t.Errorf("Unregister of what host storage is associated with: %v", err)
				}
				succeed(t, d.DisassociatePtr(ctx, vkomp.HostPtr(x)))
				for i, v := range x {
					if v != 1057 || other[i] != 21 {
						t.Fatalf("element %d: %d and %d, want 1057 and 21", i, v, other[i])
					}
				}
				if _, err := d.Register(ctx, b); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "registered already") {
					t.Errorf("Register once more: %v", err)
				}
				if err := d.Free(ctx, p); !errors.Is(err, vkomp.ErrInvalidPointer) {
					t.Errorf("Free: %v", err)
				}
			})
		})
	}
}

// Tasks read what foreign code writes to its own buffer, in order.
func TestForeignBufferWrittenByForeignCode(t *testing.T) {
	rt := vktest.Open(t)
	k := newAffine(t, rt)
	const n = 256
	x, sum := repeated(n, 3), repeated(n, 0)
	ctx := t.Context()
	withForeignBuffer(t, rt, n, func(o interop.Object, d vkomp.Device, _ vkomp.ForeignBuffer, p vkomp.DevicePtr) {
		code, err := foreign.Open(o)
		succeed(t, err)
		defer code.Close()
		succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(sum)}}))
		from, err := rt.InteropBuffer(o, vkomp.HostPtr(x), 0)
		succeed(t, err)
		to, err := rt.InteropBuffer(o, p, 4*n)
		succeed(t, err)
		copying, err := code.Copy(from, to)
		succeed(t, err)
		use := vkomp.Interop{Use: []interop.Object{o}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(x)}}
		for range 50 {
			offload(t, rt, k.add(x, 1, vkomp.InOut(x)))
			succeed(t, rt.Interop(ctx, use))
			succeed(t, o.Submit(ctx, func(queue uintptr) error { return code.Submit(queue, copying) }))
			succeed(t, rt.Interop(ctx, use))
			add := k.on(sum, x, 1, 1, 0, vkomp.In(x), vkomp.InOut(sum))
			add.Args[0] = vkomp.IsDevicePtr(p)
			offload(t, rt, add)
		}
		succeed(t, rt.Taskwait(ctx))
		succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x), vkomp.From(sum)}}))
		want := uint32(0)
		for i := range uint32(50) {
			want += 4 + i
		}
		if sum[0] != want || sum[n-1] != want {
			t.Errorf("the sum is %d, want %d", sum[0], want)
		}
	})
}

func TestForeignBufferThatCannotBeRegistered(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	withForeignBuffer(t, rt, 16, func(_ interop.Object, d vkomp.Device, b vkomp.ForeignBuffer, p vkomp.DevicePtr) {
		for says, c := range map[string]struct {
			change func(*vkomp.ForeignBuffer)
			want   error
		}{
			"no Buffer":                                {func(b *vkomp.ForeignBuffer) { b.Buffer = 0 }, vkomp.ErrInvalidArgument},
			"VK_BUFFER_USAGE_STORAGE_BUFFER_BIT":       {func(b *vkomp.ForeignBuffer) { b.Usage &^= 0x20 }, vkomp.ErrUnsupported},
			fmt.Sprintf("family %d, of ", b.Family+31): {func(b *vkomp.ForeignBuffer) { b.Family += 31 }, vkomp.ErrInvalidArgument},
			"neither Exclusive nor Families":           {func(b *vkomp.ForeignBuffer) { b.Exclusive = false }, vkomp.ErrInvalidArgument},
		} {
			wrong := b
			c.change(&wrong)
			if _, err := d.Register(ctx, wrong); !errors.Is(err, c.want) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q in a %v", err, says, c.want)
			}
		}
		if _, err := rt.InitialDevice().Register(ctx, b); !errors.Is(err, vkomp.ErrInvalidDevice) {
			t.Errorf("the initial device: %v", err)
		}
		if err := d.Unregister(ctx, p.Add(4)); !errors.Is(err, vkomp.ErrInvalidPointer) || !strings.Contains(err.Error(), "not its beginning") {
			t.Errorf("not its beginning: %v", err)
		}
		q, err := d.Alloc(ctx, 64)
		succeed(t, err)
		if err := d.Unregister(ctx, q); !errors.Is(err, vkomp.ErrInvalidPointer) || !strings.Contains(err.Error(), "not registered") {
			t.Errorf("an allocation: %v", err)
		}
		if err := d.Unregister(ctx, vkomp.DevicePtr{}); !errors.Is(err, vkomp.ErrInvalidPointer) || !strings.Contains(err.Error(), "is nil") {
			t.Errorf("nil: %v", err)
		}
		succeed(t, d.Free(ctx, q))
	})
}
