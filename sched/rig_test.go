package sched

import (
	"cmp"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		checks := rapidChecks
		if testing.Short() {
			checks = shortChecks
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// memoryMode is a kind of device memory, with the options by which the scheduler uses it.
type memoryMode struct {
	name   string
	memory fakeMemory
	hidden bool
	share  Sharing
	chunk  uint64
	// threads is how many goroutines share a copy, one if 0, and staging the bytes of staging that
	// tasks in flight have at most, if not 0.
	threads int
	staging uint64
	// pinned says that the storage of programs is pinned, and driver that the device's driver has
	// allocated it. late is Options.Late.
	pinned, driver bool
	late           uint64
	// queues are the device's queues, one if nil.
	queues    []order.QueueInfo
	placement Placement
	// general is Options.General.
	general bool
}

var memoryModes = []memoryMode{
	{name: "unified", memory: unifiedMemory, share: ShareNothing},
	{name: "discrete", memory: discreteMemory, share: ShareNothing},
	{name: "hidden", memory: unifiedMemory, share: ShareNothing, hidden: true},
	{name: "incoherent", memory: incoherentMemory, share: ShareNothing},
	{name: "imported", memory: unifiedMemory, share: ShareAll},
	{name: "window", memory: windowMemory, share: ShareNothing},
}

// chunkModes have rings of staging so small that copies of more than a few words go through
// them. A construct with such a copy waits for the device, which therefore must not be held.
var chunkModes = []memoryMode{
	{name: "chunks", memory: discreteMemory, share: ShareNothing, chunk: 12},
	{name: "chunks of several goroutines", memory: discreteMemory, share: ShareNothing, chunk: 12, threads: 4},
	{name: "little staging", memory: discreteMemory, share: ShareNothing, staging: 100},
	{name: "incoherent chunks", memory: incoherentMemory, share: ShareNothing, hidden: true, chunk: 20, threads: 3},
	{name: "chunks beside a window", memory: windowMemory, share: ShareNothing, chunk: 12, threads: 2},
}

// pinnedModes have pinned storage. Copies at the exits of maps go to it when they are due, or are
// foreseen and go through staging memory.
var pinnedModes = []memoryMode{
	{name: "pinned", memory: discreteMemory, share: ShareNothing, pinned: true, late: 1},
	{name: "pinned, foreseen", memory: discreteMemory, share: ShareNothing, pinned: true},
	{name: "pinned, incoherent", memory: incoherentMemory, share: ShareNothing, hidden: true, pinned: true, late: 40},
	{name: "pinned, of the driver", memory: discreteMemory, share: ShareNothing, pinned: true, driver: true, late: 1},
	{name: "pinned, in place", memory: unifiedMemory, share: ShareAll, pinned: true, late: 1},
}

// queueModes returns the modes with several queues: once with each command on the queue where
// the scheduler expects it to end first, and once on any queue that can run it.
func queueModes(modes ...memoryMode) (spread []memoryMode) {
	for _, m := range modes {
		for _, placement := range []Placement{PlaceByFinish, PlaceRandom} {
			of := m
			of.queues, of.placement = manyQueues, placement
			of.name += [...]string{" on many queues", " on any queue"}[placement]
			spread = append(spread, of)
		}
	}
	return spread
}

// inEveryMemory runs a test in every memory mode, and with several orders in which the device
// may run commands.
func inEveryMemory(t *testing.T, test func(t *testing.T, r *rig)) {
	for _, mode := range memoryModes {
		for seed := range uint64(deviceOrders) {
			t.Run(fmt.Sprintf("%s/%d", mode.name, seed), func(t *testing.T) {
				r := newRig(t, mode, seed)
				defer r.close()
				test(t, r)
			})
		}
	}
}

// rig is a scheduler on a fake device, with a scope for tasks.
type rig struct {
	t     reporter
	d     *fakeDevice
	s     *Scheduler
	graph tasks.Graph
	scope *tasks.Scope

	kernels map[string]*kernel.Kernel
	closed  bool
	// observe, if not nil, gives each construct its observer.
	observe func(label string) construct.Observer
	// share says that target constructs may use the host's storage in place.
	share bool

	// watches says that constructs get observers that check the events. memory is what these
	// know of device memory.
	watches bool
	// open says that the context of constructs could end.
	open     bool
	watching sync.Mutex
	watchers []*watch
	memory   map[uint64]uint64
}

// reporter has what a rig needs of testing.TB, which the tests with rapid replace.
type reporter interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
}

const rigDomain tasks.Domain = 1

func newRig(t reporter, mode memoryMode, seed uint64) *rig {
	t.Helper()
	queues := mode.queues
	if queues == nil {
		queues = oneQueue
	}
	return newRigOn(t, newFakeDeviceWith(t, queues, mode.memory, seed), mode)
}

// openContext is a context that could end.
type openContext struct{ context.Context }

func (openContext) Done() <-chan struct{} { return openChannel }

var openChannel = make(chan struct{})

func newRigOn(t reporter, d *fakeDevice, mode memoryMode) *rig {
	t.Helper()
	r := &rig{t: t, d: d, kernels: make(map[string]*kernel.Kernel), share: mode.share == ShareAll}
	var err error
	if r.s, err = New(r.d, Options{Domain: rigDomain, HideHostVisible: mode.hidden, Sharing: mode.share, Chunk: mode.chunk, Threads: mode.threads, Staging: mode.staging, Late: mode.late, Placement: mode.placement, General: mode.general, Seed: d.rng.Uint64()}); err != nil {
		t.Fatal(err)
	}
	if p := r.s.memory.Profile(); p.KernelCopies > 0 {
		// Tests copy few bytes.
		p.KernelCopies = 64
	}
	r.compileCopier()
	// Tests look at what is placed when a construct has returned.
	r.s.intake.many = 0
	// On a software driver few invocations are a long kernel.
	r.s.order.SetRates(order.SoftwareRates)
	r.watches, r.memory = d.rng.IntN(2) == 0, make(map[uint64]uint64)
	r.open = d.rng.IntN(2) == 0
	r.scope = r.graph.NewScope()
	for name := range fakeKernels {
		// A device of few descriptors does without the kernel that has many arguments.
		if k := loadKernel(t, name); len(k.Bindings()) <= int(d.props.Limits.MaxPerStageDescriptorStorageBuffers) {
			r.kernels[name] = k
		}
	}
	r.compile()
	return r
}

// compile makes the pipelines of all kernels, so that no task of a test has to wait for one.
// Only set is used with folded ranges.
func (r *rig) compile() {
	r.t.Helper()
	for name := range r.kernels {
		r.compileFold(name, 0)
		if name == "set" {
			r.compileFold(name, 1)
		}
	}
}

// compileCopier compiles the kernel for copies within the device, if it has one.
func (r *rig) compileCopier() {
	r.s.CompileOwn()
	r.s.mu.Lock()
	underWay := r.s.kernels.CompilingLocked()
	r.s.mu.Unlock()
	for _, c := range underWay {
		<-c.Done()
	}
}

// compileFold makes one pipeline of a kernel and waits for it.
func (r *rig) compileFold(name string, fold int) {
	r.t.Helper()
	r.s.mu.Lock()
	d, err := r.s.useLocked(r.kernels[name])
	r.s.mu.Unlock()
	if err != nil {
		r.t.Fatal(err)
	}
	defer d.Release()
	c, err := r.s.compile(d, fold)
	if err != nil {
		r.t.Fatal(err)
	}
	<-c.Done()
	if _, err := c.Result(); err != nil {
		r.t.Fatal(err)
	}
}

// close waits for the tasks, checks that nothing is left behind, and closes the scheduler.
func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	r.t.Helper()
	r.d.release()
	if err := r.scope.Wait(context.Background(), nil); err != nil {
		r.t.Error(err)
	}
	r.checkEmpty()
	r.checkWatched()
	if err := r.s.Close(); err != nil {
		r.t.Error(err)
	}
	if err := r.s.Close(); err != nil {
		r.t.Errorf("second Close: %v", err)
	}
}

// checkEmpty checks that nothing is mapped, allocated or in flight.
func (r *rig) checkEmpty() {
	r.t.Helper()
	// The batches that emptied the last chunks of a ring belong to no task that was waited for.
	r.eventually("no batch is in flight", func() bool {
		return !slices.ContainsFunc(r.s.order.All(), func(q *order.Queue) bool { return len(q.InFlight()) > 0 })
	})
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if n := r.s.presence.table.Len(); n != 0 {
		r.t.Errorf("%d blocks are mapped", n)
	}
	if err := r.s.presence.table.Validate(); err != nil {
		r.t.Error(err)
	}
	for _, q := range r.s.order.All() {
		if r.s.life.live != 0 || len(q.InFlight()) != 0 || !q.Pending().Empty() {
			r.t.Errorf("%d tasks live, %d batches of queue %d in flight, nothing pending: %v", r.s.life.live, len(q.InFlight()), q.Index(), q.Pending().Empty())
		}
	}
	for name, a := range map[string]*memory.Allocator{"storage": r.s.memory.Storage, "staging": r.s.memory.Staging} {
		if n := a.Stats().Allocations; n != 0 {
			r.t.Errorf("%d allocations of %s are left", n, name)
		}
		if err := a.Validate(); err != nil {
			r.t.Error(err)
		}
	}
}

// arg is a slice and how it is mapped.
type arg struct {
	s      []uint32
	kind   memory.MapType
	always bool
	// at, if not nil, points to the memory that the kernel gets instead of an item, as many elements as s has. toEnd means up to
	// the end of the memory, or, of an item, which is then one without bytes, up to the end of its storage.
	at    Pointer
	toEnd bool
}

func to(s []uint32) arg     { return arg{s: s, kind: memory.MapTo} }
func from(s []uint32) arg   { return arg{s: s, kind: memory.MapFrom} }
func tofrom(s []uint32) arg { return arg{s: s, kind: memory.MapToFrom} }
func alloc(s []uint32) arg  { return arg{s: s, kind: memory.MapAlloc} }

func reaches(p Pointer, elements int) arg { return arg{at: p, s: array32(elements)} }

func (a arg) item(label string) memory.Map {
	return memory.Map{
		Section: memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(a.s)), Size: 4 * uint64(len(a.s))},
		Type:    a.kind, Always: a.always, Label: label,
	}
}

// launch describes a construct.
type launch struct {
	label  string
	kernel string
	args   []arg
	// constant is the kernel's value after the number of elements.
	constant uint32
	// only, if not 0, limits the elements that the kernel works on, where the arguments have
	// more.
	only int
	// empty makes the kernel's range empty.
	empty bool
	// in and out are slices for the depend clause.
	in, out [][]uint32
	// depend has the depend items of other kinds.
	depend []tasks.Depend
	// included makes the construct wait for its task.
	included bool
	priority int
	group    *tasks.Group
	place    tasks.Place
	// scope is that of the rig if nil.
	scope *tasks.Scope
	// enter and exit are what a construct without a kernel maps and unmaps.
	enter, exit []arg
}

func dependOn(in, out [][]uint32) (d []tasks.Depend) {
	return append(depends(tasks.DependIn, in...), depends(tasks.DependInOut, out...)...)
}

func depends(kind tasks.DependKind, slices ...[]uint32) (d []tasks.Depend) {
	for _, s := range slices {
		d = append(d, tasks.Depend{Kind: kind, Ptr: unsafe.Pointer(unsafe.SliceData(s)), Size: 4 * uint64(len(s))})
	}
	return d
}

func valueBytes(values ...uint32) (v [][]byte) {
	for _, x := range values {
		v = append(v, binary.NativeEndian.AppendUint32(nil, x))
	}
	return v
}

// wideMatrix is the third value of the kernel wide: the numbers from 0 to 15.
var wideMatrix = func() (m []byte) {
	for i := range uint32(16) {
		m = binary.NativeEndian.AppendUint32(m, i)
	}
	return m
}()

// elements returns how many elements the kernel of a launch works on.
func (l *launch) elements() uint32 {
	n := len(l.args[0].s)
	for _, a := range l.args {
		n = min(n, len(a.s))
	}
	if l.only > 0 {
		n = min(n, l.only)
	}
	return uint32(n)
}

func (r *rig) region(l launch) *Region {
	g := &Region{
		Construct: construct.Construct{Label: l.label, Scope: cmp.Or(l.scope, r.scope), Depend: append(dependOn(l.in, l.out), l.depend...), NoWait: !l.included, Group: l.group, Place: l.place, Priority: l.priority, Observer: r.watched(l.label)},
	}
	if r.observe != nil {
		g.Observer = r.observe(l.label)
	}
	if l.kernel == "" {
		for _, a := range l.enter {
			g.Enter = append(g.Enter, a.item(""))
		}
		for _, a := range l.exit {
			g.Exit = append(g.Exit, a.item(""))
		}
		return g
	}
	asTheyAre := true // the items are the arguments
	for i, a := range l.args {
		asTheyAre = asTheyAre && a.at.IsNil() && !a.toEnd
		if a.at.IsNil() {
			g.Buffers = append(g.Buffers, Buffer{Map: len(g.Enter), ToEnd: a.toEnd})
			m := a.item(fmt.Sprint("argument ", i))
			if a.toEnd {
				m.Size, m.Presence = 0, memory.IfPresent
			}
			g.Enter = append(g.Enter, m)
			continue
		}
		b := Buffer{Map: -1, Pointer: a.at, Size: 4 * uint64(len(a.s)), ToEnd: a.toEnd}
		if b.ToEnd {
			b.Size = 0
		}
		g.Buffers = append(g.Buffers, b)
	}
	if asTheyAre {
		g.Buffers = nil
	}
	g.Kernel, g.Structured = r.kernels[l.kernel], true
	n := l.elements()
	g.Range = [3]uint64{uint64(n), 1, 1}
	if l.empty {
		g.Range[0] = 0
	}
	g.Values = append(valueBytes(n, l.constant), wideMatrix)[:len(g.Kernel.Values())]
	return g
}

// pin pins a slice, and unpin undoes that.
func (r *rig) pin(s []uint32) {
	r.t.Helper()
	if err := r.s.Pin(sectionOf(s)); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) unpin(s []uint32) {
	r.t.Helper()
	a, err := r.s.WithdrawPinned(sectionOf(s))
	if err != nil || a == nil {
		r.t.Errorf("the end of %v: %v, %v", sectionOf(s), a, err)
		return
	}
	r.s.EndPinned(a)
}

func (r *rig) run(l launch) {
	r.t.Helper()
	ctx := context.Background()
	if r.open {
		ctx = openContext{ctx}
	}
	if err := r.s.Run(ctx, r.region(l)); err != nil {
		r.t.Errorf("%s: %v", l.label, err)
	}
}

// mix runs the kernel out = 3 out + a + b + c with maps of its own, as a task outside of data
// regions.
func (r *rig) mix(label string, out, a, b []uint32, c uint32) {
	r.t.Helper()
	r.run(launch{label: label, kernel: "mix", args: []arg{tofrom(out), to(a), to(b)}, constant: c,
		in: [][]uint32{a, b}, out: [][]uint32{out}})
}

func (r *rig) taskwait() {
	r.t.Helper()
	if err := r.scope.Wait(context.Background(), nil); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) expect(name string, got []uint32, want ...uint32) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// hostBody is the runner of a host task: it runs a function on a goroutine of its own.
type hostBody func()

func (f hostBody) Start(n *tasks.Node, _ *tasks.Work) {
	go func() {
		f()
		var w tasks.Work
		n.Complete(nil, &w)
		w.Run()
	}()
}

func (hostBody) Recycle() {}

func (r *rig) host(label string, in, out [][]uint32, f func()) {
	r.t.Helper()
	r.add(&tasks.Task{Label: label, Depend: dependOn(in, out), Runner: hostBody(f)})
}

// add generates a task in the rig's scope.
func (r *rig) add(t *tasks.Task) {
	r.t.Helper()
	r.addTo(r.scope, t)
}

func (r *rig) addTo(s *tasks.Scope, t *tasks.Task) *tasks.Node {
	r.t.Helper()
	var w tasks.Work
	n, err := s.Add(t, &w)
	if err != nil {
		r.t.Error(err)
	}
	w.Run()
	return n
}

// joiner is the runner of a task without work. The device of its predecessors completes it, or
// the host, as Node.Domain says.
type joiner struct{ s *Scheduler }

func (j joiner) Start(n *tasks.Node, w *tasks.Work) {
	if n.Domain() == tasks.Host {
		n.Complete(nil, w)
		return
	}
	j.s.Join(n, w)
}

func (joiner) Recycle() {}

// join generates a task without work.
func (r *rig) join(label string, depend ...tasks.Depend) {
	r.t.Helper()
	r.add(&tasks.Task{Label: label, Domain: tasks.AnyDomain, Depend: depend, Runner: joiner{r.s}})
}

// targetOf returns the target to which a task of the order belongs, which is not a resident task.
func targetOf(t *order.Task) *target { return t.Owner.(*target) }

// awaitedOf returns what a task of the order shares with the construct that waits for it.
func awaitedOf(t *order.Task) *awaited {
	if l, ok := t.Owner.(*resident); ok {
		return l.awaited
	}
	return targetOf(t).awaited
}

// labelOf returns the label of the target task to which a task of the order belongs.
func labelOf(t *order.Task) string {
	if l, ok := t.Owner.(*resident); ok {
		return l.node.Label()
	}
	return targetOf(t).node.Label()
}
