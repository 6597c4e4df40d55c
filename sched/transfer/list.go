package transfer

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// ErrOverlap: the source of a copy shares bytes with its destination.
var ErrOverlap = errors.New("source and destination overlap")

// Device is what the transfers of a device have in common.
type Device struct {
	// Memory is the device's memory, and Queues its queues.
	Memory *allocation.Memory
	Queues *order.Queues
	// Chunk is the size of the chunks of rings, in bytes.
	Chunk uint64
	// Copier has the kernel for large copies within the device, nil for none.
	Copier *Copier
	// Late is the number of bytes from which on a copy to pinned storage at the exit of a map is not
	// foreseen when its task enters.
	Late uint64
	// Threads is the largest number of goroutines that share a copy, the one of the task itself
	// included. All tasks together have one less for help.
	Threads int
	// Staging is the number of bytes of staging memory that tasks have at most. A task that needs
	// more alone gets it when no other has any.
	Staging uint64
	// staged is how many bytes tasks have.
	staged uint64
	crews  crews
	// recorder is working memory of PlaceLocked.
	recorder recorder
}

// DefaultStaging is 64 chunks, which the rings of four tasks have at once.
const DefaultStaging = 128 << 20

// List is the transfers of a task. The zero List is empty.
type List struct {
	// All are the transfers: the first requested ones are what the construct requests. Behind
	// them are, once the task has entered, those of its maps.
	All       []Transfer
	requested int
	// planned are the phases of transfers that are planned, recorded those of transfers with
	// commands in the task's batch. Nothing of other phases need be looked for.
	planned, recorded phases
	// ends are the indices of the transfers to be made by End, in its order.
	ends []int
	// rows has the rows of requests, images the images of updates.
	rows   []memory.Rows
	images []Image
	// Reserved says that another task waits for all staging memory, so that this one gets none for
	// its entry.
	Reserved bool
	// staging is memory that FreeStaging gives back, and staged the number of its bytes.
	staging []memory.Storage
	staged  uint64
	// ring is the part of staging through which transfers go in parts, and chunks the memory of
	// parts in it. rings has what the Lane knows of the transfers.
	ring   []memory.Storage
	chunks []Chunk
	rings  []Ring
	// streamed are the transfers that go through the ring next.
	streamed []*Transfer
	// gathered has the copies of the host that copyGathered is to make, nil if there are none.
	gathered *crew
	// incoherent has memory that the host has written, or is about to read, and that is not
	// coherent. There is one call for all of it.
	incoherent []vk.MemoryRange
	// written is working memory of apart.
	written []vk.BufferRange
}

// Reset makes the list empty. It keeps the memory of its slices.
func (l *List) Reset() {
	empty(&l.All)
	l.requested, l.planned, l.recorded = 0, 0, 0
	empty(&l.ends)
	empty(&l.rows)
	empty(&l.images)
	l.dropStaging()
	empty(&l.streamed)
	empty(&l.incoherent)
	empty(&l.written)
}

// empty removes all elements of a slice, which keeps its memory.
func empty[T any](s *[]T) {
	if len(*s) > 0 {
		clear(*s)
		*s = (*s)[:0]
	}
}

// Add adds a transfer and returns it. The pointer is valid until the next one is added.
func (l *List) Add(kind Kind) *Transfer {
	n := len(l.All)
	if n < cap(l.All) {
		l.All = l.All[:n+1] // what is not in use is zero
	} else {
		l.All = append(l.All, Transfer{})
	}
	x := &l.All[n]
	x.Kind, x.Phase = kind, kind.phase()
	return x
}

// Resolve adds the transfers that a construct requests to an empty list. It copies what the list
// keeps of them. The caller has to pin the memory that they use.
func (l *List) Resolve(pointers *allocation.Pointers, requested []Request) error {
	for i := range requested {
		r := &requested[i]
		size := r.Size
		if r.Rows != nil {
			size = r.Rows.Bytes()
		}
		if size == 0 {
			continue
		}
		x := l.Add(r.Kind)
		x.value, x.Present, x.Host, x.Size, x.Label = r.Value, r.Present, r.Host, size, r.Label
		if r.Rows != nil {
			l.rows = append(l.rows, *r.Rows)
			x.rows = &l.rows[len(l.rows)-1] // it does not change when the slice grows
		}
		if r.Image != nil {
			l.images = append(l.images, *r.Image)
			x.Image = &l.images[len(l.images)-1]
		}
		if err := x.resolve(pointers, r.Dst, r.Src); err != nil {
			return err
		}
	}
	l.requested = len(l.All)
	return nil
}

// Undo makes the list what Resolve left. The staging memory has been given back.
func (l *List) Undo() {
	l.planned, l.recorded = 0, 0
	clear(l.All[l.requested:])
	l.All = l.All[:l.requested]
	for i := range l.All {
		x := &l.All[i]
		x.path, x.staging, x.Ring, x.pinned = nil, nil, nil, nil
		if x.Kind.Updates() {
			x.Block, x.Dst, x.Src = nil, nil, nil
		}
	}
}

// Recorded reports whether transfers of a phase have commands.
func (l *List) Recorded(p Phase) bool { return l.recorded.has(p) }

// Foresaw reports whether the transfer of that index, which was planned when the task entered, copies these bytes to the host,
// and no other construct has used the block since. The bytes are those at an offset from the beginning of the block's
// allocation.
func (l *List) Foresaw(i int, block *memory.Present, at, size uint64) bool {
	x := &l.All[i]
	return x.Block == block && x.SrcAt == at && x.Size == size && (!x.ByCommand() || x.uses == block.Uses())
}

// EndWith has End make the transfer of that index. Transfers are made in the order of the calls.
func (l *List) EndWith(i int) { l.ends = append(l.ends, i) }

// EndWithRequested has End make the requested transfers to the host.
func (l *List) EndWithRequested() {
	if !l.planned.has(ToHost) {
		return
	}
	for i := range l.All {
		if x := &l.All[i]; x.Phase == ToHost && !x.Absent() {
			l.EndWith(i)
		}
	}
}

// Chunks returns the chunks of the ring through which transfers go.
func (l *List) Chunks() []Chunk { return l.chunks }

// stage takes so many bytes of staging memory for a transfer.
func (l *List) stage(d *Device, x *Transfer, bytes uint64) error {
	if _, err := l.takeStaging(d, x, bytes); err != nil {
		return err
	}
	x.staging = &l.staging[len(l.staging)-1] // it does not change when the slice grows
	return nil
}

// ErrStagingTaken says that other tasks have so much staging memory that there is too little left, or
// that one of them waits for all of it. It matches memory.ErrOutOfMemory.
var ErrStagingTaken = fmt.Errorf("%w: tasks in flight have the staging memory", memory.ErrOutOfMemory)

// takeStaging takes so many bytes of staging memory. The error is ErrStagingTaken if that would be
// too much together with what other tasks have, and memory.ErrOutOfMemory if the device has no more:
// a task that enters waits then until others have given theirs back. One that ends does not wait.
func (l *List) takeStaging(d *Device, x *Transfer, bytes uint64) (memory.Storage, error) {
	taken := l.Reserved || d.staged > l.staged && bytes > d.Staging-min(d.staged, d.Staging)
	if taken && x.Phase != Late {
		return memory.Storage{}, fmt.Errorf("%w: %d bytes of at most %d", ErrStagingTaken, d.staged, d.Staging)
	}
	st, err := d.Memory.Staging.Allocate(bytes)
	if err != nil {
		return st, err
	}
	l.staging = append(l.staging, st)
	l.staged += bytes
	d.staged += bytes
	return st, nil
}

// FreeStaging gives back the staging memory, which the device last used at the points of a set.
func (l *List) FreeStaging(d *Device, last *order.SyncSet) {
	for _, st := range l.staging {
		d.Memory.FreeStaging(st, last)
	}
	d.staged -= l.staged
	l.dropStaging()
}

// dropStaging forgets the staging memory.
func (l *List) dropStaging() {
	empty(&l.staging)
	empty(&l.ring)
	empty(&l.chunks)
	l.rings, l.staged = l.rings[:0], 0
}

// touchStorage notes that the host has written bytes of storage, or is about to read them, if
// their memory is not coherent.
func (l *List) touchStorage(d *Device, st *memory.Storage, at, size uint64) {
	if r, ok := d.Memory.StorageRange(st, at, size); ok {
		l.incoherent = append(l.incoherent, r)
	}
}

// touchStaging is touchStorage for staging memory.
func (l *List) touchStaging(d *Device, st *memory.Storage, at, size uint64) {
	if r, ok := d.Memory.StagingRange(st, at, size); ok {
		l.incoherent = append(l.incoherent, r)
	}
}

// flush makes what the host has written visible to the device.
func (l *List) flush(d *Device) error {
	err := d.flush(l.incoherent)
	empty(&l.incoherent)
	return err
}

// invalidate makes what the device has written visible to the host.
func (l *List) invalidate(d *Device) error {
	err := d.invalidate(l.incoherent)
	empty(&l.incoherent)
	return err
}

// flush makes what the host has written to memory that is not coherent visible to the device.
func (d *Device) flush(dirty []vk.MemoryRange) error {
	if len(dirty) == 0 {
		return nil
	}
	if err := d.Memory.Flush(dirty); err != nil {
		return fmt.Errorf("flush of what the host copied: %w", err)
	}
	return nil
}

// invalidate makes what the device has written to memory that is not coherent visible to the host.
func (d *Device) invalidate(stale []vk.MemoryRange) error {
	if len(stale) == 0 {
		return nil
	}
	if err := d.Memory.Invalidate(stale); err != nil {
		return fmt.Errorf("invalidation of what the host is to copy: %w", err)
	}
	return nil
}
