package vkomp

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"github.com/vkomp/vkomp/traits"
)

// offload is the value of the internal control variable target-offload-var
// (OpenMP 5.2 §21.2.9).
type offload uint8

const (
	offloadDefault offload = iota
	offloadDisabled
	offloadMandatory
)

// display is the value of OMP_DISPLAY_ENV.
type display uint8

const (
	displayNothing display = iota
	displayEnv
	displayVerbose
)

// icvs holds the initial values of the internal control variables that the environment sets
// (OpenMP 6.0 §3). An empty environment variable counts as unset.
type icvs struct {
	offload offload
	// available is available-devices-var, nil for all devices.
	available *traits.Available
	// defaultDevice is the value of OMP_DEFAULT_DEVICE, nil if it is unset.
	defaultDevice *traits.Default
	// maxPriority is max-task-priority-var.
	maxPriority int
	// cancellation is cancel-var.
	cancellation bool
	// noTool is the opposite of tool-var; toolLibraries and toolVerboseInit have the text
	// of the environment variables.
	noTool                         bool
	toolLibraries, toolVerboseInit string
	display                        display
	debug                          debug
	// pipelineFolder is where the contents of VkPipelineCache are kept, "" for nowhere;
	// pipelineReason says why.
	pipelineFolder, pipelineReason string
	// host holds the values of the initial device, nonHost those of all other devices, and
	// devices the values that differ for single devices, by number.
	host, nonHost deviceICVs
	devices       []deviceICVs
}

// deviceICVs are internal control variables of which each device has its own: beside <VAR>
// for the host there are <VAR>_DEV_<n>, <VAR>_DEV and <VAR>_ALL (OpenMP 6.0 §4.2). The range
// and the kernel of a launch determine its teams and threads, so these variables have no
// effect on non-host devices, and the number of teams has none on the host.
type deviceICVs struct {
	// threads is nthreads-var. Its first element is the number of host tasks that run
	// concurrently, since there is one level of parallel regions. nil means not set.
	threads []int
	// teams is nteams-var, teamsThreadLimit is teams-thread-limit-var; 0 means not set.
	teams, teamsThreadLimit int
}

// or returns d, with unset values taken from other.
func (d deviceICVs) or(other deviceICVs) deviceICVs {
	if d.threads == nil {
		d.threads = other.threads
	}
	d.teams, d.teamsThreadLimit = cmp.Or(d.teams, other.teams), cmp.Or(d.teamsThreadLimit, other.teamsThreadLimit)
	return d
}

// environment looks up variables. The errors of its methods name the variable and quote its
// value.
type environment func(name string) (value string, ok bool)

func (o *Options) environment() environment {
	if o.LookupEnv != nil {
		return o.LookupEnv
	}
	return os.LookupEnv
}

func malformed(name, value, want string) error {
	return fmt.Errorf("%w: %s=%q: want %s", ErrInvalidArgument, name, value, want)
}

// get returns a variable's value, unchanged and without surrounding white space.
func (e environment) get(name string) (value, trimmed string) {
	value, ok := e(name)
	if !ok {
		return "", ""
	}
	return value, strings.TrimSpace(value)
}

// word returns the index of a variable's value in words, ignoring case; 0 without a value.
func (e environment) word(name string, words ...string) (int, error) {
	value, trimmed := e.get(name)
	if trimmed == "" {
		return 0, nil
	}
	for i, w := range words {
		if strings.EqualFold(w, trimmed) {
			return i, nil
		}
	}
	last := len(words) - 1
	return 0, malformed(name, value, strings.Join(words[:last], ", ")+" or "+words[last])
}

// number returns a variable's value, 0 if it has none.
func (e environment) number(name string, least uint64) (int, error) {
	value, trimmed := e.get(name)
	if trimmed == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(trimmed, 10, 31)
	if err != nil || n < least {
		return 0, malformed(name, value, fmt.Sprintf("an integer from %d to %d", least, math.MaxInt32))
	}
	return int(n), nil
}

// positives returns a variable's list of positive numbers, nil if it has none.
func (e environment) positives(name string) ([]int, error) {
	value, trimmed := e.get(name)
	if trimmed == "" {
		return nil, nil
	}
	var list []int
	for item := range strings.SplitSeq(value, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(item), 10, 31)
		if err != nil || n == 0 {
			return nil, malformed(name, value, fmt.Sprintf("an integer from 1 to %d, or a list of them", math.MaxInt32))
		}
		list = append(list, int(n))
	}
	return list, nil
}

// device reads a device's variables with each of the suffixes, in order of precedence. It
// reads overridden variables too, because they may be malformed.
func (e environment) device(suffixes ...string) (deviceICVs, error) {
	var d deviceICVs
	for _, suffix := range suffixes {
		var s deviceICVs
		var err error
		if s.threads, err = e.positives("OMP_NUM_THREADS" + suffix); err != nil {
			return deviceICVs{}, err
		}
		if s.teams, err = e.number("OMP_NUM_TEAMS"+suffix, 1); err != nil {
			return deviceICVs{}, err
		}
		if s.teamsThreadLimit, err = e.number("OMP_TEAMS_THREAD_LIMIT"+suffix, 1); err != nil {
			return deviceICVs{}, err
		}
		d = d.or(s)
	}
	return d, nil
}

// icvs validates the options and reads the part of the environment that does not depend on
// the devices.
func (o *Options) icvs() (v icvs, err error) {
	if o.ForeignTimeout < 0 {
		return icvs{}, fmt.Errorf("%w: Options.ForeignTimeout is %v", ErrInvalidArgument, o.ForeignTimeout)
	}
	if o.ComputeQueues < 0 {
		return icvs{}, fmt.Errorf("%w: Options.ComputeQueues is %d", ErrInvalidArgument, o.ComputeQueues)
	}
	if o.MemoryPath > MemoryImported {
		return icvs{}, fmt.Errorf("%w: Options.MemoryPath is %v", ErrInvalidArgument, o.MemoryPath)
	}
	e := o.environment()
	if v.debug, err = e.debug(); err != nil {
		return icvs{}, err
	}
	v.pipelineFolder, v.pipelineReason = o.pipelineCache()
	if value, trimmed := e.get("OMP_AVAILABLE_DEVICES"); trimmed != "" {
		if v.available, err = traits.ParseAvailable(value); err != nil {
			return icvs{}, fmt.Errorf("%w: OMP_AVAILABLE_DEVICES=%w", ErrInvalidArgument, err)
		}
	}
	if value, trimmed := e.get("OMP_DEFAULT_DEVICE"); trimmed != "" {
		if v.defaultDevice, err = traits.ParseDefault(value); err != nil {
			return icvs{}, fmt.Errorf("%w: OMP_DEFAULT_DEVICE=%w", ErrInvalidArgument, err)
		}
	}
	var offloading, cancel, noTool, show int
	for _, w := range []struct {
		name  string
		index *int
		words []string
	}{
		{"OMP_TARGET_OFFLOAD", &offloading, []string{"default", "disabled", "mandatory"}},
		{"OMP_CANCELLATION", &cancel, []string{"false", "true"}},
		{"OMP_TOOL", &noTool, []string{"enabled", "disabled"}},
		{"OMP_DISPLAY_ENV", &show, []string{"false", "true", "verbose"}},
	} {
		if *w.index, err = e.word(w.name, w.words...); err != nil {
			return icvs{}, err
		}
	}
	v.offload, v.cancellation, v.noTool, v.display = offload(offloading), cancel != 0, noTool != 0, display(show)
	if v.maxPriority, err = e.number("OMP_MAX_TASK_PRIORITY", 0); err != nil {
		return icvs{}, err
	}
	_, v.toolLibraries = e.get("OMP_TOOL_LIBRARIES")
	_, v.toolVerboseInit = e.get("OMP_TOOL_VERBOSE_INIT")
	if v.host, err = e.device("", "_ALL"); err != nil {
		return icvs{}, err
	}
	if v.host.threads == nil {
		v.host.threads = []int{runtime.GOMAXPROCS(0)}
	}
	v.nonHost, err = e.device("_DEV", "_ALL")
	return v, err
}

// readDevices reads the variables of single devices.
func (v *icvs) readDevices(e environment, devices int) error {
	v.devices = make([]deviceICVs, devices)
	for n := range v.devices {
		var err error
		if v.devices[n], err = e.device("_DEV_" + strconv.Itoa(n)); err != nil {
			return err
		}
	}
	return nil
}

// verboseInit returns the value of OMP_TOOL_VERBOSE_INIT: a keyword, or the name of a file.
func (v *icvs) verboseInit() string {
	for _, word := range []string{"disabled", "stdout", "stderr"} {
		if strings.EqualFold(v.toolVerboseInit, word) {
			return word
		}
	}
	return cmp.Or(v.toolVerboseInit, "disabled")
}

// logTool logs the effect of the variables for tools.
func (rt *Runtime) logTool() {
	v := &rt.icvs
	if v.toolLibraries != "" && !v.noTool {
		rt.log.Warn("no library is loaded: a tool is what Options.Tool says", "OMP_TOOL_LIBRARIES", v.toolLibraries)
	}
	if v.verboseInit() == "disabled" {
		return
	}
	var registered []string
	for field, callback := range reflect.ValueOf(rt.options.Tool).Fields() {
		if !callback.IsZero() {
			registered = append(registered, field.Name)
		}
	}
	rt.log.Info("tool", "OMP_TOOL", map[bool]string{false: "enabled", true: "disabled"}[v.noTool], "registered", registered)
}
