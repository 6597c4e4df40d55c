package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// slowKernel returns a runtime on which the compilation of a kernel "slow" signals when it
// begins and ends when gate is closed; a callback of the tool does both. The other callbacks
// of the tool are those given.
func slowKernel(t *testing.T, others ...ompt.Callbacks) (rt *vkomp.Runtime, slow vkomp.Kernel, begun, gate chan struct{}) {
	begun, gate = make(chan struct{}, 10), make(chan struct{})
	var tool ompt.Callbacks
	for _, tool = range others {
	}
	tool.DeviceLoad = func(e ompt.DeviceLoadEvent) {
		if e.Filename == "slow" {
			begun <- struct{}{}
			<-gate
		}
	}
	rt = vktest.Open(t, withTool(tool))
	return rt, newKernel(t, rt, slowSource()), begun, gate
}

func slowSource() vkomp.KernelSource {
	source := shaders.Saxpy
	source.Name = "slow"
	return source
}

// NewKernel opens no device. A device that is opened compiles the kernels that there are, and one
// that is open a kernel that is made; launches of others do not wait for them.
func TestKernelsAreCompiledBeforeTheirLaunch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))) // as many kernels are compiled ahead
	var opened atomic.Int32
	rt, slow, begun, gate := slowKernel(t, ompt.Callbacks{DeviceInitialize: func(ompt.DeviceInitializeEvent) { opened.Add(1) }})
	quick := newKernel(t, rt, shaders.Saxpy)
	if n := opened.Load(); n != 0 {
		t.Errorf("%d devices are open", n)
	}
	x, y := constant(64, 1), constant(64, 0)
	data := vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}
	must(t, rt.TargetEnterData(t.Context(), data))
	<-begun
	must(t, rt.Target(t.Context(), saxpyOn(t, quick, 1, x, y)))
	second := newKernel(t, rt, slowSource())
	<-begun
	region := saxpyOn(t, quick, 1, x, y)
	region.NoWait = true
	must(t, rt.Target(t.Context(), region))
	must(t, rt.Taskwait(t.Context()))
	close(gate)
	must(t, rt.Target(t.Context(), saxpyOn(t, slow, 1, x, y)))
	must(t, rt.Target(t.Context(), saxpyOn(t, second, 1, x, y)))
	for i, v := range y {
		if v != 4 {
			t.Fatalf("y[%d] is %v, want 4", i, v)
		}
	}
	if n := len(begun); n != 0 {
		t.Errorf("kernels were compiled %d times more", n)
	}
	must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}}))
}

// endingContext is a context that ends when somebody is about to wait for its end.
type endingContext struct {
	context.Context
	end func()
}

func (c endingContext) Done() <-chan struct{} {
	c.end()
	return c.Context.Done()
}

// A hard pause waits for a kernel that is compiled and that nobody has launched, as long as its
// context lasts. If that ends, nothing has changed: the next one is compiled. The kernels are compiled
// again when the device is opened again.
func TestHardPauseWaitsForKernelsThatNobodyLaunched(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one kernel at a time is compiled ahead
	rt, _, begun, gate := slowKernel(t)
	newKernel(t, rt, slowSource())
	quick := newKernel(t, rt, shaders.Saxpy)
	use := func() { must(t, rt.Target(t.Context(), saxpyOn(t, quick, 1, constant(64, 1), constant(64, 0)))) }
	use()
	<-begun
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := rt.PauseResourceAll(endingContext{ctx, func() { cancel(late) }}, vkomp.PauseHard)
	if !errors.Is(err, vkomp.ErrBusy) || !errors.Is(err, late) || !strings.Contains(err.Error(), `device 0: `) || !strings.Contains(err.Error(), `kernel "slow" is still being compiled`) {
		t.Errorf("the pause returned %v", err)
	}
	use()
	gate <- struct{}{}
	<-begun
	result := make(chan error)
	go func() { result <- rt.PauseResourceAll(t.Context(), vkomp.PauseHard) }()
	close(gate)
	must(t, <-result)
	use()
	<-begun
}

// A kernel is closed while it is compiled, and so is the runtime, which waits for that alone.
func TestKernelAndRuntimeAreClosedDuringACompilation(t *testing.T) {
	rt, slow, begun, gate := slowKernel(t)
	must(t, rt.Target(t.Context(), saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 1, constant(64, 1), constant(64, 0))))
	<-begun
	must(t, slow.Close())
	ctx, cancel := context.WithCancel(t.Context())
	err := rt.CloseContext(endingContext{ctx, cancel})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `kernel "slow" (device 0 compiles it)`) {
		t.Errorf("CloseContext returned %v", err)
	}
	close(gate)
	must(t, rt.Close())
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
