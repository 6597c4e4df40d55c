package sched

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

func TestMemoryTypeFollowsUse(t *testing.T) {
	const mapped = vk.MemoryHostVisible | vk.MemoryHostCoherent
	heaps := []vk.MemoryHeap{{Size: 8 << 30, DeviceLocal: true}, {Size: 16 << 30}, {Size: 256 << 20, DeviceLocal: true}}
	types := []vk.MemoryType{
		{Heap: 1, Flags: mapped},
		{Heap: 0, Flags: vk.MemoryDeviceLocal},
		{Heap: 2, Flags: vk.MemoryDeviceLocal | mapped},
		{Heap: 1, Flags: mapped | vk.MemoryHostCached},
		{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryLazy},
		{Heap: 0, Flags: vk.MemoryDeviceLocal | mapped},
		{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryHostVisible | vk.MemoryHostCached},
	}
	for _, c := range []struct {
		name   string
		kind   vk.DeviceType
		bits   uint32
		use    memoryUse
		hidden bool
		want   int
	}{
		{"storage of a discrete device avoids the window", vk.DeviceDiscrete, 0b011111, useStorage, false, 1},
		{"storage takes memory that is all visible", vk.DeviceDiscrete, 0b111111, useStorage, false, 5},
		{"the window serves when nothing else is local", vk.DeviceDiscrete, 0b011101, useStorage, false, 2},
		{"storage of an integrated device is visible", vk.DeviceIntegrated, 0b011111, useStorage, false, 2},
		{"staging is cached", vk.DeviceDiscrete, 0b111111, useStaging, false, 3},
		{"staging takes any visible memory", vk.DeviceDiscrete, 0b000011, useStaging, false, 0},
		{"storage without local memory", vk.DeviceSoftware, 0b000001, useStorage, false, 0},
		{"no staging", vk.DeviceDiscrete, 0b000010, useStaging, false, -1},
		{"lazy memory is no storage", vk.DeviceDiscrete, 0b010000, useStorage, false, -1},
		{"storage that is hidden anyway need not be visible", vk.DeviceDiscrete, 0b111111, useStorage, true, 1},
		{"visible and not coherent is better than only local", vk.DeviceIntegrated, 0b1000010, useStorage, false, 6},
		{"storage is coherent where it can be", vk.DeviceIntegrated, 0b1100000, useStorage, false, 5},
		{"staging is rather cached than coherent", vk.DeviceIntegrated, 0b1000001, useStaging, false, 6},
		{"staging that is not coherent", vk.DeviceIntegrated, 0b1000000, useStaging, false, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &vk.Properties{Name: "fake", Type: c.kind, MemoryTypes: types, MemoryHeaps: heaps}
			got, err := chooseMemoryType(p, c.bits, c.use, c.hidden)
			if c.want < 0 {
				if !errors.Is(err, vk.ErrUnsupported) {
					t.Errorf("got type %d, %v", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got type %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

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
