package foreign

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// stream is the order of an object with targetsync: the constructs' tasks and the
// foreign work, one after the other, each of which signals the next value of the
// semaphore after the one before it.
//
//	value      1           2          3          4          5
//	signalled  construct ─▶foreign ─▶ foreign ─▶ construct ─▶ foreign
//	by         the         somebody's own        the          ...
//	           scheduler   submissions           scheduler
//
// A step is sent when what signals its value has been submitted and all steps before
// it are sent; only then can anything be submitted, to a queue that others use, that
// waits for it.
//
// Constructs without foreign work between them are one step, of a value each: the one
// whose task starts first is sent first, whatever the program's order. A task that waits
// for the children of another may be before theirs.
type stream struct {
	name   string
	number int
	device *Device
	// first is the semaphore's value when the object was made.
	semaphore vk.Semaphore
	first     uint64
	// queue is where foreign work goes that does not say otherwise.
	queue Queue

	// adding is held by whoever adds steps, before the device's order. Submissions to
	// the object's own queue are made under it.
	adding lockrank.Mutex[lockrank.StreamAdding]
	// implicit: nobody else uses the queue, and what is submitted there is ordered by
	// empty submissions among it. Values that are yet to be submitted and a queue that
	// waits for them in the order of the program do not go together: announcing one
	// ends it. Changed with adding and the device's order held, and read by anyone.
	implicit atomic.Bool
	// last is the last value that has a step; changed as implicit is.
	last atomic.Uint64
	// destroyed: the object was, and nothing is announced any more; set with adding held.
	destroyed atomic.Bool

	// What follows is guarded by the device's order. sent is the value of the last step
	// that was sent.
	sent uint64
	// steps are those not sent.
	steps []*step
	// foreign are the values of foreign steps, and gathered ones, that were sent, less
	// those known to be reached.
	foreign []awaited
	// changed is closed, and replaced, when sent changes.
	changed chan struct{}
	// failure is that of a submission that Submit was to make, until it is reported.
	failure error
	// over: nobody waits for the semaphore any more. gaveUp: nor does the runtime's end.
	over, gaveUp bool
}

// awaited is a value that something foreign is to signal; ours: by an empty submission of
// ours behind it; gathered: that is on the object's own queue, where there may be nothing
// foreign.
type awaited struct {
	value          uint64
	ours, gathered bool
}

// step is what signals a value, or, if it is of constructs, the values of a row.
type step struct {
	// signal is the value, of a step that is not of constructs.
	signal uint64
	// constructs are those that are not sent, started counts those of them whose tasks
	// have started.
	constructs []*interopConstruct
	started    int
	// ready: it can be sent when all before it are.
	ready bool
	// foreign: it is for others to submit. host: the host signals. gathered: the
	// object's own queue does, after what others submitted there.
	foreign, host, gathered bool
	// submit, if not nil, is called to submit foreign work.
	submit  func(queue uintptr) error
	ctx     context.Context
	calling bool
}

func (st *stream) at(value uint64) []vk.SemaphoreValue {
	return []vk.SemaphoreValue{{Semaphore: st.semaphore, Value: value}}
}

// before is what a step waits for that signals value: the one before it, if any.
func (st *stream) before(value uint64) []vk.SemaphoreValue {
	if value == st.first+1 {
		return nil
	}
	return st.at(value - 1)
}

// addLocked appends a step of one value; adding and the device's order are held.
func (st *stream) addLocked(s *step) *step {
	st.last.Add(1)
	s.signal = st.last.Load()
	st.steps = append(st.steps, s)
	return s
}

// addConstructLocked appends a construct, and returns the step that it is in; adding and the
// device's order are held.
func (st *stream) addConstructLocked(c *interopConstruct) *step {
	st.last.Add(1)
	var s *step
	if n := len(st.steps); n > 0 && st.steps[n-1].constructs != nil {
		s = st.steps[n-1]
	} else {
		s = &step{}
		st.steps = append(st.steps, s)
	}
	s.constructs = append(s.constructs, c)
	if c.started {
		s.started++
	}
	return s
}

// firstConstructLocked returns the first construct that is not sent, or nil; the device's order
// is held.
func (st *stream) firstConstructLocked() *interopConstruct {
	for _, s := range st.steps {
		if len(s.constructs) > 0 {
			return s.constructs[0]
		}
	}
	return nil
}

// spent reports whether a value of the semaphore is the last that has a step, and
// nothing is left to report.
func (st *stream) spent(value uint64) bool {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	return value == st.last.Load() && st.failure == nil
}

// allSent reports whether every step was sent.
func (st *stream) allSent() bool {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	return st.sent == st.last.Load()
}

// advanceLocked sends the steps that can be, of some streams and of those that this lets go
// on; order is held.
func (d *Device) advanceLocked(w *tasks.Work, streams ...*stream) {
	for len(streams) > 0 {
		st := streams[0]
		streams = streams[1:]
		for len(st.steps) > 0 {
			s := st.steps[0]
			if s.constructs != nil {
				c := s.firstLocked()
				if c == nil {
					break
				}
				c.sendLocked(w)
				for _, p := range c.parts {
					if p.stream != st {
						streams = append(streams, p.stream)
					}
				}
				continue
			}
			if s.submit != nil && !s.ready && !s.calling {
				s.calling = true
				d.background.Go(func() { st.call(s) })
			}
			if !s.ready {
				break
			}
			if s.host {
				d.signalFromHostLocked([]point{{st, s.signal}})
			} else {
				if len(st.foreign) == cap(st.foreign) {
					_, _ = st.forgetReachedLocked()
				}
				st.foreign = append(st.foreign, awaited{s.signal, s.gathered || s.submit != nil, s.gathered})
			}
			st.leaveLocked()
		}
	}
}

// leaveLocked notes that a value of the first step was sent; the device's order is held.
func (st *stream) leaveLocked() {
	if len(st.steps[0].constructs) == 0 {
		st.steps[0] = nil
		st.steps = st.steps[1:]
	}
	st.sent++
	close(st.changed)
	st.changed = make(chan struct{})
}

// run calls f with the device's order held, and sends what can be then. w is finished
// when no lock is held.
func (st *stream) run(w *tasks.Work, f func()) {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	f()
	st.device.advanceLocked(w, st)
}

// call makes the submission of a step of Submit: everything before it is sent.
func (st *stream) call(s *step) {
	failure, sent := errLeft, false
	// Deferred, because submit can leave by runtime.Goexit.
	defer func() {
		w := tasks.NewWork()
		defer w.Finish()
		st.run(w, func() {
			if failure != nil {
				st.failure = errors.Join(st.failure, fmt.Errorf("%s: foreign work of value %d: %w", st.name, s.signal, failure))
			}
			s.ready, s.host = true, !sent
		})
	}()
	if failure = context.Cause(s.ctx); failure != nil {
		return
	}
	if failure = st.queue.Order(st.before(s.signal), nil); failure != nil {
		return
	}
	failure = errLeft
	defer func() {
		// What was submitted, if anything was, comes before this.
		if err := st.queue.Order(nil, st.at(s.signal)); err == nil {
			sent = true
		} else if failure == nil {
			failure = err
		}
	}()
	failure = st.lend(s.submit)
}

// errLeft: a function that was to submit did not return.
var errLeft = errors.New("the function ended its goroutine")

// point is a value of a stream's semaphore.
type point struct {
	stream *stream
	value  uint64
}

// signalFromHostLocked signals values of some streams when all those before them are reached;
// order is held.
func (d *Device) signalFromHostLocked(points []point) {
	if d.lost() != nil {
		return
	}
	now := true
	for _, p := range points {
		v, err := d.Timelines.SemaphoreValue(p.stream.semaphore)
		now = now && err == nil && v >= p.value-1
	}
	for k := 0; now && k < len(points); k++ {
		now = points[k].stream.raiseLocked(points[k].value)
	}
	if now {
		return
	}
	d.background.Go(func() {
		for _, p := range points {
			if !p.stream.reaches(p.value - 1) {
				return
			}
		}
		for _, p := range points {
			for !p.stream.raise(p.value) {
				// Somebody else may, in the time until the next try.
				_, _ = d.Timelines.WaitSemaphore(p.stream.semaphore, p.value, hostSignalLook)
			}
		}
	})
}

// reaches waits until a value is reached or given up; false: the device is lost.
func (st *stream) reaches(value uint64) bool {
	for {
		reached, err := st.device.Timelines.WaitSemaphore(st.semaphore, value, hostSignalLook)
		if reached || ended(err) {
			return reached
		}
		st.device.order.Lock()
		gaveUp := st.gaveUp
		st.device.order.Unlock()
		if gaveUp {
			// It was raised then, as far as it could be.
			return true
		}
	}
}

// raiseLocked signals a value from the host, if the semaphore has not reached it, and reports
// whether that is to be tried again no more; the device's order is held.
func (st *stream) raiseLocked(value uint64) bool {
	t := st.device.Timelines
	v, err := t.SemaphoreValue(st.semaphore)
	if err == nil && v < value {
		err = t.SignalSemaphore(st.semaphore, value)
	}
	return err == nil || ended(err)
}

// raise is raiseLocked for callers that do not hold the order.
func (st *stream) raise(value uint64) bool {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	return st.raiseLocked(value)
}

// usable refuses what was not given in time. Closing withdraws what there is with the
// device's order held: who adds a step asks with that held too.
func (st *stream) usable() error {
	switch {
	case st.destroyed.Load():
		return fmt.Errorf("%w: %s was destroyed", ErrInvalid, st.name)
	case st.device.closing.Load():
		return fmt.Errorf("%w: %s: its runtime is being closed", ErrInvalid, st.name)
	}
	return st.lost()
}

func (st *stream) isOver() bool {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	return st.over
}

// hostSignalLook is how often a goroutine that waits for a value looks whether that
// has been given up.
const hostSignalLook = 100 * time.Millisecond

// gatherLocked makes a step of what was submitted to the object's own queue; adding is held.
func (st *stream) gatherLocked(w *tasks.Work) error {
	next := st.last.Load() + 1
	if err := st.queue.Order(st.before(next), st.at(next)); err != nil {
		return err
	}
	st.run(w, func() { st.addLocked(&step{ready: true, gathered: true}) })
	return nil
}

// explicitLocked ends the implicit protocol; adding is held.
func (st *stream) explicitLocked(w *tasks.Work) error {
	if !st.implicit.Load() {
		return nil
	}
	if err := st.gatherLocked(w); err != nil {
		return err
	}
	st.device.order.Lock()
	defer st.device.order.Unlock()
	st.implicit.Store(false)
	return nil
}

// next announces foreign work: it waits for one value and signals another.
func (st *stream) next() (wait, signal uint64, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	st.adding.Lock()
	defer st.adding.Unlock()
	if err := st.usable(); err != nil {
		return 0, 0, err
	}
	if err := st.explicitLocked(w); err != nil {
		return 0, 0, err
	}
	st.run(w, func() {
		if err = st.usable(); err == nil {
			wait = st.last.Load()
			signal = st.addLocked(&step{foreign: true}).signal
		}
	})
	return wait, signal, err
}

// peek is next without the announcement.
func (st *stream) peek() (wait, signal uint64) {
	wait = st.last.Load()
	return wait, wait + 1
}

// submitted notes that foreign work has been submitted, or, if host is set, that it
// never will be. Work that was not announced is, if it comes next.
func (st *stream) submitted(value uint64, host bool) (err error) {
	if err := st.lost(); err != nil {
		// It is withdrawn already.
		if host {
			return nil
		}
		return err
	}
	w := tasks.NewWork()
	defer w.Finish()
	last := uint64(0)
	st.run(w, func() {
		last = st.last.Load()
		err = st.markLocked(value, host)
	})
	if value != last+1 || host {
		return err
	}
	st.adding.Lock()
	defer st.adding.Unlock()
	st.run(w, func() {
		if value == st.last.Load()+1 && st.usable() == nil {
			st.addLocked(&step{foreign: true})
		}
		err = st.markLocked(value, false)
	})
	if err != nil {
		return err
	}
	return st.explicitLocked(w)
}

// markLocked notes that foreign work was submitted that was announced; the device's order is
// held.
func (st *stream) markLocked(value uint64, host bool) error {
	switch s := st.findLocked(value); {
	case value > st.last.Load() || value <= st.first:
		return fmt.Errorf("%w: %s: value %d was not handed out: the last one was %d", ErrInvalid, st.name, value, st.last.Load())
	case s == nil:
		return fmt.Errorf("%w: %s: value %d was signalled, or is on its way: it cannot be said twice", ErrInvalid, st.name, value)
	case !s.foreign || s.submit != nil:
		return fmt.Errorf("%w: %s: value %d is vkomp's own to signal", ErrInvalid, st.name, value)
	case s.ready:
		return fmt.Errorf("%w: %s: value %d was said to be submitted before", ErrInvalid, st.name, value)
	default:
		s.ready, s.host = true, host
		return nil
	}
}

// submit has foreign work submitted when everything before it is.
func (st *stream) submit(ctx context.Context, f func(queue uintptr) error) (err error) {
	w := tasks.NewWork()
	defer w.Finish()
	st.adding.Lock()
	defer st.adding.Unlock()
	if err := st.usable(); err != nil {
		return err
	}
	if !st.implicit.Load() {
		st.run(w, func() {
			if err = st.usable(); err == nil {
				st.addLocked(&step{foreign: true, submit: f, ctx: ctx})
			}
		})
		return err
	}
	// The queue keeps the order, whatever it waits for.
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return st.lend(f)
}

// lend calls f with the queue, under its lock.
func (st *stream) lend(f func(queue uintptr) error) error {
	lock := st.queue.Locker()
	lock.Lock()
	defer lock.Unlock()
	return protect.Call(func() error { return f(st.queue.Handle()) })
}

// findLocked returns the step of a value that is not sent, or nil; the device's order is held.
func (st *stream) findLocked(value uint64) *step {
	last := st.sent
	if value <= last {
		return nil
	}
	for _, s := range st.steps {
		last += uint64(max(1, len(s.constructs)))
		if value <= last {
			return s
		}
	}
	return nil
}

// sentUpTo waits until the signal of a value has been submitted.
func (st *stream) sentUpTo(ctx context.Context, value uint64) error {
	for {
		st.device.order.Lock()
		sent, last, changed := st.sent, st.last.Load(), st.changed
		st.device.order.Unlock()
		if err := st.lost(); err != nil {
			return err
		}
		switch {
		case value > last:
			return fmt.Errorf("%w: %s: value %d was not handed out: the last one was %d", ErrInvalid, st.name, value, last)
		case value <= sent:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: value %d of %s: %s", context.Cause(ctx), value, st.name, st.awaits())
		}
	}
}

// awaits describes the foreign work that the stream waits for, "" for none.
func (st *stream) awaits() string {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	if st.over {
		return ""
	}
	value, err := st.forgetReachedLocked()
	switch {
	case ended(err):
		return ""
	case len(st.foreign) > 0:
		at := fmt.Sprintf("its semaphore is at %d", value)
		if err != nil {
			at = fmt.Sprintf("whether it has, is not known: %v", err)
		}
		return fmt.Sprintf("%s awaits value %d, which foreign work was submitted to signal: %s", st.name, st.foreign[0].value, at)
	case len(st.steps) > 0 && st.steps[0].foreign:
		return fmt.Sprintf("%s awaits value %d, which no foreign work was submitted to signal", st.name, st.steps[0].signal)
	case len(st.steps) > 0:
		return fmt.Sprintf("%s has a construct, of value %d, that awaits %s", st.name, st.sent+1, st.steps[0].awaitsLocked())
	}
	return ""
}

// gathered returns the last value that is awaited of the object's own queue, 0 for none,
// and whether nothing else is.
func (st *stream) gathered() (value uint64, only bool) {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	if _, err := st.forgetReachedLocked(); ended(err) || len(st.steps) > 0 {
		return 0, false
	}
	for _, a := range st.foreign {
		if !a.gathered {
			return 0, false
		}
		value = a.value
	}
	return value, true
}

// forgetReachedLocked takes the foreign values that are reached off the list, and returns the
// semaphore's value; the device's order is held.
func (st *stream) forgetReachedLocked() (uint64, error) {
	value, err := st.device.Timelines.SemaphoreValue(st.semaphore)
	if err != nil {
		return 0, err
	}
	n := 0
	for n < len(st.foreign) && st.foreign[n].value <= value {
		n++
	}
	st.foreign = append(st.foreign[:0], st.foreign[n:]...)
	return value, nil
}
