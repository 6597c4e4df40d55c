package trace

import (
	"context"
	"runtime/pprof"
	"sync"

	"github.com/vkomp/vkomp/ompt"
)

// Labels returns a tool that labels goroutines for Go's CPU and goroutine profiles (package
// runtime/pprof). While a goroutine runs the body of a deferred host task or, on the host,
// the kernel of a deferred target task, its label "vkomp" is the task's label, or the
// kernel's name if the task has none. Goroutines started there inherit the label and keep
// it.
//
// Only deferred tasks are labelled: they run on goroutines of the runtime, which have no
// labels afterwards. An undeferred task runs on a goroutine of the program, whose labels a
// tool could not restore. Host work for a target task of a device is not labelled, because
// it begins and ends on different goroutines.
func Labels() ompt.Callbacks {
	l := &labeller{known: map[string]context.Context{}}
	return ompt.Callbacks{
		DeviceInitialize: l.devices.initialize,
		TaskCreate:       l.taskCreate,
		TaskSchedule:     l.taskSchedule,
		TargetEMI:        l.target,
	}
}

// labelKey is the key of the label.
const labelKey = "vkomp"

// mostLabels is how many labels are kept for reuse; a program may have one for each task.
const mostLabels = 1024

type labeller struct {
	devices deviceSet
	mu      sync.Mutex // guards known
	known   map[string]context.Context
}

func labelsOf(d *ompt.Data) context.Context {
	if s := stateOf(d); s != nil {
		return s.labels
	}
	return nil
}

// labels returns a context with the label of a task.
func (l *labeller) labels(label string) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, ok := l.known[label]
	if !ok {
		ctx = pprof.WithLabels(context.Background(), pprof.Labels(labelKey, label))
		if len(l.known) < mostLabels {
			l.known[label] = ctx
		}
	}
	return ctx
}

func (l *labeller) taskCreate(e ompt.TaskCreateEvent) {
	if e.NewTask != nil && e.Flags&(ompt.TaskUndeferred|ompt.TaskTarget|ompt.TaskTaskwait|ompt.TaskMerged) == 0 {
		stateFor(e.NewTask).labels = l.labels(e.Label)
	}
}

func (l *labeller) taskSchedule(e ompt.TaskScheduleEvent) {
	if e.NextTask != nil {
		// An undeferred task in a labelled body counts as part of that body.
		if ctx := labelsOf(e.NextTask); ctx != nil {
			pprof.SetGoroutineLabels(ctx)
		}
		return
	}
	if e.PriorStatus == ompt.TaskComplete || e.PriorStatus == ompt.TaskDetach {
		if labelsOf(e.PriorTask) != nil {
			pprof.SetGoroutineLabels(context.Background())
		}
	}
}

func (l *labeller) target(e ompt.TargetEMIEvent) {
	switch {
	case e.Kind != ompt.TargetNowait || l.devices.has(e.DeviceNum):
	case e.Endpoint == ompt.ScopeBegin:
		pprof.SetGoroutineLabels(l.labels(e.Label))
	case e.Endpoint == ompt.ScopeEnd:
		pprof.SetGoroutineLabels(context.Background())
	}
}
