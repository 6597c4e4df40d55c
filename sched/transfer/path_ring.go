package transfer

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// On ring paths the bytes go through a few chunks of staging memory, again and again. A copy that
// is larger than such a ring does not get staging of its own size, so staging stays small
// whatever the program maps. While the host fills one chunk, the device empties another.

// ringChunks is the number of chunks of a ring.
const ringChunks = 3

// ring is the memory of a path through a ring.
type ring struct {
	chunks []Chunk
	room   [ringChunks]Chunk
}

// Chunk is one part of a ring.
type Chunk struct {
	memory.Storage
	// Busy is the point of the batch that uses the chunk, or the zero point.
	Busy order.SyncPoint
}

// at returns the chunk for the n-th part of the bytes.
func (r *ring) at(n uint64) *Chunk { return &r.chunks[n%uint64(len(r.chunks))] }

// Lane places the commands of a path through a ring, a chunk at a time, and waits for them. Its
// methods take the scheduler's lock.
type Lane interface {
	// Place submits the copy between the chunk and n bytes of the device memory, from an offset
	// of the transfer on (see Transfer.RecordChunk and ChunkPlaced).
	Place(x *Transfer, c *Chunk, at, n uint64) error
	// Await waits until the device is done with the chunk. An error is the loss of the device,
	// which may not be done with it.
	Await(c *Chunk) error
}

// ringIn brings bytes of the host to the device before the task's commands.
var ringIn = path{
	name: "ring in",
	take: takeRing,
	bring: func(d *Device, l *List, x *Transfer, by Lane) error {
		for at := uint64(0); at < x.Size; at += d.Chunk {
			c := x.ring.at(at / d.Chunk)
			if err := by.Await(c); err != nil {
				return err
			}
			n := min(d.Chunk, x.Size-at)
			if _, err := copyBytes(c.Host(), unsafe.Add(x.Host.Ptr, at), n); err != nil {
				return err
			}
			l.touchStaging(d, &c.Storage, 0, n)
			if err := l.flush(d); err != nil {
				return err
			}
			if err := by.Place(x, c, at, n); err != nil {
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
	bring: func(d *Device, l *List, x *Transfer, by Lane) error {
		all := uint64(len(x.ring.chunks)) * d.Chunk
		for asked, got := uint64(0), uint64(0); got < x.Size; {
			for asked < x.Size && asked-got < all {
				n := min(d.Chunk, x.Size-asked)
				if err := by.Place(x, x.ring.at(asked/d.Chunk), asked, n); err != nil {
					return err
				}
				asked += n
			}
			c, n := x.ring.at(got/d.Chunk), min(d.Chunk, x.Size-got)
			if err := by.Await(c); err != nil {
				return err
			}
			l.touchStaging(d, &c.Storage, 0, n)
			if err := l.invalidate(d); err != nil {
				return err
			}
			if _, err := copyBytes(unsafe.Add(x.Host.Ptr, got), c.Host(), n); err != nil {
				return err
			}
			got += n
		}
		return nil
	},
}

// takeRing takes the memory of a ring. One chunk is enough.
func takeRing(d *Device, l *List, x *Transfer) error {
	r := new(ring)
	r.chunks = r.room[:0]
	for range ringChunks {
		st, err := d.Memory.Staging.Allocate(d.Chunk)
		if err != nil && len(r.chunks) == 0 {
			return fmt.Errorf("staging for a part of %d bytes of a copy of %d: %w", d.Chunk, x.Size, err)
		}
		if err != nil {
			break
		}
		l.staging = append(l.staging, st)
		r.chunks = append(r.chunks, Chunk{Storage: st})
	}
	x.ring = r
	return nil
}

// RecordChunk records the copy between a chunk and n bytes of the device memory, from an offset of
// the transfer on.
func (x *Transfer) RecordChunk(stream *vk.Stream, c *Chunk, at, n uint64) {
	if x.Dst != nil {
		stream.Copy(vk.Buffer(c.Block.ID), vk.Buffer(x.Dst.Block.ID), c.Offset, x.Dst.Offset+x.DstAt+at, n)
		return
	}
	stream.Copy(vk.Buffer(x.Src.Block.ID), vk.Buffer(c.Block.ID), x.Src.Offset+x.SrcAt+at, c.Offset, n)
}

// ChunkPlaced records in the history of the device memory where the copy between a chunk and n
// bytes, from an offset of the transfer on, has been placed.
func (x *Transfer) ChunkPlaced(c *Chunk, at, n uint64, where order.SyncPoint) {
	c.Busy = where
	if x.Dst == nil {
		x.Src.Read(where)
		return
	}
	bytes := order.Span{Start: x.DstAt + at, Size: n}
	x.Dst.Wrote(bytes, where)
	if x.Block != nil {
		x.Dst.Moved(bytes, where)
	}
}
