package memory

import (
	"fmt"
	"slices"
)

// Exit is what the exit of a construct does for one of its items.
type Exit struct {
	Present *Present
	Offset  uint64 // bytes, of the item inside the block
	Item    int    // index of the item

	// CopyOut says that the item is to be copied from device to host: its type
	// includes from, and the construct is the block's last or the item is always
	// or deletes. An item whose bytes another item of the construct copies is
	// not copied twice.
	CopyOut bool

	// Remove says, on the last item of the block, that the construct leaves the
	// block without a count: its storage comes back from EndExit.
	Remove bool

	ends    bool // on the last item of the block: EndExit lowers a finite count
	deletes bool // with ends: to zero
}

// CheckExit returns an *OverlapError for the first item, by address, that
// covers a block in part, ErrInvalidSection for one that cannot be, and, for one
// that must be present and is not, ErrNotPresent, or ErrExiting when another
// construct is removing it. An exit construct is refused then: BeginExit would
// take the item as absent. An IfPresent item may be present in part: it is then
// absent.
//
// The present modifier asks once, when its construct is met. The end of a
// structured region is not asked: its items are MayBeAbsent, or not checked.
func (t *Table) CheckExit(items []Map) error {
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
	t.sort(items)
	exits = exits[:0]
	run := 0             // from here on, exits are of current
	var current *Present // the block that the walk is in
	var last bool        // no count will be left without this construct
	var copied uintptr   // up to here, the bytes from the item on are copied out
	for _, i := range t.order {
		item := &items[i]
		if !item.counts() || !item.valid() {
			continue
		}
		if current == nil || item.Start() >= current.Section.End() {
			t.leave(items, exits[run:])
			run = len(exits)
			p, found := t.lookup(item.Section)
			if found != inside || p.exiting {
				continue
			}
			current, last = p, p.remaining() == 1
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
	t.leave(items, exits[run:])
	byItem := func(x, y Exit) int { return x.Item - y.Item }
	if !slices.IsSortedFunc(exits, byItem) {
		slices.SortFunc(exits, byItem)
	}
	if invariants {
		t.holds()
	}
	return exits
}

// leave begins the end of the construct's count of the block that run, all its
// exits of one block, are of. The last item carries it, so that a caller that
// goes through the items in order has met the block's copies before its
// removal.
func (t *Table) leave(items []Map, run []Exit) {
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
	end.ends, end.deletes = true, deletes
	end.Remove = !p.infinite && (deletes || p.remaining() == 1)
	p.ending++
	if end.Remove {
		p.exiting = true
		t.exiting++
	}
}

// EndExit is the second half: it lowers the count of each block, once, to zero
// for a deleted one, and appends to removed[:0] the blocks whose count is zero.
// They are in the table no more; the caller frees their storage. Where the
// exits of several constructs of one block overlap in time, the one that ends
// last gets the block, whichever decided its removal.
//
// EndExit takes note in exits that it has been called: calling it again with
// the same exits does nothing. A block that is infinite or removed by now is
// left alone.
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
		removed = t.ended(p, removed)
	}
	if invariants {
		t.holds()
	}
	return removed
}

// ended sees to a block that one exit less is under way of.
func (t *Table) ended(p *Present, removed []*Present) []*Present {
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

// CancelExit is called in place of EndExit: the construct leaves its blocks as they
// were, with the count that it was to lower. It appends to removed[:0] the blocks
// that exits which ended meanwhile have taken all counts of.
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
		removed = t.ended(p, removed)
	}
	if invariants {
		t.holds()
	}
	return removed
}
