package sched

import "github.com/vkomp/vkomp/sched/allocation"

// A path is a way for the bytes of a transfer from one storage to another. Each has a file of
// its own, path_*.go, with its steps:
//
//	take      memory for the way, when the task enters       (Scheduler.mu is held)
//	reads     notes device memory that the host is to read   (before begin or end)
//	begin     the host's part before the task's commands
//	record    the commands of the device                     (Scheduler.mu is held)
//	end       the host's part after the task's commands
//	bring     both parts, chunk by chunk, with commands of its own
//
// A path has the steps that it needs, the others are nil. Steps without Scheduler.mu belong
// to the goroutine that starts or ends the task. A new path is a value of this type, and a
// row in facts.path, which alone decides how bytes go.
type path struct {
	name string
	// inPlace: the host itself reads and writes the device memory, and the device has nothing
	// to do.
	inPlace bool

	take   func(m *allocation.Memory, ts *transfers, x *transfer) error
	reads  func(m *allocation.Memory, ts *transfers, x *transfer)
	begin  func(m *allocation.Memory, ts *transfers, x *transfer) (copied uint64, err error)
	record func(r *recorder, x *transfer)
	end    func(x *transfer) (copied uint64, err error)
	bring  func(m *allocation.Memory, ts *transfers, x *transfer, l lane) error
}

// nowhere is the path of an update of storage that is absent.
var nowhere = path{name: "nowhere"}

// directBytes is up to how many bytes the host makes a transfer between places of the
// device itself, if nothing is in flight there: a submission costs more.
const directBytes = 64 << 10

// facts are what the path of a transfer depends on.
type facts struct {
	kind  TransferKind
	bytes uint64
	// absent: an update has found no storage.
	absent bool
	// contiguous: the bytes are copied as they are and in one run, so that a part of them
	// can be copied as well.
	contiguous bool
	// chunk is the size of a chunk of a ring.
	chunk uint64
	// awaited: who made the task waits for its end.
	awaited  bool
	dst, src memoryFacts
}

// memoryFacts are what the path of a transfer depends on of device memory on one side.
type memoryFacts struct {
	// shared: it is the host's own storage.
	shared bool
	// visible: the host sees it.
	visible bool
	// idle: the host sees it, nothing on the device can still touch it, and what the device
	// wrote is behind a barrier to the host.
	idle bool
	// fresh: it belongs to a block that the task has made.
	fresh bool
	// filling: the first contents of its block are on their way.
	filling bool
	// whole: a flush of the transfer's bytes touches no others (see wholeUnits).
	whole bool
}

// hostMayWrite reports whether the host may write the bytes of a transfer itself.
func (m *memoryFacts) hostMayWrite() bool { return m.idle && m.whole && !m.filling }

// ring reports whether the bytes go through a ring of chunks, where they go through staging.
func (f *facts) ring() bool { return f.contiguous && f.bytes > ringChunks*f.chunk }

// path chooses how the bytes go.
func (f *facts) path() *path {
	small := f.bytes <= directBytes
	switch k := f.kind; {
	case f.absent:
		return &nowhere

	case k == Fill && small && f.dst.hostMayWrite():
		return &directFill
	case k == Fill:
		return &deviceFill

	case k == CopyWithin && small && f.dst.hostMayWrite() && f.src.idle:
		return &directCopy
	case k == CopyWithin:
		return &deviceCopy

	// Nobody else knows a fresh block, and allocations begin at whole units. A block that is
	// there already others may be about to use.
	case k == copyIn && (f.dst.shared || f.dst.fresh && f.dst.idle):
		return &directIn
	case k == UpdateTo && f.dst.shared:
		return &directIn
	case k.fromHost() && k != copyIn && f.dst.hostMayWrite():
		return &directIn
	case k.fromHost() && f.ring():
		return &ringIn
	case k.fromHost():
		return &stagingIn

	// The host reads the memory when the task finishes: who is ordered after the task waits
	// for that. A deferred task leaves a copy instead.
	case k == copyOut && f.src.visible:
		return &directOut
	case k.toHost() && k != copyOut && f.src.visible && (f.awaited || f.src.shared):
		return &directOut
	case f.ring():
		return &ringOut
	}
	return &stagingOut
}
