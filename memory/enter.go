package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Use is what one item of a construct got at entry.
type Use struct {
	Present *Present // nil for an item of size zero, or IfPresent, that is in no block
	Offset  uint64   // bytes, of the item inside the block
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
// Items that lie in one block, be it present or created here, count once. A
// block is created for each section that is absent and that no other absent
// section encloses: allocate is called with that item, its Share being what all
// items of the block can live with (ShareMust, where one insists, else the most
// reserved). It must not keep the item. The storage it returned goes back
// through release when a later one fails. Neither may use the table.
//
// MustBePresent is about the table as it was: before any block is created, all
// of the item must lie in one block.
//
// An item of size zero creates and counts nothing: it is present where its
// pointer lies in a block, those created here included. An IfPresent item
// creates nothing either, and counts where it lies in a block: all of it, or,
// when its size is zero, its pointer (OpenMP 6.0 on assumed-size arrays). The
// caller leaves those whose Use is empty out of the construct's exit.
//
// Errors leave the table unchanged: *OverlapError (ErrPartialOverlap) for an
// item that covers a block or another item in part, ErrNotPresent, ErrExiting
// for one that touches a block being removed, ErrNotShared, ErrInvalidMapType,
// ErrInvalidSection, ErrCountOverflow, and whatever allocate returned, wrapped.
// uses is then returned empty.
func (t *Table) Enter(items []Map, uses []Use, allocate func(item *Map) (Storage, error), release func(Storage)) ([]Use, error) {
	t.construct++
	uses = slices.Grow(uses[:0], len(items))[:len(items)]
	err := t.place(items, uses)
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
	if invariants {
		t.holds()
	}
	return uses, err
}

// creation is a block that a construct creates.
type creation struct {
	block *Present
	item  int32 // that it is created for
	share Share // of all its items
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
			t.created[len(t.created)-1].join(item)
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

// join takes note of what another item of the block asks. One of size zero has
// no storage that could be kept apart.
func (c *creation) join(item *Map) {
	switch {
	case item.Share == ShareMust:
		c.share = ShareMust
	case item.Size > 0 && c.share != ShareMust:
		c.share = min(c.share, item.Share)
	}
}

// refused is the error for an item that lies in no block: because of overlap,
// unless that is nil, and because it must be present, if it must.
func (m *Map) refused(verb string, overlap *OverlapError) error {
	switch {
	case m.Presence != MustBePresent:
		return overlap
	case overlap == nil:
		return fmt.Errorf("memory: %s %s: %w", verb, m, ErrNotPresent)
	}
	return fmt.Errorf("memory: %s %s: %w: %w", verb, m, ErrNotPresent, overlap)
}

// sort leaves in t.order the items by address, at one address the largest
// first, and of equal ones those that create nothing last.
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

// allocate gives every block in t.created its storage, or none.
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

// commit files the new blocks and counts the construct once a block.
func (t *Table) commit(items []Map, uses []Use) {
	for _, c := range t.created {
		t.insert(c.block)
	}
	for i := range uses {
		p := uses[i].Present
		if p == nil || !items[i].counts() || p.construct == t.construct {
			continue
		}
		p.construct = t.construct
		p.uses++
		if !p.infinite {
			p.count++
		}
	}
}
