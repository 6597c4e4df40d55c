package trace

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// Trace is the trace of a device as a tool controls it, an [ompt.Device]. The tool starts and
// stops it any number of times, until End.
type Trace struct {
	source Source
	stamps *Stamps

	// calls is held by the methods that start, flush and stop the trace, which can take long. It
	// is taken before the Source's lock.
	calls lockrank.Mutex[lockrank.TraceCalls]

	// All below is guarded by the Source's lock.

	// want has the kinds of records that SetTraceOMPT has asked for.
	want struct{ submits, dataOps bool }
	// changed is signalled when the trace's goroutine, or a caller that waits for it, may have
	// something to do.
	changed *sync.Cond
	// running says that the trace is started, ending that it is being stopped, and ended that End
	// was called.
	running, ending, ended bool
	// asked counts the flushes that were asked for, and answered those that the goroutine has
	// made. The last one of a trace that stops is made with stopping set.
	asked, answered uint64
	stopping        bool
	// before and after are readings of both clocks, as far apart as the trace has come.
	before, after vk.Calibration
}

// New returns the trace of a device to which nothing has been submitted yet. The error matches
// vk.ErrUnsupported if the device has no timestamps.
func New(source Source) (*Trace, error) {
	c, err := source.Device.Calibrate()
	if err != nil {
		return nil, err
	}
	tr := &Trace{source: source, stamps: source.Stamps, changed: sync.NewCond(source.Lock), before: c, after: c}
	*tr.stamps = Stamps{
		queues:  source.Queues,
		pools:   pools{device: source.Device},
		batches: make([][]*timedBatch, len(source.Queues.All())),
		took:    make(map[launch]uint64),
		lose:    source.Lose,
		changed: tr.changed.Broadcast,
		clock:   &tr.after,
	}
	if c.Period > 0 {
		tr.stamps.short = uint64(shortLaunch / c.Period)
	}
	source.Queues.OnClosing(tr.stamps.close)
	return tr, nil
}

// lock takes the Source's lock, and unlock releases it.
func (tr *Trace) lock()   { tr.source.Lock.Lock() }
func (tr *Trace) unlock() { tr.source.Lock.Unlock() }

// SetTraceOMPT implements ompt.Device.
func (tr *Trace) SetTraceOMPT(enable bool, record ompt.Callback) ompt.SetResult {
	tr.lock()
	defer tr.unlock()
	if tr.running || tr.ended {
		return ompt.SetError
	}
	switch record {
	case 0:
		tr.want.submits, tr.want.dataOps = enable, enable
	case ompt.CallbackTargetSubmit, ompt.CallbackTargetSubmitEMI:
		tr.want.submits = enable
		queues := tr.source.Queues
		untimed := func(q *order.Queue) bool { return q.Computes() && queues.Info(q).TimestampBits == 0 }
		if !slices.ContainsFunc(queues.All(), untimed) {
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
	tr.lock()
	defer tr.unlock()
	lost := tr.source.Queues.Lost()
	switch {
	case tr.ended:
		return tr.errEnded()
	case lost != nil:
		return lost
	case tr.running:
		return fmt.Errorf("%w: a trace of device %d runs", construct.ErrBusy, tr.source.Number)
	}
	if again {
		tr.before, tr.after = c, c
	}
	tr.running, tr.stopping = true, false
	tr.stamps.err = nil
	tr.stampLocked(true)
	go tr.deliver(&buffers{device: tr.source.Number, request: request, complete: complete, failed: tr.failed})
	return nil
}

// stampLocked makes the commands that are placed from now on leave the records that are wanted, or
// none.
func (tr *Trace) stampLocked(on bool) {
	tr.stamps.submits, tr.stamps.dataOps = on && tr.want.submits, on && tr.want.dataOps
}

// PauseTrace implements ompt.Device.
func (tr *Trace) PauseTrace(pause bool) error {
	tr.lock()
	defer tr.unlock()
	if err := tr.checkLocked(); err != nil {
		return err
	}
	tr.stampLocked(!pause)
	return nil
}

// checkLocked returns an error if the trace does not run.
func (tr *Trace) checkLocked() error {
	switch {
	case tr.ended:
		return tr.errEnded()
	case !tr.running || tr.ending:
		return fmt.Errorf("%w: no trace of device %d runs", vk.ErrInvalid, tr.source.Number)
	}
	return nil
}

func (tr *Trace) errEnded() error {
	return fmt.Errorf("%w: trace of device %d", construct.ErrClosed, tr.source.Number)
}

// FlushTrace implements ompt.Device.
func (tr *Trace) FlushTrace() error {
	tr.calls.Lock()
	defer tr.calls.Unlock()
	return tr.settle(tr.flushReachedLocked)
}

// StopTrace implements ompt.Device.
func (tr *Trace) StopTrace() error {
	tr.calls.Lock()
	defer tr.calls.Unlock()
	return tr.settle(func() error { tr.stopLocked(); return nil })
}

// settle calls a function, which flushes or stops the trace, with the Source's lock held. The error
// is that of the function, or else tells of records that were lost. calls is held.
func (tr *Trace) settle(by func() error) error {
	c, again := tr.calibrate()
	tr.lock()
	defer tr.unlock()
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

// flushReachedLocked reads the timestamps of all batches that the device has completed, whether the
// scheduler knows that already or not, and delivers the records that there are.
func (tr *Trace) flushReachedLocked() error {
	for _, q := range tr.source.Queues.All() {
		reached, err := tr.source.Device.Completed(int(q.Index()))
		if errors.Is(err, vk.ErrDeviceLost) {
			tr.source.Lose(err)
			return tr.source.Queues.Lost()
		}
		if err != nil {
			return err
		}
		for _, b := range q.InFlight() {
			if b.Value() <= reached {
				tr.stamps.Read(b)
			}
		}
	}
	tr.flushLocked()
	return nil
}

// flushLocked makes the trace's goroutine deliver the records that there are, and waits for that.
func (tr *Trace) flushLocked() {
	tr.asked++
	asked := tr.asked
	tr.changed.Broadcast()
	for tr.answered < asked {
		tr.changed.Wait()
	}
}

// failed notes a failure of the tool's functions. The records that they were called with count as
// lost.
func (tr *Trace) failed(err error) {
	tr.lock()
	defer tr.unlock()
	tr.stamps.fail(err)
}

// lossLocked returns why records were lost since it was last called, nil if none were.
func (tr *Trace) lossLocked() error {
	err := tr.stamps.err
	tr.stamps.err = nil
	if err != nil {
		err = fmt.Errorf("trace of device %d: records were lost: %w", tr.source.Number, err)
	}
	return err
}

// stopLocked ends the trace that runs, when all commands that are traced have left their records.
func (tr *Trace) stopLocked() {
	tr.ending = true
	// Deferred, because submitLocked may not return: then the trace can be stopped again.
	defer func() { tr.ending = false }()
	tr.stampLocked(false)
	tr.submitLocked()
	for tr.stamps.live > 0 {
		tr.changed.Wait()
	}
	tr.stopping = true
	tr.flushLocked()
	tr.running = false
}

// submitLocked submits what is pending, and releases the lock for that.
func (tr *Trace) submitLocked() {
	tr.unlock()
	// Deferred, because an observer of a task that fails may end the goroutine.
	defer tr.lock()
	tr.source.Submit()
}

// Stop stops the trace if it runs.
func (tr *Trace) Stop() { tr.close(false) }

// End is Stop for the last time. It gives back the queries, for a device that is about to be closed
// or that has no tool any more.
func (tr *Trace) End() { tr.close(true) }

func (tr *Trace) close(last bool) {
	tr.calls.Lock()
	defer tr.calls.Unlock()
	tr.lock()
	defer tr.unlock()
	if tr.running {
		tr.stopLocked()
	}
	if last && !tr.ended {
		tr.ended = true
		tr.stamps.pools.destroy()
		*tr.stamps = Stamps{}
		tr.source.Queues.OnClosing(nil)
	}
}

// deliver is the goroutine of a trace that runs: it takes the records to the tool.
func (tr *Trace) deliver(b *buffers) {
	var spare []ompt.Record
	tr.lock()
	defer tr.unlock()
	for {
		tr.stamps.due = b.due()
		for len(tr.stamps.records) < tr.stamps.due && tr.answered == tr.asked {
			tr.changed.Wait()
		}
		records, asked, stopping := tr.stamps.records, tr.asked, tr.stopping
		flush := asked != tr.answered
		tr.stamps.records = spare
		tr.unlock()
		for i := range records {
			b.add(&records[i])
		}
		clear(records)
		spare = records[:0]
		switch {
		case stopping:
			b.stop()
		case flush:
			b.flush()
		}
		tr.lock()
		tr.answered = asked
		tr.changed.Broadcast()
		if stopping {
			return
		}
	}
}

// calibrate reads both clocks anew if the device can do that without a submission.
func (tr *Trace) calibrate() (c vk.Calibration, again bool) {
	if !tr.source.Device.Properties().Features.CalibratedTimestamps {
		return c, false
	}
	c, err := tr.source.Device.Calibrate()
	return c, err == nil
}

// Time implements ompt.Device.
func (tr *Trace) Time() (uint64, error) {
	tr.lock()
	ended, last := tr.ended, tr.after
	tr.unlock()
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
	tr.lock()
	defer tr.unlock()
	if tr.ended {
		return time.Time{}
	}
	// The clocks drift apart, so the nearer of the two readings is the better one.
	early, late := tr.before.Time(ticks), tr.after.Time(ticks)
	if early.Sub(tr.before.Host).Abs() <= late.Sub(tr.after.Host).Abs() {
		return early
	}
	return late
}
