package trace

import (
	"time"

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
	// batches has for each queue the batches with timed commands that are in flight and the pending one,
	// in their order.
	batches [][]*timedBatch
	// spare are stamps for reuse, and spareBatches records of batches.
	spare        []*stamp
	spareBatches []*timedBatch
	// took has how many ticks launches have taken when they were last measured. Launches that took no
	// more than short may share timestamps.
	took  map[launch]uint64
	short uint64
	// live counts the stamps that have been neither made a record nor given up.
	live int
	// records are those that the trace has not taken yet, and due is how many of them it waits for.
	records []ompt.Record
	due     int
	// err is why records were lost, the first reason since the tool was told of one.
	err error
	// lose is Source.Lose.
	lose func(error)
	// changed is called when the records are as many as are due, and when no stamp is live.
	changed func()
	// clock is a late reading of the device's clock.
	clock *vk.Calibration
	// ticks is working memory of read, and run of close.
	ticks []uint64
	run   []*stamp
	// sharing says that the launches in run are short.
	sharing bool
}

// stamp is a command between two timestamps.
type stamp struct {
	op *construct.Op
	// label is the kernel's name, if the command is the launch of a kernel, and amount its number of
	// workgroups, or else the number of bytes that the command moves.
	label  string
	amount uint64
	queue  int32
	// begin and end are the numbers of the timestamps in the batch. The command has the part-th part of
	// the time between, out of parts; parts is 0 if neither of the two is for other commands as well.
	begin, end  uint32
	part, parts uint32
	// launch says that the command is the launch of a kernel.
	launch bool
	// timed says that the command's batch is complete or will never run.
	timed bool
	// lost says that the times are not known.
	lost bool
	// from and to are the times of a stamp that is timed.
	from, to uint64
	// final is the record without times if the task was complete before the times were known.
	final *ompt.Record
}

// Task has the stamps of one task's commands.
type Task struct {
	stamps []*stamp
}

// Timing is a command that is being timed, the zero value one that is not.
type Timing struct {
	stamps *Stamps
	batch  *timedBatch
	stamp  *stamp
	level  int32
}

// Begin begins the timing of the commands that come next on a level of q's pending batch: they are part
// of the task's operation op, and run so many workgroups of a kernel, or move so many bytes. Timing.End
// comes behind them. They are not timed where commands of this kind are not traced, or cannot be on
// this queue.
func (s *Stamps) Begin(q *order.Queue, level int32, t *Task, op *construct.Op, amount uint64) Timing {
	traced := s.dataOps
	if op.Type == 0 {
		traced = s.submits
	}
	if !traced || s.queues.Info(q).TimestampBits == 0 {
		return Timing{}
	}
	r, stream := s.pendingBatch(q), q.Pending().Level(level)
	st := s.newStamp()
	st.op, st.begin, st.end, st.queue, st.amount = op, shared, shared, q.Index(), amount
	if st.launch = op.Type == 0; st.launch {
		st.label = op.Kernel
	}
	of := r.level(level)
	if of.first != nil && of.first.end == shared {
		of.first.end = s.write(r, stream, of.stage)
	}
	if stream.Len() > 0 {
		// At any later stage the timestamp would be written only when the commands that run beside
		// this one have completed that stage.
		st.begin = s.write(r, stream, vk.StageTopOfPipe)
	}
	r.stamps = append(r.stamps, st)
	t.stamps = append(t.stamps, st)
	s.live++
	return Timing{s, r, st, level}
}

// End ends the timing of the commands for which Begin was called. They are commands of the given stage,
// in stream.
func (at Timing) End(stream *vk.Stream, stage vk.Stage) {
	if at.stamp == nil {
		return
	}
	if of := at.batch.level(at.level); of.first == nil {
		of.first, of.stage = at.stamp, stage
	} else {
		at.stamp.end = at.stamps.write(at.batch, stream, stage)
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

// Read reads the timestamps of a batch that is complete. If that shows that the device is lost, so that the batch may
// not have run, Read calls Source.Lose.
func (s *Stamps) Read(b *order.Batch) {
	r := s.takeBatch(b)
	if r == nil {
		return
	}
	ticks, err := s.read(r)
	if bits := s.queues.Info(b.Queue()).TimestampBits; bits < s.clock.Bits {
		// The batch ended not long ago.
		for i, now := 0, time.Now(); i < len(ticks); i++ {
			ticks[i] = s.clock.Extend(ticks[i], bits, now)
		}
	}
	for _, st := range r.stamps {
		if err != nil || st.begin >= missing || st.end >= missing {
			s.time(st, true)
			continue
		}
		begin, end := ticks[st.begin], ticks[st.end]
		if took := end - begin; st.parts > 0 && end >= begin { // the device's counter may begin anew
			if st.launch && st.part == 0 {
				s.measured(st.kind(), took/uint64(st.parts))
			}
			begin, end = begin+took*uint64(st.part)/uint64(st.parts), begin+took*uint64(st.part+1)/uint64(st.parts)
		}
		st.from, st.to = begin, end
		s.time(st, false)
	}
	s.keepBatch(r)
}

// Drop gives up the timestamps of a batch that was refused, or that a lost device may not have
// completed.
func (s *Stamps) Drop(b *order.Batch) {
	r := s.takeBatch(b)
	if r == nil {
		return
	}
	for _, st := range r.stamps {
		s.time(st, true)
	}
	if s.queues.Lost() == nil {
		// The batch was not submitted, so the queries are still reset.
		for _, p := range r.pools {
			s.pools.giveBack(p)
		}
	}
	s.keepBatch(r)
}

// time notes that the times of a stamp are known, or lost for good.
func (s *Stamps) time(st *stamp, lost bool) {
	st.timed, st.lost = true, lost
	if st.final == nil {
		return
	}
	if !lost {
		s.records = append(s.records, *st.final)
		r := &s.records[len(s.records)-1]
		r.Time, r.EndTime = st.from, st.to
	}
	s.finish(st)
}

// Complete takes the numbers of a task's operations, which is complete, into the records of its
// commands.
func (s *Stamps) Complete(t *Task) {
	for i, st := range t.stamps {
		t.stamps[i] = nil
		switch {
		case !st.timed:
			st.final = new(ompt.Record)
			st.fill(st.final)
			st.op = nil
			continue
		case !st.lost:
			s.records = append(s.records, ompt.Record{})
			st.fill(&s.records[len(s.records)-1])
		}
		s.finish(st)
	}
	t.stamps = t.stamps[:0]
}

// fill makes the record of a stamp whose task is complete. It has no times if they are not known.
func (st *stamp) fill(r *ompt.Record) {
	op := st.op
	r.Queue, r.TargetID, r.HostOpID, r.Time, r.EndTime = int(st.queue), op.TargetID, op.ID, st.from, st.to
	if st.launch {
		r.Type, r.RequestedNumTeams, r.GrantedNumTeams, r.Label = ompt.CallbackTargetSubmitEMI, op.Teams, st.amount, st.label
	} else {
		r.Type, r.DataOp, r.Label = ompt.CallbackTargetDataOpEMI, op.DataOp, op.Label
		r.DataOp.Bytes = st.amount
	}
}

// finish ends the life of a stamp that has its record, or will never have one.
func (s *Stamps) finish(st *stamp) {
	*st = stamp{}
	s.spare = append(s.spare, st)
	s.live--
	if s.live == 0 || len(s.records) >= s.due {
		s.changed()
	}
}

// Trim gives back what is kept for commands to come.
func (s *Stamps) Trim() {
	s.pools.trim()
	s.spare, s.spareBatches = nil, nil
}
