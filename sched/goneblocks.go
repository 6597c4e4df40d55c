package sched

import (
	"fmt"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
)

// mostGoneBlocks is the largest number of records of gone blocks that are kept for new blocks, once
// while they are gone and once while they are spare. A record and what it refers to are some 700 bytes.
const mostGoneBlocks = 1024

// goneBlocks are mapped blocks that have left the presence table and whose memory has been given back.
// Every task that refers to a block keeps its memory, so none of them does any more. The last one
// may hold any lock or none when it gives up the memory, which is why they have a lock of their own.
type goneBlocks struct {
	mu     lockrank.Mutex[lockrank.Leaf]
	blocks []*memory.Present
	// count is the number of blocks, for those who look without the lock.
	count atomic.Int32
}

// add adds a block, unless there are many. What remains of it does not keep the program's storage, which Go's garbage
// collector may free.
func (g *goneBlocks) add(p *memory.Present) {
	p.Section, p.Storage = memory.Section{}, memory.Storage{}
	stateOf(p).own.Reset()
	if g.count.Load() >= mostGoneBlocks {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocks = append(g.blocks, p)
	g.count.Store(int32(len(g.blocks)))
}

// takeTo appends the blocks to a slice and forgets them.
func (g *goneBlocks) takeTo(blocks []*memory.Present) []*memory.Present {
	if g.count.Load() == 0 {
		return blocks
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	blocks = append(blocks, g.blocks...)
	clear(g.blocks)
	g.blocks = g.blocks[:0]
	g.count.Store(0)
	return blocks
}

// reclaimLocked makes the records of gone blocks ready for new ones.
func (p *presence) reclaimLocked() {
	p.removed = p.gone.takeTo(p.removed[:0])
	for i, block := range p.removed {
		p.removed[i] = nil
		p.reuseLocked(block)
	}
}

// reuseLocked makes the record of a block that is gone ready for a new one, unless there are many. No
// task refers to the block.
func (p *presence) reuseLocked(block *memory.Present) {
	if len(p.spare) >= mostGoneBlocks {
		return
	}
	state := stateOf(block)
	if invariants.Enabled && (len(state.holders)+len(state.parked) > 0 || state.ignoring != 0 || state.leaving != 0 || state.residents != 0 || state.filling != 0) {
		panic(fmt.Sprintf("sched: block %s is gone, and tasks refer to it", block.Section))
	}
	state.reset()
	block.State = nil
	p.table.Recycle(block)
	p.spare = append(p.spare, state)
}

// newBlockLocked returns a record for a new block, whose contents may differ from the host's.
func (p *presence) newBlockLocked() *blockState {
	n := len(p.spare) - 1
	if n < 0 {
		return &blockState{dirty: true}
	}
	state := p.spare[n]
	p.spare[n], p.spare = nil, p.spare[:n]
	state.dirty = true
	return state
}

// reset makes b the zero record, except for the memory of short lists. No task is in the lists of a block
// that is gone, and goneBlocks.add has reset its own storage.
func (b *blockState) reset() {
	const kept = 64
	b.holders, b.parked = b.holders[:0], b.parked[:0]
	if cap(b.holders) > kept {
		b.holders = nil
	}
	if cap(b.parked) > kept {
		b.parked = nil
	}
	b.Allocation, b.associated, b.passing, b.dirty, b.told = nil, false, false, false, false
	b.place, b.goneBy, b.image, b.filling = 0, nil, nil, 0
	b.ignoring, b.leaving, b.residents, b.broken = 0, 0, 0, nil
}
