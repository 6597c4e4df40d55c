package trace

import (
	"fmt"
	"sync"
	"time"

	"github.com/vkomp/vkomp/ompt"
)

// defaultLimit keeps the memory of a collector below some 200 MB.
const defaultLimit = 1 << 20

// Options are the options of a collector.
type Options struct {
	// Limit is the largest number of entries that are kept: tasks, target regions,
	// operations, waits, edges and device records together, each of at most 200 bytes.
	// Later ones are counted and dropped. 0 means 1<<20.
	Limit int
}

// Collector is a tool that records the events of one runtime. It is safe for concurrent
// use, and its trace may be read while the runtime works.
type Collector struct {
	limit int
	start time.Time
	// now is the time since start.
	now func() time.Duration

	mu sync.Mutex // guards the fields below and everything that they refer to
	// kept is the number of entries in the lists, dropped the number of those dropped.
	kept, dropped uint64
	devices       []device
	tasks         list[task]
	regions       list[region]
	ops           list[op]
	runs          list[run]
	waits         list[wait]
	records       list[record]
	edges         list[edge]
	loads         list[load]
	closings      list[closing]
	// open holds the operations that have begun and not ended.
	open map[ompt.ID]*op
	// problems describes failures of device traces.
	problems []string
}

// Times are relative to the collector's start; never stands for one that is not known yet.
const never time.Duration = -1

// none is the index for an entry that does not exist.
const none = int32(-1)

// device is a non-host device that was opened.
type device struct {
	num  int
	name string
	// handle traces the device while it is open and can be traced. recorded says that it
	// has been traced.
	handle   ompt.Device
	recorded bool
}

// task is a task of the runtime.
type task struct {
	index          int32
	parent         int32
	id             ompt.ID
	label          string
	flags          ompt.TaskFlag
	created, ended time.Duration
	status         ompt.TaskStatus // how it ended, 0 before its end
	// run is the current run of the body, waits are the waits in progress.
	run   *run
	waits []*wait
}

// region is a target region.
type region struct {
	index      int32
	task       int32
	id         ompt.ID
	kind       ompt.TargetKind
	device     int
	label      string
	begin, end time.Duration
}

// op is a data operation or, if its type is 0, the submission of a kernel.
type op struct {
	task, region int32
	id           ompt.ID
	dataOp       ompt.TargetDataOp
	src, dest    int
	bytes, teams uint64
	label        string
	begin, end   time.Duration
}

// run is the time from the begin to the end of a task's body; bodies of other tasks may
// run inside it.
type run struct {
	index, task, parent int32
	begin, end          time.Duration
}

// wait is a wait of a task, and the run of its body that it is in, if any.
type wait struct {
	task, run  int32
	kind       ompt.SyncRegion
	begin, end time.Duration
}

// record is a record of a device; its type is that of op.
type record struct {
	device, queue int
	region, op    ompt.ID
	dataOp        ompt.TargetDataOp
	src, dest     int
	bytes, teams  uint64
	label         string
	begin, end    time.Duration
}

// edge is a dependence of task to on task from.
type edge struct{ from, to int32 }

// load is a kernel that became a pipeline of a device.
type load struct {
	device int
	label  string
	bytes  uint64
	at     time.Duration
}

// closing is the end of a device and of all its memory.
type closing struct {
	device int
	at     time.Duration
}

// New returns a collector, whose time begins now.
func New(o Options) *Collector {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	start := time.Now()
	return &Collector{limit: o.Limit, start: start, now: func() time.Duration { return time.Since(start) }, open: map[ompt.ID]*op{}}
}

// Callbacks returns the tool, for the Options of one runtime. It uses the Data of tasks and
// target regions and reads HostOpID. Tools that are combined with it, see [ompt.Tee], must
// leave these alone; the other tools of this package do.
func (c *Collector) Callbacks() ompt.Callbacks {
	return ompt.Callbacks{
		DeviceInitialize: c.deviceInitialize,
		DeviceFinalize:   c.deviceFinalize,
		DeviceLoad:       c.deviceLoad,
		ImplicitTask:     c.implicitTask,
		TaskCreate:       c.taskCreate,
		TaskSchedule:     c.taskSchedule,
		TaskDependence:   c.taskDependence,
		SyncRegionWait:   c.syncRegionWait,
		TargetEMI:        c.target,
		TargetDataOpEMI:  c.targetDataOp,
		TargetSubmitEMI:  c.targetSubmit,
	}
}

// room reports whether another entry can be kept, and counts it.
func (c *Collector) room() bool {
	if c.kept >= uint64(c.limit) {
		c.dropped++
		return false
	}
	c.kept++
	return true
}

func (c *Collector) deviceInitialize(e ompt.DeviceInitializeEvent) {
	var err error
	if e.Device != nil {
		err = c.traceDevice(e.Device)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.device(e.DeviceNum)
	d.name = e.Type
	if err != nil {
		c.problem(e.DeviceNum, err)
		return
	}
	d.handle = e.Device
	d.recorded = d.recorded || e.Device != nil
}

// device returns the entry of a device, which it creates if there is none.
func (c *Collector) device(num int) *device {
	for i := range c.devices {
		if c.devices[i].num == num {
			return &c.devices[i]
		}
	}
	c.devices = append(c.devices, device{num: num})
	return &c.devices[len(c.devices)-1]
}

func (c *Collector) problem(num int, err error) {
	c.problems = append(c.problems, fmt.Sprintf("the trace of device %d: %v", num, err))
}

// deviceFinalize drops the handle of a device, whose trace has been stopped.
func (c *Collector) deviceFinalize(e ompt.DeviceFinalizeEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.device(e.DeviceNum).handle = nil
	if c.room() {
		*c.closings.add() = closing{e.DeviceNum, now}
	}
}

func (c *Collector) deviceLoad(e ompt.DeviceLoadEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room() {
		*c.loads.add() = load{e.DeviceNum, e.Filename, e.Bytes, now}
	}
}

func (c *Collector) implicitTask(e ompt.ImplicitTaskEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Endpoint == ompt.ScopeEnd {
		if t := taskOf(e.Task); t != nil {
			t.finish(now, ompt.TaskComplete)
		}
		return
	}
	c.newTask(e.Task, task{parent: none, label: "initial task", flags: e.Flags, created: now})
}

func (c *Collector) taskCreate(e ompt.TaskCreateEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Flags&ompt.TaskMerged != 0 {
		return // the task is part of another and has no further events
	}
	c.newTask(e.NewTask, task{parent: indexOf(taskOf(e.EncounteringTask)), id: e.TaskID, label: e.Label, flags: e.Flags, created: now})
}

func (c *Collector) newTask(data *ompt.Data, made task) {
	if data == nil || !c.room() {
		return
	}
	made.index, made.ended = int32(c.tasks.len), never
	t := c.tasks.add()
	*t = made
	attach(data).task = t
}

func (t *task) finish(now time.Duration, status ompt.TaskStatus) {
	if t.run != nil {
		t.run.end = now
		t.run = nil
	}
	t.ended, t.status = now, status
}

func (c *Collector) taskSchedule(e ompt.TaskScheduleEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	prior, next := taskOf(e.PriorTask), taskOf(e.NextTask)
	// outer is the run inside which the next body runs.
	outer := none
	if prior != nil {
		switch e.PriorStatus {
		case ompt.TaskSwitch, ompt.TaskYield:
			if prior.run != nil {
				outer = prior.run.index
			}
		case ompt.TaskDetach:
			// The body has ended; the task ends when its event is fulfilled.
			if prior.run != nil {
				prior.run.end, prior.run = now, nil
			}
		case ompt.TaskEarlyFulfill:
		default:
			prior.finish(now, e.PriorStatus)
		}
	}
	if next == nil || next.run != nil || next.status != 0 || next.flags&(ompt.TaskInitial|ompt.TaskImplicit) != 0 || !c.room() {
		return
	}
	next.run = c.runs.add()
	*next.run = run{index: int32(c.runs.len - 1), task: next.index, parent: outer, begin: now, end: never}
}

func (c *Collector) taskDependence(e ompt.TaskDependenceEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := indexOf(taskOf(e.Source)), indexOf(taskOf(e.Sink))
	if from != none && to != none && c.room() {
		*c.edges.add() = edge{from, to}
	}
}

func (c *Collector) syncRegionWait(e ompt.SyncRegionEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := taskOf(e.Task)
	switch {
	case t == nil:
	case e.Endpoint == ompt.ScopeEnd:
		// The initial task may wait on several goroutines. Which of several waits of one
		// kind has ended makes no difference to the picture.
		for i := len(t.waits) - 1; i >= 0; i-- {
			if t.waits[i].kind == e.Kind {
				t.waits[i].end = now
				t.waits = append(t.waits[:i], t.waits[i+1:]...)
				return
			}
		}
	case c.room():
		w := c.waits.add()
		*w = wait{task: t.index, run: none, kind: e.Kind, begin: now, end: never}
		if t.run != nil {
			w.run = t.run.index
		}
		if e.Endpoint == ompt.ScopeBeginEnd {
			w.end = now
			return
		}
		t.waits = append(t.waits, w)
	}
}

func (c *Collector) target(e ompt.TargetEMIEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Endpoint == ompt.ScopeEnd {
		if r := regionOf(e.Target); r != nil {
			r.end = now
		}
		return
	}
	if e.Target == nil || !c.room() {
		return
	}
	r := c.regions.add()
	*r = region{index: int32(c.regions.len - 1), task: indexOf(taskOf(e.TargetTask)), id: e.TargetID,
		kind: e.Kind, device: e.DeviceNum, label: e.Label, begin: now, end: never}
	attach(e.Target).region = r
	if e.Endpoint == ompt.ScopeBeginEnd {
		r.end = now
	}
}

func (c *Collector) targetDataOp(e ompt.TargetDataOpEMIEvent) {
	c.operation(e.Endpoint, e.HostOpID, e.Target, e.TargetTask, op{dataOp: e.Type,
		src: e.SrcDeviceNum, dest: e.DestDeviceNum, bytes: e.Bytes, label: e.Label})
}

func (c *Collector) targetSubmit(e ompt.TargetSubmitEMIEvent) {
	c.operation(e.Endpoint, e.HostOpID, e.Target, nil, op{src: ompt.NoDevice, dest: ompt.NoDevice,
		teams: e.RequestedNumTeams, label: e.Kernel})
}

func (c *Collector) operation(endpoint ompt.ScopeEndpoint, id *ompt.ID, target, targetTask *ompt.Data, made op) {
	now := c.now()
	if id == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if endpoint == ompt.ScopeEnd {
		if o := c.open[*id]; o != nil {
			o.end = now
			delete(c.open, *id)
		}
		return
	}
	if !c.room() {
		return
	}
	made.id, made.begin, made.end = *id, now, never
	made.region, made.task = none, indexOf(taskOf(targetTask))
	if r := regionOf(target); r != nil {
		made.region = r.index
		if made.task == none {
			made.task = r.task
		}
	}
	o := c.ops.add()
	*o = made
	if endpoint == ompt.ScopeBeginEnd {
		o.end = now
		return
	}
	c.open[*id] = o
}

// recordsAtOnce is the number of records in a buffer.
const recordsAtOnce = 1024

// traceDevice starts a trace of everything that the device does.
func (c *Collector) traceDevice(d ompt.Device) error {
	if result := d.SetTraceOMPT(true, 0); result < ompt.SetSometimes {
		return fmt.Errorf("its records cannot be had: %v", result)
	}
	request := func(int) []ompt.Record { return make([]ompt.Record, recordsAtOnce) }
	complete := func(num int, records []ompt.Record, _ bool) {
		// The device is queried without the lock, because its callbacks take the lock.
		done := make([]record, len(records))
		for i := range records {
			r := &records[i]
			done[i] = record{device: num, queue: r.Queue, region: r.TargetID, op: r.HostOpID, teams: r.GrantedNumTeams, label: r.Label,
				begin: d.TranslateTime(r.Time).Sub(c.start), end: d.TranslateTime(r.EndTime).Sub(c.start)}
			if r.Type == ompt.CallbackTargetDataOpEMI {
				done[i].dataOp, done[i].bytes, done[i].src, done[i].dest = r.DataOp.Type, r.DataOp.Bytes, r.DataOp.SrcDeviceNum, r.DataOp.DestDeviceNum
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range done {
			if c.room() {
				*c.records.add() = done[i]
			}
		}
	}
	return d.StartTrace(request, complete)
}

// Trace returns the trace so far. It first asks the traced devices for their records and
// waits for these. Whatever has not ended yet extends to now. A callback must not call it.
func (c *Collector) Trace() *Trace {
	c.mu.Lock()
	open := append([]device(nil), c.devices...)
	c.mu.Unlock()
	for _, d := range open {
		if d.handle == nil {
			continue
		}
		if err := d.handle.FlushTrace(); err != nil {
			c.mu.Lock()
			// A device that was closed in the meantime has been flushed.
			if c.device(d.num).handle == d.handle {
				c.problem(d.num, err)
			}
			c.mu.Unlock()
		}
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := history{
		start: c.start, now: now, dropped: c.dropped,
		devices: append([]device(nil), c.devices...), problems: append([]string(nil), c.problems...),
		tasks: c.tasks.all(), regions: c.regions.all(), ops: c.ops.all(), runs: c.runs.all(),
		waits: c.waits.all(), records: c.records.all(), edges: c.edges.all(), loads: c.loads.all(), closings: c.closings.all(),
	}
	return newTrace(heard)
}

// list is a list in several slices, so that its elements never move.
type list[T any] struct {
	chunks [][]T
	len    int
}

const chunkLength = 1024

func (l *list[T]) add() *T {
	if l.len%chunkLength == 0 {
		l.chunks = append(l.chunks, make([]T, 0, chunkLength))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = (*last)[:len(*last)+1]
	l.len++
	return &(*last)[len(*last)-1]
}

// all returns a copy of all elements.
func (l *list[T]) all() []T {
	whole := make([]T, 0, l.len)
	for _, c := range l.chunks {
		whole = append(whole, c...)
	}
	return whole
}
