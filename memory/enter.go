package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Use is what one item of a construct got at entry.
type Use struct {
	Present *Present // nil for an item of size zero that is in no block
	Offset  uint64   // bytes, of the item inside the block
	Created bool     // this construct created the block

	// CopyIn says that the item is to be copied from host to device: its type
	// includes to, and the block was created by this construct or the item is
	// always. An item whose bytes another item of the construct copies is not
	// copied twice.
	CopyIn bool
}

// Enter is the entry sequence of OpenMP 5.1 §2.21.7.1 for all items of one
// construct, all or nothing. It appends one Use an item to uses[:0].
//
// Items that lie in one block, be it present or created here, count once. A
// block is created for each section that is absent and that no other absent
// section encloses: allocate is called for it, and the storage it returned goes
// back through release when a later one fails. Neither may use the table.
//
// An item of size zero creates and counts nothing: it is present where its
// pointer lies in a block, those created here included.
//
// Errors leave the table unchanged: *OverlapError (ErrPartialOverlap) for an
// item that covers a block or another item in part, ErrExiting for one that
// touches a block being removed, ErrInvalidMapType, ErrInvalidSection,
// ErrCountOverflow, and whatever allocate returned, wrapped. uses is then
// returned empty.
func (t *Table) Enter(items []Map, uses []Use, allocate func(size uint64) (Storage, error), release func(Storage)) ([]Use, error) {
	t.construct++
	uses = slices.Grow(uses[:0], len(items))[:len(items)]
	err := t.place(items, uses)
	if err == nil {
		err = t.allocate(allocate, release)
	}
	if err != nil {
		clear(uses)
		uses = uses[:0]
	} else {
		t.commit(items, uses)
	}
	clear(t.created)
	t.created = t.created[:0]
	return uses, err
}

// place finds the block of every item, those to be created gathered in
// t.created, and decides the copies. It changes no block.
//
// It walks the items by address, an enclosing item before the items in it:
// those of one block follow each other, and the item that a new block is made
// for comes first.
func (t *Table) place(items []Map, uses []Use) error {
	t.sort(items)
	var current *Present // the block that the walk is in
	var created bool     // current is not in the table yet
	var copied uintptr   // up to here, the bytes from the item on are copied in
	for _, i := range t.order {
		item := &items[i]
		if !item.valid() {
			return fmt.Errorf("memory: enter %s: %w", item, ErrInvalidSection)
		}
		if !item.Type.Enters() {
			return fmt.Errorf("memory: enter %s: %w", item, ErrInvalidMapType)
		}
		if current == nil || item.Start() >= current.Section.End() {
			p, found := t.lookup(item.Section)
			switch {
			case p != nil && p.exiting:
				return fmt.Errorf("memory: enter %s: %w", item, ErrExiting)
			case found == partly:
				return p.overlap(item)
			case found == absent && item.Size == 0:
				uses[i] = Use{}
				continue
			case found == absent:
				p = &Present{Section: item.Section, Label: item.Label}
				t.created = append(t.created, p)
			}
			if !p.infinite && p.count == math.MaxUint32 {
				return fmt.Errorf("memory: enter %s: %w", item, ErrCountOverflow)
			}
			current, created = p, found == absent
		} else if !current.Section.contains(item.Section) {
			err := current.overlap(item).(*OverlapError)
			err.Present = !created
			return err
		}
		use := Use{Present: current, Offset: uint64(item.Start() - current.Section.Start()), Created: created}
		if item.Size > 0 && item.Type.To() && (created || item.Always) && item.End() > copied {
			use.CopyIn = true
			copied = item.End()
		}
		uses[i] = use
	}
	return nil
}

// sort leaves in t.order the items by address, at one address the largest
// first.
func (t *Table) sort(items []Map) {
	t.order = t.order[:0]
	sorted := true
	for i := range items {
		t.order = append(t.order, int32(i))
		sorted = sorted && (i == 0 || before(items, int32(i-1), int32(i)) < 0)
	}
	if !sorted {
		slices.SortFunc(t.order, func(i, j int32) int { return before(items, i, j) })
	}
}

func before(items []Map, i, j int32) int {
	x, y := &items[i], &items[j]
	if c := cmp.Compare(x.Start(), y.Start()); c != 0 {
		return c
	}
	if c := cmp.Compare(y.Size, x.Size); c != 0 {
		return c
	}
	return cmp.Compare(i, j)
}

// allocate gives every block in t.created its storage, or none.
func (t *Table) allocate(allocate func(uint64) (Storage, error), release func(Storage)) error {
	for i, p := range t.created {
		s, err := allocate(p.Section.Size)
		if err != nil {
			for _, q := range slices.Backward(t.created[:i]) {
				release(q.Storage)
			}
			return fmt.Errorf("memory: enter section %s: %w", describe(p.Section, p.Label), err)
		}
		p.Storage = s
	}
	return nil
}

// commit files the new blocks and counts the construct once a block.
func (t *Table) commit(items []Map, uses []Use) {
	for _, p := range t.created {
		t.insert(p)
	}
	for i := range uses {
		p := uses[i].Present
		if p == nil || items[i].Size == 0 || p.construct == t.construct {
			continue
		}
		p.construct = t.construct
		p.uses++
		if !p.infinite {
			p.count++
		}
	}
}
