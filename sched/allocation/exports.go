package allocation

import (
	"iter"
	"maps"

	"github.com/vkomp/vkomp/vk"
)

// Export notes that foreign work can write an allocation from now on. It returns the buffer that
// the memory is part of, and the device address of its first byte, 0 if the device tells none.
func (m *Memory) Export(a *Allocation) (buffer vk.BufferRange, address uint64) {
	a.exported = true
	if m.exports == nil {
		m.exports = make(map[*Allocation]struct{})
	}
	m.exports[a] = struct{}{}
	if a.Block.Address != 0 {
		address = a.Block.Address + a.Offset
	}
	return vk.BufferRange{Buffer: vk.Buffer(a.Block.ID), Offset: a.Offset, Size: a.Size}, address
}

// Exported returns the allocations that foreign work can write, in no order.
func (m *Memory) Exported() iter.Seq[*Allocation] { return maps.Keys(m.exports) }
