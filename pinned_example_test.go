package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func ExampleAllocPinned() {
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
	x, err := vkomp.AllocPinned[float32](ctx, rt, 4)
	if err != nil {
		log.Fatal(err)
	}
	y, err := vkomp.AllocPinned[float32](ctx, rt, 4)
	if err != nil {
		log.Fatal(err)
	}
	copy(x.Slice(), []float32{1, 2, 3, 4})
	// The device copies both slices itself, without staging memory between.
	target, err := shaders.SaxpyTarget(saxpy, 10, x.Slice(), y.Slice())
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Target(ctx, target)
	fmt.Println(y.Slice(), err)
	fmt.Println(errors.Join(x.Free(ctx), y.Free(ctx)))
	// Output:
	// [10 20 30 40] <nil>
	// <nil>
}

func ExamplePin() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	d := rt.DefaultDevice(ctx)
	p, err := d.Alloc(ctx, 4000)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Free(ctx, p)
	frame := make([]uint32, 1000)
	// To pin a slice pays if it is copied more than once. A device that cannot pin it copies it
	// all the same.
	pinned, err := vkomp.Pin(ctx, rt, frame)
	if err != nil {
		fmt.Println(err)
	}
	for i := range 3 {
		frame[0] = uint32(i)
		if err := rt.Memcpy(ctx, p, vkomp.HostPtr(frame), 4000); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(pinned.Free(ctx))
	// Output: <nil>
}

func ExamplePinned_Slice() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	p, err := vkomp.AllocPinned[int64](ctx, rt, 3)
	if err != nil {
		log.Fatal(err)
	}
	s := p.Slice()
	s[1] = 5
	fmt.Println(s)
	fmt.Println(p.Free(ctx), p.Slice() == nil)
	// Output:
	// [0 5 0]
	// <nil> true
}

func ExamplePinned_Free() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	p, err := vkomp.AllocPinned[byte](ctx, rt, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Free(ctx))
	fmt.Println(errors.Is(p.Free(ctx), vkomp.ErrInvalidPointer))
	// Output:
	// <nil>
	// true
}
