package vkomp

import (
	"context"
	"weak"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/sched/protect"
)

// maxTaskgraphRecords is the largest number of records that a TaskgraphRecords keeps for a runtime.
const maxTaskgraphRecords = 64

// TaskgraphRecords keeps the records of one taskgraph construct (see [Taskgraph]), usually as a
// variable of the package or of the object whose method contains the construct. The zero
// TaskgraphRecords is empty and ready for use. It must not be copied, and is safe for concurrent
// use.
//
// For each runtime it keeps a record for each ID, at most 64, of which the one that was used least
// recently makes place for another. A record refers to the slices, kernels and bodies of its
// constructs. It lasts until Reset discards it, the runtime is closed, or the TaskgraphRecords is
// garbage.
type TaskgraphRecords struct {
	mu lockrank.Mutex[lockrank.Leaf]
	// of has the records of each runtime by ID.
	of map[*Runtime]map[int]*taskgraphRecord
	// uses counts encounters.
	uses uint64
}

// taskgraphRecord is the record of a taskgraph region.
type taskgraphRecord struct {
	of *TaskgraphRecords
	rt *Runtime
	id int
	// made says that the block was executed and its constructs are recorded. used is the value of
	// uses at the last encounter. The lock of the TaskgraphRecords guards both.
	made bool
	used uint64
	// bound are the parameters with their values when the record was made.
	bound *bindings
	// turn is a semaphore: see takeTurn. Who has sent a token to it uses constructs, which do not
	// change otherwise once the record is made.
	turn       chan struct{}
	constructs []recorded
}

// encounter returns the record that an encounter is to replay, or one that it is to make: then
// replay is false. It returns nil if the block is to be executed without being recorded.
func (r *TaskgraphRecords) encounter(rt *Runtime, g *Taskgraph, bound *bindings) (record *taskgraphRecord, replay bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	records := r.of[rt]
	r.uses++
	if found := records[g.ID]; found != nil && !g.Reset {
		switch {
		case !found.made:
			return nil, false
		case found.bound.like(bound):
			found.used = r.uses
			return found, true
		}
	}
	if !bound.distinct(func(i int) bool { return i < bound.own }) {
		if g.Reset {
			r.discardLocked(rt, g.ID)
		}
		return nil, false
	}
	if records == nil {
		records = make(map[int]*taskgraphRecord)
		if r.of == nil {
			r.of = make(map[*Runtime]map[int]*taskgraphRecord)
		}
		r.of[rt] = records
	}
	if _, ok := records[g.ID]; !ok && len(records) == maxTaskgraphRecords {
		least := (*taskgraphRecord)(nil)
		for _, other := range records {
			if least == nil || other.used < least.used {
				least = other
			}
		}
		delete(records, least.id)
	}
	record = &taskgraphRecord{of: r, rt: rt, id: g.ID, bound: bound, used: r.uses, turn: make(chan struct{}, 1)}
	records[g.ID] = record
	return record, false
}

// find returns the record that an encounter would replay, or nil.
func (r *TaskgraphRecords) find(rt *Runtime, id int, bound *bindings) *taskgraphRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.of[rt][id]; found != nil && found.made && found.bound.like(bound) {
		return found
	}
	return nil
}

// record executes the block and records its constructs. Without success no record is left.
func (r *taskgraphRecord) record(ctx context.Context, block func(context.Context) error) (err error) {
	rt := r.rt
	recording := &recording{rt: rt, bound: r.bound, done: ctx.Done()}
	// Deferred, because the block may call runtime.Goexit.
	complete := false
	defer func() {
		r.constructs, complete = recording.end(complete)
		r.constructs = withCompounds(r.constructs)
		if complete {
			r.bound, complete = r.bound.ofRecord()
		}
		r.of.keep(r, complete)
	}()
	c := rt.current(ctx)
	c.recording = recording
	err = protect.Call(func() error { return block(context.WithValue(ctx, regionKey{rt}, &c)) })
	// The tasks of a block whose context has ended may have been dropped.
	complete = err == nil && ctx.Err() == nil
	return err
}

// keep says whether a record is made. If it is not, or the runtime is closed, it is removed, unless
// another has replaced it.
func (r *TaskgraphRecords) keep(record *taskgraphRecord, made bool) {
	rt := record.rt
	if made && !rt.keepsRecords(r) {
		made = false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record.made = made
	if !made && r.of[rt][record.id] == record {
		r.forgetLocked(record)
	}
}

// discard removes the record with an ID, if there is one.
func (r *TaskgraphRecords) discard(rt *Runtime, id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.discardLocked(rt, id)
}

func (r *TaskgraphRecords) discardLocked(rt *Runtime, id int) {
	if found := r.of[rt][id]; found != nil {
		r.forgetLocked(found)
	}
}

// forgetLocked removes a record.
func (r *TaskgraphRecords) forgetLocked(record *taskgraphRecord) {
	records := r.of[record.rt]
	if delete(records, record.id); len(records) == 0 {
		delete(r.of, record.rt)
	}
}

// forget removes the records of a runtime.
func (r *TaskgraphRecords) forget(rt *Runtime) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, rt)
}

// recordsKeepers are the TaskgraphRecords that have records of a runtime.
type recordsKeepers struct {
	all map[weak.Pointer[TaskgraphRecords]]struct{}
	// sweep is the number of them at which those that are garbage are dropped.
	sweep int
}

// keepsRecords notes that r has records of the runtime, so that Close removes them. It reports
// whether the runtime is not closed.
func (rt *Runtime) keepsRecords(r *TaskgraphRecords) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.open() != nil {
		return false
	}
	k := &rt.recorded
	if k.all == nil {
		k.all = make(map[weak.Pointer[TaskgraphRecords]]struct{})
	}
	k.all[weak.Make(r)] = struct{}{}
	if len(k.all) > k.sweep {
		for w := range k.all {
			if w.Value() == nil {
				delete(k.all, w)
			}
		}
		k.sweep = max(16, 2*len(k.all))
	}
	return true
}

// forgetRecords removes all records of the runtime, which is closed.
func (rt *Runtime) forgetRecords() {
	rt.mu.Lock()
	keepers := rt.recorded.all
	rt.recorded.all = nil
	rt.mu.Unlock()
	for w := range keepers {
		if r := w.Value(); r != nil {
			r.forget(rt)
		}
	}
}

// replay generates the tasks of the recorded constructs.
func (r *taskgraphRecord) replay(ctx context.Context, bound *bindings) error {
	rt := r.rt
	if err := r.takeTurn(ctx); err != nil {
		return rt.failure(ctx, err)
	}
	defer r.endTurn()
	defer rt.using.leave(rt.using.enter())
	c := rt.current(ctx)
	bound = bound.ordered(r.bound)
	for _, construct := range r.constructs {
		if err := construct.replay(ctx, &c, bound); err != nil {
			return err
		}
	}
	return nil
}

// takeTurn waits until no other goroutine uses the constructs, or ctx ends, whose cause it returns then. endTurn is called when
// the caller no longer uses them.
func (r *taskgraphRecord) takeTurn(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *taskgraphRecord) endTurn() { <-r.turn }
