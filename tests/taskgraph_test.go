package tests

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestL10ReplayedTasksKeepTheirDependences(t *testing.T) {
	rt := openHost(t, "OMP_NUM_THREADS", "4")
	var records vkomp.TaskgraphRecords
	x, y, sum, executed := []int{0}, []int{0}, 0, 0
	for range 100 {
		succeed(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: &records}, func(ctx context.Context) error {
			executed++
			for _, task := range []vkomp.Task{
				{Depend: []vkomp.Depend{vkomp.Out(y)}, Body: body(func() { y[0] += 5 })},
				{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: body(func() { x[0] -= 5 })},
				{Depend: []vkomp.Depend{vkomp.In(x), vkomp.In(y)}, Body: body(func() { sum += 100 * (x[0] + y[0]) })},
			} {
				if err := rt.Task(ctx, task); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if x[0] != -500 || y[0] != 500 || sum != 0 || executed != 1 {
		t.Errorf("x is %d, y is %d, the sum %d, want -500, 500, 0; the block was executed %d times", x[0], y[0], sum, executed)
	}
}

func TestL27TargetTasksAndAHostTaskAreReplayed(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		var records vkomp.TaskgraphRecords
		k := newAffine(t, rt)
		y, executed := make([]uint32, 64), 0
		for range 16 {
			succeed(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: &records}, func(ctx context.Context) error {
				executed++
				if err := rt.Target(ctx, k.add(y, 1, vkomp.InOut(y))); err != nil {
					return err
				}
				if err := rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: body(func() { addTo(y, 1) })}); err != nil {
					return err
				}
				return rt.Target(ctx, k.add(y, 1, vkomp.InOut(y)))
			}))
		}
		checkAll(t, "y", y, 48)
		if executed != 1 {
			t.Errorf("the block was executed %d times", executed)
		}
	})
}

// replayable returns the steps of a program that a record can have. What the bodies of its tasks do is
// not recorded, and stays as it is.
func replayable(steps []*step) []*step {
	var kept []*step
	for _, st := range steps {
		one := *st
		one.undeferred, one.detach = false, 0
		switch {
		case st.kind == groupStep:
			kept = append(kept, replayable(st.steps)...)
		case st.kind == hostStep, st.kind == targetStep, st.kind == joinStep, st.kind == nestStep && st.transparent == vkomp.NotImpex:
			kept = append(kept, &one)
		}
	}
	return kept
}

// exclusive returns the steps with mutexinoutset in place of inoutset: in replays that overlap a task would otherwise
// be in one set with itself of the replay before, and write at the same time what that writes.
func exclusive(steps []*step) []*step {
	kept := make([]*step, len(steps))
	for i, st := range steps {
		one := *st
		one.items = slices.Clone(st.items)
		for k := range one.items {
			if one.items[k].kind == vkomp.DependInOutSet {
				one.items[k].kind = vkomp.DependMutexInOutSet
			}
		}
		kept[i] = &one
	}
	return kept
}

// params binds the storage of a state.
func (s *state) params(arrays, private []*vkomp.ParamSlice[uint32], tokens []*vkomp.ParamSlice[byte]) []vkomp.Param {
	params := []vkomp.Param{boundState.Bind(s)}
	for i, p := range arrays {
		params = append(params, p.Bind(s.arrays[i]))
	}
	for i, p := range private {
		params = append(params, p.Bind(s.private[i]), tokens[i].Bind(s.tokens[i]))
	}
	return params
}

func newParams[T any](n int) []*vkomp.ParamSlice[T] {
	params := make([]*vkomp.ParamSlice[T], n)
	for i := range params {
		params[i] = new(vkomp.ParamSlice[T])
	}
	return params
}

// replayProgram runs a program that many times from one record, alternately on several states if these
// are parameters, and returns how the states differ from those of as many sequential runs. If the
// replays overlap, none waits for its tasks, and their dependences alone keep the order.
func replayProgram(ctx context.Context, rt *vkomp.Runtime, k affine, steps []*step, privates, states, times int, overlap bool) (string, error) {
	var records vkomp.TaskgraphRecords
	arrays, private, tokens := newParams[uint32](programArrays), newParams[uint32](privates), newParams[byte](privates)
	var got, want []*state
	for range states {
		got, want = append(got, newState(privates)), append(want, newState(privates))
	}
	if overlap {
		steps = exclusive(steps)
	}
	executed := 0
	late := new(sync.WaitGroup)
	defer late.Wait()
	for i := range times {
		s := got[i%states]
		g := vkomp.Taskgraph{Records: &records, NoGroup: overlap}
		if states > 1 {
			g.Params = s.params(arrays, private, tokens)
		}
		e := &execution{rt: rt, k: k, state: s, late: late}
		err := rt.Taskgraph(ctx, g, func(ctx context.Context) error {
			executed++
			return e.run(ctx, steps)
		})
		if err != nil {
			return "", fmt.Errorf("time %d: %w", i, err)
		}
		want[i%states].run(steps)
		if overlap {
			continue
		}
		if d := s.difference(want[i%states]); d != "" {
			return fmt.Sprintf("time %d: %s", i, d), nil
		}
	}
	if err := rt.Taskwait(ctx); err != nil {
		return "", err
	}
	for i := range got {
		if d := got[i].difference(want[i]); d != "" {
			return fmt.Sprintf("state %d: %s", i, d), nil
		}
	}
	if executed != 1 {
		return fmt.Sprintf("the block was executed %d times", executed), nil
	}
	return "", nil
}

// A program that is replayed has the results of one that is run anew, on the storage of the record and
// on other storage.
func TestReplayedRandomProgramsHaveTheResultsOfRunningThemAnew(t *testing.T) {
	vktest.LongConcurrent(t)
	for i, v := range []struct {
		name    string
		options []func(*vkomp.Options)
	}{
		{"1 thread", []func(*vkomp.Options){environment("OMP_NUM_THREADS", "1", "OMP_MAX_TASK_PRIORITY", "3")}},
		{"8 threads", []func(*vkomp.Options){environment("OMP_NUM_THREADS", "8", "OMP_MAX_TASK_PRIORITY", "3")}},
		{"8 threads, staging", []func(*vkomp.Options){vktest.Staging, environment("OMP_NUM_THREADS", "8")}},
		{"8 threads, initial device", []func(*vkomp.Options){vktest.Host, environment("OMP_NUM_THREADS", "8")}},
	} {
		t.Run(v.name, func(t *testing.T) {
			rt := vktest.Open(t, v.options...)
			k := newAffine(t, rt)
			for seed := uint64(i); seed < programSeeds; seed += programSeeds / 5 {
				all, privates, _ := newProgram(seed)
				steps := replayable(all)
				for _, states := range []int{1, 3} {
					for _, overlap := range []bool{false, true} {
						d, err := replayProgram(t.Context(), rt, k, steps, privates, states, 100, overlap)
						if err != nil {
							t.Fatalf("seed %d, %d states, overlapping %t: %v", seed, states, overlap, err)
						}
						if d != "" {
							t.Fatalf("seed %d, %d states, overlapping %t: %s", seed, states, overlap, d)
						}
					}
				}
			}
			if tasks := rt.Graph().Tasks; len(tasks) != 0 {
				t.Errorf("%d tasks left in the graph, the first is %+v", len(tasks), tasks[0])
			}
			if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
				t.Errorf("%d storage and %d staging allocations left", s.Storage.Allocations, s.Staging.Allocations)
			}
		})
	}
}

// savable returns the steps of a program that a file can have, which are those without Go code, and the
// number of their constructs.
func savable(steps []*step) (kept []*step, constructs int) {
	for _, st := range replayable(steps) {
		switch st.kind {
		case targetStep:
			constructs++
		case joinStep:
			constructs += 4
		default:
			continue
		}
		st.onHost, st.byTarget = false, [2]bool{true, true}
		kept = append(kept, st)
	}
	return kept, constructs
}

// A program leaves the same bytes when it is run from a file, by another runtime, whether or not its
// storage was present with other contents than the host's.
func TestSavedRandomProgramsLeaveTheSameBytes(t *testing.T) {
	vktest.LongConcurrent(t)
	for _, v := range []struct {
		name    string
		options []func(*vkomp.Options)
	}{
		{"default", nil},
		{"staging", []func(*vkomp.Options){vktest.Staging}},
	} {
		t.Run(v.name, func(t *testing.T) {
			rt := vktest.Open(t, v.options...)
			if rt.DefaultDevice(t.Context()).IsInitial() {
				t.Skip("needs a Vulkan device")
			}
			k := newAffine(t, rt)
			var programs []*vkomp.SavedTaskgraph
			total := 0
			for seed := range uint64(programSeeds / 10) {
				all, privates, _ := newProgram(seed)
				s := newState(privates)
				steps, constructs := savable(all)
				total += constructs
				var present []vkomp.Arg
				for i, array := range s.arrays {
					if uint64(i)%3 == seed%3 {
						present = append(present, vkomp.Delete(array))
						succeed(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(array)}}))
						array[0] += uint32(seed)
					}
				}
				g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
				e := &execution{rt: rt, k: k, state: s, late: new(sync.WaitGroup)}
				var file bytes.Buffer
				succeed(t,
					rt.Taskgraph(t.Context(), g, func(ctx context.Context) error { return e.run(ctx, steps) }),
					rt.SaveTaskgraph(t.Context(), g, &file))
				if len(present) > 0 {
					succeed(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: present}))
				}
				saved, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file.Bytes()), int64(file.Len()))
				succeed(t, err)
				if n := saved.Info().Constructs; n != constructs {
					t.Errorf("seed %d: the file has %d constructs, the program %d", seed, n, constructs)
				}
				programs = append(programs, saved)
			}
			if total < len(programs) {
				t.Errorf("%d programs have %d constructs", len(programs), total)
			}
			other := vktest.Open(t, v.options...)
			for seed, saved := range programs {
				differences, err := saved.Run(t.Context(), other)
				if err != nil || len(differences) > 0 {
					t.Fatalf("seed %d: %v, differences %v", seed, err, differences)
				}
			}
		})
	}
}

// What reaches the driver for replayed programs is ordered on any device: the order checker looks at all
// of it, through layers that show many queues and run commands in another order.
func TestReplayedRandomProgramsAreOrderedByTheDevice(t *testing.T) {
	vktest.Long(t)
	vktest.Layers(t, "record", "shuffle", "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
	for seed := range uint64(8) {
		folder := t.TempDir()
		t.Setenv("VKOMP_RECORD", filepath.Join(folder, "log-%d"))
		t.Setenv("VKOMP_MANYQUEUE_SEED", fmt.Sprint(seed))
		t.Setenv("VKOMP_SHUFFLE_SEED", fmt.Sprint(seed))
		o := vkomp.Options{MemoryPath: vkomp.MemoryNonCoherent}
		vktest.Debug(fmt.Sprint("placement=random,seed=", seed))(&o)
		rt, err := vkomp.Open(o)
		succeed(t, err)
		all, privates, _ := newProgram(seed)
		d, err := replayProgram(t.Context(), rt, newCompiledAffine(t, rt), replayable(all), privates, 1+int(seed%2), 20, seed%4 > 1)
		dispatches := rt.Stats().Dispatches
		succeed(t, err, rt.Close())
		if d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
		logs, err := filepath.Glob(filepath.Join(folder, "log-*"))
		succeed(t, err)
		if len(logs) != 1 {
			t.Fatalf("seed %d: logs %q, want one", seed, logs)
		}
		if checked := keptOrder(t, logs[0]).Sum().Launches; checked != dispatches || checked < 20 {
			t.Errorf("seed %d: %d launches were checked, of %d", seed, checked, dispatches)
		}
	}
}

// Successive kernels of a record are one task. What one kernel reads another has written, or is about to
// write, so that each barrier that is missing among them shows in the log or, through the layer that
// runs commands in another order, in the results.
func TestReplayedKernelsAreOrderedByTheDevice(t *testing.T) {
	vktest.Long(t)
	vktest.Layers(t, "record", "shuffle", "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
	const kernels, replays, arrays, length = 40, 10, 5, 128 // half an array can be bound on any device
	for seed := range uint64(8) {
		folder := t.TempDir()
		t.Setenv("VKOMP_RECORD", filepath.Join(folder, "log-%d"))
		t.Setenv("VKOMP_MANYQUEUE_SEED", fmt.Sprint(seed))
		t.Setenv("VKOMP_SHUFFLE_SEED", fmt.Sprint(seed))
		o := vkomp.Options{MemoryPath: vkomp.MemoryNonCoherent}
		vktest.Debug(fmt.Sprint("placement=random,seed=", seed))(&o)
		rt, err := vkomp.Open(o)
		succeed(t, err)
		k := newCompiledAffine(t, rt)
		rng := rand.New(rand.NewPCG(seed, 1))
		var got, want [arrays][]uint32
		var enter, exit []vkomp.Arg
		for i := range got {
			got[i], want[i] = indices(length), indices(length)
			enter, exit = append(enter, vkomp.To(got[i])), append(exit, vkomp.From(got[i]))
		}
		type launch struct {
			dst, src, lo, hi int
			factor           uint32
		}
		launches := make([]launch, kernels)
		for i := range launches {
			lo := rng.IntN(2) * length / 2
			launches[i] = launch{rng.IntN(arrays), rng.IntN(arrays), lo, lo + length/2, rng.Uint32N(9)}
		}
		if seed%2 == 0 {
			succeed(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: enter}))
		}
		var records vkomp.TaskgraphRecords
		tasks := rt.Stats().Tasks
		for range replays {
			succeed(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: &records, NoGroup: true}, func(ctx context.Context) error {
				for _, l := range launches {
					dst, src := got[l.dst], got[l.src]
					depend := []vkomp.Depend{vkomp.InOut(dst), vkomp.In(src)}
					if seed%2 == 0 { // storage that is absent is mapped as a whole
						dst, src = dst[l.lo:l.hi], src[l.lo:l.hi]
						depend = []vkomp.Depend{vkomp.InOut(dst), vkomp.In(src)}
					}
					if err := rt.Target(ctx, k.on(dst, src, 3, l.factor, 1, depend...)); err != nil {
						return err
					}
				}
				return nil
			}))
			for _, l := range launches {
				lo, hi := 0, length
				if seed%2 == 0 {
					lo, hi = l.lo, l.hi
				}
				for i := lo; i < hi; i++ {
					want[l.dst][i] = 3*want[l.dst][i] + l.factor*want[l.src][i] + 1
				}
			}
		}
		made := uint64(kernels + replays - 1)
		if seed%2 == 1 {
			made = kernels * replays
		}
		if n := rt.Stats().Tasks - tasks; n != made {
			t.Errorf("seed %d: %d tasks, want %d: one for each construct that is recorded, and one for each replay on storage that is present", seed, n, made)
		}
		succeed(t, rt.Taskwait(t.Context()))
		if seed%2 == 0 {
			succeed(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: exit}))
		}
		dispatches := rt.Stats().Dispatches
		succeed(t, rt.Close())
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("seed %d: array %d is %v, want %v", seed, i, got[i], want[i])
			}
		}
		logs, err := filepath.Glob(filepath.Join(folder, "log-*"))
		succeed(t, err)
		if len(logs) != 1 {
			t.Fatalf("seed %d: logs %q, want one", seed, logs)
		}
		if checked := keptOrder(t, logs[0]).Sum().Launches; checked != dispatches || checked < kernels*replays {
			t.Errorf("seed %d: %d launches were checked, of %d", seed, checked, dispatches)
		}
	}
}
