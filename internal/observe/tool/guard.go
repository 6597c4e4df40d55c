package tool

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/protect"
)

// failures holds the first failure of each callback of a tool.
type failures struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	seen map[string]bool
	errs []error
}

// failed records the failure of a callback.
func (t *Tool) failed(callback string, err error) {
	err = fmt.Errorf("Options.Tool: callback %s: %w", callback, err)
	if t.failures.add(callback, err) {
		t.log.Error("a callback of the tool failed", "reason", err)
	}
}

// add records the first failure of each callback, and reports whether err is one.
func (f *failures) add(callback string, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[callback] {
		return false
	}
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	f.seen[callback] = true
	f.errs = append(f.errs, err)
	return true
}

// Failure returns the failures of the tool's callbacks.
func (t *Tool) Failure() error {
	t.failures.mu.Lock()
	defer t.failures.mu.Unlock()
	var errs []error
	for _, err := range t.failures.errs {
		errs = append(errs, fmt.Errorf("vkomp: %w", err))
	}
	return errors.Join(errs...)
}

// guardAll wraps the tool's callbacks so that they return whatever happens in them, except for
// runtime.Goexit in the callbacks for tasks: these are called many times for each task, on the
// task's own goroutine, which then ends.
func (t *Tool) guardAll() {
	c := &t.Callbacks
	c.DeviceInitialize = apart(t, "DeviceInitialize", c.DeviceInitialize)
	c.DeviceFinalize = apart(t, "DeviceFinalize", c.DeviceFinalize)
	c.DeviceLoad = apart(t, "DeviceLoad", c.DeviceLoad)
	c.DeviceUnload = apart(t, "DeviceUnload", c.DeviceUnload)
	c.ImplicitTask = apart(t, "ImplicitTask", c.ImplicitTask)
	c.TaskCreate = guard(t, "TaskCreate", c.TaskCreate)
	c.TaskSchedule = guard(t, "TaskSchedule", c.TaskSchedule)
	c.Dependences = guard(t, "Dependences", c.Dependences)
	c.TaskDependence = guard(t, "TaskDependence", c.TaskDependence)
	c.SyncRegion = guard(t, "SyncRegion", c.SyncRegion)
	c.SyncRegionWait = guard(t, "SyncRegionWait", c.SyncRegionWait)
	c.TargetEMI = guard(t, "TargetEMI", c.TargetEMI)
	c.TargetDataOpEMI = guard(t, "TargetDataOpEMI", c.TargetDataOpEMI)
	c.TargetMapEMI = guard(t, "TargetMapEMI", c.TargetMapEMI)
	c.TargetSubmitEMI = guard(t, "TargetSubmitEMI", c.TargetSubmitEMI)
	if control := c.ControlTool; control != nil {
		c.ControlTool = func(e ompt.ControlToolEvent) (result ompt.ControlToolResult) {
			result = ompt.ControlToolIgnored
			guard(t, "ControlTool", func(e ompt.ControlToolEvent) { result = control(e) })(e)
			return result
		}
	}
}

// guard returns a callback that calls f and records its failures.
func guard[E any](t *Tool, callback string, f func(E)) func(E) {
	if f == nil {
		return nil
	}
	return func(e E) {
		returned := false
		defer func() {
			if !returned {
				t.failed(callback, protect.NotReturned(recover()))
			}
		}()
		f(e)
		returned = true
	}
}

// apart is like guard, for a callback that is rarely called. The result always returns.
func apart[E any](t *Tool, callback string, f func(E)) func(E) {
	if f == nil {
		return nil
	}
	return func(e E) {
		if err := protect.Apart(func() error { f(e); return nil }); err != nil {
			t.failed(callback, err)
		}
	}
}
