package sched

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

var errLookMemory = &vk.Error{Op: "vkGetSemaphoreCounterValue", Result: vk.ErrorOutOfDeviceMemory}

// lossModes have copies by the host, rings, and storage used in place, on one queue and on
// several.
var lossModes = append(append(memoryModes[:len(memoryModes):len(memoryModes)], chunkModes...),
	queueModes(memoryModes[0], memoryModes[4], chunkModes[0])...)

// failing returns a hook whose calls fail where which says so. They are counted from 1.
func failing(which func(call int) bool, err error) func() error {
	calls := 0
	return func() error {
		if calls++; which(calls) {
			return err
		}
		return nil
	}
}

// Asking a queue for its value can fail for want of memory. That says nothing about the device
// and fails no task.
func TestLooksThatFailForWantOfMemoryFailNothing(t *testing.T) {
	for name, look := range map[string]func(int) bool{
		"one look":   func(call int) bool { return call == 2 },
		"each third": func(call int) bool { return call%3 == 0 },
		"all looks":  func(int) bool { return true },
	} {
		for _, mode := range lossModes {
			t.Run(name+"/"+mode.name, func(t *testing.T) {
				r := newRig(t, mode, 1)
				defer r.close()
				r.d.look = failing(look, errLookMemory)
				p := newSpread(r)
				if err := p.generate(); err != nil {
					t.Fatal(err)
				}
				p.checkRest(nil)
			})
		}
	}
}

// The device is lost at its n-th wait, query of a value or submission, while batches of all
// queues may be in flight. The fake device reports whatever is freed that these still use.
func TestNothingOfALostDeviceIsFreedBeforeItIsAtRest(t *testing.T) {
	for _, mode := range lossModes {
		for call, lose := range map[string]func(d *fakeDevice, n int){
			"wait": func(d *fakeDevice, n int) {
				fail := failing(func(call int) bool { return call == n }, errLost)
				d.wait = func() error { return d.loses(fail()) }
				// Otherwise it depends on time how many waits there are.
				d.look = func() error { return errLookMemory }
			},
			"look": func(d *fakeDevice, n int) {
				fail := failing(func(call int) bool { return call == n }, errLost)
				d.look = func() error { return d.loses(fail()) }
			},
			"submission": func(d *fakeDevice, n int) {
				d.submit = func(call int) error {
					if call == n {
						return errLost
					}
					return nil
				}
			},
		} {
			t.Run(mode.name+"/"+call, func(t *testing.T) {
				lost := 0
				for n := 1; n <= 16; n += faultStep {
					r := newRig(t, mode, uint64(n))
					lose(r.d, n)
					r.s.loss.recovery = "the way back"
					err := newSpread(r).generate()
					r.d.mu.Lock()
					is := r.d.lost
					r.d.mu.Unlock()
					if is {
						lost++
					}
					if is && err != nil && !errors.Is(err, vk.ErrDeviceLost) || !is && err != nil {
						t.Errorf("call %d: lost %v, and the program learned of %v", n, is, err)
					}
					if is && err != nil && strings.Count(err.Error(), r.s.loss.recovery) != strings.Count(err.Error(), errLost.Error()) {
						t.Errorf("call %d: not every failure says how the device can be used again: %v", n, err)
					}
					// Close reports what is still mapped: it was lost with the device.
					_ = r.s.Close()
				}
				if lost < 3 {
					t.Errorf("the device was lost %d times", lost)
				}
			})
		}
	}
}

// loses marks the device as lost if err is not nil, and returns err. The caller holds mu.
func (d *fakeDevice) loses(err error) error {
	if err != nil {
		d.lose()
	}
	return err
}

// restless is a device whose WaitIdle, after the loss, returns only when the test lets it.
type restless struct {
	*fakeDevice
	begun, end chan struct{}
}

func (d restless) WaitIdle() error {
	d.mu.Lock()
	lost := d.lost
	d.mu.Unlock()
	if lost && d.begun != nil {
		d.begun <- struct{}{}
		<-d.end
	}
	return d.fakeDevice.WaitIdle()
}

// While a lost device may still run commands, no task ends, and other goroutines can use the
// scheduler.
func TestTasksOfALostDeviceEndWhenItIsAtRest(t *testing.T) {
	for _, mode := range lossModes {
		t.Run(mode.name, func(t *testing.T) {
			d := restless{newFakeDeviceWith(t, oneQueue, mode.memory, 1), make(chan struct{}), make(chan struct{})}
			s, err := New(d, Options{Domain: rigDomain, HideHostVisible: mode.hidden, Sharing: mode.share, Placement: mode.placement})
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"mix": loadKernel(t, "mix")}, share: mode.share == ShareAll}
			r.scope = r.graph.NewScope()
			x, y, zero := filled(16, 1), filled(16, 1), filled(16, 0)
			r.d.hold()
			r.mix("x 1", x, zero, zero, 0)
			r.mix("x 2", x, zero, zero, 0)
			r.mix("y", y, zero, zero, 0)
			r.d.set(r.d.lose)
			<-d.begun
			live := func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.life.live
			}
			before := live()
			late := r.s.Run(context.Background(), r.region(launch{label: "late", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, included: true}))
			if !errors.Is(late, vk.ErrDeviceLost) {
				t.Errorf("a construct after the loss got %v", late)
			}
			if n := live(); n == 0 || n != before {
				t.Errorf("%d of %d tasks are live while the device may run them", n, before)
			}
			go func() {
				d.end <- struct{}{}
				<-d.begun // by Close
				d.end <- struct{}{}
			}()
			if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("got %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if r.d.idles < 2 {
				t.Errorf("the device was waited for %d times, want once after the loss and once at the end", r.d.idles)
			}
		})
	}
}

// heedless is a device that, once armed is set, executes nothing. Waits last until it is lost. From then on it behaves as
// Vulkan allows for a lost device: waits return what wait does, which nil stands for success, and timelines show that all is
// complete unless look returns an error, or errAsBefore; by is the function that asks. The device comes to rest when the test
// lets it.
type heedless struct {
	*fakeDevice
	armed      atomic.Bool
	waits      atomic.Int32
	lost, rest chan struct{}
	wait       func() error
	look       func(queue int, by string) error
	// looked gets a value when the scheduler, after a wait, looks how far the lost device has come, and destroyed counts
	// the blocks that were destroyed before it was at rest.
	looked    chan struct{}
	destroyed atomic.Int32
}

// errAsBefore stands for a timeline that shows what it did before the loss.
var errAsBefore = errors.New("as before")

// newHeedlessRig returns a rig on such a device, and slices of so many words that are mapped. 24 are copied by the device
// in one piece, and 96 in chunks that the host waits for.
func newHeedlessRig(t *testing.T, queues []order.QueueInfo, o Options, words int) (r *rig, d *heedless, x [][]uint32) {
	t.Helper()
	d = &heedless{
		fakeDevice: newFakeDeviceWith(t, queues, discreteMemory, 1),
		lost:       make(chan struct{}), rest: make(chan struct{}), looked: make(chan struct{}, 64),
	}
	o.HideHostVisible, o.Chunk = true, 64
	r = newWrappedRig(t, d, d.fakeDevice, o)
	for range 12 {
		x = append(x, filled(words, 1))
		r.run(launch{label: "enter", enter: []arg{to(x[len(x)-1])}, included: true})
	}
	d.armed.Store(true)
	r.d.hold()
	return r, d, x
}

func (d *heedless) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	if !d.armed.Load() {
		return d.fakeDevice.Wait(queue, value, timeout)
	}
	d.waits.Add(1)
	<-d.lost
	if d.wait != nil {
		return false, d.wait()
	}
	return true, nil
}

func (d *heedless) Completed(queue int) (uint64, error) {
	if !isClosed(d.lost) {
		return d.fakeDevice.Completed(queue)
	}
	by := caller()
	if by == "reachedLocked" {
		d.looked <- struct{}{}
	}
	if d.look != nil {
		switch err := d.look(queue, by); err {
		case nil:
		case errAsBefore:
			return d.fakeDevice.Completed(queue)
		default:
			return 0, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues[queue].submitted, nil
}

func (d *heedless) DestroyBlock(b vk.Block) {
	if d.armed.Load() && !isClosed(d.rest) {
		d.destroyed.Add(1)
	}
	d.fakeDevice.DestroyBlock(b)
}

func (d *heedless) WaitIdle() error {
	if d.armed.Load() {
		<-d.rest
		d.fakeDevice.release()
	}
	return d.fakeDevice.WaitIdle()
}

// Somebody learns of the loss while others wait for the device. What their waits return then ends no task, and brings
// nothing to the host.
func TestWaitsForALostDeviceEndNothing(t *testing.T) {
	for name, c := range map[string]struct {
		// begin makes the tasks, and returns how the first one is waited for, on a goroutine of its own.
		begin func(r *rig, x []uint32) func() error
		words int
		looks bool
	}{
		"the queue's waiter": {func(r *rig, x []uint32) func() error {
			r.run(add1(x))
			return func() error { return r.scope.Wait(context.Background(), nil) }
		}, 24, true},
		"a synchronous construct": {func(r *rig, x []uint32) func() error {
			l := add1(x)
			l.included = true
			return func() error { return r.s.Run(context.Background(), r.region(l)) }
		}, 24, true},
		"a copy in chunks": {func(r *rig, x []uint32) func() error {
			return func() error {
				return r.s.Run(context.Background(), r.region(launch{label: "exit", exit: []arg{from(x)}, included: true}))
			}
		}, 96, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, d, x := newHeedlessRig(t, oneQueue, Options{}, c.words)
			x[0][0] = 7 // on the host only
			wait := c.begin(r, x[0])
			over := make(chan error, 1)
			go func() { over <- wait() }()
			r.eventually("the wait has begun", func() bool { return d.waits.Load() > 0 })
			r.run(add1(x[1]))
			r.s.SubmitGathered()
			q := r.s.order.All()[0]
			inFlight := func() int {
				r.s.mu.Lock()
				defer r.s.mu.Unlock()
				return len(q.InFlight())
			}
			n := inFlight()
			if n < 2 {
				t.Errorf("%d batches are in flight", n)
			}
			r.s.Lose(errLostInTest)
			close(d.lost)
			if c.looks { // a copy in chunks may be submitting others
				<-d.looked
				if now := inFlight(); now != n {
					t.Errorf("%d batches are complete", n-now)
				}
			}
			close(d.rest)
			if err := <-over; !errors.Is(err, errLostInTest) {
				t.Errorf("got %v", err)
			}
			r.expect("x", x[0], append([]uint32{7}, filled(c.words-1, 1)...)...)
			_ = r.scope.Wait(context.Background(), nil) // the other task fails, too
			_ = r.s.Close()
		})
	}
}

// One kind of call alone reports the loss to a construct that waits: a look at the timeline before its wait or after it, or a wait
// that has a limit, because the construct's context can end. All others say that everything is complete, once the loss is known: if
// one did before, the construct would succeed.
func TestConstructLearnsOfALossFromOneKindOfCall(t *testing.T) {
	for what, construct := range map[string]func(x []uint32) launch{
		"kernel": add1,
		"copy":   func(x []uint32) launch { return launch{label: "exit", exit: []arg{from(x)}} },
	} {
		for _, call := range []string{"look", "Wait", "reachedLocked"} {
			t.Run(what+"/"+call, func(t *testing.T) {
				r, d, x := newHeedlessRig(t, oneQueue, Options{}, 24)
				x[0][0] = 7
				ctx := context.Background()
				d.look = func(_ int, by string) error {
					switch {
					case by == call:
						return errLost
					case !isClosed(r.s.loss.told):
						return errAsBefore
					}
					return nil
				}
				if call == "Wait" {
					var cancel func()
					ctx, cancel = context.WithCancel(ctx)
					defer cancel()
					d.wait = func() error { return d.look(0, "Wait") }
				}
				if call == "look" {
					close(d.lost)
				}
				l := construct(x[0])
				l.included = true
				over := make(chan error, 1)
				go func() { over <- r.s.Run(ctx, r.region(l)) }()
				if call != "look" {
					r.eventually("the wait has begun", func() bool { return d.waits.Load() > 0 })
					r.run(add1(x[1])) // there is more to look for than what the wait is for
					r.s.SubmitGathered()
					close(d.lost)
				}
				select {
				case err := <-over:
					t.Fatalf("the construct returned %v before the device was at rest", err)
				case <-r.s.loss.told:
				}
				close(d.rest)
				if err := <-over; !errors.Is(err, vk.ErrDeviceLost) {
					t.Errorf("got %v", err)
				}
				r.expect("x", x[0], append([]uint32{7}, filled(23, 1)...)...)
				_ = r.scope.Wait(context.Background(), nil) // the other task fails, too
				_ = r.s.Close()
			})
		}
	}
}

// A goroutine that starts a group looks how far all queues are. It ends no task of a lost device, whatever that shows: neither
// when somebody else has learned of the loss, nor when the first queue reports it and the others show that all is complete.
func TestGroupEndsNothingOfALostDevice(t *testing.T) {
	for name, reports := range map[string]bool{"somebody else has learned of it": false, "the first queue reports it": true} {
		t.Run(name, func(t *testing.T) {
			r, d, x := newHeedlessRig(t, manyQueues, Options{Placement: PlaceRandom}, 24)
			told := make(chan struct{})
			d.wait = func() error { <-told; return errLost }
			d.look = func(queue int, by string) error {
				if by != "noticeLocked" || reports && queue == 0 {
					return errLost
				}
				return nil
			}
			for _, s := range x {
				r.run(add1(s))
			}
			r.s.SubmitGathered()
			state := func() (live, queues int) {
				r.s.mu.Lock()
				defer r.s.mu.Unlock()
				for _, q := range r.s.order.All() {
					if len(q.InFlight()) > 0 {
						queues++
					}
				}
				return r.s.life.live, queues
			}
			before, queues := state()
			if queues < 2 {
				t.Fatalf("%d queues have work", queues)
			}
			r.eventually("all waiters wait", func() bool { return int(d.waits.Load()) >= queues })
			if !reports {
				r.s.Lose(errLost)
			}
			close(d.lost)
			r.s.startIntake(false).Finish()
			if now, _ := state(); now != before {
				t.Errorf("%d of %d tasks have ended", before-now, before)
			}
			if !errors.Is(r.s.Lost(), errLost) {
				t.Errorf("Lost: %v", r.s.Lost())
			}
			close(told)
			close(d.rest)
			if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("got %v", err)
			}
			_ = r.s.Close()
		})
	}
}

// The timestamps of complete batches are the first to tell that the device is lost, or a look at a timeline before they are
// read. The tasks of these batches end when the device is at rest.
func TestTimestampsOfALostDeviceEndNothing(t *testing.T) {
	const starting, flushing = "a goroutine that starts tasks", "a flush of the trace"
	for _, by := range []string{"the queue's waiter", starting, flushing, flushing + ", by a look"} {
		t.Run(by, func(t *testing.T) {
			r, d, x := newHeedlessRig(t, oneQueue, Options{}, 24)
			told := make(chan struct{})
			if by != "the queue's waiter" {
				d.wait = func() error { <-told; return nil }
			}
			d.look = func(_ int, caller string) error {
				if caller == "flushReachedLocked" && by == flushing+", by a look" {
					return errLost
				}
				return nil
			}
			r.s.loss.recovery = "the way back"
			tr := newTracing(t, r)
			tr.start()
			for _, s := range x[:3] { // a batch each
				r.run(add1(s))
				r.s.SubmitGathered()
			}
			r.eventually("the wait has begun", func() bool { return d.waits.Load() > 0 })
			r.d.set(func() { r.d.queryError = errLost })
			close(d.lost)
			switch by {
			case starting:
				r.s.startIntake(false).Finish()
			case flushing, flushing + ", by a look":
				if err := tr.FlushTrace(); !errors.Is(err, vk.ErrDeviceLost) || by != flushing && err != r.s.Lost() {
					t.Errorf("flush: %v", err)
				}
			default:
				<-r.s.loss.told
			}
			if !errors.Is(r.s.Lost(), vk.ErrDeviceLost) {
				t.Errorf("Lost: %v", r.s.Lost())
			}
			close(told)
			r.s.mu.Lock()
			if n := r.s.life.live; n != 3 {
				t.Errorf("%d of 3 tasks have ended", 3-n)
			}
			r.s.mu.Unlock()
			close(d.rest)
			if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("got %v", err)
			}
			if err := tr.StopTrace(); len(tr.records) != 0 {
				t.Errorf("%d records, and %v", len(tr.records), err)
			}
			tr.trace.End()
			_ = r.s.Close()
		})
	}
}

// Foreign work may be using memory that the program frees after the loss. It is freed when the device is at rest.
func TestMemoryFreedAfterALossWaitsForTheDevice(t *testing.T) {
	r, d, _ := newHeedlessRig(t, oneQueue, Options{}, 24)
	p, err := r.s.Take(func() (vk.Block, error) { return d.CreateBlock(4096, 0) })
	if err != nil {
		t.Fatal(err)
	}
	blocks := func() (n int) {
		d.set(func() { n = d.live })
		return n
	}
	live := blocks()
	r.s.Lose(errLostInTest)
	close(d.lost)
	if err := r.s.Free(p); err != nil {
		t.Error(err)
	}
	if err := r.s.Free(p); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("freed again: %v", err)
	}
	if n := d.destroyed.Load(); n > 0 {
		t.Errorf("%d blocks were destroyed before the device was at rest", n)
	}
	close(d.rest)
	r.eventually("the memory is freed", func() bool { return r.s.loss.atRest })
	if now := blocks(); now != live-1 {
		t.Errorf("%d of %d blocks are left", now, live)
	}
	_ = r.s.Close()
}

// The scheduler calls the program's hook when the device is lost. Whatever that does, even end
// its goroutine, the tasks end and the scheduler can be closed.
func TestLossIsSettledWhateverItsHookDoes(t *testing.T) {
	for name, hook := range map[string]func(){
		"returns": func() {}, "panics": func() { panic("of the hook") }, "ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDevice(t, unifiedMemory, 1)
			var told error
			s, err := New(d, Options{Domain: rigDomain, Lost: func(err error) { told = err; hook() }})
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{t: t, d: d, s: s, kernels: map[string]*kernel.Kernel{"mix": loadKernel(t, "mix")}}
			r.scope = r.graph.NewScope()
			x, zero := filled(16, 1), filled(16, 0)
			d.hold()
			r.mix("x", x, zero, zero, 0)
			d.set(d.lose)
			if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrDeviceLost) || !errors.Is(told, vk.ErrDeviceLost) {
				t.Errorf("the task got %v, the hook %v", err, told)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A copy in chunks waits for the device itself and can be the first to learn of its loss. Its
// task must not end at once, since the device may still be running what it has of the copy.
func TestCopyThatLearnsOfTheLossEndsWhenTheDeviceIsAtRest(t *testing.T) {
	for name, lose := range map[string]func(d *fakeDevice){
		"wait": func(d *fakeDevice) {
			d.look = func() error { return errLookMemory }
			d.wait = func() error { return d.loses(errLost) }
		},
		"submission": func(d *fakeDevice) { d.submit = func(int) error { return errLost } },
	} {
		for _, memory := range []fakeMemory{unifiedMemory, discreteMemory, incoherentMemory} {
			t.Run(fmt.Sprint(name, "/", memory), func(t *testing.T) {
				d := restless{newFakeDeviceWith(t, oneQueue, memory, 1), make(chan struct{}), make(chan struct{})}
				s, err := New(d, Options{Domain: rigDomain, HideHostVisible: true, Sharing: ShareNothing, Chunk: 64})
				if err != nil {
					t.Fatal(err)
				}
				r := &rig{t: t, d: d.fakeDevice, s: s}
				r.scope = r.graph.NewScope()
				x := filled(96, 1) // more than fits into a ring
				d.hold()
				d.set(func() { lose(d.fakeDevice) })
				ended := make(chan error, 1)
				go func() {
					ended <- s.Run(context.Background(), r.region(launch{label: "enter", enter: []arg{to(x)}, included: true}))
				}()
				<-d.begun
				// Its copies have failed. Now the task either waits in a batch or for the
				// device to be at rest, or has ended already.
				r.eventually("the task is to end, or has ended", func() bool {
					q := s.order.All()[0]
					return len(s.loss.doomed) == 1 || s.life.live == 0 || slices.ContainsFunc(q.InFlight(), func(b *order.Batch) bool { return len(b.Tasks()) > 0 })
				})
				s.mu.Lock()
				if s.life.live != 1 {
					t.Errorf("%d tasks are live while the device may run their copies, want 1", s.life.live)
				}
				s.mu.Unlock()
				go func() {
					d.end <- struct{}{}
					<-d.begun // by Close
					d.end <- struct{}{}
				}()
				if err := <-ended; !errors.Is(err, vk.ErrDeviceLost) {
					t.Errorf("got %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Submissions fail for want of memory for a while. When they succeed again, the scheduler can
// be used as before.
func TestFailuresForWantOfMemoryLeaveTheDeviceUsable(t *testing.T) {
	for _, mode := range lossModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			for round := range 3 {
				r.d.set(func() {
					r.d.submit = func(int) error { return errSubmitMemory }
					r.d.look = func() error { return errLookMemory }
				})
				p := newSpread(r)
				if err := p.generate(); !errors.Is(err, vk.ErrOutOfMemory) || errors.Is(err, vk.ErrDeviceLost) {
					t.Fatalf("round %d: %v", round, err)
				}
				p.leave()
				r.d.set(func() { r.d.submit, r.d.look = nil, nil })
				again := newSpread(r)
				if err := again.generate(); err != nil {
					t.Fatal(fmt.Errorf("round %d, afterwards: %w", round, err))
				}
				again.checkRest(nil)
			}
		})
	}
}

// A lost device has nothing mapped or allocated any more, and none of it is reported as a leak.
func TestLostDeviceHasNothing(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		r.closed = true
		x, y := filled(16, 1), filled(16, 2)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		p := r.allocate(16)
		if err := r.s.Lost(); err != nil {
			t.Errorf("nothing was lost: %v", err)
		}
		r.d.set(r.d.lose)
		if err := r.s.Run(context.Background(), r.region(launch{label: "y", kernel: "set", args: []arg{from(y)}, included: true})); !errors.Is(err, vk.ErrDeviceLost) {
			t.Fatalf("a construct got %v", err)
		}
		section := to(x).item("").Section
		if _, ok := r.s.MappedPointer(section); ok || r.s.Present(section) {
			t.Error("storage is present on a device that is lost")
		}
		if r.s.Accessible(p, 4) {
			t.Error("memory of a device that is lost is accessible")
		}
		if err := r.s.Lost(); !errors.Is(err, vk.ErrDeviceLost) {
			t.Errorf("Lost: %v", err)
		}
		if err := r.s.Relinquish(); !errors.Is(err, vk.ErrDeviceLost) {
			t.Errorf("Relinquish: %v", err)
		}
		for _, exit := range []arg{from(x), {s: x, kind: memory.MapDelete}, {s: x, kind: memory.MapRelease}} {
			if err := r.s.Run(context.Background(), r.region(launch{label: "exit", exit: []arg{exit}, included: true})); !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("exit: %v", err)
			}
		}
		if err := r.s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
