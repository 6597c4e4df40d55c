package sched

import (
	"fmt"
	"strings"

	"github.com/vkomp/vkomp/memory"
)

// leaksLocked returns an error that counts the memory which the program has not given
// back: blocks that are mapped, and allocations; by label, and by site where sites
// are recorded. Blocks that are declared stay until the end, and the memory of an
// association is its allocation's. It is nil where there is nothing, and linear in
// the blocks and pointers. What a device had that is lost went with it, and cannot be
// given back: that is no leak.
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
		leaks.Add("blocks still mapped", itemName(state.label, p.Label), state.site, p.Storage.Size)
	}
	for i := range s.pointers.slots {
		if m := s.pointers.slots[i].store; m != nil && m.allocation {
			kind := "allocations"
			if m.associations > 0 {
				kind = "associated allocations"
			}
			leaks.Add(kind, "", m.site, m.Size)
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
	return fmt.Errorf("sched: close: %w: %s%s", memory.ErrLeaked, strings.Join(what, "; "), leaks.Report((*memory.Site).Caller))
}

// itemName names an item of a construct.
func itemName(construct, item string) string {
	switch {
	case construct == "":
		return item
	case item == "":
		return construct
	}
	return construct + ", " + item
}
