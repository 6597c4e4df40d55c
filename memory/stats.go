package memory

import "fmt"

// AllocatorStats are the statistics of an Allocator at one moment.
type AllocatorStats struct {
	Blocks         int    // of the heap
	BlockBytes     uint64 // taken from the heap
	LiveBytes      uint64 // in use by allocations, rounded up to the alignment
	PeakLiveBytes  uint64 // highest LiveBytes so far
	PeakBlockBytes uint64 // highest BlockBytes so far
	Allocations    int    // number of live allocations

	// The next three describe the blocks that allocations share.
	FreeBytes     uint64  // not in use
	LargestFree   uint64  // bytes of the largest free chunk
	Fragmentation float64 // share of FreeBytes outside the largest chunk, 0 to 1; 0 if nothing is free

	// Empty blocks are given back to the heap by Trim, by Free, and before a
	// request fails.
	TrimmedBlocks uint64 // given back so far
	TrimmedBytes  uint64 // of those blocks
}

// Plus returns the sum of both statistics, as of one allocator with the memory of
// both. The peaks are upper bounds, because the two may have peaked at different
// times.
func (s AllocatorStats) Plus(o AllocatorStats) AllocatorStats {
	s.Blocks += o.Blocks
	s.BlockBytes += o.BlockBytes
	s.LiveBytes += o.LiveBytes
	s.PeakLiveBytes += o.PeakLiveBytes
	s.PeakBlockBytes += o.PeakBlockBytes
	s.Allocations += o.Allocations
	s.FreeBytes += o.FreeBytes
	s.LargestFree = max(s.LargestFree, o.LargestFree)
	s.Fragmentation = fragmentation(s.FreeBytes, s.LargestFree)
	s.TrimmedBlocks += o.TrimmedBlocks
	s.TrimmedBytes += o.TrimmedBytes
	return s
}

// fragmentation returns the fragmentation for a number of free bytes and the size
// of the largest free chunk.
func fragmentation(free, largest uint64) float64 {
	if free == 0 {
		return 0
	}
	return 1 - float64(largest)/float64(free)
}

// Stats returns the figures of a. It is linear in the blocks, and in the chunks
// of the size class of the largest free one.
func (a *Allocator) Stats() AllocatorStats {
	free := uint64(0)
	sharedLive := a.liveBytes
	for _, b := range a.blocks {
		switch {
		case !b.dedicated:
			free += b.size << a.shift
		case b.live > 0:
			sharedLive -= b.size << a.shift
		}
	}
	free -= sharedLive
	largest := a.index.largest() << a.shift
	return AllocatorStats{
		Blocks:         len(a.blocks),
		BlockBytes:     a.blockBytes,
		LiveBytes:      a.liveBytes,
		PeakLiveBytes:  a.peakLiveBytes,
		PeakBlockBytes: a.peakBlockBytes,
		Allocations:    a.allocations,
		FreeBytes:      free,
		LargestFree:    largest,
		Fragmentation:  fragmentation(free, largest),
		TrimmedBlocks:  a.trimmedBlocks,
		TrimmedBytes:   a.trimmedBytes,
	}
}

// Validate recomputes every sum, list and link of a from its chunks and returns an
// error for the first that does not agree. It is linear in the number of chunks.
func (a *Allocator) Validate() error {
	var pooled []*region
	var pooledBytes, blockBytes, liveBytes uint64
	allocations := 0
	empty := map[*block]bool{}
	for i, b := range a.blocks {
		if b.index != i || b.owner != b {
			return fmt.Errorf("memory: block %d says it is block %d", i, b.index)
		}
		if b.size != b.heap.Size>>a.shift {
			return fmt.Errorf("memory: block %d of %d bytes has %d granules", i, b.heap.Size, b.size)
		}
		blockBytes += b.heap.Size
		if b.dedicated {
			if err := b.validate(); err != nil {
				return err
			}
			if b.first.next != nil {
				return fmt.Errorf("memory: dedicated block %d has several chunks", i)
			}
		} else {
			pooled = append(pooled, &b.region)
			pooledBytes += b.heap.Size
		}
		if b.live == 0 {
			empty[b] = true
		}
		allocations += b.live
		for c := b.first; c != nil; c = c.next {
			if c.free {
				continue
			}
			liveBytes += c.size << a.shift
			if !b.dedicated && c.size != (c.asked-1)>>a.shift+1 {
				return fmt.Errorf("memory: block %d has a chunk of %d granules for %d bytes", i, c.size, c.asked)
			}
		}
	}
	for _, b := range a.empty {
		if !empty[b] {
			return fmt.Errorf("memory: block %d is in the list of empty blocks wrongly or twice", b.index)
		}
		delete(empty, b)
	}
	if len(empty) > 0 {
		return fmt.Errorf("memory: %d empty blocks are not in the list of empty blocks", len(empty))
	}
	got := [...]uint64{a.pooledBytes, a.blockBytes, a.liveBytes, uint64(a.allocations)}
	want := [...]uint64{pooledBytes, blockBytes, liveBytes, uint64(allocations)}
	if got != want {
		return fmt.Errorf("memory: pooled, block and live bytes and allocations are %v, want %v", got, want)
	}
	if a.peakBlockBytes < blockBytes || a.peakLiveBytes < liveBytes {
		return fmt.Errorf("memory: peaks of %d and %d bytes are below %d and %d", a.peakBlockBytes, a.peakLiveBytes, blockBytes, liveBytes)
	}
	return a.index.validate(pooled)
}
