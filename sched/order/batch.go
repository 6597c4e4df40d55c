package order

import (
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// LevelBarrier is the barrier between two levels. Its masks are always the same, so that a later
// batch can rely on any barrier of an earlier one for everything before that barrier.
var LevelBarrier = vk.Barrier{
	SrcStage:  vk.StageCompute | vk.StageTransfer,
	DstStage:  vk.StageCompute | vk.StageTransfer,
	SrcAccess: vk.AccessShaderWrite | vk.AccessTransferWrite,
	DstAccess: vk.AccessShaderRead | vk.AccessShaderWrite | vk.AccessTransferRead | vk.AccessTransferWrite,
}

// HostBarrier makes device writes visible to the host, and orders the host's
// own writes after them, once the batch's signal is waited for: waiting for a
// semaphore alone does neither (Vulkan 1.3 §7.9).
var HostBarrier = vk.Barrier{
	SrcStage:  vk.StageCompute | vk.StageTransfer,
	DstStage:  vk.StageHost,
	SrcAccess: vk.AccessShaderWrite | vk.AccessTransferWrite,
	DstAccess: vk.AccessHostRead | vk.AccessHostWrite,
}

// ofTransfers returns the barrier for a queue without compute capability, whose stage masks must
// only have stages that the queue supports (VUID-vkCmdPipelineBarrier-srcStageMask-06461).
func ofTransfers(b vk.Barrier) vk.Barrier {
	b.SrcStage &^= vk.StageCompute
	b.DstStage &^= vk.StageCompute
	b.SrcAccess &^= vk.AccessShaderWrite
	b.DstAccess &^= vk.AccessShaderRead | vk.AccessShaderWrite
	return b
}

// Batch is the content of one queue submission (see the package's documentation for its life).
type Batch struct {
	// queue is the queue to which the batch belongs.
	queue *Queue
	// value is the timeline value that the batch signals when it is complete. seq counts the
	// closed batches of all queues, which are submitted in that order, and is 0 while the batch is
	// pending.
	value, seq uint64
	// stage is how far the batch has come.
	stage stage
	// watched says that SubmitNow waits until the batch is submitted or refused, and spare that the
	// batch is to be recycled after that. err is the error of the submission, or why the batch was refused.
	watched, spare bool
	err            error
	// clock is what the batch follows by its waits and by those of earlier batches of its queue.
	// The element for its own queue, too, comes from waits alone. waits has the values for which
	// this batch waits, by queue, 0 for none.
	clock, waits Clock
	// points are the waits of the submission.
	points []timeline.Point
	// seen is the clock of the work that the host had seen complete when it closed the batch.
	// Whatever waits for the batch also sees that work.
	seen Clock
	// barriers is the number of barriers in the submission.
	barriers int
	// before is what the queue's barrierState was when the batch became its pending one.
	before barrierState
	// levels[l] holds commands that need no order among themselves, and follow those of
	// lower levels. Commands of level 0 follow no command of earlier batches either.
	levels []vk.Stream
	// stamps are the timestamps between the levels, in the order of the levels.
	stamps []levelStamp
	// foreign orders other work on the device with the batch.
	foreign Foreign
	// hostRead says that the host reads what the batch, or an earlier one, wrote.
	hostRead bool
	tasks    []*Task
	commands int
	// work is the estimated cost of the commands, in nanoseconds; cost is Queue.cost once the
	// batch is closed.
	work, cost uint64
	// unbounded says that there is a kernel among the commands that may take much longer than estimated, or
	// in a batch for which this one waits.
	unbounded bool
	// bytes is the number of bytes that the streams of all levels have room for, and counted[l] what level l
	// counts for in it.
	bytes   int
	counted []int
	// kept is what memory returned when the batch was recycled.
	kept int
}

// levelStamp is a timestamp before the commands of a level, behind the barrier before them.
type levelStamp struct {
	level int32
	pool  vk.QueryPool
	query uint32
	stage vk.Stage
}

// stage is how far a batch has come.
type stage uint8

const (
	// pending: the batch collects commands. It is Queue.pending.
	pending stage = iota
	// closed: its content and its place in the order of the submissions are settled. It counts as
	// in flight, and is submitted by whoever calls SubmitClosed.
	closed
	// submitted: the device has it. When it is complete, Arrive returns it.
	submitted
	// refused: it will never run, and TakeRefused returns it.
	refused
)

// barrierState says what the last barrier of a queue has ordered.
type barrierState struct {
	// ordered is the last point before which everything is ordered before all commands of later
	// batches, by a barrier of a batch that is closed.
	ordered SyncPoint
	// seen is the clock of the work that the host had seen complete when it closed the last batch
	// with a barrier. All later commands of the queue see that work.
	seen Clock
}

// save makes b a copy of o.
func (b *barrierState) save(o *barrierState) {
	b.ordered = o.ordered
	copy(b.seen, o.seen)
}

// Queue returns the queue to which the batch belongs.
func (b *Batch) Queue() *Queue { return b.queue }

// Err returns why the batch was refused.
func (b *Batch) Err() error { return b.err }

// Value returns the timeline value that the batch signals when it is complete.
func (b *Batch) Value() uint64 { return b.value }

// Tasks returns the tasks that end or go on when the batch is complete. The slice belongs to the
// batch.
func (b *Batch) Tasks() []*Task { return b.tasks }

// AddTask adds a task that ends or goes on when the batch is complete.
func (b *Batch) AddTask(t *Task) { b.tasks = append(b.tasks, t) }

// ReadByHost adds a barrier to the end of the batch, which lets the host read what the batch, or an
// earlier one of the queue, wrote.
func (b *Batch) ReadByHost() { b.hostRead = true }

// HostReads reports whether ReadByHost was called.
func (b *Batch) HostReads() bool { return b.hostRead }

// AddForeign makes the batch wait for and signal semaphores of other work.
func (b *Batch) AddForeign(f Foreign) {
	b.foreign.Waits = append(b.foreign.Waits, f.Waits...)
	b.foreign.Signals = append(b.foreign.Signals, f.Signals...)
	if len(f.Waits) > 0 {
		b.work += foreignCost
	}
}

// Foreign returns what AddForeign has added. The slices belong to the batch.
func (b *Batch) Foreign() Foreign { return b.foreign }

// Empty reports whether submitting the batch would have no effect.
func (b *Batch) Empty() bool { return b.commands == 0 && !b.hostRead && len(b.tasks) == 0 }

// WaitsFor returns the value of a queue that the batch waits for, 0 for none.
func (b *Batch) WaitsFor(queue int32) uint64 { return b.waits[queue] }

// Level returns the stream of a level, for commands whose sync point Begin returned.
func (b *Batch) Level(l int32) *vk.Stream {
	for len(b.levels) <= int(l) {
		if n := len(b.levels); n < cap(b.levels) {
			// Streams of an earlier use are reused with their memory.
			b.levels = b.levels[:n+1]
			continue
		}
		b.levels = append(b.levels, vk.Stream{})
	}
	return &b.levels[l]
}

// Levels returns the number of levels.
func (b *Batch) Levels() int32 { return int32(len(b.levels)) }

// StampLevel writes a timestamp before the commands of a level, behind the barrier before them, or, for
// the level after the last one, behind all commands. It is called in the order of the levels.
func (b *Batch) StampLevel(l int32, pool vk.QueryPool, query uint32, stage vk.Stage) {
	b.stamps = append(b.stamps, levelStamp{l, pool, query, stage})
}

// wait makes the batch wait for a value of a queue, whose clock is known.
func (b *Batch) wait(queue int32, value uint64, known Clock) {
	b.waits[queue] = max(b.waits[queue], value)
	b.clock[queue] = max(b.clock[queue], value)
	b.clock.Join(known)
}

// follows reports whether the batch waits for another queue.
func (b *Batch) follows() bool {
	return slices.ContainsFunc(b.waits, func(value uint64) bool { return value > 0 })
}

// full reports whether the batch is submitted however many others are in flight.
func (b *Batch) full(r Rates) bool {
	return b.commands >= MaxCommands || b.work >= MostInvocations/r.Invocations
}

// reset makes a recycled batch empty.
func (b *Batch) reset(value uint64) {
	clear(b.waits)
	for i := range b.levels {
		b.levels[i].Reset()
	}
	b.levels, b.stamps = b.levels[:0], b.stamps[:0]
	b.foreign = Foreign{Waits: b.foreign.Waits[:0], Signals: b.foreign.Signals[:0]}
	b.value, b.seq, b.stage, b.hostRead, b.commands, b.work, b.cost = value, 0, pending, false, 0, 0, 0
	b.spare, b.err, b.unbounded = false, nil, false
}

// memory returns about how many bytes a recycled batch has for its next use. It looks at the levels of its last use
// alone.
func (b *Batch) memory() int {
	b.counted = append(b.counted, make([]int, max(len(b.levels)-len(b.counted), 0))...)
	for l := range b.levels {
		now := b.levels[l].Memory()
		b.bytes += now - b.counted[l]
		b.counted[l] = now
	}
	const (
		level  = int(unsafe.Sizeof(vk.Stream{}) + unsafe.Sizeof(int(0))) // of levels and counted
		task   = int(unsafe.Sizeof((*Task)(nil)))
		clocks = 4 * int(unsafe.Sizeof(uint64(0))) // clock, waits, seen and before.seen, for a queue
	)
	return b.bytes + int(unsafe.Sizeof(*b)) + cap(b.levels)*level + cap(b.tasks)*task + len(b.clock)*clocks
}

// countBarriers counts the barriers of the batch. It returns the last level that has a barrier
// before it, or 0 if none has.
func (b *Batch) countBarriers() (ordered int32) {
	b.barriers = 0
	for l := 1; l < len(b.levels); l++ {
		if b.levels[l].Len() > 0 {
			b.barriers++
			ordered = int32(l) + int32(mutant.OffBy(mutant.OrderedTooHigh))
		}
	}
	if b.hostRead {
		b.barriers++
	}
	return ordered
}

// encode writes the batch to out. It is called without the lock: the commands of a closed batch do
// not change.
func (b *Batch) encode(out *vk.Stream) {
	between, toHost := LevelBarrier, HostBarrier
	if !b.queue.computes {
		between, toHost = ofTransfers(between), ofTransfers(toHost)
	}
	if mutant.Active(mutant.CopiesUnseen) {
		between.SrcAccess &^= vk.AccessTransferWrite
	}
	if mutant.Active(mutant.WiderMasks) {
		between.SrcStage, between.DstStage = vk.StageAllCommands, vk.StageAllCommands
		between.SrcAccess, between.DstAccess = vk.AccessMemoryWrite, vk.AccessMemoryRead|vk.AccessMemoryWrite
	}
	stamps := b.stamps
	for l := range b.levels {
		if b.levels[l].Len() == 0 {
			continue
		}
		if l > 0 && !mutant.Active(mutant.BarrierDropped) {
			out.Barrier(between)
		}
		stamps = appendStamps(out, stamps, int32(l))
		out.AppendUnordered(&b.levels[l])
	}
	appendStamps(out, stamps, b.Levels())
	if b.hostRead && !mutant.Active(mutant.HostBarrierDropped) {
		out.Barrier(toHost)
	}
}

// appendStamps writes the timestamps before a level to out, and returns those of later levels.
func appendStamps(out *vk.Stream, stamps []levelStamp, l int32) []levelStamp {
	for len(stamps) > 0 && stamps[0].level <= l {
		out.Timestamp(stamps[0].pool, stamps[0].query, stamps[0].stage)
		stamps = stamps[1:]
	}
	return stamps
}
