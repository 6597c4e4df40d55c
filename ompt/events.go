package ompt

// Data is ompt_data_t: what a tool keeps with a task, a target region or a runtime.
// It begins as zero; the runtime never reads it. It is the tool's to guard where
// callbacks are concurrent. An event that tells of a thing's end is the last to have
// its Data, but for a TaskDependence on it that was found before; then the runtime may
// use it for another, whether the tool has registered that event or not.
type Data struct {
	Value uint64
	Ptr   any
}

// ID is ompt_id_t: a number, 0 for none.
type ID uint64

// NoDevice is the device number of a side that a data operation does not have.
const NoDevice = -1

// Codeptr is codeptr_ra: the return address of the call in the program that made the
// construct, for runtime.CallersFrames. It is 0 unless Callbacks.Codeptrs asks for it,
// and where the program made no construct.
type Codeptr uintptr

// DeviceInitializeEvent is what ompt_callback_device_initialize tells.
type DeviceInitializeEvent struct {
	// DeviceNum is the device's number, 0 to omp_get_num_devices()-1.
	DeviceNum int
	// Type names the device, its kind and its Vulkan version, such as
	// "llvmpipe (LLVM 15.0.6, 256 bits) software Vulkan 1.3.230".
	Type string
	// Device traces the device, where it can be traced; else it is nil.
	Device Device
	// Documentation says what a tool can ask of this device.
	Documentation string
}

// DeviceFinalizeEvent is what ompt_callback_device_finalize tells. All storage of the
// device goes with it.
type DeviceFinalizeEvent struct {
	DeviceNum int
}

// DeviceLoadEvent is what ompt_callback_device_load tells: a kernel became a pipeline
// of the device.
type DeviceLoadEvent struct {
	DeviceNum int
	// Filename is the kernel's name: its code comes from no file.
	Filename string
	// Bytes is the size of the code, SPIR-V, at HostAddr.
	Bytes    uint64
	HostAddr uintptr
	// ModuleID is the pipeline's number on the device, from 1 on.
	ModuleID uint64
}

// DeviceUnloadEvent is what ompt_callback_device_unload tells.
type DeviceUnloadEvent struct {
	DeviceNum int
	ModuleID  uint64
}

// ImplicitTaskEvent is what ompt_callback_implicit_task tells. The only such task of a
// runtime is its initial task, from Open to Close; there are no parallel regions.
type ImplicitTaskEvent struct {
	Endpoint ScopeEndpoint
	Task     *Data
	// ActualParallelism and Index are 1: an initial task runs in a league of one.
	ActualParallelism, Index uint
	Flags                    TaskFlag
}

// TaskCreateEvent is what ompt_callback_task_create tells. There are no frames: Go
// tells none to those who are called.
type TaskCreateEvent struct {
	EncounteringTask, NewTask *Data
	Flags                     TaskFlag
	HasDependences            bool
	Codeptr                   Codeptr
	// TaskID is the task's number, unique in the runtime, 0 for a task that is in no
	// graph, such as an allocation's; Label is its label: beyond the specification.
	TaskID ID
	Label  string
}

// TaskScheduleEvent is what ompt_callback_task_schedule tells. A task that is never
// run, because what it follows failed or its taskgroup was cancelled, is the prior
// task of an event with TaskCancel.
type TaskScheduleEvent struct {
	// PriorTask is nil where the goroutine ran no task.
	PriorTask   *Data
	PriorStatus TaskStatus
	// NextTask is nil where the goroutine goes on without one.
	NextTask *Data
}

// Dependence is ompt_dependence_t: an item of a depend clause.
type Dependence struct {
	// Variable is where the storage begins, 0 for omp_all_memory. Size is in bytes,
	// beyond the specification: items that overlap in part depend on each other too.
	Variable uintptr
	Size     uint64
	Type     DependenceType
}

// DependencesEvent is what ompt_callback_dependences tells.
type DependencesEvent struct {
	Task *Data
	// Dependences are the runtime's again when the callback returns.
	Dependences []Dependence
}

// TaskDependenceEvent is what ompt_callback_task_dependence tells: Sink cannot run
// before Source, which was not complete when Sink was made.
type TaskDependenceEvent struct {
	Source, Sink *Data
}

// SyncRegionEvent is what ompt_callback_sync_region and ompt_callback_sync_region_wait
// tell. No parallel region has it.
type SyncRegionEvent struct {
	Kind     SyncRegion
	Endpoint ScopeEndpoint
	Task     *Data
	Codeptr  Codeptr
}

// ControlToolEvent is what ompt_callback_control_tool tells.
type ControlToolEvent struct {
	Command, Modifier uint64
	Arg               any
	Codeptr           Codeptr
}

// TargetEMIEvent is what ompt_callback_target_emi tells.
type TargetEMIEvent struct {
	Kind      TargetKind
	Endpoint  ScopeEndpoint
	DeviceNum int
	// Task is the encountering task, TargetTask the target task.
	Task, TargetTask *Data
	// Target is the tool's data of the region.
	Target  *Data
	Codeptr Codeptr
	// TargetID is the region's number, which ompt_callback_target tells, TaskID the
	// target task's, and Label its label: beyond the specification.
	TargetID, TaskID ID
	Label            string
}

// TargetEvent is what ompt_callback_target tells.
type TargetEvent struct {
	Kind      TargetKind
	Endpoint  ScopeEndpoint
	DeviceNum int
	Task      *Data
	TargetID  ID
	Codeptr   Codeptr
}

// DataOp says what a data operation does. Addresses are those of the side's device:
// of storage of the host the host's, else such as DevicePtr shows.
type DataOp struct {
	Type         TargetDataOp
	SrcAddr      uint64
	SrcDeviceNum int
	DestAddr     uint64
	// DestDeviceNum is NoDevice for an operation with one side, as is SrcDeviceNum.
	DestDeviceNum int
	// Bytes are those that are moved; of an allocation and an association its size, of
	// a deletion the size of what goes.
	Bytes uint64
	// Label names the item of the construct: beyond the specification.
	Label string
}

// TargetDataOpEMIEvent is what ompt_callback_target_data_op_emi tells.
type TargetDataOpEMIEvent struct {
	Endpoint   ScopeEndpoint
	TargetTask *Data
	// Target is nil for an operation outside of target regions, a memory routine's.
	Target *Data
	// HostOpID is the tool's to set until the operation's task is complete; it begins as
	// the runtime's number of the operation, is the same at both endpoints, and names the
	// operation in the device's trace.
	HostOpID *ID
	DataOp
	Codeptr Codeptr
	// TargetID is that of TargetEMIEvent, 0 outside of target regions: beyond the
	// specification.
	TargetID ID
}

// TargetDataOpEvent is what ompt_callback_target_data_op tells: once for an operation,
// when it has been initiated, or, if it ends storage, before.
type TargetDataOpEvent struct {
	TargetID, HostOpID ID
	DataOp
	Codeptr Codeptr
}

// MapItem is an item that a region maps.
type MapItem struct {
	HostAddr   uintptr
	DeviceAddr uint64
	Bytes      uint64
	Flags      MapFlag
}

// TargetMapEMIEvent is what ompt_callback_target_map_emi tells.
type TargetMapEMIEvent struct {
	Target *Data
	// Items are the runtime's again when the callback returns.
	Items   []MapItem
	Codeptr Codeptr
	// TargetID is that of TargetEMIEvent: beyond the specification.
	TargetID ID
}

// TargetMapEvent is what ompt_callback_target_map tells.
type TargetMapEvent struct {
	TargetID ID
	Items    []MapItem
	Codeptr  Codeptr
}

// TargetSubmitEMIEvent is what ompt_callback_target_submit_emi tells: a kernel is
// handed to the device, with others perhaps.
type TargetSubmitEMIEvent struct {
	Endpoint ScopeEndpoint
	Target   *Data
	// HostOpID is that of TargetDataOpEMIEvent.
	HostOpID *ID
	// RequestedNumTeams is the number of workgroups.
	RequestedNumTeams uint64
	// TargetID is that of TargetEMIEvent, Kernel the kernel's name: beyond the
	// specification.
	TargetID ID
	Kernel   string
}

// TargetSubmitEvent is what ompt_callback_target_submit tells, before the kernel is
// handed over.
type TargetSubmitEvent struct {
	TargetID, HostOpID ID
	RequestedNumTeams  uint64
}
