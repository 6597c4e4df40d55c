package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// On staging paths the bytes go through memory that the host sees, packed one behind the
// other. The host copies between it and its own storage, a command of the device between it
// and the device memory.

// stagingIn brings bytes of the host to the device.
var stagingIn = path{
	name: "staging in",
	take: func(m *allocation.Memory, ts *transfers, x *transfer) error {
		if err := ts.stage(m, x, x.size); err != nil {
			return fmt.Errorf("staging for a copy of %d bytes to the device: %w", x.size, err)
		}
		return nil
	},
	begin: func(m *allocation.Memory, ts *transfers, x *transfer) (uint64, error) {
		ts.touchStaging(m, x.staging, 0, x.size)
		return x.put(x.staging.Host(), true)
	},
	record: func(r *recorder, x *transfer) {
		r.copy(x.size)
		src, dst := vk.Buffer(x.staging.Block.ID), vk.Buffer(x.dst.Block.ID)
		from, to := x.staging.Offset, x.dst.Offset+x.dstAt
		switch {
		case x.image != nil:
			r.parts(dst, src, to, from, x.image.parts)
		case x.rows != nil:
			r.rows(dst, src, to, from, x.rows.Unpacked())
		default:
			r.stream.Copy(src, dst, from, to, x.size)
		}
	},
}

// stagingOut brings bytes of the device to the host, when the device is done with the task.
var stagingOut = path{
	name: "staging out",
	take: func(m *allocation.Memory, ts *transfers, x *transfer) error {
		if err := ts.stage(m, x, x.size); err != nil {
			return fmt.Errorf("staging for a copy of %d bytes from the device: %w", x.size, err)
		}
		return nil
	},
	record: func(r *recorder, x *transfer) {
		r.copy(x.size)
		src, dst := vk.Buffer(x.src.Block.ID), vk.Buffer(x.staging.Block.ID)
		from, to := x.src.Offset+x.srcAt, x.staging.Offset
		if x.rows != nil {
			r.rows(dst, src, to, from, x.rows.Packed())
			return
		}
		r.stream.Copy(src, dst, from, to, x.size)
	},
	reads: func(m *allocation.Memory, ts *transfers, x *transfer) {
		ts.touchStaging(m, x.staging, 0, x.size)
	},
	end: func(x *transfer) (uint64, error) { return x.get(x.staging.Host(), true) },
}
