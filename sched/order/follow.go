package order

import (
	"cmp"
	"fmt"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/vk"
)

// Begin returns the pending batch of a queue, and the sync point in it for commands that follow a
// wait set. It closes the batches of other queues for which the pending batch has to wait. The
// error is that of Close, or vk.ErrUnsupported if the set does not allow the queue's family.
func (o *Queues) Begin(q *Queue, s *WaitSet) (*Batch, SyncPoint, error) {
	if s.nowhere || !o.allowed(q, s) {
		return nil, SyncPoint{}, fmt.Errorf("%w: no queue is of a family that may use all of the foreign memory of the task", vk.ErrUnsupported)
	}
	level, err := o.follow(q, &s.SyncSet)
	return q.pending, SyncPoint{Value: q.pending.value, Level: level, Queue: q.index}, err
}

// follow makes the commands that are added to q's pending batch from now on follow the points of a
// set, and returns the lowest level at which they do.
func (o *Queues) follow(q *Queue, s *SyncSet) (level int32, err error) {
	s = o.withoutSkipped(s)
	late := false
	for i := range s.Len() {
		p := s.At(i)
		if !o.waitsFor(q, p) {
			continue
		}
		if other := o.all[p.Queue]; p.Value > other.last {
			err = cmp.Or(err, o.Close(other))
		}
		late = true
	}
	if late && err == nil && !q.pending.Empty() {
		// The commands that the batch has already would wait, too.
		err = o.Close(q)
	}
	if err != nil {
		return 0, err
	}
	for i := range s.Len() {
		p := s.At(i)
		if o.waitsFor(q, p) {
			other := o.all[p.Queue]
			value, known := other.knownAt(p.Value)
			q.pending.wait(p.Queue, value, known)
			if b := other.batchInFlight(value); b != nil {
				q.seen.Join(b.seen)
				q.pending.unbounded = q.pending.unbounded || b.unbounded
			}
		}
	}
	for i := range s.Len() {
		level = max(level, q.after(s.At(i)))
	}
	if mutant.Active(mutant.LevelTooLow) {
		level = max(level-1, 0)
	}
	return level, nil
}

// skipped reports whether p is in a batch that was refused, and no batch of the queue has been closed
// since then.
func (o *Queues) skipped(p SyncPoint) bool {
	q := o.all[p.Queue]
	return q.last < p.Value && p.Value < q.pending.value
}

// withoutSkipped returns a set in which the points of skipped batches are replaced by what these
// batches were to follow: since their commands never run, there is nothing else to wait for. The
// result is s or working memory.
func (o *Queues) withoutSkipped(s *SyncSet) *SyncSet {
	some := false
	for i := range s.Len() {
		some = some || o.skipped(s.At(i))
	}
	if !some {
		return s
	}
	o.unskipped.Set(SyncPoint{})
	for i := range s.Len() {
		p := s.At(i)
		if !o.skipped(p) {
			o.unskipped.Add(p)
			continue
		}
		q := o.all[p.Queue]
		o.unskipped.Add(SyncPoint{Value: q.last, Level: maxLevel, Queue: p.Queue})
		for other, value := range q.pending.waits {
			o.unskipped.Add(SyncPoint{Value: value, Level: maxLevel, Queue: int32(other)})
		}
	}
	return &o.unskipped
}

// waitsFor reports whether q has to wait for another queue in order to follow p. What the host
// has seen complete needs no wait: a barrier makes it visible.
func (o *Queues) waitsFor(q *Queue, p SyncPoint) bool {
	return p.Queue != q.index && p.Value > o.all[p.Queue].completed && !q.pending.clock.Covers(p)
}

// follows reports whether commands after s are known to be after p as well, which can be so
// without a dependence between them.
func (o *Queues) follows(s *SyncSet, p SyncPoint) bool {
	for i := range s.Len() {
		a := s.At(i)
		if a.Queue == p.Queue && !a.Before(p) {
			return true
		}
		q := o.all[a.Queue]
		known := q.pending.clock
		if a.Value <= q.last {
			_, known = q.knownAt(a.Value)
		}
		if known.Covers(p) {
			return true
		}
	}
	return false
}

// MayFollow reports whether what is after s may be after p, the last point of an incomplete task.
// If the device has completed the commands at p, that is so unless s is empty: commands placed
// since then did not have to wait for p, so their points do not show whether they follow it.
func (o *Queues) MayFollow(s *SyncSet, p SyncPoint) bool {
	return s.Len() > 0 && o.Complete(p) || o.follows(s, p)
}
