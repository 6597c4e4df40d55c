package vktest

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/vkomp/vkomp/ompt"
)

// checkTools adds a ToolChecker to the tool of every runtime that a test opens.
var checkTools = os.Getenv("VKOMP_CHECK_TOOL") != ""

// ToolChecker is a tool that checks the order of events and their arguments (OpenMP 6.0 chapters
// 33 to 35, as far as the runtime has their events).
type ToolChecker struct {
	// Host returns the number of the initial device.
	Host func() int
	// Probe, if not nil, is called in each callback: calls that tools may make must not block.
	Probe func()

	mu      sync.Mutex
	wrong   []string
	tasks   map[*ompt.Data]*toolTask
	initial *ompt.Data
	regions map[ompt.ID]bool
	// open holds the tasks whose regions have begun and not ended.
	open    map[*ompt.Data]*toolTask
	ops     map[ompt.ID]bool
	devices map[int]*toolDevice
	// over says that the initial task has ended.
	over  bool
	syncs map[syncKey]int
	// Ops counts operations of all kinds, Tasks the tasks.
	Ops, Tasks int
}

type syncKey struct {
	task *ompt.Data
	kind ompt.SyncRegion
	wait bool
}

// toolDevice is the checker's state of an open device.
type toolDevice struct {
	modules map[uint64]bool
	// memory holds the size of each allocation by its address.
	memory map[uint64]uint64
}

// toolTask is the checker's state of a task.
type toolTask struct {
	create                ompt.TaskCreateEvent
	dependences, switched bool
	early, detached, over bool
	region                *ompt.TargetEMIEvent
	regionOver, mapped    bool
	phase                 int
	// open is the operation that has begun and not ended, id its number.
	open *ompt.DataOp
	id   ompt.ID
}

func (c *ToolChecker) failf(format string, args ...any) {
	if len(c.wrong) < 20 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// Wrong returns descriptions of what was wrong, and of what is missing once the runtime is closed.
func (c *ToolChecker) Wrong() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := slices.Clone(c.wrong)
	for _, t := range c.tasks {
		if !t.over {
			wrong = append(wrong, fmt.Sprintf("%v did not end: %+v", t, *t))
		}
	}
	for n := range c.devices {
		wrong = append(wrong, fmt.Sprintf("device %d was not finalized", n))
	}
	for k, open := range c.syncs {
		if open != 0 {
			wrong = append(wrong, fmt.Sprintf("%d %v regions (wait: %v) did not end", open, k.kind, k.wait))
		}
	}
	if !c.over && c.initial != nil { // a tool may be disabled
		wrong = append(wrong, "the initial task did not end")
	}
	return wrong
}

func (t *toolTask) String() string {
	return fmt.Sprintf("task %d %q", t.create.TaskID, t.create.Label)
}

// task returns the state of a task that an event names.
func (c *ToolChecker) task(event string, d *ompt.Data) *toolTask {
	if t := c.tasks[d]; t != nil {
		return t
	}
	c.failf("%s of a task that was not created", event)
	return &toolTask{}
}

func (c *ToolChecker) known(event string, d *ompt.Data) {
	if d != c.initial {
		c.task(event, d)
	}
}

// Callbacks registers a callback in its EMI form for everything that is checked.
func (c *ToolChecker) Callbacks() ompt.Callbacks {
	c.tasks, c.regions, c.ops = make(map[*ompt.Data]*toolTask), make(map[ompt.ID]bool), make(map[ompt.ID]bool)
	c.open = make(map[*ompt.Data]*toolTask)
	c.devices, c.syncs = make(map[int]*toolDevice), make(map[syncKey]int)
	return ompt.Callbacks{
		DeviceInitialize: checked(c, c.deviceInitialize),
		DeviceFinalize:   checked(c, c.deviceFinalize),
		DeviceLoad:       checked(c, c.deviceLoad),
		DeviceUnload:     checked(c, c.deviceUnload),
		ImplicitTask:     checked(c, c.implicitTask),
		TaskCreate:       checked(c, c.taskCreate),
		TaskSchedule:     checked(c, c.taskSchedule),
		Dependences:      checked(c, c.dependences),
		TaskDependence:   checked(c, c.taskDependence),
		SyncRegion:       checked(c, func(e ompt.SyncRegionEvent) { c.sync(e, false) }),
		SyncRegionWait:   checked(c, func(e ompt.SyncRegionEvent) { c.sync(e, true) }),
		TargetEMI:        checked(c, c.target),
		TargetMapEMI:     checked(c, c.targetMap),
		TargetDataOpEMI:  checked(c, c.dataOp),
		TargetSubmitEMI:  checked(c, c.submit),
	}
}

func checked[Event any](c *ToolChecker, check func(Event)) func(Event) {
	return func(e Event) {
		if c.Probe != nil {
			c.Probe()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		check(e)
	}
}

func (c *ToolChecker) deviceInitialize(e ompt.DeviceInitializeEvent) {
	if c.devices[e.DeviceNum] != nil || e.DeviceNum < 0 || e.DeviceNum >= c.Host() {
		c.failf("device %d initialized twice, or none such", e.DeviceNum)
	}
	if e.Type == "" || e.Documentation == "" {
		c.failf("device %d without type or documentation", e.DeviceNum)
	}
	c.devices[e.DeviceNum] = &toolDevice{make(map[uint64]bool), make(map[uint64]uint64)}
}

// device returns the state of an open device, or one for the initial device.
func (c *ToolChecker) device(event string, number int) *toolDevice {
	d := c.devices[number]
	if d == nil {
		if number != c.Host() {
			c.failf("%s on device %d, which is not initialized", event, number)
		}
		d = &toolDevice{make(map[uint64]bool), make(map[uint64]uint64)}
	}
	return d
}

func (c *ToolChecker) deviceFinalize(e ompt.DeviceFinalizeEvent) {
	if left := len(c.device("finalize", e.DeviceNum).modules); left > 0 {
		c.failf("device %d finalized with %d modules", e.DeviceNum, left)
	}
	delete(c.devices, e.DeviceNum)
}

func (c *ToolChecker) deviceLoad(e ompt.DeviceLoadEvent) {
	d := c.device("load", e.DeviceNum)
	if d.modules[e.ModuleID] || e.ModuleID == 0 || e.Filename == "" || e.Bytes == 0 || e.HostAddr == 0 {
		c.failf("load %+v", e)
	}
	d.modules[e.ModuleID] = true
}

func (c *ToolChecker) deviceUnload(e ompt.DeviceUnloadEvent) {
	d := c.device("unload", e.DeviceNum)
	if !d.modules[e.ModuleID] {
		c.failf("unload of module %d, which is not loaded", e.ModuleID)
	}
	delete(d.modules, e.ModuleID)
}

func (c *ToolChecker) implicitTask(e ompt.ImplicitTaskEvent) {
	switch {
	case e.Flags != ompt.TaskInitial, e.Task == nil:
		c.failf("implicit task %+v", e)
	case e.Endpoint == ompt.ScopeBegin && c.initial == nil:
		c.initial = e.Task
	case e.Endpoint == ompt.ScopeEnd && e.Task == c.initial && !c.over:
		c.over = true
	default:
		c.failf("implicit task %v again", e.Endpoint)
	}
}

func (c *ToolChecker) taskCreate(e ompt.TaskCreateEvent) {
	c.Tasks++
	// Data is reused when its task has ended.
	if old := c.tasks[e.NewTask]; e.NewTask == nil || old != nil && !old.over {
		c.failf("task %d %q created twice", e.TaskID, e.Label)
	}
	c.known("creation of a child", e.EncounteringTask)
	kinds := e.Flags & (ompt.TaskInitial | ompt.TaskImplicit | ompt.TaskExplicit | ompt.TaskTarget | ompt.TaskTaskwait)
	if kinds != ompt.TaskExplicit && kinds != ompt.TaskTarget && kinds != ompt.TaskTaskwait {
		c.failf("task %q has flags %v", e.Label, e.Flags)
	}
	if e.Label == "" || c.over {
		c.failf("task %q, initial task over: %v", e.Label, c.over)
	}
	c.tasks[e.NewTask] = &toolTask{create: e, over: e.Flags&ompt.TaskMerged != 0}
}

func (c *ToolChecker) dependences(e ompt.DependencesEvent) {
	t := c.task("dependences", e.Task)
	if t.dependences || t.switched || t.over || !t.create.HasDependences || len(e.Dependences) == 0 {
		c.failf("%v: dependences %+v", t, e.Dependences)
	}
	t.dependences = true
}

func (c *ToolChecker) taskDependence(e ompt.TaskDependenceEvent) {
	c.task("dependence", e.Source)
	sink := c.task("dependence", e.Sink)
	if e.Source == e.Sink || sink.switched || sink.over || !sink.create.HasDependences {
		c.failf("%v: late dependence, or on itself", sink)
	}
}

func (c *ToolChecker) taskSchedule(e ompt.TaskScheduleEvent) {
	if e.PriorStatus == ompt.TaskSwitch {
		t := c.task("switch", e.NextTask)
		if t.switched || t.over || t.create.HasDependences && !t.dependences || t.create.Flags&ompt.TaskTaskwait != 0 || e.PriorTask != t.around() {
			c.failf("%v: switch from %p", t, e.PriorTask)
		}
		t.switched = true
		return
	}
	t := c.task("schedule", e.PriorTask)
	right := !t.over && t.open == nil && (t.region == nil || t.regionOver)
	switch e.PriorStatus {
	case ompt.TaskComplete:
		right = right && t.switched && !t.detached && e.NextTask == t.around()
		t.over = true
	case ompt.TaskDetach:
		right = right && t.switched && !t.detached && !t.early && e.NextTask == t.around()
		t.detached = true
	case ompt.TaskLateFulfill:
		right = right && t.detached && e.NextTask == nil
		t.over = true
	case ompt.TaskEarlyFulfill:
		right = !t.over && !t.detached && !t.early && e.NextTask == nil
		t.early = true
	case ompt.TaskCancel:
		right = right && e.NextTask == nil
		t.over = true
	case ompt.TaskwaitComplete:
		right = right && !t.switched && t.create.Flags&ompt.TaskTaskwait != 0 && e.NextTask == nil
		t.over = true
	default:
		right = false
	}
	if !right {
		c.failf("%v: %v, next %p, of %+v", t, e.PriorStatus, e.NextTask, *t)
	}
}

// around returns the task that runs before and after t on its goroutine.
func (t *toolTask) around() *ompt.Data {
	if t.create.Flags&ompt.TaskUndeferred == 0 {
		return nil
	}
	return t.create.EncounteringTask
}

func (t *toolTask) deferred() bool { return t.create.Flags&ompt.TaskUndeferred == 0 }

// running reports whether the task has begun and not ended.
func (t *toolTask) running() bool { return t.switched && !t.over && !t.detached }

func (c *ToolChecker) target(e ompt.TargetEMIEvent) {
	t := c.task("target region", e.TargetTask)
	c.device("target region", e.DeviceNum)
	begin := e.Endpoint == ompt.ScopeBegin
	if !t.running() || t.create.Flags&ompt.TaskTarget == 0 || t.deferred() != (e.Kind >= ompt.TargetNowait) || e.Task != t.create.EncounteringTask ||
		e.Target == nil || e.TargetID == 0 || e.TaskID != t.create.TaskID || e.Label != t.create.Label {
		c.failf("%v: target region %+v", t, e)
	}
	if begin {
		if t.region != nil || c.regions[e.TargetID] {
			c.failf("%v: target region %d begins twice", t, e.TargetID)
		}
		t.region, c.regions[e.TargetID], c.open[e.Target] = &e, true, t
		return
	}
	was := ompt.TargetEMIEvent{}
	if t.region != nil {
		was = *t.region
	}
	if was.Endpoint = ompt.ScopeEnd; was != e || t.regionOver || t.open != nil {
		c.failf("%v: target region %+v ends as %+v", t, was, e)
	}
	t.regionOver = true
	delete(c.open, e.Target)
}

// inRegion returns the task of an open target region.
func (c *ToolChecker) inRegion(event string, target *ompt.Data, id ompt.ID) *toolTask {
	t := c.open[target]
	if t == nil {
		c.failf("%s in no region", event)
		return &toolTask{}
	}
	if t.region.TargetID != id {
		c.failf("%v: %s in region %d", t, event, id)
	}
	return t
}

func (c *ToolChecker) targetMap(e ompt.TargetMapEMIEvent) {
	t := c.inRegion("map", e.Target, e.TargetID)
	if t.mapped || t.phase > 0 || len(e.Items) == 0 {
		c.failf("%v: maps %+v", t, e.Items)
	}
	t.mapped = true
	for _, m := range e.Items {
		if m.HostAddr == 0 || m.Flags == 0 {
			c.failf("%v: map %+v", t, m)
		}
	}
}

// phases is the order of operations in a task.
var phases = map[ompt.TargetDataOp]int{
	ompt.TargetDataAlloc: 1, ompt.TargetDataTransferToDevice: 2, 0: 3, ompt.TargetDataTransferFromDevice: 4, ompt.TargetDataDelete: 5,
}

func (c *ToolChecker) dataOp(e ompt.TargetDataOpEMIEvent) {
	t := c.task("operation", e.TargetTask)
	region := t.region != nil
	if region != (e.Target != nil) || region && (e.Target != t.region.Target || e.TargetID != t.region.TargetID || t.regionOver) || !region && e.TargetID != 0 {
		c.failf("%v: operation %+v is not of its region", t, e)
	}
	async := e.Type >= ompt.TargetDataAllocAsync
	kind := e.Type
	if async {
		kind -= ompt.TargetDataAllocAsync - ompt.TargetDataAlloc
	}
	once := kind == ompt.TargetDataAssociate || kind == ompt.TargetDataDisassociate
	if async != t.deferred() || once != (e.Endpoint == ompt.ScopeBeginEnd) || e.Type == 0 {
		c.failf("%v: operation %+v", t, e)
	}
	for _, n := range [...]int{e.SrcDeviceNum, e.DestDeviceNum} {
		if n != ompt.NoDevice {
			c.device("operation", n)
		}
	}
	c.operation(t, kind, e.Endpoint, *e.HostOpID, e.DataOp)
	d := c.device("operation", e.DestDeviceNum)
	switch {
	case kind == ompt.TargetDataAlloc && (e.DestAddr == 0 || e.Bytes == 0):
		c.failf("%v: allocation %+v", t, e.DataOp)
	case kind == ompt.TargetDataAlloc && e.Endpoint == ompt.ScopeEnd:
		if old, there := d.memory[e.DestAddr]; there {
			c.failf("%v: %d bytes allocated at %#x, where %d are", t, e.Bytes, e.DestAddr, old)
		}
		d.memory[e.DestAddr] = e.Bytes
	case kind == ompt.TargetDataDelete && e.Endpoint == ompt.ScopeBegin:
		if there := d.memory[e.DestAddr]; there != e.Bytes && e.DestDeviceNum != c.Host() {
			c.failf("%v: %d bytes deleted at %#x, where %d are", t, e.Bytes, e.DestAddr, there)
		}
		delete(d.memory, e.DestAddr)
	}
}

func (c *ToolChecker) submit(e ompt.TargetSubmitEMIEvent) {
	t := c.inRegion("submit", e.Target, e.TargetID)
	if e.Kernel == "" || e.RequestedNumTeams == 0 || t.region != nil && t.region.Kind != ompt.Target && t.region.Kind != ompt.TargetNowait {
		c.failf("%v: submit %+v", t, e)
	}
	c.operation(t, 0, e.Endpoint, *e.HostOpID, ompt.DataOp{})
}

// operation checks a begin or an end of an operation of a task.
func (c *ToolChecker) operation(t *toolTask, kind ompt.TargetDataOp, end ompt.ScopeEndpoint, id ompt.ID, op ompt.DataOp) {
	if !t.running() {
		c.failf("%v: operation %v outside of the task's run", t, kind)
	}
	if end == ompt.ScopeEnd {
		was := ompt.DataOp{}
		if t.open != nil {
			was = *t.open
		}
		if t.open == nil || t.id != id || was != op {
			c.failf("%v: operation %d %+v ends as %d %+v", t, t.id, was, id, op)
		}
		t.open = nil
		return
	}
	c.Ops++
	if t.open != nil || c.ops[id] || id == 0 {
		c.failf("%v: operation %d begins in another, or again", t, id)
	}
	if p := phases[kind]; p > 0 {
		if p < t.phase {
			c.failf("%v: %v after an operation of phase %d", t, kind, t.phase)
		}
		t.phase = p
	}
	c.ops[id] = true
	if end == ompt.ScopeBegin {
		t.open, t.id = &op, id
	}
}

func (c *ToolChecker) sync(e ompt.SyncRegionEvent, wait bool) {
	c.known("synchronisation", e.Task)
	k := syncKey{e.Task, e.Kind, wait}
	switch e.Endpoint {
	case ompt.ScopeBegin:
		c.syncs[k]++
	case ompt.ScopeEnd:
		c.syncs[k]--
	}
	if outer := (syncKey{e.Task, e.Kind, false}); c.syncs[k] < 0 || c.syncs[syncKey{e.Task, e.Kind, true}] > c.syncs[outer] {
		c.failf("%v %v out of turn", e.Kind, e.Endpoint)
	}
}
