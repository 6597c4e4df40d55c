package tool

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
)

// Tool is a tool in use. It is a Listener.
type Tool struct {
	// Callbacks are the tool's callbacks, in their EMI forms only and guarded.
	ompt.Callbacks
	// tasks says that the tool has callbacks for tasks, runs that it has some for when they run,
	// and operations for their operations.
	tasks, runs, operations bool
	// regions and ops count target regions and operations, whose numbers they provide.
	regions, ops atomic.Uint64
	// initial is the tool's data of the initial task, and ended says that the tool was told of its end.
	initial ompt.Data
	ended   atomic.Bool
	// toldOf is signalled when the tool has been told of a task for which a goroutine waits. Its
	// lock is telling.
	telling lockrank.Mutex[lockrank.Leaf]
	toldOf  *sync.Cond
	// spare has tasks for reuse, blocks tasks that have not been used.
	spare, blocks sync.Pool
	failures      failures
	log           *slog.Logger
}

// New returns a tool with these callbacks, which must be valid (see ompt.Callbacks.Check), or nil
// if there are none. Failures of callbacks are logged to log.
func New(c ompt.Callbacks, log *slog.Logger) *Tool {
	c = c.EMI()
	t := &Tool{Callbacks: c, log: log}
	t.guardAll()
	t.toldOf = sync.NewCond(&t.telling)
	// A device's trace refers to the numbers of operations, and a tool may start it when it is
	// told of the device.
	t.operations = c.TargetDataOpEMI != nil || c.TargetMapEMI != nil || c.TargetSubmitEMI != nil || c.DeviceInitialize != nil
	// Dependences can be found until the task begins.
	t.runs = t.operations || c.TaskSchedule != nil || c.TargetEMI != nil || c.TaskDependence != nil
	t.tasks = t.runs || c.TaskCreate != nil || c.Dependences != nil
	if t.Listens() || c.DeviceFinalize != nil || c.DeviceLoad != nil || c.DeviceUnload != nil || c.ImplicitTask != nil || c.ControlTool != nil {
		return t
	}
	return nil
}

// Listens reports whether the tool has a callback for events.
func (t *Tool) Listens() bool {
	return t.tasks || t.SyncRegion != nil || t.SyncRegionWait != nil
}

// Implicit tells the tool the begin or the end of the initial task. It tells the end once, although a pause and the closing of the
// runtime may both end the tool.
func (t *Tool) Implicit(end ompt.ScopeEndpoint) {
	if end == ompt.ScopeEnd && t.ended.Swap(true) {
		return
	}
	if t.ImplicitTask != nil {
		t.ImplicitTask(ompt.ImplicitTaskEvent{Endpoint: end, Task: &t.initial, ActualParallelism: 1, Index: 1, Flags: ompt.TaskInitial})
	}
}

// Control passes a command of the program to the tool.
func (t *Tool) Control(command, modifier uint64, arg any) ompt.ControlToolResult {
	if t.ControlTool == nil {
		return ompt.ControlToolNoCallback
	}
	e := ompt.ControlToolEvent{Command: command, Modifier: modifier, Arg: arg}
	if t.Codeptrs {
		e.Codeptr = observe.Codeptr()
	}
	return t.ControlTool(e)
}

// Interest implements observe.Listener.
func (t *Tool) Interest() observe.Interest { return observe.Interest{Codeptr: t.Codeptrs} }

// of returns the tool's data of the task to which an event belongs.
func (t *Tool) of(o *observe.Origin) *ompt.Data {
	if met, ok := o.Task().(*task); ok {
		return &met.data
	}
	return &t.initial
}

// Task implements observe.Listener.
func (t *Tool) Task(c observe.Construct) construct.Observer {
	if o := t.newTask(&c); o != nil {
		return o
	}
	return nil
}

// Merged implements observe.Listener: the tool is told that a merged task was created.
func (t *Tool) Merged(c observe.Construct) {
	if o := t.newTask(&c); o != nil {
		o.create(nil)
	}
}

// Generated implements observe.Listener. The task's observer has been told everything.
func (t *Tool) Generated(context.Context, observe.Construct, construct.Observer, error) {}

// Group implements observe.Listener.
func (t *Tool) Group(observe.Origin) any { return nil }

// region tells the tool the begin or the end of a region in which a task waits, or of the wait
// itself, by callback, which may be nil.
func (t *Tool) region(callback func(ompt.SyncRegionEvent), w *observe.Wait, end ompt.ScopeEndpoint) {
	if callback != nil {
		callback(ompt.SyncRegionEvent{Kind: w.Kind, Endpoint: end, Task: t.of(&w.Origin), Codeptr: w.Codeptr})
	}
}

// RegionBegins implements observe.Listener.
func (t *Tool) RegionBegins(w observe.Wait) { t.region(t.SyncRegion, &w, ompt.ScopeBegin) }

// RegionEnds implements observe.Listener.
func (t *Tool) RegionEnds(w observe.Wait) { t.region(t.SyncRegion, &w, ompt.ScopeEnd) }

// WaitBegins implements observe.Listener.
func (t *Tool) WaitBegins(w observe.Wait) any {
	t.region(t.SyncRegionWait, &w, ompt.ScopeBegin)
	return nil
}

// WaitEnds implements observe.Listener.
func (t *Tool) WaitEnds(_ context.Context, w observe.Wait, _ any, _ error) {
	t.region(t.SyncRegionWait, &w, ompt.ScopeEnd)
}

// Storage implements observe.Listener. The tool is told of an included target task with one
// operation: before the routine if that removes storage, otherwise after it, unless it failed.
func (t *Tool) Storage(s *observe.Storage, do func() error) (err error) {
	o := t.newTask(&observe.Construct{Origin: s.Origin, Label: s.Label, Device: s.Device, Flags: ompt.TaskTarget | ompt.TaskUndeferred})
	if o == nil {
		return do()
	}
	// What follows a callback is deferred, because that may end the goroutine.
	defer o.Release()
	defer func() {
		if o.begun {
			o.End(nil)
		} else {
			o.Dropped()
		}
	}()
	o.create(nil)
	o.Begin()
	told := construct.Op{DataOp: s.Op}
	if s.Op.Type == ompt.TargetDataDelete {
		defer o.Op(ompt.ScopeEnd, &told)
		defer func() { err = do() }()
		o.Op(ompt.ScopeBegin, &told)
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	told.DataOp = s.Op
	if s.Op.Type == ompt.TargetDataAlloc {
		defer o.Op(ompt.ScopeEnd, &told)
		o.Op(ompt.ScopeBegin, &told)
	} else {
		o.Op(ompt.ScopeBeginEnd, &told)
	}
	return nil
}

// Allocated implements observe.Listener; a tool is not told of it.
func (t *Tool) Allocated(int, sched.Pointer, uint64) {}

// Pointed implements observe.Listener; a tool is not told of it.
func (t *Tool) Pointed(int, sched.Pointer, unsafe.Pointer) {}

// Declared implements observe.Listener; a tool is not told of it.
func (t *Tool) Declared([]int, []memory.Map) {}

// Discarded implements observe.Listener; a tool is not told of it.
func (t *Tool) Discarded(int) {}
