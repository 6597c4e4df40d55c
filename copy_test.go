package vkomp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// ends returns storage of each kind, size bytes each, as ends of copies.
func ends(t *testing.T, rt *vkomp.Runtime, size int) map[string]vkomp.DevicePtr {
	all := map[string]vkomp.DevicePtr{
		"a slice":                      vkomp.HostPtr(make([]byte, size)),
		"another slice":                vkomp.HostPtr(make([]byte, size)),
		"pinned storage":               vkomp.HostPtr(allocPinned[byte](t, rt, size)),
		"other pinned storage":         vkomp.HostPtr(allocPinned[byte](t, rt, size)),
		"the initial device":           alloc(t, rt.InitialDevice(), size),
		"the initial device elsewhere": alloc(t, rt.InitialDevice(), size),
	}
	for n := range rt.NumDevices() {
		d, err := rt.Device(n)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("device %d", n)] = alloc(t, d, size)
		all[fmt.Sprintf("device %d elsewhere", n)] = alloc(t, d, size)
	}
	return all
}

func TestMemcpyBetweenAllKindsOfStorage(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, _ vkomp.Device) {
		const size = 4000
		all := ends(t, rt, size)
		seed := uint32(0)
		for from, src := range all {
			for to, dst := range all {
				if src == dst {
					continue
				}
				for _, c := range []struct{ dstAt, srcAt, n int }{{0, 0, size}, {1, 0, 3999}, {17, 1202, 1333}, {3999, 3, 1}, {4, 8, 2048}} {
					seed++
					have, want := noise(size, seed), noise(size, seed+1000)
					memcpy(t, rt, src, vkomp.HostPtr(have), size)
					memcpy(t, rt, dst, vkomp.HostPtr(want), size)
					memcpy(t, rt, dst.Add(c.dstAt), src.Add(c.srcAt), c.n)
					copy(want[c.dstAt:c.dstAt+c.n], have[c.srcAt:])
					if !bytes.Equal(contents(t, rt, dst, size), want) {
						t.Errorf("%+v from %s to %s: wrong bytes", c, from, to)
					}
					if !bytes.Equal(contents(t, rt, src, size), have) {
						t.Errorf("%+v from %s to %s changed the source", c, from, to)
					}
				}
			}
		}
	})
}

// Much is copied in another way than little, and not all of it if the places of source and
// destination do not fit that way.
func TestMemcpyOfMuchWithinADevice(t *testing.T) {
	rt := vktest.Open(t)
	const size = 5 << 20
	d, err := rt.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	src, dst := alloc(t, d, size), alloc(t, d, size)
	have, want := noise(size, 1), noise(size, 2)
	memcpy(t, rt, src, vkomp.HostPtr(have), size)
	memcpy(t, rt, dst, vkomp.HostPtr(want), size)
	for _, c := range []struct{ dstAt, srcAt, n int }{{0, 0, size}, {256, 0, size - 256}, {1003, 747, size - 1003}, {1, 0, size - 1}} {
		memcpy(t, rt, dst.Add(c.dstAt), src.Add(c.srcAt), c.n)
		copy(want[c.dstAt:c.dstAt+c.n], have[c.srcAt:])
		if !bytes.Equal(contents(t, rt, dst, size), want) {
			t.Errorf("%+v: wrong bytes", c)
		}
	}
}

func TestMemcpyRefuses(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		const size = 100
		for name, p := range ends(t, rt, size) {
			before := noise(size, 9)
			memcpy(t, rt, p, vkomp.HostPtr(before), size)
			host := vkomp.HostPtr(make([]int32, 100))
			for _, async := range []bool{false, true} {
				cp := func(dst, src vkomp.DevicePtr, n int) error {
					if async {
						return rt.MemcpyAsync(ctx, dst, src, n)
					}
					return rt.Memcpy(ctx, dst, src, n)
				}
				for _, c := range []struct {
					name     string
					dst, src vkomp.DevicePtr
					size     int
					want     error
					text     string
				}{
					{"to nil", vkomp.DevicePtr{}, p, 1, vkomp.ErrInvalidPointer, "the destination"},
					{"from nil", p, vkomp.DevicePtr{}, 1, vkomp.ErrInvalidPointer, "the source"},
					{"less than nothing", p, host, -1, vkomp.ErrInvalidArgument, "-1 bytes"},
					{"more than the destination has", p, host, 101, vkomp.ErrInvalidPointer, "100 bytes"},
					{"more than the source has", host, p, 101, vkomp.ErrInvalidPointer, "100 bytes"},
					{"more than the destination has left", p.Add(1), host, 100, vkomp.ErrInvalidPointer, "100 bytes"},
					{"to past the end", p.Add(101), host, 1, vkomp.ErrInvalidPointer, "100 bytes"},
					{"from the end", host, p.Add(100), 1, vkomp.ErrInvalidPointer, "100 bytes"},
					{"from before the beginning", host, p.Add(-1), 1, vkomp.ErrInvalidPointer, ""},
					{"as much as there is", p, host.Add(4), int(^uint(0) >> 1), vkomp.ErrInvalidPointer, "9223372036854775807 bytes"},
				} {
					refused(t, name+": "+c.name, cp(c.dst, c.src, c.size), c.want, "memcpy", c.text)
				}
				for _, none := range []vkomp.DevicePtr{{}, p, p.Add(-5), host.Add(1000)} {
					if err := errors.Join(cp(none, p, 0), cp(p, none, 0)); err != nil {
						t.Errorf("%s: nothing, with %v: %v", name, none, err)
					}
				}
			}
			if err := rt.Taskwait(ctx); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(contents(t, rt, p, size), before) {
				t.Errorf("%s: a refused copy changed it", name)
			}
		}
	})
}

func TestMemcpyOfOverlappingStorage(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		const size = 1000
		for name, p := range ends(t, rt, size) {
			for _, at := range [][2]int{{0, 1}, {1, 0}, {0, 0}, {300, 0}, {0, 399}} {
				want := noise(size, 4)
				memcpy(t, rt, p, vkomp.HostPtr(want), size)
				err := rt.Memcpy(ctx, p.Add(at[0]), p.Add(at[1]), 400)
				if device := p.Device(); device != (vkomp.Device{}) && !device.IsInitial() {
					refused(t, name, err, vkomp.ErrInvalidArgument, "overlap")
				} else {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					copy(want[at[0]:at[0]+400], want[at[1]:])
				}
				if !bytes.Equal(contents(t, rt, p, size), want) {
					t.Errorf("%s: 400 bytes from %d to %d: wrong bytes", name, at[1], at[0])
				}
			}
			want := noise(size, 8)
			memcpy(t, rt, p, vkomp.HostPtr(want), size)
			memcpy(t, rt, p.Add(400), p, 400)
			copy(want[400:800], want)
			if !bytes.Equal(contents(t, rt, p, size), want) {
				t.Errorf("%s: neighbours are not copied right", name)
			}
		}
	})
}

// held generates a task that does not complete before release is called; later tasks with the
// item depend on it.
func held(t *testing.T, rt *vkomp.Runtime, item vkomp.Depend) (release func()) {
	gate := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Label: "gate", Depend: []vkomp.Depend{item}, Body: func(context.Context) error {
		<-gate
		return nil
	}})
	return func() { close(gate) }
}

func TestMemcpyAsyncKeepsItsDependences(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, _ vkomp.Device) {
		ctx := t.Context()
		const size = 20_000
		all := ends(t, rt, size)
		// A cycle through all storage, twice.
		var names []string
		for name := range all {
			names = append(names, name)
		}
		want, got := noise(size, 11), make([]byte, size)
		release := held(t, rt, vkomp.Out(got))
		from := vkomp.HostPtr(want)
		for range 2 {
			for _, name := range names {
				if err := rt.MemcpyAsync(ctx, all[name], from, size, vkomp.InOut(got)); err != nil {
					t.Fatal(err)
				}
				from = all[name]
			}
		}
		if err := rt.MemcpyAsync(ctx, vkomp.HostPtr(got), from, size, vkomp.InOut(got)); err != nil {
			t.Fatal(err)
		}
		// A copy of nothing keeps the dependences too.
		if err := rt.MemcpyAsync(ctx, vkomp.DevicePtr{}, from, 0, vkomp.InOut(got)); err != nil {
			t.Fatal(err)
		}
		var seen []byte
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(got)}, Body: func(context.Context) error {
			seen = append(seen, got...)
			return nil
		}})
		if !bytes.Equal(got, make([]byte, size)) {
			t.Error("the copies ran before what they depend on")
		}
		release()
		if err := rt.Taskwait(ctx); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(seen, want) {
			t.Error("the task after the copies saw other bytes")
		}
	})
}

func TestRoutineOfNothingKeepsItsDependences(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p := alloc(t, d, 64)
		for name, routine := range map[string]func(depend ...vkomp.Depend) error{
			"memcpy": func(depend ...vkomp.Depend) error { return rt.MemcpyAsync(ctx, p, vkomp.DevicePtr{}, 0, depend...) },
			"memcpy of nil": func(depend ...vkomp.Depend) error {
				return rt.MemcpyAsync(ctx, vkomp.DevicePtr{}, vkomp.DevicePtr{}, 0, depend...)
			},
			"memset":      func(depend ...vkomp.Depend) error { return d.MemsetAsync(ctx, p, 1, 0, depend...) },
			"memcpy rect": func(depend ...vkomp.Depend) error { return rt.MemcpyRectAsync(ctx, p, p, square(8, 0), depend...) },
			"in place of other": func(depend ...vkomp.Depend) error {
				return rt.MemcpyAsync(ctx, vkomp.HostPtr([]byte{1}), p, 0, depend...)
			},
		} {
			first, second := make([]int, 1), make([]int, 1)
			release := held(t, rt, vkomp.Out(first))
			must(t, routine(vkomp.In(first), vkomp.Out(second)))
			ran := false
			generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(second)}, Body: func(context.Context) error {
				ran = true
				return nil
			}})
			// Run the ready tasks, and then those that become ready. Complete tasks are not shown.
			letReadyRun(t, rt)
			letReadyRun(t, rt)
			if n := len(rt.Graph().Tasks); n < 3 {
				t.Errorf("%s: %d tasks wait, want the gate, the routine and the task after it", name, n)
			}
			release()
			must(t, rt.Taskwait(ctx))
			if !ran {
				t.Errorf("%s: the task after it has not run", name)
			}
		}
	})
}

func TestMemcpyAsyncWithADependObject(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p, s := alloc(t, d, 64), noise(64, 2)
		var object vkomp.Depobj
		refused(t, "an uninitialised object", rt.MemcpyAsync(ctx, p, vkomp.HostPtr(s), 64, object.Depend()), vkomp.ErrInvalidDepend)
		if err := object.Init(vkomp.InOut(s)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 64)
		release := held(t, rt, object.Depend())
		for _, err := range []error{
			rt.MemcpyAsync(ctx, p, vkomp.HostPtr(s), 64, object.Depend()),
			rt.MemcpyAsync(ctx, vkomp.HostPtr(got), p, 64, object.Depend()),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		release()
		if err := rt.Taskwait(ctx, object.Depend()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, s) {
			t.Error("wrong bytes")
		}
	})
}

func TestMemcpyAsyncOfAFinalTaskIsIncluded(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p, want, got := alloc(t, d, 64), noise(64, 2), make([]byte, 64)
		generate(t, rt, t.Context(), vkomp.Task{Final: true, Body: func(ctx context.Context) error {
			err := errors.Join(
				rt.MemcpyAsync(ctx, p, vkomp.HostPtr(want), 64),
				rt.MemcpyAsync(ctx, vkomp.HostPtr(got), p, 64),
			)
			if !bytes.Equal(got, want) {
				t.Error("the copy is not done when MemcpyAsync returns")
			}
			return err
		}})
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMemcpyAfterAFailedTaskIsNotRun(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p, got := alloc(t, d, 64), make([]byte, 64)
		memcpy(t, rt, p, vkomp.HostPtr(noise(64, 2)), 64)
		broken := errors.New("broken")
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(got)}, Body: func(context.Context) error { return broken }})
		if err := rt.MemcpyAsync(ctx, vkomp.HostPtr(got), p, 64, vkomp.InOut(got)); err != nil {
			t.Fatal(err)
		}
		refused(t, "the taskwait", rt.Taskwait(ctx), broken)
		if !bytes.Equal(got, make([]byte, 64)) {
			t.Error("the copy ran after the failure of what it depends on")
		}
		memcpy(t, rt, vkomp.HostPtr(got), p, 64)
	})
}

func TestMemcpyAsyncIsDroppedWithItsContext(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p, got := alloc(t, d, 64), make([]byte, 64)
		memcpy(t, rt, p, vkomp.HostPtr(noise(64, 2)), 64)
		release := held(t, rt, vkomp.Out(got))
		ctx, cancel := context.WithCancelCause(t.Context())
		if err := rt.MemcpyAsync(ctx, vkomp.HostPtr(got), p, 64, vkomp.InOut(got)); err != nil {
			t.Fatal(err)
		}
		why := errors.New("changed my mind")
		cancel(why)
		release()
		refused(t, "the taskwait", rt.Taskwait(t.Context()), why, "memcpy")
		if !bytes.Equal(got, make([]byte, 64)) {
			t.Error("the copy ran")
		}
	})
}

func TestMemcpyInTheGraph(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p, s := alloc(t, d, 64), make([]byte, 64)
		release := held(t, rt, vkomp.Out(s))
		if err := errors.Join(
			rt.MemcpyAsync(ctx, vkomp.HostPtr(s), p, 64, vkomp.InOut(s)),
			d.MemsetAsync(ctx, p, 1, 64, vkomp.InOut(s)),
			rt.MemcpyRectAsync(ctx, p, vkomp.HostPtr(s), square(8, 4), vkomp.InOut(s)),
		); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, task := range rt.Graph().Tasks {
			labels = append(labels, task.Label)
			if want := d.Number(); task.Label != "gate" && task.Device != want && !d.IsInitial() {
				t.Errorf("%s is on device %d, want %d", task.Label, task.Device, want)
			}
		}
		release()
		if err := rt.Taskwait(ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(labels), "[gate memcpy memset memcpy rect]"; got != want {
			t.Errorf("the graph has %s, want %s", got, want)
		}
	})
}

func TestSliceIsReachableWhileACopyOfItIsPending(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	ctx := t.Context()
	got, gate := make([]byte, 1<<20), []int{0}
	release := held(t, rt, vkomp.Out(gate))
	func() {
		s := bytes.Repeat([]byte{7}, len(got))
		p, err := rt.InitialDevice().Alloc(ctx, len(s))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			rt.MemcpyAsync(ctx, p, vkomp.HostPtr(s), len(s), vkomp.InOut(gate)),
			rt.MemcpyAsync(ctx, vkomp.HostPtr(got), p, len(s), vkomp.InOut(gate)),
			rt.InitialDevice().Free(ctx, p),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}()
	collectGarbage()
	release()
	if err := rt.Taskwait(ctx); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.Repeat([]byte{7}, len(got))) {
		t.Error("the storage was used for something else")
	}
}

// A device uses host storage itself, so that its pointer and the host's lead to the same bytes.
func TestMemcpyWithinHostStorageThatADeviceUses(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		if d.IsInitial() {
			return // all of its storage is the host's
		}
		ctx := t.Context()
		const size = 1000
		x := allocPinned[byte](t, rt, size)
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x).Self()}}))
		onHost, onDevice := vkomp.HostPtr(x), d.MappedPtr(vkomp.HostPtr(x))
		for name, p := range map[string]struct{ dst, src vkomp.DevicePtr }{"to the device": {onDevice, onHost}, "to the host": {onHost, onDevice}} {
			for _, c := range []struct {
				dst, src int
				overlaps bool
			}{{0, 1, true}, {1, 0, true}, {300, 0, true}, {0, 399, true}, {0, 0, false}, {7, 7, false}, {400, 0, false}, {0, 400, false}} {
				for _, async := range []bool{false, true} {
					copy(x, noise(size, 4))
					want := bytes.Clone(x)
					cp := rt.Memcpy
					if async {
						cp = func(ctx context.Context, dst, src vkomp.DevicePtr, size int) error {
							return rt.MemcpyAsync(ctx, dst, src, size)
						}
					}
					err := cp(ctx, p.dst.Add(c.dst), p.src.Add(c.src), 400)
					if c.overlaps {
						refused(t, name, err, vkomp.ErrInvalidArgument, "overlap")
					} else {
						must(t, err)
						copy(want[c.dst:c.dst+400], want[c.src:])
					}
					must(t, rt.Taskwait(ctx))
					if !bytes.Equal(x, want) {
						t.Errorf("%s: 400 bytes from %d to %d: wrong bytes", name, c.src, c.dst)
					}
				}
			}
			// Columns beside each other, and one that is moved by less than its width.
			r := square(8, 4)
			r.DstOffsets = []int{0, 4}
			want := bytes.Clone(x)
			must(t, rt.MemcpyRect(ctx, p.dst, p.src, r))
			copyRect(want, slices.Clone(want), r)
			r.DstOffsets = []int{0, 3}
			refused(t, name, rt.MemcpyRect(ctx, p.dst, p.src, r), vkomp.ErrInvalidArgument, "overlap")
			if !bytes.Equal(x, want) {
				t.Errorf("%s: wrong columns", name)
			}
		}
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Release(x)}}))
	})
}
