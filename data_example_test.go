package vkomp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func ExampleRuntime_TargetEnterData() {
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
	x, y := []float32{1, 2}, []float32{0, 0}

	// All four are tasks in a chain; the program waits for none of them.
	chain := []vkomp.Depend{vkomp.InOut(y)}
	enter := vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}, Depend: chain, NoWait: true}
	if err := rt.TargetEnterData(ctx, enter); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		target, err := shaders.SaxpyTarget(saxpy, 3, x, y)
		if err != nil {
			log.Fatal(err)
		}
		target.Depend, target.NoWait = chain, true
		if err := rt.Target(ctx, target); err != nil {
			log.Fatal(err)
		}
	}
	exit := vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x), vkomp.From(y)}, Depend: chain, NoWait: true}
	if err := rt.TargetExitData(ctx, exit); err != nil {
		log.Fatal(err)
	}
	err = rt.Taskwait(ctx)
	fmt.Println(y, err)
	// Output: [6 12] <nil>
}

func ExampleRuntime_TargetExitData() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	v := []int32{1, 2, 3}
	item := []vkomp.Arg{vkomp.ToFrom(v)}
	for range 2 {
		if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: item}); err != nil {
			log.Fatal(err)
		}
	}
	// After the first exit the storage is still mapped once; nothing waits for its end.
	if err := rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: item}); err != nil {
		log.Fatal(err)
	}
	device, host := rt.DefaultDevice(ctx), vkomp.HostPtr(v)
	fmt.Println(device.IsPresent(host))
	if err := rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(v)}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(device.IsPresent(host) && !device.IsInitial())
	// Output:
	// true
	// false
}

func ExampleRuntime_TargetUpdate() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	x, y := []float32{1, 1, 1, 1}, []float32{0, 0, 0, 0}
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}
	err = rt.TargetData(context.Background(), region, func(ctx context.Context) error {
		x[0], x[2] = 5, 7
		// Only these elements are copied to the device.
		even := vkomp.To(x).Section(vkomp.Span{Count: 2, Stride: 2})
		if err := rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{even}}); err != nil {
			return err
		}
		target, err := shaders.SaxpyTarget(saxpy, 1, x, y)
		if err != nil {
			return err
		}
		return rt.Target(ctx, target)
	})
	fmt.Println(y, err)
	// Output: [5 1 7 1] <nil>
}

func ExampleRuntime_DeclareTarget() {
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
	table, y := []float32{1, 2, 4}, []float32{0, 0, 0}
	if err := rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(table)}}); err != nil {
		log.Fatal(err)
	}
	// The table is already on the device: no construct copies it or removes it.
	target, err := shaders.SaxpyTarget(saxpy, 10, table, y)
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Target(ctx, target)
	fmt.Println(y, err)
	// Output: [10 20 40] <nil>
}

func ExampleUseDevicePtr() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	x := []byte("storage")
	var p vkomp.DevicePtr
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.From(x)}, Use: []vkomp.UseDevice{vkomp.UseDevicePtr(x, &p)}}
	err = rt.TargetData(context.Background(), region, func(ctx context.Context) error {
		// A routine that takes device pointers writes the mapped storage.
		if err := rt.Memcpy(ctx, p, vkomp.HostPtr([]byte("STOR")), 4); err != nil {
			return err
		}
		return rt.Memcpy(ctx, p.Add(4), vkomp.HostPtr([]byte("age")), 3)
	})
	fmt.Printf("%s %v\n", x, err)
	// Output: STORage <nil>
}

func ExampleIsDevicePtr() {
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
	device := rt.DefaultDevice(ctx)
	p, err := device.Alloc(ctx, 8)
	if err != nil {
		log.Fatal(err)
	}
	defer device.Free(ctx, p)
	x, y := []float32{1, 2}, []float32{0, 0}
	if err := rt.Memcpy(ctx, p, vkomp.HostPtr(x), 8); err != nil {
		log.Fatal(err)
	}
	err = rt.Target(ctx, vkomp.Target{
		Kernel: saxpy,
		Range:  vkomp.Range{X: 2},
		Args:   []vkomp.Arg{vkomp.IsDevicePtr(p), vkomp.ToFrom(y), vkomp.Value(uint32(2)), vkomp.Value(float32(5))},
	})
	fmt.Println(y, err)
	// Output: [5 10] <nil>
}

func ExampleIterateMaps() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	rows := [][]int32{{1}, {2, 3}, {4, 5, 6}}
	all := vkomp.IterateMaps(0, len(rows), 1, func(i int) vkomp.Arg { return vkomp.To(rows[i]) })
	err = rt.TargetData(context.Background(), vkomp.TargetData{Maps: all}, func(ctx context.Context) error {
		device := rt.DefaultDevice(ctx)
		for _, row := range rows {
			fmt.Println(row, device.IsPresent(vkomp.HostPtr(row)))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [1] true
	// [2 3] true
	// [4 5 6] true
	// <nil>
}

func ExampleHostPointee() {
	rt, err := vkomp.Open(vkomp.Options{Device: "initial"})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	// The Host variant of a kernel that accesses its data by address.
	sum, err := rt.NewKernel(vkomp.KernelSource{
		Name: "sum",
		Host: func(c *vkomp.HostCall) error {
			for _, v := range vkomp.HostPointee[int32](c, 0) {
				vkomp.HostSlice[int32](c, 0)[0] += v
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	v, total := []int32{1, 2, 3}, []int32{0}
	err = rt.Target(context.Background(), vkomp.Target{
		Kernel: sum, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.ToFrom(total), vkomp.AddressOf(v)},
	})
	fmt.Println(total, err)
	// Output: [6] <nil>
}
