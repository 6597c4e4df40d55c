package sched

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// This file has what random programs do with device memory: they allocate it, copy to it, from
// it and within it, update mapped storage, and associate variables with allocations.

// chunk is device memory that the program has allocated, of as many cells as a variable has.
type chunk struct {
	name  string
	scope *programScope
	cell  int
	// p is known only when the program runs.
	p Pointer
	// want is what the oracle has in the memory.
	want []uint32
	// defined says that it has been filled.
	defined bool
	// tokens stand for the cells in depend clauses: device memory has no address on the host.
	tokens []uint32
	// associated is the variable whose corresponding storage it is, if any.
	associated *variable
}

// part is a run of a chunk's cells.
type part struct {
	c      *chunk
	lo, hi int
}

func (x part) String() string { return fmt.Sprintf("%s[%d:%d]", x.c.name, x.lo, x.hi) }

func (x part) of() []uint32 { return x.c.want[x.lo*x.c.cell : x.hi*x.c.cell] }

// pointer returns where the part begins. It is for steps, which run when the memory is there.
func (x part) pointer() Pointer { return x.c.p.Add(int64(4 * x.lo * x.c.cell)) }

// items returns the depend items for a part.
func (x part) items(kind tasks.DependKind) []tasks.Depend {
	if v := x.c.associated; v != nil {
		return depends(kind, section{v, x.lo, x.hi}.of(v.host))
	}
	return depends(kind, x.c.tokens[x.lo:x.hi])
}

// part draws a part of one of the region's chunks, or with defined of one that has contents.
func (p *program) part(s *programScope, defined bool) (part, bool) {
	var some []*chunk
	for _, c := range s.chunks {
		if c.defined || !defined {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return part{}, false
	}
	c := rapid.SampledFrom(some).Draw(p.t, "chunk")
	lo := rapid.IntRange(0, programCells-1).Draw(p.t, "from cell")
	return part{c, lo, rapid.IntRange(lo+1, programCells).Draw(p.t, "to cell")}, true
}

// memoryConstruct adds a random construct that works on device memory.
func (p *program) memoryConstruct(s *programScope) {
	switch rapid.IntRange(0, 17).Draw(p.t, "memory construct") {
	case 0, 1:
		p.allocate(s)
	case 2:
		p.freeChunk(s)
	case 3, 4:
		p.copyToChunk(s)
	case 5, 6:
		p.copyFromChunk(s)
	case 7:
		p.copyInside(s)
	case 8, 9:
		p.fillChunk(s)
	case 10:
		p.addToChunk(s)
	case 11, 12, 13:
		p.updateData(s)
	case 14:
		p.association(s)
	default:
		p.mixWithChunks(s)
	}
}

// moving adds a step that makes transfers. The function returns them when the step runs.
func (p *program) moving(s *programScope, label string, depend []tasks.Depend, moves func() []transfer.Request) {
	l := launch{label: label, depend: depend, scope: s.scope, group: s.group(), included: p.chance(5, "included")}
	p.then(s, func() {
		run := func() { p.r.transfer(l, moves()...) }
		if l.included {
			p.released(run)
		} else {
			run()
		}
	})
}

func (p *program) allocate(s *programScope) {
	if len(s.chunks) >= 3 {
		return
	}
	p.chunks++
	c := &chunk{name: fmt.Sprint("p", p.chunks), scope: s, cell: rapid.SampledFrom([]int{5, 16}).Draw(p.t, "cell size")}
	c.want, c.tokens = make([]uint32, programCells*c.cell), make([]uint32, programCells)
	s.chunks = append(s.chunks, c)
	label := p.say("allocate %s", c.name)
	p.then(s, func() {
		var err error
		if c.p, err = p.r.s.Allocate(uint64(4 * len(c.want))); err != nil {
			p.fail("%s: %v", label, err)
		}
	})
	x := part{c, 0, programCells}
	if rapid.Bool().Draw(p.t, "fill") {
		p.fillPart(x)
	}
}

// freeChunk frees memory that tasks of the program may still be using.
func (p *program) freeChunk(s *programScope) {
	i := slices.IndexFunc(s.chunks, func(c *chunk) bool { return c.associated == nil })
	if i < 0 {
		return
	}
	c := s.chunks[i]
	s.chunks = slices.Delete(s.chunks, i, i+1)
	p.freeNow(c)
}

func (p *program) freeNow(c *chunk) {
	label := p.say("free %s", c.name)
	p.then(c.scope, func() {
		if err := p.r.s.Free(c.p); err != nil {
			p.fail("%s: %v", label, err)
		}
	})
}

// common shortens a part and a section to the number of elements that both have.
func common(x part, y section) (elements int) {
	return min((x.hi-x.lo)*x.c.cell, (y.hi-y.lo)*y.v.cell)
}

func (p *program) copyToChunk(s *programScope) {
	x, ok := p.part(s, false)
	if !ok {
		return
	}
	y := p.section(s)
	n := common(x, y)
	if !x.c.defined && n < len(x.c.want) {
		return
	}
	depend := append(x.items(tasks.DependInOut), p.items(tasks.DependIn, y)...)
	label := p.say("copy %d of %v to %v", n, y, x)
	copy(x.of(), y.of(y.v.want)[:n])
	x.c.defined = true
	host := y.of(y.v.host)[:n]
	p.moving(s, label, depend, func() []transfer.Request { return []transfer.Request{toDevice(x.pointer(), host)} })
}

func (p *program) copyFromChunk(s *programScope) {
	x, ok := p.part(s, true)
	if !ok {
		return
	}
	y := p.section(s)
	n := common(x, y)
	depend := append(x.items(tasks.DependIn), p.writing(y)...)
	label := p.say("copy %d of %v to %v", n, x, y)
	copy(y.of(y.v.want), x.of()[:n])
	host := y.of(y.v.host)[:n]
	p.moving(s, label, depend, func() []transfer.Request { return []transfer.Request{toHost(host, x.pointer())} })
}

func (p *program) copyInside(s *programScope) {
	x, ok := p.part(s, true)
	if !ok {
		return
	}
	y, _ := p.part(s, true)
	n := min(len(x.of()), len(y.of()))
	if x.c == y.c && x.lo*x.c.cell < y.lo*y.c.cell+n && y.lo*y.c.cell < x.lo*x.c.cell+n {
		return
	}
	depend := append(x.items(tasks.DependInOut), y.items(tasks.DependIn)...)
	label := p.say("copy %d of %v to %v", n, y, x)
	copy(x.of(), y.of()[:n])
	p.moving(s, label, depend, func() []transfer.Request { return []transfer.Request{within(x.pointer(), y.pointer(), n)} })
}

func (p *program) fillChunk(s *programScope) {
	if x, ok := p.part(s, false); ok && (x.c.defined || x.hi-x.lo == programCells) {
		p.fillPart(x)
	}
}

// fillPart fills a part but for a few bytes at its ends.
func (p *program) fillPart(x part) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x.of()))), 4*len(x.of()))
	from, to := 0, len(bytes)
	if x.c.defined {
		from = rapid.IntRange(0, 5).Draw(p.t, "from byte")
		to -= rapid.IntRange(0, 5).Draw(p.t, "to byte")
	}
	value := byte(p.constant())
	label := p.say("fill bytes %d to %d of %v with %d", from, to, x, value)
	for i := from; i < to; i++ {
		bytes[i] = value
	}
	x.c.defined = true
	p.moving(x.c.scope, label, x.items(tasks.DependOut), func() []transfer.Request {
		return []transfer.Request{{Kind: transfer.Fill, Dst: x.pointer().Add(int64(from)), Size: uint64(to - from), Value: value}}
	})
}

func (p *program) addToChunk(s *programScope) {
	x, ok := p.part(s, true)
	if !ok {
		return
	}
	c := p.constant()
	l := launch{label: p.say("add %d to %v", c, x), kernel: "add", constant: c, depend: x.items(tasks.DependInOut)}
	for i := range x.of() {
		x.of()[i] += c
	}
	n := len(x.of())
	l.scope = s.scope
	p.then(s, func() { p.r.on(l, n, x.pointer()) })
}

// mixWithChunks adds the launch of a kernel on parts of chunks, and perhaps on one section.
func (p *program) mixWithChunks(s *programScope) {
	var parts [3]part
	var buffers [3][]uint32
	l := launch{kernel: "mix", constant: p.constant(), args: make([]arg, 3)}
	l.included = p.chance(10, "included")
	at := rapid.IntRange(-1, 2).Draw(p.t, "binding of the section")
	y := p.section(s)
	if present := y.v.count > 0; at >= 0 && present && !y.v.defined {
		return
	}
	for i := range parts {
		if i == at {
			continue
		}
		var ok bool
		if parts[i], ok = p.part(s, true); !ok || at >= 0 && parts[i].c.associated == y.v {
			return
		}
		if x := parts[i]; i > 0 && at != 0 && x.c == parts[0].c && x.lo < parts[0].hi && parts[0].lo < x.hi {
			return // it would read what it writes
		}
		buffers[i] = parts[i].of()
		l.args[i].toEnd = parts[i].hi == programCells && rapid.Bool().Draw(p.t, "to the end")
	}
	for i := range parts {
		switch {
		case i == at && y.v.count > 0:
			l.args[i] = alloc(y.of(y.v.host))
			buffers[i] = y.of(y.v.device)
			l.depend = append(l.depend, p.writing(y)...)
		case i == at:
			l.args[i] = tofrom(y.of(y.v.host))
			buffers[i] = y.of(y.v.want)
			l.depend = append(l.depend, p.writing(y)...)
		case i == 0:
			l.args[i].s = buffers[i]
			l.depend = append(l.depend, parts[i].items(tasks.DependInOut)...)
		default:
			l.args[i].s = buffers[i]
			l.depend = append(l.depend, parts[i].items(tasks.DependIn)...)
		}
	}
	n := l.elements()
	fakeKernels["mix"].run(buffers[:], []uint32{n, l.constant}, 0, uint64(n))
	l.label = p.say("mix of %v, the section %v is argument %d, c=%d", parts, y, at, l.constant)
	p.then(s, func() {
		for i := range parts {
			if i != at {
				l.args[i].at = parts[i].pointer()
			}
		}
	})
	p.run(s, l)
}

// updateData updates a section, all of it or every second element.
func (p *program) updateData(s *programScope) {
	x := p.section(s)
	kind := rapid.SampledFrom([]transfer.Kind{transfer.UpdateTo, transfer.UpdateFrom}).Draw(p.t, "update")
	if x.v.count > 0 && !x.v.defined && (kind == transfer.UpdateFrom || x != x.v.whole()) {
		return
	}
	stride := rapid.IntRange(1, 2).Draw(p.t, "stride")
	if x.v.count > 0 && !x.v.defined {
		stride = 1
	}
	label := p.say("update %d of %v by %d", kind, x, stride)
	if x.v.count > 0 {
		to, from := x.of(x.v.device), x.of(x.v.want)
		if kind == transfer.UpdateFrom {
			to, from = from, to
		}
		for i := 0; i < len(to); i += stride {
			to[i] = from[i]
		}
		x.v.defined = true
		if c := x.v.associated; c != nil {
			c.defined = true
		}
	}
	m := update(kind, x.of(x.v.host))
	if stride > 1 {
		n := uint64(len(x.of(x.v.host)))
		rows, err := memory.Strided(4, []uint64{n}, []memory.Span{{Count: (n + 1) / 2, Stride: 2}})
		if err != nil {
			p.fail("%v", err)
		}
		m.Rows = &rows
	}
	p.moving(s, label, p.writing(x), func() []transfer.Request { return []transfer.Request{m} })
}

// association begins or ends an association, when the tasks before it are complete.
func (p *program) association(s *programScope) {
	waited := func(what string, f func() error) {
		label := p.say("%s", what)
		p.then(s, func() {
			p.released(func() {
				if err := s.scope.Wait(context.Background(), nil); err != nil {
					p.fail("%v", err)
				}
			})
			if err := f(); err != nil {
				p.fail("%s: %v", label, err)
			}
		})
	}
	for _, v := range s.variables {
		if c := v.associated; c != nil {
			v.associated, c.associated = nil, nil
			v.count, v.device = 0, nil
			waited(fmt.Sprintf("disassociate %s from %s", v.name, c.name), func() error { return p.r.s.Disassociate(sectionOf(v.host)) })
			return
		}
	}
	for _, v := range s.variables {
		i := slices.IndexFunc(s.chunks, func(c *chunk) bool { return c.cell == v.cell })
		if i < 0 || v.count > 0 {
			continue
		}
		c := s.chunks[i]
		v.associated, c.associated = c, v
		v.count, v.device, v.defined = 1<<30, c.want, c.defined
		waited(fmt.Sprintf("associate %s with %s", v.name, c.name), func() error { return p.r.s.Associate(sectionOf(v.host), c.p, 0, v.name) })
		return
	}
}

// endMemory ends the associations that are left and frees the memory.
func (p *program) endMemory(s *programScope) {
	for slices.ContainsFunc(s.variables, func(v *variable) bool { return v.associated != nil }) {
		p.association(s)
	}
	for _, c := range s.chunks {
		p.freeNow(c)
	}
	s.chunks = nil
}
