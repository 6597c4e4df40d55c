package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/vkomp/vkomp"
)

type devicesCommand struct {
	JSON    bool `name:"json" help:"Print JSON."`
	Verbose bool `short:"v" help:"Print how each device is used, and why."`
}

// Run lists the devices. The last one is the initial device, the host.
func (c *devicesCommand) Run(sh *shell) (err error) {
	rt, err := sh.runtimeOrReasons(vkomp.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	var list []vkomp.DeviceInfo
	var decisions [][]vkomp.Decision
	for number := range rt.NumDevices() + 1 {
		device, err := rt.Device(number)
		if err != nil {
			return err
		}
		list = append(list, device.Info())
		decisions = append(decisions, device.Decisions())
	}
	if c.JSON {
		encoder := json.NewEncoder(sh.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	if err := printDevices(sh.stdout, list); err != nil || !c.Verbose {
		return err
	}
	return printDecisions(sh.stdout, list, decisions)
}

// printDecisions writes a table of each device's decisions.
func printDecisions(w io.Writer, list []vkomp.DeviceInfo, decisions [][]vkomp.Decision) error {
	for i, info := range list {
		if len(decisions[i]) == 0 {
			continue
		}
		fmt.Fprintf(w, "\ndevice %d, %s\n", info.Number, info.Name)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, d := range decisions[i] {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", d.Name, d.Choice, d.Reason)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// printDevices writes a table; a star marks the default device.
func printDevices(w io.Writer, list []vkomp.DeviceInfo) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NUMBER\tTYPE\tNAME\tMEMORY\tVULKAN\tDRIVER\tUUID")
	for _, info := range list {
		mark, memory := " ", ""
		if info.Default {
			mark = "*"
		}
		if info.Memory > 0 {
			memory = byteCount(info.Memory)
		}
		fmt.Fprintf(table, "%d%s\t%s\t%s\t%s\t%s\t%s\t%s\n", info.Number, mark,
			info.Type, info.Name, orDash(memory), orDash(info.Vulkan), orDash(info.Driver), orDash(info.UUID))
	}
	return table.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
