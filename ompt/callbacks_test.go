package ompt_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/ompt"
)

// recorder returns a tool that appends what it hears to events.
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
