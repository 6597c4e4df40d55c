package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// modes are the ways in which a target region can access its data.
var modes = []struct {
	name   string
	option func(*vkomp.Options)
}{
	{"device", func(*vkomp.Options) {}},
	{"staging", vktest.Staging},
	{"pools", func(o *vkomp.Options) { o.NoPushDescriptors = true }},
	{"host", vktest.Host},
}

// inModes runs f on a runtime of each mode.
func inModes(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { f(t, vktest.Open(t, m.option)) })
	}
}

func newKernel(t testing.TB, rt *vkomp.Runtime, src vkomp.KernelSource) vkomp.Kernel {
	t.Helper()
	k, err := rt.NewKernel(src)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ramp returns 0, 1, 2, … with n elements, which are all exact.
func ramp(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(i % 1024)
	}
	return s
}

func constant(n int, v float32) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// saxpyOn returns y += a·x as a region.
func saxpyOn(t testing.TB, k vkomp.Kernel, a float32, x, y []float32) vkomp.Target {
	t.Helper()
	target, err := shaders.SaxpyTarget(k, a, x, y)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestTargetMapsRunsAndCopiesBack(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		for _, n := range []int{1, 127, 128, 129, 5000} {
			x, y := ramp(n), constant(n, 1)
			if err := rt.Target(t.Context(), saxpyOn(t, k, 2, x, y)); err != nil {
				t.Fatal(err)
			}
			for i := range y {
				if want := 2*x[i] + 1; y[i] != want {
					t.Fatalf("n=%d: y[%d] = %v, want %v", n, i, y[i], want)
				}
			}
		}
	})
}

func TestChainWithoutDataRegionCopiesBetweenItsTasks(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n, steps = 300, 40
		x, y := constant(n, 1), constant(n, 0)
		for range steps {
			target := saxpyOn(t, k, 1, x, y)
			target.NoWait = true
			target.Depend = []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}
			if err := rt.Target(t.Context(), target); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, v := range y {
			if v != steps {
				t.Fatalf("y[%d] = %v, want %d", i, v, steps)
			}
		}
	})
}

func TestChainInDataRegionCopiesOnceEachWay(t *testing.T) {
	for _, m := range modes[:3] {
		t.Run(m.name, func(t *testing.T) {
			rt := vktest.Open(t, m.option)
			k := newKernel(t, rt, shaders.Saxpy)
			const n, steps = 1000, 500
			x, y := constant(n, 1), constant(n, 0)
			err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(ctx context.Context) error {
				// All of them are generated before the first one begins.
				generated := make(chan struct{})
				begin := sync.OnceFunc(func() { close(generated) })
				defer begin()
				must(t, rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { <-generated; return nil }, Depend: []vkomp.Depend{vkomp.Out(y)}}))
				for range steps {
					target := saxpyOn(t, k, 1, x, y)
					target.NoWait = true
					target.Depend = []vkomp.Depend{vkomp.InOut(y)}
					if err := rt.Target(ctx, target); err != nil {
						return err
					}
				}
				if y[0] != 0 {
					t.Errorf("y[0] = %v on the host inside the region", y[0])
				}
				begin()
				return rt.Taskwait(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range y {
				if v != steps {
					t.Fatalf("y[%d] = %v, want %d", i, v, steps)
				}
			}
			s := rt.Stats()
			if s.BytesToDevice != 2*4*n || s.BytesFromDevice != 4*n {
				t.Errorf("%d bytes to the device and %d back, want %d and %d", s.BytesToDevice, s.BytesFromDevice, 2*4*n, 4*n)
			}
			const edges = 1 + steps - 1 // from the host task, and between links
			if s.Edges > edges || s.Dispatches != steps {
				t.Errorf("%d edges and %d dispatches, want %d at most and %d", s.Edges, s.Dispatches, edges, steps)
			}
			// Links that are ready are collected.
			if s.Submissions >= steps {
				t.Errorf("%d submissions for %d tasks", s.Submissions, steps)
			}
			if s.Barriers == 0 {
				t.Error("no barrier in a chain")
			}
			if s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
				t.Errorf("%d storage and %d staging allocations left", s.Storage.Allocations, s.Staging.Allocations)
			}
		})
	}
}

func TestSubSliceOfMappedSliceAtEveryOffset(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 400
		x, y := ramp(n), constant(n, 0)
		want := constant(n, 0)
		err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(ctx context.Context) error {
			for at := range 70 {
				from, to := at, at+300
				if err := rt.Target(ctx, saxpyOn(t, k, 1, x[from:to], y[n-to:n-from])); err != nil {
					return err
				}
				for i := range 300 {
					want[n-to+i] += x[from+i]
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range y {
			if y[i] != want[i] {
				t.Fatalf("y[%d] = %v, want %v", i, y[i], want[i])
			}
		}
	})
}

// Elements whose size divides no alignment of a device are bound from one before them that is aligned.
func TestSubSliceOfElementsOfThreeWords(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k, err := rt.NewKernel(vkomp.KernelSource{Name: "triples", SPIRV: triplesSPIRV, Host: func(c *vkomp.HostCall) error {
			x := vkomp.HostSlice[[3]uint32](c, 0)
			for i := range x {
				x[i][1]++
			}
			return nil
		}})
		must(t, err)
		const n, part = 200, 3
		x := make([][3]uint32, n)
		must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
			for at := range n - part {
				if err := rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: part}, Args: []vkomp.Arg{vkomp.ToFrom(x[at : at+part]), vkomp.Value(uint32(part))}}); err != nil {
					return fmt.Errorf("from %d: %w", at, err)
				}
			}
			return nil
		}))
		for i := range x {
			if want := [3]uint32{1: uint32(min(i+1, part, n-i-1))}; x[i] != want {
				t.Fatalf("x[%d] = %v, want %v", i, x[i], want)
			}
		}
	})
}

func TestRangeBeyondWorkgroupCountIsSplit(t *testing.T) {
	vktest.Long(t)
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	// Many devices support 65,535 workgroups along x, here of 128 invocations: the second
	// dispatch has two, of which the last is not full.
	const n = 65535*128 + 128 + 77
	x, y := ramp(n), constant(n, 3)
	if err := rt.Target(t.Context(), saxpyOn(t, k, 1, x, y)); err != nil {
		t.Fatal(err)
	}
	for i := range y {
		if want := x[i] + 3; y[i] != want {
			t.Fatalf("y[%d] = %v, want %v", i, y[i], want)
		}
	}
}

func TestEmptyRangeKeepsMapsAndDependences(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 100
		x, y, z := constant(n, 1), constant(n, 0), constant(n, 0)
		first := saxpyOn(t, k, 1, x, y)
		first.Depend = []vkomp.Depend{vkomp.Out(y)}
		empty := saxpyOn(t, k, 1, x, y)
		empty.Range = vkomp.Range{}
		empty.Depend = []vkomp.Depend{vkomp.In(y), vkomp.Out(z)}
		last := saxpyOn(t, k, 1, y, z)
		last.Depend = []vkomp.Depend{vkomp.InOut(z)}
		for _, target := range []vkomp.Target{first, empty, last} {
			target.NoWait = true
			if err := rt.Target(t.Context(), target); err != nil {
				t.Fatal(err)
			}
		}
		nothing := saxpyOn(t, k, 1, x[:0], y[:0])
		if err := rt.Target(t.Context(), nothing); err != nil {
			t.Fatalf("empty slices: %v", err)
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y[0] != 1 || z[0] != 1 {
			t.Errorf("y[0] = %v and z[0] = %v, want 1 and 1", y[0], z[0])
		}
	})
}

type hasPointer struct {
	N    int32
	Name string
}

func TestBadConstructsAreRefusedAndLeaveTheRuntimeUsable(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 256
		x, y := ramp(n), constant(n, 0)
		good := func() vkomp.Target { return saxpyOn(t, k, 1, x, y) }
		other, err := vkomp.Open(vkomp.Options{LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		foreign := newKernel(t, other, shaders.Saxpy)
		onHost := rt.NumDevices() == 0
		cases := []struct {
			name   string
			change func(*vkomp.Target)
			want   error
			says   string
			// deviceOnly says that the initial device, which maps nothing, reports no error.
			deviceOnly bool
		}{
			{"slice with pointers", func(t *vkomp.Target) { t.Args[0] = vkomp.To(make([]hasPointer, 4)) }, vkomp.ErrInvalidArgument, "hasPointer.Name is a string", false},
			{"pointer value", func(t *vkomp.Target) { t.Args[3] = vkomp.Value(&x[0]) }, vkomp.ErrInvalidArgument, "argument 3", false},
			{"zero argument", func(t *vkomp.Target) { t.Args[1] = vkomp.Arg{} }, vkomp.ErrInvalidArgument, "argument 1", false},
			{"no kernel", func(t *vkomp.Target) { t.Kernel, t.Label = vkomp.Kernel{}, "lost" }, vkomp.ErrInvalidArgument, `"lost"`, false},
			{"kernel of another runtime", func(t *vkomp.Target) { t.Kernel, t.Label = foreign, "lost" }, vkomp.ErrInvalidArgument, `target "lost": kernel "saxpy" belongs to another runtime`, false},
			{"device of another runtime", func(t *vkomp.Target) { t.Device = other.InitialDevice() }, vkomp.ErrInvalidDevice, "another runtime", false},
			{"negative range", func(t *vkomp.Target) { t.Range.Y = -1 }, vkomp.ErrInvalidArgument, "256×-1×0", false},
			{"missing slice", func(t *vkomp.Target) { t.Args = t.Args[1:] }, vkomp.ErrInvalidLaunch, "binding 1", false},
			{"slice too many", func(t *vkomp.Target) { t.Args = append(t.Args, vkomp.To(x)) }, vkomp.ErrInvalidLaunch, "binding 2", false},
			{"missing value", func(t *vkomp.Target) { t.Args = t.Args[:3] }, vkomp.ErrInvalidLaunch, "takes 2 values", false},
			{"value of a wrong size", func(t *vkomp.Target) { t.Args[3] = vkomp.Value(float64(1)) }, vkomp.ErrInvalidLaunch, `"a"`, false},
			{"partly overlapping maps", func(t *vkomp.Target) { t.Args[0] = vkomp.To(x[:200]); t.Args[1] = vkomp.ToFrom(x[100:]) }, vkomp.ErrPartialOverlap, "argument 1", true},
		}
		for _, c := range cases {
			if c.deviceOnly && onHost {
				// Original and corresponding storage are the same there.
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				target := good()
				c.change(&target)
				err := rt.Target(t.Context(), target)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want %q in a %v", err, c.says, c.want)
				}
				if s := rt.Stats(); s.Storage.Allocations != 0 {
					t.Errorf("%d allocations left", s.Storage.Allocations)
				}
			})
		}
		if err := rt.Target(t.Context(), good()); err != nil {
			t.Fatalf("a good region afterwards: %v", err)
		}
		if y[5] != x[5] {
			t.Errorf("y[5] = %v, want %v", y[5], x[5])
		}
	})
}

func TestSectionPartlyPresentIsRefused(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(100), constant(100, 0)
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y[:50])}}, func(ctx context.Context) error {
		if err := rt.Target(ctx, saxpyOn(t, k, 1, x, y)); !errors.Is(err, vkomp.ErrPartialOverlap) {
			t.Errorf("got %v, want ErrPartialOverlap", err)
		}
		return rt.Target(ctx, saxpyOn(t, k, 1, x[:20], y[20:40]))
	})
	if err != nil {
		t.Fatal(err)
	}
	if y[21] != 1 || y[60] != 0 {
		t.Errorf("y[21] = %v and y[60] = %v, want 1 and 0", y[21], y[60])
	}
}

func TestArgumentBeyondStorageBufferRangeIsRefused(t *testing.T) {
	rt := vktest.Open(t)
	limit := rt.DefaultDevice(context.Background()).Info().MaxStorageBufferRange
	if limit > 1<<30 {
		t.Logf("the device binds %d bytes: too much to allocate here", limit)
		limit = 1 << 30
	}
	k := newKernel(t, rt, shaders.Saxpy)
	big := make([]float32, limit/4+1)
	target := saxpyOn(t, k, 1, big, big)
	target.Range.X = 1
	err := rt.Target(t.Context(), target)
	if info := rt.DefaultDevice(context.Background()).Info(); info.MaxStorageBufferRange == limit {
		if !errors.Is(err, vkomp.ErrInvalidLaunch) || !strings.Contains(err.Error(), "maxStorageBufferRange") || !strings.Contains(err.Error(), info.Name) {
			t.Errorf("got %v", err)
		}
	} else if err != nil {
		t.Error(err)
	}
}

func TestKernelWithoutOffsetMemberTakesOnlyAlignedSubSlices(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "double", SPIRV: doubleSPIRV})
	v := ramp(1000)
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(v)}}, func(ctx context.Context) error {
		aligned := vkomp.Target{Kernel: k, Range: vkomp.Range{X: 10}, Args: []vkomp.Arg{vkomp.ToFrom(v[64:]), vkomp.Value(uint32(10))}}
		if err := rt.Target(ctx, aligned); err != nil {
			return err
		}
		misaligned := vkomp.Target{Kernel: k, Range: vkomp.Range{X: 10}, Args: []vkomp.Arg{vkomp.ToFrom(v[1:]), vkomp.Value(uint32(10))}}
		err := rt.Target(ctx, misaligned)
		if !errors.Is(err, vkomp.ErrInvalidLaunch) || !strings.Contains(err.Error(), "begins 4 bytes past") || !strings.Contains(err.Error(), "vkomp_offset_0") {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v[64] != 128 || v[1] != 1 {
		t.Errorf("v[64] = %v and v[1] = %v, want 128 and 1", v[64], v[1])
	}
}

func TestKernelThatReadsNumWorkgroupsIsNotSplit(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "groups", SPIRV: groupsSPIRV})
	out := make([]uint32, 4)
	if err := rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: 3}, Args: []vkomp.Arg{vkomp.From(out)}}); err != nil {
		t.Fatal(err)
	}
	if out[0] != 3 {
		t.Errorf("the kernel saw %d workgroups, want 3", out[0])
	}
	err := rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: math.MaxInt32 * 2}, Args: []vkomp.Arg{vkomp.From(out)}})
	if !errors.Is(err, vkomp.ErrInvalidLaunch) || !strings.Contains(err.Error(), "NumWorkgroups") {
		t.Errorf("got %v", err)
	}
}

func TestFailedTaskFailsItsDependentsUntilTheWaitThatReportsIt(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	const n = 64
	x, y, z := constant(n, 1), constant(2*n, 0), constant(n, 0)
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y[:n])}}, func(ctx context.Context) error {
		deferred := func(label string, x, y []float32, depend ...vkomp.Depend) {
			target := saxpyOn(t, k, 1, x, y)
			target.Label, target.NoWait, target.Depend = label, true, depend
			if err := rt.Target(ctx, target); err != nil {
				t.Errorf("%s: %v", label, err)
			}
		}
		// Half of what the first task maps is present.
		deferred("bad", x, y[n/2:n/2+n], vkomp.Out(y))
		deferred("dependent", x, z, vkomp.In(y), vkomp.Out(z))
		deferred("unrelated", x, y[:n], vkomp.InOut(x))
		err := rt.Taskwait(ctx)
		var failed *vkomp.TaskError
		if !errors.Is(err, vkomp.ErrPartialOverlap) || !errors.As(err, &failed) || failed.Task != "bad" || !strings.Contains(err.Error(), "1 dependent") {
			t.Errorf("Taskwait: got %v", err)
		}
		deferred("later", x, z, vkomp.In(y), vkomp.Out(z))
		return rt.Taskwait(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if z[0] != 1 || y[0] != 1 {
		t.Errorf("z[0] = %v and y[0] = %v, want 1 and 1", z[0], y[0])
	}
}

func TestHostVariantMistakesAreErrors(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	x := make([]float32, 3)
	run := func(host func(*vkomp.HostCall) error) error {
		k := newKernel(t, rt, vkomp.KernelSource{Name: "k", Host: host})
		return rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: 3}, Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.Value(int32(7))}})
	}
	if err := run(func(c *vkomp.HostCall) error { vkomp.HostSlice[int32](c, 0); return nil }); err == nil || !strings.Contains(err.Error(), "holds float32") {
		t.Errorf("wrong element type: %v", err)
	}
	if err := run(func(c *vkomp.HostCall) error { vkomp.HostSlice[int32](c, 1); return nil }); err == nil || !strings.Contains(err.Error(), "slice argument 1 of 1") {
		t.Errorf("missing slice: %v", err)
	}
	if err := run(func(c *vkomp.HostCall) error { vkomp.HostValue[int64](c, 0); return nil }); err == nil || !strings.Contains(err.Error(), "of type int32") {
		t.Errorf("wrong value type: %v", err)
	}
	var panicked *vkomp.PanicError
	if err := run(func(c *vkomp.HostCall) error { panic("ouch") }); !errors.As(err, &panicked) || panicked.Value != "ouch" {
		t.Errorf("panic: %v", err)
	}
	broken := errors.New("broken")
	if err := run(func(*vkomp.HostCall) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
	if err := run(func(c *vkomp.HostCall) error {
		s, v := vkomp.HostSlice[float32](c, 0), vkomp.HostValue[int32](c, 0)
		for i := range c.Range.X * c.Range.Y * c.Range.Z {
			s[i] = float32(v)
		}
		return nil
	}); err != nil || x[2] != 7 {
		t.Errorf("a good variant: %v, x = %v", err, x)
	}
}

func TestModuleThatIsNoneIsRefused(t *testing.T) {
	rt := vktest.Open(t)
	cut := shaders.Saxpy.SPIRV[:len(shaders.Saxpy.SPIRV)/2]
	for name, src := range map[string]vkomp.KernelSource{
		"truncated": {SPIRV: cut},
		"text":      {SPIRV: []byte("#version 450\nvoid main() {}\n")},
		"short":     {SPIRV: []byte{3, 2, 35, 7}},
	} {
		if _, err := rt.NewKernel(src); !errors.Is(err, vkomp.ErrInvalidModule) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := rt.NewKernel(vkomp.KernelSource{SPIRV: shaders.Saxpy.SPIRV, Entry: "Main"}); !errors.Is(err, vkomp.ErrInvalidModule) || !strings.Contains(err.Error(), `"main"`) {
		t.Errorf("unknown entry point: got %v", err)
	}
	if _, err := rt.NewKernel(vkomp.KernelSource{Name: "empty"}); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("nothing: got %v", err)
	}
}

func TestBytesReachTheLastElement(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "invert", SPIRV: invertSPIRV})
	for n := 1; n <= 9; n++ {
		v := make([]byte, n)
		for i := range v {
			v[i] = byte(i * 37)
		}
		words := (n + 3) / 4
		if err := rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: words}, Args: []vkomp.Arg{vkomp.ToFrom(v), vkomp.Value(uint32(words))}}); err != nil {
			t.Fatal(err)
		}
		for i := range v {
			if want := ^byte(i * 37); v[i] != want {
				t.Fatalf("n=%d: v[%d] = %#x, want %#x", n, i, v[i], want)
			}
		}
	}
}

// Structs with several fields fill a member of the same size.
func TestSpecializationAndStructValues(t *testing.T) {
	rt := vktest.Open(t)
	type pair struct{ a, b uint32 }
	if unsafe.Sizeof(pair{}) != 8 {
		t.Fatal("a pair is not 8 bytes")
	}
	for _, factor := range []uint32{3, 10} {
		src := vkomp.KernelSource{Name: "special", SPIRV: specialSPIRV, Specialize: map[uint32]uint32{0: factor, 1: 32}}
		k := newKernel(t, rt, src)
		out := make([]uint32, 100)
		if err := rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(out)}, Args: []vkomp.Arg{
			vkomp.From(out), vkomp.Value(pair{5, 7}), vkomp.Value(uint32(len(out))),
		}}); err != nil {
			t.Fatal(err)
		}
		for i := range out {
			if want := factor*uint32(i) + 5 + 2*7; out[i] != want {
				t.Fatalf("factor %d: out[%d] = %d, want %d", factor, i, out[i], want)
			}
		}
	}
	_, err := rt.NewKernel(vkomp.KernelSource{SPIRV: specialSPIRV, Specialize: map[uint32]uint32{9: 1}})
	if !errors.Is(err, vkomp.ErrInvalidLaunch) || !strings.Contains(err.Error(), "SpecId 9") {
		t.Errorf("unknown constant: %v", err)
	}
}

func TestConcurrentGoroutinesShareTheDevice(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const goroutines, rounds, n = 8, 25, 500
		failures := make(chan error, goroutines)
		x := constant(n, 1)
		for g := range goroutines {
			go func() {
				y := constant(n, float32(g))
				for range rounds {
					target, err := shaders.SaxpyTarget(k, 1, x, y)
					if err == nil {
						err = rt.Target(context.Background(), target)
					}
					if err != nil {
						failures <- err
						return
					}
				}
				for i, v := range y {
					if v != float32(g+rounds) {
						failures <- fmt.Errorf("goroutine %d: y[%d] = %v, want %d", g, i, v, g+rounds)
						return
					}
				}
				failures <- nil
			}()
		}
		for range goroutines {
			if err := <-failures; err != nil {
				t.Error(err)
			}
		}
	})
}

// Changes to a directive after its construct has returned have no effect; the contents of mapped
// slices are read when the task runs.
func TestClausesAreEvaluatedWhenMetAndMappedDataReadWhenRun(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 100
		held, x, y, z := []int{0}, constant(n, 1), constant(n, 0), constant(n, 0)
		release := make(chan struct{})
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(held), vkomp.Out(x)}, Body: func(context.Context) error {
			<-release
			for i := range x {
				x[i] = 5
			}
			return nil
		}})
		args := []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(n)), vkomp.Value(float32(2))}
		depend := []vkomp.Depend{vkomp.In(held), vkomp.Out(y)}
		target := vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: args, Depend: depend, NoWait: true}
		if err := rt.Target(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		region := vkomp.TargetData{NoWait: true, Maps: []vkomp.Arg{vkomp.ToFrom(y)}, Depend: []vkomp.Depend{vkomp.InOut(y)}}
		if err := rt.TargetData(t.Context(), region, nothing); err != nil {
			t.Fatal(err)
		}
		// The program overwrites everything that it passed.
		args[0], args[1], args[3] = vkomp.To(z), vkomp.ToFrom(z), vkomp.Value(float32(100))
		depend[0], depend[1] = vkomp.In(z), vkomp.In(z)
		region.Maps[0], region.Depend[0] = vkomp.ToFrom(z), vkomp.Out(z)
		target.Range.X = 1
		if y[0] != 0 {
			t.Error("the task ran before its predecessor")
		}
		close(release)
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range y {
			if y[i] != 10 || z[i] != 0 {
				t.Fatalf("y[%d] = %v and z[%d] = %v, want 10 and 0", i, y[i], i, z[i])
			}
		}
	})
}

func TestDefaultDeviceIsThatOfTheMoment(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	held, x, y := []int{0}, constant(100, 1), constant(100, 0)
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(held)}, Body: func(context.Context) error { <-release; return nil }})
	target := saxpyOn(t, k, 1, x, y)
	target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.In(held), vkomp.InOut(y)}
	// The first region runs on the device, the second on the initial device.
	for _, d := range []vkomp.Device{rt.DefaultDevice(t.Context()), rt.InitialDevice()} {
		if err := errors.Join(rt.SetDefaultDevice(t.Context(), d), rt.Target(t.Context(), target)); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := rt.Stats(); s.Dispatches != 1 || s.HostRegions != 1 || y[99] != 2 {
		t.Errorf("%d dispatches, %d host regions, y = %v, want 1, 1 and 2", s.Dispatches, s.HostRegions, y[99])
	}
	// A task has a default device of its own: here the device, while the initial task has the
	// host.
	device, err := rt.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		return errors.Join(rt.SetDefaultDevice(ctx, device), rt.Target(ctx, saxpyOn(t, k, 1, x, y)))
	}})
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := rt.Stats(); s.Dispatches != 2 || s.HostRegions != 1 || y[99] != 3 {
		t.Errorf("in a task: %d dispatches, %d host regions, y = %v, want 2, 1 and 3", s.Dispatches, s.HostRegions, y[99])
	}
}

func TestIfAndDeviceChooseWhereATargetRuns(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	other, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	device, host := rt.DefaultDevice(t.Context()), rt.InitialDevice()
	for name, c := range map[string]struct {
		device    vkomp.Device
		condition vkomp.Cond
		onHost    bool
	}{
		"neither clause": {}, "if(true)": {condition: vkomp.If(true)}, "if(false)": {condition: vkomp.If(false), onHost: true},
		"device": {device: device}, "initial device": {device: host, onHost: true},
		"device and if(false)":        {device: device, condition: vkomp.If(false), onHost: true},
		"initial device and if(true)": {device: host, condition: vkomp.If(true), onHost: true},
	} {
		for _, noWait := range []bool{false, true} {
			before := rt.Stats()
			x, y := constant(100, 1), constant(100, 0)
			target := saxpyOn(t, k, 3, x, y)
			target.Device, target.If, target.NoWait, target.Depend = c.device, c.condition, noWait, []vkomp.Depend{vkomp.InOut(y)}
			if err := errors.Join(rt.Target(t.Context(), target), rt.Taskwait(t.Context())); err != nil {
				t.Fatal(err)
			}
			after := rt.Stats()
			hosts, dispatches := after.HostRegions-before.HostRegions, after.Dispatches-before.Dispatches
			if c.onHost != (hosts == 1) || c.onHost != (dispatches == 0) || hosts+dispatches != 1 || y[99] != 3 {
				t.Errorf("%s, nowait %v: %d host regions and %d dispatches, y = %v", name, noWait, hosts, dispatches, y[99])
			}
			region := vkomp.TargetData{Device: c.device, If: c.condition, NoWait: noWait, Maps: []vkomp.Arg{vkomp.Alloc(y)}}
			var mapped uint64
			err := rt.TargetData(t.Context(), region, func(context.Context) error { mapped = uint64(rt.Stats().Storage.Allocations); return nil })
			if err := errors.Join(err, rt.Taskwait(t.Context())); err != nil {
				t.Fatal(err)
			}
			if c.onHost != (mapped == 0) {
				t.Errorf("%s, nowait %v: %d allocations in the data region", name, noWait, mapped)
			}
		}
	}
}

func TestTargetDataDependOrdersItsBeginningAndItsEnd(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 100
		for _, noWait := range []bool{false, true} {
			x, y := constant(n, 0), constant(n, 0)
			depend := []vkomp.Depend{vkomp.InOut(x), vkomp.InOut(y)}
			release := make(chan struct{})
			generate(t, rt, t.Context(), vkomp.Task{Depend: depend, Body: func(context.Context) error {
				<-release
				for i := range x {
					x[i], y[i] = 2, 3
				}
				return nil
			}})
			var began atomic.Bool
			if !noWait {
				generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error {
					awaitState(rt, "region", vkomp.GraphWaiting)
					close(release)
					return nil
				}})
			}
			region := vkomp.TargetData{Label: "region", NoWait: noWait, Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}, Depend: depend}
			err := rt.TargetData(t.Context(), region, func(ctx context.Context) error {
				began.Store(true)
				for range 3 {
					target := saxpyOn(t, k, 2, x, y)
					target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}
					if err := rt.Target(ctx, target); err != nil {
						return err
					}
				}
				// The end has the items with which the region was encountered.
				depend[0], depend[1] = vkomp.In(make([]byte, 1)), vkomp.In(make([]byte, 1))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if noWait {
				if began.Load() {
					t.Error("the deferred region began before its predecessor ended")
				}
				close(release)
				if err := rt.Taskwait(t.Context(), vkomp.In(y)); err != nil {
					t.Fatal(err)
				}
			}
			// Its end depends on the tasks inside, which have copied nothing back.
			if y[n-1] != 15 {
				t.Errorf("nowait %v: y = %v after the region, want 15", noWait, y[n-1])
			}
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := rt.Stats(); s.Storage.Allocations != 0 {
				t.Errorf("%d allocations left", s.Storage.Allocations)
			}
		}
	})
}

func TestDeferredTargetDataReportsItsBodysErrorAndWaitsForItsTasks(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		broken := errors.New("broken")
		x := constant(10, 0)
		var ended atomic.Bool
		region := vkomp.TargetData{Label: "region", NoWait: true, Maps: []vkomp.Arg{vkomp.To(x)}, Depend: []vkomp.Depend{vkomp.Out(x)}}
		err := rt.TargetData(t.Context(), region, func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { ended.Store(true); return nil }})
			return broken
		})
		if err != nil {
			t.Fatal(err)
		}
		err = rt.Taskwait(t.Context())
		var failed *vkomp.TaskError
		if !errors.Is(err, broken) || !errors.As(err, &failed) || failed.Task != "region" || !ended.Load() {
			t.Errorf("Taskwait: %v; the task inside had ended: %v", err, ended.Load())
		}
		if n := rt.Stats().Storage.Allocations; n != 0 {
			t.Errorf("%d allocations left", n)
		}
	})
}

func TestTargetDataThatFollowsAFailureIsNotBegun(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		broken := errors.New("broken")
		x := constant(10, 0)
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
		region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}}
		err := rt.TargetData(t.Context(), region, func(context.Context) error { t.Error("the body ran"); return nil })
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if err := rt.Taskwait(t.Context()); err != nil && !errors.Is(err, broken) {
			t.Error(err)
		}
		if n := rt.Stats().Storage.Allocations; n != 0 {
			t.Errorf("%d allocations left", n)
		}
	})
}

// DependArgs derives in for arguments that are only read, by their map type or by the kernel's
// declaration, and inout for all others.
func TestDependArgsOrdersWritersAndNotReaders(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 100
		x, y, z := constant(n, 1), constant(n, 0), constant(n, 0)
		derived := func(a float32, x, y []float32) vkomp.Target {
			target := saxpyOn(t, k, a, x, y)
			target.NoWait, target.DependArgs = true, true
			return target
		}
		// A chain by the tasks' arguments alone, with a host task that names them.
		for round := range 5 {
			if err := errors.Join(rt.Target(t.Context(), derived(1, x, y)), rt.Target(t.Context(), derived(1, y, z))); err != nil {
				t.Fatal(err)
			}
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error {
				for i := range x {
					x[i] = float32(round)
				}
				return nil
			}})
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantY, wantZ := float32(0), float32(0)
		for round := range 5 {
			wantY += []float32{1, 0, 1, 2, 3}[round]
			wantZ += wantY
		}
		if y[0] != wantY || z[n-1] != wantZ {
			t.Errorf("y = %v and z = %v, want %v and %v", y[0], z[n-1], wantY, wantZ)
		}

		// While a reader of x is not complete, other readers run and writers do not. The kernel
		// declares its first slice readonly, so it counts as read whatever its map type is.
		release := make(chan struct{})
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { <-release; return nil }})
		for _, arg := range []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(x)} {
			reader := derived(1, x, y)
			reader.NoWait, reader.Args[0] = false, arg
			if err := rt.Target(t.Context(), reader); err != nil {
				t.Fatal(err)
			}
		}
		writer := derived(2, z, x)
		writer.Label = "writer"
		if err := rt.Target(t.Context(), writer); err != nil {
			t.Fatal(err)
		}
		states := make(map[string]vkomp.GraphState)
		for _, task := range rt.Graph().Tasks {
			states[task.Label] = task.State
		}
		if states["writer"] != vkomp.GraphWaiting {
			t.Errorf("a task that writes what an earlier one reads is %q", states["writer"])
		}
		close(release)
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := 4 + 2*wantZ; x[0] != want {
			t.Errorf("x = %v, want %v", x[0], want)
		}
	})
}

func TestDependArgsOfAHostVariantGoByTheMapType(t *testing.T) {
	rt := vktest.Open(t, vktest.Host, func(o *vkomp.Options) { o.KeepGraph = true })
	k := newKernel(t, rt, vkomp.KernelSource{Name: "k", Host: func(*vkomp.HostCall) error { return nil }})
	x := []int32{1}
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { <-release; return nil }})
	for name, c := range map[string]struct {
		arg  vkomp.Arg
		want string
	}{"to": {vkomp.To(x), "in"}, "from": {vkomp.From(x), "inout"}, "tofrom": {vkomp.ToFrom(x), "inout"}, "alloc": {vkomp.Alloc(x), "inout"}} {
		err := rt.Target(t.Context(), vkomp.Target{
			Label: name, Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.Value(int32(1)), c.arg}, DependArgs: true, NoWait: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		tasks := rt.Graph().Tasks
		task := tasks[len(tasks)-1]
		if task.Label != name || len(task.Depend) != 1 || task.Depend[0].Kind != c.want || task.Depend[0].Size != 4 {
			t.Errorf("%s: task %q has the items %v, want %s alone", name, task.Label, task.Depend, c.want)
		}
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTargetDataExcludesOthersAtItsBeginningAndItsEnd(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		x := constant(100, 0)
		exclusive := []vkomp.Depend{vkomp.MutexInOutSet(x)}
		increment := vkomp.Task{Depend: exclusive, Body: func(context.Context) error { x[0]++; return nil }}
		for _, noWait := range []bool{false, true} {
			generate(t, rt, t.Context(), increment)
			region := vkomp.TargetData{NoWait: noWait, Maps: []vkomp.Arg{vkomp.To(x)}, Depend: exclusive}
			if err := rt.TargetData(t.Context(), region, nothing); err != nil {
				t.Fatal(err)
			}
			generate(t, rt, t.Context(), increment)
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if x[0] != 4 {
			t.Errorf("x = %v, want 4", x[0])
		}
	})
}

func TestTargetInFinalTaskIsIncluded(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		x, y := constant(1000, 1), constant(1000, 0)
		generate(t, rt, t.Context(), vkomp.Task{Final: true, Body: func(ctx context.Context) error {
			for round := range 10 {
				target := saxpyOn(t, k, 1, x, y)
				target.NoWait = true
				if err := rt.Target(ctx, target); err != nil {
					return err
				}
				if y[999] != float32(round+1) || len(rt.Graph().Tasks) != 1 {
					t.Errorf("round %d: y = %v when Target returned, %d tasks are left", round, y[999], len(rt.Graph().Tasks))
				}
			}
			region := vkomp.TargetData{NoWait: true, Maps: []vkomp.Arg{vkomp.ToFrom(y)}}
			began := false
			err := rt.TargetData(ctx, region, func(context.Context) error { began = true; return nil })
			if !began {
				t.Error("TargetData returned before its body ran")
			}
			return err
		}})
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
