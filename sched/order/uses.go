package order

import (
	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/timeline"
)

// Uses records how commands have used an allocation.
type Uses struct {
	// write are the last writes by the device, last the last commands of any kind. history
	// has writes and transfers by ranges of bytes.
	write, last SyncSet
	history     history
}

// Reuse forgets everything, for an allocation of size bytes in memory that was freed up to a
// frontier. The previous user may still be running, so that counts as a transfer which every
// command follows.
func (o *Queues) Reuse(u *Uses, size uint64, freed timeline.Frontier) {
	u.last.Set(SyncPoint{})
	if !mutant.Active(mutant.MemoryReusedEarly) {
		o.addFrontier(&u.last, freed)
	}
	u.write.SetAll(&u.last)
	u.history.Reset(size, &u.last)
}

// Last returns the points of the last commands of any kind.
func (u *Uses) Last() *SyncSet { return &u.last }

// Visible reports whether all device writes are visible to the host, which sees the work
// that c covers.
func (u *Uses) Visible(c Clock) bool {
	for i := range u.write.Len() {
		if !c.Covers(u.write.At(i)) {
			return false
		}
	}
	return true
}

// Read records that commands of a pending batch use bytes.
func (u *Uses) Read(at SyncPoint) { u.last.Add(at) }

// Wrote records that commands of a pending batch write bytes.
func (o *Queues) Wrote(u *Uses, bytes Span, at SyncPoint) {
	u.last.Add(at)
	u.write.Add(at)
	u.history.touch(bytes, at, o.behindWrites(o.all[at.Queue]), true, false)
}

// Moved records that commands of a pending batch copy bytes from or to elsewhere.
func (o *Queues) Moved(u *Uses, bytes Span, at SyncPoint) {
	u.last.Add(at)
	u.history.touch(bytes, at, o.all[at.Queue].pending.clock, false, true)
}

// behindWrites returns the clock of what commands in the pending batch follow if they are placed
// after all complete writes to what they use.
func (o *Queues) behindWrites(q *Queue) Clock {
	copy(o.known, q.pending.clock)
	for p, other := range o.all {
		o.known[p] = max(o.known[p], other.completed)
	}
	return o.known
}

// HostMayWrite reports whether the host may write the memory itself: no command that uses it
// is incomplete, and the host sees what the device wrote.
func (o *Queues) HostMayWrite(u *Uses) bool {
	return (o.AllComplete(&u.last) || mutant.Active(mutant.HostWritesEarly)) && u.Visible(o.hostReached)
}

// AddUses adds the uses that commands on bytes must follow whatever the program's dependences
// are: transfers in flight, and complete writes, which the program has ordered before the
// commands by means other than a dependence, and which have to be made visible. Writes in flight
// are not added: the program has left them unordered (OpenMP orders by depend clauses, not by
// accesses).
func (o *Queues) AddUses(s *WaitSet, u *Uses, bytes Span) {
	for g := range u.history.within(bytes) {
		if !mutant.Active(mutant.WritesForgotten) {
			o.addWrites(s, g)
		}
		if !mutant.Active(mutant.TransfersForgotten) {
			o.addIf(s, &g.moved, false)
		}
	}
}

// AddWrites adds only the writes that AddUses adds.
func (o *Queues) AddWrites(s *WaitSet, u *Uses, bytes Span) {
	for g := range u.history.within(bytes) {
		o.addWrites(s, g)
	}
}

// addWrites adds the complete writes of a segment. A write in flight need not be followed, but
// writes before it may have to be.
func (o *Queues) addWrites(s *WaitSet, g *segment) {
	if o.addIf(s, &g.wrote, true) || mutant.Active(mutant.EarlierWritesForgotten) {
		return
	}
	for i := range g.under.Len() {
		p := g.under.At(i)
		if done := o.all[p.Queue].completed; p.Value > done {
			// There may be others before the one in flight.
			p = SyncPoint{Value: done, Level: maxLevel, Queue: p.Queue}
		}
		s.Add(p)
	}
}

// addIf adds the complete points, or the incomplete ones. It reports whether these are
// all points.
func (o *Queues) addIf(s *WaitSet, points *SyncSet, complete bool) (all bool) {
	all = true
	for i := range points.Len() {
		if at := points.At(i); o.Complete(at) == complete {
			s.Add(at)
		} else {
			all = false
		}
	}
	return all
}
