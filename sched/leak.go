package sched

import (
	"fmt"
	"strings"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
)

// leaksLocked returns an error that lists the memory which the program has not given back: mapped
// blocks and allocations, by label and, if sites are recorded, by site. It is nil if there is none.
// Blocks of declare target variables stay until the end, and count as no leak; an association is
// listed with its allocation. Nor do the blocks of a lost device count, since they cannot be given
// back. It takes time linear in the number of blocks and pointers.
func (s *Scheduler) leaksLocked() error {
	if s.loss.err != nil {
		return nil
	}
	var leaks memory.Leaks
	var mapped, associated memory.Tally
	for p := range s.presence.table.All() {
		state := stateOf(p)
		if _, infinite := p.Count(); infinite {
			if state.associated {
				associated.Add(p.Storage.Size)
			}
			continue
		}
		mapped.Add(p.Storage.Size)
		leaks.Add("blocks still mapped", itemName(state.Label, p.Label), state.Site, p.Storage.Size)
	}
	for m := range s.pointers.All() {
		if m.Origin == allocation.Allocated {
			kind := "allocations"
			if m.Associations() > 0 {
				kind = "associated allocations"
			}
			leaks.Add(kind, "", m.Site, m.Size)
		}
	}
	var what []string
	if mapped.Count > 0 {
		what = append(what, fmt.Sprintf("%d blocks of storage still mapped, %d bytes", mapped.Count, mapped.Bytes))
	}
	if s.pointers.allocated.Count > 0 {
		what = append(what, fmt.Sprintf("%d allocations not freed, %d bytes", s.pointers.allocated.Count, s.pointers.allocated.Bytes))
	}
	if associated.Count > 0 {
		what = append(what, fmt.Sprintf("%d blocks of host storage still associated with them, %d bytes", associated.Count, associated.Bytes))
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("sched: close: %w: %s%s", memory.ErrLeaked, strings.Join(what, "; "), leaks.Report())
}

// itemName names a list item by the label of its construct and its own.
func itemName(construct, item string) string {
	switch {
	case construct == "":
		return item
	case item == "":
		return construct
	}
	return construct + ", " + item
}
