package observe

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// maxListeners is the largest number of Listeners of a runtime.
const maxListeners = 2

// Notes holds what each listener has returned for a taskgroup, to find it again.
type Notes [maxListeners]any

// Origin describes the task region that encounters a construct.
type Origin struct {
	// Region is the observer of that region's task, nil for the initial task.
	// Taskgroup holds the notes of the innermost taskgroup there, or is nil.
	Region    construct.Observer
	Taskgroup *Notes
	Site
	// slot is the listener's index in Notes.
	slot int
}

// Site is the place of a construct in the program.
type Site struct {
	// Stack is nil if no listener wants it.
	Stack *Stack
	// Codeptr is the return address of the call in the program, or 0 if no listener wants it.
	Codeptr ompt.Codeptr
}

// Task returns the listener's own observer of the task that encounters the construct, nil for the
// initial task.
func (o *Origin) Task() construct.Observer { return partOf(o.Region, o.slot) }

// Group returns the listener's note of the innermost taskgroup, nil if there is none.
func (o *Origin) Group() any {
	if o.Taskgroup == nil {
		return nil
	}
	return o.Taskgroup[o.slot]
}

// Construct is a task-generating construct.
type Construct struct {
	Origin
	// Label is the task's label.
	Label string
	// Kind is the target region's kind in the form without nowait, or 0 for other tasks.
	Kind  ompt.TargetKind
	Flags ompt.TaskFlag
	// Device is the number of the device on which the task runs.
	Device int
	Form   Form
	// Depend has the depend items. Listeners must not keep the slice.
	Depend []tasks.Depend
	// Data describes what the task does to storage. It is only set for Listener.Generated, and
	// only if a listener wants it. It is nil for a task that does nothing.
	Data *Data
}

// Deferred reports whether the task is deferred. Otherwise the construct waits for it.
func (c *Construct) Deferred() bool { return c.Flags&ompt.TaskUndeferred == 0 }

// Form tells apart tasks whose Construct.Kind and Flags are the same.
type Form uint8

const (
	// Ordinary is the form of tasks that have no other.
	Ordinary Form = iota
	// Detachable is a task with an event.
	Detachable
	// Routine is the task of a memory routine.
	Routine
	// RectRoutine is the task of a memory routine that copies parts of arrays
	// (omp_target_memcpy_rect).
	RectRoutine
)

// Data describes what a construct does to storage according to its clauses. Listeners must not keep
// the slices.
type Data struct {
	// Arguments are the arguments of a kernel that refer to storage.
	Arguments []Argument
	// Enter are the maps that a construct enters beyond its end, Exit those that it exits.
	Enter, Exit []memory.Map
	// Updates are the motions of a target update construct.
	Updates []transfer.Request
	// Copy is the copy of a memory routine, or nil.
	Copy *Copy
	// Ends says that the construct is the end of a structured data region. NoGroup says that the
	// region's body was not a taskgroup.
	Ends, NoGroup bool
}

// ArgumentKind is the way in which a kernel accesses an argument.
type ArgumentKind uint8

const (
	// OnHost is host storage that the kernel accesses directly.
	OnHost ArgumentKind = iota
	// Mapped is a slice that the construct maps.
	Mapped
	// Implicit is a slice that is used where it is present, from its first element to
	// the end of the present storage.
	Implicit
	// ByPointer is device memory, given by a pointer.
	ByPointer
)

// Argument is a kernel argument that refers to storage.
type Argument struct {
	// Kind is the way in which the kernel accesses it.
	Kind ArgumentKind
	// Map is the item of the map clause. Its Section is also set for OnHost and Implicit.
	Map memory.Map
	// Pointer is the pointer of ByPointer, to Size bytes or, if ToEnd is set, to all bytes up to
	// the end of its storage.
	Pointer sched.Pointer
	Size    uint64
	ToEnd   bool
	// Reads and Writes say how the kernel accesses the storage.
	Reads, Writes bool
	Label         string
}

// Copy is the copy or the fill of a memory routine.
type Copy struct {
	// Rows are the rows that are copied, with offsets in bytes from Dst and Src.
	Rows memory.Rows
	// Dst is the destination, Src the source.
	Dst, Src Side
	// Fill says that there is no source.
	Fill bool
}

// Side is one side of a copy: memory of a device, or host storage if Host is not nil.
type Side struct {
	// Device is the number of the device, and Pointer points into its memory.
	Device  int
	Pointer sched.Pointer
	// Host is the start of the host storage.
	Host unsafe.Pointer
}

// Wait is a region in which a task waits for others: a taskwait, or a taskgroup. The origin has the
// notes of that taskgroup itself.
type Wait struct {
	Origin
	// Kind is ompt.SyncRegionTaskwait or ompt.SyncRegionTaskgroup.
	Kind ompt.SyncRegion
	// Dependent says that a taskwait has depend items. It waits for an empty task with these items,
	// whose construct is announced separately.
	Dependent bool
}

// Storage is a memory routine that generates no task: it allocates, frees, associates or
// disassociates memory of a device.
type Storage struct {
	Origin
	// Label names the routine; Device is the number of the device.
	Label  string
	Device int
	// Op is the operation. The address of an allocation is set after the routine has been run.
	Op ompt.DataOp
	// Pointer points to the memory. For an allocation on a Vulkan device it is set after the
	// routine has been run.
	Pointer sched.Pointer
	// Host is the host storage of an association.
	Host memory.Section
}
