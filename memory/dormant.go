package memory

import "math"

// Dormant is where a dormant block is found and counted: half a line of the
// processor's cache. It holds until a block is inserted or removed.
type Dormant struct {
	start uintptr
	block *Present // nil where no block is found
	size  uint64   // of the block, in bytes

	// count is the reference count of a dormant block, forever if it is infinite. For
	// any other block it is 0, and the block's record has the count. entered is how
	// many constructs have entered since the block is dormant.
	count, entered uint32
}

// forever is the count of a dormant block without a reference count.
const forever = math.MaxUint32

// MakeDormant says that nothing refers to the block besides its reference count: the
// caller has no record of a construct under way that will read or change it. The
// block is then dormant until a function of the table, other than Dormant and Has,
// returns or changes it; Wake does no more than that. Until then a construct is
// counted where it finds the block, without a look at its record: among many blocks
// that are mapped in no order, the processor waits for each line of memory that a
// construct touches.
//
// MakeDormant does nothing for a block of which exits are under way, or whose count
// is near its limit.
func (t *Table) MakeDormant(p *Present) {
	if p.removed || p.dormant || p.exiting || p.ending > 0 || p.count >= forever-1 {
		return
	}
	r := t.starts.at(p.Section.Start())
	r.count = p.count
	if p.infinite {
		r.count = forever
	}
	p.dormant = true
}

// Dormant returns where to count a construct with that section alone, which enters
// or, if leaving, exits, and does no more than that: the section is the beginning of
// a dormant block, or all of it, and the block stays present. Otherwise it returns
// nil.
func (t *Table) Dormant(s Section, leaving bool) *Dormant {
	r := t.starts.at(s.Start())
	if r == nil || s.Size == 0 || s.Size > r.size {
		return nil
	}
	if leaving && r.count <= 1 || !leaving && (r.count == 0 || r.count == forever-1 || r.entered == math.MaxUint32) {
		return nil
	}
	return r
}

// Enter counts the construct for which the table has returned r.
func (r *Dormant) Enter() {
	r.entered++
	if r.count != forever {
		r.count++
	}
}

// Leave counts the construct that leaves, for which the table has returned r.
func (r *Dormant) Leave() {
	if r.count != forever {
		r.count--
	}
}

// Has reports whether the byte at an address is present.
func (t *Table) Has(address uintptr) bool {
	if t.starts.at(address) != nil {
		return true
	}
	p := t.blocks.at(t.blocks.below(address))
	return p != nil && address < p.Section.End()
}

// Wake makes a dormant block one that is not.
func (t *Table) Wake(p *Present) {
	if p.dormant {
		t.starts.at(p.Section.Start()).wake()
	}
}

// wake is Wake for the block.
func (r *Dormant) wake() {
	if r.count == 0 {
		return
	}
	p := r.block
	p.dormant = false
	if !p.infinite {
		p.count = r.count
	}
	p.uses += uint64(r.entered)
	r.count, r.entered = 0, 0
}
