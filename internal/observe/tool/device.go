package tool

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/vk"
)

// Device tells a tool what happens to a device. A scheduler calls its methods without locks
// held.
type Device struct {
	sched.Device
	tool   *Tool
	number int
	// trace is the device's trace, nil if it cannot be traced.
	trace *trace.Trace

	mu     lockrank.Mutex[lockrank.Leaf]
	loaded uint64
	// modules are the numbers of the pipelines, by vk.Pipeline.Handle.
	modules   map[uint64]uint64
	finalized bool
}

// NewDevice wraps the device with the given number so that the tool is told what happens to it.
func (t *Tool) NewDevice(d sched.Device, number int) *Device {
	return &Device{Device: d, tool: t, number: number, modules: make(map[uint64]uint64)}
}

// Initialize tells the tool that the device is open.
func (d *Device) Initialize(s *sched.Scheduler) {
	if d.tool.DeviceInitialize == nil {
		return
	}
	p := d.Properties()
	e := ompt.DeviceInitializeEvent{DeviceNum: d.number, Type: p.Name + " " + p.Type.String() + " Vulkan " + vk.Version(p.APIVersion)}
	trace, err := s.NewTrace(d.number)
	if err == nil {
		d.trace, e.Device = trace, trace
		e.Documentation = fmt.Sprintf("The times of records are Vulkan's timestamps, in ticks of %v ns. Kernels, and transfers that the device makes, have records.", p.Limits.TimestampPeriod)
	} else {
		e.Documentation = fmt.Sprintf("The device cannot be traced: %v.", err)
	}
	d.tool.DeviceInitialize(e)
}

// CreatePipeline implements sched.Device.
func (d *Device) CreatePipeline(o vk.PipelineOptions) (vk.Pipeline, error) {
	p, err := d.Device.CreatePipeline(o)
	if err != nil {
		return p, err
	}
	d.mu.Lock()
	d.loaded++
	module, tell := d.loaded, !d.finalized
	d.modules[p.Handle] = module
	d.mu.Unlock()
	if tell && d.tool.DeviceLoad != nil {
		d.tool.DeviceLoad(ompt.DeviceLoadEvent{
			DeviceNum: d.number, Filename: o.Label, Bytes: 4 * uint64(len(o.Code)), HostAddr: uintptr(unsafe.Pointer(unsafe.SliceData(o.Code))), ModuleID: module,
		})
	}
	return p, nil
}

// DestroyPipeline implements sched.Device.
func (d *Device) DestroyPipeline(p vk.Pipeline) {
	d.mu.Lock()
	module, tell := d.modules[p.Handle], !d.finalized
	delete(d.modules, p.Handle)
	d.mu.Unlock()
	if tell {
		d.unload(module)
	}
	d.Device.DestroyPipeline(p)
}

func (d *Device) unload(module uint64) {
	if d.tool.DeviceUnload != nil {
		d.tool.DeviceUnload(ompt.DeviceUnloadEvent{DeviceNum: d.number, ModuleID: module})
	}
}

// Finalize tells the tool the end of the device's modules and then of the device, once.
func (d *Device) Finalize() {
	d.mu.Lock()
	first := !d.finalized
	d.finalized = true
	var left []uint64
	for _, module := range d.modules {
		left = append(left, module)
	}
	d.mu.Unlock()
	if !first {
		return
	}
	if d.trace != nil {
		// The trace is delivered before the end of the device.
		d.trace.Stop()
		defer d.trace.End()
	}
	slices.Sort(left)
	for _, module := range left {
		d.unload(module)
	}
	if d.tool.DeviceFinalize != nil {
		d.tool.DeviceFinalize(ompt.DeviceFinalizeEvent{DeviceNum: d.number})
	}
}

// Close implements sched.Device.
func (d *Device) Close() error {
	d.Finalize()
	return d.Device.Close()
}
