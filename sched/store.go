package sched

import (
	"sync/atomic"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// store is device memory with its history: what of the device's work has touched
// it. The corresponding storage of a block is one, and so is what Allocate gave;
// blocks that are associated share that of their allocation. All but refs is
// guarded by Scheduler.mu.
type store struct {
	memory.Storage
	s *Scheduler
	// refs counts who keeps the memory: the presence table or the program, which
	// may let go while tasks still use it, and each of those tasks.
	refs atomic.Int32

	// uses says how the device has used the memory.
	uses order.Uses
	// blocks are those whose corresponding storage the memory is, in no order. The state
	// of each has its place.
	blocks []*memory.Present
	// readers stand for tasks in flight that copy from the memory itself when they
	// finish: whoever might change it waits for them.
	readers []*parkedTasks

	// shared: the memory is the host's own, imported. exported: foreign work can write
	// it, and the store is in exports.stores.
	shared, exported bool
	// registered: the memory is not the scheduler's. families are those of the queues that
	// may use it, as bits, 0 for all.
	registered bool
	families   uint64
	// external is the block that is all of the memory, where it is no allocator's.
	external vk.Block
	// address is where pointers see the first byte, slot their name for the store;
	// 0 while there are none.
	address uint64
	slot    uint32
	// allocation: the program allocated it. associations counts the blocks that it
	// corresponds to.
	allocation   bool
	associations int
	// site is where in the program the memory was asked for, label names the
	// construct: for the report of what is left at Close.
	site  *memory.Site
	label string
}

// open makes a store of storage that has just been allocated. Its previous user
// may still be running: that counts as a transfer, which everything is ordered
// after.
func (m *store) open(s *Scheduler, st memory.Storage) {
	m.Storage, m.s, m.shared = st, s, s.memory.isImported(st.Block.ID)
	s.order.Reuse(&m.uses, st.Size, st.LastUse)
	m.refs.Store(1)
}

// pin keeps the memory until unpin, which may be called without the scheduler's
// lock and with a scope's. The last one gives it back; nobody else can change the
// store by then.
func (m *store) pin() { m.refs.Add(1) }

// pinAlive is pin for whoever does not keep the memory yet; it reports false when the
// memory has been given back.
func (m *store) pinAlive() bool {
	for {
		n := m.refs.Load()
		if n == 0 {
			return false
		}
		if m.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (m *store) unpin() {
	if m.refs.Add(-1) == 0 {
		s := m.s
		if m.exported {
			s.forgetExport(m)
		}
		switch {
		case m.registered:
			return
		case m.external.Buffer != 0:
			s.device.DestroyBlock(m.external)
		default:
			s.giveBack(m.Storage, m.uses.Last())
		}
		if m.allocation {
			s.spareStores.Put(m.forget())
		}
	}
}

// forget makes m as new, but for the memory that it has.
func (m *store) forget() *store {
	clear(m.readers)
	*m = store{readers: m.readers[:0], blocks: m.blocks[:0], uses: m.uses}
	return m
}

// addBlockLocked makes the memory the corresponding storage of a block, in O(1).
func (m *store) addBlockLocked(block *memory.Present) {
	stateOf(block).place = len(m.blocks)
	m.blocks = append(m.blocks, block)
}

// forgetBlockLocked takes a block off the store's, in O(1): the last one gets its place.
func (m *store) forgetBlockLocked(block *memory.Present) {
	i, last := stateOf(block).place, len(m.blocks)-1
	m.blocks[i] = m.blocks[last]
	stateOf(m.blocks[i]).place = i
	m.blocks[last] = nil
	m.blocks = m.blocks[:last]
}

// whole are all of the store's bytes.
func (m *store) whole() order.Span { return order.Span{Size: m.Size} }

// wroteLocked records a device write, at a sync point of a pending batch.
func (m *store) wroteLocked(bytes order.Span, at order.SyncPoint) {
	m.s.order.Wrote(&m.uses, bytes, at)
}

// movedLocked records that the device copied bytes of a block from or to somewhere else,
// at a sync point of a pending batch.
func (m *store) movedLocked(bytes order.Span, at order.SyncPoint) {
	m.s.order.Moved(&m.uses, bytes, at)
}

// quiet reports whether the host may write the memory itself: it sees it, nothing
// on the device can still touch it, and what the device wrote before is behind a
// barrier to the host.
func (m *store) quiet() bool { return m.Host() != nil && m.s.order.HostMayWrite(&m.uses) }

// visible reports whether the host sees what the device wrote, where it sees what
// is before c.
func (m *store) visible(c order.Clock) bool { return m.uses.Visible(c) }

// giveBack frees storage that was last used at the points of a set.
func (s *Scheduler) giveBack(st memory.Storage, last *order.SyncSet) {
	if s.dropImport(st) {
		return
	}
	freeAfter(s.memory.storage, st, last)
}

// freeAfter frees storage whose last use is up to a sync set.
func freeAfter(a *memory.Allocator, st memory.Storage, last *order.SyncSet) {
	var few [8]timeline.Point
	points := few[:0]
	for i := range last.Len() {
		p := last.At(i)
		points = append(points, timeline.Point{Queue: timeline.Queue(p.Queue), Value: p.Value})
	}
	a.Free(st, timeline.FrontierOf(points))
}
