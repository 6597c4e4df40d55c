package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/vkomp/vkomp"
)

type replayCommand struct {
	File   string     `arg:"" help:"File that Runtime.SaveTaskgraph has written."`
	Verify bool       `name:"verify" help:"Fail unless the run leaves the same bytes as the one that was saved."`
	Device deviceList `name:"device" placeholder:"D" help:"Device to run on: its number, its UUID or part of its name; several, separated by commas, for a taskgraph of several devices. By default the best there is."`
}

// deviceList is a list with commas between the devices. Unlike a list of kong's it may begin with a
// hyphen, so that an error about -1 is about devices.
type deviceList []string

// Decode is called by kong when the flag is parsed.
func (l *deviceList) Decode(ctx *kong.DecodeContext) error {
	list := ctx.Scan.Pop().String()
	*l = append(*l, kong.SplitEscaped(list, ',')...)
	if list != "" && slices.Contains(*l, "") {
		return fmt.Errorf("%q has a device without a name", list)
	}
	return nil
}

// Run runs a saved taskgraph and says whether it leaves the bytes that were saved.
func (c *replayCommand) Run(sh *shell) (err error) {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return err
	}
	saved, err := vkomp.ReadSavedTaskgraph(file, stat.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	rt, err := sh.runtimeOrReasons(vkomp.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	var devices []vkomp.Device
	for _, selector := range c.Device {
		d, err := rt.SelectDevice(selector)
		if err != nil {
			return err
		}
		if d.IsInitial() {
			return fmt.Errorf("-device %s: that is the initial device, and a saved taskgraph runs on Vulkan devices", selector)
		}
		devices = append(devices, d)
	}
	info := saved.Info()
	// The file may have been written by anyone: its text is quoted.
	fmt.Fprintf(sh.stdout, "%s: constructs: %d, kernels: %d, bytes of storage: %d, saved on %q\n", c.File, info.Constructs, info.Kernels, info.Bytes, strings.Join(info.Devices, ", "))
	if info.Failure != "" {
		fmt.Fprintf(sh.stdout, "the saved run failed: %q\n", info.Failure)
	}
	differences, err := saved.Run(sh.ctx, rt, devices...)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if len(differences) == 0 {
		fmt.Fprintln(sh.stdout, "executed and replayed: the same bytes as saved")
		return nil
	}
	for _, d := range differences {
		fmt.Fprintln(sh.stdout, d)
	}
	if !c.Verify {
		return nil
	}
	return fmt.Errorf("%s: the run leaves other bytes than the one that was saved, in %d places", c.File, len(differences))
}
