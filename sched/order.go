package sched

import (
	"math/rand/v2"
	"sync"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// order is the device's work on its queues, as far as it is placed, submitted or seen to be
// complete.
type queues struct {
	// queues are those of the device, the main one first; computing are those that run
	// kernels, copying the others, which only copy. infos describes them.
	queues, computing, copying []*queue
	infos                      []QueueInfo
	// placement says how to choose among them, random is for PlaceRandom.
	placement Placement
	random    *rand.Rand
	// submissions counts those of all queues. hostReached is what the host sees of
	// what the device wrote.
	submissions uint64
	hostReached order.Clock
	// gather is working memory of what places commands, ended that of followed, unskipped
	// that of join, waits that of submit, landed that of arrive, regions that of placeCopy.
	gather    order.WaitSet
	ended     order.Clock
	unskipped order.SyncSet
	waits     []timeline.Point
	landed    []landing
	regions   []vk.CopyRegion
}

// openQueues makes the scheduler's queues.
func (s *Scheduler) openQueues(infos []QueueInfo) {
	n := len(infos)
	o := &s.order
	o.infos, o.hostReached, o.ended = infos, make(order.Clock, n), make(order.Clock, n)
	for i, info := range infos {
		q := &queue{index: int32(i), computes: info.Compute, known: make(order.Clock, n), seen: make(order.Clock, n), hostVisible: make(order.Clock, n), wake: sync.NewCond(&s.mu)}
		q.pending = q.newBatch(1, q.known)
		o.queues = append(o.queues, q)
		if info.Compute {
			o.computing = append(o.computing, q)
		} else {
			o.copying = append(o.copying, q)
		}
	}
}
