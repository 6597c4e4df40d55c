package sched

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
)

// routine is a memory routine that copies between x and device memory.
func (r *rig) routine(kind transfer.Kind, x []uint32, p Pointer) error {
	of := r.region(launch{label: "routine", included: true})
	of.Transfers = []transfer.Request{{Kind: kind, Host: sectionOf(x), Dst: p, Src: p, Size: uint64(4 * len(x))}}
	return r.s.Run(context.Background(), of)
}

// On a device whose memory the host reads and writes, constructs that copy a few bytes make no task
// while there is none in flight, and do the same as tasks.
func TestSmallCopiesOfAnIdleDeviceNeedNoTask(t *testing.T) {
	for _, mode := range append(slices.Clone(memoryModes), pinnedModes...) {
		for _, mode.general = range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/general %v", mode.name, mode.general), func(t *testing.T) {
				r := newRig(t, mode, 1)
				defer r.close()
				x, y := filled(100, 7), filled(50, 8)
				if mode.pinned {
					x = r.pinnedArray(mode, 100, 7)
					defer r.unpin(x)
				}
				r.run(launch{label: "enter", enter: []arg{to(x), alloc(y)}, included: true})
				clear(x)
				r.run(launch{label: "enter inside", enter: []arg{to(x[10:20]), to(y[:5])}, included: true})
				r.run(launch{label: "exit inside", exit: []arg{from(x[10:20]), from(y[:5])}, included: true})
				if !slices.Equal(x, make([]uint32, 100)) {
					t.Errorf("the exit of present storage has copied it: %v", x)
				}
				r.run(launch{label: "exit", exit: []arg{from(x), {s: y, kind: memory.MapRelease}}, included: true})
				if !slices.Equal(x, filled(100, 7)) {
					t.Errorf("x came back as %v", x)
				}
				p, err := r.s.Allocate(400)
				if err != nil {
					t.Fatal(err)
				}
				clear(y)
				if err := errors.Join(r.routine(transfer.CopyToDevice, x[:50], p.Add(40)), r.routine(transfer.CopyToHost, y, p.Add(40)), r.s.Free(p)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(y, x[:50]) {
					t.Errorf("y came back as %v", y)
				}
				stats := r.s.Stats()
				if stats.BytesToDevice != 600 || stats.BytesFromDevice != 600 {
					t.Errorf("%d bytes to the device, %d back, want 600 each", stats.BytesToDevice, stats.BytesFromDevice)
				}
				// Under the race detector pools drop memory at random.
				atOnce := !mode.general && !mode.hidden && mode.memory == unifiedMemory
				if made := len(r.s.spares()); atOnce && made > 0 {
					t.Errorf("%d tasks were made", made)
				}
			})
		}
	}
}

// Storage that comes and goes without a copy needs no task however large it is, wherever the device has it.
func TestStorageOfAnIdleDeviceComesAndGoesWithoutATask(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x, y := filled(50_000, 7), filled(4, 8)
			r.run(launch{label: "enter", enter: []arg{alloc(x), alloc(y)}, included: true})
			if n := len(r.s.Blocks()); n != 2 {
				t.Errorf("%d blocks are present", n)
			}
			r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}, {s: y, kind: memory.MapRelease}}, included: true})
			r.checkEmpty()
			if made := len(r.s.spares()); mode.share == ShareNothing && made > 0 {
				t.Errorf("%d tasks were made", made)
			}
		})
	}
}

// What is refused leaves all as it was, though the host could do it at once.
func TestWhatIsNotDoneAtOnceLeavesNothing(t *testing.T) {
	errSealed := errors.New("sealed")
	overlapping := make([]uint32, 32)
	for name, c := range map[string]struct {
		of   func(x []uint32) launch
		want error
	}{
		"entry": {func(x []uint32) launch { return launch{enter: []arg{to(x)}} }, errSealed},
		"exit":  {func(x []uint32) launch { return launch{exit: []arg{from(overlapping[:16])}} }, errSealed},
		"entry of a part": {func(x []uint32) launch {
			return launch{enter: []arg{to(x), to(overlapping[8:24])}}
		}, memory.ErrPartialOverlap},
		"exit of a part": {func(x []uint32) launch {
			return launch{exit: []arg{from(overlapping[8:24])}}
		}, memory.ErrPartialOverlap},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[0], 1)
			defer r.close()
			r.run(launch{label: "enter", enter: []arg{to(overlapping[:16])}, included: true})
			l := c.of(filled(16, 3))
			l.label, l.included = name, true
			of := r.region(l)
			if errors.Is(c.want, errSealed) {
				of.Scope = r.graph.NewScope()
				of.Scope.Seal(errSealed)
			}
			before, blocks := r.s.Stats(), r.s.Blocks()
			if err := r.s.Run(context.Background(), of); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			after := r.s.Stats()
			if after.BytesToDevice != before.BytesToDevice || after.BytesFromDevice != before.BytesFromDevice || after.Storage.LiveBytes != before.Storage.LiveBytes || !slices.Equal(r.s.Blocks(), blocks) {
				t.Errorf("before %+v, %v\nafter %+v, %v", before, blocks, after, r.s.Blocks())
			}
			r.run(launch{label: "exit", exit: []arg{{s: overlapping[:16], kind: memory.MapDelete}}, included: true})
		})
	}
}

// A copy that is refused copies nothing.
func TestCopiesThatAreRefusedAtOnceCopyNothing(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	p, err := r.s.Allocate(64)
	if err != nil {
		t.Fatal(err)
	}
	x, y := filled(16, 3), make([]uint32, 16)
	if err := r.routine(transfer.CopyToDevice, filled(16, 5), p); err != nil {
		t.Fatal(err)
	}
	if err := r.routine(transfer.CopyToDevice, x, p.Add(4)); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("a copy past the end: %v", err)
	}
	if err := r.routine(transfer.CopyToHost, y, p); err != nil || !slices.Equal(y, filled(16, 5)) {
		t.Errorf("%v, and the memory has %v", err, y)
	}
	if err := r.s.Free(p); err != nil {
		t.Fatal(err)
	}
	if err := r.routine(transfer.CopyToHost, x, p); !errors.Is(err, ErrInvalidPointer) || !slices.Equal(x, filled(16, 3)) {
		t.Errorf("a copy of memory that is freed: %v, x is %v", err, x)
	}
}

// A copy between host storage and the device's view of it may overlap, and is refused whether a task is in flight or not.
func TestOverlappingCopiesOfSharedStorageAreRefused(t *testing.T) {
	r := newRig(t, modeNamed(t, "unified"), 1)
	defer r.close()
	x := filled(16, 1)
	for i := range x {
		x[i] = uint32(i)
	}
	want := slices.Clone(x)
	g := r.region(launch{label: "enter", enter: []arg{to(x)}, included: true})
	g.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	p, _ := r.s.MappedPointer(sectionOf(x))
	for _, kind := range []transfer.Kind{transfer.CopyToDevice, transfer.CopyToHost} {
		if err := r.routine(kind, x[:8], p.Add(16)); !errors.Is(err, ErrOverlap) || !slices.Equal(x, want) {
			t.Errorf("kind %d: %v, and x is %v", kind, err, x)
		}
		if err := r.routine(kind, x[:8], p); err != nil || !slices.Equal(x, want) {
			t.Errorf("kind %d, to where the bytes are: %v, and x is %v", kind, err, x)
		}
		if err := r.routine(kind, x[:4], p.Add(16)); err != nil {
			t.Errorf("kind %d, side by side: %v", kind, err)
		}
		if kind == transfer.CopyToDevice {
			copy(want[4:8], want[:4])
		}
		if !slices.Equal(x, want) {
			t.Errorf("kind %d: x is %v, want %v", kind, x, want)
		}
	}
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
}

// Items of a construct that overlap are copied where they lie, each byte once.
func TestOverlappingItemsAreCopiedAtOnce(t *testing.T) {
	for _, mode := range memoryModes {
		for _, mode.general = range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/general %v", mode.name, mode.general), func(t *testing.T) {
				r := newRig(t, mode, 1)
				defer r.close()
				x := make([]uint32, 16)
				for i := range x {
					x[i] = uint32(i) + 1
				}
				want := slices.Clone(x[:12])
				r.run(launch{label: "enter", enter: []arg{alloc(x), to(x[:8]), to(x[4:12])}, included: true})
				clear(x)
				r.run(launch{label: "exit", exit: []arg{from(x[:12])}, included: true})
				if !slices.Equal(x[:12], want) {
					t.Errorf("x came back as %v", x)
				}
				if n := r.s.Stats().BytesToDevice; n != 48 {
					t.Errorf("%d bytes were copied to the device, want 48", n)
				}
			})
		}
	}
}

// A copy that could be made at once reads host storage after a copy in flight has written it.
func TestCopiesAtOnceComeAfterThoseInFlight(t *testing.T) {
	for seed := range uint64(deviceOrders) {
		r := newRig(t, memoryModes[0], seed)
		x, y := make([]uint32, 16), make([]uint32, 16)
		p, err := r.s.Allocate(64)
		if err != nil {
			t.Fatal(err)
		}
		q, err := r.s.Allocate(64)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.routine(transfer.CopyToDevice, filled(16, 7), p); err != nil {
			t.Fatal(err)
		}
		r.d.hold()
		deferred := r.region(launch{label: "deferred"})
		deferred.Transfers = []transfer.Request{{Kind: transfer.CopyToHost, Host: sectionOf(x), Src: p, Size: 64}}
		if err := r.s.Run(context.Background(), deferred); err != nil {
			t.Fatal(err)
		}
		before := r.graph.Counts().Tasks
		copied := make(chan error)
		go func() { copied <- r.routine(transfer.CopyToDevice, x, q) }()
		for r.graph.Counts().Tasks == before {
			runtime.Gosched()
		}
		r.s.Stats() // takes the lock, so that a copy which is made at once is over
		r.d.release()
		if err := errors.Join(<-copied, r.scope.Wait(context.Background(), nil), r.routine(transfer.CopyToHost, y, q)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(y, filled(16, 7)) {
			t.Errorf("%v was copied before the copy in flight had written it", y)
		}
		if err := errors.Join(r.s.Free(p), r.s.Free(q)); err != nil {
			t.Fatal(err)
		}
		r.close()
	}
}
