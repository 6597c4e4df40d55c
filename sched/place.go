package sched

import (
	"fmt"
	"iter"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// place gives the task's commands their queues, and their levels in the pending
// batches of these: copies to storage, the kernel, copies to staging, each of them
// after the one before. On an error some have been placed (see abandon).
func (s *Scheduler) place(t *target, w *tasks.Work) error {
	t.afterPredecessors()
	t.order.After.AddAll(&t.order.Used) // its streams'
	placed := false
	for _, step := range [...]func(*Scheduler, *target, *tasks.Work) (order.SyncPoint, error){
		(*Scheduler).placeUploads, (*Scheduler).placeMoves, (*Scheduler).placeKernel, (*Scheduler).placeMovesToHost, (*Scheduler).placeOuts,
	} {
		at, err := step(s, t, w)
		if err != nil {
			return err
		}
		if at.Value != 0 {
			t.order.Placed(at)
			placed = true
		}
	}
	t.filled()
	hostReads, err := s.placeHostReads(t, w)
	switch {
	case err != nil:
		return err
	case placed || hostReads:
		s.order.Of(t.order.At).Pending().AddTask(&t.order)
	default:
		if err := s.order.PlaceNothing(&t.order, &s.order.placing); err != nil {
			s.failRefused(w)
			return err
		}
		if t.order.At.Value == 0 || !s.order.EndWithBatch(&t.order) {
			// The device is done with what it follows. Its exit comes before its
			// successors start, so it counts as complete rather than placed.
			s.exits.done = append(s.exits.done, t)
			w.Defer(s.exits.later)
			return nil
		}
	}
	t.node.Placed(w)
	return nil
}

// abandon fails a task of which some commands may have been placed: it is complete
// when these are.
func (s *Scheduler) abandon(t *target, err error, w *tasks.Work) {
	if !t.exit.late {
		t.unfilled(err)
	}
	t.filled()
	last := s.order.LastBatch(&t.order)
	if last == nil {
		s.abort(t, err, w)
		return
	}
	t.failed = err
	last.AddTask(&t.order)
}

// placeUploads copies staging to storage.
func (s *Scheduler) placeUploads(t *target, w *tasks.Work) (order.SyncPoint, error) {
	if len(t.copies.uploads) == 0 {
		return order.SyncPoint{}, nil
	}
	// What comes after the task comes after its kernel.
	t.order.Ahead = t.Kernel != nil
	for _, up := range t.copies.uploads {
		t.order.Ahead = t.order.Ahead && t.entry.uses[up.use].Created
	}
	bytes := uint64(0)
	s.order.placing.SetAll(&t.order.After)
	for _, up := range t.copies.uploads {
		m, to := t.uploadTo(up)
		s.followUses(m, to)
		bytes += to.Size
	}
	// Where what the task follows is, its kernel is likely to be.
	q := s.order.CopyQueue(&s.order.placing, bytes)
	if t.order.Ahead {
		s.order.placing.Set(order.SyncPoint{})
		for _, up := range t.copies.uploads {
			m, to := t.uploadTo(up)
			s.followUses(m, to)
		}
	}
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.Level(at.Level)
	for _, up := range t.copies.uploads {
		m, to := t.uploadTo(up)
		timed := s.time(q, stream, t, t.copyInOf(up.use), to.Size)
		src, dst := vk.Buffer(up.staging.Block.ID), vk.Buffer(m.Block.ID)
		if image := t.image(up.use); image != nil && !t.entry.uses[up.use].Created {
			s.placeParts(stream, src, dst, up.staging.Offset, m.Offset+to.Start, image.parts)
		} else {
			stream.Copy(src, dst, up.staging.Offset, m.Offset+to.Start, to.Size)
		}
		timed.end(stream, vk.StageTransfer)
		m.moved(to, at)
		m.wrote(to, at)
	}
	q.CountCopies(len(t.copies.uploads), bytes)
	return at, nil
}

// uploadTo returns where an upload goes.
func (t *target) uploadTo(up upload) (*store, order.Span) {
	u := &t.entry.uses[up.use]
	m := stateOf(u.Present).store
	return m, order.Span{Start: u.Present.Storage.Offset - m.Offset + u.Offset + u.Skip, Size: t.Enter[up.use].StorageSize() - u.Skip}
}

// placeKernel dispatches the task's kernel.
func (s *Scheduler) placeKernel(t *target, w *tasks.Work) (order.SyncPoint, error) {
	if t.Kernel == nil {
		return order.SyncPoint{}, nil
	}
	s.order.placing.SetAll(&t.order.After)
	for i := range t.dispatch.arguments {
		if a := &t.dispatch.arguments[i]; a.store != nil {
			s.followUses(a.store, a.bytes())
		}
	}
	work := t.Range[0] * t.Range[1] * t.Range[2]
	q := s.order.KernelQueue(&s.order.placing, work)
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.Level(at.Level)
	for _, c := range t.dispatch.plan.calls {
		timed := s.time(q, stream, t, t.submitOp(), uint64(c.count[0])*uint64(c.count[1])*uint64(c.count[2]))
		stream.Dispatch(t.dispatch.pipeline, t.dispatch.ranges, t.dispatch.push, c.base, c.count)
		timed.end(stream, vk.StageCompute)
	}
	q.CountDispatches(len(t.dispatch.plan.calls), work)
	for i := range t.dispatch.arguments {
		a := &t.dispatch.arguments[i]
		if a.store == nil {
			continue
		}
		a.uses.Read(at)
		if !a.readOnly {
			a.wrote(a.bytes(), at)
			if a.block != nil {
				a.block.dirty = true
			}
		}
	}
	return at, nil
}

// lastItems yields the items of the task's exit that, as things stand, will take
// their block's last reference or copy it out in any case.
func (s *Scheduler) lastItems(t *target) iter.Seq2[memory.Map, *memory.Present] {
	return func(yield func(memory.Map, *memory.Present) bool) {
		for _, m := range t.Exit {
			block, _, err := s.presence.table.Lookup(m.Section)
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
			t.copies.outs = append(t.copies.outs, ring)
			continue
		}
		st, err := s.memory.staging.Allocate(size)
		if err != nil {
			return fmt.Errorf("staging for a copy of %d bytes from the device: %w", size, err)
		}
		t.copies.staging = append(t.copies.staging, st)
		offset := uint64(m.Start() - block.Section.Start())
		t.copies.downloads = append(t.copies.downloads, download{block, offset, size, st, block.Uses(), m.Label, nil})
	}
	return nil
}

// placeHostReads sees to it that the batch in which the task's last command is ends
// with a barrier to the host, if it has to: the task's exit lets the host read
// results, or write the memory for its next user. It reports whether it has to.
func (s *Scheduler) placeHostReads(t *target, w *tasks.Work) (bool, error) {
	if len(t.Exit) == 0 && len(t.copies.reading) == 0 && len(t.dispatch.arguments) == 0 && len(t.copies.moves) == 0 {
		return false, nil
	}
	q := s.order.Of(t.order.After.First())
	s.order.placing.SetAll(&t.order.After)
	reads := false
	read := func(m *store) {
		reads = true
		s.followUses(m, m.whole())
	}
	for _, m := range t.copies.reading {
		// What is to be streamed is not read itself. A barrier that is on its way does
		// not help a task that may finish before.
		if m.Host() != nil && !m.visible(s.order.HostReached()) {
			read(m)
		}
	}
	for i := range t.dispatch.arguments {
		// What target constructs share on their own the last one lets the host see.
		if a := &t.dispatch.arguments[i]; a.shared && !a.readOnly && !(a.block != nil && a.block.passing) {
			read(a.store)
		}
	}
	for i := range t.copies.moves {
		if m := &t.copies.moves[i]; m.dst != nil && m.dst.shared && !m.direct {
			read(m.dst)
		}
	}
	for _, block := range s.lastItems(t) {
		// The task comes after what its queue has in flight.
		if m := stateOf(block).store; block.Storage.Host() != nil && !m.visible(s.order.HostReached()) && !m.visible(q.HostVisible()) {
			read(m)
		}
	}
	if !reads {
		return false, nil
	}
	if t.order.Used.Len() == 0 {
		q = s.order.AnyQueue(&s.order.placing, 0)
	}
	b, at, err := s.begin(q, w)
	if err != nil {
		return false, err
	}
	b.ReadByHost()
	if t.order.At.Queue != q.Index() || t.order.At.Value != b.Value() {
		t.order.At = at.Last()
	}
	return true, nil
}

// placeOuts copies blocks to staging that the task's exit will copy out.
func (s *Scheduler) placeOuts(t *target, w *tasks.Work) (order.SyncPoint, error) {
	if len(t.copies.downloads) == 0 {
		return order.SyncPoint{}, nil
	}
	s.order.placing.SetAll(&t.order.After)
	return s.placeDownloads(t, t.copies.downloads, w)
}

// placeDownloads copies blocks of t's to staging, after what s.order.placing has.
func (s *Scheduler) placeDownloads(t *target, downloads []download, w *tasks.Work) (order.SyncPoint, error) {
	bytes := uint64(0)
	for _, d := range downloads {
		m, from := d.from()
		s.followUses(m, from)
		bytes += d.size
	}
	q := s.order.CopyQueue(&s.order.placing, bytes)
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.Level(at.Level)
	for _, d := range downloads {
		m, from := d.from()
		timed := s.time(q, stream, t, d.op, d.size)
		stream.Copy(vk.Buffer(m.Block.ID), vk.Buffer(d.staging.Block.ID), m.Offset+from.Start, d.staging.Offset, d.size)
		timed.end(stream, vk.StageTransfer)
		m.moved(from, at)
	}
	q.CountCopies(len(downloads), bytes)
	b.ReadByHost()
	return at, nil
}

// from returns what a download copies.
func (d *download) from() (*store, order.Span) {
	m := stateOf(d.block).store
	return m, order.Span{Start: d.block.Storage.Offset - m.Offset + d.offset, Size: d.size}
}
