package trace

import (
	"context"
	"fmt"
	"runtime/trace"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/ompt"
)

// GoTrace returns a tool for Go's execution tracer (package runtime/trace). While that is
// running, each task of the runtime is a task of the trace, nested in the task that
// generated it. The body of a host task and a target region on the host are regions. The
// beginning and the end of a wait are logged, and so are operations of devices when the host
// initiates them. While the tracer is not running, an event costs a few nanoseconds, and
// tasks that are generated then stay out of the trace.
//
// A region of the tracer must end on the goroutine where it began. Target regions of
// devices and operations are therefore not regions, because they end on other goroutines.
// Neither are waits: several goroutines of one task may wait at once, and the events do not
// say which of these waits ends.
func GoTrace() ompt.Callbacks {
	g := &goTrace{}
	return ompt.Callbacks{
		DeviceInitialize: g.devices.initialize,
		TaskCreate:       g.taskCreate,
		TaskSchedule:     g.taskSchedule,
		SyncRegionWait:   g.syncRegionWait,
		TargetEMI:        g.target,
		TargetDataOpEMI:  g.targetDataOp,
		TargetSubmitEMI:  g.targetSubmit,
	}
}

type goTrace struct{ devices deviceSet }

// goState is GoTrace's state of a task, or of a target region, for which it has only the
// context.
type goState struct {
	label    string
	isTarget bool
	ctx      context.Context
	task     *trace.Task
	// body is the region of the body, or of a target region on the host, while it runs. begun
	// says that the body has begun: goroutines that it has started can outlive it, and come
	// back to the task from included tasks.
	body  *trace.Region
	begun bool
}

// goOf returns the state of a task, nil if the task is not in the trace.
func goOf(d *ompt.Data) *goState {
	if s := stateOf(d); s != nil {
		return s.goTrace
	}
	return nil
}

func (g *goTrace) taskCreate(e ompt.TaskCreateEvent) {
	// A merged task is part of another and has no end of its own.
	if !trace.IsEnabled() || e.NewTask == nil || e.Flags&ompt.TaskMerged != 0 {
		return
	}
	outer := context.Background()
	if s := goOf(e.EncounteringTask); s != nil {
		outer = s.ctx
	}
	made := &goState{label: e.Label, isTarget: e.Flags&ompt.TaskTarget != 0}
	if made.label == "" {
		made.label = "task"
	}
	made.ctx, made.task = trace.NewTask(outer, made.label)
	stateFor(e.NewTask).goTrace = made
}

func (g *goTrace) taskSchedule(e ompt.TaskScheduleEvent) {
	if s := goOf(e.PriorTask); s != nil {
		switch e.PriorStatus {
		case ompt.TaskSwitch, ompt.TaskYield, ompt.TaskEarlyFulfill:
		case ompt.TaskDetach:
			s.endBody()
		case ompt.TaskCancel:
			// It may come on any goroutine, and no body has run.
			s.task.End()
		default:
			s.endBody()
			s.task.End()
		}
	}
	if s := goOf(e.NextTask); s != nil && !s.begun && !s.isTarget {
		s.begun = true
		s.body = trace.StartRegion(s.ctx, s.label)
	}
}

func (s *goState) endBody() {
	if s.body != nil {
		s.body.End()
		s.body = nil
	}
}

func (g *goTrace) syncRegionWait(e ompt.SyncRegionEvent) {
	if !trace.IsEnabled() {
		return
	}
	ctx, does := context.Background(), " begins"
	if s := goOf(e.Task); s != nil {
		ctx = s.ctx
	}
	if e.Endpoint == ompt.ScopeEnd {
		does = " ends"
	}
	trace.Log(ctx, "vkomp", waitName(e.Kind)+does)
}

func (g *goTrace) target(e ompt.TargetEMIEvent) {
	s := goOf(e.TargetTask)
	if s == nil || e.Target == nil {
		return
	}
	if e.Endpoint == ompt.ScopeEnd {
		s.endBody()
		return
	}
	stateFor(e.Target).goTrace = s
	if !g.devices.has(e.DeviceNum) {
		s.body = trace.StartRegion(s.ctx, s.label)
	}
}

func (g *goTrace) targetDataOp(e ompt.TargetDataOpEMIEvent) {
	if e.Endpoint == ompt.ScopeEnd || !trace.IsEnabled() {
		return
	}
	ctx := context.Background()
	if s := goOf(e.TargetTask); s != nil {
		ctx = s.ctx
	}
	trace.Log(ctx, "vkomp", fmt.Sprintf("%s %s, %d bytes, device %d to %d", opName(e.Type), e.DataOp.Label, e.Bytes, e.SrcDeviceNum, e.DestDeviceNum))
}

func (g *goTrace) targetSubmit(e ompt.TargetSubmitEMIEvent) {
	if e.Endpoint == ompt.ScopeEnd {
		return
	}
	if s := goOf(e.Target); s != nil {
		trace.Log(s.ctx, "vkomp", "submit "+e.Kernel)
	}
}

// deviceSet holds the non-host devices that a tool has observed.
type deviceSet struct {
	mu   sync.RWMutex
	nums map[int]*atomic.Int64
}

func (s *deviceSet) initialize(e ompt.DeviceInitializeEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nums == nil {
		s.nums = map[int]*atomic.Int64{}
	}
	if s.nums[e.DeviceNum] == nil {
		s.nums[e.DeviceNum] = new(atomic.Int64)
	}
}

// finalize counts a device's memory as released.
func (s *deviceSet) finalize(e ompt.DeviceFinalizeEvent) {
	if memory := s.memory(e.DeviceNum); memory != nil {
		memory.Store(0)
	}
}

func (s *deviceSet) has(num int) bool { return s.memory(num) != nil }

// memory returns the counter of the bytes in use on a device, nil if it was never opened.
func (s *deviceSet) memory(num int) *atomic.Int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nums[num]
}

// inUse returns the memory in use on all devices.
func (s *deviceSet) inUse() (bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, memory := range s.nums {
		bytes += memory.Load()
	}
	return bytes
}
