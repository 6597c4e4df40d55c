package ompt_test

import (
	"fmt"
	"testing"

	"github.com/vkomp/vkomp/ompt"
)

func TestEnumerationsHaveTheSpecificationsNamesAndValues(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  uint32
		name  string
	}{
		{ompt.CallbackThreadBegin, 1, "ompt_callback_thread_begin"},
		{ompt.CallbackThreadEnd, 2, "ompt_callback_thread_end"},
		{ompt.CallbackParallelBegin, 3, "ompt_callback_parallel_begin"},
		{ompt.CallbackParallelEnd, 4, "ompt_callback_parallel_end"},
		{ompt.CallbackTaskCreate, 5, "ompt_callback_task_create"},
		{ompt.CallbackTaskSchedule, 6, "ompt_callback_task_schedule"},
		{ompt.CallbackImplicitTask, 7, "ompt_callback_implicit_task"},
		{ompt.CallbackTarget, 8, "ompt_callback_target"},
		{ompt.CallbackTargetDataOp, 9, "ompt_callback_target_data_op"},
		{ompt.CallbackTargetSubmit, 10, "ompt_callback_target_submit"},
		{ompt.CallbackControlTool, 11, "ompt_callback_control_tool"},
		{ompt.CallbackDeviceInitialize, 12, "ompt_callback_device_initialize"},
		{ompt.CallbackDeviceFinalize, 13, "ompt_callback_device_finalize"},
		{ompt.CallbackDeviceLoad, 14, "ompt_callback_device_load"},
		{ompt.CallbackDeviceUnload, 15, "ompt_callback_device_unload"},
		{ompt.CallbackSyncRegionWait, 16, "ompt_callback_sync_region_wait"},
		{ompt.CallbackMutexReleased, 17, "ompt_callback_mutex_released"},
		{ompt.CallbackDependences, 18, "ompt_callback_dependences"},
		{ompt.CallbackTaskDependence, 19, "ompt_callback_task_dependence"},
		{ompt.CallbackWork, 20, "ompt_callback_work"},
		{ompt.CallbackMasked, 21, "ompt_callback_masked"},
		{ompt.CallbackTargetMap, 22, "ompt_callback_target_map"},
		{ompt.CallbackSyncRegion, 23, "ompt_callback_sync_region"},
		{ompt.CallbackLockInit, 24, "ompt_callback_lock_init"},
		{ompt.CallbackLockDestroy, 25, "ompt_callback_lock_destroy"},
		{ompt.CallbackMutexAcquire, 26, "ompt_callback_mutex_acquire"},
		{ompt.CallbackMutexAcquired, 27, "ompt_callback_mutex_acquired"},
		{ompt.CallbackNestLock, 28, "ompt_callback_nest_lock"},
		{ompt.CallbackFlush, 29, "ompt_callback_flush"},
		{ompt.CallbackCancel, 30, "ompt_callback_cancel"},
		{ompt.CallbackReduction, 31, "ompt_callback_reduction"},
		{ompt.CallbackDispatch, 32, "ompt_callback_dispatch"},
		{ompt.CallbackTargetEMI, 33, "ompt_callback_target_emi"},
		{ompt.CallbackTargetDataOpEMI, 34, "ompt_callback_target_data_op_emi"},
		{ompt.CallbackTargetSubmitEMI, 35, "ompt_callback_target_submit_emi"},
		{ompt.CallbackTargetMapEMI, 36, "ompt_callback_target_map_emi"},
		{ompt.CallbackError, 37, "ompt_callback_error"},

		{ompt.Target, 1, "ompt_target"},
		{ompt.TargetEnterData, 2, "ompt_target_enter_data"},
		{ompt.TargetExitData, 3, "ompt_target_exit_data"},
		{ompt.TargetUpdate, 4, "ompt_target_update"},
		{ompt.TargetNowait, 9, "ompt_target_nowait"},
		{ompt.TargetEnterDataNowait, 10, "ompt_target_enter_data_nowait"},
		{ompt.TargetExitDataNowait, 11, "ompt_target_exit_data_nowait"},
		{ompt.TargetUpdateNowait, 12, "ompt_target_update_nowait"},

		{ompt.TargetDataAlloc, 1, "ompt_target_data_alloc"},
		{ompt.TargetDataTransferToDevice, 2, "ompt_target_data_transfer_to_device"},
		{ompt.TargetDataTransferFromDevice, 3, "ompt_target_data_transfer_from_device"},
		{ompt.TargetDataDelete, 4, "ompt_target_data_delete"},
		{ompt.TargetDataAssociate, 5, "ompt_target_data_associate"},
		{ompt.TargetDataDisassociate, 6, "ompt_target_data_disassociate"},
		{ompt.TargetDataTransfer, 7, "ompt_target_data_transfer"},
		{ompt.TargetDataMemset, 8, "ompt_target_data_memset"},
		{ompt.TargetDataTransferRect, 9, "ompt_target_data_transfer_rect"},
		{ompt.TargetDataAllocAsync, 17, "ompt_target_data_alloc_async"},
		{ompt.TargetDataTransferToDeviceAsync, 18, "ompt_target_data_transfer_to_device_async"},
		{ompt.TargetDataTransferFromDeviceAsync, 19, "ompt_target_data_transfer_from_device_async"},
		{ompt.TargetDataDeleteAsync, 20, "ompt_target_data_delete_async"},
		{ompt.TargetDataTransferAsync, 23, "ompt_target_data_transfer_async"},
		{ompt.TargetDataMemsetAsync, 24, "ompt_target_data_memset_async"},
		{ompt.TargetDataTransferRectAsync, 25, "ompt_target_data_transfer_rect_async"},

		{ompt.ScopeBegin, 1, "ompt_scope_begin"},
		{ompt.ScopeEnd, 2, "ompt_scope_end"},
		{ompt.ScopeBeginEnd, 3, "ompt_scope_beginend"},

		{ompt.TaskComplete, 1, "ompt_task_complete"},
		{ompt.TaskYield, 2, "ompt_task_yield"},
		{ompt.TaskCancel, 3, "ompt_task_cancel"},
		{ompt.TaskDetach, 4, "ompt_task_detach"},
		{ompt.TaskEarlyFulfill, 5, "ompt_task_early_fulfill"},
		{ompt.TaskLateFulfill, 6, "ompt_task_late_fulfill"},
		{ompt.TaskSwitch, 7, "ompt_task_switch"},
		{ompt.TaskwaitComplete, 8, "ompt_taskwait_complete"},

		{ompt.DependenceIn, 1, "ompt_dependence_type_in"},
		{ompt.DependenceOut, 2, "ompt_dependence_type_out"},
		{ompt.DependenceInOut, 3, "ompt_dependence_type_inout"},
		{ompt.DependenceMutexInOutSet, 4, "ompt_dependence_type_mutexinoutset"},
		{ompt.DependenceSource, 5, "ompt_dependence_type_source"},
		{ompt.DependenceSink, 6, "ompt_dependence_type_sink"},
		{ompt.DependenceInOutSet, 7, "ompt_dependence_type_inoutset"},
		{ompt.DependenceOutAllMemory, 34, "ompt_dependence_type_out_all_memory"},
		{ompt.DependenceInOutAllMemory, 35, "ompt_dependence_type_inout_all_memory"},

		{ompt.SyncRegionBarrierExplicit, 3, "ompt_sync_region_barrier_explicit"},
		{ompt.SyncRegionBarrierImplementation, 4, "ompt_sync_region_barrier_implementation"},
		{ompt.SyncRegionTaskwait, 5, "ompt_sync_region_taskwait"},
		{ompt.SyncRegionTaskgroup, 6, "ompt_sync_region_taskgroup"},
		{ompt.SyncRegionReduction, 7, "ompt_sync_region_reduction"},
		{ompt.SyncRegionBarrierImplicitWorkshare, 8, "ompt_sync_region_barrier_implicit_workshare"},
		{ompt.SyncRegionBarrierImplicitParallel, 9, "ompt_sync_region_barrier_implicit_parallel"},
		{ompt.SyncRegionBarrierTeams, 10, "ompt_sync_region_barrier_teams"},

		{ompt.SetError, 0, "ompt_set_error"},
		{ompt.SetNever, 1, "ompt_set_never"},
		{ompt.SetImpossible, 2, "ompt_set_impossible"},
		{ompt.SetSometimes, 3, "ompt_set_sometimes"},
		{ompt.SetSometimesPaired, 4, "ompt_set_sometimes_paired"},
		{ompt.SetAlways, 5, "ompt_set_always"},

		{ompt.RecordOMPT, 1, "ompt_record_ompt"},
		{ompt.RecordNative, 2, "ompt_record_native"},
		{ompt.RecordInvalid, 3, "ompt_record_invalid"},

		{ompt.ControlToolSuccess, 0, "omp_control_tool_success"},
		{ompt.ControlToolIgnored, 1, "omp_control_tool_ignored"},

		{ompt.TaskInitial, 0x1, "ompt_task_initial"},
		{ompt.TaskImplicit, 0x2, "ompt_task_implicit"},
		{ompt.TaskExplicit, 0x4, "ompt_task_explicit"},
		{ompt.TaskTarget, 0x8, "ompt_task_target"},
		{ompt.TaskTaskwait, 0x10, "ompt_task_taskwait"},
		{ompt.TaskImporting, 0x02000000, "ompt_task_importing"},
		{ompt.TaskExporting, 0x04000000, "ompt_task_exporting"},
		{ompt.TaskUndeferred, 0x08000000, "ompt_task_undeferred"},
		{ompt.TaskUntied, 0x10000000, "ompt_task_untied"},
		{ompt.TaskFinal, 0x20000000, "ompt_task_final"},
		{ompt.TaskMergeable, 0x40000000, "ompt_task_mergeable"},
		{ompt.TaskMerged, 0x80000000, "ompt_task_merged"},

		{ompt.MapFlagTo, 0x1, "ompt_target_map_flag_to"},
		{ompt.MapFlagFrom, 0x2, "ompt_target_map_flag_from"},
		{ompt.MapFlagAlloc, 0x4, "ompt_target_map_flag_alloc"},
		{ompt.MapFlagRelease, 0x8, "ompt_target_map_flag_release"},
		{ompt.MapFlagDelete, 0x10, "ompt_target_map_flag_delete"},
		{ompt.MapFlagImplicit, 0x20, "ompt_target_map_flag_implicit"},
		{ompt.MapFlagAlways, 0x40, "ompt_target_map_flag_always"},
		{ompt.MapFlagPresent, 0x80, "ompt_target_map_flag_present"},
		{ompt.MapFlagClose, 0x100, "ompt_target_map_flag_close"},
		{ompt.MapFlagShared, 0x200, "ompt_target_map_flag_shared"},
	} {
		// %d reads the value past its String method.
		if got := fmt.Sprintf("%d", c.value); got != fmt.Sprint(c.want) {
			t.Errorf("%s is %s, want %d", c.name, got, c.want)
		}
		if got := c.value.String(); got != c.name {
			t.Errorf("%d of type %T is spelled %q, want %q", c.want, c.value, got, c.name)
		}
	}
}

func TestValuesWithoutANameAndSets(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{ompt.Callback(0), "ompt.Callback(0)"},
		{ompt.Callback(38), "ompt.Callback(38)"},
		{ompt.TargetKind(5), "ompt.TargetKind(5)"},
		{ompt.TargetDataOp(10), "ompt.TargetDataOp(10)"},
		{ompt.ScopeEndpoint(-1), "ompt.ScopeEndpoint(-1)"},
		{ompt.TaskStatus(9), "ompt.TaskStatus(9)"},
		{ompt.DependenceType(33), "ompt.DependenceType(33)"},
		{ompt.SyncRegion(0), "ompt.SyncRegion(0)"},
		{ompt.SetResult(6), "ompt.SetResult(6)"},
		{ompt.RecordFormat(0), "ompt.RecordFormat(0)"},
		{ompt.TaskFlag(0), "0"},
		{ompt.TaskMergeable | ompt.TaskTarget | ompt.TaskUndeferred, "ompt_task_target|ompt_task_undeferred|ompt_task_mergeable"},
		{ompt.TaskMerged | 0x20, "0x20|ompt_task_merged"},
		{ompt.MapFlagTo | ompt.MapFlagAlways | 0x8000, "ompt_target_map_flag_to|ompt_target_map_flag_always|0x8000"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
