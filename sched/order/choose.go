package order

import (
	"slices"

	"github.com/vkomp/vkomp/internal/mutant"
)

// These costs, in nanoseconds, serve to compare queues, so only their proportions matter. Where
// nothing else is said they were measured on an NVIDIA H100, whose families 0 (it draws), 1 (it
// transfers) and 2 (it computes and does not draw) are those of most graphics cards.
const (
	// StallCost is the cost of a barrier between two kernels: 2.5 to 2.6 µs.
	StallCost = 2_600
	// SubmitCost is what one more submission costs its queue, whose submissions do not overlap:
	// 10.5 µs for a link of a chain of submissions on one queue of family 2, 16.1 on family 0.
	SubmitCost = 10_500
	// startCost is the cost of submitting to an idle queue. It is less than that of submitting
	// behind other work: what need not come behind that work had better not.
	startCost = 8_000
	// The costs of following a command of another queue, with the submission that this takes:
	// 4 to 8 µs for a link of a chain between families, 14 between queues of family 2, and 181
	// between queues of family 0. From family 2 to a queue of family 0 and back it is 160 each
	// way, unless that is the first of its family, which interop objects have (NVIDIA H200).
	crossFamilies = 8_000
	crossAsync    = 14_000
	crossDrawing  = 181_000
	// foreignCost is the assumed cost of foreign work for which a queue waits. Its duration is
	// unknown, so commands that do not depend on it should go to other queues.
	foreignCost = 1_000_000
	// CopyApart is the number of bytes above which a copy between host and device may go to a
	// queue of its own.
	CopyApart = 256 << 10
)

// Rates say how long commands are assumed to take.
type Rates struct {
	// Invocations is the number of invocations of a kernel in a nanosecond. Bus is the number of
	// bytes that are copied between host and device meanwhile, and Memory the number of those
	// that are copied or filled within the device.
	Invocations, Bus, Memory uint64
}

var (
	// SoftwareRates are those of a software driver on two processors.
	SoftwareRates = Rates{Invocations: 1, Bus: 8, Memory: 8}
	// HardwareRates are those of a graphics card: 84 invocations of saxpy, 47 to 52 bytes, and 410
	// bytes by a copy command. Smaller devices take longer, and longer kernels too.
	HardwareRates = Rates{Invocations: 50, Bus: 50, Memory: 400}
)

// MostInvocations bounds the invocations in a submission, to keep it below the timeout of consumer
// drivers.
const MostInvocations = 1 << 30

// SetRates sets how long commands are assumed to take. Without it SoftwareRates hold.
func (o *Queues) SetRates(r Rates) { o.rates = r }

// stall returns the estimated time, in nanoseconds, for which a batch keeps its queue
// from beginning what comes after it.
func (b *Batch) stall() uint64 {
	return SubmitCost + b.work + StallCost*uint64(max(len(b.levels)-1, 0))
}

// KernelQueue returns the queue for a launch of a kernel which follows s.
func (o *Queues) KernelQueue(s *WaitSet, l Launch) *Queue {
	work := l.Invocations / o.rates.Invocations
	if l.Bounded && o.staysHome(s, work) {
		return o.home
	}
	q := o.choose(o.computing, o.kernels, s, work)
	if l.Bounded && s.families == 0 && (s.Len() > 0 || o.home == nil) {
		o.home = q
	}
	return q
}

// CopyQueue returns the queue for copies of so many bytes between host and device that follow s:
// large ones go to queues that only transfer, if there are any.
func (o *Queues) CopyQueue(s *WaitSet, bytes uint64) *Queue {
	best := o.computing
	if len(o.copying) > 0 && bytes >= CopyApart {
		best = o.copying
	}
	return o.choose(best, o.all, s, bytes/o.rates.Bus)
}

// WithinQueue returns the queue for copies and fills of so many bytes within the device that
// follow s. Queues that only transfer are made for the bus, and several times slower than the
// device's memory: they fill 95 bytes in a nanosecond where others fill 2,650. They are used only
// if no other may use the memory.
func (o *Queues) WithinQueue(s *WaitSet, bytes uint64) *Queue {
	work := bytes / o.rates.Memory
	if len(o.copying) > 0 && mutant.Active(mutant.FillOnTransferQueue) {
		return o.choose(o.copying, o.copying, s, work)
	}
	if s.families != 0 && s.families&o.kernelFamilies == 0 {
		return o.choose(o.all, o.all, s, work)
	}
	return o.choose(o.computing, o.kernels, s, work)
}

// AnyQueue returns the queue on which nothing that follows s is estimated to be complete first.
func (o *Queues) AnyQueue(s *WaitSet) *Queue { return o.choose(o.ordinary, o.all, s, 0) }

// choose returns the queue for that many nanoseconds of work that follows s: one of best, or of
// able where s allows only some queue families, and any of able where the choice is random. If s
// allows none of them, it returns one that Begin then refuses.
func (o *Queues) choose(best, able []*Queue, s *WaitSet, work uint64) *Queue {
	if s.families != 0 {
		var few [16]*Queue
		allowed := few[:0]
		for _, q := range able {
			if o.allowed(q, s) {
				allowed = append(allowed, q)
			}
		}
		if len(allowed) == 0 {
			return able[0]
		}
		best, able = allowed, allowed
	}
	switch {
	case o.random != nil:
		return able[o.random.IntN(len(able))]
	case len(best) == 1:
		return best[0]
	}
	return o.earliest(best, s, work)
}

// allowed reports whether the queue is of a family that s allows.
func (o *Queues) allowed(q *Queue, s *WaitSet) bool {
	return s.families == 0 || s.families&(1<<o.infos[q.index].Family) != 0
}

// earliest returns the queue on which the work is estimated to finish first, the first one in
// case of a tie.
func (o *Queues) earliest(queues []*Queue, s *WaitSet, work uint64) *Queue {
	o.estimate(s)
	best, first := queues[0], ^uint64(0)
	alike := uint64(0) // families of which an idle queue was looked at
	for _, q := range queues {
		if q.isIdle() {
			family := uint64(1) << o.infos[q.index].Family
			if alike&family != 0 {
				continue // it would finish there when it does on the one before
			}
			alike |= family
		}
		if at := o.finishOn(q, s, work); at < first {
			best, first = q, at
		}
	}
	return best
}

// estimate sets untils to how long it takes until what is at the points of s is complete.
func (o *Queues) estimate(s *WaitSet) {
	o.untils = o.untils[:0]
	for i := range s.Len() {
		p := s.At(i)
		o.untils = append(o.untils, o.all[p.Queue].until(p))
	}
}

// finishOn estimates after how many nanoseconds work that follows s is complete if q runs it, after estimate.
func (o *Queues) finishOn(q *Queue, s *WaitSet, work uint64) uint64 {
	idle, level, ready := q.isIdle(), int32(0), uint64(0)
	for i := range s.Len() {
		if p := s.At(i); o.waitsFor(q, p) {
			ready = max(ready, o.untils[i]+o.crossing(q, o.all[p.Queue]))
		} else if !idle {
			level = max(level, q.after(p))
		}
	}
	begin := o.turns(q) + startCost // a barrier before the first command waits for nothing
	if !idle {
		begin = q.backlog() + o.turns(q) + q.pending.work + StallCost*uint64(level)
	}
	return max(begin, ready) + work
}

// isIdle reports whether the queue has nothing to do.
func (q *Queue) isIdle() bool { return len(q.inFlight) == 0 && q.pending.Empty() }

// crossing returns the cost of following a command of another queue.
func (o *Queues) crossing(q, other *Queue) uint64 {
	switch a, b := &o.infos[q.index], &o.infos[other.index]; {
	case a.Draws && b.Compute || b.Draws && a.Compute:
		return crossDrawing
	case a.Family != b.Family:
		return crossFamilies
	}
	return crossAsync
}

// turns returns the estimated cost, in nanoseconds, of the work for which the queue has to wait
// because queues of a family that draws take turns. A queue that itself waits for foreign work
// keeps no other from its turn.
func (o *Queues) turns(q *Queue) (cost uint64) {
	if !o.infos[q.index].Draws {
		return 0
	}
	for _, other := range o.all {
		if other != q && !other.waitsForForeign() && o.infos[other.index].Family == o.infos[q.index].Family {
			cost += other.backlog() + other.pending.work
		}
	}
	return cost
}

// waitsForForeign reports whether a batch of the queue, in flight or pending, waits for foreign work.
func (q *Queue) waitsForForeign() bool {
	for _, b := range q.inFlight {
		if len(b.foreign.Waits) > 0 {
			return true
		}
	}
	return len(q.pending.foreign.Waits) > 0
}

// WaitsForForeign reports whether a batch of a queue, in flight or pending, waits for foreign work.
func (o *Queues) WaitsForForeign() bool { return slices.ContainsFunc(o.all, (*Queue).waitsForForeign) }

// until estimates after how many nanoseconds the queue has completed the commands up to p.
func (q *Queue) until(p SyncPoint) uint64 {
	switch {
	case p.Value <= q.completed:
		return 0
	case p.Value == q.pending.value:
		return q.backlog() + q.pending.work + StallCost*uint64(p.Level)
	}
	if i, _ := q.find(p.Value + 1); i > 0 {
		return q.inFlight[i-1].cost - q.completedCost
	}
	return 0
}

// gathers reports whether the pending batch of an idle queue had better wait for more commands.
// Kernels of one batch overlap, while submissions overlap only those of other queues: of 16
// kernels that each leave most of the device idle, one batch takes as long as one of them, and one
// queue with a submission for each 16 times as long. So commands that follow nothing on other
// queues, and are estimated to take less than their submission costs, wait while another queue
// has little left to do: until that is done, but no longer than the caller of Flush has patience.
// That queue itself must wait for nothing, since what it waits for may depend on what the program
// does when these commands are complete.
func (o *Queues) gathers(q *Queue) bool {
	b := q.pending
	if !q.computes || len(q.inFlight) > 0 || b.full(o.rates) || b.work >= SubmitCost || b.follows() {
		return false
	}
	for _, other := range o.kernels {
		if other == q || len(other.inFlight) == 0 || other.backlog() >= MaxInFlight*2*SubmitCost {
			continue
		}
		if running := other.inFlight[0]; !running.follows() && len(running.foreign.Waits) == 0 {
			return true
		}
	}
	return false
}
