package sched

import (
	"slices"

	"github.com/vkomp/vkomp/memory"
)

// The kernel of a resident task has list items as its buffer arguments, memory to which pointers of the program point, or both.
// What the task keeps of memory from its creation on is that of pointers, and the pinned storage in which items lie.

// residentMore has the items of tasks with more of them than their records have room for, up to recordBindings, and the pinned
// storage that tasks keep.
type residentMore struct {
	items [recordBindings]memory.Map
	// hosts is as entry.hosts of a target.
	hosts []*PinnedStorage
	// wide is made for the first of the record's tasks that needs it.
	wide *residentWide
}

// residentWide is what few resident tasks have: those with more than recordBindings items, more than recordPush bytes of push
// constants, or memory of pointers.
type residentWide struct {
	items  [residentBindings]memory.Map
	blocks [residentBindings]*memory.Present
	push   [residentPush]byte
	// pointed has the memory of pointers, by binding, which the task keeps. The bindings without one have the items, in order.
	pointed [residentBindings]argument
}

// moreOf returns the task's residentMore, which it makes.
func (l *resident) moreOf() *residentMore {
	if l.more == nil {
		l.more = new(residentMore)
	}
	return l.more
}

// wideOf returns the task's residentWide, which it makes.
func (l *resident) wideOf() *residentWide {
	m := l.moreOf()
	if m.wide == nil {
		m.wide = new(residentWide)
	}
	return m.wide
}

// items returns the task's list items.
func (l *resident) items() []memory.Map {
	switch {
	case int(l.count) <= len(l.fewItems):
		return l.fewItems[:l.count]
	case l.count <= recordBindings:
		return l.more.items[:l.count]
	}
	return l.more.wide.items[:l.count]
}

// blockRoom returns the room for the blocks in which the items lie.
func (l *resident) blockRoom() []*memory.Present {
	if int(l.count) <= len(l.fewBlocks) {
		return l.fewBlocks[:]
	}
	return l.more.wide.blocks[:]
}

// blocks returns the blocks in which the items lie, each once, from the start of the task on.
func (l *resident) blocks() []*memory.Present { return l.blockRoom()[:l.distinct] }

// push returns the task's push constants.
func (l *resident) push() []byte {
	if int(l.pushed) <= len(l.fewPush) {
		return l.fewPush[:l.pushed]
	}
	return l.more.wide.push[:l.pushed]
}

// pointed returns what residentWide.pointed has for the task's bindings, or nil if all have items.
func (l *resident) pointed() []argument {
	if l.bindings == l.count {
		return nil
	}
	return l.more.wide.pointed[:l.bindings]
}

// bindsInOrder reports of Region.Buffers whether each item is bound once, and their bindings are in the order of the items. Those without bytes, and
// no others, are bound up to the end of the storage. The other bindings have memory of pointers.
func (r *Region) bindsInOrder() bool {
	next := 0
	for i := range r.Buffers {
		b := &r.Buffers[i]
		if b.Map < 0 {
			continue
		}
		if b.Map != next || b.ToEnd != (r.Enter[next].Size == 0) {
			return false
		}
		next++
	}
	return next == len(r.Enter)
}

// sizes appends the sizes of the kernel's buffer arguments in bytes. Those up to the end of storage or memory, whose sizes are not
// known yet, count as what the binding needs.
func (r *Region) sizes(all []uint64) []uint64 {
	if r.Buffers == nil {
		for i := range r.Enter {
			all = append(all, r.Enter[i].Size)
		}
		return all
	}
	for k := range r.Buffers {
		switch b := &r.Buffers[k]; {
		case b.ToEnd:
			all = append(all, leastSize(r.Kernel, k))
		case b.Map < 0:
			all = append(all, b.Size)
		default:
			all = append(all, r.Enter[b.Map].Size)
		}
	}
	return all
}

// setArguments sets the arguments of a task that is not generated yet. It keeps the memory to which the pointers of the
// kernel point, and the pinned storage in which items lie. It reports false if there is an error; unpin gives back what it has
// kept by then.
func (l *resident) setArguments(r *Region) bool {
	s := l.s
	l.count, l.bindings = uint8(len(r.Enter)), uint8(r.buffers())
	switch {
	case l.bindings > l.count || l.count > recordBindings:
		l.wideOf()
	case int(l.count) > len(l.fewItems):
		l.moreOf()
	}
	copy(l.items(), r.Enter)
	if l.bindings == l.count && !s.memory.HasPinned() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.resolveLocked(r) && l.keepHostsLocked() == nil
}

// resolveLocked finds the memory to which the pointers of the kernel point, and keeps it. It reports false if there is an error.
func (l *resident) resolveLocked(r *Region) bool {
	pointed := l.pointed()
	for k := range pointed {
		if r.Buffers[k].Map >= 0 {
			continue
		}
		a, err := l.s.pointedLocked(&r.Buffers[k])
		if err != nil || a.toEnd && a.size < leastSize(r.Kernel, k) {
			return false
		}
		a.Pin()
		pointed[k] = a
	}
	return true
}

// keepHostsLocked keeps the pinned storage in which items lie.
func (l *resident) keepHostsLocked() error {
	items := l.items()
	for i := range items {
		if a, err := l.s.memory.FindPinned(items[i].Section); a != nil || err != nil {
			return l.s.keepPinnedOfLocked(&l.moreOf().hosts, items[i:]) // none before is pinned
		}
	}
	return nil
}

// buffers appends the kernel's buffer arguments, for Region.Buffers, or returns nil if they are the items as they are.
func (l *resident) buffers(all []Buffer) []Buffer {
	items, pointed, next := l.items(), l.pointed(), 0
	if pointed == nil && !slices.ContainsFunc(items, func(m memory.Map) bool { return m.Size == 0 }) {
		return nil
	}
	for k := range int(l.bindings) {
		if pointed != nil && pointed[k].Allocation != nil {
			all = append(all, Buffer{Map: -1}) // what it points to is found
			continue
		}
		all = append(all, Buffer{Map: next, ToEnd: items[next].Size == 0})
		next++
	}
	return all
}

// keeps reports whether the task keeps memory of pointers or pinned storage.
func (l *resident) keeps() bool {
	return l.bindings > l.count || l.more != nil && len(l.more.hosts) > 0
}

// unpinLocked gives up the memory and the pinned storage that is kept for the task, which does not use it any more.
func (l *resident) unpinLocked() {
	if !l.keeps() {
		return
	}
	unpinHostsLocked(&l.more.hosts)
	for k := range l.pointed() {
		if a := &l.more.wide.pointed[k]; a.Allocation != nil {
			a.Unpin()
			*a = argument{}
		}
	}
	l.bindings = l.count
}

// unpin is unpinLocked, without the lock, for a task that will not run.
func (l *resident) unpin() {
	if !l.keeps() {
		return
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.unpinLocked()
}

// handTo hands the memory and the pinned storage that the task keeps over to the target that it becomes. The task has none of them
// then: buffers has to be called before.
func (l *resident) handTo(t *target) {
	if !l.keeps() {
		return
	}
	t.entry.hosts, l.more.hosts = l.more.hosts, t.entry.hosts
	for _, a := range l.pointed() {
		t.dispatch.targets = append(t.dispatch.targets, a) // items have none
		if a.Allocation != nil {
			t.entry.pins = append(t.entry.pins, a.Allocation)
		}
	}
	clear(l.pointed())
	l.bindings = l.count
}
