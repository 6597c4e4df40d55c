package order

// Launch is what is known beforehand of how long a launch of a kernel takes.
type Launch struct {
	// Invocations is the number of invocations.
	Invocations uint64
	// Bounded says that an invocation takes no longer than its instructions: the kernel has no loop.
	Bounded bool
}

// A kernel that goes where it is estimated to finish first may start some microseconds earlier on an idle
// queue, but then what follows it and others has to wait for several queues, and there are more submissions. That
// pays for kernels that keep a queue busy for long, of which the estimates know nothing where kernels have
// loops. Where they have none the estimates are seldom far off, and such kernels stay on one queue, the
// home, unless that has much to do: a graph of many small tasks, such as a stencil, becomes a few batches of one
// queue. Only those stay that use what other commands have written. What follows nothing may go
// elsewhere, and is no reason for others to go there, too.

// staying is how long, in nanoseconds, a bounded kernel may have to wait at home by what is estimated: several times
// what it takes to begin on an idle queue and to cross to that and back.
const staying = 80_000

// staysHome reports whether a bounded kernel of so many nanoseconds that follows s stays on the home queue. It does
// not wait there for kernels with loops, since nobody knows how long they take.
func (o *Queues) staysHome(s *WaitSet, work uint64) bool {
	q := o.home
	if len(o.computing) < 2 || q == nil || s.Len() == 0 || o.random != nil || !o.allowed(q, s) || q.backlog() > staying || q.pending.unbounded {
		return false
	}
	for _, b := range q.inFlight {
		if b.unbounded {
			return false
		}
	}
	for i := range s.Len() {
		if p := s.At(i); o.waitsFor(q, p) {
			if b := o.UnderWay(p); b != nil && b.unbounded {
				return false
			}
		}
	}
	o.estimate(s)
	return o.finishOn(q, s, work) <= staying+work
}
