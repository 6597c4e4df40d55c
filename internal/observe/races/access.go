package races

import (
	"unsafe"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/tasks/race"
)

// hostSpace is the host's storage.
const hostSpace = race.Space(0)

// mappedSpace is storage of a device that corresponds to the host's.
func mappedSpace(device int) race.Space { return race.Space(1 + device) }

// unheldSpace is mappedSpace for accesses by tasks that do not hold the storage
// themselves, or whose map types would not do if they had to map it anew. They are told
// in both spaces: the end of a data region without a taskgroup is in the way of these
// alone.
func unheldSpace(device int) race.Space { return mappedSpace(device) | 1<<63 }

// deviceBits is the number of bits of a space that say of which device it is.
const deviceBits = 16

// allocationSpace is memory of a device's allocation of that number.
func allocationSpace(device int, allocation race.Space) race.Space {
	return mappedSpace(device) | allocation<<deviceBits
}

// spaceDevice returns the number of the device whose space s is.
func spaceDevice(s race.Space) int {
	if s == hostSpace {
		return Host
	}
	return int(s&(1<<deviceBits-1)) - 1
}

// maxRows bounds the rows of a copy that are looked at: those beyond go unnoticed.
const maxRows = 4096

// accesses collects what a task does. Its depend items say which parts of a storage it
// means, if they name parts.
type accesses struct {
	list   []race.Access
	depend []tasks.Depend
}

// host adds an access to host storage.
func (a *accesses) host(s memory.Section, write bool, label string) {
	a.add(hostSpace, s, write, label)
}

// unheld adds an access to a slice's storage on a device by a task that does not hold it.
func (a *accesses) unheld(device int, s memory.Section, write bool, label string) {
	a.add(mappedSpace(device), s, write, label)
	a.add(unheldSpace(device), s, write, label)
}

// add adds an access to the storage of a slice in that space.
func (a *accesses) add(space race.Space, s memory.Section, write bool, label string) {
	if s.Size > 0 && s.Ptr != nil {
		a.addAt(space, uint64(s.Start()), s.Size, s.Ptr, write, label)
	}
}

// addAt is add for storage by its address; keep keeps it. Where depend items name parts of
// the storage the task accesses these: it writes those that an item other than in names,
// unless there is none.
func (a *accesses) addAt(space race.Space, start, size uint64, keep unsafe.Pointer, write bool, label string) {
	end := start + size
	parts, writers := 0, 0
	for k := range a.depend {
		d := &a.depend[k]
		from, to := uint64(uintptr(d.Ptr)), uint64(uintptr(d.Ptr))+d.Size
		switch {
		case d.Kind.AllMemory() || d.Size == 0 || to <= start || end <= from:
		case from <= start && end <= to:
			parts = len(a.depend) + 1 // all of it
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

// itemAccesses returns what a task does whose accesses nobody can see, a host task: what
// its depend items name, which is what it is ordered for.
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

// add adds what a construct does to storage, and has the tables of what is present follow
// it. Of a construct that has failed nothing is known but what a kernel and a copy were
// to do.
func (d *Detector) add(a *accesses, c *observe.Construct, failed bool) {
	for i := range c.Data.Arguments {
		d.argument(a, c.Device, &c.Data.Arguments[i])
	}
	if c.Data.Copy != nil {
		d.copied(a, c.Data.Copy)
	}
	if failed {
		return
	}
	d.enters(a, c.Device, c.Data.Enter)
	freed := mappedSpace(c.Device)
	if c.Data.Ends && c.Data.NoGroup {
		freed = unheldSpace(c.Device)
	}
	d.exits(a, c.Device, c.Data.Exit, freed)
	for i := range c.Data.Updates {
		d.update(a, c.Device, &c.Data.Updates[i])
	}
}

// argument adds what a target region does to an argument.
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
		if s, ok := d.storageOf(device).toEnd(arg.Map.Ptr); ok && used {
			a.unheld(device, s, arg.Writes, arg.Label)
		}
	case observe.ByPointer:
		if s := d.storageOf(device).at(arg.Pointer, arg.Size, arg.ToEnd); s.Size > 0 && used {
			a.pointee(device, s, arg.Writes, arg.Label)
		}
	}
}

// mapped adds what is done to a slice that a target region maps.
func (d *Detector) mapped(a *accesses, device int, arg *observe.Argument) {
	s, used, writes := arg.Map.Section, arg.Reads || arg.Writes, arg.Writes
	held, self := d.storageOf(device).holds(s)
	to, from := arg.Map.Type.To(), arg.Map.Type.From()
	// What is mapped to the device, or back, without being written holds what it held.
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

// pointee adds an access to what was found at an address of a device.
func (a *accesses) pointee(device int, s deviceStorage, write bool, label string) {
	if s.host != nil {
		a.addAt(mappedSpace(device), s.Start, s.Size, s.host, write, label)
		a.addAt(unheldSpace(device), s.Start, s.Size, s.host, write, label)
		return
	}
	a.list = append(a.list, race.Access{
		Space: allocationSpace(device, s.allocation), Start: s.Start, Size: s.Size, Write: write, Unnamed: true, Label: label,
	})
}

// enters adds what the maps of a construct do that enter, and whose effect lasts.
func (d *Detector) enters(a *accesses, device int, maps []memory.Map) {
	d.storageOf(device).enter(maps, func(m *memory.Map, e entered) {
		switch {
		case e.self:
		case m.Type.To() && (e.created || m.Always):
			// Storage that is created comes to hold what the host's holds, as it would with a
			// map of anybody's: only who writes it is in the way.
			a.host(m.Section, false, m.Label)
			a.add(mappedSpace(device), m.Section, !e.created, m.Label)
		case e.first:
			a.add(mappedSpace(device), m.Section, true, m.Label)
		}
	})
}

// exits adds what the maps of a construct do that exit. Storage that goes is in the way
// of the tasks that use it, as told in the space freed.
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
				// Tasks of other regions hold the storage for themselves while they use it, or
				// do not know that this one does.
				a.list[k].Local = true
			}
		case m.Always && m.Type.From():
			a.add(mappedSpace(device), m.Section, false, m.Label)
		}
	})
}

// update adds what a motion of a target update does.
func (d *Detector) update(a *accesses, device int, m *sched.Transfer) {
	if _, self := d.storageOf(device).holds(m.Host); self {
		return
	}
	to := m.Kind == sched.UpdateTo
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

// copied adds what a memory routine does.
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

// side adds what is done to size bytes of one side of a copy.
func (d *Detector) side(a *accesses, e *observe.Side, at, size uint64, write bool, label string) {
	if e.Host != nil {
		a.host(memory.Section{Ptr: unsafe.Add(e.Host, at), Size: size}, write, label)
		return
	}
	if s := d.storageOf(e.Device).at(e.Pointer.Add(int64(at)), size, false); s.Size > 0 {
		a.pointee(e.Device, s, write, label)
	}
}
