package sched

import (
	"time"

	"github.com/vkomp/vkomp/vk"
)

// fakeQuery is one query of a pool of timestamps.
type fakeQuery struct {
	// submitted says that a command was submitted which writes the query, since it was last
	// reset, and written that this command has run.
	submitted, written bool
	ticks              uint64
}

// fakeTiming is the pair of timestamps around some commands.
type fakeTiming struct {
	begin, end *fakeQuery
}

// run runs a command between the two timestamps: the first of the commands to run writes the
// first timestamp, and each writes the other one, so that the last remains.
func (f *fakeTiming) run(d *fakeDevice, run func()) {
	if !f.begin.written {
		d.ticks++
		f.begin.ticks, f.begin.written = d.ticks, true
	}
	run()
	d.ticks++
	f.end.ticks, f.end.written = d.ticks, true
}

// timestamp takes an operation that writes a timestamp. It returns the pair of timestamps that
// the following commands are in, nil if the operation ends one.
func (d *fakeDevice) timestamp(op vk.Op, queue int, timed *fakeTiming, last *fakeCommand) *fakeTiming {
	pool := d.pools[op.Pool.Handle]
	if int(op.Query) >= len(pool) || len(pool) != int(op.Pool.Count) {
		d.fail("timestamp of query %d of pool %d, which has %d", op.Query, op.Pool.Handle, len(pool))
		return nil
	}
	q := &pool[op.Query]
	if q.submitted {
		d.fail("timestamp of query %d of pool %d, which has not been reset", op.Query, op.Pool.Handle)
	}
	q.submitted = true
	if d.infos[queue].TimestampBits == 0 {
		d.fail("timestamp on queue %d, which has none", queue)
	}
	if op.Stage == vk.StageTopOfPipe {
		if timed != nil {
			d.fail("timestamp of query %d of pool %d begins what has begun", op.Query, op.Pool.Handle)
		}
		return &fakeTiming{begin: q, end: new(fakeQuery)}
	}
	if timed == nil || last == nil || last.stage != op.Stage {
		d.fail("timestamp of query %d of pool %d at stage %#x ends nothing of that stage", op.Query, op.Pool.Handle, op.Stage)
		return nil
	}
	// The commands hold the fakeTiming, so that they write the query now and no longer its
	// stand-in.
	timed.end = q
	return nil
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
