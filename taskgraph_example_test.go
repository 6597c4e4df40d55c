package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// steps has the records of the taskgraph in ExampleRuntime_Taskgraph.
var steps vkomp.TaskgraphRecords

func ExampleRuntime_Taskgraph() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	x, y, executed := []float32{1, 2}, []float32{0, 0}, 0
	step := func() error {
		return rt.Taskgraph(ctx, vkomp.Taskgraph{Records: &steps}, func(ctx context.Context) error {
			executed++
			add, err := shaders.SaxpyTarget(saxpy, 1, x, y)
			if err != nil {
				return err
			}
			add.NoWait, add.Depend = true, []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}
			return errors.Join(
				rt.Target(ctx, add),
				rt.Task(ctx, vkomp.Task{
					Depend: []vkomp.Depend{vkomp.In(y)},
					Body:   func(context.Context) error { fmt.Println(y); return nil },
				}),
			)
		})
	}
	for range 3 {
		if err := step(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("the block was executed", executed, "time")
	// Output:
	// [1 2]
	// [2 4]
	// [3 6]
	// the block was executed 1 time
}

func ExampleParamSlice() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	var (
		records vkomp.TaskgraphRecords
		out     vkomp.ParamSlice[float32]
		factor  vkomp.ParamVar[float32]
	)
	x := []float32{1, 2}
	add := func(a float32, y []float32) error {
		g := vkomp.Taskgraph{Records: &records, Params: []vkomp.Param{out.Bind(y), factor.Bind(a)}}
		return rt.Taskgraph(context.Background(), g, func(ctx context.Context) error {
			y := out.Get(ctx) // at a replay this slice is the one bound then
			err := rt.Target(ctx, vkomp.Target{
				Kernel: saxpy, Range: vkomp.Range{X: len(y)}, NoWait: true,
				Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), factor.Arg(ctx)},
				Depend: []vkomp.Depend{vkomp.InOut(y)},
			})
			if err != nil {
				return err
			}
			return rt.Task(ctx, vkomp.Task{
				Depend: []vkomp.Depend{vkomp.In(y)},
				Body:   func(ctx context.Context) error { fmt.Println(factor.Get(ctx), out.Get(ctx)); return nil },
			})
		})
	}
	for i := range 3 {
		if err := add(float32(i+1), []float32{100 * float32(i), 0}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 [1 2]
	// 2 [102 4]
	// 3 [203 6]
}
