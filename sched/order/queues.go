package order

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Queues is the work of a device: what is pending on its queues, submitted, or known to be
// complete.
type Queues struct {
	device Device
	infos  []QueueInfo
	all    []*Queue
	// kernels are the queues that run kernels, and kernelFamilies their families, a bit for each.
	// computing are those of them for commands that any of them can execute (see Init), and
	// copying those that only copy.
	kernels, computing, copying []*Queue
	// ordinary are all queues but those that have only what no other can execute.
	ordinary       []*Queue
	kernelFamilies uint64
	rates          Rates
	// home is the queue on which bounded kernels stay (see home.go).
	home *Queue
	// random, if not nil, chooses among the queues that can run a command.
	random *rand.Rand
	// startWaiter is the function passed to Init.
	startWaiter func(*Queue)
	// startSubmitter is the function passed to OnBacklog, or nil. backlogged says that it was called, and
	// that TakeBacklog was not called since.
	startSubmitter func()
	backlogged     bool
	// closing is the function passed to OnClosing, or nil.
	closing func(*Batch)
	// clock, if not nil, is the clock of waits in place of the system's.
	clock func() time.Duration
	// mu is the lock that guards the queues.
	mu sync.Locker
	// closings counts the batches that were closed. hostReached is the clock of the device writes that the host
	// sees.
	closings    uint64
	hostReached Clock
	// unsent are the closed batches that are neither submitted nor refused, in the order of their
	// closing. submitting says that a goroutine submits them, and stream is its working memory.
	// settled is broadcast when one of them is submitted or refused, and when the device is lost.
	unsent     []*Batch
	submitting bool
	stream     vk.Stream
	settled    *sync.Cond
	// lost is the reason why nothing is submitted any more. stopped says that the waiters are to
	// end.
	lost    error
	stopped bool
	// refused are the batches that TakeRefused has not returned yet.
	refused []*Batch
	// These are working memory: known of behindWrites, unskipped of follow, arrived of Arrive,
	// refusing of refuse, untils of estimate.
	known, refusing Clock
	unskipped       SyncSet
	arrived         []*Batch
	untils          []uint64
}

// Init makes the queues of a device; the first one must have compute capability. mu guards them.
// random, if not nil, chooses among the queues that can run a command; otherwise a command goes
// where it is estimated to finish first. The only queue of a family that draws has just what no
// other can execute, if there are families that compute and do not draw. startWaiter must start a
// goroutine that calls NextWait for the queue until it reports false. It is called with mu held.
func (o *Queues) Init(device Device, infos []QueueInfo, mu sync.Locker, random *rand.Rand, startWaiter func(*Queue)) {
	n := len(infos)
	*o = Queues{device: device, infos: infos, mu: mu, random: random, rates: SoftwareRates, startWaiter: startWaiter}
	o.hostReached, o.known, o.refusing, o.settled = make(Clock, n), make(Clock, n), make(Clock, n), sync.NewCond(mu)
	for i, info := range infos {
		q := &Queue{index: int32(i), computes: info.Compute, known: make(Clock, n), barrierState: barrierState{seen: make(Clock, n)}, hostVisible: make(Clock, n), wake: sync.NewCond(mu)}
		q.pending = q.newBatch(1, q.known)
		o.all = append(o.all, q)
	}
	for _, q := range o.all {
		reserved := o.reserved(q)
		if !reserved {
			o.ordinary = append(o.ordinary, q)
		}
		if !q.computes {
			o.copying = append(o.copying, q)
			continue
		}
		o.kernels = append(o.kernels, q)
		o.kernelFamilies |= 1 << infos[q.index].Family
		if !reserved {
			o.computing = append(o.computing, q)
		}
	}
}

// reserved reports whether q is the only queue of a family that draws, and others do not draw.
func (o *Queues) reserved(q *Queue) bool {
	family, async := 0, false
	for _, info := range o.infos {
		if info.Family == o.infos[q.index].Family {
			family++
		}
		async = async || info.Compute && !info.Draws
	}
	return o.infos[q.index].Draws && family == 1 && async
}

// PlaceOn restricts the choice of queues: kernels, work within the device and small copies go to
// computing, and large copies between host and device to copying if that is not empty.
func (o *Queues) PlaceOn(computing, copying []*Queue) {
	o.computing, o.copying, o.home = computing, copying, nil
}

// OnClosing has a function called with each batch to which no more commands come, before it is
// submitted.
func (o *Queues) OnClosing(by func(*Batch)) { o.closing = by }

// All returns the queues. The caller must not change the slice.
func (o *Queues) All() []*Queue { return o.all }

// Of returns the queue of a sync point.
func (o *Queues) Of(p SyncPoint) *Queue { return o.all[p.Queue] }

// Info describes a queue.
func (o *Queues) Info(q *Queue) *QueueInfo { return &o.infos[q.index] }

// Families returns the families of all queues, a bit for each.
func (o *Queues) Families() (families uint64) {
	for i := range o.infos {
		families |= 1 << o.infos[i].Family
	}
	return families
}

// HostReached returns the clock of the device writes that the host sees.
func (o *Queues) HostReached() Clock { return o.hostReached }

// Complete reports whether the host has seen the end of the batch of a sync point.
func (o *Queues) Complete(p SyncPoint) bool { return p.Value <= o.all[p.Queue].completed }

// AllComplete reports whether the host has seen the end of the batches of all points.
func (o *Queues) AllComplete(s *SyncSet) bool {
	for i := range s.Len() {
		if !o.Complete(s.At(i)) {
			return false
		}
	}
	return true
}

// UnderWay returns the batch of a sync point if it is pending or in flight, otherwise nil.
func (o *Queues) UnderWay(p SyncPoint) *Batch {
	q := o.all[p.Queue]
	if p.Value == q.pending.value {
		return q.pending
	}
	return q.batchInFlight(p.Value)
}

// addFrontier adds points that follow all commands of the batches up to a frontier.
func (o *Queues) addFrontier(s *SyncSet, f timeline.Frontier) {
	for i := range f.Len() {
		p := f.At(i)
		q := o.all[p.Queue]
		at := SyncPoint{Value: p.Value, Level: maxLevel, Queue: q.index}
		if p.Value == q.pending.value {
			at.Level = int32(max(len(q.pending.levels)-1, 0))
		}
		s.Add(at)
	}
}

// Trim frees the batches that retired queues keep for reuse.
func (o *Queues) Trim() {
	for _, q := range o.all {
		if q.retired {
			q.spare, q.inFlight, q.room = nil, nil, nil
			q.spareBytes, q.more = 0, sync.Pool{}
		}
	}
}
