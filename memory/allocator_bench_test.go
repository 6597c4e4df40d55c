package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/timeline"
)

func BenchmarkAllocateFree(b *testing.B) {
	for _, size := range []uint64{256, 4096, 1 << 20} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			a := newAllocator(b, &fakeHeap{}, AllocatorOptions{})
			fence := allocate(b, a, 1)
			lastUse := timeline.NewFrontier(timeline.Point{Queue: 1, Value: 9})
			b.ReportAllocs()
			for b.Loop() {
				s, _ := a.Allocate(size)
				a.Free(&s, lastUse)
			}
			free(b, a, fence)
		})
	}
}

// Churn of mixed sizes at a steady number of live allocations. The metric reserved
// is the heap's peak in bytes divided by the peak of live bytes.
func BenchmarkChurn(b *testing.B) {
	for _, live := range []int{64, 1000, 10_000} {
		b.Run(fmt.Sprint("live=", live), func(b *testing.B) {
			a := newAllocator(b, &fakeHeap{}, AllocatorOptions{})
			random := rand.New(rand.NewPCG(1, 2))
			lastUse := timeline.NewFrontier(timeline.Point{Queue: 1, Value: 9})
			storages := make([]Storage, live)
			size := func() uint64 { return 256 << random.UintN(13) * (4 + random.Uint64N(4)) / 4 }
			for i := range storages {
				storages[i] = allocate(b, a, size())
			}
			b.ReportAllocs()
			for b.Loop() {
				i := random.IntN(live)
				a.Free(&storages[i], lastUse)
				storages[i], _ = a.Allocate(size())
			}
			s := a.Stats()
			b.ReportMetric(float64(s.PeakBlockBytes)/float64(s.PeakLiveBytes), "reserved/live")
		})
	}
}

// A large program's number of live allocations, their sizes log-uniform from 256
// bytes to 1 MiB. Each iteration frees one and allocates another. Sizes and order
// are drawn beforehand.
func BenchmarkAllocateFreeAmong10000(b *testing.B) {
	const live = 10_000
	random := rand.New(rand.NewPCG(1, 2))
	sizes, order := make([]uint64, 1<<16), make([]int32, 1<<16)
	for i := range sizes {
		sizes[i] = uint64(256*math.Exp2(12*random.Float64())) &^ 3
		order[i] = random.Int32N(live)
	}
	for _, alignment := range []uint64{64, 256} {
		b.Run(fmt.Sprint("alignment=", alignment), func(b *testing.B) {
			a := newAllocator(b, &fakeHeap{}, AllocatorOptions{Alignment: alignment})
			lastUse := timeline.NewFrontier(timeline.Point{Queue: 0, Value: 9})
			storages := make([]Storage, live)
			for i := range storages {
				storages[i] = allocate(b, a, sizes[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := order[i&(1<<16-1)]
				if err := a.Free(&storages[at], lastUse); err != nil {
					b.Fatal(err)
				}
				var err error
				if storages[at], err = a.Allocate(sizes[(i+live)&(1<<16-1)]); err != nil {
					b.Fatal(err)
				}
			}
			s := a.Stats()
			b.ReportMetric(float64(s.PeakBlockBytes)/float64(s.PeakLiveBytes), "reserved/live")
			b.ReportMetric(s.Fragmentation, "fragmentation")
		})
	}
}

func TestAllocateAndFreeAllocateNothing(t *testing.T) {
	a := newAllocator(t, &fakeHeap{}, AllocatorOptions{})
	fence := allocate(t, a, 1)
	lastUse := timeline.NewFrontier(timeline.Point{Queue: 0, Value: 3}, timeline.Point{Queue: 1, Value: 9})
	if n := testing.AllocsPerRun(100, func() {
		x, err := a.Allocate(1000)
		if err != nil {
			t.Fatal(err)
		}
		y, err := a.Allocate(70_000)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Free(&x, lastUse); err != nil {
			t.Fatal(err)
		}
		if err := a.Free(&y, lastUse); err != nil {
			t.Fatal(err)
		}
	}); n != 0 && !invariants.Enabled {
		t.Errorf("allocating and freeing storage allocates %v Go objects", n)
	}
	free(t, a, fence)
}
