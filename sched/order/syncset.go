package order

import (
	"slices"

	"github.com/vkomp/vkomp/internal/mutant"
)

// SyncSet is a set of sync points, at most one on each queue. What follows the set follows
// all of its points. The zero set is before everything.
type SyncSet struct {
	first SyncPoint
	// more are the points on other queues than that of first.
	more []SyncPoint
}

// Len returns the number of points.
func (s *SyncSet) Len() int {
	if s.first.Value == 0 {
		return 0
	}
	return 1 + len(s.more)
}

// At returns the i-th point, in no particular order.
func (s *SyncSet) At(i int) SyncPoint {
	if i == 0 {
		return s.first
	}
	return s.more[i-1]
}

// First returns At(0), or the zero point of an empty set.
func (s *SyncSet) First() SyncPoint { return s.first }

// Add adds a point. Of two points on a queue the set keeps the later one, which follows the
// other.
func (s *SyncSet) Add(p SyncPoint) {
	switch {
	case p.Value == 0:
	case s.first.Value == 0:
		s.first = p
	case s.first.Queue == p.Queue:
		if s.first.Before(p) {
			s.first = p
		}
	default:
		for i := range s.more {
			if o := &s.more[i]; o.Queue == p.Queue {
				if o.Before(p) {
					*o = p
				}
				return
			}
		}
		if !mutant.Active(mutant.QueueForgotten) {
			s.more = append(s.more, p)
		}
	}
}

// AddAll adds the points of another set.
func (s *SyncSet) AddAll(o *SyncSet) {
	for i := range o.Len() {
		s.Add(o.At(i))
	}
}

// Set makes p the only point. With the zero point the set is empty.
func (s *SyncSet) Set(p SyncPoint) { s.first, s.more = p, s.more[:0] }

// SetAll makes the set a copy of another.
func (s *SyncSet) SetAll(o *SyncSet) { s.first, s.more = o.first, append(s.more[:0], o.more...) }

// follow adds the point of a command, and drops the points on other queues that the command
// follows, which are those that known covers.
func (s *SyncSet) follow(p SyncPoint, known Clock) {
	kept := s.more[:0]
	for _, o := range s.more {
		if !known.Covers(o) && !mutant.Active(mutant.FollowsTooMuch) || o.Queue == p.Queue {
			kept = append(kept, o)
		}
	}
	s.more = kept
	if s.first.Value != 0 && s.first.Queue != p.Queue && (known.Covers(s.first) || mutant.Active(mutant.FollowsTooMuch)) {
		s.first = SyncPoint{}
		if n := len(s.more); n > 0 {
			s.first, s.more = s.more[n-1], s.more[:n-1]
		}
	}
	s.Add(p)
}

// equal reports whether both sets have the same points in the same order. Sets that have
// the same points in another order count as different.
func (s *SyncSet) equal(o *SyncSet) bool { return s.first == o.first && slices.Equal(s.more, o.more) }

// WaitSet is what commands that are to be placed wait for, and where they can run.
type WaitSet struct {
	SyncSet
	// families are the families of the queues that can run the commands, a bit for each; 0
	// stands for all. nowhere is set if there are none.
	families uint64
	nowhere  bool
}

// Set makes p the only point, and allows all families.
func (s *WaitSet) Set(p SyncPoint) {
	s.SyncSet.Set(p)
	s.families, s.nowhere = 0, false
}

// SetAll makes the points those of o, and allows all families.
func (s *WaitSet) SetAll(o *SyncSet) {
	s.SyncSet.SetAll(o)
	s.families, s.nowhere = 0, false
}

// Limit allows, of the families that are allowed, only those given as bits; 0 stands for
// all.
func (s *WaitSet) Limit(families uint64) {
	switch {
	case families == 0:
	case s.families == 0:
		s.families = families
	default:
		s.nowhere = s.nowhere || s.families&families == 0
		s.families &= families
	}
}
