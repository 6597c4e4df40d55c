package transfer

import (
	"fmt"

	"github.com/vkomp/vkomp/vk"
)

// On device paths the device alone moves the bytes, by commands of the task's batch.

// deviceCopy copies between two places of device memory.
var deviceCopy = path{
	name: "device copy",
	record: func(r *recorder, x *Transfer) {
		r.copyWithin(x.Size)
		r.bytes(x, x.Dst, x.Src, x.DstAt, x.SrcAt)
	},
}

// fillEdge is how many bytes of staging a fill has, for the bytes before and after the whole
// words.
const fillEdge = 4

// deviceFill fills device memory: vkCmdFillBuffer for whole words, copies of a pattern for the
// bytes before and after them.
var deviceFill = path{
	name: "device fill",
	take: func(d *Device, l *List, x *Transfer) error {
		if err := l.stage(d, x, fillEdge); err != nil {
			return fmt.Errorf("staging for a fill of %d bytes: %w", x.Size, err)
		}
		return nil
	},
	begin: func(d *Device, l *List, x *Transfer) (uint64, error) {
		l.touchStaging(d, x.staging, 0, fillEdge)
		return 0, fillBytes(x.staging.Host(), x.value, fillEdge)
	},
	record: func(r *recorder, x *Transfer) {
		pattern, buffer := vk.Buffer(x.staging.Block.ID), vk.Buffer(x.Dst.Block.ID)
		from := x.Dst.Offset + x.DstAt
		to := from + x.Size
		edge := func(lo, hi uint64) {
			if lo < hi {
				r.stream.Copy(pattern, buffer, x.staging.Offset, lo, hi-lo)
				r.copyWithin(hi - lo)
			}
		}
		first, last := (from+3)&^3, to&^3
		if first >= last {
			edge(from, min(first, to))
			edge(min(first, to), to)
			return
		}
		edge(from, first)
		edge(last, to)
		r.stream.Fill(buffer, first, last-first, uint32(x.value)*0x01010101)
		r.fill(x.Size)
	},
}
