package transfer

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/vk"
)

// timeLocked is by.TimeLocked for a transfer of which an observer is told.
func (x *Transfer) timeLocked(by Task, q *order.Queue, level int32, bytes uint64) trace.Timing {
	if x.Op == nil {
		return trace.Timing{} // nothing more where nobody observes: this is inlined
	}
	return by.TimeLocked(q, level, x.Op, bytes)
}

// PlaceLocked places the commands of the transfers of one phase, of which there are some (see
// Recorded). They follow s, which becomes what they follow, and the earlier uses of the memory
// that they touch. If all of them copy to blocks that the task has made, mayGoAhead lets them go
// ahead of what s has; ahead says that they do. The scheduler's lock is held. An error is that of
// order.Queues.Begin, and then nothing is placed.
func (l *List) PlaceLocked(d *Device, p Phase, s *order.WaitSet, mayGoAhead bool, by Task) (at order.SyncPoint, ahead bool, err error) {
	n, bytes, within := l.follow(p, s)
	// The queue is chosen with the task's predecessors in the set: the kernel is likely to run
	// where they did, and the copy had better be there too.
	q := d.Queues.CopyQueue(s, bytes)
	if within {
		q = d.Queues.WithinQueue(s, bytes)
	}
	if ahead = p == AtEntry && mayGoAhead && l.allFresh(p); ahead {
		// Nobody else knows fresh blocks, so copies to them need not follow the task's
		// predecessors. The kernel follows both, and later tasks follow the kernel.
		s.Set(order.SyncPoint{})
		l.follow(p, s)
	}
	b, at, err := d.Queues.Begin(q, s)
	if err != nil {
		return order.SyncPoint{}, false, err
	}
	apart := n == 1 || l.apart(p)
	r := &d.recorder
	r.copier, r.computes = d.Copier, q.Computes()
	first := true
	for i := range l.All {
		x := &l.All[i]
		if x.Phase != p || x.path.record == nil {
			continue
		}
		if !first && !apart {
			at.Level++
		}
		first = false
		r.stream, r.stage = b.Level(at.Level), vk.StageTransfer
		timing := x.timeLocked(by, q, at.Level, x.Size)
		x.path.record(r, x)
		r.count(d.Queues, q)
		timing.End(r.stream, r.stage)
		x.placed(at)
	}
	if p >= ToHost {
		b.ReadByHost()
	}
	return at, ahead, nil
}

// follow adds to a set what the commands of a phase follow for the device memory that they touch.
// It returns how many transfers have commands, how many bytes these transfer, and whether one of
// them is within the device.
func (l *List) follow(p Phase, s *order.WaitSet) (n int, bytes uint64, within bool) {
	for i := range l.All {
		x := &l.All[i]
		if x.Phase != p || x.path.record == nil {
			continue
		}
		n++
		bytes += x.Size
		within = within || x.Kind.within()
		dst, src := x.Places()
		if x.Dst != nil {
			x.Dst.Follow(s, dst)
		}
		if x.Src != nil {
			x.Src.Follow(s, src)
		}
		if x.pinned != nil {
			x.pinned.Follow(s, x.pinnedSpan())
		}
	}
	return n, bytes, within
}

// allFresh reports whether all commands of a phase write to blocks that the task has made.
func (l *List) allFresh(p Phase) bool {
	for i := range l.All {
		if x := &l.All[i]; x.Phase == p && x.path.record != nil && !x.Fresh {
			return false
		}
	}
	return true
}

// apart reports whether no two requested transfers of a phase write the same bytes of the device or
// of pinned storage. Otherwise they are made one after the other.
func (l *List) apart(p Phase) bool {
	written := l.written[:0]
	for i := range l.All {
		x := &l.All[i]
		switch {
		case x.Phase != p:
		case p == ToDevice && x.Dst != nil:
			dst, _ := x.Places()
			written = append(written, vk.BufferRange{Buffer: vk.Buffer(x.Dst.Block.ID), Offset: x.Dst.Offset + dst.Start, Size: dst.Size})
		case x.Kind.ToHost() && x.pinned != nil:
			host := x.pinnedSpan()
			written = append(written, vk.BufferRange{Buffer: vk.Buffer(x.pinned.Block.ID), Offset: x.pinned.Offset + host.Start, Size: host.Size})
		}
	}
	l.written = written
	slices.SortFunc(written, func(a, b vk.BufferRange) int {
		return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(written); i++ {
		if before := written[i-1]; before.Buffer == written[i].Buffer && before.Offset+before.Size > written[i].Offset {
			return false
		}
	}
	return true
}

// placed records in the histories of the device memory where the transfer's commands are.
func (x *Transfer) placed(at order.SyncPoint) {
	dst, src := x.Places()
	if x.Dst != nil {
		if x.Block != nil {
			// Whoever maps the block follows the copy, even if it does not follow the task.
			x.Dst.Moved(dst, at)
		}
		x.Dst.Wrote(dst, at)
	}
	switch {
	case x.Src == nil:
	case x.Kind == CopyOut:
		x.Src.Moved(src, at)
	default:
		x.Src.Read(at)
	}
	if x.pinned == nil {
		return
	}
	host := x.pinnedSpan()
	if x.Kind == CopyIn || x.Kind == CopyOut {
		// Whoever maps the storage is complete after the copy, even if it does not follow the task.
		x.pinned.Moved(host, at)
	}
	if x.Kind.ToHost() {
		x.pinned.Wrote(host, at)
	} else {
		x.pinned.Read(at)
	}
}

// recorder is where the commands of transfers go: a level of a batch. It counts them.
type recorder struct {
	stream *vk.Stream
	// copier is the device's kernel for copies. computes says that the level's queue runs kernels.
	copier   *Copier
	computes bool
	// stage is the stage of the commands.
	stage vk.Stage
	// regions is working memory.
	regions []vk.CopyRegion
	// copies, inner and fills count the commands since the last call of count: copies between host
	// and device, and copies and fills within the device. copied are the bytes of the former, and
	// within those of the latter.
	copies, inner, fills int
	copied, within       uint64
}

// copy counts a copy between host and device.
func (r *recorder) copy(bytes uint64) {
	r.copies++
	r.copied += bytes
}

// copyWithin counts a copy within the device.
func (r *recorder) copyWithin(bytes uint64) {
	r.inner++
	r.within += bytes
}

// fill counts a fill.
func (r *recorder) fill(bytes uint64) {
	r.fills++
	r.within += bytes
}

// count adds what has been recorded since its last call to the queue's counts.
func (r *recorder) count(o *order.Queues, q *order.Queue) {
	if r.copies > 0 {
		o.CountCopies(q, r.copies, r.copied)
	}
	if r.inner+r.fills > 0 {
		o.CountWithin(q, r.inner, r.fills, r.within)
	}
	r.copies, r.inner, r.fills, r.copied, r.within = 0, 0, 0, 0, 0
}

// bytes records the copy of a transfer's bytes, in rows if it has rows, from srcAt bytes into src to dstAt bytes
// into dst.
func (r *recorder) bytes(x *Transfer, dst, src *allocation.Allocation, dstAt, srcAt uint64) {
	to, from := vk.Buffer(dst.Block.ID), vk.Buffer(src.Block.ID)
	dstAt, srcAt = dst.Offset+dstAt, src.Offset+srcAt
	if x.rows != nil {
		r.rows(to, from, dstAt, srcAt, *x.rows)
		return
	}
	r.stream.Copy(from, to, srcAt, dstAt, x.Size)
}

// rows records the copy of rows, whose offsets count from dstAt and srcAt.
func (r *recorder) rows(dst, src vk.Buffer, dstAt, srcAt uint64, rows memory.Rows) {
	regions := r.regions[:0]
	for d, s := range rows.All() {
		regions = append(regions, vk.CopyRegion{SrcOffset: srcAt + s, DstOffset: dstAt + d, Size: rows.RowBytes})
	}
	r.regions = regions
	r.stream.CopyRegions(src, dst, regions)
}

// parts records the copy of parts of an image, if there are any.
func (r *recorder) parts(dst, src vk.Buffer, dstAt, srcAt uint64, parts []order.Span) {
	regions := r.regions[:0]
	for _, p := range parts {
		regions = append(regions, vk.CopyRegion{SrcOffset: srcAt + p.Start, DstOffset: dstAt + p.Start, Size: p.Size})
	}
	r.regions = regions
	if len(regions) > 0 {
		r.stream.CopyRegions(src, dst, regions)
	}
}
