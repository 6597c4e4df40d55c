package trace

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vkomp/vkomp/ompt"
)

// program is a simulated program that reports to a tool. Times are in microseconds.
type program struct {
	ompt.Callbacks
	// moment is the current time.
	moment time.Duration
	// device traces device 0, nil if it cannot be traced.
	device  *tracedDevice
	initial ompt.Data
	ids     ompt.ID
}

const hostNum = 1

// newProgram opens device 0. The collector's clock is the program's.
func newProgram(c *Collector, device *tracedDevice) *program {
	p := &program{Callbacks: c.Callbacks(), device: device}
	c.now = func() time.Duration { return p.moment }
	p.ImplicitTask(ompt.ImplicitTaskEvent{Endpoint: ompt.ScopeBegin, Task: &p.initial, Flags: ompt.TaskInitial})
	e := ompt.DeviceInitializeEvent{DeviceNum: 0, Type: "test device"}
	if device != nil {
		device.start = c.start
		e.Device = device
	}
	p.DeviceInitialize(e)
	return p
}

func (p *program) at(us int) { p.moment = time.Duration(us) * time.Microsecond }

func (p *program) id() ompt.ID {
	p.ids++
	return p.ids
}

// madeTask is a task with its target region, if it has one.
type madeTask struct {
	p            *program
	data, target ompt.Data
	id, targetID ompt.ID
	label        string
	on           int
}

func (p *program) task(label string, flags ompt.TaskFlag, after ...*madeTask) *madeTask {
	return p.taskIn(&p.initial, label, flags, after...)
}

func (p *program) taskIn(parent *ompt.Data, label string, flags ompt.TaskFlag, after ...*madeTask) *madeTask {
	t := &madeTask{p: p, id: p.id(), label: label}
	p.TaskCreate(ompt.TaskCreateEvent{EncounteringTask: parent, NewTask: &t.data, Flags: flags, HasDependences: len(after) > 0, TaskID: t.id, Label: label})
	for _, source := range after {
		p.TaskDependence(ompt.TaskDependenceEvent{Source: &source.data, Sink: &t.data})
	}
	return t
}

// schedule switches a goroutine from one task to another; nil means no task.
func (p *program) schedule(prior *madeTask, status ompt.TaskStatus, next *madeTask) {
	e := ompt.TaskScheduleEvent{PriorStatus: status}
	if prior != nil {
		e.PriorTask = &prior.data
	}
	if next != nil {
		e.NextTask = &next.data
	}
	p.TaskSchedule(e)
}

func (t *madeTask) region(endpoint ompt.ScopeEndpoint, kind ompt.TargetKind, device int) {
	if endpoint == ompt.ScopeBegin {
		t.targetID, t.on = t.p.id(), device
	}
	t.p.TargetEMI(ompt.TargetEMIEvent{Kind: kind, Endpoint: endpoint, DeviceNum: t.on, Task: &t.p.initial, TargetTask: &t.data, Target: &t.target,
		TargetID: t.targetID, TaskID: t.id, Label: t.label})
}

// operate performs a data operation of a target region, or of none if t has no
// region. The operation ends at the time given; operate returns its number.
func (t *madeTask) operate(o ompt.DataOp, until int) ompt.ID {
	p := t.p
	id := p.id()
	e := ompt.TargetDataOpEMIEvent{Endpoint: ompt.ScopeBegin, TargetTask: &t.data, HostOpID: &id, DataOp: o, TargetID: t.targetID}
	if t.targetID != 0 {
		e.Target = &t.target
	}
	p.TargetDataOpEMI(e)
	p.at(until)
	e.Endpoint = ompt.ScopeEnd
	p.TargetDataOpEMI(e)
	return id
}

func (t *madeTask) submit(kernel string, until int) ompt.ID {
	id := t.p.id()
	e := ompt.TargetSubmitEMIEvent{Endpoint: ompt.ScopeBegin, Target: &t.target, HostOpID: &id, RequestedNumTeams: 4, TargetID: t.targetID, Kernel: kernel}
	t.p.TargetSubmitEMI(e)
	t.p.at(until)
	e.Endpoint = ompt.ScopeEnd
	t.p.TargetSubmitEMI(e)
	return id
}

func (p *program) wait(task *ompt.Data, endpoint ompt.ScopeEndpoint, kind ompt.SyncRegion) {
	p.SyncRegionWait(ompt.SyncRegionEvent{Kind: kind, Endpoint: endpoint, Task: task})
}

// did makes the device record an operation, if it is traced.
func (p *program) did(t *madeTask, queue, begin, end int, op ompt.ID, o ompt.DataOp, label string) {
	if p.device == nil {
		return
	}
	r := ompt.Record{Type: ompt.CallbackTargetSubmitEMI, Time: uint64(begin), EndTime: uint64(end), TargetID: t.targetID, HostOpID: op, Queue: queue, Label: label}
	if o.Type != 0 {
		r.Type, r.DataOp = ompt.CallbackTargetDataOpEMI, o
	}
	p.device.pending = append(p.device.pending, r)
}

func toDevice(bytes uint64) ompt.DataOp {
	return ompt.DataOp{Type: ompt.TargetDataTransferToDevice, SrcDeviceNum: hostNum, DestDeviceNum: 0, Bytes: bytes, Label: "x"}
}

func fromDevice(bytes uint64) ompt.DataOp {
	return ompt.DataOp{Type: ompt.TargetDataTransferFromDevice, SrcDeviceNum: 0, DestDeviceNum: hostNum, Bytes: bytes, Label: "x"}
}

func allocOp(bytes uint64) ompt.DataOp {
	return ompt.DataOp{Type: ompt.TargetDataAlloc, SrcDeviceNum: hostNum, DestDeviceNum: 0, Bytes: bytes, Label: "x"}
}

func deleteOp(bytes uint64) ompt.DataOp {
	return ompt.DataOp{Type: ompt.TargetDataDelete, SrcDeviceNum: ompt.NoDevice, DestDeviceNum: 0, Bytes: bytes, Label: "x"}
}

// tracedDevice is a device that supports tracing, with a clock of microseconds.
type tracedDevice struct {
	start              time.Time
	request            ompt.BufferRequest
	complete           ompt.BufferComplete
	pending            []ompt.Record
	startErr, flushErr error
	noRecords          bool
	// flushing, if not nil, is called by FlushTrace.
	flushing func()
}

var errTrace = errors.New("no trace to be had")

func (d *tracedDevice) SetTraceOMPT(bool, ompt.Callback) ompt.SetResult {
	if d.noRecords {
		return ompt.SetNever
	}
	return ompt.SetAlways
}

func (d *tracedDevice) StartTrace(request ompt.BufferRequest, complete ompt.BufferComplete) error {
	d.request, d.complete = request, complete
	return d.startErr
}

func (d *tracedDevice) PauseTrace(bool) error { return nil }

// FlushTrace delivers buffers in two calls each; only the second call gives the
// buffer to the tool.
func (d *tracedDevice) FlushTrace() error {
	if d.flushing != nil {
		d.flushing()
	}
	for len(d.pending) > 0 {
		buffer := d.request(0)
		n := copy(buffer, d.pending)
		d.pending = d.pending[n:]
		d.complete(0, buffer[:n/2], false)
		d.complete(0, buffer[n/2:n], true)
	}
	return d.flushErr
}

func (d *tracedDevice) StopTrace() error { return d.FlushTrace() }

func (d *tracedDevice) Time() (uint64, error) { return 0, nil }

func (d *tracedDevice) TranslateTime(ticks uint64) time.Time {
	return d.start.Add(time.Duration(ticks) * time.Microsecond)
}

// picture runs blur → edges → blend on the device, a second blend that depends on
// blur alone, and then save with a nested pack on the host.
func (p *program) picture() {
	nowait := ompt.TaskTarget
	p.at(10)
	blur := p.task("blur", nowait)
	blur.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
	blur.operate(allocOp(1000), 11)
	up := blur.operate(toDevice(1000), 13)
	kernel := blur.submit("blur.comp", 14)
	edges := p.task("edges", nowait, blur)
	edges.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
	edgesOp := edges.submit("edges.comp", 15)
	blend := p.task("blend", nowait, edges, blur)
	blend.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
	blendOp := blend.submit("blend.comp", 16)
	side := p.task("side", nowait, blur)
	side.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
	sideOp := side.submit("side.comp", 17)
	save := p.task("save", ompt.TaskExplicit, blend)
	p.at(18)
	p.wait(&p.initial, ompt.ScopeBegin, ompt.SyncRegionTaskwait)

	p.did(blur, 1, 12, 20, up, toDevice(1000), "x")
	p.did(blur, 0, 20, 30, kernel, ompt.DataOp{}, "blur.comp")
	p.did(edges, 0, 30, 45, edgesOp, ompt.DataOp{}, "edges.comp")
	p.did(side, 1, 31, 33, sideOp, ompt.DataOp{}, "side.comp")
	p.did(blend, 0, 50, 60, blendOp, ompt.DataOp{}, "blend.comp")
	p.at(31)
	blur.region(ompt.ScopeEnd, ompt.TargetNowait, 0)
	p.at(34)
	side.region(ompt.ScopeEnd, ompt.TargetNowait, 0)
	p.at(46)
	edges.region(ompt.ScopeEnd, ompt.TargetNowait, 0)
	p.at(61)
	down := blend.operate(fromDevice(500), 64)
	_ = down
	blend.operate(deleteOp(1000), 65)
	blend.region(ompt.ScopeEnd, ompt.TargetNowait, 0)
	for _, done := range []*madeTask{blur, side, edges, blend} {
		p.schedule(done, ompt.TaskComplete, nil)
	}
	p.at(70)
	p.schedule(nil, 0, save)
	p.at(72)
	pack := p.taskIn(&save.data, "pack", ompt.TaskExplicit)
	p.wait(&save.data, ompt.ScopeBegin, ompt.SyncRegionTaskwait)
	p.at(73)
	p.schedule(save, ompt.TaskSwitch, pack)
	p.at(77)
	p.schedule(pack, ompt.TaskComplete, save)
	p.at(78)
	p.wait(&save.data, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
	p.at(80)
	p.schedule(save, ompt.TaskComplete, nil)
	p.wait(&p.initial, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
}

// drawn lists the slices by track.
func drawn(t *Trace) string {
	var b strings.Builder
	us := func(d time.Duration) string { return fmt.Sprint(float64(d) / 1000) }
	for i, of := range t.tracks {
		fmt.Fprintf(&b, "%s/%s:", t.deviceName(of.process), of.name)
		for j := range t.slices {
			if s := &t.slices[j]; int(s.track) == i {
				fmt.Fprintf(&b, " %s[%s,%s)", s.label, us(s.begin), us(s.end))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
