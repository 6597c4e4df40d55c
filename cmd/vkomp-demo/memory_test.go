package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/memory"
)

func TestMemoryIsATableADevice(t *testing.T) {
	storage := vkomp.MemoryStats{Blocks: 2, BlockBytes: 8 << 20, LiveBytes: 3 << 20, PeakLiveBytes: 4 << 20, PeakBlockBytes: 12 << 20,
		Allocations: 20, FreeBytes: 5 << 20, LargestFree: 4 << 20, Fragmentation: 0.2}
	staging := vkomp.MemoryStats{Blocks: 1, BlockBytes: 4 << 20, PeakLiveBytes: 1 << 20, PeakBlockBytes: 4 << 20, FreeBytes: 4 << 20, LargestFree: 4 << 20}
	imported := vkomp.ImportedMemory{MemoryCount: vkomp.MemoryCount{Count: 1, Bytes: 64 << 20}, PeakBytes: 128 << 20, Imports: 7}
	report := vkomp.MemoryReport{Devices: []vkomp.DeviceMemory{
		{Number: 0, Name: "Radeon", Type: "discrete", Opened: true,
			Heaps: []vkomp.HeapMemory{
				{Size: 8 << 30, DeviceLocal: true, BudgetKnown: true, Budget: 7 << 30, Usage: 1 << 30, Total: storage, Storage: storage},
				{Size: 16 << 30, Total: staging, Staging: staging, Imported: imported},
			},
			Total:      vkomp.MemoryStats(memory.AllocatorStats(storage).Plus(memory.AllocatorStats(staging))),
			Mapped:     vkomp.MemoryCount{Count: 17, Bytes: 2 << 20},
			Associated: vkomp.MemoryCount{Count: 1, Bytes: 1000},
			Declared:   vkomp.MemoryCount{Count: 2, Bytes: 600},
			Allocated:  vkomp.MemoryCount{Count: 1, Bytes: 1 << 20},
		},
		{Number: 1, Name: "llvmpipe", Type: "software", Heaps: []vkomp.HeapMemory{{Size: 2 << 30, DeviceLocal: true}}},
		{Number: 2, Name: "host", Type: "initial", Opened: true,
			Heaps:     []vkomp.HeapMemory{},
			Total:     vkomp.MemoryStats{LiveBytes: 500, PeakLiveBytes: 1500, Allocations: 3},
			Allocated: vkomp.MemoryCount{Count: 3, Bytes: 500},
		},
	}}
	var printed bytes.Buffer
	if err := printMemory(&printed, report); err != nil {
		t.Fatal(err)
	}
	golden(t, "memory.golden", printed.Bytes())
	if err := printMemory(full{}, report); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

// memoryOf parses the output of memory -json.
func memoryOf(t *testing.T, args ...string) vkomp.MemoryReport {
	t.Helper()
	var report vkomp.MemoryReport
	decoder := json.NewDecoder(strings.NewReader(succeed(t, append([]string{"memory", "-json"}, args...)...)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatal(err)
	}
	return report
}

// A third of the slices is unmapped, and every second allocation freed.
func TestMemoryCountsWhatIsLeft(t *testing.T) {
	for _, c := range []struct{ n, mapped, associated, allocated int }{
		{0, 0, 0, 0}, {1, 0, 1, 1}, {2, 1, 1, 1}, {300, 200, 1, 38}, {1001, 667, 1, 126},
	} {
		t.Run(fmt.Sprint(c.n), func(t *testing.T) {
			d := memoryOf(t, "-n", fmt.Sprint(c.n)).Devices[0]
			if d.Mapped.Count != c.mapped || d.Associated.Count != c.associated || d.Allocated.Count != c.allocated || d.Declared.Count != 0 {
				t.Errorf("%+v", d)
			}
			if d.Opened != (c.n > 0) || d.Total.Allocations != c.mapped+c.allocated || d.Total.LiveBytes < d.Mapped.Bytes+d.Allocated.Bytes || d.Total.BlockBytes < d.Total.LiveBytes {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestMemoryOfTheDevicesThatAreAskedFor(t *testing.T) {
	for device, want := range map[string][]bool{"0": {true, false}, "host": {false, true}, "-1": {false, true}, "all": {true, true}} {
		t.Run(device, func(t *testing.T) {
			report := memoryOf(t, "-device", device)
			for k, d := range []vkomp.DeviceMemory{report.Devices[0], report.Devices[len(report.Devices)-1]} {
				if used := d.Allocated.Count > 0; used != want[k] || (d.Type == "initial") != (k == 1) {
					t.Errorf("%+v", d)
				}
			}
		})
	}
	if result := demo(t, "memory", "-device", "no-such-device"); result.status != 1 || !strings.Contains(result.stderr, "no-such-device") || result.stdout != "" {
		t.Errorf("%+v", result)
	}
	if result := demo(t, "memory", "-n", "20001"); result.status != 1 || !strings.Contains(result.stderr, "-n 20001 is out of range: 0 to 20000") || result.stdout != "" {
		t.Errorf("%+v", result)
	}
}

// A command that ends early leaves nothing behind: a leak would be another error.
func TestInterruptedMemoryCommandLeaksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	leaks := goleak.IgnoreCurrent()
	status := run(shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}, []string{"memory"})
	goleak.VerifyNone(t, leaks)
	if status != 1 || !strings.Contains(stderr.String(), context.Canceled.Error()) || strings.Contains(stderr.String(), "still allocated") || stdout.Len() > 0 {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout.String(), stderr.String())
	}
	// Likewise when its output cannot be written.
	status = run(shell{ctx: t.Context(), stdout: full{}, stderr: &stderr, open: vkomp.Open}, []string{"memory"})
	if status != 1 || !strings.Contains(stderr.String(), errFull.Error()) || strings.Contains(stderr.String(), "still allocated") {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
}
