package sched

import (
	"errors"
	"fmt"
	"iter"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// place gives the task's commands their levels in the pending batch: copies to
// storage, the kernel, copies to staging.
func (s *Scheduler) place(t *target, w *tasks.Work) {
	q := s.queue
	hostReads := s.hostReads(t)
	after := later(t.mark, t.afterPredecessors()) // t.mark is that of its streams
	level := q.after(after)
	last := mark{}
	if len(t.uploads) > 0 {
		last = s.placeUploads(t, level)
		level = last.level + 1
	}
	if len(t.moves) > 0 {
		if at := s.placeMoves(t, level); at.value != 0 {
			last = at
			level = last.level + 1
		}
	}
	if t.Kernel != nil {
		last = s.placeKernel(t, level)
		level = last.level + 1
	}
	if len(t.moves) > 0 {
		if at := s.placeMovesToHost(t, level); at.value != 0 {
			last = at
		}
	}
	if len(t.downloads) > 0 {
		last = s.placeDownloads(t.downloads, level)
	}

	t.filled()

	b := q.pending
	if hostReads {
		b.hostRead = true
	}
	switch {
	case last.value != 0:
		t.mark = last
		b.tasks = append(b.tasks, t)
	case hostReads || after.value == b.value:
		// No command of its own: complete with the batch.
		t.mark = later(after, mark{value: b.value})
		b.tasks = append(b.tasks, t)
	default:
		t.mark = after
		ride := q.flying(after.value)
		if ride == nil {
			// The device is done with what it follows. Its exit comes before its
			// successors start, so it counts as complete rather than placed.
			q.done = append(q.done, t)
			w.Defer(q.finish)
			return
		}
		ride.tasks = append(ride.tasks, t)
	}
	t.node.Placed(w)
}

// flying returns the batch in flight that signals value, or nil.
func (q *queue) flying(value uint64) *batch {
	for _, b := range q.inFlight {
		if b.value == value {
			return b
		}
	}
	return nil
}

// placeUploads copies staging to storage.
func (s *Scheduler) placeUploads(t *target, level int) mark {
	q := s.queue
	for _, up := range t.uploads {
		state := stateOf(t.uses[up.use].Present)
		level = max(level, q.after(state.transfer), q.afterWrites(state.store))
	}
	at := mark{q.pending.value, level}
	for _, up := range t.uploads {
		u := t.uses[up.use]
		st := u.Present.Storage
		q.pending.level(level).Copy(vk.Buffer(up.staging.Block.ID), vk.Buffer(st.Block.ID),
			up.staging.Offset, st.Offset+u.Offset+u.Skip, t.Enter[up.use].StorageSize()-u.Skip)
		state := stateOf(u.Present)
		state.transfer, state.use = at, later(state.use, at)
		state.wrote(at)
	}
	s.stats.Copies += uint64(len(t.uploads))
	q.pending.commands += len(t.uploads)
	return at
}

// placeKernel dispatches the task's kernel.
func (s *Scheduler) placeKernel(t *target, level int) mark {
	q := s.queue
	for i := range t.arguments {
		if a := &t.arguments[i]; a.store != nil {
			level = max(level, q.after(a.transfer), q.afterWrites(a.store))
		}
	}
	at := mark{q.pending.value, level}
	stream := q.pending.level(level)
	for _, c := range t.plan.calls {
		stream.Dispatch(t.pipeline, t.ranges, t.push, c.base, c.count)
	}
	s.stats.Dispatches += uint64(len(t.plan.calls))
	q.pending.commands += len(t.plan.calls)
	q.pending.invocations += t.Range[0] * t.Range[1] * t.Range[2]
	for i := range t.arguments {
		a := &t.arguments[i]
		if a.store == nil {
			continue
		}
		a.use = later(a.use, at)
		if !a.readOnly {
			a.wrote(at)
			if a.block != nil {
				a.block.dirty = true
			}
		}
	}
	return at
}

// lastItems yields the items of the task's exit that, as things stand, will take
// their block's last reference or copy it out in any case.
func (s *Scheduler) lastItems(t *target) iter.Seq2[memory.Map, *memory.Present] {
	return func(yield func(memory.Map, *memory.Present) bool) {
		for _, m := range t.Exit {
			block, _, err := s.table.Lookup(m.Section)
			if err != nil || block == nil || m.Size == 0 {
				continue
			}
			count, infinite := block.Count()
			if (m.Always || m.Delete || !infinite && count == 1) && !yield(m, block) {
				return
			}
		}
	}
}

// planDownloads foresees which blocks that the host cannot see the task's exit
// will copy out, and takes staging memory for them. What turns out otherwise at
// the exit, finish puts right.
func (s *Scheduler) planDownloads(t *target) error {
	for m, block := range s.lastItems(t) {
		if !m.Type.From() || block.Storage.Host() != nil {
			continue
		}
		size := m.StorageSize()
		if state := stateOf(block); s.streams(size) && !state.image {
			at := block.Storage.Offset - state.Offset + uint64(m.Start()-block.Section.Start())
			ring, err := s.newStream(t, state.store, state, at, size, m.Ptr)
			if err != nil {
				return err
			}
			t.outs = append(t.outs, ring)
			continue
		}
		st, err := s.staging.Allocate(size)
		if err != nil {
			return fmt.Errorf("staging for a copy of %d bytes from the device: %w", size, err)
		}
		t.staging = append(t.staging, st)
		offset := uint64(m.Start() - block.Section.Start())
		t.downloads = append(t.downloads, download{block, offset, size, st, block.Uses()})
	}
	return nil
}

// hostReads reports whether the batch of the task's last command has to end
// with a barrier to the host: its exit lets the host read results, or write the
// memory for its next user. What the task's own commands write comes on top of
// what is recorded of a block so far.
func (s *Scheduler) hostReads(t *target) bool {
	if s.movesReadByHost(t) {
		return true
	}
	for i := range t.arguments {
		// What target constructs share on their own the last one lets the host see.
		if a := &t.arguments[i]; a.shared && !a.readOnly && !(a.block != nil && a.block.passing) {
			return true
		}
	}
	for i := range t.moves {
		if m := &t.moves[i]; m.dst != nil && m.dst.shared && !m.direct {
			return true
		}
	}
	for _, block := range s.lastItems(t) {
		if block.Storage.Host() != nil && (t.writes(block) || stateOf(block).write.value > s.queue.hostVisible) {
			return true
		}
	}
	return false
}

// writes reports whether the task has commands that write the block.
func (t *target) writes(block *memory.Present) bool {
	state := stateOf(block)
	for i := range t.arguments {
		if a := &t.arguments[i]; a.store == state.store && !a.readOnly {
			return true
		}
	}
	for _, up := range t.uploads {
		if t.uses[up.use].Present == block {
			return true
		}
	}
	return false
}

// placeDownloads copies blocks to staging.
func (s *Scheduler) placeDownloads(downloads []download, level int) mark {
	q := s.queue
	for _, d := range downloads {
		state := stateOf(d.block)
		level = max(level, q.after(state.transfer), q.afterWrites(state.store))
	}
	at := mark{q.pending.value, level}
	for _, d := range downloads {
		st := d.block.Storage
		q.pending.level(level).Copy(vk.Buffer(st.Block.ID), vk.Buffer(d.staging.Block.ID),
			st.Offset+d.offset, d.staging.Offset, d.size)
		state := stateOf(d.block)
		state.transfer, state.use = at, later(state.use, at)
	}
	s.stats.Copies += uint64(len(downloads))
	q.pending.commands += len(downloads)
	q.pending.hostRead = true
	return at
}

// failBatch fails the tasks of a batch that was not submitted or is lost.
func (s *Scheduler) failBatch(q *queue, b *batch, err error, w *tasks.Work) {
	if errors.Is(err, vk.ErrDeviceLost) && s.lost == nil {
		s.lost = err
	}
	for _, t := range b.tasks {
		cause := err
		if !t.leaving {
			t.unfilled(err)
			if failure := t.node.FailedBy(); failure != nil {
				cause = failure
			}
		}
		s.abort(t, cause, w)
	}
	q.recycle(b)
	s.wake.Broadcast()
}

// failAll fails every task that is placed: the device is lost, or cannot be
// waited for, which comes to the same.
func (s *Scheduler) failAll(err error, w *tasks.Work) {
	if s.lost == nil {
		s.lost = err
	}
	q := s.queue
	batches := append(q.inFlight, q.pending)
	q.inFlight = nil
	q.pending = q.newBatch(q.pending.value + 1)
	for _, b := range batches {
		s.failBatch(q, b, s.lost, w)
	}
}
