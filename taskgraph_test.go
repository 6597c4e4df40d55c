package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// graphed is a taskgraph construct whose block counts how often it is executed.
type graphed struct {
	vkomp.Taskgraph
	rt       *vkomp.Runtime
	executed int
	block    func(ctx context.Context) error
}

func newGraphed(rt *vkomp.Runtime, block func(ctx context.Context) error) *graphed {
	return &graphed{Taskgraph: vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}, rt: rt, block: block}
}

// encounter encounters the construct after change, and fails the test unless the block is executed
// or not, as it should be.
func (g *graphed) encounter(ctx context.Context, change func(g *vkomp.Taskgraph)) error {
	with := g.Taskgraph
	if change != nil {
		change(&with)
	}
	return g.rt.Taskgraph(ctx, with, func(ctx context.Context) error {
		g.executed++
		return g.block(ctx)
	})
}

// expect encounters the construct and fails the test on an error, or unless the block is executed,
// or not, as said.
func (g *graphed) expect(t *testing.T, what string, executes bool, change func(g *vkomp.Taskgraph)) {
	t.Helper()
	before := g.executed
	if err := g.encounter(t.Context(), change); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := g.executed > before; got != executes {
		t.Errorf("%s: the block was executed: %v, want %v", what, got, executes)
	}
}

// Every kind of construct that is recorded does at a replay what it does when its block is executed.
func TestReplayDoesWhatTheBlockDoes(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		const n = 64
		k := newKernel(t, rt, shaders.Saxpy)
		x, y, z, total := constant(n, 1), constant(n, 0), constant(n, 0), make([]float32, 1)
		copied := make([]float32, n)
		p := alloc(t, d, 4*n)
		parts := vkomp.Rect{Elem: 4, Volume: []int{4, 8}, DstOffsets: []int{0, 8}, SrcOffsets: []int{0, 0}, DstDims: []int{4, 16}, SrcDims: []int{4, 16}}
		block := func(ctx context.Context) error {
			add := saxpyOn(t, k, 2, x, y)
			add.NoWait, add.Depend = true, []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}
			derived := saxpyOn(t, k, 1, y, z)
			derived.NoWait, derived.DependArgs = true, true
			return errors.Join(
				rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}, Depend: []vkomp.Depend{vkomp.Out(y)}, NoWait: true}),
				rt.Target(ctx, add),
				rt.Target(ctx, derived),
				rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y)}, Depend: []vkomp.Depend{vkomp.In(y)}, NoWait: true}),
				rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(y)}, Depend: []vkomp.Depend{vkomp.InOut(y)}, NoWait: true}),
				rt.TaskwaitNoWait(ctx, vkomp.In(y), vkomp.InOut(total)),
				rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(total)}, Body: func(context.Context) error {
					total[0] += y[n-1]
					return nil
				}}),
				d.MemsetAsync(ctx, p, 0, 4*n, vkomp.Out(copied)),
				rt.MemcpyAsync(ctx, p, vkomp.HostPtr(z), 4*n, vkomp.In(z), vkomp.InOut(copied)),
				rt.MemcpyRectAsync(ctx, p, vkomp.HostPtr(z), parts, vkomp.In(z), vkomp.InOut(copied)),
				rt.MemcpyAsync(ctx, vkomp.HostPtr(copied), p, 4*n, vkomp.InOut(copied)),
			)
		}
		g := newGraphed(rt, block)
		wantY, wantZ, wantTotal := float32(0), float32(0), float32(0)
		for round := range 5 {
			g.expect(t, fmt.Sprint("round ", round), round == 0, nil)
			wantY += 2
			wantZ += wantY
			wantTotal += wantY
			if !slices.Equal(y, constant(n, wantY)) || !slices.Equal(z, constant(n, wantZ)) || total[0] != wantTotal || !slices.Equal(copied, z) {
				t.Fatalf("round %d: y is %v, z %v, the total %v and the copy %v; want %v, %v, %v, and z", round, y, z, total, copied, wantY, wantZ, wantTotal)
			}
		}
		if s := rt.Stats(); s.Staging.Allocations != 0 {
			t.Errorf("%d allocations of staging left", s.Staging.Allocations)
		}
	})
}

// A graph that is kept has a task for each construct of a replay, even where one task could do what
// several of them do.
func TestKeptGraphShowsTheTasksOfAReplay(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.KeepGraph = true })
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := constant(64, 1), constant(64, 0)
	maps := []vkomp.Arg{vkomp.To(x), vkomp.To(y)}
	if err := rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: maps}); err != nil {
		t.Fatal(err)
	}
	labels := []string{"first", "second"}
	g := newGraphed(rt, func(ctx context.Context) (err error) {
		for _, label := range labels {
			add := saxpyOn(t, k, 2, x, y)
			add.Label, add.NoWait, add.Depend = label, true, []vkomp.Depend{vkomp.InOut(y)}
			err = errors.Join(err, rt.Target(ctx, add))
		}
		return err
	})
	const rounds = 4
	for round := range rounds {
		g.expect(t, fmt.Sprint("round ", round), round == 0, nil)
	}
	count := make(map[string]int)
	for _, task := range rt.Graph().Tasks {
		count[task.Label]++
	}
	for _, label := range labels {
		if count[label] != rounds {
			t.Errorf("%d tasks %q, want %d, among %v", count[label], label, rounds, count)
		}
	}
	if err := rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x), vkomp.Release(y)}}); err != nil {
		t.Fatal(err)
	}
}

// With NoGroup an encounter returns before its tasks are complete. They depend on siblings outside of
// the region, and those on them, at a replay as at the first encounter.
func TestReplayedTasksAreSiblingsOfThoseAround(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "4")
	ctx, value := t.Context(), []int{0}
	body := func(change func()) vkomp.Task {
		return vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(value)}, Body: func(context.Context) error { change(); return nil }}
	}
	g := newGraphed(rt, func(ctx context.Context) error {
		return errors.Join(
			rt.Task(ctx, body(func() { value[0] *= 3 })),
			rt.Task(ctx, body(func() { value[0]++ })),
		)
	})
	g.NoGroup = true
	want := 0
	for round := range 5 {
		gate := make(chan struct{})
		generate(t, rt, ctx, body(func() { <-gate; value[0] += 5 }))
		g.expect(t, fmt.Sprint("round ", round), round == 0, nil)
		generate(t, rt, ctx, body(func() { value[0] *= 2 }))
		if value[0] != want {
			t.Errorf("round %d: the region waited", round)
		}
		close(gate)
		must(t, rt.Taskwait(ctx))
		if want = ((want+5)*3 + 1) * 2; value[0] != want {
			t.Fatalf("round %d: %d, want %d", round, value[0], want)
		}
	}
}

// Without NoGroup an encounter waits for its tasks and their descendants, at a replay too, and for no
// others.
func TestReplayIsATaskgroup(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	ctx, gate := t.Context(), make(chan struct{})
	var ran atomic.Int32
	generate(t, rt, ctx, vkomp.Task{Label: "other", Body: func(context.Context) error { <-gate; return nil }})
	awaitState(rt, "other", vkomp.GraphStarted)
	g := newGraphed(rt, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran.Add(1); return nil }})
		}})
	})
	for round := range int32(4) {
		g.expect(t, fmt.Sprint("round ", round), round == 0, nil)
		if n := ran.Load(); n != round+1 {
			t.Errorf("round %d: %d tasks have run", round, n)
		}
	}
	close(gate)
	must(t, rt.Taskwait(ctx))
}

func TestEncounterReplaysTheRecordThatMatches(t *testing.T) {
	rt, other := openTasks(t), openTasks(t)
	var ran int
	of := rt
	g := newGraphed(rt, func(ctx context.Context) error {
		return of.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran++; return nil }})
	})
	id := func(n int) func(*vkomp.Taskgraph) { return func(g *vkomp.Taskgraph) { g.ID = n } }
	reset := func(g *vkomp.Taskgraph) { g.Reset = true }
	for _, c := range []struct {
		what     string
		executes bool
		change   func(*vkomp.Taskgraph)
	}{
		{"if is false, before a record", true, func(g *vkomp.Taskgraph) { g.If = vkomp.If(false) }},
		{"the first", true, nil},
		{"the second", false, nil},
		{"if is true", false, func(g *vkomp.Taskgraph) { g.If = vkomp.If(true) }},
		{"if is false, with a record", true, func(g *vkomp.Taskgraph) { g.If = vkomp.If(false) }},
		{"after if was false", false, nil},
		{"another ID", true, id(7)},
		{"another ID again", false, id(7)},
		{"no ID again", false, nil},
		{"another construct", true, func(g *vkomp.Taskgraph) { g.Records = new(vkomp.TaskgraphRecords) }},
		{"reset", true, reset},
		{"after reset", false, nil},
		{"reset of one ID", true, func(g *vkomp.Taskgraph) { g.ID, g.Reset = 7, true }},
		{"the other ID after that", false, nil},
		{"reset without a record", true, func(g *vkomp.Taskgraph) { g.ID, g.Reset = 8, true }},
		{"after that", false, id(8)},
		{"reset while if is false", true, func(g *vkomp.Taskgraph) { g.ID, g.Reset, g.If = 8, true, vkomp.If(false) }},
		{"after that, without a record", true, id(8)},
	} {
		before := ran
		g.expect(t, c.what, c.executes, c.change)
		if ran != before+1 {
			t.Errorf("%s: %d tasks have run", c.what, ran-before)
		}
	}
	g.rt, of = other, other
	g.expect(t, "another runtime", true, nil)
	g.expect(t, "another runtime again", false, nil)
	g.rt, of = rt, rt
	g.expect(t, "the first runtime", false, nil)
}

// The tasks of a final task are included: they are neither recorded nor replayed.
func TestFinalTaskExecutesTheBlock(t *testing.T) {
	rt := openTasks(t)
	ran := 0
	g := newGraphed(rt, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran++; return nil }})
	})
	inFinal := func() {
		t.Helper()
		generate(t, rt, t.Context(), vkomp.Task{If: vkomp.If(false), Final: true, Body: func(ctx context.Context) error {
			before := ran
			err := g.encounter(ctx, nil)
			if ran != before+1 {
				t.Error("the task was not included")
			}
			return err
		}})
	}
	inFinal()
	g.expect(t, "with a reset where there is no record", true, func(g *vkomp.Taskgraph) { g.If, g.Reset = vkomp.If(false), true })
	g.executed--
	g.expect(t, "after an encounter by a final task", true, nil)
	inFinal()
	if g.executed != 3 {
		t.Errorf("the block was executed %d times, want 3: a final task replays nothing", g.executed)
	}
	g.expect(t, "after another", false, nil)
}

func TestConstructsThatAreNotReplayable(t *testing.T) {
	rt := vktest.Open(t)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := constant(8, 1), constant(8, 0)
	p := alloc(t, d, 32)
	var event vkomp.Event
	ran := false
	body := func(context.Context) error { ran = true; return nil }
	for name, construct := range map[string]func(ctx context.Context) error{
		`target "saxpy": not replayable: it is undeferred`: func(ctx context.Context) error { return rt.Target(ctx, saxpyOn(t, k, 1, x, y)) },
		`target enter data "target enter data": not`: func(ctx context.Context) error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}})
		},
		`target exit data "leave": not`: func(ctx context.Context) error {
			return rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}, Label: "leave"})
		},
		`target update`: func(ctx context.Context) error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}})
		},
		`task "task": not replayable: it is undeferred`: func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Body: body}) },
		`task "merged": not replayable: it is undeferred`: func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: true, Body: body, Label: "merged"})
		},
		`it is detachable`: func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{Detach: &event, Body: body}) },
		`it is transparent`: func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Transparent: vkomp.Export, Body: body})
		},
		`memcpy: not replayable: it is undeferred`: func(ctx context.Context) error { return rt.Memcpy(ctx, p, vkomp.HostPtr(x), 32) },
		`memset: not replayable: it is undeferred`: func(ctx context.Context) error { return d.Memset(ctx, p, 1, 32) },
		`memcpy rect: not`: func(ctx context.Context) error {
			return rt.MemcpyRect(ctx, p, vkomp.HostPtr(x), vkomp.Rect{Elem: 4, Volume: []int{1}, DstOffsets: []int{0}, SrcOffsets: []int{0}, DstDims: []int{8}, SrcDims: []int{8}})
		},
		`taskwait: not replayable: it waits`:  func(ctx context.Context) error { return rt.Taskwait(ctx) },
		`taskwait: not replayable: it waits `: func(ctx context.Context) error { return rt.Taskwait(ctx, vkomp.In(x)) },
		`taskgroup: not`:                      func(ctx context.Context) error { return rt.Taskgroup(ctx, body) },
		`target data "data": not`: func(ctx context.Context) error {
			return rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}, NoWait: true, Label: "data"}, body)
		},
		`interop: not`: func(ctx context.Context) error {
			return rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: new(interop.Object), Types: interop.TypeTarget}}})
		},
		`taskgraph "inner": not replayable: it waits`: func(ctx context.Context) error {
			return rt.Taskgraph(ctx, vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Label: "inner"}, body)
		},
		`taskgraph "inner": not replayable: it has parameters`: func(ctx context.Context) error {
			return rt.Taskgraph(ctx, vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Label: "inner", NoGroup: true, Params: []vkomp.Param{new(vkomp.ParamVar[int]).Bind(1)}}, body)
		},
	} {
		name = strings.TrimSpace(name)
		swallows := false
		g := newGraphed(rt, func(ctx context.Context) error {
			err := construct(ctx)
			refused(t, name, err, vkomp.ErrNotReplayable, name)
			if swallows {
				return nil
			}
			return err
		})
		refused(t, "the region", g.encounter(ctx, nil), vkomp.ErrNotReplayable, name)
		swallows = true
		g.expect(t, name+": after an error", true, nil)
		g.expect(t, name+": after the block has made nothing of it", true, nil)
		if ran || y[0] != 0 || d.IsPresent(vkomp.HostPtr(x)) {
			t.Fatalf("%s was executed", name)
		}
	}
}

// A construct whose replayable clause is false is executed with the block, and is in no record, even if
// it could not be recorded.
func TestReplayableClauseKeepsConstructsOutOfTheRecord(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		x, y, z := constant(8, 1), constant(8, 0), constant(8, 0)
		var own, inner, merged, kept atomic.Int32
		count := func(n *atomic.Int32) func(context.Context) error {
			return func(context.Context) error { n.Add(1); return nil }
		}
		never := vkomp.If(false)
		g := newGraphed(rt, func(ctx context.Context) error {
			region := saxpyOn(t, k, 1, x, y)
			region.Replayable = never
			always := saxpyOn(t, k, 1, x, z)
			always.Replayable, always.NoWait = vkomp.If(true), true
			return errors.Join(
				rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, Replayable: never}),
				rt.Target(ctx, region),
				rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, Replayable: never}),
				rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x)}, Replayable: never, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(x)}}),
				rt.Task(ctx, vkomp.Task{Replayable: never, Body: func(ctx context.Context) error {
					own.Add(1)
					// The body's constructs are not the block's.
					return errors.Join(rt.Task(ctx, vkomp.Task{Body: count(&inner)}), rt.Taskwait(ctx))
				}}),
				rt.Task(ctx, vkomp.Task{Replayable: never, If: vkomp.If(false), Mergeable: true, Body: func(ctx context.Context) error {
					return rt.Task(ctx, vkomp.Task{Body: count(&merged)})
				}}),
				rt.Task(ctx, vkomp.Task{Body: count(&kept)}),
				rt.Target(ctx, always),
			)
		})
		for round := range 3 {
			g.expect(t, fmt.Sprint("round ", round), round == 0, nil)
		}
		if y[0] != 1 || own.Load() != 1 || inner.Load() != 1 || merged.Load() != 1 {
			t.Errorf("constructs that are not replayable ran %v, %d, %d, %d times, want 1", y[0], own.Load(), inner.Load(), merged.Load())
		}
		if kept.Load() != 3 || z[0] != 3 {
			t.Errorf("constructs that are replayable ran %d and %v times, want 3", kept.Load(), z[0])
		}
	})
}

// A record has what the clauses were when it was made; mapped slices have what they contain when the
// tasks run.
func TestRecordHasTheClausesAsTheyWere(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		x, y, z := constant(8, 1), constant(8, 0), constant(8, 0)
		factor, to := float32(2), y
		var item vkomp.Depobj
		must(t, item.Init(vkomp.Out(y)))
		seen := []float32{}
		g := newGraphed(rt, func(ctx context.Context) error {
			local := factor
			region := saxpyOn(t, k, factor, x, to)
			region.NoWait, region.Depend = true, []vkomp.Depend{item.Depend()}
			return errors.Join(rt.Target(ctx, region), rt.Task(ctx, vkomp.Task{
				Depend: []vkomp.Depend{vkomp.In(y)}, Body: func(context.Context) error { seen = append(seen, y[0], local); return nil },
			}))
		})
		g.expect(t, "the first", true, nil)
		factor, to = 100, z
		must(t, item.Update(vkomp.DependIn))
		must(t, item.Destroy())
		must(t, rt.SetDefaultDevice(t.Context(), rt.InitialDevice()))
		x[0] = 10
		dispatches := rt.Stats().Dispatches
		g.expect(t, "the second", false, nil)
		if want := []float32{2, 2, 22, 2}; !slices.Equal(seen, want) || y[0] != 22 || z[0] != 0 {
			t.Errorf("seen %v, want %v; y is %v and z %v", seen, want, y[0], z[0])
		}
		if onDevice := rt.NumDevices() > 0; (rt.Stats().Dispatches > dispatches) != onDevice {
			t.Error("the replay was on another device")
		}
	})
}

// A block that does not succeed leaves no record, and its tasks run as those of a taskgroup do.
func TestBlockThatFailsLeavesNoRecord(t *testing.T) {
	rt := openTasks(t, "OMP_CANCELLATION", "true")
	var ran atomic.Int32
	how, mine := "error", errors.New("mine")
	g := newGraphed(rt, func(ctx context.Context) error {
		if err := rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran.Add(1); return nil }}); err != nil {
			return err
		}
		switch how {
		case "error":
			return mine
		case "panic":
			panic(mine)
		case "goexit":
			runtime.Goexit()
		case "cancel":
			_ = rt.CancelTaskgroup(ctx)
		}
		return nil
	})
	for i, noGroup := range []bool{false, true} {
		g.NoGroup, g.ID = noGroup, i
		how = "error"
		if err := g.encounter(t.Context(), nil); !errors.Is(err, mine) {
			t.Errorf("an error: %v", err)
		}
		how = "panic"
		var p *vkomp.PanicError
		if err := g.encounter(t.Context(), nil); !errors.As(err, &p) || !errors.Is(err, mine) {
			t.Errorf("a panic: %v", err)
		}
		how = "goexit"
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = g.encounter(context.Background(), nil)
			t.Error("Taskgraph returned")
		}()
		<-over
		executed := 3
		if !noGroup {
			how = "cancel"
			g.expect(t, "a cancelled region", true, nil)
			executed++
		}
		must(t, rt.Taskwait(t.Context()))
		how = ""
		g.expect(t, "a block that succeeds", true, nil)
		g.expect(t, "after it", false, nil)
		must(t, rt.Taskwait(t.Context()))
		if g.executed != executed+1 {
			t.Errorf("the block was executed %d times", g.executed)
		}
		g.executed = 0
	}
	if n := ran.Load(); n < 9 {
		t.Errorf("%d tasks have run", n)
	}
}

// A failure of a replayed task is that of the construct, and the record stays.
func TestFailureOfAReplayedTask(t *testing.T) {
	rt := openTasks(t)
	mine, dependents := errors.New("mine"), 0
	var fails bool
	cell := []int{0}
	g := newGraphed(rt, func(ctx context.Context) error {
		return errors.Join(
			rt.Task(ctx, vkomp.Task{Label: "first", Depend: []vkomp.Depend{vkomp.Out(cell)}, Body: func(context.Context) error {
				if fails {
					return mine
				}
				return nil
			}}),
			rt.Task(ctx, vkomp.Task{Label: "second", Depend: []vkomp.Depend{vkomp.In(cell)}, Body: func(context.Context) error { dependents++; return nil }}),
		)
	})
	g.expect(t, "the first", true, nil)
	fails = true
	var failed *vkomp.TaskError
	if err := g.encounter(t.Context(), nil); !errors.Is(err, mine) || !errors.As(err, &failed) || failed.Task != "first" {
		t.Errorf("a replay whose task fails: %v", err)
	}
	fails = false
	g.expect(t, "the next", false, nil)
	if dependents != 2 {
		t.Errorf("the dependent ran %d times, want 2", dependents)
	}
}

// What has become invalid since a record was made is an error of the replay as of the construct.
func TestReplayOfWhatHasBecomeInvalid(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		x, y := constant(8, 1), constant(8, 0)
		closed := newKernel(t, rt, shaders.Saxpy)
		used := newGraphed(rt, func(ctx context.Context) error {
			region := saxpyOn(t, closed, 1, x, y)
			region.NoWait, region.Label = true, "use"
			return rt.Target(ctx, region)
		})
		used.expect(t, "with the kernel", true, nil)
		must(t, closed.Close())
		refused(t, "a closed kernel", used.encounter(ctx, nil), vkomp.ErrClosed, `target "use"`, `kernel "saxpy"`)

		p, err := d.Alloc(ctx, 32)
		must(t, err)
		must(t, rt.Memcpy(ctx, p, vkomp.HostPtr(x), 32))
		k := newKernel(t, rt, shaders.Saxpy)
		byPointer := newGraphed(rt, func(ctx context.Context) error {
			region := saxpyOn(t, k, 1, x, y)
			region.NoWait, region.Args[0] = true, vkomp.HasDeviceAddr[float32](p, 8)
			return rt.Target(ctx, region)
		})
		byRoutine := newGraphed(rt, func(ctx context.Context) error { return rt.MemcpyAsync(ctx, vkomp.HostPtr(y), p, 32) })
		for range 2 {
			must(t, byPointer.encounter(ctx, nil))
			must(t, byRoutine.encounter(ctx, nil))
		}
		must(t, d.Free(ctx, p))
		next := alloc(t, d, 32) // perhaps at the same address
		refused(t, "a target with freed memory", byPointer.encounter(ctx, nil), vkomp.ErrInvalidPointer, `target "saxpy"`)
		refused(t, "a copy of freed memory", byRoutine.encounter(ctx, nil), vkomp.ErrInvalidPointer, "memcpy")
		if used.executed+byPointer.executed+byRoutine.executed != 3 {
			t.Error("a block was executed again")
		}
		must(t, rt.Memcpy(ctx, next, vkomp.HostPtr(x), 32))
	})
}

// Of successive constructs that only run kernels, the one that fails does so alone at a replay, although such constructs
// can have one task.
func TestReplayedConstructThatFailsFailsAlone(t *testing.T) {
	type value [64]float32
	mapper := vkomp.Mapper[value, value]{Encode: func(i, v *value) { *i = *v }, Decode: func(v, i *value) { *v = *i }}
	for name, c := range map[string]struct {
		arg   func(y []float32) vkomp.Arg
		enter func(y []float32) vkomp.Arg // how y is mapped at the replay
		want  error
	}{
		"storage that is an image": {vkomp.ToFrom[float32], func(y []float32) vkomp.Arg { return mapper.To((*value)(y)) }, vkomp.ErrPartialOverlap},
		"self, of other storage":   {func(y []float32) vkomp.Arg { return vkomp.ToFrom(y).Self() }, vkomp.To[float32], vkomp.ErrNotShared},
	} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t, vktest.Staging)
			ctx := t.Context()
			if rt.DefaultDevice(ctx).IsInitial() {
				t.Skip("needs a Vulkan device")
			}
			k := newKernel(t, rt, shaders.Saxpy)
			x, y, z := constant(64, 1), constant(64, 1), constant(64, 1)
			must(t, rt.Target(ctx, saxpyOn(t, k, 1, x, constant(64, 0)))) // compiles the kernel
			g := newGraphed(rt, func(ctx context.Context) error {
				fails, runs := saxpyOn(t, k, 1, x, y), saxpyOn(t, k, 1, x, z)
				fails.Args[1] = c.arg(y)
				fails.NoWait, fails.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
				runs.NoWait, runs.Depend = true, []vkomp.Depend{vkomp.InOut(z)}
				return errors.Join(rt.Target(ctx, fails), rt.Target(ctx, runs))
			})
			g.NoGroup = true
			must(t, g.encounter(ctx, nil))
			_ = rt.Taskwait(ctx) // whether storage that is not present can be shared is the device's affair
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), c.enter(y), vkomp.To(z)}}))
			for range 2 {
				g.expect(t, "replay", false, nil)
				if err := rt.Taskwait(ctx); !errors.Is(err, c.want) {
					t.Errorf("the replay: %v, want %v", err, c.want)
				}
			}
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(z)}}))
			if z[0] != 4 {
				t.Errorf("z is %v, want 4: the other construct has run at each encounter", z[0])
			}
			exit := vkomp.Delete(y)
			if c.want == vkomp.ErrPartialOverlap {
				exit = mapper.Delete((*value)(y))
			}
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x), exit, vkomp.Delete(z)}}))
		})
	}
}

// After a hard pause a record is replayed on the device that is opened then, where nothing is present
// but what the record itself maps.
func TestReplayAfterAHardPause(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx, k := t.Context(), newKernel(t, rt, shaders.Saxpy)
		x, y := constant(8, 1), constant(8, 0)
		add := saxpyOn(t, k, 1, x, y)
		add.NoWait = true
		maps := newGraphed(rt, func(ctx context.Context) error { return rt.Target(ctx, add) })
		needs := newGraphed(rt, func(ctx context.Context) error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y).Present()}, NoWait: true, Label: "needs"})
		})
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}}))
		for range 2 {
			must(t, maps.encounter(ctx, nil))
			must(t, needs.encounter(ctx, nil))
		}
		must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
		refused(t, "storage that is gone", needs.encounter(ctx, nil), vkomp.ErrNotPresent, "needs")
		maps.expect(t, "storage that is mapped", false, nil)
		if y[0] != 3 {
			t.Errorf("y is %v, want 3", y[0])
		}
	})
}

// Goroutines that replay one record at the same time generate their tasks one after the other.
func TestReplaysOfOneRecordDoNotMix(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "4")
	cell := []int{0}
	wrong := 0
	step := func(from, to int) vkomp.Task {
		return vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(cell)}, Body: func(context.Context) error {
			if cell[0] != from {
				wrong++
			}
			cell[0] = to
			return nil
		}}
	}
	g := newGraphed(rt, func(ctx context.Context) error {
		return errors.Join(rt.Task(ctx, step(0, 1)), rt.Task(ctx, step(1, 2)), rt.Task(ctx, step(2, 0)))
	})
	g.expect(t, "the first", true, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if err := g.encounter(context.Background(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if wrong > 0 || g.executed != 1 {
		t.Errorf("%d tasks of one replay came between those of another; the block was executed %d times", wrong, g.executed)
	}
}

// While a block is being recorded, other encounters of the construct execute it without waiting: those
// of other goroutines, and those of the block's own tasks.
func TestBlockIsExecutedWhileItIsRecorded(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "4")
	var records vkomp.TaskgraphRecords
	var executed, ran atomic.Int32
	var again atomic.Bool
	var encounter func(ctx context.Context, depth int) error
	encounter = func(ctx context.Context, depth int) error {
		return rt.Taskgraph(ctx, vkomp.Taskgraph{Records: &records}, func(block context.Context) error {
			executed.Add(1)
			if depth > 0 {
				other := make(chan error)
				go func() { other <- encounter(t.Context(), depth-1) }()
				if err := <-other; err != nil {
					return err
				}
			}
			return rt.Task(block, vkomp.Task{Body: func(ctx context.Context) error {
				ran.Add(1)
				if depth == 2 && again.CompareAndSwap(false, true) {
					return encounter(ctx, 0)
				}
				return nil
			}})
		})
	}
	must(t, encounter(t.Context(), 2))
	// The task of the block encounters it while it is recorded, or after that.
	if n := executed.Load(); n < 3 || n > 4 {
		t.Errorf("the block was executed %d times, want 3 or 4", n)
	}
	before := executed.Load()
	must(t, encounter(t.Context(), 0))
	if executed.Load() != before {
		t.Error("the record was not replayed")
	}
}

// A taskgraph region with nogroup inside the block of another one belongs to the outer record.
func TestInnerRegionBelongsToTheOuterRecord(t *testing.T) {
	rt := openTasks(t)
	var ran [3]atomic.Int32
	count := func(i int) vkomp.Task {
		return vkomp.Task{Body: func(context.Context) error { ran[i].Add(1); return nil }}
	}
	inner := newGraphed(rt, func(ctx context.Context) error { return rt.Task(ctx, count(1)) })
	inner.NoGroup = true
	outer := newGraphed(rt, func(ctx context.Context) error {
		return errors.Join(rt.Task(ctx, count(0)), inner.encounter(ctx, nil), rt.Task(ctx, count(2)))
	})
	outer.expect(t, "the outer region", true, nil)
	outer.expect(t, "the outer region again", false, nil)
	inner.expect(t, "the inner region by itself", true, nil)
	outer.expect(t, "the outer region with a record of the inner one", false, nil)
	outer.expect(t, "the outer region without recording", true, func(g *vkomp.Taskgraph) { g.If = vkomp.If(false) })
	must(t, rt.Taskwait(t.Context()))
	if got := [3]int32{ran[0].Load(), ran[1].Load(), ran[2].Load()}; inner.executed != 2 || got != [3]int32{4, 5, 4} {
		t.Errorf("the inner block was executed %d times, the tasks ran %v times", inner.executed, got)
	}
}

// A region whose block does not succeed, inside a block that does, leaves no record of the latter: what the former has
// still to generate would not be in it.
func TestInnerBlockThatFailsLeavesNoOuterRecord(t *testing.T) {
	rt := openTasks(t)
	for how, leave := range map[string]func() error{
		"error":  func() error { return errors.New("mine") },
		"panic":  func() error { panic("mine") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		ran, complete := 0, false
		task := vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut([]int{0})}, Body: func(context.Context) error { ran++; return nil }}
		inner := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), NoGroup: true}
		g := newGraphed(rt, func(ctx context.Context) error {
			over := make(chan struct{})
			go func() { // which Goexit ends
				defer close(over)
				_ = rt.Taskgraph(ctx, inner, func(ctx context.Context) error {
					must(t, rt.Task(ctx, task))
					if !complete {
						return leave()
					}
					return rt.Task(ctx, task)
				})
			}()
			<-over
			return nil
		})
		g.expect(t, how, true, nil)
		complete = true
		g.expect(t, how+" no more", true, nil)
		g.expect(t, how+" no more, again", false, nil)
		if ran != 1+2+2 {
			t.Errorf("%s: %d tasks have run, want 5", how, ran)
		}
	}
}

// The context of a block records nothing once the block has ended.
func TestConstructsAfterTheBlockAreNotRecorded(t *testing.T) {
	rt := openTasks(t)
	var kept context.Context
	var ran atomic.Int32
	g := newGraphed(rt, func(ctx context.Context) error {
		kept = ctx
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran.Add(1); return nil }})
	})
	g.NoGroup = true
	g.expect(t, "the first", true, nil)
	late := context.WithoutCancel(kept)
	generate(t, rt, late, vkomp.Task{If: vkomp.If(false), Body: func(context.Context) error { ran.Add(100); return nil }})
	must(t, rt.Taskwait(late))
	g.expect(t, "the second", false, nil)
	must(t, rt.Taskwait(t.Context()))
	if n := ran.Load(); n != 102 {
		t.Errorf("ran %d, want 102", n)
	}
}

func TestTaskgraphClausesThatAreInvalid(t *testing.T) {
	rt := openTasks(t)
	ctx, records := t.Context(), new(vkomp.TaskgraphRecords)
	var p vkomp.ParamVar[int]
	for text, g := range map[string]vkomp.Taskgraph{
		`taskgraph "taskgraph": invalid argument: no Records`: {},
		`taskgraph "mine": invalid argument: parameter 1`:     {Records: records, Label: "mine", Params: []vkomp.Param{p.Bind(1), {}}},
		`parameters 0 and 1 are the same`:                     {Records: records, Params: []vkomp.Param{p.Bind(1), p.Bind(2)}},
	} {
		refused(t, text, rt.Taskgraph(ctx, g, nothing), vkomp.ErrInvalidArgument, text)
	}
	refused(t, "no block", rt.Taskgraph(ctx, vkomp.Taskgraph{Records: records}, nil), vkomp.ErrInvalidArgument, "no block")
	why := errors.New("no more")
	ended, end := context.WithCancelCause(ctx)
	end(why)
	refused(t, "an ended context", rt.Taskgraph(ended, vkomp.Taskgraph{Records: records}, nothing), why)
	must(t, rt.Close())
	refused(t, "a closed runtime", rt.Taskgraph(ctx, vkomp.Taskgraph{Records: records}, nothing), vkomp.ErrClosed)
}

// A task of the block cancels the taskgroup, so that a construct is refused. The next encounter executes the block
// anew.
func TestBlockWithARefusedConstructLeavesNoRecord(t *testing.T) {
	rt := vktest.Open(t, vktest.Host, cancellation)
	cancelled, refused, ran := true, 0, 0
	g := newGraphed(rt, func(ctx context.Context) error {
		if cancelled {
			must(t, rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error { return rt.CancelTaskgroup(ctx) }}))
			<-ctx.Done()
		}
		if err := rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran++; return nil }}); errors.Is(err, vkomp.ErrCancelled) {
			refused++
		}
		return nil
	})
	for range 3 {
		must(t, g.encounter(t.Context(), nil))
		cancelled = false
	}
	if refused != 1 || ran != 2 || g.executed != 2 {
		t.Errorf("%d constructs were refused, %d ran, and the block was executed %d times", refused, ran, g.executed)
	}
}

// A construct of the block has a context of its own, which has ended.
func TestBlockWithAConstructWhoseContextHasEndedLeavesNoRecord(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	late, ran := true, 0
	g := newGraphed(rt, func(ctx context.Context) error {
		own, end := context.WithCancel(ctx)
		t.Cleanup(end) // not before the task is complete
		if late {
			end()
		}
		if err := rt.Task(own, vkomp.Task{Body: func(context.Context) error { ran++; return nil }}); (err != nil) != late {
			t.Errorf("late %t: %v", late, err)
		}
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }})
	})
	for range 3 {
		must(t, g.encounter(t.Context(), nil))
		late = false
	}
	if ran != 2 || g.executed != 2 {
		t.Errorf("%d ran, and the block was executed %d times", ran, g.executed)
	}
}

// A construct of the block gets a context that ends before the block does, so that its task may not run.
func TestBlockThatEndsAContextOfItsConstructsLeavesNoRecord(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	late := true
	g := newGraphed(rt, func(ctx context.Context) error {
		nothing := vkomp.Task{Body: func(context.Context) error { return nil }}
		own, end := context.WithCancel(ctx)
		t.Cleanup(end) // not before the task is complete
		err := errors.Join(rt.Task(own, nothing), rt.Task(ctx, nothing))
		if late {
			end()
		}
		return err
	})
	for k, executed := range []bool{true, true, true, false} {
		late = k < 2
		before := g.executed
		if err := g.encounter(t.Context(), nil); err != nil && !errors.Is(err, context.Canceled) || err != nil && !late {
			t.Errorf("encounter %d: %v", k, err)
		}
		if (g.executed > before) != executed {
			t.Errorf("encounter %d: the block was executed: %t", k, !executed)
		}
	}
}

// What the block derives from its context has an effect only when the block is executed.
func TestReplayHasTheContextOfItsEncounter(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	type key struct{}
	var seen []any
	g := newGraphed(rt, func(ctx context.Context) error {
		return rt.Task(context.WithValue(ctx, key{}, "derived"), vkomp.Task{Body: func(ctx context.Context) error {
			seen = append(seen, ctx.Value(key{}))
			return nil
		}})
	})
	for _, encounter := range []string{"first", "second", "third"} {
		must(t, g.encounter(context.WithValue(t.Context(), key{}, encounter), nil))
	}
	if want := []any{"derived", "second", "third"}; !slices.Equal(seen, want) {
		t.Errorf("the bodies saw %v, want %v", seen, want)
	}
}

// The block goes on without a construct that has failed. The next encounter tries again.
func TestBlockWithAConstructThatFailsLeavesNoRecord(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	d := rt.InitialDevice()
	x := make([]byte, 4)
	var gone vkomp.Kernel
	for name, c := range map[string]struct {
		construct func(ctx context.Context) error
		want      error
	}{
		"target": {func(ctx context.Context) error {
			return rt.Target(ctx, vkomp.Target{Kernel: gone, NoWait: true})
		}, vkomp.ErrInvalidArgument},
		"target update": {func(ctx context.Context) error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{NoWait: true, Motions: []vkomp.Arg{vkomp.Value(1)}})
		}, vkomp.ErrInvalidArgument},
		"task": {func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{}) }, vkomp.ErrInvalidArgument},
		"memset": {func(ctx context.Context) error {
			return d.MemsetAsync(ctx, vkomp.DevicePtr{}, 1, 4, vkomp.InOut(x))
		}, vkomp.ErrInvalidPointer},
		"memcpy": {func(ctx context.Context) error {
			return rt.MemcpyAsync(ctx, vkomp.HostPtr(x), vkomp.DevicePtr{}, 4, vkomp.InOut(x))
		}, vkomp.ErrInvalidPointer},
		"taskwait nowait": {func(ctx context.Context) error { return rt.TaskwaitNoWait(ctx) }, vkomp.ErrInvalidDepend},
		"target data": {func(ctx context.Context) error {
			return rt.TargetData(ctx, vkomp.TargetData{}, nil)
		}, vkomp.ErrInvalidArgument},
		"taskgroup": {func(ctx context.Context) error { return rt.Taskgroup(ctx, nil) }, vkomp.ErrInvalidArgument},
		"taskgraph": {func(ctx context.Context) error {
			own, end := context.WithCancel(ctx)
			end()
			return rt.Taskgraph(own, vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), NoGroup: true}, func(context.Context) error { return nil })
		}, context.Canceled},
		"block of a taskgraph inside": {func(ctx context.Context) error {
			return rt.Taskgraph(ctx, vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), NoGroup: true}, func(context.Context) error { return io.EOF })
		}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			fails := true
			g := newGraphed(rt, func(ctx context.Context) error {
				if fails {
					if err := c.construct(ctx); !errors.Is(err, c.want) {
						t.Errorf("got %v, want %v", err, c.want)
					}
				}
				return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }})
			})
			g.expect(t, "first", true, nil)
			g.expect(t, "second", true, nil)
			fails = false
			g.expect(t, "third", true, nil)
			g.expect(t, "fourth", false, nil)
		})
	}
}

// A construct that is not recorded may fail: nothing is missing from the record.
func TestBlockWithAConstructThatIsNotReplayableMayFail(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	why := errors.New("not today")
	g := newGraphed(rt, func(ctx context.Context) error {
		err := rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Replayable: vkomp.If(false), Body: func(context.Context) error { return why }})
		if !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }})
	})
	g.expect(t, "first", true, nil)
	g.expect(t, "second", false, nil)
}

// The block uses the context of the construct by mistake: its tasks are executed each time.
func TestBlockOfWhichNothingIsRecordedLeavesNoRecord(t *testing.T) {
	rt := openTasks(t)
	runs := 0
	g := newGraphed(rt, func(context.Context) error {
		return rt.Task(t.Context(), vkomp.Task{Body: func(context.Context) error { runs++; return nil }})
	})
	for range 3 {
		g.expect(t, "nothing is recorded", true, nil)
		must(t, rt.Taskwait(t.Context()))
	}
	if runs != 3 {
		t.Errorf("the task ran %d times", runs)
	}
	g.block = func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { runs++; return nil }})
	}
	g.expect(t, "the task is recorded", true, nil)
	g.expect(t, "there is a record", false, nil)
	g.block = func(context.Context) error { return nil }
	reset := func(g *vkomp.Taskgraph) { g.Reset = true }
	g.expect(t, "the record is discarded", true, reset)
	g.expect(t, "there is none", true, nil)
	if runs != 5 {
		t.Errorf("the task ran %d times", runs)
	}
}
