package vkomp_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// shown returns the output of DisplayEnv.
func shown(t *testing.T, rt *vkomp.Runtime, verbose bool) string {
	t.Helper()
	var w bytes.Buffer
	if err := rt.DisplayEnv(&w, verbose); err != nil {
		t.Fatal(err)
	}
	return w.String()
}

// DisplayEnv shows the initial values.
func TestDisplayedEnvironmentHasTheInitialValues(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	rt := vktest.Open(t, vktest.Host)
	const host = `OPENMP DISPLAY ENVIRONMENT BEGIN
  _OPENMP='202411'
  [host] OMP_AVAILABLE_DEVICES=''
  [host] OMP_CANCELLATION='false'
  [host] OMP_DEFAULT_DEVICE='0'
  [host] OMP_MAX_TASK_PRIORITY='0'
  [host] OMP_TARGET_OFFLOAD='disabled'
  [host] OMP_TOOL='enabled'
  [host] OMP_TOOL_LIBRARIES=''
  [host] OMP_TOOL_VERBOSE_INIT='disabled'
  [host] OMP_NUM_THREADS='3'
  [host] OMP_NUM_TEAMS='0'
  [host] OMP_TEAMS_THREAD_LIMIT='0'
OPENMP DISPLAY ENVIRONMENT END
`
	if got := shown(t, rt, false); got != host {
		t.Errorf("got\n%swant\n%s", got, host)
	}

	rt = vktest.Open(t, within("OMP_CANCELLATION", "TRUE", "OMP_MAX_TASK_PRIORITY", "7", "OMP_TARGET_OFFLOAD", "Mandatory",
		"OMP_DEFAULT_DEVICE", "kind(fpga),0", "OMP_AVAILABLE_DEVICES", "*[0]",
		"OMP_TOOL", "disabled", "OMP_TOOL_LIBRARIES", "a:b", "OMP_TOOL_VERBOSE_INIT", "STDERR",
		"OMP_NUM_THREADS_ALL", "9", "OMP_NUM_THREADS", "4, 2", "OMP_NUM_THREADS_DEV", "5",
		"OMP_NUM_TEAMS_ALL", "11", "OMP_NUM_TEAMS_DEV_0", "12", "OMP_TEAMS_THREAD_LIMIT", "13", "OMP_TEAMS_THREAD_LIMIT_DEV_1", "14"))
	first, err := rt.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	// Later values are not shown.
	if err := rt.SetDefaultDevice(t.Context(), rt.InitialDevice()); err != nil {
		t.Fatal(err)
	}
	device := `OPENMP DISPLAY ENVIRONMENT BEGIN
  _OPENMP='202411'
  [host] OMP_AVAILABLE_DEVICES='uid(` + first.UID() + `)'
  [host] OMP_CANCELLATION='true'
  [host] OMP_DEFAULT_DEVICE='0'
  [host] OMP_MAX_TASK_PRIORITY='7'
  [host] OMP_TARGET_OFFLOAD='mandatory'
  [host] OMP_TOOL='disabled'
  [host] OMP_TOOL_LIBRARIES='a:b'
  [host] OMP_TOOL_VERBOSE_INIT='stderr'
  [host] OMP_NUM_THREADS='4,2'
  [host] OMP_NUM_TEAMS='11'
  [host] OMP_TEAMS_THREAD_LIMIT='13'
  [device] OMP_NUM_THREADS='5'
  [device] OMP_NUM_TEAMS='11'
  [dev 0] OMP_NUM_TEAMS='12'
OPENMP DISPLAY ENVIRONMENT END
`
	if got := shown(t, rt, false); got != device {
		t.Errorf("got\n%swant\n%s", got, device)
	}
	const end = "OPENMP DISPLAY ENVIRONMENT END\n"
	loader := fmt.Sprintf("  [host] VK_DRIVER_FILES='%s'\n  [host] VK_ICD_FILENAMES='%s'\n", os.Getenv("VK_DRIVER_FILES"), os.Getenv("VK_ICD_FILENAMES"))
	if got, want := shown(t, rt, true), strings.TrimSuffix(device, end)+loader+end; got != want {
		t.Errorf("verbose: got\n%swant\n%s", got, want)
	}

	rt = vktest.Open(t, within("OMP_DEFAULT_DEVICE", "invalid", "OMP_TARGET_OFFLOAD", "disabled"))
	if err := rt.SetDefaultDevice(t.Context(), rt.InitialDevice()); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, rt, false); !strings.Contains(got, "[host] OMP_DEFAULT_DEVICE='invalid'\n") {
		t.Errorf("without a default device: got\n%s", got)
	}
}

// The displayed values, set in the environment, select the same devices.
func TestDisplayedDevicesCanBeSet(t *testing.T) {
	rt := vktest.Open(t)
	value := func(name string) string {
		_, rest, _ := strings.Cut(shown(t, rt, false), name+"='")
		v, _, _ := strings.Cut(rest, "'")
		return v
	}
	available, preferred := value("OMP_AVAILABLE_DEVICES"), value("OMP_DEFAULT_DEVICE")
	again := vktest.Open(t, within("OMP_AVAILABLE_DEVICES", available, "OMP_DEFAULT_DEVICE", preferred))
	if again.NumDevices() != rt.NumDevices() || again.DefaultDevice(t.Context()).UID() != rt.DefaultDevice(t.Context()).UID() {
		t.Errorf("%s and %s are %d devices, of %d", available, preferred, again.NumDevices(), rt.NumDevices())
	}
}

func TestOpenDisplaysTheEnvironmentWhereItIsAskedTo(t *testing.T) {
	open := func(value string, change func(*vkomp.Options)) *vkomp.Runtime {
		return vktest.Open(t, func(o *vkomp.Options) {
			within("OMP_DISPLAY_ENV", value, "OMP_TARGET_OFFLOAD", "disabled")(o)
			change(o)
		})
	}
	for value, verbose := range map[string]bool{"true": false, " VERBOSE ": true} {
		var w bytes.Buffer
		rt := open(value, func(o *vkomp.Options) { o.DisplayEnv = &w })
		if want := shown(t, rt, verbose); w.String() != want {
			t.Errorf("%s: got\n%swant\n%s", value, w.String(), want)
		}
	}
	for _, value := range []string{"", "false"} {
		var w bytes.Buffer
		if open(value, func(o *vkomp.Options) { o.DisplayEnv = &w }); w.Len() > 0 {
			t.Errorf("%q: got\n%s", value, w.String())
		}
	}

	// Without a writer, the logger gets the output.
	var log strings.Builder
	o := vkomp.Options{Logger: textLogger(&log), LookupEnv: environment("OMP_DISPLAY_ENV", "true", "OMP_TARGET_OFFLOAD", "disabled")}
	rt, err := vkomp.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
	if want := strings.Count(shown(t, rt, false), "\n"); len(lines) != want || !strings.Contains(lines[4], "[host] OMP_DEFAULT_DEVICE='0'") || !strings.Contains(lines[0], "level=INFO") {
		t.Errorf("%d lines in the log, want %d:\n%s", len(lines), want, log.String())
	}
}

// broken is a writer that fails.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestDisplayEnvSaysWhatFails(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	if err := rt.DisplayEnv(broken{}, false); !errors.Is(err, errBroken) {
		t.Errorf("a broken writer: %v", err)
	}
	if err := rt.DisplayEnv(nil, false); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("no writer: %v", err)
	}
	// A failure to display the environment does not make Open fail.
	var log strings.Builder
	rt, err := vkomp.Open(vkomp.Options{DisplayEnv: broken{}, Logger: textLogger(&log), LookupEnv: environment("OMP_DISPLAY_ENV", "true", "OMP_TARGET_OFFLOAD", "disabled")})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "OMP_DISPLAY_ENV") || !strings.Contains(log.String(), "broken") {
		t.Errorf("the log is %s", log.String())
	}
}

func ExampleRuntime_DisplayEnv() {
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled", "OMP_NUM_THREADS", "4")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	if err := rt.DisplayEnv(os.Stdout, false); err != nil {
		fmt.Println(err)
	}
	// Output:
	// OPENMP DISPLAY ENVIRONMENT BEGIN
	//   _OPENMP='202411'
	//   [host] OMP_AVAILABLE_DEVICES=''
	//   [host] OMP_CANCELLATION='false'
	//   [host] OMP_DEFAULT_DEVICE='0'
	//   [host] OMP_MAX_TASK_PRIORITY='0'
	//   [host] OMP_TARGET_OFFLOAD='disabled'
	//   [host] OMP_TOOL='enabled'
	//   [host] OMP_TOOL_LIBRARIES=''
	//   [host] OMP_TOOL_VERBOSE_INIT='disabled'
	//   [host] OMP_NUM_THREADS='4'
	//   [host] OMP_NUM_TEAMS='0'
	//   [host] OMP_TEAMS_THREAD_LIMIT='0'
	// OPENMP DISPLAY ENVIRONMENT END
}
