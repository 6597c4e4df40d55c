package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
)

// Sharing says when a target construct uses host storage in place, on a device that can import it.
type Sharing int

const (
	// ShareLarge shares storage if device and host have one memory and copying it would cost more
	// than importing it.
	ShareLarge Sharing = iota
	// ShareNothing shares storage only if the program insists.
	ShareNothing
	// ShareAll shares storage wherever it is possible.
	ShareAll
)

// shareFrom is the number of bytes from which on importing costs less than copying: two calls of the
// driver take 20 to 30 µs, copying takes 50 µs for each MiB.
const shareFrom = 1 << 20

// share decides which items of a target construct may have their host storage as corresponding
// storage. Host and device see at once what the other writes there. It is therefore allowed for items
// that are mapped by this construct alone, and that either are copied back anyway or cannot be
// written by the kernel.
func (s *Scheduler) share(t *target) {
	if t.Kernel == nil || !t.Structured || s.sharing == ShareNothing {
		return
	}
	for i := range t.Enter {
		m := &t.Enter[i]
		if m.Share != memory.ShareNever || m.Presence != memory.MayBeAbsent || m.DeviceSize != 0 {
			continue
		}
		// Pinned storage need not be imported first.
		worth := m.Size >= shareFrom || t.entry.pinned(m.Section) != nil
		if s.sharing == ShareLarge && !(worth && s.memory.Profile().Shared) {
			continue
		}
		if s.canShare(t, i) {
			m.Share = memory.ShareMay
		}
	}
}

// canShare reports whether the kernel can use the host storage of an item in place, and may write to
// it or does not.
func (s *Scheduler) canShare(t *target, item int) bool {
	m := &t.Enter[item]
	// Kernels that pack bytes into words may write the whole last word.
	imports := s.props.Limits.MinImportedHostPointerAlignment != 0 || t.entry.pinned(m.Section) != nil
	if !imports || m.Start()%4 != 0 || m.Size%4 != 0 {
		return false
	}
	bound, readOnly := false, true
	for k := range t.Kernel.Bindings() {
		if !t.Kernel.Bindings()[k].Used || t.buffer(k).Map != item {
			continue
		}
		b := &t.Kernel.Bindings()[k]
		if _, ok := b.Skip(uint64(m.Start()), 0, kernel.BindAlignment(s.props)); !ok {
			return false
		}
		bound, readOnly = true, readOnly && b.ReadOnly
	}
	return m.Type.From() || m.Type == memory.MapTo && bound && readOnly && !t.reachedOtherwise(item)
}

// reachedOtherwise reports whether the kernel may write to an item through another item, or through
// an address.
func (t *target) reachedOtherwise(item int) bool {
	m := &t.Enter[item]
	for i := range t.Enter {
		o := &t.Enter[i]
		if i == item || o.Start() >= m.End() || m.Start() >= max(o.End(), o.Start()+1) {
			continue
		}
		readOnly := false
		for k := range t.Kernel.Bindings() {
			if b := &t.Kernel.Bindings()[k]; b.Used && t.buffer(k).Map == i {
				if !b.ReadOnly {
					return true
				}
				readOnly = true
			}
		}
		if !readOnly && t.Buffers != nil {
			return true
		}
	}
	return false
}
