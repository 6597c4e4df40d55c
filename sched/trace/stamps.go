package trace

import (
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// Stamps are the timestamps around the commands of a device, and the records that come of them.
// The zero value belongs to no trace and times no command.
type Stamps struct {
	queues *order.Queues
	// submits says that kernels are timed, and dataOps that copies and fills are.
	submits, dataOps bool
	pools            pools
	// spare are stamps for reuse.
	spare []*stamp
	// live counts the stamps that have been neither made a record nor given up.
	live int
	// records are those that the trace has not taken yet.
	records []ompt.Record
	// err is why records were lost, the first reason since the tool was told of one.
	err error
	// changed is called when there is a record more, or a live stamp less.
	changed func()
	// ticks is working memory of Read.
	ticks [poolQueries]uint64
}

// stamp is a command between two timestamps.
type stamp struct {
	op *construct.Op
	// record has the times once they are read, and the rest once the task is complete.
	record ompt.Record
	// timed says that the command's batch is complete or will never run, final that the task is
	// complete.
	timed, final bool
	// lost says that the times are not known.
	lost bool
}

// Task has the stamps of one task's commands.
type Task struct {
	stamps []*stamp
}

// Timing is the place of a command's timestamps, the zero value that of a command without any.
type Timing struct {
	pool  *pool
	query uint32
}

// Begin writes a timestamp to a stream of q's pending batch, before the commands that come next
// there: they are part of the task's operation op, and run so many workgroups of a kernel, or move
// so many bytes. Timing.End writes the other timestamp. Begin writes none, and nor does End, where
// commands of this kind are not traced, or cannot be on this queue.
func (s *Stamps) Begin(q *order.Queue, stream *vk.Stream, t *Task, op *construct.Op, amount uint64) Timing {
	traced := s.dataOps
	if op.Type == 0 {
		traced = s.submits
	}
	if !traced || s.queues.Info(q).TimestampBits == 0 {
		return Timing{}
	}
	p, err := s.pools.of(q)
	if err != nil {
		s.fail(err)
		return Timing{}
	}
	st := s.newStamp()
	st.op = op
	st.record.Queue = int(q.Index())
	if op.Type == 0 {
		st.record.GrantedNumTeams = amount
	} else {
		st.record.DataOp.Bytes = amount
	}
	at := Timing{p, uint32(2 * len(p.stamps))}
	p.stamps = append(p.stamps, st)
	t.stamps = append(t.stamps, st)
	s.live++
	// At any later stage the timestamp would be written only when the commands that run beside
	// this one have completed that stage. Vulkan allows one at the top of the pipe to be written
	// before the barrier that the command waits for; the devices that there are write it behind.
	stream.Timestamp(p.QueryPool, at.query, vk.StageTopOfPipe)
	return at
}

// End writes the timestamp behind the commands for which Begin was called. They are commands of
// the given stage.
func (at Timing) End(stream *vk.Stream, stage vk.Stage) {
	if at.pool != nil {
		stream.Timestamp(at.pool.QueryPool, at.query+1, stage)
	}
}

// newStamp returns an empty stamp.
func (s *Stamps) newStamp() *stamp {
	if n := len(s.spare); n > 0 {
		st := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return st
	}
	return new(stamp)
}

// fail records why records are lost.
func (s *Stamps) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Read reads the timestamps of a batch that is complete.
func (s *Stamps) Read(queue int32, value uint64) {
	for _, p := range s.pools.take(queue, value) {
		n := len(p.stamps)
		ticks := s.ticks[:2*n]
		err := s.pools.device.Timestamps(p.QueryPool, 0, ticks)
		for k, st := range p.stamps {
			st.record.Time, st.record.EndTime = ticks[2*k], ticks[2*k+1]
			s.time(st, err != nil)
			p.stamps[k] = nil
		}
		p.stamps = p.stamps[:0]
		if err == nil {
			err = s.pools.device.ResetQueryPool(p.QueryPool, 0, uint32(2*n))
		}
		if err != nil {
			// Its queries are not known to be reset, so the pool is not used again.
			s.fail(err)
			continue
		}
		s.pools.free = append(s.pools.free, p)
	}
}

// Drop gives up the timestamps of a batch that was refused, or that a lost device may not have
// completed.
func (s *Stamps) Drop(queue int32, value uint64) {
	for _, p := range s.pools.take(queue, value) {
		for k, st := range p.stamps {
			s.time(st, true)
			p.stamps[k] = nil
		}
		p.stamps = p.stamps[:0]
		if s.queues.Lost() == nil {
			// The batch was not submitted, so the queries are still reset.
			s.pools.free = append(s.pools.free, p)
		}
	}
}

// time notes that the times of a stamp are known, or lost for good.
func (s *Stamps) time(st *stamp, lost bool) {
	st.timed, st.lost = true, lost
	s.finish(st)
}

// Complete takes the numbers of a task's operations, which is complete, into the records of its
// commands.
func (s *Stamps) Complete(t *Task) {
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
		st.op, st.final = nil, true
		s.finish(st)
	}
	t.stamps = t.stamps[:0]
}

// finish makes the record of a stamp if all of it is known.
func (s *Stamps) finish(st *stamp) {
	if !st.timed || !st.final {
		return
	}
	if !st.lost {
		s.records = append(s.records, st.record)
	}
	*st = stamp{}
	s.spare = append(s.spare, st)
	s.live--
	s.changed()
}

// Trim gives back what is kept for commands to come.
func (s *Stamps) Trim() {
	s.pools.trim()
	s.spare = nil
}
