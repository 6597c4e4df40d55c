package tests

import (
	"context"
	_ "embed"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
)

// The tests here restate cases of the map clauses and the data directives.

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/bump.spv testdata/bump.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/sees.spv testdata/sees.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/addresses.spv testdata/addresses.comp

var (
	//go:embed testdata/bump.spv
	bumpModule []byte
	//go:embed testdata/sees.spv
	seesModule []byte
	//go:embed testdata/addresses.spv
	addressesModule []byte
)

// pair is a structure for mapping.
type pair struct{ v, w uint32 }

// bumpSource adds to a number, to elements times their index, and to a structure.
var bumpSource = vkomp.KernelSource{
	Name:  "bump",
	SPIRV: bumpModule,
	Host: func(c *vkomp.HostCall) error {
		number, elements, structure := vkomp.HostSlice[uint32](c, 0), vkomp.HostSlice[uint32](c, 1), vkomp.HostSlice[pair](c, 2)
		number[0] += vkomp.HostValue[uint32](c, 1)
		for i := range elements {
			elements[i] += vkomp.HostValue[uint32](c, 2) * uint32(i)
		}
		structure[0].v += vkomp.HostValue[uint32](c, 3)
		structure[0].w += vkomp.HostValue[uint32](c, 3)
		return nil
	},
}

// seesSource counts values that differ from the number 80, elements i, and {1, 1}.
var seesSource = vkomp.KernelSource{
	Name:  "sees",
	SPIRV: seesModule,
	Host: func(c *vkomp.HostCall) error {
		number, elements, structure := vkomp.HostSlice[uint32](c, 3), vkomp.HostSlice[uint32](c, 4), vkomp.HostSlice[pair](c, 5)
		for i, v := range elements {
			if v != uint32(i) || number[0] != 80 || structure[0] != (pair{1, 1}) {
				vkomp.HostSlice[uint32](c, 6)[0]++
			}
		}
		return nil
	},
}

// addressesSource writes the two addresses that it gets as values.
var addressesSource = vkomp.KernelSource{
	Name:  "addresses",
	SPIRV: addressesModule,
	Host: func(c *vkomp.HostCall) error {
		seen := vkomp.HostSlice[uint64](c, 0)
		seen[0], seen[1] = vkomp.HostValue[uint64](c, 0), vkomp.HostValue[uint64](c, 1)
		return nil
	},
}

func newCaseKernel(t testing.TB, rt *vkomp.Runtime, source vkomp.KernelSource) vkomp.Kernel {
	t.Helper()
	k, err := rt.NewKernel(source)
	succeed(t, err)
	return k
}

// seeAddresses runs addressesSource on two values.
func seeAddresses(t testing.TB, rt *vkomp.Runtime, k vkomp.Kernel, a, b vkomp.Arg) [2]uint64 {
	t.Helper()
	seen := make([]uint64, 2)
	offload(t, rt, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.From(seen), a, b}})
	return [2]uint64(seen)
}

func enterData(t testing.TB, rt *vkomp.Runtime, maps ...vkomp.Arg) {
	t.Helper()
	succeed(t, rt.TargetEnterData(context.Background(), vkomp.TargetEnterData{Maps: maps}))
}

func exitData(t testing.TB, rt *vkomp.Runtime, maps ...vkomp.Arg) {
	t.Helper()
	succeed(t, rt.TargetExitData(context.Background(), vkomp.TargetExitData{Maps: maps}))
}

func updateData(t testing.TB, rt *vkomp.Runtime, motions ...vkomp.Arg) {
	t.Helper()
	succeed(t, rt.TargetUpdate(context.Background(), vkomp.TargetUpdate{Motions: motions}))
}

// now returns the region without nowait.
func now(target vkomp.Target) vkomp.Target {
	target.NoWait = false
	return target
}

func repeated(n int, v uint32) []uint32 { return slices.Repeat([]uint32{v}, n) }

func isPresent[T any](rt *vkomp.Runtime, s []T) bool {
	return rt.DefaultDevice(context.Background()).IsPresent(vkomp.HostPtr(s))
}

// separate reports whether original and corresponding storage are different.
func separate(rt *vkomp.Runtime) bool { return rt.NumDevices() > 0 }

func TestC11DefaultMapTypeEntersAndExits(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 100
		a, b, d := repeated(n, 10), repeated(n, 50), repeated(n, 0)
		// Without a map type it is tofrom, of which each construct uses its half.
		enterData(t, rt, vkomp.ToFrom(a), vkomp.ToFrom(b), vkomp.ToFrom(d))
		seen := make([]uint32, n)
		offload(t, rt, now(k.on(seen, a, 0, 1, 0)))
		checkAll(t, "a on the device", seen, 10)
		offload(t, rt, now(k.on(seen, b, 0, 1, 0)))
		checkAll(t, "b on the device", seen, 50)
		offload(t, rt, now(k.on(seen, d, 0, 1, 0)))
		checkAll(t, "d on the device", seen, 0)
		offload(t, rt, now(k.set(a, 1000)))
		offload(t, rt, now(k.set(b, 120)))
		offload(t, rt, now(k.set(d, 70)))
		if separate(rt) {
			checkAll(t, "a before its exit", a, 10)
			checkAll(t, "b before its exit", b, 50)
			checkAll(t, "d before its exit", d, 0)
		}
		exitData(t, rt, vkomp.ToFrom(a), vkomp.ToFrom(b), vkomp.ToFrom(d))
		checkAll(t, "a", a, 1000)
		checkAll(t, "b", b, 120)
		checkAll(t, "d", d, 70)
	})
}

func TestC12ConditionalDataRegion(t *testing.T) {
	inVulkanModes(t, func(t *testing.T, rt *vkomp.Runtime, _ vkomp.Device) {
		source := affineSource
		source.Host = func(c *vkomp.HostCall) error {
			clear(vkomp.HostSlice[uint32](c, 1))
			return nil
		}
		k := affine{newCaseKernel(t, rt, source)}
		for _, size := range []int{1, 256, 512, 513, 1000, 4096} {
			a, b, c := repeated(size, 1), indices(size), repeated(size, 77)
			large := vkomp.If(size > 512)
			region := vkomp.TargetData{If: large, Maps: []vkomp.Arg{vkomp.To(a), vkomp.To(b), vkomp.From(c)}}
			succeed(t, rt.TargetData(t.Context(), region, func(context.Context) error {
				if isPresent(rt, a) != (size > 512) {
					t.Errorf("size %d: a is on the device: %v", size, isPresent(rt, a))
				}
				for _, target := range []vkomp.Target{k.on(c, a, 0, 1, 0), k.on(c, b, 1, 1, 0)} {
					target.If = large
					offload(t, rt, now(target))
				}
				return nil
			}))
			for i, v := range c {
				want := uint32(0)
				if size > 512 {
					want = uint32(i) + 1
				}
				if v != want {
					t.Fatalf("size %d: c[%d] = %d, want %d", size, i, v, want)
				}
			}
		}
	})
}

func TestC14PointerTranslationThreeWays(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1000
		x, y := make([]uint32, n), make([]uint32, n)
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x), vkomp.ToFrom(y)}}, func(context.Context) error {
			aliasX, aliasY := x[:], y[:]
			offload(t, rt, now(k.set(aliasX, 1)))
			offload(t, rt, now(k.set(aliasY, 2)))
			add := func(s []uint32, v uint32) {
				target := now(k.add(s, v))
				target.Range, target.Args[2] = vkomp.Range{X: n}, vkomp.Value(uint32(n))
				target.Args[0], target.Args[1] = vkomp.Implicit(s), vkomp.Implicit(s)
				offload(t, rt, target)
			}
			add(aliasX[:0], 1)
			add(aliasY[:0], 2)
			add(aliasX, 1)
			add(aliasY, 2)
			return nil
		}))
		checkAll(t, "x", x, 3)
		checkAll(t, "y", y, 6)
	})
}

func TestC15ImplicitZeroLengthPointer(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1000
		a, from := make([]uint32, n), indices(n)
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(a)}}, func(context.Context) error {
			target := now(k.on(a, from, 0, 1, 0))
			target.Args[1] = vkomp.Implicit(a)
			offload(t, rt, target)
			return nil
		}))
		if !slices.Equal(a, from) {
			t.Errorf("a = %d", a)
		}
	})
}

func TestC16UnmatchedImplicitPointerKeepsItsValue(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newCaseKernel(t, rt, addressesSource)
		p1 := make([]uint32, 10)
		var p2 []uint32
		before := &p1[0]
		seen := seeAddresses(t, rt, k, vkomp.AddressOf(p1), vkomp.AddressOf(p2))
		if want := uint64(uintptr(unsafe.Pointer(before))); seen != [2]uint64{want, 0} {
			t.Errorf("on the device the pointers are %#x, want %#x and 0", seen, want)
		}
		if &p1[0] != before || p2 != nil {
			t.Error("the host's pointers have changed")
		}
		if !separate(rt) {
			return
		}
		// Together with one that matches.
		enterData(t, rt, vkomp.To(p1))
		seen = seeAddresses(t, rt, k, vkomp.AddressOf(p1[3:]), vkomp.AddressOf(p2))
		if want := rt.DefaultDevice(t.Context()).MappedPtr(vkomp.HostPtr(p1)).Address() + 12; seen != [2]uint64{want, 0} {
			t.Errorf("on the device the pointers are %#x, want %#x and 0", seen, want)
		}
		exitData(t, rt, vkomp.Delete(p1))
	})
}

func TestC17SubSectionOfAPresentSection(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		a := repeated(10, 9)
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(a)}}, func(context.Context) error {
			before := rt.Stats().Storage.Allocations
			p := a
			// map(p[3:7]) together with a; the elements are written through both names.
			part := p[3:10]
			offload(t, rt, now(k.on(a[2:3], part[:1], 0, 0, 0)))
			offload(t, rt, now(k.on(part, part, 1, 0, 0)))
			offload(t, rt, now(k.on(part[5:6], a[:1], 0, 0, 0)))
			offload(t, rt, now(k.on(a[8:9], part[5:6], 0, 1, 1)))
			if separate(rt) && (!slices.Equal(a, repeated(10, 9)) || rt.Stats().Storage.Allocations != before) {
				t.Errorf("inside the region the host has %d, and %d allocations have become %d", a, before, rt.Stats().Storage.Allocations)
			}
			return nil
		}))
		if want := []uint32{9, 9, 0, 9, 9, 9, 9, 9, 1, 9}; !slices.Equal(a, want) {
			t.Errorf("a = %d, want %d", a, want)
		}
	})
}

func TestC19PresentSucceeds(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newCaseKernel(t, rt, bumpSource)
		const n = 1000
		scalar, array, structure := []uint32{1}, indices(n), []pair{{10, 20}}
		region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(scalar), vkomp.ToFrom(array), vkomp.ToFrom(structure)}}
		succeed(t, rt.TargetData(t.Context(), region, func(context.Context) error {
			offload(t, rt, vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: []vkomp.Arg{
				vkomp.ToFrom(scalar).Present(), vkomp.ToFrom(array).Present(), vkomp.ToFrom(structure).Present(),
				vkomp.Value(uint32(n)), vkomp.Value(uint32(1)), vkomp.Value(uint32(1)), vkomp.Value(uint32(1)),
			}})
			return nil
		}))
		if scalar[0] != 2 || structure[0] != (pair{11, 21}) {
			t.Errorf("the scalar is %d, the structure %d", scalar[0], structure[0])
		}
		for i, v := range array {
			if v != uint32(2*i) {
				t.Fatalf("array[%d] = %d", i, v)
			}
		}
	})
}

func TestC20PresentIsCheckedBeforeAnythingIsCreated(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1000
		x := indices(n)
		add := func() error {
			target := now(k.on(x, x, 1, 1, 0))
			target.Args[0], target.Args[1] = vkomp.To(x).Present(), vkomp.From(x)
			return rt.Target(t.Context(), target)
		}
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(context.Context) error { return add() }))
		for i, v := range x {
			if v != uint32(2*i) {
				t.Fatalf("x[%d] = %d, want %d", i, v, 2*i)
			}
		}
		if err := add(); separate(rt) && (err == nil || isPresent(rt, x)) {
			t.Errorf("absent: %v, and x is present: %v", err, isPresent(rt, x))
		}
	})
}

func TestC21UpdateOfAbsentAndOfPresentData(t *testing.T) {
	inVulkanModes(t, func(t *testing.T, rt *vkomp.Runtime, _ vkomp.Device) {
		k := newCaseKernel(t, rt, seesSource)
		const n = 1000
		scalar, array, structure := []uint32{80}, indices(n), []pair{{1, 1}}
		updateData(t, rt, vkomp.To(scalar), vkomp.To(array), vkomp.To(structure))
		if isPresent(rt, scalar) || isPresent(rt, array) || isPresent(rt, structure) {
			t.Error("an update has mapped something")
		}
		enterData(t, rt, vkomp.Alloc(scalar), vkomp.Alloc(array), vkomp.Alloc(structure))
		updateData(t, rt, vkomp.To(scalar).Present(), vkomp.To(array).Present(), vkomp.To(structure).Present())
		if !isPresent(rt, scalar) || !isPresent(rt, array) || !isPresent(rt, structure) {
			t.Error("absent after target enter data")
		}
		wrong := []uint32{0}
		offload(t, rt, vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: []vkomp.Arg{
			vkomp.Alloc(scalar), vkomp.Alloc(array), vkomp.Alloc(structure), vkomp.Alloc(scalar), vkomp.Alloc(array), vkomp.Alloc(structure),
			vkomp.ToFrom(wrong), vkomp.Value(uint32(n)),
		}})
		if wrong[0] != 0 {
			t.Errorf("%d elements are wrong on the device", wrong[0])
		}
		exitData(t, rt, vkomp.Release(scalar), vkomp.Release(array), vkomp.Release(structure))
	})
}

func TestC23AllocAndToOfTheSameList(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newCaseKernel(t, rt, seesSource)
		const n = 1000
		scalar, array, structure, wrong := []uint32{80}, indices(n), []pair{{1, 1}}, []uint32{0}
		offload(t, rt, vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: []vkomp.Arg{
			vkomp.Alloc(scalar), vkomp.Alloc(array), vkomp.Alloc(structure), vkomp.To(scalar), vkomp.To(array), vkomp.To(structure),
			vkomp.ToFrom(wrong), vkomp.Value(uint32(n)),
		}})
		if wrong[0] != 0 {
			t.Errorf("%d elements are wrong on the device", wrong[0])
		}
	})
}

func TestC24CloseIsAHint(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newCaseKernel(t, rt, bumpSource)
		const n = 1000
		scalar, array, structure := []uint32{19}, indices(n), []pair{{10, 10}}
		offload(t, rt, vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: []vkomp.Arg{
			vkomp.ToFrom(scalar).Close(), vkomp.ToFrom(array).Close(), vkomp.ToFrom(structure).Close(),
			vkomp.Value(uint32(n)), vkomp.Value(uint32(25)), vkomp.Value(uint32(2)), vkomp.Value(uint32(7)),
		}})
		if scalar[0] != 44 || structure[0].v != 17 {
			t.Errorf("the scalar is %d, the structure %d", scalar[0], structure[0])
		}
		for i, v := range array {
			if v != uint32(3*i) {
				t.Fatalf("array[%d] = %d", i, v)
			}
		}
	})
}

func TestC25FirstprivateScalar(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const threads, n = 8, 100
		rows := make([][]uint32, threads)
		var all sync.WaitGroup
		for thread := range rows {
			rows[thread] = make([]uint32, n)
			row, value := rows[thread], uint32(thread)
			all.Go(func() {
				// The region has a copy of the current value; the rest up to 100 follows.
				target := k.set(row, 0, vkomp.Out(row))
				target.Args[5] = vkomp.Value(value)
				if err := rt.Target(context.Background(), target); err != nil {
					t.Error(err)
				}
				value += 1000
				if err := rt.Target(context.Background(), k.add(row, 100-uint32(thread), vkomp.InOut(row))); err != nil {
					t.Error(err)
				}
				if value != uint32(thread)+1000 {
					t.Errorf("thread %d: the host's value is %d", thread, value)
				}
			})
		}
		all.Wait()
		wait(t, rt)
		for _, row := range rows {
			addTo(row, 1)
			checkAll(t, "row", row, 101)
		}
	})
}

func TestC27StridedUpdate(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1000
		result, i := make([]uint32, n), indices(n)
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(result)}}, func(context.Context) error {
			copy(result, i)
			updateData(t, rt, vkomp.To(result).Section(vkomp.Span{Start: 0, Count: n / 2, Stride: 2}))
			target := now(k.on(result, i, 1, 1, 0))
			target.Args[1] = vkomp.Alloc(result)
			offload(t, rt, target)
			return nil
		}))
		for i, v := range result {
			want := uint32(i)
			if i%2 == 0 || !separate(rt) {
				want *= 2
			}
			if v != want {
				t.Fatalf("result[%d] = %d, want %d", i, v, want)
			}
		}
	})
}

func TestC28ConditionalUpdate(t *testing.T) {
	inVulkanModes(t, func(t *testing.T, rt *vkomp.Runtime, _ vkomp.Device) {
		k := newAffine(t, rt)
		const n = 1000
		for round := range 4 {
			a, b, c := repeated(n, 10), repeated(n, 2), repeated(n, 0)
			changed := round%2 == 1
			region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(a), vkomp.To(b), vkomp.ToFrom(c)}}
			succeed(t, rt.TargetData(t.Context(), region, func(ctx context.Context) error {
				offload(t, rt, now(k.on(c, a, 0, 1, 0)))
				offload(t, rt, now(k.on(c, b, 1, 1, 0)))
				if changed {
					addTo(b, 2)
				}
				succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{If: vkomp.If(changed), Motions: []vkomp.Arg{vkomp.To(b)}}))
				offload(t, rt, now(k.on(c, b, 1, 1, 0)))
				return nil
			}))
			want := uint32(14)
			if changed {
				want = 16
			}
			checkAll(t, "c", c, want)
		}
	})
}

func TestC32UseDevicePtrWithMapOnTheSameConstruct(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1000
		a, b := indices(n), make([]uint32, n)
		var p vkomp.DevicePtr
		region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(a)}, Use: []vkomp.UseDevice{vkomp.UseDevicePtr(a, &p)}}
		succeed(t, rt.TargetData(t.Context(), region, func(context.Context) error {
			target := now(k.on(b, a, 1, 1, 0))
			target.Args[0] = vkomp.IsDevicePtr(p)
			offload(t, rt, target)
			return nil
		}))
		if !slices.Equal(b, indices(n)) {
			t.Errorf("b = %d", b)
		}
	})
}

func TestC34UseDeviceAddr(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k, addresses := newAffine(t, rt), newCaseKernel(t, rt, addressesSource)
		x := []uint32{14}
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}}, func(ctx context.Context) error {
			var p vkomp.DevicePtr
			return rt.TargetData(ctx, vkomp.TargetData{Use: []vkomp.UseDevice{vkomp.UseDeviceAddr(x, &p)}}, func(context.Context) error {
				if seen := seeAddresses(t, rt, addresses, vkomp.AddressOf(x), vkomp.Value(p)); seen[0] != seen[1] || seen[0] == 0 {
					t.Errorf("the addresses are %#x", seen)
				}
				out := []uint32{0}
				target := now(k.on(out, x, 0, 1, 0))
				target.Args[0] = vkomp.HasDeviceAddr[uint32](p, 1)
				offload(t, rt, target)
				if out[0] != 14 {
					t.Errorf("read through the address: %d", out[0])
				}
				return nil
			})
		}))
	})
}

func TestC35HasDeviceAddrIsTheMappedAddress(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k, addresses := newAffine(t, rt), newCaseKernel(t, rt, addressesSource)
		x, arr := []uint32{10}, indices(100)
		enterData(t, rt, vkomp.To(x), vkomp.To(arr))
		first := seeAddresses(t, rt, addresses, vkomp.AddressOf(x), vkomp.AddressOf(arr))
		var p, q vkomp.DevicePtr
		region := vkomp.TargetData{Use: []vkomp.UseDevice{vkomp.UseDeviceAddr(x, &p), vkomp.UseDeviceAddr(arr, &q)}}
		succeed(t, rt.TargetData(t.Context(), region, func(context.Context) error {
			second := seeAddresses(t, rt, addresses, vkomp.Value(p), vkomp.Value(q))
			if first != second || first[0] == first[1] {
				t.Errorf("mapped the addresses are %#x, used %#x", first, second)
			}
			out := make([]uint32, 100)
			target := now(k.on(out, arr, 0, 1, 0))
			target.Args[0] = vkomp.HasDeviceAddr[uint32](q, 100)
			offload(t, rt, target)
			if !slices.Equal(out, arr) {
				t.Errorf("at the address is %d", out)
			}
			return nil
		}))
		exitData(t, rt, vkomp.Release(x), vkomp.Release(arr))
	})
}

func TestC36IteratorInMap(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		// A kernel has no more bindings than these.
		const n = 32
		blocks := make([][]uint32, n)
		for i := range blocks {
			blocks[i] = make([]uint32, 1)
		}
		all := vkomp.IterateMaps(0, n, 1, func(i int) vkomp.Arg { return vkomp.ToFrom(blocks[i]) })
		before := rt.Stats().Storage.Allocations
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: all}, func(context.Context) error {
			if got := rt.Stats().Storage.Allocations - before; separate(rt) && got != n {
				t.Errorf("%d blocks, want %d", got, n)
			}
			for i, b := range blocks {
				offload(t, rt, now(k.set(b, 2)))
				if i%2 == 1 {
					// Each block is counted separately.
					exitData(t, rt, vkomp.From(b))
					if separate(rt) && (isPresent(rt, b) || b[0] != 2 || !isPresent(rt, blocks[i-1])) {
						t.Errorf("block %d is %d and present: %v", i, b[0], isPresent(rt, b))
					}
				}
			}
			return nil
		}))
		sum := uint32(0)
		for _, b := range blocks {
			sum += b[0]
		}
		if sum != 2*n {
			t.Errorf("the sum is %d, want %d", sum, 2*n)
		}
	})
}

// vector owns a section, which its functions map and unmap.
type vector struct{ v []uint32 }

func (x *vector) init(t testing.TB, rt *vkomp.Runtime, n int) {
	x.v = make([]uint32, n)
	enterData(t, rt, vkomp.Alloc(x.v))
}

func (x *vector) free(t testing.TB, rt *vkomp.Runtime) []uint32 {
	exitData(t, rt, vkomp.Delete(x.v))
	v := x.v
	x.v = nil
	return v
}

func TestC39AllocAndDeleteAcrossFunctions(t *testing.T) {
	inVulkanModes(t, func(t *testing.T, rt *vkomp.Runtime, _ vkomp.Device) {
		k := newAffine(t, rt)
		const n = 1000
		var x vector
		x.init(t, rt, n)
		if !isPresent(rt, x.v) {
			t.Error("absent after init")
		}
		offload(t, rt, now(k.set(x.v, 5)))
		seen := make([]uint32, n)
		offload(t, rt, now(k.on(seen, x.v, 0, 1, 0)))
		checkAll(t, "v on the device", seen, 5)
		v := x.free(t, rt)
		if isPresent(rt, v) {
			t.Error("present after free")
		}
		checkAll(t, "v on the host", v, 0)
	})
}

func TestL11EnterTargetsUpdateAndExitInOneChain(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 1024
		for range 5 {
			a, b := make([]uint32, n), indices(n)
			depend := []vkomp.Depend{vkomp.Out(a[:1])}
			ctx := t.Context()
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(a), vkomp.To(b)}, Depend: depend, NoWait: true}))
			offload(t, rt, k.on(a, b, 1, 1, 2, depend...))
			offload(t, rt, k.on(a, a, 2, 0, 0, depend...))
			succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(a)}, Depend: depend, NoWait: true}))
			succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(a), vkomp.Release(b)}, Depend: depend, NoWait: true}))
			wait(t, rt)
			sum := uint32(0)
			for _, v := range a {
				sum += v
			}
			if sum != 1051648 {
				t.Fatalf("the sum is %d, want 1051648", sum)
			}
			if separate(rt) && (isPresent(rt, a) || isPresent(rt, b)) {
				t.Error("present after the chain")
			}
		}
	})
}

func TestL16AbsentDataIsIgnoredAtExit(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		x := repeated(100, 3)
		for _, item := range []vkomp.Arg{
			vkomp.From(x), vkomp.Release(x), vkomp.Delete(x), vkomp.From(x).Always(), vkomp.Release(x).Always(), vkomp.Delete(x).Always(), vkomp.From(x).Deleting(),
		} {
			exitData(t, rt, item)
			// What another construct has removed is absent at the region's end.
			if separate(rt) {
				succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x).Always()}}, func(context.Context) error {
					exitData(t, rt, vkomp.Delete(x))
					return nil
				}))
			}
			checkAll(t, "x", x, 3)
		}
	})
}

func TestL17DeleteOfDeclaredStorageIsHarmless(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		x := repeated(100, 3)
		succeed(t, rt.DeclareTarget(t.Context(), vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(x)}}))
		for round := range uint32(3) {
			exitData(t, rt, vkomp.Delete(x))
			exitData(t, rt, vkomp.Delete(x[10:20]))
			offload(t, rt, now(k.add(x, 1)))
			seen := make([]uint32, 100)
			offload(t, rt, now(k.on(seen, x, 0, 1, 0)))
			checkAll(t, "x on the device", seen, 4+round)
			if separate(rt) {
				checkAll(t, "x on the host", x, 3)
			}
		}
		updateData(t, rt, vkomp.From(x))
		checkAll(t, "x", x, 6)
	})
}
