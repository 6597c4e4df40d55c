package observe

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// maxListeners is how many listeners a Stream can have.
const maxListeners = 2

// Notes are the listeners' records of a taskgroup, one for each.
type Notes [maxListeners]any

// Origin says where an event comes from.
type Origin struct {
	// Region is the observer of the task that meets the construct, nil for the initial task.
	// Taskgroup are the notes of the innermost taskgroup there, or nil.
	Region    construct.Observer
	Taskgroup *Notes
	Site
	// slot is the listener's place among the notes.
	slot int
}

// Site is where in the program a construct is.
type Site struct {
	// Stack is nil if no listener asks for it.
	Stack *Stack
	// Codeptr is the return address of the call in the program, 0 if no listener asks for it.
	Codeptr ompt.Codeptr
}

// Task returns the listener's own observer of the task that meets the construct, nil for the
// initial task.
func (o *Origin) Task() construct.Observer { return partOf(o.Region, o.slot) }

// Group returns the listener's record of the innermost taskgroup, nil if there is none.
func (o *Origin) Group() any {
	if o.Taskgroup == nil {
		return nil
	}
	return o.Taskgroup[o.slot]
}

// Construct is a construct that generates a task.
type Construct struct {
	Origin
	// Label is the task's label.
	Label string
	// Kind is that of the target region, in the form that waits; 0 if there is none.
	Kind  ompt.TargetKind
	Flags ompt.TaskFlag
	// Device is the number of the device that the task is for.
	Device int
	Form   Form
	// Depend are the items of the depend clauses. Listeners do not keep them.
	Depend []tasks.Depend
	// Data is what the task does to storage. It is there for Listener.Generated, if a
	// listener asks for it; nil for a task that does nothing.
	Data *Data
}

// Deferred reports whether the task is deferred: otherwise the construct waits for it.
func (c *Construct) Deferred() bool { return c.Flags&ompt.TaskUndeferred == 0 }

// Form says what there is about a task that Construct.Kind and Flags do not say.
type Form uint8

const (
	// Plain: nothing.
	Plain Form = iota
	// Detachable: the task has an event.
	Detachable
	// Routine: it is a memory routine's.
	Routine
	// RectRoutine: it is that of a memory routine that copies parts of arrays.
	RectRoutine
)

// Data is what a construct does to storage, as its clauses say. Listeners do not keep the
// slices.
type Data struct {
	// Arguments are those of a kernel, but for values.
	Arguments []Argument
	// Enter are the maps of a construct whose effect lasts, Exit those that it ends.
	Enter, Exit []memory.Map
	// Updates are the motions of a target update.
	Updates []sched.Transfer
	// Copy is that of a memory routine, or nil.
	Copy *Copy
	// Ends: the construct is the end of a structured data region, whose body was no
	// taskgroup if NoGroup.
	Ends, NoGroup bool
}

// ArgumentKind says how a kernel gets at an argument.
type ArgumentKind uint8

const (
	// OnHost is host storage, which the kernel uses itself.
	OnHost ArgumentKind = iota
	// Mapped is a slice that the construct maps.
	Mapped
	// Implicit is a slice that is used where it is present, from its first element to
	// the end of the storage that it is present in.
	Implicit
	// ByPointer is memory of the device.
	ByPointer
)

// Argument is storage that a kernel is given.
type Argument struct {
	// Kind says how the kernel gets at it.
	Kind ArgumentKind
	// Map is the item of the map clause. Its Section is that of OnHost and Implicit too.
	Map memory.Map
	// Pointer is that of ByPointer, to Size bytes, or to all up to the end of its storage
	// if ToEnd.
	Pointer sched.Pointer
	Size    uint64
	ToEnd   bool
	// Reads and Writes say what the kernel does.
	Reads, Writes bool
	Label         string
}

// Copy is a memory routine's copy, or its fill.
type Copy struct {
	// Rows are what is copied, in bytes from Dst and Src.
	Rows memory.Rows
	// Dst is the destination, Src the source.
	Dst, Src Side
	// Fill: there is no source.
	Fill bool
}

// Side is one side of a copy: memory of a device, or host storage if Host is not nil.
type Side struct {
	// Device is the number of the device, Pointer points into its memory.
	Device  int
	Pointer sched.Pointer
	// Host is where the host storage begins.
	Host unsafe.Pointer
}

// Wait is a region in which a task waits for others: a taskwait, or a taskgroup, whose
// own notes the origin has.
type Wait struct {
	Origin
	// Kind is ompt.SyncRegionTaskwait or ompt.SyncRegionTaskgroup.
	Kind ompt.SyncRegion
	// Dependent: a taskwait with depend items, which waits for an empty task with these
	// items. That is a construct of its own.
	Dependent bool
}

// Storage is a memory routine that generates no task: it allocates, frees, associates or
// disassociates memory of a device.
type Storage struct {
	Origin
	// Label names the routine, Device is the number of the device.
	Label  string
	Device int
	// Op is what it does, by its type. An allocation's address is set when it has been made.
	Op ompt.DataOp
	// Pointer points to the memory: it is set when an allocation has been made on a Vulkan
	// device.
	Pointer sched.Pointer
	// Host is the host storage of an association.
	Host memory.Section
}
