package trace

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/vk"
)

// command places a command that is traced, and returns its task. The batch is pending.
func (r *rig) command(id ompt.ID) *Task {
	r.t.Helper()
	task := new(Task)
	r.locked(func() {
		if !r.place(0, task, kernelOp(id, 1), 1) {
			r.t.Errorf("command %d is not traced", id)
		}
	})
	return task
}

// end0 runs a batch of queue 0 and completes a task.
func (r *rig) end0(task *Task) {
	r.locked(func() {
		r.run(0)
		r.stamps.Complete(task)
	})
}

// has checks the numbers of the records that the tool has got.
func (r *rig) has(ids ...ompt.ID) {
	r.t.Helper()
	if len(r.records) != len(ids) {
		r.t.Errorf("records %+v, want those of %v", r.records, ids)
		return
	}
	for i, id := range ids {
		if r.records[i].HostOpID != id {
			r.t.Errorf("record %d is that of %d, want %d", i, r.records[i].HostOpID, id)
		}
	}
}

func TestStopSubmitsWhatIsTracedAndWaitsForIt(t *testing.T) {
	r := newRig(t)
	r.start()
	if err := r.trace.FlushTrace(); err != nil { // The trace's goroutine waits for records now.
		t.Error(err)
	}
	task := r.command(1)
	submit := r.submitting
	r.submitting = func() {
		// The trace is being stopped: what it is told now waits for nothing.
		if err := r.trace.PauseTrace(false); !errors.Is(err, vk.ErrInvalid) {
			t.Errorf("pause of a trace that is being stopped: %v", err)
		}
		if got := r.trace.SetTraceOMPT(true, 0); got != ompt.SetError {
			t.Errorf("kinds of a trace that is being stopped: %v", got)
		}
		r.locked(func() {
			if r.place(0, new(Task), kernelOp(2, 1), 1) {
				t.Error("a command is traced after the stop")
			}
		})
		submit()
		// The command completes when the trace waits for it.
		r.mu.afterRelease(func() {
			go func() {
				r.locked(func() {
					if r.trace.stopping {
						t.Error("the trace does not wait for a command that it traces")
					}
				})
				r.end0(task)
			}()
		})
	}
	if err := r.trace.StopTrace(); err != nil {
		t.Fatal(err)
	}
	r.has(1)
	if err := r.trace.StopTrace(); !errors.Is(err, vk.ErrInvalid) {
		t.Errorf("second stop: %v", err)
	}
	// It is started again.
	r.submitting = submit
	r.start()
	task = r.command(3)
	r.locked(func() { r.submit(0) })
	r.end0(task)
	r.trace.Stop()
	r.has(1, 3)
	r.end()
}

// A submission for a trace that stops can end tasks, whose observers may end the goroutine. Then the trace can be stopped
// again.
func TestGoroutineThatEndsDuringAStopHoldsNoLock(t *testing.T) {
	r := newRig(t)
	r.start()
	task := r.command(1)
	submit := r.submitting
	r.submitting = func() {
		submit()
		runtime.Goexit()
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = r.trace.StopTrace()
		t.Error("the goroutine goes on")
	}()
	<-over
	r.submitting = submit
	r.end0(task)
	if err := r.trace.StopTrace(); err != nil {
		t.Errorf("second stop: %v", err)
	}
	r.end()
	r.has(1)
}

// A full buffer is given to the tool without a flush, and no later than the record that fills it.
func TestFullBufferIsDeliveredAtOnce(t *testing.T) {
	r := newRig(t)
	defer r.end()
	full := make(chan int, 4)
	r.trace.SetTraceOMPT(true, 0)
	sizes := []int{3, 2, mostDue + 2}
	if err := r.trace.StartTrace(func(int) []ompt.Record {
		size := 1
		if len(sizes) > 0 {
			size, sizes = sizes[0], sizes[1:]
		}
		return make([]ompt.Record, size)
	}, func(_ int, records []ompt.Record, owned bool) {
		if owned {
			full <- len(records)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 2, mostDue + 2} {
		for id := range ompt.ID(want) {
			select {
			case n := <-full:
				t.Fatalf("a buffer for %d has %d", want, n)
			default:
			}
			task := r.command(id + 1)
			r.locked(func() { r.submit(0) })
			r.end0(task)
		}
		select {
		case n := <-full:
			if n != want {
				t.Errorf("%d records in a buffer for %d", n, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("a buffer with %d records is not given back", want)
		}
	}
}

// A flush delivers what the device has done, even if nobody has asked it for its progress.
func TestFlushDeliversWhatTheDeviceHasDone(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.start()
	for id := ompt.ID(1); id <= 2; id++ {
		task := r.command(id)
		r.locked(func() {
			r.submit(0)
			r.stamps.Complete(task)
		})
	}
	r.d.run(0)
	if err := r.trace.FlushTrace(); err != nil {
		t.Error(err)
	}
	r.has(1)
	r.d.run(0)
	r.d.set(func() { r.d.completedError = vk.ErrDeviceLost })
	if err := r.trace.FlushTrace(); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("flush on a device that does not answer: %v", err)
	}
	r.has(1)
	r.d.set(func() { r.d.completedError = nil })
	if err := r.trace.FlushTrace(); err != nil {
		t.Error(err)
	}
	r.has(1, 2)
}

func TestPausedTraceTracesNothing(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.start()
	traced := func() (is bool) {
		r.locked(func() {
			task := new(Task)
			is = r.place(0, task, kernelOp(1, 1), 1)
			r.stamps.Complete(task)
			r.submit(0)
			r.run(0)
		})
		return is
	}
	for _, pause := range []bool{true, true, false, false, true} {
		if err := r.trace.PauseTrace(pause); err != nil {
			t.Fatal(err)
		}
		if got := traced(); got == pause {
			t.Errorf("paused: %t, traced: %t", pause, got)
		}
	}
}

// A loss of records is told once: by the flush or the stop after it.
func TestLossOfRecordsIsToldOnce(t *testing.T) {
	r := newRig(t)
	defer r.end()
	failure := errors.New("no room")
	r.trace.SetTraceOMPT(true, 0)
	fails := true
	if err := r.trace.StartTrace(func(int) []ompt.Record { return make([]ompt.Record, 1) }, func(int, []ompt.Record, bool) {
		if fails {
			panic(failure)
		}
	}); err != nil {
		t.Fatal(err)
	}
	record := func() {
		task := r.command(1)
		r.locked(func() { r.submit(0) })
		r.end0(task)
	}
	record()
	if err := r.trace.FlushTrace(); !errors.Is(err, failure) {
		t.Errorf("flush: %v", err)
	}
	fails = false
	record()
	if err := r.trace.FlushTrace(); err != nil {
		t.Errorf("the next flush: %v", err)
	}
	record()
	r.d.set(func() { r.d.queryError = vk.ErrOutOfMemory })
	task := r.command(2)
	r.locked(func() { r.submit(0) })
	r.end0(task)
	if err := r.trace.StopTrace(); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("stop: %v", err)
	}
	// Stop tells nobody, and the next trace has lost nothing.
	r.d.set(func() { r.d.queryError = nil })
	r.start()
	task = r.command(3)
	r.d.set(func() { r.d.queryError = vk.ErrOutOfMemory })
	r.locked(func() { r.submit(0) })
	r.end0(task)
	r.trace.Stop()
	r.d.set(func() { r.d.queryError = nil })
	r.start()
	if err := r.trace.StopTrace(); err != nil {
		t.Errorf("stop of the next trace: %v", err)
	}
}

func TestCallsOutOfOrderAreRefused(t *testing.T) {
	r := newRig(t)
	request, complete := func(int) []ompt.Record { return nil }, func(int, []ompt.Record, bool) {}
	for name, err := range map[string]error{
		"no request": r.trace.StartTrace(nil, complete), "no complete": r.trace.StartTrace(request, nil),
		"pause": r.trace.PauseTrace(true), "flush": r.trace.FlushTrace(), "stop": r.trace.StopTrace(),
	} {
		if !errors.Is(err, vk.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.start()
	if err := r.trace.StartTrace(request, complete); !errors.Is(err, construct.ErrBusy) {
		t.Errorf("started twice: %v", err)
	}
	r.trace.Stop()
	r.locked(func() { r.queues.Lose(vk.ErrDeviceLost) })
	if err := r.trace.StartTrace(request, complete); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("start on a lost device: %v", err)
	}
	r.end()
	_, noTime := r.trace.Time()
	for name, err := range map[string]error{
		"start": r.trace.StartTrace(request, complete), "pause": r.trace.PauseTrace(false), "flush": r.trace.FlushTrace(),
		"stop": r.trace.StopTrace(), "time": noTime,
	} {
		if !errors.Is(err, construct.ErrClosed) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
	if !r.trace.TranslateTime(1).IsZero() || r.trace.SetTraceOMPT(true, 0) != ompt.SetError {
		t.Error("something is answered after the end")
	}
	r.trace.Stop()
	r.end()
}

func TestKindsOfRecordsAreChosen(t *testing.T) {
	r := newRig(t)
	defer r.end()
	for _, c := range []struct {
		kind             ompt.Callback
		enable           bool
		want             ompt.SetResult
		submits, dataOps bool
	}{
		{0, true, ompt.SetSometimes, true, true},
		{ompt.CallbackTargetMapEMI, false, ompt.SetNever, true, true},
		// All queues that run kernels have timestamps.
		{ompt.CallbackTargetSubmit, false, ompt.SetAlways, false, true},
		{ompt.CallbackTargetDataOpEMI, false, ompt.SetSometimes, false, false},
		{ompt.CallbackTargetSubmitEMI, true, ompt.SetAlways, true, false},
		{ompt.CallbackTargetDataOp, true, ompt.SetSometimes, true, true},
		{0, false, ompt.SetSometimes, false, false},
	} {
		if got := r.trace.SetTraceOMPT(c.enable, c.kind); got != c.want || r.trace.want.submits != c.submits || r.trace.want.dataOps != c.dataOps {
			t.Errorf("%v, %t: %v, wanted are %+v", c.kind, c.enable, got, r.trace.want)
		}
	}
	r.queues.Info(r.queues.All()[0]).TimestampBits = 0
	if got := r.trace.SetTraceOMPT(true, ompt.CallbackTargetSubmit); got != ompt.SetSometimes {
		t.Errorf("with a queue that has no timestamps and runs kernels: %v", got)
	}
}

func TestDeviceWithoutClockHasNoTrace(t *testing.T) {
	d := &fakeDevice{t: t, queryError: vk.ErrUnsupported}
	if tr, err := New(Source{Device: d}); tr != nil || !errors.Is(err, vk.ErrUnsupported) {
		t.Errorf("%v, %v", tr, err)
	}
}

// The clocks drift apart, so that the reading is used that is nearer to the time.
func TestOldTimesAreTranslatedByTheOldClock(t *testing.T) {
	r := newRig(t)
	defer r.end()
	// The device's clock gains a second in three.
	start := time.Unix(1000, 0)
	r.trace.before = vk.Calibration{Ticks: 0, Host: start, Period: 1, Bits: 64}
	r.trace.after = vk.Calibration{Ticks: 4e9, Host: start.Add(3e9), Period: 1, Bits: 64}
	for ticks, want := range map[uint64]int64{0: 0, 1e9: 1e9, 4e9: 3e9, 3e9: 2e9, 5e9: 4e9} {
		if got := r.trace.TranslateTime(ticks).Sub(start).Nanoseconds(); got != want {
			t.Errorf("%d ticks are at %d ns, want %d", ticks, got, want)
		}
	}
}

// A device whose clock can be read at any time has it read again at each start, flush and stop.
func TestClocksAreReadAgainWhereThatIsCheap(t *testing.T) {
	for _, cheap := range []bool{false, true} {
		r := newRig(t)
		r.d.props.Features.CalibratedTimestamps = cheap
		tick := func() { r.d.set(func() { r.d.ticks += 10 }) }
		check := func(when string, before, after uint64) {
			t.Helper()
			if !cheap {
				before, after = 0, 0
			}
			if r.trace.before.Ticks != before || r.trace.after.Ticks != after {
				t.Errorf("%s, cheap %t: clocks were read at %d and %d ticks, want %d and %d", when, cheap, r.trace.before.Ticks, r.trace.after.Ticks, before, after)
			}
		}
		tick()
		r.start()
		check("start", 10, 10)
		tick()
		if err := r.trace.FlushTrace(); err != nil {
			t.Error(err)
		}
		check("flush", 10, 20)
		tick()
		if err := r.trace.StopTrace(); err != nil {
			t.Error(err)
		}
		check("stop", 10, 30)
		tick()
		if ticks, err := r.trace.Time(); err != nil || cheap && ticks != 40 {
			t.Errorf("time %d, %v", ticks, err)
		}
		r.end()
	}
}
