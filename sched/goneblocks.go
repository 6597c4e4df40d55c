package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/memory"
)

// mostGoneBlocks is the largest number of records of gone blocks that are kept for new blocks, once
// while they are gone and once while they are spare. A record and what it refers to are some 700 bytes.
const mostGoneBlocks = 1024

// endedLocked notes that the memory of a mapped block that has left the presence table has been given back. Every
// task that refers to a block keeps its memory, so none of them does any more. What remains of the block does not
// keep the program's storage, which Go's garbage collector may free.
func (p *presence) endedLocked(block *memory.Present) {
	block.Section, block.Storage = memory.Section{}, memory.Storage{}
	stateOf(block).own.Reset()
	if len(p.gone) < mostGoneBlocks {
		p.gone = append(p.gone, block)
	}
}

// reclaimLocked makes the records of gone blocks ready for new ones.
func (p *presence) reclaimLocked() {
	for i, block := range p.gone {
		p.gone[i] = nil
		p.reuseLocked(block)
	}
	p.gone = p.gone[:0]
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
// that is gone, and endedLocked has reset its own storage.
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
