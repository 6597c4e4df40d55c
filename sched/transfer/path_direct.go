package transfer

import (
	"unsafe"
)

// On direct paths the host itself reads or writes device memory that it sees. There is no staging
// memory, and the device has no command.

// directIn has the host write its bytes to the device memory. If that is the host storage itself,
// nothing is copied.
var directIn = path{
	name:    "direct in",
	inPlace: true,
	begin: func(d *Device, l *List, x *Transfer) (uint64, error) {
		x.touchDst(d, l)
		return x.put(l, d, unsafe.Add(x.Dst.Host(), x.DstAt), false)
	},
}

// directOut has the host read the device memory when the device is done with the task.
var directOut = path{
	name:    "direct out",
	inPlace: true,
	reads: func(d *Device, l *List, x *Transfer) {
		x.touchSrc(d, l)
	},
	end: func(d *Device, l *List, x *Transfer) (uint64, error) {
		return x.get(l, d, unsafe.Add(x.Src.Host(), x.SrcAt), false)
	},
}

// directCopy has the host copy between two places of device memory.
var directCopy = path{
	name:    "direct copy",
	inPlace: true,
	reads: func(d *Device, l *List, x *Transfer) {
		x.touchSrc(d, l)
	},
	begin: func(d *Device, l *List, x *Transfer) (uint64, error) {
		x.touchDst(d, l)
		return 0, x.between(unsafe.Add(x.Dst.Host(), x.DstAt), unsafe.Add(x.Src.Host(), x.SrcAt))
	},
}

// directFill has the host fill the device memory.
var directFill = path{
	name:    "direct fill",
	inPlace: true,
	begin: func(d *Device, l *List, x *Transfer) (uint64, error) {
		x.touchDst(d, l)
		return 0, fillBytes(unsafe.Add(x.Dst.Host(), x.DstAt), x.value, x.Size)
	},
}

// touchDst and touchSrc note the device memory on either side that the host touches itself.
func (x *Transfer) touchDst(d *Device, l *List) {
	dst, _ := x.Places()
	l.touchStorage(d, &x.Dst.Storage, dst.Start, dst.Size)
}

func (x *Transfer) touchSrc(d *Device, l *List) {
	_, src := x.Places()
	l.touchStorage(d, &x.Src.Storage, src.Start, src.Size)
}
