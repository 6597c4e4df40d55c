package main

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp"
)

func benchJoin(b *bench) error {
	x := make([]uint32, 64)
	return b.taskFigures("join", b.tasks, func() error {
		for range b.tasks {
			if err := b.rt.TaskwaitNoWait(b.ctx, vkomp.InOut(x)); err != nil {
				return err
			}
		}
		return nil
	})
}

func benchHostTask(b *bench) error {
	x, sum := make([]uint32, 1), 0
	err := b.taskFigures("hosttask.chain", b.tasks, func() error {
		for range b.tasks {
			body := func(context.Context) error { sum++; return nil }
			if err := b.rt.Task(b.ctx, vkomp.Task{Body: body, Depend: []vkomp.Depend{vkomp.InOut(x)}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := benchCheck("the sum", sum, b.tasks*b.runs()); err != nil {
		return err
	}
	return b.taskFigures("hosttask.independent", b.tasks, func() error {
		for range b.tasks {
			if err := b.rt.Task(b.ctx, vkomp.Task{Body: func(context.Context) error { return nil }}); err != nil {
				return err
			}
		}
		return nil
	})
}

func benchEdge(b *bench) error {
	n := max(b.tasks/10, 1)
	x, sum := make([]uint32, 64), 0
	err := b.present([]vkomp.Arg{vkomp.To(x)}, []vkomp.Arg{vkomp.From(x)}, func() error {
		return b.taskFigures("edge.target_host_pair", n, func() error {
			for range n {
				if err := b.increment(b.ctx, x); err != nil {
					return err
				}
				body := func(context.Context) error { sum++; return nil }
				if err := b.rt.Task(b.ctx, vkomp.Task{Body: body, Depend: []vkomp.Depend{vkomp.InOut(x)}}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := benchCheck("x[0]", x[0], uint32(n*b.runs())); err != nil {
		return err
	}
	return benchCheck("the sum", sum, n*b.runs())
}

// benchGoroutines measures the creation of chains that wait for a host task until all is created, so that nothing
// else needs a processor: by one goroutine, and by two that create as many tasks together, in one task region or
// in regions of their own.
func benchGoroutines(b *bench) error {
	chains := [][]uint32{make([]uint32, 64), make([]uint32, 64)}
	maps := func(way func([]uint32) vkomp.Arg) []vkomp.Arg { return []vkomp.Arg{way(chains[0]), way(chains[1])} }
	tasks := 4 * b.tasks
	err := b.present(maps(vkomp.To[uint32]), maps(vkomp.From[uint32]), func() error {
		samples, err := b.alternate(b.creators(chains[:1], tasks, b.inGroup), b.creators(chains, tasks/2, b.inGroup), b.creators(chains, tasks/2, b.inTask))
		if err != nil {
			return err
		}
		for k, name := range []string{"1", "2", "2_regions"} {
			b.figure("goroutines."+name+".create", "task", tasks, benchCreate, samples[k], nil)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(benchCheck("the first chain", chains[0][0], uint32(2*tasks*b.runs())), benchCheck("the second chain", chains[1][0], uint32(tasks*b.runs())))
}

// inGroup calls body in a taskgroup of the current task, and inTask in one of an undeferred task.
func (b *bench) inGroup(body func(ctx context.Context) error) error {
	return b.rt.Taskgroup(b.ctx, body)
}

func (b *bench) inTask(body func(ctx context.Context) error) error {
	return b.rt.Task(b.ctx, vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
		return b.rt.Taskgroup(ctx, body)
	}})
}

// creators is a side on which each slice has a chain of that many tasks, created by a goroutine of its own in a
// region.
func (b *bench) creators(chains [][]uint32, tasks int, region func(body func(context.Context) error) error) benchSide {
	return func() (t benchTimes, err error) {
		errs, created := make([]error, len(chains)), make([]time.Duration, len(chains))
		var creating, all sync.WaitGroup
		creating.Add(len(chains))
		// The time begins when each goroutine has a processor, if there are as many: to wake one takes as long as
		// hundreds of tasks.
		var running atomic.Int32
		var start time.Time
		begin := sync.OnceFunc(func() { start = time.Now() })
		for k, x := range chains {
			all.Go(func() {
				errs[k] = region(func(ctx context.Context) error {
					defer creating.Done()
					running.Add(1)
					for running.Load() < int32(len(chains)) {
						runtime.Gosched()
					}
					begin()
					err := b.rt.Task(ctx, vkomp.Task{Body: func(context.Context) error {
						creating.Wait()
						return nil
					}, Depend: []vkomp.Depend{vkomp.Out(x)}})
					for i := 0; i < tasks && err == nil; i++ {
						err = b.increment(ctx, x)
					}
					created[k] = time.Since(start)
					return err
				})
			})
		}
		all.Wait()
		t.create = slices.Max(created)
		return t, errors.Join(errs...)
	}
}

// benchInFlight holds tasks back behind a host task: in one chain, in 1,024 chains, in as many of which each
// task also reads what the chain before its own writes, and in as many whose parts overlap what the host task
// names. It is measured once, since it takes seconds.
func benchInFlight(b *bench) error {
	const chains, elements = 1024, 64
	x, y := make([]uint32, elements), make([]uint32, chains*elements)
	enter := []vkomp.Arg{vkomp.To(x), vkomp.To(y)}
	err := b.present(enter, []vkomp.Arg{vkomp.From(x), vkomp.From(y)}, func() error {
		part := func(i int) []uint32 {
			at := (i + chains) % chains * elements
			return y[at : at+elements]
		}
		own := func(i int) []vkomp.Depend { return []vkomp.Depend{vkomp.InOut(part(i))} }
		parts := vkomp.Iterate(0, chains, 1, func(i int) vkomp.Depend { return vkomp.InOut(part(i)) })
		all := func(int) []uint32 { return x }
		chain := func(int) []vkomp.Depend { return []vkomp.Depend{vkomp.InOut(x)} }
		pairs := func(i int) []vkomp.Depend { return []vkomp.Depend{vkomp.In(part(i - 1)), vkomp.InOut(part(i))} }
		for _, f := range []struct {
			name  string
			gates []vkomp.Depend
			part  func(i int) []uint32
			items func(i int) []vkomp.Depend
		}{
			{"inflight.chain", chain(0), all, chain},
			{"inflight.independent", parts, part, own},
			{"inflight.two_items", parts, part, pairs},
			{"inflight.overlapping", []vkomp.Depend{vkomp.InOut(y)}, part, own},
		} {
			if err := b.inFlight(f.name, f.gates, f.part, f.items); err != nil {
				return err
			}
		}
		return b.collector("inflight.collector", chain(0), all, chain)
	})
	if err != nil {
		return err
	}
	first, want := make([]uint32, chains), make([]uint32, chains)
	for k := range chains {
		first[k], want[k] = y[k*elements], uint32(3*((b.held+chains-1-k)/chains))
	}
	return errors.Join(benchCheck("x[0]", x[0], uint32(2*b.held)), benchCheckAll("a chain", first, want))
}

// inFlight measures tasks with depend items, each on a part of its own, that are held back.
func (b *bench) inFlight(name string, gates []vkomp.Depend, part func(i int) []uint32, items func(i int) []vkomp.Depend) error {
	before, held := liveHeap(), 0.0
	created, drained, err := b.hold(gates, part, items, func() { held = liveHeap() - before })
	if err != nil {
		return err
	}
	n := float64(b.held)
	b.value(name+".heap", "bytes/task", held/n)
	b.value(name+".create", "ns/task", float64(created)/n)
	b.value(name+".drain", "ns/task", float64(drained)/n)
	return nil
}

// collector measures how much of the processors Go's garbage collector takes while such tasks are created
// and end. Collections that the bench asks for itself are before that.
func (b *bench) collector(name string, gates []vkomp.Depend, part func(i int) []uint32, items func(i int) []vkomp.Depend) error {
	liveHeap()
	before := collectorTime()
	created, drained, err := b.hold(gates, part, items, func() {})
	if err != nil {
		return err
	}
	processors := (created + drained).Seconds() * float64(runtime.GOMAXPROCS(0))
	b.value(name, benchPercent, 100*(collectorTime()-before)/processors)
	return nil
}

// collectorTime returns the seconds of processors that the collections that have ended took from the program.
func collectorTime() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64() - s[1].Value.Float64()
}

// hold creates tasks behind one that is held back, calls between, and lets them go. It returns how long
// creation and the end took.
func (b *bench) hold(gates []vkomp.Depend, part func(i int) []uint32, items func(i int) []vkomp.Depend, between func()) (created, drained time.Duration, err error) {
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	body := func(context.Context) error { <-gate; return nil }
	if err := b.rt.Task(b.ctx, vkomp.Task{Body: body, Depend: gates}); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	for i := range b.held {
		if i%(1<<16) == 0 && b.sh.ctx.Err() != nil {
			return 0, 0, context.Cause(b.sh.ctx)
		}
		err := b.rt.Target(b.ctx, vkomp.Target{Kernel: b.kernels.inc.vkomp, Range: oneInvocation, NoWait: true,
			Args: []vkomp.Arg{vkomp.ToFrom(part(i)), vkomp.Value(uint32(0))}, Depend: items(i)})
		if err != nil {
			return 0, 0, err
		}
	}
	created = time.Since(start)
	between()
	start = time.Now()
	open()
	if err := b.rt.Taskwait(b.ctx); err != nil {
		return 0, 0, err
	}
	return created, time.Since(start), nil
}

// liveHeap returns the bytes of Go's heap that are reachable, without what pools keep for a while.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
