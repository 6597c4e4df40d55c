package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// transfers are what a task transfers between the host's storage and the device's, and the
// host's part in it.
type transfers struct {
	// list are the transfers: those that the construct asks for first, requested of them, and
	// behind them, once the task has entered, the others. They grow by planExitLocked when the
	// device is done with the task.
	list      []transfer
	requested int
	// chunk is the size of the chunks of rings, in bytes.
	chunk uint64
	// planned and recorded are the phases, as bits, of transfers that are planned, and of
	// those with commands in the task's batch: other phases need no look at the list.
	planned, recorded phases
	// ends are the places in list of those that are to have their end, in its order.
	ends []int
	// rows are those of transfers of the program, images those of updates.
	rows   []memory.Rows
	images []Image
	// staging is given back when the task is complete.
	staging []memory.Storage
	// incoherent is memory that the host has written, or is about to read, and that is not
	// coherent: there is one call for all of it.
	incoherent []vk.MemoryRange
	// written is working memory of apart.
	written []vk.BufferRange
}

func (ts *transfers) reset() {
	empty(&ts.list)
	ts.requested, ts.chunk, ts.planned, ts.recorded = 0, 0, 0, 0
	empty(&ts.ends)
	empty(&ts.rows)
	empty(&ts.images)
	empty(&ts.staging)
	ts.forgetTouched()
	empty(&ts.written)
}

// add adds a transfer, and returns it for as long as no other one is added.
func (ts *transfers) add(kind TransferKind) *transfer {
	n := len(ts.list)
	if n < cap(ts.list) {
		ts.list = ts.list[:n+1] // what is not in use is zero
	} else {
		ts.list = append(ts.list, transfer{})
	}
	x := &ts.list[n]
	x.kind, x.phase = kind, kind.phase()
	return x
}

// undo makes the transfers what they were before the task tried to enter. The staging has been
// given back.
func (ts *transfers) undo() {
	ts.planned, ts.recorded = 0, 0
	clear(ts.list[ts.requested:])
	ts.list = ts.list[:ts.requested]
	for i := range ts.list {
		x := &ts.list[i]
		x.path, x.staging, x.ring = nil, nil, nil
		if x.kind.updates() {
			x.block, x.dst, x.src = nil, nil, nil
		}
	}
}

// stage takes so many bytes of staging memory for a transfer.
func (ts *transfers) stage(m *allocation.Memory, x *transfer, bytes uint64) error {
	st, err := m.Staging.Allocate(bytes)
	if err != nil {
		return err
	}
	ts.staging = append(ts.staging, st)
	x.staging = &ts.staging[len(ts.staging)-1] // it does not change when the slice grows
	return nil
}

// touchStorage notes that the host has written bytes of storage, or is about to read them, if their
// memory is not coherent.
func (ts *transfers) touchStorage(m *allocation.Memory, st *memory.Storage, at, size uint64) {
	if r, ok := m.StorageRange(st, at, size); ok {
		ts.incoherent = append(ts.incoherent, r)
	}
}

// touchStaging is touchStorage for staging memory.
func (ts *transfers) touchStaging(m *allocation.Memory, st *memory.Storage, at, size uint64) {
	if r, ok := m.StagingRange(st, at, size); ok {
		ts.incoherent = append(ts.incoherent, r)
	}
}

// flush makes what the host has written visible to the device.
func (ts *transfers) flush(m *allocation.Memory) error {
	if len(ts.incoherent) == 0 {
		return nil
	}
	err := m.Flush(ts.incoherent)
	ts.forgetTouched()
	if err != nil {
		return fmt.Errorf("flush of what the host copied: %w", err)
	}
	return nil
}

// invalidate makes what the device has written visible to the host.
func (ts *transfers) invalidate(m *allocation.Memory) error {
	if len(ts.incoherent) == 0 {
		return nil
	}
	err := m.Invalidate(ts.incoherent)
	ts.forgetTouched()
	if err != nil {
		return fmt.Errorf("invalidation of what the host is to copy: %w", err)
	}
	return nil
}

func (ts *transfers) forgetTouched() { empty(&ts.incoherent) }

// recorder is where the commands of transfers go: a level of a batch. It counts what they are.
type recorder struct {
	stream *vk.Stream
	// regions is working memory.
	regions []vk.CopyRegion
	// copies and fills are the commands not counted yet, copied and filled their bytes.
	copies, fills  int
	copied, filled uint64
}

// copy counts a copy.
func (r *recorder) copy(bytes uint64) {
	r.copies++
	r.copied += bytes
}

// fill counts a fill.
func (r *recorder) fill(bytes uint64) {
	r.fills++
	r.filled += bytes
}

// count tells the queue what has been recorded since the last time.
func (r *recorder) count(q *order.Queue) {
	if r.copies > 0 {
		q.CountCopies(r.copies, r.copied)
	}
	if r.fills > 0 {
		q.CountFill(r.filled)
	}
	r.copies, r.copied, r.fills, r.filled = 0, 0, 0, 0
}

// rows records the copy of rows. They count from dstAt and srcAt.
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
