package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

func enter(t testing.TB, rt *vkomp.Runtime, maps ...vkomp.Arg) {
	t.Helper()
	must(t, rt.TargetEnterData(context.Background(), vkomp.TargetEnterData{Maps: maps}))
}

func exit(t testing.TB, rt *vkomp.Runtime, maps ...vkomp.Arg) {
	t.Helper()
	must(t, rt.TargetExitData(context.Background(), vkomp.TargetExitData{Maps: maps}))
}

func update(t testing.TB, rt *vkomp.Runtime, motions ...vkomp.Arg) {
	t.Helper()
	must(t, rt.TargetUpdate(context.Background(), vkomp.TargetUpdate{Motions: motions}))
}

// onDevice returns the corresponding storage of s, all of which must be present.
func onDevice[T any](t testing.TB, rt *vkomp.Runtime, d vkomp.Device, s []T) []T {
	t.Helper()
	p := d.MappedPtr(vkomp.HostPtr(s))
	if p.IsNil() {
		t.Fatalf("%d elements are not on the device", len(s))
	}
	b := contents(t, rt, p, len(s)*int(unsafe.Sizeof(s[0])))
	return slices.Clone(unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(s)))
}

// setOnDevice changes the corresponding storage of s.
func setOnDevice[T any](t testing.TB, rt *vkomp.Runtime, d vkomp.Device, s, to []T) {
	t.Helper()
	p := d.MappedPtr(vkomp.HostPtr(s))
	if p.IsNil() {
		t.Fatalf("%d elements are not on the device", len(s))
	}
	memcpy(t, rt, p, vkomp.HostPtr(to), len(to)*int(unsafe.Sizeof(to[0])))
}

func fill(n int, v uint32) []uint32 { return slices.Repeat([]uint32{v}, n) }

func present[T any](d vkomp.Device, s []T) bool { return d.IsPresent(vkomp.HostPtr(s)) }

// mapTypes has, for each map type of OpenMP, what a construct with it does at the beginning
// or the end.
var mapTypes = []struct {
	name string
	of   func([]uint32) vkomp.Arg
	// enters and exits say whether target enter data and target exit data allow the type.
	enters, exits bool
	// to says that entering copies to the device, from that exiting copies to the host.
	to, from, deletes bool
}{
	{"to", vkomp.To[uint32], true, true, true, false, false},
	{"from", vkomp.From[uint32], true, true, false, true, false},
	{"tofrom", vkomp.ToFrom[uint32], true, true, true, true, false},
	{"alloc", vkomp.Alloc[uint32], true, true, false, false, false},
	{"release", vkomp.Release[uint32], false, true, false, false, false},
	{"delete", vkomp.Delete[uint32], false, true, false, false, true},
}

func TestEnterDataCountsAndCopiesByTheTable(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		for _, m := range mapTypes {
			if !m.enters {
				continue
			}
			for _, always := range []bool{false, true} {
				x := fill(100, 1)
				item := m.of(x)
				if always {
					item = item.Always()
				}
				enter(t, rt, item)
				if !present(d, x[99:]) {
					t.Fatalf("%s: absent after target enter data", m.name)
				}
				if m.to && onDevice(t, rt, d, x)[99] != 1 {
					t.Errorf("%s: nothing was copied to new storage", m.name)
				}
				setOnDevice(t, rt, d, x, fill(100, 2))
				// The storage is present by now, so it is only counted.
				enter(t, rt, item)
				want := uint32(2)
				if m.to && always {
					want = 1
				}
				if got := onDevice(t, rt, d, x)[99]; got != want {
					t.Errorf("%s, always %v: %d on the device after the second construct, want %d", m.name, always, got, want)
				}
				exit(t, rt, vkomp.Release(x))
				if !present(d, x) {
					t.Errorf("%s: gone with one holder left", m.name)
				}
				exit(t, rt, vkomp.Release(x))
				if present(d, x) {
					t.Errorf("%s: there without a holder", m.name)
				}
				if x[99] != 1 {
					t.Errorf("%s: the host has %d, though nothing copied there", m.name, x[99])
				}
			}
		}
	})
}

func TestExitDataCountsAndCopiesByTheTable(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		for _, m := range mapTypes {
			for _, modifier := range []string{"", "always", "deleting"} {
				for holders := range 2 {
					x := fill(100, 1)
					enter(t, rt, vkomp.To(x))
					for range holders {
						enter(t, rt, vkomp.To(x))
					}
					setOnDevice(t, rt, d, x, fill(100, 2))
					item := m.of(x)
					switch modifier {
					case "always":
						item = item.Always()
					case "deleting":
						item = item.Deleting()
					}
					exit(t, rt, item)
					gone := holders == 0 || m.deletes || modifier == "deleting"
					copied := m.from && (holders == 0 || modifier != "")
					if present(d, x) == gone {
						t.Errorf("%s %s with %d more holders: present %v afterwards", modifier, m.name, holders, !gone)
					}
					want := uint32(1)
					if copied {
						want = 2
					}
					if x[0] != want || x[99] != want {
						t.Errorf("%s %s with %d more holders: the host has %d and %d, want %d", modifier, m.name, holders, x[0], x[99], want)
					}
					// Absent storage is ignored.
					exit(t, rt, vkomp.Delete(x))
					exit(t, rt, item)
					if x[0] != want {
						t.Errorf("%s: an exit of what is absent has changed the host", m.name)
					}
				}
			}
		}
		if n := rt.Stats().Storage.Allocations; n != 0 {
			t.Errorf("%d allocations left", n)
		}
	})
}

func TestConstructCountsABlockOnce(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(100, 1)
		enter(t, rt, vkomp.Alloc(x), vkomp.To(x[10:20]), vkomp.To(x), vkomp.Alloc(x[:0]))
		if got := onDevice(t, rt, d, x)[50]; got != 1 {
			t.Errorf("%d on the device: alloc beside to has kept it from being copied", got)
		}
		exit(t, rt, vkomp.Release(x[90:]), vkomp.Release(x[:10]))
		if present(d, x) {
			t.Error("one construct with four items of a block counted more than once")
		}
	})
}

func TestDataDirectivesRefuseWhatIsNoItemOfTheirs(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		x := fill(10, 1)
		enterData := func(a vkomp.Arg) error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Label: "it", Maps: []vkomp.Arg{vkomp.To(x), a}})
		}
		exitData := func(a vkomp.Arg) error {
			return rt.TargetExitData(ctx, vkomp.TargetExitData{Label: "it", Maps: []vkomp.Arg{vkomp.From(x), a}})
		}
		updates := func(a vkomp.Arg) error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Label: "it", Motions: []vkomp.Arg{vkomp.To(x), a}})
		}
		region := func(a vkomp.Arg) error {
			return rt.TargetData(ctx, vkomp.TargetData{Label: "it", Maps: []vkomp.Arg{vkomp.To(x), a}}, nothing)
		}
		declares := func(a vkomp.Arg) error {
			return rt.DeclareTarget(ctx, vkomp.DeclareTarget{Label: "it", Enter: []vkomp.Arg{vkomp.To(x), a}})
		}
		p := vkomp.HostPtr(x)
		for _, c := range []struct {
			what  string
			do    func(vkomp.Arg) error
			item  vkomp.Arg
			texts string
		}{
			{"enter release", enterData, vkomp.Release(x), "map 1|release"},
			{"enter delete", enterData, vkomp.Delete(x), "map 1|delete"},
			{"enter deleting", enterData, vkomp.To(x).Deleting(), "map 1|delete modifier"},
			{"enter a value", enterData, vkomp.Value(1), "map 1 is a value"},
			{"enter an address", enterData, vkomp.AddressOf(x), "map 1 is the address"},
			{"enter a device pointer", enterData, vkomp.IsDevicePtr(p), "map 1 is a device pointer"},
			{"enter a device address", enterData, vkomp.HasDeviceAddr[uint32](p, 1), "map 1 is a device address"},
			{"enter an implicit slice", enterData, vkomp.Implicit(x), "map 1 is an implicit slice"},
			{"enter a pointer value", enterData, vkomp.Value(p), "map 1 is a pointer value"},
			{"enter nothing", enterData, vkomp.Arg{}, "map 1 is the zero Arg"},
			{"enter Go pointers", enterData, vkomp.To([]*int{nil}), "map 1|slice of *int|is a ptr"},
			{"enter a section with gaps", enterData, vkomp.To(x).Section(vkomp.Span{Count: 3, Stride: 2}), "map 1|not contiguous"},
			{"enter beyond the end", enterData, vkomp.To(x).Section(vkomp.Span{Start: 8, Count: 3}), "map 1|[8:3:1]"},
			{"exit self", exitData, vkomp.From(x).Self(), "map 1|self"},
			{"exit a value", exitData, vkomp.Value(1), "map 1 is a value"},
			{"exit an implicit slice", exitData, vkomp.Implicit(x), "map 1 is an implicit slice"},
			{"exit a modified value", exitData, vkomp.Value(1).Always(), "map 1 has a modifier"},
			{"exit a value near the device", exitData, vkomp.Value(1).Close(), "map 1 has a modifier"},
			{"exit a section of an implicit slice", exitData, vkomp.Implicit(x).Section(vkomp.Span{Count: 1}), "map 1 has a modifier or a section"},
			{"exit a section with gaps", exitData, vkomp.From(x).Section(vkomp.Span{Count: 3, Stride: 2}), "map 1|not contiguous"},
			{"update tofrom", updates, vkomp.ToFrom(x), "motion 1|tofrom"},
			{"update alloc", updates, vkomp.Alloc(x), "motion 1|alloc"},
			{"update release", updates, vkomp.Release(x), "motion 1|release"},
			{"update a value", updates, vkomp.Value(1), "motion 1 is a value"},
			{"update always", updates, vkomp.To(x).Always(), "motion 1|modifier"},
			{"update self", updates, vkomp.To(x).Self(), "motion 1|modifier"},
			{"update deleting", updates, vkomp.From(x).Deleting(), "motion 1|modifier"},
			{"update Go pointers", updates, vkomp.From([]string{""}), "motion 1|string"},
			{"region of release", region, vkomp.Release(x), "map 1|release"},
			{"region of a value", region, vkomp.Value(1), "map 1 is a value"},
			{"region deleting", region, vkomp.From(x).Deleting(), "map 1|delete modifier"},
			{"declare from", declares, vkomp.From(x), "map 1|from"},
			{"declare always", declares, vkomp.To(x).Always(), "map 1|modifier"},
			{"declare present", declares, vkomp.To(x).Present(), "map 1|modifier"},
			{"declare self", declares, vkomp.To(x).Self(), "map 1|modifier"},
			{"declare a value", declares, vkomp.Value(1), "map 1 is a value"},
		} {
			refused(t, c.what, c.do(c.item), vkomp.ErrInvalidArgument, append(strings.Split(c.texts, "|"), "it")...)
		}
		if present(d, x) && !d.IsInitial() {
			t.Error("a construct that was refused has mapped something")
		}
		other, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
		must(t, err)
		defer other.Close()
		refused(t, "a device of another runtime", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: other.InitialDevice(), Maps: []vkomp.Arg{vkomp.To(x)}}), vkomp.ErrInvalidDevice, "another runtime")
		why := errors.New("no more time")
		ended, end := context.WithCancelCause(ctx)
		end(why)
		for what, err := range map[string]error{
			"enter":   rt.TargetEnterData(ended, vkomp.TargetEnterData{}),
			"exit":    rt.TargetExitData(ended, vkomp.TargetExitData{}),
			"update":  rt.TargetUpdate(ended, vkomp.TargetUpdate{}),
			"declare": rt.DeclareTarget(ended, vkomp.DeclareTarget{}),
		} {
			refused(t, what+" with a context that ended", err, why)
		}
		must(t, other.Close())
		refused(t, "enter on a closed runtime", other.TargetEnterData(ctx, vkomp.TargetEnterData{}), vkomp.ErrClosed)
		refused(t, "declare on a closed runtime", other.DeclareTarget(ctx, vkomp.DeclareTarget{}), vkomp.ErrClosed)
	})
}

// Where everything is present a directive takes a shorter way, which refuses what the longer one does, and
// leaves to it what is more than counting.
func TestDataDirectivesOnPresentSlicesAreCheckedAlike(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		x := fill(10, 1)
		enter(t, rt, vkomp.To(x))
		enter(t, rt, vkomp.Alloc(x[:4])) // counted, and so the count is 2
		enterData := func(ctx context.Context, a vkomp.Arg) error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Label: "it", Maps: []vkomp.Arg{a}})
		}
		exitData := func(ctx context.Context, a vkomp.Arg) error {
			return rt.TargetExitData(ctx, vkomp.TargetExitData{Label: "it", Maps: []vkomp.Arg{a}})
		}
		pointers := unsafe.Slice((**int)(unsafe.Pointer(&x[0])), 1)
		for _, c := range []struct {
			what  string
			do    func(context.Context, vkomp.Arg) error
			item  vkomp.Arg
			texts string
		}{
			{"enter release", enterData, vkomp.Release(x), "map 0|release"},
			{"enter deleting", enterData, vkomp.To(x).Deleting(), "map 0|delete modifier"},
			{"enter an implicit slice", enterData, vkomp.Implicit(x), "map 0 is an implicit slice"},
			{"enter Go pointers", enterData, vkomp.To(pointers), "map 0|slice of *int|is a ptr"},
			{"enter a section with gaps", enterData, vkomp.To(x).Section(vkomp.Span{Count: 3, Stride: 2}), "map 0|not contiguous"},
			{"exit self", exitData, vkomp.From(x).Self(), "map 0|self"},
			{"exit Go pointers", exitData, vkomp.From(pointers), "map 0|slice of *int|is a ptr"},
			{"exit an address", exitData, vkomp.AddressOf(x), "map 0 is the address"},
		} {
			refused(t, c.what, c.do(ctx, c.item), vkomp.ErrInvalidArgument, append(strings.Split(c.texts, "|"), "it")...)
		}
		why := errors.New("no more time")
		ended, end := context.WithCancelCause(ctx)
		end(why)
		refused(t, "enter with a context that ended", enterData(ended, vkomp.To(x)), why)
		refused(t, "exit with a context that ended", exitData(ended, vkomp.From(x)), why)
		err := rt.Taskgroup(ctx, func(ctx context.Context) error {
			_ = rt.CancelTaskgroup(ctx)
			ctx = context.WithoutCancel(ctx)
			return errors.Join(enterData(ctx, vkomp.To(x)), exitData(ctx, vkomp.From(x)))
		})
		if err != nil && !errors.Is(err, vkomp.ErrCancelled) {
			t.Errorf("directives of a cancelled taskgroup: %v", err)
		}
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{If: vkomp.If(false), Maps: []vkomp.Arg{vkomp.Delete(x)}}))
		x[1] = 5
		enter(t, rt, vkomp.To(x[:2]).Always())
		if got := onDevice(t, rt, d, x)[1]; got != 5 {
			t.Errorf("%d on the device: an entry that always copies has only counted", got)
		}
		for left := 2; left >= 0; left-- {
			exit(t, rt, vkomp.Release(x))
			if present(d, x) != (left > 0) {
				t.Fatalf("present: %t, with %d references left", left == 0, left)
			}
		}
	})
}

func TestDataDirectivesThatFailChangeNothing(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		x, y := fill(100, 1), fill(100, 1)
		enter(t, rt, vkomp.To(x[:50]))
		setOnDevice(t, rt, d, x[:50], fill(50, 2))
		for _, c := range []struct {
			what string
			err  error
			want error
		}{
			{"enter in part", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y), vkomp.To(x)}}), vkomp.ErrPartialOverlap},
			{"enter what must be present", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x[:50]).Always(), vkomp.To(y).Present()}}), vkomp.ErrNotPresent},
			{"enter what must be present and is in part", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x).Present()}}), vkomp.ErrNotPresent},
			{"exit in part", rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}}), vkomp.ErrPartialOverlap},
			{"exit what must be present", rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x[:50]), vkomp.Release(y).Present()}}), vkomp.ErrNotPresent},
			{"update in part", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x)}}), vkomp.ErrPartialOverlap},
			{"update what must be present", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x[:50]), vkomp.From(y).Present()}}), vkomp.ErrNotPresent},
			{"declare what is mapped", rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(y), vkomp.To(x[:50])}}), vkomp.ErrAssociated},
			{"region in part", rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}}, explodes(t)), vkomp.ErrPartialOverlap},
			{"region of what must be present", rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y).Present()}}, explodes(t)), vkomp.ErrNotPresent},
		} {
			refused(t, c.what, c.err, c.want)
			var failed *vkomp.TaskError
			if !errors.As(c.err, &failed) {
				t.Errorf("%s: %v is no TaskError", c.what, c.err)
			}
			if present(d, y) || !present(d, x) || x[0] != 1 || onDevice(t, rt, d, x[:50])[49] != 2 {
				t.Errorf("%s: y present: %v, x[0] = %d", c.what, present(d, y), x[0])
			}
		}
		exit(t, rt, vkomp.Release(x[:50]))
		if present(d, x) {
			t.Error("a construct that failed has counted")
		}
		must(t, rt.Taskwait(ctx))
	})
}

// explodes returns a body that must not run.
func explodes(t testing.TB) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the body of a region that could not begin has run")
		return nil
	}
}

func TestDeferredDataDirectivesKeepTheirOrder(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		x := fill(100, 1)
		depend := []vkomp.Depend{vkomp.InOut(x)}
		for round := range uint32(20) {
			release := held(t, rt, vkomp.InOut(x))
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, Depend: depend, NoWait: true, Label: "enter"}))
			generate(t, rt, ctx, vkomp.Task{Depend: depend, Body: func(context.Context) error {
				for i := range x {
					x[i] += 10
				}
				return nil
			}})
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x).Present()}, Depend: depend, NoWait: true, Label: "update"}))
			generate(t, rt, ctx, vkomp.Task{Depend: depend, Body: func(context.Context) error {
				if !d.IsInitial() {
					clear(x)
				}
				return nil
			}})
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x).Present()}, Depend: depend, NoWait: true, Label: "exit"}))
			// The clauses have been evaluated by now.
			depend[0] = vkomp.In(make([]byte, 1))
			if !d.IsInitial() && present(d, x) {
				t.Error("mapped before the construct's predecessor ended")
			}
			release()
			must(t, rt.Taskwait(ctx))
			depend[0] = vkomp.InOut(x)
			if want := 10*(round+1) + 1; x[0] != want || x[99] != want {
				t.Fatalf("x = %d … %d in round %d, want %d", x[0], x[99], round, want)
			}
		}
	})
}

func TestIncludedDataDirectiveReturnsWhenItsContextEnds(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(10, 1)
		why := errors.New("no more time")
		for _, c := range []struct {
			label string
			do    func(ctx context.Context) error
		}{
			{"enter", func(ctx context.Context) error {
				return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Label: "enter", Maps: []vkomp.Arg{vkomp.To(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}})
			}},
			{"update", func(ctx context.Context) error {
				return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Label: "update", Motions: []vkomp.Arg{vkomp.To(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}})
			}},
		} {
			release := held(t, rt, vkomp.InOut(x))
			ctx, end := context.WithCancelCause(t.Context())
			generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error {
				awaitState(rt, c.label, vkomp.GraphWaiting)
				end(why)
				return nil
			}})
			refused(t, c.label, c.do(ctx), why)
			release()
			// Only on the initial device is a task dropped that has not started.
			if err := rt.Taskwait(t.Context()); d.IsInitial() != errors.Is(err, why) {
				t.Errorf("%s: Taskwait: %v", c.label, err)
			}
		}
		if !present(d, x) {
			t.Error("the task that its construct did not wait for was dropped")
		}
		exit(t, rt, vkomp.Release(x))
	})
}

func TestDataDirectivesOnTheInitialDeviceMoveNothing(t *testing.T) {
	// No construct here opens the Vulkan device.
	rt := vktest.Open(t)
	ctx := t.Context()
	x := fill(100, 1)
	for _, on := range []struct {
		device vkomp.Device
		is     vkomp.Cond
	}{{rt.InitialDevice(), vkomp.If(true)}, {rt.DefaultDevice(ctx), vkomp.If(false)}, {vkomp.Device{}, vkomp.If(false)}} {
		for _, depend := range [][]vkomp.Depend{nil, {vkomp.InOut(x)}} {
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: on.device, If: on.is, Maps: []vkomp.Arg{vkomp.To(x).Present()}, Depend: depend}))
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Device: on.device, If: on.is, Motions: []vkomp.Arg{vkomp.To(x).Present()}, Depend: depend}))
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: on.device, If: on.is, Maps: []vkomp.Arg{vkomp.Delete(x).Present()}, Depend: depend}))
		}
	}
	if present(rt.DefaultDevice(ctx), x) {
		t.Error("the default device got storage")
	}
	if s := rt.Stats(); s.Submissions+s.Copies+s.BytesToDevice != 0 {
		t.Errorf("%+v", s)
	}
	// A failure of their predecessors is passed on.
	broken := errors.New("broken")
	generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{If: vkomp.If(false), Motions: []vkomp.Arg{vkomp.To(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: true, Label: "after"}))
	if err := rt.Taskwait(ctx); !errors.Is(err, broken) {
		t.Errorf("Taskwait: %v", err)
	}
}

func TestDataDirectivesOnTwoDevices(t *testing.T) {
	rt, devices := openTwice(t)
	x := fill(100, 1)
	for _, d := range devices {
		must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x)}}))
	}
	setOnDevice(t, rt, devices[1], x, fill(100, 7))
	must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Device: devices[0], Maps: []vkomp.Arg{vkomp.Release(x)}}))
	if present(devices[0], x) || !present(devices[1], x) {
		t.Error("the devices share a presence table")
	}
	must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Device: devices[1], Motions: []vkomp.Arg{vkomp.From(x[:50])}}))
	must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Device: devices[1], Maps: []vkomp.Arg{vkomp.Release(x)}}))
	if x[49] != 7 || x[50] != 1 {
		t.Errorf("x = %d, %d, want 7, 1", x[49], x[50])
	}
}

func TestDeleteInsideDataRegionSkipsCopyBack(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(100, 1)
		must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(context.Context) error {
			setOnDevice(t, rt, d, x, fill(100, 2))
			exit(t, rt, vkomp.Delete(x))
			return nil
		}))
		if x[0] != 1 || present(d, x) {
			t.Errorf("x[0] = %d after delete in its region", x[0])
		}
		// Present is checked when the region begins, not when it ends.
		enter(t, rt, vkomp.To(x))
		must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x).Present()}}, func(context.Context) error {
			exit(t, rt, vkomp.Delete(x))
			return nil
		}))
	})
}

func TestEnterDataInsideDataRegionOutlivesIt(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(100, 1)
		must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(context.Context) error {
			setOnDevice(t, rt, d, x, fill(100, 2))
			enter(t, rt, vkomp.Alloc(x[20:30]))
			return nil
		}))
		if x[0] != 1 || !present(d, x) {
			t.Errorf("x[0] = %d after the region, and x is present: %v", x[0], present(d, x))
		}
		exit(t, rt, vkomp.From(x))
		if x[0] != 2 || x[99] != 2 {
			t.Errorf("x = %d … %d, want 2", x[0], x[99])
		}
	})
}

func TestIterateMapsCounts(t *testing.T) {
	x := fill(10, 0)
	item := func(i int) vkomp.Arg { return vkomp.To(x[i : i+1]) }
	for _, c := range []struct{ begin, end, step, want int }{
		{0, 10, 1, 10}, {0, 10, 3, 4}, {9, -1, -1, 10}, {0, 3, 0, 3}, {5, 5, 1, 0}, {5, 0, 1, 0},
	} {
		if got := len(vkomp.IterateMaps(c.begin, c.end, c.step, item)); got != c.want {
			t.Errorf("%d:%d:%d gives %d items, want %d", c.begin, c.end, c.step, got, c.want)
		}
	}
}

func TestSelfUsesTheHostsOwnStorage(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k := newKernel(t, rt, reach)
		x := fill(1<<14, 1)
		n := make([]uint32, 1)
		before := rt.Stats().BytesToDevice
		err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x).Self()}}, func(ctx context.Context) error {
			must(t, rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(x)}, Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.From(n), vkomp.Value(uint32(2))}}))
			if x[0] != 3 || x[len(x)-1] != 3 {
				t.Errorf("x = %d … %d inside the region, want 3: the storage is not the host's", x[0], x[len(x)-1])
			}
			x[0] = 10
			return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(x)}, Args: []vkomp.Arg{vkomp.ToFrom(x).Self(), vkomp.From(n), vkomp.Value(uint32(2))}})
		})
		switch {
		case err != nil:
			// With a driver that cannot import, the error says so.
			refused(t, "self", err, vkomp.ErrNotShared)
			refused(t, "self", err, vkomp.ErrUnsupported)
		case x[0] != 12 || x[1] != 5 || rt.Stats().BytesToDevice != before:
			t.Errorf("x = %d %d …, %d bytes copied", x[0], x[1], rt.Stats().BytesToDevice-before)
		}
		if present(d, x) {
			t.Error("there after the region")
		}
		y := fill(1<<14, 1)
		enter(t, rt, vkomp.To(y))
		refused(t, "self of what has other storage", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y).Self()}}), vkomp.ErrNotShared)
		exit(t, rt, vkomp.Release(y))
		if present(d, y) {
			t.Error("a construct that was refused has counted")
		}
	})
}

func TestDataDirectivesInFinalTaskAreIncluded(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(1000, 1)
		depend := []vkomp.Depend{vkomp.InOut(x)}
		generate(t, rt, t.Context(), vkomp.Task{Final: true, Body: func(ctx context.Context) error {
			left := func() int { return len(rt.Graph().Tasks) - 1 }
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, Depend: depend, NoWait: true}))
			if !present(d, x) || left() != 0 {
				t.Errorf("%d tasks are left when target enter data returns", left())
			}
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, Depend: depend, NoWait: true}))
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}, Depend: depend, NoWait: true}))
			if left() != 0 {
				t.Errorf("%d tasks are left when target exit data returns", left())
			}
			return nil
		}})
		must(t, rt.Taskwait(t.Context()))
	})
}

func TestTaskgroupWaitsForItsDataDirectives(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(1000, 1)
		enter(t, rt, vkomp.To(x))
		must(t, rt.Taskgroup(t.Context(), func(ctx context.Context) error {
			depend := []vkomp.Depend{vkomp.InOut(x)}
			release := held(t, rt, depend[0])
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, Depend: depend, NoWait: true}))
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Label: "exit", Maps: []vkomp.Arg{vkomp.From(x)}, Depend: depend, NoWait: true}))
			release()
			return nil
		}))
		for _, task := range rt.Graph().Tasks {
			if task.Label == "exit" {
				t.Errorf("the taskgroup ended while %q is %v", task.Label, task.State)
			}
		}
		must(t, rt.Taskwait(t.Context()))
	})
}

// Storage that is not mapped any more belongs to the program alone, whose garbage collector may free it.
func TestStorageIsNotKeptAfterItsMaps(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		k := newKernel(t, rt, shaders.Saxpy)
		ctx := t.Context()
		const n = 10_000
		var all []weak.Pointer[float32]
		slice := func() []float32 {
			x := make([]float32, n)
			all = append(all, weak.Make(&x[0]))
			return x
		}
		enter, exit := make([]vkomp.Arg, 50), make([]vkomp.Arg, 50)
		for i := range enter {
			x := slice()
			enter[i], exit[i] = vkomp.To(x), vkomp.From(x)
		}
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: enter}))
		for range 50 {
			launch := saxpyOn(t, k, 2, slice(), slice())
			launch.Device, launch.NoWait = d, true
			must(t, rt.Target(ctx, launch))
		}
		must(t, rt.Taskwait(ctx))
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: exit}))
		clear(enter)
		clear(exit)
		kept := func() (n int) {
			for _, p := range all {
				if p.Value() != nil {
					n++
				}
			}
			return n
		}
		// A collection may leave what the stack of this goroutine has had last.
		for range 3 {
			runtime.GC()
		}
		if n := kept(); n > 2 {
			t.Errorf("%d of %d slices are kept", n, len(all))
		}
	})
}
