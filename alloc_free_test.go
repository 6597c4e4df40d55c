package vkomp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// memoryModes are the ways in which a memory routine can reach device memory.
var memoryModes = []struct {
	name   string
	option func(*vkomp.Options)
}{
	{"device", func(*vkomp.Options) {}},
	{"staging", vktest.Staging},
	{"initial device", vktest.Host},
}

// inMemoryModes runs f on the default device of a runtime of each mode.
func inMemoryModes(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device)) {
	for _, m := range memoryModes {
		t.Run(m.name, func(t *testing.T) {
			rt := vktest.Open(t, m.option)
			f(t, rt, rt.DefaultDevice(t.Context()))
		})
	}
}

// alloc returns new memory that is freed when the test ends.
func alloc(t testing.TB, d vkomp.Device, size int) vkomp.DevicePtr {
	t.Helper()
	p, err := d.Alloc(context.Background(), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Free(context.Background(), p); err != nil {
			t.Errorf("free %v: %v", p, err)
		}
	})
	return p
}

func memcpy(t rapid.TB, rt *vkomp.Runtime, dst, src vkomp.DevicePtr, size int) {
	t.Helper()
	if err := rt.Memcpy(context.Background(), dst, src, size); err != nil {
		t.Fatal(err)
	}
}

// contents returns size bytes, starting at p.
func contents(t rapid.TB, rt *vkomp.Runtime, p vkomp.DevicePtr, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	memcpy(t, rt, vkomp.HostPtr(b), p, size)
	return b
}

// noise returns n bytes that differ from their neighbours and between seeds.
func noise(n int, seed uint32) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

// refused fails the test unless err matches want and contains all of the texts.
func refused(t testing.TB, what string, err, want error, texts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", what, err, text)
		}
	}
}

func TestAllocatedMemoryHoldsWhatIsCopiedThere(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		type held struct {
			p    vkomp.DevicePtr
			want []byte
		}
		var live []held
		seen := make(map[vkomp.DevicePtr]bool)
		for i, size := range []int{1, 7, 8, 4096, 100_000, 3 << 20, 64, 1} {
			p, err := d.Alloc(ctx, size)
			if err != nil {
				t.Fatal(err)
			}
			if p.IsNil() || p.Device() != d || p.Address()%8 != 0 || seen[p] {
				t.Errorf("%d bytes at %v of device %d", size, p, p.Device().Number())
			}
			seen[p] = true
			h := held{p, noise(size, uint32(i))}
			memcpy(t, rt, p, vkomp.HostPtr(h.want), size)
			live = append(live, h)
		}
		for _, h := range live {
			if got := contents(t, rt, h.p, len(h.want)); !bytes.Equal(got, h.want) {
				t.Errorf("%d bytes at %v changed", len(h.want), h.p)
			}
			if err := d.Free(ctx, h.p); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAllocOfNothingIsNil(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p, err := d.Alloc(t.Context(), 0)
		if err != nil || !p.IsNil() || p != (vkomp.DevicePtr{}) {
			t.Errorf("0 bytes are %v: %v", p, err)
		}
		if err := d.Free(t.Context(), p); err != nil {
			t.Errorf("free nil: %v", err)
		}
		p, err = d.Alloc(t.Context(), -1)
		refused(t, "-1 bytes", err, vkomp.ErrInvalidArgument, "alloc", "-1 bytes")
		if !p.IsNil() {
			t.Errorf("-1 bytes are %v", p)
		}
	})
}

func TestAllocOfMoreThanThereIs(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		for _, size := range []int{1 << 45, 1<<62 + 1} {
			p, err := d.Alloc(t.Context(), size)
			refused(t, "a huge allocation", err, vkomp.ErrOutOfMemory)
			if !p.IsNil() {
				t.Errorf("%d bytes are %v", size, p)
			}
		}
		p := alloc(t, d, 100)
		memcpy(t, rt, p, vkomp.HostPtr(noise(100, 1)), 100)
	})
}

func TestFreeRefusesWhatAllocDidNotReturn(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p := alloc(t, d, 1000)
		want := noise(1000, 5)
		memcpy(t, rt, p, vkomp.HostPtr(want), len(want))

		refused(t, "host storage", d.Free(ctx, vkomp.HostPtr(want)), vkomp.ErrInvalidPointer, "host storage")
		refused(t, "an interior pointer", d.Free(ctx, p.Add(16)), vkomp.ErrInvalidPointer, "16 bytes", "allocation [")
		refused(t, "a pointer before the beginning", d.Free(ctx, p.Add(-1)), vkomp.ErrInvalidPointer)

		// The allocator hands out the same memory again at once.
		freed, err := d.Alloc(ctx, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Free(ctx, freed); err != nil {
			t.Fatal(err)
		}
		refused(t, "a second free", d.Free(ctx, freed), vkomp.ErrInvalidPointer, "freed")
		again := alloc(t, d, 5000)
		if again == freed {
			t.Error("two allocations have the same pointer")
		}
		err = d.Free(ctx, freed)
		refused(t, "a stale pointer", err, vkomp.ErrInvalidPointer, "freed")
		if again.Address() == freed.Address() {
			refused(t, "a stale pointer into what lives there now", err, vkomp.ErrInvalidPointer, "allocation [")
		} else if !d.IsInitial() {
			t.Errorf("5000 bytes at %v and then at %v: the test has nothing to tell apart", freed, again)
		}
		memcpy(t, rt, again, vkomp.HostPtr(noise(5000, 6)), 5000)

		if got := contents(t, rt, p, len(want)); !bytes.Equal(got, want) {
			t.Error("a refused free changed what the memory holds")
		}
	})
}

func TestMemoryOfOneDeviceIsRefusedByAnother(t *testing.T) {
	ctx := t.Context()
	rt := vktest.Open(t)
	vulkan, initial := rt.DefaultDevice(ctx), rt.InitialDevice()
	onVulkan, onHost := alloc(t, vulkan, 64), alloc(t, initial, 64)
	other := vktest.Open(t, vktest.Host)

	refused(t, "free on the initial device", initial.Free(ctx, onVulkan), vkomp.ErrInvalidDevice, "on device 0")
	refused(t, "free on device 0", vulkan.Free(ctx, onHost), vkomp.ErrInvalidDevice, "on the initial device")
	refused(t, "memset on the initial device", initial.Memset(ctx, onVulkan, 1, 64), vkomp.ErrInvalidDevice)
	refused(t, "memset on device 0", vulkan.Memset(ctx, onHost, 1, 64), vkomp.ErrInvalidDevice)
	refused(t, "memset of host storage on device 0", vulkan.Memset(ctx, vkomp.HostPtr(make([]byte, 64)), 1, 64), vkomp.ErrInvalidDevice, "[]uint8")
	refused(t, "associate", vulkan.AssociatePtr(ctx, vkomp.HostPtr(make([]byte, 64)), onHost, 64, 0), vkomp.ErrInvalidDevice)

	refused(t, "free by another runtime", other.InitialDevice().Free(ctx, onHost), vkomp.ErrInvalidDevice, "another runtime")
	refused(t, "memset by another runtime", other.InitialDevice().Memset(ctx, onHost, 1, 64), vkomp.ErrInvalidDevice, "another runtime")
	for _, size := range []int{0, 64} {
		refused(t, "memcpy by another runtime", other.Memcpy(ctx, onHost, onHost, size), vkomp.ErrInvalidDevice, "another runtime")
		refused(t, "memcpy from another runtime", other.Memcpy(ctx, vkomp.HostPtr(make([]byte, 64)), onVulkan, size), vkomp.ErrInvalidDevice, "another runtime")
	}
	if initial.IsAccessible(onVulkan, 1) || vulkan.IsAccessible(onHost, 1) || other.InitialDevice().IsAccessible(onHost, 1) {
		t.Error("memory of one device is accessible from another")
	}
}

func TestRoutinesOfTheZeroDevice(t *testing.T) {
	ctx, host := t.Context(), vkomp.HostPtr(make([]byte, 8))
	var zero vkomp.Device
	_, err := zero.Alloc(ctx, 8)
	for what, err := range map[string]error{
		"alloc":        err,
		"free":         zero.Free(ctx, host),
		"memset":       zero.Memset(ctx, host, 1, 8),
		"memset async": zero.MemsetAsync(ctx, host, 1, 8),
		"associate":    zero.AssociatePtr(ctx, host, host, 8, 0),
		"disassociate": zero.DisassociatePtr(ctx, host),
	} {
		refused(t, what, err, vkomp.ErrInvalidDevice, "zero Device", strings.Fields(what)[0])
	}
	if zero.IsPresent(host) || zero.IsAccessible(host, 1) || !zero.MappedPtr(host).IsNil() {
		t.Error("the zero Device knows host storage")
	}
}

func TestRoutinesAfterCloseAndWithAnEndedContext(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p, err := d.Alloc(t.Context(), 64)
		if err != nil {
			t.Fatal(err)
		}
		host := vkomp.HostPtr(make([]byte, 64))
		rect := vkomp.Rect{Elem: 1, Volume: []int{4}, DstOffsets: []int{0}, SrcOffsets: []int{0}, DstDims: []int{4}, SrcDims: []int{4}}
		all := func(ctx context.Context) map[string]error {
			_, err := d.Alloc(ctx, 8)
			return map[string]error{
				"alloc":             err,
				"free":              d.Free(ctx, p),
				"memset":            d.Memset(ctx, p, 1, 8),
				"memset async":      d.MemsetAsync(ctx, p, 1, 8),
				"memcpy":            rt.Memcpy(ctx, p, host, 8),
				"memcpy async":      rt.MemcpyAsync(ctx, p, host, 8),
				"memcpy rect":       rt.MemcpyRect(ctx, p, host, rect),
				"memcpy rect async": rt.MemcpyRectAsync(ctx, p, host, rect),
				"associate":         d.AssociatePtr(ctx, host, p, 8, 0),
				"disassociate":      d.DisassociatePtr(ctx, host),
			}
		}
		why := errors.New("no more")
		ended, end := context.WithCancelCause(t.Context())
		end(why)
		for what, err := range all(ended) {
			switch {
			case what == "free":
				must(t, err)
			case what == "disassociate" && d.IsInitial():
				refused(t, what, err, vkomp.ErrInvalidDevice)
			case what == "disassociate":
				refused(t, what, err, vkomp.ErrNotPresent)
			default:
				refused(t, what+" with an ended context", err, why)
			}
		}
		if d.IsAccessible(p, 64) {
			t.Error("the memory is there after a Free with an ended context")
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		for what, err := range all(t.Context()) {
			refused(t, what+" after Close", err, vkomp.ErrClosed)
		}
		if d.IsAccessible(p, 1) || d.IsAccessible(host, 1) || d.IsPresent(host) || !d.MappedPtr(host).IsNil() {
			t.Error("storage is there after Close")
		}
	})
}

func TestCloseReportsMemoryThatWasNotFreed(t *testing.T) {
	for _, m := range memoryModes {
		t.Run(m.name, func(t *testing.T) {
			var o vkomp.Options
			m.option(&o)
			rt, err := vkomp.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			d := rt.DefaultDevice(t.Context())
			for range 3 {
				if _, err := d.Alloc(t.Context(), 40); err != nil {
					t.Error(err)
				}
			}
			if err := rt.Close(); err == nil || !strings.Contains(err.Error(), "3 allocations") {
				t.Errorf("Close returns %v", err)
			}
			if err := rt.Close(); err != nil {
				t.Errorf("a second Close returns %v", err)
			}
		})
	}
}

func TestFreeWhileTasksUseTheMemory(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		const size = 100_000
		for round := range uint32(5) {
			want, got := noise(size, round), make([]byte, size)
			p, err := d.Alloc(ctx, size)
			if err != nil {
				t.Fatal(err)
			}
			gate, release := []int{0}, make(chan struct{})
			generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(gate)}, Body: func(context.Context) error {
				<-release
				return nil
			}})
			for _, err := range []error{
				rt.MemcpyAsync(ctx, p, vkomp.HostPtr(want), size, vkomp.InOut(gate)),
				rt.MemcpyAsync(ctx, vkomp.HostPtr(got), p, size, vkomp.InOut(gate)),
				// None of the tasks has begun.
				d.Free(ctx, p),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			refused(t, "a copy after the free", rt.MemcpyAsync(ctx, p, vkomp.HostPtr(want), size, vkomp.InOut(gate)), vkomp.ErrInvalidPointer, "freed")
			// A new allocation is other memory.
			next := alloc(t, d, size)
			if err := d.Memset(ctx, next, 0xee, size); err != nil {
				t.Fatal(err)
			}
			close(release)
			if err := rt.Taskwait(ctx); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("what the tasks copied is not what they should")
			}
			if b := contents(t, rt, next, size); !bytes.Equal(b, bytes.Repeat([]byte{0xee}, size)) {
				t.Error("the tasks changed memory that was allocated after they were generated")
			}
		}
	})
}

func TestAccessibleIsWhatCanBeAccessed(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p := alloc(t, d, 100)
		freed, err := d.Alloc(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Free(t.Context(), freed); err != nil {
			t.Fatal(err)
		}
		s := make([]byte, 100)
		host := vkomp.HostPtr(s)
		for _, c := range []struct {
			name string
			p    vkomp.DevicePtr
			size int
			want bool
		}{
			{"all of it", p, 100, true},
			{"its last byte", p.Add(99), 1, true},
			{"one byte more", p, 101, false},
			{"the byte past the end", p.Add(100), 1, false},
			{"the byte before", p.Add(-1), 1, false},
			{"far away", p.Add(1 << 40), 1, false},
			{"nothing", p, 0, false},
			{"less than nothing", p, -1, false},
			{"the largest size", p.Add(1), int(^uint(0) >> 1), false},
			{"nil", vkomp.DevicePtr{}, 1, false},
			{"freed memory", freed, 1, false},
			{"host storage", host, 100, d.IsInitial()},
			{"past the end of host storage", host, 101, false},
		} {
			if got := d.IsAccessible(c.p, c.size); got != c.want {
				t.Errorf("%s: %v", c.name, got)
			}
		}
	})
}

// A deferred Free gives memory back also when the context of the work has ended.
func TestWhatIsGivenBackWithAnEndedContextIsNoLeak(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ended, end := context.WithCancel(t.Context())
		p, err := d.Alloc(ended, 64)
		must(t, err)
		pinned, err := vkomp.AllocPinned[byte](ended, rt, 100)
		must(t, err)
		host := vkomp.HostPtr(make([]byte, 64))
		if !d.IsInitial() {
			must(t, d.AssociatePtr(ended, host, p, 64, 0))
		}
		end()
		if !d.IsInitial() {
			must(t, d.DisassociatePtr(ended, host))
		}
		must(t, errors.Join(d.Free(ended, p), pinned.Free(ended)))
		must(t, rt.Close())
		refused(t, "free after Close", d.Free(ended, p), vkomp.ErrClosed)
	})
}

// Memory has a buffer of its size, of which some devices allow less than of memory.
func TestAllocationBeyondTheLargestBuffer(t *testing.T) {
	rt := vktest.Open(t)
	d := rt.DefaultDevice(t.Context())
	const size = 1<<30 + 4096 // the discrete layer ends the process at a buffer of more than 1 GiB
	p, err := d.Alloc(t.Context(), size)
	if err != nil {
		refused(t, "an allocation", err, vkomp.ErrOutOfMemory, fmt.Sprint(size))
	}
	must(t, d.Free(t.Context(), p))
}
