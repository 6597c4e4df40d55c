package tool

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/protect"
)

// failures are those of a tool's callbacks: of each callback the first.
type failures struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	seen map[string]bool
	errs []error
}

// failed notes what a callback failed with.
func (t *Tool) failed(callback string, err error) {
	err = fmt.Errorf("Options.Tool: callback %s: %w", callback, err)
	if t.failures.add(callback, err) {
		t.log.Error("a callback of the tool failed", "reason", err)
	}
}

// add keeps the first failure of each callback, and reports whether this is one.
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

// Failure returns what the tool's callbacks failed with.
func (t *Tool) Failure() error {
	t.failures.mu.Lock()
	defer t.failures.mu.Unlock()
	var errs []error
	for _, err := range t.failures.errs {
		errs = append(errs, fmt.Errorf("vkomp: %w", err))
	}
	return errors.Join(errs...)
}

// guardAll has the tool's callbacks return whatever happens in them, but for
// runtime.Goexit in those of tasks: these are called on the goroutine that the task is on,
// many times a task, and that goroutine ends then.
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

// guard returns a callback that notes how f fails.
func guard[E any](t *Tool, callback string, f func(E)) func(E) {
	if f == nil {
		return nil
	}
	return func(e E) {
		returned := false
		defer func() {
			if !returned {
				t.failed(callback, protect.Left(recover()))
			}
		}()
		f(e)
		returned = true
	}
}

// apart is guard for a callback that is rarely called: it always returns.
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
