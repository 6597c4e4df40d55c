package vkomp_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func Example() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	n := uint32(len(x))
	err = rt.Target(context.Background(), vkomp.Target{
		Kernel: saxpy,
		Range:  vkomp.Range{X: len(x)},
		Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(n), vkomp.Value(float32(2))},
	})
	fmt.Println(y, err)
	// Output: [12 24 36] <nil>
}

func ExampleRuntime_Target() {
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
	x, y, z := []float32{1, 1}, []float32{0, 0}, []float32{0, 0}

	// y += 3x, then z += 2y: the second task waits for the first, this
	// goroutine for neither.
	first, _ := shaders.SaxpyTarget(saxpy, 3, x, y)
	first.NoWait, first.Depend = true, []vkomp.Depend{vkomp.Out(y)}
	second, _ := shaders.SaxpyTarget(saxpy, 2, y, z)
	second.NoWait, second.Depend = true, []vkomp.Depend{vkomp.In(y), vkomp.Out(z)}
	for _, target := range []vkomp.Target{first, second} {
		if err := rt.Target(ctx, target); err != nil {
			log.Fatal(err)
		}
	}
	err = rt.Taskwait(ctx)
	fmt.Println(z, err)
	// Output: [6 6] <nil>
}

func ExampleRuntime_TargetData() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	x, y := []float32{1, 2}, []float32{0, 0}
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}
	err = rt.TargetData(context.Background(), region, func(ctx context.Context) error {
		for range 4 {
			// x and y stay on the device in between.
			target, err := shaders.SaxpyTarget(saxpy, 1, x, y)
			if err != nil {
				return err
			}
			if err := rt.Target(ctx, target); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(y, err)
	// Output: [4 8] <nil>
}

func ExampleRuntime_Task() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	v := []int{0}
	for _, step := range []int{1, 2, 3} {
		err := rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.InOut(v)},
			Body: func(context.Context) error {
				v[0] = 10*v[0] + step
				return nil
			},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	err = rt.Taskwait(ctx)
	fmt.Println(v[0], err)
	// Output: 123 <nil>
}

func ExampleRuntime_Taskwait() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	_ = rt.Task(ctx, vkomp.Task{Label: "flaky", Body: func(context.Context) error {
		return fmt.Errorf("no luck")
	}})
	fmt.Println(rt.Taskwait(ctx))
	fmt.Println(rt.Taskwait(ctx))
	// Output:
	// vkomp: task "flaky": no luck
	// <nil>
}

func ExampleRuntime_NewKernel() {
	rt, err := vkomp.Open(vkomp.Options{Device: "initial"})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	square, err := rt.NewKernel(vkomp.KernelSource{
		Name: "square",
		Host: func(c *vkomp.HostCall) error {
			for i, v := range vkomp.HostSlice[int32](c, 0) {
				vkomp.HostSlice[int32](c, 0)[i] = v * v
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	v := []int32{1, 2, 3}
	err = rt.Target(context.Background(), vkomp.Target{
		Kernel: square, Range: vkomp.Range{X: len(v)}, Args: []vkomp.Arg{vkomp.ToFrom(v)},
	})
	fmt.Println(v, err)
	// Output: [1 4 9] <nil>
}

func ExampleRuntime_Graph() {
	rt, err := vkomp.Open(vkomp.Options{KeepGraph: true})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	v := []int{1}
	for _, label := range []string{"double", "double again"} {
		err := rt.Task(ctx, vkomp.Task{
			Label:  label,
			Depend: []vkomp.Depend{vkomp.InOut(v)},
			Body: func(context.Context) error {
				v[0] *= 2
				return nil
			},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := rt.Taskwait(ctx); err != nil {
		log.Fatal(err)
	}
	g := rt.Graph()
	for _, t := range g.Tasks {
		fmt.Println(t.ID, t.Label, t.State, t.Depend[0].Kind)
	}
	fmt.Println(g.Edges)
	// Output:
	// 1 double complete inout
	// 2 double again complete inout
	// [{1 2 false}]
}

func ExampleGraph_WriteSVG() {
	g := vkomp.Graph{
		Tasks: []vkomp.GraphTask{
			{ID: 1, Label: "read", Device: vkomp.InitialDeviceNumber, State: vkomp.GraphComplete},
			{ID: 2, Label: "blur", Device: 0, State: vkomp.GraphPlaced},
		},
		Edges: []vkomp.GraphEdge{{From: 1, To: 2}},
	}
	var picture strings.Builder
	if err := g.WriteSVG(&picture); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(picture.String()) {
		if strings.HasPrefix(line, "<g ") {
			fmt.Print(line)
		}
	}
	// Output:
	// <g class="edge"><path fill="none" stroke="#404040" marker-end="url(#head)" d="M78 53C106 53 106 53 134 53"/></g>
	// <g class="node"><title>complete, on the host</title><rect x="34" y="34" width="44" height="38" rx="19" fill="#c9eec9" stroke="#000000"/><text xml:space="preserve" text-anchor="middle" x="56" y="50">read</text><text xml:space="preserve" text-anchor="middle" x="56" y="65">#1</text></g>
	// <g class="node"><title>placed, on device 0</title><rect x="134" y="34" width="44" height="38" rx="0" fill="#bcd9ff" stroke="#000000"/><text xml:space="preserve" text-anchor="middle" x="156" y="50">blur</text><text xml:space="preserve" text-anchor="middle" x="156" y="65">#2</text></g>
}

func ExampleGraph_WriteDOT() {
	g := vkomp.Graph{
		Tasks: []vkomp.GraphTask{
			{ID: 1, Label: "read", Device: vkomp.InitialDeviceNumber, State: vkomp.GraphComplete},
			{ID: 2, Label: "blur", Device: 0, State: vkomp.GraphPlaced},
		},
		Edges: []vkomp.GraphEdge{{From: 1, To: 2}},
	}
	if err := g.WriteDOT(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// digraph vkomp {
	// 	graph [fontname="Helvetica" style=rounded color="#808080" tooltip=" "]
	// 	node [fontname="Helvetica" style=filled]
	// 	edge [color="#404040"]
	// 	t1 [label="read\n#1" shape=ellipse fillcolor="#c9eec9" tooltip="complete, on the host"]
	// 	t2 [label="blur\n#2" shape=box fillcolor="#bcd9ff" tooltip="placed, on device 0"]
	// 	t1 -> t2
	// }
}
