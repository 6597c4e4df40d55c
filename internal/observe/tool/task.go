package tool

import (
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// task observes a task for a tool. The observer of a target task is used again after the
// task is complete.
type task struct {
	described
	// refs counts the users of the task: the runtime, until the task has left the task graph, and
	// tasks that depend on it, until the tool has been told so.
	refs int32
	// told says whether the tool has been told that the task exists, if it wants to know of
	// dependences.
	told uint32
	// behind is set while follows is not empty. It has the tasks on which this one depends
	// without the tool having been told. following guards both.
	behind    atomic.Bool
	following lockrank.Mutex[lockrank.ToolFollowing]
	follows   []*task
	// taken counts the elements of follows that have been removed.
	taken int
	// items is working memory for the dependences passed to the tool.
	items []ompt.Dependence
	// undecided is the part of fate that the tool has not been told. A goroutine that finds
	// telling unset tells it. deciding guards all three.
	deciding  lockrank.Mutex[lockrank.Leaf]
	telling   bool
	undecided []ompt.TaskScheduleEvent
}

// described has the properties of a task.
type described struct {
	tool *Tool
	// data is the tool's data of the task, region that of its target region, and encountering
	// that of the task that generates it.
	data, region ompt.Data
	encountering *ompt.Data
	// kind is the target region's kind, 0 for none.
	kind   ompt.TargetKind
	flags  ompt.TaskFlag
	device int
	label  string
	// codeptr is 0 unless the tool wants it.
	codeptr      ompt.Codeptr
	id, targetID ompt.ID
	begun        bool
	form         observe.Form
	// fate is the state of the body and the event of a detachable task.
	fate uint32
}

// These are the values of task.told.
const (
	toldNot uint32 = iota
	toldYes
	// toldAwaited says that a goroutine waits for the tool to be told.
	toldAwaited
)

const (
	fateEnded uint32 = 1 << iota
	fateFulfilled
	// fateOver says that the task is complete whatever happens to the event.
	fateOver
)

// block is an array of tasks that are allocated together.
type block struct {
	made [16]task
	used int
}

// newTask returns the observer of a construct's task, or nil if the tool has no callback for tasks.
func (t *Tool) newTask(c *observe.Construct) *task {
	if !t.tasks {
		return nil
	}
	o, _ := t.spare.Get().(*task)
	if o == nil {
		o = t.freshTask()
	}
	o.refs = 1
	o.tool, o.encountering = t, t.of(&c.Origin)
	kind := c.Kind
	if kind != 0 && c.Deferred() {
		kind += ompt.TargetNowait - ompt.Target
	}
	o.kind, o.flags, o.device, o.label = kind, c.Flags, c.Device, c.Label
	o.form = c.Form
	o.codeptr = c.Codeptr
	return o
}

// freshTask returns a task that has never been used.
func (t *Tool) freshTask() *task {
	b, _ := t.blocks.Get().(*block)
	if b == nil {
		b = new(block)
	}
	o := &b.made[b.used]
	if b.used++; b.used < len(b.made) {
		t.blocks.Put(b)
	}
	return o
}

// Release implements construct.Observer. The task has begun or was dropped, so follows is
// empty.
func (o *task) Release() {
	switch {
	case o.flags&ompt.TaskTarget == 0:
		return // the children of a host task refer to it too
	case atomic.LoadInt32(&o.refs) > 1 && atomic.AddInt32(&o.refs, -1) > 0:
		return
	}
	spare := &o.tool.spare
	o.described, o.told = described{}, toldNot
	if cap(o.items) > maxKept {
		o.items = nil
	}
	spare.Put(o)
}

// Interest implements construct.Observer.
func (o *task) Interest() (run, operations bool) {
	return o.tool.runs, o.tool.operations
}

func (o *task) deferred() bool { return o.flags&ompt.TaskUndeferred == 0 }

// Created implements construct.Observer.
func (o *task) Created(n *tasks.Node, depend []tasks.Depend) {
	o.id = ompt.ID(n.ID())
	o.create(depend)
}

// create tells the tool that the task was created.
func (o *task) create(depend []tasks.Depend) {
	t := o.tool
	if t.TaskDependence != nil {
		// Deferred, because the callbacks before it may end the goroutine.
		defer o.created()
	}
	if t.TaskCreate != nil {
		t.TaskCreate(ompt.TaskCreateEvent{
			EncounteringTask: o.encountering, NewTask: &o.data, Flags: o.flags, HasDependences: len(depend) > 0,
			Codeptr: o.codeptr, TaskID: o.id, Label: o.label,
		})
	}
	if t.Dependences != nil && len(depend) > 0 {
		o.tellDepend(depend)
	}
}

// created wakes the goroutines that wait until the tool has been told of the task, and tells the
// tool the task's dependences.
func (o *task) created() {
	t := o.tool
	if atomic.SwapUint32(&o.told, toldYes) == toldAwaited {
		t.telling.Lock()
		t.toldOf.Broadcast()
		t.telling.Unlock()
	}
	o.tellFollows()
}

// awaitTold waits until the tool has been told of the task.
func (o *task) awaitTold() {
	if atomic.LoadUint32(&o.told) == toldYes {
		return
	}
	t := o.tool
	t.telling.Lock()
	defer t.telling.Unlock()
	for atomic.LoadUint32(&o.told) == toldAwaited || atomic.CompareAndSwapUint32(&o.told, toldNot, toldAwaited) {
		t.toldOf.Wait()
	}
}

// tellDepend tells the tool the items of the depend clauses.
func (o *task) tellDepend(depend []tasks.Depend) {
	o.items = o.items[:0]
	for i := range depend {
		d := &depend[i]
		o.items = append(o.items, ompt.Dependence{Variable: uintptr(d.Ptr), Size: uint64(d.Size), Type: dependenceTypes[d.Kind]})
	}
	o.tool.Dependences(ompt.DependencesEvent{Task: &o.data, Dependences: o.items})
}

var dependenceTypes = [...]ompt.DependenceType{
	tasks.DependIn: ompt.DependenceIn, tasks.DependOut: ompt.DependenceOut, tasks.DependInOut: ompt.DependenceInOut,
	tasks.DependMutexInOutSet: ompt.DependenceMutexInOutSet, tasks.DependInOutSet: ompt.DependenceInOutSet,
	tasks.DependOutAllMemory: ompt.DependenceOutAllMemory, tasks.DependInOutAllMemory: ompt.DependenceInOutAllMemory,
}

// Follows implements tasks.Witness.
func (o *task) Follows(of tasks.Witness) {
	if o.tool.TaskDependence == nil {
		return
	}
	o.following.Lock()
	defer o.following.Unlock()
	source := of.(*task)
	atomic.AddInt32(&source.refs, 1)
	o.follows = append(o.follows, source)
	o.behind.Store(true)
}

// tellFollows tells the tool the dependences of which it has not been told.
func (o *task) tellFollows() {
	for source := o.nextFollow(); source != nil; source = o.nextFollow() {
		source.awaitTold()
		o.tool.TaskDependence(ompt.TaskDependenceEvent{Source: &source.data, Sink: &o.data})
		source.Release()
	}
}

// Begin implements construct.Observer.
func (o *task) Begin() {
	o.begun = true
	o.tellFollows()
	if o.flags&ompt.TaskTaskwait == 0 {
		o.schedule(o.other(), ompt.TaskSwitch, &o.data)
	}
	if o.kind != 0 {
		o.targetID = ompt.ID(o.tool.regions.Add(1))
		o.target(ompt.ScopeBegin)
	}
}

// other returns the data of the task that the goroutine runs before and after this one, or nil.
func (o *task) other() *ompt.Data {
	if o.deferred() {
		return nil
	}
	return o.encountering
}

func (o *task) schedule(prior *ompt.Data, status ompt.TaskStatus, next *ompt.Data) {
	if o.tool.TaskSchedule != nil {
		o.tool.TaskSchedule(ompt.TaskScheduleEvent{PriorTask: prior, PriorStatus: status, NextTask: next})
	}
}

func (o *task) target(end ompt.ScopeEndpoint) {
	if o.tool.TargetEMI != nil {
		o.tool.TargetEMI(ompt.TargetEMIEvent{
			Kind: o.kind, Endpoint: end, DeviceNum: o.device, Task: o.encountering, TargetTask: &o.data, Target: &o.region,
			Codeptr: o.codeptr, TargetID: o.targetID, TaskID: o.id, Label: o.label,
		})
	}
}

// Map implements construct.Observer.
func (o *task) Map(items []ompt.MapItem) {
	if len(items) > 0 && o.kind != 0 && o.tool.TargetMapEMI != nil {
		o.tool.TargetMapEMI(ompt.TargetMapEMIEvent{Target: &o.region, Items: items, Codeptr: o.codeptr, TargetID: o.targetID})
	}
}

// Op implements construct.Observer.
func (o *task) Op(end ompt.ScopeEndpoint, op *construct.Op) {
	t := o.tool
	if end != ompt.ScopeEnd {
		op.ID, op.TargetID = ompt.ID(t.ops.Add(1)), o.targetID
		op.Type = o.opType(op.Type)
	}
	region := &o.region
	if o.kind == 0 {
		region = nil
	}
	switch {
	case op.Type == 0 && t.TargetSubmitEMI != nil:
		t.TargetSubmitEMI(ompt.TargetSubmitEMIEvent{
			Endpoint: end, Target: region, HostOpID: &op.ID, RequestedNumTeams: op.Teams, TargetID: op.TargetID, Kernel: op.Kernel,
		})
	case op.Type != 0 && t.TargetDataOpEMI != nil:
		t.TargetDataOpEMI(ompt.TargetDataOpEMIEvent{
			Endpoint: end, TargetTask: &o.data, Target: region, HostOpID: &op.ID, DataOp: op.DataOp, Codeptr: o.codeptr, TargetID: op.TargetID,
		})
	}
}

// opType returns the type of an operation of the task. Transfers of memory routines have the types
// that OpenMP 6.0 defines for them, and operations of deferred tasks are asynchronous.
func (o *task) opType(kind ompt.TargetDataOp) ompt.TargetDataOp {
	switch kind {
	case ompt.TargetDataTransferToDevice, ompt.TargetDataTransferFromDevice, ompt.TargetDataTransfer:
		switch o.form {
		case observe.RectRoutine:
			kind = ompt.TargetDataTransferRect
		case observe.Routine:
			kind = ompt.TargetDataTransfer
		}
	case 0, ompt.TargetDataAssociate, ompt.TargetDataDisassociate:
		return kind
	}
	if o.deferred() {
		kind += ompt.TargetDataAllocAsync - ompt.TargetDataAlloc
	}
	return kind
}

// End implements construct.Observer.
func (o *task) End(err error) {
	if o.kind != 0 {
		o.target(ompt.ScopeEnd)
	}
	switch {
	case o.flags&ompt.TaskTaskwait != 0:
		o.schedule(&o.data, ompt.TaskwaitComplete, nil)
	case o.form == observe.Detachable:
		o.decide(func() (ompt.TaskStatus, *ompt.Data) {
			before := o.fate
			o.fate |= fateEnded
			switch {
			case err != nil:
				o.fate |= fateOver
			case before&fateFulfilled == 0:
				return ompt.TaskDetach, o.other()
			}
			return ompt.TaskComplete, o.other()
		})
	default:
		o.schedule(&o.data, ompt.TaskComplete, o.other())
	}
}

// nextFollow removes and returns the oldest element of follows, or nil if there is none.
func (o *task) nextFollow() *task {
	if !o.behind.Load() {
		return nil
	}
	o.following.Lock()
	defer o.following.Unlock()
	source := o.follows[o.taken]
	o.follows[o.taken] = nil
	o.taken++
	if o.taken == len(o.follows) {
		o.follows, o.taken = o.follows[:0], 0
		if cap(o.follows) > maxKept {
			o.follows = nil
		}
		o.behind.Store(false)
	}
	return source
}

// maxKept is the number of dependences for which a recycled task keeps memory.
const maxKept = 64

// Dropped implements tasks.Witness.
func (o *task) Dropped() {
	o.tellFollows()
	if o.begun && o.kind != 0 {
		o.target(ompt.ScopeEnd)
	}
	o.decide(func() (ompt.TaskStatus, *ompt.Data) {
		o.fate |= fateOver
		return ompt.TaskCancel, nil
	})
}

// Fulfilled implements construct.Detached.
func (o *task) Fulfilled() {
	o.decide(func() (ompt.TaskStatus, *ompt.Data) {
		before := o.fate
		o.fate |= fateFulfilled
		switch {
		case before&(fateFulfilled|fateOver) != 0:
			return 0, nil
		case before&fateEnded != 0:
			return ompt.TaskLateFulfill, nil
		}
		return ompt.TaskEarlyFulfill, nil
	})
}

// decide tells the tool the status that what returns, if it returns one. Statuses are told in the
// order in which the body and the event reached them, without a lock held, because a callback may
// fulfill the event.
func (o *task) decide(what func() (ompt.TaskStatus, *ompt.Data)) {
	o.deciding.Lock()
	defer o.deciding.Unlock()
	if status, next := what(); status != 0 {
		o.undecided = append(o.undecided, ompt.TaskScheduleEvent{PriorTask: &o.data, PriorStatus: status, NextTask: next})
	}
	if o.telling {
		return
	}
	o.telling = true
	// Deferred, because a callback may end the goroutine.
	defer func() { o.telling = false }()
	for len(o.undecided) > 0 {
		e := o.undecided[0]
		o.undecided = o.undecided[1:]
		func() {
			o.deciding.Unlock()
			defer o.deciding.Lock()
			o.schedule(e.PriorTask, e.PriorStatus, e.NextTask)
		}()
	}
}
