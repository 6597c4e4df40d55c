package sched

import (
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
	// hostWrites is the host storage that tasks in flight will write. reading counts the transfers
	// in which the host will read device memory itself (see allocation.Allocation.Readers).
	hostWrites hostWrites
	reading    int
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
