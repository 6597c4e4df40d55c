package ompt

import "fmt"

// Callback is ompt_callbacks_t: the number of a callback. The numbers also serve as types
// of trace records.
type Callback int

const (
	CallbackThreadBegin      Callback = 1  // ompt_callback_thread_begin
	CallbackThreadEnd        Callback = 2  // ompt_callback_thread_end
	CallbackParallelBegin    Callback = 3  // ompt_callback_parallel_begin
	CallbackParallelEnd      Callback = 4  // ompt_callback_parallel_end
	CallbackTaskCreate       Callback = 5  // ompt_callback_task_create
	CallbackTaskSchedule     Callback = 6  // ompt_callback_task_schedule
	CallbackImplicitTask     Callback = 7  // ompt_callback_implicit_task
	CallbackTarget           Callback = 8  // ompt_callback_target
	CallbackTargetDataOp     Callback = 9  // ompt_callback_target_data_op
	CallbackTargetSubmit     Callback = 10 // ompt_callback_target_submit
	CallbackControlTool      Callback = 11 // ompt_callback_control_tool
	CallbackDeviceInitialize Callback = 12 // ompt_callback_device_initialize
	CallbackDeviceFinalize   Callback = 13 // ompt_callback_device_finalize
	CallbackDeviceLoad       Callback = 14 // ompt_callback_device_load
	CallbackDeviceUnload     Callback = 15 // ompt_callback_device_unload
	CallbackSyncRegionWait   Callback = 16 // ompt_callback_sync_region_wait
	CallbackMutexReleased    Callback = 17 // ompt_callback_mutex_released
	CallbackDependences      Callback = 18 // ompt_callback_dependences
	CallbackTaskDependence   Callback = 19 // ompt_callback_task_dependence
	CallbackWork             Callback = 20 // ompt_callback_work
	CallbackMasked           Callback = 21 // ompt_callback_masked
	CallbackTargetMap        Callback = 22 // ompt_callback_target_map
	CallbackSyncRegion       Callback = 23 // ompt_callback_sync_region
	CallbackLockInit         Callback = 24 // ompt_callback_lock_init
	CallbackLockDestroy      Callback = 25 // ompt_callback_lock_destroy
	CallbackMutexAcquire     Callback = 26 // ompt_callback_mutex_acquire
	CallbackMutexAcquired    Callback = 27 // ompt_callback_mutex_acquired
	CallbackNestLock         Callback = 28 // ompt_callback_nest_lock
	CallbackFlush            Callback = 29 // ompt_callback_flush
	CallbackCancel           Callback = 30 // ompt_callback_cancel
	CallbackReduction        Callback = 31 // ompt_callback_reduction
	CallbackDispatch         Callback = 32 // ompt_callback_dispatch
	// The EMI forms and error are OpenMP 5.1.
	CallbackTargetEMI       Callback = 33 // ompt_callback_target_emi
	CallbackTargetDataOpEMI Callback = 34 // ompt_callback_target_data_op_emi
	CallbackTargetSubmitEMI Callback = 35 // ompt_callback_target_submit_emi
	CallbackTargetMapEMI    Callback = 36 // ompt_callback_target_map_emi
	CallbackError           Callback = 37 // ompt_callback_error
)

// String returns the name of the callback in the specification.
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
	Target          TargetKind = 1 // ompt_target
	TargetEnterData TargetKind = 2 // ompt_target_enter_data
	TargetExitData  TargetKind = 3 // ompt_target_exit_data
	TargetUpdate    TargetKind = 4 // ompt_target_update
	// The nowait forms are OpenMP 5.1.
	TargetNowait          TargetKind = 9  // ompt_target_nowait
	TargetEnterDataNowait TargetKind = 10 // ompt_target_enter_data_nowait
	TargetExitDataNowait  TargetKind = 11 // ompt_target_exit_data_nowait
	TargetUpdateNowait    TargetKind = 12 // ompt_target_update_nowait
)

// String returns the name of the kind in the specification.
func (k TargetKind) String() string { return spell(targetKindNames, k, "ompt_target") }

var targetKindNames = map[TargetKind]string{
	Target: "", TargetEnterData: "_enter_data", TargetExitData: "_exit_data", TargetUpdate: "_update",
	TargetNowait: "_nowait", TargetEnterDataNowait: "_enter_data_nowait",
	TargetExitDataNowait: "_exit_data_nowait", TargetUpdateNowait: "_update_nowait",
}

// TargetDataOp is ompt_target_data_op_t: a data operation.
type TargetDataOp int

const (
	TargetDataAlloc TargetDataOp = 1 // ompt_target_data_alloc
	// Transfers with a direction in their name are deprecated in OpenMP 6.0.
	TargetDataTransferToDevice   TargetDataOp = 2 // ompt_target_data_transfer_to_device
	TargetDataTransferFromDevice TargetDataOp = 3 // ompt_target_data_transfer_from_device
	TargetDataDelete             TargetDataOp = 4 // ompt_target_data_delete
	TargetDataAssociate          TargetDataOp = 5 // ompt_target_data_associate
	TargetDataDisassociate       TargetDataOp = 6 // ompt_target_data_disassociate
	// OpenMP 6.0.
	TargetDataTransfer     TargetDataOp = 7 // ompt_target_data_transfer
	TargetDataMemset       TargetDataOp = 8 // ompt_target_data_memset
	TargetDataTransferRect TargetDataOp = 9 // ompt_target_data_transfer_rect
	// OpenMP 5.1.
	TargetDataAllocAsync              TargetDataOp = 17 // ompt_target_data_alloc_async
	TargetDataTransferToDeviceAsync   TargetDataOp = 18 // ompt_target_data_transfer_to_device_async
	TargetDataTransferFromDeviceAsync TargetDataOp = 19 // ompt_target_data_transfer_from_device_async
	TargetDataDeleteAsync             TargetDataOp = 20 // ompt_target_data_delete_async
	// OpenMP 6.0.
	TargetDataTransferAsync     TargetDataOp = 23 // ompt_target_data_transfer_async
	TargetDataMemsetAsync       TargetDataOp = 24 // ompt_target_data_memset_async
	TargetDataTransferRectAsync TargetDataOp = 25 // ompt_target_data_transfer_rect_async
)

// String returns the name of the operation in the specification.
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
	ScopeBegin    ScopeEndpoint = 1 // ompt_scope_begin
	ScopeEnd      ScopeEndpoint = 2 // ompt_scope_end
	ScopeBeginEnd ScopeEndpoint = 3 // ompt_scope_beginend, OpenMP 5.1
)

// String returns the name of the endpoint in the specification.
func (e ScopeEndpoint) String() string { return spell(scopeEndpointNames, e, "ompt_scope_") }

var scopeEndpointNames = map[ScopeEndpoint]string{ScopeBegin: "begin", ScopeEnd: "end", ScopeBeginEnd: "beginend"}

// TaskStatus is ompt_task_status_t: why a task reached a scheduling point.
type TaskStatus int

const (
	TaskComplete     TaskStatus = 1 // ompt_task_complete
	TaskYield        TaskStatus = 2 // ompt_task_yield
	TaskCancel       TaskStatus = 3 // ompt_task_cancel
	TaskDetach       TaskStatus = 4 // ompt_task_detach
	TaskEarlyFulfill TaskStatus = 5 // ompt_task_early_fulfill
	TaskLateFulfill  TaskStatus = 6 // ompt_task_late_fulfill
	TaskSwitch       TaskStatus = 7 // ompt_task_switch
	TaskwaitComplete TaskStatus = 8 // ompt_taskwait_complete, OpenMP 5.1
)

// String returns the name of the status in the specification.
func (s TaskStatus) String() string { return spell(taskStatusNames, s, "ompt_task") }

var taskStatusNames = map[TaskStatus]string{
	TaskComplete: "_complete", TaskYield: "_yield", TaskCancel: "_cancel", TaskDetach: "_detach",
	TaskEarlyFulfill: "_early_fulfill", TaskLateFulfill: "_late_fulfill", TaskSwitch: "_switch",
	TaskwaitComplete: "wait_complete",
}

// DependenceType is ompt_dependence_type_t.
type DependenceType int

const (
	DependenceIn             DependenceType = 1  // ompt_dependence_type_in
	DependenceOut            DependenceType = 2  // ompt_dependence_type_out
	DependenceInOut          DependenceType = 3  // ompt_dependence_type_inout
	DependenceMutexInOutSet  DependenceType = 4  // ompt_dependence_type_mutexinoutset
	DependenceSource         DependenceType = 5  // ompt_dependence_type_source
	DependenceSink           DependenceType = 6  // ompt_dependence_type_sink
	DependenceInOutSet       DependenceType = 7  // ompt_dependence_type_inoutset, OpenMP 5.1
	DependenceOutAllMemory   DependenceType = 34 // ompt_dependence_type_out_all_memory, OpenMP 6.0
	DependenceInOutAllMemory DependenceType = 35 // ompt_dependence_type_inout_all_memory, OpenMP 6.0
)

// String returns the name of the type in the specification.
func (t DependenceType) String() string {
	return spell(dependenceTypeNames, t, "ompt_dependence_type_")
}

var dependenceTypeNames = map[DependenceType]string{
	DependenceIn: "in", DependenceOut: "out", DependenceInOut: "inout", DependenceMutexInOutSet: "mutexinoutset",
	DependenceSource: "source", DependenceSink: "sink", DependenceInOutSet: "inoutset",
	DependenceOutAllMemory: "out_all_memory", DependenceInOutAllMemory: "inout_all_memory",
}

// SyncRegion is ompt_sync_region_t: the kind of a synchronization region.
type SyncRegion int

const (
	SyncRegionBarrierExplicit       SyncRegion = 3 // ompt_sync_region_barrier_explicit
	SyncRegionBarrierImplementation SyncRegion = 4 // ompt_sync_region_barrier_implementation
	SyncRegionTaskwait              SyncRegion = 5 // ompt_sync_region_taskwait
	SyncRegionTaskgroup             SyncRegion = 6 // ompt_sync_region_taskgroup
	SyncRegionReduction             SyncRegion = 7 // ompt_sync_region_reduction
	// OpenMP 5.1.
	SyncRegionBarrierImplicitWorkshare SyncRegion = 8  // ompt_sync_region_barrier_implicit_workshare
	SyncRegionBarrierImplicitParallel  SyncRegion = 9  // ompt_sync_region_barrier_implicit_parallel
	SyncRegionBarrierTeams             SyncRegion = 10 // ompt_sync_region_barrier_teams
)

// String returns the name of the kind in the specification.
func (r SyncRegion) String() string { return spell(syncRegionNames, r, "ompt_sync_region_") }

var syncRegionNames = map[SyncRegion]string{
	SyncRegionBarrierExplicit: "barrier_explicit", SyncRegionBarrierImplementation: "barrier_implementation",
	SyncRegionTaskwait: "taskwait", SyncRegionTaskgroup: "taskgroup", SyncRegionReduction: "reduction",
	SyncRegionBarrierImplicitWorkshare: "barrier_implicit_workshare",
	SyncRegionBarrierImplicitParallel:  "barrier_implicit_parallel",
	SyncRegionBarrierTeams:             "barrier_teams",
}

// SetResult is ompt_set_result_t: the result of registering a callback or of requesting
// its trace records.
type SetResult int

const (
	SetError           SetResult = 0 // ompt_set_error
	SetNever           SetResult = 1 // ompt_set_never
	SetImpossible      SetResult = 2 // ompt_set_impossible
	SetSometimes       SetResult = 3 // ompt_set_sometimes
	SetSometimesPaired SetResult = 4 // ompt_set_sometimes_paired
	SetAlways          SetResult = 5 // ompt_set_always
)

// String returns the name of the result in the specification.
func (r SetResult) String() string { return spell(setResultNames, r, "ompt_set_") }

var setResultNames = map[SetResult]string{
	SetError: "error", SetNever: "never", SetImpossible: "impossible",
	SetSometimes: "sometimes", SetSometimesPaired: "sometimes_paired", SetAlways: "always",
}

// ControlTool commands (omp_control_tool_t); those from 64 on are defined by the tool.
const (
	ControlToolStart uint64 = 1 // omp_control_tool_start
	ControlToolPause uint64 = 2 // omp_control_tool_pause
	ControlToolFlush uint64 = 3 // omp_control_tool_flush
	ControlToolEnd   uint64 = 4 // omp_control_tool_end
)

// ControlToolResult is omp_control_tool_result_t; other values are defined by the tool.
type ControlToolResult int

const (
	ControlToolNoTool     ControlToolResult = -2 // omp_control_tool_notool
	ControlToolNoCallback ControlToolResult = -1 // omp_control_tool_nocallback
	ControlToolSuccess    ControlToolResult = 0  // omp_control_tool_success
	ControlToolIgnored    ControlToolResult = 1  // omp_control_tool_ignored
)

// String returns the name of the result in the specification.
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
	RecordOMPT    RecordFormat = 1 // ompt_record_ompt
	RecordNative  RecordFormat = 2 // ompt_record_native
	RecordInvalid RecordFormat = 3 // ompt_record_invalid
)

// String returns the name of the format in the specification.
func (r RecordFormat) String() string { return spell(recordNames, r, "ompt_record_") }

var recordNames = map[RecordFormat]string{RecordOMPT: "ompt", RecordNative: "native", RecordInvalid: "invalid"}

// spell returns prefix and the name of v, or a number if v has none.
func spell[T ~int](names map[T]string, v T, prefix string) string {
	if name, ok := names[v]; ok {
		return prefix + name
	}
	return fmt.Sprintf("%T(%d)", v, int(v))
}
