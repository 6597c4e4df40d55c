package memory

import (
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
)

// Exit says what the exit of a construct does for one of its items.
type Exit struct {
	Present *Present // the item's block
	Offset  uint64   // bytes, of the item from the beginning of the block
	Item    int      // index of the item in the construct

	// CopyOut says that the item has to be copied from device to host: its type
	// includes from, and either the construct is the last that refers to the block
	// or the item has the always or the delete modifier. An item whose bytes
	// another item of the construct copies is not copied twice.
	CopyOut bool

	// Remove is set on the last item of a block whose count the construct takes to
	// zero: EndExit returns its storage.
	Remove bool

	ends    bool // on the last item of the block: EndExit lowers a finite count
	deletes bool // with ends: to zero
}

// CheckExit returns the error for which an exit construct is refused. It is an
// *OverlapError for the first item, by address, that covers a block in part,
// ErrInvalidSection for an invalid section, and for an item that must be present
// ErrNotPresent, or ErrExiting while another construct is removing its block.
// Without the check BeginExit takes such items as absent. An IfPresent item that
// is present in part counts as absent and is no error.
//
// The present modifier is checked once, when the construct is encountered. It is
// not checked again at the end of a structured region, whose items are
// MayBeAbsent there.
func (t *Table) CheckExit(items []Map) error {
	if len(items) == 0 {
		return nil
	}
	t.sort(items)
	for _, i := range t.order {
		item := &items[i]
		if !item.valid() {
			return fmt.Errorf("memory: exit %s: %w", item, ErrInvalidSection)
		}
		p, found := t.lookup(item.Section)
		switch {
		case found == partly && item.Presence != IfPresent:
			return item.refused("exit", p.overlap(item))
		case item.Presence != MustBePresent:
		case found == absent:
			return item.refused("exit", nil)
		case p.exiting:
			return fmt.Errorf("memory: exit %s: %w", item, ErrExiting)
		}
	}
	return nil
}

// BeginExit is the first half of the exit sequence of OpenMP 5.1 §2.21.7.1 for
// all items of one construct: it decides what is due and marks the blocks that
// the construct removes as exiting, so that no other construct enters them. The
// caller makes the copies, then calls EndExit with what BeginExit returned.
//
// It appends to exits[:0] one Exit for each item whose block is present, in the
// order of the items. An absent item is ignored, as are one of size zero that
// is not IfPresent, one that covers a block in part, and one whose block another
// construct is removing already: it comes after that removal and finds nothing.
// Constructs whose exits overlap in time decide as if each had ended before the
// next began.
func (t *Table) BeginExit(items []Map, exits []Exit) []Exit {
	return t.BeginExitOf(items, nil, exits)
}

// BeginExitOf is BeginExit for a construct whose entry had the same items. uses is
// what Enter returned for them, or nil: a block that is still present is not looked
// up again.
func (t *Table) BeginExitOf(items []Map, uses []Use, exits []Exit) []Exit {
	if len(items) == 0 {
		return exits[:0]
	}
	t.sort(items)
	exits = exits[:0]
	run := 0             // exits[run:] belong to the current block
	var current *Present // the block that contains the current item
	var last bool        // no count remains after this construct
	var copied uintptr   // end of the bytes, from the current item on, that are copied out already
	for _, i := range t.order {
		item := &items[i]
		if !item.Counts() || !item.valid() {
			continue
		}
		if current == nil || item.Start() >= current.Section.End() {
			t.beginBlock(items, exits[run:])
			run = len(exits)
			var p *Present
			if uses != nil && uses[i].holds(item.Section) {
				p = uses[i].Present
				t.Wake(p)
			} else if q, found := t.lookup(item.Section); found == inside {
				p = q
			}
			if p == nil || p.exiting {
				continue
			}
			current, last = p, p.remaining() == 1 && !p.claimed
		} else if !current.Section.contains(item.Section) {
			continue
		}
		e := Exit{Present: current, Offset: uint64(item.Start() - current.Section.Start()), Item: int(i)}
		if item.Size > 0 && item.Type.From() && (last || item.Always || item.Delete) && item.End() > copied {
			e.CopyOut = true
			copied = item.End()
		}
		exits = append(exits, e)
	}
	t.beginBlock(items, exits[run:])
	byItem := func(x, y Exit) int { return x.Item - y.Item }
	if !slices.IsSortedFunc(exits, byItem) {
		slices.SortFunc(exits, byItem)
	}
	if invariants.Enabled {
		t.holds()
	}
	return exits
}

// holds reports whether the section still lies in the block that Enter found. Blocks
// of a table are disjoint, so no other block has it then, even if the record has
// become that of another block meanwhile.
func (u *Use) holds(s Section) bool {
	p := u.Present
	return p != nil && !p.removed && s.Start() < p.Section.End() && p.Section.contains(s)
}

// beginBlock begins the exit of one block; run are the construct's exits of that
// block. The decrement is recorded on the last item, so that a caller that
// processes the items in order has seen all copies of the block before its
// removal.
func (t *Table) beginBlock(items []Map, run []Exit) {
	if len(run) == 0 {
		return
	}
	p := run[0].Present
	end := &run[0]
	deletes := false
	for i := range run {
		e := &run[i]
		deletes = deletes || items[e.Item].Type == MapDelete || items[e.Item].Delete
		if e.Item > end.Item {
			end = e
		}
	}
	if p.claimed {
		if p.remaining() == 1 {
			return
		}
		deletes = false
	}
	end.ends, end.deletes = true, deletes
	end.Remove = !p.infinite && (deletes || p.remaining() == 1)
	p.ending++
	if end.Remove {
		p.exiting = true
		t.exiting++
	}
}

// EndExit is the second half of the exit sequence. It lowers the count of each
// block once, or to zero where the block is deleted, and appends to removed[:0]
// the blocks whose count is zero. They are no longer in the table; the caller
// frees their storage. Where the exits of several constructs of one block overlap
// in time, the one that ends last gets the block, whichever decided its removal.
//
// EndExit records in exits that it has been called, so a second call with the same
// exits does nothing. It ignores blocks that have become infinite or have been
// removed since BeginExit.
func (t *Table) EndExit(exits []Exit, removed []*Present) []*Present {
	removed = removed[:0]
	for i := range exits {
		e := &exits[i]
		p := e.Present
		if !e.ends || p.removed {
			continue
		}
		e.ends = false
		p.ending--
		switch {
		case e.deletes:
			p.count = 0
		case p.count > 0: // else deleted meanwhile, or infinite
			p.count--
		}
		removed = t.exitEnded(p, removed)
	}
	if invariants.Enabled {
		t.holds()
	}
	return removed
}

// exitEnded removes p if its last exit has ended and no count is left.
func (t *Table) exitEnded(p *Present, removed []*Present) []*Present {
	switch {
	case !p.exiting || p.ending > 0:
	case p.count > 0:
		// An exit that was to take the rest of the counts was cancelled.
		p.exiting = false
		t.exiting--
	default:
		t.remove(p)
		removed = append(removed, p)
	}
	return removed
}

// CancelExit is called instead of EndExit and leaves the counts as they were. It
// appends to removed[:0] the blocks whose count was taken to zero by exits that
// ended in the meantime.
func (t *Table) CancelExit(exits []Exit, removed []*Present) []*Present {
	removed = removed[:0]
	for i := range exits {
		e := &exits[i]
		p := e.Present
		if !e.ends || p.removed {
			continue
		}
		e.ends = false
		p.ending--
		if e.Remove && p.count > 0 {
			p.exiting = false
			t.exiting--
			continue
		}
		removed = t.exitEnded(p, removed)
	}
	if invariants.Enabled {
		t.holds()
	}
	return removed
}
