package ompt

import "fmt"

// Callback is ompt_callbacks_t: the number of a callback. Such numbers also are
// the types of trace records.
type Callback int

const (
	CallbackThreadBegin      Callback = 1
	CallbackThreadEnd        Callback = 2
	CallbackParallelBegin    Callback = 3
	CallbackParallelEnd      Callback = 4
	CallbackTaskCreate       Callback = 5
	CallbackTaskSchedule     Callback = 6
	CallbackImplicitTask     Callback = 7
	CallbackTarget           Callback = 8
	CallbackTargetDataOp     Callback = 9
	CallbackTargetSubmit     Callback = 10
	CallbackControlTool      Callback = 11
	CallbackDeviceInitialize Callback = 12
	CallbackDeviceFinalize   Callback = 13
	CallbackDeviceLoad       Callback = 14
	CallbackDeviceUnload     Callback = 15
	CallbackSyncRegionWait   Callback = 16
	CallbackMutexReleased    Callback = 17
	CallbackDependences      Callback = 18
	CallbackTaskDependence   Callback = 19
	CallbackWork             Callback = 20
	CallbackMasked           Callback = 21
	CallbackTargetMap        Callback = 22
	CallbackSyncRegion       Callback = 23
	CallbackLockInit         Callback = 24
	CallbackLockDestroy      Callback = 25
	CallbackMutexAcquire     Callback = 26
	CallbackMutexAcquired    Callback = 27
	CallbackNestLock         Callback = 28
	CallbackFlush            Callback = 29
	CallbackCancel           Callback = 30
	CallbackReduction        Callback = 31
	CallbackDispatch         Callback = 32
	// The EMI forms and error are OpenMP 5.1.
	CallbackTargetEMI       Callback = 33
	CallbackTargetDataOpEMI Callback = 34
	CallbackTargetSubmitEMI Callback = 35
	CallbackTargetMapEMI    Callback = 36
	CallbackError           Callback = 37
)

// String spells the callback as the specification does.
func (c Callback) String() string {
	return spell(callbackNames, c, "ompt_callback_")
}

var callbackNames = map[Callback]string{
	CallbackThreadBegin: "thread_begin", CallbackThreadEnd: "thread_end",
	CallbackParallelBegin: "parallel_begin", CallbackParallelEnd: "parallel_end",
	CallbackTaskCreate: "task_create", CallbackTaskSchedule: "task_schedule", CallbackImplicitTask: "implicit_task",
	CallbackTarget: "target", CallbackTargetDataOp: "target_data_op", CallbackTargetSubmit: "target_submit",
	CallbackControlTool:      "control_tool",
	CallbackDeviceInitialize: "device_initialize", CallbackDeviceFinalize: "device_finalize",
	CallbackDeviceLoad: "device_load", CallbackDeviceUnload: "device_unload",
	CallbackSyncRegionWait: "sync_region_wait", CallbackMutexReleased: "mutex_released",
	CallbackDependences: "dependences", CallbackTaskDependence: "task_dependence",
	CallbackWork: "work", CallbackMasked: "masked", CallbackTargetMap: "target_map", CallbackSyncRegion: "sync_region",
	CallbackLockInit: "lock_init", CallbackLockDestroy: "lock_destroy",
	CallbackMutexAcquire: "mutex_acquire", CallbackMutexAcquired: "mutex_acquired", CallbackNestLock: "nest_lock",
	CallbackFlush: "flush", CallbackCancel: "cancel", CallbackReduction: "reduction", CallbackDispatch: "dispatch",
	CallbackTargetEMI: "target_emi", CallbackTargetDataOpEMI: "target_data_op_emi",
	CallbackTargetSubmitEMI: "target_submit_emi", CallbackTargetMapEMI: "target_map_emi",
	CallbackError: "error",
}

// TargetKind is ompt_target_t: the construct of a target event.
type TargetKind int

const (
	Target          TargetKind = 1
	TargetEnterData TargetKind = 2
	TargetExitData  TargetKind = 3
	TargetUpdate    TargetKind = 4
	// The nowait forms are OpenMP 5.1.
	TargetNowait          TargetKind = 9
	TargetEnterDataNowait TargetKind = 10
	TargetExitDataNowait  TargetKind = 11
	TargetUpdateNowait    TargetKind = 12
)

// String spells the kind as the specification does.
func (k TargetKind) String() string { return spell(targetKindNames, k, "ompt_target") }

var targetKindNames = map[TargetKind]string{
	Target: "", TargetEnterData: "_enter_data", TargetExitData: "_exit_data", TargetUpdate: "_update",
	TargetNowait: "_nowait", TargetEnterDataNowait: "_enter_data_nowait",
	TargetExitDataNowait: "_exit_data_nowait", TargetUpdateNowait: "_update_nowait",
}

// TargetDataOp is ompt_target_data_op_t: a data operation.
type TargetDataOp int

const (
	TargetDataAlloc TargetDataOp = 1
	// Transfers with a direction in their name are deprecated in OpenMP 6.0.
	TargetDataTransferToDevice   TargetDataOp = 2
	TargetDataTransferFromDevice TargetDataOp = 3
	TargetDataDelete             TargetDataOp = 4
	TargetDataAssociate          TargetDataOp = 5
	TargetDataDisassociate       TargetDataOp = 6
	// OpenMP 6.0.
	TargetDataTransfer     TargetDataOp = 7
	TargetDataMemset       TargetDataOp = 8
	TargetDataTransferRect TargetDataOp = 9
	// OpenMP 5.1.
	TargetDataAllocAsync              TargetDataOp = 17
	TargetDataTransferToDeviceAsync   TargetDataOp = 18
	TargetDataTransferFromDeviceAsync TargetDataOp = 19
	TargetDataDeleteAsync             TargetDataOp = 20
	// OpenMP 6.0.
	TargetDataTransferAsync     TargetDataOp = 23
	TargetDataMemsetAsync       TargetDataOp = 24
	TargetDataTransferRectAsync TargetDataOp = 25
)

// String spells the operation as the specification does.
func (o TargetDataOp) String() string { return spell(targetDataOpNames, o, "ompt_target_data_") }

var targetDataOpNames = map[TargetDataOp]string{
	TargetDataAlloc: "alloc", TargetDataDelete: "delete",
	TargetDataTransferToDevice: "transfer_to_device", TargetDataTransferFromDevice: "transfer_from_device",
	TargetDataAssociate: "associate", TargetDataDisassociate: "disassociate",
	TargetDataTransfer: "transfer", TargetDataMemset: "memset", TargetDataTransferRect: "transfer_rect",
	TargetDataAllocAsync: "alloc_async", TargetDataDeleteAsync: "delete_async",
	TargetDataTransferToDeviceAsync: "transfer_to_device_async", TargetDataTransferFromDeviceAsync: "transfer_from_device_async",
	TargetDataTransferAsync: "transfer_async", TargetDataMemsetAsync: "memset_async", TargetDataTransferRectAsync: "transfer_rect_async",
}

// ScopeEndpoint is ompt_scope_endpoint_t: which end of a region an event is.
type ScopeEndpoint int

const (
	ScopeBegin    ScopeEndpoint = 1
	ScopeEnd      ScopeEndpoint = 2
	ScopeBeginEnd ScopeEndpoint = 3 // OpenMP 5.1
)

// String spells the endpoint as the specification does.
func (e ScopeEndpoint) String() string { return spell(scopeEndpointNames, e, "ompt_scope_") }

var scopeEndpointNames = map[ScopeEndpoint]string{ScopeBegin: "begin", ScopeEnd: "end", ScopeBeginEnd: "beginend"}

// TaskStatus is ompt_task_status_t: why a task reached a scheduling point.
type TaskStatus int

const (
	TaskComplete     TaskStatus = 1
	TaskYield        TaskStatus = 2
	TaskCancel       TaskStatus = 3
	TaskDetach       TaskStatus = 4
	TaskEarlyFulfill TaskStatus = 5
	TaskLateFulfill  TaskStatus = 6
	TaskSwitch       TaskStatus = 7
	TaskwaitComplete TaskStatus = 8 // OpenMP 5.1
)

// String spells the status as the specification does.
func (s TaskStatus) String() string { return spell(taskStatusNames, s, "ompt_task") }

var taskStatusNames = map[TaskStatus]string{
	TaskComplete: "_complete", TaskYield: "_yield", TaskCancel: "_cancel", TaskDetach: "_detach",
	TaskEarlyFulfill: "_early_fulfill", TaskLateFulfill: "_late_fulfill", TaskSwitch: "_switch",
	TaskwaitComplete: "wait_complete",
}

// DependenceType is ompt_dependence_type_t.
type DependenceType int

const (
	DependenceIn             DependenceType = 1
	DependenceOut            DependenceType = 2
	DependenceInOut          DependenceType = 3
	DependenceMutexInOutSet  DependenceType = 4
	DependenceSource         DependenceType = 5
	DependenceSink           DependenceType = 6
	DependenceInOutSet       DependenceType = 7  // OpenMP 5.1
	DependenceOutAllMemory   DependenceType = 34 // OpenMP 6.0
	DependenceInOutAllMemory DependenceType = 35 // OpenMP 6.0
)

// String spells the type as the specification does.
func (t DependenceType) String() string {
	return spell(dependenceTypeNames, t, "ompt_dependence_type_")
}

var dependenceTypeNames = map[DependenceType]string{
	DependenceIn: "in", DependenceOut: "out", DependenceInOut: "inout", DependenceMutexInOutSet: "mutexinoutset",
	DependenceSource: "source", DependenceSink: "sink", DependenceInOutSet: "inoutset",
	DependenceOutAllMemory: "out_all_memory", DependenceInOutAllMemory: "inout_all_memory",
}

// SyncRegion is ompt_sync_region_t: what a region of synchronisation waits for.
type SyncRegion int

const (
	SyncRegionBarrierExplicit       SyncRegion = 3
	SyncRegionBarrierImplementation SyncRegion = 4
	SyncRegionTaskwait              SyncRegion = 5
	SyncRegionTaskgroup             SyncRegion = 6
	SyncRegionReduction             SyncRegion = 7
	// OpenMP 5.1.
	SyncRegionBarrierImplicitWorkshare SyncRegion = 8
	SyncRegionBarrierImplicitParallel  SyncRegion = 9
	SyncRegionBarrierTeams             SyncRegion = 10
)

// String spells the kind of region as the specification does.
func (r SyncRegion) String() string { return spell(syncRegionNames, r, "ompt_sync_region_") }

var syncRegionNames = map[SyncRegion]string{
	SyncRegionBarrierExplicit: "barrier_explicit", SyncRegionBarrierImplementation: "barrier_implementation",
	SyncRegionTaskwait: "taskwait", SyncRegionTaskgroup: "taskgroup", SyncRegionReduction: "reduction",
	SyncRegionBarrierImplicitWorkshare: "barrier_implicit_workshare",
	SyncRegionBarrierImplicitParallel:  "barrier_implicit_parallel",
	SyncRegionBarrierTeams:             "barrier_teams",
}

// SetResult is ompt_set_result_t: what registering a callback, or asking for its
// trace records, came to.
type SetResult int

const (
	SetError           SetResult = 0
	SetNever           SetResult = 1
	SetImpossible      SetResult = 2
	SetSometimes       SetResult = 3
	SetSometimesPaired SetResult = 4
	SetAlways          SetResult = 5
)

// String spells the result as the specification does.
func (r SetResult) String() string { return spell(setResultNames, r, "ompt_set_") }

var setResultNames = map[SetResult]string{
	SetError: "error", SetNever: "never", SetImpossible: "impossible",
	SetSometimes: "sometimes", SetSometimesPaired: "sometimes_paired", SetAlways: "always",
}

// ControlTool commands (omp_control_tool_t); those from 64 on are the tool's.
const (
	ControlToolStart uint64 = 1
	ControlToolPause uint64 = 2
	ControlToolFlush uint64 = 3
	ControlToolEnd   uint64 = 4
)

// ControlToolResult is omp_control_tool_result_t; other values are the tool's.
type ControlToolResult int

const (
	ControlToolNoTool     ControlToolResult = -2
	ControlToolNoCallback ControlToolResult = -1
	ControlToolSuccess    ControlToolResult = 0
	ControlToolIgnored    ControlToolResult = 1
)

// String spells the result as the specification does.
func (r ControlToolResult) String() string {
	return spell(controlToolResultNames, r, "omp_control_tool_")
}

var controlToolResultNames = map[ControlToolResult]string{
	ControlToolNoTool: "notool", ControlToolNoCallback: "nocallback",
	ControlToolSuccess: "success", ControlToolIgnored: "ignored",
}

// RecordFormat is ompt_record_t: the format of a trace record.
type RecordFormat int

const (
	RecordOMPT    RecordFormat = 1
	RecordNative  RecordFormat = 2
	RecordInvalid RecordFormat = 3
)

// String spells the format as the specification does.
func (r RecordFormat) String() string { return spell(recordNames, r, "ompt_record_") }

var recordNames = map[RecordFormat]string{RecordOMPT: "ompt", RecordNative: "native", RecordInvalid: "invalid"}

// spell returns prefix and v's name, or a number for a value that has none.
func spell[T ~int](names map[T]string, v T, prefix string) string {
	if name, ok := names[v]; ok {
		return prefix + name
	}
	return fmt.Sprintf("%T(%d)", v, int(v))
}
