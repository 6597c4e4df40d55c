package transfer

import (
	"fmt"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// On ring paths the bytes go through a few chunks of staging memory, again and again. A copy that
// is larger than the ring does not get staging of its own size, so staging stays small whatever
// the program maps. A crew divides the bytes into parts: while its goroutines fill some chunks, the
// device empties others.
//
//	goroutine 0   fill 0 ─ place ─ fill 4 ─ place ─ fill 8 ─ ···
//	goroutine 1   fill 1 ─ place ─ fill 5 ─ place ─ ···
//	goroutine 2   fill 2 ─ place ─ fill 6 ─ place ─ ···
//	goroutine 3   fill 3 ─ place ─ fill 7 ─ place ─ ···
//	device                 copy 0, 1, 2, 3, ···
//
// Each goroutine has chunks of its own and places their copies itself, so that none waits for
// another. Nor does it wait for the device as long as this is faster: a chunk of 2 MiB takes a
// goroutine 210 µs, and a bus of 50 GB/s 42 µs. All transfers of a step that go through a ring go
// through the same one, so the bytes of the next one follow before the device is done with the
// first.

const (
	// DefaultChunk is a size of chunks at which a submission for each costs little: 3 to 20 µs,
	// while copying the bytes takes a goroutine 210 µs.
	DefaultChunk = 2 << 20
	// threadChunks is the number of chunks of a ring for each goroutine. One is being filled, one
	// is on the bus, and two make up for goroutines and devices that are late.
	threadChunks = 4
	// partsInChunk is the number of parts that a chunk has at most. Small copies have small parts,
	// so that there are some for each goroutine.
	partsInChunk = 2
	// pageBytes is what the size of a part is a multiple of, unless it is a whole chunk. No two
	// parts of a chunk share a unit of a flush then.
	pageBytes = 4096
)

// ringIn brings bytes of the host to the device before the task's commands, and ringOut bytes of
// the device to the host when the device is done with the task.
var (
	ringIn  = path{name: "ring in", ring: true, take: takeRing}
	ringOut = path{name: "ring out", ring: true, take: takeRing}
)

// Ring is what the Lane of a transfer through a ring knows of it.
type Ring struct {
	// Queue makes the copies. It is nil before the first of them.
	Queue *order.Queue
	// First is what copies to the device follow for the memory that they write, as it was before
	// the first of them.
	First order.SyncSet
}

// Chunk is memory of a ring for a part of the bytes.
type Chunk struct {
	memory.Storage
	// Busy is the point of the batch that uses the chunk, or the zero point.
	Busy order.SyncPoint
	// piece is what the device brings to the host.
	piece piece
}

// Lane places the commands of paths through a ring, a chunk at a time, and waits for them. Its
// methods take the scheduler's lock. Several goroutines may call them, for chunks of their own.
type Lane interface {
	// Place submits the copy between the chunk and n bytes of the device memory, from an offset
	// of the transfer on (see Transfer.RecordChunk and ChunkPlaced).
	Place(x *Transfer, c *Chunk, at, n uint64) error
	// Await waits until the device is done with the chunk. An error is the loss of the device,
	// which may not be done with it.
	Await(c *Chunk) error
}

// takeRing takes memory for the task's ring: at most half of what other tasks have left. One chunk
// is enough.
func takeRing(d *Device, l *List, x *Transfer) error {
	had := uint64(len(l.ring))
	half := (d.Staging - min(d.staged, d.Staging)) / 2 / d.Chunk
	most := min(d.ringChunks(), had+min((x.Size-1)/d.Chunk+1, max(half, 1)))
	for uint64(len(l.ring)) < most {
		st, err := l.takeStaging(d, x, d.Chunk)
		if err != nil && len(l.ring) == 0 {
			return fmt.Errorf("staging for a part of %d bytes of a copy of %d: %w", d.Chunk, x.Size, err)
		}
		if err != nil {
			break
		}
		l.ring = append(l.ring, st)
	}
	n := len(l.rings)
	if n < cap(l.rings) {
		l.rings = l.rings[:n+1]
	} else {
		l.rings = append(l.rings, Ring{})
	}
	x.Ring = &l.rings[n] // it does not change when the slice grows
	x.Ring.Queue = nil
	x.Ring.First.Set(order.SyncPoint{})
	return nil
}

// ringChunks returns the largest number of chunks of a ring.
func (d *Device) ringChunks() uint64 {
	return threadChunks * uint64(min(max(d.Threads, 1), MaxThreads))
}

// bring brings the bytes of transfers through the ring. Transfers that write the same bytes, and
// those of which an observer is told, must come alone.
func (l *List) bring(d *Device, transfers []*Transfer, by Lane) error {
	var bytes uint64
	for _, x := range transfers {
		bytes += x.Size
	}
	m := d.crews.take()
	defer m.giveBack()
	m.hire(bytes/max(d.Chunk/partsInChunk, 1), d.Threads)
	s := &m.streaming
	defer s.reset()
	s.d, s.by, s.transfers = d, by, transfers
	if err := s.divide(l, bytes, m.size); err != nil {
		m.dismiss()
		return err
	}
	return m.run(s)
}

// streaming is the work of bringing bytes through a ring.
type streaming struct {
	d         *Device
	by        Lane
	transfers []*Transfer
	// part is the size of the parts, the last one of each transfer excepted, and ends has, for
	// each transfer, the number of parts up to its end.
	part uint64
	ends []uint64
	// chunks are divided among the goroutines, of which there are threads: the first one has the
	// first chunk, and so on in turns.
	chunks  []Chunk
	threads int
	// next is the next part, and failed says that no more are to be made.
	next   atomic.Uint64
	failed atomic.Bool
	// incoherent has, for each goroutine, memory to flush or to invalidate.
	incoherent [MaxThreads][1]vk.MemoryRange
}

// piece is a part of a transfer: n bytes, from an offset on.
type piece struct {
	x     *Transfer
	at, n uint64
}

func (s *streaming) reset() {
	s.d, s.by, s.transfers, s.chunks = nil, nil, nil, nil
	s.ends = s.ends[:0]
	s.next.Store(0)
	s.failed.Store(false)
}

// divide divides the bytes into parts, and the ring's memory into chunks for them. There are some
// parts for each of the goroutines, if they do not become too small by that.
func (s *streaming) divide(l *List, bytes uint64, threads int) error {
	d := s.d
	s.part = min(max(bytes/(threadChunks*uint64(threads)), d.Chunk/partsInChunk), d.Chunk) &^ (pageBytes - 1)
	if s.part == 0 {
		s.part = d.Chunk
	}
	for _, x := range s.transfers {
		parts := (x.Size-1)/s.part + 1
		if n := len(s.ends); n > 0 {
			parts += s.ends[n-1]
		}
		s.ends = append(s.ends, parts)
	}
	for i := range l.chunks {
		if err := s.by.Await(&l.chunks[i]); err != nil {
			return err
		}
	}
	l.chunks = l.chunks[:0]
	for _, st := range l.ring {
		for range st.Size / s.part {
			c := Chunk{Storage: st}
			c.Size = s.part
			l.chunks = append(l.chunks, c)
			st.Offset += s.part
		}
	}
	s.chunks = l.chunks
	s.threads = min(threads, len(s.chunks))
	return nil
}

// do implements work.
func (s *streaming) do(hand int) (err error) {
	if hand >= s.threads {
		return nil
	}
	if s.transfers[0].Dst != nil {
		err = s.in(hand)
	} else {
		err = s.out(hand)
	}
	if err != nil {
		s.failed.Store(true)
	}
	return err
}

// take returns the next part, one of 0 bytes if none is left.
func (s *streaming) take() piece {
	if s.failed.Load() {
		return piece{}
	}
	part := s.next.Add(1) - 1
	i := sort.Search(len(s.ends), func(i int) bool { return part < s.ends[i] })
	if i == len(s.ends) {
		return piece{}
	}
	if i > 0 {
		part -= s.ends[i-1]
	}
	x := s.transfers[i]
	return piece{x, part * s.part, min(s.part, x.Size-part*s.part)}
}

// own returns the chunk for the n-th part of a goroutine.
func (s *streaming) own(hand, n int) *Chunk {
	some := (len(s.chunks) - hand + s.threads - 1) / s.threads
	return &s.chunks[hand+n%some*s.threads]
}

// in fills chunks, and has the device empty them.
func (s *streaming) in(hand int) error {
	for n := 0; ; n++ {
		p := s.take()
		if p.n == 0 {
			return nil
		}
		c := s.own(hand, n)
		if err := s.by.Await(c); err != nil {
			return err
		}
		if err := copyBytes(c.Host(), unsafe.Add(p.x.Host.Ptr, p.at), p.n); err != nil {
			return err
		}
		if err := s.d.flush(s.touch(hand, c, p.n)); err != nil {
			return err
		}
		if err := s.by.Place(p.x, c, p.at, p.n); err != nil {
			return err
		}
	}
}

// out has the device fill chunks, and empties them.
func (s *streaming) out(hand int) error {
	ahead := (len(s.chunks) - hand + s.threads - 1) / s.threads
	// What one goroutine asks for no other can take.
	ahead = min(ahead, int((s.ends[len(s.ends)-1]-1)/uint64(s.threads)+1))
	asked := 0
	for got := 0; ; got++ {
		for asked-got < ahead {
			p := s.take()
			if p.n == 0 {
				break
			}
			c := s.own(hand, asked)
			if err := s.by.Place(p.x, c, p.at, p.n); err != nil {
				return err
			}
			c.piece = p
			asked++
		}
		if got == asked || s.failed.Load() {
			return nil
		}
		c := s.own(hand, got)
		p := c.piece
		if err := s.by.Await(c); err != nil {
			return err
		}
		if err := s.d.invalidate(s.touch(hand, c, p.n)); err != nil {
			return err
		}
		if err := copyBytes(unsafe.Add(p.x.Host.Ptr, p.at), c.Host(), p.n); err != nil {
			return err
		}
	}
}

// touch returns the first n bytes of a chunk if its memory is not coherent, otherwise nothing.
func (s *streaming) touch(hand int, c *Chunk, n uint64) []vk.MemoryRange {
	r, ok := s.d.Memory.StagingRange(&c.Storage, 0, n)
	if !ok {
		return nil
	}
	s.incoherent[hand][0] = r
	return s.incoherent[hand][:]
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
