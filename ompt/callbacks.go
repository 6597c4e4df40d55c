package ompt

import (
	"errors"
	"fmt"
)

// Callbacks are the callbacks that a tool registers with a runtime; any may be nil. They
// may be called concurrently, except that those of one task and its target region are
// called one after the other.
//
// A callback that panics or calls runtime.Goexit loses its event; the failure is logged,
// and the runtime's Close returns the first such failure of each callback. Goexit in a
// callback of a task, its target region or a wait ends the goroutine that the callback is
// called on, which in a construct is the program's, and fails the task if it has not
// completed.
//
// A callback may call methods of the runtime, such as Stats, that are not constructs and
// do not open or close anything.
//
// The callbacks of target regions come in pairs. The EMI forms (OpenMP 5.1) carry the
// tool's data and are called at both ends, the plain ones carry identifiers. At most one
// of a pair may be registered.
type Callbacks struct {
	// Codeptrs requests the Codeptr of events, the place of the construct in the
	// program. It costs microseconds for each construct.
	Codeptrs bool

	// DeviceInitialize is called each time a non-host device is opened, before
	// anything is offloaded to it. Constructs for that device wait until it returns; it
	// must not make such constructs itself.
	DeviceInitialize func(DeviceInitializeEvent)
	// DeviceFinalize is called for each such device after its last use, immediately
	// before it is closed.
	DeviceFinalize func(DeviceFinalizeEvent)
	DeviceLoad     func(DeviceLoadEvent)   // a kernel, or a variant of it, has become a pipeline of a device
	DeviceUnload   func(DeviceUnloadEvent) // that pipeline is destroyed

	// Events of tasks; see the documentation of each event's type.
	ImplicitTask   func(ImplicitTaskEvent)
	TaskCreate     func(TaskCreateEvent)
	TaskSchedule   func(TaskScheduleEvent)
	Dependences    func(DependencesEvent)
	TaskDependence func(TaskDependenceEvent)
	// SyncRegion is called at the beginning and the end of a taskwait or taskgroup,
	// SyncRegionWait at those of the waiting in it.
	SyncRegion     func(SyncRegionEvent)
	SyncRegionWait func(SyncRegionEvent)

	// ControlTool handles Runtime.ControlTool.
	ControlTool func(ControlToolEvent) ControlToolResult

	// The EMI forms of the events of target regions.
	TargetEMI       func(TargetEMIEvent)
	TargetDataOpEMI func(TargetDataOpEMIEvent)
	TargetMapEMI    func(TargetMapEMIEvent)
	TargetSubmitEMI func(TargetSubmitEMIEvent)

	// The plain forms of the same events.
	Target       func(TargetEvent)
	TargetDataOp func(TargetDataOpEvent)
	TargetMap    func(TargetMapEvent)
	TargetSubmit func(TargetSubmitEvent)
}

// ErrBothForms says that a tool registers both forms of a callback.
var ErrBothForms = errors.New("both forms of a callback are registered")

// Check returns an error that names the callbacks of which both forms are registered. The
// specification does not allow this.
func (c *Callbacks) Check() error {
	var errs []error
	for _, pair := range []struct {
		plain, emi bool
		of         Callback
	}{
		{c.Target != nil, c.TargetEMI != nil, CallbackTarget},
		{c.TargetDataOp != nil, c.TargetDataOpEMI != nil, CallbackTargetDataOp},
		{c.TargetMap != nil, c.TargetMapEMI != nil, CallbackTargetMap},
		{c.TargetSubmit != nil, c.TargetSubmitEMI != nil, CallbackTargetSubmit},
	} {
		if pair.plain && pair.emi {
			errs = append(errs, fmt.Errorf("%w: %v and %v_emi", ErrBothForms, pair.of, pair.of))
		}
	}
	return errors.Join(errs...)
}

// EMI returns callbacks that have only EMI forms. An EMI form that c lacks calls c's plain
// form, with the runtime's identifiers. c must pass Check.
func (c Callbacks) EMI() Callbacks {
	if plain := c.Target; plain != nil {
		c.Target, c.TargetEMI = nil, func(e TargetEMIEvent) {
			plain(TargetEvent{e.Kind, e.Endpoint, e.DeviceNum, e.Task, e.TargetID, e.Codeptr})
		}
	}
	if plain := c.TargetDataOp; plain != nil {
		c.TargetDataOp, c.TargetDataOpEMI = nil, func(e TargetDataOpEMIEvent) {
			if e.Endpoint == ScopeBeginEnd || (e.Endpoint == ScopeBegin) == e.Type.ends() {
				plain(TargetDataOpEvent{e.TargetID, *e.HostOpID, e.DataOp, e.Codeptr})
			}
		}
	}
	if plain := c.TargetMap; plain != nil {
		c.TargetMap, c.TargetMapEMI = nil, func(e TargetMapEMIEvent) {
			plain(TargetMapEvent{e.TargetID, e.Items, e.Codeptr})
		}
	}
	if plain := c.TargetSubmit; plain != nil {
		c.TargetSubmit, c.TargetSubmitEMI = nil, func(e TargetSubmitEMIEvent) {
			if e.Endpoint != ScopeEnd {
				plain(TargetSubmitEvent{e.TargetID, *e.HostOpID, e.RequestedNumTeams})
			}
		}
	}
	return c
}

// ends reports whether the operation ends the life of storage.
func (o TargetDataOp) ends() bool { return o == TargetDataDelete || o == TargetDataDeleteAsync }

// Tee returns callbacks that call those of every tool, in the order given. A callback that
// no tool has stays nil. If one tool has the plain form of a callback and another the EMI
// form, the result has the EMI form and calls both. The tools share the values that a tool
// may set, such as Data: each tool finds there what the last one has written.
//
// The result's ControlTool returns the first result that is not ControlToolIgnored.
func Tee(tools ...Callbacks) Callbacks {
	var plain, emi struct{ target, op, items, submit bool }
	for i := range tools {
		c := &tools[i]
		plain.target, emi.target = plain.target || c.Target != nil, emi.target || c.TargetEMI != nil
		plain.op, emi.op = plain.op || c.TargetDataOp != nil, emi.op || c.TargetDataOpEMI != nil
		plain.items, emi.items = plain.items || c.TargetMap != nil, emi.items || c.TargetMapEMI != nil
		plain.submit, emi.submit = plain.submit || c.TargetSubmit != nil, emi.submit || c.TargetSubmitEMI != nil
	}
	var all []Callbacks
	codeptrs := false
	for _, c := range tools {
		codeptrs = codeptrs || c.Codeptrs
		// A tool that has both forms keeps both, so that the runtime refuses them.
		if c.Check() == nil {
			converted := c.EMI()
			if plain.target && emi.target {
				c.Target, c.TargetEMI = nil, converted.TargetEMI
			}
			if plain.op && emi.op {
				c.TargetDataOp, c.TargetDataOpEMI = nil, converted.TargetDataOpEMI
			}
			if plain.items && emi.items {
				c.TargetMap, c.TargetMapEMI = nil, converted.TargetMapEMI
			}
			if plain.submit && emi.submit {
				c.TargetSubmit, c.TargetSubmitEMI = nil, converted.TargetSubmitEMI
			}
		}
		all = append(all, c)
	}
	return Callbacks{
		Codeptrs:         codeptrs,
		DeviceInitialize: tee(all, func(c *Callbacks) func(DeviceInitializeEvent) { return c.DeviceInitialize }),
		DeviceFinalize:   tee(all, func(c *Callbacks) func(DeviceFinalizeEvent) { return c.DeviceFinalize }),
		DeviceLoad:       tee(all, func(c *Callbacks) func(DeviceLoadEvent) { return c.DeviceLoad }),
		DeviceUnload:     tee(all, func(c *Callbacks) func(DeviceUnloadEvent) { return c.DeviceUnload }),
		ImplicitTask:     tee(all, func(c *Callbacks) func(ImplicitTaskEvent) { return c.ImplicitTask }),
		TaskCreate:       tee(all, func(c *Callbacks) func(TaskCreateEvent) { return c.TaskCreate }),
		TaskSchedule:     tee(all, func(c *Callbacks) func(TaskScheduleEvent) { return c.TaskSchedule }),
		Dependences:      tee(all, func(c *Callbacks) func(DependencesEvent) { return c.Dependences }),
		TaskDependence:   tee(all, func(c *Callbacks) func(TaskDependenceEvent) { return c.TaskDependence }),
		SyncRegion:       tee(all, func(c *Callbacks) func(SyncRegionEvent) { return c.SyncRegion }),
		SyncRegionWait:   tee(all, func(c *Callbacks) func(SyncRegionEvent) { return c.SyncRegionWait }),
		ControlTool:      teeControl(all),
		TargetEMI:        tee(all, func(c *Callbacks) func(TargetEMIEvent) { return c.TargetEMI }),
		TargetDataOpEMI:  tee(all, func(c *Callbacks) func(TargetDataOpEMIEvent) { return c.TargetDataOpEMI }),
		TargetMapEMI:     tee(all, func(c *Callbacks) func(TargetMapEMIEvent) { return c.TargetMapEMI }),
		TargetSubmitEMI:  tee(all, func(c *Callbacks) func(TargetSubmitEMIEvent) { return c.TargetSubmitEMI }),
		Target:           tee(all, func(c *Callbacks) func(TargetEvent) { return c.Target }),
		TargetDataOp:     tee(all, func(c *Callbacks) func(TargetDataOpEvent) { return c.TargetDataOp }),
		TargetMap:        tee(all, func(c *Callbacks) func(TargetMapEvent) { return c.TargetMap }),
		TargetSubmit:     tee(all, func(c *Callbacks) func(TargetSubmitEvent) { return c.TargetSubmit }),
	}
}

func tee[Event any](tools []Callbacks, callback func(*Callbacks) func(Event)) func(Event) {
	var all []func(Event)
	for i := range tools {
		if f := callback(&tools[i]); f != nil {
			all = append(all, f)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(e Event) {
		for _, f := range all {
			f(e)
		}
	}
}

func teeControl(tools []Callbacks) func(ControlToolEvent) ControlToolResult {
	var all []func(ControlToolEvent) ControlToolResult
	for i := range tools {
		if f := tools[i].ControlTool; f != nil {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(e ControlToolEvent) ControlToolResult {
		result := ControlToolIgnored
		for _, f := range all {
			if r := f(e); result == ControlToolIgnored {
				result = r
			}
		}
		return result
	}
}
