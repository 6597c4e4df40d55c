package tests

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/shaders"
	checker "github.com/vkomp/vkomp/tests/order"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Kernels that nothing orders go to the device several in a dispatch, once the pipeline for that is
// compiled. Each sees its own storage, values and indices, whatever the number of its workgroups, and
// those that are ordered stay so.
func TestKernelsThatNothingOrdersAreMerged(t *testing.T) {
	merges := kernel.MergesOwn(openDevice(t).Properties())
	size := [2]uint32{3, 2}
	inMergeModes(t, vkomp.KernelSource{Name: "indices", SPIRV: indicesModule, Specialize: map[uint32]uint32{0: size[0], 1: size[1]}}, func(t *testing.T, rt *vkomp.Runtime, k vkomp.Kernel, debug, log string) {
		ctx, limit := t.Context(), time.Now().Add(time.Minute)
		// The kernels have 3 by 2 workgroups, 2 by 2, or one.
		const points, rounds = 50, 20
		shape := func(point int) (width, height int) {
			if point < points/2 {
				return 7 - point%2, 3 + point%2
			}
			return 1 + point%3, 1 + point%2
		}
		values := make([][]seen, points)
		var maps []vkomp.Arg
		for p := range values {
			width, height := shape(p)
			values[p] = make([]seen, width*height)
			maps = append(maps, vkomp.To(values[p]))
		}
		succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: maps}))
		allValues := vkomp.Iterate(0, points, 1, func(p int) vkomp.Depend { return vkomp.Out(values[p]) })
		awaitPipelines(rt, 1, limit) // launches that wait for it begin one by one
		for range rounds {
			begin := together(t, ctx, rt, allValues)
			for p := range values {
				width, height := shape(p)
				succeed(t, rt.Target(ctx, vkomp.Target{
					Kernel: k, Range: vkomp.Range{X: width, Y: height}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(values[p])},
					Args: []vkomp.Arg{vkomp.From(values[p]), vkomp.Value(uint32(width)), vkomp.Value(uint32(height))},
				}))
			}
			begin()
			succeed(t, rt.Taskwait(ctx))
			if merges && debug != "path=general" {
				awaitMerging(rt, limit)
			}
		}
		var from []vkomp.Arg
		for p := range values {
			from = append(from, vkomp.From(values[p]))
		}
		succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: from}))
		launched := rt.Stats().Dispatches
		succeed(t, rt.Close())
		for p := range values {
			width, height := shape(p)
			checkSeen(t, values[p], width, height, size)
		}
		checkMerging(t, debug, merges, launched, points*rounds, keptOrder(t, log).Sum().Dispatches, points*rounds-1)
	})
}

// inMergeModes runs a test with a kernel in debug modes in which launches are merged, are not, or may be. What the driver is
// given is recorded in the file log.
func inMergeModes(t *testing.T, source vkomp.KernelSource, test func(t *testing.T, rt *vkomp.Runtime, k vkomp.Kernel, debug, log string)) {
	for _, debug := range []string{"path=any", "path=general", "placement=random,seed=5"} {
		t.Run(debug, func(t *testing.T) {
			vktest.Layers(t, "record")
			log := filepath.Join(t.TempDir(), "log")
			t.Setenv("VKOMP_RECORD", log)
			rt := vktest.Open(t, vktest.Debug(debug), vktest.NoSynchronizationChecks)
			k, err := rt.NewKernel(source)
			succeed(t, err)
			test(t, rt, k, debug, log)
		})
	}
}

// checkMerging checks the number of launches, and how many dispatches they were with a debug setting: each was one, or
// with path=any there were at most so many, if the device merges them.
func checkMerging(t *testing.T, debug string, merges bool, launched, want, dispatches, most uint64) {
	t.Helper()
	if launched != want {
		t.Errorf("%d launches, want %d", launched, want)
	}
	switch {
	case (!merges || debug == "path=general") && dispatches != launched:
		t.Errorf("%d launches in %d dispatches, want as many", launched, dispatches)
	case merges && debug == "path=any" && dispatches > most:
		t.Errorf("%d launches in %d dispatches, want at most %d", launched, dispatches, most)
	}
}

// together keeps tasks that follow a host task with these depend items until the returned function is called. Otherwise it
// would depend on how fast the host is how many of them are merged.
func together(t *testing.T, ctx context.Context, rt *vkomp.Runtime, out []vkomp.Depend) (begin func()) {
	t.Helper()
	generated := make(chan struct{})
	succeed(t, rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { <-generated; return nil }, Depend: out}))
	begin = sync.OnceFunc(func() { close(generated) })
	t.Cleanup(begin) // before the runtime is closed
	return begin
}

// awaitMerging waits for the second pipeline of a kernel, which merges its launches and is compiled in the background,
// or until a time.
func awaitMerging(rt *vkomp.Runtime, limit time.Time) { awaitPipelines(rt, 2, limit) }

// awaitPipelines waits until so many pipelines are compiled, or until a time.
func awaitPipelines(rt *vkomp.Runtime, n uint64, limit time.Time) {
	for rt.Stats().Pipelines < n && time.Now().Before(limit) {
		runtime.Gosched()
	}
}

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/walk.spv testdata/walk.comp

//go:embed testdata/walk.spv
var walkModule []byte

// Merged kernels that loop as often as their push constants say do so each by its own.
func TestMergedKernelsLoopByTheirOwnPushConstants(t *testing.T) {
	merges := kernel.MergesOwn(openDevice(t).Properties())
	rt := vktest.Open(t)
	ctx, limit := t.Context(), time.Now().Add(time.Minute)
	k, err := rt.NewKernel(vkomp.KernelSource{Name: "walk", SPIRV: walkModule})
	succeed(t, err)
	const points = 40
	places, want := make([][]uint32, points), make([][]uint32, points)
	var maps []vkomp.Arg
	for p := range places {
		places[p] = make([]uint32, 1+p%9)
		for i := range places[p] {
			places[p][i] = uint32(10*p + i)
		}
		want[p] = slices.Clone(places[p])
		maps = append(maps, vkomp.ToFrom(places[p]))
	}
	allPlaces := vkomp.Iterate(0, points, 1, func(p int) vkomp.Depend { return vkomp.Out(places[p]) })
	succeed(t, rt.TargetData(ctx, vkomp.TargetData{Maps: maps}, func(ctx context.Context) error {
		awaitPipelines(rt, 1, limit) // launches that wait for it begin one by one
		for round := range uint32(10) {
			begin := together(t, ctx, rt, allPlaces)
			for p := range places {
				// Each has its own values, and the number of its elements.
				rounds, by := uint32(p)%5, [2]uint32{uint32(p) + 3, round + 7*uint32(p)}
				for i := range want[p] {
					for range rounds {
						for range rounds {
							want[p][i] = want[p][i]*by[0] + by[1]
						}
						want[p][i] += by[1]
					}
				}
				if err := rt.Target(ctx, vkomp.Target{
					Kernel: k, Range: vkomp.Range{X: len(places[p])}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(places[p])},
					Args: []vkomp.Arg{vkomp.ToFrom(places[p]), vkomp.Value(rounds), vkomp.Value(uint32(len(places[p]))), vkomp.Value(by)},
				}); err != nil {
					return err
				}
			}
			begin()
			if err := rt.Taskwait(ctx); err != nil {
				return err
			}
			if merges {
				awaitMerging(rt, limit)
			}
		}
		return nil
	}))
	for p := range places {
		if !slices.Equal(places[p], want[p]) {
			t.Errorf("point %d is %v, want %v", p, places[p], want[p])
		}
	}
	if merges && rt.Stats().Pipelines < 2 {
		t.Error("the pipeline that merges was not compiled")
	}
}

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/cells.spv testdata/cells.comp

//go:embed testdata/cells.spv
var cellsModule []byte

// Kernels that nothing orders and that have the same slices work at places of their own in them, which their values say.
// They go to the device several in a dispatch. A kernel that writes what they read comes before them.
func TestKernelsWithTheSameSlicesAreMerged(t *testing.T) {
	inMergeModes(t, vkomp.KernelSource{Name: "cells", SPIRV: cellsModule}, func(t *testing.T, rt *vkomp.Runtime, k vkomp.Kernel, debug, log string) {
		ctx, limit := t.Context(), time.Now().Add(time.Minute)
		const points, cell, rounds = 150, 12, 12
		weight, other, cells := make([]uint32, cell), make([]uint32, cell), make([]uint32, points*cell)
		for i := range weight {
			weight[i], other[i] = uint32(i), uint32(100+i)
		}
		for i := range cells {
			cells[i] = uint32(3 * i)
		}
		wantWeight, want := slices.Clone(weight), slices.Clone(cells)
		apply := func(to, from []uint32, n int, by uint32) {
			for i := range n {
				to[i] = to[i]*by + from[i]
			}
		}
		target := func(reads, writes []uint32, at, n, threads int, by uint32, depend ...vkomp.Depend) {
			succeed(t, rt.Target(ctx, vkomp.Target{
				Kernel: k, Range: vkomp.Range{X: threads}, NoWait: true, Depend: depend,
				Args: []vkomp.Arg{vkomp.To(reads), vkomp.ToFrom(writes), vkomp.Value(uint32(at)), vkomp.Value(uint32(n)), vkomp.Value(by)},
			}))
		}
		succeed(t, rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(weight), vkomp.To(other), vkomp.ToFrom(cells)}}, func(ctx context.Context) error {
			awaitPipelines(rt, 1, limit) // launches that wait for it begin one by one
			for round := range uint32(rounds) {
				begin := together(t, ctx, rt, []vkomp.Depend{vkomp.Out(weight)})
				target(other, weight, 0, cell, cell, round, vkomp.Out(weight))
				apply(wantWeight, other, cell, round)
				for p := range points {
					n, threads, by := 1+p%cell, cell, uint32(p)+round
					if p >= points/2 {
						threads = 4 // in another number of workgroups
					}
					target(weight, cells, p*cell, n, threads, by, vkomp.In(weight))
					apply(want[p*cell:], wantWeight, n, by)
				}
				begin()
				if err := rt.Taskwait(ctx); err != nil {
					return err
				}
				if debug != "path=general" {
					awaitMerging(rt, limit)
				}
			}
			return nil
		}))
		launched := rt.Stats().Dispatches
		succeed(t, rt.Close())
		if !slices.Equal(weight, wantWeight) || !slices.Equal(cells, want) {
			t.Error("the kernels have written something else")
		}
		f, err := os.Open(log)
		succeed(t, err)
		defer f.Close()
		report, err := checker.Check(f, checker.Options{})
		succeed(t, err)
		for _, v := range report.Violations {
			// It does not see which words of a slice a kernel writes.
			if v.Kind != checker.Unordered {
				t.Errorf("violation of order: %v", v)
			}
		}
		checkMerging(t, debug, true, launched, (points+1)*rounds, report.Sum().Dispatches, (points+1)*rounds/2)
	})
}

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/tile.spv testdata/tile.comp

//go:embed testdata/tile.spv
var tileModule []byte

// Kernels on the tiles of an array, which lie at equal distances, go to the device many in a dispatch, though the device
// binds few buffers at once. Each has its own tiles; those at the ends of the array have theirs elsewhere.
func TestKernelsOnTilesAreMerged(t *testing.T) {
	inMergeModes(t, vkomp.KernelSource{Name: "tile", SPIRV: tileModule}, func(t *testing.T, rt *vkomp.Runtime, k vkomp.Kernel, debug, log string) {
		ctx, limit := t.Context(), time.Now().Add(time.Minute)
		const tiles, words, steps = 60, 64, 24
		var rows, want [2][]uint32
		for i := range rows {
			rows[i], want[i] = make([]uint32, tiles*words), make([]uint32, tiles*words)
		}
		for i := range rows[0] {
			rows[0][i], want[0][i] = uint32(i), uint32(i)
		}
		tile := func(row []uint32, p int) []uint32 {
			p = (p + tiles) % tiles
			return row[p*words : (p+1)*words]
		}
		step := func(ctx context.Context, n int) {
			from, to := n%2, (n+1)%2
			for p := range tiles {
				left, here, right, next := tile(rows[from], p-1), tile(rows[from], p), tile(rows[from], p+1), tile(rows[to], p)
				succeed(t, rt.Target(ctx, vkomp.Target{
					Kernel: k, Range: vkomp.Range{X: words}, NoWait: true,
					Args:   []vkomp.Arg{vkomp.To(left), vkomp.To(here), vkomp.To(right), vkomp.From(next), vkomp.Value(uint32(p + 1))},
					Depend: []vkomp.Depend{vkomp.In(left), vkomp.In(here), vkomp.In(right), vkomp.Out(next)},
				}))
			}
		}
		means := func(n int) {
			from, to := want[n%2], want[(n+1)%2]
			for p := range tiles {
				for i := range words {
					tile(to, p)[i] = (tile(from, p-1)[i]+2*tile(from, p)[i]+3*tile(from, p+1)[i])*uint32(p+1) + words
				}
			}
		}
		allTiles := vkomp.Iterate(0, 2*tiles, 1, func(p int) vkomp.Depend { return vkomp.Out(tile(rows[p%2], p/2)) })
		var records vkomp.TaskgraphRecords
		succeed(t, rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(rows[0]), vkomp.ToFrom(rows[1])}}, func(ctx context.Context) error {
			awaitPipelines(rt, 1, limit) // launches that wait for it begin one by one
			for n := 0; n < steps; n += 2 {
				// Half of the steps are replayed.
				begin := together(t, ctx, rt, allTiles)
				both := vkomp.Taskgraph{Records: &records, NoGroup: true, If: vkomp.If(n >= steps/2)}
				succeed(t, rt.Taskgraph(ctx, both, func(ctx context.Context) error { step(ctx, n); step(ctx, n+1); return nil }))
				begin()
				means(n)
				means(n + 1)
				if err := rt.Taskwait(ctx); err != nil {
					return err
				}
				if debug != "path=general" {
					awaitMerging(rt, limit)
				}
			}
			return nil
		}))
		launched := rt.Stats().Dispatches
		succeed(t, rt.Close())
		if !slices.Equal(rows[0], want[0]) || !slices.Equal(rows[1], want[1]) {
			t.Error("the kernels have written something else")
		}
		checkMerging(t, debug, true, launched, tiles*steps, keptOrder(t, log).Sum().Dispatches, tiles*steps/4)
	})
}

// A tool hears of the end of each pipeline of a kernel, also of the one that merges its launches.
func TestToolHearsOfTheEndOfEachPipeline(t *testing.T) {
	merges := kernel.MergesOwn(openDevice(t).Properties())
	const name = "saxpy"
	var mu sync.Mutex
	loaded := make(map[uint64]string) // the names of the modules
	rt := vktest.Open(t, vktest.Debug("path=any"), func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{
			DeviceLoad: func(e ompt.DeviceLoadEvent) {
				mu.Lock()
				defer mu.Unlock()
				loaded[e.ModuleID] = e.Filename
			},
			DeviceUnload: func(e ompt.DeviceUnloadEvent) {
				mu.Lock()
				defer mu.Unlock()
				if loaded[e.ModuleID] == "" {
					t.Errorf("module %d is unloaded and was not loaded", e.ModuleID)
				}
				delete(loaded, e.ModuleID)
			},
		}
	})
	have := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, module := range loaded {
			if module == name {
				n++
			}
		}
		return n
	}
	ctx := t.Context()
	k, err := rt.NewKernel(vkomp.KernelSource{Name: name, SPIRV: shaders.Saxpy.SPIRV})
	succeed(t, err)
	x, y := make([]float32, 64), make([]float32, 64)
	both := []vkomp.Arg{vkomp.To(x), vkomp.To(y)}
	succeed(t, rt.TargetData(ctx, vkomp.TargetData{Maps: both}, func(ctx context.Context) error {
		awaitPipelines(rt, 1, time.Now().Add(time.Minute)) // launches that wait for it begin one by one
		begin := together(t, ctx, rt, []vkomp.Depend{vkomp.Out(x)})
		for i := range y {
			succeed(t, rt.Target(ctx, vkomp.Target{
				Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true, Depend: []vkomp.Depend{vkomp.In(x)},
				Args: []vkomp.Arg{vkomp.To(x[i : i+1]), vkomp.ToFrom(y[i : i+1]), vkomp.Value(uint32(1)), vkomp.Value(float32(1))},
			}))
		}
		begin()
		return rt.Taskwait(ctx)
	}))
	pipelines := 1
	if merges {
		pipelines = 2
	}
	for limit := time.Now().Add(time.Minute); have() < pipelines && time.Now().Before(limit); {
		runtime.Gosched()
	}
	if n := have(); n != pipelines {
		t.Fatalf("the kernel has %d modules, want %d", n, pipelines)
	}
	succeed(t, k.Close())
	for limit := time.Now().Add(time.Minute); have() > 0 && time.Now().Before(limit); {
		runtime.Gosched()
	}
	if n := have(); n > 0 {
		t.Errorf("%d modules of the kernel are left", n)
	}
}
