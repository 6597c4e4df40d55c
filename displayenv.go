package vkomp

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// openMPVersion is the value of _OPENMP: that of OpenMP 6.0, whose device and task model
// this package implements in part.
const openMPVersion = 202411

// DisplayEnv writes the initial values of the internal control variables in the form of the
// environment variables that set them (omp_display_env, OpenMP 5.1): first _OPENMP and then a
// line for each variable,
//
//	OPENMP DISPLAY ENVIRONMENT BEGIN
//	  _OPENMP='202411'
//	  [host] OMP_CANCELLATION='false'
//	OPENMP DISPLAY ENVIRONMENT END
//
// Lines for devices begin with [device] for all non-host devices or with [dev 1] for one, and
// appear only if the environment sets the variable. OMP_AVAILABLE_DEVICES lists the devices by
// UID, and OMP_DEFAULT_DEVICE is a number or invalid, whatever they were set to. A number of 0, which
// OMP_NUM_TEAMS and OMP_TEAMS_THREAD_LIMIT cannot be set to, stands for none. verbose adds
// the variables of the Vulkan loader.
//
// Open does the same with OMP_DISPLAY_ENV=true or verbose: see Options.DisplayEnv.
func (rt *Runtime) DisplayEnv(w io.Writer, verbose bool) error {
	if w == nil {
		return fmt.Errorf("vkomp: display env: %w: no writer", ErrInvalidArgument)
	}
	if _, err := io.WriteString(w, strings.Join(rt.environmentLines(verbose), "\n")+"\n"); err != nil {
		return fmt.Errorf("vkomp: display env: %w", err)
	}
	return nil
}

// displayInitially writes what OMP_DISPLAY_ENV asks of Open.
func (rt *Runtime) displayInitially() {
	verbose := rt.icvs.display == displayVerbose
	switch w := rt.options.DisplayEnv; {
	case rt.icvs.display == displayNothing:
	case w == nil:
		for _, line := range rt.environmentLines(verbose) {
			rt.log.Info(line)
		}
	default:
		if err := rt.DisplayEnv(w, verbose); err != nil {
			rt.log.Warn("what OMP_DISPLAY_ENV asks for cannot be written", "reason", err)
		}
	}
}

func (rt *Runtime) environmentLines(verbose bool) []string {
	lines := []string{"OPENMP DISPLAY ENVIRONMENT BEGIN", fmt.Sprintf("  _OPENMP='%d'", openMPVersion)}
	add := func(device, name, value string) {
		lines = append(lines, fmt.Sprintf("  [%s] %s='%s'", device, name, value))
	}
	v := &rt.icvs
	host := func(name, value string) { add("host", name, value) }
	var uids []string
	for _, d := range rt.devices[:rt.NumDevices()] {
		uids = append(uids, "uid("+d.traits.UID+")")
	}
	host("OMP_AVAILABLE_DEVICES", strings.Join(uids, ","))
	host("OMP_CANCELLATION", strconv.FormatBool(v.cancellation))
	if rt.initialDefault.d == nil {
		host("OMP_DEFAULT_DEVICE", "invalid")
	} else {
		host("OMP_DEFAULT_DEVICE", strconv.Itoa(rt.initialDefault.Number()))
	}
	host("OMP_MAX_TASK_PRIORITY", strconv.Itoa(v.maxPriority))
	host("OMP_TARGET_OFFLOAD", [...]string{"default", "disabled", "mandatory"}[v.offload])
	host("OMP_TOOL", map[bool]string{false: "enabled", true: "disabled"}[v.noTool])
	host("OMP_TOOL_LIBRARIES", v.toolLibraries)
	host("OMP_TOOL_VERBOSE_INIT", v.verboseInit())
	v.host.lines("host", true, add)
	v.nonHost.lines("device", false, add)
	for n, d := range v.devices {
		d.lines(fmt.Sprintf("dev %d", n), false, add)
	}
	if verbose {
		for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
			// The loader reads the environment of the process.
			host(name, os.Getenv(name))
		}
	}
	return append(lines, "OPENMP DISPLAY ENVIRONMENT END")
}

// lines adds the lines of a device; variables that are not set are added only if all is set.
func (d *deviceICVs) lines(device string, all bool, add func(device, name, value string)) {
	if d.threads != nil {
		var list []string
		for _, n := range d.threads {
			list = append(list, strconv.Itoa(n))
		}
		add(device, "OMP_NUM_THREADS", strings.Join(list, ","))
	}
	if all || d.teams > 0 {
		add(device, "OMP_NUM_TEAMS", strconv.Itoa(d.teams))
	}
	if all || d.teamsThreadLimit > 0 {
		add(device, "OMP_TEAMS_THREAD_LIMIT", strconv.Itoa(d.teamsThreadLimit))
	}
}
