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

// mergeItems makes one item of those that overlap. It reports false if that would change what a task
// finds in storage that is absent before and after each of them: items that are present when the task is
// generated may have been removed when it starts.
func (c *Compound) mergeItems(items []compoundItem) bool {
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
		c.items = append(c.items, merged)
		c.readOnly = append(c.readOnly, !slices.ContainsFunc(items[:n], func(m compoundItem) bool { return !m.readOnly }))
		items = items[n:]
	}
	return true
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
// on, and on which whatever depends on one of them depends.
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
	return merged
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
