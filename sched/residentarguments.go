package sched

import (
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
)

// The kernel of a resident task has list items as its buffer arguments, memory to which pointers of the program point, or both.
// What the task keeps of memory from its creation on is that of pointers, and the pinned storage in which items lie.

// residentMore is what few resident tasks have.
type residentMore struct {
	// items, blocks and push have what does not fit into the record.
	items  [residentBindings]memory.Map
	blocks [residentBindings]*memory.Present
	push   [residentPush]byte
	// hosts is as entry.hosts of a target.
	hosts []*PinnedStorage
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

// items returns the task's list items.
func (l *resident) items() []memory.Map {
	if int(l.count) <= len(l.fewItems) {
		return l.fewItems[:l.count]
	}
	return l.more.items[:l.count]
}

// blocks returns the blocks in which the items lie, each once, from the start of the task on.
func (l *resident) blocks() []*memory.Present {
	if int(l.count) <= len(l.fewBlocks) {
		return l.fewBlocks[:l.distinct]
	}
	return l.more.blocks[:l.distinct]
}

// push returns the task's push constants.
func (l *resident) push() []byte {
	if int(l.pushed) <= len(l.fewPush) {
		return l.fewPush[:l.pushed]
	}
	return l.more.push[:l.pushed]
}

// pointed returns what residentMore.pointed has for the task's bindings, or nil if all have items.
func (l *resident) pointed() []argument {
	if l.bindings == l.count {
		return nil
	}
	return l.more.pointed[:l.bindings]
}

// bindsInOrder reports whether each item is bound once, and their bindings are in the order of the items. Those without bytes, and
// no others, are bound up to the end of the storage. The other bindings have memory of pointers.
func (r *Region) bindsInOrder() bool {
	if r.Buffers == nil {
		return true
	}
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

// setArguments sets the arguments of a task that is not generated yet. It keeps the memory to which the pointers of the
// kernel point, and the pinned storage in which items lie. It reports false if there is an error; unpin gives back what it has
// kept by then.
func (l *resident) setArguments(r *Region) bool {
	s := l.s
	l.count, l.bindings = uint8(len(r.Enter)), uint8(max(len(r.Enter), len(r.Buffers)))
	if l.bindings > l.count || int(l.count) > len(l.fewItems) {
		l.moreOf()
	}
	copy(l.items(), r.Enter)
	if l.bindings == l.count && !s.memory.HasPinned() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.resolveLocked(r.Buffers) == nil && l.keepPinnedLocked() == nil
}

// resolveLocked finds the memory to which the pointers of the kernel point, and keeps it.
func (l *resident) resolveLocked(buffers []Buffer) (err error) {
	pointed := l.pointed()
	for k := range pointed {
		if buffers[k].Map >= 0 {
			continue
		}
		if pointed[k], err = l.s.pointedLocked(&buffers[k]); err != nil {
			return err
		}
		pointed[k].Pin()
	}
	return nil
}

// keepPinnedLocked keeps the pinned storage in which items lie.
func (l *resident) keepPinnedLocked() error {
	items := l.items()
	for i := range items {
		if a, err := l.s.memory.FindPinned(items[i].Section); a != nil || err != nil {
			return l.s.keepPinnedOfLocked(&l.moreOf().hosts, items[i:]) // none before is pinned
		}
	}
	return nil
}

// sizes appends the sizes of the buffer arguments in bytes, of which the kernel is of.
func (l *resident) sizes(of *kernel.Kernel, all []uint64) []uint64 {
	items, pointed := l.items(), l.pointed()
	for k := range int(l.bindings) {
		if pointed != nil && pointed[k].Allocation != nil {
			all = append(all, pointed[k].bindable(l.s.props))
			continue
		}
		size := items[0].Size
		if size == 0 {
			size = leastSize(of, k)
		}
		all = append(all, size)
		items = items[1:]
	}
	return all
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
		if a := &l.more.pointed[k]; a.Allocation != nil {
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

// handTo hands the memory and the pinned storage that the task keeps over to the target that it becomes.
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
