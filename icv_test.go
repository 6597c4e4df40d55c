package vkomp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/traits"
)

func TestBadControlVariablesAreNamedWithTheirValues(t *testing.T) {
	threads := []string{"0", "-1", "many", "4,0", "4,,2", "1e3", "99999999999"}
	positive := []string{"0", "-1", "4,2", "all", "99999999999"}
	bad := map[string][]string{
		"OMP_MAX_TASK_PRIORITY": {"-1", "high", "1.5", "99999999999"},
		"OMP_CANCELLATION":      {"yes", "1", "truely"},
		"OMP_DEFAULT_DEVICE":    {"-1", "-2x", "first", "*", "0,", "kind(gpu", "99999999999"},
		"OMP_AVAILABLE_DEVICES": {"0", "gpu", "kind(host)", "kind(gpu)&&isa(x)||isa(y)", "*,"},
		"OMP_TARGET_OFFLOAD":    {"always"},
		"OMP_TOOL":              {"on", "true"},
		"OMP_DISPLAY_ENV":       {"1", "all"},
	}
	for _, suffix := range []string{"", "_ALL", "_DEV", "_DEV_0"} {
		bad["OMP_NUM_THREADS"+suffix], bad["OMP_NUM_TEAMS"+suffix], bad["OMP_TEAMS_THREAD_LIMIT"+suffix] = threads, positive, positive
	}
	for name, values := range bad {
		for _, value := range values {
			pairs := []string{name, value, "OMP_TARGET_OFFLOAD", "disabled"}
			if strings.HasSuffix(name, "_0") {
				// Variables of a single device are read only if that device exists.
				pairs = pairs[:2]
			}
			rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment(pairs...)})
			if err == nil {
				rt.Close()
			}
			if !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), name+`="`+value+`"`) || !strings.Contains(err.Error(), "want") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
			if value == "99999999999" && !strings.Contains(err.Error(), "2147483647") {
				t.Errorf("%s=%s: %v does not say what the largest number is", name, value, err)
			}
		}
	}
}

func TestBadOptionsAreNamedWithTheirValues(t *testing.T) {
	for want, o := range map[string]vkomp.Options{
		"Options.ForeignTimeout is -1s":       {ForeignTimeout: -time.Second},
		"Options.ComputeQueues is -1":         {ComputeQueues: -1},
		"Options.MemoryPath is MemoryPath(5)": {MemoryPath: vkomp.MemoryImported + 1},
	} {
		o.LookupEnv = environment("OMP_TARGET_OFFLOAD", "disabled")
		rt, err := vkomp.Open(o)
		if err == nil {
			rt.Close()
		}
		refused(t, want, err, vkomp.ErrInvalidArgument, want)
	}
}

func TestVariablesThatAreNotSetHaveNoValue(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: func(name string) (string, bool) { return "disabled", name == "OMP_TARGET_OFFLOAD" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrorsInListsOfDevicesSayWhere(t *testing.T) {
	_, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_AVAILABLE_DEVICES", "kind(gpu)&vendor(amd)")})
	const want = `vkomp: invalid argument: OMP_AVAILABLE_DEVICES="kind(gpu)&vendor(amd)": byte 9, at "&vendor(amd)": want a comma or the end`
	var where *traits.Error
	if err == nil || err.Error() != want || !errors.As(err, &where) || where.Offset != 9 {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestGoodControlVariablesAreTaken(t *testing.T) {
	for name, values := range map[string][]string{
		"OMP_NUM_THREADS":       {"1", " 3 ", "4,2", " 4 , 2 ", ""},
		"OMP_MAX_TASK_PRIORITY": {"0", " 7", ""},
		"OMP_CANCELLATION":      {"TRUE", " false ", ""},
		"OMP_TARGET_OFFLOAD":    {"Default", " "},
		"OMP_DEFAULT_DEVICE":    {" 0 ", " kind( HOST ) ", ""},
		"OMP_AVAILABLE_DEVICES": {" * ", "kind(GPU)", ""},
		"OMP_TOOL":              {" Enabled ", "DISABLED", ""},
		"OMP_TOOL_LIBRARIES":    {"/lib/a.so:/lib/b.so", ""},
		"OMP_TOOL_VERBOSE_INIT": {"disabled", "STDOUT", "stderr", "/tmp/a file", ""},
		"OMP_DISPLAY_ENV":       {"True", "verbose", "FALSE", ""},
		"OMP_NUM_THREADS_ALL":   {"2", "4,2", ""},
		"OMP_NUM_TEAMS_DEV":     {" 3 ", ""},
		// Variables of devices that do not exist are not read.
		"OMP_NUM_TEAMS_DEV_99": {"-1"},
	} {
		for _, value := range values {
			rt := openTasks(t, name, value)
			generate(t, rt, t.Context(), vkomp.Task{Body: nothing})
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}

func TestNumThreadsIsTheFirstOfItsListAndGOMAXPROCSByDefault(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, c := range []struct {
		env    []string
		places int
	}{
		{[]string{"OMP_NUM_THREADS", ""}, 3},
		{[]string{"OMP_NUM_THREADS", "2,5"}, 2},
		{[]string{"OMP_NUM_THREADS", "7"}, 7},
		{[]string{"OMP_NUM_THREADS_ALL", "4,2", "OMP_NUM_THREADS_DEV", "2"}, 4},
		{[]string{"OMP_NUM_THREADS_ALL", "4", "OMP_NUM_THREADS", "2"}, 2},
	} {
		places := c.places
		rt := openTasks(t, c.env...)
		var full sync.WaitGroup
		full.Add(places)
		for range places {
			generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error {
				// It ends only when that many run at the same time.
				full.Done()
				full.Wait()
				return nil
			}})
		}
		full.Wait()
		release := make(chan struct{})
		began := make(chan struct{}, places+1)
		for range places + 1 {
			generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error { began <- struct{}{}; <-release; return nil }})
		}
		for range places {
			<-began
		}
		for range 100 {
			runtime.Gosched()
		}
		if len(began) != 0 {
			t.Errorf("%q: more than %d bodies at once", c.env, places)
		}
		close(release)
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestDisabledToolHearsNothing(t *testing.T) {
	for value, want := range map[string]int{"": 2, "enabled": 2, " DISABLED": 0} {
		var heard int
		rt := vktest.Open(t, func(o *vkomp.Options) {
			o.LookupEnv = environment("OMP_TOOL", value)
			o.Tool = ompt.Callbacks{
				DeviceInitialize: func(ompt.DeviceInitializeEvent) { heard++ },
				DeviceFinalize:   func(ompt.DeviceFinalizeEvent) { heard++ },
			}
		})
		k := newKernel(t, rt, shaders.Saxpy)
		if err := rt.Target(t.Context(), saxpyOn(t, k, 1, ramp(4), ramp(4))); err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		if heard != want {
			t.Errorf("OMP_TOOL=%q: the tool has heard of %d events, want %d", value, heard, want)
		}
	}
}

func TestLogSaysWhatCameOfTheToolVariables(t *testing.T) {
	tool := ompt.Callbacks{DeviceFinalize: func(ompt.DeviceFinalizeEvent) {}}
	for _, c := range []struct {
		env  []string
		tool ompt.Callbacks
		want string
	}{
		{env: nil, tool: tool, want: ""},
		{env: []string{"OMP_TOOL_VERBOSE_INIT", "disabled"}, tool: tool, want: ""},
		{env: []string{"OMP_TOOL_VERBOSE_INIT", "stderr"}, tool: tool, want: "level=INFO msg=tool OMP_TOOL=enabled registered=[DeviceFinalize]\n"},
		{env: []string{"OMP_TOOL_VERBOSE_INIT", "a.log"}, want: "level=INFO msg=tool OMP_TOOL=enabled registered=[]\n"},
		{env: []string{"OMP_TOOL_VERBOSE_INIT", "stdout", "OMP_TOOL", "disabled", "OMP_TOOL_LIBRARIES", "a.so"}, tool: tool,
			want: "level=INFO msg=tool OMP_TOOL=disabled registered=[]\n"},
		{env: []string{"OMP_TOOL_LIBRARIES", "a.so"}, tool: tool,
			want: "level=WARN msg=\"no library is loaded: a tool is what Options.Tool says\" OMP_TOOL_LIBRARIES=a.so\n"},
	} {
		var log strings.Builder
		rt, err := vkomp.Open(vkomp.Options{Tool: c.tool, Logger: textLogger(&log), LookupEnv: environment(append(c.env, "OMP_TARGET_OFFLOAD", "disabled")...)})
		if err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		if log.String() != c.want {
			t.Errorf("%q: the log is\n%swant\n%s", c.env, log.String(), c.want)
		}
	}
}

// textLogger writes lines without their time.
func textLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}
