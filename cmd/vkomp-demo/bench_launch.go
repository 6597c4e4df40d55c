package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
)

// oneInvocation is the range of a launch of one invocation.
var oneInvocation = vkomp.Range{X: 1}

// launches measures tasks of which each is a launch, beside plain Vulkan's launches: their creation
// beside the recording of commands, and all of it beside record, submit and wait.
func (b *bench) launches(name string, create func() error, launches []rawvulkan.Launch) error {
	batch, err := b.raw.NewBatch(launches)
	if err != nil {
		return err
	}
	samples, err := b.alternate(batched(batch), b.deferred(create))
	if err == nil {
		b.figure(name+".create", "task", workgroups(launches), benchCreate, samples[1], samples[0])
		b.figure(name+".total", "task", workgroups(launches), benchTotal, samples[1], samples[0])
	}
	return err
}

// replays measures the tasks as those of a taskgraph that is replayed, beside plain Vulkan's command
// buffer that is submitted again.
func (b *bench) replays(name string, create func() error, launches []rawvulkan.Launch) error {
	batch, err := b.raw.NewBatch(launches)
	if err == nil {
		err = batch.Prepare()
	}
	if err != nil {
		return err
	}
	var records vkomp.TaskgraphRecords
	ctx := b.ctx
	defer func() { b.ctx = ctx }()
	samples, err := b.alternate(timed(batch.Replay), b.deferred(func() error {
		return b.rt.Taskgraph(ctx, vkomp.Taskgraph{Records: &records, NoGroup: true}, func(within context.Context) error {
			b.ctx = within
			defer func() { b.ctx = ctx }()
			return create()
		})
	}))
	if err == nil {
		b.figure("replay."+name, "task", workgroups(launches), benchTotal, samples[1], samples[0])
	}
	return err
}

// workgroups returns the number of workgroups of all launches. Each stands for a task.
func workgroups(launches []rawvulkan.Launch) (n int) {
	for _, l := range launches {
		n += l.Groups
	}
	return n
}

// checkRaw compares the first words of a buffer of plain Vulkan's.
func (b *bench) checkRaw(what string, buffer rawvulkan.Buffer, want ...uint32) error {
	bytes := make([]byte, 4*len(want))
	if err := b.raw.CopyOut(bytes, buffer, 1); err != nil {
		return err
	}
	got := make([]uint32, len(want))
	if _, err := binary.Decode(bytes, binary.NativeEndian, got); err != nil {
		return err
	}
	return benchCheckAll("raw Vulkan's "+what, got, want)
}

func benchSync(b *bench) error {
	n := max(b.tasks/10, 1)
	x := make([]uint32, 64)
	buffer, err := b.rawWords(len(x))
	if err != nil {
		return err
	}
	empty, inc := b.kernels.empty, b.kernels.inc
	increment := inc.launch([]uint32{0}, buffer.All())
	ending, cancel := context.WithCancel(b.ctx)
	defer cancel()
	kinds := []struct {
		name   string
		raw    rawvulkan.Launch
		target func() error
	}{
		{"sync.empty", empty.launch(nil), func() error {
			return b.rt.Target(b.ctx, vkomp.Target{Kernel: empty.vkomp, Range: oneInvocation})
		}},
		{"sync.inc", increment, func() error {
			return b.rt.Target(b.ctx, vkomp.Target{Kernel: inc.vkomp, Range: oneInvocation,
				Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.Value(uint32(0))}})
		}},
		{"sync.inc_cancellable", increment, func() error {
			return b.rt.Target(ending, vkomp.Target{Kernel: inc.vkomp, Range: oneInvocation,
				Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.Value(uint32(0))}})
		}},
		{"sync.depend", increment, func() error {
			return b.rt.Target(b.ctx, vkomp.Target{Kernel: inc.vkomp, Range: oneInvocation,
				Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.Value(uint32(0))}, Depend: []vkomp.Depend{vkomp.InOut(x)}})
		}},
		{"nowait_then_taskwait", increment, func() error {
			if err := b.increment(b.ctx, x); err != nil {
				return err
			}
			return b.rt.Taskwait(b.ctx)
		}},
	}
	err = b.present([]vkomp.Arg{vkomp.To(x)}, []vkomp.Arg{vkomp.From(x)}, func() error {
		for _, k := range kinds {
			batch, err := b.raw.NewBatch(slices.Repeat([]rawvulkan.Launch{k.raw}, n))
			if err != nil {
				return err
			}
			samples, err := b.alternate(timed(batch.RunEach), timed(func() error {
				for range n {
					if err := k.target(); err != nil {
						return err
					}
				}
				return nil
			}))
			if err != nil {
				return err
			}
			b.figure(k.name, "target", n, benchTotal, samples[1], samples[0])
		}
		return nil
	})
	if err != nil {
		return err
	}
	want := uint32((len(kinds) - 1) * n * b.runs())
	if err := benchCheck("x[0]", x[0], want); err != nil {
		return err
	}
	return b.checkRaw("x", buffer, want)
}

func benchChain(b *bench) error { return b.chainBy(b.launches) }

func benchReplay(b *bench) error {
	if err := b.chainBy(b.replays); err != nil {
		return err
	}
	if err := b.stencilBy(b.replays, false); err != nil {
		return err
	}
	return b.stencilBy(b.replays, true)
}

// measures is the method launches or replays.
type measures func(name string, create func() error, launches []rawvulkan.Launch) error

func (b *bench) chainBy(measure measures) error {
	x := make([]uint32, 64)
	buffer, err := b.rawWords(len(x))
	if err != nil {
		return err
	}
	inc := b.kernels.inc
	err = b.present([]vkomp.Arg{vkomp.To(x)}, []vkomp.Arg{vkomp.From(x)}, func() error {
		return measure("chain", func() error {
			return b.chain(x)
		}, slices.Repeat([]rawvulkan.Launch{withBarrier(inc.launch([]uint32{0}, buffer.All()))}, b.tasks))
	})
	if err != nil {
		return err
	}
	want := uint32(b.tasks * b.runs())
	if err := benchCheck("x[0]", x[0], want); err != nil {
		return err
	}
	return b.checkRaw("x", buffer, want)
}

// chain creates the tasks of a chain on x, which is present.
func (b *bench) chain(x []uint32) error {
	for range b.tasks {
		if err := b.increment(b.ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// increment creates a deferred task that increments the first word of x, which is present, after others on x.
func (b *bench) increment(ctx context.Context, x []uint32) error {
	return b.rt.Target(ctx, vkomp.Target{Kernel: b.kernels.inc.vkomp, Range: oneInvocation, NoWait: true,
		Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.Value(uint32(0))}, Depend: []vkomp.Depend{vkomp.InOut(x)}})
}

func benchChain2(b *bench) error {
	x, y := slices.Repeat([]float32{1}, 64), make([]float32, 64)
	bx, err := b.rawWords(len(x))
	if err != nil {
		return err
	}
	by, err := b.rawWords(len(y))
	if err != nil {
		return err
	}
	if err := b.raw.Fill(bx, math.Float32bits(1)); err != nil {
		return err
	}
	saxpy := b.kernels.saxpy
	launch := withBarrier(saxpy.launch([]uint32{64, math.Float32bits(1), 0, 0}, bx.All(), by.All()))
	err = b.present([]vkomp.Arg{vkomp.To(x), vkomp.To(y)}, []vkomp.Arg{vkomp.Release(x), vkomp.From(y)}, func() error {
		return b.launches("chain2", func() error {
			for range b.tasks {
				err := b.rt.Target(b.ctx, vkomp.Target{Kernel: saxpy.vkomp, Range: vkomp.Range{X: 64}, NoWait: true,
					Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(64)), vkomp.Value(float32(1))},
					Depend: []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}})
				if err != nil {
					return err
				}
			}
			return nil
		}, slices.Repeat([]rawvulkan.Launch{launch}, b.tasks))
	})
	if err != nil {
		return err
	}
	// Past 2²⁴ a sum of ones in float32 stays where it is.
	want := float32(min(b.tasks*b.runs(), 1<<24))
	if err := benchCheck("y[63]", y[63], want); err != nil {
		return err
	}
	return b.checkRaw("y", by, math.Float32bits(want))
}

// benchIndependent has an element of its own for each task.
func benchIndependent(b *bench) error {
	y := make([]uint32, b.tasks)
	buffer, err := b.rawWords(len(y))
	if err != nil {
		return err
	}
	inc := b.kernels.inc
	var launches []rawvulkan.Launch
	for i := range y {
		launches = append(launches, inc.launch([]uint32{uint32(i)}, buffer.All()))
	}
	err = b.present([]vkomp.Arg{vkomp.To(y)}, []vkomp.Arg{vkomp.From(y)}, func() error {
		return b.launches("independent", func() error {
			for i := range y {
				err := b.rt.Target(b.ctx, vkomp.Target{Kernel: inc.vkomp, Range: oneInvocation, NoWait: true,
					Args: []vkomp.Arg{vkomp.ToFrom(y), vkomp.Value(uint32(i))}})
				if err != nil {
					return err
				}
			}
			return nil
		}, launches)
	})
	if err != nil {
		return err
	}
	want := slices.Repeat([]uint32{uint32(b.runs())}, len(y))
	return errors.Join(benchCheckAll("y", y, want), b.checkRaw("y", buffer, want...))
}

// benchFan has a writer of x, readers that add it to elements of their own, and another writer.
func benchFan(b *bench) error {
	x, y := make([]uint32, 64), make([]uint32, b.tasks)
	bx, err := b.rawWords(len(x))
	if err != nil {
		return err
	}
	by, err := b.rawWords(len(y))
	if err != nil {
		return err
	}
	inc, add := b.kernels.inc, b.kernels.add
	launches := []rawvulkan.Launch{withBarrier(inc.launch([]uint32{0}, bx.All()))}
	for i := range y {
		launches = append(launches, add.launch([]uint32{uint32(i)}, bx.All(), by.All()))
	}
	launches[len(y)].Barrier = true
	launches = append(launches, inc.launch([]uint32{0}, bx.All()))
	err = b.present([]vkomp.Arg{vkomp.To(x), vkomp.To(y)}, []vkomp.Arg{vkomp.From(x), vkomp.From(y)}, func() error {
		return b.launches("fan", func() error {
			if err := b.increment(b.ctx, x); err != nil {
				return err
			}
			for i := range y {
				err := b.rt.Target(b.ctx, vkomp.Target{Kernel: add.vkomp, Range: oneInvocation, NoWait: true,
					Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(i))}, Depend: []vkomp.Depend{vkomp.In(x)}})
				if err != nil {
					return err
				}
			}
			return b.increment(b.ctx, x)
		}, launches)
	})
	if err != nil {
		return err
	}
	// Readers see 1 in the first sample, 3 in the second, 5 …
	runs := uint32(b.runs())
	want := slices.Repeat([]uint32{runs * runs}, len(y))
	return errors.Join(benchCheckAll("y", y, want), b.checkRaw("y", by, want...))
}

func benchStencil(b *bench) error { return b.stencilBy(b.launches, false) }

// stencilBy has points of 64 elements. A sample has the largest even number of steps with which there are no more
// than b.tasks tasks, but at least two. whole says that plain Vulkan has one launch for all points of a step, as if
// the program had merged them.
func (b *bench) stencilBy(measure measures, whole bool) error {
	const points, elements = 64, 64
	steps := max(b.tasks/(2*points), 1) * 2
	var rows [2][]uint32
	var buffers [2]rawvulkan.Buffer
	for k := range rows {
		rows[k] = make([]uint32, points*elements)
		var err error
		if buffers[k], err = b.rawWords(len(rows[k])); err != nil {
			return err
		}
	}
	// What a neighbour has is not what the point has itself.
	for i := range rows[0] {
		rows[0][i] = uint32(i)
	}
	want := slices.Clone(rows[0])
	first, err := binary.Append(nil, binary.NativeEndian, want)
	if err == nil {
		err = b.raw.CopyIn(buffers[0], first, 1)
	}
	if err != nil {
		return err
	}
	part := func(step, p int) []uint32 {
		p = (p + points) % points
		return rows[step%2][p*elements : (p+1)*elements]
	}
	raw := func(step, p int) rawvulkan.Range {
		return rawvulkan.Range{Buffer: buffers[step%2], Offset: (p + points) % points * elements * 4, Size: elements * 4}
	}
	stencil := b.kernels.stencil
	var launches []rawvulkan.Launch
	name := "stencil"
	if whole {
		name = "stencil.whole_steps"
	}
	for step := 1; step <= steps; step++ {
		if whole {
			l := withBarrier(b.kernels.stencilStep.launch(nil, buffers[(step-1)%2].All(), buffers[step%2].All()))
			l.Groups = points
			launches = append(launches, l)
			continue
		}
		for p := range points {
			launches = append(launches, stencil.launch(nil, raw(step-1, p-1), raw(step-1, p), raw(step-1, p+1), raw(step, p)))
		}
		launches[len(launches)-1].Barrier = true
	}
	enter := []vkomp.Arg{vkomp.To(rows[0]), vkomp.To(rows[1])}
	err = b.present(enter, []vkomp.Arg{vkomp.From(rows[0]), vkomp.From(rows[1])}, func() error {
		return measure(name, func() error {
			for step := 1; step <= steps; step++ {
				for p := range points {
					left, here, right, next := part(step-1, p-1), part(step-1, p), part(step-1, p+1), part(step, p)
					err := b.rt.Target(b.ctx, vkomp.Target{Kernel: stencil.vkomp, Range: vkomp.Range{X: elements}, NoWait: true,
						Args:   []vkomp.Arg{vkomp.To(left), vkomp.To(here), vkomp.To(right), vkomp.From(next)},
						Depend: []vkomp.Depend{vkomp.In(left), vkomp.In(here), vkomp.In(right), vkomp.Out(next)}})
					if err != nil {
						return err
					}
				}
			}
			return nil
		}, launches)
	})
	if err != nil {
		return err
	}
	before, n := make([]uint32, len(want)), len(want)
	for range steps * b.runs() {
		before, want = want, before
		for i := range want {
			want[i] = (before[(i+n-elements)%n]+before[i]+before[(i+elements)%n])*747796405 + 1
		}
	}
	return errors.Join(benchCheckAll("row 0", rows[0], want), b.checkRaw("row 0", buffers[0], want...))
}
