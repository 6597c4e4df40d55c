package sched

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/pipeline"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Errors of calls that come too late or too early.
var (
	// ErrClosed says that the scheduler or the kernel is closed.
	ErrClosed = construct.ErrClosed
	// ErrBusy says that something cannot be given up because it is still in use.
	ErrBusy = construct.ErrBusy
)

// Options says how a Scheduler uses its device.
type Options struct {
	// Domain is the task domain of the device. No other device of the graph has it, and it is not
	// tasks.Host.
	Domain tasks.Domain
	// HideHostVisible makes the scheduler ignore that the host can access the device's memory, so
	// that all copies of maps go through staging memory.
	HideHostVisible bool
	// Incoherent makes the scheduler treat all memory as not coherent.
	Incoherent bool
	// Chunk is the size in bytes of the chunks in which large copies go through staging memory. 0
	// stands for 2 MiB.
	Chunk uint64
	// Threads is the largest number of goroutines that share a copy of the host's, at most
	// transfer.MaxThreads. 0 stands for 1.
	Threads int
	// Staging is the number of bytes of staging memory that the tasks in flight have at most, and
	// that is kept until Relinquish. A task that needs more alone gets it when no other has any. 0
	// stands for 128 MiB.
	Staging uint64
	// Late is the number of bytes from which on copies to pinned storage at the exit of a map are made
	// when they are known to be due, in a submission of their own. 0 stands for 256 KiB.
	Late uint64
	// Sharing says when target constructs use the host's own storage.
	Sharing Sharing
	// Placement says how queues are chosen.
	Placement Placement
	// General makes targets of all tasks, so that none is a resident task, and gives each launch a
	// dispatch of its own.
	General bool
	// Seed determines the choices of PlaceRandom.
	Seed uint64
	// OwnBuffers gives each mapped block and each allocation a VkBuffer with memory of its own if
	// the device has no robustBufferAccess2. Such a device confines kernels to the VkBuffer, and
	// not to the binding.
	OwnBuffers bool
	// LeakSites records where in the program memory was asked for, for the error of Close. It costs
	// a microsecond and an object for each allocation and each construct that maps.
	LeakSites bool
	// Generation is what Discard of the device's previous scheduler returned, 0 if there was none.
	// It tells pointers of that scheduler apart from those of this one.
	Generation uint32
	// Numbers are the device numbers for observers.
	Numbers construct.Numbers
	// Recovery says how a lost device can be used again. It is added to the errors of such a device.
	Recovery string
	// Lost, if not nil, is called once when the device is lost, without locks held, before
	// its tasks fail.
	Lost func(error)
	// Finish, if not nil, is called when the device is to be closed and the last task is complete.
	// It ends what others have on the device, for which the scheduler waits next.
	Finish func()
}

// Placement is a way to choose among the queues of a device.
type Placement int

const (
	// PlaceByFinish chooses the queue on which a command is estimated to finish first.
	PlaceByFinish Placement = iota
	// PlaceRandom chooses any queue that can run the command.
	PlaceRandom
)

// QueueStats are the totals of one queue.
type QueueStats struct {
	// Family is the queue family index.
	Family int
	// Transfer says that the queue runs no kernels.
	Transfer bool
	order.Stats
}

// Stats are totals since the scheduler was created.
type Stats struct {
	// Stats are the totals of all queues.
	order.Stats
	// HostWaits counts how often the host has waited for a queue.
	HostWaits uint64
	// Kernels counts what was compiled.
	Kernels pipeline.Stats
	// Queues has the totals of each queue.
	Queues []QueueStats
	// BytesToDevice and BytesFromDevice count the bytes of host storage that were copied, by
	// any path.
	BytesToDevice, BytesFromDevice uint64
	// Storage and Staging are the device memory in use.
	Storage, Staging memory.AllocatorStats
}

// Plus returns the sums of the totals of s and o, which have the same queues. The memory in use is
// that of o, the later one.
func (s Stats) Plus(o Stats) Stats {
	queues := slices.Clone(o.Queues)
	for i := range min(len(queues), len(s.Queues)) {
		queues[i].Add(s.Queues[i].Stats)
	}
	if len(queues) == 0 {
		queues = s.Queues
	}
	o.Queues = queues
	o.Add(s.Stats)
	o.HostWaits += s.HostWaits
	o.Kernels.Add(s.Kernels)
	o.BytesToDevice += s.BytesToDevice
	o.BytesFromDevice += s.BytesFromDevice
	return o
}

// Scheduler places target tasks on one device. It is safe for concurrent use.
type Scheduler struct {
	device Device
	// destroyed is the device for s.memory.
	destroyed destroyedBlocks
	// recorders have recorded commands.
	recorders recorders
	// props is device.Properties().
	props  *vk.Properties
	domain tasks.Domain
	// refuses says that refusalLocked returns an error.
	refuses atomic.Bool
	// general is Options.General, and mergesOwn what kernel.MergesOwn says of the device.
	general, mergesOwn bool
	// sharing is Options.Sharing.
	sharing Sharing
	// leakSites and numbers are Options.LeakSites and Options.Numbers.
	leakSites bool
	numbers   construct.Numbers
	// driveLimit is for how long a goroutine waits for a queue itself where something else can end its wait,
	// which it does not notice meanwhile: a millisecond, except in tests.
	driveLimit time.Duration

	// spare keeps targets for reuse, residents the records of resident tasks, and awaits what constructs have
	// shared with their tasks.
	spare     sync.Pool
	residents residentPool
	awaits    sync.Pool

	// The fields above are read for each task that is created, and those below are changed for each: they are
	// in different cache lines, so that goroutines which create tasks do not wait for those lines.
	_ [128]byte

	// intake has resident tasks that are to start.
	intake intake
	_      [128]byte

	// mu guards the following fields, except for those that have a lock of their own and those
	// that only New sets.
	mu       lockrank.Mutex[lockrank.Scheduler]
	life     life
	order    deviceOrder
	presence presence
	memory   allocation.Memory
	// transfers is what the transfers of all tasks have in common.
	transfers transfer.Device
	pointers  pointers
	kernels   kernels
	exits     exits
	launching residentLaunch // what the resident task that starts binds
	loss      loss
	stamps    trace.Stamps
	stats     Stats
}

// life is the state of the scheduler between New and Close.
type life struct {
	// wake is broadcast when Close, Discard or Relinquish may have waited long enough.
	wake *sync.Cond
	// live counts the tasks that have entered and are not complete. starved are tasks that found
	// no memory while others were live. When one of the others is complete, the first starved
	// task tries again, and after that the next one, unless a task has found no memory meanwhile:
	// starvations counts how often one has.
	live        int
	starved     []*target
	starvations uint64
	// first is the task, or nil, that has starved for staging memory and for which all of that is
	// reserved: tasks that need less would otherwise pass it again and again. It is not in starved,
	// and tries again before those.
	first *target
	// closing says that no task is accepted any more, stopped that the scheduler's goroutines are to end.
	closing, stopped bool
	// finish is Options.Finish.
	finish func()
	// goroutines are the scheduler's: the waiters of its queues, and others.
	goroutines sync.WaitGroup
}

// starter returns a function that calls f on a goroutine of the scheduler's own. Unlike goroutines.Go, which makes
// a function each time, it allocates nothing but the goroutine.
func (l *life) starter(f func()) (start func()) {
	run := func() {
		defer l.goroutines.Done()
		f()
	}
	return func() {
		l.goroutines.Add(1)
		go run()
	}
}

// New returns a scheduler of the device. Close closes the device as well. After an error the device
// still belongs to the caller.
func New(d Device, o Options) (*Scheduler, error) {
	if o.Domain == tasks.Host {
		return nil, errors.New("sched: a device needs a task domain of its own")
	}
	s := &Scheduler{
		device:     d,
		props:      d.Properties(),
		domain:     o.Domain,
		leakSites:  o.LeakSites,
		numbers:    o.Numbers,
		sharing:    o.Sharing,
		driveLimit: time.Millisecond,
		general:    o.General,
		mergesOwn:  kernel.MergesOwn(d.Properties()),
	}
	s.destroyed.Device = d
	s.intake.init(o.Placement, s.props.Type, runtime.GOMAXPROCS(0) == 1)
	s.intake.startSweeper = s.life.starter(s.sweep)
	s.life.wake, s.life.finish = sync.NewCond(&s.mu), o.Finish
	s.presence.table, s.presence.filling = memory.NewTable(), sync.NewCond(&s.mu)
	s.presence.allocate, s.presence.free = s.memory.For, s.memory.Free
	s.pointers.Init(o.Generation)
	s.kernels.Init(d, &s.mu, s.compiled)
	s.exits.later = s.finishDone
	s.order.later, s.order.patience = s.refill, gatherTime
	s.order.release = time.AfterFunc(math.MaxInt64, s.released)
	s.loss = loss{told: make(chan struct{}), recovery: o.Recovery, hook: o.Lost}
	of := allocation.Options{Hidden: o.HideHostVisible, Incoherent: o.Incoherent, OwnBuffers: o.OwnBuffers, ImportAll: o.Sharing == ShareAll, KeepStaging: cmp.Or(o.Staging, transfer.DefaultStaging), Ended: s.presence.endedLocked}
	if err := s.memory.Open(&s.destroyed, &s.order.Queues, of); err != nil {
		return nil, err
	}
	s.transfers.Memory, s.transfers.Queues = &s.memory, &s.order.Queues
	s.transfers.Chunk, s.transfers.Threads, s.transfers.Staging = cmp.Or(o.Chunk, transfer.DefaultChunk), o.Threads, of.KeepStaging
	s.transfers.Late = cmp.Or(o.Late, transfer.DefaultLate)
	var random *rand.Rand
	if o.Placement == PlaceRandom {
		random = rand.New(rand.NewPCG(o.Seed, 0))
	}
	s.order.Init(d, d.QueueInfos(), &s.mu, random, s.startWaiterLocked)
	s.order.OnBacklog(s.life.starter(s.submitBacklog))
	if s.props.Type != vk.DeviceSoftware {
		s.order.SetRates(order.HardwareRates)
	}
	for _, q := range s.order.All() {
		s.order.StartWaiter(q)
	}
	s.transfers.Copier = s.newCopier()
	return s, nil
}

// Stats returns the totals so far.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Kernels = s.kernels.StatsLocked()
	for _, q := range s.order.All() {
		n := q.Stats()
		stats.Add(n)
		stats.Queues = append(stats.Queues, QueueStats{Family: s.order.Info(q).Family, Transfer: !q.Computes(), Stats: n})
	}
	stats.Storage, stats.Staging = s.memory.Storage.Stats(), s.memory.Staging.Stats()
	return stats
}

// Close waits until the tasks in flight are complete, fails those that have not been placed, and
// frees everything. Mapped data is not copied to the host. If something was still mapped or
// allocated, other than storage that is declared, the error is a memory.ErrLeaked that lists it. A
// second Close does nothing.
func (s *Scheduler) Close() error {
	leaked, err := s.close(false)
	return errors.Join(leaked, err)
}

// Discard is Close for a device that is to be used again, where mapped and allocated storage is no
// leak. It returns the Options.Generation for the next scheduler. It is ErrBusy, and does nothing,
// while a task is not complete or a kernel is being compiled that a launch has needed. It waits for
// the compilations under way that CompileAhead has begun.
func (s *Scheduler) Discard() (generation uint32, err error) {
	if _, err = s.close(true); errors.Is(err, ErrBusy) {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pointers.Generation(), err
}

// Idle returns ErrBusy while a task is not complete or a kernel is being compiled that a launch has
// needed.
func (s *Scheduler) Idle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idleLocked()
}

// idleLocked is Idle for a caller that holds mu.
func (s *Scheduler) idleLocked() error {
	if labels := s.compilingLocked(true); labels != nil {
		return fmt.Errorf("%w: kernels are being compiled: %q", ErrBusy, labels)
	}
	return s.tasksCompleteLocked()
}

// tasksCompleteLocked returns ErrBusy while a task is not complete.
func (s *Scheduler) tasksCompleteLocked() error {
	if n := s.incompleteLocked(); n > 0 {
		return fmt.Errorf("%w: %d tasks are not complete", ErrBusy, n)
	}
	return nil
}

// incompleteLocked returns the number of tasks that have entered, or are about to, and are not complete.
func (s *Scheduler) incompleteLocked() int {
	return s.life.live + int(s.intake.size.Load()+s.intake.turning.Load())
}

// Relinquish frees what is kept for later tasks, which will make it again: staging memory, memory
// blocks without allocations, command buffers and goroutines. Storage that is mapped or allocated
// stays. The error is ErrBusy while a task is not complete, or that of a device that is lost already; then
// nothing has changed. A device can also be lost by the call.
func (s *Scheduler) Relinquish() error {
	s.mu.Lock()
	err := s.tasksCompleteLocked()
	if err == nil {
		err = s.loss.err
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.order.Retire()
	for s.order.Retiring() {
		s.life.wake.Wait()
	}
	s.order.Trim()
	s.stamps.Trim()
	s.presence.gone, s.presence.spare = nil, nil
	s.recorders.forgetLocked()
	s.memory.Trim()
	s.mu.Unlock()
	err = s.device.Trim()
	if errors.Is(err, vk.ErrDeviceLost) {
		s.Lose(err)
		err = s.Lost()
	}
	return err
}

// close is Close, but returns the leaks apart from other errors. With now it does not wait for what
// Idle speaks of, but returns ErrBusy.
func (s *Scheduler) close(now bool) (leaked, err error) {
	s.mu.Lock()
	if err := s.idleLocked(); now && err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if s.life.closing {
		s.mu.Unlock()
		return nil, nil
	}
	s.life.closing = true
	s.refuses.Store(true)
	s.kernels.DropAheadLocked()
	var w tasks.Work
	s.flushAllLocked(order.AtOnce, &w)
	s.intake.open.Store(false)
	s.unlockLocked(&w)
	w.Run()
	s.startIntake(false).Finish()
	s.mu.Lock()
	for s.life.live > 0 || s.kernels.CompilingLocked() != nil {
		s.life.wake.Wait()
	}
	s.life.stopped = true
	s.order.Stop()
	s.order.release.Stop()
	s.mu.Unlock()
	s.life.goroutines.Wait()
	if s.life.finish != nil {
		s.life.finish()
	}
	s.mu.Lock()
	s.order.AwaitSubmission()
	s.mu.Unlock()
	_ = s.device.WaitIdle() // it is idle, whatever that returns

	leaked = s.dropMemory()
	s.kernels.Destroy()
	s.mu.Lock()
	err = s.memory.Close()
	s.mu.Unlock()
	return leaked, errors.Join(err, s.device.Close())
}

// dropMemory gives up all mapped and allocated memory. Its error lists what had leaked.
func (s *Scheduler) dropMemory() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.leaksLocked()
	for p := range s.presence.table.All() {
		stateOf(p).Unpin()
	}
	for m := range s.pointers.All() {
		if m.Origin == allocation.Allocated {
			m.Unpin()
		}
	}
	s.memory.DropPinned()
	s.presence.table, s.pointers.allocated = memory.NewTable(), memory.Tally{}
	s.pointers.Init(s.pointers.Generation())
	return err
}
