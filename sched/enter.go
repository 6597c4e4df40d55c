package sched

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/timeline"
)

// placed returns the target of a predecessor that the device keeps, or nil when
// it is complete. Complete is called under mu for every task that was placed.
func placed(n *tasks.Node) *target {
	t, _ := n.Runner().(*target)
	return t
}

// mustWaitFor returns the list of parked tasks that t has to join before it can
// enter, or nil.
//
// It waits for a block that it maps and that is being removed; and for a task
// that it is ordered after, which holds the last reference to such a block and
// has results in it: in the order of the program that block is copied out and
// gone when t begins, and t maps the storage anew. A block whose contents equal
// the host's can be shared instead, if t maps all of it and no more: nothing that
// is ordered between the two can have changed either copy.
//
// It waits as well for a task that it is ordered after and that deletes such a
// block, or copies it to the host, whatever its count: t may change the block,
// or read the host's copy; and for one whose exit finds nothing there, but would
// find what t makes.
func (s *Scheduler) mustWaitFor(t *target) *[]*tasks.Node {
	var after mark
	for _, p := range t.node.Predecessors() {
		if pt := placed(p); pt != nil {
			after = later(after, pt.mark)
		}
	}
	for _, maps := range [...][]memory.Map{t.Enter, t.Exit} {
		for _, m := range maps {
			if block := s.table.Exiting(m.Section); block != nil {
				return &stateOf(block).parked
			}
			for _, b := range s.blind {
				if b.mark.value != 0 && (b.leaving || !after.before(b.mark)) && b.leaves(m.Section) {
					return &b.parked
				}
			}
			block := s.touched(m.Section)
			if block == nil {
				continue
			}
			state := stateOf(block)
			count, infinite := block.Count()
			last := !infinite && int(count) <= len(state.holders)
			same := m.Section == block.Section
			if state.ignoring == 0 && (!last || !state.dirty && same && state.leaving == 0) {
				// The usual case, with thousands of holders in flight: the block
				// outlives them all, or equals the host's.
				continue
			}
			for _, h := range state.holders {
				// Where the commands of a leaving one were is forgotten: its mark
				// is that of a late copy.
				if h.by.mark.value == 0 || !h.by.leaving && after.before(h.by.mark) {
					continue
				}
				// An exit construct has no reference of its own: it would take
				// that of t.
				anew := last && (state.dirty || !same || len(h.by.Enter) == 0)
				if anew || h.ignoresCount {
					return &h.by.parked
				}
			}
		}
	}
	return nil
}

// touched returns a block that shares bytes with the section, or nil.
func (s *Scheduler) touched(section memory.Section) *memory.Present {
	block, _, err := s.table.Lookup(section)
	if err == nil {
		return block
	}
	var overlap *memory.OverlapError
	if errors.As(err, &overlap) {
		block, _, _ = s.table.Lookup(overlap.With)
	}
	return block
}

// leaves reports whether t's exit has an item that shares bytes with the section.
func (t *target) leaves(section memory.Section) bool {
	for _, m := range t.Exit {
		if m.Start() < section.End() && section.Start() < m.End() {
			return true
		}
	}
	return false
}

// noteBlind notes that there is nothing for t's exit to leave, so far.
func (s *Scheduler) noteBlind(t *target) {
	if !t.blind {
		t.blind = true
		s.blind = append(s.blind, t)
	}
}

// ignoresCount reports whether t's exit deletes the block, or copies part of it
// to the host, whatever its count.
func (t *target) ignoresCount(block *memory.Present) bool {
	for _, m := range t.Exit {
		if (m.Type == memory.MapDelete || m.Always && m.Type.From()) &&
			m.Start() < block.Section.End() && block.Section.Start() < m.End() {
			return true
		}
	}
	return false
}

// enter carries out the entry sequence of the region's maps, binds the kernel to
// the storage and takes the staging memory that copies need: after it only the
// loss of the device keeps the task from being placed, so that another one can
// rely on its copies. On an error nothing is changed.
func (s *Scheduler) enter(t *target, w *tasks.Work) error {
	if err := s.table.CheckExit(t.Exit); err != nil {
		return err
	}
	var err error
	t.uses, err = s.table.Enter(t.Enter, t.uses, s.allocateStorage, s.freeStorage)
	if err != nil {
		return err
	}
	for i, u := range t.uses {
		if u.Present == nil {
			continue
		}
		if u.Present.State == nil {
			// The memory's previous user may still be running: its use counts
			// as a transfer, which everything is ordered after.
			last := s.queue.markOf(u.Present.Storage.LastUse)
			u.Present.State = &blockState{write: last, transfer: last, use: last, dirty: true}
		}
		if u.CopyIn && u.Created && t.Enter[i].Size == u.Present.Section.Size {
			stateOf(u.Present).dirty = false
		}
	}
	if err := s.prepare(t); err != nil {
		s.release(t, w)
		s.freeStaging(t)
		t.uploads, t.downloads = t.uploads[:0], t.downloads[:0]
		return err
	}
	for _, u := range t.uses {
		if u.Created && u.CopyIn && stateOf(u.Present).filling == nil {
			stateOf(u.Present).filling = make(chan struct{})
			t.fills = append(t.fills, stateOf(u.Present))
		}
	}
	// Holders point into the slice: it must not move.
	if cap(t.holds) < len(t.Exit) {
		t.holds = make([]hold, 0, len(t.Exit))
	}
	for _, m := range t.Exit {
		block, _, err := s.table.Lookup(m.Section)
		switch {
		case err != nil || m.Size == 0:
		case block == nil:
			s.noteBlind(t)
		default:
			t.hold(block)
		}
	}
	return nil
}

// prepare binds the kernel and takes staging memory.
func (s *Scheduler) prepare(t *target) error {
	var err error
	if err = s.bind(t); err != nil {
		return err
	}
	for i, u := range t.uses {
		if !u.CopyIn || s.hostCanFill(u) {
			continue
		}
		st, err := s.staging.Allocate(t.Enter[i].Size)
		if err != nil {
			return fmt.Errorf("staging for a copy of %d bytes to the device: %w", t.Enter[i].Size, err)
		}
		t.uploads = append(t.uploads, upload{i, st})
		t.staging = append(t.staging, st)
	}
	return s.planDownloads(t)
}

// filled lets those go on who wait for blocks that t created: what copies them
// in is done, or ahead of whatever is placed from now on.
func (t *target) filled() {
	for _, state := range t.fills {
		close(state.filling)
		state.filling = nil
	}
	clear(t.fills)
	t.fills = t.fills[:0]
}

// unfilled notes that the copies which the device should have made to storage
// that t created were not made: whoever else holds it cannot run.
func (t *target) unfilled(err error) {
	for _, up := range t.uploads {
		if u := t.uses[up.use]; u.Created {
			stateOf(u.Present).broken = err
		}
	}
}

// shared returns why storage that t shares has no contents, or nil.
func (t *target) shared() error {
	for _, u := range t.uses {
		if u.Present == nil {
			continue
		}
		if err := stateOf(u.Present).broken; err != nil {
			return fmt.Errorf("the copy to storage that it shares failed: %w", err)
		}
	}
	return nil
}

// hold notes that t gives back a reference to the block when it finishes.
func (t *target) hold(block *memory.Present) {
	for i := range t.holds {
		if t.holds[i].block == block {
			return
		}
	}
	state := stateOf(block)
	h := hold{by: t, block: block, index: len(state.holders), ignoresCount: t.ignoresCount(block)}
	if h.ignoresCount {
		state.ignoring++
	}
	if len(t.Enter) == 0 {
		state.leaving++
	}
	t.holds = append(t.holds, h)
	state.holders = append(state.holders, &t.holds[len(t.holds)-1])
}

// letGo is the opposite of hold, for all of t's blocks.
func (t *target) letGo() {
	for i := range t.holds {
		h := &t.holds[i]
		state := stateOf(h.block)
		if h.ignoresCount {
			state.ignoring--
		}
		if len(t.Enter) == 0 {
			state.leaving--
		}
		last := len(state.holders) - 1
		state.holders[h.index] = state.holders[last]
		state.holders[h.index].index = h.index
		state.holders[last] = nil
		state.holders = state.holders[:last]
	}
	clear(t.holds)
	t.holds = t.holds[:0]
}

// hostCanFill reports whether the host may write the block itself: it sees the
// memory, nothing on the device can still touch it, and what the device wrote
// before is behind a barrier to the host.
func (s *Scheduler) hostCanFill(u memory.Use) bool {
	if !u.Created || u.Present.Storage.Host() == nil {
		return false
	}
	state, q := stateOf(u.Present), s.queue
	return state.use.value <= q.completed && state.write.value <= q.hostReached
}

// copyIn does the host's part of copying in, without the lock: to the storage
// itself or to staging.
func (s *Scheduler) copyIn(t *target) {
	bytes := uint64(0)
	uploads := t.uploads // in the order of the uses
	for i, u := range t.uses {
		if !u.CopyIn {
			continue
		}
		var to unsafe.Pointer
		if len(uploads) > 0 && uploads[0].use == i {
			to, uploads = uploads[0].staging.Host(), uploads[1:]
		} else {
			to = unsafe.Add(u.Present.Storage.Host(), u.Offset)
		}
		m := t.Enter[i]
		copyBytes(to, m.Ptr, m.Size)
		bytes += m.Size
	}
	s.mu.Lock()
	s.stats.BytesToDevice += bytes
	var others []chan struct{}
	for _, u := range t.uses {
		if u.Present != nil && !u.Created && stateOf(u.Present).filling != nil {
			others = append(others, stateOf(u.Present).filling)
		}
	}
	s.mu.Unlock()
	// They entered before t did, so there is no cycle of tasks that wait.
	for _, c := range others {
		<-c
	}
}

// release gives back what enter counted, without copying anything.
func (s *Scheduler) release(t *target, w *tasks.Work) {
	maps := make([]memory.Map, len(t.Enter))
	for i, m := range t.Enter {
		maps[i] = memory.Map{Section: m.Section, Type: memory.MapRelease, Label: m.Label}
	}
	t.letGo()
	t.exits = s.table.BeginExit(maps, t.exits)
	s.endExit(t.exits, w)
}

// endExit ends an exit: blocks that leave the presence table free their storage,
// and who waited for that tries again.
func (s *Scheduler) endExit(exits []memory.Exit, w *tasks.Work) {
	s.removed = s.table.EndExit(exits, s.removed)
	for i, p := range s.removed {
		s.removed[i] = nil
		state := stateOf(p)
		s.storage.Free(p.Storage, frontierOf(state.use))
		for _, h := range state.holders {
			s.noteBlind(h.by)
		}
		for _, n := range state.parked {
			w.Restart(n)
		}
	}
}

func (s *Scheduler) freeStaging(t *target) {
	for _, st := range t.staging {
		s.staging.Free(st, frontierOf(t.mark))
	}
	clear(t.staging)
	t.staging = t.staging[:0]
}

// frontierOf says that everything up to m has happened.
func frontierOf(m mark) timeline.Frontier {
	return timeline.NewFrontier(timeline.Point{Queue: 0, Value: m.value})
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

// copyBytes copies n bytes between memory that does not overlap.
func copyBytes(to, from unsafe.Pointer, n uint64) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
