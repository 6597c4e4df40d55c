package sched

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Trace is a device's trace for a tool, an [ompt.Device]. While it runs, commands are
// placed between timestamps:
//
//	placed  [top of pipe: query 2k] dispatch [compute shader: query 2k+1]
//	landed  the batch's pool is read, and reset
//	ended   the operation's numbers are final: the record is made
//	        -> the trace's goroutine: request, fill, complete
//
// Timestamps order nothing: what runs together without a trace runs together with one, as
// far as the device's timestamps allow. Copies that the host makes itself have no record,
// nor has what a queue without timestamps does.
type Trace struct {
	s      *Scheduler
	number int

	// calls is held by what starts, flushes and stops the trace, which can take long; it is
	// taken before the scheduler's mu.
	calls lockrank.Mutex[lockrank.TraceCalls]

	// What follows is guarded by the scheduler's mu.

	// want says what SetTraceOMPT asked for.
	want struct{ submits, dataOps bool }
	// changed is signalled when the trace's goroutine, or who waits for it, may have
	// something to do.
	changed *sync.Cond
	// running: there is a trace, ending that it is being stopped. ended: there will be none
	// any more.
	running, ending, ended bool
	// asked counts the flushes that were asked for, answered those made; the last of them
	// is the end if stopping is set.
	asked, answered uint64
	stopping        bool
	// before and after are moments by both clocks, as far apart as the trace has come.
	before, after vk.Calibration
}

// NewTrace returns what traces the device, by its number. Nothing may have been submitted to
// it yet. The error matches vk.ErrUnsupported where the device has no timestamps.
func (s *Scheduler) NewTrace(number int) (*Trace, error) {
	c, err := s.device.Calibrate()
	if err != nil {
		return nil, err
	}
	tr := &Trace{s: s, number: number, changed: sync.NewCond(&s.mu), before: c, after: c}
	s.stamps.made = tr.changed.Broadcast
	return tr, nil
}

// SetTraceOMPT implements ompt.Device.
func (tr *Trace) SetTraceOMPT(enable bool, record ompt.Callback) ompt.SetResult {
	tr.s.mu.Lock()
	defer tr.s.mu.Unlock()
	if tr.running || tr.ended {
		return ompt.SetError
	}
	switch record {
	case 0:
		tr.want.submits, tr.want.dataOps = enable, enable
	case ompt.CallbackTargetSubmit, ompt.CallbackTargetSubmitEMI:
		tr.want.submits = enable
		untimed := func(q *order.Queue) bool { return q.Computes() && tr.s.order.Info(q).TimestampBits == 0 }
		if !slices.ContainsFunc(tr.s.order.All(), untimed) {
			return ompt.SetAlways
		}
	case ompt.CallbackTargetDataOp, ompt.CallbackTargetDataOpEMI:
		tr.want.dataOps = enable
	default:
		return ompt.SetNever
	}
	return ompt.SetSometimes
}

// StartTrace implements ompt.Device.
func (tr *Trace) StartTrace(request ompt.BufferRequest, complete ompt.BufferComplete) error {
	if request == nil || complete == nil {
		return fmt.Errorf("%w: a trace needs a BufferRequest and a BufferComplete", vk.ErrInvalid)
	}
	tr.calls.Lock()
	defer tr.calls.Unlock()
	c, again := tr.calibrate()
	s := tr.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case tr.ended:
		return tr.errEnded()
	case s.loss.err != nil:
		return s.loss.err
	case tr.running:
		return fmt.Errorf("%w: a trace of device %d runs", ErrBusy, tr.number)
	}
	if again {
		tr.before, tr.after = c, c
	}
	tr.running, tr.stopping = true, false
	s.stamps.err = nil
	tr.stampAllLocked(true)
	go tr.deliver(&traceBuffers{device: tr.number, request: request, complete: complete, failed: tr.failed})
	return nil
}

// stampAllLocked has commands that are placed from now on leave the records that are wanted, or
// none; s.mu is held.
func (tr *Trace) stampAllLocked(on bool) {
	tr.s.stamps.submits, tr.s.stamps.dataOps = on && tr.want.submits, on && tr.want.dataOps
}

// PauseTrace implements ompt.Device.
func (tr *Trace) PauseTrace(pause bool) error {
	tr.s.mu.Lock()
	defer tr.s.mu.Unlock()
	if err := tr.checkLocked(); err != nil {
		return err
	}
	tr.stampAllLocked(!pause)
	return nil
}

// checkLocked is an error where no trace runs; s.mu is held.
func (tr *Trace) checkLocked() error {
	switch {
	case tr.ended:
		return tr.errEnded()
	case !tr.running || tr.ending:
		return fmt.Errorf("%w: no trace of device %d runs", vk.ErrInvalid, tr.number)
	}
	return nil
}

func (tr *Trace) errEnded() error {
	return fmt.Errorf("%w: trace of device %d", ErrClosed, tr.number)
}

// FlushTrace implements ompt.Device.
func (tr *Trace) FlushTrace() error {
	return tr.settle(func() error {
		s := tr.s
		for _, q := range s.order.All() {
			reached, err := s.device.Completed(int(q.Index()))
			if err != nil {
				return err
			}
			for _, b := range q.InFlight() {
				if b.Value() <= reached {
					s.readStampsLocked(q.Index(), b.Value())
				}
			}
		}
		tr.flushLocked()
		return nil
	})
}

// settle calls what flushes or stops the trace that runs, with s.mu held. The error is its
// own, or that of records that were lost.
func (tr *Trace) settle(by func() error) error {
	tr.calls.Lock()
	defer tr.calls.Unlock()
	c, again := tr.calibrate()
	tr.s.mu.Lock()
	defer tr.s.mu.Unlock()
	if err := tr.checkLocked(); err != nil {
		return err
	}
	if again {
		tr.after = c
	}
	if err := by(); err != nil {
		return err
	}
	return tr.lossLocked()
}

// flushLocked has the trace's goroutine flush, and waits for it; s.mu is held.
func (tr *Trace) flushLocked() {
	tr.asked++
	asked := tr.asked
	tr.changed.Broadcast()
	for tr.answered < asked {
		tr.changed.Wait()
	}
}

// failed notes a failure of the tool's functions, as one of records that were lost.
func (tr *Trace) failed(err error) {
	tr.s.mu.Lock()
	defer tr.s.mu.Unlock()
	tr.s.stamps.err = cmp.Or(tr.s.stamps.err, err)
}

// lossLocked is the error of records that were lost since it was last asked; s.mu is held.
func (tr *Trace) lossLocked() error {
	err := tr.s.stamps.err
	tr.s.stamps.err = nil
	if err != nil {
		err = fmt.Errorf("trace of device %d: records were lost: %w", tr.number, err)
	}
	return err
}

// StopTrace implements ompt.Device.
func (tr *Trace) StopTrace() error {
	return tr.settle(func() error {
		tr.stopLocked()
		return nil
	})
}

// stopLocked ends the trace that runs; s.mu is held, but for a while.
func (tr *Trace) stopLocked() {
	s := tr.s
	tr.ending = true
	tr.stampAllLocked(false)
	w := tasks.NewWork()
	for _, q := range s.order.All() {
		s.flushLocked(q, true, w)
	}
	s.mu.Unlock()
	w.Finish()
	s.mu.Lock()
	for s.stamps.live > 0 {
		tr.changed.Wait()
	}
	tr.stopping = true
	tr.flushLocked()
	tr.running, tr.ending = false, false
}

// Stop stops the trace, if one runs.
func (tr *Trace) Stop() { tr.close(false) }

// End is Stop for the last time, and gives back what the trace has: the device is about to
// be closed, or has no tool any more.
func (tr *Trace) End() { tr.close(true) }

func (tr *Trace) close(last bool) {
	tr.calls.Lock()
	defer tr.calls.Unlock()
	s := tr.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if tr.running {
		tr.stopLocked()
	}
	if !last || tr.ended {
		return
	}
	tr.ended = true
	for _, p := range s.stamps.pools {
		s.device.DestroyQueryPool(p.QueryPool)
	}
	s.stamps = stamps{}
}

// deliver is the trace's goroutine: it takes records to the tool.
func (tr *Trace) deliver(b *traceBuffers) {
	s := tr.s
	var spare []ompt.Record
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.stamps.records) == 0 && tr.answered == tr.asked {
			tr.changed.Wait()
		}
		records, asked, stopping := s.stamps.records, tr.asked, tr.stopping
		flush := asked != tr.answered
		s.stamps.records = spare
		s.mu.Unlock()
		for i := range records {
			b.add(records[i])
		}
		clear(records)
		spare = records[:0]
		switch {
		case stopping:
			b.stop()
		case flush:
			b.flush()
		}
		s.mu.Lock()
		tr.answered = asked
		tr.changed.Broadcast()
		if stopping {
			return
		}
	}
}

// calibrate reads both clocks anew, where that takes no submission.
func (tr *Trace) calibrate() (c vk.Calibration, again bool) {
	if !tr.s.props.Features.CalibratedTimestamps {
		return c, false
	}
	c, err := tr.s.device.Calibrate()
	return c, err == nil
}

// Time implements ompt.Device.
func (tr *Trace) Time() (uint64, error) {
	tr.s.mu.Lock()
	ended, last := tr.ended, tr.after
	tr.s.mu.Unlock()
	if ended {
		return 0, tr.errEnded()
	}
	if c, again := tr.calibrate(); again {
		return c.Ticks, nil
	}
	return last.At(time.Now()), nil
}

// TranslateTime implements ompt.Device.
func (tr *Trace) TranslateTime(ticks uint64) time.Time {
	tr.s.mu.Lock()
	defer tr.s.mu.Unlock()
	if tr.ended {
		return time.Time{}
	}
	// The clocks drift apart: the nearer moment tells better.
	early, late := tr.before.Time(ticks), tr.after.Time(ticks)
	if early.Sub(tr.before.Host).Abs() <= late.Sub(tr.after.Host).Abs() {
		return early
	}
	return late
}
