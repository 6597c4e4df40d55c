package order

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// spinModel is a device as waits see it.
type spinModel struct {
	name string
	// spun returns how long a wait takes that spins up to a limit, blocked is how long one
	// takes that blocks at once.
	spun    func(limit time.Duration) time.Duration
	blocked time.Duration
	// spins says that spinning is better.
	spins bool
}

// endsAfter returns the waits of a device that is done after d, and tells a blocked thread so
// after another change of threads.
func endsAfter(d, change time.Duration) func(time.Duration) time.Duration {
	return func(limit time.Duration) time.Duration {
		if d <= limit {
			return d
		}
		return d + change
	}
}

const us = time.Microsecond

var spinModels = []spinModel{
	{"a small kernel on a GPU", endsAfter(14*us, 28*us), 42 * us, true},
	{"a kernel on a GPU that takes as long as a wait spins", endsAfter(maxSpin, 30*us), maxSpin + 30*us, true},
	{"a kernel on a GPU that takes a little longer", endsAfter(maxSpin+1, 30*us), maxSpin + 30*us + 1, false},
	{"a long kernel on a GPU", endsAfter(5*time.Millisecond, 30*us), 5*time.Millisecond + 30*us, false},
	{"a software driver that gets the processor when the wait blocks", func(limit time.Duration) time.Duration { return limit + 25*us }, 25 * us, false},
	{"a software driver that shares the processors with the wait", func(time.Duration) time.Duration { return 45 * us }, 36 * us, false},
	{"a device for which both ways are alike", func(time.Duration) time.Duration { return 30 * us }, 31 * us, false},
}

// wait makes a wait on a device, and returns for how long it span and how long it took.
func (s *spinning) wait(m *spinModel) (limit, took time.Duration) {
	limit, took = s.next(), m.blocked
	if limit > 0 {
		took = m.spun(limit)
	}
	s.ended(limit, took)
	return limit, took
}

// settle makes waits, and returns how many go the way that is slower for the device.
func (s *spinning) settle(t *testing.T, m *spinModel, waits int) (wrong int) {
	t.Helper()
	for range waits {
		limit, _ := s.wait(m)
		if limit > maxSpin || limit > 0 && limit < minSpin {
			t.Fatalf("a wait spins for %v", limit)
		}
		if (limit > 0) != m.spins {
			wrong++
		}
	}
	return wrong
}

// After the first two waits, all go the better way for every device, but for the trials, which
// become rare.
func TestWaitsGoTheFasterWay(t *testing.T) {
	for _, m := range spinModels {
		t.Run(m.name, func(t *testing.T) {
			var s spinning
			s.settle(t, &m, 2)
			if wrong := s.settle(t, &m, firstInterval-2); wrong > 0 {
				t.Errorf("%d waits before the first trial go the slower way", wrong)
			}
			s.settle(t, &m, 2*lastInterval)
			const trials = 10
			if wrong := s.settle(t, &m, trials*lastInterval); wrong != trials {
				t.Errorf("%d waits of %d go the slower way, want %d", wrong, trials*lastInterval, trials)
			}
		})
	}
}

// Whatever device follows whatever other, the waits find out: within a few if they spin in vain, or
// block and the work has become much shorter, and by the next trials otherwise.
func TestWaitsFindOutThatTheDeviceHasChanged(t *testing.T) {
	for _, before := range spinModels {
		for _, after := range spinModels {
			var s spinning
			s.settle(t, &before, 3*lastInterval)
			most := 4 * lastInterval
			if before.spins && after.spun(maxSpin) > maxSpin || !before.spins && after.blocked < before.blocked/4 {
				most = 8
			}
			s.settle(t, &after, most)
			if wrong := s.settle(t, &after, firstInterval); wrong > 1 {
				t.Errorf("%s, then %s: %d waits of %d go the slower way", before.name, after.name, wrong, firstInterval)
			}
		}
	}
}

// Every sequence of a few waits of these lengths leads to a decision within the bounds, and short
// waits are never taken for long ones.
func TestWaitsOfEveryLength(t *testing.T) {
	lengths := []time.Duration{1, 3 * us, 12 * us, maxSpin, 2 * maxSpin, time.Second}
	const waits = 6
	var s [waits + 1]spinning
	var try func(n int, shortest time.Duration)
	try = func(n int, longest time.Duration) {
		limit := s[n].next()
		switch {
		case limit != 0 && (limit < minSpin || limit > maxSpin):
			t.Fatalf("a wait spins for %v", limit)
		case n == 0 && limit != maxSpin || n == 1 && limit != 0:
			t.Fatalf("wait %d spins for %v: the first two show what the ways take", n, limit)
		case limit > max(2*longest, minSpin) && n > 0:
			t.Fatalf("a wait spins for %v, and none took longer than %v", limit, longest)
		}
		if n == waits {
			return
		}
		for _, took := range lengths {
			s[n+1] = s[n]
			s[n+1].ended(limit, took)
			try(n+1, max(longest, took))
		}
	}
	try(0, 0)
}

func TestLatelyIsTheMedianOfTheLastWaits(t *testing.T) {
	for _, c := range []struct {
		took            []time.Duration
		median, longest time.Duration
	}{
		{nil, 0, 0},
		{[]time.Duration{7}, 7, 7},
		{[]time.Duration{7, 9}, 7, 9},
		{[]time.Duration{9, 7, 8}, 8, 9},
		{[]time.Duration{10, 10, 10, 9000, 10}, 10, 9000},
		{[]time.Duration{10, 11, 12, 13, 14, 15, 16}, 14, 16},
		{[]time.Duration{900, 900, 900, 900, 900, 224}, 224, 224},
		{[]time.Duration{900, 900, 900, 900, 900, 225}, 900, 900},
	} {
		var l lately
		for _, took := range c.took {
			l.add(took)
		}
		if l.median != c.median || l.longest() != c.longest {
			t.Errorf("%v: median %v and longest %v, want %v and %v", c.took, l.median, l.longest(), c.median, c.longest)
		}
	}
}

// timed is a device with one queue, whose time passes with its calls alone: each look takes a
// microsecond, and a wait that blocks what is left and a change of threads.
type timed struct {
	standing
	at, done time.Duration
	reached  bool
	// looks and blocked count the calls. fail is the error of looks.
	looks, blocked int
	fail           error
	// failWait is the error of waits with a limit.
	failWait error
}

const changeOfThreads = 40 * us

func (d *timed) Completed(int) (uint64, error) {
	d.looks++
	d.at += us
	if d.fail != nil {
		return 0, d.fail
	}
	if d.reached || d.at >= d.done {
		return 1, nil
	}
	return 0, nil
}

func (d *timed) Wait(_ int, _ uint64, limit time.Duration) (bool, error) {
	d.blocked++
	if limit > 0 && (d.at+limit < d.done || d.failWait != nil) {
		d.at += limit
		return false, d.failWait
	}
	d.at = max(d.at, d.done) + changeOfThreads
	return true, nil
}

func newTimed() (*Queues, *timed) {
	d := new(timed)
	o := new(Queues)
	o.Init(d, []QueueInfo{{Compute: true}}, new(sync.Mutex), nil, func(*Queue) {})
	o.clock = func() time.Duration { return d.at }
	return o, d
}

// await waits once for work that takes so long.
func (d *timed) await(t *testing.T, o *Queues, work time.Duration) {
	t.Helper()
	d.done = d.at + work
	w := o.all[0].wait(1, byDriver)
	if err := o.Await(&w); err != nil {
		t.Fatal(err)
	}
	o.Awaited(&w)
}

func TestAwaitSpinsForShortWorkAndBlocksForLong(t *testing.T) {
	o, d := newTimed()
	const waits = 10 * lastInterval
	for range waits {
		d.await(t, o, 14*us)
	}
	if d.blocked == 0 || d.blocked > 20 {
		t.Errorf("%d waits of %d for 14 µs of work blocked", d.blocked, waits)
	}
	for range firstInterval {
		d.await(t, o, time.Millisecond)
	}
	d.looks, d.blocked = 0, 0
	for range waits {
		d.await(t, o, time.Millisecond)
	}
	const trials = 15
	if most := waits + trials*(int(maxSpin/us)+looksAtOnce); d.blocked != waits || d.looks > most {
		t.Errorf("%d waits of %d for a millisecond of work blocked, with %d looks: want at most %d", d.blocked, waits, d.looks, most)
	}
}

func TestAwaitWithALimitLeavesTheRestToOthers(t *testing.T) {
	const limit = time.Millisecond
	for _, c := range []struct {
		work     time.Duration
		failWait error
		timedOut bool
	}{
		{work: 0},
		{work: limit / 2},
		{work: 2 * limit, timedOut: true},
		{work: limit / 2, failWait: errors.New("no memory"), timedOut: true},
	} {
		o, d := newTimed()
		d.failWait, d.done = c.failWait, c.work
		w := o.all[0].wait(1, byDriver)
		w.Limit = limit
		if err := o.Await(&w); err != nil || w.TimedOut != c.timedOut {
			t.Errorf("%v of work, %v: %v, timed out %t", c.work, c.failWait, err, w.TimedOut)
		}
		if most := limit + maxSpin + looksAtOnce*us; c.timedOut && d.at > most {
			t.Errorf("%v of work: the wait took %v, want at most %v", c.work, d.at, most)
		}
	}
}

// What the first look shows says nothing about either way.
func TestWaitThatEndsAtOnceIsNotCounted(t *testing.T) {
	o, d := newTimed()
	for range 10 {
		d.await(t, o, 0)
	}
	if s := o.all[0].waits[byDriver]; s != (spinning{}) || d.looks != 10 || d.blocked != 0 {
		t.Errorf("10 waits for nothing: %+v, %d looks, %d blocked", s, d.looks, d.blocked)
	}
}

// Waits of drivers, of the waiter and for chunks are of different lengths.
func TestWaitsOfOneKindSayNothingOfAnother(t *testing.T) {
	o, d := newTimed()
	for range 10 {
		d.await(t, o, time.Second)
	}
	if q := o.all[0]; q.waits[byWaiter] != (spinning{}) || q.waits[forChunk] != (spinning{}) || o.WaitForChunk(SyncPoint{Value: 1}).spin != maxSpin {
		t.Error("the waits of a driver count as others")
	}
}

// A device that does not say how far it is is not asked again.
func TestLookThatFailsEndsTheSpinning(t *testing.T) {
	o, d := newTimed()
	d.fail = errors.New("out of memory")
	d.await(t, o, 14*us)
	if d.looks != 1 || d.blocked != 1 {
		t.Errorf("%d looks that fail, %d waits", d.looks, d.blocked)
	}
}
