package order

import (
	"slices"
	"time"
)

const (
	// maxSpin is the longest time for which a wait spins. It is about what blocking costs where
	// that is dear, so that a wait which spins in vain takes at most twice as long.
	maxSpin = 50 * time.Microsecond
	// minSpin is the shortest time for which it spins, if it spins at all.
	minSpin = 10 * time.Microsecond
	// Of so many waits one is a trial: it goes the way that is not the faster one by what is known,
	// because that may have changed. A trial that finds nothing new doubles the interval.
	firstInterval, lastInterval = 32, 1024
)

// spinning decides how waits for a queue's timeline go. A wait that blocks at once costs a change
// of threads: on an NVIDIA H100, vkWaitSemaphores returns 18 to 53 µs after the submission of a
// small kernel whose end a look at the timeline shows after 13 µs. Where only one processor runs
// goroutines, a wait that blocks also has a thread of the Go runtime look every 20 µs whether that
// processor is still in the call of C. A wait that spins, which is to look again and again, takes a
// processor, and on a machine with few of them a software driver needs that one to make progress.
// Which way is faster, and whether waits are too long for spinning, is known only from waits that
// were made. So spinning remembers how long the last waits of each way took. The zero value is
// ready for use.
type spinning struct {
	// spun are waits that spun, whether or not they had to block in the end, and blocked those
	// that blocked at once.
	spun, blocked lately
	// spins says that the next waits spin, but for a trial after so many of them as untilTrial
	// says. interval is the number of waits from one trial to the next.
	spins                bool
	untilTrial, interval int
}

// next returns for how long the next wait spins before it blocks: 0 if it blocks at once.
func (s *spinning) next() time.Duration {
	switch {
	case s.spun.count == 0:
		return maxSpin
	case s.blocked.count == 0 || s.spins == (s.untilTrial == 0):
		return 0
	}
	return min(max(2*s.spun.longest(), minSpin), maxSpin)
}

// ended records how long a wait took for which next had returned limit.
func (s *spinning) ended(limit, took time.Duration) {
	if limit > 0 {
		s.spun.add(took)
	} else if s.blocked.add(took) && !s.spins {
		s.untilTrial = 1 // what is known of waits that spin is of other work
	}
	spins := s.pays()
	switch {
	case s.interval == 0 || s.spins != spins:
		s.spins, s.interval = spins, firstInterval
		s.untilTrial = s.interval - 1
	case s.untilTrial > 0:
		s.untilTrial--
	default:
		s.interval = min(2*s.interval, lastInterval)
		s.untilTrial = s.interval - 1
	}
}

// pays reports whether waits that spin have been distinctly shorter than those that block at once,
// and most of them so short that they need not have blocked in the end.
func (s *spinning) pays() bool {
	return s.spun.median <= maxSpin && s.spun.median < s.blocked.median/8*7
}

// lately is how long the last few waits took.
type lately struct {
	took        [5]time.Duration
	count, next int
	// median is the median of took, the shorter of two, and 0 without a wait.
	median time.Duration
}

// add adds a wait. If it took less than a quarter of what was usual, the work has changed, and the
// waits before it are forgotten. A longer one may be an exception.
func (l *lately) add(took time.Duration) (changed bool) {
	if changed = took < l.median/4; changed {
		l.count, l.next = 0, 0
	}
	l.took[l.next] = took
	l.next = (l.next + 1) % len(l.took)
	l.count = min(l.count+1, len(l.took))
	sorted := l.took
	slices.Sort(sorted[:l.count])
	l.median = sorted[(l.count-1)/2]
	return changed
}

// longest returns the longest wait.
func (l *lately) longest() time.Duration {
	if l.count == 0 {
		return 0
	}
	return slices.Max(l.took[:l.count])
}
