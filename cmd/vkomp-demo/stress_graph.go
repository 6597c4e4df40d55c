package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vkomp/vkomp"
)

// stressKind is what tasks do in addition to reading and writing slots.
type stressKind uint8

const (
	// stressEmpty does nothing more, with the smallest slots.
	stressEmpty stressKind = iota
	// stressCompute does random numbers of rounds of arithmetic: few in most tasks, many in
	// some.
	stressCompute
	// stressMemory has larger slots and copies in addition to the kernels: see traffic.
	stressMemory
)

const (
	// smallElements and largeElements are numbers of elements of a slot. A kernel's loops make
	// some 34000 iterations over a row of the largest ones; llvmpipe allows 65535.
	smallElements, largeElements = 16, 512
	// roundsMost bounds the rounds of stressCompute.
	roundsMost = 1 << 12
	// gateMost is the largest number of tasks behind a closed gate, stressWindow the number of
	// tasks between two waits. Both bound the memory of tasks.
	gateMost, stressWindow = 1 << 12, 1 << 16
	// With -mix host, one of hostShare tasks is a host task.
	hostShare = 8
)

// stressGraph is a graph of tasks and its storage, a ring of rows of slots. The task (step, point)
// reads slots in the row of step-1 and writes its own slot in the row of step, after the tasks that
// read the previous contents.
type stressGraph struct {
	pattern
	rt      *vkomp.Runtime
	device  vkomp.Device
	kernels *stressKernels
	// number distinguishes this graph's results from those of others; it is not 0.
	number uint32
	kind   stressKind
	// fixedRounds, if not 0, is the number of rounds of work of every task, for measurements;
	// then nothing is random. took is the time from the creation of the first task to the end
	// of the last.
	fixedRounds uint32
	took        time.Duration
	// mixed says that a share of the tasks are host tasks.
	mixed bool
	// pinned says that the storage is pinned. pins has what is, and unpinned why something is not.
	pinned   bool
	pins     []*vkomp.Pinned[uint32]
	unpinned error
	clauses  *clauseWriter
	fault    *stressFault

	// The following are random choices: the number of rows; whether each slot, rather than each
	// row, is mapped and bound by itself; whether a span of inputs is one depend item rather
	// than one for each point; whether tasks of a step are created in another order than that of
	// the points; whether the first tasks wait behind a gate until most are created; and whether
	// mapping and unmapping are part of the graph.
	rows                                   int
	apart, perSpan, shuffled, gated, async bool

	// storage holds the rows; reads and writes are depend items of the slots, bindings are
	// arguments for them.
	storage  []uint32
	slotSize int
	reads    []vkomp.Depend
	writes   []vkomp.Depend
	bindings []vkomp.Arg
	host     *hostSide
	traffic  *traffic
	// gate is the dependence of the first tasks on a task that completes when opening is
	// fulfilled. closed says that it has not been fulfilled.
	gate    []uint32
	opening vkomp.Event
	closed  bool

	// Scratch memory of create.
	spans  []span
	args   []vkomp.Arg
	depend []vkomp.Depend
	// under counts the tasks since the last wait, created those of the pattern, and others the
	// additional tasks.
	under, created, others int

	mu sync.Mutex // guards found, which host tasks add to
	// found are the violations.
	found stressFindings
}

// stressFault is an error that tests inject, by step and point; nil injects none.
type stressFault struct {
	// forgets makes a task leave out the depend items for its inputs, lies makes it write
	// another step.
	forgets, lies func(step, point int) bool
}

func (f *stressFault) forget(step, point int) bool {
	return f != nil && f.forgets != nil && f.forgets(step, point)
}

func (f *stressFault) lie(step, point int) bool {
	return f != nil && f.lies != nil && f.lies(step, point)
}

// stressFindings holds violations: their number, and descriptions of the first.
type stressFindings struct {
	count int
	first []string
}

// findingsShown is the largest number of described violations of a graph, findingsEach that of a
// slot.
const findingsShown, findingsEach = 8, 2

// add adds violations of a slot.
func (f *stressFindings) add(n int, messages []string) {
	f.count += n
	f.first = append(f.first, messages[:min(len(messages), findingsEach, findingsShown-len(f.first))]...)
}

// draw makes the random choices and allocates the storage.
func (g *stressGraph) draw() {
	bit := func(which uint64) bool { return mix(g.seed, uint64(g.pattern.kind), 1000+which)&1 != 0 }
	g.rows = 2
	if g.fixedRounds == 0 {
		g.rows += int(mix(g.seed, uint64(g.pattern.kind), 999) % 3)
		g.perSpan, g.shuffled, g.gated = bit(0), bit(1), bit(2)
		// Slots are mapped separately if a kernel has enough bindings.
		g.apart = bit(3) && g.mostInputs() <= stressInputs
		// The host accesses slots only while they are mapped.
		g.async = bit(4) && !g.mixed && g.kind != stressMemory
	}
	g.slotSize = slotSize(g.elements())
	g.storage = g.allocate(g.rows * g.width * g.slotSize)
	for at := range g.rows * g.width {
		g.reads = append(g.reads, vkomp.In(g.slot(at)))
		g.writes = append(g.writes, vkomp.Out(g.slot(at)))
		g.bindings = append(g.bindings, vkomp.Alloc([]uint32(g.slot(at))))
	}
	g.gate = make([]uint32, 1)
	if g.mixed || g.kind == stressMemory {
		g.host = newHostSide(g)
	}
}

// allocate returns storage for tasks.
func (g *stressGraph) allocate(n int) []uint32 {
	if g.pinned {
		p, err := vkomp.AllocPinned[uint32](context.Background(), g.rt, n, g.device)
		if err == nil {
			g.pins = append(g.pins, p)
			return p.Slice()
		}
		g.unpinned = err
	}
	return make([]uint32, n)
}

// unpin frees the storage that is pinned, which nothing may use any more.
func (g *stressGraph) unpin() error {
	var errs []error
	for _, p := range g.pins {
		errs = append(errs, p.Free(context.Background()))
	}
	g.pins = nil
	return errors.Join(errs...)
}

func (g *stressGraph) elements() int {
	if g.kind == stressMemory {
		return largeElements
	}
	return smallElements
}

// index returns the number of a task's slot.
func (g *stressGraph) index(step, point int) int { return step%g.rows*g.width + point }

func (g *stressGraph) slot(at int) slot { return g.storage[at*g.slotSize:][:g.slotSize:g.slotSize] }

// who returns what identifies a task, and the number of its rounds of work.
func (g *stressGraph) who(step, point int) [4]uint32 {
	rounds := g.fixedRounds
	if g.kind == stressCompute && rounds == 0 {
		draw := mix(g.seed, uint64(step), uint64(point), 2000)
		rounds = uint32(draw>>8) % (roundsMost >> (draw % 12))
	}
	return [4]uint32{uint32(step), uint32(point), g.number, rounds}
}

// run creates all tasks, waits for them, and checks what they have written. Violations are in
// found; an error means that the graph could not be run. The end of ctx stops the creation; tasks
// that were created are waited for.
func (g *stressGraph) run(ctx context.Context, progress func(tasks int)) (err error) {
	if g.unpinned != nil {
		return g.unpinned
	}
	tasks := context.WithoutCancel(ctx)
	if err := g.enter(tasks); err != nil {
		return errors.Join(err, g.rt.Taskwait(tasks))
	}
	start := time.Now()
	err = g.createAll(ctx, tasks, progress)
	if !g.async {
		err = errors.Join(err, g.rt.Taskwait(tasks))
		g.took = time.Since(start)
	}
	err = errors.Join(err, g.exit(tasks))
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		g.inspect()
	}
	return err
}

// maps returns the items that map the storage.
func (g *stressGraph) maps(item func(s []uint32) vkomp.Arg) (maps []vkomp.Arg) {
	piece := g.width * g.slotSize
	if g.apart {
		piece = g.slotSize
	}
	for at := 0; at < len(g.storage); at += piece {
		maps = append(maps, item(g.storage[at:][:piece]))
	}
	return maps
}

func (g *stressGraph) enter(ctx context.Context) error {
	err := g.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: g.device, Maps: g.maps(vkomp.To[uint32]),
		Depend: []vkomp.Depend{vkomp.Out(g.storage)}, NoWait: g.async})
	if err == nil && g.kind == stressMemory {
		if g.traffic, err = newTraffic(ctx, g); err != nil {
			err = errors.Join(err, g.exit(ctx))
		}
	}
	return err
}

// exit unmaps what enter has mapped.
func (g *stressGraph) exit(ctx context.Context) error {
	err := g.rt.TargetExitData(ctx, vkomp.TargetExitData{Device: g.device, Maps: g.maps(vkomp.From[uint32]),
		Depend: []vkomp.Depend{vkomp.Out(g.storage)}, NoWait: g.async})
	if err = errors.Join(err, g.rt.Taskwait(ctx)); err != nil {
		// After the failure of a task on which it depends, the construct has not been executed.
		err = errors.Join(err, g.rt.TargetExitData(ctx, vkomp.TargetExitData{Device: g.device, Maps: g.maps(vkomp.Delete[uint32])}))
	}
	if g.traffic != nil {
		err = errors.Join(err, g.traffic.free(ctx))
	}
	return err
}

// createAll creates the tasks in an order in which they could also run one by one.
func (g *stressGraph) createAll(ctx, tasks context.Context, progress func(tasks int)) (err error) {
	g.clauses.graph(g.number)
	if err := g.closeGate(tasks); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.openGate()) }()
	// Where only the ring of rows orders the points, create one point after the other.
	if g.shuffled && g.pattern.kind <= noComm {
		for point := range g.width {
			for step := range g.steps {
				if err := g.create(tasks, step, point); err != nil {
					return err
				}
				if err := g.pause(ctx, tasks); err != nil {
					return err
				}
			}
			progress(g.steps)
		}
		return nil
	}
	for step := range g.steps {
		row := g.row(step)
		n := row.points()
		// A stride without a common divisor with n visits every point.
		first, stride := 0, 1
		if g.shuffled {
			first = int(mix(g.seed, uint64(step), 3000) % uint64(n))
			stride = coprime(n, mix(g.seed, uint64(step), 3001))
		}
		for i := range n {
			if err := g.create(tasks, step, row.first+(first+i*stride)%n); err != nil {
				return err
			}
		}
		if err := g.pause(ctx, tasks); err != nil {
			return err
		}
		progress(n)
	}
	return nil
}

// closeGate generates the task for which the first tasks of a gated graph wait; openGate lets it
// complete.
func (g *stressGraph) closeGate(ctx context.Context) error {
	if !g.gated {
		return nil
	}
	err := g.rt.Task(ctx, vkomp.Task{Label: "gate", Depend: []vkomp.Depend{vkomp.Out(g.gate)}, Detach: &g.opening,
		Body: func(context.Context) error { return nil }})
	g.closed = err == nil
	return err
}

func (g *stressGraph) openGate() error {
	if !g.closed {
		return nil
	}
	g.closed = false
	return g.opening.Fulfill()
}

// pause opens the gate when there are enough tasks behind it, and waits when there are enough tasks
// since the last wait.
func (g *stressGraph) pause(ctx, tasks context.Context) error {
	if g.created >= gateMost {
		if err := g.openGate(); err != nil {
			return err
		}
	}
	if g.under >= stressWindow && !g.closed {
		g.under = 0
		if err := g.rt.Taskwait(tasks); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// coprime returns a number from 1 to about n that has no common divisor with n.
func coprime(n int, draw uint64) int {
	for stride := 1 + int(draw%uint64(n)); ; stride++ {
		a, b := n, stride
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return stride
		}
	}
}

// create generates the task (step, point) with its additional tasks.
func (g *stressGraph) create(ctx context.Context, step, point int) error {
	g.spans = g.inputs(step, point, g.spans[:0])
	g.under++
	g.created++
	if g.mixed && mix(g.seed, uint64(step), uint64(point), 4000)%hostShare == 0 {
		return g.createOnHost(ctx, step, point)
	}
	own := g.index(step, point)
	g.args, g.depend = append(g.args[:0], g.bindings[own]), g.depend[:0]
	var words [stressInputs]uint32
	bound := 0
	bind := func(s span, a vkomp.Arg) {
		words[bound] = spanWord(s)
		g.args = append(g.args, a)
		bound++
	}
	for _, s := range g.spans {
		first := g.index(step-1, s.first)
		if !g.apart {
			bind(s, vkomp.Alloc(g.storage[first*g.slotSize:][:s.points()*g.slotSize]))
			continue
		}
		for i := range s.points() {
			bind(span{s.first + i, s.first + i}, g.bindings[first+i])
		}
	}
	if !g.fault.forget(step, point) {
		g.dependOnInputs(step)
	}
	g.depend = append(g.depend, g.writes[own])
	if g.gated && step < g.rows {
		g.depend = append(g.depend, vkomp.In(g.gate))
	}
	who := g.who(step, point)
	if g.fault.lie(step, point) {
		who[0] += 7
	}
	g.args = append(g.args, vkomp.Value(who))
	for k := 0; k < bound; k += 4 {
		g.args = append(g.args, vkomp.Value([4]uint32(words[k:])))
	}
	g.clauses.task(step, point, false, g.keysOfInputs(step), own)
	err := g.rt.Target(ctx, vkomp.Target{Device: g.device, Kernel: g.kernels.tasks[bound], Range: vkomp.Range{X: slotLanes},
		Args: g.args, Depend: g.depend, NoWait: true})
	if err == nil && g.traffic != nil {
		err = g.traffic.follow(ctx, step, point)
	}
	return err
}

// dependOnInputs appends the items for the inputs of a task of that step.
func (g *stressGraph) dependOnInputs(step int) {
	for _, s := range g.spans {
		first := g.index(step-1, s.first)
		if g.perSpan {
			g.depend = append(g.depend, vkomp.In(g.storage[first*g.slotSize:][:s.points()*g.slotSize]))
			continue
		}
		g.depend = append(g.depend, g.reads[first:][:s.points()]...)
	}
}

// inspect searches the results for violations.
func (g *stressGraph) inspect() {
	for at := range g.rows * g.width {
		g.found.add(g.slot(at).violations(g.number, 1))
	}
	o := oracle{g: g}
	if g.traffic != nil {
		o.run(g.traffic.inspect)
	} else {
		o.run(nil)
	}
	o.compare(g.found.add)
	if g.host != nil && g.host.bodies.Load() != int64(g.host.wanted) {
		g.found.add(1, []string{fmt.Sprintf("%d of %d host tasks have run", g.host.bodies.Load(), g.host.wanted)})
	}
}
