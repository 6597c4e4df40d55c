package memory

import (
	"fmt"
	"iter"
	"math/bits"
)

// leafBlocks is the capacity of a leaf. It bounds how many blocks an insertion
// moves; leaves hold about 40 blocks on average.
const leafBlocks = 64

// order holds the blocks of a table sorted by address, as a sorted list of sorted
// leaves. A search is two binary searches, which start at the place found last; an
// insertion moves half a leaf on average, and the list of leaves where a leaf is
// split.
type order struct {
	starts []uintptr // of the first block of each leaf
	leaves []*leaf   // none is empty
	n      int       // blocks
	recent place     // found by the last search, or changed since
	spare  *leaf
}

type leafSlot struct {
	start uintptr
	block *Present
}

type leaf struct {
	n     int
	slots [leafBlocks]leafSlot
}

// place is where a block is: leaf l, index i. Index -1 is before the first.
type place struct{ l, i int }

// below returns the place of the last block that starts at address or below it.
func (o *order) below(address uintptr) place {
	at := o.recent
	if at.l >= len(o.starts) || address < o.starts[at.l] || at.l+1 < len(o.starts) && o.starts[at.l+1] <= address {
		if at.l = lastBelow(o.starts, address); at.l < 0 {
			return place{0, -1}
		}
		at.i = -1
	}
	f := o.leaves[at.l]
	if i := at.i; i < 0 || i >= f.n || address < f.slots[i].start || i+1 < f.n && f.slots[i+1].start <= address {
		at.i = f.lastBelow(address)
	}
	o.recent = at
	return at
}

// lastBelow returns the index of the last sorted address that is at most the given
// one, or -1.
func lastBelow(sorted []uintptr, address uintptr) int {
	if len(sorted) == 0 || address < sorted[0] {
		return -1
	}
	low := uint(0)
	for n := uint(len(sorted) - 1); n > 0; { // the answer is in [low, low+n]
		half := (n + 1) / 2
		// A mask instead of a branch, which would be mispredicted half of the time.
		_, above := bits.Sub64(uint64(address), uint64(sorted[low+half]), 0)
		low += half & (uint(above) - 1)
		n -= half
	}
	return int(low)
}

// lastBelow is the same search in a leaf whose first block starts at or below
// address.
func (f *leaf) lastBelow(address uintptr) int {
	low := uint(0)
	for n := uint(f.n - 1); n > 0; {
		half := (n + 1) / 2
		_, above := bits.Sub64(uint64(address), uint64(f.slots[low+half].start), 0)
		low += half & (uint(above) - 1)
		n -= half
	}
	return int(low)
}

// at returns the block at a place, nil before the first block or past the last.
func (o *order) at(p place) *Present {
	if p.i < 0 || p.l >= len(o.leaves) {
		return nil
	}
	return o.leaves[p.l].slots[p.i].block
}

// after returns the place that follows p.
func (o *order) after(p place) place {
	if p.l < len(o.leaves) && p.i+1 >= o.leaves[p.l].n {
		return place{p.l + 1, 0}
	}
	return place{p.l, p.i + 1}
}

// all iterates over the blocks, starting at a place.
func (o *order) all(p place) iter.Seq[*Present] {
	return func(yield func(*Present) bool) {
		if p.i < 0 {
			p = place{0, 0}
		}
		for b := o.at(p); b != nil && yield(b); b = o.at(p) {
			p = o.after(p)
		}
	}
}

// insert puts block after the place that below returned for its start.
func (o *order) insert(at place, block *Present) {
	start := block.Section.Start()
	o.n++
	if len(o.leaves) == 0 {
		o.addLeaf(0, start)
	} else if o.leaves[at.l].n == leafBlocks {
		at = o.split(at, start)
	}
	f := o.leaves[at.l]
	i := at.i + 1
	copy(f.slots[i+1:f.n+1], f.slots[i:f.n])
	f.slots[i] = leafSlot{start, block}
	f.n++
	if i == 0 {
		o.starts[at.l] = start
	}
	o.recent = place{at.l, i}
}

// split makes room after a place in a full leaf and returns the new position of
// that place. Blocks inserted in ascending order leave full leaves behind.
func (o *order) split(at place, start uintptr) place {
	keep := leafBlocks / 2
	if at.l == len(o.leaves)-1 && at.i == leafBlocks-1 {
		keep = leafBlocks
	}
	f := o.leaves[at.l]
	g := o.addLeaf(at.l+1, start)
	g.n = copy(g.slots[:], f.slots[keep:])
	clear(f.slots[keep:])
	f.n = keep
	if g.n > 0 {
		o.starts[at.l+1] = g.slots[0].start
	}
	if at.i < keep && g.n > 0 {
		return at
	}
	return place{at.l + 1, at.i - keep}
}

// remove takes the block at a place away.
func (o *order) remove(at place) {
	f := o.leaves[at.l]
	o.n--
	f.n--
	copy(f.slots[at.i:f.n], f.slots[at.i+1:])
	f.slots[f.n] = leafSlot{}
	if f.n == 0 {
		o.dropLeaf(at.l)
		return
	}
	o.starts[at.l] = f.slots[0].start
	if f.n <= leafBlocks/4 {
		for _, l := range [...]int{at.l, at.l - 1} {
			if l >= 0 && l+1 < len(o.leaves) && o.leaves[l].n+o.leaves[l+1].n <= leafBlocks/2 {
				o.merge(l)
				return
			}
		}
	}
}

// merge moves the blocks of the leaf after l into l.
func (o *order) merge(l int) {
	f, g := o.leaves[l], o.leaves[l+1]
	copy(f.slots[f.n:], g.slots[:g.n])
	clear(g.slots[:g.n])
	f.n, g.n = f.n+g.n, 0
	o.dropLeaf(l + 1)
}

func (o *order) addLeaf(l int, start uintptr) *leaf {
	f := o.spare
	if o.spare = nil; f == nil {
		f = new(leaf)
	}
	o.starts = append(o.starts, 0)
	o.leaves = append(o.leaves, nil)
	copy(o.starts[l+1:], o.starts[l:])
	copy(o.leaves[l+1:], o.leaves[l:])
	o.starts[l], o.leaves[l] = start, f
	return f
}

// dropLeaf removes an empty leaf, and keeps it for the next one.
func (o *order) dropLeaf(l int) {
	last := len(o.leaves) - 1
	o.spare = o.leaves[l]
	copy(o.starts[l:], o.starts[l+1:])
	copy(o.leaves[l:], o.leaves[l+1:])
	o.leaves[last] = nil
	o.starts, o.leaves = o.starts[:last], o.leaves[:last]
}

// validate checks that the blocks are sorted and that starts matches the leaves.
func (o *order) validate() error {
	if len(o.starts) != len(o.leaves) {
		return fmt.Errorf("memory: %d leaves with %d starts", len(o.leaves), len(o.starts))
	}
	n, previous := 0, uintptr(0)
	for l, f := range o.leaves {
		if f.n < 1 || f.n > leafBlocks || o.starts[l] != f.slots[0].start {
			return fmt.Errorf("memory: leaf %d of %d blocks starts at %#x, filed at %#x", l, f.n, f.slots[0].start, o.starts[l])
		}
		for _, slot := range f.slots[:f.n] {
			if slot.block == nil || slot.block.Section.Start() != slot.start || slot.start <= previous {
				return fmt.Errorf("memory: leaf %d: a block is filed at %#x, after %#x", l, slot.start, previous)
			}
			previous = slot.start
		}
		for _, slot := range f.slots[f.n:] {
			if slot.block != nil {
				return fmt.Errorf("memory: leaf %d holds on to block %s", l, describe(slot.block.Section, slot.block.Label))
			}
		}
		n += f.n
	}
	if n != o.n {
		return fmt.Errorf("memory: %d blocks in the leaves, %d are counted", n, o.n)
	}
	if o.spare != nil && *o.spare != (leaf{}) {
		return fmt.Errorf("memory: the spare leaf holds blocks")
	}
	return nil
}
