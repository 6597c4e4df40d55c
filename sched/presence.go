package sched

import (
	"sync"

	"github.com/vkomp/vkomp/memory"
)

// presence is what is mapped, and what tasks in flight are doing to it.
type presence struct {
	table *memory.Table
	// allocate and free are the functions by which the table gets and gives back storage.
	allocate func(*memory.Map) (memory.Storage, error)
	free     func(memory.Storage)
	// entries counts the entries of tasks. filling is signalled when a block has been
	// filled, for which fillWaiters goroutines wait.
	entries     uint64
	filling     *sync.Cond
	fillWaiters int
	// absentExits are the tasks in flight whose exit has an item that is absent so far: it
	// would find storage that another task maps meanwhile.
	absentExits []*target
	// hostWrites are the host's storage that tasks in flight are to write; reading
	// counts the allocations that some are to read themselves.
	hostWrites hostWrites
	reading    int
	// spareBlocks are for associations.
	spareBlocks []*blockState
	// hits and left are working memory of hit, removed that of endExitLocked.
	hits    []memory.Use
	left    []memory.Exit
	removed []*memory.Present
}
