package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/transfer"
)

// blockState is the scheduler's record of a present block. Scheduler.mu guards it.
type blockState struct {
	// Allocation is the corresponding storage: own, or the allocation with which the block is
	// associated.
	*allocation.Allocation
	own        allocation.Allocation
	associated bool
	// passing says that the storage is the host's own, and that the block goes away with the
	// target constructs that map it.
	passing bool
	// dirty says that the contents may differ from the host's. They are equal if a target construct has made the block
	// and copied all of it to the device, and since then no kernel, transfer or foreign work has written it, and no data
	// construct has entered it, which would keep it while the program changes either copy.
	dirty bool
	// told says that an observer was told of the storage. goneBy is the task whose exit tells
	// it that the storage is gone.
	told bool
	// place is the block's index among the allocation's blocks.
	place  int32
	goneBy *target
	// image has the pointers in the storage if that is an image of a value, and is nil otherwise. It is an object of its own, because few
	// blocks have one: without it a blockState fits into 512 bytes, and for larger objects that have
	// pointers Go's allocator takes longer.
	image *transfer.Pointers
	// filling is the entry number of the task that copies to the block, as long as the copy is
	// neither made nor placed; otherwise it is 0.
	filling uint64
	// holders are the tasks in flight that give back a reference to the block when they finish.
	holders []*hold
	// ignoring counts the holders that remove or copy the block whatever its reference count,
	// leaving those that are exit constructs.
	ignoring, leaving int32
	// residents counts the resident tasks in flight that use the block. Each of them has a reference to
	// it.
	residents int32
	// parked are the tasks that can enter only after the block is gone, or that wait until there are no
	// residents.
	parked parkedTasks
	// broken is the reason why the first contents never came.
	broken error
}

// quiet reports whether nothing is about to copy or remove the block whatever its reference count, and its
// storage has its contents and is the device's own.
func (b *blockState) quiet() bool {
	return b.filling == 0 && b.ignoring == 0 && b.broken == nil && !b.Shared && b.image == nil
}

// outlives reports whether more than the given number of constructs refer to the block p besides the tasks in flight, so
// that it stays when these have ended.
func (b *blockState) outlives(p *memory.Present, others int) bool {
	count, infinite := p.Count()
	return infinite || int(count) > len(b.holders)+int(b.residents)+others
}

// asNew reports whether a task can do with the block p, through an item, what it could do with a new one. Only an item
// that may share host storage can use a block that does.
func (b *blockState) asNew(p *memory.Present, item *memory.Map) bool {
	return !b.dirty && item.Section == p.Section && item.Presence == memory.MayBeAbsent && item.Share != memory.ShareMust &&
		(!b.Shared || b.passing && item.Share == memory.ShareMay)
}

// stateOf returns the scheduler's record of a block.
func stateOf(p *memory.Present) *blockState { return p.State.(*blockState) }

// blockAt returns where a block's storage begins in its allocation.
func blockAt(p *memory.Present) uint64 { return p.Storage.Offset - stateOf(p).Offset }

// listLocked adds a block to those of its allocation, in O(1).
func (b *blockState) listLocked(p *memory.Present) {
	b.place = int32(len(b.Blocks))
	b.Blocks = append(b.Blocks, p)
}

// unlistLocked removes a block from those of its allocation, in O(1): the last one gets its place.
func (b *blockState) unlistLocked() {
	i, last := b.place, int32(len(b.Blocks)-1)
	b.Blocks[i] = b.Blocks[last]
	stateOf(b.Blocks[i]).place = i
	b.Blocks[last] = nil
	b.Blocks = b.Blocks[:last]
}

// hold is a reference to a block that a task gives back when it finishes.
type hold struct {
	by    *target
	block *memory.Present
	// index is the hold's index among the block's holders.
	index int
	// ignoresCount says that the task's exit deletes the block, or copies from it, whatever
	// its reference count.
	ignoresCount bool
}

// holdLocked notes that t gives back a reference to the block when it finishes, and whether one
// of its items then ignores the reference count.
func (t *target) holdLocked(block *memory.Present, ignoresCount bool) {
	state := stateOf(block)
	last := len(state.holders) - 1
	// The items of a construct are noted one after the other.
	if last < 0 || state.holders[last].by != t {
		t.entry.holds = append(t.entry.holds, hold{by: t, block: block, index: len(state.holders)})
		state.holders = append(state.holders, &t.entry.holds[len(t.entry.holds)-1])
		last++
		if len(t.Enter) == 0 {
			state.leaving++
			// The exit may copy from the memory, which is therefore kept until it is over.
			t.pinLocked(state.Allocation)
		}
	}
	if h := state.holders[last]; ignoresCount && !h.ignoresCount {
		h.ignoresCount = true
		state.ignoring++
	}
}

// letGoLocked undoes holdLocked for all of t's blocks.
func (t *target) letGoLocked() {
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
