package vgpu

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"runtime"
	"runtime/cgo"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goki/vgpu/vgpu"
	"github.com/goki/vulkan"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/vktest"
)

//go:embed testdata/halve.spv
var halveSPIRV []byte

const both = interop.TypeTarget | interop.TypeTargetSync

// unvalidated is an option for tests that do on purpose what the validation layer would report.
func unvalidated(o *vkomp.Options) { o.Validation = false }

func newObject(t *testing.T, rt *vkomp.Runtime, types interop.Types) interop.Object {
	t.Helper()
	var o interop.Object
	if err := rt.Interop(t.Context(), vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: types}}}); err != nil {
		t.Fatal(err)
	}
	if o == interop.None {
		t.Fatal("the object is none")
	}
	return o
}

// opened returns a Device on a new object.
func opened(t *testing.T, rt *vkomp.Runtime) (interop.Object, *Device) {
	t.Helper()
	o := newObject(t, rt, both)
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return o, d
}

func closed(t *testing.T, d *Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// wants fails the test unless err wraps target and its text has all of texts.
func wants(t *testing.T, err, target error, texts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%v: want %v", err, target)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: does not say %q", err, text)
		}
	}
}

// A panic inside Do becomes an error, whoever has caused it, and the Device can be used
// afterwards.
func TestPanicsOfVGPUBecomeErrors(t *testing.T) {
	rt := vktest.Open(t, unvalidated)
	_, d := opened(t, rt)
	defer closed(t, d)
	failure := errors.New("failure of the caller's")
	for _, c := range []struct {
		name  string
		f     func() error
		panic bool
		text  string
	}{
		{"vgpu's own", func() error { (&vgpu.Framebuffer{}).ConfigRender(&vgpu.Render{Dev: d.Device.Device}); return nil }, true,
			"image and renderpass have different devices"},
		{"a Vulkan error", func() error {
			b := vgpu.NewBuffer(d.Device.Device, 1<<20, vulkan.BufferUsageStorageBufferBit)
			defer vulkan.DestroyBuffer(d.Device.Device, b, nil)
			var memory vulkan.DeviceMemory
			vgpu.IfPanic(vgpu.NewError(vulkan.AllocateMemory(d.Device.Device, &vulkan.MemoryAllocateInfo{
				SType: vulkan.StructureTypeMemoryAllocateInfo, AllocationSize: 1 << 50,
			}, nil, &memory)))
			return nil
		}, true, "out of device memory"},
		{"Go's own", func() error { (*vgpu.System)(nil).Config(); return nil }, true, "nil pointer"},
		{"nested", func() error { return d.Do(func() error { panic("inside") }) }, true, "inside"},
		{"no panic", func() error { return failure }, false, failure.Error()},
		{"nothing", func() error { return nil }, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := d.Do(c.f)
			var p *PanicError
			if errors.As(err, &p) != c.panic || (err == nil) != (c.text == "") {
				t.Fatalf("error %v", err)
			}
			if c.text != "" {
				wants(t, err, err, c.text)
			}
			if c.panic && len(p.Stack) == 0 {
				t.Error("no stack")
			}
			if c.name == "no panic" && !errors.Is(err, failure) {
				t.Errorf("%v is not the caller's", err)
			}
		})
	}
	// No lock is still held, and the device works.
	got, want := alternate(t, rt, false, false, true)
	if !slices.Equal(got, want) {
		t.Error("wrong values after panics")
	}
}

// Code of one Device may call another, and that the first one again.
func TestDoInsideDoOfAnotherDevice(t *testing.T) {
	rt := vktest.Open(t)
	_, a := opened(t, rt)
	defer closed(t, a)
	_, b := opened(t, rt)
	defer closed(t, b)
	calls := 0
	err := a.Do(func() error {
		return b.Do(func() error {
			err := a.Do(func() error {
				calls++
				return nil
			})
			_, failed := a.NewComputeSystem("inside")
			return errors.Join(err, failed)
		})
	})
	if err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	// Each has let go of what it held.
	if err := errors.Join(a.Do(func() error { return nil }), b.Do(func() error { return nil })); err != nil {
		t.Error(err)
	}
}

var garbage []byte

// A collection inside Do could free memory that Vulkan has not read: there must be none.
func TestNoGarbageIsCollectedInsideDo(t *testing.T) {
	rt := vktest.Open(t)
	_, d := opened(t, rt)
	defer closed(t, d)
	_, other := opened(t, rt)
	defer closed(t, other)
	percent := debug.SetGCPercent(37)
	defer debug.SetGCPercent(percent)
	limit := debug.SetMemoryLimit(1 << 20)
	defer debug.SetMemoryLimit(limit)
	collections := func() uint32 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.NumGC
	}
	litter := func() error {
		before := collections()
		for range 100 {
			garbage = make([]byte, 1<<20)
		}
		if n := collections() - before; n != 0 {
			return fmt.Errorf("%d collections", n)
		}
		return nil
	}
	if litter() == nil {
		t.Error("no collection outside Do either")
	}
	err := d.Do(func() error {
		return errors.Join(litter(), other.Do(litter), litter())
	})
	if err != nil {
		t.Error(err)
	}
	if got := debug.SetGCPercent(37); got != 37 {
		t.Errorf("percentage %d after Do, want 37", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 1<<20 {
		t.Errorf("limit %d after Do, want %d", got, 1<<20)
	}
}

func TestWhatCannotBeMadeLeavesNothing(t *testing.T) {
	rt := vktest.Open(t, unvalidated)
	_, d := opened(t, rt)
	defer closed(t, d)
	var p *PanicError
	if _, err := d.NewRenderFrame(image.Pt(1<<15, 1<<15), 1000); !errors.As(err, &p) {
		t.Errorf("frames of 4 TB: %v", err)
	}
	for _, c := range []struct {
		size  image.Point
		count int
	}{{image.Pt(0, 1), 1}, {image.Pt(1, -1), 1}, {image.Pt(1, 1), 0}} {
		if f, err := d.NewRenderFrame(c.size, c.count); err == nil {
			t.Errorf("%v frames of %v: %v", c.count, c.size, f)
		}
	}
	if len(d.frames) != 0 {
		t.Errorf("%d render frames are kept", len(d.frames))
	}
	if f, err := d.NewRenderFrame(image.Pt(8, 8), 2); err != nil || len(f.Frames) != 2 {
		t.Errorf("afterwards: %v", err)
	}
}

func TestOpenNamesWhatIsWrongWithTheObject(t *testing.T) {
	rt := vktest.Open(t)
	gone := newObject(t, rt, both)
	copied := gone
	if err := rt.Interop(t.Context(), vkomp.Interop{Destroy: []*interop.Object{&gone}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		object interop.Object
		want   error
		text   string
	}{
		{"none", interop.None, ErrObject, "none"},
		{"target", newObject(t, rt, interop.TypeTarget), ErrObject, "types target: want target,targetsync"},
		{"targetsync", newObject(t, rt, interop.TypeTargetSync), ErrObject, "types targetsync: want target,targetsync"},
		{"destroyed", copied, ErrClosed, "closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.object)
			wants(t, err, c.want, c.text)
		})
	}
}

func TestOnAQueueThatOnlyComputesThereAreNoGraphics(t *testing.T) {
	vktest.Layers(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "CT2")
	rt := vktest.Open(t)
	_, d := opened(t, rt)
	defer closed(t, d)
	wants(t, second(d.NewGraphicsSystem("graphics")), ErrObject, "does not draw")
	wants(t, second(d.NewRenderFrame(image.Pt(1, 1), 1)), ErrObject, "does not draw")
	if _, err := d.NewComputeSystem("compute"); err != nil {
		t.Error(err)
	}
}

func TestBindNamesWhatIsWrong(t *testing.T) {
	rt := vktest.Open(t)
	o, d := opened(t, rt)
	defer closed(t, d)
	values := make([]float32, 1024)
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(values)}}, func(context.Context) error {
		b, err := rt.InteropBuffer(o, vkomp.HostPtr(values), 0)
		if err != nil {
			return err
		}
		h := newHalver(t, d, false, len(values), b)
		unready, err := d.NewComputeSystem("unready")
		if err != nil {
			return err
		}
		err = d.Do(func() error {
			set := unready.Vars().AddSet()
			set.Add("values", vgpu.Float32, 1, vgpu.Storage, vgpu.ComputeShader)
			set.Add("uniform", vgpu.Float32, 1, vgpu.Uniform, vgpu.ComputeShader)
			return nil
		})
		if err != nil {
			return err
		}
		for _, c := range []struct {
			system           *vgpu.System
			descriptors, set int
			variable         string
			text             string
		}{
			{h.system, 0, 0, "other", `"other" of set 0`},
			{h.system, 0, 1, "values", `"values" of set 1`},
			{h.system, 1, 0, "values", "there are 1"},
			{h.system, -1, 0, "values", "descriptor set index -1"},
			{unready, 0, 0, "values", "not configured"},
			{unready, 0, 0, "uniform", "Uniform"},
		} {
			err := d.Bind(c.system, c.descriptors, c.set, c.variable, b)
			if err == nil {
				t.Errorf("%+v: no error", c)
				continue
			}
			wants(t, err, err, c.text)
		}
		for text, change := range map[string]func(b *interop.Buffer){
			"nothing to bind":                 func(b *interop.Buffer) { b.Buffer = 0 },
			"0 bytes":                         func(b *interop.Buffer) { b.Size = 0 },
			"minStorageBufferOffsetAlignment": func(b *interop.Buffer) { b.Offset++ },
			"maxStorageBufferRange":           func(b *interop.Buffer) { b.Size = 1 << 40 },
		} {
			wrong := b
			change(&wrong)
			if err := d.Bind(h.system, 0, 0, "values", wrong); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// vgpu's destructors would wait for the device and destroy it, which is vkomp's.
func TestVGPUDestroysNothingOfVkomps(t *testing.T) {
	rt := vktest.Open(t)
	_, d := opened(t, rt)
	s, err := d.NewComputeSystem("destroyed by the program")
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.NewRenderFrame(image.Pt(4, 4), 1)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Do(func() error {
		s.Destroy() // a system for compute destroys its device too
		f.Destroy()
		d.GPU.Destroy()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, d)
	closed(t, d)
	got, want := alternate(t, rt, false, false, true)
	if !slices.Equal(got, want) {
		t.Error("wrong values afterwards")
	}
}

// countingLocker is a lock that counts how often it is taken and released.
type countingLocker struct {
	sync.Locker
	locks, unlocks atomic.Int64
}

func (l *countingLocker) Lock() {
	l.locks.Add(1)
	l.Locker.Lock()
}

func (l *countingLocker) Unlock() {
	l.unlocks.Add(1)
	l.Locker.Unlock()
}

func TestVGPUsOwnSubmissionsTakeTheQueuesLock(t *testing.T) {
	rt := vktest.Open(t)
	_, d := opened(t, rt)
	defer closed(t, d)
	l := &countingLocker{Locker: d.queue.Lock}
	d.queue.Lock = l
	s, err := d.NewGraphicsSystem("submits")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want int64
		f    func()
	}{
		{"a submission and a wait", 2, func() {
			// System.Mem makes these calls to write what the device reads.
			s.MemCmdStart()
			s.Mem.CmdPool.EndSubmitWaitFree(&s.Device)
		}},
		{"a wait for the device", 1, func() { s.Device.DeviceWaitIdle() }},
		{"no use of the queue", 0, func() { s.NewEvent("event") }},
	} {
		l.locks.Store(0)
		l.unlocks.Store(0)
		if err := d.Do(func() error { c.f(); return nil }); err != nil {
			t.Fatal(err)
		}
		if locks, unlocks := l.locks.Load(), l.unlocks.Load(); locks != c.want || unlocks != c.want {
			t.Errorf("%s takes the lock %d times and gives it back %d times, want %d", c.name, locks, unlocks, c.want)
		}
	}
}

func TestRuntimeThatIsClosedFirstIsAnError(t *testing.T) {
	// The objects of vgpu are still alive when the device is destroyed. The validation layer
	// would report that, so the runtime has none.
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, d := opened(t, rt)
	s, err := d.NewGraphicsSystem("left")
	if err != nil {
		t.Fatal(err)
	}
	commands := s.CmdPool.Buff
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	called := false
	for name, err := range map[string]error{
		"Do":                d.Do(func() error { called = true; return nil }),
		"Submit":            d.Submit(t.Context(), commands),
		"Bind":              d.Bind(s, 0, 0, "values", interop.Buffer{}),
		"NewGraphicsSystem": second(d.NewGraphicsSystem("late")),
		"NewComputeSystem":  second(d.NewComputeSystem("late")),
		"NewRenderFrame":    second(d.NewRenderFrame(image.Pt(1, 1), 1)),
		"Close":             d.Close(),
		"Open":              second(Open(o)),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v: want ErrClosed", name, err)
		}
	}
	if called {
		t.Error("Do called its function")
	}
	forgotten(t, d)
}

// An object can be destroyed before its Device is closed. The validation layer would report what
// Close leaves.
func TestCloseDestroysAfterTheObjectIsDestroyed(t *testing.T) {
	rt := vktest.Open(t)
	o, d := opened(t, rt)
	if _, err := d.NewGraphicsSystem("left"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewRenderFrame(image.Pt(4, 4), 1); err != nil {
		t.Fatal(err)
	}
	if err := rt.Interop(t.Context(), vkomp.Interop{Destroy: []*interop.Object{&o}}); err != nil {
		t.Fatal(err)
	}
	wants(t, d.Do(func() error { return nil }), ErrClosed, "destroyed")
	closed(t, d)
	forgotten(t, d)
	closed(t, d)
}

// forgotten fails the test if a handle of the Device is left, which would keep it for ever.
func forgotten(t *testing.T, d *Device) {
	t.Helper()
	defer func() { _ = recover() }()
	t.Errorf("handle of %p is left", cgo.Handle(d.hook.handle).Value())
}

func second[T any](_ T, err error) error { return err }
