package vgpu_test

import (
	"context"
	_ "embed"
	"fmt"
	"log"

	"github.com/goki/vgpu/vgpu"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	adapter "github.com/vkomp/vkomp/interop/vgpu"
)

//go:embed testdata/halve.spv
var halve []byte

// vgpu halves the values in a mapped slice.
func Example() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	var object interop.Object
	init := vkomp.InteropInit{Object: &object, Types: interop.TypeTarget | interop.TypeTargetSync}
	if err := rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{init}}); err != nil {
		log.Fatal(err)
	}
	device, err := adapter.Open(object)
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	system, err := device.NewComputeSystem("halve")
	if err != nil {
		log.Fatal(err)
	}

	values := []float32{2, 3, 5, 7}
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(values)}}
	err = rt.TargetData(ctx, region, func(ctx context.Context) error {
		var pipeline *vgpu.Pipeline
		err := device.Do(func() error {
			pipeline = system.NewPipeline("halve")
			pipeline.AddShaderCode("halve", vgpu.ComputeShader, halve)
			set := system.Vars().AddSet()
			set.Add("values", vgpu.Float32, 1, vgpu.Storage, vgpu.ComputeShader)
			set.ConfigVals(1)
			system.Config()
			return nil
		})
		if err != nil {
			return err
		}
		buffer, err := rt.InteropBuffer(object, vkomp.HostPtr(values), 0)
		if err != nil {
			return err
		}
		if err := device.Bind(system, 0, 0, "values", buffer); err != nil {
			return err
		}
		commands := system.ComputeCmdBuff()
		err = device.Do(func() error {
			system.ComputeResetBindVars(commands, 0)
			pipeline.ComputeDispatch1D(commands, len(values), 64)
			system.ComputeCmdEnd(commands)
			return nil
		})
		if err != nil {
			return err
		}
		// The submission comes between earlier and later tasks on the slice.
		use := vkomp.Interop{Use: []interop.Object{object}, Depend: []vkomp.Depend{vkomp.InOut(values)}, NoWait: true}
		if err := rt.Interop(ctx, use); err != nil {
			return err
		}
		if err := device.Submit(ctx, commands); err != nil {
			return err
		}
		if err := rt.Interop(ctx, use); err != nil {
			return err
		}
		return rt.Taskwait(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(values)
	// Output: [1 1.5 2.5 3.5]
}
