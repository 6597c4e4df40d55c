package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// Everything that a block makes of a parameter's slice is, at a replay, that of the slice to which the
// parameter is bound then: arguments of all kinds, parts of it, depend items, ends of copies, and what
// bodies get.
func TestReplayUsesTheSlicesBoundToParameters(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		const n = 128
		k := newKernel(t, rt, shaders.Saxpy)
		p := alloc(t, d, 4*n)
		ones := constant(n, 1)
		var out vkomp.ParamSlice[float32]
		var factor vkomp.ParamVar[float32]
		var sum vkomp.ParamVar[*float32]
		g := newGraphed(rt, func(ctx context.Context) error {
			y := out.Get(ctx)
			half := y[n/2:]
			first := saxpyOn(t, k, 1, ones, y)
			first.Args[3] = factor.Arg(ctx)
			first.NoWait, first.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
			second := saxpyOn(t, k, 10, ones[:n/2], half)
			second.Args[1] = second.Args[1].Present() // by the enter data
			second.NoWait, second.DependArgs = true, true
			return errors.Join(
				rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}, NoWait: true, Depend: []vkomp.Depend{vkomp.Out(y)}}),
				rt.Target(ctx, first),
				rt.Target(ctx, second),
				rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y).Section(vkomp.Span{Start: 1, Count: 2})}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(y)}}),
				rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(y)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(y)}}),
				rt.MemcpyAsync(ctx, p, vkomp.HostPtr(half), 4*len(half), vkomp.In(y)),
				rt.TaskwaitNoWait(ctx, vkomp.InOut(y)),
				rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(half)}, Body: func(ctx context.Context) error {
					for _, v := range out.Get(ctx) {
						*sum.Get(ctx) += v * factor.Get(ctx)
					}
					return nil
				}}),
			)
		})
		for round := range 4 {
			y, total := constant(n, float32(round)), float32(0)
			by := float32(2 + round)
			params := []vkomp.Param{out.Bind(y), factor.Bind(by), sum.Bind(&total)}
			if round == 3 {
				slices.Reverse(params) // the order does not matter
			}
			g.expect(t, fmt.Sprint("round ", round), round == 0, func(g *vkomp.Taskgraph) { g.Params = params })
			low, high := float32(round)+by, float32(round)+by+10
			want := append(constant(n/2, low), constant(n/2, high)...)
			copied := make([]float32, n/2)
			must(t, rt.Memcpy(t.Context(), vkomp.HostPtr(copied), p, 4*len(copied)))
			if !slices.Equal(y, want) || !slices.Equal(copied, want[n/2:]) || total != by*(low+high)*n/2 {
				t.Errorf("round %d: y is %v, the copy %v and the total %v; want %v, and %v", round, y, copied, total, want, by*(low+high)*n/2)
			}
		}
		if ones[0] != 1 {
			t.Errorf("another slice has changed to %v", ones)
		}
	})
}

// Pointers into the memory to which a parameter points belong to it, and so does the address that its
// own argument passes.
func TestReplayUsesThePointersBoundToParameters(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		const n, offset = 64, 256
		ctx, k := t.Context(), newKernel(t, rt, shaders.Saxpy)
		ones := constant(n, 1)
		a, b, fixed := alloc(t, d, 4*n+offset), alloc(t, d, 4*n+offset), alloc(t, d, 4*n)
		var at vkomp.ParamVar[vkomp.DevicePtr]
		g := newGraphed(rt, func(ctx context.Context) error {
			p := at.Get(ctx).Add(offset)
			add := saxpyOn(t, k, 3, ones, make([]float32, n))
			add.Args[1] = vkomp.HasDeviceAddr[float32](p, n)
			add.NoWait, add.Depend = true, []vkomp.Depend{vkomp.InOut(ones)}
			return errors.Join(
				d.MemsetAsync(ctx, p, 0, 4*n, vkomp.Out(ones)),
				rt.Target(ctx, add),
				rt.MemcpyAsync(ctx, fixed, p, 4*n, vkomp.InOut(ones)),
			)
		})
		for round, p := range []vkomp.DevicePtr{a, b, a, b} {
			must(t, rt.Memcpy(ctx, a.Add(offset), vkomp.HostPtr(constant(n, 7)), 4*n))
			must(t, rt.Memcpy(ctx, b.Add(offset), vkomp.HostPtr(constant(n, 7)), 4*n))
			must(t, d.Memset(ctx, fixed, 9, 4*n))
			g.expect(t, fmt.Sprint("round ", round), round == 0, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(p)} })
			for what, c := range map[string]struct {
				p    vkomp.DevicePtr
				want float32
			}{
				"the memory of the parameter": {p.Add(offset), 3}, "its copy": {fixed, 3},
				"other memory": {map[vkomp.DevicePtr]vkomp.DevicePtr{a: b, b: a}[p].Add(offset), 7},
			} {
				got := make([]float32, n)
				must(t, rt.Memcpy(ctx, vkomp.HostPtr(got), c.p, 4*n))
				if !slices.Equal(got, constant(n, c.want)) {
					t.Errorf("round %d: %s is %v, want %v", round, what, got, c.want)
				}
			}
		}
		err := g.encounter(ctx, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(vkomp.DevicePtr{})} })
		refused(t, "a nil pointer", err, vkomp.ErrInvalidPointer, "memset")
		g.expect(t, "after that", false, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(b)} })
		var other vkomp.ParamVar[vkomp.DevicePtr]
		for range 2 {
			g.expect(t, "two pointers into the same memory", true, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(a), other.Bind(a.Add(4))} })
		}
	})
}

// Addresses that are passed as values, and slices that are used where they are present, follow their
// parameters too.
func TestReplayPassesTheAddressesOfParameters(t *testing.T) {
	rt := openTasks(t)
	var in vkomp.ParamSlice[uint32]
	var number vkomp.ParamVar[[5]uint64]
	var seen []string
	k := newKernel(t, rt, vkomp.KernelSource{Name: "look", Host: func(c *vkomp.HostCall) error {
		seen = append(seen, fmt.Sprint(
			vkomp.HostSlice[uint32](c, 0), vkomp.HostSlice[uint32](c, 1), vkomp.HostPointee[uint32](c, 0), vkomp.HostPointee[uint32](c, 1),
			vkomp.HostValue[uint64](c, 0) == vkomp.HostValue[uint64](c, 1), vkomp.HostValue[[5]uint64](c, 2)))
		return nil
	}})
	g := newGraphed(rt, func(ctx context.Context) error {
		s := in.Get(ctx)[1:]
		return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true, Args: []vkomp.Arg{
			vkomp.Implicit(s), vkomp.IsDevicePtr(vkomp.HostPtr(s)), vkomp.AddressOf(s), vkomp.Value(vkomp.HostPtr(s)), number.Arg(ctx),
		}})
	})
	var want []string
	for round := range uint32(3) {
		s := []uint32{10 * round, 10*round + 1, 10*round + 2, 10*round + 3}[:3:4]
		v := [5]uint64{4: uint64(round)}
		g.expect(t, fmt.Sprint("round ", round), round == 0, func(g *vkomp.Taskgraph) {
			g.Params = []vkomp.Param{in.Bind(s), number.Bind(v)}
		})
		want = append(want, fmt.Sprint(s[1:4], s[1:3], s[1:4], s[1:3], true, v))
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the kernel has seen\n%q, want\n%q", seen, want)
	}
}

// Other parameters, and slices of other lengths, have a record of their own, which replaces the earlier
// one.
func TestOtherParametersAreRecordedAnew(t *testing.T) {
	rt := openTasks(t)
	var a, b vkomp.ParamSlice[int]
	var v vkomp.ParamVar[int]
	var lengths []int
	g := newGraphed(rt, func(ctx context.Context) error {
		n := len(a.Get(ctx)) + 10*len(b.Get(ctx)) + 100*v.Get(ctx)
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
			lengths = append(lengths, n)
			return nil
		}})
	})
	one, two := make([]int, 1), make([]int, 2)
	for _, c := range []struct {
		what     string
		executes bool
		params   []vkomp.Param
		want     int
	}{
		{"without parameters", true, nil, 0},
		{"without parameters again", false, nil, 0},
		{"with one", true, []vkomp.Param{a.Bind(one)}, 1},
		{"with one of another length", true, []vkomp.Param{a.Bind(two)}, 2},
		{"with another slice of that length", false, []vkomp.Param{a.Bind(make([]int, 2))}, 2},
		{"with the first length again", true, []vkomp.Param{a.Bind(one)}, 1},
		{"with another one", true, []vkomp.Param{b.Bind(one)}, 10},
		{"with both", true, []vkomp.Param{a.Bind(one), b.Bind(two)}, 21},
		{"with both in another order", false, []vkomp.Param{b.Bind(two), a.Bind(one)}, 21},
		{"with a value", true, []vkomp.Param{v.Bind(1)}, 100},
		// What the block has computed from the value is in the record.
		{"with another value", false, []vkomp.Param{v.Bind(2)}, 100},
		{"with a nil slice", true, []vkomp.Param{a.Bind(nil)}, 0},
		{"with slices that overlap", true, []vkomp.Param{a.Bind(two), b.Bind(two[1:])}, 12},
		{"with slices that overlap again", true, []vkomp.Param{a.Bind(two), b.Bind(two[1:])}, 12},
		{"with slices of the same lengths", true, []vkomp.Param{a.Bind(two), b.Bind(one)}, 12},
		{"with slices that overlap, of these lengths", false, []vkomp.Param{a.Bind(two), b.Bind(two[1:])}, 12},
	} {
		lengths = nil
		g.expect(t, c.what, c.executes, func(g *vkomp.Taskgraph) { g.Params = c.params })
		if !slices.Equal(lengths, []int{c.want}) {
			t.Errorf("%s: %d, want %d", c.what, lengths, c.want)
		}
	}
	for _, reset := range []bool{true, false} {
		g.expect(t, "with a reset, and slices that overlap", true, func(g *vkomp.Taskgraph) { g.Reset, g.Params = reset, []vkomp.Param{a.Bind(two), b.Bind(two[1:])} })
	}
}

// An item that is only in part in the slice of a parameter would have no place at a replay.
func TestItemsThatAreInAParameterOnlyInPart(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		all, x := constant(8, 0), constant(8, 1)
		var half vkomp.ParamSlice[float32]
		type value struct{ s []float32 }
		type image struct{ S vkomp.DeviceAddress }
		mapper := vkomp.Mapper[value, image]{
			Encode:  func(*image, *value) {},
			Members: func(v *value, i *image) []vkomp.Member { return []vkomp.Member{vkomp.Attach(&i.S, vkomp.To(v.s))} },
		}
		for text, construct := range map[string]func(ctx context.Context) error{
			`target "saxpy": not replayable: argument 1: it lies only in part in the slice of parameter 0`: func(ctx context.Context) error {
				region := saxpyOn(t, k, 1, x, all)
				region.NoWait = true
				return rt.Target(ctx, region)
			},
			`target "saxpy": not replayable: depend item 1`: func(ctx context.Context) error {
				region := saxpyOn(t, k, 1, x[:len(half.Get(ctx))], half.Get(ctx))
				region.NoWait, region.Depend = true, []vkomp.Depend{vkomp.In(x), vkomp.Out(all)}
				return rt.Target(ctx, region)
			},
			`target update: not replayable: motion 0`: func(ctx context.Context) error {
				return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(all)}, NoWait: true, Depend: []vkomp.Depend{vkomp.In(x)}})
			},
			`target enter data "enter": not replayable: map 0: a mapped value`: func(ctx context.Context) error {
				return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{mapper.To(&value{half.Get(ctx)})}, NoWait: true, Label: "enter", Depend: []vkomp.Depend{vkomp.In(x)}})
			},
			`task "t": not replayable: depend item 0`: func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Body: nothing, Label: "t", Depend: []vkomp.Depend{vkomp.In(all)}})
			},
			`taskwait nowait: not replayable: depend item 0`: func(ctx context.Context) error { return rt.TaskwaitNoWait(ctx, vkomp.In(all)) },
			`memcpy: not replayable`: func(ctx context.Context) error {
				return rt.MemcpyAsync(ctx, vkomp.HostPtr(all), vkomp.HostPtr(x), 4)
			},
			`memcpy: not replayable: depend item 0`: func(ctx context.Context) error {
				return rt.MemcpyAsync(ctx, vkomp.HostPtr(x), vkomp.HostPtr(constant(8, 2)), 4, vkomp.In(all))
			},
		} {
			g := newGraphed(rt, construct)
			bind := func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{half.Bind(all[4:])} }
			refused(t, text, g.encounter(t.Context(), bind), vkomp.ErrNotReplayable, text)
			whole := func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{half.Bind(all)} }
			if text != `target enter data "enter": not replayable: map 0: a mapped value` {
				begins := func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{half.Bind(all[:4])} }
				refused(t, text, g.encounter(t.Context(), begins), vkomp.ErrNotReplayable, text)
				g.expect(t, text+": with all of it", true, whole)
				g.expect(t, text+": with all of it again", false, whole)
			}
		}
		if x[0] != 1 && x[0] != 2 {
			t.Errorf("x is %v", x)
		}
	})
}

// Encounters at the same time have each their own values, also in bodies that run later.
func TestConcurrentReplaysHaveTheirOwnParameters(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		const n = 64
		k := newKernel(t, rt, shaders.Saxpy)
		ones := constant(n, 1)
		var out vkomp.ParamSlice[float32]
		var factor vkomp.ParamVar[float32]
		g := newGraphed(rt, func(ctx context.Context) error {
			y := out.Get(ctx)
			region := saxpyOn(t, k, 1, ones, y)
			region.Args[3] = factor.Arg(ctx)
			region.NoWait, region.DependArgs = true, true
			return errors.Join(rt.Target(ctx, region), rt.Task(ctx, vkomp.Task{
				Depend: []vkomp.Depend{vkomp.InOut(y)},
				Body: func(ctx context.Context) error {
					for i := range out.Get(ctx) {
						out.Get(ctx)[i] += 1000 * factor.Get(ctx)
					}
					return nil
				},
			}))
		})
		encounter := func(v float32) error {
			y := constant(n, 0)
			err := g.encounter(context.Background(), func(g *vkomp.Taskgraph) {
				g.Params = []vkomp.Param{out.Bind(y), factor.Bind(v)}
			})
			if err == nil && !slices.Equal(y, constant(n, 1001*v)) {
				err = fmt.Errorf("%v: y is %v", v, y)
			}
			return err
		}
		must(t, encounter(1))
		var all sync.WaitGroup
		for who := range 4 {
			all.Go(func() {
				for i := range 50 {
					if err := encounter(float32(1 + 10*i + who)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if g.executed != 1 {
			t.Errorf("the block was executed %d times", g.executed)
		}
	})
}

// A parameter has no value where no encounter binds it, and that of the encounter around where an inner
// one does not.
func TestParametersOutsideOfAnEncounter(t *testing.T) {
	rt := openTasks(t)
	var s vkomp.ParamSlice[int]
	var v, w vkomp.ParamVar[int]
	ctx := t.Context()
	if s.Get(ctx) != nil || v.Get(ctx) != 0 {
		t.Errorf("%v and %v", s.Get(ctx), v.Get(ctx))
	}
	var sizeless vkomp.ParamSlice[struct{}]
	empty := newGraphed(rt, func(ctx context.Context) error {
		if n := len(sizeless.Get(ctx)); n != 3 {
			t.Errorf("%d elements without size, want 3", n)
		}
		return nil
	})
	empty.expect(t, "elements without size", true, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{sizeless.Bind(make([]struct{}, 3))} })
	k := newKernel(t, rt, vkomp.KernelSource{Name: "none", Host: func(*vkomp.HostCall) error { return nil }})
	refused(t, "the argument", rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{v.Arg(ctx)}}), vkomp.ErrInvalidArgument, "zero Arg", "the parameter is not bound")
	var got []int
	inner := newGraphed(rt, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
			got = append(got, v.Get(ctx), w.Get(ctx), len(s.Get(ctx)))
			return nil
		}})
	})
	outer := newGraphed(rt, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
			return inner.encounter(ctx, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{w.Bind(10 * v.Get(ctx))} })
		}})
	})
	for i := range 3 {
		outer.expect(t, fmt.Sprint(i), i == 0, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{v.Bind(i), s.Bind(make([]int, 2))} })
	}
	if want := []int{0, 0, 2, 1, 10, 2, 2, 20, 2}; !slices.Equal(got, want) || inner.executed != 1 {
		t.Errorf("got %d, want %d; the inner block was executed %d times", got, want, inner.executed)
	}
}

// A pointer to a slice is a parameter as one to memory of a device is: pointers to the slice follow it.
func TestReplayUsesTheHostPointersBoundToParameters(t *testing.T) {
	rt := openTasks(t)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "add", Host: func(c *vkomp.HostCall) error {
		vkomp.HostSlice[uint32](c, 0)[0] += vkomp.HostPointee[uint32](c, 0)[1]
		return nil
	}})
	var at vkomp.ParamVar[vkomp.DevicePtr]
	other := []uint32{5, 5}
	g := newGraphed(rt, func(ctx context.Context) error {
		p := at.Get(ctx)
		return errors.Join(
			rt.InitialDevice().MemsetAsync(ctx, p.Add(4), 1, 4, vkomp.InOut(other)),
			rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(other)},
				Args: []vkomp.Arg{vkomp.IsDevicePtr(p), vkomp.Value(p)}}),
			rt.MemcpyAsync(ctx, p.Add(8), vkomp.HostPtr(other), 4, vkomp.InOut(other)),
		)
	})
	bind := func(s []uint32) func(*vkomp.Taskgraph) {
		return func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(vkomp.HostPtr(s))} }
	}
	first := []uint32{0, 0, 0}
	for round, s := range [][]uint32{first, {1, 9, 9}, {2, 9, 9, 9}, {3, 9, 9}} {
		g.expect(t, fmt.Sprint("round ", round), round == 0, bind(s))
		if want := append([]uint32{0x01010101 + uint32(round), 0x01010101, 5}, s[3:]...); !slices.Equal(s, want) {
			t.Errorf("round %d: %#x, want %#x", round, s, want)
		}
	}
	if want := []uint32{0x01010101, 0x01010101, 5}; !slices.Equal(first, want) || other[0] != 5 {
		t.Errorf("after all, the first slice is %#x and the other %d", first, other)
	}
	err := g.encounter(t.Context(), bind(make([]uint32, 1)))
	refused(t, "a slice that is too short", err, vkomp.ErrInvalidPointer, "memset")
	// Which of two pointers to a slice the block uses cannot be known.
	var second vkomp.ParamVar[vkomp.DevicePtr]
	var whole vkomp.ParamSlice[uint32]
	for range 2 {
		two := make([]uint32, 3)
		g.expect(t, "two pointers", true, func(g *vkomp.Taskgraph) {
			g.Params = []vkomp.Param{at.Bind(vkomp.HostPtr(two)), second.Bind(vkomp.HostPtr(two))}
		})
		g.expect(t, "a pointer and a slice", true, func(g *vkomp.Taskgraph) {
			g.Params = []vkomp.Param{at.Bind(vkomp.HostPtr(two)), whole.Bind(two[2:])}
		})
	}
}

// What follows the slice of a parameter up to its capacity goes as far as it did when it was recorded: to the
// capacity of the slice, or less.
func TestReplayGivesPartsOfParametersTheirCapacity(t *testing.T) {
	rt := openTasks(t)
	var in, none vkomp.ParamSlice[uint32]
	var seen []string
	k := newKernel(t, rt, vkomp.KernelSource{Name: "look", Host: func(c *vkomp.HostCall) error {
		for i := range 3 {
			seen = append(seen, fmt.Sprint(vkomp.HostSlice[uint32](c, i), vkomp.HostPointee[uint32](c, i)))
		}
		seen = append(seen, fmt.Sprint(vkomp.HostPointee[uint32](c, 3)))
		return nil
	}})
	g := newGraphed(rt, func(ctx context.Context) error {
		s := in.Get(ctx)
		var args []vkomp.Arg
		for _, part := range [][]uint32{s[1:], s[1:2:3], none.Get(ctx)} {
			args = append(args, vkomp.Implicit(part), vkomp.AddressOf(part))
		}
		args = append(args, vkomp.AddressOf(s[2:2:2]))
		return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true, Args: args})
	})
	for round, capacity := range []int{5, 7, 3, 4} {
		s, empty := make([]uint32, 3, capacity), make([]uint32, 0, capacity)
		for i := range s[:capacity] {
			s[:capacity][i], empty[:capacity][i] = uint32(10*round+i), uint32(100*round+i)
		}
		seen = nil
		g.expect(t, fmt.Sprint("round ", round), round == 0, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{in.Bind(s), none.Bind(empty)} })
		var want []string
		for _, part := range [][]uint32{s[1:capacity], s[1:3], empty[:capacity]} {
			want = append(want, fmt.Sprint(part, part))
		}
		want = append(want, "[]")
		if !slices.Equal(seen, want) {
			t.Errorf("round %d: the kernel has seen %q, want %q", round, seen, want)
		}
	}
}

// In a taskgraph that a body encounters, the parameters of the taskgraph around are parameters too. A record
// does not depend on those of them that it does not use.
func TestInnerTaskgraphsUseTheParametersAround(t *testing.T) {
	rt := openTasks(t)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "add", Host: func(c *vkomp.HostCall) error {
		for i := range vkomp.HostSlice[int32](c, 0) {
			vkomp.HostSlice[int32](c, 0)[i] += vkomp.HostValue[int32](c, 0)
		}
		return nil
	}})
	var out, part, unused vkomp.ParamSlice[int32]
	var v vkomp.ParamVar[int32]
	add := func(ctx context.Context, s []int32) error {
		return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true, DependArgs: true, Args: []vkomp.Arg{vkomp.ToFrom(s), v.Arg(ctx)}})
	}
	inner := newGraphed(rt, func(ctx context.Context) error {
		return errors.Join(add(ctx, out.Get(ctx)[2:]), add(ctx, part.Get(ctx)))
	})
	encounter := func(ctx context.Context, of []int32) error {
		return inner.encounter(ctx, func(g *vkomp.Taskgraph) {
			if of != nil {
				g.Params = []vkomp.Param{part.Bind(of)}
			}
		})
	}
	round := func(what string, executes, bindsPart bool, params func(s []int32) []vkomp.Param) {
		t.Helper()
		s, of, executed := make([]int32, 4), []int32(nil), inner.executed
		if bindsPart {
			of = s[:2] // it lies in the slice of the parameter around
		}
		err := rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Params: params(s)}, func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error { return encounter(ctx, of) }})
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		want := []int32{0, 0, 3, 3}
		if bindsPart {
			want = []int32{3, 3, 3, 3}
		}
		if !slices.Equal(s, want) || inner.executed > executed != executes {
			t.Errorf("%s: %d, want %d; the block was executed: %v", what, s, want, inner.executed > executed)
		}
	}
	both := func(s []int32) []vkomp.Param { return []vkomp.Param{out.Bind(s), v.Bind(3)} }
	more := func(n int) func(s []int32) []vkomp.Param {
		return func(s []int32) []vkomp.Param {
			return []vkomp.Param{unused.Bind(make([]int32, n)), v.Bind(3), out.Bind(s)}
		}
	}
	round("the first", true, false, more(9))
	round("the second", false, false, more(9))
	round("with one that it does not use of another length", false, false, more(3))
	round("without that, in another order", false, false, both)
	round("with one of its own", true, true, both)
	round("with one of its own again", false, true, both)
	round("with others around", false, true, more(3))
	round("without it", true, false, both)
	// Of another length, which the record uses.
	longer := make([]int32, 6)
	must(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Params: []vkomp.Param{out.Bind(longer), v.Bind(2)}}, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error { return encounter(ctx, nil) }})
	}))
	if !slices.Equal(longer, []int32{0, 0, 2, 2, 2, 2}) {
		t.Errorf("a longer slice is %d", longer)
	}
	executed := inner.executed
	if err := encounter(t.Context(), nil); err == nil || inner.executed != executed+1 {
		t.Errorf("outside of the taskgraph around: %v, want the block to be executed, which needs its parameters", err)
	}
}

// encounterIn encounters inner in the body of a task of a taskgraph with those parameters.
func encounterIn(t *testing.T, inner *graphed, params ...vkomp.Param) {
	t.Helper()
	must(t, inner.rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Params: params}, func(ctx context.Context) error {
		return inner.rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error { return inner.encounter(ctx, nil) }})
	}))
}

// What the block of an inner taskgraph computes from a parameter around is in its record: another length has another
// record, also if no item refers to the parameter.
func TestInnerRecordsDependOnWhatTheBlockReads(t *testing.T) {
	rt := openTasks(t)
	var p vkomp.ParamSlice[byte]
	var got []int
	inner := newGraphed(rt, func(ctx context.Context) error {
		n := len(p.Get(ctx))
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { got = append(got, n); return nil }})
	})
	for _, n := range []int{3, 3, 5, 5, 3} {
		encounterIn(t, inner, p.Bind(make([]byte, n)))
	}
	if want := []int{3, 3, 5, 5, 3}; !slices.Equal(got, want) || inner.executed != 3 {
		t.Errorf("got %d, want %d; the block was executed %d times, want 3", got, want, inner.executed)
	}
}

// Slices of taskgraphs around may share storage with others, and with what the block has from elsewhere. A record keeps
// those alone that it uses.
func TestParametersAroundMayOverlap(t *testing.T) {
	rt := openTasks(t)
	var p, q, r vkomp.ParamSlice[int32]
	all := make([]int32, 8)
	k := newKernel(t, rt, vkomp.KernelSource{Name: "add", Host: func(c *vkomp.HostCall) error {
		for i := range vkomp.HostSlice[int32](c, 0) {
			vkomp.HostSlice[int32](c, 0)[i]++
		}
		return nil
	}})
	add := func(ctx context.Context, s []int32) error {
		return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true, DependArgs: true, Args: []vkomp.Arg{vkomp.ToFrom(s)}})
	}
	// The slice of the block contains that of a parameter, which the block does not know.
	captured := newGraphed(rt, func(ctx context.Context) error { return add(ctx, all) })
	for range 2 {
		encounterIn(t, captured, p.Bind(all[:4]), q.Bind(all[2:6]))
	}
	if !slices.Equal(all, []int32{2, 2, 2, 2, 2, 2, 2, 2}) || captured.executed != 1 {
		t.Errorf("%d after two encounters, of which %d executed the block", all, captured.executed)
	}
	// Of two parameters with shared storage, those of the nearest encounter have its items.
	inmost := newGraphed(rt, func(ctx context.Context) error { return errors.Join(add(ctx, q.Get(ctx)), add(ctx, p.Get(ctx)[3:])) })
	middle := newGraphed(rt, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error { return inmost.encounter(ctx, nil) }})
	})
	for range 3 {
		s := make([]int32, 4)
		must(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Params: []vkomp.Param{p.Bind(s)}}, func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
				return middle.encounter(ctx, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{q.Bind(s[1:3])} })
			}})
		}))
		if !slices.Equal(s, []int32{0, 1, 1, 1}) {
			t.Errorf("three deep: %d", s)
		}
	}
	if inmost.executed != 1 {
		t.Errorf("three deep: the block was executed %d times", inmost.executed)
	}
	// Of two of one encounter it is not known to which an item belongs.
	both := newGraphed(rt, func(ctx context.Context) error { return errors.Join(add(ctx, p.Get(ctx)), add(ctx, r.Get(ctx))) })
	for range 2 {
		s := make([]int32, 4)
		encounterIn(t, both, p.Bind(s), r.Bind(s[2:]))
		if !slices.Equal(s, []int32{1, 1, 2, 2}) {
			t.Errorf("two of one encounter: %d", s)
		}
	}
	if both.executed != 2 {
		t.Errorf("two of one encounter: the block was executed %d times", both.executed)
	}
	// What a record does not use it does not keep.
	kept := newGraphed(rt, func(ctx context.Context) error { return add(ctx, all) })
	large := weak.Make(func() *int32 {
		s := make([]int32, 1<<20)
		encounterIn(t, kept, p.Bind(s))
		return &s[0]
	}())
	for deadline := time.Now().Add(20 * time.Second); large.Value() != nil && time.Now().Before(deadline); {
		runtime.GC()
	}
	if large.Value() != nil {
		t.Error("a record keeps the slice of a parameter around that it does not use")
	}
	runtime.KeepAlive(kept)
}

// Slices without elements are parameters if they have a capacity, and two of the same storage cannot be told apart.
func TestParametersWithoutElementsThatShareStorage(t *testing.T) {
	rt := openTasks(t)
	var a, b vkomp.ParamSlice[int32]
	g := newGraphed(rt, func(ctx context.Context) error { return rt.TaskwaitNoWait(ctx, vkomp.In(make([]int32, 1))) })
	s := make([]int32, 8)
	for _, c := range []struct {
		what  string
		a, b  []int32
		twice bool
	}{
		{"the same", s[:0], s[:0], true},
		{"one with elements", s[:4], s[2:2], true},
		{"one after the other", s[:4], s[4:4], false},
		{"without capacity", s[:4], s[4:4:4], false},
	} {
		change := func(g *vkomp.Taskgraph) { g.ID, g.Params = len(c.what), []vkomp.Param{a.Bind(c.a), b.Bind(c.b)} }
		g.expect(t, c.what, true, change)
		g.expect(t, c.what+", again", c.twice, change)
	}
}

// A parameter that is a pointer to a slice brings the type of its elements: pointers are not written.
func TestHostPointersOfReplaysAreCheckedForTheirElements(t *testing.T) {
	rt := openTasks(t)
	var at vkomp.ParamVar[vkomp.DevicePtr]
	g := newGraphed(rt, func(ctx context.Context) error {
		return rt.InitialDevice().MemsetAsync(ctx, at.Get(ctx).Add(8), 1, 8)
	})
	g.expect(t, "numbers", true, func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(vkomp.HostPtr(make([]uint64, 2)))} })
	pointers := []*int{nil, nil}
	err := g.encounter(t.Context(), func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(vkomp.HostPtr(pointers))} })
	refused(t, "pointers", err, vkomp.ErrInvalidArgument, "holds Go pointers")
	if pointers[1] != nil {
		t.Error("the pointers have been written")
	}
}

// A fill is one of a device's memory. A replay refuses a parameter that points to memory of another device, as the
// construct does when its block is executed.
func TestReplayedFillKeepsItsDevice(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		host, p := make([]byte, 16), alloc(t, d, 16)
		memcpy(t, rt, p, vkomp.HostPtr(make([]byte, 16)), 16)
		for _, c := range []struct {
			of           vkomp.Device
			right, other vkomp.DevicePtr
		}{{rt.InitialDevice(), vkomp.HostPtr(host), p}, {d, p, vkomp.HostPtr(host)}} {
			var at vkomp.ParamVar[vkomp.DevicePtr]
			g := newGraphed(rt, func(ctx context.Context) error { return c.of.MemsetAsync(ctx, at.Get(ctx), 7, 16) })
			bind := func(p vkomp.DevicePtr) func(*vkomp.Taskgraph) {
				return func(g *vkomp.Taskgraph) { g.Params = []vkomp.Param{at.Bind(p)} }
			}
			g.expect(t, "the right memory", true, bind(c.right))
			memcpy(t, rt, c.right, vkomp.HostPtr(make([]byte, 16)), 16)
			refused(t, fmt.Sprintf("device %d", c.of.Number()), g.encounter(t.Context(), bind(c.other)), vkomp.ErrInvalidDevice)
			if got := append(contents(t, rt, p, 16), host...); g.executed != 1 || slices.ContainsFunc(got, func(b byte) bool { return b != 0 }) {
				t.Errorf("device %d: the block was executed %d times, and the memory is %v", c.of.Number(), g.executed, got)
			}
			g.expect(t, "the right memory again", false, bind(c.right))
			if !slices.Equal(contents(t, rt, c.right, 16), slices.Repeat([]byte{7}, 16)) {
				t.Errorf("device %d: a replay has not set the right memory", c.of.Number())
			}
			memcpy(t, rt, c.right, vkomp.HostPtr(make([]byte, 16)), 16)
		}
	})
}

// A nil interface is a value like others.
func TestParameterOfAnInterfaceCanBeNil(t *testing.T) {
	rt := openTasks(t)
	var v vkomp.ParamVar[error]
	mine := errors.New("mine")
	for _, want := range []error{mine, nil} {
		g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Params: []vkomp.Param{v.Bind(want)}}
		must(t, rt.Taskgraph(t.Context(), g, func(ctx context.Context) error {
			if got := v.Get(ctx); got != want {
				t.Errorf("%v, want %v", got, want)
			}
			return nil
		}))
	}
}
