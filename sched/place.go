package sched

import (
	"fmt"
	"iter"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// place gives the task's commands their queues, and their levels in the pending
// batches of these: copies to storage, the kernel, copies to staging, each of them
// after the one before. On an error some have been placed (see abandon).
func (s *Scheduler) place(t *target, w *tasks.Work) error {
	t.afterPredecessors()
	t.after.addAll(&t.used) // its streams'
	placed := false
	for _, step := range [...]func(*Scheduler, *target, *tasks.Work) (mark, error){
		(*Scheduler).placeUploads, (*Scheduler).placeMoves, (*Scheduler).placeKernel, (*Scheduler).placeMovesToHost, (*Scheduler).placeOuts,
	} {
		at, err := step(s, t, w)
		if err != nil {
			return err
		}
		if at.value != 0 {
			t.placedAt(at)
			placed = true
		}
	}
	t.filled()
	hostReads, err := s.placeHostReads(t, w)
	switch {
	case err != nil:
		return err
	case placed || hostReads:
		q := s.order.queues[t.mark.queue]
		q.pending.tasks = append(q.pending.tasks, t)
	default:
		if err := s.placeNothing(t, w); err != nil {
			return err
		}
		if t.mark.value == 0 || s.ride(t) == nil {
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

// placedAt notes the place of the task's last command so far.
func (t *target) placedAt(at mark) {
	if !t.ahead {
		t.after.set(at)
	}
	t.ahead = false
	t.mark = at
	t.after.add(at)
	for i := range t.used.len() {
		if m := t.used.at(i); m.queue == at.queue && m.value < at.value {
			t.earlier = append(t.earlier, m)
		}
	}
	t.used.add(at)
}

// begin returns the pending batch of a queue and the place in it for commands that
// come after what s.gather has.
func (s *Scheduler) begin(q *queue, w *tasks.Work) (*batch, mark, error) {
	if s.order.gather.nowhere || !s.allowed(q) {
		return nil, mark{}, fmt.Errorf("%w: no queue is of a family that may use all of the foreign memory of the task", vk.ErrUnsupported)
	}
	level, err := s.join(q, &s.order.gather.trail, w)
	return q.pending, mark{value: q.pending.value, level: level, queue: q.index}, err
}

// placeNothing places a task that has no commands: its mark follows what it does.
func (s *Scheduler) placeNothing(t *target, w *tasks.Work) error {
	s.order.gather.set(mark{})
	after := s.withoutSkipped(&t.after)
	for i := range after.len() {
		// What is complete needs no waiting for, and counts as followed (see mayFollow).
		if m := after.at(i); m.value > s.order.queues[m.queue].completed {
			s.order.gather.add(m)
		}
	}
	switch s.order.gather.len() {
	case 0:
		t.mark = t.after.first
		return nil
	case 1:
		t.mark = s.order.gather.first
		return nil
	}
	_, at, err := s.begin(s.earliest(s.order.queues, 0), w)
	if err == nil {
		t.mark = at.last()
	}
	return err
}

// last returns the mark of what is last before the commands at m.
func (m mark) last() mark {
	m.level = max(m.level-1, 0)
	return m
}

// ride has the task be done with the batch of its mark, and returns that; nil if the
// device is done with it.
func (s *Scheduler) ride(t *target) *batch {
	b := s.order.queues[t.mark.queue].underWay(t.mark.value)
	if b != nil {
		b.tasks = append(b.tasks, t)
	}
	return b
}

// abandon fails a task of which some commands may have been placed: it is complete
// when these are.
func (s *Scheduler) abandon(t *target, err error, w *tasks.Work) {
	if !t.leaving {
		t.unfilled(err)
	}
	t.filled()
	var last *batch
	consider := func(m mark) {
		// They follow one another, but for those of rings, which end with the task: what
		// was submitted last is complete last. One may be the batch that failed.
		b := s.order.queues[m.queue].underWay(m.value)
		if b != nil && (last == nil || b.seq == 0 || last.seq != 0 && last.seq < b.seq) {
			last = b
		}
	}
	for i := range t.used.len() {
		consider(t.used.at(i))
	}
	for _, m := range t.earlier {
		consider(m)
	}
	if last == nil {
		s.abort(t, err, w)
		return
	}
	t.failed = err
	last.tasks = append(last.tasks, t)
}

// placeUploads copies staging to storage.
func (s *Scheduler) placeUploads(t *target, w *tasks.Work) (mark, error) {
	if len(t.uploads) == 0 {
		return mark{}, nil
	}
	// What comes after the task comes after its kernel.
	t.ahead = t.Kernel != nil
	for _, up := range t.uploads {
		t.ahead = t.ahead && t.uses[up.use].Created
	}
	bytes := uint64(0)
	s.order.gather.setAll(&t.after)
	for _, up := range t.uploads {
		m, to := t.uploadTo(up)
		s.gatherStore(m, to)
		bytes += to.size
	}
	// Where what the task follows is, its kernel is likely to be.
	q := s.copyQueue(bytes)
	if t.ahead {
		s.order.gather.set(mark{})
		for _, up := range t.uploads {
			m, to := t.uploadTo(up)
			s.gatherStore(m, to)
		}
	}
	b, at, err := s.begin(q, w)
	if err != nil {
		return mark{}, err
	}
	stream := b.level(at.level)
	for _, up := range t.uploads {
		m, to := t.uploadTo(up)
		timed := s.time(q, stream, t, t.copyInOf(up.use), to.size)
		src, dst := vk.Buffer(up.staging.Block.ID), vk.Buffer(m.Block.ID)
		if image := t.image(up.use); image != nil && !t.uses[up.use].Created {
			s.placeParts(stream, src, dst, up.staging.Offset, m.Offset+to.start, image.parts)
		} else {
			stream.Copy(src, dst, up.staging.Offset, m.Offset+to.start, to.size)
		}
		timed.end(stream, vk.StageTransfer)
		m.moved(to, at)
		m.wrote(to, at)
	}
	q.copies(len(t.uploads), bytes)
	return at, nil
}

// uploadTo returns where an upload goes.
func (t *target) uploadTo(up upload) (*store, span) {
	u := &t.uses[up.use]
	m := stateOf(u.Present).store
	return m, span{u.Present.Storage.Offset - m.Offset + u.Offset + u.Skip, t.Enter[up.use].StorageSize() - u.Skip}
}

// copies counts copies in the pending batch.
func (q *queue) copies(n int, bytes uint64) {
	q.stats.Copies += uint64(n)
	q.pending.commands += n
	q.pending.work += bytes / copyRate
}

// placeKernel dispatches the task's kernel.
func (s *Scheduler) placeKernel(t *target, w *tasks.Work) (mark, error) {
	if t.Kernel == nil {
		return mark{}, nil
	}
	s.order.gather.setAll(&t.after)
	for i := range t.arguments {
		if a := &t.arguments[i]; a.store != nil {
			s.gatherStore(a.store, a.bytes())
		}
	}
	work := t.Range[0] * t.Range[1] * t.Range[2]
	q := s.kernelQueue(work)
	b, at, err := s.begin(q, w)
	if err != nil {
		return mark{}, err
	}
	stream := b.level(at.level)
	for _, c := range t.plan.calls {
		timed := s.time(q, stream, t, t.submitOp(), uint64(c.count[0])*uint64(c.count[1])*uint64(c.count[2]))
		stream.Dispatch(t.pipeline, t.ranges, t.push, c.base, c.count)
		timed.end(stream, vk.StageCompute)
	}
	q.stats.Dispatches += uint64(len(t.plan.calls))
	b.commands += len(t.plan.calls)
	b.work += work
	for i := range t.arguments {
		a := &t.arguments[i]
		if a.store == nil {
			continue
		}
		a.use.add(at)
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
			t.outs = append(t.outs, ring)
			continue
		}
		st, err := s.memory.staging.Allocate(size)
		if err != nil {
			return fmt.Errorf("staging for a copy of %d bytes from the device: %w", size, err)
		}
		t.staging = append(t.staging, st)
		offset := uint64(m.Start() - block.Section.Start())
		t.downloads = append(t.downloads, download{block, offset, size, st, block.Uses(), m.Label, nil})
	}
	return nil
}

// placeHostReads sees to it that the batch in which the task's last command is ends
// with a barrier to the host, if it has to: the task's exit lets the host read
// results, or write the memory for its next user. It reports whether it has to.
func (s *Scheduler) placeHostReads(t *target, w *tasks.Work) (bool, error) {
	if len(t.Exit) == 0 && len(t.reading) == 0 && len(t.arguments) == 0 && len(t.moves) == 0 {
		return false, nil
	}
	q := s.order.queues[t.after.first.queue]
	s.order.gather.setAll(&t.after)
	reads := false
	read := func(m *store) {
		reads = true
		s.gatherStore(m, m.whole())
	}
	for _, m := range t.reading {
		// What is to be streamed is not read itself. A barrier that is on its way does
		// not help a task that may finish before.
		if m.Host() != nil && !m.visible(s.order.hostReached) {
			read(m)
		}
	}
	for i := range t.arguments {
		// What target constructs share on their own the last one lets the host see.
		if a := &t.arguments[i]; a.shared && !a.readOnly && !(a.block != nil && a.block.passing) {
			read(a.store)
		}
	}
	for i := range t.moves {
		if m := &t.moves[i]; m.dst != nil && m.dst.shared && !m.direct {
			read(m.dst)
		}
	}
	for _, block := range s.lastItems(t) {
		// The task comes after what its queue has in flight.
		if m := stateOf(block).store; block.Storage.Host() != nil && !m.visible(s.order.hostReached) && !m.visible(q.hostVisible) {
			read(m)
		}
	}
	if !reads {
		return false, nil
	}
	if t.used.len() == 0 {
		q = s.earliest(s.order.queues, 0)
	}
	b, at, err := s.begin(q, w)
	if err != nil {
		return false, err
	}
	b.hostRead = true
	if t.mark.queue != q.index || t.mark.value != b.value {
		t.mark = at.last()
	}
	return true, nil
}

// placeOuts copies blocks to staging that the task's exit will copy out.
func (s *Scheduler) placeOuts(t *target, w *tasks.Work) (mark, error) {
	if len(t.downloads) == 0 {
		return mark{}, nil
	}
	s.order.gather.setAll(&t.after)
	return s.placeDownloads(t, t.downloads, w)
}

// placeDownloads copies blocks of t's to staging, after what s.gather has.
func (s *Scheduler) placeDownloads(t *target, downloads []download, w *tasks.Work) (mark, error) {
	bytes := uint64(0)
	for _, d := range downloads {
		m, from := d.from()
		s.gatherStore(m, from)
		bytes += d.size
	}
	q := s.copyQueue(bytes)
	b, at, err := s.begin(q, w)
	if err != nil {
		return mark{}, err
	}
	stream := b.level(at.level)
	for _, d := range downloads {
		m, from := d.from()
		timed := s.time(q, stream, t, d.op, d.size)
		stream.Copy(vk.Buffer(m.Block.ID), vk.Buffer(d.staging.Block.ID), m.Offset+from.start, d.staging.Offset, d.size)
		timed.end(stream, vk.StageTransfer)
		m.moved(from, at)
	}
	q.copies(len(downloads), bytes)
	b.hostRead = true
	return at, nil
}

// from returns what a download copies.
func (d *download) from() (*store, span) {
	m := stateOf(d.block).store
	return m, span{d.block.Storage.Offset - m.Offset + d.offset, d.size}
}

// failBatch fails the tasks of a batch that was not submitted, or that a lost device has
// done with.
func (s *Scheduler) failBatch(q *queue, b *batch, err error, w *tasks.Work) {
	s.dropStamps(b)
	for _, t := range b.tasks {
		cause := err
		if t.failed != nil {
			cause = t.failed
		} else if failure := t.node.FailedBy(); failure != nil && !t.leaving {
			cause = failure
		}
		s.abandon(t, cause, w)
	}
	q.recycle(b)
	s.life.wake.Broadcast()
}
