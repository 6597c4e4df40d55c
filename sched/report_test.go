package sched

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// populated returns a rig on a discrete device that has memory of all kinds: x is mapped, u is
// declared, z is associated with an allocation beside another one, and y was mapped and is
// gone.
func populated(t *testing.T) (r *rig, end func()) {
	t.Helper()
	r = newRig(t, modeNamed(t, "discrete"), 1)
	x, y, z, u := filled(100, 1), filled(1000, 2), filled(200, 3), filled(300, 4)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	// This allocation gets a block of its own, which is given back to the driver.
	r.free(r.allocate(5 * mebibyte))
	r.s.memory.Storage.Trim()
	p, q := r.allocate(1000), r.allocate(16)
	if err := r.s.Associate(sectionOf(z), p, 64, "z"); err != nil {
		t.Fatal(err)
	}
	declaration := r.region(launch{label: "declare", enter: []arg{to(u)}, included: true})
	declaration.Absent = true
	if err := r.s.Run(context.Background(), declaration); err != nil {
		t.Fatal(err)
	}
	r.s.Declare(declaration.Enter)
	r.run(launch{label: "exit", exit: []arg{from(y)}, included: true})
	return r, func() {
		t.Helper()
		if err := r.s.Disassociate(sectionOf(z)); err != nil {
			t.Error(err)
		}
		r.free(p)
		r.free(q)
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		if err := r.s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMemoryReportCountsEverything(t *testing.T) {
	r, end := populated(t)
	r.d.budget = []vk.HeapBudget{{Budget: 1 << 30, Usage: 5 << 20}, {Budget: 1 << 29, Usage: 4 << 20}}
	got, err := json.MarshalIndent(r.s.Memory(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/memory.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	end()
}

func TestMemoryReportWithoutABudgetAndAfterClose(t *testing.T) {
	r, end := populated(t)
	report := r.s.Memory()
	if h := report.Heaps[0]; h.BudgetKnown || h.Budget != 0 || h.Usage != 0 {
		t.Errorf("a device without budgets has %+v", h)
	}
	// The driver reports budgets of fewer heaps than the device has.
	r.d.budget = []vk.HeapBudget{{Budget: 5, Usage: 3}}
	if report = r.s.Memory(); !report.Heaps[0].BudgetKnown || report.Heaps[0].Budget != 5 || report.Heaps[0].Usage != 3 || report.Heaps[1].BudgetKnown {
		t.Errorf("with the budget of one heap: %+v", report.Heaps)
	}
	r.d.budget = nil
	end()
	closed := r.s.Memory()
	empty := memory.Tally{}
	if closed.Mapped != empty || closed.Associated != empty || closed.Declared != empty || closed.Allocated != empty {
		t.Errorf("after Close: %+v", closed)
	}
	if closed.Total.BlockBytes != 0 || closed.Total.Allocations != 0 || closed.Total.PeakBlockBytes != report.Total.PeakBlockBytes {
		t.Errorf("after Close: %+v", closed.Total)
	}
}

// Storage and staging have blocks in the same heap, and had their peaks at different times: the
// heap's peak is less than the sum of both.
func TestPeakOfAHeapIsThatOfAllItsBlocks(t *testing.T) {
	r := newRig(t, modeNamed(t, "hidden"), 1)
	defer r.close()
	r.free(r.allocate(6 * mebibyte))
	r.s.memory.Storage.Trim()
	x := filled(3*mebibyte, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	report := r.s.Memory()
	h := report.Heaps[0]
	if h.Storage.PeakBlockBytes != 6<<20 || h.Staging.PeakBlockBytes != 4<<20 || h.Total.PeakBlockBytes != 8<<20 || report.Total.PeakBlockBytes != 8<<20 {
		t.Errorf("%+v", report)
	}
	// The bytes in use had their peaks with the blocks.
	if sum := h.Storage.PeakLiveBytes + h.Staging.PeakLiveBytes; sum != 10<<20 || h.Total.PeakLiveBytes != 8<<20 || report.Total.PeakLiveBytes != 8<<20 {
		t.Errorf("%d bytes, %+v", sum, report)
	}
	if h.Total.Blocks != h.Storage.Blocks+h.Staging.Blocks || report.Total.Blocks != h.Total.Blocks {
		t.Errorf("%+v", report)
	}
}

func TestImportedStorageIsReportedByItself(t *testing.T) {
	r := newRig(t, modeNamed(t, "imported"), 1)
	defer r.close()
	x, y := filled(100, 1), filled(2000, 2)
	r.run(launch{label: "before", kernel: "add", args: []arg{tofrom(y)}, constant: 1, included: true})
	r.d.hold()
	r.run(launch{label: "in flight", kernel: "add", args: []arg{tofrom(x)}, constant: 1})
	report := r.s.Memory()
	want := allocation.Imports{Tally: memory.Tally{Count: 1, Bytes: 4096}, PeakBytes: 8192, Imports: 2}
	if got := report.Heaps[0].Imported; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if report.Mapped != (memory.Tally{Count: 1, Bytes: 400}) || report.Total.BlockBytes != 0 || report.Total.PeakBlockBytes != 0 {
		t.Errorf("%+v", report)
	}
	r.d.release()
	r.taskwait()
	want.Tally = memory.Tally{}
	if got := r.s.Memory().Heaps[0].Imported; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Any goroutine may ask for the report at any time.
func TestMemoryReportDuringTasks(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(100, 0)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		done := make(chan struct{})
		var reporters sync.WaitGroup
		for range 2 {
			reporters.Go(func() {
				for {
					report := r.s.Memory()
					if report.Mapped.Count < 1 || report.Mapped.Bytes < 400 {
						t.Errorf("x is not there: %+v", report.Mapped)
						return
					}
					for _, h := range report.Heaps {
						for _, s := range []memory.AllocatorStats{h.Storage, h.Staging, h.Total} {
							if s.LiveBytes > s.BlockBytes || s.PeakLiveBytes < s.LiveBytes || s.PeakBlockBytes < s.BlockBytes || s.Fragmentation < 0 || s.Fragmentation > 1 {
								t.Errorf("figures that cannot be: %+v", s)
								return
							}
						}
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		for i := range 20 {
			y, zero := filled(50+i, 1), filled(50+i, 2)
			r.mix("task", y, zero, zero, 1)
			r.free(r.allocate(1 + i))
		}
		r.taskwait()
		close(done)
		reporters.Wait()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	})
}
