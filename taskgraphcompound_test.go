package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Kernels of a record have one task at a replay also if parameters have other values, or are bound to slices or pointers to which
// they were bound a few replays ago.
func TestReplayedKernelsWithParametersAreOneTask(t *testing.T) {
	const n, kernels, buffers = 64, 3, 6
	for _, m := range memoryModes {
		t.Run(m.name, func(t *testing.T) {
			rt := vktest.Open(t, m.option)
			ctx, d, k := t.Context(), rt.DefaultDevice(t.Context()), newKernel(t, rt, shaders.Saxpy)
			ones := constant(n, 1)
			var y, tokens [buffers][]float32
			var at [buffers]vkomp.DevicePtr
			items := []vkomp.Arg{vkomp.To(ones)}
			for i := range buffers {
				y[i], tokens[i] = constant(n, 0), constant(n, 0)
				at[i] = alloc(t, d, 4*n)
				items = append(items, vkomp.ToFrom(y[i]))
				must(t, d.Memset(ctx, at[i], 0, 4*n))
			}
			var slice vkomp.ParamSlice[float32]
			var pointer vkomp.ParamVar[vkomp.DevicePtr]
			var factor vkomp.ParamVar[float32]
			for _, c := range []struct {
				name                          string
				value, slice, pointer, depend bool
				bound                         []int // the slice and the pointer at each replay
				tasks                         []uint64
			}{
				{name: "no parameter", bound: []int{0, 0}, tasks: []uint64{1, 1}},
				{name: "a value", value: true, bound: []int{0, 0, 0}, tasks: []uint64{1, 1, 1}},
				{name: "a slice", slice: true, bound: []int{0, 1, 0, 1, 0, 2, 3, 4, 0, 1, 1}, tasks: []uint64{3, 3, 1, 1, 1, 3, 3, 3, 1, 3, 1}},
				{name: "a depend item", depend: true, bound: []int{0, 1, 0, 1}, tasks: []uint64{3, 3, 1, 1}},
				{name: "a pointer", pointer: true, bound: []int{5, 5, 4, 4, 5}, tasks: []uint64{3, 1, 3, 1, 1}},
				{name: "all of them", value: true, slice: true, pointer: true, bound: []int{1, 2, 1, 2, 2, 1}, tasks: []uint64{3, 3, 1, 1, 1, 1}},
			} {
				t.Run(c.name, func(t *testing.T) {
					wantY, wantMemory := make([]float32, buffers), make([]float32, buffers)
					for i := range buffers {
						wantY[i] = y[i][0]
					}
					must(t, rt.TargetData(ctx, vkomp.TargetData{Maps: items}, func(ctx context.Context) error {
						must(t, rt.Target(ctx, saxpyOn(t, k, 0, ones, y[0]))) // the kernel is compiled then
						g := newGraphed(rt, func(ctx context.Context) error {
							out, by, to := y[0], vkomp.Value(float32(2)), at[0]
							if c.value {
								by = factor.Arg(ctx)
							}
							if c.slice {
								out = slice.Get(ctx)
							}
							if c.pointer {
								to = pointer.Get(ctx)
							}
							first, second, third := saxpyOn(t, k, 0, ones, out), saxpyOn(t, k, 3, ones, out), saxpyOn(t, k, 0, ones, out)
							first.Args[3], third.Args[3] = by, by
							third.Args[1] = vkomp.HasDeviceAddr[float32](to, n)
							for _, kernel := range []*vkomp.Target{&first, &second, &third} {
								kernel.NoWait, kernel.Depend = true, []vkomp.Depend{vkomp.InOut(ones)}
								if c.depend {
									kernel.Depend = append(kernel.Depend, vkomp.InOut(slice.Get(ctx)))
								}
							}
							return errors.Join(rt.Target(ctx, first), rt.Target(ctx, second), rt.Target(ctx, third))
						})
						g.NoGroup = true
						before := rt.Stats().Tasks
						for round := -1; round < len(c.bound); round++ {
							i, by, tasks := 0, float32(2), uint64(kernels)
							if round >= 0 {
								i = c.bound[round]
								if os.Getenv("VKOMP_CHECK_TOOL") == "" && !d.IsInitial() { // a tool is told of each construct
									tasks = c.tasks[round]
								}
							}
							var params []vkomp.Param
							if c.value {
								by = float32(3 + round%2)
								params = append(params, factor.Bind(by))
							}
							if c.slice {
								params = append(params, slice.Bind(y[i]))
							}
							if c.depend {
								params = append(params, slice.Bind(tokens[i]))
							}
							if c.pointer {
								params = append(params, pointer.Bind(at[i]))
							}
							g.expect(t, fmt.Sprint("round ", round), round < 0, func(g *vkomp.Taskgraph) { g.Params = params })
							now := rt.Stats().Tasks
							if now-before != tasks {
								t.Errorf("round %d: %d tasks, want %d", round, now-before, tasks)
							}
							before = now
							if !c.slice {
								wantY[0] += by + 3
							} else {
								wantY[i] += by + 3
							}
							if !c.pointer {
								wantMemory[0] += by
							} else {
								wantMemory[i] += by
							}
						}
						return rt.Taskwait(ctx)
					}))
					for i := range buffers {
						if !slices.Equal(y[i], constant(n, wantY[i])) {
							t.Errorf("slice %d is %v, want %v", i, y[i], wantY[i])
						}
						got := make([]float32, n)
						must(t, rt.Memcpy(ctx, vkomp.HostPtr(got), at[i], 4*n))
						must(t, d.Memset(ctx, at[i], 0, 4*n))
						if !slices.Equal(got, constant(n, wantMemory[i])) {
							t.Errorf("the memory at pointer %d is %v, want %v", i, got, wantMemory[i])
						}
					}
				})
			}
		})
	}
}
