package allocation

import (
	"fmt"
	"sync"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// Origin says how device memory became known, and thereby how it ends.
type Origin uint8

const (
	// Mapped memory is the corresponding storage of one block, and ends with it.
	Mapped Origin = iota
	// Allocated memory was requested by a memory routine, and another one ends it.
	Allocated
	// Registered memory is not vkomp's. Its owner keeps it until it withdraws it.
	Registered
	// Pinned memory is host storage that the device can access until the program ends that.
	Pinned
)

// Allocation is device memory with its history.
type Allocation struct {
	memory.Storage
	memory *Memory
	// keepers counts those who keep the memory: the presence table or the program, and each
	// task that uses it.
	keepers int
	// Origin says how the memory became known.
	Origin Origin
	// Shared says that the memory is host storage, imported or pinned. Whoever asks for it most often
	// keeps the memory next, so it is beside keepers.
	Shared bool
	// Reserved says of pinned storage that it is not certain yet that it will be: no task may count on
	// it.
	Reserved bool
	// exported says that foreign work can write the memory.
	exported bool
	// slot names the allocation in pointers, and address is the device address of the first byte as
	// pointers have it; both are 0 if there are none.
	slot    uint32
	address uint64
	// uses says how the device has used the memory. That of a part of pinned storage is a part of what
	// the record of that says: see record.
	uses order.Uses
	// within is the pinned storage of which the memory is a part, nil if it is none.
	within *Allocation

	// Families are the families of the queues that may use the memory, a bit for each; 0 stands
	// for all.
	Families uint64
	// External is the block that consists of this memory alone and belongs to no allocator, or
	// nil.
	External *vk.Block

	// Blocks are the present blocks whose corresponding storage lies in the memory, in no order. Most
	// memory has no more than one, which is in firstBlock.
	Blocks     []*memory.Present
	firstBlock [1]*memory.Present
	// Readers are the tasks in flight that have the host read the memory itself when they end.
	// Whoever might change it has to wait for them.
	Readers []*order.Task
	// Of is the block whose corresponding storage Mapped memory is (see Options.Ended).
	Of *memory.Present
	// Site is where in the program the memory was requested, and Label names the construct, for
	// the report of leaks.
	Site  *memory.Site
	Label string
}

// Init makes a the record of storage that was allocated. The caller keeps it. The previous user
// of the memory may still be running, so everything is ordered after that.
func (a *Allocation) Init(m *Memory, st memory.Storage) {
	a.Storage = st
	a.open(m)
}

// open is Init for an allocation that has the storage already.
func (a *Allocation) open(m *Memory) {
	a.memory = m
	if a.Blocks == nil {
		a.Blocks = a.firstBlock[:0]
	}
	if b := m.imports.of(a.Block.ID); b != nil {
		a.Shared, a.within = true, b.pinned
	}
	if a.within != nil {
		a.within.Pin()
	} else {
		m.queues.Reuse(&a.uses, a.Size, a.LastUse())
	}
	a.keepers = 1
}

// record returns where the uses of bytes of the memory are recorded, and which bytes they are there.
// All parts of pinned storage, which commands also copy as a whole, have one record.
func (a *Allocation) record(bytes order.Span) (*order.Uses, order.Span) {
	if a.within == nil {
		return &a.uses, bytes
	}
	bytes.Start += a.Offset - a.within.Offset
	return &a.within.uses, bytes
}

// New allocates size bytes of storage for a memory routine. The caller keeps it.
func (m *Memory) New(size uint64) (*Allocation, error) {
	a := m.spare.take()
	if err := m.Storage.AllocateTo(&a.Storage, size); err != nil {
		m.spare.keep(a)
		return nil, err
	}
	a.open(m)
	a.Origin = Allocated
	return a, nil
}

// spares keeps allocations for later ones. The last one, which is in the processor's cache, is at hand.
type spares struct {
	last   *Allocation
	others sync.Pool
}

// take returns a zero allocation, except for its uses and the memory of its slices.
func (s *spares) take() *Allocation {
	if a := s.last; a != nil {
		s.last = nil
		return a
	}
	if a, _ := s.others.Get().(*Allocation); a != nil {
		return a
	}
	return new(Allocation)
}

// keep keeps an allocation as take returns it.
func (s *spares) keep(a *Allocation) {
	if s.last == nil {
		s.last = a
		return
	}
	s.others.Put(a)
}

// Take makes an allocation of a block, which belongs to m from then on. Others can write its
// memory: the host's view is left out, because the host is not told when they do.
func (m *Memory) Take(b vk.Block) *Allocation {
	a := &Allocation{Origin: Allocated, External: &b}
	a.Init(m, memory.Storage{Block: memory.HeapBlock{ID: uint64(b.Buffer), Size: b.Size, Address: b.Address}, Size: b.Size})
	m.taken.addExternal(m.heapOf(&b), b.Size)
	m.Export(a)
	return a
}

// heapOf returns which of the device's heaps a block is in.
func (m *Memory) heapOf(b *vk.Block) int { return m.device.Properties().MemoryTypes[b.MemoryType].Heap }

// Register makes an allocation of a buffer that is not m's, which queues of certain families may
// use. Others can write its memory.
func (m *Memory) Register(b vk.Block, families uint64) *Allocation {
	if all := m.queues.Families(); families&all == all {
		families = 0
	}
	a := &Allocation{Origin: Registered, Families: families}
	a.Init(m, memory.Storage{Block: memory.HeapBlock{ID: uint64(b.Buffer), Size: b.Size, Address: b.Address}, Size: b.Size})
	m.Export(a)
	return a
}

// Pin keeps the memory until Unpin. Somebody keeps it already.
func (a *Allocation) Pin() { a.keepers++ }

// Unpin undoes one Pin, or what Init did. The last keeper gives the memory back.
func (a *Allocation) Unpin() {
	if a.keepers--; a.keepers > 0 {
		return
	}
	if invariants.Enabled && a.keepers < 0 {
		panic("allocation: " + a.Describe() + " was given back before")
	}
	m := a.memory
	if a.exported {
		delete(m.exports, a)
	}
	switch {
	case a.Origin == Registered:
		return
	case a.Origin == Pinned:
		m.endImport(m.imports.of(a.Block.ID))
	case a.External != nil:
		m.device.DestroyBlock(*a.External)
		m.taken.removeExternal(m.heapOf(a.External), a.External.Size)
	case a.within != nil:
		a.within.Unpin()
	case a.Shared:
		m.dropImport(a.Storage)
	default:
		freeAfter(m.Storage, &a.Storage, a.uses.Last())
	}
	switch {
	case a.Origin == Allocated:
		m.spare.keep(a.Reset())
	case a.Of != nil:
		m.ended(a.Of)
	}
}

// Keepers returns how many keep the memory.
func (a *Allocation) Keepers() int { return a.keepers }

// Reset makes an allocation whose memory has been given back the zero allocation, except for its uses
// and the memory of its slices, and returns it. The fields are reset one by one, because a literal with
// a.uses would be built elsewhere and copied.
func (a *Allocation) Reset() *Allocation {
	clear(a.Readers)
	clear(a.Blocks)
	a.Readers, a.Blocks, a.firstBlock[0] = a.Readers[:0], a.Blocks[:0], nil
	a.Storage, a.memory, a.within = memory.Storage{}, nil, nil
	a.Origin, a.Shared, a.Reserved, a.exported = 0, false, false, false
	a.slot, a.address, a.Families = 0, 0, 0
	a.External, a.Of, a.Site, a.Label = nil, nil, nil, ""
	return a
}

// Associations returns the number of blocks of host storage that are associated with the memory.
func (a *Allocation) Associations() int {
	if a.Origin == Mapped {
		return 0
	}
	return len(a.Blocks)
}

// Whole returns the span of all bytes.
func (a *Allocation) Whole() order.Span { return order.Span{Size: a.Size} }

// Follow makes the commands that are about to be placed follow the earlier uses of bytes (see
// order.Queues.AddUses).
func (a *Allocation) Follow(s *order.WaitSet, bytes order.Span) {
	s.Limit(a.Families)
	uses, bytes := a.record(bytes)
	a.memory.queues.AddUses(s, uses, bytes)
}

// FollowWrites is Follow for the writes alone.
func (a *Allocation) FollowWrites(s *order.WaitSet, bytes order.Span) {
	s.Limit(a.Families)
	uses, bytes := a.record(bytes)
	a.memory.queues.AddWrites(s, uses, bytes)
}

// Read records that commands at a sync point of a pending batch use the memory.
func (a *Allocation) Read(at order.SyncPoint) {
	uses, _ := a.record(order.Span{})
	uses.Read(at)
}

// Wrote records that commands at a sync point of a pending batch write bytes.
func (a *Allocation) Wrote(bytes order.Span, at order.SyncPoint) {
	uses, bytes := a.record(bytes)
	a.memory.queues.Wrote(uses, bytes, at)
}

// Moved records that commands at a sync point of a pending batch copy bytes of a block from or to
// elsewhere.
func (a *Allocation) Moved(bytes order.Span, at order.SyncPoint) {
	uses, bytes := a.record(bytes)
	a.memory.queues.Moved(uses, bytes, at)
}

// Idle reports whether the host may write the memory itself: it sees the memory, nothing on the
// device can still touch it, and what the device wrote is visible to the host.
func (a *Allocation) Idle() bool {
	uses, _ := a.record(order.Span{})
	return a.Host() != nil && a.memory.queues.HostMayWrite(uses)
}

// HostAddress returns the address on the host of the byte at an offset, if the memory is host storage itself, and 0 if it is
// not.
func (a *Allocation) HostAddress(offset uint64) uintptr {
	if a.Own == nil {
		return 0
	}
	return uintptr(a.Own) + uintptr(offset)
}

// HostReads reports whether the host reads the memory itself (see Profile). It does if the memory
// is host storage that the device uses in place.
func (a *Allocation) HostReads() bool {
	return a.Host() != nil && (a.Shared || a.memory.profile.HostReads)
}

// HostWrites reports whether the host writes so many bytes of the memory itself at once.
func (a *Allocation) HostWrites(bytes uint64) bool {
	return a.Host() != nil && (a.Shared || bytes <= a.memory.profile.HostWrites)
}

// Visible reports whether what the device wrote is visible to the host, which sees the work that
// c covers.
func (a *Allocation) Visible(c order.Clock) bool {
	uses, _ := a.record(order.Span{})
	return uses.Visible(c)
}

// Describe names the memory in errors.
func (a *Allocation) Describe() string {
	if a.Origin == Pinned {
		return fmt.Sprintf("pinned storage %s of %d bytes", a.Section(), a.Size)
	}
	what := [...]string{Mapped: "mapped storage", Allocated: "allocation", Registered: "registered buffer"}[a.Origin]
	if a.address == 0 { // nobody has asked for a pointer
		return fmt.Sprintf("%s of %d bytes", what, a.Size)
	}
	return fmt.Sprintf("%s [%#x,%#x) of %d bytes", what, a.address, a.address+a.Size, a.Size)
}
