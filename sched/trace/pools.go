package trace

import (
	"slices"

	"github.com/vkomp/vkomp/vk"
)

// poolQueries is the number of timestamps in a pool.
const poolQueries = 256

// pools are the pools of timestamps of a device. A pool belongs to one batch of a queue until that is
// complete.
type pools struct {
	device Device
	// all are all pools, free those that belong to no batch.
	all, free []vk.QueryPool
}

// take returns a pool that belongs to no batch, and whose queries are reset.
func (p *pools) take() (vk.QueryPool, error) {
	if n := len(p.free); n > 0 {
		free := p.free[n-1]
		p.free = p.free[:n-1]
		return free, nil
	}
	made, err := p.device.CreateQueryPool(poolQueries)
	if err == nil {
		p.all = append(p.all, made)
	}
	return made, err
}

// giveBack takes back a pool whose queries are reset.
func (p *pools) giveBack(one vk.QueryPool) { p.free = append(p.free, one) }

// trim destroys the free pools.
func (p *pools) trim() {
	kept := p.all[:0]
	for _, one := range p.all {
		if slices.Contains(p.free, one) {
			p.device.DestroyQueryPool(one)
		} else {
			kept = append(kept, one)
		}
	}
	p.all, p.free = kept, nil
}

// destroy destroys all pools.
func (p *pools) destroy() {
	for _, one := range p.all {
		p.device.DestroyQueryPool(one)
	}
	*p = pools{}
}
