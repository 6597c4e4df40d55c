package sched

import (
	"slices"
	"sync/atomic"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/timeline"
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

	// write is the last device write, transfer the last command that moved the
	// contents of a block, use the last command of any kind.
	write, transfer, use mark
	// flying are the writes of batches that may be in flight, one mark a batch,
	// ascending; settled is the last one known to be complete.
	flying  []mark
	settled mark
	// blocks are those whose corresponding storage the memory is.
	blocks []*memory.Present
	// readers are tasks in flight that copy from the memory itself when they
	// finish: who might change it waits for them.
	readers []*target

	// shared: the memory is the host's own, imported.
	shared bool
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
	last := s.queue.markOf(st.LastUse)
	m.Storage, m.s, m.shared = st, s, s.isImported(st)
	m.write, m.transfer, m.use, m.settled = last, last, last, mark{}
	m.flying = m.flying[:0]
	m.refs.Store(1)
}

// pin keeps the memory until unpin, which may be called without the scheduler's
// lock and with a scope's. The last one gives it back; nobody else can change the
// store by then.
func (m *store) pin() { m.refs.Add(1) }

func (m *store) unpin() {
	if m.refs.Add(-1) == 0 {
		s := m.s
		s.giveBack(m.Storage, m.use)
		if m.allocation {
			s.spareStores.Put(m.forget())
		}
	}
}

// forget makes m as new, but for the memory that it has.
func (m *store) forget() *store {
	clear(m.readers)
	*m = store{flying: m.flying[:0], readers: m.readers[:0], blocks: m.blocks[:0]}
	return m
}

// forgetBlock takes a block off the store's.
func (m *store) forgetBlock(block *memory.Present) {
	if i := slices.Index(m.blocks, block); i >= 0 {
		m.blocks = slices.Delete(m.blocks, i, i+1)
	}
}

// wrote records a device write.
func (m *store) wrote(at mark) {
	m.write = later(m.write, at)
	if n := len(m.flying); n > 0 && m.flying[n-1].value == at.value {
		m.flying[n-1] = later(m.flying[n-1], at)
		return
	}
	m.flying = append(m.flying, at)
}

// quiet reports whether the host may write the memory itself: it sees it, nothing
// on the device can still touch it, and what the device wrote before is behind a
// barrier to the host.
func (m *store) quiet() bool {
	q := m.s.queue
	return m.Host() != nil && m.use.value <= q.completed && m.write.value <= q.hostReached
}

// giveBack frees storage that was last used at a mark.
func (s *Scheduler) giveBack(st memory.Storage, last mark) {
	if s.dropImport(st) {
		return
	}
	freeAfter(s.storage, st, last)
}

// freeAfter frees storage whose last use is up to a mark.
func freeAfter(a *memory.Allocator, st memory.Storage, last mark) {
	var points [1]timeline.Point
	a.Free(st, timeline.FrontierIn(points[:], timeline.Point{Queue: 0, Value: last.value}))
}

// markOf returns a mark after all commands so far that f covers.
func (q *queue) markOf(f timeline.Frontier) mark {
	v := f.Value(0)
	switch v {
	case 0:
		return mark{}
	case q.pending.value:
		return mark{value: v, level: max(len(q.pending.levels)-1, 0)}
	}
	return mark{value: v, level: maxLevel}
}
