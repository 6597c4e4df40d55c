package trace

import (
	"cmp"
	"errors"
	"slices"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// timedBatch has the timestamps of one batch.
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
type timedBatch struct {
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
func (r *timedBatch) level(l int32) *timedLevel {
	for len(r.levels) <= int(l) {
		r.levels = append(r.levels, timedLevel{})
	}
	return &r.levels[l]
}

// reset makes r the record of no batch.
func (r *timedBatch) reset() {
	clear(r.stamps)
	clear(r.levels)
	r.value, r.used = 0, 0
	r.pools, r.stamps, r.levels = r.pools[:0], r.stamps[:0], r.levels[:0]
}

// pendingBatch returns the record of the queue's pending batch.
func (s *Stamps) pendingBatch(q *order.Queue) *timedBatch {
	own, value := &s.batches[q.Index()], q.Pending().Value()
	if n := len(*own); n > 0 && (*own)[n-1].value == value {
		return (*own)[n-1]
	}
	r := new(timedBatch)
	if n := len(s.spareBatches); n > 0 {
		r, s.spareBatches = s.spareBatches[n-1], s.spareBatches[:n-1]
	}
	r.value = value
	*own = append(*own, r)
	return r
}

// query returns the number of another timestamp of the batch, and the query that it is. Where the device
// has none, the timestamp is missing.
func (s *Stamps) query(r *timedBatch) (number uint32, pool vk.QueryPool) {
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
func (s *Stamps) write(r *timedBatch, stream *vk.Stream, stage vk.Stage) uint32 {
	number, pool := s.query(r)
	if number != missing {
		stream.Timestamp(pool, number%poolQueries, stage)
	}
	return number
}

// close puts the timestamps that levels share into a batch to which no more commands come.
func (s *Stamps) close(b *order.Batch) {
	if s.batches == nil {
		return
	}
	own := s.batches[b.Queue().Index()]
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
func (s *Stamps) between(r *timedBatch, b *order.Batch, l int32) (number uint32) {
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

// takeBatch removes the record of a batch and returns it, nil if there is none.
func (s *Stamps) takeBatch(b *order.Batch) *timedBatch {
	if s.batches == nil {
		return nil
	}
	own := &s.batches[b.Queue().Index()]
	i, found := slices.BinarySearchFunc(*own, b.Value(), func(r *timedBatch, v uint64) int { return cmp.Compare(r.value, v) })
	if !found {
		return nil
	}
	r := (*own)[i]
	*own = slices.Delete(*own, i, i+1)
	return r
}

// keepBatch keeps a record for another batch.
func (s *Stamps) keepBatch(r *timedBatch) {
	r.reset()
	s.spareBatches = append(s.spareBatches, r)
}

// read reads the timestamps of a batch that is complete, by their numbers. It gives the pools back whose
// queries are reset; the others are not used again.
func (s *Stamps) read(r *timedBatch) (ticks []uint64, err error) {
	if n := len(r.pools) * poolQueries; len(s.ticks) < n {
		s.ticks = make([]uint64, n)
	}
	ticks = s.ticks[:r.used]
	for i, p := range r.pools {
		part := ticks[i*poolQueries : min((i+1)*poolQueries, len(ticks))]
		failed := s.pools.device.Timestamps(p, 0, part)
		err = cmp.Or(err, failed)
		if errors.Is(failed, vk.ErrDeviceLost) {
			s.lose(failed)
		}
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
