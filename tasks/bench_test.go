package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// placedAtOnce is the runner of a device that places a task as soon as it starts, and completes
// it when it is told to.
type placedAtOnce struct{}

func (placedAtOnce) Start(n *Node, w *Work) { n.Placed(w) }

func (placedAtOnce) Recycle() {}

// workload is a sequence of tasks, for measuring the engine alone.
type workload struct {
	name string
	// items appends the depend items of task i.
	items func(i int, items []Depend) []Depend
	// lap, if not 0, is the number of tasks after which the sequence begins again, behind a
	// Wait.
	lap int
	// prefill leaves tasks in flight, and drain completes them.
	prefill func(s *Scope, w *Work) (drain func())
}

// lane returns n cells of 8 bytes.
func lane(n int) []uint64 { return make([]uint64, n) }

func cell(kind DependKind, x *uint64) Depend {
	return Depend{Kind: kind, Ptr: unsafe.Pointer(x), Size: 8}
}

func long(kind DependKind, x []uint64) Depend {
	return Depend{Kind: kind, Ptr: unsafe.Pointer(&x[0]), Size: 8 * uint64(len(x))}
}

const (
	stencilWidth = 64
	stencilSteps = 2000
)

// stencilRows is a one-dimensional stencil: a task reads three cells of the row before and
// writes one of its own. There are so many rows, used by turns.
func stencilRows(rows int) func(int, []Depend) []Depend {
	cells := lane(rows * (stencilWidth + 2))
	row := func(k int) []uint64 {
		k %= rows
		return cells[k*(stencilWidth+2) : (k+1)*(stencilWidth+2)]
	}
	return func(i int, items []Depend) []Depend {
		step, x := i/stencilWidth, i%stencilWidth
		from, to := row(step), row(step+1)
		for k := range 3 {
			items = append(items, cell(DependIn, &from[x+k]))
		}
		return append(items, cell(DependOut, &to[x+1]))
	}
}

// longSlices is the number of long slices among the addresses of distinct.
const longSlices = 300

// slice returns the k-th of the long slices of cells.
func slice(cells []uint64, k int) []uint64 {
	n := min(longSlices, len(cells)/16)
	width := len(cells) / n
	k %= n
	return cells[k*width : (k+1)*width]
}

// distinct uses one cell after the other. Every so often a task reads a long slice of them.
func distinct(cells []uint64, kind DependKind) func(int, []Depend) []Depend {
	return func(i int, items []Depend) []Depend {
		if i%997 == 996 {
			return append(items, long(DependIn, slice(cells, i/997)))
		}
		return append(items, cell(kind, &cells[i%len(cells)]))
	}
}

func workloads() []workload {
	x := new(uint64)
	random := lane(1024)
	choices := rand.New(rand.NewPCG(1, 2))
	sources := make([][4]int, 8192)
	for i := range sources {
		for k := range sources[i] {
			sources[i][k] = choices.IntN(len(random))
		}
	}
	fan := lane(256)
	shared := lane(1024)
	few, many := lane(1000), lane(2_000_000)
	return []workload{
		{name: "chain", items: func(_ int, items []Depend) []Depend {
			return append(items, cell(DependInOut, x))
		}},
		{name: "stencil two rows", items: stencilRows(2)},
		{name: "stencil distinct addresses", items: stencilRows(stencilSteps), lap: stencilWidth * stencilSteps},
		{name: "random four predecessors", items: func(i int, items []Depend) []Depend {
			for _, k := range sources[i%len(sources)] {
				items = append(items, cell(DependIn, &random[k]))
			}
			return append(items, cell(DependOut, &random[i%len(random)]))
		}},
		{name: "fan", items: func(i int, items []Depend) []Depend {
			k := i % (len(fan) + 1)
			if k == len(fan) {
				return append(items, cell(DependOut, x))
			}
			return append(items, cell(DependIn, x), cell(DependOut, &fan[k]))
		}},
		{name: "mutexinoutset", items: func(_ int, items []Depend) []Depend {
			return append(items, cell(DependMutexInOutSet, x))
		}},
		{name: "inoutset", items: func(_ int, items []Depend) []Depend {
			return append(items, cell(DependInOutSet, x))
		}},
		{name: "sets of 200", items: func(i int, items []Depend) []Depend {
			return append(items, cell([...]DependKind{DependIn, DependInOutSet}[i/200%2], x))
		}},
		{name: "overlapping windows", items: func(i int, items []Depend) []Depend {
			at := 3 * i % (len(shared) - 16)
			if i%2 == 0 {
				return append(items, long(DependIn, shared[at:at+16]))
			}
			return append(items, long(DependInOut, shared[at:at+8]))
		}},
		{name: "1000 addresses", items: distinct(few, DependOut)},
		{name: "2000000 addresses", items: distinct(many, DependOut)},
		{name: "2000000 addresses under held slices", items: distinct(many, DependIn), prefill: func(s *Scope, w *Work) func() {
			return holdSlices(s, w, many)
		}},
	}
}

// holdSlices leaves readers in flight of all long slices, and of one cell in a hundred.
func holdSlices(s *Scope, w *Work, cells []uint64) (drain func()) {
	var nodes []*Node
	hold := func(d Depend) {
		n, err := s.Add(&Task{Runner: held{}, Depend: []Depend{d}}, w)
		if err == nil {
			nodes = append(nodes, n)
		}
		w.Run()
	}
	for k := range longSlices {
		hold(long(DependIn, slice(cells, k)))
	}
	for i := 0; i < len(cells); i += 100 {
		hold(cell(DependIn, &cells[i]))
	}
	return func() {
		for _, n := range nodes {
			n.Complete(nil, w)
		}
		w.Run()
	}
}

// benchWindow is the number of tasks in flight.
const benchWindow = 256

// window completes a task when so many later ones have been generated, or as soon after that as
// its predecessors let it start.
type window struct {
	started []*Node
	head    int
}

func (r *window) Start(n *Node, _ *Work) { r.started = append(r.started, n) }

func (*window) Recycle() {}

// pace completes tasks in the order of their starts, until at most limit are not complete.
func (r *window) pace(live, limit int, w *Work) int {
	for live > limit && r.head < len(r.started) {
		n := r.started[r.head]
		r.head++
		if r.head == len(r.started) {
			r.started, r.head = r.started[:0], 0
		} else if r.head >= 4096 {
			r.started, r.head = r.started[:copy(r.started, r.started[r.head:])], 0
		}
		n.Complete(nil, w)
		w.Run()
		live--
	}
	return live
}

// drive generates the tasks of a workload and completes them.
type drive struct {
	load   workload
	scope  *Scope
	work   Work
	inline bool
	window window
	items  []Depend
	live   int
	made   int
}

func newDrive(load workload, inline bool) *drive {
	var g Graph
	g.JoinSets(joinSet(func(*Node) {}))
	return &drive{load: load, scope: g.NewScope(), inline: inline, items: make([]Depend, 0, 8)}
}

func (d *drive) task() error {
	i := d.made
	if d.load.lap > 0 && i > 0 && i%d.load.lap == 0 {
		d.drain()
	}
	d.made++
	d.items = d.load.items(i, d.items[:0])
	t := Task{Runner: instant{}, Depend: d.items}
	if !d.inline {
		t.Runner = &d.window
	}
	if _, err := d.scope.Add(&t, &d.work); err != nil {
		return err
	}
	d.work.Run()
	if !d.inline {
		d.live = d.window.pace(d.live+1, benchWindow, &d.work)
	}
	return nil
}

func (d *drive) drain() {
	d.live = d.window.pace(d.live, 0, &d.work)
}

// tasksBuilt keeps the compiler from dropping what BenchmarkEngine's harness computes.
var tasksBuilt uint64

// harness does what task does, but for the calls of the engine.
func (d *drive) harness() {
	i := d.made
	if d.load.lap > 0 && i > 0 && i%d.load.lap == 0 {
		tasksBuilt++
	}
	d.made++
	d.items = d.load.items(i, d.items[:0])
	t := Task{Runner: instant{}, Depend: d.items}
	tasksBuilt += use(&t)
}

//go:noinline
func use(t *Task) uint64 { return uint64(len(t.Depend)) }

// BenchmarkEngine measures the dependence engine alone, on one goroutine, from the generation
// of a task to its completion. In inline each task runs as soon as it is ready; in window it is
// completed 256 tasks later. harness is the part of these that is not the engine's.
func BenchmarkEngine(b *testing.B) {
	for _, load := range workloads() {
		b.Run(load.name+"/harness", func(b *testing.B) {
			d := newDrive(load, true)
			for b.Loop() {
				d.harness()
			}
		})
		for _, inline := range []bool{true, false} {
			mode := "window"
			if inline {
				mode = "inline"
			}
			b.Run(fmt.Sprintf("%s/%s", load.name, mode), func(b *testing.B) {
				b.ReportAllocs()
				d := newDrive(load, inline)
				drainHeld := func() {}
				if load.prefill != nil {
					drainHeld = load.prefill(d.scope, &d.work)
				}
				// The engine is measured in its steady state, with nodes, locations and tables
				// allocated.
				for range 4 * benchWindow {
					if err := d.task(); err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					if err := d.task(); err != nil {
						b.Fatal(err)
					}
				}
				d.drain()
				drainHeld()
				if err := d.scope.Wait(context.Background(), nil); err != nil || remembered(d.scope) != 0 {
					b.Errorf("%v, %d locations remembered at rest", err, remembered(d.scope))
				}
			})
		}
	}
}

// BenchmarkEngineDevice has a device that places a task when it starts and completes it 256
// tasks later.
func BenchmarkEngineDevice(b *testing.B) {
	x := new(uint64)
	for _, load := range []workload{
		{name: "chain", items: func(_ int, items []Depend) []Depend { return append(items, cell(DependInOut, x)) }},
		{name: "stencil two rows", items: stencilRows(2)},
		{name: "mutexinoutset", items: func(_ int, items []Depend) []Depend {
			return append(items, cell(DependMutexInOutSet, x))
		}},
	} {
		b.Run(load.name, func(b *testing.B) {
			b.ReportAllocs()
			d := newDeviceDrive(load)
			for b.Loop() {
				if err := d.task(); err != nil {
					b.Fatal(err)
				}
			}
			d.drain()
		})
	}
}

// deviceDrive is a drive whose tasks are all of one device, and complete in the order of their
// generation.
type deviceDrive struct {
	load   workload
	scope  *Scope
	work   Work
	flying [benchWindow]*Node
	items  []Depend
	made   int
}

func newDeviceDrive(load workload) *deviceDrive {
	var g Graph
	return &deviceDrive{load: load, scope: g.NewScope(), items: make([]Depend, 0, 8)}
}

func (d *deviceDrive) task() error {
	at := &d.flying[d.made%benchWindow]
	if *at != nil {
		(*at).Complete(nil, &d.work)
	}
	d.items = d.load.items(d.made, d.items[:0])
	n, err := d.scope.Add(&Task{Domain: 1, Runner: placedAtOnce{}, Depend: d.items}, &d.work)
	d.work.Run()
	*at = n
	d.made++
	return err
}

func (d *deviceDrive) drain() {
	for range benchWindow {
		if at := &d.flying[d.made%benchWindow]; *at != nil {
			(*at).Complete(nil, &d.work)
			*at = nil
		}
		d.made++
	}
	d.work.Run()
}
