package order

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/vkomp/vkomp/vk/spirv"
)

// Options are the options of Check.
type Options struct {
	// Clauses is a clauses file; nil means none.
	Clauses io.Reader
	// Limit is the number of violations that are kept with their text; 0 means 100.
	Limit int
	// Foreign says that the program uses foreign work: a batch may be submitted before what it waits for, as
	// Vulkan allows. It is held back until then, and so are the later batches of its queue. Without
	// Foreign such a wait is a violation, since the runtime alone submits none.
	Foreign bool
}

// Check reads a log to its end and reports the violations in it. It returns an error if the log
// or the clauses file cannot be read; the report then covers the part that was read.
func Check(log io.Reader, o Options) (*Report, error) {
	c := newChecker(o)
	err := c.run(log)
	return c.report, err
}

// checker processes a log.
type checker struct {
	*reader
	engine  *engine
	report  *Report
	limit   int
	foreign bool
	clauses *clauses
	// trace, if not nil, is called for every event that the engine processes.
	trace func(*event)
	// recorded, if not nil, is called for every command buffer, when it has been read.
	recorded func(*commandBuffer)

	thread     *HostTotals
	devices    map[int]*device
	queues     map[int]*queue
	memories   map[int]*memory
	buffers    map[int]*buffer
	modules    map[int]*module
	pipelines  map[int]*pipeline
	semaphores map[int]*heldSemaphore
	fences     map[int]*fence
	commands   map[int]*commandBuffer
	signaller  map[int]*queue // by semaphore
	addresses  *space         // of the host
	freeLanes  []*queue       // of closed devices, for reuse
	lanes      int

	// pending is a submission that a following line may still mark as failed.
	pending     []byte
	pendingLine int
	// held are the batches that have not begun, in the order of their submission.
	held []*batch

	bound map[uint64][]bufferRange // of the command buffer being read, by set and binding
	push  [maxPushes]uint32
	ev    event
	// executing is the command whose events are processed, and how is the way in which the host
	// learned what the events of the line say: that of a wait, or "count".
	executing *command
	how       string
	// submitting is the queue of the submission whose events are processed, and accessing the memory
	// that the host accesses.
	submitting *queue
	accessing  *memory
	// touched is the accesses of the next event, if there is a trace.
	touched []touch
}

func newChecker(o Options) *checker {
	c := &checker{
		engine: newEngine(), limit: o.Limit, foreign: o.Foreign,
		report:  &Report{Kinds: map[Kind]uint64{}},
		devices: map[int]*device{}, queues: map[int]*queue{}, memories: map[int]*memory{},
		buffers: map[int]*buffer{}, modules: map[int]*module{}, pipelines: map[int]*pipeline{},
		semaphores: map[int]*heldSemaphore{}, fences: map[int]*fence{}, commands: map[int]*commandBuffer{},
		signaller: map[int]*queue{}, addresses: &space{name: "host memory"},
	}
	if c.limit == 0 {
		c.limit = 100
	}
	if o.Clauses != nil {
		c.clauses = newClauses(o.Clauses)
	}
	c.engine.found = c.found
	return c
}

func (c *checker) run(log io.Reader) error {
	r, err := newReader(log)
	if err != nil {
		return err
	}
	c.reader = r
	c.thread = c.host(0)
	for c.next() {
		c.report.Bytes += uint64(len(c.text)) + 1
		c.dispatch()
	}
	c.settle()
	c.strand(func(*batch) bool { return true })
	c.report.Lines = uint64(c.line)
	c.engine.end()
	if c.err == nil && c.clauses != nil {
		c.err = c.endClauses()
	}
	return c.err
}

// endClauses looks for tasks of the clauses file without a dispatch. They are violations if the log is
// whole. A log that was cut short, because its program was ended, leaves devices that are not destroyed.
func (c *checker) endClauses() error {
	whole := !c.cut && len(c.devices) == 0
	missing := 0
	c.clauses.missing(func(t *task) {
		missing++
		if whole {
			c.violation(Undispatched, c.line-1, "%s has no dispatch in the log", t.name) // at its last line
		}
	})
	if !whole {
		c.report.Undispatched = uint64(missing)
	}
	s := c.report.Sum()
	switch {
	case c.clauses.err != nil:
		return c.clauses.err
	case c.clauses.tasks == 0:
		return fmt.Errorf("%w: it has no tasks", ErrClauses)
	case missing > 0 && s.Dispatches+s.Copies+s.Fills+s.Barriers == 0:
		return ErrNoCommands
	}
	return nil
}

func (c *checker) host(thread int) *HostTotals {
	for _, h := range c.report.Hosts {
		if h.Thread == thread {
			return h
		}
	}
	h := &HostTotals{Thread: thread}
	c.report.Hosts = append(c.report.Hosts, h)
	return h
}

// do passes an event to the engine.
func (c *checker) do(ev *event) {
	ev.line = c.reader.line
	if c.trace != nil {
		ev.touched = c.touched
		c.trace(ev)
		c.touched = nil
	}
	c.engine.do(ev)
}

func (c *checker) violation(kind Kind, line int, format string, args ...any) {
	c.report.Total++
	c.report.Kinds[kind]++
	if len(c.report.Violations) < c.limit {
		c.report.Violations = append(c.report.Violations, Violation{kind, line, fmt.Sprintf(format, args...)})
	}
}

// found records a violation that the engine reports.
func (c *checker) found(p problem, ev *event, n *need) {
	name := func() string {
		if s := c.semaphores[ev.semaphore]; s != nil {
			return s.name
		}
		return fmt.Sprintf("semaphore %d", ev.semaphore)
	}
	switch p {
	case unordered:
		how := map[needKind]string{
			needDone:    "is not ordered after",
			needRead:    "reads without a memory dependency what was written by",
			needWritten: "writes without a memory dependency over what was written by",
		}[n.kind]
		if n.edge != "" {
			c.violation(Dependence, ev.line, "%s: %v %s %v", n.edge, ev.command, how, n.other)
			return
		}
		if ev.kind == evRetire {
			c.violation(Leftover, ev.line, "%s: the host does not know the end of %v", ev.command.What, n.other)
			return
		}
		c.violation(Unordered, ev.line, "%s bytes [%d, %d): %v %s %v", n.at.space.name, n.at.lo, n.at.hi, ev.command, how, n.other)
	case early:
		if c.semaphores[ev.semaphore] != nil && c.semaphores[ev.semaphore].binary {
			c.violation(WaitBeforeSignal, ev.line, "%v: a wait for %s was submitted before its signal", ev.command, name())
			return
		}
		c.violation(WaitBeforeSignal, ev.line, "%v: a wait for value %d of %s was submitted before its signal", ev.command, ev.value, name())
	case hang:
		c.violation(Hang, ev.line, "%v waits for value %d of %s, which is never signalled", ev.command, ev.value, name())
	case notGrowing:
		c.violation(BadSignal, ev.line, "%s is signalled with %d, which is not above its last value", name(), ev.value)
	case racing:
		c.violation(BadSignal, ev.line, "%s is signalled with %d, and nothing orders that after its signal with %d", name(), ev.value, c.engine.semaphores[ev.semaphore].last)
	case doubleSignal:
		c.violation(BadSignal, ev.line, "%s is signalled twice without a wait between", name())
	case sawUnsignaled:
		c.violation(Hang, ev.line, "the host waits for value %d of %s, which nothing submitted signals", ev.value, name())
	}
}

// dispatch processes a line.
func (c *checker) dispatch() {
	if len(c.pending) > 0 {
		if string(c.text) == "failed" {
			c.pending = c.pending[:0]
			return
		}
		c.settle()
	}
	switch kind := string(c.word()); kind {
	case "thread":
		c.thread = c.host(c.id())
	case "submit":
		c.pending = append(c.pending[:0], c.text...)
		c.pendingLine = c.line
	case "commands":
		c.record()
	case "wait":
		c.waited(func(id int) {
			value := c.number()
			if c.semaphores[id] == nil {
				c.fail("no semaphore %d", id)
				return
			}
			c.do(&event{kind: evReach, semaphore: id, value: value})
		})
	case "fences":
		c.waited(func(id int) {
			if c.fences[id] == nil {
				c.fail("no fence %d", id)
				return
			}
			c.do(&event{kind: evFenceMet, semaphore: id})
		})
	case "idle":
		c.waited(func(id int) {
			if q := c.queues[id]; q != nil {
				c.do(&event{kind: evIdle, queue: q.lane()})
			} else {
				c.fail("no queue %d", id)
			}
		})
	case "count":
		id, value := c.id(), c.number()
		if c.semaphores[id] == nil {
			c.fail("no semaphore %d", id)
			return
		}
		c.thread.Observed++
		c.how = "count"
		c.do(&event{kind: evReach, semaphore: id, value: value})
	case "signal":
		id, value := c.id(), c.number()
		if c.semaphores[id] == nil {
			c.fail("no semaphore %d", id)
			return
		}
		delete(c.signaller, id)
		c.do(&event{kind: evHostSignal, semaphore: id, value: value})
		c.release()
	case "flush":
		c.report.Flushes++
		c.hostAccess("flush", true)
	case "invalidate":
		c.report.Invalidates++
		c.hostAccess("invalidate", false)
	case "destroy":
		c.destroy(string(c.word()), c.id())
	case "discard":
		id := c.id()
		b := c.commands[id]
		if b == nil {
			c.fail("no such command buffer")
			return
		}
		c.retire(fmt.Sprintf("command buffer %d is reset or begun again", id), b.users.ended())
		b.commands, b.users, b.discarded = nil, nil, true
	case "map", "unmap", "note", "reset":
	case "unknown":
		c.violation(Unknown, c.line, "%s", c.rest())
	case "failed":
		c.violation(Unknown, c.line, "a call failed after another thread had gone on: the log does not say what it did")
	default:
		c.create(kind)
	}
}

// waited counts a wait of the host and calls met for everything that it waited for, unless it
// timed out.
func (c *checker) waited(met func(id int)) {
	c.thread.Waits++
	c.how = string(c.word())
	if c.how == "b" || c.how == "t" {
		c.thread.Blocked++
	}
	if c.how == "t" {
		return
	}
	for c.more() && c.err == nil {
		met(c.id())
	}
}

// create processes a line that creates an object.
func (c *checker) create(kind string) {
	if kind == "device" {
		id := c.id()
		c.devices[id] = &device{id: id, name: c.rest(), live: map[string]int{}}
		c.report.Devices++
		return
	}
	id := c.id()
	if kind == "bind" {
		b, m, offset := c.buffers[id], c.memories[c.id()], c.number()
		if b == nil || m == nil {
			c.fail("no such buffer or memory")
			return
		}
		if offset > m.size || b.size > m.size-offset {
			c.violation(Unbound, c.line, "buffer %d is bound to bytes [%d, %d) of memory %d, which has %d", b.id, offset, offset+b.size, m.id, m.size)
		}
		b.memory, b.offset = m, offset
		return
	}
	d := c.devices[c.id()]
	if c.err == nil && d == nil {
		c.fail("no such device")
	}
	if c.err != nil {
		return
	}
	switch kind {
	case "queue":
		c.addQueue(id, d)
		return
	case "buffer":
		c.buffers[id] = &buffer{id: id, device: d, size: c.number(), exclusive: string(c.word()) == "exclusive", family: -1}
	case "memory":
		m := &memory{id: id, device: d, size: c.number(), space: &space{name: fmt.Sprintf("memory %d", id)}}
		m.properties = c.hex()
		if host := c.hex(); host != 0 {
			m.space, m.base = c.addresses, host
		}
		c.memories[id] = m
	case "module":
		m, err := parseModule(c.text)
		if err != nil {
			c.fail("module %d: %v", id, err)
			return
		}
		m.device = d
		c.modules[id] = m
	case "pipeline":
		c.addPipeline(id, d)
	case "semaphore":
		binary := string(c.word()) == "binary"
		c.semaphores[id] = &heldSemaphore{device: d, binary: binary, name: fmt.Sprintf("semaphore %d", id)}
		c.do(&event{kind: evSemaphore, semaphore: id, binary: binary, value: c.number()})
	case "fence":
		c.fences[id] = &fence{device: d}
		if c.number() != 0 {
			c.do(&event{kind: evFence, queue: -1, semaphore: id})
		}
	default:
		c.fail("unknown line")
		return
	}
	d.live[kind]++
}

func (c *checker) addQueue(id int, d *device) {
	q := &queue{id: id, device: d, QueueTotals: &QueueTotals{Device: d.id, Family: int(c.number()), Index: int(c.number()), Flags: c.hex()}}
	if n := len(c.freeLanes); n > 0 {
		// A lane that is reused continues after the commands of its old queue.
		q.column, q.pos = c.freeLanes[n-1].column, c.freeLanes[n-1].pos
		c.freeLanes = c.freeLanes[:n-1]
	} else {
		q.column = 1 + c.lanes*deviceClasses
		c.lanes++
	}
	c.queues[id] = q
	c.report.Queues = append(c.report.Queues, q.QueueTotals)
	c.do(&event{kind: evQueue, queue: q.lane(), pos: q.pos})
}

// lane returns the index of the queue's lane in the engine.
func (q *queue) lane() int { return (q.column - 1) / deviceClasses }

func (c *checker) addPipeline(id int, d *device) {
	m, entry := c.modules[c.id()], c.rest()
	if m == nil {
		c.fail("no such module")
		return
	}
	e, err := m.parsed.EntryPoint(entry)
	if err != nil {
		c.fail("%v", err)
		return
	}
	p := &pipeline{device: d, name: fmt.Sprintf("pipeline %d %s", id, entry), bindings: e.Bindings, addresses: e.UsesAddresses, copies: m.copies, skips: skipsOf(e)}
	if p.launches = int(m.parsed.Launches); p.launches > 1 && e.PushConstants != nil {
		size := int(e.PushConstants.Size)
		if p.spaced = m.parsed.LaunchBindings == spirv.SpacedBindings; p.spaced {
			p.base = size
			if members := e.PushConstants.Members; len(members) == 2 {
				p.base = int(members[1].Offset) // behind the words that say where parts are
			}
		}
		p.stride = (size - p.base) / p.launches
	}
	c.pipelines[id] = p
}

// destroy removes an object.
func (c *checker) destroy(kind string, id int) {
	var d *device
	switch kind {
	case "device":
		c.destroyDevice(c.devices[id])
		delete(c.devices, id)
		return
	case "buffer":
		if b := c.buffers[id]; b != nil {
			d = b.device
			c.retire(fmt.Sprintf("buffer %d is destroyed", id), b.users.needs(section{}))
		}
		delete(c.buffers, id)
	case "memory":
		if m := c.memories[id]; m != nil {
			d = m.device
			delete(c.memories, id)
			c.free(id, m)
		}
	case "module":
		if m := c.modules[id]; m != nil {
			d = m.device
		}
		delete(c.modules, id)
	case "pipeline":
		if p := c.pipelines[id]; p != nil {
			d = p.device
			p.destroyed = true
			c.retire(fmt.Sprintf("pipeline %d is destroyed", id), p.users.needs(section{}))
		}
		delete(c.pipelines, id)
	case "semaphore":
		if s := c.semaphores[id]; s != nil {
			d = s.device
			c.retire(fmt.Sprintf("%s is destroyed", s.name), s.users.ended())
			if len(c.held) == 0 { // batches that are held back may still use it, which is reported above
				c.do(&event{kind: evForget, semaphore: id})
			}
		}
		delete(c.semaphores, id)
		delete(c.signaller, id)
	case "fence":
		if f := c.fences[id]; f != nil {
			d = f.device
			c.retire(fmt.Sprintf("fence %d is destroyed", id), f.users.ended())
		}
		delete(c.fences, id)
	case "commands":
		if b := c.commands[id]; b != nil {
			c.retire(fmt.Sprintf("command buffer %d is freed", id), b.users.ended())
		}
		delete(c.commands, id)
		return
	}
	if d == nil {
		c.fail("no %s %d", kind, id)
		return
	}
	d.live[kind]--
}

// free ends the life of memory; all accesses through it must have ended. Those through another import of
// its bytes need not.
func (c *checker) free(id int, m *memory) {
	needs := m.users.needs(section{m.space, m.base, m.base + m.size})
	imported := m.space == c.addresses && slices.ContainsFunc(mapValues(c.memories), func(o *memory) bool {
		return o.space == m.space && o.base < m.base+m.size && m.base < o.base+o.size
	})
	if !imported {
		m.space.forget(m.base, m.base+m.size, func(access, uint64, uint64) {})
	}
	if c.trace != nil && m.size > 0 {
		at := section{m.space, m.base, m.base + m.size}
		c.touched = append(c.touched, touch{section: at, memory: m, retired: true})
	}
	c.retire(fmt.Sprintf("memory %d is freed", id), needs)
}

func mapValues[K comparable, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func (c *checker) retire(what string, needs []need) {
	if len(needs) > 0 || len(c.touched) > 0 {
		c.do(&event{kind: evRetire, needs: needs, command: &Command{What: what, Thread: c.thread.Thread, Line: c.line}})
	}
}

func (c *checker) destroyDevice(d *device) {
	if d == nil {
		c.fail("no such device")
		return
	}
	var left []string
	for kind, n := range d.live {
		if n > 0 {
			left = append(left, fmt.Sprintf("%d of %s", n, kind))
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		c.violation(Leftover, c.line, "device %d leaves %s", d.id, strings.Join(left, ", "))
	}
	var pending users
	for id, q := range c.queues {
		if q.device != d {
			continue
		}
		if q.batch.by != nil {
			pending.add(q.batch)
		}
		c.freeLanes = append(c.freeLanes, q)
		delete(c.queues, id)
	}
	c.retire(fmt.Sprintf("device %d is destroyed", d.id), pending.ended())
	c.strand(func(b *batch) bool { return b.queue.device == d })
	for id, b := range c.commands {
		if b.device == d {
			delete(c.commands, id)
		}
	}
}

// hostAccess processes a flush, after which the host has written, or an invalidation, before
// which it reads.
func (c *checker) hostAccess(what string, write bool) {
	id := c.id()
	m, offset, size := c.memories[id], c.number(), c.number()
	if m == nil {
		c.fail("no memory %d", id)
		return
	}
	if size == math.MaxUint64 {
		size = m.size - min(offset, m.size)
	}
	if offset > m.size || size > m.size-offset {
		// A range may end at the end of the memory instead of at a whole unit.
		size = m.size - min(offset, m.size)
	}
	if size == 0 {
		return
	}
	c.accessing = m
	by := &Command{What: what, Thread: c.thread.Thread, Line: c.line}
	pos := c.engine.hostPos + 1
	var needs []need
	at := section{m.space, m.base + offset, m.base + offset + size}
	c.touch(&needs, m, at, access{hostColumn, pos, by}, !write, write)
	c.do(&event{kind: evHost, pos: pos, needs: needs, command: by})
}

// touch records an access through a memory and adds the orders that it needs.
func (c *checker) touch(needs *[]need, m *memory, at section, by access, read, write bool) {
	if c.trace != nil {
		c.touched = append(c.touched, touch{section: at, memory: m, read: read, write: write})
	}
	add := func(kind needKind, other access, lo, hi uint64) {
		if other.by != by.by && (by.column != hostColumn || other.column != hostColumn) {
			*needs = addNeed(*needs, need{kind: kind, column: other.column, pos: other.pos, other: other.by, at: section{at.space, lo, hi}})
		}
	}
	if read && !write {
		at.space.read(at.lo, at.hi, by, func(o access, lo, hi uint64) { add(needRead, o, lo, hi) })
		return
	}
	at.space.write(at.lo, at.hi, by, func(o access, wrote bool, lo, hi uint64) {
		if !wrote {
			add(needDone, o, lo, hi)
			return
		}
		add(needWritten, o, lo, hi)
		if read {
			add(needRead, o, lo, hi)
		}
	})
}

// addNeed adds a needed order, unless one of the last ones implies it.
func addNeed(needs []need, n need) []need {
	for i := max(0, len(needs)-4); i < len(needs); i++ {
		o := &needs[i]
		if o.kind == n.kind && o.column == n.column && o.pos == n.pos && o.edge == n.edge && o.at.space == n.at.space && o.at.hi == n.at.lo {
			o.at.hi = n.at.hi
			return needs
		}
	}
	return append(needs, n)
}
