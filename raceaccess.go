package vkomp

import (
	"context"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/tasks/race"
)

// A mapped slice has two storages that can differ: the host's, and that of each
// device, which is known by the host's address all the same. Memory from Alloc is known
// by the device's. Each is a space of its own, and each allocation too: what is allocated
// later may lie where it was.

const hostSpace = race.Space(0)

func mappedSpace(d *device) race.Space { return race.Space(1 + d.number) }

// unheldSpace is mappedSpace for accesses by tasks that do not hold the storage
// themselves, or whose map types would not do if they had to map it anew. They are told
// in both spaces: the end of a data region without a taskgroup is in the way of these
// alone.
func unheldSpace(d *device) race.Space { return mappedSpace(d) | 1<<63 }

// deviceBits is the number of bits of a space that say of which device it is.
const deviceBits = 16

// spaceDevice returns the number of the device whose space s is.
func spaceDevice(s race.Space) int {
	if s == hostSpace {
		return InitialDeviceNumber
	}
	return int(s&(1<<deviceBits-1)) - 1
}

// maxRaceRows bounds the rows of a copy that are looked at: those beyond go unnoticed.
const maxRaceRows = 4096

// accesses collects what a task does.
type accesses struct {
	list   []race.Access
	depend []tasks.Depend
}

// unheld adds an access to a slice's storage on d by a task that does not hold it.
func (a *accesses) unheld(d *device, s memory.Section, write bool, label string) {
	a.add(mappedSpace(d), s, write, label)
	a.add(unheldSpace(d), s, write, label)
}

// host adds an access to host storage.
func (a *accesses) host(s memory.Section, write bool, label string) {
	a.add(hostSpace, s, write, label)
}

// add adds an access to the storage of a slice in that space: to what depend items name
// of it, if they name parts.
func (a *accesses) add(space race.Space, s memory.Section, write bool, label string) {
	if s.Size > 0 && s.Ptr != nil {
		a.addAt(space, uint64(s.Start()), s.Size, s.Ptr, write, label)
	}
}

// addAt is add for storage by its address; keep keeps it.
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
func itemAccesses(depend []tasks.Depend, list []race.Access) []race.Access {
	for k := range depend {
		d := &depend[k]
		if d.Kind.AllMemory() || d.Ptr == nil || d.Size == 0 {
			continue
		}
		list = append(list, race.Access{
			Space: hostSpace, Start: uint64(uintptr(d.Ptr)), Size: d.Size, Write: d.Kind != tasks.DependIn,
			Keep: d.Ptr, Label: itemLabelsOfDepend.of(k),
		})
	}
	return list
}

var itemLabelsOfDepend = itemLabels{noun: "depend item"}

// target tells of a target region.
func (r *raceDetector) target(ctx context.Context, c current, k *kernel, args []Arg, d *device, label string, depend []tasks.Depend, noWait bool, err error) {
	if r == nil {
		return
	}
	a := accesses{depend: depend}
	binding := -1
	for i := range args {
		arg := &args[i]
		if arg.isValue() {
			continue
		}
		binding++
		reads, writes := true, true
		switch {
		case k.shader != nil:
			reads, writes = k.shader.Access(binding)
		case arg.kind == argMap:
			writes = arg.mapType != memory.MapTo
		}
		r.argument(&a, arg, d, reads, writes, argumentLabels.of(i))
	}
	r.generated(ctx, c, r.callers(), label, depend, a.list, noWait, err)
}

// argument adds what a target region on d does to an argument whose binding the kernel
// reads or writes.
func (r *raceDetector) argument(a *accesses, arg *Arg, d *device, reads, writes bool, label string) {
	used := reads || writes
	switch arg.kind {
	case argMap:
		section := arg.at.host
		if arg.part != nil {
			section, _ = arg.contiguous() // else the argument was refused
		}
		r.mapped(a, arg, section, d, used, writes, label)
		for k := 0; arg.image != nil && k < len(arg.image.slices); k++ {
			m := arg.image.member(arg, k)
			r.mapped(a, &m, m.at.host, d, true, m.mapType != memory.MapTo, label)
		}
	case argImplicit:
		switch {
		case !used:
		case d.physical == nil:
			a.host(memory.Section{Ptr: arg.at.host.Ptr, Size: uint64(arg.size)}, writes, label)
		default:
			if s, ok := r.storageOf(d).toEnd(arg.at.host.Ptr); ok {
				a.unheld(d, s, writes, label)
			}
		}
	case argDevicePtr, argDeviceAddr:
		if used {
			r.pointer(a, arg, d, writes, label)
		}
	}
}

// mapped adds what is done to a slice that a target region maps.
func (r *raceDetector) mapped(a *accesses, arg *Arg, s memory.Section, d *device, used, writes bool, label string) {
	if d.physical == nil {
		if used {
			a.host(s, writes, label)
		}
		return
	}
	held, self := r.storageOf(d).holds(s)
	to, from := arg.mapType.To(), arg.mapType.From()
	// What is mapped to the device, or back, without being written holds what it held.
	copied := !held || arg.always
	switch back := from && (writes || !to); {
	case self || arg.self:
		if used {
			a.host(s, writes, label)
		}
	case copied && (to || back):
		a.host(s, back, label)
	}
	if used || to {
		a.add(mappedSpace(d), s, writes || held && arg.always && to, label)
	}
	if used && !from && (writes || !to) {
		a.add(unheldSpace(d), s, writes, label)
	}
}

// pointer adds what is done through a pointer to memory of the device.
func (r *raceDetector) pointer(a *accesses, arg *Arg, d *device, write bool, label string) {
	size := uint64(0)
	if arg.kind == argDeviceAddr {
		size = uint64(max(arg.size, 0))
	}
	if d.physical == nil {
		if at, err := d.rt.endpoint(&arg.at, 0, size); err == nil && at.d == nil {
			if arg.kind == argDeviceAddr {
				at.host.Size = size
			}
			a.host(at.host, write, label)
		}
		return
	}
	if s := r.storageOf(d).at(arg.at.p, size, arg.kind == argDevicePtr); s.Size > 0 {
		a.device(d, s, write, label)
	}
}

// device adds an access to what was found at an address of a device.
func (a *accesses) device(d *device, s deviceStorage, write bool, label string) {
	if s.host != nil {
		a.addAt(mappedSpace(d), s.Start, s.Size, s.host, write, label)
		a.addAt(unheldSpace(d), s.Start, s.Size, s.host, write, label)
		return
	}
	a.list = append(a.list, race.Access{Space: mappedSpace(d) | s.allocation<<deviceBits, Start: s.Start, Size: s.Size, Write: write, Unnamed: true, Label: label})
}

// enters tells of the maps of a construct that only enters, or begins.
func (r *raceDetector) enters(a *accesses, d *device, maps []memory.Map) {
	storage := r.storageOf(d)
	counted := make(map[*heldBlock]bool)
	for k := range maps {
		m := &maps[k]
		if m.Size == 0 && m.Presence != memory.IfPresent {
			continue
		}
		held, self := storage.holds(m.Section)
		block := storage.hold(m, counted)
		if block == nil {
			continue
		}
		switch {
		case self || m.Share == memory.ShareMust:
		case !held && m.Type.To():
			// The storage comes to hold what the host's holds, as it would with a map of
			// anybody's: only who writes it is in the way.
			a.host(m.Section, false, m.Label)
			a.add(mappedSpace(d), m.Section, false, m.Label)
		case !held:
			a.add(mappedSpace(d), m.Section, true, m.Label)
		case m.Always && m.Type.To():
			a.host(m.Section, false, m.Label)
			a.add(mappedSpace(d), m.Section, true, m.Label)
		}
	}
}

// exits tells of the maps of a construct that only exits, or ends. Storage that goes
// is in the way of the tasks that use it, as told in the space freed.
func (r *raceDetector) exits(a *accesses, d *device, maps []memory.Map, freed race.Space) {
	storage := r.storageOf(d)
	counted := make(map[*heldBlock]bool)
	for k := range maps {
		m := &maps[k]
		held, self := storage.holds(m.Section)
		if !held {
			continue
		}
		gone := storage.letGo(m, counted)
		if self {
			continue
		}
		if m.Type.From() && (gone || m.Always) {
			a.host(m.Section, true, m.Label)
		}
		if !gone && !(m.Always && m.Type.From()) {
			continue
		}
		if !gone {
			a.add(mappedSpace(d), m.Section, false, m.Label)
			continue
		}
		n := len(a.list)
		a.add(freed, m.Section, true, m.Label)
		for k := n; k < len(a.list); k++ {
			// Tasks of other regions hold the storage for themselves while they use it, or
			// do not know that this one does.
			a.list[k].Local = true
		}
	}
}

// standalone tells of a data directive without a body.
func (r *raceDetector) standalone(ctx context.Context, c current, label string, passed *clauses, d *device, noWait bool, err error) {
	if r == nil {
		return
	}
	a := accesses{depend: passed.depend}
	if d.physical != nil && err == nil {
		r.enters(&a, d, passed.enter)
		r.exits(&a, d, passed.exit, mappedSpace(d))
		for k := range passed.moves {
			m := &passed.moves[k]
			to := m.Kind == sched.UpdateTo
			if _, self := r.storageOf(d).holds(m.Host); self {
				continue
			}
			if m.Rows == nil {
				a.host(m.Host, !to, m.Label)
				a.unheld(d, m.Host, to, m.Label)
				continue
			}
			n := 0
			for at := range m.Rows.All() {
				if n++; n > maxRaceRows {
					break
				}
				row := memory.Section{Ptr: unsafe.Add(m.Host.Ptr, at), Size: m.Rows.RowBytes}
				a.host(row, !to, m.Label)
				a.unheld(d, row, to, m.Label)
			}
		}
	}
	if d.physical == nil && len(passed.depend) == 0 {
		return
	}
	r.generated(ctx, c, r.callers(), label, passed.depend, a.list, noWait, err)
}

// move tells of the beginning of a target data region, or of its end.
func (r *raceDetector) move(ctx context.Context, c current, d *dataRegion, depend []tasks.Depend, ending bool, err error) {
	if r == nil {
		return
	}
	a := accesses{depend: depend}
	label := d.label
	switch {
	case d.of == nil || err != nil:
	case ending:
		freed := mappedSpace(d.of)
		if d.noGroup {
			freed = unheldSpace(d.of)
		}
		r.exits(&a, d.of, d.exit, freed)
		label += " (end)"
	default:
		r.enters(&a, d.of, d.enter)
	}
	r.generated(ctx, c, d.stack, label, depend, a.list, false, err)
}

// routine returns what a memory routine does, nil if nobody asks.
func (r *raceDetector) routine(o *routine) []race.Access {
	if r == nil || o.rows.RowBytes == 0 {
		return nil
	}
	var a accesses
	n := 0
	for dst, src := range o.rows.All() {
		if n++; n > maxRaceRows {
			break
		}
		r.end(&a, &o.dst, dst, o.rows.RowBytes, true, "the destination")
		if !o.fill {
			r.end(&a, &o.src, src, o.rows.RowBytes, false, "the source")
		}
	}
	return a.list
}

// copied tells of a memory routine that does accesses.
func (r *raceDetector) copied(ctx context.Context, c current, label string, depend []Depend, accesses []race.Access, noWait bool, err error) {
	if r != nil {
		r.generated(ctx, c, r.callers(), label, appendItems(nil, depend), accesses, noWait, err)
	}
}

// end adds what is done to size bytes of one end of a copy.
func (r *raceDetector) end(a *accesses, e *endpoint, at, size uint64, write bool, label string) {
	if e.d == nil {
		a.host(memory.Section{Ptr: unsafe.Add(e.host.Ptr, at), Size: size}, write, label)
		return
	}
	if s := r.storageOf(e.d).at(e.p.Add(int64(at)), size, false); s.Size > 0 {
		a.device(e.d, s, write, label)
	}
}
