package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/sched/allocation"
)

// On direct paths the host itself reads or writes device memory that it sees. Nothing of it is
// staged, and the device has no command.

// directIn has the host write its bytes to the device memory. Memory that is the host's own
// storage needs nothing.
var directIn = path{
	name:    "direct in",
	inPlace: true,
	reads: func(m *allocation.Memory, ts *transfers, x *transfer) {
		if x.image != nil && !x.fresh {
			// The bytes between those that it writes stay.
			ts.touchStorage(m, &x.dst.Storage, x.dstAt, x.size)
		}
	},
	begin: func(m *allocation.Memory, ts *transfers, x *transfer) (uint64, error) {
		x.touchDst(m, ts)
		return x.put(unsafe.Add(x.dst.Host(), x.dstAt), false)
	},
}

// directOut has the host read the device memory when the device is done with the task.
var directOut = path{
	name:    "direct out",
	inPlace: true,
	reads: func(m *allocation.Memory, ts *transfers, x *transfer) {
		x.touchSrc(m, ts)
	},
	end: func(x *transfer) (uint64, error) {
		return x.get(unsafe.Add(x.src.Host(), x.srcAt), false)
	},
}

// directCopy has the host copy between two places of device memory.
var directCopy = path{
	name:    "direct copy",
	inPlace: true,
	reads: func(m *allocation.Memory, ts *transfers, x *transfer) {
		x.touchSrc(m, ts)
	},
	begin: func(m *allocation.Memory, ts *transfers, x *transfer) (uint64, error) {
		x.touchDst(m, ts)
		return 0, x.between(unsafe.Add(x.dst.Host(), x.dstAt), unsafe.Add(x.src.Host(), x.srcAt))
	},
}

// directFill has the host fill the device memory.
var directFill = path{
	name:    "direct fill",
	inPlace: true,
	begin: func(m *allocation.Memory, ts *transfers, x *transfer) (uint64, error) {
		x.touchDst(m, ts)
		fillBytes(unsafe.Add(x.dst.Host(), x.dstAt), x.value, x.size)
		return 0, nil
	},
}

// touchDst and touchSrc note the device memory on either side that the host touches itself.
func (x *transfer) touchDst(m *allocation.Memory, ts *transfers) {
	dst, _ := x.places()
	ts.touchStorage(m, &x.dst.Storage, dst.Start, dst.Size)
}

func (x *transfer) touchSrc(m *allocation.Memory, ts *transfers) {
	_, src := x.places()
	ts.touchStorage(m, &x.src.Storage, src.Start, src.Size)
}
