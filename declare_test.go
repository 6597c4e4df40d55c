package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

func declare(t testing.TB, rt *vkomp.Runtime, items ...vkomp.Arg) {
	t.Helper()
	must(t, rt.DeclareTarget(t.Context(), vkomp.DeclareTarget{Enter: items}))
}

func TestDeclaredStorageIsOnEveryDeviceForGood(t *testing.T) {
	for _, first := range []string{"declared first", "opened first"} {
		t.Run(first, func(t *testing.T) {
			rt, devices := openTwice(t)
			x, y, z := fill(100, 1), fill(100, 2), fill(10, 3)
			if first == "opened first" {
				for _, d := range devices {
					must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(z)}}))
				}
			}
			declare(t, rt, vkomp.To(x[10:20]), vkomp.To(x), vkomp.Alloc(y), vkomp.To(z[:0]))
			for _, d := range devices {
				// Any construct opens a device that is not open.
				must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(z)}}))
				if !present(d, x) || !present(d, y) {
					t.Fatalf("absent on device %d", d.Number())
				}
				if got := onDevice(t, rt, d, x)[99]; got != 1 {
					t.Errorf("x[99] = %d on device %d", got, d.Number())
				}
				setOnDevice(t, rt, d, x, fill(100, 7))
				for _, maps := range [][]vkomp.Arg{{vkomp.From(x)}, {vkomp.Delete(x), vkomp.Delete(y)}, {vkomp.From(x[10:20]).Deleting()}} {
					must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}))
					must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Device: d, Maps: maps}))
				}
				if !present(d, x) || !present(d, y) || onDevice(t, rt, d, x)[99] != 7 {
					t.Errorf("an exit construct has taken declared storage off device %d, or maps have copied to it", d.Number())
				}
				if x[0] != 1 || x[9] != 1 || x[20] != 1 {
					t.Errorf("x = %d: exits of declared storage have copied", x)
				}
				x = x[:100:100]
				must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Device: d, Motions: []vkomp.Arg{vkomp.From(x[50:60])}}))
				if x[49] != 1 || x[50] != 7 {
					t.Errorf("x = … %d %d …", x[49], x[50])
				}
				copy(x, fill(100, 1))
				must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Delete(z)}}))
			}
			// Declaring the same again, or a part of it, changes nothing.
			declare(t, rt, vkomp.To(x))
			declare(t, rt, vkomp.Alloc(x[50:60]))
			if got := onDevice(t, rt, devices[0], x)[99]; got != 7 {
				t.Errorf("x[99] = %d after a second declaration", got)
			}
		})
	}
}

func TestDeclarationOnTheInitialDeviceChangesNothing(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	x := fill(10, 1)
	declare(t, rt, vkomp.To(x))
	declare(t, rt)
	exit(t, rt, vkomp.Delete(x))
	if !present(rt.InitialDevice(), x) || x[0] != 1 {
		t.Error("the host's own storage has gone")
	}
}

func TestDeclarationThatOneDeviceRefusesIsMadeOnNone(t *testing.T) {
	rt, devices := openTwice(t)
	ctx := t.Context()
	x, y := fill(100, 1), fill(100, 1)
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: devices[0], Maps: []vkomp.Arg{vkomp.To(y)}}))
	for what, c := range map[string]struct {
		mapped vkomp.Arg
		delete vkomp.Arg
	}{
		"mapped":           {vkomp.To(x), vkomp.Delete(x)},
		"mapped in part":   {vkomp.To(x[:50]), vkomp.Delete(x[:50])},
		"mapped at an end": {vkomp.To(x[90:]), vkomp.Delete(x[90:])},
	} {
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: devices[1], Maps: []vkomp.Arg{c.mapped}}))
		err := rt.DeclareTarget(ctx, vkomp.DeclareTarget{Label: "globals", Enter: []vkomp.Arg{vkomp.To(x)}})
		refused(t, what, err, vkomp.ErrAssociated, "globals", fmt.Sprintf("device %d", devices[1].Number()))
		if present(devices[0], x) {
			t.Errorf("%s: one device refused the storage and another has it", what)
		}
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: devices[1], Maps: []vkomp.Arg{c.delete}}))
	}
	// It can be declared once the conflicting storage is unmapped.
	declare(t, rt, vkomp.To(x))
	if !present(devices[0], x) || !present(devices[1], x) {
		t.Error("absent after the declaration")
	}
	err := rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(x[50:]), vkomp.To(y)}})
	refused(t, "a declaration beside another", err, vkomp.ErrAssociated)
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: devices[0], Maps: []vkomp.Arg{vkomp.Delete(y)}}))
}

// Another goroutine maps the storage, or a part, on one of the devices and unmaps or deletes it while it is
// declared.
func TestDeclarationBesideMapsIsMadeOnAllDevicesOrNone(t *testing.T) {
	rt, devices := openTwice(t)
	ctx := t.Context()
	warm := fill(10, 1)
	for _, d := range devices {
		must(t, rt.TargetData(ctx, vkomp.TargetData{Device: d, Maps: []vkomp.Arg{vkomp.To(warm)}}, func(context.Context) error { return nil }))
	}
	for round := range 300 {
		x := fill(100, 1)
		part, ending, d := x, vkomp.Release[uint32], devices[round/4%2]
		if round%2 == 1 {
			part = x[20:40]
		}
		if round/2%2 == 1 {
			ending = vkomp.Delete[uint32]
		}
		begin, over := make(chan struct{}), make(chan error)
		go func() {
			close(begin)
			for range round % 7 {
				runtime.Gosched()
			}
			over <- errors.Join(
				rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(part)}}),
				rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{ending(part)}}))
		}()
		<-begin
		err := rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(x)}})
		must(t, <-over)
		if err != nil {
			refused(t, "the declaration", err, vkomp.ErrAssociated, fmt.Sprint("device ", d.Number()))
		}
		for k, d := range devices {
			if declared := present(d, x); declared != (err == nil) {
				t.Fatalf("round %d: DeclareTarget: %v, and the storage is on device %d: %t", round, err, k, declared)
			}
		}
	}
}

// A declaration whose copies cannot be made leaves nothing, on the device that fails and on the one before it.
func TestDeclarationThatFailsLeavesNothing(t *testing.T) {
	faults := vktest.InjectFaults(t)
	rt, devices := openTwice(t, vktest.Staging)
	x := fill(100_000, 1)
	warm := fill(10, 1)
	for _, d := range devices {
		must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(warm)}}))
		must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Release(warm)}}))
	}
	for first := range 2 {
		faults.Fail("vkQueueSubmit", 1+first, -1, vk.ErrorOutOfHostMemory)
		if err := rt.DeclareTarget(t.Context(), vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(x)}}); err == nil {
			t.Fatal("the declaration has not failed")
		}
		faults.Mend()
		for k, d := range devices {
			if present(d, x) {
				t.Errorf("submission %d fails, and the storage stays on device %d", first, k)
			}
		}
	}
	declare(t, rt, vkomp.To(x))
}

func TestDeclarationsThatOverlapInPartAreRefused(t *testing.T) {
	rt := vktest.Open(t)
	x := fill(100, 1)
	one := func(items ...vkomp.Arg) error {
		return rt.DeclareTarget(t.Context(), vkomp.DeclareTarget{Enter: items})
	}
	refused(t, "in one directive", one(vkomp.To(x[:50]), vkomp.To(x[40:])), vkomp.ErrPartialOverlap, "map 1", "another item of the construct, map 0")
	declare(t, rt, vkomp.To(x[20:50]))
	refused(t, "with another", one(vkomp.To(x[40:])), vkomp.ErrPartialOverlap, "the earlier declaration map 0")
	refused(t, "around another", one(vkomp.To(x)), vkomp.ErrPartialOverlap, "the earlier declaration map 0")
	refused(t, "near the device", one(vkomp.To(make([]byte, 8)).Close()), vkomp.ErrInvalidArgument, "map 0", "modifier")
	declare(t, rt, vkomp.To(x[50:]), vkomp.To(x[:20]))
	enter(t, rt, vkomp.To(x[55:60]))
	if d := rt.DefaultDevice(t.Context()); !present(d, x) || !present(d, x[99:]) {
		t.Error("absent when the device was opened")
	}
}

func TestDeviceThatCannotTakeTheDeclarationDoesNotOpen(t *testing.T) {
	begun, ended := 0, 0
	rt := vktest.Open(t, func(o *vkomp.Options) {
		o.Tool.DeviceInitialize = func(ompt.DeviceInitializeEvent) { begun++ }
		o.Tool.DeviceFinalize = func(ompt.DeviceFinalizeEvent) { ended++ }
	})
	x, y := fill(100, 1), fill(100, 1)
	undo := vkomp.DeclareUnchecked(rt, vkomp.To(x[:50]), vkomp.To(x[40:]))
	for range 2 {
		err := rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}})
		refused(t, "the first use", err, vkomp.ErrPartialOverlap, "open device 0")
	}
	if begun != 2 || ended != 2 {
		t.Errorf("the tool heard of %d beginnings and %d ends", begun, ended)
	}
	undo()
	enter(t, rt, vkomp.To(y))
	exit(t, rt, vkomp.Release(y))
}

// An item inside of another one of the directive is part of that one, whose contents are copied if one of them is To.
func TestDeclarationOfPartsCopiesWhatIsTo(t *testing.T) {
	for name, enter := range map[string]func(x []uint32) []vkomp.Arg{
		"a part":          func(x []uint32) []vkomp.Arg { return []vkomp.Arg{vkomp.Alloc(x), vkomp.To(x[40:60])} },
		"the same":        func(x []uint32) []vkomp.Arg { return []vkomp.Arg{vkomp.Alloc(x), vkomp.To(x)} },
		"the same, first": func(x []uint32) []vkomp.Arg { return []vkomp.Arg{vkomp.To(x), vkomp.Alloc(x)} },
		"a part of a part": func(x []uint32) []vkomp.Arg {
			return []vkomp.Arg{vkomp.Alloc(x), vkomp.Alloc(x[:60]), vkomp.To(x[50:55])}
		},
		"around what is To": func(x []uint32) []vkomp.Arg { return []vkomp.Arg{vkomp.To(x[50:55]), vkomp.Alloc(x)} },
	} {
		rt, devices := openTwice(t)
		x := fill(100, 3)
		declare(t, rt, enter(x)...)
		for _, d := range devices {
			must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Device: d, Motions: []vkomp.Arg{vkomp.To(x[:1])}}))
			if got := onDevice(t, rt, d, x); got[52] != 3 {
				t.Errorf("%s: x[52] = %d on device %d", name, got[52], d.Number())
			}
		}
	}
}
