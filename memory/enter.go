package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
)

// Use is the result of Enter for one item of a construct.
type Use struct {
	Present *Present // nil for an item of size zero or with IfPresent that lies in no block
	Offset  uint64   // bytes, of the item from the beginning of the block
	Created bool     // this construct created the block

	// CopyIn says that the item is to be copied from host to device: its type
	// includes to, and the block was created by this construct or the item is
	// always. An item whose bytes another item of the construct copies is not
	// copied twice.
	CopyIn bool

	// Skip is how many of the item's first bytes another item copies.
	Skip uint64
}

// Enter is the entry sequence of OpenMP 5.1 §2.21.7.1 for all items of one
// construct, all or nothing. It appends one Use an item to uses[:0].
//
// Items that lie in one block, whether it was present or is created here, count
// once. A block is created for each absent section that no other absent section
// encloses. allocate is called with the item of that section; the item's Share is
// then the strictest of all items in the block (ShareMust if one of them asks for
// it). allocate must not keep the item. If a later allocation fails, the storage
// that allocate returned is passed to release. Neither function may use the table.
//
// MustBePresent refers to the table before the construct: all of the item must
// lie in one block before any block is created.
//
// An item of size zero creates and counts nothing: it is present if its pointer
// lies in a block, including the blocks created here. An IfPresent item creates
// nothing either. It counts if all of it lies in a block or, when its size is
// zero, if its pointer does (OpenMP 6.0 on assumed-size arrays). The caller leaves
// items whose Use has no block out of the construct's exit.
//
// Errors leave the table unchanged: *OverlapError (ErrPartialOverlap) for an
// item that covers a block or another item in part, ErrNotPresent, ErrExiting
// for one that touches a block being removed, ErrNotShared, ErrInvalidMapType,
// ErrInvalidSection, ErrCountOverflow, and whatever allocate returned, wrapped.
// uses is then returned empty.
func (t *Table) Enter(items []Map, uses []Use, allocate func(item *Map) (Storage, error), release func(Storage)) ([]Use, error) {
	if len(items) == 0 {
		return uses[:0], nil
	}
	t.construct++
	uses = slices.Grow(uses[:0], len(items))[:len(items)]
	err := t.locate(items, uses)
	if err == nil {
		err = t.allocate(items, allocate, release)
	}
	if err != nil {
		clear(uses)
		uses = uses[:0]
		for _, c := range t.created {
			c.block.removed = true
			t.Recycle(c.block)
		}
	} else {
		t.commit(items, uses)
	}
	clear(t.created)
	t.created = t.created[:0]
	if invariants.Enabled {
		t.holds()
	}
	return uses, err
}

// creation is a block that a construct creates.
type creation struct {
	block *Present
	item  int32 // index of the item that it is created for
	share Share // combined from all items in the block
}

// locate finds the block of every item and decides the copies. Blocks that have
// to be created are collected in t.created; no block is changed.
//
// It visits the items by address, and an enclosing item before the items inside
// it, so that the items of one block are visited in succession and the item for
// which a new block is created comes first.
func (t *Table) locate(items []Map, uses []Use) error {
	t.sort(items)
	var current *Present // the block that contains the current item
	var created bool     // current is not in the table yet
	var copied uintptr   // end of the bytes, from the current item on, that are copied in already
	for _, i := range t.order {
		item := &items[i]
		if !item.valid() {
			return fmt.Errorf("memory: enter %s: %w", item, ErrInvalidSection)
		}
		if !item.Type.Enters() {
			return fmt.Errorf("memory: enter %s: %w", item, ErrInvalidMapType)
		}
		if current == nil || item.Start() >= current.Section.End() {
			var p *Present
			var found presence
			if created {
				p, found = t.search(item.Section) // this block is probably absent too
			} else {
				p, found = t.lookup(item.Section)
			}
			switch {
			case found == partly && item.Presence == IfPresent:
				uses[i] = Use{}
				continue
			case p != nil && p.exiting:
				return fmt.Errorf("memory: enter %s: %w", item, ErrExiting)
			case found == partly:
				return item.refused("enter", p.overlap(item))
			case found == absent && item.Presence == MustBePresent:
				return item.refused("enter", nil)
			case found == absent && (item.Size == 0 || item.Presence == IfPresent):
				uses[i] = Use{}
				continue
			case found == absent:
				p = t.record(item.Section, item.Label)
				t.created = append(t.created, creation{block: p, item: i, share: item.Share})
			}
			if !p.infinite && p.count == math.MaxUint32 {
				return fmt.Errorf("memory: enter %s: %w", item, ErrCountOverflow)
			}
			current, created = p, found == absent
		} else if !current.Section.contains(item.Section) {
			if item.Presence == IfPresent {
				uses[i] = Use{}
				continue
			}
			err := current.overlap(item)
			err.Present = !created
			return item.refused("enter", err)
		}
		switch {
		case created && item.Presence == MustBePresent:
			return item.refused("enter", nil)
		case created:
			t.created[len(t.created)-1].combine(item)
		case item.Share == ShareMust && !current.Shared:
			return fmt.Errorf("memory: enter %s: block %s: %w", item, describe(current.Section, current.Label), ErrNotShared)
		}
		use := Use{Present: current, Offset: uint64(item.Start() - current.Section.Start()), Created: created}
		if item.Size > 0 && item.Type.To() && (created || item.Always) && item.End() > copied {
			use.CopyIn = true
			if copied > item.Start() {
				use.Skip = uint64(copied - item.Start())
			}
			copied = item.End()
		}
		uses[i] = use
	}
	return nil
}

// combine takes in the Share of another item of the block. An item of size zero has
// no storage, so it asks for nothing.
func (c *creation) combine(item *Map) {
	switch {
	case item.Share == ShareMust:
		c.share = ShareMust
	case item.Size > 0 && c.share != ShareMust:
		c.share = min(c.share, item.Share)
	}
}

// refused returns the error for an item that lies in no block: the overlap if
// there is one, and ErrNotPresent if the item must be present.
func (m *Map) refused(verb string, overlap *OverlapError) error {
	switch {
	case m.Presence != MustBePresent:
		return overlap
	case overlap == nil:
		return fmt.Errorf("memory: %s %s: %w", verb, m, ErrNotPresent)
	}
	return fmt.Errorf("memory: %s %s: %w: %w", verb, m, ErrNotPresent, overlap)
}

// sort leaves the indices of the items in t.order, by address. Of items at one
// address the largest comes first, and of equal items those that create nothing
// come last.
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
	if xIf, yIf := x.Presence == IfPresent, y.Presence == IfPresent; xIf != yIf {
		if yIf {
			return -1
		}
		return 1
	}
	return cmp.Compare(i, j)
}

// allocate gets storage for every block in t.created. If one allocation fails, it
// releases the others.
func (t *Table) allocate(items []Map, allocate func(*Map) (Storage, error), release func(Storage)) error {
	for i := range t.created {
		c := &t.created[i]
		t.asked = items[c.item]
		t.asked.Share = c.share
		s, err := allocate(&t.asked)
		t.asked = Map{}
		if err != nil {
			for _, d := range slices.Backward(t.created[:i]) {
				release(d.block.Storage)
			}
			return fmt.Errorf("memory: enter section %s: %w", describe(c.block.Section, c.block.Label), err)
		}
		c.block.Storage = s
	}
	return nil
}

// commit inserts the new blocks and counts the construct once for each block.
func (t *Table) commit(items []Map, uses []Use) {
	for _, c := range t.created {
		t.insert(c.block)
	}
	for i := range uses {
		p := uses[i].Present
		if p == nil || !items[i].Counts() || p.construct == t.construct {
			continue
		}
		p.construct = t.construct
		p.uses++
		if !p.infinite {
			p.count++
		}
	}
}
