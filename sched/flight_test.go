//go:build !race

package sched

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/vkomp/vkomp/memory"
)

// The device completes nothing until all tasks of a round have been generated, so that each round
// has as many tasks in flight, in as many batches, as the one before. Nothing of what they need is
// made anew, whatever their number is and however many queues they cross. Under the race detector
// pools drop memory at random, so there is no such test.
func TestTasksOfASlowDeviceAllocateNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, tasks := range []int{64, 2000} {
		for _, queues := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d tasks on %d queues", tasks, queues), func(t *testing.T) {
				r, d := newLatchRig(t)
				defer r.close()
				const width = 8
				var cells [width][]uint32
				var all, release []arg
				var steps []*Region
				for k := range cells {
					cells[k] = filled(64, 0)
					all = append(all, to(cells[k]))
					release = append(release, arg{s: cells[k], kind: memory.MapRelease})
				}
				r.run(launch{label: "enter", enter: all, included: true})
				for k, x := range cells {
					y, z := cells[(k+1)%width], cells[(k+3)%width]
					steps = append(steps, r.region(launch{label: "cell", kernel: "mix", args: []arg{alloc(x), alloc(y), alloc(z)}, in: [][]uint32{y, z}, out: [][]uint32{x}}))
				}
				batches := 0
				round := func() {
					d.set(false)
					for i := range tasks {
						r.use(i % queues)
						if err := r.s.Run(t.Context(), steps[i%width]); err != nil {
							t.Fatal(err)
						}
					}
					r.s.mu.Lock()
					batches = 0
					for _, q := range r.s.order.All() {
						batches += len(q.InFlight())
					}
					r.s.mu.Unlock()
					d.set(true)
					r.taskwait()
				}
				for range 4 {
					round()
				}
				// Other goroutines may allocate now and then, and the batches may be more than in any
				// round before. What tasks need each time, they need in every round.
				least := 1e9
				for try := 0; try < 10 && least > 0.1; try++ {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					round()
					runtime.ReadMemStats(&after)
					least = min(least, float64(after.Mallocs-before.Mallocs)/float64(tasks))
				}
				if least > 0.1 {
					t.Errorf("%.2f allocations a task, with %d batches in flight", least, batches)
				}
				r.use(0)
				r.run(launch{label: "exit", exit: release, included: true})
			})
		}
	}
}
