package sched

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/internal/mutant"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// entry is what a task has of the presence table.
type entry struct {
	// number is that of the task's last entry.
	number uint64
	// uses are what its items found or made there.
	uses []memory.Use
	// pins are the stores that the task keeps.
	pins []*store
	// fills are the blocks that the task has not copied in yet.
	fills []*blockState
	// holds are the blocks that lose a reference when the task finishes.
	holds []hold
}

func (e *entry) reset() {
	e.number = 0
	empty(&e.uses)
	e.pins, e.fills, e.holds = e.pins[:0], e.fills[:0], e.holds[:0]
}

// placed returns the target of a predecessor that the device keeps, or nil when
// it is complete. Complete is called under mu for every task that was placed.
func placed(n *tasks.Node) *target {
	t, _ := n.Runner().(*target)
	return t
}

// afterPredecessors sets t.order.After to where the last commands are that t follows; what
// follows those follows them all. It returns one that has failed and is not over yet, or
// nil.
func (t *target) afterPredecessors() (failing *target) {
	t.order.After.Set(order.SyncPoint{})
	for _, p := range t.node.Predecessors() {
		if pt := placed(p); pt != nil && !mutant.Active(mutant.PredecessorForgotten) {
			t.order.After.Add(pt.order.At)
			if pt.failed != nil && !pt.over {
				failing = pt
			}
		}
	}
	return failing
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
//
// Storage that target constructs share with the host for as long as they run is for
// no other: it waits until that is gone.
//
// What t copies from the host, or updates, is treated as what it maps; and it
// waits for tasks that are to write the host's storage which it reads, or are to
// read device memory of its own themselves.
func (s *Scheduler) mustWaitFor(t *target) *parkedTasks {
	if failing := t.afterPredecessors(); failing != nil {
		return &failing.parked
	}
	for k, maps := range [...][]memory.Map{t.Enter, t.Exit} {
		for i := range maps {
			m := &maps[i]
			if block := s.presence.table.Exiting(m.Section); block != nil {
				return &stateOf(block).parked
			}
			for _, b := range s.presence.blind {
				if b.order.At.Value != 0 && b.leaves(m.Section) && (b.exit.late || s.order.MayFollow(&t.order.After, b.order.At)) {
					return &b.parked
				}
			}
			section := m.Section
			reads := m.Type.To() || m.Share != memory.ShareNever
			if block := s.touched(m.Section); block != nil {
				if stateOf(block).shared {
					section, reads = block.Section, true
				}
				if k == 0 && stateOf(block).passing && m.Share != memory.ShareMay {
					return &stateOf(block).parked
				}
				if parked := s.mustWaitForHolders(t, block, m); parked != nil {
					return parked
				}
			}
			if reads {
				if writer := s.presence.hostWrites.touching(section); writer != nil {
					return writer
				}
			}
		}
	}
	for i := range t.copies.moves {
		if parked := s.moveMustWait(t, &t.copies.moves[i]); parked != nil {
			return parked
		}
	}
	for _, m := range t.entry.pins {
		for _, block := range m.blocks {
			if writer := s.presence.hostWrites.touching(block.Section); m.shared && writer != nil {
				return writer
			}
			if parked := s.mustWaitForHolders(t, block, &memory.Map{}); parked != nil {
				return parked
			}
		}
	}
	if s.presence.reading > 0 {
		return s.mustWaitForReaders(t)
	}
	return nil
}

// mustWaitForHolders is mustWaitFor, with t.order.After set, for a block whose storage t uses: through an item
// that maps it, or otherwise.
func (s *Scheduler) mustWaitForHolders(t *target, block *memory.Present, item *memory.Map) *parkedTasks {
	state := stateOf(block)
	count, infinite := block.Count()
	last := !infinite && int(count) <= len(state.holders)
	// The block is as good as a new one, unless the item asks whether there is one;
	// the host's own storage only for who would have that too.
	same := item.Section == block.Section && item.Presence == memory.MayBeAbsent && item.Share != memory.ShareMust &&
		(!state.shared || state.passing && item.Share == memory.ShareMay)
	if state.ignoring == 0 && (!last || !state.dirty && same && state.leaving == 0) {
		// The usual case, with thousands of holders in flight: the block
		// outlives them all, or equals the host's.
		return nil
	}
	for _, h := range state.holders {
		// Where the commands of a late one were is forgotten: its sync point
		// is that of a late copy.
		if h.by.order.At.Value == 0 || !h.by.exit.late && !s.order.MayFollow(&t.order.After, h.by.order.At) {
			continue
		}
		// An exit construct has no reference of its own: it would take
		// that of t.
		anew := last && (state.dirty || !same || len(h.by.Enter) == 0)
		if anew || h.ignoresCount {
			return &h.by.parked
		}
	}
	return nil
}

// mustWaitForReaders is mustWaitFor for tasks that are to read device memory which
// t uses themselves.
func (s *Scheduler) mustWaitForReaders(t *target) *parkedTasks {
	for _, m := range t.entry.pins {
		if len(m.readers) > 0 {
			return m.readers[0]
		}
	}
	for i := range t.Enter {
		if block := s.touched(t.Enter[i].Section); block != nil && len(stateOf(block).readers) > 0 {
			return stateOf(block).readers[0]
		}
	}
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if m.Kind != UpdateTo && m.Kind != UpdateFrom {
			continue
		}
		if block := s.touched(m.Host); block != nil && len(stateOf(block).readers) > 0 {
			return stateOf(block).readers[0]
		}
	}
	return nil
}

// touched returns a block that shares bytes with the section, or nil.
func (s *Scheduler) touched(section memory.Section) *memory.Present {
	block, _, err := s.presence.table.Lookup(section)
	if err == nil {
		return block
	}
	var overlap *memory.OverlapError
	if errors.As(err, &overlap) {
		block, _, _ = s.presence.table.Lookup(overlap.With)
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
		s.presence.blind = append(s.presence.blind, t)
	}
}

// ignoresCount reports whether the exit of an item deletes its block, or copies part
// of it to the host, whatever its count.
func ignoresCount(m *memory.Map) bool {
	return m.Type == memory.MapDelete || m.Delete || m.Always && m.Type.From()
}

// enter carries out the entry sequence of the region's maps, binds the kernel to
// the storage and takes the staging memory that copies need: after it only the
// loss of the device keeps the task from being placed, so that another one can
// rely on its copies. On an error nothing is changed.
func (s *Scheduler) enter(t *target, w *tasks.Work) error {
	if err := s.presence.table.CheckExit(t.Exit); err != nil {
		return err
	}
	if t.Infinite {
		if err := s.checkUndeclared(t.Enter); err != nil {
			return err
		}
	}
	pinned := len(t.entry.pins)
	s.presence.entries++
	t.entry.number = s.presence.entries
	var err error
	t.entry.uses, err = s.presence.table.Enter(t.Enter, t.entry.uses, s.memory.allocate, s.memory.free)
	if err != nil {
		return err
	}
	for i := range t.entry.uses {
		u := &t.entry.uses[i]
		if u.Present == nil {
			continue
		}
		state, _ := u.Present.State.(*blockState)
		if state == nil {
			state = &blockState{dirty: true}
			state.store = &state.own
			state.open(s, u.Present.Storage)
			state.site, state.label = t.Site, t.Label
			state.passing = state.shared && t.Enter[i].Share == memory.ShareMay
			u.Present.State, u.Present.Shared = state, state.shared
			state.own.addBlock(u.Present)
		}
		if u.CopyIn && u.Created && t.Enter[i].Size == u.Present.Section.Size {
			state.dirty = false
		}
		t.pin(state.store)
	}
	if err := s.prepare(t); err != nil {
		s.release(t, w)
		s.freeStaging(t)
		t.copies.uploads, t.copies.downloads, t.copies.streams, t.copies.outs = t.copies.uploads[:0], t.copies.downloads[:0], t.copies.streams[:0], t.copies.outs[:0]
		s.undoMoves(t)
		t.unpinFrom(pinned)
		return err
	}
	for i := range t.entry.uses {
		u := &t.entry.uses[i]
		if u.Present == nil {
			t.leaveOut(i)
		}
		if u.Created && t.Infinite {
			s.presence.table.MakeInfinite(u.Present)
		}
		if t.Found != nil {
			t.Found[i] = u.Present != nil
		}
		if u.Created && u.CopyIn {
			t.fill(stateOf(u.Present))
		}
	}
	t.attach()
	s.beginMoves(t)
	// Holders point into the slice: it must not move.
	if cap(t.entry.holds) < len(t.Exit) {
		t.entry.holds = make([]hold, 0, len(t.Exit))
	}
	for i := range t.Exit {
		m := &t.Exit[i]
		block, _, err := s.presence.table.Lookup(m.Section)
		switch {
		case err != nil || m.Size == 0 && m.Presence != memory.IfPresent:
		case block == nil:
			s.noteBlind(t)
		default:
			t.hold(block, ignoresCount(m))
		}
	}
	if t.operations {
		s.observeEntry(t)
	}
	return nil
}

// leaveOut takes an item out of t's exit that found nothing at its entry.
func (t *target) leaveOut(i int) {
	if t.Enter[i].Presence == memory.IfPresent && len(t.Exit) == len(t.Enter) {
		t.Exit[i] = memory.Map{Section: memory.Section{Ptr: t.Exit[i].Ptr}}
	}
}

// fill makes those who find the block wait until t's copies to it have been made,
// or have their place.
func (t *target) fill(state *blockState) {
	if state.filling == 0 {
		state.filling = t.entry.number
		t.entry.fills = append(t.entry.fills, state)
	}
}

// pin keeps m until t is complete.
func (t *target) pin(m *store) {
	m.pin()
	t.entry.pins = append(t.entry.pins, m)
}

// unpinFrom gives up the pins from the n-th on.
func (t *target) unpinFrom(n int) {
	for i, m := range t.entry.pins[n:] {
		m.unpin()
		t.entry.pins[n+i] = nil
	}
	t.entry.pins = t.entry.pins[:n]
}

// unpin gives up all that is kept until t is complete.
func (t *target) unpin() {
	t.unpinFrom(0)
	if t.dispatch.kernel != nil {
		t.dispatch.kernel.release()
		t.dispatch.kernel = nil
	}
}

// checkUndeclared refuses to declare what is present already.
func (s *Scheduler) checkUndeclared(maps []memory.Map) error {
	for i := range maps {
		if block := s.touched(maps[i].Section); block != nil {
			return fmt.Errorf("%w: %s: %s is present", ErrAssociated, maps[i].Label, block.Section)
		}
	}
	return nil
}

// prepare binds the kernel, finds what moves move, and takes staging memory.
func (s *Scheduler) prepare(t *target) error {
	var err error
	if err = t.checkImages(); err != nil {
		return err
	}
	if err = s.bind(t); err != nil {
		return err
	}
	s.planAttachments(t)
	if err = s.planMoves(t); err != nil {
		return err
	}
	for i := range t.entry.uses {
		u := &t.entry.uses[i]
		if !u.CopyIn || s.hostCanFill(u) {
			continue
		}
		size := t.Enter[i].StorageSize() - u.Skip
		if s.streams(size) && t.image(i) == nil {
			state := stateOf(u.Present)
			at := u.Present.Storage.Offset - state.Offset + u.Offset + u.Skip
			ring, err := s.newStream(t, state.store, state, at, size, unsafe.Add(t.Enter[i].Ptr, u.Skip))
			if err != nil {
				return err
			}
			ring.item = i
			t.copies.streams = append(t.copies.streams, ring)
			continue
		}
		st, err := s.memory.staging.Allocate(size)
		if err != nil {
			return fmt.Errorf("staging for a copy of %d bytes to the device: %w", size, err)
		}
		t.copies.uploads = append(t.copies.uploads, upload{i, st})
		t.copies.staging = append(t.copies.staging, st)
	}
	return s.planDownloads(t)
}

// filled lets those go on who wait for blocks that t created: what copies them
// in is done, or ahead of whatever is placed from now on.
func (t *target) filled() {
	for _, state := range t.entry.fills {
		state.filling = 0
	}
	if len(t.entry.fills) > 0 && t.s.presence.fillWaiters > 0 {
		t.s.presence.filling.Broadcast()
	}
	empty(&t.entry.fills)
}

// unfilled notes that the copies which the device should have made to storage
// that t created were not made: whoever else holds it cannot run.
func (t *target) unfilled(err error) {
	for _, up := range t.copies.uploads {
		if u := t.entry.uses[up.use]; u.Created {
			stateOf(u.Present).broken = err
		}
	}
}

// shared returns why storage that t shares has no contents, or nil.
func (t *target) shared() error {
	for _, u := range t.entry.uses {
		if u.Present == nil {
			continue
		}
		if err := stateOf(u.Present).broken; err != nil {
			return fmt.Errorf("the copy to storage that it shares failed: %w", err)
		}
	}
	return nil
}

// hold notes that t gives back a reference to the block when it finishes, and
// whether one of its items there ignores the count.
func (t *target) hold(block *memory.Present, ignoresCount bool) {
	state := stateOf(block)
	last := len(state.holders) - 1
	// The items of a construct are noted all at once.
	if last < 0 || state.holders[last].by != t {
		t.entry.holds = append(t.entry.holds, hold{by: t, block: block, index: len(state.holders)})
		state.holders = append(state.holders, &t.entry.holds[len(t.entry.holds)-1])
		last++
		if len(t.Enter) == 0 {
			state.leaving++
			// What it is to copy from there must not go under its hands.
			t.pin(state.store)
		}
	}
	if h := state.holders[last]; ignoresCount && !h.ignoresCount {
		h.ignoresCount = true
		state.ignoring++
	}
}

// letGo is the opposite of hold, for all of t's blocks.
func (t *target) letGo() {
	for i := range t.entry.holds {
		h := &t.entry.holds[i]
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
	empty(&t.entry.holds)
}

// hostCanFill reports whether the host may copy to a block itself, or need not at
// all.
func (s *Scheduler) hostCanFill(u *memory.Use) bool {
	state := stateOf(u.Present)
	return state.shared || u.Created && state.quiet()
}

// copyIn does the host's part of copying in, without the lock: to the storage
// itself or to staging.
func (s *Scheduler) copyIn(t *target, w *tasks.Work) error {
	for i := range t.copies.moves {
		t.copies.moves[i].touchBegin(t)
	}
	err := t.invalidateTouched()
	bytes := uint64(0)
	uploads := t.copies.uploads // in the order of the uses
	for i, u := range t.entry.uses {
		if !u.CopyIn || t.streaming(i) {
			continue
		}
		m := &t.Enter[i]
		t.tell(ompt.ScopeBegin, t.copyInOf(i))
		var to unsafe.Pointer
		if len(uploads) > 0 && uploads[0].use == i {
			st := &uploads[0].staging
			to, uploads = st.Host(), uploads[1:]
			t.touches(s.memory.stagingHeap, st, 0, m.StorageSize()-u.Skip)
		} else {
			st := &u.Present.Storage
			to = unsafe.Add(st.Host(), u.Offset+u.Skip)
			t.touches(s.memory.storageHeap, st, u.Offset+u.Skip, m.StorageSize()-u.Skip)
		}
		if image := t.image(i); image != nil {
			n, writing := image.write(to, m.StorageSize(), !u.Created, true)
			bytes += n
			err = cmp.Or(err, writing)
		} else {
			n, copying := copyBytes(to, unsafe.Add(m.Ptr, u.Skip), m.Size-u.Skip)
			bytes += n
			err = cmp.Or(err, copying)
		}
		t.tell(ompt.ScopeEnd, t.copyInOf(i))
	}
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		begins := m.op != nil && m.beginsOnHost()
		if begins {
			t.tell(ompt.ScopeBegin, m.op)
		}
		n, moving := m.begin(t)
		bytes += n
		err = cmp.Or(err, moving)
		if begins {
			t.tell(ompt.ScopeEnd, m.op)
		}
	}
	if flushing := t.flushTouched(); err == nil {
		err = flushing
	}
	if err == nil {
		var streamed uint64
		streamed, err = s.streamsIn(t, w)
		bytes += streamed
	}
	s.mu.Lock()
	s.stats.BytesToDevice += bytes
	for i := range t.entry.uses {
		if u := &t.entry.uses[i]; u.Present != nil && !u.Created {
			s.waitUntilFilled(t, stateOf(u.Present))
		}
	}
	for i := range t.copies.moves {
		if b := t.copies.moves[i].block; b != nil {
			s.waitUntilFilled(t, stateOf(b))
		}
	}
	s.mu.Unlock()
	return err
}

// streaming reports whether the item is copied in through a ring.
func (t *target) streaming(item int) bool {
	for _, st := range t.copies.streams {
		if st.item == item {
			return true
		}
	}
	return false
}

// waitUntilFilled waits, under mu, for the task that fills the block, if that
// entered before t did: so there is no cycle of tasks that wait.
func (s *Scheduler) waitUntilFilled(t *target, state *blockState) {
	for state.filling != 0 && state.filling < t.entry.number {
		s.presence.fillWaiters++
		s.presence.filling.Wait()
		s.presence.fillWaiters--
	}
}

// release gives back what enter counted, without copying anything.
func (s *Scheduler) release(t *target, w *tasks.Work) {
	maps := make([]memory.Map, len(t.Enter))
	for i, m := range t.Enter {
		if t.entry.uses[i].Present != nil {
			maps[i] = memory.Map{Section: m.Section, Type: memory.MapRelease, Presence: m.Presence, Label: m.Label}
		}
	}
	t.letGo()
	t.exit.items = s.presence.table.BeginExit(maps, t.exit.items)
	s.endExit(t, w)
}

// endExit ends t's exit: blocks that leave the presence table free their storage,
// and who waited for that tries again.
func (s *Scheduler) endExit(t *target, w *tasks.Work) {
	s.presence.removed = s.presence.table.EndExit(t.exit.items, s.presence.removed)
	s.goneAll(t, w)
}

// goneAll gives up the blocks that have just left the presence table by t's exit.
func (s *Scheduler) goneAll(t *target, w *tasks.Work) {
	for i, p := range s.presence.removed {
		s.presence.removed[i] = nil
		if t.operations && !t.goneTold {
			s.observeGone(t, p)
		}
		s.gone(p, w)
	}
}

// gone gives up a block that has left the presence table: who waited for that
// tries again, and its memory is free once nobody uses it.
func (s *Scheduler) gone(p *memory.Present, w *tasks.Work) {
	state := stateOf(p)
	state.forgetBlock(p)
	for _, h := range state.holders {
		s.noteBlind(h.by)
	}
	state.parked.restart(w)
	if !state.associated {
		s.forgetPointers(state.store)
	}
	m := state.store
	if state.associated && int(m.refs.Load()) == m.associations+2 && len(state.parked) == 0 && state.broken == nil {
		// Nobody but the program and the associations keeps the memory: no task knows
		// the block.
		p.State, state.store = nil, nil
		s.presence.table.Recycle(p)
		s.presence.spareBlocks = append(s.presence.spareBlocks, state)
	}
	m.unpin()
}

func (s *Scheduler) freeStaging(t *target) {
	for _, st := range t.copies.staging {
		freeAfter(s.memory.staging, st, &t.order.Used)
	}
	empty(&t.copies.staging)
}

// copyBytes copies n bytes between memory that does not overlap, or that is the
// same, and returns how many it copied.
func copyBytes(to, from unsafe.Pointer, n uint64) (copied uint64, err error) {
	if to == from {
		return 0, nil
	}
	err = protect.Touch(func() { copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n)) })
	return n, err
}
