package memory

import (
	"encoding/json"
	"testing"

	"github.com/vkomp/vkomp/timeline"
)

const goldenStats = `{
  "blocks": 2,
  "block_bytes": 1573120,
  "live_bytes": 917760,
  "peak_live_bytes": 2097152,
  "peak_block_bytes": 2097152,
  "allocations": 3,
  "free_bytes": 655360,
  "largest_free": 327680,
  "fragmentation": 0.5,
  "trimmed_blocks": 1,
  "trimmed_bytes": 1048576
}`

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

func TestStatsAsJSON(t *testing.T) {
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
	got, err := json.MarshalIndent(a.Stats(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != goldenStats {
		t.Errorf("got %s, want %s", got, goldenStats)
	}
	var back AllocatorStats
	if err := json.Unmarshal(got, &back); err != nil || back != a.Stats() {
		t.Errorf("read back: %+v, %v", back, err)
	}
}
