package trace

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/vkomp/vkomp/ompt"
)

// defaultLimit keeps the memory of a collector below some 100 MB.
const defaultLimit = 1 << 20

// Options are the options of a collector.
type Options struct {
	// Limit is the largest number of entries that are kept: tasks, target regions,
	// operations, waits, edges and device records together, each of at most 100 bytes.
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
	labels        labelTable
	tasks         list[packedTask]
	regions       list[packedRegion]
	ops           list[packedOp]
	runs          list[run]
	waits         list[wait]
	records       list[packedRecord]
	edges         list[edge]
	loads         list[load]
	closings      list[closing]
	// open has the operations that have begun and not ended, and waiting the waits, which are few.
	open    []openOp
	waiting []int32
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
	parent int32
	id     ompt.ID
	label  string
	flags  ompt.TaskFlag
	ended  time.Duration
	status ompt.TaskStatus // how it ended, 0 before its end
}

// region is a target region.
type region struct {
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

// openOp is an operation that has begun, by its number and its index.
type openOp struct {
	id ompt.ID
	op int32
}

// run is the time from the begin to the end of a task's body; bodies of other tasks may
// run inside it.
type run struct {
	task, parent int32
	begin, end   time.Duration
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
	return &Collector{limit: o.Limit, start: start, now: func() time.Duration { return time.Since(start) }}
}

// Callbacks returns the tool, for the Options of one runtime.
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

// traces reports whether a device is open and traced.
func (c *Collector) traces(num int) bool {
	for i := range c.devices {
		if c.devices[i].num == num {
			return c.devices[i].handle != nil
		}
	}
	return false
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
		if t := c.taskOf(e.Task); t != nil {
			c.finish(t, now, ompt.TaskComplete)
		}
		return
	}
	c.newTask(e.Task, "initial task", packedTask{parent: none, flags: e.Flags})
}

func (c *Collector) taskCreate(e ompt.TaskCreateEvent) {
	if e.Flags&ompt.TaskMerged != 0 {
		return // the task is part of another and has no further events
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newTask(e.NewTask, e.Label, packedTask{parent: indexOf(e.EncounteringTask), id: e.TaskID, flags: e.Flags})
}

// newTask keeps a task, unless the collector is full.
func (c *Collector) newTask(data *ompt.Data, label string, made packedTask) {
	if data == nil || !c.room() {
		return
	}
	made.label, made.ended, made.run = c.labels.of(label), never, none
	*c.tasks.add() = made
	attach(data, c.tasks.len-1, made.flags&ompt.TaskTarget != 0)
}

// taskOf returns the task with the data, nil if it is not kept.
func (c *Collector) taskOf(d *ompt.Data) *packedTask {
	if i := indexOf(d); i != none {
		return c.tasks.at(i)
	}
	return nil
}

func (c *Collector) finish(t *packedTask, now time.Duration, status ompt.TaskStatus) {
	c.endRun(t, now)
	t.ended, t.status = now, status
}

// endRun ends the current run of a task's body, if there is one.
func (c *Collector) endRun(t *packedTask, now time.Duration) {
	if t.run != none {
		c.runs.at(t.run).end = now
		t.run = none
	}
}

func (c *Collector) taskSchedule(e ompt.TaskScheduleEvent) {
	switch {
	case e.PriorTask == nil && marked(e.NextTask), e.NextTask == nil && marked(e.PriorTask) && e.PriorStatus == ompt.TaskComplete:
		return // the region tells when a target task runs
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	prior, next := c.taskOf(e.PriorTask), c.taskOf(e.NextTask)
	// outer is the run inside which the next body runs.
	outer := none
	if prior != nil {
		switch e.PriorStatus {
		case ompt.TaskSwitch, ompt.TaskYield:
			outer = prior.run
		case ompt.TaskDetach:
			// The body has ended; the task ends when its event is fulfilled.
			c.endRun(prior, c.now())
		case ompt.TaskEarlyFulfill:
		default:
			c.finish(prior, c.now(), e.PriorStatus)
		}
	}
	if next == nil || next.run != none || next.status != 0 || next.flags&(ompt.TaskInitial|ompt.TaskImplicit) != 0 || !c.room() {
		return
	}
	*c.runs.add() = run{task: indexOf(e.NextTask), parent: outer, begin: c.now(), end: never}
	next.run = int32(c.runs.len - 1)
}

func (c *Collector) taskDependence(e ompt.TaskDependenceEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := indexOf(e.Source), indexOf(e.Sink)
	if from != none && to != none && c.room() {
		*c.edges.add() = edge{from, to}
	}
}

func (c *Collector) syncRegionWait(e ompt.SyncRegionEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.taskOf(e.Task)
	switch {
	case t == nil:
	case e.Endpoint == ompt.ScopeEnd:
		// The initial task may wait on several goroutines. Which of several waits of one
		// kind has ended makes no difference to the picture.
		for i := len(c.waiting) - 1; i >= 0; i-- {
			if w := c.waits.at(c.waiting[i]); w.task == indexOf(e.Task) && w.kind == e.Kind {
				w.end = now
				c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
				return
			}
		}
	case c.room():
		w := c.waits.add()
		*w = wait{task: indexOf(e.Task), run: t.run, kind: e.Kind, begin: now, end: never}
		if e.Endpoint == ompt.ScopeBeginEnd {
			w.end = now
			return
		}
		c.waiting = append(c.waiting, int32(c.waits.len-1))
	}
}

func (c *Collector) target(e ompt.TargetEMIEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Endpoint == ompt.ScopeEnd {
		if i := indexOf(e.Target); i != none {
			c.regions.at(i).end = now
		}
		if marked(e.TargetTask) {
			t := c.taskOf(e.TargetTask)
			t.ended, t.status = now, ompt.TaskComplete
		}
		return
	}
	if e.Target == nil || !c.room() {
		return
	}
	r := c.regions.add()
	*r = packedRegion{task: indexOf(e.TargetTask), id: e.TargetID, kind: e.Kind, device: int32(e.DeviceNum), label: c.labels.of(e.Label), begin: now, end: never}
	attach(e.Target, c.regions.len-1, c.traces(e.DeviceNum))
	if e.Endpoint == ompt.ScopeBeginEnd {
		r.end = now
	}
}

func (c *Collector) targetDataOp(e ompt.TargetDataOpEMIEvent) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.operation(now, e.Endpoint, e.HostOpID, e.Target, e.TargetTask); o != nil {
		o.dataOp, o.src, o.dest, o.bytes, o.label = e.Type, int32(e.SrcDeviceNum), int32(e.DestDeviceNum), e.Bytes, c.labels.of(e.Label)
	}
}

func (c *Collector) targetSubmit(e ompt.TargetSubmitEMIEvent) {
	if marked(e.Target) {
		return // the device's records tell of the kernel
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.operation(now, e.Endpoint, e.HostOpID, e.Target, nil); o != nil {
		o.src, o.dest, o.teams, o.label = ompt.NoDevice, ompt.NoDevice, e.RequestedNumTeams, c.labels.of(e.Kernel)
	}
}

// operation notes the begin or the end of an operation. At a begin it returns the entry, of which the
// caller sets the rest, unless it is not kept.
func (c *Collector) operation(now time.Duration, endpoint ompt.ScopeEndpoint, id *ompt.ID, target, targetTask *ompt.Data) *packedOp {
	if id == nil {
		return nil
	}
	if endpoint == ompt.ScopeEnd {
		for i := len(c.open) - 1; i >= 0; i-- {
			if c.open[i].id == *id {
				c.ops.at(c.open[i].op).end = now
				c.open[i] = c.open[len(c.open)-1]
				c.open = c.open[:len(c.open)-1]
				break
			}
		}
		return nil
	}
	if !c.room() {
		return nil
	}
	o := c.ops.add()
	*o = packedOp{id: *id, begin: now, end: never, region: indexOf(target), task: indexOf(targetTask)}
	if o.region != none && o.task == none {
		o.task = c.regions.at(o.region).task
	}
	if endpoint == ompt.ScopeBeginEnd {
		o.end = now
	} else {
		c.open = append(c.open, openOp{*id, int32(c.ops.len - 1)})
	}
	return o
}

// recordsAtOnce is the number of records in a buffer.
const recordsAtOnce = 256

// traceDevice starts a trace of everything that the device does.
func (c *Collector) traceDevice(d ompt.Device) error {
	if result := d.SetTraceOMPT(true, 0); result < ompt.SetSometimes {
		return fmt.Errorf("its records cannot be had: %v", result)
	}
	buffer := make([]ompt.Record, recordsAtOnce)
	request := func(int) []ompt.Record { return buffer }
	complete := func(num int, records []ompt.Record, _ bool) {
		if len(records) == 0 {
			return
		}
		// The device is queried without the lock, because its callbacks take the lock.
		at := c.translation(d, records)
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range records {
			if !c.room() {
				continue
			}
			r, p := &records[i], c.records.add()
			*p = packedRecord{
				device: int32(num), queue: int32(r.Queue), region: r.TargetID, op: r.HostOpID, teams: r.GrantedNumTeams, label: c.labels.of(r.Label),
				begin: at.time(r.Time), end: at.time(r.EndTime),
			}
			if r.Type == ompt.CallbackTargetDataOpEMI {
				p.dataOp, p.bytes, p.src, p.dest = r.DataOp.Type, r.DataOp.Bytes, int32(r.DataOp.SrcDeviceNum), int32(r.DataOp.DestDeviceNum)
			}
		}
	}
	return d.StartTrace(request, complete)
}

// translation translates times of some records, which are close to each other, from ticks of their device.
type translation struct {
	ticks uint64
	at    time.Duration
	// period is the length of a tick in nanoseconds.
	period float64
}

// translation returns the translation for records of a device. Between the first and the last of their
// times the device's clock is taken to run evenly, so that only these two are translated by the device.
func (c *Collector) translation(d ompt.Device, records []ompt.Record) translation {
	first, last := records[0].Time, records[0].Time
	for i := range records {
		r := &records[i]
		first, last = min(first, r.Time, r.EndTime), max(last, r.Time, r.EndTime)
	}
	t := translation{ticks: first, at: d.TranslateTime(first).Sub(c.start)}
	if last > first {
		t.period = float64(d.TranslateTime(last).Sub(c.start)-t.at) / float64(last-first)
	}
	return t
}

func (t *translation) time(ticks uint64) time.Duration {
	return t.at + time.Duration(math.Round(float64(ticks-t.ticks)*t.period))
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
	return newTrace(c.history(now))
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

// at returns an element.
func (l *list[T]) at(i int32) *T { return &l.chunks[i/chunkLength][i%chunkLength] }

// all returns a copy of all elements.
func (l *list[T]) all() []T {
	whole := make([]T, 0, l.len)
	for _, c := range l.chunks {
		whole = append(whole, c...)
	}
	return whole
}
