package tests

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// The long form of the model test:
//
//	go test ./tests -run RandomHistories -timeout 1h -model.steps 1000000 -model.validation=false
var (
	modelSteps      = flag.Int("model.steps", 0, "model: how many steps at least on each path, in place of some")
	modelPath       = flag.String("model.path", "", "model: the one path to take, of unified, staged, noncoherent and imported")
	modelValidation = flag.Bool("model.validation", true, "model: run under validation")
)

// modelPaths are the memory paths under test.
var modelPaths = []vkomp.MemoryPath{
	vkomp.MemoryUnified, vkomp.MemoryStaged, vkomp.MemoryNonCoherent, vkomp.MemoryImported,
}

// onPath returns an option for a path; it turns validation off if the flag says so.
func onPath(path vkomp.MemoryPath) func(*vkomp.Options) {
	return func(o *vkomp.Options) {
		o.MemoryPath = path
		vktest.Debug("late=40")(o) // some copies to pinned arrays are made late
		o.Validation = o.Validation && *modelValidation
	}
}

// onModelPaths runs f on a runtime for each path.
func onModelPaths(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime)) {
	forModelPaths(t, func(t *testing.T, path vkomp.MemoryPath) {
		rt := vktest.Open(t, onPath(path))
		if rt.NumDevices() == 0 {
			t.Fatal("no Vulkan device: install a driver, for example Mesa's lavapipe")
		}
		f(t, rt)
	})
}

// forModelPaths runs f for each path.
func forModelPaths(t *testing.T, f func(t *testing.T, path vkomp.MemoryPath)) {
	for _, path := range modelPaths {
		if *modelPath == "" || *modelPath == path.String() {
			t.Run(path.String(), func(t *testing.T) { f(t, path) })
		}
	}
}

// affineUpTo is affine with a Host variant that respects n.
var affineUpTo = vkomp.KernelSource{
	Name:  "affine up to n",
	SPIRV: affineModule,
	Host: func(c *vkomp.HostCall) error {
		src, dst := vkomp.HostSlice[uint32](c, 0), vkomp.HostSlice[uint32](c, 1)
		n, mul, fac, add := vkomp.HostValue[uint32](c, 0), vkomp.HostValue[uint32](c, 1), vkomp.HostValue[uint32](c, 2), vkomp.HostValue[uint32](c, 3)
		for i := range n {
			dst[i] = mul*dst[i] + fac*src[i] + add
		}
		return nil
	},
}

// modelArrays are the offsets of the arrays in bytes: at the beginning of a page, inside a page,
// without the alignment of bindings, and across two pages.
var modelArrays = []int{4096, 4096 + 340, 2*4096 - 20, 3*4096 + 128}

func newModelEnvironment(t testing.TB, rt *vkomp.Runtime) *modelEnvironment {
	t.Helper()
	ctx := context.Background()
	e := &modelEnvironment{rt: rt, device: rt.DefaultDevice(ctx), attempts: 1, made: make(map[string]int)}
	var err error
	if e.affine, err = rt.NewKernel(affineUpTo); err != nil {
		t.Fatal(err)
	}
	if e.through, err = rt.NewKernel(throughSource); err != nil {
		t.Fatal(err)
	}
	const page = 4096
	all := make([]byte, 6*page)
	first := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) % page)
	e.pages = all[first : first+5*page]
	for i := range e.pages {
		e.pages[i] = guardByte
	}
	for i, at := range modelArrays {
		// The capacity is larger, so that an empty slice at the end has an address.
		a := &modelArray{name: string(rune('a' + i)), bytes: e.pages[at : at+4*modelArrayWords]}
		a.words = unsafe.Slice((*uint32)(unsafe.Pointer(&a.bytes[0])), modelArrayWords+1)[:modelArrayWords]
		e.arrays = append(e.arrays, a)
	}
	// Two of the arrays are pinned, if the device imports host storage.
	for _, a := range e.arrays[1:3] {
		p, err := vkomp.Pin(ctx, rt, a.bytes)
		if e.pins = err == nil; !e.pins {
			t.Logf("no pinned arrays: %v", err)
			break
		}
		t.Cleanup(func() {
			if err := p.Free(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	declared := e.arrays[len(e.arrays)-1]
	declared.name = "declared"
	if err := rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(declared.bytes)}}); err != nil {
		t.Fatal(err)
	}
	// Query what the device supports.
	p, err := e.device.Alloc(ctx, 8)
	if err != nil {
		t.Fatal(err)
	}
	err = rt.Target(ctx, vkomp.Target{Kernel: e.through, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.Value(p), vkomp.Value(uint32(1))}})
	if e.hasThrough = err == nil; err != nil && !errors.Is(err, vkomp.ErrUnsupported) {
		t.Fatal(err)
	}
	if err := e.device.Free(ctx, p); err != nil {
		t.Fatal(err)
	}
	a := e.arrays[0]
	err = rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(a.bytes[4:12]).Self()}})
	if e.canShare = err == nil; err != nil && !errors.Is(err, vkomp.ErrUnsupported) {
		t.Fatal(err)
	}
	if err := rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(a.bytes[4:12])}}); err != nil {
		t.Fatal(err)
	}
	return e
}

// A history of constructs has the same result as in the model, whatever is in flight; refused calls
// change nothing.
func TestRandomHistoriesMeanWhatTheModelSays(t *testing.T) {
	vktest.Long(t)
	onModelPaths(t, func(t *testing.T, rt *vkomp.Runtime) {
		e := newModelEnvironment(t, rt)
		before := rt.Stats()
		begun := time.Now()
		for first := true; first || e.ran < *modelSteps; first = false {
			rapid.Check(t, e.history)
		}
		t.Logf("%d steps, %.0f a second, addresses %t, sharing %t, pinned arrays %t", e.ran, float64(e.ran)/time.Since(begun).Seconds(), e.hasThrough, e.canShare, e.pins)
		if testing.Verbose() {
			t.Log(e.made)
		}
		after := rt.Stats()
		if after.Storage.Allocations != before.Storage.Allocations || after.Staging.Allocations != 0 {
			t.Errorf("%d storage allocations before and %d after, %d of staging", before.Storage.Allocations, after.Storage.Allocations, after.Staging.Allocations)
		}
		if tasks := rt.Graph().Tasks; len(tasks) != 0 {
			t.Errorf("%d tasks left in the graph, the first is %+v", len(tasks), tasks[0])
		}
	})
}

// FuzzHistories does the same for histories whose beginning is given by the input. Coverage
// depends on timing, so minimizing inputs is hopeless:
//
//	go test ./tests -run '^$' -fuzz FuzzHistories -fuzzminimizetime 10x
func FuzzHistories(f *testing.F) {
	path := vkomp.MemoryAuto
	for _, p := range modelPaths {
		if p.String() == *modelPath {
			path = p
		}
	}
	rt := vktest.Open(f, onPath(path))
	check := rapid.MakeFuzz(newModelEnvironment(f, rt).history)
	// These bytes continue a history that the input does not complete.
	var rest [96 << 10]byte
	random := rand.NewChaCha8([32]byte{1})
	if _, err := random.Read(rest[:]); err != nil {
		f.Fatal(err)
	}
	for n := range 4 {
		f.Add(slices.Clone(rest[1000*n:][:300*n]))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		check(t, append(input[:len(input):len(input)], rest[:]...))
	})
}
