package tasks

import (
	"testing"
	"unsafe"
)

// placedAtOnce is a device that places a task as soon as it starts and
// completes it when told.
type placedAtOnce struct{}

func (placedAtOnce) Start(n *Node, w *Work) { n.Placed(w) }
func (placedAtOnce) Drop(*Node)             {}

// benchmarkTasks adds a task an iteration and completes it a window later.
func benchmarkTasks(b *testing.B, domain Domain, runner Runner, depend func(i int, items []Depend) []Depend) {
	b.ReportAllocs()
	const window = 256
	var g Graph
	s := g.NewScope()
	var w Work
	var flying [window]*Node
	items := make([]Depend, 0, 8)
	for i := 0; b.Loop(); i++ {
		items = depend(i, items[:0])
		if n := flying[i%window]; n != nil {
			n.Complete(nil, &w)
		}
		n, err := s.Add(Task{Domain: domain, Runner: runner, Depend: items}, &w)
		if err != nil {
			b.Fatal(err)
		}
		w.Run()
		flying[i%window] = n
	}
}

func BenchmarkChain(b *testing.B) {
	x := new(uint64)
	for _, kept := range []struct {
		name   string
		domain Domain
		runner Runner
	}{{"host", Host, held{}}, {"device", 1, placedAtOnce{}}} {
		b.Run(kept.name, func(b *testing.B) {
			benchmarkTasks(b, kept.domain, kept.runner, func(_ int, items []Depend) []Depend {
				return append(items, Depend{Kind: DependInOut, Ptr: unsafe.Pointer(x)})
			})
		})
	}
}

// BenchmarkStencil is a row of cells in two buffers: a task reads three cells of
// the one and writes one of the other.
func BenchmarkStencil(b *testing.B) {
	const width = 64
	var cells [2][width + 2]uint64
	for _, kept := range []struct {
		name   string
		domain Domain
		runner Runner
	}{{"host", Host, held{}}, {"device", 1, placedAtOnce{}}} {
		b.Run(kept.name, func(b *testing.B) {
			benchmarkTasks(b, kept.domain, kept.runner, func(i int, items []Depend) []Depend {
				from, to, x := &cells[i/width%2], &cells[1-i/width%2], i%width
				for k := range 3 {
					items = append(items, Depend{Kind: DependIn, Ptr: unsafe.Pointer(&from[x+k])})
				}
				return append(items, Depend{Kind: DependOut, Ptr: unsafe.Pointer(&to[x+1])})
			})
		})
	}
}
