package transfer

import (
	"github.com/vkomp/vkomp/sched/order"
)

// On pinned paths a command of the device copies between storage and the host's own bytes, which lie
// in pinned storage: there is no staging memory, and the host has nothing to do. So the device reads
// the host's bytes when the command runs, and not when the task enters, and writes them before the
// task ends. The program may not touch them between the beginning and the end of a task that it has
// not ordered with its own accesses, so it sees no difference.
//
// The runtime does, in two cases. A copy that an earlier task has yet to make on the host comes
// first: the scheduler has the task wait for that (see sched.Scheduler.mustWaitToTransferLocked).
// And whether a copy at the exit of a map is due is known only when the task ends. Such a copy may
// not be foreseen, as one through staging memory is, of which nothing comes if it is not due.

// DefaultLate is a size of copies at the exit of a map from which on they go along a pinned path when
// they are known to be due, in a submission of their own. That costs some 20 µs. For fewer bytes it
// costs less to copy them out of staging memory, at 10 GB/s.
const DefaultLate = 256 << 10

// pinnedIn brings bytes of the host to the device.
var pinnedIn = path{
	name:   "pinned in",
	pinned: true,
	// The host has nothing to do, but its bytes count, and an observer hears of the transfer.
	begin: func(d *Device, l *List, x *Transfer) (uint64, error) { return x.Size, nil },
	record: func(r *recorder, x *Transfer) {
		r.copy(x.Size)
		r.bytes(x, x.Dst, x.pinned, x.DstAt, x.pinnedAt())
	},
}

// pinnedOut brings bytes of the device to the host.
var pinnedOut = path{
	name:   "pinned out",
	pinned: true,
	record: func(r *recorder, x *Transfer) {
		r.copy(x.Size)
		r.bytes(x, x.pinned, x.Src, x.pinnedAt(), x.SrcAt)
	},
	end: func(d *Device, l *List, x *Transfer) (uint64, error) { return x.Size, nil },
}

// pinnedAt returns the offset in the pinned storage of the bytes from which the host's side counts.
func (x *Transfer) pinnedAt() uint64 { return x.pinned.Part(x.Host).Start }

// pinnedSpan returns the bytes of the pinned storage that the transfer touches.
func (x *Transfer) pinnedSpan() order.Span { return x.pinned.Part(x.HostSpan()) }
