package ompt

// Data is ompt_data_t: a value that a tool attaches to a task, a target region or a
// runtime. It is initially zero, and the runtime never reads it. The tool must
// synchronize its access where callbacks are concurrent. The event that reports an
// object's end is the last with its Data, except for a TaskDependence on it that was found
// before. After that the runtime may reuse the Data, whether or not the tool has
// registered that event.
type Data struct {
	Value uint64 // an integer of the tool
	Ptr   any    // any value of the tool, in place of a pointer
	// logged is the task's number, which Log sets when it hears that the task is generated.
	logged ID
}

// ID is ompt_id_t: an identifier, 0 for none.
type ID uint64

// NoDevice is the device number for the missing side of a data operation with one side.
const NoDevice = -1

// Codeptr is codeptr_ra: the return address of the program's call of the construct, for
// runtime.CallersFrames. It is 0 unless Callbacks.Codeptrs is set, and 0 where no
// construct of the program causes the event.
type Codeptr uintptr

// DeviceInitializeEvent is the event of ompt_callback_device_initialize.
type DeviceInitializeEvent struct {
	// DeviceNum is the device's number, 0 to omp_get_num_devices()-1.
	DeviceNum int
	// Type is the device's name, kind and Vulkan version, such as
	// "llvmpipe (LLVM 15.0.6, 256 bits) software Vulkan 1.3.230".
	Type string
	// Device traces the device. It is nil if the device cannot be traced.
	Device Device
	// Documentation describes the tracing of this device.
	Documentation string
}

// DeviceFinalizeEvent is the event of ompt_callback_device_finalize. All storage of the
// device goes with it.
type DeviceFinalizeEvent struct {
	DeviceNum int // number of the device
}

// DeviceLoadEvent is the event of ompt_callback_device_load: a kernel became a pipeline
// of the device. A kernel can become several, of which one has the kernel's own code, and the others
// variants of it for long ranges and for several launches at once.
type DeviceLoadEvent struct {
	DeviceNum int // number of the device
	// Filename is the kernel's name, as its code does not come from a file.
	Filename string
	// Bytes is the size of the SPIR-V code at HostAddr.
	Bytes    uint64
	HostAddr uintptr
	// ModuleID is the number of the pipeline on the device, from 1.
	ModuleID uint64
}

// DeviceUnloadEvent is the event of ompt_callback_device_unload.
type DeviceUnloadEvent struct {
	DeviceNum int    // number of the device
	ModuleID  uint64 // that of the DeviceLoadEvent
}

// ImplicitTaskEvent is the event of ompt_callback_implicit_task. A runtime has one
// implicit task, the initial task, from Open to Close; there are no parallel regions.
type ImplicitTaskEvent struct {
	Endpoint ScopeEndpoint // begin or end of the task
	Task     *Data         // the tool's data of the task
	// ActualParallelism and Index are 1: the initial task runs in a league of one.
	ActualParallelism, Index uint
	Flags                    TaskFlag // TaskInitial
}

// TaskCreateEvent is the event of ompt_callback_task_create. There are no frame addresses,
// which Go does not provide.
type TaskCreateEvent struct {
	EncounteringTask, NewTask *Data    // the tool's data of both tasks
	Flags                     TaskFlag // kind of the new task
	HasDependences            bool     // whether it has a depend clause
	Codeptr                   Codeptr  // place of the construct
	// TaskID is the number of the task, unique in the runtime. It is 0 for a task that is
	// not in the task graph, such as that of an allocation. Label is the task's label.
	// Both are extensions of the specification.
	TaskID ID
	Label  string
}

// TaskScheduleEvent is the event of ompt_callback_task_schedule. A task that is never run,
// because a predecessor failed or its taskgroup was cancelled, is the prior task of an
// event with TaskCancel.
type TaskScheduleEvent struct {
	// PriorTask is nil if the goroutine ran no task. PriorStatus is why it is left.
	PriorTask   *Data
	PriorStatus TaskStatus
	// NextTask is nil if the goroutine continues without a task.
	NextTask *Data
}

// Dependence is ompt_dependence_t: an item of a depend clause.
type Dependence struct {
	// Variable is the address of the storage, 0 for omp_all_memory. Size is its size in
	// bytes, an extension of the specification: items that overlap in part are
	// dependent too. Type is the dependence-type.
	Variable uintptr
	Size     uint64
	Type     DependenceType
}

// DependencesEvent is the event of ompt_callback_dependences.
type DependencesEvent struct {
	Task *Data // the tool's data of the dependent task
	// Dependences may be used only until the callback returns.
	Dependences []Dependence
}

// TaskDependenceEvent is the event of ompt_callback_task_dependence: Sink depends on
// Source, which was not complete when Sink was created.
type TaskDependenceEvent struct {
	Source, Sink *Data // the tool's data of both tasks
}

// SyncRegionEvent is the event of ompt_callback_sync_region and
// ompt_callback_sync_region_wait. There is never a parallel region.
type SyncRegionEvent struct {
	Kind     SyncRegion    // taskwait or taskgroup
	Endpoint ScopeEndpoint // begin or end
	Task     *Data         // the tool's data of the waiting task
	Codeptr  Codeptr       // place of the construct
}

// ControlToolEvent is the event of ompt_callback_control_tool.
type ControlToolEvent struct {
	Command, Modifier uint64  // arguments of Runtime.ControlTool
	Arg               any     // argument of Runtime.ControlTool
	Codeptr           Codeptr // place of that call
}

// TargetEMIEvent is the event of ompt_callback_target_emi.
type TargetEMIEvent struct {
	Kind      TargetKind    // the construct
	Endpoint  ScopeEndpoint // begin or end
	DeviceNum int           // number of the device
	// Task is the tool's data of the encountering task, TargetTask of the target task.
	Task, TargetTask *Data
	// Target is the tool's data of the region.
	Target  *Data
	Codeptr Codeptr
	// TargetID identifies the region as in ompt_callback_target, TaskID is the number of
	// the target task and Label its label. They are extensions of the specification.
	TargetID, TaskID ID
	Label            string
}

// TargetEvent is the event of ompt_callback_target.
type TargetEvent struct {
	Kind      TargetKind    // the construct
	Endpoint  ScopeEndpoint // begin or end
	DeviceNum int           // number of the device
	Task      *Data         // the tool's data of the encountering task
	TargetID  ID            // identifies the region
	Codeptr   Codeptr       // place of the construct
}

// DataOp describes a data operation. Addresses of host storage are host addresses, those
// of device storage are what DevicePtr returns.
type DataOp struct {
	Type         TargetDataOp // kind of operation
	SrcAddr      uint64       // where the operation reads
	SrcDeviceNum int          // NoDevice if it does not read
	DestAddr     uint64       // where the operation writes
	// DestDeviceNum is NoDevice if the operation does not write.
	DestDeviceNum int
	// Bytes is the number of bytes moved, or the size of the storage that is allocated,
	// deleted, associated or disassociated.
	Bytes uint64
	// Label is the name of the construct's item, an extension of the specification.
	Label string
}

// TargetDataOpEMIEvent is the event of ompt_callback_target_data_op_emi.
type TargetDataOpEMIEvent struct {
	Endpoint   ScopeEndpoint // begin or end
	TargetTask *Data         // the tool's data of the target task
	// Target is the tool's data of the region, nil for a memory routine.
	Target *Data
	// HostOpID may be set by the tool until the operation's task is complete. Its
	// initial value is the runtime's number of the operation. It is the same at both
	// endpoints and identifies the operation in the device's trace.
	HostOpID *ID
	DataOp
	Codeptr Codeptr // place of the construct
	// TargetID is that of TargetEMIEvent, 0 outside of target regions. It is an
	// extension of the specification.
	TargetID ID
}

// TargetDataOpEvent is the event of ompt_callback_target_data_op. It is delivered once for
// an operation: before one that ends the life of storage, otherwise when the operation has
// been initiated.
type TargetDataOpEvent struct {
	TargetID, HostOpID ID // identify the region and the operation
	DataOp
	Codeptr Codeptr // place of the construct
}

// MapItem is a list item of a map clause.
type MapItem struct {
	HostAddr   uintptr // address of the host storage
	DeviceAddr uint64  // address of the corresponding storage
	Bytes      uint64  // size
	Flags      MapFlag // map-type and modifiers
}

// TargetMapEMIEvent is the event of ompt_callback_target_map_emi.
type TargetMapEMIEvent struct {
	Target *Data // the tool's data of the region
	// Items may be used only until the callback returns.
	Items   []MapItem
	Codeptr Codeptr
	// TargetID is that of TargetEMIEvent, an extension of the specification.
	TargetID ID
}

// TargetMapEvent is the event of ompt_callback_target_map.
type TargetMapEvent struct {
	TargetID ID        // identifies the region
	Items    []MapItem // may be used only until the callback returns
	Codeptr  Codeptr   // place of the construct
}

// TargetSubmitEMIEvent is the event of ompt_callback_target_submit_emi: a kernel is
// submitted to the device, possibly together with others.
type TargetSubmitEMIEvent struct {
	Endpoint ScopeEndpoint // begin or end
	Target   *Data         // the tool's data of the region
	// HostOpID is that of TargetDataOpEMIEvent.
	HostOpID *ID
	// RequestedNumTeams is the number of workgroups.
	RequestedNumTeams uint64
	// TargetID is that of TargetEMIEvent and Kernel the name of the kernel. Both are
	// extensions of the specification.
	TargetID ID
	Kernel   string
}

// TargetSubmitEvent is the event of ompt_callback_target_submit. It is delivered before the
// kernel is submitted.
type TargetSubmitEvent struct {
	TargetID, HostOpID ID     // identify the region and the operation
	RequestedNumTeams  uint64 // number of workgroups
}
