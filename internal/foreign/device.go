package foreign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Handles are what a device is to Vulkan: interop.Handles.
type Handles struct {
	// Instance, PhysicalDevice and Device are the VkInstance, the
	// VkPhysicalDevice and the VkDevice.
	Instance, PhysicalDevice, Device uintptr
	// GetInstanceProcAddr is the address of vkGetInstanceProcAddr.
	GetInstanceProcAddr uintptr
}

// Timelines makes timeline semaphores; a *vk.Device does.
type Timelines interface {
	// WaitIdle waits until nothing that was submitted uses a semaphore any more: who has
	// only seen their values does not know. After an error other than the device's loss
	// they may be in use.
	WaitIdle() error
	CreateTimeline(initial uint64) (vk.Semaphore, error)
	DestroySemaphore(vk.Semaphore)
	// After an error of the following other than the device's loss and vk.ErrClosed the next
	// call may succeed. A wait fails so when its time is up, and not before.
	SemaphoreValue(vk.Semaphore) (uint64, error)
	WaitSemaphore(s vk.Semaphore, value uint64, timeout time.Duration) (bool, error)
	SignalSemaphore(s vk.Semaphore, value uint64) error
}

// Queue is a VkQueue; a *vk.Queue is one.
type Queue interface {
	// Handle returns the VkQueue, Family the index of its family.
	Handle() uintptr
	Family() uint32
	// Locker is the lock of the VkQueue, which Order takes.
	Locker() sync.Locker
	// Order makes an empty submission.
	Order(waits, signals []vk.SemaphoreValue) error
}

// Scheduler carries the constructs' empty tasks out; a *sched.Scheduler does.
type Scheduler interface {
	// Order places the empty task n between foreign work.
	Order(n *tasks.Node, f sched.Foreign, w *tasks.Work) error
	// Lost returns the error that told of the device's loss, nil while it is not lost.
	// Lose tells of the loss.
	Lost() error
	Lose(error)
}

// Options say what a Device makes objects of.
type Options struct {
	// Number is the device's number, Domain that of its tasks.
	Number int
	Domain tasks.Domain
	// Handles are the device's.
	Handles Handles
	// Timelines, Scheduler and Shared are needed for objects with type targetsync:
	// Shared is the queue of objects for which there is none of their own in Own.
	Timelines Timelines
	Scheduler Scheduler
	Shared    Queue
	Own       []Queue
	// Timeout is how long Free waits for all foreign work that nothing is ordered after.
	Timeout time.Duration
}

// Device makes the objects of one open device. The runtime has one for each
// device, and closes it before the handles become invalid. It is safe for
// concurrent use.
type Device struct {
	Options
	timelines *lossTimelines
	closed    atomic.Bool
	// closing: no foreign work is given to the objects any more.
	closing atomic.Bool
	// background counts the goroutines that signal or submit for the streams.
	background sync.WaitGroup

	// order guards what the streams have to send: a construct is in several at once. The
	// scheduler is called with it held.
	order lockrank.Mutex[lockrank.InteropOrder]

	mu lockrank.Mutex[lockrank.InteropDevice]
	// free are queues of Own that no object has, streams those of objects that are
	// alive, retired those of objects that are not, whose semaphores may be used again.
	free             []freeQueue
	streams, retired []*stream
	// objects counts those there have been, alive those that are not destroyed.
	objects, alive int

	// ending is what Finish does once, unfinished its error.
	ending     sync.Once
	unfinished error
}

// freeQueue is a queue that no object has.
type freeQueue struct {
	Queue
	// former, if not nil, is the stream of the object that had it: until all its steps
	// are sent, the queue may wait for what has not been submitted.
	former *stream
}

// NewDevice returns a Device.
func NewDevice(o Options) *Device {
	d := &Device{Options: o}
	d.timelines = newLossTimelines(o.Timelines, o.Scheduler)
	d.Timelines = d.timelines
	d.Shared = lossQueue{o.Shared, o.Scheduler}
	for _, q := range o.Own {
		d.free = append(d.free, freeQueue{Queue: lossQueue{q, o.Scheduler}})
	}
	return d
}

// Init returns a new object of the types: None when d is closed. There is no
// choice of foreign runtimes, it is Vulkan's always. On a device that is lost it is an
// error.
func (d *Device) Init(types Types) (Object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return None, nil
	}
	if err := d.lost(); err != nil {
		return None, err
	}
	d.objects++
	o := Object{&state{device: d, types: types, number: d.objects}}
	if types&TypeTargetSync == 0 {
		d.alive++
		return o, nil
	}
	st, err := d.newStreamLocked(o.String(), d.objects)
	if err != nil {
		return None, err
	}
	o.state.stream = st
	d.alive++
	d.streams = append(d.streams, st)
	return o, nil
}

// newStreamLocked returns a stream, with a semaphore that another object is done with if
// there is one; d.mu is held.
func (d *Device) newStreamLocked(name string, number int) (*stream, error) {
	st := &stream{name: name, number: number, device: d, queue: d.Shared, changed: make(chan struct{})}
	for i, r := range d.retired {
		if value, err := d.Timelines.SemaphoreValue(r.semaphore); err == nil && r.spent(value) {
			st.semaphore, st.first, st.sent = r.semaphore, value, value
			st.last.Store(value)
			d.retired = append(d.retired[:i], d.retired[i+1:]...)
			break
		}
	}
	if st.semaphore == 0 {
		var err error
		if st.semaphore, err = d.Timelines.CreateTimeline(0); err != nil {
			return nil, err
		}
	}
	for i, q := range d.free {
		if q.former == nil || q.former.allSent() {
			st.queue = q.Queue
			st.implicit.Store(true)
			d.free = append(d.free[:i], d.free[i+1:]...)
			break
		}
	}
	return st, nil
}

// Owns reports whether o is an object of d, or was before it was destroyed.
func (d *Device) Owns(o Object) bool { return o.state != nil && o.state.device == d }

// Destroy ends o, which d owns, with all its copies. A second time is ErrInvalid. The
// order that constructs have asked for stays.
func (d *Device) Destroy(o Object) error {
	if !d.Owns(o) {
		return fmt.Errorf("%w: the object is none of device %d", ErrInvalid, d.Number)
	}
	if o.state.destroyed.Swap(true) {
		return fmt.Errorf("%w: %v was destroyed before", ErrInvalid, o)
	}
	st := o.state.stream
	if st != nil {
		// Nothing more is to come on its own queue when another object gets that.
		st.adding.Lock()
		defer st.adding.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alive--
	if st != nil {
		st.destroyed.Store(true)
		for i, s := range d.streams {
			if s == st {
				d.streams = append(d.streams[:i], d.streams[i+1:]...)
				d.retired = append(d.retired, st)
				break
			}
		}
		if st.queue != d.Shared {
			d.free = append(d.free, freeQueue{st.queue, st})
		}
	}
	return nil
}

// Alive returns how many objects there are that are not destroyed.
func (d *Device) Alive() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.alive
}

// Awaits describes what the objects' constructs wait for that is foreign, an element
// for each object that waits. Of a device that is lost nothing is awaited.
func (d *Device) Awaits() []string {
	var all []string
	for _, st := range d.all() {
		if a := st.awaits(); a != "" {
			all = append(all, a)
		}
	}
	return all
}

// Settle waits for what was submitted to the objects' own queues, Options.Timeout or until
// ctx ends, if nothing else is awaited: where nobody else has submitted anything there, it
// is the empty submissions of constructs.
func (d *Device) Settle(ctx context.Context) {
	deadline := time.Now().Add(d.Timeout)
	all := d.all()
	values := make([]uint64, len(all))
	for k, st := range all {
		value, only := st.gathered()
		if !only {
			return
		}
		values[k] = value
	}
	for k, st := range all {
		for reached := values[k] == 0; !reached; {
			left, err := time.Until(deadline), error(nil)
			if left <= 0 || ctx.Err() != nil {
				return
			}
			if reached, err = d.Timelines.WaitSemaphore(st.semaphore, values[k], min(left, hostSignalLook)); ended(err) {
				return
			}
		}
	}
}

// all returns the streams of objects alive and of those that are not.
func (d *Device) all() []*stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(append([]*stream(nil), d.streams...), d.retired...)
}

// Withdraw gives up all foreign work that was announced and has not been submitted,
// so that nothing waits for it; the objects take no more. The error, ErrNeverSubmitted,
// names it.
func (d *Device) Withdraw() error {
	d.closing.Store(true)
	var errs []error
	for _, st := range d.all() {
		errs = append(errs, st.withdrawAll(), st.takeFailure())
	}
	return errors.Join(errs...)
}

// Release signals, from the host, what foreign work was submitted to signal and has
// not, once it is the semaphore's next value: nothing else can free the queues that
// wait for it. The error, ErrNeverSignalled, names it.
func (d *Device) Release() error {
	if d.lost() != nil {
		return nil
	}
	var errs []error
	d.release(slices.DeleteFunc(d.all(), (*stream).isOver), &errs)
	return errors.Join(errs...)
}

// Close makes all objects of d stale.
func (d *Device) Close() { d.closed.Store(true) }

// Finish sees to it that no submission waits for a semaphore of the objects any more, so
// that the device comes to rest: after the scheduler's last task. Free returns its error.
func (d *Device) Finish() {
	d.ending.Do(func() {
		all := d.all()
		for _, st := range all {
			st.end()
		}
		errs := []error{d.finish(all, time.Now().Add(d.Timeout))}
		d.background.Wait()
		for _, st := range all {
			errs = append(errs, st.takeFailure())
		}
		if d.unfinished = errors.Join(errs...); d.lost() != nil {
			d.unfinished = nil // nothing more was to come
		}
	})
}

// Free gives the semaphores back, after Finish, when the device uses them no more, and
// before it is closed. The error, ErrNeverSignalled, names foreign work that has not come
// to its end by then.
func (d *Device) Free() error {
	d.Finish()
	if err := d.Timelines.WaitIdle(); err != nil && d.lost() == nil {
		return errors.Join(d.unfinished, err)
	}
	d.timelines.free()
	for _, st := range d.all() {
		d.Timelines.DestroySemaphore(st.semaphore)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams, d.retired = nil, nil
	return d.unfinished
}
