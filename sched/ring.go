package sched

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// What goes through staging and is larger than a few pieces does not get staging of
// its own size: it streams through a ring of pieces, so that staging stays small
// whatever the program maps, and the host fills one piece while the device empties
// another.
const (
	// pieceBytes is the size of a piece: large enough that a submission a piece
	// costs little (some 15 µs against 400 µs of copying).
	pieceBytes = 4 << 20
	ringPieces = 3
)

// stream is a copy between the host and a store through a ring.
type stream struct {
	*store
	// item is the index of the item that is copied in, -1 for a move.
	item int
	// block is the store's, if it is that of a block.
	block *blockState
	// at is where the copy begins in the store, in bytes, host the other side.
	at, size uint64
	host     unsafe.Pointer
	// op is the copy as the task's observer knows it, or nil.
	op     *construct.Op
	pieces []piece
	// queue makes the copies, nil until the first of them.
	queue *order.Queue
}

// piece is one part of a ring.
type piece struct {
	memory.Storage
	// busy is where the batch is that uses the piece.
	busy order.SyncPoint
}

// streams reports whether a copy of that size goes through a ring.
func (s *Scheduler) streams(size uint64) bool { return size > ringPieces*s.memory.piece }

// newStream takes the ring's memory, which is the task's staging. One piece is
// enough.
func (s *Scheduler) newStream(t *target, m *store, block *blockState, at, size uint64, host unsafe.Pointer) (*stream, error) {
	st := &stream{item: -1, store: m, block: block, at: at, size: size, host: host}
	for range ringPieces {
		p, err := s.memory.staging.Allocate(s.memory.piece)
		if err != nil && len(st.pieces) == 0 {
			return nil, fmt.Errorf("staging for a part of %d bytes of a copy of %d: %w", s.memory.piece, size, err)
		}
		if err != nil {
			break
		}
		t.copies.staging = append(t.copies.staging, p)
		st.pieces = append(st.pieces, piece{Storage: p})
	}
	return st, nil
}

// streamsIn makes the task's copies from the host that go through rings, without the
// lock. They are ahead of whatever is placed from now on.
func (s *Scheduler) streamsIn(t *target, w *tasks.Work) (bytes uint64, err error) {
	for _, st := range t.copies.streams {
		t.tell(ompt.ScopeBegin, st.op)
		err = s.streamIn(t, st, w)
		t.tell(ompt.ScopeEnd, st.op)
		if err != nil {
			return bytes, err
		}
		bytes += st.size
	}
	return bytes, nil
}

func (s *Scheduler) streamIn(t *target, st *stream, w *tasks.Work) error {
	s.mu.Lock()
	s.order.placing.Set(order.SyncPoint{})
	s.followUses(st.store, order.Span{Start: st.at, Size: st.size})
	var first order.SyncSet
	first.SetAll(&s.order.placing.SyncSet)
	s.mu.Unlock()
	for offset := uint64(0); offset < st.size; offset += s.memory.piece {
		p := &st.pieces[offset/s.memory.piece%uint64(len(st.pieces))]
		if err := s.awaitPiece(p); err != nil {
			return err
		}
		n := min(s.memory.piece, st.size-offset)
		if _, err := copyBytes(p.Host(), unsafe.Add(st.host, offset), n); err != nil {
			return err
		}
		t.touches(s.memory.stagingHeap, &p.Storage, 0, n)
		if err := t.flushTouched(); err != nil {
			return err
		}
		s.mu.Lock()
		t.afterPredecessors()
		s.order.placing.SetAll(&t.order.After)
		s.order.placing.AddAll(&first)
		piece := order.Span{Start: st.at + offset, Size: n}
		s.followWrites(st.store, piece)
		err := s.placePiece(st, p, n, w, func(b *order.Batch, at order.SyncPoint) {
			stream := b.Level(at.Level)
			timed := s.time(st.queue, stream, t, st.op, n)
			stream.Copy(vk.Buffer(p.Block.ID), vk.Buffer(st.Block.ID), p.Offset, st.Offset+st.at+offset, n)
			timed.end(stream, vk.StageTransfer)
		}, func(at order.SyncPoint) {
			st.wrote(piece, at)
			if st.block != nil {
				st.moved(piece, at)
			}
			t.order.At = at
			t.order.Used.Add(at)
		})
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// streamOut copies from the store to the host, without the lock.
func (s *Scheduler) streamOut(t *target, st *stream, w *tasks.Work) error {
	ring := uint64(len(st.pieces))
	for ask, got := uint64(0), uint64(0); got < st.size; {
		for ask < st.size && ask-got < ring*s.memory.piece {
			p, n := &st.pieces[ask/s.memory.piece%ring], min(s.memory.piece, st.size-ask)
			s.mu.Lock()
			s.order.placing.Set(order.SyncPoint{})
			s.followUses(st.store, order.Span{Start: st.at + ask, Size: n})
			err := s.placePiece(st, p, n, w, func(b *order.Batch, at order.SyncPoint) {
				stream := b.Level(at.Level)
				timed := s.time(st.queue, stream, t, st.op, n)
				stream.Copy(vk.Buffer(st.Block.ID), vk.Buffer(p.Block.ID), st.Offset+st.at+ask, p.Offset, n)
				timed.end(stream, vk.StageTransfer)
				b.ReadByHost()
			}, func(at order.SyncPoint) {
				st.uses.Read(at)
				t.order.Used.Add(at)
			})
			s.mu.Unlock()
			if err != nil {
				return err
			}
			ask += n
		}
		p, n := &st.pieces[got/s.memory.piece%ring], min(s.memory.piece, st.size-got)
		if err := s.awaitPiece(p); err != nil {
			return err
		}
		t.touches(s.memory.stagingHeap, &p.Storage, 0, n)
		if err := t.invalidateTouched(); err != nil {
			return err
		}
		if _, err := copyBytes(unsafe.Add(st.host, got), p.Host(), n); err != nil {
			return err
		}
		got += n
	}
	return nil
}

// placePiece places a copy of so many bytes, after what s.order.placing has, and submits it,
// under mu. placed notes where it is.
func (s *Scheduler) placePiece(st *stream, p *piece, bytes uint64, w *tasks.Work, place func(*order.Batch, order.SyncPoint), placed func(order.SyncPoint)) error {
	if err := s.loss.err; err != nil {
		return err
	}
	if st.queue == nil {
		st.queue = s.order.CopyQueue(&s.order.placing, max(st.size, order.CopyApart))
	}
	b, at, err := s.begin(st.queue, w)
	if err != nil {
		return err
	}
	place(b, at)
	st.queue.CountCopies(1, bytes)
	if err := s.submit(st.queue, w); err != nil {
		return err
	}
	placed(at)
	p.busy = at
	return nil
}

// awaitPiece waits until the device is done with the piece. An error is the loss of the
// device, which may not be done with it.
func (s *Scheduler) awaitPiece(p *piece) error {
	if p.busy.Value == 0 {
		return nil
	}
	err := s.order.AwaitValue(p.busy.Queue, p.busy.Value)
	if err == nil {
		p.busy = order.SyncPoint{}
	}
	return err
}

// busyRing returns a batch under way that uses a piece of one of the task's rings, or nil;
// mu is held.
func (s *Scheduler) busyRing(t *target) *order.Batch {
	for _, rings := range [...][]*stream{t.copies.streams, t.copies.outs} {
		for _, st := range rings {
			if b := s.busy(st); b != nil {
				return b
			}
		}
	}
	for i := range t.copies.results {
		if b := s.busy(t.copies.results[i].stream); b != nil {
			return b
		}
	}
	for i := range t.copies.moves {
		if b := s.busy(t.copies.moves[i].ring); b != nil {
			return b
		}
	}
	return nil
}

// busy is busyRing for one ring, or nil.
func (s *Scheduler) busy(st *stream) *order.Batch {
	if st == nil {
		return nil
	}
	for i := range st.pieces {
		at := st.pieces[i].busy
		if b := s.order.UnderWay(at); b != nil {
			return b
		}
	}
	return nil
}
