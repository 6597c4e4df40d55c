package order

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/vkomp/vkomp/vk/spirv"
)

// record reads the contents of a command buffer, up to the line "end".
func (c *checker) record() {
	id, d := c.id(), c.devices[c.id()]
	if d == nil {
		c.fail("no such device")
		return
	}
	b := c.commands[id]
	if b == nil {
		b = &commandBuffer{}
		c.commands[id] = b
	}
	c.retire(fmt.Sprintf("command buffer %d is recorded again", id), b.users.ended())
	if len(c.held) > 0 {
		b.commands = nil // batches that have not begun have them
	}
	b.device, b.commands, b.users, b.discarded = d, b.commands[:0], nil, false
	c.bound = map[uint64][]bufferRange{}
	c.push = [maxPushes]uint32{}
	pushes := 0
	var p *pipeline
	for c.next() {
		c.report.Bytes += uint64(len(c.text)) + 1
		switch kind := string(c.word()); kind {
		case "end":
			if c.recorded != nil {
				c.recorded(b)
			}
			return
		case "p":
			if p = c.pipelines[c.id()]; p == nil {
				c.fail("no such pipeline")
			}
		case "r", "R":
			c.bind(uint64(c.id()), kind == "r")
		case "k":
			for word := c.number() / 4; c.more() && c.err == nil; word++ {
				w := uint32(c.hex())
				if word < uint64(len(c.push)) {
					c.push[word] = w
					pushes = max(pushes, int(word)+1)
				}
			}
		case "d":
			b.commands = c.launches(b.commands, p, pushes)
		case "i":
			x := command{kind: "dispatch indirect"}
			c.launch(&x, p, -1, pushes)
			const size = 12
			x.uses = append(x.uses, use{buffer: c.bufferNamed(), offset: c.number(), size: size, class: drawing, read: true})
			b.commands = append(b.commands, x)
		case "c":
			src, dst := c.bufferNamed(), c.bufferNamed()
			x := command{kind: "copy", class: copying}
			for c.more() && c.err == nil {
				from, to, size := c.number(), c.number(), c.number()
				x.uses = append(x.uses, use{src, from, size, copying, true, false}, use{dst, to, size, copying, false, true})
			}
			b.commands = append(b.commands, x)
		case "f", "u":
			x := command{kind: "fill", class: clearing}
			if kind == "u" {
				x.kind = "update"
			}
			x.uses = []use{{buffer: c.bufferNamed(), offset: c.number(), size: c.number(), class: clearing, write: true}}
			b.commands = append(b.commands, x)
		case "b":
			b.commands = append(b.commands, c.readBarrier())
		case "?":
			b.commands = append(b.commands, command{kind: "unknown", unknown: c.rest()})
		default:
			c.fail("unknown command")
		}
		if c.err != nil {
			return
		}
	}
	if c.err == nil {
		c.fail("the log ends inside a command buffer")
	}
}

func (c *checker) bufferNamed() *buffer {
	b := c.buffers[c.id()]
	if b == nil {
		c.fail("no such buffer")
	}
	return b
}

// bind reads the ranges bound to a set. anew says that they replace everything bound to it.
func (c *checker) bind(set uint64, anew bool) {
	if anew {
		for key := range c.bound {
			if key>>32 == set {
				delete(c.bound, key)
			}
		}
	}
	seen := map[uint64]bool{}
	for c.more() && c.err == nil {
		key := set<<32 | c.number()
		r := bufferRange{c.buffers[c.id()], c.number(), c.number()}
		if !seen[key] {
			seen[key] = true
			c.bound[key] = nil
		}
		c.bound[key] = append(c.bound[key], r)
	}
}

// launches appends a dispatch with the current bindings. One that does several launches of its kernel
// is as many commands, which nothing orders: what launch k uses is the k-th of each binding that is an array, and
// the workgroups whose z is k are its.
func (c *checker) launches(to []command, p *pipeline, pushes int) []command {
	for range 3 {
		c.number() // the first workgroup
	}
	x := command{kind: "dispatch", groups: 1}
	var z uint64
	for range 3 {
		z = c.number()
		high, low := bits.Mul64(x.groups, z)
		if high != 0 {
			low = math.MaxUint64
		}
		x.groups = low
	}
	if p == nil || p.launches < 2 || z == 0 || z > uint64(p.launches) {
		c.launch(&x, p, -1, pushes)
		return append(to, x)
	}
	x.groups /= z
	for k := range int(z) {
		x := x
		x.part = k > 0
		c.launch(&x, p, k, pushes)
		to = append(to, x)
	}
	return to
}

// part returns the part of a range that the k-th launch of a dispatch has, for the i-th binding of its kernel.
func (c *checker) part(r bufferRange, b *spirv.Binding, i, k int) bufferRange {
	if 2*i+1 >= len(c.push) {
		return r
	}
	distance, length := uint64(c.push[2*i])*uint64(b.Stride), uint64(c.push[2*i+1])*uint64(b.Stride)
	r.offset += uint64(k) * distance
	r.size = length
	return r
}

// launch sets what a dispatch uses, or the k-th launch in it if k is not -1.
func (c *checker) launch(x *command, p *pipeline, k, pushes int) {
	if p == nil {
		c.fail("no pipeline is bound")
		return
	}
	x.class, x.pipeline = computing, p
	first, last := 0, pushes
	if k >= 0 {
		first = min((p.base+k*p.stride)/4, pushes)
		last = min(first+p.stride/4, pushes)
	}
	x.pushes = copy(x.push[:], c.push[first:last])
	for i := range p.bindings {
		b := &p.bindings[i]
		read, write := b.Read && !b.NonReadable, b.Written && !b.NonWritable
		if !read && !write {
			continue
		}
		ranges, ok := c.bound[uint64(b.Set)<<32|uint64(b.Binding)]
		if k >= 0 && b.Count != 1 {
			ok = ok && k < len(ranges)
			ranges = ranges[min(k, len(ranges)):min(k+1, len(ranges))]
		}
		if !ok {
			x.unknown = fmt.Sprintf("nothing is bound to set %d binding %d", b.Set, b.Binding)
		}
		for _, r := range ranges {
			if k >= 0 && p.spaced {
				part := c.part(r, b, i, k)
				if part.offset+part.size > r.offset+r.size {
					x.unknown = fmt.Sprintf("launch %d has more than what is bound to set %d binding %d", k, b.Set, b.Binding)
				}
				r = part
			}
			if r.buffer != nil { // nil for an image or a null descriptor
				u := use{r.buffer, r.offset, r.size, computing, read, write}
				if p.skips != nil && p.skips[i].word < min(pushes, len(c.push)) {
					u.skip(uint64(c.push[p.skips[i].word]) * uint64(p.skips[i].stride))
				}
				x.uses = append(x.uses, u)
			}
		}
	}
}

// readBarrier reads the dependencies of a pipeline barrier.
func (c *checker) readBarrier() command {
	x := command{kind: "barrier"}
	for c.more() && c.err == nil {
		d := dependency{srcStages: c.hex(), dstStages: c.hex(), srcAccess: c.hex(), dstAccess: c.hex()}
		var r bufferRange
		switch kind := c.number(); kind {
		case 0: // of all memory
		case 1:
			r = bufferRange{c.bufferNamed(), c.number(), c.number()}
		case 2: // of an image
			d.srcAccess, d.dstAccess = 0, 0
		default:
			c.fail("a barrier of kind %d", kind)
		}
		x.dependencies = append(x.dependencies, d)
		x.buffers = append(x.buffers, r)
	}
	return x
}

// settle processes the pending submission, if there is one.
func (c *checker) settle() {
	if len(c.pending) == 0 {
		return
	}
	text, whole, line := c.text, c.whole, c.line
	c.text, c.whole, c.line = c.pending, c.pending, c.pendingLine
	if q := c.queues[c.id()]; q != nil {
		c.submit(q)
	} else {
		c.fail("no such queue")
	}
	c.pending = c.pending[:0]
	c.text, c.whole, c.line = text, whole, line
}

// submit reads the batches of a vkQueueSubmit, and processes those that can begin.
func (c *checker) submit(q *queue) {
	c.submitting = q
	var b *batch // nil before one begins
	for part := ""; c.more() && c.err == nil; {
		switch w := c.text[0]; {
		case w == 'w' || w == 'c' || w == 's' || w == '|' || w == 'f':
			part = string(c.word())
			if part == "|" {
				b = nil
			} else if b == nil {
				b = c.batch(q, part != "f")
			} else if b.Submission == nil && part != "f" {
				c.fail("a batch behind its fence")
				return
			}
			continue
		}
		switch part {
		case "w", "s":
			p := point{c.id(), c.number(), c.hex()}
			s := c.semaphores[p.semaphore]
			if s == nil {
				c.fail("no semaphore %d", p.semaphore)
				return
			}
			c.owned(q, s.device, "semaphore", p.semaphore)
			s.users.add(q.batch)
			if part == "w" {
				b.waits = append(b.waits, p)
			} else {
				b.signals = append(b.signals, p)
			}
		case "c":
			id := c.id()
			x := c.commands[id]
			if x == nil {
				c.fail("no such command buffer")
				return
			}
			c.owned(q, x.device, "command buffer", id)
			x.users.add(q.batch)
			if x.discarded {
				c.violation(Unbound, c.line, "%v uses command buffer %d, which was reset", q.last, id)
			}
			b.commands = append(b.commands, x.commands)
			for i := range x.commands {
				if x.commands[i].counts() {
					q.pos++
				}
			}
		case "f":
			id := c.id()
			f := c.fences[id]
			if f == nil {
				c.fail("no fence %d", id)
				return
			}
			c.owned(q, f.device, "fence", id)
			f.users.add(q.batch)
			b.fences = append(b.fences, id)
		default:
			c.fail("want w, c, s, f or |")
		}
	}
	c.release()
}

// batch begins a batch of a queue, or only the fence of a submission without one.
func (c *checker) batch(q *queue, whole bool) *batch {
	b := &batch{queue: q, line: c.line}
	if whole {
		q.Submissions++
		q.last = &Submission{Queue: q.QueueTotals, Number: q.Submissions, Signal: c.firstSignal()}
		q.pos++
		q.batch = access{q.column, q.pos, &Command{Submission: q.last, Index: -1, Line: c.line}}
		b.Submission, b.at = q.last, q.batch
		c.do(&event{kind: evSubmit, queue: q.lane(), command: b.at.by})
	}
	c.held = append(c.held, b)
	return b
}

// release processes the batches that can begin, until none is left that can.
func (c *checker) release() {
	blocked := map[*queue]bool{}
	for i := 0; i < len(c.held) && c.err == nil; i++ {
		b := c.held[i]
		if blocked[b.queue] || c.foreign && slices.ContainsFunc(b.waits, func(p point) bool { return !c.engine.signalled(p.semaphore, p.value) }) {
			blocked[b.queue] = true
			continue
		}
		c.held = slices.Delete(c.held, i, i+1)
		clear(blocked)
		line := c.line
		c.line = b.line
		c.process(b)
		c.line = line
		i = -1 // earlier ones may have waited for it
	}
}

// process processes a batch.
func (c *checker) process(b *batch) {
	q := b.queue
	c.submitting = q
	if b.Submission != nil {
		c.do(&event{kind: evBegin, queue: q.lane(), pos: b.at.pos, command: b.at.by})
	}
	for _, p := range b.waits {
		q.Waits++
		if s := c.signaller[p.semaphore]; s != nil && s != q {
			q.CrossWaits++
		}
		by := &Command{Submission: b.Submission, What: "wait", Line: c.line}
		c.do(&event{kind: evWait, queue: q.lane(), semaphore: p.semaphore, value: p.value, stages: p.stages, command: by})
	}
	index := 0
	for _, commands := range b.commands {
		for i := range commands {
			c.execute(b, &commands[i], index)
			index++
		}
	}
	for _, p := range b.signals {
		q.Signals++
		c.signaller[p.semaphore] = q
		by := &Command{Submission: b.Submission, What: "signal", Line: c.line}
		c.do(&event{kind: evSignal, queue: q.lane(), semaphore: p.semaphore, value: p.value, stages: p.stages, command: by})
	}
	for _, id := range b.fences {
		c.do(&event{kind: evFence, queue: q.lane(), semaphore: id})
	}
}

// strand gives up the held batches for which which is true, and reports those whose waits have no signal.
func (c *checker) strand(which func(*batch) bool) {
	c.held = slices.DeleteFunc(c.held, func(b *batch) bool {
		if !which(b) {
			return false
		}
		for _, p := range b.waits {
			if !c.engine.signalled(p.semaphore, p.value) {
				c.violation(Hang, b.line, "%v waits for value %d of semaphore %d, which is never signalled", b.Submission, p.value, p.semaphore)
			}
		}
		return true
	})
}

// owned reports an object of another device than the queue's.
func (c *checker) owned(q *queue, by *device, kind string, id int) {
	if by != q.device {
		c.violation(Unbound, c.line, "%v uses %s %d, which is of device %d", q.last, kind, id, by.id)
	}
}

// firstSignal looks ahead for the first signal of the batch.
func (c *checker) firstSignal() string {
	for i := 0; i+2 < len(c.text) && c.text[i] != '|'; i++ {
		if c.text[i] == 's' {
			r := reader{text: c.text[i+2:]}
			id, value := r.number(), r.number()
			if s := c.semaphores[int(id)]; s != nil && s.binary {
				return s.name
			}
			return fmt.Sprintf("semaphore %d value %d", id, value)
		}
	}
	return ""
}

// execute processes one command of a command buffer.
func (c *checker) execute(b *batch, x *command, index int) {
	q := b.queue
	if x.unknown != "" {
		c.violation(Unknown, c.line, "%v command %d: %s", b.Submission, index, x.unknown)
		return
	}
	if x.kind == "barrier" {
		q.Barriers++
		c.executing = x
		c.barrier(b, x, index)
		return
	}
	by := &Command{Submission: b.Submission, Index: index, What: x.kind, Line: c.line}
	c.executing = x
	switch x.class {
	case computing:
		q.Launches++
		if !x.part {
			q.Dispatches++
		}
		by.Kernel = x.pipeline.name
		switch {
		case x.pipeline.destroyed:
			c.violation(Unbound, c.line, "%v uses a pipeline that is destroyed", by)
		case x.pipeline.device != q.device:
			c.violation(Unbound, c.line, "%v uses a pipeline of device %d", by, x.pipeline.device.id)
		}
		if x.pushes > 0 {
			by.Push = append([]uint32(nil), x.push[:x.pushes]...)
		}
		if x.pipeline.addresses {
			c.report.Addressed++
		}
	case copying:
		q.Copies++
		c.regions(x, by)
	case clearing:
		q.Fills++
	}
	b.at.pos++
	// The reads of a class come before its writes, since the command does both.
	for of := computing; of < hosting; of++ {
		var needs []need
		used := of == x.class
		for _, write := range [...]bool{false, true} {
			for i := range x.uses {
				if u := &x.uses[i]; u.class == of && u.write == write {
					used = true
					c.use(b, u, by, &needs)
				}
			}
		}
		if !used {
			continue
		}
		a := access{q.column + int(of), b.at.pos, by}
		if of == computing && c.clauses != nil && x.pushes >= 2 {
			needs = c.clauseNeeds(needs, a)
		}
		if x.pipeline != nil {
			x.pipeline.users.add(a)
		}
		c.ev = event{kind: evCommand, queue: q.lane(), class: of, pos: b.at.pos, needs: needs, command: by}
		c.do(&c.ev)
	}
}

// regions reports bytes that one region of a copy writes and another reads or writes: nothing orders the
// regions of a command.
func (c *checker) regions(x *command, by *Command) {
	type region struct {
		section
		write bool
		index int
	}
	var all []region
	for i := range x.uses {
		u := &x.uses[i]
		if at := u.buffer.section(u.offset, u.size); at.space != nil {
			all = append(all, region{at, u.write, i / 2})
		}
	}
	// Sorted by where they begin, each is compared with the one before that ends last, of those that write
	// and of all.
	slices.SortFunc(all, func(a, b region) int {
		return cmp.Or(strings.Compare(a.space.name, b.space.name), cmp.Compare(a.lo, b.lo))
	})
	var wrote, any *region
	for i := range all {
		r := &all[i]
		last := wrote
		if r.write {
			last = any
		}
		if last != nil && last.space == r.space && r.lo < last.hi {
			which := fmt.Sprintf("regions %d and %d of %v overlap, of which one writes", last.index, r.index, by)
			if last.index == r.index {
				which = fmt.Sprintf("region %d of %v writes what it reads", r.index, by)
			}
			c.violation(Unordered, c.line, "%s bytes [%d, %d): %s", r.space.name, r.lo, min(r.hi, last.hi), which)
			return
		}
		if any == nil || any.space != r.space || any.hi < r.hi {
			any = r
		}
		if r.write && (wrote == nil || wrote.space != r.space || wrote.hi < r.hi) {
			wrote = r
		}
	}
}

// use processes a command's access to a buffer.
func (c *checker) use(of *batch, u *use, by *Command, needs *[]need) {
	q, b := of.queue, u.buffer
	size := u.size
	if size == math.MaxUint64 {
		size = b.size - min(u.offset, b.size)
	}
	if !c.there(q, b, u.offset, size, by) {
		return
	}
	if b.exclusive {
		if b.family >= 0 && b.family != q.Family {
			c.violation(Ownership, c.line, "%v uses buffer %d, which a queue of family %d used and which is exclusive", by, b.id, b.family)
		}
		b.family = q.Family
	}
	if size > 0 {
		a := access{q.column + int(u.class), of.at.pos, by}
		c.touch(needs, b.memory, b.section(u.offset, size), a, u.read, u.write)
		b.memory.users.add(a)
		b.users.add(a)
	}
}

// there reports whether a command can use a range of a buffer, and a violation if it cannot.
func (c *checker) there(q *queue, b *buffer, offset, size uint64, by *Command) bool {
	switch {
	case c.buffers[b.id] != b:
		c.violation(Unbound, c.line, "%v uses buffer %d, which is destroyed", by, b.id)
	case b.device != q.device:
		c.violation(Unbound, c.line, "%v uses buffer %d, which is of device %d", by, b.id, b.device.id)
	case b.memory == nil:
		c.violation(Unbound, c.line, "%v uses buffer %d, which has no memory", by, b.id)
	case c.memories[b.memory.id] != b.memory:
		c.violation(Unbound, c.line, "%v uses buffer %d, whose memory %d is freed", by, b.id, b.memory.id)
	case offset > b.size || size > b.size-offset:
		c.violation(Unbound, c.line, "%v uses bytes [%d, %d) of buffer %d, which has %d", by, offset, offset+size, b.id, b.size)
	default:
		return true
	}
	return false
}

func (c *checker) barrier(b *batch, x *command, index int) {
	q := b.queue
	dependencies := x.dependencies
	by := &Command{Submission: b.Submission, Index: index, What: "barrier", Line: c.line}
	for i, r := range x.buffers {
		if r.buffer == nil {
			continue
		}
		if i == 0 || &dependencies[0] == &x.dependencies[0] {
			dependencies = append([]dependency(nil), dependencies...)
		}
		size := r.size
		if size == math.MaxUint64 {
			size = r.buffer.size - min(r.offset, r.buffer.size)
		}
		var at section
		if c.there(q, r.buffer, r.offset, size, by) {
			at = r.buffer.section(r.offset, size)
		}
		dependencies[i].within = &at
	}
	c.ev = event{kind: evBarrier, queue: q.lane(), dependencies: dependencies, pos: uint64(index), command: by}
	c.do(&c.ev)
}

// clauseNeeds adds the orders that the depend clauses of the dispatch's task require.
func (c *checker) clauseNeeds(needs []need, a access) []need {
	push := [3]uint32{}
	copy(push[:], a.by.Push)
	t, g := c.clauses.find(push[0], push[1], push[2])
	if t == nil {
		return needs
	}
	if t.next != nil {
		c.violation(Dependence, c.line, "%s: %v comes after %v, which must follow it", t.name, a.by, t.next)
	}
	if len(t.runs) == 0 {
		c.report.Tasks++
		if !t.host {
			g.waiting--
		}
	}
	t.runs = append(t.runs, a)
	for _, e := range t.from {
		c.report.Edges++
		if len(e.task.runs) == 0 && len(t.runs) == 1 {
			c.violation(Dependence, c.line, "%s -> %s: %v was submitted, and nothing of what it must follow", e.task.name, t.name, a.by)
		}
		for _, r := range e.task.runs {
			needs = append(needs, need{kind: e.kind, column: r.column, pos: r.pos, other: r.by, edge: e.task.name + " -> " + t.name})
		}
		if e.task.next == nil {
			e.task.next = a.by
		}
	}
	return needs
}
