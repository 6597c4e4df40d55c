package memory

import (
	"fmt"
	"iter"
	"math"

	"github.com/vkomp/vkomp/internal/invariants"
)

// Present is one block of host storage that has corresponding storage on the
// device. It is guarded by the lock that guards its Table.
type Present struct {
	Section Section // the whole block
	Storage Storage // its corresponding storage
	Label   string  // label of the item that created the block
	State   any     // owned by the scheduler; memory does not read it

	// count is the reference count: it rises when a construct enters and falls
	// when its exit ends. ending counts the exits that have begun and not ended;
	// each of them will lower a finite count. uses counts all entries so far.
	count, ending uint32
	uses          uint64

	// Shared says that the storage is the host's own. The code that allocated the
	// storage sets it.
	Shared bool

	infinite bool // has no count

	// claimed says that exits leave one reference: see Table.Claim.
	claimed bool

	// exiting says that no count will remain when the exits that have begun have
	// ended.
	exiting bool
	removed bool

	// referred says that the block was removed while exits of it were under way:
	// these still refer to the record, so it must not be reused.
	referred bool
	spare    bool // in Table.spares

	// dormant says that the block is dormant: see Table.MakeDormant. Its slot of
	// Table.starts then has its count, and what is to be added to uses.
	dormant bool

	// construct is the number of the last construct that counted this block, from
	// Table.construct.
	construct uint64
}

// Count returns the reference count, or infinite for a block that no exit removes.
// Exits that have begun and not ended are still counted.
//
// Whoever asks for the counts of a block, or changes them, has got it from the table
// after it was dormant.
func (p *Present) Count() (n uint32, infinite bool) {
	p.mustBeAwake()
	if p.infinite || p.claimed {
		return 0, true
	}
	return p.count, false
}

// Uses returns how many constructs have entered the block so far.
func (p *Present) Uses() uint64 {
	p.mustBeAwake()
	return p.uses
}

// mustBeAwake panics in builds with the tag invariants if the block is dormant.
func (p *Present) mustBeAwake() {
	if invariants.Enabled && p.dormant {
		panic("memory: the counts of block " + describe(p.Section, p.Label) + ", which is dormant, are not in its record")
	}
}

// Exiting reports whether a construct is removing the block.
func (p *Present) Exiting() bool { return p.exiting }

// Removed reports whether the block has left the table.
func (p *Present) Removed() bool { return p.removed }

// Retain counts one more construct that refers to the block, as an entry does. The
// block is in the table and not exiting, and its count is below math.MaxUint32.
func (p *Present) Retain() {
	p.mustBeAwake()
	p.uses++
	if !p.infinite {
		p.count++
	}
}

// Stays reports whether the block is present and remains so when one reference is
// given back. Then Relinquish may give that back. In any other case the exit of the
// reference is that of BeginExitOf and EndExit.
func (p *Present) Stays() bool {
	p.mustBeAwake()
	return !p.removed && !p.exiting && (p.infinite || p.remaining() > 1)
}

// Relinquish gives back one reference to a block that stays.
func (p *Present) Relinquish() {
	p.mustBeAwake()
	if !p.infinite {
		p.count--
	}
}

// Retain is Present.Retain for the blocks of the items of one construct. A block that
// is there several times counts once.
func (t *Table) Retain(blocks []*Present) { t.once(blocks, (*Present).Retain) }

// Relinquish is Present.Relinquish for the blocks of the items of one construct, each
// of which stays. A block that is there several times counts once.
func (t *Table) Relinquish(blocks []*Present) { t.once(blocks, (*Present).Relinquish) }

// once has one construct count each of its blocks once.
func (t *Table) once(blocks []*Present, count func(*Present)) {
	t.construct++
	for _, p := range blocks {
		if p.construct != t.construct {
			p.construct = t.construct
			count(p)
		}
	}
}

// remaining returns the count that will be left when the exits under way have
// ended, 0 if the count is infinite.
func (p *Present) remaining() uint32 {
	if p.exiting || p.infinite {
		return 0
	}
	return p.count - p.ending
}

// Table is the presence table of one device: disjoint blocks of host storage
// with their corresponding storage. It is not safe for concurrent use: the
// scheduler's lock guards it.
type Table struct {
	blocks  order  // by Section.Start
	starts  starts // the same blocks by start address: most sections are whole blocks
	exiting int    // blocks that are exiting
	spares  []*Present

	construct uint64     // counts Enter, Retain and Relinquish
	order     []int32    // scratch: items by address
	created   []creation // scratch: blocks that the construct creates
	asked     Map        // scratch: the item handed to allocate
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{} }

// Len returns the number of blocks.
func (t *Table) Len() int { return t.blocks.n }

// All returns the blocks in ascending order of address. The table must not
// change during the iteration.
func (t *Table) All() iter.Seq[*Present] {
	return func(yield func(*Present) bool) {
		for p := range t.blocks.all(place{}) {
			t.Wake(p)
			if !yield(p) {
				return
			}
		}
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

// lookup returns the block that contains s, or the first block that s touches.
func (t *Table) lookup(s Section) (*Present, presence) {
	if slot := t.starts.at(s.Start()); slot != nil && s.Size <= slot.size {
		slot.wake()
		return slot.block, inside
	}
	return t.search(s)
}

// search is lookup by address alone, which is faster for a section that is absent and
// follows what was looked up last.
func (t *Table) search(s Section) (*Present, presence) {
	at := t.blocks.below(s.Start())
	if p := t.blocks.at(at); p != nil && s.Start() < p.Section.End() {
		t.Wake(p)
		if p.Section.contains(s) {
			return p, inside
		}
		return p, partly
	}
	if s.Size == 0 {
		return nil, absent
	}
	if p := t.blocks.at(t.blocks.after(at)); p != nil && p.Section.Start() < s.End() {
		t.Wake(p)
		return p, partly
	}
	return nil, absent
}

// Exiting returns the first block being removed that s touches, or nil. A construct
// that enters s has to wait until that exit has ended.
func (t *Table) Exiting(s Section) *Present {
	if t.exiting == 0 {
		return nil
	}
	at := t.blocks.below(s.Start())
	if p := t.blocks.at(at); p != nil && s.Start() < p.Section.End() && p.exiting {
		return p
	}
	if s.Size == 0 || !s.valid() {
		return nil
	}
	for p := range t.blocks.all(t.blocks.after(at)) {
		if p.Section.Start() >= s.End() {
			break
		}
		if p.exiting {
			return p
		}
	}
	return nil
}

// Touching returns the blocks that share bytes with s in ascending order of address.
// The table must not change during the iteration.
func (t *Table) Touching(s Section) iter.Seq[*Present] {
	return func(yield func(*Present) bool) {
		first := t.blocks.below(s.Start())
		if p := t.blocks.at(first); p == nil || p.Section.End() <= s.Start() {
			first = t.blocks.after(first)
		}
		for p := range t.blocks.all(first) {
			if p.Section.Start() >= s.End() {
				return
			}
			t.Wake(p)
			if !yield(p) {
				return
			}
		}
	}
}

// InsertInfinite associates s with st as a block whose count is infinite: only
// Remove takes it away. The error is an *OverlapError for a section that is present
// in part, ErrAlreadyPresent for one that is present, and ErrInvalidSection for an
// empty one.
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
	p := t.record(s, "")
	p.Storage, p.infinite = st, true
	t.insert(p)
	if invariants.Enabled {
		t.holds()
	}
	return p, nil
}

// Claim keeps a block that Enter has created, for the reference that it has then,
// until MakeInfinite or Disclaim: exits take other references alone, and do not
// delete it.
func (t *Table) Claim(p *Present) {
	t.Wake(p)
	p.claimed = true
}

// Disclaim makes p a block that exits remove, as any other.
func (t *Table) Disclaim(p *Present) {
	t.Wake(p)
	p.claimed = false
}

// MakeInfinite gives p an infinite count, so that only Remove takes it away; it
// serves variables declared with the declare target directive. Exits of p that
// have begun end without effect. A block that is not in the table is left as it
// is.
func (t *Table) MakeInfinite(p *Present) {
	if p.removed {
		return
	}
	t.Wake(p)
	if p.exiting {
		t.exiting--
	}
	p.infinite, p.count, p.exiting, p.claimed = true, 0, false, false
	if invariants.Enabled {
		t.holds()
	}
}

func (t *Table) insert(p *Present) {
	start := p.Section.Start()
	t.blocks.insert(t.blocks.below(start), p)
	t.starts.insert(p)
}

// record returns an empty record for a block.
func (t *Table) record(s Section, label string) *Present {
	var p *Present
	if last := len(t.spares) - 1; last >= 0 {
		p = t.spares[last]
		t.spares[last] = nil
		t.spares = t.spares[:last]
		p.removed, p.spare = false, false
	} else {
		p = new(Present)
	}
	p.Section, p.Label = s, label
	return p
}

// Recycle returns the record of a removed block to the table, which reuses it for
// another block. The caller must not have kept a reference to it, except in exits
// that have begun. While there are such exits, and for a block that is still in the
// table, Recycle does nothing. Calling it is optional.
func (t *Table) Recycle(p *Present) {
	if !p.removed || p.referred || p.spare {
		return
	}
	*p = Present{removed: true, spare: true}
	t.spares = append(t.spares, p)
}

// Remove takes p away whatever its count, as a disassociation and a hard pause
// do. Exits of p that have begun may still be ended, without effect. The caller
// frees the storage. It is ErrNotPresent for a block that is not in the table.
func (t *Table) Remove(p *Present) error {
	if slot := t.starts.at(p.Section.Start()); slot == nil || slot.block != p {
		return fmt.Errorf("memory: remove %s: %w", describe(p.Section, p.Label), ErrNotPresent)
	}
	t.remove(p)
	if invariants.Enabled {
		t.holds()
	}
	return nil
}

func (t *Table) remove(p *Present) {
	start := p.Section.Start()
	t.blocks.remove(t.blocks.below(start))
	t.starts.remove(start)
	if p.exiting {
		t.exiting--
	}
	p.referred = p.ending > 0
	p.count, p.ending, p.infinite, p.claimed, p.exiting, p.dormant, p.removed = 0, 0, false, false, false, false, true
}

// overlap returns the error for an item that covers p in part.
func (p *Present) overlap(item *Map) *OverlapError {
	return &OverlapError{
		Section: item.Section, Label: item.Label,
		With: p.Section, WithLabel: p.Label, Present: true,
	}
}

// Validate checks that the blocks are sorted and disjoint, that both indices find
// all of them, and that their counts are consistent. It is linear in the number of
// blocks.
func (t *Table) Validate() error {
	if err := t.blocks.validate(); err != nil {
		return err
	}
	if err := t.starts.validate(); err != nil {
		return err
	}
	var previous *Present
	exiting := 0
	for p := range t.blocks.all(place{}) {
		if err := p.validate(previous); err != nil {
			return err
		}
		if slot := t.starts.at(p.Section.Start()); slot == nil || slot.block != p {
			return fmt.Errorf("memory: block %s is not filed by its start", describe(p.Section, p.Label))
		}
		if p.exiting {
			exiting++
		}
		previous = p
	}
	if t.starts.n != t.blocks.n {
		return fmt.Errorf("memory: %d blocks by start, %d by order", t.starts.n, t.blocks.n)
	}
	if exiting != t.exiting {
		return fmt.Errorf("memory: %d blocks are exiting, %d are counted", exiting, t.exiting)
	}
	for _, p := range t.spares {
		if !p.spare || !p.removed || p.referred || p.Section.Ptr != nil || p.State != nil {
			return fmt.Errorf("memory: the record of block %s is spare and in use", describe(p.Section, p.Label))
		}
	}
	return nil
}

// validate checks a block that follows previous, which may be nil.
func (p *Present) validate(previous *Present) error {
	name := describe(p.Section, p.Label)
	switch {
	case p.Section.Size == 0 || !p.Section.valid():
		return fmt.Errorf("memory: block %s: %w", name, ErrInvalidSection)
	case previous != nil && p.Section.Start() < previous.Section.End():
		return fmt.Errorf("memory: block %s overlaps block %s", name, describe(previous.Section, previous.Label))
	case p.removed || p.spare:
		return fmt.Errorf("memory: block %s is removed and in the table", name)
	case p.dormant && (p.exiting || p.ending > 0):
		return fmt.Errorf("memory: block %s is dormant, and %d exits are under way", name, p.ending)
	case p.infinite && (p.count != 0 || p.exiting):
		return fmt.Errorf("memory: block %s is infinite and counts %d, %d of them ending", name, p.count, p.ending)
	case !p.infinite && p.exiting != (p.remaining() == 0):
		return fmt.Errorf("memory: block %s counts %d, %d of them ending; exiting is %t", name, p.count, p.ending, p.exiting)
	case p.exiting && p.ending == 0 || p.ending > math.MaxInt32 || !p.exiting && !p.infinite && p.ending > p.count:
		return fmt.Errorf("memory: block %s counts %d, %d of them ending", name, p.count, p.ending)
	}
	return nil
}
