package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Of the records of a construct the 64 that were used last are kept.
func TestRecordsAreBounded(t *testing.T) {
	rt := openTasks(t)
	g := newGraphed(rt, func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{Body: nothing}) })
	id := func(n int) func(*vkomp.Taskgraph) { return func(g *vkomp.Taskgraph) { g.ID = n } }
	for n := range 64 {
		g.expect(t, fmt.Sprint("ID ", n), true, id(n))
	}
	g.expect(t, "the first again", false, id(0))
	g.expect(t, "one more", true, id(64))
	g.expect(t, "the first after that", false, id(0))
	g.expect(t, "the last", false, id(63))
	g.expect(t, "the one that was used least recently", true, id(1))
	g.expect(t, "the one that this replaced", true, id(2))
}

// packageRecords is a variable of the package, as programs have it.
var packageRecords vkomp.TaskgraphRecords

// Records go away with their runtime, although what keeps them stays.
func TestRecordsEndWithTheirRuntime(t *testing.T) {
	stays := new(vkomp.TaskgraphRecords)
	for _, records := range []*vkomp.TaskgraphRecords{stays, &packageRecords} {
		rt, other := openTasks(t), openTasks(t)
		captured := func() weak.Pointer[[1 << 10]int] {
			data := new([1 << 10]int)
			must(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: records}, func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { data[0]++; return nil }})
			}))
			return weak.Make(data)
		}()
		replays := newGraphed(other, func(ctx context.Context) error { return other.Task(ctx, vkomp.Task{Body: nothing}) })
		replays.Records = records
		replays.expect(t, "another runtime", true, nil)
		runtime.GC()
		if captured.Value() == nil {
			t.Error("the record is gone before its runtime is closed")
		}
		must(t, rt.Close())
		for range 3 { // pools keep what they have for two collections
			runtime.GC()
		}
		if captured.Value() != nil {
			t.Error("the record is there after its runtime was closed")
		}
		replays.expect(t, "another runtime after that", false, nil)
	}
	runtime.KeepAlive(stays)
}

// A runtime that is closed while a block is executed gets no record of it.
func TestRecordsEndWithTheirRuntimeThatIsClosedByTheBlock(t *testing.T) {
	records := new(vkomp.TaskgraphRecords)
	rt := openTasks(t)
	captured := func() weak.Pointer[[1 << 10]int] {
		data := new([1 << 10]int)
		must(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: records, NoGroup: true}, func(ctx context.Context) error {
			must(t, rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { data[0]++; return nil }}))
			return rt.Close()
		}))
		return weak.Make(data)
	}()
	for range 3 {
		runtime.GC()
	}
	if captured.Value() != nil {
		t.Error("there is a record of a runtime that is closed")
	}
	runtime.KeepAlive(records)
}

// A TaskgraphRecords that nothing refers to goes away, although its runtime stays.
func TestRecordsEndWithTheirKeeper(t *testing.T) {
	rt := openTasks(t)
	var all []weak.Pointer[vkomp.TaskgraphRecords]
	for range 100 {
		g := newGraphed(rt, func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{Body: nothing}) })
		g.expect(t, "the first", true, nil)
		all = append(all, weak.Make(g.Records))
	}
	for range 3 {
		runtime.GC()
	}
	left := 0
	for _, w := range all {
		if w.Value() != nil {
			left++
		}
	}
	if left > 1 {
		t.Errorf("%d of %d are reachable", left, len(all))
	}
}

// A runtime can be closed while goroutines replay: each replay is complete, or ErrClosed.
func TestRuntimeIsClosedDuringReplays(t *testing.T) {
	for round := range 2 {
		inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
			k := newKernel(t, rt, shaders.Saxpy)
			x, y := constant(64, 1), constant(64, 0)
			region := saxpyOn(t, k, 1, x, y)
			region.NoWait, region.DependArgs = true, true
			g := newGraphed(rt, func(ctx context.Context) error {
				return errors.Join(rt.Target(ctx, region), rt.Target(ctx, region), rt.Task(ctx, vkomp.Task{Body: nothing, Depend: []vkomp.Depend{vkomp.InOut(y)}}))
			})
			g.NoGroup = round%2 == 0
			g.expect(t, "the first", true, nil)
			begun, over := make(chan struct{}), make(chan error)
			go func() {
				for i := 0; ; i++ {
					if i == 20 {
						close(begun)
					}
					if err := g.encounter(context.Background(), nil); err != nil {
						over <- err
						return
					}
				}
			}()
			<-begun
			must(t, rt.Close())
			if err := <-over; !errors.Is(err, vkomp.ErrClosed) {
				t.Errorf("the replay: %v", err)
			}
			if y[0] < 40 {
				t.Errorf("y is %v after 20 replays", y[0])
			}
		})
	}
}

// The race detector follows replayed tasks as any others, and says where their constructs are.
func TestRacesBetweenReplayedTasksAreFound(t *testing.T) {
	for _, parameters := range []bool{false, true} {
		var records vkomp.TaskgraphRecords
		var out vkomp.ParamSlice[float32]
		found := races(t, vkomp.Options{}, func(ctx context.Context, p *racing) {
			g := vkomp.Taskgraph{Records: &records, NoGroup: true}
			if parameters {
				g.Params = []vkomp.Param{out.Bind(p.y)}
			}
			for range 3 {
				must(t, p.rt.Taskgraph(ctx, g, func(ctx context.Context) error {
					p.axpy(ctx, true, p.x, p.y)
					return nil
				}))
			}
			p.wait(ctx)
		})
		if len(found) == 0 || !strings.Contains(fmt.Sprint(found[0]), "axpy") {
			t.Errorf("with parameters %v: races %v, want one between constructs of axpy", parameters, found)
		}
		var others vkomp.TaskgraphRecords
		ordered := races(t, vkomp.Options{}, func(ctx context.Context, p *racing) {
			for range 3 {
				must(t, p.rt.Taskgraph(ctx, vkomp.Taskgraph{Records: &others}, func(ctx context.Context) error {
					p.axpy(ctx, true, p.x, p.y, vkomp.InOut(p.y))
					p.axpy(ctx, true, p.y, p.z, vkomp.In(p.y), vkomp.InOut(p.z))
					return nil
				}))
			}
		})
		if len(ordered) > 0 {
			t.Errorf("races between tasks that depend on each other: %v", ordered)
		}
	}
}

// A tool hears of the tasks of each replay.
func TestToolHearsOfReplayedTasks(t *testing.T) {
	created, targets := make(map[string]int), 0
	rt := vktest.Open(t, withTool(ompt.Callbacks{
		TaskCreate: func(e ompt.TaskCreateEvent) { created[e.Label]++ },
		TargetEMI: func(e ompt.TargetEMIEvent) {
			if e.Endpoint == ompt.ScopeBegin {
				targets++
			}
		},
	}))
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := constant(64, 1), constant(64, 0)
	g := newGraphed(rt, func(ctx context.Context) error {
		region := saxpyOn(t, k, 1, x, y)
		region.NoWait, region.DependArgs, region.Label = true, true, "region"
		return errors.Join(rt.Target(ctx, region), rt.Target(ctx, region), rt.Task(ctx, vkomp.Task{Body: nothing, Label: "explicit", Depend: []vkomp.Depend{vkomp.InOut(y)}}))
	})
	must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}))
	created, targets = make(map[string]int), 0
	for round := range 4 {
		g.expect(t, fmt.Sprint("round ", round), round == 0, nil)
	}
	if created["explicit"] != 4 || targets != 8 {
		t.Errorf("the tool has heard of %v and of %d target regions, want 4 and 8", created, targets)
	}
	must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x), vkomp.From(y)}}))
	if y[0] != 8 {
		t.Errorf("y is %v", y)
	}
}
