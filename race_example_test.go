package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func ExampleRuntime_Races() {
	rt, err := vkomp.Open(vkomp.Options{Race: true})
	if err != nil {
		log.Fatal(err)
	}
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	x, y, z := []float32{1, 1}, []float32{0, 0}, []float32{0, 0}

	// z += y should follow y += x, and does on a device with one queue; but its depend
	// clause lacks in: y.
	first, _ := shaders.SaxpyTarget(saxpy, 1, x, y)
	first.NoWait, first.Depend = true, []vkomp.Depend{vkomp.Out(y)}
	second, _ := shaders.SaxpyTarget(saxpy, 1, y, z)
	second.NoWait, second.Depend = true, []vkomp.Depend{vkomp.Out(z)}
	for _, target := range []vkomp.Target{first, second} {
		if err := rt.Target(ctx, target); err != nil {
			log.Fatal(err)
		}
	}
	if err := rt.Taskwait(ctx); err != nil {
		log.Fatal(err)
	}
	for _, race := range rt.Races() {
		fmt.Println(race.First.Task, "writes", race.First.Item)
		fmt.Println(race.Second.Task, "reads", race.Second.Item)
		fmt.Println(race.Advice)
	}
	fmt.Println(errors.Is(rt.Close(), vkomp.ErrRace))
	// Output:
	// saxpy writes argument 1
	// saxpy reads argument 0
	// add depend(in: argument 0) to the second, or wait in between
	// true
}
