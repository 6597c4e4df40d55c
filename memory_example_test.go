package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func ExampleDevice_Alloc() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 4*4)
	if err != nil {
		log.Fatal(err)
	}
	in, out := []int32{1, 2, 3, 4}, make([]int32, 4)
	err = errors.Join(
		rt.Memcpy(ctx, p, vkomp.HostPtr(in), 16),
		rt.Memcpy(ctx, vkomp.HostPtr(out), p, 16),
		d.Free(ctx, p),
	)
	fmt.Println(out, err)
	// Output: [1 2 3 4] <nil>
}

func ExampleDevice_Free() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(d.Free(ctx, p.Add(8)), vkomp.ErrInvalidPointer))
	fmt.Println(d.Free(ctx, p))
	fmt.Println(errors.Is(d.Free(ctx, p), vkomp.ErrInvalidPointer))
	fmt.Println(d.Free(ctx, vkomp.DevicePtr{}))
	// Output:
	// true
	// <nil>
	// true
	// <nil>
}

func ExampleDevice_IsAccessible() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.IsAccessible(p, 100), d.IsAccessible(p.Add(1), 100))
	fmt.Println(d.Free(ctx, p), d.IsAccessible(p, 1))
	// Output:
	// true false
	// <nil> false
}

func ExampleHostPtr() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	from, to := []byte("device memory"), make([]byte, 6)
	err = rt.Memcpy(context.Background(), vkomp.HostPtr(to), vkomp.HostPtr(from).Add(7), 6)
	fmt.Printf("%s %v\n", to, err)
	// Output: memory <nil>
}

func ExampleDevicePtr_Add() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 8)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Free(ctx, p)
	s := make([]byte, 8)
	err = errors.Join(
		d.Memset(ctx, p, 1, 8),
		d.Memset(ctx, p.Add(3), 2, 4),
		rt.Memcpy(ctx, vkomp.HostPtr(s), p, 8),
	)
	fmt.Println(s, err)
	// Output: [1 1 1 2 2 2 2 1] <nil>
}

func ExampleRuntime_Memcpy() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	device, host := rt.DefaultDevice(ctx), rt.InitialDevice()
	p, err := device.Alloc(ctx, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer device.Free(ctx, p)
	q, err := host.Alloc(ctx, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Free(ctx, q)

	// From a slice to the device, to the initial device, and back.
	v := []int32{1, 2, 3}
	w := make([]int32, 2)
	err = errors.Join(
		rt.Memcpy(ctx, p, vkomp.HostPtr(v), 12),
		rt.Memcpy(ctx, q, p, 12),
		rt.Memcpy(ctx, vkomp.HostPtr(w), q.Add(4), 8),
	)
	fmt.Println(w, err)
	fmt.Println(errors.Is(rt.Memcpy(ctx, vkomp.HostPtr(w), p, 12), vkomp.ErrInvalidPointer))
	// Output:
	// [2 3] <nil>
	// true
}

func ExampleRuntime_MemcpyAsync() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 12)
	if err != nil {
		log.Fatal(err)
	}
	x, y := []float32{1, 2, 3}, []float32{10, 10, 10}

	// Copy in, compute, copy out: one object orders the three tasks.
	var order vkomp.Depobj
	if err := order.Init(vkomp.InOut(y)); err != nil {
		log.Fatal(err)
	}
	if err := rt.MemcpyAsync(ctx, p, vkomp.HostPtr(y), 12, order.Depend()); err != nil {
		log.Fatal(err)
	}
	err = rt.Target(ctx, vkomp.Target{
		Kernel: saxpy,
		Range:  vkomp.Range{X: 3},
		Args:   []vkomp.Arg{vkomp.To(x), vkomp.IsDevicePtr(p), vkomp.Value(uint32(3)), vkomp.Value(float32(2))},
		Depend: []vkomp.Depend{order.Depend()},
		NoWait: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.MemcpyAsync(ctx, vkomp.HostPtr(y), p, 12, order.Depend()); err != nil {
		log.Fatal(err)
	}
	// The tasks keep the memory until they are complete.
	if err := d.Free(ctx, p); err != nil {
		log.Fatal(err)
	}
	err = rt.Taskwait(ctx, order.Depend())
	fmt.Println(y, err)
	// Output: [12 14 16] <nil>
}

func ExampleRuntime_MemcpyRect() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	// An image of 3 rows of 4 bytes.
	image := []byte{
		0, 1, 2, 3,
		4, 5, 6, 7,
		8, 9, 10, 11,
	}
	p, err := d.Alloc(ctx, len(image))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Free(ctx, p)
	part := make([]byte, 4)
	err = errors.Join(
		rt.Memcpy(ctx, p, vkomp.HostPtr(image), len(image)),
		// Its 2 × 2 bytes in the lower middle.
		rt.MemcpyRect(ctx, vkomp.HostPtr(part), p, vkomp.Rect{
			Elem: 1, Volume: []int{2, 2},
			SrcOffsets: []int{1, 1}, SrcDims: []int{3, 4},
			DstOffsets: []int{0, 0}, DstDims: []int{2, 2},
		}),
	)
	fmt.Println(part, err)
	// Output: [5 6 9 10] <nil>
}

func ExampleRuntime_MemcpyRectAsync() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	column, table := []int32{7, 8, 9}, make([]int32, 6)
	err = errors.Join(
		// The second column of a table of 3 rows and 2 columns.
		rt.MemcpyRectAsync(ctx, vkomp.HostPtr(table), vkomp.HostPtr(column), vkomp.Rect{
			Elem: 4, Volume: []int{3, 1},
			SrcOffsets: []int{0, 0}, SrcDims: []int{3, 1},
			DstOffsets: []int{0, 1}, DstDims: []int{3, 2},
		}, vkomp.Out(table)),
		rt.Taskwait(ctx, vkomp.In(table)),
	)
	fmt.Println(table, err)
	// Output: [0 7 0 8 0 9] <nil>
}

func ExampleDevice_Memset() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	// On the initial device any slice is device memory too.
	s := make([]uint32, 3)
	err = rt.InitialDevice().Memset(ctx, vkomp.HostPtr(s), 0xff, 8)
	fmt.Printf("%x %v\n", s, err)
	// Output: [ffffffff ffffffff 0] <nil>
}

func ExampleDevice_MemsetAsync() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 4)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Free(ctx, p)
	s := make([]byte, 4)
	err = errors.Join(
		d.MemsetAsync(ctx, p, 5, 4, vkomp.Out(s)),
		d.MemsetAsync(ctx, p.Add(1), 6, 2, vkomp.Out(s)),
		rt.MemcpyAsync(ctx, vkomp.HostPtr(s), p, 4, vkomp.InOut(s)),
		rt.Taskwait(ctx),
	)
	fmt.Println(s, err)
	// Output: [5 6 6 5] <nil>
}

func ExampleDevice_AssociatePtr() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	x, y := []float32{1, 1, 1}, []float32{1, 2, 3}
	p, err := d.Alloc(ctx, 12)
	if err != nil {
		log.Fatal(err)
	}
	if err := d.AssociatePtr(ctx, vkomp.HostPtr(y), p, 12, 0); err != nil {
		log.Fatal(err)
	}
	target, err := shaders.SaxpyTarget(saxpy, 10, x, y)
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(y)}}),
		// Its map of y finds y present and copies nothing.
		rt.Target(ctx, target),
	)
	fmt.Println(y, err)
	err = errors.Join(
		rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y)}}),
		d.DisassociatePtr(ctx, vkomp.HostPtr(y)),
		d.Free(ctx, p),
	)
	fmt.Println(y, err)
	// Output:
	// [1 2 3] <nil>
	// [11 12 13] <nil>
}

func ExampleDevice_DisassociatePtr() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	s := make([]byte, 4)
	host := vkomp.HostPtr(s)
	p, err := d.Alloc(ctx, 4)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(d.Memset(ctx, p, 9, 4), d.AssociatePtr(ctx, host, p, 4, 0)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(d.Free(ctx, p), vkomp.ErrBusy))
	fmt.Println(d.DisassociatePtr(ctx, host), errors.Is(d.DisassociatePtr(ctx, host), vkomp.ErrNotPresent))
	// The memory keeps its contents.
	fmt.Println(rt.Memcpy(ctx, host, p, 4), s, d.Free(ctx, p))
	// Output:
	// true
	// <nil> true
	// <nil> [9 9 9 9] <nil>
}

func ExampleDevice_IsPresent() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	s := make([]int32, 8)
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(s[2:4])}}
	err = rt.TargetData(ctx, region, func(context.Context) error {
		fmt.Println(d.IsPresent(vkomp.HostPtr(s)), d.IsPresent(vkomp.HostPtr(s[3:])))
		return nil
	})
	fmt.Println(d.IsPresent(vkomp.HostPtr(s[3:])), err)
	// Output:
	// false true
	// false <nil>
}

func ExampleDevice_MappedPtr() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	s := []int32{1, 2, 3}
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(s)}}
	err = rt.TargetData(ctx, region, func(ctx context.Context) error {
		p := d.MappedPtr(vkomp.HostPtr(s))
		last := make([]int32, 1)
		err := rt.Memcpy(ctx, vkomp.HostPtr(last), p.Add(8), 4)
		fmt.Println(p.Device() == d, last)
		return err
	})
	fmt.Println(d.MappedPtr(vkomp.HostPtr(s)).IsNil(), err)
	// Output:
	// true [3]
	// true <nil>
}
