package sched

import (
	"slices"
	"time"

	"github.com/vkomp/vkomp/vk"
)

// fakeQuery is one query of a pool of timestamps.
type fakeQuery struct {
	// submitted says that a command was submitted which writes the query, since it was last
	// reset, and written that this command has run. begun says that a command behind it has begun.
	submitted, written, begun bool
	ticks                     uint64
}

// write writes the query, as often as the commands that it waits for run: the last time remains.
func (q *fakeQuery) write(d *fakeDevice) {
	d.ticks++
	q.ticks, q.written = d.ticks, true
}

// fakeTimestamps are the timestamps of a submission. Each is written as late as possible: when the first
// of the commands behind it begins. If it waits for the commands before, these write it, too, since there
// may be none behind.
type fakeTimestamps struct {
	// before are the commands of the queue so far that have not run.
	before []*fakeCommand
	// begun are the timestamps so far that commands behind them write.
	begun []*fakeQuery
}

// around adds a command, which writes the timestamps before it.
func (f *fakeTimestamps) around(d *fakeDevice, c *fakeCommand) {
	f.before = append(f.before, c)
	begun, run := slices.Clone(f.begun), c.run
	c.run = func() {
		for _, q := range begun {
			if !q.begun {
				q.begun = true
				q.write(d)
			}
		}
		run()
	}
}

// timestamp takes an operation that writes a timestamp.
func (d *fakeDevice) timestamp(op vk.Op, queue int, f *fakeTimestamps) {
	pool := d.pools[op.Pool.Handle]
	if int(op.Query) >= len(pool) || len(pool) != int(op.Pool.Count) {
		d.fail("timestamp of query %d of pool %d, which has %d", op.Query, op.Pool.Handle, len(pool))
		return
	}
	q := &pool[op.Query]
	if q.submitted {
		d.fail("timestamp of query %d of pool %d, which has not been reset", op.Query, op.Pool.Handle)
	}
	q.submitted = true
	if d.infos[queue].TimestampBits == 0 {
		d.fail("timestamp on queue %d, which has none", queue)
	}
	behind := op.Stage == vk.StageTopOfPipe || op.Stage == vk.StageAllCommands
	if behind {
		f.begun = append(f.begun, q)
	}
	if op.Stage == vk.StageTopOfPipe {
		return
	}
	some := behind
	for _, c := range f.before {
		if c.stage != op.Stage && op.Stage != vk.StageAllCommands {
			continue
		}
		some = true
		run := c.run
		c.run = func() {
			run()
			if !q.begun {
				q.write(d)
			}
		}
	}
	if !some {
		d.fail("timestamp of query %d of pool %d at stage %#x ends nothing of that stage", op.Query, op.Pool.Handle, op.Stage)
	}
}

func (d *fakeDevice) CreateQueryPool(count uint32) (vk.QueryPool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queryError != nil {
		return vk.QueryPool{}, d.queryError
	}
	if d.pools == nil {
		d.pools = make(map[uint64][]fakeQuery)
	}
	d.handles++
	d.pools[d.handles] = make([]fakeQuery, count)
	return vk.QueryPool{Handle: d.handles, Count: count}, nil
}

func (d *fakeDevice) DestroyQueryPool(p vk.QueryPool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled(p, 0, p.Count, "destroyed")
	delete(d.pools, p.Handle)
}

// settled returns the queries of a range. It reports queries that do not exist, and queries
// that a submission in flight is still to write.
func (d *fakeDevice) settled(p vk.QueryPool, first, count uint32, what string) []fakeQuery {
	pool := d.pools[p.Handle]
	if uint64(first)+uint64(count) > uint64(len(pool)) {
		d.fail("%d queries from %d on of pool %d %s, which has %d", count, first, p.Handle, what, len(pool))
		return nil
	}
	pool = pool[first:][:count]
	for _, q := range pool {
		if q.submitted && !q.written && !(d.lost && d.idle()) {
			d.fail("queries of pool %d %s that are to be written", p.Handle, what)
		}
	}
	return pool
}

func (d *fakeDevice) ResetQueryPool(p vk.QueryPool, first, count uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.settled(p, first, count, "reset"))
	return nil
}

func (d *fakeDevice) Timestamps(p vk.QueryPool, first uint32, ticks []uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queryError != nil {
		return d.queryError
	}
	for i, q := range d.settled(p, first, uint32(len(ticks)), "read") {
		ticks[i] = q.ticks
	}
	return nil
}

// Calibrate says that a tick is a nanosecond.
func (d *fakeDevice) Calibrate() (vk.Calibration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queryError != nil {
		return vk.Calibration{}, d.queryError
	}
	return vk.Calibration{Ticks: d.ticks, Host: time.Now(), Deviation: 1, Period: 1, Bits: 64}, nil
}
