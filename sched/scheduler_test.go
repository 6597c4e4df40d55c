package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
)

// filled returns n words of value v.
func filled(n int, v uint32) []uint32 {
	s := array32(n)
	for i := range s {
		s[i] = v
	}
	return s
}

// arena is the memory that array32 takes its arrays from. Each array begins on a page of its
// own, since a device that imports host storage imports whole pages, and two arrays in one page
// would be shared with it together.
var arena struct {
	sync.Mutex
	free []uint32
}

func array32(n int) []uint32 {
	const page = 4096 / 4
	pages := (n + page - 1) / page * page
	arena.Lock()
	defer arena.Unlock()
	if len(arena.free) < pages {
		arena.free = make([]uint32, max(1<<18, pages+page))
		start := uintptr(unsafe.Pointer(&arena.free[0]))
		arena.free = arena.free[(-start&4095)/4:]
		arena.free = arena.free[:len(arena.free)/page*page]
	}
	s := arena.free[:n:n]
	arena.free = arena.free[pages:]
	return s
}

func TestChainPassesResultsOn(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, one := filled(8, 1), filled(8, 1)
		want := uint32(1)
		for i := range uint32(40) {
			r.mix(fmt.Sprint("link ", i), x, one, one, i)
			want = 3*want + 2 + i
		}
		r.taskwait()
		r.expect("x", x, filled(8, want)...)
	})
}

func TestChainInADataRegionCopiesOnce(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, one := filled(8, 1), filled(8, 1)
		r.run(launch{label: "enter", enter: []arg{to(x), to(one)}, out: [][]uint32{x, one}})
		want := uint32(1)
		for i := range uint32(40) {
			r.run(launch{label: fmt.Sprint("link ", i), kernel: "mix", args: []arg{tofrom(x), to(one), to(one)}, constant: i,
				in: [][]uint32{one}, out: [][]uint32{x}, included: i%7 == 6})
			want = 3*want + 2 + i
		}
		r.run(launch{label: "exit", exit: []arg{from(x), {s: one, kind: memory.MapRelease}}, out: [][]uint32{x, one}})
		r.taskwait()
		r.expect("x", x, filled(8, want)...)
		if s := r.s.Stats(); s.BytesToDevice != 64 || s.BytesFromDevice != 32 || s.Dispatches != 40 {
			t.Errorf("%d bytes to the device, %d from it, %d dispatches", s.BytesToDevice, s.BytesFromDevice, s.Dispatches)
		}
	})
}

func TestFanOutAndDiamond(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		source, zero := filled(8, 1), filled(8, 0)
		var leaves [][]uint32
		r.mix("source", source, zero, zero, 4)
		for i := range 12 {
			leaves = append(leaves, filled(8, uint32(i)))
			r.mix(fmt.Sprint("leaf ", i), leaves[i], source, zero, 0)
		}
		join := filled(8, 0)
		for i := 0; i+1 < len(leaves); i += 2 {
			r.mix(fmt.Sprint("join ", i), join, leaves[i], leaves[i+1], 0)
		}
		r.taskwait()
		want := uint32(0)
		for i := 0; i+1 < len(leaves); i += 2 {
			want = 3*want + uint32(3*i+7) + uint32(3*(i+1)+7)
		}
		r.expect("join", join, filled(8, want)...)
	})
}

// stencil makes the tasks of a stencil, steps times over a row of width cells, and returns the
// last row with the result that a sequential loop computes. The rows are in two buffers of a
// data region by turns: cell i of a step reads cells i-1, i and i+1 of the other buffer.
func stencil(r *rig, width, steps int) (row, want [][]uint32) {
	const n = 4
	var rows, model [2][][]uint32
	for b := range rows {
		for i := range width + 2 {
			rows[b] = append(rows[b], filled(n, uint32(i)))
			model[b] = append(model[b], filled(n, uint32(i)))
		}
	}
	var enter, exit []arg
	var all [][]uint32
	for _, row := range rows {
		for _, cell := range row {
			enter = append(enter, to(cell))
			exit = append(exit, from(cell))
			all = append(all, cell)
		}
	}
	r.run(launch{label: "enter", enter: enter, out: all, included: true})
	r.d.hold()
	for s := range steps {
		a, b := s%2, 1-s%2
		for i := 1; i <= width; i++ {
			r.run(launch{
				label: fmt.Sprintf("%d@%d", i, s), kernel: "stencil",
				args: []arg{alloc(rows[b][i]), alloc(rows[a][i-1]), alloc(rows[a][i]), alloc(rows[a][i+1])},
				in:   [][]uint32{rows[a][i-1], rows[a][i], rows[a][i+1]}, out: [][]uint32{rows[b][i]},
			})
			for k := range n {
				model[b][i][k] = model[a][i-1][k] + 2*model[a][i][k] + model[a][i+1][k] + 1
			}
		}
	}
	r.d.release()
	r.run(launch{label: "exit", exit: exit, out: all})
	r.taskwait()
	return rows[steps%2], model[steps%2]
}

func TestStencilInADataRegion(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		row, want := stencil(r, 12, 9)
		for i := range row {
			r.expect(fmt.Sprint("cell ", i), row[i], want[i]...)
		}
	})
}

// A stencil of 2000 tasks goes to the device in few submissions, with one barrier for each
// step: tasks of one step depend on nothing among themselves and share a level.
func TestStencilNeedsABarrierAStep(t *testing.T) {
	const width, steps = 50, 40
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	row, want := stencil(r, width, steps)
	for i := range row {
		r.expect(fmt.Sprint("cell ", i), row[i], want[i]...)
	}
	// The device was held while the tasks were made, so most of them are in one batch.
	largest := slices.Max(r.d.barriers)
	if largest < steps-1 || largest > steps {
		t.Errorf("%d barriers in the largest submission, for %d steps", largest, steps)
	}
	if n := r.d.submits; n > 10 {
		t.Errorf("%d submissions for %d tasks", n, width*steps)
	}
	total := 0
	for _, n := range r.d.barriers {
		total += n
	}
	if s := r.s.Stats(); s.Submissions != uint64(r.d.submits) || s.Barriers != uint64(total) || s.Dispatches != width*steps {
		t.Errorf("stats say %d submissions, %d barriers, %d dispatches; the device saw %d and %d", s.Submissions, s.Barriers, s.Dispatches, r.d.submits, total)
	}
}

func TestDisjointTasksGetNoBarrierBetweenThem(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.d.hold()
	zero := filled(8, 0)
	r.run(launch{label: "enter", enter: []arg{to(zero)}})
	for i := range 50 {
		r.mix(fmt.Sprint(i), filled(8, uint32(i)), zero, zero, 0)
	}
	r.d.release()
	r.taskwait()
	for i, n := range r.d.barriers {
		// One barrier is for the host, which reads the results at the end.
		if n > 1 {
			t.Errorf("%d barriers in submission %d", n, i)
		}
	}
	r.run(launch{label: "exit", exit: []arg{{s: zero, kind: memory.MapRelease}}})
}

func TestTasksOfOneBlockShareIt(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		// The cells are parts of one block, and begin where a binding may not: the alignment is
		// 64 bytes and a cell has 20.
		const cell = 5
		x := make([]uint32, 6*cell)
		at := func(i int) []uint32 { return x[i*cell : (i+1)*cell] }
		var all [][]uint32
		for i := range 6 {
			all = append(all, at(i))
		}
		r.run(launch{label: "enter", enter: []arg{to(x)}, out: all})
		for round := range uint32(5) {
			for i := range 6 {
				r.run(launch{label: fmt.Sprint(round, " ", i), kernel: "mix", args: []arg{alloc(at(i)), alloc(at(i)), alloc(at(i))},
					constant: uint32(i) + round, out: [][]uint32{at(i)}})
			}
			if round == 2 {
				r.taskwait()
			}
		}
		r.run(launch{label: "exit", exit: []arg{from(x)}, out: all})
		r.taskwait()
		for i := range 6 {
			v := uint32(0)
			for round := range uint32(5) {
				v = 5*v + uint32(i) + round
			}
			r.expect(fmt.Sprint("cell ", i), at(i), filled(cell, v)...)
		}
	})
}

// A part of a block was written by a task that is complete, and another part by one that is in
// flight. A barrier that follows the second alone would not make the first write visible to the
// task that reads it.
func TestCompleteWriteIsMadeVisibleWhileAnotherIsInFlight(t *testing.T) {
	for seed := range uint64(4) {
		r := newRig(t, memoryModes[0], seed)
		x := filled(32, 1)
		a, b := x[:16], x[16:]
		zero := filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
		r.d.hold()
		r.run(launch{label: "write a", kernel: "mix", args: []arg{alloc(a), to(zero), to(zero)}, constant: 1, out: [][]uint32{a}})
		first := r.d.submitted
		done := make(chan struct{})
		r.host("after a", [][]uint32{a}, nil, func() { close(done) })
		r.run(launch{label: "write b", kernel: "mix", args: []arg{alloc(b), to(zero), to(zero)}, constant: 1, out: [][]uint32{b}})
		if r.d.submitted == first {
			t.Fatal("the writes are not in batches of their own")
		}
		r.d.advance(first)
		<-done
		out := filled(16, 0)
		r.run(launch{label: "read a", kernel: "mix", args: []arg{tofrom(out), alloc(a), to(zero)}, in: [][]uint32{a}, out: [][]uint32{out}})
		r.d.release()
		r.taskwait()
		r.expect("out", out, filled(16, 4)...)
		r.run(launch{label: "exit", exit: []arg{from(x), from(zero)}, included: true})
		r.close()
	}
}

func TestEmptyRangeKeepsMapsAndDependences(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(8, 1), filled(8, 0)
		r.d.hold()
		r.mix("before", x, zero, zero, 1)
		r.run(launch{label: "empty", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, empty: true, out: [][]uint32{x}})
		r.mix("after", x, zero, zero, 1)
		r.d.release()
		r.taskwait()
		r.expect("x", x, filled(8, 13)...)
		if n := r.s.Stats().Dispatches; n != 2 {
			t.Errorf("%d dispatches", n)
		}
	})
}

func TestUnusedBindingIsMappedAndNotBound(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		in, middle, out := filled(8, 4), filled(8, 9), filled(8, 0)
		r.run(launch{label: "read", kernel: "read", args: []arg{to(in), tofrom(middle), from(out)}, included: true})
		r.expect("out", out, filled(8, 5)...)
		r.expect("middle", middle, filled(8, 9)...)
	})
}

func TestIncludedTaskIsCompleteWhenRunReturns(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(8, 0), filled(8, 0)
		for i := range uint32(10) {
			r.mix("deferred", x, zero, zero, 1)
			r.run(launch{label: "included", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}, included: true})
			want := uint32(0)
			for range 2 * (i + 1) {
				want = 3*want + 1
			}
			r.expect("x", x, filled(8, want)...)
		}
	})
}

func TestContextThatEndsLeavesTheTaskRunning(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, zero := filled(8, 1), filled(8, 0)
	r.d.hold()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no more time")
	cancel(why)
	g := r.region(launch{label: "included", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, included: true})
	if err := r.s.Run(ctx, g); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	r.d.release()
	r.taskwait()
	r.expect("x", x, filled(8, 3)...)
}

func TestHostTasksTakeTurnsWithTheDevice(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(8, 1), filled(8, 0)
		want := uint32(1)
		for range 10 {
			r.mix("device", x, zero, zero, 2)
			r.host("host", nil, [][]uint32{x}, func() {
				for i := range x {
					x[i] += 5
				}
			})
			want = 3*want + 2 + 5
		}
		r.taskwait()
		r.expect("x", x, filled(8, want)...)
	})
}

func TestPartialOverlapOfUnorderedMapsIsRefused(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(32, 1), filled(32, 0)
		r.run(launch{label: "enter", enter: []arg{to(x[:16])}, included: true})
		err := r.s.Run(context.Background(), r.region(launch{label: "too much", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, included: true}))
		if !errors.Is(err, memory.ErrPartialOverlap) || !strings.Contains(err.Error(), `"too much"`) {
			t.Errorf("got %v", err)
		}
		r.run(launch{label: "exit", exit: []arg{from(x[:16])}, included: true})
	})
}

func TestPipelinesAreMadeOnce(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	before := len(r.d.pipelines)
	r.kernels["mix"] = loadKernel(t, "mix")
	x, zero := filled(8, 1), filled(8, 0)
	for range 5 {
		r.mix("mix", x, zero, zero, 0)
	}
	r.taskwait()
	if n := len(r.d.pipelines) - before; n != 1 {
		t.Errorf("%d pipelines", n)
	}
}

func TestLongRangeIsFolded(t *testing.T) {
	d := newFakeDevice(t, unifiedMemory, 1)
	d.props.Limits.MaxComputeWorkGroupCount = [3]uint32{8, 8, 8}
	r := newRigOn(t, d, memoryModes[0])
	defer r.close()
	// 100 invocations in workgroups of four are 25 workgroups. With at most eight along x, the
	// range is folded into three layers of eight and one of one.
	x, zero := filled(100, 1), filled(100, 0)
	r.mix("long", x, zero, zero, 4)
	r.mix("again", x, zero, zero, 4)
	r.taskwait()
	r.expect("x", x, filled(100, 25)...)
	tooLong := filled(1000, 0)
	err := r.s.Run(context.Background(), r.region(launch{label: "too long", kernel: "set", args: []arg{from(tooLong)}}))
	if !errors.Is(err, kernel.ErrInvalidLaunch) || !strings.Contains(err.Error(), "250 workgroups along x") {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentProgramsOnOneDevice(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 3)
			defer r.close()
			const programs = 6
			results := make(chan error, programs)
			for p := range programs {
				go func() {
					results <- func() error {
						scope := r.graph.NewScope()
						x, zero := filled(64, uint32(p)), filled(64, 0)
						want := uint32(p)
						for i := range uint32(30) {
							g := r.region(launch{label: fmt.Sprint(p, " ", i), kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)},
								constant: i, out: [][]uint32{x}, included: i%5 == 4})
							g.Scope = scope
							if err := r.s.Run(context.Background(), g); err != nil {
								return err
							}
							want = 3*want + i
						}
						if err := scope.Wait(context.Background(), nil); err != nil {
							return err
						}
						if !slices.Equal(x, filled(64, want)) {
							return fmt.Errorf("program %d: x is %v, want all %d", p, x, want)
						}
						return nil
					}()
				}()
			}
			for range programs {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestNewRefusesTheHostsDomain(t *testing.T) {
	if _, err := New(newFakeDevice(t, unifiedMemory, 1), Options{}); err == nil {
		t.Error("a device in the host's domain")
	}
}
