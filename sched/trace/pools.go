package trace

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// poolQueries is the number of timestamps in a pool, two for each command.
const poolQueries = 256

// pool is a pool of timestamps. It belongs to one batch of a queue until that is complete.
type pool struct {
	vk.QueryPool
	// value is the timeline value that the batch signals.
	value uint64
	// stamps has the stamp of queries 2k and 2k+1 at index k.
	stamps []*stamp
}

// full reports whether all timestamps of the pool are in use.
func (p *pool) full() bool { return len(p.stamps) == poolQueries/2 }

// pools are the pools of a device.
type pools struct {
	device Device
	// all are all pools, free those that belong to no batch.
	all, free []*pool
	// underWay has for each queue the pools of its pending batch and of those in flight, in the
	// order of the batches.
	underWay [][]*pool
	// taken is working memory of take.
	taken []*pool
}

// of returns a pool of the queue's pending batch that is not full.
func (p *pools) of(q *order.Queue) (*pool, error) {
	own, value := &p.underWay[q.Index()], q.Pending().Value()
	if n := len(*own); n > 0 && (*own)[n-1].value == value && !(*own)[n-1].full() {
		return (*own)[n-1], nil
	}
	next, err := p.unused()
	if err != nil {
		return nil, err
	}
	next.value = value
	*own = append(*own, next)
	return next, nil
}

// unused returns a pool that belongs to no batch.
func (p *pools) unused() (*pool, error) {
	if n := len(p.free); n > 0 {
		free := p.free[n-1]
		p.free = p.free[:n-1]
		return free, nil
	}
	made, err := p.device.CreateQueryPool(poolQueries)
	if err != nil {
		return nil, err
	}
	created := &pool{QueryPool: made}
	p.all = append(p.all, created)
	return created, nil
}

// take removes the pools of a batch of a queue from those under way. The slice is valid until the
// next call.
func (p *pools) take(queue int32, value uint64) []*pool {
	if p.underWay == nil {
		return nil
	}
	own := p.underWay[queue]
	from, _ := slices.BinarySearchFunc(own, value, func(p *pool, v uint64) int { return cmp.Compare(p.value, v) })
	end := from
	for end < len(own) && own[end].value == value {
		end++
	}
	if from == end {
		return nil
	}
	p.taken = append(p.taken[:0], own[from:end]...)
	p.underWay[queue] = slices.Delete(own, from, end)
	return p.taken
}

// trim destroys the free pools.
func (p *pools) trim() {
	kept := p.all[:0]
	for _, one := range p.all {
		if slices.Contains(p.free, one) {
			p.device.DestroyQueryPool(one.QueryPool)
		} else {
			kept = append(kept, one)
		}
	}
	clear(p.all[len(kept):])
	p.all, p.free = kept, nil
}

// destroy destroys all pools.
func (p *pools) destroy() {
	for _, one := range p.all {
		p.device.DestroyQueryPool(one.QueryPool)
	}
	*p = pools{}
}
