package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt/trace"
	"github.com/vkomp/vkomp/traits"
)

// sampleFlags are the flags of every sample.
type sampleFlags struct {
	Device string `name:"device" placeholder:"D" help:"Device to run on: its number, its UUID or part of its name; -1, host or initial for the initial device. By default the best there is."`
	Verify bool   `name:"verify" help:"Compare with the host's own result, and fail if no device was there to run on."`
	Graph  string `name:"graph" placeholder:"FILE" help:"Write the graph of the tasks: .svg, or .dot for Graphviz."`
	traceFlags
}

// session is a sample's runtime and device.
type session struct {
	rt     *vkomp.Runtime
	device vkomp.Device
	// hostWanted says that the initial device was asked for.
	hostWanted bool
	progress   *progress
	// keepGraph says that the runtime keeps the graph of all tasks. graph is the graph of the
	// measured work, nil before.
	keepGraph bool
	graph     *vkomp.Graph
	// collector traces the work, nil without -trace and -report. traced is the trace of the
	// measured work, nil before.
	collector *trace.Collector
	traced    *trace.Trace
}

// with opens a runtime for a sample and closes it when the sample is done.
func (f *sampleFlags) with(sh *shell, sample func(*session) error) (err error) {
	if f.Graph != "" {
		if err := checkOutput("graph", f.Graph, graphExtensions...); err != nil {
			return err
		}
	}
	collector, err := f.collector()
	if err != nil {
		return err
	}
	var warnings bytes.Buffer
	options := vkomp.Options{KeepGraph: f.Graph != "", Logger: warningsTo(&warnings)}
	if collector != nil {
		options.Tool = collector.Callbacks()
	}
	rt, err := sh.runtime(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	s := &session{rt: rt, device: rt.DefaultDevice(context.Background()), keepGraph: f.Graph != "", collector: collector}
	selector := os.Getenv("OMP_DEFAULT_DEVICE")
	if f.Device != "" {
		selector = f.Device
		if s.device, err = rt.SelectDevice(selector); err != nil {
			return err
		}
	}
	s.hostWanted = offload("disabled") || namesInitialDevice(rt, selector) || f.Device == "" && listsInitialDevice(s.device, selector)
	if (!s.hostWanted || s.device == (vkomp.Device{})) && rt.NumDevices() == 0 {
		// The report says where the work ran; the warnings say why, or why it cannot run.
		if _, err := warnings.WriteTo(sh.stderr); err != nil {
			return err
		}
	}
	if s.device == (vkomp.Device{}) {
		if !offload("mandatory") {
			return errors.New(s.whyNone())
		}
		return fmt.Errorf("%s, and OMP_TARGET_OFFLOAD is mandatory", s.whyNone())
	}
	s.progress = newProgress(sh.stderr)
	defer s.progress.stop()
	sh.ctx = s.progress.watch(sh.ctx)
	err = sample(s)
	if err != nil && sh.ctx.Err() != nil {
		return err
	}
	// If the work has failed, the graph so far shows where.
	if s.graph != nil {
		err2 := writeGraph(f.Graph, *s.graph)
		if err2 == nil {
			_, err2 = fmt.Fprintf(sh.stdout, "graph written to %s\n", f.Graph)
		}
		err = errors.Join(err, err2)
	}
	if s.traced != nil {
		err = errors.Join(err, f.write(sh.stdout, "vkomp-demo "+strings.Join(sh.args, " "), s.traced))
	}
	return err
}

// warningsTo returns a logger that writes warnings and errors.
func warningsTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
}

// withoutTime removes the time from a log line.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// namesInitialDevice reports whether a selector asks for the initial device. Number 0 does not,
// even though it is the initial device's if there is no Vulkan device.
func namesInitialDevice(rt *vkomp.Runtime, selector string) bool {
	switch strings.ToLower(selector) {
	case "-1", "host", "initial":
		return true
	}
	n := rt.NumDevices()
	return n > 0 && strings.TrimSpace(selector) == strconv.Itoa(n)
}

// listsInitialDevice reports whether OMP_DEFAULT_DEVICE is more than a number and selects the
// initial device: such a list says itself what to choose if devices are missing.
func listsInitialDevice(chosen vkomp.Device, selector string) bool {
	list, err := traits.ParseDefault(selector)
	if err != nil {
		return false
	}
	_, alone := list.Number()
	return !alone && chosen.IsInitial()
}

// offload reports whether the environment asks for an offloading policy.
func offload(policy string) bool { return environmentSays("OMP_TARGET_OFFLOAD", policy) }

// environmentSays reports whether a variable has that value.
func environmentSays(variable, value string) bool {
	return strings.EqualFold(strings.TrimSpace(os.Getenv(variable)), value)
}

// checkFallback returns an error if regions ran on the initial device although nobody asked for
// that.
func (s *session) checkFallback(stats vkomp.Stats) error {
	switch {
	case s.hostWanted:
		return nil
	case s.device.IsInitial():
		return fmt.Errorf("verify: %s: the work fell back to the initial device, which was not asked for", s.whyNone())
	case stats.HostRegions > 0:
		return fmt.Errorf("verify: %d target regions fell back to the initial device, which was not asked for", stats.HostRegions)
	}
	return nil
}

// verify compares the result of a sample with the host's own, by compare, if that was asked for, and prints what compare
// says.
func (f *sampleFlags) verify(sh *shell, s *session, result *report, compare func() (string, error)) error {
	if !f.Verify {
		return nil
	}
	if err := s.checkFallback(result.stats); err != nil {
		return err
	}
	says, err := compare()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(sh.stdout, "verified: %s\n", says)
	return err
}

// whyNone returns why the work has no Vulkan device, if not because of -device.
func (s *session) whyNone() string {
	if s.rt.NumDevices() > 0 {
		return "OMP_DEFAULT_DEVICE=" + os.Getenv("OMP_DEFAULT_DEVICE") + " is no Vulkan device"
	}
	return "no Vulkan device to run on"
}

// measure runs the work of a sample and returns its report.
func (s *session) measure(work func() error) (report, error) {
	start := time.Now()
	err := work()
	took := time.Since(start)
	s.progress.end()
	if s.keepGraph {
		graph := s.rt.Graph()
		s.graph = &graph
	}
	if s.collector != nil {
		s.traced = s.collector.Trace()
	}
	if err != nil {
		return report{}, err
	}
	return report{device: s.device.Info(), stats: s.rt.Stats(), time: took}, nil
}

// limit returns an error if the value of a flag is out of range.
func limit(flag string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("-%s %d is out of range: %d to %d", flag, value, least, most)
	}
	return nil
}

// chosen returns the flag's value, or otherwise if it is not given.
func chosen(flag *int, otherwise int) int {
	if flag != nil {
		return *flag
	}
	return otherwise
}
