package trace

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// roll has the timestamps of one batch.
//
// The commands of a level run after those of the level before, so that one timestamp is the end of one
// level and the begin of the next:
//
//	level 0   ─┬─ top of the pipe
//	           │  dispatch
//	level 1   ─┼─ behind the barrier
//	           │  dispatch
//	           ├─ its end
//	           ├─ top of the pipe
//	           │  another dispatch, which runs beside the first
//	end       ─┴─
//
// The first command of a level has no timestamps of its own, unless others join it there: then it has
// one for its end, and these have two each. What the levels share is decided when the batch is closed.
type roll struct {
	// value is the timeline value that the batch signals.
	value uint64
	// pools has the timestamps: number k is query k%poolQueries of pools[k/poolQueries]. used is how
	// many of them there are.
	pools []vk.QueryPool
	used  uint32
	// stamps are the commands that are timed, and levels the levels that they are in.
	stamps []*stamp
	levels []timedLevel
}

// timedLevel is a level of a batch.
type timedLevel struct {
	// first is the first command that is timed, nil if none is, and stage its stage.
	first *stamp
	stage vk.Stage
}

// Numbers of timestamps that are none.
const (
	// shared is a timestamp between two levels, until the batch is closed.
	shared = ^uint32(iota)
	// missing is one for which there is no query.
	missing
)

// level returns a level of the batch.
func (r *roll) level(l int32) *timedLevel {
	for len(r.levels) <= int(l) {
		r.levels = append(r.levels, timedLevel{})
	}
	return &r.levels[l]
}

// reset makes the roll that of no batch.
func (r *roll) reset() {
	clear(r.stamps)
	clear(r.levels)
	r.value, r.used = 0, 0
	r.pools, r.stamps, r.levels = r.pools[:0], r.stamps[:0], r.levels[:0]
}

// pendingRoll returns the roll of the queue's pending batch.
func (s *Stamps) pendingRoll(q *order.Queue) *roll {
	own, value := &s.rolls[q.Index()], q.Pending().Value()
	if n := len(*own); n > 0 && (*own)[n-1].value == value {
		return (*own)[n-1]
	}
	r := new(roll)
	if n := len(s.spareRolls); n > 0 {
		r, s.spareRolls = s.spareRolls[n-1], s.spareRolls[:n-1]
	}
	r.value = value
	*own = append(*own, r)
	return r
}

// query returns the number of another timestamp of the batch, and the query that it is. Where the device
// has none, the timestamp is missing.
func (s *Stamps) query(r *roll) (number uint32, pool vk.QueryPool) {
	if r.used == uint32(len(r.pools)*poolQueries) {
		more, err := s.pools.take()
		if err != nil {
			s.fail(err)
			return missing, vk.QueryPool{}
		}
		r.pools = append(r.pools, more)
	}
	r.used++
	return r.used - 1, r.pools[len(r.pools)-1]
}

// write writes another timestamp of the batch to a stream, and returns its number.
func (s *Stamps) write(r *roll, stream *vk.Stream, stage vk.Stage) uint32 {
	number, pool := s.query(r)
	if number != missing {
		stream.Timestamp(pool, number%poolQueries, stage)
	}
	return number
}

// close puts the timestamps that levels share into a batch to which no more commands come.
func (s *Stamps) close(q *order.Queue, b *order.Batch) {
	if s.rolls == nil {
		return
	}
	own := s.rolls[q.Index()]
	if len(own) == 0 || own[len(own)-1].value != b.Value() {
		return
	}
	r := own[len(own)-1]
	s.run = s.run[:0]
	for l := range r.levels {
		if b.Level(int32(l)).Len() == 0 {
			continue
		}
		first := r.levels[l].first
		begins := first != nil && first.begin == shared
		switch {
		case begins && first.end == shared && len(s.run) > 0 && s.shares(first):
			first.begin = s.run[0].begin
		case begins:
			first.begin = s.between(r, b, int32(l))
		case len(s.run) > 0:
			s.between(r, b, int32(l))
		}
		if first != nil && first.end == shared {
			s.run = append(s.run, first)
		}
	}
	if len(s.run) > 0 {
		s.between(r, b, b.Levels())
	}
}

// between writes a timestamp before a level of the batch, and returns its number. It is the end of the
// commands in s.run, which share the time since the one before the first of them.
func (s *Stamps) between(r *roll, b *order.Batch, l int32) (number uint32) {
	number, pool := s.query(r)
	if number != missing {
		// Behind a barrier, all commands before have ended. Level 0 has none, and follows no commands
		// of earlier batches.
		stage := vk.StageAllCommands
		if l == 0 {
			stage = vk.StageTopOfPipe
		}
		b.StampLevel(l, pool, number%poolQueries, stage)
	}
	for i, st := range s.run {
		st.end, st.part, st.parts = number, uint32(i), uint32(len(s.run))
		s.run[i] = nil
	}
	s.run = s.run[:0]
	return number
}

// takeRoll returns the roll of a batch of a queue, which has none any more, or nil.
func (s *Stamps) takeRoll(queue int32, value uint64) *roll {
	if s.rolls == nil {
		return nil
	}
	own := s.rolls[queue]
	i, found := slices.BinarySearchFunc(own, value, func(r *roll, v uint64) int { return cmp.Compare(r.value, v) })
	if !found {
		return nil
	}
	r := own[i]
	s.rolls[queue] = slices.Delete(own, i, i+1)
	return r
}

// spareRoll keeps a roll for another batch.
func (s *Stamps) spareRoll(r *roll) {
	r.reset()
	s.spareRolls = append(s.spareRolls, r)
}

// read reads the timestamps of a batch that is complete, by their numbers. It gives the pools back whose
// queries are reset; the others are not used again.
func (s *Stamps) read(r *roll) (ticks []uint64, err error) {
	if n := len(r.pools) * poolQueries; len(s.ticks) < n {
		s.ticks = make([]uint64, n)
	}
	ticks = s.ticks[:r.used]
	for i, p := range r.pools {
		part := ticks[i*poolQueries : min((i+1)*poolQueries, len(ticks))]
		failed := s.pools.device.Timestamps(p, 0, part)
		err = cmp.Or(err, failed)
		if failed == nil {
			failed = s.pools.device.ResetQueryPool(p, 0, uint32(len(part)))
		}
		if failed != nil {
			s.fail(failed)
			continue
		}
		s.pools.giveBack(p)
	}
	return ticks, err
}
