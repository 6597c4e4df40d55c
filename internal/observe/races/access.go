package races

import (
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/tasks/race"
)

// hostSpace is the address space of host storage.
const hostSpace = race.Space(0)

// mappedSpace is the space of a device's storage that corresponds to host storage, by host
// addresses.
func mappedSpace(device int) race.Space { return race.Space(1 + device) }

// unheldSpace is a second space for the storage of mappedSpace. Accesses by tasks that do not
// hold a reference to the storage themselves, or whose map types would not transfer the data if
// they had to map it anew, are recorded in both spaces. The end of a data region without a
// taskgroup conflicts only with these.
func unheldSpace(device int) race.Space { return mappedSpace(device) | 1<<63 }

// deviceBits is the number of bits in a Space for the device's number.
const deviceBits = 16

// allocationSpace is the space of one allocation of device memory, given by its number.
func allocationSpace(device int, allocation race.Space) race.Space {
	return mappedSpace(device) | allocation<<deviceBits
}

// spaceDevice returns the number of the device to which the space s belongs.
func spaceDevice(s race.Space) int {
	if s == hostSpace {
		return Host
	}
	return int(s&(1<<deviceBits-1)) - 1
}

// maxRows is the largest number of rows of a copy that are recorded. Races on the others go
// unnoticed.
const maxRows = 4096

// accesses collects the accesses of a task. If its depend items name parts of a storage, the
// task is taken to access only these parts.
type accesses struct {
	list   []race.Access
	depend []tasks.Depend
}

// host adds an access to host storage.
func (a *accesses) host(s memory.Section, write bool, label string) {
	a.add(hostSpace, s, write, label)
}

// unheld adds an access to a slice's storage on a device by a task that does not hold a reference
// to it.
func (a *accesses) unheld(device int, s memory.Section, write bool, label string) {
	a.add(mappedSpace(device), s, write, label)
	a.add(unheldSpace(device), s, write, label)
}

// add adds an access to the storage of a slice in the given space.
func (a *accesses) add(space race.Space, s memory.Section, write bool, label string) {
	if s.Size > 0 && s.Ptr != nil {
		a.addAt(space, uint64(s.Start()), s.Size, s.Ptr, write, label)
	}
}

// addAt is add for storage given by its address; keep is kept reachable. Where depend items name
// parts of the storage, the task accesses only these, and writes those that an item other than in
// names. An item in of the storage as a whole is such a part, which is only read. If no item other
// than in names a part, or one names the storage as a whole, the task can write all of it.
func (a *accesses) addAt(space race.Space, start, size uint64, keep unsafe.Pointer, write bool, label string) {
	end := start + size
	parts, writers := 0, 0
	for k := range a.depend {
		d := &a.depend[k]
		from, to := uint64(uintptr(d.Ptr)), uint64(uintptr(d.Ptr))+d.Size
		switch {
		case d.Kind.AllMemory() || d.Size == 0 || to <= start || end <= from:
		case d.Kind != tasks.DependIn && from <= start && end <= to:
			parts = len(a.depend) + 1 // the storage as a whole
		default:
			parts++
			if d.Kind != tasks.DependIn {
				writers++
			}
		}
	}
	if parts == 0 || parts > len(a.depend) || write && writers == 0 {
		a.list = append(a.list, race.Access{Space: space, Start: start, Size: size, Write: write, Keep: keep, Label: label})
		return
	}
	for k := range a.depend {
		d := &a.depend[k]
		from, to := max(start, uint64(uintptr(d.Ptr))), min(end, uint64(uintptr(d.Ptr))+d.Size)
		if d.Kind.AllMemory() || d.Size == 0 || to <= from {
			continue
		}
		a.list = append(a.list, race.Access{
			Space: space, Start: from, Size: to - from, Write: write && d.Kind != tasks.DependIn, Keep: keep, Label: label,
		})
	}
}

// itemAccesses returns the accesses of a host task, which cannot be seen: the storage that
// its depend items name is taken to be accessed accordingly.
func itemAccesses(depend []tasks.Depend) (list []race.Access) {
	for k := range depend {
		d := &depend[k]
		if d.Kind.AllMemory() || d.Ptr == nil || d.Size == 0 {
			continue
		}
		list = append(list, race.Access{
			Space: hostSpace, Start: uint64(uintptr(d.Ptr)), Size: d.Size, Write: d.Kind != tasks.DependIn,
			Keep: d.Ptr, Label: dependLabel(k),
		})
	}
	return list
}

// add adds the accesses of a construct, and updates the tables of present storage. If the construct
// has failed, only the accesses that a kernel or a copy was to make are known, and that the end of a
// data region removes its storage without copies.
func (d *Detector) add(a *accesses, c *observe.Construct, failed bool) {
	defer d.toAllocations(a)
	for i := range c.Data.Arguments {
		d.argument(a, c.Device, &c.Data.Arguments[i])
	}
	if c.Data.Copy != nil {
		d.copied(a, c.Data.Copy)
	}
	exit := c.Data.Exit
	switch {
	case failed && !c.Data.Ends:
		return
	case failed:
		exit = slices.Clone(exit)
		for i := range exit {
			exit[i].Type = memory.MapRelease
		}
	}
	d.enters(a, c.Device, c.Data.Enter)
	freed := mappedSpace(c.Device)
	if c.Data.Ends && c.Data.NoGroup {
		freed = unheldSpace(c.Device)
	}
	d.exits(a, c.Device, exit, freed)
	for i := range c.Data.Updates {
		d.update(a, c.Device, &c.Data.Updates[i])
	}
}

// toAllocations replaces the accesses to storage that is associated with memory of an allocation by
// accesses to that memory, which can also be accessed by pointers, through another association of
// the same memory, and after the association has ended.
func (d *Detector) toAllocations(a *accesses) {
	kept := a.list[:0]
	for _, x := range a.list {
		if device := spaceDevice(x.Space); device != Host && !x.Unnamed {
			with, ok := d.storageOf(device).associatedWith(x.Start, x.Size)
			if ok && x.Space == unheldSpace(device) {
				continue // no region removes the storage at its end
			}
			if ok {
				x.Offset = uint64(with.host.Start()) - with.start
				x.Space, x.Start = allocationSpace(device, with.allocation), x.Start-x.Offset
			}
		}
		kept = append(kept, x)
	}
	clear(a.list[len(kept):])
	a.list = kept
}

// argument adds the accesses of a target region to an argument.
func (d *Detector) argument(a *accesses, device int, arg *observe.Argument) {
	used := arg.Reads || arg.Writes
	switch arg.Kind {
	case observe.Mapped:
		d.mapped(a, device, arg)
	case observe.OnHost:
		if used {
			a.host(arg.Map.Section, arg.Writes, arg.Label)
		}
	case observe.Implicit:
		if s, self := d.storageOf(device).toEnd(arg.Map.Ptr); used {
			if self {
				a.host(s, arg.Writes, arg.Label)
			}
			a.unheld(device, s, arg.Writes, arg.Label)
		}
	case observe.ByPointer:
		if used {
			a.pointees(device, d.storageOf(device).at(arg.Pointer, arg.Size, arg.ToEnd), arg.Writes, arg.Label)
		}
	}
}

// mapped adds the accesses of a target region to a slice that it maps.
func (d *Detector) mapped(a *accesses, device int, arg *observe.Argument) {
	s, used, writes := arg.Map.Section, arg.Reads || arg.Writes, arg.Writes
	held, self := d.storageOf(device).holds(s)
	to, from := arg.Map.Type.To(), arg.Map.Type.From()
	// Copying data that the region does not write leaves its value as it was.
	copied := !held || arg.Map.Always
	switch back := from && (writes || !to); {
	case self || arg.Map.Share == memory.ShareMust:
		if used {
			a.host(s, writes, arg.Label)
		}
	case copied && (to || back):
		a.host(s, back, arg.Label)
	}
	if used || to {
		a.add(mappedSpace(device), s, writes || held && arg.Map.Always && to, arg.Label)
	}
	if used && !from && (writes || !to) {
		a.add(unheldSpace(device), s, writes, arg.Label)
	}
}

// pointees adds an access to the storage found at a device address.
func (a *accesses) pointees(device int, found []deviceStorage, write bool, label string) {
	for _, s := range found {
		if s.host != nil {
			if s.self {
				a.addAt(hostSpace, s.Start, s.Size, s.host, write, label)
			}
			a.addAt(mappedSpace(device), s.Start, s.Size, s.host, write, label)
			a.addAt(unheldSpace(device), s.Start, s.Size, s.host, write, label)
			continue
		}
		a.list = append(a.list, race.Access{
			Space: allocationSpace(device, s.allocation), Start: s.Start, Size: s.Size, Write: write, Unnamed: true, Label: label,
		})
	}
}

// enters adds the accesses of the entering maps whose effect outlasts their construct.
func (d *Detector) enters(a *accesses, device int, maps []memory.Map) {
	d.storageOf(device).enter(maps, func(m *memory.Map, e entered) {
		switch {
		case e.self:
		case m.Type.To() && (e.created || m.Always):
			// New storage receives the value that the host's has, as any other map of it would
			// copy, so it only conflicts with writers.
			a.host(m.Section, false, m.Label)
			a.add(mappedSpace(device), m.Section, !e.created, m.Label)
		case e.first:
			a.add(mappedSpace(device), m.Section, true, m.Label)
		}
	})
}

// exits adds the accesses of the exiting maps of a construct. The removal of storage conflicts
// with the tasks that use it, and is recorded in the space freed.
func (d *Detector) exits(a *accesses, device int, maps []memory.Map, freed race.Space) {
	d.storageOf(device).exit(maps, func(m *memory.Map, e exited) {
		if e.self {
			return
		}
		if m.Type.From() && (e.gone || m.Always) {
			a.host(m.Section, true, m.Label)
		}
		switch {
		case e.gone:
			n := len(a.list)
			a.add(freed, m.Section, true, m.Label)
			for k := n; k < len(a.list); k++ {
				// Tasks of other regions hold references themselves while they use the storage,
				// or do not know that this task has one.
				a.list[k].Local = true
			}
		case m.Always && m.Type.From():
			a.add(mappedSpace(device), m.Section, false, m.Label)
		}
	})
}

// update adds the accesses of a motion of a target update construct.
func (d *Detector) update(a *accesses, device int, m *transfer.Request) {
	if _, self := d.storageOf(device).holds(m.Host); self {
		return
	}
	to := m.Kind == transfer.UpdateTo
	if m.Rows == nil {
		a.host(m.Host, !to, m.Label)
		a.unheld(device, m.Host, to, m.Label)
		return
	}
	n := 0
	for at := range m.Rows.All() {
		if n++; n > maxRows {
			break
		}
		row := memory.Section{Ptr: unsafe.Add(m.Host.Ptr, at), Size: m.Rows.RowBytes}
		a.host(row, !to, m.Label)
		a.unheld(device, row, to, m.Label)
	}
}

// copied adds the accesses of a memory routine's copy.
func (d *Detector) copied(a *accesses, c *observe.Copy) {
	n := 0
	for dst, src := range c.Rows.All() {
		if n++; n > maxRows {
			break
		}
		d.side(a, &c.Dst, dst, c.Rows.RowBytes, true, "the destination")
		if !c.Fill {
			d.side(a, &c.Src, src, c.Rows.RowBytes, false, "the source")
		}
	}
}

// side adds an access to size bytes of one side of a copy.
func (d *Detector) side(a *accesses, e *observe.Side, at, size uint64, write bool, label string) {
	if e.Host != nil {
		a.host(memory.Section{Ptr: unsafe.Add(e.Host, at), Size: size}, write, label)
		return
	}
	a.pointees(e.Device, d.storageOf(e.Device).at(e.Pointer.Add(int64(at)), size, false), write, label)
}
