package vkomp_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// reach adds to all words that its first argument reaches and writes their number.
var reach = vkomp.KernelSource{
	Name: "reach", SPIRV: reachSPIRV,
	Host: func(c *vkomp.HostCall) error {
		words, add := vkomp.HostSlice[uint32](c, 0), vkomp.HostValue[uint32](c, 0)
		for i := range words {
			words[i] += add
		}
		vkomp.HostSlice[uint32](c, 1)[0] = uint32(len(words))
		return nil
	},
}

// Copies of arguments take longer otherwise: see Arg.
func TestArgumentsAreCopiedInWholePieces(t *testing.T) {
	const piece = 16
	for _, size := range []uintptr{unsafe.Sizeof(vkomp.Arg{}), unsafe.Sizeof(vkomp.DevicePtr{})} {
		if pointer := unsafe.Sizeof(uintptr(0)); pointer == 8 && size%piece != 0 {
			t.Errorf("%d bytes, want a multiple of %d", size, piece)
		}
	}
}

// through adds to n words at an address.
var through = vkomp.KernelSource{
	Name: "through", SPIRV: throughSPIRV,
	Host: func(c *vkomp.HostCall) error {
		words, n, add := vkomp.HostPointee[uint32](c, 0), vkomp.HostValue[uint32](c, 1), vkomp.HostValue[uint32](c, 2)
		if vkomp.HostValue[uint64](c, 0) != vkomp.HostValue[vkomp.DevicePtr](c, 0).Address() {
			return fmt.Errorf("the address is not that of the pointer")
		}
		for i := range min(len(words), int(n)) {
			words[i] += add
		}
		return nil
	},
}

// reached runs reach on an argument and returns the number of words reached.
func reached(t testing.TB, rt *vkomp.Runtime, k vkomp.Kernel, a vkomp.Arg, add uint32) int {
	t.Helper()
	n := make([]uint32, 1)
	run := func(add uint32) int {
		must(t, rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1000}, Args: []vkomp.Arg{a, vkomp.From(n), vkomp.Value(add)}}))
		return int(n[0])
	}
	absent := run(0)
	n[0] = 0
	enter(t, rt, vkomp.To(n))
	run(add)
	exit(t, rt, vkomp.From(n))
	if present := int(n[0]); present != absent {
		t.Errorf("%d elements are reached where all storage is present, otherwise %d", present, absent)
	}
	return absent
}

func TestDevicePointersAreBound(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		k := newKernel(t, rt, reach)
		const n = 300
		p := alloc(t, d, 4*n)
		zero := fill(n, 0)
		for _, at := range []int{0, 1, 2, 3, 5, 64, 100, 299} {
			q := p.Add(4 * at)
			memcpy(t, rt, p, vkomp.HostPtr(zero), 4*n)
			if got := reached(t, rt, k, vkomp.IsDevicePtr(q), 3); got != n-at {
				t.Errorf("from element %d on a kernel reaches %d elements, want %d", at, got, n-at)
			}
			length := min(40, n-at)
			if got := reached(t, rt, k, vkomp.HasDeviceAddr[uint32](q, length), 4); got != length {
				t.Errorf("of %d elements from %d on a kernel reaches %d", length, at, got)
			}
			x := make([]uint32, n)
			memcpy(t, rt, vkomp.HostPtr(x), p, 4*n)
			for i, v := range x {
				want := uint32(0)
				if i >= at {
					want += 3
				}
				if i >= at && i < at+length {
					want += 4
				}
				if v != want {
					t.Fatalf("from element %d on: x[%d] = %d, want %d", at, i, v, want)
				}
			}
		}
	})
}

func TestPointerToMappedStorageIsBound(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		k := newKernel(t, rt, reach)
		x := fill(100, 0)
		enter(t, rt, vkomp.To(x))
		p := d.MappedPtr(vkomp.HostPtr(x))
		if got := reached(t, rt, k, vkomp.IsDevicePtr(p.Add(40)), 3); got != 90 {
			t.Errorf("from element 10 on a kernel reaches %d of 100 elements", got)
		}
		exit(t, rt, vkomp.From(x))
		if x[9] != 0 || x[10] != 3 || x[99] != 3 {
			t.Errorf("x = … %d %d … %d", x[9], x[10], x[99])
		}
	})
}

func TestImplicitSliceReachesWhatIsPresent(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		k := newKernel(t, rt, reach)
		x := fill(100, 0)
		enter(t, rt, vkomp.To(x[20:80]))
		for _, s := range [][]uint32{x[30:], x[30:31], x[30:30]} {
			if got := reached(t, rt, k, vkomp.Implicit(s), 1); got != 50 {
				t.Errorf("a slice of %d elements from the tenth on reaches %d of 60", len(s), got)
			}
		}
		for what, s := range map[string][]uint32{"absent": x[80:], "nil": nil} {
			n := make([]uint32, 1)
			err := rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.Implicit(s), vkomp.From(n), vkomp.Value(uint32(1))}})
			refused(t, what, err, vkomp.ErrNotPresent, "argument 0")
		}
		exit(t, rt, vkomp.From(x[20:80]))
		if present(d, x[20:]) {
			t.Error("there still: regions with an implicit slice have not let it go")
		}
		if x[29] != 0 || x[30] != 3 || x[79] != 3 || x[80] != 0 {
			t.Errorf("x = … %d %d … %d %d …", x[29], x[30], x[79], x[80])
		}
	})
}

func TestImplicitSliceIsHeldForTheRegion(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k := newKernel(t, rt, reach)
		x, n := fill(100, 1), make([]uint32, 1)
		enter(t, rt, vkomp.To(x))
		// The region's own map is the last to end, so it copies back.
		must(t, rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: 100}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: true,
			Args: []vkomp.Arg{vkomp.Implicit(x), vkomp.From(n), vkomp.Value(uint32(1))},
		}))
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: true}))
		must(t, rt.Taskwait(ctx))
		if n[0] != 100 || x[99] != 2 || present(d, x) {
			t.Errorf("%d elements reached, x[99] = %d, present: %v", n[0], x[99], present(d, x))
		}
	})
}

func TestHostVariantGetsImplicitSlicesUpToTheirCapacity(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	k := newKernel(t, rt, reach)
	x := fill(100, 0)
	if got := reached(t, rt, k, vkomp.Implicit(x[40:40]), 2); got != 60 || x[39] != 0 || x[40] != 2 || x[99] != 2 {
		t.Errorf("%d elements reached, x = … %d %d … %d", got, x[39], x[40], x[99])
	}
}

func TestKernelsReachStorageByAddress(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k := newKernel(t, rt, through)
		run := func(at vkomp.Arg, n, add int) {
			t.Helper()
			must(t, rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: n}, Args: []vkomp.Arg{at, vkomp.Value(uint32(n)), vkomp.Value(uint32(add))}}))
		}
		p := alloc(t, d, 400)
		memcpy(t, rt, p, vkomp.HostPtr(fill(100, 0)), 400)
		run(vkomp.Value(p.Add(40)), 50, 7)
		run(vkomp.Value(vkomp.DevicePtr{}), 50, 9)
		y := make([]uint32, 100)
		memcpy(t, rt, vkomp.HostPtr(y), p, 400)
		if y[9] != 0 || y[10] != 7 || y[59] != 7 || y[60] != 0 {
			t.Errorf("y = … %d %d … %d %d …", y[9], y[10], y[59], y[60])
		}
		x := fill(100, 1)
		enter(t, rt, vkomp.To(x))
		run(vkomp.AddressOf(x[10:]), 50, 7)
		run(vkomp.AddressOf[uint32](nil), 50, 9)
		run(vkomp.Value(d.MappedPtr(vkomp.HostPtr(x[60:]))), 40, 8)
		exit(t, rt, vkomp.From(x))
		if x[9] != 1 || x[10] != 8 || x[59] != 8 || x[60] != 9 || x[99] != 9 {
			t.Errorf("x = … %d %d … %d %d … %d", x[9], x[10], x[59], x[60], x[99])
		}
		if present(d, x) && !d.IsInitial() {
			t.Error("a region with the address of storage has not let it go")
		}
	})
}

func TestFreedMemoryIsKeptForTasksThatHaveItsAddress(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k, b := newKernel(t, rt, through), newKernel(t, rt, reach)
		p, err := d.Alloc(ctx, 400)
		must(t, err)
		y, n := make([]uint32, 100), make([]uint32, 1)
		memcpy(t, rt, p, vkomp.HostPtr(y), 400)
		depend := []vkomp.Depend{vkomp.InOut(y)}
		release := held(t, rt, depend[0])
		must(t, rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 100}, Args: []vkomp.Arg{vkomp.Value(p), vkomp.Value(uint32(100)), vkomp.Value(uint32(5))}, Depend: depend, NoWait: true}))
		must(t, rt.Target(ctx, vkomp.Target{Kernel: b, Range: vkomp.Range{X: 100}, Args: []vkomp.Arg{vkomp.IsDevicePtr(p), vkomp.From(n), vkomp.Value(uint32(6))}, Depend: depend, NoWait: true}))
		must(t, rt.Target(ctx, vkomp.Target{Kernel: b, Range: vkomp.Range{X: 100}, Args: []vkomp.Arg{vkomp.HasDeviceAddr[uint32](p, 100), vkomp.From(n), vkomp.Value(uint32(7))}, Depend: depend, NoWait: true}))
		must(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(y), p, 400, depend...))
		must(t, d.Free(ctx, p))
		other := alloc(t, d, 400)
		memcpy(t, rt, other, vkomp.HostPtr(fill(100, 77)), 400)
		release()
		must(t, rt.Taskwait(ctx))
		if y[0] != 18 || y[99] != 18 || n[0] != 100 {
			t.Errorf("y = %d … %d, want 18", y[0], y[99])
		}
		for _, a := range []vkomp.Arg{vkomp.Value(p), vkomp.IsDevicePtr(p), vkomp.HasDeviceAddr[uint32](p, 1)} {
			kernel, args := b, []vkomp.Arg{a, vkomp.From(n), vkomp.Value(uint32(1))}
			if a == vkomp.Value(p) {
				kernel, args = k, []vkomp.Arg{a, vkomp.Value(uint32(1)), vkomp.Value(uint32(1))}
			}
			refused(t, "memory that is gone", rt.Target(ctx, vkomp.Target{Kernel: kernel, Range: vkomp.Range{X: 1}, Args: args}), vkomp.ErrInvalidPointer)
		}
	})
}

func TestPointersThatMeanNothingOnTheDeviceAreRefused(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		bind, address := newKernel(t, rt, reach), newKernel(t, rt, through)
		p, n, x := alloc(t, d, 400), make([]uint32, 1), fill(100, 0)
		elsewhere := vktest.Open(t, vktest.Host)
		foreign := alloc(t, elsewhere.InitialDevice(), 400)
		type node struct{ Next *node }
		for _, c := range []struct {
			what string
			a    vkomp.Arg
			want error
			says string
		}{
			{"nil", vkomp.IsDevicePtr(vkomp.DevicePtr{}), vkomp.ErrInvalidPointer, "argument 0"},
			{"nil address", vkomp.HasDeviceAddr[uint32](vkomp.DevicePtr{}, 1), vkomp.ErrInvalidPointer, "argument 0"},
			{"no number of elements", vkomp.HasDeviceAddr[uint32](p, -1), vkomp.ErrInvalidArgument, "argument 0"},
			{"too many elements", vkomp.HasDeviceAddr[uint32](p, 101), vkomp.ErrInvalidPointer, ""},
			{"elements beyond counting", vkomp.HasDeviceAddr[uint32](p, int(^uint(0)>>1)/2+1), vkomp.ErrInvalidArgument, ""},
			{"beyond the end", vkomp.IsDevicePtr(p.Add(404)), vkomp.ErrInvalidPointer, ""},
			{"before the beginning", vkomp.HasDeviceAddr[uint32](p.Add(-4), 1), vkomp.ErrInvalidPointer, ""},
			{"another runtime", vkomp.IsDevicePtr(foreign), vkomp.ErrInvalidDevice, "another runtime"},
			{"another runtime's address", vkomp.HasDeviceAddr[uint32](foreign, 1), vkomp.ErrInvalidDevice, "another runtime"},
			{"Go pointers", vkomp.HasDeviceAddr[node](p, 1), vkomp.ErrInvalidArgument, "node.Next"},
			{"modifier", vkomp.IsDevicePtr(p).Always(), vkomp.ErrInvalidArgument, "modifier"},
		} {
			err := rt.Target(ctx, vkomp.Target{Kernel: bind, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{c.a, vkomp.From(n), vkomp.Value(uint32(1))}})
			refused(t, c.what, err, c.want, c.says)
		}
		value := func(a vkomp.Arg) error {
			return rt.Target(ctx, vkomp.Target{Kernel: address, Range: vkomp.Range{X: 0}, Args: []vkomp.Arg{a, vkomp.Value(uint32(0)), vkomp.Value(uint32(0))}})
		}
		refused(t, "the address of another runtime's memory", value(vkomp.Value(foreign)), vkomp.ErrInvalidDevice)
		must(t, value(vkomp.Value(vkomp.HostPtr(x))))
		if !d.IsInitial() {
			host := alloc(t, rt.InitialDevice(), 400)
			for what, a := range map[string]vkomp.Arg{"host memory": vkomp.IsDevicePtr(host), "a slice": vkomp.HasDeviceAddr[uint32](vkomp.HostPtr(x), 1)} {
				err := rt.Target(ctx, vkomp.Target{Kernel: bind, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{a, vkomp.From(n), vkomp.Value(uint32(1))}})
				refused(t, what, err, vkomp.ErrInvalidDevice, "argument 0")
			}
			refused(t, "the address of host memory", value(vkomp.Value(host)), vkomp.ErrInvalidDevice)
			err := rt.Target(ctx, vkomp.Target{If: vkomp.If(false), Kernel: bind, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.IsDevicePtr(p), vkomp.From(n), vkomp.Value(uint32(1))}})
			refused(t, "a device's memory on the initial device", err, vkomp.ErrInvalidDevice, fmt.Sprint(d.Number()))
		}
		if reached(t, rt, bind, vkomp.IsDevicePtr(p), 0) != 100 {
			t.Error("a good region afterwards")
		}
	})
}

func TestHostVariantsViewOfPointers(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	d := rt.InitialDevice()
	ctx := t.Context()
	x := []uint32{1, 2, 3, 4}
	p := alloc(t, d, 16)
	run := func(host func(*vkomp.HostCall) error, args ...vkomp.Arg) error {
		k := newKernel(t, rt, vkomp.KernelSource{Name: "view", Host: host})
		return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Args: args})
	}
	must(t, run(func(c *vkomp.HostCall) error {
		if s := vkomp.HostSlice[uint16](c, 0); len(s) != 6 || uint64(uintptr(unsafe.Pointer(&s[0]))) != p.Address()+4 {
			t.Errorf("the pointer reaches %d elements at %p", len(s), s)
		}
		if s := vkomp.HostSlice[uint32](c, 1); len(s) != 3 || &s[0] != &x[1] {
			t.Errorf("the pointer to a slice reaches %d", s)
		}
		if s := vkomp.HostSlice[uint32](c, 2); len(s) != 2 || &s[0] != &x[0] {
			t.Errorf("two elements are %d", s)
		}
		if q := vkomp.HostValue[vkomp.DevicePtr](c, 0); q != p {
			t.Errorf("the value is %v, want %v", q, p)
		}
		if s := vkomp.HostPointee[uint64](c, 0); len(s) != 2 {
			t.Errorf("the value points to %d", s)
		}
		if s := vkomp.HostPointee[uint32](c, 1); len(s) != 3 || &s[0] != &x[1] {
			t.Errorf("the address is that of %d", s)
		}
		if q := vkomp.HostValue[vkomp.DevicePtr](c, 1); q.Address() != uint64(uintptr(unsafe.Pointer(&x[1]))) {
			t.Errorf("the address is %v", q)
		}
		if s := vkomp.HostPointee[uint32](c, 2); s != nil {
			t.Errorf("nil points to %d", s)
		}
		return nil
	}, vkomp.IsDevicePtr(p.Add(4)), vkomp.IsDevicePtr(vkomp.HostPtr(x[1:])), vkomp.HasDeviceAddr[uint32](vkomp.HostPtr(x), 2),
		vkomp.Value(p), vkomp.AddressOf(x[1:2]), vkomp.Value(vkomp.DevicePtr{})))

	for what, c := range map[string]struct {
		host func(*vkomp.HostCall)
		says string
	}{
		"no such slice":              {func(c *vkomp.HostCall) { vkomp.HostSlice[uint32](c, 2) }, "slice argument 2 of 2"},
		"no such value":              {func(c *vkomp.HostCall) { vkomp.HostPointee[uint32](c, 2) }, "value argument 2 of 2"},
		"a pointee of a plain value": {func(c *vkomp.HostCall) { vkomp.HostPointee[uint32](c, 1) }, "value argument 1"},
		"a slice of another type":    {func(c *vkomp.HostCall) { vkomp.HostSlice[int32](c, 1) }, "holds uint32"},
		"Go pointers":                {func(c *vkomp.HostCall) { vkomp.HostSlice[*int](c, 0) }, "Go pointers"},
		"not aligned":                {func(c *vkomp.HostCall) { vkomp.HostSlice[uint64](c, 0) }, "not aligned"},
		"a pointer as a number":      {func(c *vkomp.HostCall) { vkomp.HostValue[uint32](c, 0) }, "value argument 0"},
	} {
		err := run(func(call *vkomp.HostCall) error { c.host(call); return nil },
			vkomp.IsDevicePtr(p.Add(2)), vkomp.HasDeviceAddr[uint32](vkomp.HostPtr(x), 2), vkomp.Value(p), vkomp.Value(uint32(1)))
		refused(t, what, err, vkomp.ErrInvalidArgument, c.says, `"view"`)
	}
}

func TestDependArgsCoversSlicesThatAreNotMapped(t *testing.T) {
	rt := vktest.Open(t, vktest.Host, func(o *vkomp.Options) { o.KeepGraph = true })
	x, y := fill(10, 0), fill(10, 0)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "k", Host: func(*vkomp.HostCall) error { return nil }})
	must(t, rt.Target(t.Context(), vkomp.Target{
		Kernel: k, Range: vkomp.Range{X: 1}, DependArgs: true,
		Args: []vkomp.Arg{
			vkomp.Value(vkomp.HostPtr(x)), vkomp.IsDevicePtr(vkomp.HostPtr(x)), vkomp.HasDeviceAddr[uint32](vkomp.HostPtr(x), 1),
			vkomp.Implicit(x[2:5]), vkomp.AddressOf(y), vkomp.To(y).Section(vkomp.Span{Start: 1, Count: 2}),
		},
	}))
	var got []string
	for _, item := range rt.Graph().Tasks[0].Depend {
		got = append(got, fmt.Sprint(item.Kind, item.Size))
	}
	if want := []string{"inout12", "inout40", "in8"}; !slices.Equal(got, want) {
		t.Errorf("the items are %q, want %q", got, want)
	}
}

func TestDependArgsOfReadonlyBindings(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.KeepGraph = true })
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := constant(10, 1), constant(10, 0)
	must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(ctx context.Context) error {
		return rt.Target(ctx, vkomp.Target{
			Label: "it", Kernel: k, Range: vkomp.Range{X: 10}, DependArgs: true,
			Args: []vkomp.Arg{vkomp.Value(uint32(10)), vkomp.Implicit(x), vkomp.Value(float32(1)), vkomp.Implicit(y)},
		})
	}))
	for _, task := range rt.Graph().Tasks {
		if task.Label == "it" && (len(task.Depend) != 2 || task.Depend[0].Kind != "in" || task.Depend[1].Kind != "inout") {
			t.Errorf("the items are %v", task.Depend)
		}
	}
	if y[9] != 1 {
		t.Errorf("y = %v", y)
	}
}
