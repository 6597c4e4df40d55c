package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// exports are what foreign work can write.
type exports struct {
	// mu guards stores. It is taken last of all.
	mu     lockrank.Mutex[lockrank.Heap]
	stores map[*store]struct{}
}

// Foreign is what orders work on the device that is not the scheduler's: values of
// timelines that are none of its queues'.
type Foreign struct {
	// Waits are values that somebody has submitted the signal of. Signals are what the
	// device signals itself.
	Waits, Signals []vk.SemaphoreValue
	// Failure is what the task fails with, when it is complete.
	Failure error
}

// Order carries out a task without work of its own, in place of the runner that was
// started, between foreign work and the scheduler's: the task begins after f.Waits,
// and f.Signals come when it is complete. They have been submitted when Order returns,
// unless it returns an error: then nothing is signalled, and the task has failed.
//
// What the foreign work may have written, all exported memory, counts as written by
// the task if it waits for any.
func (s *Scheduler) Order(n *tasks.Node, f Foreign, w *tasks.Work) error {
	t := s.newTarget(&Region{Construct: construct.Construct{NoWait: true}})
	t.observeJoin(n)
	n.Hand(t, t)
	t.node = n
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		w.Defer(func(w *tasks.Work) { construct.Complete(n, err, w) })
		return err
	}
	s.life.live++
	t.afterPredecessors()
	s.order.gather.SetAll(&t.order.after)
	q := s.earliest(s.order.queues, 0)
	var err error
	if len(f.Waits) > 0 && !q.pending.empty() {
		// What is there already would wait as well.
		err = s.submit(q, w)
	}
	var b *batch
	if err == nil {
		s.order.gather.SetAll(&t.order.after)
		b, t.order.at, err = s.begin(q, w)
	}
	if err != nil {
		s.abandon(t, err, w)
		return err
	}
	t.order.at = t.order.at.Last()
	t.order.used.Add(t.order.at)
	b.foreign.Waits = append(b.foreign.Waits, f.Waits...)
	b.foreign.Signals = append(b.foreign.Signals, f.Signals...)
	t.failed = f.Failure
	b.tasks = append(b.tasks, t)
	if len(f.Waits) > 0 {
		b.work += foreignCost
		s.wroteExported(t.order.at)
	}
	n.Placed(w)
	// Others wait for what is signalled. A failure is the task's by now.
	return s.submit(q, w)
}

// Export returns where the corresponding storage of a section, which is present, lies,
// for code that is not the scheduler's: from now on foreign work can have written it.
func (s *Scheduler) Export(host memory.Section) (vk.BufferRange, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss.err != nil {
		return vk.BufferRange{}, 0, s.loss.err
	}
	block, offset, err := s.presence.table.Lookup(host)
	if err != nil {
		return vk.BufferRange{}, 0, err
	}
	if block == nil {
		return vk.BufferRange{}, 0, fmt.Errorf("%w: nothing there is mapped", memory.ErrNotPresent)
	}
	m := stateOf(block).store
	return s.export(m, block.Storage.Offset-m.Offset+offset, host.Size)
}

// ExportPointer is Export for size bytes from a pointer on.
func (s *Scheduler) ExportPointer(p Pointer, size uint64) (vk.BufferRange, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss.err != nil {
		return vk.BufferRange{}, 0, s.loss.err
	}
	m, offset, err := s.find(p, size)
	if err != nil {
		return vk.BufferRange{}, 0, err
	}
	return s.export(m, offset, size)
}

// export returns a range of a store's bytes, with its device address (0 where the
// device has none).
func (s *Scheduler) export(m *store, offset, size uint64) (vk.BufferRange, uint64, error) {
	s.noteExport(m)
	address := uint64(0)
	if m.Block.Address != 0 {
		address = m.Block.Address + m.Offset + offset
	}
	return vk.BufferRange{Buffer: vk.Buffer(m.Block.ID), Offset: m.Offset + offset, Size: size}, address, nil
}

// noteExport counts a store as exported.
func (s *Scheduler) noteExport(m *store) {
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	m.exported = true
	if s.exports.stores == nil {
		s.exports.stores = make(map[*store]struct{})
	}
	s.exports.stores[m] = struct{}{}
}

// forgetExport is the opposite of noteExport, for memory that is given back.
func (s *Scheduler) forgetExport(m *store) {
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	delete(s.exports.stores, m)
}

// wroteExported counts all exported memory as written at a sync point of a pending batch.
func (s *Scheduler) wroteExported(at order.SyncPoint) {
	s.exports.mu.Lock()
	var pinned []*store
	for m := range s.exports.stores {
		if m.pinAlive() {
			pinned = append(pinned, m)
		}
	}
	s.exports.mu.Unlock()
	for _, m := range pinned {
		m.wrote(m.whole(), at)
		for _, block := range m.blocks {
			stateOf(block).dirty = true
		}
		m.unpin()
	}
}
