package transfer

import (
	"fmt"

	"github.com/vkomp/vkomp/vk"
)

// On staging paths the bytes go through memory that the host sees, packed one behind the other. The
// host copies between this and its own storage, and a command of the device copies between this and
// the device memory.

// stagingIn brings bytes of the host to the device.
var stagingIn = path{
	name: "staging in",
	take: func(d *Device, l *List, x *Transfer) error {
		if err := l.stage(d, x, x.Size); err != nil {
			return fmt.Errorf("staging for a copy of %d bytes to the device: %w", x.Size, err)
		}
		return nil
	},
	begin: func(d *Device, l *List, x *Transfer) (uint64, error) {
		l.touchStaging(d, x.staging, 0, x.Size)
		return x.put(l, d, x.staging.Host(), true)
	},
	record: func(r *recorder, x *Transfer) {
		r.copy(x.Size)
		src, dst := vk.Buffer(x.staging.Block.ID), vk.Buffer(x.Dst.Block.ID)
		from, to := x.staging.Offset, x.Dst.Offset+x.DstAt
		switch {
		case x.Image != nil:
			r.parts(dst, src, to, from, x.Image.parts)
		case x.rows != nil:
			r.rows(dst, src, to, from, x.rows.Unpacked())
		default:
			r.stream.Copy(src, dst, from, to, x.Size)
		}
	},
}

// stagingOut brings bytes of the device to the host, when the device is done with the task.
var stagingOut = path{
	name: "staging out",
	take: func(d *Device, l *List, x *Transfer) error {
		if err := l.stage(d, x, x.Size); err != nil {
			return fmt.Errorf("staging for a copy of %d bytes from the device: %w", x.Size, err)
		}
		return nil
	},
	record: func(r *recorder, x *Transfer) {
		r.copy(x.Size)
		src, dst := vk.Buffer(x.Src.Block.ID), vk.Buffer(x.staging.Block.ID)
		from, to := x.Src.Offset+x.SrcAt, x.staging.Offset
		if x.rows != nil {
			r.rows(dst, src, to, from, x.rows.Packed())
			return
		}
		r.stream.Copy(src, dst, from, to, x.Size)
	},
	reads: func(d *Device, l *List, x *Transfer) {
		l.touchStaging(d, x.staging, 0, x.Size)
	},
	end: func(d *Device, l *List, x *Transfer) (uint64, error) {
		return x.get(l, d, x.staging.Host(), true)
	},
}
