package ompt

import (
	"context"
	"log/slog"
	"strconv"
)

// Log returns callbacks that write every event to l at level Info, or none if l is nil. The
// message is the specification's name of the callback in its EMI form. Tasks and regions
// are identified by the runtime's numbers. Log sets none of the values that a tool may set, so
// that it can be combined with any other tool: see [Tee].
func Log(l *slog.Logger) Callbacks {
	if l == nil {
		return Callbacks{}
	}
	write := func(c Callback, attrs ...slog.Attr) {
		l.LogAttrs(context.Background(), slog.LevelInfo, c.String(), attrs...)
	}
	return Callbacks{
		DeviceInitialize: func(e DeviceInitializeEvent) {
			write(CallbackDeviceInitialize, slog.Int("device_num", e.DeviceNum), slog.String("type", e.Type))
		},
		DeviceFinalize: func(e DeviceFinalizeEvent) {
			write(CallbackDeviceFinalize, slog.Int("device_num", e.DeviceNum))
		},
		DeviceLoad: func(e DeviceLoadEvent) {
			write(CallbackDeviceLoad, slog.Int("device_num", e.DeviceNum), slog.String("filename", e.Filename),
				slog.Uint64("bytes", e.Bytes), slog.Uint64("module_id", e.ModuleID))
		},
		DeviceUnload: func(e DeviceUnloadEvent) {
			write(CallbackDeviceUnload, slog.Int("device_num", e.DeviceNum), slog.Uint64("module_id", e.ModuleID))
		},
		ImplicitTask: func(e ImplicitTaskEvent) {
			write(CallbackImplicitTask, slog.Any("endpoint", e.Endpoint), slog.Any("flags", e.Flags))
		},
		TaskCreate: func(e TaskCreateEvent) {
			e.NewTask.logged = e.TaskID
			write(CallbackTaskCreate, dataAttr("encountering_task", e.EncounteringTask), dataAttr("new_task", e.NewTask),
				slog.Any("flags", e.Flags), slog.Bool("has_dependences", e.HasDependences), slog.String("label", e.Label))
		},
		TaskSchedule: func(e TaskScheduleEvent) {
			write(CallbackTaskSchedule, dataAttr("prior_task", e.PriorTask), slog.Any("prior_task_status", e.PriorStatus), dataAttr("next_task", e.NextTask))
		},
		Dependences: func(e DependencesEvent) {
			for _, d := range e.Dependences {
				write(CallbackDependences, dataAttr("task", e.Task), slog.Any("type", d.Type), addrAttr("variable", uint64(d.Variable)), slog.Uint64("bytes", d.Size))
			}
		},
		TaskDependence: func(e TaskDependenceEvent) {
			write(CallbackTaskDependence, dataAttr("src_task", e.Source), dataAttr("sink_task", e.Sink))
		},
		SyncRegion:     logSyncRegion(write, CallbackSyncRegion),
		SyncRegionWait: logSyncRegion(write, CallbackSyncRegionWait),
		ControlTool: func(e ControlToolEvent) ControlToolResult {
			write(CallbackControlTool, slog.Uint64("command", e.Command), slog.Uint64("modifier", e.Modifier))
			return ControlToolIgnored
		},
		TargetEMI: func(e TargetEMIEvent) {
			write(CallbackTargetEMI, slog.Any("kind", e.Kind), slog.Any("endpoint", e.Endpoint), slog.Int("device_num", e.DeviceNum),
				dataAttr("task", e.Task), dataAttr("target_task", e.TargetTask), slog.Uint64("target_id", uint64(e.TargetID)), slog.String("label", e.Label))
		},
		TargetDataOpEMI: func(e TargetDataOpEMIEvent) {
			write(CallbackTargetDataOpEMI, slog.Any("endpoint", e.Endpoint), dataAttr("target_task", e.TargetTask),
				slog.Uint64("target_id", uint64(e.TargetID)), slog.Uint64("host_op_id", uint64(*e.HostOpID)), slog.Any("optype", e.Type),
				addrAttr("src_addr", e.SrcAddr), slog.Int("src_device_num", e.SrcDeviceNum),
				addrAttr("dest_addr", e.DestAddr), slog.Int("dest_device_num", e.DestDeviceNum), slog.Uint64("bytes", e.Bytes))
		},
		TargetMapEMI: func(e TargetMapEMIEvent) {
			for _, m := range e.Items {
				write(CallbackTargetMapEMI, slog.Uint64("target_id", uint64(e.TargetID)), addrAttr("host_addr", uint64(m.HostAddr)),
					addrAttr("device_addr", m.DeviceAddr), slog.Uint64("bytes", m.Bytes), slog.Any("flags", m.Flags))
			}
		},
		TargetSubmitEMI: func(e TargetSubmitEMIEvent) {
			write(CallbackTargetSubmitEMI, slog.Any("endpoint", e.Endpoint), slog.Uint64("target_id", uint64(e.TargetID)),
				slog.Uint64("host_op_id", uint64(*e.HostOpID)), slog.Uint64("requested_num_teams", e.RequestedNumTeams), slog.String("kernel", e.Kernel))
		},
	}
}

func logSyncRegion(write func(Callback, ...slog.Attr), c Callback) func(SyncRegionEvent) {
	return func(e SyncRegionEvent) {
		write(c, slog.Any("kind", e.Kind), slog.Any("endpoint", e.Endpoint), dataAttr("task", e.Task))
	}
}

// dataAttr identifies a task by the number that it had in its TaskCreateEvent: 0 for the
// initial task, -1 for none.
func dataAttr(key string, d *Data) slog.Attr {
	if d == nil {
		return slog.Int(key, -1)
	}
	return slog.Uint64(key, uint64(d.logged))
}

func addrAttr(key string, addr uint64) slog.Attr { return slog.String(key, hex(addr)) }

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }
