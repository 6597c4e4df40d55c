package memory

import (
	"fmt"
	"iter"
	"math"

	"github.com/tidwall/btree"
)

// Present is one storage block that has corresponding storage on the device.
// The lock that guards its Table guards it.
type Present struct {
	Section Section // the whole block
	Storage Storage // its corresponding storage
	Label   string  // of the item that created the block
	State   any     // the scheduler's own; memory never reads it

	// count is the reference count: it rises when a construct enters and falls
	// when its exit ends.
	count    uint32
	infinite bool
	uses     uint64

	// ending counts the exits that have begun and not ended, each of which will
	// lower count. exiting says that no count will be left when they have.
	ending  uint32
	exiting bool
	removed bool

	// construct is the last one that counted this block: Table.construct.
	construct uint64
}

// Count returns the reference count, or infinite for a block that counts
// nothing. Exits that have begun and not ended are still counted.
func (p *Present) Count() (n uint32, infinite bool) { return p.count, p.infinite }

// Uses returns how many constructs have entered the block so far.
func (p *Present) Uses() uint64 { return p.uses }

// Exiting reports whether a construct is removing the block.
func (p *Present) Exiting() bool { return p.exiting }

// remaining is the count that is left once the exits that have begun end; 0
// for an infinite one.
func (p *Present) remaining() uint32 {
	if p.exiting {
		return 0
	}
	return p.count - p.ending
}

// Table is the presence table of one device: disjoint blocks of host storage
// with their corresponding storage. It is not safe for concurrent use: the
// scheduler's lock guards it.
type Table struct {
	blocks  btree.Map[uintptr, *Present] // by Section.Start
	starts  map[uintptr]*Present         // the same: a section is most often a whole block
	exiting int                          // blocks that are exiting

	construct uint64     // counts Enter and BeginExit
	order     []int32    // scratch: items by address
	created   []*Present // scratch: blocks that the construct creates
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{starts: map[uintptr]*Present{}} }

// Len returns the number of blocks.
func (t *Table) Len() int { return t.blocks.Len() }

// All returns the blocks in ascending order of address. The table must not
// change during the iteration.
func (t *Table) All() iter.Seq[*Present] {
	return func(yield func(*Present) bool) {
		t.blocks.Scan(func(_ uintptr, p *Present) bool { return yield(p) })
	}
}

// Lookup returns the block that s lies in and where in the block, in bytes.
// It is nil when no byte of s is present, and an *OverlapError, which matches
// ErrPartialOverlap, when s is present in part or across several blocks. A
// section of size zero is present where its pointer is inside a block.
//
// A block that is exiting is still present.
func (t *Table) Lookup(s Section) (p *Present, offset uint64, err error) {
	p, found := t.lookup(s)
	switch found {
	case inside:
		return p, uint64(s.Start() - p.Section.Start()), nil
	case partly:
		return nil, 0, p.overlap(&Map{Section: s})
	}
	return nil, 0, nil
}

type presence int

const (
	absent presence = iota
	inside
	partly
)

// lookup returns the block that s lies in, or the first that it touches.
func (t *Table) lookup(s Section) (*Present, presence) {
	if p := t.starts[s.Start()]; p != nil && s.Size <= p.Section.Size {
		return p, inside
	}
	if p := t.atOrBelow(s.Start()); p != nil && s.Start() < p.Section.End() {
		if p.Section.contains(s) {
			return p, inside
		}
		return p, partly
	}
	if s.Size == 0 {
		return nil, absent
	}
	if p := t.atOrAbove(s.Start()); p != nil && p.Section.Start() < s.End() {
		return p, partly
	}
	return nil, absent
}

// atOrBelow returns the last block that starts at address or below it.
func (t *Table) atOrBelow(address uintptr) (found *Present) {
	t.blocks.Descend(address, func(_ uintptr, p *Present) bool {
		found = p
		return false
	})
	return found
}

// atOrAbove returns the first block that starts at address or above it.
func (t *Table) atOrAbove(address uintptr) (found *Present) {
	t.blocks.Ascend(address, func(_ uintptr, p *Present) bool {
		found = p
		return false
	})
	return found
}

// Exiting returns the first exiting block that s touches, or nil: a construct
// that enters s waits until that exit ended.
func (t *Table) Exiting(s Section) (found *Present) {
	if t.exiting == 0 {
		return nil
	}
	if p := t.atOrBelow(s.Start()); p != nil && s.Start() < p.Section.End() && p.exiting {
		return p
	}
	if s.Size == 0 || !s.valid() {
		return nil
	}
	t.blocks.Ascend(s.Start(), func(start uintptr, p *Present) bool {
		if start >= s.End() {
			return false
		}
		if p.exiting {
			found = p
		}
		return found == nil
	})
	return found
}

// InsertInfinite associates s with st: a block whose count is infinite, which
// only Remove takes away. A section that is present in part is an
// *OverlapError, one that is present ErrAlreadyPresent, an empty one
// ErrInvalidSection.
func (t *Table) InsertInfinite(s Section, st Storage) (*Present, error) {
	if s.Size == 0 || !s.valid() {
		return nil, fmt.Errorf("memory: associate section %s: %w", s, ErrInvalidSection)
	}
	switch p, found := t.lookup(s); found {
	case inside:
		return nil, fmt.Errorf("memory: associate section %s: %w as %s", s, ErrAlreadyPresent, describe(p.Section, p.Label))
	case partly:
		return nil, p.overlap(&Map{Section: s})
	}
	p := &Present{Section: s, Storage: st, infinite: true}
	t.insert(p)
	return p, nil
}

func (t *Table) insert(p *Present) {
	t.blocks.Set(p.Section.Start(), p)
	t.starts[p.Section.Start()] = p
}

// Remove takes p away whatever its count, as a disassociation and a hard pause
// do. Exits of p that have begun may still be ended, to no effect. The caller
// frees the storage. A block that is not in the table is ErrNotPresent.
func (t *Table) Remove(p *Present) error {
	if t.starts[p.Section.Start()] != p {
		return fmt.Errorf("memory: remove %s: %w", describe(p.Section, p.Label), ErrNotPresent)
	}
	t.remove(p)
	return nil
}

func (t *Table) remove(p *Present) {
	t.blocks.Delete(p.Section.Start())
	delete(t.starts, p.Section.Start())
	if p.exiting {
		t.exiting--
	}
	p.count, p.ending, p.infinite, p.exiting, p.removed = 0, 0, false, false, true
}

// overlap is the error for item, which touches p and is not inside it.
func (p *Present) overlap(item *Map) error {
	return &OverlapError{
		Section: item.Section, Label: item.Label,
		With: p.Section, WithLabel: p.Label, Present: true,
	}
}

// Validate checks the order of the blocks, that none touches another, and
// their counts. It is linear in the number of blocks.
func (t *Table) Validate() error {
	var previous *Present
	var err error
	exiting := 0
	t.blocks.Scan(func(start uintptr, p *Present) bool {
		name := describe(p.Section, p.Label)
		switch {
		case start != p.Section.Start():
			err = fmt.Errorf("memory: block %s is filed at %#x", name, start)
		case t.starts[start] != p:
			err = fmt.Errorf("memory: block %s is not filed by its start", name)
		case p.Section.Size == 0 || !p.Section.valid():
			err = fmt.Errorf("memory: block %s: %w", name, ErrInvalidSection)
		case previous != nil && start < previous.Section.End():
			err = fmt.Errorf("memory: block %s overlaps block %s", name, describe(previous.Section, previous.Label))
		case p.removed:
			err = fmt.Errorf("memory: block %s is removed and in the table", name)
		case p.infinite && (p.count != 0 || p.ending != 0 || p.exiting):
			err = fmt.Errorf("memory: block %s is infinite and counts %d, %d of them ending", name, p.count, p.ending)
		case !p.infinite && p.exiting != (p.remaining() == 0):
			err = fmt.Errorf("memory: block %s counts %d, %d of them ending; exiting is %t", name, p.count, p.ending, p.exiting)
		case p.exiting && p.ending == 0 || p.ending > math.MaxInt32 || !p.exiting && p.ending > p.count:
			err = fmt.Errorf("memory: block %s counts %d, %d of them ending", name, p.count, p.ending)
		}
		if p.exiting {
			exiting++
		}
		previous = p
		return err == nil
	})
	if err == nil && len(t.starts) != t.blocks.Len() {
		err = fmt.Errorf("memory: %d blocks by start, %d by order", len(t.starts), t.blocks.Len())
	}
	if err == nil && exiting != t.exiting {
		err = fmt.Errorf("memory: %d blocks are exiting, %d are counted", exiting, t.exiting)
	}
	return err
}
