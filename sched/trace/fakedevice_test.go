package trace

import (
	"sync"
	"time"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// reporter is the part of a test that helpers use.
type reporter interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}

// query is a timestamp of a pool.
type query struct {
	// submitted says that a batch was submitted that writes it, and written that it has run, since
	// the last reset.
	submitted, written bool
	ticks              uint64
}

// fakeDevice is a device whose batches run when a test says so. Its clock goes on by a step for each
// timestamp that is written.
type fakeDevice struct {
	t     reporter
	props vk.Properties

	mu     sync.Mutex
	pools  map[uint64][]query
	handle uint64
	ticks  uint64
	step   uint64
	// narrow are the bits that the timestamps of queue 1 lack.
	narrow uint64
	// submitted are the batches of each queue that have not run.
	submitted [][]submission
	reached   []uint64
	// queryError fails calls on query pools and clocks, submitError submissions and completedError
	// questions for a queue's value. resetError fails resets.
	queryError, submitError, completedError, resetError error
	lost                                                bool
}

// submission is a batch of which only the timestamps matter.
type submission struct {
	value      uint64
	timestamps []vk.Op
}

// queryOf returns a query of a pool.
func (d *fakeDevice) queryOf(op vk.Op) *query { return &d.pools[op.Pool.Handle][op.Query] }

func (d *fakeDevice) Submit(queue int, s *vk.Stream, _ []timeline.Point, _ order.Foreign, signal uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.submitError != nil {
		return d.submitError
	}
	batch := submission{value: signal}
	for op := range s.Ops() {
		if op.Code != vk.OpTimestamp {
			continue
		}
		q := d.queryOf(op)
		if q.submitted {
			d.t.Errorf("query %d of pool %d is written without a reset", op.Query, op.Pool.Handle)
		}
		q.submitted = true
		batch.timestamps = append(batch.timestamps, op)
	}
	d.submitted[queue] = append(d.submitted[queue], batch)
	return nil
}

// run runs the oldest batch of a queue, and returns the value that it signals, 0 for none.
func (d *fakeDevice) run(queue int) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.submitted[queue]) == 0 {
		return 0
	}
	batch := d.submitted[queue][0]
	d.submitted[queue] = d.submitted[queue][1:]
	for _, op := range batch.timestamps {
		d.ticks += d.step
		q := d.queryOf(op)
		q.written, q.ticks = true, d.ticks
		if queue == 1 {
			q.ticks &^= d.narrow
		}
	}
	d.reached[queue] = batch.value
	return batch.value
}

func (d *fakeDevice) Completed(queue int) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reached[queue], d.completedError
}

func (*fakeDevice) Wait(int, uint64, time.Duration) (bool, error) { panic("nobody waits") }

func (d *fakeDevice) Properties() *vk.Properties { return &d.props }

func (d *fakeDevice) CreateQueryPool(count uint32) (vk.QueryPool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queryError != nil {
		return vk.QueryPool{}, d.queryError
	}
	d.handle++
	d.pools[d.handle] = make([]query, count)
	return vk.QueryPool{Handle: d.handle, Count: count}, nil
}

func (d *fakeDevice) DestroyQueryPool(p vk.QueryPool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled(p, 0, p.Count)
	delete(d.pools, p.Handle)
}

func (d *fakeDevice) ResetQueryPool(p vk.QueryPool, first, count uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resetError != nil {
		return d.resetError
	}
	clear(d.settled(p, first, count))
	return nil
}

func (d *fakeDevice) Timestamps(p vk.QueryPool, first uint32, ticks []uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queryError != nil {
		return d.queryError
	}
	for i, q := range d.settled(p, first, uint32(len(ticks))) {
		if !q.written {
			d.t.Errorf("query %d of pool %d is read and was never written", i, p.Handle)
		}
		ticks[i] = q.ticks
	}
	return nil
}

// settled returns queries of a pool, after a check that no batch is going to write them.
func (d *fakeDevice) settled(p vk.QueryPool, first, count uint32) []query {
	queries := d.pools[p.Handle][first:][:count]
	for i, q := range queries {
		if q.submitted && !q.written && !d.lost {
			d.t.Errorf("query %d of pool %d is in use", i, p.Handle)
		}
	}
	return queries
}

func (d *fakeDevice) Calibrate() (vk.Calibration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return vk.Calibration{Ticks: d.ticks, Host: time.Unix(1000, int64(d.ticks)), Period: 1, Bits: 64}, d.queryError
}

// set changes the device.
func (d *fakeDevice) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// hookedLock is a lock whose next release can be followed by a call.
type hookedLock struct {
	sync.Mutex
	released func()
}

// afterRelease sets the call. It does not count as a release itself.
func (l *hookedLock) afterRelease(f func()) {
	l.Mutex.Lock()
	defer l.Mutex.Unlock()
	l.released = f
}

func (l *hookedLock) Unlock() {
	released := l.released
	l.released = nil
	l.Mutex.Unlock()
	if released != nil {
		released()
	}
}

// rig is the trace of a fake device of three queues, of which the last has no timestamps.
type rig struct {
	t      reporter
	d      *fakeDevice
	mu     hookedLock
	queues order.Queues
	stamps Stamps
	trace  *Trace
	// submitting is called by the trace in place of a scheduler.
	submitting func()
	// records are those that the tool has got.
	records []ompt.Record
}

// untimed is the queue without timestamps.
const untimed = 2

func newRig(t reporter) *rig {
	r := &rig{t: t, d: &fakeDevice{t: t, step: 1, pools: map[uint64][]query{}, submitted: make([][]submission, 3), reached: make([]uint64, 3)}}
	infos := []order.QueueInfo{{Compute: true, TimestampBits: 64}, {TimestampBits: 64}, {}}
	r.queues.Init(r.d, infos, &r.mu, nil, func(*order.Queue) {})
	r.submitting = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for q := range r.queues.All() {
			r.submit(q)
		}
	}
	var err error
	r.trace, err = New(Source{Device: r.d, Number: 7, Queues: &r.queues, Stamps: &r.stamps, Lock: &r.mu, Submit: func() { r.submitting() }, Lose: r.queues.Lose})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start starts a trace of everything, whose buffers have room for three records.
func (r *rig) start() {
	r.t.Helper()
	r.trace.SetTraceOMPT(true, 0)
	if err := r.trace.StartTrace(func(int) []ompt.Record { return make([]ompt.Record, 3) }, func(_ int, records []ompt.Record, _ bool) {
		r.records = append(r.records, records...)
	}); err != nil {
		r.t.Fatal(err)
	}
}

// place places a command of a task on a queue, and reports whether it is timed. mu is held.
func (r *rig) place(queue int, t *Task, op *construct.Op, amount uint64) (timed bool) {
	r.t.Helper()
	return r.placeAt(queue, 0, t, op, amount)
}

// placeAt is place for a level of the queue's pending batch.
func (r *rig) placeAt(queue int, level int32, t *Task, op *construct.Op, amount uint64) (timed bool) {
	r.t.Helper()
	q := r.queues.All()[queue]
	follows := new(order.WaitSet)
	if level > 0 {
		follows.Set(order.SyncPoint{Value: q.Pending().Value(), Level: level - 1, Queue: q.Index()})
	}
	b, at, err := r.queues.Begin(q, follows)
	if err != nil || at.Level != level {
		r.t.Fatal(err, at)
	}
	stream := b.Level(level)
	timing := r.stamps.Begin(q, level, t, op, amount)
	stream.Fill(1, 0, 4, 0)
	timing.End(stream, vk.StageTransfer)
	r.queues.CountWithin(q, 0, 1, 4)
	return timing != Timing{}
}

// submit submits the pending batch of a queue, and drops the batches that are refused. mu is held.
func (r *rig) submit(queue int) {
	_ = r.queues.Flush(r.queues.All()[queue], order.AtOnce) // TakeRefused has what it refuses
	r.queues.SubmitClosed()
	for _, b := range r.queues.TakeRefused() {
		r.stamps.Drop(b)
		b.Recycle()
	}
}

// run runs the oldest batch of a queue and reads it. mu is held.
func (r *rig) run(queue int) {
	for _, b := range r.queues.Arrive(r.queues.All()[queue], r.d.run(queue)) {
		r.stamps.Read(b)
		b.Recycle()
	}
}

// locked calls f with mu held.
func (r *rig) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// end ends the trace and checks that nothing is left of it.
func (r *rig) end() {
	r.t.Helper()
	r.trace.End()
	if n := len(r.d.pools); n != 0 {
		r.t.Errorf("%d query pools are left", n)
	}
}

// kernelOp is the launch of a kernel, and copyOp a transfer of so many bytes.
func kernelOp(id ompt.ID, teams uint64) *construct.Op {
	return &construct.Op{ID: id, TargetID: id + 100, Kernel: "k", Teams: teams}
}

func copyOp(id ompt.ID, bytes uint64) *construct.Op {
	return &construct.Op{ID: id, TargetID: id + 100, DataOp: ompt.DataOp{Type: ompt.TargetDataTransferToDevice, Bytes: bytes, Label: "x"}}
}
