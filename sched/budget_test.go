package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/vk"
)

// budgetedDevice reports a budget for each of two heaps, and how much of it is in use. On a
// discrete device, memory that the host sees is in heap 1.
type budgetedDevice struct {
	*fakeDevice
	budget [2]uint64
	asked  int
}

func (d *budgetedDevice) MemoryBudget() ([]vk.HeapBudget, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	told := []vk.HeapBudget{{Budget: d.budget[0]}, {Budget: d.budget[1]}}
	for _, b := range d.blocks {
		heap := 0
		if d.props.Type == vk.DeviceDiscrete && b.host != nil {
			heap = 1
		}
		if !b.imported {
			told[heap].Usage += b.size
		}
	}
	return told, true
}

func modeNamed(t *testing.T, name string) memoryMode {
	t.Helper()
	i := slices.IndexFunc(memoryModes, func(m memoryMode) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("no memory mode %q", name)
	}
	return memoryModes[i]
}

// newBudgetRig returns a rig on a device whose heaps have these budgets in MiB.
func newBudgetRig(t *testing.T, mode string, budget, other uint64) (*rig, *budgetedDevice) {
	t.Helper()
	m := modeNamed(t, mode)
	d := &budgetedDevice{fakeDevice: newFakeDevice(t, m.memory, 1), budget: [2]uint64{budget << 20, other << 20}}
	s, err := New(d, Options{Domain: rigDomain, HideHostVisible: m.hidden, Sharing: m.share})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, d: d.fakeDevice, s: s, kernels: make(map[string]*kernel.Kernel), share: m.share == ShareAll}
	r.scope = r.graph.NewScope()
	for name := range fakeKernels {
		r.kernels[name] = loadKernel(t, name)
	}
	return r, d
}

const mebibyte = 1 << 20 / 4 // in words

func TestBlockBeyondTheBudgetIsRefusedWithTheFigures(t *testing.T) {
	r, d := newBudgetRig(t, "unified", 6, 0)
	defer r.close()
	p := r.allocate(3 * mebibyte) // from a block of 4 MiB
	// The next block would have 4 MiB too, and is beyond the budget: a smaller one that fits
	// takes its place.
	q := r.allocate(2 * mebibyte)
	if n := len(d.blocks); n != 2 {
		t.Fatalf("%d blocks, want 2", n)
	}
	creates := d.creates
	_, err := r.s.Allocate(1<<20 + 1)
	if !errors.Is(err, memory.ErrOutOfMemory) {
		t.Fatalf("got %v", err)
	}
	for _, figure := range []string{
		"allocate 1048577 bytes (5242880 of 6291456 bytes in use in 2 blocks)",
		"a block of 1048640 bytes is beyond the budget",
		`heap 0 of device "fake" has 8589934592 bytes, 6291456 of them in blocks of vkomp, 6291456 bytes of a budget of 6291456 in use by the process`,
	} {
		if !strings.Contains(err.Error(), figure) {
			t.Errorf("%q is not in %v", figure, err)
		}
	}
	if d.creates != creates {
		t.Error("the driver was asked for a block beyond the budget")
	}
	asked := d.asked
	r.free(r.allocate(mebibyte))
	if d.asked != asked {
		t.Error("the budget was asked for where no block is made")
	}
	// A budget that has shrunk below what is in use leaves nothing to allocate.
	d.budget[0] = 1
	if _, err := r.s.Allocate(2 << 20); !errors.Is(err, memory.ErrOutOfMemory) {
		t.Errorf("above a budget that is used up: %v", err)
	}
	d.budget[0] = 64 << 20
	r.free(r.allocate(2 * mebibyte))
	r.free(p)
	r.free(q)
}

func TestDeviceWithoutBudgetIsAsked(t *testing.T) {
	r := newRig(t, modeNamed(t, "unified"), 1)
	defer r.close()
	r.d.props.MemoryHeaps[0].Size = 1
	r.free(r.allocate(5 * mebibyte))
	r.d.create = func(int) error { return errBlockMemory }
	_, err := r.s.Allocate(64 << 20)
	if !errors.Is(err, memory.ErrOutOfMemory) || !errors.Is(err, vk.ErrOutOfMemory) || !strings.Contains(err.Error(), "heap 0 of device") || !strings.Contains(err.Error(), "budget unknown") {
		t.Errorf("got %v", err)
	}
	// Only want of memory is answered by giving unused blocks back and trying again.
	r.d.create = func(int) error { return errLost }
	_, err = r.s.Allocate(64 << 20)
	if !errors.Is(err, vk.ErrDeviceLost) || errors.Is(err, memory.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	r.d.create = nil
}

func TestHeapsHaveBudgetsOfTheirOwn(t *testing.T) {
	r, d := newBudgetRig(t, "discrete", 64, 0)
	defer r.close()
	x := filled(100, 7)
	r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	err := r.tryTransfer(launch{label: "update", included: true}, update(transfer.UpdateTo, x))
	if !errors.Is(err, memory.ErrOutOfMemory) || !strings.Contains(err.Error(), "heap 1 of device") {
		t.Errorf("staging beyond its budget: %v", err)
	}
	// There is memory for the storage of y, and none for the staging that its copy needs.
	y := filled(100, 8)
	before := r.state()
	enter := r.region(launch{label: "enter", enter: []arg{alloc(x), to(y)}, included: true})
	if err := r.s.Run(context.Background(), enter); !errors.Is(err, memory.ErrOutOfMemory) || !strings.Contains(err.Error(), "heap 1 of device") {
		t.Errorf("staging beyond its budget: %v", err)
	}
	if after := r.state(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	d.budget = [2]uint64{0, 64 << 20}
	r.transfer(launch{label: "update", included: true}, update(transfer.UpdateTo, x))
	if _, err := r.s.Allocate(16 << 20); !errors.Is(err, memory.ErrOutOfMemory) || !strings.Contains(err.Error(), "heap 0 of device") {
		t.Errorf("storage beyond its budget: %v", err)
	}
	x[0] = 0
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(100, 7)...)
}

// Blocks that one allocator keeps although they are empty are given back when another needs
// their memory: first those of staging, for storage.
func TestEmptyStagingMakesRoomForStorage(t *testing.T) {
	r, d := newBudgetRig(t, "hidden", 8, 0)
	defer r.close()
	x := filled(100, 7)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	if report := r.s.Memory(); report.Heaps[0].Staging.Blocks != 1 || report.Heaps[0].Storage.Blocks != 1 || report.Heaps[0].Usage != 8<<20 {
		t.Fatalf("%+v", report)
	}
	p, err := r.s.Allocate(4 << 20)
	if err != nil {
		t.Fatalf("with an empty block of staging: %v", err)
	}
	if report := r.s.Memory(); report.Heaps[0].Staging.Blocks != 0 || report.Heaps[0].Staging.TrimmedBlocks != 1 {
		t.Errorf("%+v", report)
	}
	// The other way round: the copy to the host needs staging, for which there is room only
	// when p's block is empty.
	exit := r.region(launch{label: "exit", exit: []arg{from(x)}, included: true})
	if err := r.s.Run(context.Background(), exit); !errors.Is(err, memory.ErrOutOfMemory) {
		t.Fatalf("without room for staging: %v", err)
	}
	r.free(p)
	if n := len(d.blocks); n != 2 {
		t.Fatalf("%d blocks, want those of x and of nothing", n)
	}
	clear(x)
	if err := r.s.Run(context.Background(), exit); err != nil {
		t.Fatalf("with an empty block of storage: %v", err)
	}
	r.expect("x", x, filled(100, 7)...)
}

// state describes the memory of a scheduler, without blocks that are kept though they are
// empty.
func (r *rig) state() string {
	r.t.Helper()
	var b strings.Builder
	report := r.s.Memory()
	fmt.Fprintln(&b, report.Mapped, report.Associated, report.Declared, report.Allocated, report.Total.LiveBytes, report.Total.Allocations)
	for _, h := range report.Heaps {
		fmt.Fprintln(&b, h.Storage.LiveBytes, h.Staging.LiveBytes, h.Imported.Tally)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for p := range r.s.presence.table.All() {
		count, infinite := p.Count()
		state := stateOf(p)
		fmt.Fprintln(&b, p.Section, count, infinite, p.Storage.Block.ID, p.Storage.Offset, state.Keepers(), len(state.holders), state.residents, len(state.parked))
	}
	if err := errors.Join(r.s.presence.table.Validate(), r.s.memory.Storage.Validate(), r.s.memory.Staging.Validate()); err != nil {
		r.t.Error(err)
	}
	return b.String()
}

// A construct that fails for want of memory has given unused blocks back, and has changed
// nothing else.
func TestOutOfMemoryLeavesEveryCountAndContent(t *testing.T) {
	for _, mode := range memoryModes {
		for _, limit := range []string{"driver", "budget"} {
			t.Run(mode.name+"/"+limit, func(t *testing.T) {
				r, d := newBudgetRig(t, mode.name, 64, 64)
				defer r.close()
				x, y, z := filled(100, 1), filled(200, 2), filled(300, 3)
				held, p, empty := r.allocate(400), r.allocate(400), r.allocate(5*mebibyte)
				r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
				r.run(launch{label: "enter x again", enter: []arg{to(x)}, included: true})
				if err := r.s.Associate(sectionOf(z), held, 0, "z"); err != nil {
					t.Fatal(err)
				}
				r.transfer(launch{label: "to the device", included: true}, update(transfer.UpdateTo, z), toDevice(p, filled(400, 4)))
				r.run(launch{label: "change", kernel: "add", args: []arg{alloc(x)}, constant: 10, included: true})
				x[0], y[0], z[0] = 100, 200, 300 // no copy may bring these to the device
				r.free(empty)
				if blocks := r.s.Memory().Heaps[0].Storage; blocks.Blocks < 2 {
					t.Fatalf("no block is kept empty: %+v", blocks)
				}
				before := r.state()

				if limit == "driver" {
					r.d.set(func() { r.d.create = func(int) error { return errBlockMemory } })
				} else {
					d.budget = [2]uint64{1, 1}
				}
				if _, err := r.s.Allocate(1 << 30); !errors.Is(err, memory.ErrOutOfMemory) {
					t.Errorf("allocation: %v", err)
				}
				if blocks := r.s.Memory().Heaps[0].Storage; blocks.TrimmedBytes < 5<<20 {
					t.Errorf("caches were not trimmed: %+v", blocks)
				}
				// The construct needs three blocks, and there is no memory for the last of
				// them.
				u, v, large := filled(50, 5), filled(60, 6), array32(5*mebibyte)
				always := func(s []uint32) arg { return arg{s: s, kind: memory.MapToFrom, always: true} }
				construct := launch{label: "no place", kernel: "stencil", args: []arg{tofrom(large), always(x), to(u), to(v)}}
				data := launch{label: "no place for data", enter: []arg{to(u), always(y), always(z), to(large)}}
				if mode.share == ShareAll {
					// Storage that is used in place needs no memory of the device: the target
					// construct would succeed.
					construct = data
				}
				for _, l := range []launch{construct, data} {
					l.included = true
					if err := r.s.Run(context.Background(), r.region(l)); !errors.Is(err, memory.ErrOutOfMemory) {
						t.Errorf("%s: %v", l.label, err)
					}
					l.included = false
					r.run(l)
					if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, memory.ErrOutOfMemory) {
						t.Errorf("%s, deferred: %v", l.label, err)
					}
				}
				if after := r.state(); after != before {
					t.Errorf("before:\n%safter:\n%s", before, after)
				}

				r.d.set(func() { r.d.create = nil })
				d.budget = [2]uint64{64 << 20, 64 << 20}
				clear(x)
				clear(y)
				clear(z)
				got := filled(400, 0)
				r.transfer(launch{label: "to the host", included: true}, update(transfer.UpdateFrom, z), toHost(got, p))
				r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
				r.expect("x", x, filled(100, 0)...) // x is mapped twice, so this exit copies nothing
				r.expect("y", y, filled(200, 2)...)
				r.expect("z", z, filled(300, 3)...)
				r.expect("memory at p", got, filled(400, 4)...)
				r.run(launch{label: "exit x again", exit: []arg{from(x)}, included: true})
				r.expect("x", x, filled(100, 11)...)
				if err := r.s.Disassociate(sectionOf(z)); err != nil {
					t.Error(err)
				}
				r.free(held)
				r.free(p)
			})
		}
	}
}
