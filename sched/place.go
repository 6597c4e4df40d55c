package sched

import (
	"fmt"
	"iter"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// taskOrder is where a task is in the order of the device's work.
type taskOrder struct {
	// at is where the task's last command is, or that of what it follows
	// when it has none. Its other commands come before it.
	at order.SyncPoint
	// after are the sync points of its predecessors, or of the last of its own commands, to
	// which the next one is added; used are where its commands are, the last of them on
	// each queue. earlier are where those are that used does not have since later batches
	// of their queue have others, those of rings apart.
	after, used order.SyncSet
	earlier     []order.SyncPoint
	// ahead: the copies to storage go ahead of what the task follows, which cannot know
	// that storage.
	ahead bool
}

func (o *taskOrder) reset() {
	o.at, o.ahead = order.SyncPoint{}, false
	o.after.Set(order.SyncPoint{})
	o.used.Set(order.SyncPoint{})
	o.earlier = o.earlier[:0]
}

// place gives the task's commands their queues, and their levels in the pending
// batches of these: copies to storage, the kernel, copies to staging, each of them
// after the one before. On an error some have been placed (see abandon).
func (s *Scheduler) place(t *target, w *tasks.Work) error {
	t.afterPredecessors()
	t.order.after.AddAll(&t.order.used) // its streams'
	placed := false
	for _, step := range [...]func(*Scheduler, *target, *tasks.Work) (order.SyncPoint, error){
		(*Scheduler).placeUploads, (*Scheduler).placeMoves, (*Scheduler).placeKernel, (*Scheduler).placeMovesToHost, (*Scheduler).placeOuts,
	} {
		at, err := step(s, t, w)
		if err != nil {
			return err
		}
		if at.Value != 0 {
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
		q := s.order.queues[t.order.at.Queue]
		q.pending.tasks = append(q.pending.tasks, t)
	default:
		if err := s.placeNothing(t, w); err != nil {
			return err
		}
		if t.order.at.Value == 0 || s.ride(t) == nil {
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
func (t *target) placedAt(at order.SyncPoint) {
	if !t.order.ahead {
		t.order.after.Set(at)
	}
	t.order.ahead = false
	t.order.at = at
	t.order.after.Add(at)
	for i := range t.order.used.Len() {
		if m := t.order.used.At(i); m.Queue == at.Queue && m.Value < at.Value {
			t.order.earlier = append(t.order.earlier, m)
		}
	}
	t.order.used.Add(at)
}

// begin returns the pending batch of a queue and the place in it for commands that
// come after what s.order.gather has.
func (s *Scheduler) begin(q *queue, w *tasks.Work) (*batch, order.SyncPoint, error) {
	if s.order.gather.Nowhere || !s.allowed(q) {
		return nil, order.SyncPoint{}, fmt.Errorf("%w: no queue is of a family that may use all of the foreign memory of the task", vk.ErrUnsupported)
	}
	level, err := s.join(q, &s.order.gather.SyncSet, w)
	return q.pending, order.SyncPoint{Value: q.pending.value, Level: level, Queue: q.index}, err
}

// placeNothing places a task that has no commands: its sync point follows what it does.
func (s *Scheduler) placeNothing(t *target, w *tasks.Work) error {
	s.order.gather.Set(order.SyncPoint{})
	after := s.withoutSkipped(&t.order.after)
	for i := range after.Len() {
		// What is complete needs no waiting for, and counts as followed (see mayFollow).
		if m := after.At(i); m.Value > s.order.queues[m.Queue].completed {
			s.order.gather.Add(m)
		}
	}
	switch s.order.gather.Len() {
	case 0:
		t.order.at = t.order.after.First()
		return nil
	case 1:
		t.order.at = s.order.gather.First()
		return nil
	}
	_, at, err := s.begin(s.earliest(s.order.queues, 0), w)
	if err == nil {
		t.order.at = at.Last()
	}
	return err
}

// ride has the task be done with the batch of its sync point, and returns that; nil if the
// device is done with it.
func (s *Scheduler) ride(t *target) *batch {
	b := s.order.queues[t.order.at.Queue].underWay(t.order.at.Value)
	if b != nil {
		b.tasks = append(b.tasks, t)
	}
	return b
}

// abandon fails a task of which some commands may have been placed: it is complete
// when these are.
func (s *Scheduler) abandon(t *target, err error, w *tasks.Work) {
	if !t.exit.late {
		t.unfilled(err)
	}
	t.filled()
	var last *batch
	consider := func(m order.SyncPoint) {
		// They follow one another, but for those of rings, which end with the task: what
		// was submitted last is complete last. One may be the batch that failed.
		b := s.order.queues[m.Queue].underWay(m.Value)
		if b != nil && (last == nil || b.seq == 0 || last.seq != 0 && last.seq < b.seq) {
			last = b
		}
	}
	for i := range t.order.used.Len() {
		consider(t.order.used.At(i))
	}
	for _, m := range t.order.earlier {
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
func (s *Scheduler) placeUploads(t *target, w *tasks.Work) (order.SyncPoint, error) {
	if len(t.copies.uploads) == 0 {
		return order.SyncPoint{}, nil
	}
	// What comes after the task comes after its kernel.
	t.order.ahead = t.Kernel != nil
	for _, up := range t.copies.uploads {
		t.order.ahead = t.order.ahead && t.entry.uses[up.use].Created
	}
	bytes := uint64(0)
	s.order.gather.SetAll(&t.order.after)
	for _, up := range t.copies.uploads {
		m, to := t.uploadTo(up)
		s.gatherStore(m, to)
		bytes += to.Size
	}
	// Where what the task follows is, its kernel is likely to be.
	q := s.copyQueue(bytes)
	if t.order.ahead {
		s.order.gather.Set(order.SyncPoint{})
		for _, up := range t.copies.uploads {
			m, to := t.uploadTo(up)
			s.gatherStore(m, to)
		}
	}
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.level(at.Level)
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
	q.copies(len(t.copies.uploads), bytes)
	return at, nil
}

// uploadTo returns where an upload goes.
func (t *target) uploadTo(up upload) (*store, order.Span) {
	u := &t.entry.uses[up.use]
	m := stateOf(u.Present).store
	return m, order.Span{Start: u.Present.Storage.Offset - m.Offset + u.Offset + u.Skip, Size: t.Enter[up.use].StorageSize() - u.Skip}
}

// copies counts copies in the pending batch.
func (q *queue) copies(n int, bytes uint64) {
	q.stats.Copies += uint64(n)
	q.pending.commands += n
	q.pending.work += bytes / copyRate
}

// placeKernel dispatches the task's kernel.
func (s *Scheduler) placeKernel(t *target, w *tasks.Work) (order.SyncPoint, error) {
	if t.Kernel == nil {
		return order.SyncPoint{}, nil
	}
	s.order.gather.SetAll(&t.order.after)
	for i := range t.dispatch.arguments {
		if a := &t.dispatch.arguments[i]; a.store != nil {
			s.gatherStore(a.store, a.bytes())
		}
	}
	work := t.Range[0] * t.Range[1] * t.Range[2]
	q := s.kernelQueue(work)
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.level(at.Level)
	for _, c := range t.dispatch.plan.calls {
		timed := s.time(q, stream, t, t.submitOp(), uint64(c.count[0])*uint64(c.count[1])*uint64(c.count[2]))
		stream.Dispatch(t.dispatch.pipeline, t.dispatch.ranges, t.dispatch.push, c.base, c.count)
		timed.end(stream, vk.StageCompute)
	}
	q.stats.Dispatches += uint64(len(t.dispatch.plan.calls))
	b.commands += len(t.dispatch.plan.calls)
	b.work += work
	for i := range t.dispatch.arguments {
		a := &t.dispatch.arguments[i]
		if a.store == nil {
			continue
		}
		a.use.Add(at)
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
	q := s.order.queues[t.order.after.First().Queue]
	s.order.gather.SetAll(&t.order.after)
	reads := false
	read := func(m *store) {
		reads = true
		s.gatherStore(m, m.whole())
	}
	for _, m := range t.copies.reading {
		// What is to be streamed is not read itself. A barrier that is on its way does
		// not help a task that may finish before.
		if m.Host() != nil && !m.visible(s.order.hostReached) {
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
		if m := stateOf(block).store; block.Storage.Host() != nil && !m.visible(s.order.hostReached) && !m.visible(q.hostVisible) {
			read(m)
		}
	}
	if !reads {
		return false, nil
	}
	if t.order.used.Len() == 0 {
		q = s.earliest(s.order.queues, 0)
	}
	b, at, err := s.begin(q, w)
	if err != nil {
		return false, err
	}
	b.hostRead = true
	if t.order.at.Queue != q.index || t.order.at.Value != b.value {
		t.order.at = at.Last()
	}
	return true, nil
}

// placeOuts copies blocks to staging that the task's exit will copy out.
func (s *Scheduler) placeOuts(t *target, w *tasks.Work) (order.SyncPoint, error) {
	if len(t.copies.downloads) == 0 {
		return order.SyncPoint{}, nil
	}
	s.order.gather.SetAll(&t.order.after)
	return s.placeDownloads(t, t.copies.downloads, w)
}

// placeDownloads copies blocks of t's to staging, after what s.order.gather has.
func (s *Scheduler) placeDownloads(t *target, downloads []download, w *tasks.Work) (order.SyncPoint, error) {
	bytes := uint64(0)
	for _, d := range downloads {
		m, from := d.from()
		s.gatherStore(m, from)
		bytes += d.size
	}
	q := s.copyQueue(bytes)
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.level(at.Level)
	for _, d := range downloads {
		m, from := d.from()
		timed := s.time(q, stream, t, d.op, d.size)
		stream.Copy(vk.Buffer(m.Block.ID), vk.Buffer(d.staging.Block.ID), m.Offset+from.Start, d.staging.Offset, d.size)
		timed.end(stream, vk.StageTransfer)
		m.moved(from, at)
	}
	q.copies(len(downloads), bytes)
	b.hostRead = true
	return at, nil
}

// from returns what a download copies.
func (d *download) from() (*store, order.Span) {
	m := stateOf(d.block).store
	return m, order.Span{Start: d.block.Storage.Offset - m.Offset + d.offset, Size: d.size}
}

// failBatch fails the tasks of a batch that was not submitted, or that a lost device has
// done with.
func (s *Scheduler) failBatch(q *queue, b *batch, err error, w *tasks.Work) {
	s.dropStamps(b)
	for _, t := range b.tasks {
		cause := err
		if t.failed != nil {
			cause = t.failed
		} else if failure := t.node.FailedBy(); failure != nil && !t.exit.late {
			cause = failure
		}
		s.abandon(t, cause, w)
	}
	q.recycle(b)
	s.life.wake.Broadcast()
}
