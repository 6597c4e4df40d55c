package vkomp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// allocPinned returns pinned storage that is freed when the test ends.
func allocPinned[T any](t testing.TB, rt *vkomp.Runtime, n int, devices ...vkomp.Device) []T {
	t.Helper()
	p, err := vkomp.AllocPinned[T](context.Background(), rt, n, devices...)
	must(t, err)
	t.Cleanup(func() { must(t, p.Free(context.Background())) })
	s := p.Slice()
	if len(s) != n {
		t.Fatalf("%d elements, want %d", len(s), n)
	}
	return s
}

// pinnedSlice returns a slice that is pinned until the test ends.
func pinnedSlice[T any](t testing.TB, rt *vkomp.Runtime, n int) []T {
	t.Helper()
	s := make([]T, n)
	p, err := vkomp.Pin(context.Background(), rt, s)
	must(t, err)
	t.Cleanup(func() { must(t, p.Free(context.Background())) })
	return s
}

// imports reports whether the device imports host storage.
func imports(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) bool {
	t.Helper()
	p, err := vkomp.Pin(t.Context(), rt, make([]byte, 100), d)
	must(t, p.Free(t.Context()))
	return err == nil
}

// kindsOfPinned are the ways to pinned storage of the default device.
func kindsOfPinned(t *testing.T, rt *vkomp.Runtime) map[string]func(n int) []float32 {
	kinds := map[string]func(int) []float32{
		"allocated": func(n int) []float32 { return allocPinned[float32](t, rt, n) },
	}
	if imports(t, rt, rt.DefaultDevice(t.Context())) {
		kinds["pinned"] = func(n int) []float32 { return pinnedSlice[float32](t, rt, n) }
	}
	return kinds
}

// Constructs do with pinned storage what they do with other storage, and need no staging memory for
// it.
func TestConstructsOnPinnedStorage(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k, err := rt.NewKernel(shaders.Saxpy)
		must(t, err)
		const n = 300_000
		for name, storage := range kindsOfPinned(t, rt) {
			t.Run(name, func(t *testing.T) {
				x, y := storage(n), storage(n)
				for i := range x {
					x[i], y[i] = float32(i%1000), 1
				}
				expect := func(what string, want func(i int) float32) {
					t.Helper()
					for i := range y {
						if y[i] != want(i) {
							t.Fatalf("%s: y[%d] is %v, want %v", what, i, y[i], want(i))
						}
					}
				}
				saxpy := func(noWait bool) {
					t.Helper()
					must(t, rt.Target(ctx, vkomp.Target{
						Kernel: k, Range: vkomp.Range{X: n}, DependArgs: true, NoWait: noWait,
						Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(n)), vkomp.Value(float32(2))},
					}))
				}
				saxpy(false)
				expect("a target", func(i int) float32 { return 1 + 2*float32(i%1000) })
				saxpy(true)
				saxpy(true)
				must(t, rt.Taskwait(ctx))
				expect("deferred targets", func(i int) float32 { return 1 + 6*float32(i%1000) })
				must(t, rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y)}}, func(ctx context.Context) error {
					y[7] = 100
					must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(y).Section(vkomp.Span{Start: 7, Count: 1})}}))
					saxpy(false)
					must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y).Section(vkomp.Span{Start: 7, Count: 100, Stride: 1000})}}))
					if !d.IsInitial() && (y[7] != 114 || y[8] != 1+48) {
						t.Errorf("after an update y is %v", y[6:9])
					}
					return nil
				}))
				expect("a region", func(i int) float32 {
					if i == 7 {
						return 114
					}
					return 1 + 8*float32(i%1000)
				})
				p := alloc(t, d, 4*n)
				must(t, rt.Memcpy(ctx, p, vkomp.HostPtr(x), 4*n))
				must(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(y).Add(4), p, 4*(n-1), vkomp.Out(y)))
				must(t, rt.Taskwait(ctx))
				expect("a copy", func(i int) float32 {
					if i == 0 {
						return 1
					}
					return x[i-1]
				})
			})
		}
		if s := rt.Stats(); s.Staging.PeakLiveBytes > 64<<10 {
			t.Errorf("%d bytes of staging memory were used", s.Staging.PeakLiveBytes)
		}
	})
}

// Kernels work on pinned storage in place, which needs no storage on the device.
func TestSelfMapsOfPinnedStorage(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k, err := rt.NewKernel(shaders.Saxpy)
		must(t, err)
		const n = 4000
		for name, storage := range kindsOfPinned(t, rt) {
			t.Run(name, func(t *testing.T) {
				// Arguments at the beginning of pages, which every device can bind.
				all := storage(3 * 4096)
				x, y := all[:n], all[4096:4096+n]
				for i := range x {
					x[i], y[i] = float32(i), 1
				}
				before := rt.Stats()
				must(t, rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y).Self()}}, func(ctx context.Context) error {
					must(t, rt.Target(ctx, vkomp.Target{
						Kernel: k, Range: vkomp.Range{X: n},
						Args: []vkomp.Arg{vkomp.To(x).Self(), vkomp.ToFrom(y), vkomp.Value(uint32(n)), vkomp.Value(float32(2))},
					}))
					for i := range y {
						if y[i] != 1+2*float32(i) {
							t.Fatalf("y[%d] is %v", i, y[i])
						}
					}
					return nil
				}))
				if after := rt.Stats(); after.BytesToDevice != before.BytesToDevice || after.BytesFromDevice != before.BytesFromDevice || after.Storage.PeakLiveBytes != before.Storage.PeakLiveBytes {
					t.Errorf("before %+v, after %+v", before, after)
				}
			})
		}
	})
}

// What cannot be pinned is an error that names it, and changes nothing.
func TestPinsThatAreRefused(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	other, err := vkomp.Open(vkomp.Options{})
	must(t, err)
	defer func() { must(t, other.Close()) }()
	d := rt.DefaultDevice(ctx)
	if _, err := vkomp.AllocPinned[*int](ctx, rt, 1); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "*int") {
		t.Errorf("pointers: %v", err)
	}
	if _, err := vkomp.Pin(ctx, rt, []string{"a"}); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "string") {
		t.Errorf("strings: %v", err)
	}
	if _, err := vkomp.AllocPinned[int](ctx, rt, -1); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "-1") {
		t.Errorf("a negative number: %v", err)
	}
	if _, err := vkomp.AllocPinned[int](ctx, rt, 1<<61); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("more bytes than there are: %v", err)
	}
	if _, err := vkomp.AllocPinned[byte](ctx, rt, 1<<60); !errors.Is(err, vkomp.ErrOutOfHostMemory) {
		t.Errorf("more bytes than the system has: %v", err)
	}
	if _, err := vkomp.AllocPinned[int](ctx, rt, 1, other.InitialDevice()); !errors.Is(err, vkomp.ErrInvalidDevice) {
		t.Errorf("a device of another runtime: %v", err)
	}
	if n := d.Memory().Pinned.Count; n != 0 {
		t.Errorf("%d are pinned", n)
	}
	if imports(t, rt, d) {
		x := make([]uint32, 100)
		p, err := vkomp.Pin(ctx, rt, x[10:20])
		must(t, err)
		for _, again := range [][]uint32{x, x[10:20], x[19:], x[11:12]} {
			if _, err := vkomp.Pin(ctx, rt, again); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "overlaps pinned storage") {
				t.Errorf("pinned twice: %v", err)
			}
		}
		q, err := vkomp.Pin(ctx, rt, x[20:])
		must(t, err)
		if m := d.Memory().Pinned; m != (vkomp.MemoryCount{Count: 2, Bytes: 4 * 90}) {
			t.Errorf("pinned: %+v", m)
		}
		must(t, p.Free(ctx))
		must(t, q.Free(ctx))
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x).Self()}}))
		if _, err := vkomp.Pin(ctx, rt, x[10:20]); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "share") {
			t.Errorf("shared already: %v", err)
		}
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}}))
	}
	for _, empty := range []func() (*vkomp.Pinned[struct{}], error){
		func() (*vkomp.Pinned[struct{}], error) { return vkomp.AllocPinned[struct{}](ctx, rt, 5) },
		func() (*vkomp.Pinned[struct{}], error) { return vkomp.Pin(ctx, rt, make([]struct{}, 5)) },
	} {
		p, err := empty()
		must(t, err)
		if len(p.Slice()) != 5 {
			t.Errorf("%d elements without bytes", len(p.Slice()))
		}
		must(t, p.Free(ctx))
		must(t, p.Free(ctx))
	}
	var none *vkomp.Pinned[int]
	must(t, none.Free(ctx))
}

// onImporting runs a test on a device in each mode, if the device imports host storage: no slice is pinned for others.
func onImporting(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device)) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		if imports(t, rt, d) {
			f(t, rt, d)
		}
	})
}

// A part of what is on the device is not pinned: the construct that ends a map could not copy back what
// it has mapped.
func TestPinsOfAPartOfWhatIsMapped(t *testing.T) {
	onImporting(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx, k := t.Context(), newKernel(t, rt, shaders.Saxpy)
		refusedPart := func(what string, part, whole []float32) {
			t.Helper()
			_, err := vkomp.Pin(ctx, rt, part)
			refused(t, what, err, vkomp.ErrPartialOverlap, fmt.Sprintf("[%p,", part), fmt.Sprintf("[%p,", whole), "device 0")
		}
		all, x := make([]float32, 120), constant(100, 1)
		y := all[:100]
		var whole *vkomp.Pinned[float32]
		must(t, rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y)}}, func(ctx context.Context) error {
			must(t, rt.Target(ctx, saxpyOn(t, k, 2, x, y)))
			refusedPart("its middle", y[10:20], y)
			refusedPart("its beginning", y[:99], y)
			refusedPart("its end and more", all[50:], y)
			var err error
			whole, err = vkomp.Pin(ctx, rt, all)
			return err
		}))
		if !slices.Equal(y, constant(100, 2)) {
			t.Errorf("y = %v", y[:4])
		}
		must(t, whole.Free(ctx))

		p, err := d.Alloc(ctx, 400)
		must(t, err)
		must(t, d.AssociatePtr(ctx, vkomp.HostPtr(y), p, 400, 0))
		refusedPart("a part of what is associated", y[10:20], y)
		must(t, d.DisassociatePtr(ctx, vkomp.HostPtr(y)))
		must(t, d.Free(ctx, p))
		declare(t, rt, vkomp.To(x))
		refusedPart("a part of what is declared", x[10:20], x)

		// The device is not open when the storage is declared.
		part, err := vkomp.Pin(ctx, rt, y[10:20])
		must(t, err)
		must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
		err = rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.Alloc(y)}})
		refused(t, "declared while a part is pinned", err, vkomp.ErrPartialOverlap, "map 0", fmt.Sprintf("[%p,", y), "pinned storage")
		must(t, part.Free(ctx))
		declare(t, rt, vkomp.Alloc(y))
	})
}

// Storage of which a part is pinned before a deferred construct maps it stays as it is: what began
// before the pin and ends by itself does not notice, and what would stay is an error.
func TestPinsOfAPartOfWhatIsMappedLater(t *testing.T) {
	onImporting(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx, k := t.Context(), newKernel(t, rt, shaders.Saxpy)
		x, y, z := constant(100, 1), constant(100, 0), constant(100, 0)
		var before vkomp.Event
		must(t, rt.Task(ctx, vkomp.Task{Detach: &before, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return nil }}))
		target := saxpyOn(t, k, 2, x, y)
		target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.In(x)}
		must(t, rt.Target(ctx, target))
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(z)}, NoWait: true, Depend: target.Depend}))
		p, err := vkomp.Pin(ctx, rt, y[10:20])
		must(t, err)
		q, err := vkomp.Pin(ctx, rt, z[10:20])
		must(t, err)
		must(t, before.Fulfill())
		refused(t, "enter", rt.Taskwait(ctx), vkomp.ErrPartialOverlap, "enter data", "pinned storage", fmt.Sprintf("[%p,", z))
		if d.IsPresent(vkomp.HostPtr(z)) || !slices.Equal(y, constant(100, 2)) {
			t.Errorf("z is present, or y is not 2: %v", y[:4])
		}
		must(t, p.Free(ctx))
		must(t, q.Free(ctx))
	})
}

// Pinned storage that is declared stays pinned until Close, which does not count it as a leak, whatever becomes
// of the device meanwhile. What the driver has allocated ends with the device, and cannot be declared.
func TestDeclaredStorageStaysPinned(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	d := rt.DefaultDevice(ctx)
	p, err := vkomp.AllocPinned[uint32](ctx, rt, 100)
	must(t, err)
	err = rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(p.Slice()[10:20])}})
	if !imports(t, rt, d) {
		refused(t, "declare", err, vkomp.ErrUnsupported, "map 0", "memory of the driver of device 0")
		must(t, p.Free(ctx))
		return
	}
	must(t, err)
	refused(t, "free", p.Free(ctx), vkomp.ErrBusy, "is mapped: map 0")
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	refused(t, "free while the device is not open", p.Free(ctx), vkomp.ErrBusy, "is declared: map 0")
}

// freeing calls Free, which has to fail, on other goroutines until stop is called.
func freeing(t *testing.T, ctx context.Context, p *vkomp.Pinned[byte]) (stop func()) {
	var begun, frees sync.WaitGroup
	var stopped atomic.Bool
	for range 2 {
		begun.Add(1)
		frees.Go(func() {
			begun.Done()
			for !stopped.Load() {
				if err := p.Free(ctx); !errors.Is(err, vkomp.ErrBusy) {
					t.Errorf("a Free of storage in use: %v", err)
					return
				}
			}
		})
	}
	begun.Wait()
	return func() {
		stopped.Store(true)
		frees.Wait()
	}
}

// Go knows nothing of the memory of a driver: it is not freed while a task on the host uses it, or another device
// maps it.
func TestFreeOfDriverStorageThatIsUsedElsewhere(t *testing.T) {
	faults := vktest.InjectFaults(t)
	rt, d := openTwice(t, cancellation)
	ctx := t.Context()
	faults.Fail("vkGetMemoryHostPointerPropertiesEXT", 1, -1, vk.ErrorInvalidExternalHandle)
	p, err := vkomp.AllocPinned[byte](ctx, rt, 1000, d[0])
	must(t, err)
	x, other, memory := p.Slice(), make([]byte, 1000), alloc(t, d[0], 10)
	host := newKernel(t, rt, vkomp.KernelSource{Name: "set", Host: func(c *vkomp.HostCall) error {
		vkomp.HostSlice[byte](c, 0)[0] = 9
		return nil
	}})
	for what, start := range map[string]func(ctx context.Context, after vkomp.Depend) error{
		"a fill": func(ctx context.Context, after vkomp.Depend) error {
			return rt.InitialDevice().MemsetAsync(ctx, vkomp.HostPtr(x), 7, 10, after)
		},
		"a copy from it": func(ctx context.Context, after vkomp.Depend) error {
			return rt.MemcpyAsync(ctx, vkomp.HostPtr(other), vkomp.HostPtr(x), 10, after)
		},
		"a copy to it": func(ctx context.Context, after vkomp.Depend) error {
			return rt.MemcpyAsync(ctx, vkomp.HostPtr(x), vkomp.HostPtr(other), 10, after)
		},
		"a target region": func(ctx context.Context, after vkomp.Depend) error {
			return rt.Target(ctx, vkomp.Target{Device: rt.InitialDevice(), Kernel: host, Range: vkomp.Range{X: 1}, NoWait: true, Args: []vkomp.Arg{vkomp.ToFrom(x[:5])}, Depend: []vkomp.Depend{after}})
		},
	} {
		gate := make([]byte, 1)
		release := held(t, rt, vkomp.Out(gate))
		must(t, start(ctx, vkomp.In(gate)))
		refused(t, what, p.Free(ctx), vkomp.ErrBusy, "1 tasks on the host")
		release()
		must(t, rt.Taskwait(ctx))

		// A task that is dropped ends the use too, before a wait for it returns.
		release = held(t, rt, vkomp.Out(gate))
		must(t, rt.Taskgroup(ctx, func(ctx context.Context) error {
			must(t, start(ctx, vkomp.In(gate)))
			refused(t, what+" in a taskgroup", p.Free(ctx), vkomp.ErrBusy, "1 tasks on the host")
			defer release()
			return rt.CancelTaskgroup(ctx)
		}))
	}
	// A Free that a task on the host makes fail hides the storage from no task of the device.
	for range 20 {
		gates := [2][]byte{make([]byte, 1), make([]byte, 1)}
		releases := [2]func(){held(t, rt, vkomp.Out(gates[0])), held(t, rt, vkomp.Out(gates[1]))}
		must(t, rt.InitialDevice().MemsetAsync(ctx, vkomp.HostPtr(x), 7, 10, vkomp.InOut(gates[0])))
		stop := freeing(t, ctx, p)
		must(t, rt.MemcpyAsync(ctx, memory, vkomp.HostPtr(x), 10, vkomp.InOut(gates[1])))
		stop()
		releases[0]()
		must(t, rt.Taskwait(ctx, vkomp.In(gates[0])))
		refused(t, "a copy generated beside a Free", p.Free(ctx), vkomp.ErrBusy, "1 tasks use")
		releases[1]()
		must(t, rt.Taskwait(ctx))
	}
	for range 50 {
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d[1], Maps: []vkomp.Arg{vkomp.To(x[:10])}}))
		refused(t, "mapped on another device", p.Free(ctx), vkomp.ErrBusy, fmt.Sprintf("device %d", d[1].Number()), "is mapped")
		// A Free that fails changes nothing for tasks that are generated at the same time.
		gate := make([]byte, 1)
		release := held(t, rt, vkomp.Out(gate))
		stop := freeing(t, ctx, p)
		must(t, rt.InitialDevice().MemsetAsync(ctx, vkomp.HostPtr(x), 7, 10, vkomp.In(gate)))
		stop()
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d[1], Maps: []vkomp.Arg{vkomp.Release(x[:10])}}))
		refused(t, "a fill generated beside a Free", p.Free(ctx), vkomp.ErrBusy, "1 tasks on the host")
		release()
		must(t, rt.Taskwait(ctx))
	}
	must(t, p.Free(ctx))
	faults.Mend()
}

// What would stay on a device, and of which only a part is pinned, could be neither updated nor copied back.
func TestNothingThatIsHalfPinnedStaysOnADevice(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		if d.IsInitial() || !imports(t, rt, d) {
			return // what a driver allocates is pinned as a whole, and the host's storage stays where it is
		}
		ctx := t.Context()
		y := make([]float32, 100)
		p, err := vkomp.Pin(ctx, rt, y[10:20], d)
		must(t, err)
		m := alloc(t, d, 400)
		for what, f := range map[string]func(y []float32) error{
			"to": func(y []float32) error {
				return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}})
			},
			"alloc": func(y []float32) error {
				return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.Alloc(y)}})
			},
			"associate": func(y []float32) error { return d.AssociatePtr(ctx, vkomp.HostPtr(y), m, 4*len(y), 0) },
		} {
			refused(t, what, f(y), vkomp.ErrPartialOverlap, "pinned storage")
			if d.IsPresent(vkomp.HostPtr(y)) {
				t.Errorf("%s: present after the error", what)
			}
			must(t, f(y[20:])) // not pinned
			must(t, f(y[12:14]))
			if what == "associate" {
				must(t, d.DisassociatePtr(ctx, vkomp.HostPtr(y[20:])))
				must(t, d.DisassociatePtr(ctx, vkomp.HostPtr(y[12:14])))
			} else {
				must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(y[20:]), vkomp.Release(y[12:14])}}))
			}
		}
		must(t, p.Free(ctx))
		must(t, d.AssociatePtr(ctx, vkomp.HostPtr(y), m, 400, 0))
		must(t, d.DisassociatePtr(ctx, vkomp.HostPtr(y)))
	})
}

// A slice of which only a part is pinned is an error of the construct that uses it.
func TestHalfPinnedSlicesAreErrors(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	d := rt.DefaultDevice(ctx)
	if !imports(t, rt, d) {
		return // what a driver allocates is pinned as a whole
	}
	x := make([]uint32, 100)
	p, err := vkomp.Pin(ctx, rt, x[10:20])
	must(t, err)
	defer func() { must(t, p.Free(ctx)) }()
	memory := alloc(t, d, 400)
	for name, err := range map[string]error{
		"enter":     rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}),
		"self":      rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.Alloc(x[15:]).Self()}}),
		"copy":      rt.Memcpy(ctx, memory, vkomp.HostPtr(x), 400),
		"copy back": rt.Memcpy(ctx, vkomp.HostPtr(x[9:]), memory, 8),
	} {
		if !errors.Is(err, vkomp.ErrPartialOverlap) || !strings.Contains(err.Error(), "pinned storage") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, rt.Memcpy(ctx, memory, vkomp.HostPtr(x), 40))
	must(t, rt.Memcpy(ctx, memory, vkomp.HostPtr(x[19:]), 4))
}

// Storage that is mapped or used by a task is not freed, and afterwards it is freed once.
func TestFreeOfPinnedStorageInUse(t *testing.T) {
	for _, option := range []func(*vkomp.Options){func(*vkomp.Options) {}, vktest.Staging} {
		rt := vktest.Open(t, option)
		ctx := t.Context()
		d := rt.DefaultDevice(ctx)
		p, err := vkomp.AllocPinned[uint32](ctx, rt, 100)
		must(t, err)
		x := p.Slice()
		x[99] = 5
		busy := func(what, named string) {
			t.Helper()
			if err := p.Free(ctx); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), named) || !strings.Contains(err.Error(), "of 400 bytes") {
				t.Errorf("%s: %v", what, err)
			}
			if len(p.Slice()) != 100 || x[99] != 5 {
				t.Errorf("%s: the storage has changed", what)
			}
		}
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x[10:])}}))
		busy("mapped", "is mapped")
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x[10:])}}))
		var event vkomp.Event
		token := make([]byte, 1)
		must(t, rt.Task(ctx, vkomp.Task{Detach: &event, Depend: []vkomp.Depend{vkomp.Out(token)}, Body: func(context.Context) error { return nil }}))
		memory := alloc(t, d, 400)
		must(t, rt.MemcpyAsync(ctx, memory, vkomp.HostPtr(x), 400, vkomp.In(token)))
		busy("used by a task", "1 tasks use")
		must(t, event.Fulfill())
		must(t, rt.Taskwait(ctx))
		must(t, p.Free(ctx))
		if p.Slice() != nil {
			t.Error("the slice of storage that was freed")
		}
		if err := p.Free(ctx); !errors.Is(err, vkomp.ErrInvalidPointer) || !strings.Contains(err.Error(), "was freed") {
			t.Errorf("freed twice: %v", err)
		}
		if m := d.Memory(); m.Pinned.Count != 0 {
			t.Errorf("pinned: %+v", m.Pinned)
		}
	}
}

// Pinned storage that the program has no reference to any more stays, and the runtime says so when it
// is closed. A slice that is only pinned is no leak.
func TestPinnedStorageIsKept(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{LeakSites: true})
	must(t, err)
	ctx := t.Context()
	d := rt.DefaultDevice(ctx)
	p, err := vkomp.AllocPinned[uint32](ctx, rt, 100)
	must(t, err)
	start := vkomp.HostPtr(p.Slice())
	p.Slice()[99] = 7
	withImports := imports(t, rt, d)
	if withImports {
		_, err := vkomp.Pin(ctx, rt, make([]uint32, 1000))
		must(t, err)
	}
	for range 3 {
		runtime.GC()
	}
	got := make([]uint32, 1)
	must(t, rt.Memcpy(ctx, vkomp.HostPtr(got), start.Add(4*99), 4))
	if got[0] != 7 || withImports && d.Memory().Pinned.Count != 2 {
		t.Errorf("%d; pinned: %+v", got, d.Memory().Pinned)
	}
	err = rt.Close()
	if !errors.Is(err, vkomp.ErrLeaked) || !strings.Contains(err.Error(), "1 pinned allocations not freed, 400 bytes") || !strings.Contains(err.Error(), "pinned_test.go") {
		t.Errorf("Close: %v", err)
	}
	if err := p.Free(ctx); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("freed after Close: %v", err)
	}
	if _, err := vkomp.AllocPinned[int](ctx, rt, 1); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("allocated after Close: %v", err)
	}
	if _, err := vkomp.Pin(ctx, rt, make([]int, 1)); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("pinned after Close: %v", err)
	}
}

// A pause leaves pinned storage as it is. After a hard one the device has access to it again, unless
// it is memory of the driver: then the pause is refused.
func TestPausesLeavePinnedStorage(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	d := rt.DefaultDevice(ctx)
	p, err := vkomp.AllocPinned[byte](ctx, rt, 5000)
	must(t, err)
	x := p.Slice()
	copy(x, noise(5000, 1))
	want := bytes.Clone(x)
	there := func() {
		t.Helper()
		memory, err := d.Alloc(ctx, 5000)
		must(t, err)
		must(t, rt.Memcpy(ctx, memory, vkomp.HostPtr(x), 5000))
		if m := d.Memory().Pinned; m != (vkomp.MemoryCount{Count: 1, Bytes: 5000}) {
			t.Errorf("pinned: %+v", m)
		}
		if got := contents(t, rt, memory, 5000); !bytes.Equal(got, want) || !bytes.Equal(x, want) {
			t.Error("the contents have changed")
		}
		must(t, d.Free(ctx, memory))
	}
	there()
	must(t, rt.PauseResource(ctx, vkomp.PauseSoft, d))
	there()
	err = rt.PauseResource(ctx, vkomp.PauseHard, d)
	if imports(t, rt, d) {
		must(t, err)
		must(t, rt.PauseResourceAll(ctx, vkomp.PauseHard))
	} else if !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "memory of the driver") {
		t.Errorf("a hard pause: %v", err)
	}
	there()
	must(t, p.Free(ctx))
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	if m := d.Memory().Pinned; m.Count != 0 {
		t.Errorf("pinned: %+v", m)
	}
	p, err = vkomp.AllocPinned[byte](ctx, rt, 100)
	must(t, err)
	if imports(t, rt, d) {
		must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	}
	must(t, p.Free(ctx)) // the device is not open
}

// openLogged opens a runtime that calls a function with the message of each record of its log.
func openLogged(t *testing.T, logged func(message string)) *vkomp.Runtime {
	t.Helper()
	rt, err := vkomp.Open(vkomp.Options{Logger: slog.New(loggedTo(logged))})
	must(t, err)
	t.Cleanup(func() { must(t, rt.Close()) })
	return rt
}

// loggedTo is a handler that passes messages to a function.
type loggedTo func(message string)

func (l loggedTo) Enabled(context.Context, slog.Level) bool { return true }
func (l loggedTo) Handle(_ context.Context, r slog.Record) error {
	l(r.Message)
	return nil
}
func (l loggedTo) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l loggedTo) WithGroup(string) slog.Handler      { return l }

// Storage that is freed while a device is opened that a hard pause has closed is not pinned there again.
func TestFreeOfPinnedStorageWhileADeviceIsOpened(t *testing.T) {
	faults := vktest.InjectFaults(t)
	var opening func()
	rt := openLogged(t, func(message string) {
		if message == "storage is not pinned any more" {
			opening()
		}
	})
	ctx := t.Context()
	d := rt.DefaultDevice(ctx)
	if !imports(t, rt, d) {
		return // the device would not be paused
	}
	var all []*vkomp.Pinned[byte]
	for range 2 {
		p, err := vkomp.Pin(ctx, rt, make([]byte, 5000))
		must(t, err)
		all = append(all, p)
	}
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	// The device is being opened and does not get the first of them back. Which that is does not matter.
	freed := make(chan struct{})
	opening = func() {
		go func() {
			defer close(freed)
			for _, p := range all {
				if err := p.Free(ctx); err != nil {
					t.Error(err)
				}
			}
		}()
		// A Free that does not wait for the device is over by then.
		for i := 0; i < 10_000 && all[1].Slice() != nil; i++ {
			runtime.Gosched()
		}
	}
	faults.Fail("vkGetMemoryHostPointerPropertiesEXT", 1, 1, vk.ErrorInvalidExternalHandle)
	alloc(t, d, 64) // opens the device
	<-freed
	if m := d.Memory().Pinned; m.Count != 0 {
		t.Errorf("all is freed, and pinned is %+v", m)
	}
}

// A driver that does not import the storage is asked to allocate it. With several devices, and for
// slices of the program's own, that does not help.
func TestDriversThatRefuseImports(t *testing.T) {
	vktest.Long(t)
	faults := vktest.InjectFaults(t)
	rt, d := openTwice(t, vktest.Staging)
	ctx := t.Context()
	faults.Fail("vkGetMemoryHostPointerPropertiesEXT", 1, -1, vk.ErrorInvalidExternalHandle)
	if _, err := vkomp.Pin(ctx, rt, make([]int, 10)); err == nil || !strings.Contains(err.Error(), "INVALID_EXTERNAL_HANDLE") || !strings.Contains(err.Error(), "device 0") {
		t.Errorf("a slice is pinned: %v", err)
	}
	if _, err := vkomp.AllocPinned[int](ctx, rt, 10, d[1], d[0]); err == nil || !strings.Contains(err.Error(), "INVALID_EXTERNAL_HANDLE") {
		t.Errorf("storage for two devices: %v", err)
	}
	x := allocPinned[uint32](t, rt, 100_000)
	m := d[0].Memory()
	if m.Pinned.Bytes != 400_000 {
		t.Errorf("pinned: %+v", m.Pinned)
	}
	allocated := 0
	for _, h := range m.Heaps {
		allocated += int(h.Pinned.Bytes)
		if h.Imported.Count != 0 {
			t.Errorf("imported: %+v", h.Imported)
		}
	}
	if allocated < 400_000 {
		t.Errorf("the driver has allocated %d bytes", allocated)
	}
	for i := range x {
		if x[i] != 0 {
			t.Fatalf("x[%d] is %d", i, x[i])
		}
		x[i] = uint32(i)
	}
	p, y := alloc(t, d[0], 400_000), make([]uint32, 100_000)
	must(t, rt.Memcpy(ctx, p, vkomp.HostPtr(x), 400_000))
	clear(x)
	must(t, rt.Memcpy(ctx, vkomp.HostPtr(x).Add(4), p, 399_996))
	must(t, rt.Memcpy(ctx, vkomp.HostPtr(y), p, 400_000))
	for i := range y {
		if y[i] != uint32(i) || x[i] != uint32(max(i, 1)-1) {
			t.Fatalf("y[%d] is %d, x[%d] is %d", i, y[i], i, x[i])
		}
	}
	if err := rt.PauseResource(ctx, vkomp.PauseHard, d[0]); !errors.Is(err, vkomp.ErrBusy) || !strings.Contains(err.Error(), "memory of the driver") {
		t.Errorf("a hard pause: %v", err)
	}
	faults.Fail("vkAllocateMemory", 1, -1, vk.ErrorOutOfHostMemory)
	if _, err := vkomp.AllocPinned[int](ctx, rt, 10); !errors.Is(err, vkomp.ErrOutOfMemory) || !strings.Contains(err.Error(), "INVALID_EXTERNAL_HANDLE") {
		t.Errorf("no memory of the driver either: %v", err)
	}
	faults.Fail("vkAllocateMemory", 1<<30, 1, vk.ErrorOutOfHostMemory)
}

// Storage that is pinned for several devices is pinned for all or none of them.
func TestStoragePinnedForTwoDevices(t *testing.T) {
	rt, d := openTwice(t, vktest.Staging)
	ctx := t.Context()
	if !imports(t, rt, d[0]) {
		return
	}
	p, err := vkomp.AllocPinned[byte](ctx, rt, 10_000, d[0], d[1], d[0], rt.InitialDevice())
	must(t, err)
	x := p.Slice()
	if uintptr(unsafe.Pointer(&x[0]))%4096 != 0 {
		t.Errorf("storage begins at %p", &x[0])
	}
	want := noise(10_000, 3)
	copy(x, want)
	a, b := alloc(t, d[0], 10_000), alloc(t, d[1], 10_000)
	must(t, rt.Memcpy(ctx, a, vkomp.HostPtr(x), 10_000))
	clear(x)
	must(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(x), a, 10_000, vkomp.Out(x)))
	must(t, rt.MemcpyAsync(ctx, b, vkomp.HostPtr(x), 10_000, vkomp.InOut(x)))
	must(t, rt.Taskwait(ctx))
	if !bytes.Equal(x, want) || !bytes.Equal(contents(t, rt, b, 10_000), want) {
		t.Error("other bytes")
	}
	if s := rt.Stats(); s.Staging.PeakLiveBytes > 2*10_240 { // contents is not pinned
		t.Errorf("%d bytes of staging memory were used", s.Staging.PeakLiveBytes)
	}
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d[1], Maps: []vkomp.Arg{vkomp.To(x)}}))
	refused(t, "mapped on the second device", p.Free(ctx), vkomp.ErrBusy, fmt.Sprintf("device %d", d[1].Number()))
	for i := range d {
		if n := d[i].Memory().Pinned.Count; n != 1 {
			t.Errorf("device %d: %d are pinned", i, n)
		}
	}
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d[1], Maps: []vkomp.Arg{vkomp.Release(x)}}))
	must(t, p.Free(ctx))
}

// Storage that cannot be pinned for all of its devices is pinned for none, even if it was mapped meanwhile
// on one that could.
func TestStorageMappedWhileItCannotBePinned(t *testing.T) {
	faults := vktest.InjectFaults(t)
	ctx := t.Context()
	y := constant(100, 1)
	var opening func()
	rt := openLogged(t, func(message string) {
		if message == "device opened" && opening != nil {
			opening()
		}
	})
	one := rt.DefaultDevice(ctx)
	two := vkomp.OpenAgain(rt, one)
	if !imports(t, rt, one) {
		return // no slice is pinned
	}
	k := newKernel(t, rt, shaders.Saxpy)
	later := saxpyOn(t, k, 2, constant(100, 1), y)
	later.NoWait, later.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
	opening = func() { // the first device has the storage, the second one not yet
		opening = nil
		if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}}); err != nil {
			t.Error(err)
		}
		if err := rt.Target(ctx, later); err != nil {
			t.Error(err)
		}
		faults.Fail("vkGetMemoryHostPointerPropertiesEXT", 1, 1, vk.ErrorInvalidExternalHandle)
	}
	_, err := vkomp.Pin(ctx, rt, y, one, two)
	if err == nil || !strings.Contains(err.Error(), "INVALID_EXTERNAL_HANDLE") || !strings.Contains(err.Error(), fmt.Sprintf("device %d", two.Number())) {
		t.Errorf("pinned: %v", err)
	}
	if m := one.Memory(); m.Pinned.Count != 0 {
		t.Errorf("after an error %+v is pinned", m.Pinned)
	}
	must(t, rt.Taskwait(ctx))
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(y)}}))
	if !slices.Equal(y, constant(100, 3)) {
		t.Errorf("y = %v", y[:4])
	}
	p, err := vkomp.Pin(ctx, rt, y, one, two)
	must(t, err)
	must(t, p.Free(ctx))
}

// On the initial device pinned storage is host storage like any other.
func TestPinnedStorageOfTheHost(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	ctx := t.Context()
	x := allocPinned[uint64](t, rt, 10)
	y := pinnedSlice[uint64](t, rt, 10)
	for i := range x {
		x[i] = uint64(i)
	}
	must(t, rt.Memcpy(ctx, vkomp.HostPtr(y), vkomp.HostPtr(x), 80))
	if y[9] != 9 {
		t.Error(y)
	}
	must(t, rt.PauseResourceAll(ctx, vkomp.PauseHard))
	if x[9] != 9 {
		t.Error(x)
	}
	var none *vkomp.Pinned[uint64]
	if none.Slice() != nil || none.Free(ctx) != nil {
		t.Error("a nil Pinned has storage")
	}
}

// Motions of an update may name the same bytes. Where the device copies them to pinned storage itself,
// which the validation layer watches, it does so one after the other.
func TestMotionsThatOverlapInPinnedStorage(t *testing.T) {
	rt := vktest.Open(t, vktest.Staging)
	ctx := t.Context()
	x := allocPinned[float32](t, rt, 100)
	copy(x, ramp(100))
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}))
	clear(x)
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x[:60]), vkomp.From(x[40:])}}))
	for i, v := range x {
		if v != float32(i) {
			t.Fatalf("x[%d] is %v", i, v)
		}
	}
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x), vkomp.To(x)}, NoWait: true}))
	must(t, rt.Taskwait(ctx))
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x)}}))
}

// Pinned storage is disjoint, and a declared item lies in another or beside all of them, among however many there are.
func TestPinnedAndDeclaredSectionsAmongOthers(t *testing.T) {
	ctx := t.Context()
	type section struct{ from, to int }
	overlaps := func(list []section, s section) bool {
		return slices.ContainsFunc(list, func(o section) bool { return o.from < s.to && s.from < o.to })
	}
	for seed := range uint64(20) {
		rt := vktest.Open(t, vktest.Host)
		random := rand.New(rand.NewPCG(seed, 1))
		pinnable, declarable := make([]byte, 200), make([]byte, 200)
		var pinned, declared []section
		var pins []*vkomp.Pinned[byte]
		for range 200 {
			from := random.IntN(190)
			s := section{from, from + 1 + random.IntN(10)}
			if n := len(pins); n > 0 && random.IntN(3) == 0 {
				k := random.IntN(n)
				must(t, pins[k].Free(ctx))
				pins, pinned = slices.Delete(pins, k, k+1), slices.Delete(pinned, k, k+1)
			}
			p, err := vkomp.Pin(ctx, rt, pinnable[s.from:s.to])
			if busy := overlaps(pinned, s); busy != errors.Is(err, vkomp.ErrBusy) || !busy && err != nil {
				t.Fatalf("seed %d: pin of %v among %v: %v", seed, s, pinned, err)
			} else if !busy {
				pins, pinned = append(pins, p), append(pinned, s)
			}
			inside := slices.ContainsFunc(declared, func(o section) bool { return o.from <= s.from && s.to <= o.to })
			err = rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(declarable[s.from:s.to])}})
			if partial := !inside && overlaps(declared, s); partial != errors.Is(err, vkomp.ErrPartialOverlap) || !partial && err != nil {
				t.Fatalf("seed %d: declaration of %v among %v: %v", seed, s, declared, err)
			} else if !partial && !inside {
				declared = append(declared, s)
			}
		}
	}
}
