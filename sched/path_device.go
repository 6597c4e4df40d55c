package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// On device paths the device alone moves the bytes, by commands of the task's batch.

// deviceCopy copies between two places of device memory.
var deviceCopy = path{
	name: "device copy",
	record: func(r *recorder, x *transfer) {
		r.copy(x.size)
		src, dst := vk.Buffer(x.src.Block.ID), vk.Buffer(x.dst.Block.ID)
		from, to := x.src.Offset+x.srcAt, x.dst.Offset+x.dstAt
		if x.rows != nil {
			r.rows(dst, src, to, from, *x.rows)
			return
		}
		r.stream.Copy(src, dst, from, to, x.size)
	},
}

// fillEdge is how many bytes of staging a fill has, for the bytes before and after the whole
// words.
const fillEdge = 4

// deviceFill fills device memory: vkCmdFillBuffer for whole words, copies of a pattern for the
// bytes before and after them.
var deviceFill = path{
	name: "device fill",
	take: func(m *allocation.Memory, ts *transfers, x *transfer) error {
		if err := ts.stage(m, x, fillEdge); err != nil {
			return fmt.Errorf("staging for a fill of %d bytes: %w", x.size, err)
		}
		return nil
	},
	begin: func(m *allocation.Memory, ts *transfers, x *transfer) (uint64, error) {
		ts.touchStaging(m, x.staging, 0, fillEdge)
		fillBytes(x.staging.Host(), x.value, fillEdge)
		return 0, nil
	},
	record: func(r *recorder, x *transfer) {
		pattern, buffer := vk.Buffer(x.staging.Block.ID), vk.Buffer(x.dst.Block.ID)
		from := x.dst.Offset + x.dstAt
		to := from + x.size
		edge := func(lo, hi uint64) {
			if lo < hi {
				r.stream.Copy(pattern, buffer, x.staging.Offset, lo, hi-lo)
				r.copy(hi - lo)
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
		r.fill(x.size)
	},
}
