package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/vkomp/vkomp"
)

// sampleFlags are those of every sample.
type sampleFlags struct {
	Device string `name:"device" placeholder:"D" help:"Device to run on: its number, its UUID or part of its name; -1, host or initial for the initial device. By default the best there is."`
	Verify bool   `name:"verify" help:"Compare with the host's own result, and fail if no device was there to run on."`
}

// session is a sample's runtime and device.
type session struct {
	rt     *vkomp.Runtime
	device vkomp.Device
	// hostWanted says that running on the initial device was asked for.
	hostWanted bool
	progress   *progress
}

// with opens a runtime for a sample and closes it when the sample is done.
func (f *sampleFlags) with(sh *shell, sample func(*session) error) (err error) {
	rt, err := sh.open(vkomp.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	s := &session{rt: rt, device: rt.DefaultDevice(), hostWanted: offloadDisabled()}
	if f.Device != "" {
		if s.device, err = rt.SelectDevice(f.Device); err != nil {
			return err
		}
		s.hostWanted = s.hostWanted || namesInitialDevice(f.Device)
	}
	if s.device == (vkomp.Device{}) {
		return errors.New("no Vulkan device to run on, and OMP_TARGET_OFFLOAD is mandatory")
	}
	s.progress = newProgress(sh.stderr)
	defer s.progress.stop()
	return sample(s)
}

// namesInitialDevice tells asking for the initial device from getting it under
// a number that a Vulkan device would have had.
func namesInitialDevice(selector string) bool {
	switch strings.ToLower(selector) {
	case "-1", "host", "initial":
		return true
	}
	return false
}

// offloadDisabled reports whether the environment asks for the host.
func offloadDisabled() bool {
	return strings.EqualFold(strings.TrimSpace(os.Getenv("OMP_TARGET_OFFLOAD")), "disabled")
}

// checkFallback fails when regions ran on the initial device though nobody
// asked for that.
func (s *session) checkFallback(stats vkomp.Stats) error {
	switch {
	case s.hostWanted:
		return nil
	case s.device.IsInitial():
		return errors.New("verify: no Vulkan device to run on: the work fell back to the initial device, which was not asked for")
	case stats.HostRegions > 0:
		return fmt.Errorf("verify: %d target regions fell back to the initial device, which was not asked for", stats.HostRegions)
	}
	return nil
}

// measure runs the work of a sample and says what it took.
func (s *session) measure(work func() error) (report, error) {
	start := time.Now()
	if err := work(); err != nil {
		return report{}, err
	}
	return report{device: s.device.Info(), stats: s.rt.Stats(), time: time.Since(start)}, nil
}

// limit refuses a value of -n, or of another flag, that is out of range.
func limit(flag string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("-%s %d is out of range: %d to %d", flag, value, least, most)
	}
	return nil
}

// chosen returns the flag's value, or what it is when not given.
func chosen(flag *int, otherwise int) int {
	if flag != nil {
		return *flag
	}
	return otherwise
}
