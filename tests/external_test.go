package tests

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// Two VkDevices of two runtimes share one memory.
func TestMemoryOfTwoDevices(t *testing.T) {
	ctx := t.Context()
	one := vktest.Open(t)
	a := one.DefaultDevice(ctx)
	const n = 4096
	p, err := a.AllocExternal(ctx, 4*n)
	succeed(t, err)
	two := vktest.Open(t)
	b := two.DefaultDevice(ctx)
	fd, err := a.ExportMemory(ctx, p)
	succeed(t, err)
	q, err := b.ImportMemory(ctx, fd, 4*n)
	succeed(t, err, os.NewFile(uintptr(fd), "memory").Close())

	x, y := indices(n), make([]uint32, n)
	succeed(t, one.Memcpy(ctx, p, vkomp.HostPtr(x), 4*n))
	k := newAffine(t, two)
	add := k.on(y, y, 1, 0, 9)
	add.Args[0], add.Args[1] = vkomp.IsDevicePtr(q), vkomp.IsDevicePtr(q)
	offload(t, two, now(add))
	succeed(t, one.Memcpy(ctx, vkomp.HostPtr(y), p, 4*n))
	for i := range x {
		x[i] += 9
	}
	if !slices.Equal(x, y) {
		t.Error("one device does not see what the other wrote")
	}
	if _, err := b.ExportMemory(ctx, q); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("ExportMemory of imported memory: %v", err)
	}
	if _, err := b.ImportMemory(ctx, -1, 4*n); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "of descriptor -1:") {
		t.Errorf("ImportMemory of no descriptor: %v", err)
	}
	// Each runtime frees its own pointer.
	succeed(t, a.Free(ctx, p))
	succeed(t, two.Memcpy(ctx, vkomp.HostPtr(y), q, 4*n))
	if !slices.Equal(x, y) {
		t.Error("the contents went with the exporting device's pointer")
	}
	succeed(t, b.Free(ctx, q))
	if _, err := a.ExportMemory(ctx, p); !errors.Is(err, vkomp.ErrInvalidPointer) {
		t.Errorf("ExportMemory of what was freed: %v", err)
	}
	r, err := a.Alloc(ctx, 64)
	succeed(t, err)
	if _, err := a.ExportMemory(ctx, r); !errors.Is(err, vkomp.ErrInvalidPointer) {
		t.Errorf("ExportMemory of an allocation: %v", err)
	}
	if _, err := a.ExportMemory(ctx, vkomp.DevicePtr{}); !errors.Is(err, vkomp.ErrInvalidPointer) {
		t.Errorf("ExportMemory of nil: %v", err)
	}
	succeed(t, a.Free(ctx, r))
	for _, size := range []int{0, -1} {
		if _, err := a.AllocExternal(ctx, size); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := one.InitialDevice().AllocExternal(ctx, 64); !errors.Is(err, vkomp.ErrInvalidDevice) {
		t.Errorf("the initial device: %v", err)
	}
}

// Memory is exported as long as nobody has freed it: the driver is asked for no descriptor of memory that
// another goroutine has destroyed meanwhile.
func TestExportOfMemoryThatIsFreedMeanwhile(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // the system suspends goroutines anywhere, also where they never block
	ctx := t.Context()
	d := vktest.Open(t).DefaultDevice(ctx)
	for range 2000 {
		p, err := d.AllocExternal(ctx, 64)
		succeed(t, err)
		var exporting sync.WaitGroup
		for range 2 {
			exporting.Go(func() {
				for {
					fd, err := d.ExportMemory(ctx, p)
					if err == nil {
						err = os.NewFile(uintptr(fd), "memory").Close()
					} else if errors.Is(err, vkomp.ErrInvalidPointer) {
						return
					}
					if err != nil {
						t.Errorf("export memory: %v", err)
						return
					}
				}
			})
		}
		succeed(t, d.Free(ctx, p))
		exporting.Wait()
	}
}

// Close destroys memory that other goroutines are allocating, or they get none.
func TestCloseWhileExternalMemoryIsAllocated(t *testing.T) {
	ctx := t.Context()
	for range 20 {
		rt, err := vkomp.Open(vkomp.Options{})
		succeed(t, err)
		d := rt.DefaultDevice(ctx)
		var begun, all sync.WaitGroup
		for range 8 {
			begun.Add(1)
			all.Go(func() {
				p, err := d.AllocExternal(ctx, 64)
				begun.Done()
				for err == nil {
					_ = d.Free(ctx, p) // an error if Close comes first
					p, err = d.AllocExternal(ctx, 64)
				}
				if !errors.Is(err, vkomp.ErrClosed) {
					t.Errorf("alloc external: %v", err)
				}
			})
		}
		all.Go(func() {
			var err error
			for err == nil {
				_, err = d.ExternalMemoryType(ctx)
			}
			if !errors.Is(err, vkomp.ErrClosed) {
				t.Errorf("external memory type: %v", err)
			}
		})
		begun.Wait()
		if err := rt.Close(); err != nil && (!errors.Is(err, vkomp.ErrLeaked) || errors.Is(err, vk.ErrBusy)) {
			t.Errorf("close: %v", err)
		}
		all.Wait()
	}
}
