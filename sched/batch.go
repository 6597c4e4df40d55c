package sched

import (
	"github.com/vkomp/vkomp/vk"
)

// mark is a place in the order of one queue: a level of the batch that signals
// value. The zero mark is before everything.
type mark struct {
	value uint64
	level int
}

// maxLevel is past every level of a batch.
const maxLevel = 1 << 30

// before reports whether m comes before o.
func (m mark) before(o mark) bool {
	return m.value < o.value || m.value == o.value && m.level < o.level
}

// later returns the later of two marks.
func later(a, b mark) mark {
	if a.before(b) {
		return b
	}
	return a
}

// The barrier between two levels. Masks are the same for all: a later batch may
// then rely on any barrier of an earlier one for everything before it.
var levelBarrier = vk.Barrier{
	SrcStage:  vk.StageCompute | vk.StageTransfer,
	DstStage:  vk.StageCompute | vk.StageTransfer,
	SrcAccess: vk.AccessShaderWrite | vk.AccessTransferWrite,
	DstAccess: vk.AccessShaderRead | vk.AccessShaderWrite | vk.AccessTransferRead | vk.AccessTransferWrite,
}

// hostBarrier makes device writes visible to the host, and orders the host's
// own writes after them, once the batch's signal is waited for: waiting for a
// semaphore alone does neither (Vulkan 1.3 §7.9).
var hostBarrier = vk.Barrier{
	SrcStage:  vk.StageCompute | vk.StageTransfer,
	DstStage:  vk.StageHost,
	SrcAccess: vk.AccessShaderWrite | vk.AccessTransferWrite,
	DstAccess: vk.AccessHostRead | vk.AccessHostWrite,
}

// batch is what one submission carries.
type batch struct {
	// value is what the queue's timeline reaches when the batch is done.
	value uint64
	// levels[l] holds commands that need no order among themselves, and come
	// after those of lower levels. Those of level 0 follow nothing that earlier
	// batches do either.
	levels []vk.Stream
	// hostRead: the host reads what the batch, or one before it, wrote.
	hostRead bool
	tasks    []*target
	commands int
	// invocations counts shader invocations, the batch's cost.
	invocations uint64
}

// reset makes an empty batch of a recycled one.
func (b *batch) reset(value uint64) {
	for i := range b.levels {
		b.levels[i].Reset()
	}
	b.levels = b.levels[:0]
	b.value, b.hostRead, b.commands, b.invocations = value, false, 0, 0
}

// level returns the stream of a level.
func (b *batch) level(l int) *vk.Stream {
	for len(b.levels) <= l {
		if n := len(b.levels); n < cap(b.levels) {
			// The streams of an earlier use keep their memory.
			b.levels = b.levels[:n+1]
			continue
		}
		b.levels = append(b.levels, vk.Stream{})
	}
	return &b.levels[l]
}

// empty reports whether submitting the batch would have no effect.
func (b *batch) empty() bool { return b.commands == 0 && !b.hostRead && len(b.tasks) == 0 }

// encode writes the batch into out and returns the number of barriers and the
// last level that a barrier stands before (0: none does).
func (b *batch) encode(out *vk.Stream) (barriers, ordered int) {
	for l := range b.levels {
		if b.levels[l].Len() == 0 {
			continue
		}
		if l > 0 {
			out.Barrier(levelBarrier)
			barriers++
			ordered = l
		}
		out.Append(&b.levels[l])
	}
	if b.hostRead {
		out.Barrier(hostBarrier)
		barriers++
	}
	return barriers, ordered
}
