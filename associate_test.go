package vkomp_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// onVulkan runs f on the default device with and without staging.
func onVulkan(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device)) {
	for _, m := range memoryModes {
		if m.name != "initial device" {
			t.Run(m.name, func(t *testing.T) {
				rt := vktest.Open(t, m.option)
				f(t, rt, rt.DefaultDevice(t.Context()))
			})
		}
	}
}

// must fails the test on an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAssociatedStorageIsPresentUntilDisassociated(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		s := make([]int32, 100)
		host, p := vkomp.HostPtr(s), alloc(t, d, 1000)
		for range 8 {
			if d.IsPresent(host) || !d.MappedPtr(host).IsNil() {
				t.Error("the storage is present before the association")
			}
			must(t, d.AssociatePtr(ctx, host.Add(40), p.Add(100), 200, 60))
			for _, c := range []struct {
				at   int
				want vkomp.DevicePtr
			}{{36, vkomp.DevicePtr{}}, {40, p.Add(160)}, {139, p.Add(259)}, {239, p.Add(359)}, {240, vkomp.DevicePtr{}}, {400, vkomp.DevicePtr{}}, {-4, vkomp.DevicePtr{}}} {
				if got := d.MappedPtr(host.Add(c.at)); got != c.want || d.IsPresent(host.Add(c.at)) != !c.want.IsNil() {
					t.Errorf("byte %d corresponds to %v, want %v", c.at, got, c.want)
				}
			}
			if rt.InitialDevice().MappedPtr(host) != host || !rt.InitialDevice().IsPresent(host) {
				t.Error("on the initial device host storage does not correspond to itself")
			}
			must(t, d.DisassociatePtr(ctx, host.Add(40)))
		}
		if d.IsPresent(host.Add(40)) {
			t.Error("the storage is present after the disassociation")
		}
		if d.IsPresent(vkomp.DevicePtr{}) || rt.InitialDevice().IsPresent(vkomp.DevicePtr{}) || !rt.InitialDevice().MappedPtr(vkomp.DevicePtr{}).IsNil() {
			t.Error("nil is present")
		}
		if d.IsPresent(p) || rt.InitialDevice().IsPresent(p) || rt.InitialDevice().MappedPtr(host.Add(401)) != (vkomp.DevicePtr{}) {
			t.Error("what is no host storage is present")
		}
	})
}

func TestMapsOfAssociatedStorageUseTheMemoryAndMoveNothing(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k := newKernel(t, rt, shaders.Saxpy)
		x, y := constant(64, 1), constant(64, 5)
		host, p := vkomp.HostPtr(y), alloc(t, d, 1024)
		must(t, d.AssociatePtr(ctx, host, p, 256, 512))
		// Until something is copied there, the memory keeps its contents.
		onDevice := constant(64, 10)
		memcpy(t, rt, p.Add(512), vkomp.HostPtr(onDevice), 256)
		for range 3 {
			must(t, rt.Target(ctx, saxpyOn(t, k, 2, x, y)))
		}
		if !slices.Equal(y, constant(64, 5)) {
			t.Errorf("y = %v: the map copied", y[:4])
		}
		refused(t, "free", d.Free(ctx, p), vkomp.ErrBusy, "associated")
		must(t, d.DisassociatePtr(ctx, host))
		memcpy(t, rt, vkomp.HostPtr(onDevice), p.Add(512), 256)
		if !slices.Equal(onDevice, constant(64, 16)) {
			t.Errorf("the memory holds %v, want 16: what it had, and three regions' work", onDevice[:4])
		}
		// From here on it is mapped like any other storage.
		must(t, rt.Target(ctx, saxpyOn(t, k, 2, x, y)))
		if !slices.Equal(y, constant(64, 7)) {
			t.Errorf("y = %v", y[:4])
		}
	})
}

func TestAssociateRefuses(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		s := make([]byte, 400)
		host, p, q := vkomp.HostPtr(s), alloc(t, d, 400), alloc(t, d, 400)
		freed, err := d.Alloc(ctx, 64)
		must(t, err)
		must(t, d.Free(ctx, freed))
		must(t, d.AssociatePtr(ctx, host.Add(100), p, 100, 50))
		must(t, d.AssociatePtr(ctx, host.Add(100), p, 100, 50))
		must(t, d.AssociatePtr(ctx, host.Add(100), p.Add(50), 100, 0))
		for _, c := range []struct {
			name         string
			host, p      vkomp.DevicePtr
			size, offset int
			want         error
			text         string
		}{
			{"another buffer", host.Add(100), q, 100, 50, vkomp.ErrAssociated, "associated"},
			{"another offset", host.Add(100), p, 100, 51, vkomp.ErrAssociated, "associated"},
			{"another size", host.Add(100), p, 99, 50, vkomp.ErrAssociated, "associated"},
			{"a part in another buffer", host.Add(120), q, 10, 0, vkomp.ErrAssociated, "associated"},
			{"storage that begins below", host.Add(50), q, 100, 0, vkomp.ErrPartialOverlap, ""},
			{"storage that ends above", host.Add(150), q, 100, 0, vkomp.ErrPartialOverlap, ""},
			{"storage all around", host, q, 400, 0, vkomp.ErrPartialOverlap, ""},
			{"nil host storage", vkomp.DevicePtr{}, q, 10, 0, vkomp.ErrInvalidPointer, "host pointer"},
			{"a device pointer as host storage", q, q, 10, 0, vkomp.ErrInvalidPointer, "no host pointer"},
			{"nil memory", host, vkomp.DevicePtr{}, 10, 0, vkomp.ErrInvalidPointer, "nil"},
			{"host storage as memory", host, host, 10, 0, vkomp.ErrInvalidDevice, ""},
			{"freed memory", host, freed, 10, 0, vkomp.ErrInvalidPointer, "freed"},
			{"nothing", host, q, 0, 0, vkomp.ErrInvalidArgument, "0 bytes"},
			{"less than nothing", host, q, -1, 0, vkomp.ErrInvalidArgument, "-1 bytes"},
			{"an offset below the memory", host, q, 10, -1, vkomp.ErrInvalidArgument, "-1"},
			{"more than the slice has", host.Add(300), q, 101, 0, vkomp.ErrInvalidPointer, "400 bytes"},
			{"more than the memory has", host, q, 100, 301, vkomp.ErrInvalidPointer, "400 bytes"},
			{"an offset past the memory", host, q, 10, 1 << 62, vkomp.ErrInvalidPointer, "400 bytes"},
			{"past the end of the memory", host, q.Add(400), 1, 0, vkomp.ErrInvalidPointer, "400 bytes"},
		} {
			refused(t, c.name, d.AssociatePtr(ctx, c.host, c.p, c.size, c.offset), c.want, "associate", c.text)
		}
		if d.IsPresent(host) || d.IsPresent(host.Add(200)) || d.MappedPtr(host.Add(100)) != p.Add(50) {
			t.Error("a refused association changed what is present")
		}
		for _, c := range []struct {
			name string
			host vkomp.DevicePtr
			want error
		}{
			{"nil", vkomp.DevicePtr{}, vkomp.ErrInvalidPointer},
			{"a device pointer", p, vkomp.ErrInvalidPointer},
			{"storage that is not associated", host, vkomp.ErrNotPresent},
			{"the middle of what is", host.Add(101), vkomp.ErrNotPresent},
			{"past the slice", host.Add(401), vkomp.ErrInvalidPointer},
		} {
			refused(t, "disassociate "+c.name, d.DisassociatePtr(ctx, c.host), c.want, "disassociate")
		}
		must(t, d.DisassociatePtr(ctx, host.Add(100)))
		refused(t, "disassociate twice", d.DisassociatePtr(ctx, host.Add(100)), vkomp.ErrNotPresent)
	})
}

func TestAssociateOnTheInitialDevice(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	d := rt.InitialDevice()
	p, host := alloc(t, d, 64), vkomp.HostPtr(make([]byte, 64))
	refused(t, "associate", d.AssociatePtr(t.Context(), host, p, 64, 0), vkomp.ErrInvalidDevice, "initial device")
	refused(t, "disassociate", d.DisassociatePtr(t.Context(), host), vkomp.ErrInvalidDevice, "initial device")
}

// Memory of the initial device that is associated with memory of another one is neither freed nor given
// back by a pause, after which the association could not be ended any more.
func TestFreeOfHostMemoryThatIsAssociated(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx, initial := t.Context(), rt.InitialDevice()
		host, err := initial.Alloc(ctx, 400)
		must(t, err)
		other, p := alloc(t, initial, 400), alloc(t, d, 400)
		must(t, d.AssociatePtr(ctx, host.Add(100), p, 200, 0))
		refused(t, "free", initial.Free(ctx, host), vkomp.ErrBusy, "on device 0", "is associated with allocation")
		refused(t, "pause", rt.PauseResource(ctx, vkomp.PauseHard, initial), vkomp.ErrBusy, "on device 0", "is associated with allocation")
		if !d.IsPresent(host.Add(100)) || d.IsPresent(other) {
			t.Error("after errors of Free something else is present")
		}
		memcpy(t, rt, host, other, 400)
		must(t, d.DisassociatePtr(ctx, host.Add(100)))
		must(t, initial.Free(ctx, host))
		refused(t, "free twice", initial.Free(ctx, host), vkomp.ErrInvalidPointer, "freed")
		refused(t, "associate", d.AssociatePtr(ctx, host, p, 400, 0), vkomp.ErrInvalidPointer, "host pointer", "freed")
	})
}

// A pause of both devices ends an association with both its sides.
func TestPauseOfHostMemoryThatIsAssociated(t *testing.T) {
	rt := vktest.Open(t)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	host, err := rt.InitialDevice().Alloc(ctx, 400)
	must(t, err)
	p, err := d.Alloc(ctx, 400)
	must(t, err)
	must(t, d.AssociatePtr(ctx, host, p, 400, 0))
	must(t, rt.PauseResourceAll(ctx, vkomp.PauseHard))
	refused(t, "free", rt.InitialDevice().Free(ctx, host), vkomp.ErrInvalidPointer)
	refused(t, "free", d.Free(ctx, p), vkomp.ErrInvalidPointer)
}

// Memory of the initial device that is freed while an AssociatePtr is under way is not associated.
func TestAssociateWhileHostMemoryIsFreed(t *testing.T) {
	generated := func() {}
	rt := vktest.Open(t, func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{TaskCreate: func(ompt.TaskCreateEvent) { generated() }}
	})
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	p := alloc(t, d, 400)
	host, err := rt.InitialDevice().Alloc(ctx, 400)
	must(t, err)
	generated = func() { // AssociatePtr has looked at its arguments
		generated = func() {}
		freed := make(chan error)
		go func() { freed <- rt.InitialDevice().Free(ctx, host) }()
		if err := <-freed; err != nil {
			t.Error(err)
		}
	}
	refused(t, "associate", d.AssociatePtr(ctx, host, p, 400, 0), vkomp.ErrInvalidPointer, "host pointer", "freed")
}

func TestAssociateWithMappedStorage(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		s := noise(400, 1)
		host, p := vkomp.HostPtr(s), alloc(t, d, 400)
		region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(s[100:300])}}
		must(t, rt.TargetData(ctx, region, func(ctx context.Context) error {
			mapped := d.MappedPtr(host.Add(100))
			if mapped.IsNil() || d.MappedPtr(host.Add(110)) != mapped.Add(10) || !d.IsPresent(host.Add(299)) || d.IsPresent(host.Add(300)) {
				t.Errorf("mapped storage is at %v", mapped)
			}
			if !bytes.Equal(contents(t, rt, mapped.Add(7), 100), s[107:207]) {
				t.Error("MappedPtr points to other bytes")
			}
			refused(t, "all of it", d.AssociatePtr(ctx, host.Add(100), p, 200, 0), vkomp.ErrAssociated, "mapped")
			refused(t, "a part of it", d.AssociatePtr(ctx, host.Add(150), p, 10, 0), vkomp.ErrAssociated, "mapped")
			refused(t, "more than it", d.AssociatePtr(ctx, host, p, 400, 0), vkomp.ErrPartialOverlap)
			refused(t, "itself", d.AssociatePtr(ctx, host.Add(100), mapped, 200, 0), vkomp.ErrInvalidPointer, "mapped")
			refused(t, "disassociate", d.DisassociatePtr(ctx, host.Add(100)), vkomp.ErrAssociated, "mapped")
			refused(t, "free", d.Free(ctx, mapped), vkomp.ErrInvalidPointer, "mapped")
			must(t, d.AssociatePtr(ctx, host.Add(300), p, 100, 0))
			return d.DisassociatePtr(ctx, host.Add(300))
		}))
		if d.IsPresent(host.Add(100)) {
			t.Error("the storage is present after its region")
		}
	})
}

func TestDisassociateWhileTasksUseTheStorage(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k := newKernel(t, rt, shaders.Saxpy)
		const n, size = 4096, 4 * 4096
		x, y := constant(n, 1), constant(n, 5)
		p, got := alloc(t, d, size), make([]float32, n)
		memcpy(t, rt, p, vkomp.HostPtr(constant(n, 10)), size)
		must(t, d.AssociatePtr(ctx, vkomp.HostPtr(y), p, size, 0))
		for range 100 {
			target := saxpyOn(t, k, 1, x, y)
			target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.InOut(got)}
			must(t, rt.Target(ctx, target))
		}
		// Tasks that have begun finish in the associated memory; those that have not begun
		// map y themselves.
		must(t, d.DisassociatePtr(ctx, vkomp.HostPtr(y)))
		must(t, rt.Taskwait(ctx))
		memcpy(t, rt, vkomp.HostPtr(got), p, size)
		if sum := got[0] + y[0]; sum != 10+5+100 || !slices.Equal(got, constant(n, got[0])) || !slices.Equal(y, constant(n, y[0])) {
			t.Errorf("the memory holds %v and y %v: 100 were added to 10 and 5", got[0], y[0])
		}
	})
}

func TestEndOfASliceIsNotItsBeginning(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		s := make([]int32, 100)
		p := alloc(t, d, 400)
		host := vkomp.HostPtr(s)
		must(t, d.AssociatePtr(ctx, host, p, 400, 0))
		if got := d.MappedPtr(host.Add(400)); !got.IsNil() {
			t.Errorf("past the end: %v, first byte %v", got, d.MappedPtr(host))
		}
		if err := d.DisassociatePtr(ctx, host.Add(400)); !errors.Is(err, vkomp.ErrNotPresent) {
			t.Errorf("disassociated through the end: %v", err)
		}
		must(t, d.DisassociatePtr(ctx, host))
	})
}

// A pointer to the memory of a mapped slice leads to the slice's counts without a look at the table. In a
// build with the tag invariants it is an error if these are not where they were looked for.
func TestPointerToAssociatedMemoryOfASliceThatOnlyCounts(t *testing.T) {
	rt := vktest.Open(t)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	x, y := fill(1000, 1), fill(1000, 2)
	p, err := d.Alloc(ctx, 4000)
	must(t, err)
	must(t, d.AssociatePtr(ctx, vkomp.HostPtr(x), p, 4000, 0))
	for range 2 {
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}))
		must(t, rt.MemcpyAsync(ctx, p, vkomp.HostPtr(y), 4000))
		must(t, rt.Taskwait(ctx))
	}
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x)}}))
	if x[0] != 2 || x[999] != 2 {
		t.Errorf("the slice's elements are %v and %v, not those that were copied to its memory", x[0], x[999])
	}
	must(t, errors.Join(d.DisassociatePtr(ctx, vkomp.HostPtr(x)), d.Free(ctx, p)))
}
