package trace

import (
	gocmp "cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/vk"
)

// stamping returns a rig whose commands are timed, without a goroutine that takes the records.
func stamping(t reporter) *rig {
	r := newRig(t)
	r.stamps.submits, r.stamps.dataOps = true, true
	return r
}

// A record is made when the batch has been read and the task is complete, whichever comes first,
// with the numbers that the operation has at the task's end.
func TestRecordIsMadeWhenTimesAndNumbersAreKnown(t *testing.T) {
	kernel := ompt.Record{
		Type: ompt.CallbackTargetSubmitEMI, Time: 1, EndTime: 2, TargetID: 104, HostOpID: 4,
		RequestedNumTeams: 10, GrantedNumTeams: 6, Label: "k",
	}
	copied := ompt.Record{
		Type: ompt.CallbackTargetDataOpEMI, Time: 1, EndTime: 2, TargetID: 104, HostOpID: 4, Queue: 1,
		DataOp: ompt.DataOp{Type: ompt.TargetDataTransferToDevice, Bytes: 6, Label: "x"}, Label: "x",
	}
	for _, c := range []struct {
		op    *construct.Op
		queue int
		want  ompt.Record
	}{{kernelOp(4, 10), 0, kernel}, {copyOp(4, 10), 1, copied}} {
		for _, readFirst := range []bool{false, true} {
			t.Run(fmt.Sprint(c.want.Type, " read first: ", readFirst), func(t *testing.T) {
				r := stamping(t)
				defer r.end()
				var task Task
				op := *c.op
				op.ID, op.TargetID = 0, 0
				if !r.place(c.queue, &task, &op, 6) {
					t.Fatal("the command is not timed")
				}
				r.locked(func() { r.submit(c.queue) })
				complete := func() {
					op.ID, op.TargetID = c.op.ID, c.op.TargetID
					r.stamps.Complete(&task)
					op = construct.Op{} // the task's operations are used for another task
				}
				if readFirst {
					r.run(c.queue)
				} else {
					complete()
				}
				if len(r.stamps.records) != 0 || r.stamps.live != 1 {
					t.Errorf("%d records, %d live stamps before all is known", len(r.stamps.records), r.stamps.live)
				}
				if readFirst {
					complete()
				} else {
					r.run(c.queue)
				}
				if diff := cmp.Diff([]ompt.Record{c.want}, r.stamps.records); diff != "" || r.stamps.live != 0 {
					t.Errorf("%d live stamps, records (-want +got):\n%s", r.stamps.live, diff)
				}
			})
		}
	}
}

// Only commands of the kinds that are wanted are timed, on queues that have timestamps.
func TestCommandsThatAreNotTracedHaveNoTimestamps(t *testing.T) {
	for _, c := range []struct {
		submits, dataOps bool
		op               *construct.Op
		queue            int
		want             bool
	}{
		{true, false, kernelOp(1, 1), 0, true},
		{true, false, copyOp(1, 1), 0, false},
		{false, true, kernelOp(1, 1), 0, false},
		{false, true, copyOp(1, 1), 0, true},
		{true, true, copyOp(1, 1), untimed, false},
		{false, false, kernelOp(1, 1), 0, false},
	} {
		r := newRig(t)
		r.stamps.submits, r.stamps.dataOps = c.submits, c.dataOps
		var task Task
		if got := r.place(c.queue, &task, c.op, 1); got != c.want {
			t.Errorf("%+v: timed: %t", c, got)
		}
		r.locked(func() { r.submit(c.queue) })
		r.run(c.queue)
		r.stamps.Complete(&task)
		if n := len(r.stamps.records); n == 1 != c.want {
			t.Errorf("%+v: %d records", c, n)
		}
		if n := len(r.d.pools); n == 1 != c.want {
			t.Errorf("%+v: %d pools", c, n)
		}
		r.end()
	}
}

// The zero value is for a device without a trace.
func TestZeroStampsTimeNothing(t *testing.T) {
	var s Stamps
	var task Task
	if got := s.Begin(nil, 0, &task, kernelOp(1, 1), 1); got != (Timing{}) {
		t.Errorf("timing %+v", got)
	}
	Timing{}.End(nil, vk.StageCompute)
	s.Read(nil)
	s.Drop(nil)
	s.Complete(&task)
	s.Trim()
	if s.live != 0 || s.records != nil {
		t.Errorf("%d live stamps, records %v", s.live, s.records)
	}
}

func TestBatchOfMoreCommandsThanAPoolHasTimestampsUsesSeveralPools(t *testing.T) {
	r := stamping(t)
	defer r.end()
	var task Task
	const commands = poolQueries/2*2 + 1
	for k := range uint64(commands) {
		r.place(0, &task, copyOp(1, 1), k)
	}
	r.locked(func() { r.submit(0) })
	if n := len(r.d.pools); n != 3 {
		t.Errorf("%d pools", n)
	}
	r.run(0)
	r.stamps.Complete(&task)
	if len(r.stamps.records) != commands {
		t.Fatalf("%d records", len(r.stamps.records))
	}
	for k, record := range r.stamps.records {
		if record.DataOp.Bytes != uint64(k) || record.Time != uint64(2*k+1) || record.EndTime != uint64(2*k+2) {
			t.Errorf("record %d: %+v", k, record)
		}
	}
	// The pools are used again, and destroyed when nobody needs them.
	r.place(1, &task, copyOp(1, 1), 1)
	r.locked(func() { r.submit(1) })
	r.stamps.Trim()
	if n := len(r.d.pools); n != 1 {
		t.Errorf("%d pools are left with one in use", n)
	}
	r.run(1)
	r.stamps.Complete(&task)
	r.stamps.Trim()
	if n := len(r.d.pools); n != 0 {
		t.Errorf("%d pools are left with none in use", n)
	}
}

// A failure of the device loses records, and is reported; the commands run all the same.
func TestFailuresOfQueriesLoseRecords(t *testing.T) {
	failure := errors.New("no queries")
	for name, c := range map[string]struct {
		placing, reading func(d *fakeDevice)
		records          int
	}{
		"creation": {func(d *fakeDevice) { d.queryError = failure }, func(d *fakeDevice) {}, 0},
		"reading":  {func(d *fakeDevice) {}, func(d *fakeDevice) { d.queryError = failure }, 0},
		"reset":    {func(d *fakeDevice) {}, func(d *fakeDevice) { d.resetError = failure }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := stamping(t)
			defer r.end()
			var task Task
			c.placing(r.d)
			r.place(0, &task, kernelOp(1, 1), 1)
			r.locked(func() { r.submit(0) })
			c.reading(r.d)
			r.run(0)
			r.stamps.Complete(&task)
			if len(r.stamps.records) != c.records || r.stamps.live != 0 || !errors.Is(r.stamps.err, failure) {
				t.Errorf("%d records, %d live stamps, error %v", len(r.stamps.records), r.stamps.live, r.stamps.err)
			}
			// What is placed next has its record, in a pool whose queries are reset.
			r.d.queryError, r.d.resetError = nil, nil
			r.place(0, &task, kernelOp(1, 1), 1)
			r.locked(func() { r.submit(0) })
			r.run(0)
			r.stamps.Complete(&task)
			if len(r.stamps.records) != c.records+1 {
				t.Errorf("%d records after a command more", len(r.stamps.records))
			}
		})
	}
}

// Commands of batches that do not run leave no record. The pool of a batch that was not submitted
// is used again, that of a batch on a lost device is not.
func TestDroppedBatchesLeaveNoRecords(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("lost: ", lost), func(t *testing.T) {
			r := stamping(t)
			var task Task
			r.place(0, &task, kernelOp(1, 1), 1)
			if lost {
				r.locked(func() { r.submit(0) })
				r.d.lost = true
				r.queues.Lose(vk.ErrDeviceLost)
				r.queues.RefuseAll(vk.ErrDeviceLost)
			} else {
				r.d.submitError = vk.ErrOutOfMemory
			}
			r.locked(func() { r.submit(0) })
			if r.stamps.live != 1 {
				t.Errorf("%d live stamps before the task is complete", r.stamps.live)
			}
			r.stamps.Complete(&task)
			if len(r.stamps.records) != 0 || r.stamps.live != 0 || r.stamps.err != nil {
				t.Errorf("%d records, %d live stamps, error %v", len(r.stamps.records), r.stamps.live, r.stamps.err)
			}
			r.d.submitError = nil
			r.place(0, &task, kernelOp(1, 1), 1)
			r.locked(func() { r.submit(0) })
			if n := len(r.d.pools); n != 1 != lost {
				t.Errorf("%d pools", n)
			}
			if !lost {
				r.run(0)
			}
			r.end()
		})
	}
}

// history is a random history of commands, batches and tasks, with what it has to leave.
type history struct {
	*rig
	// tasks are those that are not complete.
	tasks []*modelTask
	// placed are all commands that are timed, and ran the batches that have run.
	placed []modelCommand
	ran    map[batch]bool
	ids    ompt.ID
}

type batch struct {
	queue int
	value uint64
}

type modelTask struct {
	Task
	ops []*construct.Op
}

type modelCommand struct {
	op     *construct.Op
	amount uint64
	batch  batch
	level  int32
}

func (h *history) place(t *rapid.T) {
	if len(h.tasks) == 0 || rapid.IntRange(0, 3).Draw(t, "another task") == 0 {
		h.tasks = append(h.tasks, new(modelTask))
	}
	task := rapid.SampledFrom(h.tasks).Draw(t, "task")
	queue := rapid.IntRange(0, untimed).Draw(t, "queue")
	op := kernelOp(0, 5)
	if rapid.Bool().Draw(t, "copy") {
		op = copyOp(0, 5)
	}
	task.ops = append(task.ops, op)
	for amount := range rapid.Uint64Range(1, 3).Draw(t, "commands") {
		value := h.queues.All()[queue].Pending().Value()
		level := rapid.Int32Range(0, 4).Draw(t, "level")
		timed := h.placeAt(queue, level, &task.Task, op, amount)
		if timed != (queue != untimed) {
			t.Errorf("command on queue %d is timed: %t", queue, timed)
		}
		if timed {
			h.placed = append(h.placed, modelCommand{op, amount, batch{queue, value}, level})
		}
	}
}

// complete completes a task, whose operations get their numbers as late as that.
func (h *history) complete(i int) {
	for _, op := range h.tasks[i].ops {
		h.ids++
		op.ID, op.TargetID = h.ids, 1000+h.ids
	}
	h.stamps.Complete(&h.tasks[i].Task)
	h.tasks = slices.Delete(h.tasks, i, i+1)
}

func (h *history) run(queue int) (some bool) {
	value := h.d.reached[queue]
	h.rig.run(queue)
	h.ran[batch{queue, h.d.reached[queue]}] = true
	return h.d.reached[queue] != value
}

// want returns the records of the commands that have run, without times.
func (h *history) want() (records []ompt.Record) {
	for _, c := range h.placed {
		if !h.ran[c.batch] {
			continue
		}
		r := ompt.Record{Type: ompt.CallbackTargetSubmitEMI, TargetID: c.op.TargetID, HostOpID: c.op.ID, Queue: c.batch.queue}
		if c.op.Type == 0 {
			r.RequestedNumTeams, r.GrantedNumTeams, r.Label = c.op.Teams, c.amount, c.op.Kernel
		} else {
			r.Type, r.DataOp, r.Label = ompt.CallbackTargetDataOpEMI, c.op.DataOp, c.op.Label
			r.DataOp.Bytes = c.amount
		}
		records = append(records, r)
	}
	return records
}

// checkTimes checks that the records say of each command that it ran after those of lower levels of its
// batch, and after those of the batches before.
func (h *history) checkTimes(t *rapid.T) {
	type key struct {
		id     ompt.ID
		amount uint64
	}
	of := make(map[key]*ompt.Record)
	for i := range h.stamps.records {
		r := &h.stamps.records[i]
		if r.Time == 0 || r.EndTime <= r.Time {
			t.Errorf("times of %+v", *r)
		}
		of[key{r.HostOpID, r.GrantedNumTeams + r.DataOp.Bytes}] = r
	}
	for _, a := range h.placed {
		for _, b := range h.placed {
			first, second := of[key{a.op.ID, a.amount}], of[key{b.op.ID, b.amount}]
			if first == nil || second == nil || a.batch.queue != b.batch.queue || a.batch.value > b.batch.value || a.batch.value == b.batch.value && a.level >= b.level {
				continue
			}
			if second.Time < first.EndTime {
				t.Errorf("level %d of batch %v has %+v, level %d of batch %v %+v", a.level, a.batch, *first, b.level, b.batch, *second)
			}
		}
	}
}

func TestRandomHistoriesLeaveTheRecordsOfWhatRan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{rig: stamping(t), ran: map[batch]bool{}}
		h.d.step = 1000 // launches that share timestamps get parts of it
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			queue := rapid.IntRange(0, untimed).Draw(t, "of queue")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			default:
				h.place(t)
			case 0, 1, 2:
				h.locked(func() { h.submit(queue) })
			case 3, 4, 5:
				h.run(queue)
			case 6:
				h.d.submitError = vk.ErrOutOfMemory
				h.locked(func() { h.submit(queue) })
				h.d.submitError = nil
			case 7:
				if n := len(h.tasks); n > 0 {
					h.complete(rapid.IntRange(0, n-1).Draw(t, "complete"))
				}
			case 8:
				if rapid.IntRange(0, 4).Draw(t, "trim") == 0 {
					h.stamps.Trim()
				}
			}
		}
		for queue := range h.queues.All() {
			h.locked(func() { h.submit(queue) })
			for h.run(queue) {
			}
		}
		for len(h.tasks) > 0 {
			h.complete(0)
		}
		h.checkTimes(t)
		for i := range h.stamps.records {
			h.stamps.records[i].Time, h.stamps.records[i].EndTime = 0, 0
		}
		byNumber := cmpopts.SortSlices(func(a, b ompt.Record) bool {
			return gocmp.Or(gocmp.Compare(a.HostOpID, b.HostOpID), gocmp.Compare(a.GrantedNumTeams+a.DataOp.Bytes, b.GrantedNumTeams+b.DataOp.Bytes)) < 0
		})
		if diff := cmp.Diff(h.want(), h.stamps.records, byNumber, cmpopts.EquateEmpty()); diff != "" || h.stamps.live != 0 {
			t.Errorf("%d live stamps, records (-want +got):\n%s", h.stamps.live, diff)
		}
		if h.stamps.err != nil {
			t.Error(h.stamps.err)
		}
		h.stamps.Trim()
		h.end()
	})
}

// A queue whose timestamps have fewer bits than the device's clock leaves records on that clock, too.
func TestTimesOfAQueueWithFewerBitsAreOnTheDevicesClock(t *testing.T) {
	r := stamping(t)
	defer r.end()
	r.queues.Info(r.queues.All()[1]).TimestampBits = 32
	r.d.narrow = ^uint64(1<<32 - 1)
	r.d.ticks = 9<<32 - 2 // the counter of 32 bits begins anew during the second command
	r.trace.after = vk.Calibration{Ticks: 9<<32 - 1000, Host: time.Now(), Period: 1e6, Bits: 64}
	for i, want := range [][2]uint64{{9<<32 - 1, 9 << 32}, {9<<32 + 1, 9<<32 + 2}} {
		var task Task
		r.place(1, &task, copyOp(1, 10), 6)
		r.locked(func() { r.submit(1) })
		r.run(1)
		r.stamps.Complete(&task)
		if got := r.stamps.records[i]; got.Time != want[0] || got.EndTime != want[1] {
			t.Errorf("record %d is from %#x to %#x, want %#x", i, got.Time, got.EndTime, want)
		}
	}
}
