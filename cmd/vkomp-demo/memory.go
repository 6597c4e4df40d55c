package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"text/tabwriter"

	"github.com/vkomp/vkomp"
)

type memoryCommand struct {
	N      *int   `name:"n" short:"n" placeholder:"N" help:"Slices to map, 0 to 20000 (default 300)."`
	Device string `name:"device" placeholder:"D" help:"Device to use: its number, its UUID or part of its name; -1, host or initial for the initial device, all for every one. By default the best there is."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

const (
	memoryDefault = 300
	memoryMost    = 20000
)

// Run fills devices with slices and allocations of many sizes, frees a part of them, and shows the
// use of their memory.
func (c *memoryCommand) Run(sh *shell) (err error) {
	n := chosen(c.N, memoryDefault)
	if err := limit("n", n, 0, memoryMost); err != nil {
		return err
	}
	rt, err := sh.runtimeOrReasons(vkomp.Options{LeakSites: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	devices, err := c.devices(rt)
	if err != nil {
		return err
	}
	// Slices are unmapped even after an interrupt, so that they are not reported as leaks.
	cleanup := context.WithoutCancel(sh.ctx)
	for _, d := range devices {
		p := &population{rt: rt, device: d}
		defer func() { err = errors.Join(err, p.release(cleanup)) }()
		if err := p.fill(sh.ctx, n); err != nil {
			return err
		}
	}
	report := rt.MemoryReport()
	if c.JSON {
		return report.WriteJSON(sh.stdout)
	}
	return printMemory(sh.stdout, report)
}

// devices returns the devices that the flag names.
func (c *memoryCommand) devices(rt *vkomp.Runtime) ([]vkomp.Device, error) {
	switch c.Device {
	case "":
		if d := rt.DefaultDevice(context.Background()); d != (vkomp.Device{}) {
			return []vkomp.Device{d}, nil
		}
		return nil, errors.New("there is no default device: see OMP_DEFAULT_DEVICE and OMP_TARGET_OFFLOAD")
	case "all":
		var all []vkomp.Device
		for number := range rt.NumDevices() + 1 {
			d, err := rt.Device(number)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	}
	d, err := rt.SelectDevice(c.Device)
	return []vkomp.Device{d}, err
}

// population is the command's storage on a device.
type population struct {
	rt     *vkomp.Runtime
	device vkomp.Device
	// mapped are the mapped slices. associated is a slice associated with the first of
	// allocated.
	mapped     [][]byte
	associated []byte
	allocated  []vkomp.DevicePtr
}

// fill maps n slices and unmaps every third one. It allocates memory a quarter as often, and frees
// every second allocation.
func (p *population) fill(ctx context.Context, n int) error {
	random := rand.New(rand.NewPCG(1, 2))
	// A few large sizes among many small ones, from 64 bytes to 256 KiB.
	size := func() int { return 64<<random.IntN(12) + random.IntN(64<<random.IntN(12)) }
	for range n {
		s := make([]byte, size())
		err := p.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: p.device, Maps: []vkomp.Arg{vkomp.To(s)}, NoWait: true})
		if err != nil {
			return err
		}
		p.mapped = append(p.mapped, s)
	}
	if err := p.rt.Taskwait(ctx); err != nil {
		return err
	}
	kept := p.mapped[:0:0]
	for i, s := range p.mapped {
		if i%3 != 0 {
			kept = append(kept, s)
			continue
		}
		if err := p.unmap(ctx, s); err != nil {
			return err
		}
	}
	p.mapped = kept
	for i := range (n + 3) / 4 {
		bytes := size()
		memory, err := p.device.Alloc(ctx, bytes)
		if err != nil {
			return err
		}
		if i%2 != 0 {
			if err := p.device.Free(ctx, memory); err != nil {
				return err
			}
			continue
		}
		p.allocated = append(p.allocated, memory)
		if i == 0 && !p.device.IsInitial() {
			p.associated = make([]byte, bytes)
			if err := p.device.AssociatePtr(ctx, vkomp.HostPtr(p.associated), memory, bytes, 0); err != nil {
				p.associated = nil
				return err
			}
		}
	}
	return p.rt.Taskwait(ctx)
}

func (p *population) unmap(ctx context.Context, s []byte) error {
	return p.rt.TargetExitData(ctx, vkomp.TargetExitData{Device: p.device, Maps: []vkomp.Arg{vkomp.Delete(s)}, NoWait: true})
}

// release unmaps and frees everything.
func (p *population) release(ctx context.Context) error {
	var errs []error
	for _, s := range p.mapped {
		errs = append(errs, p.unmap(ctx, s))
	}
	if p.associated != nil {
		errs = append(errs, p.device.DisassociatePtr(ctx, vkomp.HostPtr(p.associated)))
	}
	for _, memory := range p.allocated {
		errs = append(errs, p.device.Free(ctx, memory))
	}
	return errors.Join(append(errs, p.rt.Taskwait(ctx))...)
}

// printMemory writes a table for each device.
func printMemory(w io.Writer, report vkomp.MemoryReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range report.Devices {
		state := ""
		if !d.Opened {
			state = ", not in use"
		}
		fmt.Fprintf(table, "device %d: %s (%s)%s\n", d.Number, d.Name, d.Type, state)
		for k, h := range d.Heaps {
			fmt.Fprintf(table, "heap %d: %s", k, byteCount(h.Size))
			if h.DeviceLocal {
				fmt.Fprint(table, ", device-local")
			}
			if h.BudgetKnown {
				fmt.Fprintf(table, ", %s of a budget of %s in use by the process", byteCount(h.Usage), byteCount(h.Budget))
			}
			fmt.Fprintln(table)
		}
		if !d.Opened {
			continue
		}
		fmt.Fprintln(table, "  \tIN USE\tAT MOST\tALLOCATIONS\tBLOCKS\tOF\tAT MOST\tFREE\tFRAGMENTATION")
		for k, h := range d.Heaps {
			printUse(table, fmt.Sprintf("heap %d storage", k), h.Storage)
			printUse(table, fmt.Sprintf("heap %d staging", k), h.Staging)
		}
		printUse(table, "total", d.Total)
		for k, h := range d.Heaps {
			if h.Imported.Imports > 0 {
				fmt.Fprintf(table, "  heap %d imported\t%s\t%s\t%d\n", k, byteCount(h.Imported.Bytes), byteCount(h.Imported.PeakBytes), h.Imported.Count)
			}
		}
		for _, t := range []struct {
			what string
			vkomp.MemoryCount
		}{{"mapped", d.Mapped}, {"associated", d.Associated}, {"declared", d.Declared}, {"allocated", d.Allocated}, {"pinned", d.Pinned}} {
			if t.Count > 0 {
				fmt.Fprintf(table, "  %s\t%s\t\t%d\n", t.what, byteCount(t.Bytes), t.Count)
			}
		}
	}
	return table.Flush()
}

// printUse writes a line of the table, unless the memory was never used.
func printUse(w io.Writer, what string, s vkomp.MemoryStats) {
	if s.PeakLiveBytes == 0 && s.PeakBlockBytes == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%d", what, byteCount(s.LiveBytes), byteCount(s.PeakLiveBytes), s.Allocations)
	if s.PeakBlockBytes > 0 {
		fmt.Fprintf(w, "\t%d\t%s\t%s\t%s\t%.0f%%", s.Blocks, byteCount(s.BlockBytes), byteCount(s.PeakBlockBytes), byteCount(s.FreeBytes), 100*s.Fragmentation)
	}
	fmt.Fprintln(w)
}
