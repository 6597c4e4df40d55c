package sched

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// On ring paths the bytes go through a few pieces of staging memory, again and again. What is
// larger than such a ring does not get staging of its own size, so that staging stays small
// whatever the program maps, and the host fills one piece while the device empties another.
const (
	// pieceBytes is the size of a piece: large enough that a submission a piece
	// costs little (some 15 µs against 400 µs of copying).
	pieceBytes = 4 << 20
	ringPieces = 3
)

// ring is the memory of a path through a ring.
type ring struct {
	pieces []piece
	room   [ringPieces]piece
}

// piece is one part of a ring.
type piece struct {
	memory.Storage
	// busy is where the batch is that uses the piece.
	busy order.SyncPoint
}

// at returns the piece for the n-th part of the bytes.
func (r *ring) at(n uint64) *piece { return &r.pieces[n%uint64(len(r.pieces))] }

// lane places the commands of a path through a ring, a piece at a time, and waits for them.
// It takes Scheduler.mu itself.
type lane interface {
	// place submits the copy between the piece and n bytes of the device memory, from at on,
	// counted from where the transfer begins.
	place(x *transfer, p *piece, at, n uint64) error
	// await waits until the device is done with the piece. An error is the loss of the
	// device, which may not be done with it.
	await(p *piece) error
}

// ringIn brings bytes of the host to the device before the task's commands.
var ringIn = path{
	name: "ring in",
	take: takeRing,
	bring: func(m *deviceMemory, ts *transfers, x *transfer, l lane) error {
		for at := uint64(0); at < x.size; at += m.piece {
			p := x.ring.at(at / m.piece)
			if err := l.await(p); err != nil {
				return err
			}
			n := min(m.piece, x.size-at)
			if _, err := copyBytes(p.Host(), unsafe.Add(x.host.Ptr, at), n); err != nil {
				return err
			}
			ts.touch(m, m.stagingHeap, &p.Storage, 0, n)
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
	bring: func(m *deviceMemory, ts *transfers, x *transfer, l lane) error {
		all := uint64(len(x.ring.pieces)) * m.piece
		for asked, got := uint64(0), uint64(0); got < x.size; {
			for asked < x.size && asked-got < all {
				n := min(m.piece, x.size-asked)
				if err := l.place(x, x.ring.at(asked/m.piece), asked, n); err != nil {
					return err
				}
				asked += n
			}
			p, n := x.ring.at(got/m.piece), min(m.piece, x.size-got)
			if err := l.await(p); err != nil {
				return err
			}
			ts.touch(m, m.stagingHeap, &p.Storage, 0, n)
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

// takeRing takes the memory of a ring, which is the task's staging. One piece is enough.
func takeRing(m *deviceMemory, ts *transfers, x *transfer) error {
	r := new(ring)
	r.pieces = r.room[:0]
	for range ringPieces {
		p, err := m.staging.Allocate(m.piece)
		if err != nil && len(r.pieces) == 0 {
			return fmt.Errorf("staging for a part of %d bytes of a copy of %d: %w", m.piece, x.size, err)
		}
		if err != nil {
			break
		}
		ts.staging = append(ts.staging, p)
		r.pieces = append(r.pieces, piece{Storage: p})
	}
	x.ring = r
	return nil
}

// recordPiece records the copy between a piece and n bytes of the device memory, from at on.
func (x *transfer) recordPiece(stream *vk.Stream, p *piece, at, n uint64) {
	if x.dst != nil {
		stream.Copy(vk.Buffer(p.Block.ID), vk.Buffer(x.dst.Block.ID), p.Offset, x.dst.Offset+x.dstAt+at, n)
		return
	}
	stream.Copy(vk.Buffer(x.src.Block.ID), vk.Buffer(p.Block.ID), x.src.Offset+x.srcAt+at, p.Offset, n)
}
