package sched

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
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

// heedless is a device whose waits, once armed is set, last until it is lost, and then succeed although it has executed
// nothing. Its timelines show that everything is complete then. It comes to rest when the test lets it.
type heedless struct {
	*fakeDevice
	armed              atomic.Bool
	waits              atomic.Int32
	lost, looked, rest chan struct{}
}

func (d *heedless) isLost() bool {
	select {
	case <-d.lost:
		return true
	default:
		return false
	}
}

func (d *heedless) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	if !d.armed.Load() {
		return d.fakeDevice.Wait(queue, value, timeout)
	}
	d.waits.Add(1)
	<-d.lost
	return true, nil
}

func (d *heedless) Completed(queue int) (uint64, error) {
	if !d.isLost() {
		return d.fakeDevice.Completed(queue)
	}
	if calledBy("reachedLocked") {
		d.looked <- struct{}{}
	}
	return math.MaxUint64, nil
}

func (d *heedless) WaitIdle() error {
	if d.armed.Load() { // the scheduler may call this before isLost
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
		looks bool
	}{
		"the queue's waiter": {func(r *rig, x []uint32) func() error {
			r.run(add1(x))
			return func() error { return r.scope.Wait(context.Background(), nil) }
		}, true},
		"a synchronous construct": {func(r *rig, x []uint32) func() error {
			l := add1(x)
			l.included = true
			return func() error { return r.s.Run(context.Background(), r.region(l)) }
		}, true},
		"a copy in chunks": {func(r *rig, x []uint32) func() error {
			return func() error {
				return r.s.Run(context.Background(), r.region(launch{label: "exit", exit: []arg{from(x)}, included: true}))
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &heedless{
				fakeDevice: newFakeDeviceWith(t, oneQueue, discreteMemory, 1),
				lost:       make(chan struct{}), looked: make(chan struct{}, 16), rest: make(chan struct{}),
			}
			s, err := New(d, Options{Domain: rigDomain, HideHostVisible: true, Sharing: ShareNothing, Chunk: 64})
			if err != nil {
				t.Fatal(err)
			}
			s.intake.many = 0
			r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"add": loadKernel(t, "add")}, memory: make(map[uint64]uint64)}
			r.scope = r.graph.NewScope()
			r.compile()
			x, y := filled(24, 1), filled(24, 1)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			x[0] = 7 // on the host only
			d.armed.Store(true)
			r.d.hold()
			wait := c.begin(r, x)
			over := make(chan error, 1)
			go func() { over <- wait() }()
			r.eventually("the wait has begun", func() bool { return d.waits.Load() > 0 })
			r.run(add1(y))
			s.SubmitGathered()
			q := s.order.All()[0]
			inFlight := func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(q.InFlight())
			}
			n := inFlight()
			if n < 2 {
				t.Errorf("%d batches are in flight", n)
			}
			s.Lose(errLostInTest)
			close(d.lost)
			if c.looks {
				<-d.looked
			}
			if now := inFlight(); now != n {
				t.Errorf("%d batches are complete", n-now)
			}
			close(d.rest)
			if err := <-over; !errors.Is(err, errLostInTest) {
				t.Errorf("got %v", err)
			}
			r.expect("x", x, append([]uint32{7}, filled(23, 1)...)...)
			_ = r.scope.Wait(context.Background(), nil)
			_ = s.Close()
		})
	}
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
