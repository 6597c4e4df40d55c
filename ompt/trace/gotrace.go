package trace

import (
	"context"
	"fmt"
	"runtime/trace"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/ompt"
)

// GoTrace returns a tool for Go's execution tracer (package runtime/trace). While that
// runs, each task of the runtime is a task of the trace, inside of the one that
// generated it; the body of a host task, a target region on the host and a wait in a
// body are regions; operations on devices are logged when the host initiates them.
// While the tracer does not run, an event costs a few nanoseconds; a task that was
// generated then stays out of the trace.
//
// A region begins and ends on the goroutine that it is of, which these do. Target
// regions of devices and operations are none: they end on other goroutines. Nor are
// waits of the initial task, in which several goroutines may be at once: they are
// logged.
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

// goState is what GoTrace keeps of a task, or of a target region, which has no more
// than the context.
type goState struct {
	label    string
	isTarget bool
	ctx      context.Context
	task     *trace.Task
	// body is the body's region, or that of a target region on the host, while it runs;
	// waits are in it.
	body  *trace.Region
	waits []*trace.Region
}

// goOf returns nil for what is not in the trace.
func goOf(d *ompt.Data) *goState {
	if s := stateOf(d); s != nil {
		return s.goTrace
	}
	return nil
}

func (g *goTrace) taskCreate(e ompt.TaskCreateEvent) {
	// A merged task is part of another: it has no end of its own.
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
	attach(e.NewTask).goTrace = made
}

func (g *goTrace) taskSchedule(e ompt.TaskScheduleEvent) {
	if s := goOf(e.PriorTask); s != nil {
		switch e.PriorStatus {
		case ompt.TaskSwitch, ompt.TaskYield, ompt.TaskEarlyFulfill:
		case ompt.TaskDetach:
			s.endBody()
		case ompt.TaskCancel:
			// It comes on any goroutine, and no body has run.
			s.task.End()
		default:
			s.endBody()
			s.task.End()
		}
	}
	if s := goOf(e.NextTask); s != nil && s.body == nil && !s.isTarget {
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
	s := goOf(e.Task)
	if s == nil || s.body == nil {
		if trace.IsEnabled() {
			trace.Log(context.Background(), "vkomp", waitName(e.Kind)+map[ompt.ScopeEndpoint]string{ompt.ScopeBegin: " begins", ompt.ScopeEnd: " ends"}[e.Endpoint])
		}
		return
	}
	if e.Endpoint == ompt.ScopeBegin {
		s.waits = append(s.waits, trace.StartRegion(s.ctx, waitName(e.Kind)))
	} else if n := len(s.waits); n > 0 && e.Endpoint == ompt.ScopeEnd {
		s.waits[n-1].End()
		s.waits = s.waits[:n-1]
	}
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
	attach(e.Target).goTrace = s
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

// deviceSet are the non-host devices that a tool has heard of.
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

// finalize counts a device's memory as gone.
func (s *deviceSet) finalize(e ompt.DeviceFinalizeEvent) {
	if memory := s.memory(e.DeviceNum); memory != nil {
		memory.Store(0)
	}
}

func (s *deviceSet) has(num int) bool { return s.memory(num) != nil }

// memory is what counts the bytes in use on a device, nil for one that was never open.
func (s *deviceSet) memory(num int) *atomic.Int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nums[num]
}

// inUse is the memory of all devices.
func (s *deviceSet) inUse() (bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, memory := range s.nums {
		bytes += memory.Load()
	}
	return bytes
}
