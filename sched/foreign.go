package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Foreign orders foreign work with the tasks of the device.
type Foreign struct {
	order.Foreign
	// Failure is the error with which the task fails when it is complete, or nil.
	Failure error
}

// Postpone reports whether a task for Order, which has been started, has to wait for the end of a task that it follows:
// of one that has the host read exported memory when its commands are complete, or whose exit copies exported memory to the
// host, or deletes it, whatever the reference count is. Foreign work behind n may overwrite that memory. n is started again
// when that task has ended.
func (s *Scheduler) Postpone(n *tasks.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var after order.SyncSet
	if afterPredecessorsLocked(n, &after); after.Len() == 0 {
		return false
	}
	park := func(t *target) bool {
		if !s.mayFollowLocked(&after, t) {
			return false
		}
		t.parked = append(t.parked, n)
		return true
	}
	for m := range s.memory.Exported() {
		for _, reader := range m.Readers {
			if park(reader.Owner.(*target)) {
				return true
			}
		}
		for _, block := range m.Blocks {
			state := stateOf(block)
			if state.ignoring == 0 {
				continue
			}
			// Even a copy that a command makes before the task's last point can be planned anew at the exit, where
			// another task has used the block since (see transfer.List.Foresaw).
			for _, h := range state.holders {
				if h.ignoresCount && park(h.by) {
					return true
				}
			}
		}
	}
	return false
}

// Order carries out a task without work of its own, in place of the runner that was started, to order
// foreign work with tasks: the task begins after f.Waits, and f.Signals follow when it is complete.
// Both have been submitted when Order returns nil. After an error nothing is signalled, and the task
// fails.
//
// If there are waits, all exported memory counts as written by the task, since the foreign work may
// have written any of it.
func (s *Scheduler) Order(n *tasks.Node, f Foreign, w *tasks.Work) error {
	t := s.takeOver(n)
	s.mu.Lock()
	q, err := s.orderLocked(t, f, w)
	if err != nil {
		s.unlockLocked(w)
		return err
	}
	// Foreign work waits for the signals. If the submission fails, so does the task.
	return s.submitNowLocked(q, w)
}

// orderLocked places the task of Order on a queue, whose pending batch is to be submitted. After an error the
// task has ended.
func (s *Scheduler) orderLocked(t *target, f Foreign, w *tasks.Work) (*order.Queue, error) {
	if err := s.refusalLocked(); err != nil {
		w.Defer(func(w *tasks.Work) { construct.Complete(t.node, err, w) })
		return nil, err
	}
	t.to(taskEntered)
	s.life.live++
	afterPredecessorsLocked(t.node, &t.order.After)
	s.order.placing.SetAll(&t.order.After)
	q := s.order.AnyQueue(&s.order.placing)
	var err error
	if len(f.Waits) > 0 && !q.Pending().Empty() {
		// The commands that are pending already would wait for the foreign work, too.
		err = s.closeLocked(q, w)
	}
	var b *order.Batch
	if err == nil {
		s.order.placing.SetAll(&t.order.After)
		b, t.order.At, err = s.beginLocked(q, w)
	}
	if err != nil {
		s.endLocked(t, err, w)
		return nil, err
	}
	t.order.At = t.order.At.Last()
	t.order.Used.Add(t.order.At)
	b.AddForeign(f.Foreign)
	t.failed = f.Failure
	b.AddTask(&t.order.Task)
	if len(f.Waits) > 0 {
		s.wroteExportedLocked(t.order.At)
	}
	t.to(taskPlaced)
	t.node.Placed(w)
	return q, nil
}

// Export returns the place of a section's corresponding storage, which must be present and no image, for
// foreign work. From now on foreign work may write to the storage. The second result is its device address,
// 0 if the device has none.
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
	if stateOf(block).image != nil {
		return vk.BufferRange{}, 0, fmt.Errorf("%w: %s is mapped as an image, to which only a device pointer leads", memory.ErrPartialOverlap, block.Section)
	}
	m := stateOf(block).Allocation
	return s.exportLocked(m, blockAt(block)+offset, host.Size)
}

// ExportPointer is Export for the size bytes to which a pointer points, or for all up to the end of the allocation if size
// is 0.
func (s *Scheduler) ExportPointer(p Pointer, size uint64) (vk.BufferRange, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss.err != nil {
		return vk.BufferRange{}, 0, s.loss.err
	}
	m, offset, err := s.pointers.Find(p, size)
	if err != nil {
		return vk.BufferRange{}, 0, err
	}
	if size == 0 {
		size = m.Size - offset
	}
	return s.exportLocked(m, offset, size)
}

// exportLocked returns a range of the bytes of an allocation, with its device address, and counts the
// allocation as exported.
func (s *Scheduler) exportLocked(m *allocation.Allocation, offset, size uint64) (vk.BufferRange, uint64, error) {
	if size == 0 {
		return vk.BufferRange{}, 0, fmt.Errorf("%w: no bytes, %d into %s", ErrInvalidPointer, offset, m.Describe())
	}
	r, address := s.memory.Export(m)
	if address != 0 {
		address += offset
	}
	r.Offset += offset
	r.Size = size
	return r, address, nil
}

// wroteExportedLocked records that all exported memory was written at a sync point of a pending batch.
func (s *Scheduler) wroteExportedLocked(at order.SyncPoint) {
	for m := range s.memory.Exported() {
		m.Wrote(m.Whole(), at)
		for _, block := range m.Blocks {
			stateOf(block).dirty = true
		}
	}
}
