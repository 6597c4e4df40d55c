package tests

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// The tests here restate cases of the device memory routines.

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/through.spv testdata/through.comp

//go:embed testdata/through.spv
var throughModule []byte

// throughSource writes 5·i to the elements that its first value points to.
var throughSource = vkomp.KernelSource{
	Name:  "through",
	SPIRV: throughModule,
	Host: func(c *vkomp.HostCall) error {
		elements := vkomp.HostPointee[uint32](c, 0)
		for i := range vkomp.HostValue[uint32](c, 1) {
			elements[i] = 5 * i
		}
		return nil
	},
}

// doubleAt returns a deferred region that doubles n elements, starting at p.
func (k affine) doubleAt(p vkomp.DevicePtr, n int, depend ...vkomp.Depend) vkomp.Target {
	return vkomp.Target{
		Kernel: k.Kernel,
		Range:  vkomp.Range{X: n},
		Args: []vkomp.Arg{
			vkomp.IsDevicePtr(p), vkomp.IsDevicePtr(p),
			vkomp.Value(uint32(n)), vkomp.Value(uint32(2)), vkomp.Value(uint32(0)), vkomp.Value(uint32(0)),
		},
		NoWait: true,
		Depend: depend,
	}
}

func indices(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i)
	}
	return s
}

// allocate returns memory of n elements, which is freed when the test ends.
func allocate(t testing.TB, d vkomp.Device, n int) vkomp.DevicePtr {
	t.Helper()
	p, err := d.Alloc(context.Background(), 4*n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { succeed(t, d.Free(context.Background(), p)) })
	return p
}

func succeed(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// inVulkanModes runs f on a Vulkan device, with and without staging.
func inVulkanModes(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device)) {
	for _, m := range taskModes {
		if m.name != "initial device" {
			t.Run(m.name, func(t *testing.T) {
				rt := vktest.Open(t, m.options...)
				f(t, rt, rt.DefaultDevice(t.Context()))
			})
		}
	}
}

func TestC43MemcpyAsyncWithoutDependObjects(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		ctx, d := t.Context(), rt.DefaultDevice(t.Context())
		k := newAffine(t, rt)
		const n = 1000
		host := indices(n)
		p := allocate(t, d, n)
		succeed(t, rt.MemcpyAsync(ctx, p, vkomp.HostPtr(host), 4*n))
		wait(t, rt)
		target := k.doubleAt(p, n)
		target.NoWait = false
		succeed(t, rt.Target(ctx, target))
		succeed(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(host), p, 4*n))
		wait(t, rt)
		for i, v := range host {
			if v != uint32(2*i) {
				t.Fatalf("element %d is %d, want %d", i, v, 2*i)
			}
		}
	})
}

func TestC44MemcpyAsyncWithOneDependObject(t *testing.T) {
	memcpyAsyncWithOneDependObject(t, true)
}

// The same without a taskwait between the steps: only the depend object orders them.
func TestL14MemcpyAsyncOrderedByADependObject(t *testing.T) {
	memcpyAsyncWithOneDependObject(t, true)
	t.Run("no taskwait between", func(t *testing.T) { memcpyAsyncWithOneDependObject(t, false) })
}

func memcpyAsyncWithOneDependObject(t *testing.T, waits bool) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		ctx, d := t.Context(), rt.DefaultDevice(t.Context())
		k := newAffine(t, rt)
		const n = 1000
		host := indices(n)
		p := allocate(t, d, n)
		var object vkomp.Depobj
		succeed(t, object.Init(vkomp.InOut(host)))
		release := make(chan struct{})
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{object.Depend()}, Body: body(func() { <-release })})
		succeed(t, rt.MemcpyAsync(ctx, p, vkomp.HostPtr(host), 4*n, object.Depend()))
		if waits {
			close(release)
			wait(t, rt, object.Depend())
		}
		offload(t, rt, k.doubleAt(p, n, object.Depend()))
		succeed(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(host), p, 4*n, object.Depend()))
		if !waits {
			if !slices.Equal(host, indices(n)) {
				t.Error("a copy ran before what the object orders it after")
			}
			close(release)
		}
		wait(t, rt, object.Depend())
		for i, v := range host {
			if v != uint32(2*i) {
				t.Fatalf("element %d is %d, want %d", i, v, 2*i)
			}
		}
		succeed(t, object.Destroy())
		wait(t, rt)
	})
}

func TestC30AssociatedPointerNeedsExplicitUpdate(t *testing.T) {
	for name, updates := range map[string]bool{"with updates": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			inVulkanModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
				ctx := t.Context()
				k := newAffine(t, rt)
				arr := indices(100)
				p, err := d.Alloc(ctx, 4*50)
				succeed(t, err)
				for _, half := range [][]uint32{arr[:50], arr[50:]} {
					succeed(t, d.Memset(ctx, p, 0, 4*50))
					succeed(t, d.AssociatePtr(ctx, vkomp.HostPtr(half), p, 4*50, 0))
					if updates {
						succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(half)}}))
					}
					target := k.add(half, 1)
					target.NoWait = false
					succeed(t, rt.Target(ctx, target))
					if updates {
						succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(half)}}))
					}
					succeed(t, d.DisassociatePtr(ctx, vkomp.HostPtr(half)))
					// The region used the associated memory.
					onDevice, want := make([]uint32, 50), make([]uint32, 50)
					for i := range want {
						if updates {
							want[i] = half[0] + uint32(i)
						} else {
							want[i] = 1
						}
					}
					succeed(t, rt.Memcpy(ctx, vkomp.HostPtr(onDevice), p, 4*50))
					if !slices.Equal(onDevice, want) {
						t.Errorf("the memory holds %v, want %v", onDevice, want)
					}
				}
				succeed(t, d.Free(ctx, p))
				for i, v := range arr {
					want := uint32(i)
					if updates {
						want++
					}
					if v != want {
						t.Fatalf("arr[%d] = %d, want %d", i, v, want)
					}
				}
			})
		})
	}
}

func TestC40MappedPtr(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		ctx := t.Context()
		x := []uint32{7}
		for number := range rt.NumDevices() {
			d, err := rt.Device(number)
			succeed(t, err)
			if p := d.MappedPtr(vkomp.HostPtr(x)); !p.IsNil() {
				t.Errorf("device %d: x corresponds to %v before it is mapped", number, p)
			}
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x)}}))
			p := d.MappedPtr(vkomp.HostPtr(x))
			if p.IsNil() || p.Device() != d {
				t.Errorf("device %d: x corresponds to %v", number, p)
			}
			onDevice := make([]uint32, 1)
			succeed(t, rt.Memcpy(ctx, vkomp.HostPtr(onDevice), p, 4))
			if onDevice[0] != 7 {
				t.Errorf("device %d: %v holds %d, want 7", number, p, onDevice[0])
			}
			succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Release(x)}}))
			if p := d.MappedPtr(vkomp.HostPtr(x)); !p.IsNil() {
				t.Errorf("device %d: x corresponds to %v after it was released", number, p)
			}
		}
		if p := rt.InitialDevice().MappedPtr(vkomp.HostPtr(x)); p != vkomp.HostPtr(x) {
			t.Errorf("on the initial device x corresponds to %v, want itself", p)
		}
	})
}

func TestC41AccessibleIsNeverAFalsePositive(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		ctx, d := t.Context(), rt.DefaultDevice(t.Context())
		k, err := rt.NewKernel(throughSource)
		succeed(t, err)
		const n = 1000
		host := make([]uint32, n)
		memory := allocate(t, d, n)
		freed, err := d.Alloc(ctx, 4*n)
		succeed(t, err)
		succeed(t, d.Free(ctx, freed))
		accessible := 0
		for name, p := range map[string]vkomp.DevicePtr{
			"a slice":                       vkomp.HostPtr(host),
			"memory of the device":          memory,
			"memory of the initial device":  allocate(t, rt.InitialDevice(), n),
			"memory that was freed":         freed,
			"memory with fewer bytes":       memory.Add(4),
			"a slice with fewer bytes":      vkomp.HostPtr(host[1:]),
			"what is before the memory":     memory.Add(-4),
			"nil":                           {},
			"what is far behind the memory": memory.Add(1 << 30),
		} {
			if !d.IsAccessible(p, 4*n) {
				continue
			}
			accessible++
			// A kernel may write through the pointer, and the bytes arrive.
			target := vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: []vkomp.Arg{vkomp.Value(p), vkomp.Value(uint32(n))}}
			if err := rt.Target(ctx, target); err != nil {
				t.Errorf("%s is accessible, and a kernel that writes there fails: %v", name, err)
				continue
			}
			got := make([]uint32, n)
			succeed(t, rt.Memcpy(ctx, vkomp.HostPtr(got), p, 4*n))
			for i, v := range got {
				if v != uint32(5*i) {
					t.Fatalf("%s: element %d is %d, want %d", name, i, v, 5*i)
				}
			}
		}
		if want := map[bool]int{true: 3, false: 1}[d.IsInitial()]; accessible != want {
			t.Errorf("%d pointers are accessible, want %d", accessible, want)
		}
	})
}

func TestL15AssociateAndDisassociate(t *testing.T) {
	inVulkanModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		const n = 256
		s := make([]uint32, n)
		host, p := vkomp.HostPtr(s), allocate(t, d, n)
		if err := d.DisassociatePtr(ctx, host); !errors.Is(err, vkomp.ErrNotPresent) {
			t.Errorf("a disassociation without an association: %v", err)
		}
		want := indices(n)
		succeed(t, rt.Memcpy(ctx, p, vkomp.HostPtr(want), 4*n))
		for range 8 {
			if d.IsPresent(host) {
				t.Error("present before the association")
			}
			succeed(t, d.AssociatePtr(ctx, host, p, 4*n, 0))
			if !d.IsPresent(host) || d.MappedPtr(host) != p {
				t.Errorf("the host storage corresponds to %v, want %v", d.MappedPtr(host), p)
			}
			succeed(t, d.DisassociatePtr(ctx, host))
			if d.IsPresent(host) || !d.MappedPtr(host).IsNil() {
				t.Errorf("after the disassociation the host storage corresponds to %v", d.MappedPtr(host))
			}
			if err := d.DisassociatePtr(ctx, host); !errors.Is(err, vkomp.ErrNotPresent) {
				t.Errorf("a second disassociation: %v", err)
			}
		}
		got := make([]uint32, n)
		succeed(t, rt.Memcpy(ctx, vkomp.HostPtr(got), p, 4*n))
		if !slices.Equal(got, want) {
			t.Error("what the memory holds did not survive")
		}

		// Storage that a data construct has mapped is not an association.
		succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(s)}}))
		if err := d.DisassociatePtr(ctx, host); !errors.Is(err, vkomp.ErrAssociated) {
			t.Errorf("a disassociation of mapped storage: %v", err)
		}
		if !d.IsPresent(host) {
			t.Error("the refused disassociation unmapped the storage")
		}
		succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(s)}}))
	})
}

func TestL19AllocationsOfManyGoroutinesArePrivate(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		d := rt.DefaultDevice(t.Context())
		k := newAffine(t, rt)
		// Each goroutine has an error of its own.
		errs := make([]error, 16)
		var all sync.WaitGroup
		for g := range errs {
			all.Go(func() {
				errs[g] = func() error {
					ctx := context.Background()
					for size := 4; size <= 16<<10; size *= 2 {
						n := size / 4
						want, got := make([]uint32, n), make([]uint32, n)
						for i := range want {
							want[i] = uint32(g<<16 + i)
						}
						p, err := d.Alloc(ctx, size)
						if err != nil {
							return err
						}
						target := k.doubleAt(p, n)
						target.NoWait = false
						if err := errors.Join(
							rt.Memcpy(ctx, p, vkomp.HostPtr(want), size),
							rt.Target(ctx, target),
							rt.Memcpy(ctx, vkomp.HostPtr(got), p, size),
							d.Free(ctx, p),
						); err != nil {
							return err
						}
						for i := range got {
							if got[i] != 2*want[i] {
								return errors.New("another goroutine's contents")
							}
						}
					}
					return nil
				}()
			})
		}
		all.Wait()
		for g, err := range errs {
			if err != nil {
				t.Errorf("goroutine %d: %v", g, err)
			}
		}
		if s := rt.Stats(); !d.IsInitial() && s.Storage.LiveBytes != 0 {
			t.Errorf("%d bytes of device memory are left", s.Storage.LiveBytes)
		}
	})
}
