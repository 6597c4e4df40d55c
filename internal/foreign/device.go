package foreign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Handles are the Vulkan handles of a device: interop.Handles.
type Handles struct {
	// Instance, PhysicalDevice and Device are the VkInstance, the
	// VkPhysicalDevice and the VkDevice.
	Instance, PhysicalDevice, Device uintptr
	// GetInstanceProcAddr is the address of vkGetInstanceProcAddr.
	GetInstanceProcAddr uintptr
}

// Timelines makes timeline semaphores; a *vk.Device does.
type Timelines interface {
	// WaitIdle waits until no submission uses a semaphore any more. That a semaphore has
	// reached its value does not imply it. After an error other than the device's loss the
	// semaphores may still be in use.
	WaitIdle() error
	// CreateTimeline and DestroySemaphore create a semaphore and destroy it.
	CreateTimeline(initial uint64) (vk.Semaphore, error)
	DestroySemaphore(vk.Semaphore)
	// SemaphoreValue, WaitSemaphore and SignalSemaphore are those of *vk.Device. After an error
	// other than the device's loss and vk.ErrClosed the next call may succeed; WaitSemaphore
	// returns such an error only after the timeout.
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

// Scheduler runs the constructs' empty tasks; a *sched.Scheduler does.
type Scheduler interface {
	// Postpone reports whether the task n, which was started, cannot be placed yet. Then it is started again.
	Postpone(n *tasks.Node) bool
	// Order places the empty task n between foreign work.
	Order(n *tasks.Node, f sched.Foreign, w *tasks.Work) error
	// Lost returns the error with which the device was lost, nil while it is not lost. Lose
	// tells the scheduler that the device is lost.
	Lost() error
	Lose(error)
}

// Options describe the device for which a Device makes objects.
type Options struct {
	// Number is the device's number, Domain the domain of its tasks.
	Number int
	Domain tasks.Domain
	// Handles are the device's Vulkan handles.
	Handles Handles
	// Timelines, Scheduler and Shared are needed for objects with type targetsync. Each object
	// gets a queue of Own for itself while there are any; the others have Shared.
	Timelines Timelines
	Scheduler Scheduler
	Shared    Queue
	Own       []Queue
	// Timeout is how long Release and Finish wait for foreign work to signal.
	Timeout time.Duration
}

// Device makes the objects of one open device. The runtime has one for each
// device, and closes it before the handles become invalid. It is safe for
// concurrent use.
type Device struct {
	Options
	timelines *lossTimelines
	closed    atomic.Bool
	// closing says that the objects take no more foreign work.
	closing atomic.Bool
	// background counts the goroutines that signal or submit for the sequences.
	background sync.WaitGroup

	// order guards the steps of all sequences, because a construct can be in several of them.
	// The scheduler is called with it held.
	order lockrank.Mutex[lockrank.InteropOrder]
	// still is since when, for all that Release has seen, no semaphore has got another value. It is
	// zero if Release has not looked since the last foreign work was sent. order guards it.
	still time.Time

	mu lockrank.Mutex[lockrank.InteropDevice]
	// free are queues of Own that no object has. sequences are the sequences of objects that are
	// alive, retired those of destroyed objects, whose semaphores may be used again.
	free               []freeQueue
	sequences, retired []*sequence
	// objects counts all objects made so far, alive those that are not destroyed.
	objects, alive int

	// ending makes Finish do its work once; unfinished is the error.
	ending     sync.Once
	unfinished error
}

// freeQueue is a queue that no object has.
type freeQueue struct {
	Queue
	// former, if not nil, is the sequence of the object that had the queue. Until all its steps
	// are sent, the queue may wait for something that has not been submitted.
	former *sequence
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

// Init returns a new object of the given types, None if d is closed. Its foreign runtime is
// always Vulkan. On a lost device it returns an error.
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
	seq, err := d.newSequenceLocked(o.String(), d.objects)
	if err != nil {
		return None, err
	}
	o.state.sequence = seq
	d.alive++
	d.sequences = append(d.sequences, seq)
	return o, nil
}

// newSequenceLocked returns a new sequence. It takes the semaphore of a destroyed object if one is
// no longer needed there, and a free queue if there is one. d.mu is held.
func (d *Device) newSequenceLocked(name string, number int) (*sequence, error) {
	seq := &sequence{name: name, number: number, device: d, queue: d.Shared, changed: make(chan struct{})}
	for range min(len(d.retired), retiredLooks) {
		r := d.retired[0]
		d.retired = d.retired[1:]
		if value, err := d.Timelines.SemaphoreValue(r.semaphore); err == nil && r.spent(value) {
			seq.semaphore, seq.first, seq.sent = r.semaphore, value, value
			seq.last.Store(value)
			break
		}
		d.retired = append(d.retired, r)
	}
	if seq.semaphore == 0 {
		var err error
		if seq.semaphore, err = d.Timelines.CreateTimeline(0); err != nil {
			return nil, err
		}
	}
	for i, q := range d.free {
		if q.former == nil || q.former.allSent() {
			seq.queue = q.Queue
			seq.implicit.Store(true)
			d.free = append(d.free[:i], d.free[i+1:]...)
			break
		}
	}
	return seq, nil
}

// retiredLooks is at how many semaphores of destroyed objects a new one looks. The next object looks at others.
const retiredLooks = 8

// Owns reports whether o is an object of d, or was before it was destroyed.
func (d *Device) Owns(o Object) bool { return o.state != nil && o.state.device == d }

// Destroy ends o, which d owns, with all its copies; a second time it returns ErrInvalid. The
// order of what came before stays.
func (d *Device) Destroy(o Object) error {
	if !d.Owns(o) {
		return fmt.Errorf("%w: the object is none of device %d", ErrInvalid, d.Number)
	}
	if o.state.destroyed.Swap(true) {
		return fmt.Errorf("%w: %v was destroyed before", ErrInvalid, o)
	}
	seq := o.state.sequence
	if seq != nil {
		// Nothing more is submitted for o to its own queue, which another object can get now.
		seq.adding.Lock()
		defer seq.adding.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alive--
	if seq != nil {
		seq.destroyed.Store(true)
		for i, s := range d.sequences {
			if s == seq {
				d.sequences = append(d.sequences[:i], d.sequences[i+1:]...)
				d.retired = append(d.retired, seq)
				break
			}
		}
		if seq.queue != d.Shared {
			d.free = append(d.free, freeQueue{seq.queue, seq})
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

// Awaits describes the foreign work that the objects' constructs wait for, one element for
// each object that waits. Nothing is awaited of a lost device.
func (d *Device) Awaits() []string {
	var all []string
	for _, seq := range d.all() {
		if a := seq.awaits(); a != "" {
			all = append(all, a)
		}
	}
	return all
}

// Settle waits for what was submitted to the objects' own queues, until ctx ends and for at most
// Options.Timeout. It does nothing if other foreign work is awaited too. If nobody has used these
// queues, it waits only for the empty submissions of constructs, which end by themselves.
func (d *Device) Settle(ctx context.Context) {
	deadline := time.Now().Add(d.Timeout)
	all := d.all()
	values := make([]uint64, len(all))
	for k, seq := range all {
		value, only := seq.gathered()
		if !only {
			return
		}
		values[k] = value
	}
	for k, seq := range all {
		for reached := values[k] == 0; !reached; {
			left, err := time.Until(deadline), error(nil)
			if left <= 0 || ctx.Err() != nil {
				return
			}
			if reached, err = d.Timelines.WaitSemaphore(seq.semaphore, values[k], min(left, hostSignalLook)); ended(err) {
				return
			}
		}
	}
}

// all returns the sequences of all objects, including destroyed ones.
func (d *Device) all() []*sequence {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(append([]*sequence(nil), d.sequences...), d.retired...)
}

// Withdraw gives up all foreign work that was announced and has not been submitted, so that
// nothing waits for it, and makes the objects refuse more. The error, ErrNeverSubmitted, names
// that work.
func (d *Device) Withdraw() error {
	d.closing.Store(true)
	var errs []error
	for _, seq := range d.all() {
		errs = append(errs, seq.withdrawAll(), seq.takeFailure())
	}
	return errors.Join(errs...)
}

// Close makes all objects of d stale.
func (d *Device) Close() { d.closed.Store(true) }

// Finish waits for foreign work, or signals in its place, until no submission waits for a
// semaphore of the objects any more, so that the device can become idle. It is called after the
// scheduler's last task. Free returns its error.
func (d *Device) Finish() {
	d.ending.Do(func() {
		errs := []error{d.finish()}
		d.background.Wait()
		for _, seq := range d.all() {
			errs = append(errs, seq.takeFailure())
		}
		if d.unfinished = errors.Join(errs...); d.lost() != nil {
			d.unfinished = nil // a lost device signals nothing
		}
	})
}

// Free calls Finish, waits until the device no longer uses the semaphores, and destroys them. It
// is called before the device is closed. The error, ErrNeverSignalled, names foreign work that
// has not ended by then.
func (d *Device) Free() error {
	d.Finish()
	if err := d.Timelines.WaitIdle(); err != nil && d.lost() == nil {
		return errors.Join(d.unfinished, err)
	}
	d.timelines.free()
	for _, seq := range d.all() {
		d.Timelines.DestroySemaphore(seq.semaphore)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sequences, d.retired = nil, nil
	return d.unfinished
}
