package memory

import (
	"fmt"
	"math/bits"
)

// starts finds a block by its start address, since most sections are whole blocks.
// It is a hash table with linear probing, at most half full.
type starts struct {
	slots []Dormant // their number is a power of two; empty ones have no block
	shift int       // 64 minus the binary logarithm of len(slots)
	n     int
}

const fewestStarts = 16

// home returns the slot at which the search for an address begins. Addresses are
// aligned, so it uses the high bits of a product, which depend on all bits.
func (s *starts) home(address uintptr) int {
	return int(uint64(address) * 0x9e3779b97f4a7c15 >> s.shift)
}

// at returns the slot of the block that starts at the address, or nil. It holds until
// a block is inserted or removed.
func (s *starts) at(address uintptr) *Dormant {
	if s.n == 0 {
		return nil
	}
	mask := len(s.slots) - 1
	for i := s.home(address); ; i++ {
		slot := &s.slots[i&mask]
		if slot.block == nil {
			return nil
		}
		if slot.start == address {
			return slot
		}
	}
}

// insert adds a block that starts where no other does.
func (s *starts) insert(block *Present) {
	if 2*(s.n+1) > len(s.slots) {
		s.grow()
	}
	s.n++
	s.put(Dormant{start: block.Section.Start(), block: block, size: block.Section.Size})
}

func (s *starts) put(slot Dormant) {
	mask := len(s.slots) - 1
	i := s.home(slot.start) & mask
	for s.slots[i].block != nil {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
}

func (s *starts) grow() {
	old := s.slots
	s.slots = make([]Dormant, max(2*len(old), fewestStarts))
	s.shift = 64 - bits.TrailingZeros(uint(len(s.slots)))
	for _, slot := range old {
		if slot.block != nil {
			s.put(slot)
		}
	}
}

// remove takes away the block that starts at the address; there must be one.
// Entries that were displaced past it move up, so that searches still find them.
func (s *starts) remove(address uintptr) {
	mask := len(s.slots) - 1
	gap := s.home(address) & mask
	for s.slots[gap].start != address || s.slots[gap].block == nil {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; s.slots[i].block != nil; i = (i + 1) & mask {
		// An entry moves into the gap only if that is not before its home slot.
		if (i-s.home(s.slots[i].start))&mask >= (i-gap)&mask {
			s.slots[gap] = s.slots[i]
			gap = i
		}
	}
	s.slots[gap] = Dormant{}
	s.n--
}

// validate checks that every block is found by its start.
func (s *starts) validate() error {
	n := 0
	for _, slot := range s.slots {
		if slot.block == nil {
			continue
		}
		n++
		p := slot.block
		if found := s.at(slot.start); slot.start != p.Section.Start() || slot.size != p.Section.Size || found == nil || found.block != p {
			return fmt.Errorf("memory: block %s is not found at %#x", describe(p.Section, p.Label), slot.start)
		}
		if p.dormant != (slot.count > 0) || p.dormant && p.infinite != (slot.count == forever) || !p.dormant && slot.entered > 0 {
			return fmt.Errorf("memory: block %s: it is dormant: %t, and %d constructs are counted where it is filed", describe(p.Section, p.Label), p.dormant, slot.count)
		}
	}
	if n != s.n || 2*n > len(s.slots) {
		return fmt.Errorf("memory: %d blocks in %d slots, %d are counted", n, len(s.slots), s.n)
	}
	return nil
}
