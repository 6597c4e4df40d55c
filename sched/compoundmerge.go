package sched

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// compoundItem is a map of one of the constructs of a Compound.
type compoundItem struct {
	*memory.Map
	readOnly bool
}

// compoundItems are maps of a compound task, of which no two overlap, in the order of their addresses.
type compoundItems struct {
	maps []memory.Map
	// readOnly says for each that no kernel writes it.
	readOnly []bool
}

// find returns the item in which an address lies, and the distance from its beginning.
func (x *compoundItems) find(start uintptr) (item int, offset uint64) {
	item, found := slices.BinarySearchFunc(x.maps, start, func(m memory.Map, start uintptr) int { return cmp.Compare(m.Start(), start) })
	if !found {
		item--
	}
	return item, uint64(start - x.maps[item].Start())
}

// argument returns the storage of an item, which lies in a block.
func (x *compoundItems) argument(item int, block *memory.Present, offset uint64) argument {
	state := stateOf(block)
	return argument{Allocation: state.Allocation, block: state, at: blockAt(block) + offset, size: x.maps[item].Size, readOnly: x.readOnly[item]}
}

// merge makes one item of those that overlap. It reports false if that would change what a task
// finds in storage that is absent before and after each of them: items that are present when the task is
// generated may have been removed when it starts.
func (x *compoundItems) merge(items []compoundItem) bool {
	slices.SortStableFunc(items, func(a, b compoundItem) int { return cmp.Compare(a.Start(), b.Start()) })
	for len(items) > 0 {
		end, n := items[0].End(), 1
		for n < len(items) && items[n].Start() < end {
			end = max(end, items[n].End())
			n++
		}
		merged, ok := mergeOverlapping(items[:n], end)
		if !ok {
			return false
		}
		x.maps = append(x.maps, merged)
		x.readOnly = append(x.readOnly, !slices.ContainsFunc(items[:n], func(m compoundItem) bool { return !m.readOnly }))
		items = items[n:]
	}
	return true
}

// join returns the items for the next task. A task takes some hundred nanoseconds for each of its items, and those
// of a stencil are the points of a row, which is one block.
func (c *Compound) join() *compoundItems {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.joined != nil && !c.moved {
		return c.joined
	}
	c.moved = false
	joined := &compoundItems{}
	var last *memory.Present // the block of the last item
	for i, m := range c.items.maps {
		block, _ := c.s.storageLocked(m.Section)
		if n := len(joined.maps) - 1; block != nil && block == last && c.items.readOnly[i] == joined.readOnly[n] && continues(&m, &joined.maps[n]) {
			joined.maps[n].Size += m.Size
			continue
		}
		last = block
		joined.maps, joined.readOnly = append(joined.maps, m), append(joined.readOnly, c.items.readOnly[i])
	}
	if c.joined == nil || !slices.Equal(joined.maps, c.joined.maps) {
		c.joined = joined
	}
	return c.joined
}

// unjoinLocked gives a compound task that is about to enter its items as they were before join, if one that join has made
// of neighbours no longer lies in a block. Another goroutine can have removed the block since, and can map one of the
// neighbours by itself.
func (t *target) unjoinLocked() {
	c := t.dispatch.compound
	if c == nil || len(t.Enter) == len(c.items.maps) {
		return
	}
	for i := range t.Enter {
		if block, _, err := t.s.presence.table.Lookup(t.Enter[i].Section); block == nil || err != nil {
			t.Enter, t.dispatch.items, c.moved = append(t.Enter[:0], c.items.maps...), &c.items, true
			return
		}
	}
}

// continues reports whether an item begins where another one ends, and is mapped in the same way.
func continues(m, before *memory.Map) bool {
	alike := *before
	alike.Section, alike.Label = m.Section, m.Label
	return m.Start() == before.End() && *m == alike
}

// mergeOverlapping returns the item that has the effect of all items, which overlap, are in the order of
// their addresses, and go up to end. It reports false if there is none.
func mergeOverlapping(items []compoundItem, end uintptr) (merged memory.Map, ok bool) {
	merged = *items[0].Map
	merged.Size = uint64(end - merged.Start())
	to, lost := false, false
	returned := merged.Start() // up to here all bytes are copied to the host
	for _, m := range items {
		if m.Presence == memory.IfPresent || m.Presence != merged.Presence {
			return memory.Map{}, false
		}
		to = to || m.Type.To()
		if m.Type.From() && m.Start() <= returned {
			returned = max(returned, m.End())
		}
		// What this construct has written no other one finds, nor does the host.
		lost = lost || !m.readOnly && !m.Type.From()
	}
	from := slices.ContainsFunc(items, func(m compoundItem) bool { return m.Type.From() })
	switch {
	case lost && (to || from) && len(items) > 1:
		return memory.Map{}, false
	case from && returned < end:
		return memory.Map{}, false // bytes would be written that no construct writes
	case to && from:
		merged.Type = memory.MapToFrom
	case to:
		merged.Type = memory.MapTo
	case from:
		merged.Type = memory.MapFrom
	}
	return merged, true
}

// mergeDepend returns the depend items of a task that depends on whatever one of the constructs depends
// on, and on which whatever depends on one of them depends. Items match whose storage has a byte in common, so
// neighbours with one dependence-type are one item.
func mergeDepend(constructs [][]tasks.Depend) (merged []tasks.Depend) {
	at := make(map[tasks.Depend]int) // by storage
	for _, items := range constructs {
		for _, d := range items {
			kind := d.Kind
			if kind != tasks.DependIn && !kind.AllMemory() {
				kind = tasks.DependInOut
			}
			d.Kind = 0
			if kind.AllMemory() {
				d = tasks.Depend{Kind: kind}
			}
			k, ok := at[d]
			if !ok {
				k = len(merged)
				at[d] = k
				merged = append(merged, d)
				merged[k].Kind = kind
			}
			if kind != tasks.DependIn {
				merged[k].Kind = kind
			}
		}
	}
	return joinDepend(merged)
}

// joinDepend makes one item of those of one dependence-type whose storage has no gap.
func joinDepend(items []tasks.Depend) []tasks.Depend {
	start := func(d tasks.Depend) uint64 { return uint64(uintptr(d.Ptr)) }
	slices.SortFunc(items, func(a, b tasks.Depend) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(start(a), start(b)), cmp.Compare(a.Size, b.Size))
	})
	joined := items[:0]
	for _, d := range items {
		if n := len(joined) - 1; n >= 0 && d.Kind == joined[n].Kind && start(d) <= start(joined[n])+joined[n].Size {
			joined[n].Size = max(joined[n].Size, start(d)+d.Size-start(joined[n]))
			continue
		}
		joined = append(joined, d)
	}
	return joined
}

// leveled is a task that is not run: its level is above those of its predecessors.
type leveled struct {
	node  *tasks.Node
	level int32
}

// Start implements tasks.Runner.
func (l *leveled) Start(n *tasks.Node, w *tasks.Work) {
	l.node = n
	for _, p := range n.Predecessors() {
		l.level = max(l.level, p.Runner().(*leveled).level+1)
	}
	n.Placed(w)
}

// Recycle implements tasks.Runner.
func (*leveled) Recycle() {}

// dependLevels returns a level for each of the constructs with these depend items, which are siblings. It is
// above those of the constructs on which the construct depends.
func dependLevels(constructs [][]tasks.Depend) (levels []int32, err error) {
	var g tasks.Graph
	scope, w := g.NewScope(), tasks.NewWork()
	defer w.Finish()
	all := make([]leveled, len(constructs))
	levels = make([]int32, len(constructs))
	for i, items := range constructs {
		items = slices.Clone(items)
		for k := range items {
			if items[k].Kind == tasks.DependMutexInOutSet {
				items[k].Kind = tasks.DependInOut // one after the other
			}
		}
		if _, err = scope.Add(&tasks.Task{Domain: 1, Runner: &all[i], Depend: items, Always: true}, w); err != nil {
			break
		}
		w.Run()
		levels[i] = all[i].level
	}
	for i := range all {
		if all[i].node != nil {
			all[i].node.Complete(nil, w)
		}
	}
	return levels, err
}
