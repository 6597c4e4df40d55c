package allocation

import (
	"errors"
	"fmt"
	"iter"
)

// ErrInvalidPointer: a pointer that is nil where one is needed, that points into memory which was
// freed, past its end, or not to the beginning of an allocation where that is required.
var ErrInvalidPointer = errors.New("invalid device pointer")

// Pointer is an address in the memory of a device. It identifies the allocation into which it
// points, so that a stale pointer differs from one to an allocation that has the same address
// later. The zero Pointer is nil.
type Pointer struct {
	// Address is the address on the device, in bytes.
	Address uint64
	// name is the slot of the allocation, counted from 1, and above it the slot's generation.
	name uint64
}

// Add returns the pointer n bytes further on.
func (p Pointer) Add(n int64) Pointer {
	p.Address += uint64(n)
	return p
}

// IsNil reports whether p is the zero Pointer.
func (p Pointer) IsNil() bool { return p == Pointer{} }

// firstAddress is where the addresses begin that stand for memory of a device that tells none.
// They are not used twice.
const firstAddress = 1 << 44

// Pointers are the allocations of a device that pointers name.
type Pointers struct {
	// slots has what pointers name, free the slots of those that name nothing.
	slots []slot
	free  []uint32
	// first is the generation of new slots.
	first uint32
	// next is the next address for memory whose address is not known.
	next uint64
}

// slot is what pointers with its index and generation name.
type slot struct {
	allocation *Allocation
	generation uint32
}

// Init makes p empty. generation is what Generation returned of the Pointers that the device had
// before, 0 for the first, so that pointers of those are told from pointers of p.
func (p *Pointers) Init(generation uint32) { *p = Pointers{first: max(generation, 1)} }

// Generation returns the argument of Init for the next Pointers of the device.
func (p *Pointers) Generation() uint32 {
	next := p.first
	for i := range p.slots {
		next = max(next, p.slots[i].generation+1)
	}
	return next
}

// To returns the pointer to the first byte of an allocation.
func (p *Pointers) To(a *Allocation) Pointer {
	if a.slot == 0 {
		if n := len(p.free); n > 0 {
			a.slot = p.free[n-1]
			p.free = p.free[:n-1]
		} else {
			p.slots = append(p.slots, slot{generation: p.first})
			a.slot = uint32(len(p.slots))
		}
		p.slots[a.slot-1].allocation = a
		if a.address = a.Address(); a.address == 0 {
			p.next = max(p.next, firstAddress)
			a.address = p.next
			p.next += (a.Size + 255) &^ 255
		}
	}
	return Pointer{Address: a.address, name: uint64(p.slots[a.slot-1].generation)<<32 | uint64(a.slot)}
}

// Forget makes all pointers to an allocation stale.
func (p *Pointers) Forget(a *Allocation) {
	if a.slot == 0 {
		return
	}
	s := &p.slots[a.slot-1]
	s.allocation = nil
	// A slot that has had all generations is not used again.
	if s.generation++; s.generation != 0 {
		p.free = append(p.free, a.slot)
	}
	a.slot = 0
}

// Find returns the allocation into which at points, and the offset in bytes. size bytes from there
// on have to lie in it.
func (p *Pointers) Find(at Pointer, size uint64) (*Allocation, uint64, error) {
	if at.IsNil() {
		return nil, 0, fmt.Errorf("%w: nil", ErrInvalidPointer)
	}
	index, generation := uint32(at.name), uint32(at.name>>32)
	if index == 0 || int(index) > len(p.slots) || p.slots[index-1].generation != generation || p.slots[index-1].allocation == nil {
		return nil, 0, fmt.Errorf("%w: what %#x pointed into was freed%s", ErrInvalidPointer, at.Address, p.whereabouts(at.Address, nil))
	}
	a := p.slots[index-1].allocation
	offset := at.Address - a.address
	if offset > a.Size || size > a.Size-offset {
		return nil, 0, fmt.Errorf("%w: %d bytes at %#x are not all inside of %s%s", ErrInvalidPointer, size, at.Address, a.Describe(), p.whereabouts(at.Address, a))
	}
	return a, offset, nil
}

// whereabouts says, for errors, what lies at an address now, unless it is the allocation other.
func (p *Pointers) whereabouts(address uint64, other *Allocation) string {
	for a := range p.All() {
		if a != other && address-a.address < a.Size {
			return fmt.Sprintf("; %d bytes into %s now", address-a.address, a.Describe())
		}
	}
	return ""
}

// All returns the allocations that pointers name, in the order of their slots.
func (p *Pointers) All() iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for i := range p.slots {
			if a := p.slots[i].allocation; a != nil && !yield(a) {
				return
			}
		}
	}
}
