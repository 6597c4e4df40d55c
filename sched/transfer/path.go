package transfer

// A path is a way for the bytes of a transfer from one storage to another. Its steps are:
//
//	take      takes the memory that the way needs, when the task enters (lock held)
//	reads     notes device memory that the host reads in begin or end
//	begin     does the host's part before the task's commands
//	record    records the commands of the device (lock held)
//	end       does the host's part after the task's commands
//
// Paths through a ring have only the first of these. The others are done part by part, with
// commands of their own (see List.bring).
//
// A step that a path does not need is nil. Steps without the scheduler's lock belong to the
// goroutine that starts or ends the task.
type path struct {
	name string
	// inPlace says that the host itself reads and writes the device memory, and that the device
	// has nothing to do.
	inPlace bool
	// ring says that the bytes go through a ring.
	ring bool
	// pinned says that the device itself reads or writes the host's bytes.
	pinned bool

	take   func(d *Device, l *List, x *Transfer) error
	reads  func(d *Device, l *List, x *Transfer)
	begin  func(d *Device, l *List, x *Transfer) (copied uint64, err error)
	record func(r *recorder, x *Transfer)
	end    func(d *Device, l *List, x *Transfer) (copied uint64, err error)
}

// nowhere is the path of an update of storage that is absent.
var nowhere = path{name: "nowhere"}

// directBytes is the number of bytes up to which the host fills device memory, and copies within
// it, itself if nothing is in flight there: a submission costs more.
const directBytes = 64 << 10

// facts are what the path of a transfer depends on.
type facts struct {
	kind  Kind
	bytes uint64
	// absent says that an update has found no storage.
	absent bool
	// contiguous says that the bytes are copied as they are and in one run, so that they can be
	// copied in parts.
	contiguous bool
	// chunk is the size of a chunk of a ring, and room how many bytes of staging the task may
	// still have without a ring.
	chunk, room uint64
	// awaited says that the construct waits for its task.
	awaited bool
	// kernel says that a kernel is to copy the bytes within the device (see Copier.takes).
	kernel bool
	// pinned says that the host's bytes lie in pinned storage, and that the device can copy them as
	// they are. foreseen says that it is not known yet whether the copy is due.
	// written says that commands in flight write to the host's bytes: the host must not read them.
	pinned, foreseen, written bool
	dst, src                  memoryFacts
}

// memoryFacts are what the path of a transfer depends on of device memory on one side.
type memoryFacts struct {
	// shared says that it is host storage, which the device uses in place.
	shared bool
	// readable is Allocation.HostReads, and writable is Allocation.HostWrites for the bytes.
	readable, writable bool
	// idle is Allocation.Idle.
	idle bool
	// fresh says that it belongs to a block that the task has made.
	fresh bool
	// filling says that the first contents of its block are on their way.
	filling bool
	// whole says that a flush of the transfer's bytes touches no others (see wholeUnits).
	whole bool
}

// hostMayWrite reports whether the host may write the bytes of a transfer itself.
func (m *memoryFacts) hostMayWrite() bool { return m.writable && m.idle && m.whole && !m.filling }

// ring reports whether bytes that go through staging go through a ring. In a ring the device copies
// some bytes while the host copies others, but the task waits for the device at its beginning or
// at its end. A deferred construct is not to wait, unless there are too many bytes. One that waits
// for its task anyway uses a ring for as few bytes as make up for the submissions and, to the
// host, for one more wait.
func (f *facts) ring() bool {
	switch {
	case !f.contiguous:
		return false
	case !f.awaited:
		return f.bytes > f.room
	case f.kind.FromHost():
		return f.bytes > f.chunk
	}
	return f.bytes > 2*f.chunk
}

// path chooses the way of the bytes.
func (f *facts) path() *path {
	small := f.bytes <= directBytes
	switch k := f.kind; {
	case f.absent:
		return &nowhere

	case k == Fill && small && f.dst.hostMayWrite():
		return &directFill
	case k == Fill:
		return &deviceFill

	case k == CopyWithin && small && f.dst.hostMayWrite() && f.src.readable && f.src.idle:
		return &directCopy
	case k == CopyWithin && f.kernel:
		return &kernelCopy
	case k == CopyWithin:
		return &deviceCopy

	// No other task knows a fresh block, and allocations begin at whole units of a flush. Other
	// tasks may be about to use a block that was there before.
	case k == CopyIn && (f.dst.shared || f.dst.fresh && f.dst.writable && f.dst.idle):
		return &directIn
	case k == UpdateTo && f.dst.shared:
		return &directIn
	case k.FromHost() && k != CopyIn && f.dst.hostMayWrite() && !f.written:
		return &directIn
	case k.FromHost() && f.pinned:
		return &pinnedIn
	case k.FromHost() && f.ring():
		return &ringIn
	case k.FromHost():
		return &stagingIn

	// The host reads the memory when the task ends, and tasks that change it have to wait for
	// that. A deferred transfer keeps nobody waiting: it leaves a copy in staging memory.
	case k == CopyOut && f.src.readable:
		return &directOut
	case k.ToHost() && k != CopyOut && f.src.readable && (f.awaited || f.src.shared):
		return &directOut
	case f.pinned && !f.foreseen:
		return &pinnedOut
	case f.ring():
		return &ringOut
	}
	return &stagingOut
}
