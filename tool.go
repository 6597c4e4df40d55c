package vkomp

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/vk"
)

// tool is Options.Tool in use. A Runtime without a tool, or with one that registers
// nothing, has none: the methods of none do nothing.
type tool struct {
	// Callbacks are the tool's, in their EMI forms alone, and guarded.
	ompt.Callbacks
	// tasks: the tool hears of tasks. runs: of when they run; operations: of what they do.
	tasks, runs, operations bool
	// regions and ops count target regions and operations.
	regions, ops atomic.Uint64
	// initial is the tool's data of the initial task.
	initial ompt.Data
	// toldOf is signalled when the tool has heard of a task that somebody waits for; its
	// lock is telling.
	telling sync.Mutex
	toldOf  *sync.Cond
	// spare has observations to use again, blocks observations that have not been used.
	spare, blocks sync.Pool
	failures      toolFailures
	log           *slog.Logger
}

// startTool makes the tool of Options.Tool, if it registers anything.
func (rt *Runtime) startTool() error {
	c := rt.options.Tool
	if err := c.Check(); err != nil {
		return fmt.Errorf("%w: Options.Tool: %w", ErrInvalidArgument, err)
	}
	if rt.icvs.noTool {
		rt.options.Tool = ompt.Callbacks{}
		return nil
	}
	c = c.EMI()
	t := &tool{Callbacks: c, log: rt.log}
	t.guardAll()
	t.toldOf = sync.NewCond(&t.telling)
	// Operations have numbers in a device's trace, which a tool may begin when it hears of
	// the device.
	t.operations = c.TargetDataOpEMI != nil || c.TargetMapEMI != nil || c.TargetSubmitEMI != nil || c.DeviceInitialize != nil
	// A dependence can be found until the task begins.
	t.runs = t.operations || c.TaskSchedule != nil || c.TargetEMI != nil || c.TaskDependence != nil
	t.tasks = t.runs || c.TaskCreate != nil || c.Dependences != nil
	if t.tasks || c.DeviceFinalize != nil || c.DeviceLoad != nil || c.DeviceUnload != nil ||
		c.ImplicitTask != nil || c.SyncRegion != nil || c.SyncRegionWait != nil || c.ControlTool != nil {
		rt.tool.Store(t)
		t.implicitTask(ompt.ScopeBegin)
	}
	return nil
}

// stopTool ends Options.Tool. It returns what the tool's callbacks failed with.
func (rt *Runtime) stopTool() error {
	t := rt.tool.Load()
	if t == nil {
		return nil
	}
	t.implicitTask(ompt.ScopeEnd)
	for _, d := range rt.devices {
		d.endTool()
	}
	rt.tool.Store(nil)
	return t.failure()
}

// implicitTask tells of one end of the initial task.
func (t *tool) implicitTask(end ompt.ScopeEndpoint) {
	if t != nil && t.ImplicitTask != nil {
		t.ImplicitTask(ompt.ImplicitTaskEvent{Endpoint: end, Task: &t.initial, ActualParallelism: 1, Index: 1, Flags: ompt.TaskInitial})
	}
}

// of returns the tool's data of the task whose region it is.
func (t *tool) of(r *taskRegion) *ompt.Data {
	if r.observed != nil {
		return &r.observed.data
	}
	return &t.initial
}

// sync tells that a region of synchronisation begins in c, and returns what tells of its
// other events.
func (t *tool) sync(c current, kind ompt.SyncRegion) syncRegion {
	if t == nil || t.SyncRegion == nil && t.SyncRegionWait == nil {
		return syncRegion{}
	}
	s := syncRegion{t, ompt.SyncRegionEvent{Kind: kind, Endpoint: ompt.ScopeBegin, Task: t.of(c.taskRegion), Codeptr: t.codeptr()}}
	if t.SyncRegion != nil {
		t.SyncRegion(s.event)
	}
	return s
}

// syncRegion is a region of synchronisation that a tool hears of, or nothing.
type syncRegion struct {
	tool  *tool
	event ompt.SyncRegionEvent
}

// wait tells of one end of the wait in the region.
func (s *syncRegion) wait(end ompt.ScopeEndpoint) {
	if s.tool != nil && s.tool.SyncRegionWait != nil {
		s.event.Endpoint = end
		s.tool.SyncRegionWait(s.event)
	}
}

// end tells that the region ends.
func (s *syncRegion) end() {
	if s.tool != nil && s.tool.SyncRegion != nil {
		s.event.Endpoint = ompt.ScopeEnd
		s.tool.SyncRegion(s.event)
	}
}

// waited tells that the wait ends, and the region.
func (s *syncRegion) waited() {
	s.wait(ompt.ScopeEnd)
	s.end()
}

// codeptr returns the return address of the call in the program that is under way, 0 if the
// tool does not ask for it.
func (t *tool) codeptr() ompt.Codeptr {
	if !t.Codeptrs {
		return 0
	}
	return programAddress()
}

func programAddress() ompt.Codeptr {
	var s raceStack
	runtime.Callers(2, s[:])
	return ompt.Codeptr(s.frames()[0].PC + 1)
}

// ControlTool passes a command on to Options.Tool (OpenMP 5.0 omp_control_tool): one of
// ompt.ControlToolStart, Pause, Flush and End, or of the tool's own from 64 on. The
// result is the tool's; ompt.ControlToolNoTool without a tool, and
// ompt.ControlToolNoCallback if it does not ask for commands.
func (rt *Runtime) ControlTool(command, modifier uint64, arg any) ompt.ControlToolResult {
	t := rt.tool.Load()
	switch {
	case t == nil:
		return ompt.ControlToolNoTool
	case t.ControlTool == nil:
		return ompt.ControlToolNoCallback
	}
	return t.ControlTool(ompt.ControlToolEvent{Command: command, Modifier: modifier, Arg: arg, Codeptr: t.codeptr()})
}

// toolDevice tells a tool what becomes of a device: a scheduler calls these methods with
// no lock held.
type toolDevice struct {
	sched.Device
	tool   *tool
	number int
	// trace is the device's, nil where it cannot be traced.
	trace *sched.Trace

	mu        lockrank.Mutex[lockrank.Leaf]
	loaded    uint64
	modules   map[vk.Pipeline]uint64
	finalized bool
}

// initialize tells that the device is open.
func (d *toolDevice) initialize(s *sched.Scheduler) {
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
func (d *toolDevice) CreatePipeline(o vk.PipelineOptions) (vk.Pipeline, error) {
	p, err := d.Device.CreatePipeline(o)
	if err != nil {
		return p, err
	}
	d.mu.Lock()
	d.loaded++
	module, tell := d.loaded, !d.finalized
	d.modules[p] = module
	d.mu.Unlock()
	if tell && d.tool.DeviceLoad != nil {
		d.tool.DeviceLoad(ompt.DeviceLoadEvent{
			DeviceNum: d.number, Filename: o.Label, Bytes: 4 * uint64(len(o.Code)), HostAddr: addressOf(o.Code), ModuleID: module,
		})
	}
	return p, nil
}

// DestroyPipeline implements sched.Device.
func (d *toolDevice) DestroyPipeline(p vk.Pipeline) {
	d.mu.Lock()
	module, tell := d.modules[p], !d.finalized
	delete(d.modules, p)
	d.mu.Unlock()
	if tell {
		d.unload(module)
	}
	d.Device.DestroyPipeline(p)
}

func (d *toolDevice) unload(module uint64) {
	if d.tool.DeviceUnload != nil {
		d.tool.DeviceUnload(ompt.DeviceUnloadEvent{DeviceNum: d.number, ModuleID: module})
	}
}

// finalize tells of the device's end, once, and before of those of its modules.
func (d *toolDevice) finalize() {
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
		// What has been traced comes before the device's end.
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
func (d *toolDevice) Close() error {
	d.finalize()
	return d.Device.Close()
}
