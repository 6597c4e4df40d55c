package sched

import (
	"errors"
	"math"
	"sync"

	"github.com/vkomp/vkomp/memory"
)

// presence is the storage that is mapped, and what tasks in flight do to it. Scheduler.mu guards it.
type presence struct {
	table *memory.Table
	// allocate and free are the functions with which the table gets and gives back storage.
	allocate func(*memory.Map) (memory.Storage, error)
	free     func(memory.Storage)
	// entries counts the entries of tasks. filling is signalled when a block has its first contents,
	// for which fillWaiters goroutines wait.
	entries     uint64
	filling     *sync.Cond
	fillWaiters int
	// absentExits are the tasks in flight whose exit has an item that is absent so far. The exit
	// would find the storage of a task that maps it meanwhile.
	absentExits []*target
	// orphans counts the resident tasks in flight whose block has left the table, once for each such
	// block: their exits would find the storage of such a task as well. orphaned are the tasks that wait
	// until there are none.
	orphans  int
	orphaned parkedTasks
	// hostWrites is the host storage that tasks in flight will write.
	hostWrites hostWrites
	// gone are blocks that tasks refer to no more, and spare records of such blocks for new ones.
	gone  []*memory.Present
	spare []*blockState
	// counting is working memory of hitManyLocked, entered and exiting are that of now. removed has the blocks that have
	// just left the table, and refers to none between calls.
	counting []*memory.Present
	entered  []memory.Use
	exiting  []memory.Exit
	removed  []*memory.Present
}

// vacant reports whether a task in flight has an exit that finds a block absent, or may.
func (p *presence) vacant() bool { return len(p.absentExits) > 0 || p.orphans > 0 }

// Block is host storage that has corresponding storage.
type Block struct {
	// Host is the host's side of the block.
	Host memory.Section
	// Count is the reference count. Infinite says that there is none, and Shared that both sides are the
	// same storage.
	Count            uint32
	Infinite, Shared bool
}

// Blocks returns the storage blocks that are present, in ascending order of address. On a device that is
// lost there are none.
func (s *Scheduler) Blocks() (blocks []Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss.err != nil {
		return nil
	}
	for p := range s.presence.table.All() {
		b := Block{Host: p.Section, Shared: p.Shared}
		b.Count, b.Infinite = p.Count()
		blocks = append(blocks, b)
	}
	return blocks
}

// touchedLocked returns a block that shares bytes with the section, or nil.
func (s *Scheduler) touchedLocked(section memory.Section) *memory.Present {
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

// keptLocked returns the block in which the section lies, and where, if it is kept. Otherwise it returns nil.
func (s *Scheduler) keptLocked(section memory.Section, others int) (block *memory.Present, offset uint64) {
	block, offset, err := s.presence.table.Lookup(section)
	if err != nil || block == nil || !kept(block, others) {
		return nil, 0
	}
	return block, offset
}

// kept reports whether no exit has begun to remove the block, and more than the given number of constructs refer to it
// besides the tasks in flight.
func kept(block *memory.Present, others int) bool {
	count, _ := block.Count()
	return !block.Exiting() && count != math.MaxUint32 && stateOf(block).outlives(block, others)
}

// stayingLocked returns the block in which the item lies, and where, if the block is present and stays
// so: besides the tasks in flight, more than the given number of constructs refer to it, and nothing is
// about to copy or remove it. Otherwise it returns nil.
func (s *Scheduler) stayingLocked(m *memory.Map, others int) (block *memory.Present, offset uint64) {
	block, offset = s.keptLocked(m.Section, others)
	if block == nil || !m.Counts() || !stateOf(block).quiet() {
		return nil, 0
	}
	return block, offset
}
