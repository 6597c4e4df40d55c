package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestClosedKernelIsRefusedAndItsTasksComplete(t *testing.T) {
	for _, m := range memoryModes {
		t.Run(m.name, func(t *testing.T) {
			rt := vktest.Open(t, m.option)
			ctx := t.Context()
			k, err := rt.NewKernel(shaders.Saxpy)
			must(t, err)
			other, err := rt.NewKernel(shaders.Saxpy)
			must(t, err)
			x, y := constant(64, 1), constant(64, 0)
			saxpy := func(k vkomp.Kernel, noWait bool) error {
				return rt.Target(ctx, vkomp.Target{
					Kernel: k, Range: vkomp.Range{X: len(y)}, NoWait: noWait, DependArgs: true,
					Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
				})
			}
			// No task of the kernel runs before it is closed.
			gate := make(chan struct{})
			must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(y)}, Body: func(context.Context) error {
				<-gate
				return nil
			}}))
			const accepted = 3
			for range accepted {
				must(t, saxpy(k, true))
			}
			for range 2 {
				must(t, k.Close())
			}
			for _, noWait := range []bool{false, true} {
				if err := saxpy(k, noWait); !errors.Is(err, vkomp.ErrClosed) || !strings.Contains(err.Error(), `kernel "saxpy" is closed`) {
					t.Errorf("a construct with the closed kernel: %v", err)
				}
			}
			if k.Name() != "saxpy" {
				t.Errorf("the closed kernel's name is %q", k.Name())
			}
			close(gate)
			must(t, rt.Taskwait(ctx))
			must(t, saxpy(other, false))
			for i, v := range y {
				if v != accepted+1 {
					t.Fatalf("y[%d] is %v, want %v", i, v, accepted+1)
				}
			}
			must(t, rt.PauseResourceAll(ctx, vkomp.PauseHard))
			if err := saxpy(k, false); !errors.Is(err, vkomp.ErrClosed) {
				t.Errorf("a construct with the closed kernel after a pause: %v", err)
			}
			must(t, saxpy(other, false))
			must(t, other.Close())
		})
	}
	must(t, vkomp.Kernel{}.Close())
}

// The pipelines of a closed kernel are destroyed while the device is open: at once, or when the
// last task that uses them is complete.
func TestDeviceDropsAClosedKernel(t *testing.T) {
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprint("in use ", used), func(t *testing.T) {
			var module, unloaded atomic.Uint64
			rt := vktest.Open(t, withTool(ompt.Callbacks{
				DeviceLoad: func(e ompt.DeviceLoadEvent) {
					if e.Filename == shaders.Saxpy.Name {
						module.Store(e.ModuleID)
					}
				},
				DeviceUnload: func(e ompt.DeviceUnloadEvent) { unloaded.Store(e.ModuleID) },
			}))
			ctx := t.Context()
			k, err := rt.NewKernel(shaders.Saxpy)
			must(t, err)
			region := saxpyOn(t, k, 1, constant(64, 1), constant(64, 0))
			must(t, rt.Target(ctx, region))
			gate, order := make(chan struct{}), []int{0}
			if used {
				must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(order)}, Body: func(context.Context) error { <-gate; return nil }}))
				region.NoWait, region.Depend = true, []vkomp.Depend{vkomp.In(order)}
				must(t, rt.Target(ctx, region))
			}
			must(t, k.Close())
			if used && unloaded.Load() != 0 {
				t.Error("the kernel is gone before the task that uses it has run")
			}
			close(gate)
			must(t, rt.Taskwait(ctx))
			for limit := time.Now().Add(20 * time.Second); unloaded.Load() == 0 && time.Now().Before(limit); {
				runtime.Gosched()
			}
			if got, want := unloaded.Load(), module.Load(); got != want || want == 0 {
				t.Errorf("module %d is unloaded, want %d", got, want)
			}
			other, err := rt.NewKernel(shaders.Saxpy)
			must(t, err)
			must(t, rt.Target(ctx, saxpyOn(t, other, 1, constant(64, 1), constant(64, 0))))
		})
	}
}

func TestKernelIsClosedAfterItsRuntime(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{})
	must(t, err)
	k, err := rt.NewKernel(shaders.Saxpy)
	must(t, err)
	must(t, rt.Close())
	must(t, k.Close())
}
