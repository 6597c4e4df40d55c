package vkomp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// slowKernel returns a runtime on which the compilation of the kernel "slow" signals when it
// begins and ends when gate is closed; a callback of the tool does both.
func slowKernel(t *testing.T) (rt *vkomp.Runtime, slow vkomp.Kernel, begun, gate chan struct{}) {
	begun, gate = make(chan struct{}, 1), make(chan struct{})
	rt = vktest.Open(t, withTool(ompt.Callbacks{DeviceLoad: func(e ompt.DeviceLoadEvent) {
		if e.Filename == "slow" {
			begun <- struct{}{}
			<-gate
		}
	}}))
	source := shaders.Saxpy
	source.Name = "slow"
	slow, err := rt.NewKernel(source)
	must(t, err)
	return rt, slow, begun, gate
}

func TestADeadlineBoundsTheCompilationOfAKernel(t *testing.T) {
	rt, slow, begun, gate := slowKernel(t)
	x, y := constant(64, 1), constant(64, 0)
	region := saxpyOn(t, slow, 1, x, y)
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error)
	go func() { result <- rt.Target(ctx, region) }()
	<-begun
	cancel(late)
	if err := <-result; !errors.Is(err, late) || !strings.Contains(err.Error(), `kernel "slow" is still being compiled`) {
		t.Errorf("the target region returned %v", err)
	}
	if n := rt.Stats().Tasks; n != 0 || rt.DefaultDevice(t.Context()).IsPresent(vkomp.HostPtr(x)) {
		t.Errorf("%d tasks were generated, or the slice is mapped", n)
	}
	// Other kernels can be compiled in the meantime.
	must(t, rt.Target(t.Context(), saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 1, x, constant(64, 0))))
	must(t, rt.Taskwait(t.Context()))
	if err := rt.PauseResourceAll(t.Context(), vkomp.PauseHard); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "slow") {
		t.Errorf("the pause returned %v", err)
	}
	must(t, rt.PauseResourceAll(t.Context(), vkomp.PauseSoft))
	deferred := region
	deferred.NoWait = true
	must(t, rt.Target(t.Context(), deferred))
	if err := rt.Taskwait(ctx); !errors.Is(err, late) {
		t.Errorf("the wait returned %v", err)
	}
	close(gate)
	must(t, rt.Taskwait(t.Context()))
	must(t, rt.Target(t.Context(), region))
	for i, v := range y {
		if v != 2 {
			t.Fatalf("y[%d] is %v, want 2", i, v)
		}
	}
	must(t, rt.PauseResourceAll(t.Context(), vkomp.PauseHard))
}

func TestCloseContextNamesTheKernelThatIsCompiled(t *testing.T) {
	rt, slow, begun, gate := slowKernel(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- rt.Target(ctx, saxpyOn(t, slow, 1, constant(64, 1), constant(64, 0))) }()
	<-begun
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the target region returned %v", err)
	}
	err := rt.CloseContext(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `kernel "slow" (device 0 compiles it)`) {
		t.Errorf("CloseContext returned %v", err)
	}
	close(gate)
	must(t, rt.Close())
}
