package sched

import (
	"github.com/vkomp/vkomp/sched/internal/mutant"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

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

// ofTransfers returns the barrier for a queue that only transfers, whose barriers
// name no other stage than those of the queue (VUID-vkCmdPipelineBarrier-srcStageMask-06461).
func ofTransfers(b vk.Barrier) vk.Barrier {
	b.SrcStage &^= vk.StageCompute
	b.DstStage &^= vk.StageCompute
	b.SrcAccess &^= vk.AccessShaderWrite
	b.DstAccess &^= vk.AccessShaderRead | vk.AccessShaderWrite
	return b
}

// batch is what one submission carries.
type batch struct {
	// value is what the queue's timeline reaches when the batch is done. seq counts
	// the submissions of all queues, 0 before that of the batch.
	value, seq uint64
	// clock is what the batch follows by the waits of it and of earlier batches of
	// its queue; its queue's own element too is by waits alone. waits are the values
	// that this batch waits for, by queue, 0 for none.
	clock, waits order.Clock
	// seen is what the host had seen the end of when it submitted the batch: whoever
	// waits for the batch sees that too.
	seen order.Clock
	// levels[l] holds commands that need no order among themselves, and come
	// after those of lower levels. Those of level 0 follow nothing that earlier
	// batches do either.
	levels []vk.Stream
	// foreign is the batch's part in the order of work that is not the scheduler's.
	foreign Foreign
	// hostRead: the host reads what the batch, or one before it, wrote.
	hostRead bool
	tasks    []*target
	// queries are the pools of the timestamps among the commands.
	queries  []*queries
	commands int
	// work is the estimated cost of the commands, in nanoseconds, cost the queue's when
	// the batch was submitted.
	work, cost uint64
}

// wait has the batch wait for a value of a queue, of which known is the clock.
func (b *batch) wait(queue int32, value uint64, known order.Clock) {
	b.waits[queue] = max(b.waits[queue], value)
	b.clock[queue] = max(b.clock[queue], value)
	b.clock.Join(known)
}

// reset makes an empty batch of a recycled one.
func (b *batch) reset(value uint64) {
	clear(b.waits)
	for i := range b.levels {
		b.levels[i].Reset()
	}
	b.levels = b.levels[:0]
	b.foreign = Foreign{Waits: b.foreign.Waits[:0], Signals: b.foreign.Signals[:0]}
	b.value, b.seq, b.hostRead, b.commands, b.work, b.cost = value, 0, false, 0, 0, 0
}

// level returns the stream of a level.
func (b *batch) level(l int32) *vk.Stream {
	for len(b.levels) <= int(l) {
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

// encode writes the batch into out, for a queue that computes or one that only
// transfers, and returns the number of barriers and the last level that a barrier
// stands before (0: none does).
func (b *batch) encode(out *vk.Stream, computes bool) (barriers int, ordered int32) {
	between, toHost := levelBarrier, hostBarrier
	if !computes {
		between, toHost = ofTransfers(between), ofTransfers(toHost)
	}
	if mutant.Active(mutant.CopiesUnseen) {
		between.SrcAccess &^= vk.AccessTransferWrite
	}
	for l := range b.levels {
		if b.levels[l].Len() == 0 {
			continue
		}
		if l > 0 && !mutant.Active(mutant.BarrierDropped) {
			out.Barrier(between)
			barriers++
			ordered = int32(l) + int32(mutant.OffBy(mutant.OrderedTooHigh))
		}
		out.Append(&b.levels[l])
	}
	if b.hostRead && !mutant.Active(mutant.HostBarrierDropped) {
		out.Barrier(toHost)
		barriers++
	}
	return barriers, ordered
}
