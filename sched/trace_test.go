package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// listener gives the operations of a rig's constructs their numbers, as a tool does.
type listener struct {
	mu  sync.Mutex
	ops map[ompt.ID]heard
	// regions is the number of constructs so far.
	regions ompt.ID
}

// heard is an operation and the label of its construct.
type heard struct {
	construct.Op
	label string
}

func (l *listener) observe(label string) construct.Observer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.regions++
	return &listening{l, l.regions, label}
}

type listening struct {
	*listener
	region ompt.ID
	label  string
}

func (*listening) Follows(tasks.Witness)                   {}
func (*listening) Dropped()                                {}
func (*listening) Created(n *tasks.Node, _ []tasks.Depend) {}
func (*listening) Release()                                {}

func (*listening) Interest() (run, operations bool) { return true, true }
func (*listening) Begin()                           {}
func (*listening) Map([]ompt.MapItem)               {}
func (*listening) End(error)                        {}

func (l *listening) Op(end ompt.ScopeEndpoint, op *construct.Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end == ompt.ScopeBegin {
		op.ID, op.TargetID = ompt.ID(1000+len(l.ops)), l.region
		l.ops[op.ID] = heard{*op, l.label}
	}
}

// tracing is a rig with a trace.
type tracing struct {
	*rig
	ompt.Device
	trace    *trace.Trace
	listener listener
	// size is the number of records in a buffer.
	size int

	mu      sync.Mutex
	records []ompt.Record
}

func newTracing(t *testing.T, r *rig) *tracing {
	t.Helper()
	trace, err := r.s.NewTrace(7)
	if err != nil {
		t.Fatal(err)
	}
	tr := &tracing{rig: r, Device: trace, trace: trace, size: 3, listener: listener{ops: make(map[ompt.ID]heard)}}
	r.watches, r.observe = false, tr.listener.observe
	if got := tr.SetTraceOMPT(true, 0); got != ompt.SetSometimes {
		t.Errorf("all records: %v", got)
	}
	return tr
}

func (tr *tracing) start() {
	tr.t.Helper()
	if err := tr.StartTrace(func(int) []ompt.Record { return make([]ompt.Record, tr.size) }, func(_ int, records []ompt.Record, _ bool) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.records = append(tr.records, records...)
	}); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tracing) stop() {
	tr.t.Helper()
	if err := tr.StopTrace(); err != nil {
		tr.t.Error(err)
	}
}

// close ends the trace and closes the rig.
func (tr *tracing) close() {
	tr.t.Helper()
	tr.d.release()
	tr.taskwait()
	tr.trace.End()
	tr.rig.close()
}

// of returns the records of a construct's kernel, or of its data operations.
func (tr *tracing) of(label string, kind ompt.Callback) (records []ompt.Record) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, r := range tr.records {
		if r.Type == kind && tr.listener.ops[r.HostOpID].label == label {
			records = append(records, r)
		}
	}
	return records
}

// check compares each record with the operation that it names, and the number of records with
// what the queues have done since before.
func (tr *tracing) check(before Stats) {
	tr.t.Helper()
	after := tr.s.Stats()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.listener.mu.Lock()
	defer tr.listener.mu.Unlock()
	submits, transfers := make([]uint64, len(after.Queues)), make([]uint64, len(after.Queues))
	teams, bytes := map[ompt.ID]uint64{}, map[ompt.ID]uint64{}
	for _, r := range tr.records {
		op, ok := tr.listener.ops[r.HostOpID]
		if !ok || r.TargetID != op.TargetID || r.Time == 0 || r.EndTime <= r.Time {
			tr.t.Errorf("record %+v of %+v", r, op)
		}
		if op.Type == 0 {
			submits[r.Queue]++
			teams[r.HostOpID] += r.GrantedNumTeams
			if r.Type != ompt.CallbackTargetSubmitEMI || r.RequestedNumTeams != op.Teams || r.Label != op.Kernel || r.DataOp != (ompt.DataOp{}) {
				tr.t.Errorf("record %+v of %+v", r, op)
			}
			continue
		}
		transfers[r.Queue]++
		bytes[r.HostOpID] += r.DataOp.Bytes
		whole := r.DataOp
		if whole.Bytes = op.Bytes; r.Type != ompt.CallbackTargetDataOpEMI || whole != op.DataOp || r.Label != op.Label || r.GrantedNumTeams != 0 {
			tr.t.Errorf("record %+v of %+v", r, op)
		}
	}
	for i, q := range after.Queues {
		if submits[i] != q.Dispatches-before.Queues[i].Dispatches || transfers[i] != q.Copies-before.Queues[i].Copies {
			tr.t.Errorf("queue %d made %d dispatches and %d copies, of which there are %d and %d records",
				i, q.Dispatches-before.Queues[i].Dispatches, q.Copies-before.Queues[i].Copies, submits[i], transfers[i])
		}
	}
	for id, n := range teams {
		if n != tr.listener.ops[id].Teams {
			tr.t.Errorf("%d workgroups of %+v", n, tr.listener.ops[id])
		}
	}
	for id, n := range bytes {
		if n != tr.listener.ops[id].Bytes {
			tr.t.Errorf("%d bytes of %+v", n, tr.listener.ops[id])
		}
	}
	for id, op := range tr.listener.ops {
		if op.Type == 0 && teams[id] == 0 {
			tr.t.Errorf("no record of %+v", op)
		}
	}
}

// traced runs a test with every kind of memory, with one queue and with several, with copies
// through rings and without.
func traced(t *testing.T, test func(t *testing.T, tr *tracing)) {
	modes := append(slices.Clone(memoryModes), queueModes(memoryModes[:2]...)...)
	modes = append(append(modes, chunkModes...), queueModes(chunkModes...)...)
	for _, mode := range modes {
		for seed := range uint64(min(3, deviceOrders)) {
			t.Run(fmt.Sprintf("%s/%d", mode.name, seed), func(t *testing.T) {
				tr := newTracing(t, newRig(t, mode, seed))
				defer tr.close()
				test(t, tr)
			})
		}
	}
}

// work runs kernels and copies in two chains that join.
func (tr *tracing) work(name string) {
	x, y, z := filled(40, 1), filled(40, 2), filled(40, 0)
	p := tr.allocate(40)
	tr.transfer(launch{label: name + " to", out: [][]uint32{x}}, toDevice(p, x))
	for k := range 3 {
		tr.mix(fmt.Sprint(name, " x", k), x, y, y, 1)
		tr.run(launch{label: fmt.Sprint(name, " z", k), kernel: "add", args: []arg{tofrom(z)}, out: [][]uint32{z}, constant: 2})
	}
	tr.mix(name+" both", x, z, z, 0)
	tr.transfer(launch{label: name + " from", out: [][]uint32{x}}, toHost(x, p))
	tr.taskwait()
	tr.run(launch{label: name + " enter", enter: []arg{to(x)}, included: true})
	tr.run(launch{label: name + " inside", kernel: "add", args: []arg{tofrom(x)}, included: true, constant: 5})
	tr.transfer(launch{label: name + " update", included: true}, update(transfer.UpdateFrom, x))
	tr.run(launch{label: name + " exit", exit: []arg{from(x)}, included: true})
	tr.free(p)
}

func TestEveryCommandLeavesItsRecord(t *testing.T) {
	traced(t, func(t *testing.T, tr *tracing) {
		before := tr.s.Stats()
		tr.start()
		tr.work("")
		tr.stop()
		tr.check(before)
		if len(tr.records) < 8 {
			t.Errorf("%d records", len(tr.records))
		}
	})
}

func TestTimesAreInTheOrderOfDependences(t *testing.T) {
	traced(t, func(t *testing.T, tr *tracing) {
		tr.start()
		tr.work("")
		tr.stop()
		chains := [][]string{{" x0", " x1", " x2", " both"}, {" z0", " z1", " z2", " both"}}
		for _, chain := range chains {
			last := uint64(0)
			for _, label := range chain {
				records := tr.of(label, ompt.CallbackTargetSubmitEMI)
				if len(records) != 1 {
					t.Fatalf("%d records of kernel %s", len(records), label)
				}
				for _, copied := range tr.of(label, ompt.CallbackTargetDataOpEMI) {
					in := copied.DataOp.Type == ompt.TargetDataTransferToDevice
					if in && copied.EndTime > records[0].Time || !in && copied.Time < records[0].EndTime {
						t.Errorf("%s: the kernel ran from %d to %d, the copy is %+v", label, records[0].Time, records[0].EndTime, copied)
					}
				}
				if records[0].Time < last {
					t.Errorf("%s begins at %d, what it follows ends at %d", label, records[0].Time, last)
				}
				last = records[0].EndTime
			}
		}
	})
}

func TestPausedTraceLeavesNoRecords(t *testing.T) {
	traced(t, func(t *testing.T, tr *tracing) {
		tr.start()
		if err := tr.PauseTrace(true); err != nil {
			t.Fatal(err)
		}
		tr.work("paused")
		if len(tr.d.pools) != 0 {
			t.Error("there are query pools")
		}
		if err := tr.PauseTrace(false); err != nil {
			t.Fatal(err)
		}
		before := tr.s.Stats()
		clear(tr.listener.ops)
		tr.work("")
		tr.stop()
		tr.check(before)
	})
}

func TestKindsOfRecordsAreChosen(t *testing.T) {
	for _, c := range []struct {
		kind ompt.Callback
		want ompt.SetResult
		of   ompt.Callback
	}{
		{ompt.CallbackTargetSubmit, ompt.SetAlways, ompt.CallbackTargetSubmitEMI},
		{ompt.CallbackTargetSubmitEMI, ompt.SetAlways, ompt.CallbackTargetSubmitEMI},
		{ompt.CallbackTargetDataOp, ompt.SetSometimes, ompt.CallbackTargetDataOpEMI},
		{ompt.CallbackTargetDataOpEMI, ompt.SetSometimes, ompt.CallbackTargetDataOpEMI},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			tr := newTracing(t, newRig(t, memoryModes[1], 1))
			defer tr.close()
			if got := tr.SetTraceOMPT(true, ompt.CallbackTargetMapEMI); got != ompt.SetNever {
				t.Errorf("maps: %v", got)
			}
			tr.SetTraceOMPT(false, 0)
			tr.start()
			if got := tr.SetTraceOMPT(true, c.kind); got != ompt.SetError {
				t.Errorf("while a trace runs: %v", got)
			}
			tr.work("none")
			tr.stop()
			if len(tr.records) != 0 {
				t.Errorf("%d records of no kind", len(tr.records))
			}
			if got := tr.SetTraceOMPT(true, c.kind); got != c.want {
				t.Errorf("%v", got)
			}
			tr.start()
			tr.work("some")
			tr.stop()
			if len(tr.records) == 0 || slices.ContainsFunc(tr.records, func(r ompt.Record) bool { return r.Type != c.of }) {
				t.Errorf("records %+v", tr.records)
			}
		})
	}
}

func TestQueuesWithoutTimestampsLeaveNoRecords(t *testing.T) {
	mode := memoryModes[1]
	mode.queues = slices.Clone(manyQueues)
	for i := range mode.queues {
		mode.queues[i].TimestampBits *= i % 2
	}
	mode.placement = PlaceRandom
	tr := newTracing(t, newRig(t, mode, 1))
	defer tr.close()
	if got := tr.SetTraceOMPT(true, ompt.CallbackTargetSubmitEMI); got != ompt.SetSometimes {
		t.Errorf("%v", got)
	}
	tr.start()
	tr.work("")
	tr.stop()
	if len(tr.records) == 0 {
		t.Error("no record")
	}
	for _, r := range tr.records {
		if r.Queue%2 == 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestFlushCompletesWhatTheDeviceHasDone(t *testing.T) {
	traced(t, func(t *testing.T, tr *tracing) {
		tr.size = 1000
		before := tr.s.Stats()
		tr.start()
		x := filled(30, 1)
		for k := range 5 {
			tr.run(launch{label: fmt.Sprint(k), kernel: "add", args: []arg{tofrom(x)}, included: true, constant: 1})
			if err := tr.FlushTrace(); err != nil {
				t.Fatal(err)
			}
			if n := len(tr.of(fmt.Sprint(k), ompt.CallbackTargetSubmitEMI)); n != 1 {
				t.Fatalf("%d records of kernel %d after a flush", n, k)
			}
			tr.check(before)
		}
		tr.stop()
		tr.check(before)
	})
}

func TestTraceIsStartedAgainAfterARefusedBuffer(t *testing.T) {
	tr := newTracing(t, newRig(t, memoryModes[1], 1))
	defer tr.close()
	asked := 0
	if err := tr.StartTrace(func(int) []ompt.Record { asked++; return nil }, func(_ int, records []ompt.Record, _ bool) {
		t.Errorf("completed %d records of no buffer", len(records))
	}); err != nil {
		t.Fatal(err)
	}
	tr.work("refused")
	if err := tr.FlushTrace(); err != nil {
		t.Error(err)
	}
	tr.work("refused")
	tr.stop()
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	for range 3 {
		tr.again()
	}
}

// again makes a trace of its own and checks it.
func (tr *tracing) again() {
	before := tr.s.Stats()
	tr.records = nil
	clear(tr.listener.ops)
	tr.start()
	tr.work("")
	tr.stop()
	tr.check(before)
}

func TestBatchOfMoreCommandsThanAPoolHasTimestampsLeavesAllRecords(t *testing.T) {
	tr := newTracing(t, newRig(t, memoryModes[0], 1))
	defer tr.close()
	tr.size = 100
	before := tr.s.Stats()
	tr.start()
	tr.d.hold()
	x := filled(20, 0)
	tr.run(launch{label: "enter", enter: []arg{to(x)}})
	const commands = 256 // more than a pool has room for
	for k := range commands {
		tr.run(launch{label: fmt.Sprint(k), kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 1})
	}
	tr.d.release()
	tr.taskwait()
	tr.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	tr.stop()
	tr.check(before)
	if len(tr.records) < commands || len(tr.d.pools) < 2 {
		t.Errorf("%d records, %d pools", len(tr.records), len(tr.d.pools))
	}
	if err := tr.s.Relinquish(); err != nil {
		t.Fatal(err)
	}
	if len(tr.d.pools) != 0 {
		t.Errorf("%d pools after a soft pause", len(tr.d.pools))
	}
	tr.again()
}

func TestStopWaitsForWhatIsInFlight(t *testing.T) {
	tr := newTracing(t, newRig(t, memoryModes[1], 1))
	defer tr.close()
	tr.start()
	tr.d.hold()
	x := filled(20, 0)
	for k := range 10 {
		tr.run(launch{label: fmt.Sprint(k), kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 1})
	}
	stopped := make(chan error, 1)
	go func() { stopped <- tr.StopTrace() }()
	tr.eventually("what was pending is submitted", func() bool { return tr.s.order.All()[0].Pending().Empty() })
	select {
	case err := <-stopped:
		t.Fatalf("stopped with tasks in flight: %v", err)
	default:
	}
	tr.d.release()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	tr.taskwait()
	if n := len(tr.of("0", ompt.CallbackTargetSubmitEMI)); n != 1 {
		t.Errorf("%d records of what was in flight", n)
	}
}

func TestRecordsOfBatchesThatFailAreDropped(t *testing.T) {
	for _, failure := range []error{&vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorOutOfHostMemory}, errLost} {
		for n := 1; n <= 6; n++ {
			t.Run(fmt.Sprintf("%v/%d", failure, n), func(t *testing.T) {
				mode := queueModes(memoryModes[1])[1]
				tr := newTracing(t, newRig(t, mode, uint64(n)))
				tr.d.report = func(string) {} // errors of tasks are expected
				lost := errors.Is(failure, vk.ErrDeviceLost)
				tr.d.submit = func(call int) error {
					if call == n || lost && call > n {
						return failure
					}
					return nil
				}
				tr.start()
				for range 3 {
					x := filled(40, 1)
					for k := range 4 {
						_ = tr.s.Run(context.Background(), tr.region(launch{label: fmt.Sprint(k), kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 2}))
					}
				}
				_ = tr.scope.Wait(context.Background(), nil)
				if err := tr.StopTrace(); err != nil {
					t.Errorf("stop: %v", err)
				}
				for _, r := range tr.records {
					if r.Time == 0 || r.EndTime == 0 {
						t.Errorf("record of what did not run: %+v", r)
					}
				}
				if err := tr.StartTrace(func(int) []ompt.Record { return nil }, func(int, []ompt.Record, bool) {}); lost != errors.Is(err, vk.ErrDeviceLost) {
					t.Errorf("started again: %v", err)
				}
				tr.trace.End()
				_ = tr.s.Close()
			})
		}
	}
}

func TestTraceSaysThatRecordsAreLost(t *testing.T) {
	tr := newTracing(t, newRig(t, memoryModes[1], 1))
	defer tr.close()
	tr.start()
	tr.d.set(func() { tr.d.queryError = vk.ErrOutOfMemory })
	tr.work("lost")
	if err := tr.FlushTrace(); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("flush: %v", err)
	}
	tr.d.set(func() { tr.d.queryError = nil })
	if err := tr.FlushTrace(); err != nil {
		t.Errorf("the next flush: %v", err)
	}
	tr.work("kept")
	tr.d.set(func() { tr.d.queryError = vk.ErrOutOfMemory })
	tr.work("lost")
	if err := tr.StopTrace(); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("stop: %v", err)
	}
	if len(tr.of("kept x0", ompt.CallbackTargetSubmitEMI)) != 1 || len(tr.of("lost x0", ompt.CallbackTargetSubmitEMI)) != 0 {
		t.Errorf("records %+v", tr.records)
	}
	tr.d.set(func() { tr.d.queryError = nil })
}
