package sched

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// On ring paths the bytes go through a few chunks of staging memory, again and again. What is
// larger than such a ring does not get staging of its own size, so that staging stays small
// whatever the program maps, and the host fills one chunk while the device empties another.
const (
	// chunkBytes is the size of a chunk: large enough that a submission a chunk
	// costs little (some 15 µs against 400 µs of copying).
	chunkBytes = 4 << 20
	ringChunks = 3
)

// ring is the memory of a path through a ring.
type ring struct {
	// chunk is the size of a chunk in bytes.
	chunk  uint64
	chunks []stagingChunk
	room   [ringChunks]stagingChunk
}

// stagingChunk is one part of a ring.
type stagingChunk struct {
	memory.Storage
	// busy is where the batch is that uses the chunk.
	busy order.SyncPoint
}

// at returns the chunk for the n-th part of the bytes.
func (r *ring) at(n uint64) *stagingChunk { return &r.chunks[n%uint64(len(r.chunks))] }

// lane places the commands of a path through a ring, a chunk at a time, and waits for them.
// It takes Scheduler.mu itself.
type lane interface {
	// place submits the copy between the chunk and n bytes of the device memory, from at on,
	// counted from where the transfer begins.
	place(x *transfer, p *stagingChunk, at, n uint64) error
	// await waits until the device is done with the chunk. An error is the loss of the
	// device, which may not be done with it.
	await(p *stagingChunk) error
}

// ringIn brings bytes of the host to the device before the task's commands.
var ringIn = path{
	name: "ring in",
	take: takeRing,
	bring: func(m *allocation.Memory, ts *transfers, x *transfer, l lane) error {
		for at := uint64(0); at < x.size; at += x.ring.chunk {
			p := x.ring.at(at / x.ring.chunk)
			if err := l.await(p); err != nil {
				return err
			}
			n := min(x.ring.chunk, x.size-at)
			if _, err := copyBytes(p.Host(), unsafe.Add(x.host.Ptr, at), n); err != nil {
				return err
			}
			ts.touchStaging(m, &p.Storage, 0, n)
			if err := ts.flush(m); err != nil {
				return err
			}
			if err := l.place(x, p, at, n); err != nil {
				return err
			}
		}
		return nil
	},
}

// ringOut brings bytes of the device to the host when the device is done with the task.
var ringOut = path{
	name: "ring out",
	take: takeRing,
	bring: func(m *allocation.Memory, ts *transfers, x *transfer, l lane) error {
		all := uint64(len(x.ring.chunks)) * x.ring.chunk
		for asked, got := uint64(0), uint64(0); got < x.size; {
			for asked < x.size && asked-got < all {
				n := min(x.ring.chunk, x.size-asked)
				if err := l.place(x, x.ring.at(asked/x.ring.chunk), asked, n); err != nil {
					return err
				}
				asked += n
			}
			p, n := x.ring.at(got/x.ring.chunk), min(x.ring.chunk, x.size-got)
			if err := l.await(p); err != nil {
				return err
			}
			ts.touchStaging(m, &p.Storage, 0, n)
			if err := ts.invalidate(m); err != nil {
				return err
			}
			if _, err := copyBytes(unsafe.Add(x.host.Ptr, got), p.Host(), n); err != nil {
				return err
			}
			got += n
		}
		return nil
	},
}

// takeRing takes the memory of a ring, which is the task's staging. One chunk is enough.
func takeRing(m *allocation.Memory, ts *transfers, x *transfer) error {
	r := &ring{chunk: ts.chunk}
	r.chunks = r.room[:0]
	for range ringChunks {
		p, err := m.Staging.Allocate(r.chunk)
		if err != nil && len(r.chunks) == 0 {
			return fmt.Errorf("staging for a part of %d bytes of a copy of %d: %w", r.chunk, x.size, err)
		}
		if err != nil {
			break
		}
		ts.staging = append(ts.staging, p)
		r.chunks = append(r.chunks, stagingChunk{Storage: p})
	}
	x.ring = r
	return nil
}

// recordChunk records the copy between a chunk and n bytes of the device memory, from at on.
func (x *transfer) recordChunk(stream *vk.Stream, p *stagingChunk, at, n uint64) {
	if x.dst != nil {
		stream.Copy(vk.Buffer(p.Block.ID), vk.Buffer(x.dst.Block.ID), p.Offset, x.dst.Offset+x.dstAt+at, n)
		return
	}
	stream.Copy(vk.Buffer(x.src.Block.ID), vk.Buffer(p.Block.ID), x.src.Offset+x.srcAt+at, p.Offset, n)
}
