//go:build cgo

package rawvulkan

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// watch is a log handler that fails the test on warnings and errors of the validation layer.
type watch struct{ t *testing.T }

func (w watch) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w watch) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w watch) WithGroup(string) slog.Handler                    { return w }

func (w watch) Handle(_ context.Context, record slog.Record) error {
	if !strings.Contains(record.Message, "VK_INSTANCE_LAYERS") && !strings.Contains(record.Message, vktest.LayersOwn) {
		w.t.Errorf("%s: %s", record.Level, record.Message)
	}
	return nil
}

// usable returns the UUID of the first device that can be used.
func usable(t *testing.T) string {
	t.Helper()
	i, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for _, p := range i.PhysicalDevices() {
		if len(p.Missing()) == 0 {
			return vk.UUIDString(p.Properties().UUID)
		}
	}
	t.Fatal("no device that can be used")
	return ""
}

// open opens a device under validation; the layer also reports what Close leaves.
func open(t *testing.T, change func(*Options)) *Device {
	t.Helper()
	o := Options{UUID: usable(t), Validation: true, Logger: slog.New(watch{t})}
	change(&o)
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// ways are what a device may have.
var ways = map[string]func(*Options){
	"with all that the device has": func(*Options) {},
	"without push descriptors":     func(o *Options) { o.NoPushDescriptors = true },
	"without synchronization2":     func(o *Options) { o.NoSynchronization2 = true },
}

func kernel(t *testing.T, d *Device, name string, buffers, push int) Kernel {
	t.Helper()
	code, err := os.ReadFile("../kernels/bench/" + name + ".spv")
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.NewKernel(name, code, buffers, push)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func buffer(t *testing.T, d *Device, size int) Buffer {
	t.Helper()
	b, err := d.NewBuffer(size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// words returns the first words of a buffer.
func words(t *testing.T, d *Device, b Buffer, n int) []uint32 {
	t.Helper()
	bytes := make([]byte, 4*n)
	if err := d.CopyOut(bytes, b, 1); err != nil {
		t.Fatal(err)
	}
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.NativeEndian.Uint32(bytes[4*i:])
	}
	return words
}

func batch(t *testing.T, d *Device, launches ...Launch) *Batch {
	t.Helper()
	b, err := d.NewBatch(launches)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Two launches with the results of the launches before them, another kernel between, and 40 that
// nothing orders: run together, again, after a recording that is not submitted, and one by one.
func TestBatchesComputeWhatTheirLaunchesSay(t *testing.T) {
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			d := open(t, change)
			inc, add, empty := kernel(t, d, "inc", 1, 1), kernel(t, d, "add", 2, 1), kernel(t, d, "empty", 0, 0)
			x, y := buffer(t, d, 256), buffer(t, d, 256)
			var launches []Launch
			bump := Launch{Kernel: inc, Groups: 1, Buffers: []Range{x.All()}, Push: []uint32{0}, Barrier: true}
			launches = append(launches, bump, Launch{Kernel: empty, Groups: 3, Barrier: true}, bump)
			for i := range 40 {
				launches = append(launches, Launch{Kernel: add, Groups: 1, Buffers: []Range{x.All(), y.All()}, Push: []uint32{uint32(i)}, Barrier: i == 39})
			}
			launches = append(launches, bump)
			b := batch(t, d, launches...)
			for _, run := range []func() error{b.Run, b.Record, b.Run, b.RunEach} {
				if err := run(); err != nil {
					t.Fatal(err)
				}
			}
			// x is 2, 5 and 8 when the three runs add it.
			if got := words(t, d, x, 2); !slices.Equal(got, []uint32{9, 0}) {
				t.Errorf("x is %d, want 9 and 0", got)
			}
			want := append(slices.Repeat([]uint32{15}, 40), 0)
			if got := words(t, d, y, 41); !slices.Equal(got, want) {
				t.Errorf("y is %d, want %d", got, want)
			}
		})
	}
}

// The buffers of a stencil are parts of two that take turns.
func TestLaunchesBindPartsOfBuffers(t *testing.T) {
	const points, elements, steps = 4, 64, 3
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			d := open(t, change)
			stencil := kernel(t, d, "stencil", 4, 0)
			rows := [2]Buffer{buffer(t, d, points*elements*4), buffer(t, d, points*elements*4)}
			part := func(step, p int) Range {
				return Range{Buffer: rows[step%2], Offset: (p + points) % points * elements * 4, Size: elements * 4}
			}
			want := make([]uint32, points*elements)
			start := make([]byte, 4*len(want))
			for i := range want {
				want[i] = uint32(i * i)
				binary.NativeEndian.PutUint32(start[4*i:], want[i])
			}
			if err := d.CopyIn(rows[0], start, 1); err != nil {
				t.Fatal(err)
			}
			var launches []Launch
			for step := 1; step <= steps; step++ {
				before := slices.Clone(want)
				for p := range points {
					launches = append(launches, Launch{Kernel: stencil, Groups: 1, Barrier: p == points-1,
						Buffers: []Range{part(step-1, p-1), part(step-1, p), part(step-1, p+1), part(step, p)}})
					for i := range elements {
						at := func(p int) uint32 { return before[(p+points)%points*elements+i] }
						want[p*elements+i] = (at(p-1)+at(p)+at(p+1))*747796405 + 1
					}
				}
			}
			if err := batch(t, d, launches...).Run(); err != nil {
				t.Fatal(err)
			}
			if got := words(t, d, rows[steps%2], len(want)); !slices.Equal(got, want) {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}

// staged makes copies between host and device pass through staging memory as where the host has no
// bytes of the device's.
func staged(b Buffer) Buffer {
	b.coherent = false
	return b
}

func direct(b Buffer) Buffer { return b }

func TestCopiesAndFillsMoveEveryByte(t *testing.T) {
	d := open(t, func(*Options) {})
	const large = 3*stagingHalf + 12
	for _, size := range []int{4, 4096, large} {
		for _, way := range []func(Buffer) Buffer{direct, staged} {
			from, to := buffer(t, d, size), buffer(t, d, size)
			host := make([]byte, size)
			for i := range host {
				host[i] = byte(i * 7 >> (i % 11))
			}
			back := make([]byte, size)
			err := d.CopyIn(way(from), host, 2)
			if err == nil {
				err = d.Copy(to, from)
			}
			if err == nil {
				err = d.CopyOut(back, way(to), 2)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(host, back) {
				t.Errorf("%d bytes came back otherwise", size)
			}
			if err := d.Fill(to, 0x01020304); err != nil {
				t.Fatal(err)
			}
			if got, want := words(t, d, to, size/4), slices.Repeat([]uint32{0x01020304}, size/4); !slices.Equal(got, want) {
				t.Errorf("%d bytes are not all filled", size)
			}
			d.FreeBuffer(from)
			d.FreeBuffer(to)
		}
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	if d, err := Open(Options{UUID: "00000000-0000-0000-0000-000000000001"}); d != nil || !errors.Is(err, vk.ErrUnsupported) || !strings.Contains(err.Error(), "00000000-0000-0000-0000-000000000001") {
		t.Errorf("unknown UUID: %v, %v", d, err)
	}
	d := open(t, func(*Options) {})
	inc := kernel(t, d, "inc", 1, 1)
	x, y := buffer(t, d, 256), buffer(t, d, 128)
	whole := Launch{Kernel: inc, Groups: 1, Buffers: []Range{x.All()}, Push: []uint32{0}}
	for want, change := range map[string]func(*Launch){
		"launch 0 has 0 buffers":                          func(l *Launch) { l.Buffers = nil },
		"1 buffers, 2 words":                              func(l *Launch) { l.Push = []uint32{0, 1} },
		"and 0 workgroups":                                func(l *Launch) { l.Groups = 0 },
		"launch 0, buffer 0: 256 bytes at byte 64 of 256": func(l *Launch) { l.Buffers = []Range{{Buffer: x, Offset: 64, Size: 256}} },
	} {
		l := whole
		change(&l)
		if b, err := d.NewBatch([]Launch{l}); b != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", b, err, want)
		}
	}
	for want, err := range map[string]error{
		"a batch without launches":            func() error { _, err := d.NewBatch(nil); return err }(),
		"kernel wide has 5 buffers":           func() error { _, err := d.NewKernel("wide", nil, 5, 0); return err }(),
		"copy of 256 bytes to a buffer of 12": d.Copy(y, x),
		"copy of 129 bytes":                   d.CopyIn(y, make([]byte, 129), 1),
		"copy of 130 bytes":                   d.CopyOut(make([]byte, 130), y, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// faulty returns a device whose calls the test lets fail, and which it closes, with a kernel that adds 1 to an element of a
// buffer.
func faulty(t *testing.T) (*vktest.Faults, *Device, Kernel, Buffer) {
	t.Helper()
	f := vktest.InjectFaults(t)
	d, err := Open(Options{UUID: usable(t)})
	if err != nil {
		t.Fatal(err)
	}
	return f, d, kernel(t, d, "inc", 1, 1), buffer(t, d, 256)
}

// A call that fails is named with its result, and the device can still be closed.
func TestFailedCallsAreNamed(t *testing.T) {
	f, d, inc, x := faulty(t)
	b := batch(t, d, Launch{Kernel: inc, Groups: 1, Buffers: []Range{x.All()}, Push: []uint32{0}})
	for _, command := range []string{"vkBeginCommandBuffer", "vkEndCommandBuffer", "vkQueueSubmit", "vkWaitSemaphores"} {
		f.Fail(command, 1, 1, vk.ErrorOutOfHostMemory)
		if err := b.Run(); !errors.Is(err, vk.ErrOutOfMemory) || !strings.Contains(fmt.Sprint(err), command) {
			t.Errorf("%s failed: %v", command, err)
		}
		if err := b.Run(); err != nil {
			t.Errorf("after %s failed: %v", command, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// What was submitted may still be under way when a call fails, also if the device is lost.
func TestNothingIsInFlightAfterAFault(t *testing.T) {
	f, d, inc, x := faulty(t)
	bump := Launch{Kernel: inc, Groups: 1, Buffers: []Range{x.All()}, Push: []uint32{0}, Barrier: true}
	b := batch(t, d, slices.Repeat([]Launch{bump}, 1000)...)
	for _, c := range []struct {
		command string
		n       int // which call of it fails
		result  vk.Result
		run     func() error
	}{
		{"vkWaitSemaphores", 1, vk.ErrorOutOfHostMemory, b.Run},
		// The buffer is filled, and the first half of the staging memory is being copied.
		{"vkBeginCommandBuffer", 3, vk.ErrorOutOfHostMemory, func() error { return d.CopyIn(staged(buffer(t, d, 2*stagingHalf)), make([]byte, 2*stagingHalf), 1) }},
		{"vkQueueSubmit", 1, vk.ErrorDeviceLost, b.Run},
	} {
		before := f.Calls("vkQueueWaitIdle")
		f.Fail(c.command, c.n, 1, c.result)
		if err := c.run(); err == nil || !strings.Contains(err.Error(), c.command) {
			t.Errorf("%s failed: %v", c.command, err)
		}
		if f.Calls("vkQueueWaitIdle") == before {
			t.Errorf("nothing waited for the queue after %s failed", c.command)
		}
	}
	d.FreeBuffer(x)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
