package sched

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// latchDevice takes submissions and runs nothing. While it is open, all of them are complete.
type latchDevice struct {
	*fakeDevice
	mu      sync.Mutex
	changed *sync.Cond
	open    bool
	// submitted and done are the values of the queues.
	submitted, done []uint64
}

func (d *latchDevice) Submit(queue int, _ *vk.Stream, _ []timeline.Point, _ order.Foreign, signal uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.submitted[queue] = signal
	return nil
}

func (d *latchDevice) Completed(queue int) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open {
		d.done[queue] = d.submitted[queue]
	}
	return d.done[queue], nil
}

func (d *latchDevice) Wait(queue int, value uint64, _ time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.open && d.done[queue] < value {
		d.changed.Wait()
	}
	return true, nil
}

func (d *latchDevice) set(open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(d.done, d.submitted)
	d.open = open
	d.changed.Broadcast()
}

// newLatchRig returns a rig on a device with several queues, which is open.
func newLatchRig(t reporter) (*rig, *latchDevice) {
	d := &latchDevice{fakeDevice: newFakeDeviceWith(t, manyQueues, unifiedMemory, 1), open: true,
		submitted: make([]uint64, len(manyQueues)), done: make([]uint64, len(manyQueues))}
	d.changed = sync.NewCond(&d.mu)
	s, err := New(d, Options{Domain: rigDomain, Sharing: ShareNothing})
	if err != nil {
		t.Fatal(err)
	}
	s.intake.many = 0
	r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"mix": loadKernel(t, "mix"), "add": loadKernel(t, "add")}}
	r.scope = r.graph.NewScope()
	r.compile()
	return r, d
}

// BenchmarkManyInFlight generates the tasks of a stencil that crosses between queues, so many
// of them before any is complete. What a task costs must not depend on that number. The metric
// batches/op is the number of batches in flight for each task.
func BenchmarkManyInFlight(b *testing.B) {
	for _, tasks := range []int{1000, 4000, 16000} {
		b.Run(fmt.Sprint("tasks=", tasks), func(b *testing.B) {
			r, d := newLatchRig(b)
			const width = 8
			var fields [2][width][]uint32
			var all []arg
			for i := range fields {
				for k := range fields[i] {
					fields[i][k] = filled(64, 0)
					all = append(all, to(fields[i][k]))
				}
			}
			r.run(launch{label: "enter", enter: all, included: true})
			step := func(i int) {
				from, out := &fields[i/width%2], fields[1-i/width%2][i%width]
				x, y := from[i%width], from[(i+1)%width]
				g := r.region(launch{label: "cell", kernel: "mix", args: []arg{alloc(out), alloc(x), alloc(y)}, in: [][]uint32{x, y}, out: [][]uint32{out}})
				g.Range[0] = 1 << 17 // worth a queue of its own
				if err := r.s.Run(b.Context(), g); err != nil {
					b.Fatal(err)
				}
			}
			batches := 0
			b.ResetTimer()
			for left := b.N; left > 0; left -= tasks {
				d.set(false)
				for i := range min(left, tasks) {
					step(i)
				}
				b.StopTimer()
				r.s.mu.Lock()
				for _, q := range r.s.order.All() {
					batches += len(q.InFlight())
				}
				r.s.mu.Unlock()
				b.StartTimer()
				d.set(true)
				r.taskwait()
			}
			b.StopTimer()
			b.ReportMetric(float64(batches)/float64(b.N), "batches/op")
			r.run(launch{label: "exit", exit: all, included: true})
			r.close()
		})
	}
}

// BenchmarkWholeAfterTiles generates tasks on a whole block behind tasks on so many parts of
// it.
func BenchmarkWholeAfterTiles(b *testing.B) {
	const tile, wait = 16, 1000
	for _, tiles := range []int{0, 500} {
		b.Run(fmt.Sprint("tiles=", tiles), func(b *testing.B) {
			r, d := newLatchRig(b)
			x := filled(tile*500, 0)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			add := func(part []uint32) {
				r.run(launch{label: "part", kernel: "add", args: []arg{alloc(part)}, constant: 1, out: [][]uint32{x}})
			}
			d.set(false)
			for part := range slices.Chunk(x[:tile*tiles], tile) {
				add(part)
			}
			b.ResetTimer()
			for left := b.N; left > 0; left -= wait {
				for range min(left, wait) {
					add(x)
				}
				d.set(true)
				r.taskwait()
				d.set(false)
			}
			b.StopTimer()
			d.set(true)
			r.run(launch{label: "exit", exit: []arg{to(x)}, included: true})
			r.close()
		})
	}
}
