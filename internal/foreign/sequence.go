package foreign

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// sequence is the order of an object with targetsync: constructs' tasks and foreign work, one
// after the other. Each waits for the value that the one before it signals, and signals the next
// value of the object's semaphore.
//
//	value      1            2          3          4            5
//	signalled  construct ─▶ foreign ─▶ foreign ─▶ construct ─▶ foreign
//	by         the          somebody else's       the          ...
//	           scheduler    submissions           scheduler
//
// A step is sent when what signals its value has been submitted and all steps before it are
// sent. Only then may a submission that waits for it go to a queue that others use.
//
// Consecutive constructs, without foreign work between them, are one step with several values.
// The construct whose task starts first is sent first, whatever their order in the program,
// because a task may have to wait for children of another one, which are generated later.
type sequence struct {
	name   string
	number int
	device *Device
	// first is the semaphore's value when the object was made.
	semaphore vk.Semaphore
	first     uint64
	// queue is the queue of the object, its own or that of all objects without one.
	queue Queue

	// adding is held while a step is added, and is taken before the device's order. The runtime
	// submits to the object's own queue with it held.
	adding lockrank.Mutex[lockrank.SequenceAdding]
	// implicit says that the object has a queue of its own, on which empty submissions order
	// what the program submits. The first announcement of foreign work ends this, because the
	// queue must not wait for a value that is yet to be submitted. It is changed with adding and
	// the device's order held, and read without.
	implicit atomic.Bool
	// last is the last value that has a step. It is changed as implicit is.
	last atomic.Uint64
	// destroyed says that the object was destroyed, and takes no more work; set with adding
	// held.
	destroyed atomic.Bool

	// The following fields are guarded by the device's order.

	// sent is the last value that was sent.
	sent uint64
	// steps are the steps that have not been sent.
	steps []*step
	// foreign are the sent values that foreign and gathered steps signal, without those known to
	// be reached.
	foreign []awaited
	// hostRun, if not nil, are sent values of this sequence alone that the host signals, and has
	// not, because it waits for the value before them. Others that it signals after them, together
	// with values of other sequences, may follow.
	hostRun *point
	// changed is closed and replaced whenever sent changes.
	changed chan struct{}
	// failures are those of work given to Submit, until a construct reports them.
	failures []error
	// seen is the semaphore's value when Release last looked.
	seen uint64
}

// awaited is a value that is signalled when foreign work ends.
type awaited struct {
	value uint64
	// ours says that an empty submission of the runtime, behind the work, signals the value.
	ours bool
	// gathered says that this submission is on the object's own queue, where there may be no
	// foreign work.
	gathered bool
}

// step is foreign work that signals one value, or a run of constructs that signal one each.
type step struct {
	// signal is the value of a step of foreign work.
	signal uint64
	// constructs are the constructs that have not been sent; started counts those of them whose
	// tasks have started.
	constructs []*interopConstruct
	started    int
	// ready says that foreign work can be sent as soon as everything before it is.
	ready bool
	// foreign says that others submit the work, host that the host signals the value in its
	// place, gathered that the runtime signals it on the object's own queue behind what others
	// have submitted there.
	foreign, host, gathered bool
	// submit, if not nil, is called to submit the work, unless ctx has ended; calling says that
	// this has begun.
	submit  func(queue uintptr) error
	ctx     context.Context
	calling bool
}

// at returns a value of the semaphore as a submission takes it.
func (seq *sequence) at(value uint64) []vk.SemaphoreValue {
	return []vk.SemaphoreValue{{Semaphore: seq.semaphore, Value: value}}
}

// before returns what the submission that signals a value waits for: the value before it, if
// anything signals that.
func (seq *sequence) before(value uint64) []vk.SemaphoreValue {
	if value == seq.first+1 {
		return nil
	}
	return seq.at(value - 1)
}

// addLocked appends a step of foreign work; adding and the device's order are held.
func (seq *sequence) addLocked(s *step) *step {
	seq.last.Add(1)
	s.signal = seq.last.Load()
	seq.steps = append(seq.steps, s)
	return s
}

// addConstructLocked appends a construct and returns its step; adding and the device's order are
// held.
func (seq *sequence) addConstructLocked(c *interopConstruct) *step {
	seq.last.Add(1)
	var s *step
	if n := len(seq.steps); n > 0 && seq.steps[n-1].constructs != nil {
		s = seq.steps[n-1]
	} else {
		s = &step{}
		seq.steps = append(seq.steps, s)
	}
	s.constructs = append(s.constructs, c)
	if c.started {
		s.started++
	}
	return s
}

// firstConstructLocked returns the first construct that has not been sent, or nil; the device's
// order is held.
func (seq *sequence) firstConstructLocked() *interopConstruct {
	for _, s := range seq.steps {
		if len(s.constructs) > 0 {
			return s.constructs[0]
		}
	}
	return nil
}

// spent reports whether the value is the last that has a step, and no failure is left to be
// reported: then another object can have the semaphore.
func (seq *sequence) spent(value uint64) bool {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	return value == seq.last.Load() && len(seq.failures) == 0
}

// allSent reports whether every step has been sent.
func (seq *sequence) allSent() bool {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	return seq.sent == seq.last.Load()
}

// advanceLocked sends all steps of the sequences that can be sent, and then those of other
// sequences that had to wait for them; order is held.
func (d *Device) advanceLocked(w *tasks.Work, sequences ...*sequence) {
	for len(sequences) > 0 {
		seq := sequences[0]
		sequences = sequences[1:]
		for len(seq.steps) > 0 {
			s := seq.steps[0]
			if s.constructs != nil {
				c := s.firstLocked()
				if c == nil {
					break
				}
				c.sendLocked(w)
				for _, p := range c.parts {
					if p.sequence != seq {
						sequences = append(sequences, p.sequence)
					}
				}
				continue
			}
			if s.submit != nil && !s.ready && !s.calling {
				s.calling = true
				d.background.Go(func() { seq.call(s) })
			}
			if !s.ready {
				break
			}
			if s.host {
				d.signalFromHostLocked([]point{{seq, s.signal, s.signal}})
			} else {
				if len(seq.foreign) == cap(seq.foreign) {
					_, _ = seq.forgetReachedLocked()
				}
				seq.foreign = append(seq.foreign, awaited{s.signal, s.gathered || s.submit != nil, s.gathered})
				d.still = time.Time{}
			}
			seq.sentLocked()
		}
	}
}

// sentLocked records that a value of the first step has been sent; the device's order is held.
func (seq *sequence) sentLocked() {
	if len(seq.steps[0].constructs) == 0 {
		seq.steps[0] = nil
		seq.steps = seq.steps[1:]
	}
	seq.sent++
	close(seq.changed)
	seq.changed = make(chan struct{})
}

// run calls f with the device's order held, and then sends what can be sent. The caller finishes
// w when no lock is held.
func (seq *sequence) run(w *tasks.Work, f func()) {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	f()
	seq.device.advanceLocked(w, seq)
}

// findLocked returns the step of a value that has not been sent, or nil; the device's order is
// held.
func (seq *sequence) findLocked(value uint64) *step {
	last := seq.sent
	if value <= last {
		return nil
	}
	for _, s := range seq.steps {
		last += uint64(max(1, len(s.constructs)))
		if value <= last {
			return s
		}
	}
	return nil
}

// sentUpTo waits until the signal of a value has been submitted.
func (seq *sequence) sentUpTo(ctx context.Context, value uint64) error {
	for {
		seq.device.order.Lock()
		sent, last, changed := seq.sent, seq.last.Load(), seq.changed
		seq.device.order.Unlock()
		if err := seq.lost(); err != nil {
			return err
		}
		switch {
		case value > last:
			return fmt.Errorf("%w: %s: value %d was not handed out: the last one was %d", ErrInvalid, seq.name, value, last)
		case value <= sent:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: value %d of %s: %s", context.Cause(ctx), value, seq.name, seq.awaits())
		}
	}
}

// awaits describes the foreign work that the sequence waits for, "" for none.
func (seq *sequence) awaits() string {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	value, err := seq.forgetReachedLocked()
	switch {
	case ended(err):
		return ""
	case len(seq.foreign) > 0:
		at := fmt.Sprintf("its semaphore is at %d", value)
		if err != nil {
			at = fmt.Sprintf("whether it has, is not known: %v", err)
		}
		return fmt.Sprintf("%s awaits value %d, which foreign work was submitted to signal: %s", seq.name, seq.foreign[0].value, at)
	case len(seq.steps) > 0 && seq.steps[0].foreign:
		return fmt.Sprintf("%s awaits value %d, which no foreign work was submitted to signal", seq.name, seq.steps[0].signal)
	case len(seq.steps) > 0:
		return fmt.Sprintf("%s has a construct, of value %d, that awaits %s", seq.name, seq.sent+1, seq.steps[0].awaitsLocked())
	}
	return ""
}

// gathered returns the last value that is awaited from the object's own queue, 0 if there is
// none. only reports whether no other value is awaited.
func (seq *sequence) gathered() (value uint64, only bool) {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	if _, err := seq.forgetReachedLocked(); ended(err) || len(seq.steps) > 0 {
		return 0, false
	}
	for _, a := range seq.foreign {
		if !a.gathered {
			return 0, false
		}
		value = a.value
	}
	return value, true
}

// forgetReachedLocked removes the foreign values that are reached, and returns the semaphore's
// value; the device's order is held.
func (seq *sequence) forgetReachedLocked() (uint64, error) {
	value, err := seq.device.Timelines.SemaphoreValue(seq.semaphore)
	if err != nil {
		return 0, err
	}
	n := 0
	for n < len(seq.foreign) && seq.foreign[n].value <= value {
		n++
	}
	seq.foreign = append(seq.foreign[:0], seq.foreign[n:]...)
	return value, nil
}
