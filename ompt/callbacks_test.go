package ompt_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/ompt"
)

// recorder returns a tool that appends the events it receives to events.
func recorder(name string, events *[]string) ompt.Callbacks {
	return ompt.Callbacks{
		DeviceInitialize: func(e ompt.DeviceInitializeEvent) {
			*events = append(*events, fmt.Sprintf("%s: initialize %+v", name, e))
		},
		DeviceFinalize: func(e ompt.DeviceFinalizeEvent) {
			*events = append(*events, fmt.Sprintf("%s: finalize %+v", name, e))
		},
	}
}

func TestTeeCallsEveryToolInOrder(t *testing.T) {
	var events []string
	first, second, third := recorder("1", &events), recorder("2", &events), recorder("3", &events)
	second.DeviceFinalize = nil
	all := ompt.Tee(first, ompt.Callbacks{}, second, third)
	all.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 4, Type: "t", Documentation: "d"})
	all.DeviceFinalize(ompt.DeviceFinalizeEvent{DeviceNum: 4})
	want := []string{
		"1: initialize {DeviceNum:4 Type:t Device:<nil> Documentation:d}",
		"2: initialize {DeviceNum:4 Type:t Device:<nil> Documentation:d}",
		"3: initialize {DeviceNum:4 Type:t Device:<nil> Documentation:d}",
		"1: finalize {DeviceNum:4}",
		"3: finalize {DeviceNum:4}",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTeeLeavesUnregisteredWhatNoToolAsksFor(t *testing.T) {
	var events []string
	onlyEnd := recorder("1", &events)
	onlyEnd.DeviceInitialize = nil
	for name, c := range map[string]ompt.Callbacks{
		"no tool":       ompt.Tee(),
		"empty tools":   ompt.Tee(ompt.Callbacks{}, ompt.Callbacks{}),
		"no logger":     ompt.Log(nil),
		"only finalize": ompt.Tee(onlyEnd, ompt.Log(nil)),
	} {
		if c.DeviceInitialize != nil {
			t.Errorf("%s: DeviceInitialize is registered", name)
		}
		if got, want := c.DeviceFinalize != nil, name == "only finalize"; got != want {
			t.Errorf("%s: DeviceFinalize registered: %v, want %v", name, got, want)
		}
	}
}

func TestLogWritesOneLineAnEvent(t *testing.T) {
	var out bytes.Buffer
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	c := ompt.Log(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	c.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 1, Type: "a GPU"})
	c.DeviceFinalize(ompt.DeviceFinalizeEvent{DeviceNum: 1})
	want := `level=INFO msg=ompt_callback_device_initialize device_num=1 type="a GPU"
level=INFO msg=ompt_callback_device_finalize device_num=1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// everyCallback returns callbacks, all plain or all EMI ones, that record their
// names.
func everyCallback(emi bool, events *[]string) ompt.Callbacks {
	add := func(format string, args ...any) { *events = append(*events, fmt.Sprintf(format, args...)) }
	c := ompt.Callbacks{
		DeviceInitialize: func(ompt.DeviceInitializeEvent) { add("device_initialize") },
		DeviceFinalize:   func(ompt.DeviceFinalizeEvent) { add("device_finalize") },
		DeviceLoad:       func(ompt.DeviceLoadEvent) { add("device_load") },
		DeviceUnload:     func(ompt.DeviceUnloadEvent) { add("device_unload") },
		ImplicitTask:     func(ompt.ImplicitTaskEvent) { add("implicit_task") },
		TaskCreate:       func(ompt.TaskCreateEvent) { add("task_create") },
		TaskSchedule:     func(ompt.TaskScheduleEvent) { add("task_schedule") },
		Dependences:      func(ompt.DependencesEvent) { add("dependences") },
		TaskDependence:   func(ompt.TaskDependenceEvent) { add("task_dependence") },
		SyncRegion:       func(ompt.SyncRegionEvent) { add("sync_region") },
		SyncRegionWait:   func(ompt.SyncRegionEvent) { add("sync_region_wait") },
		ControlTool: func(ompt.ControlToolEvent) ompt.ControlToolResult {
			add("control_tool")
			return ompt.ControlToolIgnored
		},
	}
	if emi {
		c.TargetEMI = func(e ompt.TargetEMIEvent) { add("target_emi %d", e.TargetID) }
		c.TargetDataOpEMI = func(e ompt.TargetDataOpEMIEvent) { add("target_data_op_emi %d", *e.HostOpID) }
		c.TargetMapEMI = func(e ompt.TargetMapEMIEvent) { add("target_map_emi %d", e.TargetID) }
		c.TargetSubmitEMI = func(e ompt.TargetSubmitEMIEvent) { add("target_submit_emi %d", *e.HostOpID) }
		return c
	}
	c.Target = func(e ompt.TargetEvent) { add("target %d", e.TargetID) }
	c.TargetDataOp = func(e ompt.TargetDataOpEvent) { add("target_data_op %d", e.HostOpID) }
	c.TargetMap = func(e ompt.TargetMapEvent) { add("target_map %d", e.TargetID) }
	c.TargetSubmit = func(e ompt.TargetSubmitEvent) { add("target_submit %d", e.HostOpID) }
	return c
}

// callAll calls every registered callback, with a different number in each event
// that has one.
func callAll(c ompt.Callbacks) {
	id := ompt.ID(7)
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Func || f.IsNil() {
			continue
		}
		e := reflect.New(f.Type().In(0)).Elem()
		for name, value := range map[string]any{"TargetID": id, "HostOpID": id, "Endpoint": ompt.ScopeEnd} {
			switch field := e.FieldByName(name); {
			case !field.IsValid():
			case field.Kind() == reflect.Pointer:
				field.Set(reflect.ValueOf(&id))
			default:
				field.Set(reflect.ValueOf(value))
			}
		}
		f.Call([]reflect.Value{e})
	}
}

func TestTeeHasEveryCallback(t *testing.T) {
	for _, emi := range []bool{false, true} {
		var one, teed []string
		callAll(everyCallback(emi, &one))
		callAll(ompt.Tee(everyCallback(emi, &teed), ompt.Callbacks{}, everyCallback(emi, &teed)))
		var want []string
		for _, e := range one {
			want = append(want, e, e)
		}
		if diff := cmp.Diff(want, teed); diff != "" || len(one) != 16 {
			t.Errorf("emi %v: %d callbacks; two teed (-want +got):\n%s", emi, len(one), diff)
		}
	}
}

// A Tee of plain and EMI callbacks calls the plain ones from the EMI ones, so that
// it can be registered.
func TestTeeOfBothForms(t *testing.T) {
	var events []string
	both := ompt.Tee(everyCallback(false, &events), everyCallback(true, &events))
	if err := both.Check(); err != nil {
		t.Fatal(err)
	}
	id := ompt.ID(5)
	both.TargetEMI(ompt.TargetEMIEvent{TargetID: 3})
	both.TargetMapEMI(ompt.TargetMapEMIEvent{TargetID: 3})
	for _, op := range []ompt.TargetDataOp{ompt.TargetDataAlloc, ompt.TargetDataDelete, ompt.TargetDataDeleteAsync} {
		for _, end := range []ompt.ScopeEndpoint{ompt.ScopeBegin, ompt.ScopeEnd} {
			events = append(events, fmt.Sprint(op, " ", end))
			both.TargetDataOpEMI(ompt.TargetDataOpEMIEvent{Endpoint: end, HostOpID: &id, DataOp: ompt.DataOp{Type: op}})
		}
	}
	both.TargetDataOpEMI(ompt.TargetDataOpEMIEvent{Endpoint: ompt.ScopeBeginEnd, HostOpID: &id, DataOp: ompt.DataOp{Type: ompt.TargetDataAssociate}})
	both.TargetSubmitEMI(ompt.TargetSubmitEMIEvent{Endpoint: ompt.ScopeBegin, HostOpID: &id})
	both.TargetSubmitEMI(ompt.TargetSubmitEMIEvent{Endpoint: ompt.ScopeEnd, HostOpID: &id})
	want := []string{
		"target 3", "target_emi 3", "target_map 3", "target_map_emi 3",
		"ompt_target_data_alloc ompt_scope_begin", "target_data_op_emi 5",
		"ompt_target_data_alloc ompt_scope_end", "target_data_op 5", "target_data_op_emi 5",
		"ompt_target_data_delete ompt_scope_begin", "target_data_op 5", "target_data_op_emi 5",
		"ompt_target_data_delete ompt_scope_end", "target_data_op_emi 5",
		"ompt_target_data_delete_async ompt_scope_begin", "target_data_op 5", "target_data_op_emi 5",
		"ompt_target_data_delete_async ompt_scope_end", "target_data_op_emi 5",
		"target_data_op 5", "target_data_op_emi 5",
		"target_submit 5", "target_submit_emi 5", "target_submit_emi 5",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// A single tool that has both stays as it is.
	wrong := everyCallback(false, &events)
	wrong.TargetMapEMI = func(ompt.TargetMapEMIEvent) {}
	teed := ompt.Tee(everyCallback(true, &events), wrong)
	if err := teed.Check(); !errors.Is(err, ompt.ErrBothForms) {
		t.Errorf("a tool with both forms in a tee: %v", err)
	}
}

func TestLogHasEveryEMICallback(t *testing.T) {
	var out bytes.Buffer
	c := ompt.Log(slog.New(slog.NewTextHandler(&out, nil)))
	d, id := new(ompt.Data), ompt.ID(9)
	c.TaskCreate(ompt.TaskCreateEvent{EncounteringTask: d, NewTask: d, TaskID: 4})
	c.Dependences(ompt.DependencesEvent{Task: d, Dependences: []ompt.Dependence{{Variable: 0x10, Size: 8, Type: ompt.DependenceInOut}}})
	c.TargetMapEMI(ompt.TargetMapEMIEvent{TargetID: 3, Items: []ompt.MapItem{{HostAddr: 0x20, Flags: ompt.MapFlagTo}}})
	c.TargetDataOpEMI(ompt.TargetDataOpEMIEvent{HostOpID: &id})
	c.TargetSubmitEMI(ompt.TargetSubmitEMIEvent{HostOpID: &id})
	c.ControlTool(ompt.ControlToolEvent{Command: 3})
	for _, want := range []string{"new_task=4", "type=ompt_dependence_type_inout variable=0x10 bytes=8", "host_addr=0x20", "host_op_id=9", "command=3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		plain := v.FieldByName(name + "EMI").IsValid()
		if v.Field(i).Kind() == reflect.Func && v.Field(i).IsNil() != plain {
			t.Errorf("%s is registered: %v", name, plain)
		}
	}
}

// Log knows a task by its number, and another tool by what it has set in the task's Data, whichever
// of the two is called first.
func TestLogLeavesDataToOtherTools(t *testing.T) {
	var out bytes.Buffer
	logs := ompt.Log(slog.New(slog.NewTextHandler(&out, nil)))
	other := ompt.Callbacks{TaskCreate: func(e ompt.TaskCreateEvent) { e.NewTask.Value, e.NewTask.Ptr = 7, "other" }}
	for _, tools := range [][]ompt.Callbacks{{logs, other}, {other, logs}} {
		out.Reset()
		both, d := ompt.Tee(tools...), new(ompt.Data)
		both.TaskCreate(ompt.TaskCreateEvent{NewTask: d, TaskID: 4})
		both.TaskSchedule(ompt.TaskScheduleEvent{PriorStatus: ompt.TaskSwitch, NextTask: d})
		if d.Value != 7 || d.Ptr != "other" {
			t.Errorf("the other tool finds %d and %v, and has set 7 and other", d.Value, d.Ptr)
		}
		if want := "next_task=4"; !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func ExampleTee() {
	opened := 0
	count := ompt.Callbacks{DeviceInitialize: func(ompt.DeviceInitializeEvent) { opened++ }}
	show := ompt.Callbacks{DeviceInitialize: func(e ompt.DeviceInitializeEvent) { fmt.Println("device", e.DeviceNum, "is", e.Type) }}

	tool := ompt.Tee(count, show)
	tool.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 0, Type: "a GPU"})
	fmt.Println(opened, "opened; finalize registered:", tool.DeviceFinalize != nil)
	// Output:
	// device 0 is a GPU
	// 1 opened; finalize registered: false
}
