package sched

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// ErrClosed: the scheduler is closed, or the kernel.
var ErrClosed = errors.New("closed")

// Options says how a Scheduler uses its device.
type Options struct {
	// Domain is the task domain of the device, unique in its graph and not
	// tasks.Host.
	Domain tasks.Domain
	// HideHostVisible ignores that the host can see the device's memory, so
	// that every map goes through staging.
	HideHostVisible bool
	// Incoherent takes all memory for memory that is not coherent.
	Incoherent bool
	// Piece is the size of the pieces in which large copies go through staging, in
	// bytes; 0: 4 MiB.
	Piece uint64
	// Sharing says when target constructs use the host's own storage.
	Sharing Sharing
	// Placement is how to choose among the device's queues, Seed the beginning of
	// PlaceRandom's choices.
	Placement Placement
	Seed      uint64
	// OwnBuffers gives each mapped block and each allocation a VkBuffer of its own, with
	// memory of its own, where the device has no robustBufferAccess2: such a device keeps
	// kernels inside of the VkBuffer, and not of the binding.
	OwnBuffers bool
	// LeakSites notes where in the program memory was asked for, for the error of
	// Close: a microsecond and an object for each allocation and each construct that
	// maps.
	LeakSites bool
	// Generation is what the scheduler before returned that had the device before, 0 for
	// the first: pointers of that one are told from those of this one.
	Generation uint32
	// Numbers are what observers are told of the device and the host.
	Numbers Numbers
	// Regain is added to errors of a device that is lost: how it can be used again.
	Regain string
	// Lost, if not nil, is called once when the device is lost, without locks held, before
	// its tasks fail.
	Lost func(error)
	// Over, if not nil, is called when the device is to be given back and the last task is
	// complete: others end what they have on the device, which is waited for next.
	Over func()
}

// Placement is a way to choose among the queues of a device.
type Placement int

const (
	// PlaceByFinish: where a command is estimated to finish first.
	PlaceByFinish Placement = iota
	// PlaceRandom: any queue that can run it.
	PlaceRandom
)

// QueueStats are totals of one queue.
type QueueStats struct {
	// Family is the queue's family. Transfer: it runs no kernels.
	Family   int
	Transfer bool
	// Submissions, Dispatches, Copies, Barriers and SemaphoreWaits are as in Stats.
	Submissions, Dispatches, Copies, Barriers, SemaphoreWaits uint64
}

// Stats are totals since the scheduler was made.
type Stats struct {
	// Submissions counts queue submissions, Barriers the pipeline barriers in
	// them, those to the host included.
	Submissions, Barriers uint64
	// Dispatches and Copies count device commands.
	Dispatches, Copies uint64
	// SemaphoreWaits counts the waits of one queue for another in submissions,
	// HostWaits how often the host has waited for a queue.
	SemaphoreWaits, HostWaits uint64
	// Queues are the device's.
	Queues []QueueStats
	// BytesToDevice and BytesFromDevice count the bytes of mapped slices that
	// were copied, whichever way they went.
	BytesToDevice, BytesFromDevice uint64
	// Storage and Staging are the device memory in use.
	Storage, Staging memory.AllocatorStats
}

// Plus returns the totals of s and, on the same queues, o. What is in use is what o has.
func (s Stats) Plus(o Stats) Stats {
	queues := slices.Clone(o.Queues)
	for i := range min(len(queues), len(s.Queues)) {
		q, p := &queues[i], &s.Queues[i]
		q.Submissions += p.Submissions
		q.Dispatches += p.Dispatches
		q.Copies += p.Copies
		q.Barriers += p.Barriers
		q.SemaphoreWaits += p.SemaphoreWaits
	}
	if len(queues) == 0 {
		queues = s.Queues
	}
	o.Queues = queues
	o.Submissions += s.Submissions
	o.Barriers += s.Barriers
	o.Dispatches += s.Dispatches
	o.Copies += s.Copies
	o.SemaphoreWaits += s.SemaphoreWaits
	o.HostWaits += s.HostWaits
	o.BytesToDevice += s.BytesToDevice
	o.BytesFromDevice += s.BytesFromDevice
	return o
}

// Scheduler places target tasks on one device. It is safe for concurrent use.
//
// Lock order: mu before the lock of a tasks.Scope.
type Scheduler struct {
	device Device
	// props is device.Properties().
	props  *vk.Properties
	domain tasks.Domain

	// spare keeps targets for reuse, spareStores the stores of allocations.
	spare, spareStores sync.Pool

	mu sync.Mutex
	// wake is signalled when a waiter may have something to do.
	wake  *sync.Cond
	table *memory.Table
	// queues are those of the device, the main one first; computing are those that
	// run kernels, the others only copy. queueInfos describes them.
	queues     []*queue
	computing  []*queue
	copying    []*queue
	queueInfos []QueueInfo
	// placement says how to choose among them, random is for PlaceRandom.
	placement Placement
	random    *rand.Rand
	// submissions counts those of all queues. hostReached is what the host sees of
	// what the device wrote.
	submissions uint64
	hostReached clock
	// ended is what followed returns.
	ended clock
	// done are tasks whose commands are complete and whose exits are not, in the
	// order of the exits; finishing is set while a goroutine works them off.
	done, spareDone []*target
	finishing       bool
	// finishLater is finishDone.
	finishLater func(*tasks.Work)
	// gather is working memory of what places commands, unskipped that of join, waits
	// that of submit, landed that of arrive.
	gather    gathering
	unskipped trail
	waits     []timeline.Point
	landed    []landing
	stats     Stats
	// regain, onLoss and over are Options.Regain, Lost and Over.
	regain string
	onLoss func(error)
	over   func()
	// lost is the error that told of the device's loss; lossTold is closed when it is set.
	// atRest: nothing runs on the device any more; doomed are the tasks that are to be
	// aborted then.
	lost     error
	lossTold chan struct{}
	atRest   bool
	doomed   []*target
	// live counts tasks that have entered and are not complete. starved are
	// those that found no memory while others were live: one of them tries again
	// when one of those is complete, and the next when that one needs no more.
	live    int
	starved []*target
	// entries counts the entries of tasks. filling is signalled when a block has been
	// filled, for which fillWaiters goroutines wait.
	entries     uint64
	filling     *sync.Cond
	fillWaiters int
	// blind are tasks in flight whose exit has an item that is in no block.
	blind []*target
	// kernels are those that tasks have used and that are not closed, released those that
	// are closed and have pipelines still.
	kernels  map[*Kernel]*deviceKernel
	released map[*deviceKernel]struct{}
	// compiling counts pipelines being made: Close waits for them.
	compiling int
	closing   bool
	stopped   bool
	waiters   sync.WaitGroup

	// storage and staging have locks of their own, as have their heaps and imports.
	storage, staging         *memory.Allocator
	storageHeap, stagingHeap *deviceHeap
	taken                    footprint
	imports                  imports
	// piece is Options.Piece.
	piece uint64
	// allocateStorage and freeStorage are storage's for the presence table.
	allocateStorage func(*memory.Map) (memory.Storage, error)
	freeStorage     func(memory.Storage)
	// slots are what pointers name, freeSlots those that name nothing; addresses
	// from nextAddress on stand for memory whose address is not known. allocated is
	// what Allocate returned and Free has not got back.
	slots       []slot
	freeSlots   []uint32
	nextAddress uint64
	allocated   memory.Tally
	// firstGeneration is that of new slots.
	firstGeneration uint32
	// leakSites is Options.LeakSites.
	leakSites bool
	// numbers is Options.Numbers.
	numbers Numbers
	// stamps are those of the device's trace.
	stamps stamps
	// exported are the stores that foreign work can write. exportLock guards it, which
	// is taken last of all.
	exportLock sync.Mutex
	exported   map[*store]struct{}
	// spareBlocks are for associations.
	spareBlocks []*blockState
	// hostWrites are the host's storage that tasks in flight are to write; reading
	// counts the stores that some are to read themselves.
	hostWrites hostWrites
	reading    int
	// hits and left are working memory of hit, under mu.
	hits []memory.Use
	left []memory.Exit
	// removed is working memory of endExit, regions of placeCopy, under mu.
	removed []*memory.Present
	regions []vk.CopyRegion
}

// New returns a scheduler of the device, which it closes when it is closed
// itself; on an error the device stays the caller's.
func New(d Device, o Options) (*Scheduler, error) {
	if o.Domain == tasks.Host {
		return nil, errors.New("sched: a device needs a task domain of its own")
	}
	s := &Scheduler{
		device:   d,
		props:    d.Properties(),
		domain:   o.Domain,
		table:    memory.NewTable(),
		lossTold: make(chan struct{}),
	}
	s.placement, s.random = o.Placement, rand.New(rand.NewPCG(o.Seed, 0))
	s.openQueues(d.QueueInfos())
	s.finishLater = s.finishDone
	s.wake, s.filling = sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	s.kernels, s.released = make(map[*Kernel]*deviceKernel), make(map[*deviceKernel]struct{})
	p := s.props
	// Storage lies at multiples of what bindings ask for, up to 256 bytes: no
	// block needs an offset member, only sub-slices of one.
	align := max(p.Limits.MinStorageBufferOffsetAlignment, p.Limits.NonCoherentAtomSize, 64)
	s.taken.heaps = make([]taken, len(p.MemoryHeaps))
	newAllocator := func(use memoryUse, hidden bool, other **memory.Allocator) (*deviceHeap, *memory.Allocator, error) {
		minBlock, maxBlock := uint64(4<<20), uint64(256<<20)
		if use == useStorage && o.OwnBuffers && !p.Features.RobustBufferAccess2 {
			minBlock, maxBlock = align, align // so that nothing shares a block
		}
		heap, err := newDeviceHeap(d, use, hidden, !o.Incoherent, &s.taken)
		if err != nil {
			return nil, nil, err
		}
		a, err := memory.NewAllocator(heap, memory.AllocatorOptions{
			MinBlock:      minBlock,
			MaxBlock:      maxBlock,
			Alignment:     align,
			MaxAllocation: p.Limits.MaxMemoryAllocationSize,
			MaxBlocks:     int(p.Limits.MaxMemoryAllocationCount) / 2,
			Completed:     s.reached,
			Reclaim:       func() bool { return (*other).Trim() > 0 },
		})
		return heap, a, err
	}
	var err error
	if s.storageHeap, s.storage, err = newAllocator(useStorage, o.HideHostVisible, &s.staging); err != nil {
		return nil, err
	}
	if s.stagingHeap, s.staging, err = newAllocator(useStaging, false, &s.storage); err != nil {
		return nil, err
	}
	if s.piece = o.Piece; s.piece == 0 {
		s.piece = pieceBytes
	}
	s.leakSites, s.numbers = o.LeakSites, o.Numbers
	s.regain, s.onLoss, s.over = o.Regain, o.Lost, o.Over
	s.imports.heaps = make([]Imports, len(p.MemoryHeaps))
	s.imports.mode = o.Sharing
	s.imports.unified = p.Type != vk.DeviceDiscrete && !o.HideHostVisible &&
		p.MemoryTypes[s.storageHeap.memoryType].Flags&vk.MemoryHostVisible != 0
	s.allocateStorage = s.allocateFor
	s.freeStorage = func(st memory.Storage) { s.giveBack(st, &trail{}) }
	s.firstGeneration = max(o.Generation, 1)
	for _, q := range s.queues {
		s.startWaiter(q)
	}
	return s, nil
}

// Properties describes the device.
func (s *Scheduler) Properties() *vk.Properties { return s.props }

// reached reports whether the device has passed a frontier.
func (s *Scheduler) reached(f timeline.Frontier) bool {
	for i := range f.Len() {
		p := f.At(i)
		reached, err := s.device.Completed(int(p.Queue))
		if err != nil || reached < p.Value {
			return false
		}
	}
	return true
}

// Stats returns the totals so far.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	stats := s.stats
	for i, q := range s.queues {
		stats.Submissions += q.stats.Submissions
		stats.Barriers += q.stats.Barriers
		stats.Dispatches += q.stats.Dispatches
		stats.Copies += q.stats.Copies
		stats.SemaphoreWaits += q.stats.SemaphoreWaits
		q.stats.Family, q.stats.Transfer = s.queueInfos[i].Family, !q.computes
		stats.Queues = append(stats.Queues, q.stats)
	}
	s.mu.Unlock()
	stats.Storage, stats.Staging = s.storage.Stats(), s.staging.Stats()
	return stats
}

// Close waits for the device to finish what is in flight, fails what has not
// been placed, and gives back everything: mapped data is not copied back. The
// error, memory.ErrLeaked, lists what was still mapped and allocated. Storage that
// is declared is meant to stay. A second Close does nothing.
func (s *Scheduler) Close() error {
	leaked, err := s.close(false)
	return errors.Join(leaked, err)
}

// Discard is Close for a device that is to be used again: what is mapped and allocated
// is meant to go. It returns the Options.Generation of the next scheduler. With a task
// that is not complete, or a kernel that is being compiled, it is ErrBusy, and nothing
// has changed.
func (s *Scheduler) Discard() (generation uint32, err error) {
	if _, err = s.close(true); errors.Is(err, ErrBusy) {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.firstGeneration, err
}

// Idle is ErrBusy while a task is not complete or a kernel is being compiled.
func (s *Scheduler) Idle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unused()
}

// unused is Idle; mu is held.
func (s *Scheduler) unused() error {
	if s.compiling > 0 {
		return fmt.Errorf("%w: kernels are being compiled: %q", ErrBusy, s.compilingNow())
	}
	return s.idle()
}

func (s *Scheduler) idle() error {
	if s.live > 0 {
		return fmt.Errorf("%w: %d tasks are not complete", ErrBusy, s.live)
	}
	return nil
}

// Relinquish gives back what is kept for tasks to come, which make it anew: staging
// memory, blocks of storage without a live allocation, command buffers and goroutines.
// What is mapped and allocated stays as it is. With a task that is not complete it is
// ErrBusy, of a device that is lost the error that told of it, and nothing has changed.
func (s *Scheduler) Relinquish() error {
	s.mu.Lock()
	err := s.idle()
	if err == nil {
		err = s.lost
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	for _, q := range s.queues {
		q.retired = true
		q.wake.Signal()
	}
	for slices.ContainsFunc(s.queues, func(q *queue) bool { return q.retired && q.waiting }) {
		s.wake.Wait()
	}
	for _, q := range s.queues {
		if q.retired {
			q.free, q.inFlight, q.room = nil, nil, nil
		}
	}
	s.spareBlocks = nil
	s.mu.Unlock()
	s.storage.Trim()
	s.staging.Trim()
	s.trimStamps()
	err = s.device.Trim()
	if errors.Is(err, vk.ErrDeviceLost) {
		s.mu.Lock()
		s.lose(err)
		s.mu.Unlock()
	}
	return err
}

// close is Close, and says apart what leaked; ErrBusy if nothing is to be waited for and
// something is not complete.
func (s *Scheduler) close(now bool) (leaked, err error) {
	s.mu.Lock()
	if err := s.unused(); now && err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if s.closing {
		s.mu.Unlock()
		return nil, nil
	}
	s.closing = true
	var w tasks.Work
	for _, q := range s.queues {
		s.flush(q, true, &w)
	}
	s.mu.Unlock()
	w.Run()
	s.mu.Lock()
	for s.live > 0 || s.compiling > 0 {
		s.wake.Wait()
	}
	s.stopped = true
	for _, q := range s.queues {
		q.wake.Signal()
	}
	s.mu.Unlock()
	s.waiters.Wait()
	if s.over != nil {
		s.over()
	}
	_ = s.device.WaitIdle() // it is idle, whatever that returns

	leaked = s.dropMemory()
	s.destroyKernels()
	return leaked, errors.Join(s.storage.Close(), s.staging.Close(), s.device.Close())
}

// dropMemory gives up all mapped and allocated memory. Its error says what there
// was of it that should not have been.
func (s *Scheduler) dropMemory() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.leaks()
	for p := range s.table.All() {
		stateOf(p).unpin()
	}
	for i := range s.slots {
		s.firstGeneration = max(s.firstGeneration, s.slots[i].generation+1)
		if m := s.slots[i].store; m != nil && m.allocation {
			m.unpin()
		}
	}
	s.table, s.slots, s.freeSlots, s.allocated = memory.NewTable(), nil, nil, memory.Tally{}
	return err
}
