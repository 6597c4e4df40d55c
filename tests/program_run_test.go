package tests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// execution is a run of a program on a runtime.
type execution struct {
	rt *vkomp.Runtime
	k  affine
	*state
	// late counts the goroutines that complete detached bodies.
	late *sync.WaitGroup
}

// boundState is the state of a replay: see at.
var boundState vkomp.ParamVar[*state]

// at returns the execution whose state is that of the encounter to which a body's ctx belongs.
func (e *execution) at(ctx context.Context) *execution {
	bound := boundState.Get(ctx)
	if bound == nil {
		return e
	}
	return &execution{rt: e.rt, k: e.k, state: bound, late: e.late}
}

// run generates the steps in ctx's region and executes the generator's own actions.
func (e *execution) run(ctx context.Context, steps []*step) error {
	acc := uint32(0)
	for _, st := range steps {
		if err := e.step(ctx, st, &acc); err != nil {
			return err
		}
	}
	return nil
}

func (e *execution) step(ctx context.Context, st *step, acc *uint32) error {
	c := st.c + *acc
	switch st.kind {
	case hostStep:
		return e.host(ctx, st, c)
	case nestStep:
		return e.rt.Task(ctx, e.nest(st, c))
	case groupStep:
		// The steps have their own accumulator, as in the sequential run.
		return e.rt.Taskgroup(ctx, func(ctx context.Context) error { return e.run(ctx, st.steps) })
	case regionStep:
		mapped := e.arrays[mappedArray]
		return e.rt.TargetData(ctx, vkomp.TargetData{
			Maps: []vkomp.Arg{vkomp.ToFrom(mapped)}, Depend: []vkomp.Depend{vkomp.InOut(mapped)}, NoWait: !st.undeferred,
		}, func(ctx context.Context) error { return e.run(ctx, st.steps) })
	case targetStep:
		target := e.k.on(e.slice(st.dst), e.slice(st.src), st.mul, st.fac, c)
		target.NoWait, target.Priority = !st.undeferred, st.priority
		target.If = vkomp.If(!st.onHost)
		if target.DependArgs = st.derive; !st.derive {
			target.Depend = e.depend(st.items)
		}
		return e.rt.Target(ctx, target)
	case waitStep:
		if err := e.rt.Taskwait(ctx); err != nil {
			return err
		}
		for _, a := range st.areas {
			e.scramble(a, c)
		}
	case waitOnStep:
		if err := e.rt.Taskwait(ctx, e.depend(st.items)...); err != nil {
			return err
		}
		*acc = e.after(st, *acc)
	case joinStep:
		return e.join(ctx, st, c)
	}
	return nil
}

func (e *execution) host(ctx context.Context, st *step, c uint32) error {
	task := vkomp.Task{
		Depend: e.depend(st.items), If: vkomp.If(!st.undeferred), Final: st.final, Mergeable: st.mergeable, Priority: st.priority,
		Body: func(ctx context.Context) error {
			s := e.at(ctx)
			s.write(st, s.read(st.items, c))
			return nil
		},
	}
	if st.detach == 0 {
		return e.rt.Task(ctx, task)
	}
	var event vkomp.Event
	task.Detach = &event
	switch {
	case st.detach == 1 && !st.undeferred:
		// The generator fulfills the event, before or after the body has run.
		if err := e.rt.Task(ctx, task); err != nil {
			return err
		}
		return event.Fulfill()
	case st.detach == 2:
		task.Body = func(context.Context) error {
			e.write(st, e.read(st.items, c))
			return event.Fulfill()
		}
	default:
		task.Body = func(context.Context) error {
			c := e.read(st.items, c)
			e.late.Go(func() {
				e.write(st, c)
				if err := event.Fulfill(); err != nil {
					panic(err)
				}
			})
			return nil
		}
	}
	return e.rt.Task(ctx, task)
}

// nest returns a task that waits for its descendants, unless it exports them.
func (e *execution) nest(st *step, c uint32) vkomp.Task {
	return vkomp.Task{
		Depend: e.depend(st.items), If: vkomp.If(!st.undeferred), Final: st.final, Mergeable: st.mergeable,
		Transparent: st.transparent, Priority: st.priority,
		Body: func(ctx context.Context) error {
			e := e.at(ctx)
			e.write(st, c)
			if st.transparent != vkomp.NotImpex {
				return e.run(ctx, st.steps)
			}
			return e.rt.Taskgroup(ctx, func(ctx context.Context) error { return e.run(ctx, st.steps) })
		},
	}
}

func (e *execution) join(ctx context.Context, st *step, c uint32) error {
	private, dst, token := e.private[st.private], e.slice(st.dst), e.tokens[st.private]
	written, last, next := token[:1], token[1:2], token[2:]
	generate := func(byTarget bool, dst []uint32, mul, fac uint32, depend ...vkomp.Depend) error {
		if byTarget {
			return e.rt.Target(ctx, e.k.on(dst, private, mul, fac, c, depend...))
		}
		own := mul == 0
		return e.rt.Task(ctx, vkomp.Task{Depend: depend, Body: func(ctx context.Context) error {
			s := e.at(ctx)
			private := s.private[st.private]
			dst := private
			if !own {
				dst = s.slice(st.dst)
			}
			affineOnHost(dst, private, mul, fac, c)
			return nil
		}})
	}
	if err := e.rt.TaskwaitNoWait(ctx, vkomp.In(last), vkomp.Out(next)); err != nil {
		return err
	}
	if err := generate(st.byTarget[0], private, 0, 0, vkomp.In(next), vkomp.Out(private)); err != nil {
		return err
	}
	if err := e.rt.TaskwaitNoWait(ctx, vkomp.In(private), vkomp.Out(written)); err != nil {
		return err
	}
	return generate(st.byTarget[1], dst, 3, 5, vkomp.In(written), vkomp.Out(last), vkomp.InOut(dst))
}

// execute runs a program and returns its result.
func execute(rt *vkomp.Runtime, k affine, steps []*step, privates int) (*state, error) {
	e := &execution{rt: rt, k: k, state: newState(privates), late: new(sync.WaitGroup)}
	err := rt.Taskgroup(context.Background(), func(ctx context.Context) error { return e.run(ctx, steps) })
	err = errors.Join(err, rt.Taskwait(context.Background()))
	e.late.Wait()
	return e.state, err
}

func (s *state) difference(want *state) string {
	for a := range s.arrays {
		for i, v := range s.arrays[a] {
			if w := want.arrays[a][i]; v != w {
				return fmt.Sprintf("array %d, tile %d, element %d is %d, want %d", a, i/tile, i%tile, v, w)
			}
		}
	}
	for p := range s.private {
		if !slices.Equal(s.private[p], want.private[p]) {
			return fmt.Sprintf("private storage %d is %d, want %d", p, s.private[p][0], want.private[p][0])
		}
	}
	return ""
}

// A program mixes tasks of all kinds. Its result depends neither on the number of threads nor on
// where target tasks run, nor on the way that the scheduler takes with them.
func TestRandomProgramsHaveOneResult(t *testing.T) {
	vktest.LongConcurrent(t)
	variants := []struct {
		name    string
		options []func(*vkomp.Options)
		// Of all seeds, those with seed%every == rest run here.
		every, rest uint64
	}{
		{"1 thread", []func(*vkomp.Options){environment("OMP_NUM_THREADS", "1", "OMP_MAX_TASK_PRIORITY", "3")}, 2, 0},
		{"8 threads", []func(*vkomp.Options){environment("OMP_NUM_THREADS", "8", "OMP_MAX_TASK_PRIORITY", "3")}, 1, 0},
		{"1 thread, staging", []func(*vkomp.Options){vktest.Staging, environment("OMP_NUM_THREADS", "1")}, 4, 1},
		{"8 threads, staging", []func(*vkomp.Options){vktest.Staging, environment("OMP_NUM_THREADS", "8")}, 4, 1},
		// The other variants run these programs with resident tasks, where that is possible.
		{"8 threads, general", []func(*vkomp.Options){vktest.Debug("path=general"), environment("OMP_NUM_THREADS", "8")}, 4, 3},
		{"1 thread, initial device", []func(*vkomp.Options){vktest.Host, environment("OMP_NUM_THREADS", "1")}, 4, 2},
		{"8 threads, initial device", []func(*vkomp.Options){vktest.Host, environment("OMP_NUM_THREADS", "8")}, 4, 2},
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			rt := vktest.Open(t, v.options...)
			k := newAffine(t, rt)
			for seed := range uint64(programSeeds) {
				if seed%v.every != v.rest {
					continue
				}
				steps, privates, _ := newProgram(seed)
				want := newState(privates)
				want.run(steps)
				got, err := execute(rt, k, steps, privates)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if d := got.difference(want); d != "" {
					t.Fatalf("seed %d: %s", seed, d)
				}
			}
			if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
				t.Errorf("%d storage and %d staging allocations left", s.Storage.Allocations, s.Staging.Allocations)
			}
			if tasks := rt.Graph().Tasks; len(tasks) != 0 {
				t.Errorf("%d tasks left in the graph, the first is %+v", len(tasks), tasks[0])
			}
			runtime.GC()
		})
	}
}

func TestRandomProgramsMakeEveryKindOfConstruct(t *testing.T) {
	made := make(map[string]int)
	for seed := range uint64(100) {
		_, _, kinds := newProgram(seed)
		for kind, n := range kinds {
			made[kind] += n
		}
	}
	for _, kind := range []string{
		"in", "out", "inout", "mutexinoutset", "inoutset", "all memory", "detach", "merged", "undeferred", "final",
		"exporting", "window", "taskgroup", "taskwait", "taskwait depend", "join", "target data", "DependArgs",
		"target out", "target inout", "target mutexinoutset", "target inoutset",
	} {
		if made[kind] < 10 {
			t.Errorf("%d times %s in 100 programs", made[kind], kind)
		}
	}
}
