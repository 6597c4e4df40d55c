package sched

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// fakeDevice is a Device that promises no more than Vulkan does. It runs the commands that are
// submitted in a random order, bounded only by the barriers of the streams, the semaphore waits
// and the host's own waits (see orderCheck). The host sees what the device writes only after a
// barrier to HOST and a wait for its submission: each host-visible block is two arrays, one as
// the device sees it and one as the host does.
//
// It reports every pair of conflicting accesses that nothing orders, every access outside of a
// block, and every breach of the contract of Device.
//
// The device makes progress only in Wait, WaitIdle and Completed, on the caller's goroutine.
type fakeDevice struct {
	props  vk.Properties
	report func(string)

	mu sync.Mutex
	// changed is broadcast when a batch is complete, when something is submitted, and when held
	// or lost change.
	changed *sync.Cond
	rng     *rand.Rand
	order   orderCheck

	blocks    map[vk.Buffer]*fakeBlock
	pipelines map[uint64]vk.PipelineOptions
	handles   uint64
	// pools are the query pools for timestamps, and ticks is the device's clock. queryError is
	// the result of calls that read queries, if not nil.
	pools      map[uint64][]fakeQuery
	ticks      uint64
	queryError error

	// infos describe all queues. The last of them, as many as foreign says, do not belong to
	// the scheduler.
	infos   []order.QueueInfo
	queues  []fakeQueue
	foreign int
	// semaphores are the signals that submissions make on semaphores other than the queues'
	// timelines.
	semaphores map[vk.Semaphore][]fakeSignal
	// pending are the commands that were submitted and not executed yet.
	pending  []*fakeCommand
	flushes  []*hostFlush
	executed int
	// hostSeen has the value of each queue that the host had seen by the last submission.
	hostSeen []uint64
	// trimmed counts the calls of Trim.
	trimmed int
	// submitted counts submissions, and waits the waits of submissions for other queues.
	submitted uint64
	waits     int
	// held keeps the device from executing what was submitted after the submission with the
	// number upTo. Completed answers meanwhile, and Wait blocks.
	held   bool
	upTo   uint64
	lost   bool
	closed bool

	// recordings are those that are not freed, executions counts how often one was submitted, and
	// record is called before each Record, which fails with its error.
	recordings map[vk.Recording]*fakeRecording
	executions int
	record     func() error

	// Hooks: submit and create are called before each Submit and CreateBlock with the number of
	// the call, wait and look before each Wait and Completed. The call fails with their error.
	submit     func(call int) error
	create     func(call int) error
	wait, look func() error

	// prompt says that waits with a limit last as long as they need to. limited counts these waits.
	prompt  bool
	limited int

	submits, creates, imports int
	// idles counts the calls of WaitIdle.
	idles          int
	budget         []vk.HeapBudget
	live, peakLive int
	// barriers has the number of barriers of each submission, and masks how many barriers there
	// were with the same masks.
	barriers []int
	masks    map[vk.Barrier]int
	reports  []string
}

// fakeBlock is a block of memory, as the device sees it and as the host does.
type fakeBlock struct {
	buffer vk.Buffer
	size   uint64
	device []byte
	// host is what is in memory for the host, nil where the host cannot see the block. synced
	// has the contents of host when device and host last exchanged them: where the two differ,
	// the host has written since.
	host, synced []byte
	// cache is what the scheduler has as the mapped memory of a block that is not coherent. A
	// flush copies from cache to host, an invalidation from host to cache. Where the block is a
	// window, cache is poison but for what the scheduler has written and not flushed.
	cache  []byte
	window bool
	// imported says that host is the program's own storage. The device reads each byte of it
	// when it first uses that, and known says which bytes it has read.
	imported bool
	known    []bool
	// bound says that a dispatch has used the block. A block that no dispatch uses, and that is no
	// storage of the program, is staging memory, which the host overwrites before the device reads it
	// again.
	bound bool
}

type fakeQueue struct {
	submitted, completed, observed uint64
	// batches are the submissions that are not complete, and all those that were ever made.
	batches, all []*fakeBatch
	// implies has, for each queue, the value that is reached before anything that is submitted
	// to this queue from now on can run, because earlier submissions waited for it.
	implies []uint64
}

type fakeBatch struct {
	// number is the position of the submission among those of all queues, and value is what it
	// signals.
	number, value uint64
	left          int
	waits         []timeline.Point
	// implies has, for each queue, the value that is certain to be reached when this batch is
	// complete.
	implies []uint64
}

// impliedBy reports whether the point p is certain to be reached when this queue has reached
// value.
func (q *fakeQueue) impliedBy(value uint64, p timeline.Point) bool {
	for _, b := range q.all {
		if b.value <= value && b.implies[p.Queue] >= p.Value {
			return true
		}
	}
	return false
}

// follows adds to the batch what is implied by a submission that it waits for.
func (b *fakeBatch) follows(implied []uint64) {
	for i, v := range implied {
		b.implies[i] = max(b.implies[i], v)
	}
}

// fakeCommand is one dispatch, copy or fill.
type fakeCommand struct {
	command
	batch *fakeBatch
	run   func()
}

// hostFlush is a write of the device that the host does not see yet.
type hostFlush struct {
	by     *command
	access *access
	buffer vk.Buffer
	lo, hi uint64
	// visible are the batches that have a barrier which makes the write visible to the host.
	// data is what the host will see, as it was in memory when the first of them was complete.
	visible []timeline.Point
	data    []byte
}

var _ Device = (*fakeDevice)(nil)

// fakeMemory says what kinds of memory the device has.
type fakeMemory int

const (
	// unifiedMemory has one type, device-local and host-visible.
	unifiedMemory fakeMemory = iota
	// discreteMemory has device memory that the host cannot map, and staging memory that it
	// can.
	discreteMemory
	// incoherentMemory is unified, but neither side sees what the other writes without a flush
	// or an invalidation.
	incoherentMemory
	// windowMemory is discrete, but the host can map device memory as well, which it does not
	// cache (resizable BAR). It may write that memory, and flush what it has written; whatever it
	// reads there is poison.
	windowMemory
)

// oneQueue is what most software drivers have, and manyQueues resembles a GPU: two queues of
// one family, one of another, and one that only transfers.
var (
	oneQueue   = []order.QueueInfo{{Compute: true, TimestampBits: 64}}
	manyQueues = []order.QueueInfo{{Compute: true, TimestampBits: 64}, {Compute: true, TimestampBits: 64}, {Family: 1, Compute: true, TimestampBits: 64}, {Family: 2, TimestampBits: 36}}
)

func newFakeDevice(t reporter, memory fakeMemory, seed uint64) *fakeDevice {
	return newFakeDeviceWith(t, oneQueue, memory, seed)
}

func newFakeDeviceWith(t reporter, queues []order.QueueInfo, memory fakeMemory, seed uint64) *fakeDevice {
	d := &fakeDevice{
		infos: queues, queues: make([]fakeQueue, len(queues)), hostSeen: make([]uint64, len(queues)),
		props: vk.Properties{
			Name: "fake", Type: vk.DeviceIntegrated,
			Limits: vk.Limits{
				MaxStorageBufferRange:               1 << 27,
				MaxPerStageDescriptorStorageBuffers: 8,
				MinStorageBufferOffsetAlignment:     64,
				MaxPushConstantsSize:                128,
				MaxComputeWorkGroupCount:            [3]uint32{65535, 65535, 65535},
				MaxComputeWorkGroupSize:             [3]uint32{128, 128, 64},
				MaxComputeWorkGroupInvocations:      128,
				MaxMemoryAllocationCount:            4096,
				MaxMemoryAllocationSize:             1 << 30,
				NonCoherentAtomSize:                 64,
				MinImportedHostPointerAlignment:     4096,
			},
			Features:    vk.Features{RobustBufferAccess2: true, ExternalMemoryHost: true},
			MemoryHeaps: []vk.MemoryHeap{{Size: 1 << 33, DeviceLocal: true}, {Size: 1 << 33}},
		},
		rng:       rand.New(rand.NewPCG(seed, 1)),
		blocks:    make(map[vk.Buffer]*fakeBlock),
		pipelines: make(map[uint64]vk.PipelineOptions),
		masks:     make(map[vk.Barrier]int),
	}
	d.order.queues, d.order.told = len(queues), make([]int, len(queues))
	for i := range d.queues {
		d.queues[i].implies = make([]uint64, len(queues))
	}
	mapped := vk.MemoryHostVisible | vk.MemoryHostCoherent
	switch memory {
	case unifiedMemory:
		d.props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal | mapped | vk.MemoryHostCached}}
	case incoherentMemory:
		d.props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryHostVisible | vk.MemoryHostCached},
			{Heap: 0, Flags: mapped}}
	case discreteMemory:
		d.props.Type = vk.DeviceDiscrete
		d.props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal}, {Heap: 1, Flags: mapped | vk.MemoryHostCached}}
	case windowMemory:
		d.props.Type = vk.DeviceDiscrete
		d.props.MemoryTypes = []vk.MemoryType{{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryHostVisible}, {Heap: 1, Flags: mapped | vk.MemoryHostCached}}
	}
	d.changed = sync.NewCond(&d.mu)
	d.report = func(what string) { t.Error(what) }
	return d
}

// fail reports that something is wrong, up to 20 times for a device. The caller holds mu.
func (d *fakeDevice) fail(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if len(d.reports) < 20 {
		d.reports = append(d.reports, what)
		d.report(what)
	}
}

func (d *fakeDevice) QueueInfos() []order.QueueInfo { return d.infos[:len(d.infos)-d.foreign] }

func (d *fakeDevice) Properties() *vk.Properties { return &d.props }

func (d *fakeDevice) BlockMemoryTypes(uint64) (uint32, error) {
	return 1<<len(d.props.MemoryTypes) - 1, nil
}

// arrays keeps the memory of blocks for later devices: a random test makes thousands of them. A
// sync.Pool would lose it to each garbage collection, and under Go's race detector at random.
var arrays struct {
	sync.Mutex
	free []*[arrayBytes]byte
}

const (
	arrayBytes = 4 << 20
	// mostArrays bounds what is kept to 192 MiB.
	mostArrays = 48
)

// array returns memory for a block, with whatever contents it has.
func array(size uint64) []byte {
	if size > arrayBytes {
		return make([]byte, size)
	}
	arrays.Lock()
	defer arrays.Unlock()
	last := len(arrays.free) - 1
	if last < 0 {
		return new([arrayBytes]byte)[:size:size]
	}
	a := arrays.free[last]
	arrays.free = arrays.free[:last]
	return a[:size:size]
}

// recycle keeps memory that array has returned for another block.
func recycle(a []byte) {
	if len(a) != arrayBytes {
		return
	}
	arrays.Lock()
	defer arrays.Unlock()
	if len(arrays.free) < mostArrays {
		arrays.free = append(arrays.free, (*[arrayBytes]byte)(a))
	}
}

func (d *fakeDevice) CreateBlock(size uint64, memoryType int) (vk.Block, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.creates++
	if d.create != nil {
		if err := d.create(d.creates); err != nil {
			return vk.Block{}, err
		}
	}
	d.handles++
	b := &fakeBlock{buffer: vk.Buffer(d.handles), size: size, device: array(size)}
	block := vk.Block{Buffer: b.buffer, Memory: vk.Memory(d.handles), Size: size, MemoryType: memoryType}
	if d.props.MemoryTypes[memoryType].Flags&vk.MemoryHostVisible != 0 {
		b.host, b.synced = array(size), array(size)
		block.Host = unsafe.Pointer(&b.host[0])
		if flags := d.props.MemoryTypes[memoryType].Flags; flags&vk.MemoryHostCoherent == 0 {
			b.cache, b.window = array(size), flags&vk.MemoryHostCached == 0
			block.Host = unsafe.Pointer(&b.cache[0])
		}
	}
	b.soil()
	d.blocks[b.buffer] = b
	d.live++
	d.peakLive = max(d.peakLive, d.live)
	return block, nil
}

// soil gives new memory contents: it may hold anything. One byte in 64 that is not zero is
// enough for a test to notice that it was read. Go's race detector would spend much of its time
// here, and nobody else has the memory yet.
//
//go:norace
func (b *fakeBlock) soil() {
	for i := uint64(0); i < b.size; i += 64 {
		b.device[i] = 0xA5
	}
	copy(b.host, b.device)
	copy(b.synced, b.device)
	copy(b.cache, b.device)
	if b.window {
		b.poison(0, b.size)
	}
}

// poison overwrites what the scheduler has of a window.
//
//go:norace
func (b *fakeBlock) poison(lo, hi uint64) {
	for i := range b.cache[lo:hi] {
		b.cache[lo+uint64(i)] = 0xDB
	}
}

// ImportBlock makes a block of host storage. The storage has to fill whole pages, as that of
// array32 does.
func (d *fakeDevice) ImportBlock(host uintptr, size uint64) (vk.Block, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if align := d.props.Limits.MinImportedHostPointerAlignment; uint64(host)%align != 0 || size%align != 0 || size == 0 {
		d.fail("import of %d bytes at %#x", size, host)
	}
	d.imports++
	if d.create != nil {
		d.creates++
		if err := d.create(d.creates); err != nil {
			return vk.Block{}, err
		}
	}
	d.handles++
	b := &fakeBlock{buffer: vk.Buffer(d.handles), size: size, imported: true}
	b.host = unsafe.Slice(*(**byte)(unsafe.Pointer(&host)), size)
	b.device, b.synced, b.known = make([]byte, size), make([]byte, size), make([]bool, size)
	d.blocks[b.buffer] = b
	d.live++
	return vk.Block{Buffer: b.buffer, Memory: vk.Memory(d.handles), Size: size, MemoryType: len(d.props.MemoryTypes) - 1}, nil
}

func (d *fakeDevice) Flush(ranges []vk.MemoryRange) error { return d.sync(ranges, true) }

func (d *fakeDevice) Invalidate(ranges []vk.MemoryRange) error { return d.sync(ranges, false) }

// sync copies ranges of non-coherent memory between cache and memory: to memory for a flush, from
// it for an invalidation. What lies beside a range in its first and last unit goes along or does
// not, at random. So a test notices a range that does not have all bytes, in however small a unit
// they lie, as well as one whose units have bytes of others.
func (d *fakeDevice) sync(ranges []vk.MemoryRange, toMemory bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range ranges {
		b := d.blocks[vk.Buffer(r.Memory)]
		if b == nil || r.Size == 0 || r.Offset+r.Size > b.size || b.host == nil {
			d.fail("flush or invalidation of %+v, which is in no block that the host sees", r)
			continue
		}
		if b.cache == nil {
			continue
		}
		lo, hi := r.Offset, r.Offset+r.Size
		if atom := d.props.Limits.NonCoherentAtomSize; d.rng.IntN(2) == 0 {
			lo, hi = lo/atom*atom, min((hi+atom-1)/atom*atom, b.size)
		}
		if toMemory {
			copy(b.host[lo:hi], b.cache[lo:hi])
		} else {
			copy(b.cache[lo:hi], b.host[lo:hi])
		}
		if b.window {
			// The units of ranges may overlap, so a window is poison only behind all of them.
			defer b.poison(lo, hi)
		}
	}
	return nil
}

// Trim implements Device.
func (d *fakeDevice) Trim() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trimmed++
	if d.lost {
		return errLost
	}
	return nil
}

func (d *fakeDevice) MemoryBudget() ([]vk.HeapBudget, bool) { return d.budget, d.budget != nil }

func (d *fakeDevice) DestroyBlock(block vk.Block) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.blocks[block.Buffer]
	if b == nil {
		d.fail("buffer %d destroyed and does not exist", block.Buffer)
		return
	}
	for _, c := range d.pending {
		for _, a := range c.accesses {
			if a.buffer == block.Buffer {
				d.fail("buffer %d destroyed before %s", block.Buffer, &c.command)
			}
		}
	}
	delete(d.blocks, block.Buffer)
	d.live--
	if !b.imported {
		for _, a := range [][]byte{b.device, b.host, b.synced, b.cache} {
			recycle(a)
		}
	}
}

func (d *fakeDevice) CreatePipeline(o vk.PipelineOptions) (vk.Pipeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.fail("pipeline %q created after Close", o.Label)
	}
	k, ok := fakeKernelOf(o.Label)
	if !ok || len(k.arguments) != len(o.Bindings) {
		return vk.Pipeline{}, fmt.Errorf("the fake has no kernel %q of %d bindings", o.Label, len(o.Bindings))
	}
	d.handles++
	d.pipelines[d.handles] = o
	p := vk.Pipeline{Handle: d.handles, Layout: d.handles, SetLayout: d.handles, Bindings: uint32(len(o.Bindings)), PushConstants: o.PushConstants}
	for _, b := range o.Bindings {
		p.BindingMask |= 1 << b
	}
	return p, nil
}

func (d *fakeDevice) DestroyPipeline(p vk.Pipeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.pipelines[p.Handle]; !ok {
		d.fail("pipeline %d destroyed and does not exist", p.Handle)
	}
	for _, c := range d.pending {
		if c.pipeline == p.Handle {
			d.fail("pipeline %d destroyed before %s", p.Handle, &c.command)
		}
	}
	delete(d.pipelines, p.Handle)
}

func (d *fakeDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.fail("closed twice")
	}
	d.closed = true
	if len(d.pipelines) > 0 || len(d.blocks) > 0 || len(d.pools) > 0 {
		d.fail("closed with %d pipelines, %d blocks and %d query pools alive", len(d.pipelines), len(d.blocks), len(d.pools))
	}
	for i := range d.queues {
		if n := len(d.queues[i].batches); n > 0 {
			d.fail("closed with %d submissions of queue %d under way", n, i)
		}
	}
	return nil
}

// step executes one command, chosen at random from those that may be next, and retires the
// batches that are complete then. It reports whether there was anything to do.
func (d *fakeDevice) step() bool {
	if len(d.pending) > 0 {
		start := d.rng.IntN(len(d.pending))
		for k := range d.pending {
			i := (start + k) % len(d.pending)
			c := d.pending[i]
			if d.held && c.command.batch > d.upTo || !c.ready(&d.order) {
				continue
			}
			d.checkHostWrites(c)
			c.run()
			c.command.executed = true
			c.batch.left--
			d.executed++
			d.pending = append(d.pending[:i], d.pending[i+1:]...)
			d.retire()
			return true
		}
	}
	return d.retire()
}

// retire retires the batches that are complete. It reports whether there were any.
func (d *fakeDevice) retire() (any bool) {
	for more := true; more; {
		more = false
		for i := range d.queues {
			q := &d.queues[i]
			for len(q.batches) > 0 && d.done(q.batches[0]) {
				any, more = true, true
				q.completed = q.batches[0].value
				q.batches = q.batches[1:]
				for _, f := range d.flushes {
					if slices.Contains(f.visible, timeline.Point{Queue: timeline.Queue(i), Value: q.completed}) && d.blocks[f.buffer] != nil {
						f.data = bytes.Clone(d.blocks[f.buffer].device[f.lo:f.hi])
					}
				}
				d.changed.Broadcast()
			}
		}
	}
	return any
}

// done reports whether a batch, the first of its queue, is complete: its commands were executed
// and its waits are reached.
func (d *fakeDevice) done(b *fakeBatch) bool {
	if b.left > 0 || d.held && b.number > d.upTo {
		return false
	}
	for _, w := range b.waits {
		if d.queues[w.Queue].completed < w.Value {
			return false
		}
	}
	return true
}

// observe notes that the host has seen the queue reach a value, and with it the values that
// this implies. The writes that became visible to the host by then are copied to its side.
func (d *fakeDevice) observe(queue int, value uint64) {
	q := &d.queues[queue]
	if value <= q.observed {
		return
	}
	for _, b := range q.all {
		if b.value > q.observed && b.value <= value {
			for i, v := range b.implies {
				if i != queue && v > 0 {
					d.observe(i, v)
				}
			}
		}
	}
	q.observed = value
	kept := d.flushes[:0]
	for _, f := range d.flushes {
		b := d.blocks[f.buffer]
		if !slices.ContainsFunc(f.visible, func(p timeline.Point) bool { return int(p.Queue) == queue && p.Value <= value }) {
			if b != nil {
				kept = append(kept, f)
			}
			continue
		}
		f.access.handed = b != nil && !b.bound && !b.imported
		if b != nil {
			copy(b.host[f.lo:f.hi], f.data)
			copy(b.synced[f.lo:f.hi], f.data)
		}
	}
	clear(d.flushes[len(kept):])
	d.flushes = kept
}

// lose makes every call from now on fail with the loss of the device. Until WaitIdle returns,
// commands that were submitted may still run.
func (d *fakeDevice) lose() {
	d.lost = true
	d.changed.Broadcast()
}

func (d *fakeDevice) Completed(queue int) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost {
		return 0, errLost
	}
	if d.look != nil {
		if err := d.look(); err != nil {
			return 0, err
		}
	}
	if d.rng.IntN(2) == 0 {
		d.step()
	}
	d.observe(queue, d.queues[queue].completed)
	return d.queues[queue].completed, nil
}

func (d *fakeDevice) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &d.queues[queue]
	if timeout == 0 || value > q.submitted {
		d.fail("wait for %d of queue %d with timeout %v, %d is submitted", value, queue, timeout, q.submitted)
		return false, errLost
	}
	if timeout > 0 {
		d.limited++
	}
	if d.wait != nil && !d.lost {
		if err := d.wait(); err != nil {
			return false, err
		}
	}
	for q.completed < value {
		switch {
		case d.lost:
			return false, errLost
		case timeout > 0 && (d.held || !d.prompt && d.rng.IntN(8) == 0):
			return false, nil
		case d.step():
			if d.rng.IntN(4) == 0 {
				d.mu.Unlock()
				d.mu.Lock()
			}
		case d.held:
			d.changed.Wait()
		default:
			d.fail("nothing can run, and %d of %d is complete on queue %d: the order has a cycle", q.completed, q.submitted, queue)
			return false, errLost
		}
	}
	d.observe(queue, q.completed)
	return true, nil
}

// WaitIdle implements Device. A lost device runs some of its commands, at random and as far as
// it is not held, and forgets the others.
func (d *fakeDevice) WaitIdle() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idles++
	for !d.lost {
		switch {
		case d.step():
		case d.idle():
			for i := range d.queues {
				d.observe(i, d.queues[i].completed)
			}
			return nil
		case d.held:
			d.changed.Wait()
		default:
			d.fail("nothing can run, and the device is not idle: the order has a cycle")
			return errLost
		}
	}
	for d.rng.IntN(8) > 0 && d.step() {
	}
	d.pending = nil
	for i := range d.queues {
		d.queues[i].batches = nil
	}
	return errLost
}

// run executes what can run of that which was submitted.
func (d *fakeDevice) run() {
	d.set(func() {
		for d.step() {
		}
	})
}

// idle reports whether all submissions are complete.
func (d *fakeDevice) idle() bool {
	return !slices.ContainsFunc(d.queues, func(q fakeQueue) bool { return len(q.batches) > 0 })
}

// hold stops the device, advance lets it go on until the submission with a number is complete,
// and release lets it go on without end.
func (d *fakeDevice) hold()               { d.set(func() { d.held, d.upTo = true, 0 }) }
func (d *fakeDevice) advance(upTo uint64) { d.set(func() { d.held, d.upTo = true, upTo }) }
func (d *fakeDevice) release()            { d.set(func() { d.held = false }) }

func (d *fakeDevice) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	d.changed.Broadcast()
}
