package sched

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// poolQueries is the size of a pool of timestamps, two of which a command takes.
const poolQueries = 256

// stamps are a scheduler's part of a trace: the timestamps around commands, and the records
// that come of them. All of it is guarded by Scheduler.mu.
type stamps struct {
	// submits and dataOps: kernels, and copies and fills, are placed between timestamps.
	submits, dataOps bool
	// pools are all there are, free those that no batch has; spare are stamps to use again.
	pools, free []*queries
	spare       []*stamp
	// underWay are the pools, by queue, of batches that are pending or in flight, in the
	// order of the batches.
	underWay [][]*queries
	// taken is working memory of take, ticks of readStampsLocked.
	taken []*queries
	ticks [poolQueries]uint64
	// live counts stamps whose record is not made. records are those made that the
	// trace has not taken.
	live    int
	records []ompt.Record
	// err is why records were lost, the first time.
	err error
	// made is called when there are more records, or fewer live stamps.
	made func()
}

// queries is a pool of timestamps. It is one batch's until that is complete: value is the
// batch's.
type queries struct {
	vk.QueryPool
	value uint64
	// stamps has those of queries 2k and 2k+1 at k.
	stamps []*stamp
}

// stamp is a command between two timestamps. Its record is made when these have been read
// and the task is complete: the observer may number an operation as late as that.
type stamp struct {
	op            *construct.Op
	record        ompt.Record
	landed, ended bool
	// lost: the command has not been run.
	lost bool
}

// timing is where the timestamps of a command go; that of one which is not traced is zero.
type timing struct {
	pool  *queries
	query uint32
}

// timeLocked has the commands that come next in a stream of q's pending batch be timed: they are
// of the operation, nil for none, and move so many bytes or run so many workgroups.
func (s *Scheduler) timeLocked(q *order.Queue, stream *vk.Stream, t *target, op *construct.Op, amount uint64) timing {
	if op == nil {
		return timing{} // nothing more where there is no tool: this is inlined
	}
	return s.beginTimingLocked(q, stream, t, op, amount)
}

func (s *Scheduler) beginTimingLocked(q *order.Queue, stream *vk.Stream, t *target, op *construct.Op, amount uint64) timing {
	wanted := &s.stamps.dataOps
	if op.Type == 0 {
		wanted = &s.stamps.submits
	}
	if !*wanted || s.order.Info(q).TimestampBits == 0 {
		return timing{}
	}
	pool := s.queriesOfLocked(q)
	if pool == nil {
		return timing{}
	}
	st := s.stamps.newStamp()
	*st = stamp{op: op}
	st.record.Queue = int(q.Index())
	if op.Type == 0 {
		st.record.GrantedNumTeams = amount
	} else {
		st.record.DataOp.Bytes = amount
	}
	at := timing{pool, uint32(2 * len(pool.stamps))}
	pool.stamps = append(pool.stamps, st)
	t.stamps = append(t.stamps, st)
	s.stamps.live++
	// At a later stage it would be written when all has ended that runs beside the command.
	// Vulkan lets this one be written before what the command waits for by a barrier has
	// ended; devices, which stop there, write it behind.
	stream.Timestamp(pool.QueryPool, at.query, vk.StageTopOfPipe)
	return at
}

// end ends what is timed, commands of that stage.
func (at timing) end(stream *vk.Stream, stage vk.Stage) {
	if at.pool != nil {
		stream.Timestamp(at.pool.QueryPool, at.query+1, stage)
	}
}

func (s *stamps) newStamp() *stamp {
	if n := len(s.spare); n > 0 {
		st := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return st
	}
	return new(stamp)
}

// queriesOfLocked returns a pool of the queue's pending batch that has room, nil where none can be
// made.
func (s *Scheduler) queriesOfLocked(q *order.Queue) *queries {
	if s.stamps.underWay == nil {
		s.stamps.underWay = make([][]*queries, len(s.order.All()))
	}
	pools := &s.stamps.underWay[q.Index()]
	value := q.Pending().Value()
	if n := len(*pools); n > 0 && (*pools)[n-1].value == value && len((*pools)[n-1].stamps) < poolQueries/2 {
		return (*pools)[n-1]
	}
	var p *queries
	if n := len(s.stamps.free); n > 0 {
		p = s.stamps.free[n-1]
		s.stamps.free = s.stamps.free[:n-1]
	} else {
		made, err := s.device.CreateQueryPool(poolQueries)
		if err != nil {
			s.stamps.fail(err)
			return nil
		}
		p = &queries{QueryPool: made}
		s.stamps.pools = append(s.stamps.pools, p)
	}
	p.value = value
	*pools = append(*pools, p)
	return p
}

// take returns the pools of a batch of a queue, which have no batch any more.
func (s *stamps) take(queue int32, value uint64) []*queries {
	if s.underWay == nil {
		return nil
	}
	all := s.underWay[queue]
	from, _ := slices.BinarySearchFunc(all, value, func(p *queries, v uint64) int { return cmp.Compare(p.value, v) })
	end := from
	for end < len(all) && all[end].value == value {
		end++
	}
	if from == end {
		return nil
	}
	s.taken = append(s.taken[:0], all[from:end]...)
	s.underWay[queue] = slices.Delete(all, from, end)
	return s.taken
}

func (s *stamps) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// readStampsLocked reads the timestamps of a batch that the device is done with.
func (s *Scheduler) readStampsLocked(queue int32, value uint64) {
	for _, p := range s.stamps.take(queue, value) {
		n := len(p.stamps)
		ticks := s.stamps.ticks[:2*n]
		err := s.device.Timestamps(p.QueryPool, 0, ticks)
		for k, st := range p.stamps {
			st.record.Time, st.record.EndTime = ticks[2*k], ticks[2*k+1]
			s.stamps.landed(st, err != nil)
			p.stamps[k] = nil
		}
		p.stamps = p.stamps[:0]
		if err == nil {
			err = s.device.ResetQueryPool(p.QueryPool, 0, uint32(2*n))
		}
		if err != nil {
			s.stamps.fail(err)
			continue
		}
		s.stamps.free = append(s.stamps.free, p)
	}
}

// dropStampsLocked gives up the records of a batch that was not run, or not to its end.
func (s *Scheduler) dropStampsLocked(queue int32, value uint64) {
	for _, p := range s.stamps.take(queue, value) {
		for k, st := range p.stamps {
			s.stamps.landed(st, true)
			p.stamps[k] = nil
		}
		p.stamps = p.stamps[:0]
		if s.loss.err == nil {
			// It was not submitted.
			s.stamps.free = append(s.stamps.free, p)
		}
	}
}

// landed notes that the timestamps have been read, or never will be.
func (s *stamps) landed(st *stamp, lost bool) {
	st.landed, st.lost = true, lost
	s.make(st)
}

// endStampsLocked makes the records of a task that is complete, of the commands that are known to
// be.
func (s *Scheduler) endStampsLocked(t *target) {
	for i, st := range t.stamps {
		t.stamps[i] = nil
		r, op := &st.record, st.op
		r.TargetID, r.HostOpID = op.TargetID, op.ID
		if op.Type == 0 {
			r.Type, r.RequestedNumTeams, r.Label = ompt.CallbackTargetSubmitEMI, op.Teams, op.Kernel
		} else {
			bytes := r.DataOp.Bytes
			r.Type, r.DataOp, r.Label = ompt.CallbackTargetDataOpEMI, op.DataOp, op.Label
			r.DataOp.Bytes = bytes
		}
		st.op, st.ended = nil, true
		s.stamps.make(st)
	}
	t.stamps = t.stamps[:0]
}

// make makes the record of a stamp of which all is known.
func (s *stamps) make(st *stamp) {
	if !st.landed || !st.ended {
		return
	}
	if !st.lost {
		s.records = append(s.records, st.record)
	}
	*st = stamp{}
	s.spare = append(s.spare, st)
	s.live--
	s.made()
}

// trimStamps destroys the pools that nothing uses, and forgets what is kept for stamps to come.
func (s *Scheduler) trimStamps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.stamps.free {
		s.device.DestroyQueryPool(p.QueryPool)
	}
	kept := s.stamps.pools[:0]
	for _, p := range s.stamps.pools {
		if !slices.Contains(s.stamps.free, p) {
			kept = append(kept, p)
		}
	}
	clear(s.stamps.pools[len(kept):])
	s.stamps.pools, s.stamps.free, s.stamps.spare = kept, nil, nil
}
