package allocation

import (
	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/vk"
)

// exports are the allocations that foreign work can write.
type exports struct {
	mu  lockrank.Mutex[lockrank.Heap]
	all map[*Allocation]struct{}
}

// Export notes that foreign work can write an allocation from now on. It returns the buffer that
// the memory is part of, and the device address of its first byte, 0 if the device tells none.
func (m *Memory) Export(a *Allocation) (buffer vk.BufferRange, address uint64) {
	e := &m.exports
	e.mu.Lock()
	defer e.mu.Unlock()
	a.exported = true
	if e.all == nil {
		e.all = make(map[*Allocation]struct{})
	}
	e.all[a] = struct{}{}
	if a.Block.Address != 0 {
		address = a.Block.Address + a.Offset
	}
	return vk.BufferRange{Buffer: vk.Buffer(a.Block.ID), Offset: a.Offset, Size: a.Size}, address
}

// remove forgets an allocation that is given back.
func (e *exports) remove(a *Allocation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, a)
}

// Exported returns the allocations that foreign work can write. The caller has to unpin them.
func (m *Memory) Exported() (pinned []*Allocation) {
	e := &m.exports
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := range e.all {
		if a.pinAlive() {
			pinned = append(pinned, a)
		}
	}
	return pinned
}
