package host

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// poolTick is a job that does nothing but signal when the last job of a window has run.
type poolTick struct {
	left atomic.Int64
	done chan struct{}
}

func (j *poolTick) Run() {
	if j.left.Add(-1) == 0 {
		j.done <- struct{}{}
	}
}

// BenchmarkPoolSubmitRun has one producer that is at most window jobs ahead of the pool. The
// metric goroutines/op is the share of jobs for which a goroutine was started.
func BenchmarkPoolSubmitRun(b *testing.B) {
	for _, places := range []int{1, 2, 8} {
		for _, window := range []int{1, 256} {
			b.Run(fmt.Sprintf("places=%d/window=%d", places, window), func(b *testing.B) {
				benchmarkPoolSubmit(b, NewPool(places), window, 0)
			})
		}
	}
}

// BenchmarkPoolSubmitRunRanked submits jobs of a priority other than 0, which are in a queue of
// their own.
func BenchmarkPoolSubmitRunRanked(b *testing.B) {
	benchmarkPoolSubmit(b, NewPool(2), 256, 1)
}

func benchmarkPoolSubmit(b *testing.B, p *Pool, window, priority int) {
	tick := &poolTick{done: make(chan struct{}, 1)}
	b.ReportAllocs()
	for left := b.N; left > 0; left -= window {
		n := min(window, left)
		tick.left.Store(int64(n))
		for range n {
			p.Submit(tick, priority)
		}
		<-tick.done
	}
	b.ReportMetric(float64(p.stats().Hired)/float64(b.N), "goroutines/op")
}

// BenchmarkPoolSubmitParallel has several producers on one pool. An operation is a window of
// 256 jobs.
func BenchmarkPoolSubmitParallel(b *testing.B) {
	p := NewPool(2)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		tick := &poolTick{done: make(chan struct{}, 1)}
		for pb.Next() {
			tick.left.Store(256)
			for range 256 {
				p.Submit(tick, 0)
			}
			<-tick.done
		}
	})
}

// BenchmarkPoolLeaveReturn has a body that leaves its place and takes it again, with nobody
// else waiting.
func BenchmarkPoolLeaveReturn(b *testing.B) {
	p := NewPool(1)
	p.Return()
	b.ReportAllocs()
	for b.Loop() {
		p.Leave()
		p.Return()
	}
	p.Leave()
}

// BenchmarkPoolYield has two bodies that pass one place to each other.
func BenchmarkPoolYield(b *testing.B) {
	p := NewPool(1)
	b.ReportAllocs()
	var bodies sync.WaitGroup
	for range 2 {
		bodies.Add(1)
		p.Submit(poolFunc(func() {
			defer bodies.Done()
			for range b.N / 2 {
				p.Yield()
			}
		}), 0)
	}
	bodies.Wait()
}

// BenchmarkPoolNesting has b.N bodies of which each waits for the next. The cost of a level
// must not grow with the depth.
func BenchmarkPoolNesting(b *testing.B) {
	for _, depth := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			p := NewPool(1)
			b.ReportAllocs()
			for left := b.N; left > 0; left -= depth {
				runNested(p, min(depth, left))
			}
		})
	}
}
