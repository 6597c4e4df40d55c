package memory

import (
	"testing"

	"github.com/vkomp/vkomp/timeline"
)

func TestStatsTellFragmentation(t *testing.T) {
	const kib = 1 << 10
	a := newAllocator(t, &fakeHeap{}, AllocatorOptions{MinBlock: 1 << 20, MaxBlock: 1 << 20})
	if s := a.Stats(); s != (AllocatorStats{}) {
		t.Fatalf("an unused allocator has %+v", s)
	}
	// 1 MiB of shared memory in four allocations of 320, 192, 320 and 192 KiB, of
	// which the first and the third are freed again, beside a dedicated block of
	// 512 KiB + 256 B and one of 1 MiB that is given back.
	var pieces [4]Storage
	for i, size := range []uint64{320 * kib, 192 * kib, 320 * kib, 192 * kib} {
		pieces[i] = allocate(t, a, size)
	}
	dedicated := allocate(t, a, 512*kib+1)
	if s := a.Stats(); s.FreeBytes != 0 || s.LargestFree != 0 || s.Fragmentation != 0 || s.LiveBytes != 1536*kib+256 {
		t.Fatalf("a full allocator has %+v", s)
	}
	free(t, a, dedicated)
	a.Trim()
	dedicated = allocate(t, a, 1<<20)
	free(t, a, pieces[0])
	free(t, a, pieces[2])
	s := a.Stats()
	if s.FreeBytes != 640*kib || s.LargestFree != 320*kib || s.Fragmentation != 0.5 {
		t.Fatalf("with two gaps: %+v", s)
	}
	free(t, a, pieces[1])
	if s := a.Stats(); s.FreeBytes != 832*kib || s.LargestFree != 832*kib || s.Fragmentation != 0 {
		t.Fatalf("with one gap: %+v", s)
	}
	free(t, a, dedicated)
	if s := a.Stats(); s.Blocks != 2 || s.FreeBytes != 832*kib || s.TrimmedBlocks != 1 || s.TrimmedBytes != 512*kib+256 {
		t.Fatalf("with a block of its own kept: %+v", s)
	}
}

func TestStatsCountEverything(t *testing.T) {
	const kib = 1 << 10
	h := &fakeHeap{}
	var passed timeline.Frontier
	a := newAllocator(t, h, AllocatorOptions{
		MinBlock: 1 << 20, MaxBlock: 1 << 20,
		Completed: func(f timeline.Frontier) bool { return passed.Dominates(f) },
	})
	var pieces [4]Storage
	for i, size := range []uint64{320 * kib, 192 * kib, 320 * kib, 192 * kib} {
		pieces[i] = allocate(t, a, size)
	}
	large := allocate(t, a, 1<<20)
	free(t, a, large)
	a.Trim()
	dedicated := allocate(t, a, 512*kib+256)
	free(t, a, dedicated, timeline.Point{Queue: 0, Value: 1})
	a.Trim() // no effect: the device still uses it
	allocate(t, a, 512*kib+256)
	free(t, a, pieces[0])
	free(t, a, pieces[2])
	want := AllocatorStats{
		Blocks: 2, BlockBytes: 1573120, LiveBytes: 917760, PeakLiveBytes: 2097152, PeakBlockBytes: 2097152, Allocations: 3,
		FreeBytes: 655360, LargestFree: 327680, Fragmentation: 0.5, TrimmedBlocks: 1, TrimmedBytes: 1048576,
	}
	if got := a.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
