package sched

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// gatedCompiler is a device that says when it begins to make a pipeline, and then waits until
// the test lets it go on.
type gatedCompiler struct {
	*fakeDevice
	begun, gate chan struct{}
}

func (d *gatedCompiler) CreatePipeline(o vk.PipelineOptions) (vk.Pipeline, error) {
	close(d.begun)
	<-d.gate
	return d.fakeDevice.CreatePipeline(o)
}

// Close waits while a pipeline is being made. The fake device fails the test if a pipeline is
// made after Close, or is still alive when the device is closed.
func TestCloseWaitsForAPipelineBeingMade(t *testing.T) {
	d := &gatedCompiler{newFakeDevice(t, unifiedMemory, 1), make(chan struct{}), make(chan struct{})}
	s, err := New(d, Options{Domain: rigDomain})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"set": loadKernel(t, "set")}}
	r.scope = r.graph.NewScope()
	region := r.region(launch{label: "late", kernel: "set", args: []arg{tofrom(filled(8, 1))}, included: true})
	ran, closed := make(chan error), make(chan error, 1)
	go func() { ran <- s.Run(context.Background(), region) }()
	<-d.begun
	go func() { closed <- s.Close() }()
	for closing := false; !closing; {
		runtime.Gosched()
		s.mu.Lock()
		closing = s.life.closing
		s.mu.Unlock()
	}
	// A Close that does not wait has time to return here.
	for range 10_000 {
		runtime.Gosched()
	}
	close(d.gate)
	if err := <-ran; !errors.Is(err, ErrClosed) {
		t.Errorf("the late construct: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
