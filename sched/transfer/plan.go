package transfer

import (
	"cmp"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/sched/allocation"
)

// Situation is what the path of a transfer depends on besides the transfer itself and its memory.
type Situation struct {
	// Awaited says that the construct waits for its task.
	Awaited bool
	// Image says that the storage of the transfer's block is an image of a value.
	Image bool
	// Filling says that the first contents of the block are on their way.
	Filling bool
	// Pinned is the pinned storage in which the host's side lies, nil if it lies in none. The task
	// keeps it.
	Pinned *allocation.Allocation
	// Written says that commands in flight write to the host's side, so that the host must not read it yet. It is pinned then.
	Written bool
}

// Plan chooses the path of a transfer, and takes the memory that it needs. An error leaves the
// list to Undo.
func (l *List) Plan(d *Device, x *Transfer, s Situation) error {
	var f facts
	l.factsOf(&f, d, x, s)
	x.path = f.path()
	if x.path.pinned {
		x.pinned = s.Pinned
	}
	l.planned.add(x.Phase)
	if x.path.record != nil {
		l.recorded.add(x.Phase)
	}
	if x.path.take == nil {
		return nil
	}
	return x.path.take(d, l, x)
}

// factsOf sets f to what the path of a transfer depends on, as things stand.
func (l *List) factsOf(f *facts, d *Device, x *Transfer, s Situation) {
	ring := d.ringChunks() * d.Chunk
	*f = facts{
		kind: x.Kind, bytes: x.Size, absent: x.Absent(), awaited: s.Awaited,
		chunk: d.Chunk, room: ring - min(l.staged, ring),
		contiguous: x.rows == nil && x.Image == nil && !s.Image,
		foreseen:   x.Phase == AtExit,
	}
	f.written = s.Written
	other := cmp.Or(x.Dst, x.Src)
	f.pinned = s.Pinned != nil && !s.Image && other != nil && x.MayBePinned(other)
	if a := x.Dst; a != nil {
		f.dst = memoryFacts{
			shared: a.Shared, writable: a.HostWrites(x.Size), idle: a.Idle(), fresh: x.Fresh,
			filling: s.Filling, whole: wholeUnits(d, x),
		}
	}
	if a := x.Src; a != nil {
		f.src = memoryFacts{shared: a.Shared, readable: a.HostReads() || a.Host() != nil && mutant.Active(mutant.UncachedRead)}
		// For copies to the host it does not matter: the host reads when the task ends.
		f.src.idle = x.Kind == CopyWithin && a.Idle()
	}
	f.kernel = x.Kind == CopyWithin && f.contiguous && d.Copier.takes(d.Memory.Profile(), x.Src, x.Dst, x.SrcAt, x.DstAt, x.Size)
}

// wholeUnits reports whether the host can write the bytes of a transfer without touching what
// lies beside or between them. Memory that is not coherent is flushed in one run of whole units,
// and others may be writing to the rest of a unit.
func wholeUnits(d *Device, x *Transfer) bool {
	unit := d.Memory.FlushUnit()
	if unit == 0 || x.Dst.Shared {
		return true
	}
	dst, _ := x.spans()
	from := x.Dst.Offset + x.DstAt + dst.Start
	gaps := x.rows != nil || x.Image != nil && !x.Fresh
	return !gaps && from%unit == 0 && dst.Size%unit == 0
}
