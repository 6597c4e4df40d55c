package sched

import (
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/tasks"
)

// construct adds a random construct to the program.
func (p *program) construct(s *programScope, concurrent bool) {
	switch rapid.IntRange(0, 36).Draw(p.t, "construct") {
	default:
		p.kernel(s)
	case 28, 29, 30, 31, 32, 33, 34, 35, 36:
		p.memoryConstruct(s)
	case 0, 1:
		p.enterData(rapid.SampledFrom(s.variables).Draw(p.t, "variable"))
	case 2, 3:
		p.exitData(rapid.SampledFrom(s.variables).Draw(p.t, "variable"))
	case 4, 5, 6:
		x := p.section(s)
		p.update("", x, p.writing(x))
	case 7, 8, 9, 10:
		x := p.section(s)
		p.update("mutexinoutset ", x, p.items(tasks.DependMutexInOutSet, x))
	case 11, 12, 13:
		p.member(s)
	case 14, 15:
		p.reader(s)
	case 16, 17:
		p.joins(s)
	case 18:
		p.group(s)
	case 19:
		p.dropped(s)
	case 20:
		p.waitFor(s)
	case 21:
		p.say("taskwait")
		p.then(s, func() {
			p.released(func() {
				if err := s.scope.Wait(context.Background(), nil); err != nil {
					p.fail("%v", err)
				}
			})
		})
	case 22:
		if !concurrent {
			p.waitForAll()
		}
	case 23:
		if !concurrent {
			p.say("hold or release")
			p.then(s, func() {
				p.held = !p.held
				if p.held {
					p.r.d.hold()
				} else {
					p.r.d.release()
				}
			})
		}
	case 24, 25:
		if p.pins {
			p.pin(rapid.SampledFrom(s.variables).Draw(p.t, "variable"))
		} else {
			p.kernel(s)
		}
	}
}

// pin adds a step that pins the storage of a variable, or only reserves it; that pins what is reserved, or cancels that;
// or that ends its pinning, or only begins to end it. While the storage is in use, the step does nothing.
func (p *program) pin(v *variable) {
	all := rapid.Bool().Draw(p.t, "all of it")
	label := p.say("pin or unpin %s, all of it %v", v.name, all)
	p.then(v.scope, func() {
		r, err := p.r, error(nil)
		switch {
		case v.pinned == nil:
			if v.pinned, err = r.s.ReservePinned(sectionOf(v.host)); err == nil {
				v.reserved = !all
				if all {
					r.s.ConfirmPinned(v.pinned)
				}
			}
		case v.reserved && all:
			r.s.ConfirmPinned(v.pinned)
			v.reserved = false
		case v.reserved:
			r.s.CancelPinned(v.pinned)
			v.pinned, v.reserved = nil, false
		default:
			var a *PinnedStorage
			switch a, err = r.s.WithdrawPinned(sectionOf(v.host)); {
			case err != nil:
			case a != v.pinned:
				p.fail("%s: got %v, want %v", label, a, v.pinned)
			case all:
				r.s.EndPinned(a)
				v.pinned = nil
			default:
				r.s.RestorePinned(a)
			}
		}
		if err != nil && !errors.Is(err, ErrBusy) {
			p.fail("%s: %v", label, err)
		}
	})
}

// run adds a step that runs a launch.
func (p *program) run(s *programScope, l launch) {
	l.scope, l.group = s.scope, s.group()
	p.then(s, func() {
		if !l.included {
			p.r.run(l)
			return
		}
		p.released(func() { p.r.run(l) })
	})
}

// kernel adds the launch of a kernel on random sections.
func (p *program) kernel(s *programScope) {
	name := rapid.SampledFrom([]string{"mix", "mix", "mix", "set"}).Draw(p.t, "kernel")
	l := launch{kernel: name, constant: p.constant()}
	l.included = p.chance(10, "included")
	l.empty = p.chance(20, "empty")
	var operands []operand
	for i, a := range fakeKernels[name].arguments {
		o := operand{section: p.section(s), writes: a.writes}
		present := o.v.count > 0
		switch {
		case i > 0 && o.v == operands[0].v && !present:
			// Several arguments that are sections of one absent array would be blocks that
			// overlap in part: they have to be the same section.
			o.section, o.kind = operands[0].section, memory.MapAlloc
		case present:
			o.kind = rapid.SampledFrom([]memory.MapType{memory.MapTo, memory.MapToFrom, memory.MapAlloc, memory.MapFrom}).Draw(p.t, "map")
			o.always = a.writes && o.v.defined && p.chance(4, "always")
		case name == "set" && !l.empty && rapid.Bool().Draw(p.t, "from"):
			o.kind = memory.MapFrom
		case a.writes:
			o.kind = memory.MapToFrom
		default:
			o.kind = memory.MapTo
		}
		if i == 2 && o.v == operands[1].v && !present {
			o.section = operands[1].section
		}
		if present && !o.v.defined && !(name == "set" && o.section == o.v.whole()) {
			// The device copy has no contents that the kernel could read.
			return
		}
		operands = append(operands, o)
	}
	// The kernel works on as many elements as the shortest argument has. Where only a part of
	// an argument is written the rest keeps its value, but for map(from) of an absent array,
	// whose rest would be undefined.
	for _, o := range operands {
		l.args = append(l.args, arg{s: o.of(o.v.host), kind: o.kind, always: o.always})
	}
	n := uint64(l.elements())
	out := operands[0]
	if out.kind == memory.MapFrom && out.v.count == 0 && n != uint64(len(l.args[0].s)) {
		return
	}
	narrow := rapid.Bool().Draw(p.t, "narrow clause")
	for _, o := range operands {
		if narrow && o.v.count > 0 && !o.always {
			// The clause names only what the kernel touches of its argument: other tasks may
			// use the rest at the same time.
			o.hi = min(o.hi, o.lo+(int(n)+o.v.cell-1)/o.v.cell)
		}
		// Tasks that nothing orders may map the same section of an absent array, and no
		// sections that overlap in part: so only readers of a single cell have an in item, and
		// all others are ordered.
		if o.writes || o.always || o.hi-o.lo > 1 && o.v.count == 0 {
			l.depend = append(l.depend, p.writing(o.section)...)
		} else {
			l.depend = append(l.depend, p.items(tasks.DependIn, o.section)...)
		}
	}
	if out.v.count > 0 && !out.v.defined {
		out.v.defined = !l.empty
	}
	l.label = p.say("%s(%v) %v empty=%v included=%v c=%d", name, operands, kindsOf(l.depend), l.empty, l.included, l.constant)

	// The oracle executes the construct at once: entry, kernel, exit.
	buffers := make([][]uint32, len(operands))
	for i, o := range operands {
		switch {
		case o.v.count > 0:
			buffers[i] = o.of(o.v.device)
			if o.always && o.kind.To() {
				copy(buffers[i], o.of(o.v.want))
			}
		case i > 0 && o.section == out.section:
			buffers[i] = buffers[0]
		default:
			buffers[i] = slices.Clone(o.of(o.v.want))
		}
	}
	if !l.empty {
		fakeKernels[name].run(buffers, []uint32{uint32(n), l.constant}, 0, n)
	}
	for i, o := range operands {
		if o.kind.From() && (o.v.count == 0 || o.always) {
			copy(o.of(o.v.want), buffers[i])
		}
	}
	p.run(s, l)
}

// kindsOf lists the dependence types of a clause.
func kindsOf(depend []tasks.Depend) (kinds []tasks.DependKind) {
	for _, d := range depend {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

func (p *program) enterData(v *variable) {
	kind := rapid.SampledFrom([]memory.MapType{memory.MapTo, memory.MapTo, memory.MapAlloc}).Draw(p.t, "map")
	label := p.say("enter data %v(%s)", kind, v.name)
	if v.count == 0 {
		v.device = slices.Clone(v.want)
		v.defined = kind.To()
	}
	if v.associated == nil {
		v.count++
	}
	p.run(v.scope, launch{label: label, enter: []arg{{s: v.host, kind: kind}}, depend: p.writing(v.whole())})
}

func (p *program) exitData(v *variable) {
	kinds := []memory.MapType{memory.MapRelease, memory.MapDelete}
	if v.defined {
		kinds = append(kinds, memory.MapFrom, memory.MapFrom, memory.MapFrom)
	}
	kind := rapid.SampledFrom(kinds).Draw(p.t, "map")
	label := p.say("exit data %v(%s)", kind, v.name)
	if v.associated != nil {
		// The reference count is infinite: the exit moves and removes nothing.
	} else if v.count > 0 {
		v.count--
		if kind == memory.MapDelete {
			v.count = 0
		} else if kind.From() && v.count == 0 {
			copy(v.want, v.device)
		}
	}
	p.run(v.scope, launch{label: label, exit: []arg{{s: v.host, kind: kind}}, depend: p.writing(v.whole())})
}

// carrier is the kind of task that carries an update out.
type carrier string

const (
	onDevice       carrier = "target"
	onDeviceWaited carrier = "included target"
	// ^onDeviceLeft is an included target whose wait ends with its context; its task goes on.
	onDeviceLeft   carrier = "included target whose wait is cut short"
	onHost         carrier = "host"
	onPool         carrier = "pool"
	onPoolTarget   carrier = "host target"
	onCaller       carrier = "undeferred"
	onCallerTarget carrier = "included host target"
)

var carriers = []carrier{onDevice, onDevice, onDevice, onDeviceWaited, onDeviceLeft, onHost, onPool, onPoolTarget, onCaller, onCallerTarget}

func (c carrier) target() bool { return c == onDevice || c == onDeviceWaited || c == onDeviceLeft }

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// update adds a constant to a section. Additions commute, so the oracle need not know in which
// order the tasks of a set run.
func (p *program) update(what string, x section, depend []tasks.Depend) {
	by := rapid.SampledFrom(carriers).Draw(p.t, "carrier")
	s, c := x.v.scope, p.constant()
	if by.target() && x.v.count > 0 && !x.v.defined {
		by = onHost
	}
	label := p.say("%s%s %v += %d %v", what, by, x, c, kindsOf(depend))
	array := x.of(x.v.want)
	if by.target() && x.v.count > 0 {
		array = x.of(x.v.device)
	}
	for i := range array {
		array[i] += c
	}
	if !by.target() {
		host := x.of(x.v.host)
		p.onHost(s, by, label, depend, func() {
			for i := range host {
				host[i] += c
			}
		})
		return
	}
	l := launch{label: label, kernel: "add", constant: c, depend: depend, included: by == onDeviceWaited, only: len(array)}
	if x.v.count > 0 && rapid.Bool().Draw(p.t, "wide argument") {
		// The argument is wider than what the kernel touches of it: other tasks may use the
		// rest at the same time.
		x.hi = programCells
	}
	l.args = []arg{tofrom(x.of(x.v.host))}
	if by == onDeviceLeft {
		l.scope, l.group = s.scope, s.group()
		p.then(s, func() {
			l.included = true
			if err := p.r.s.Run(ended, p.r.region(l)); err != nil && !errors.Is(err, context.Canceled) {
				p.fail("%s: %v", label, err)
			}
		})
		return
	}
	p.run(s, l)
}

// onHost adds a step that runs f on the host, in a task of the kind by.
func (p *program) onHost(s *programScope, by carrier, label string, depend []tasks.Depend, f func()) {
	group := s.group()
	if by == onHost {
		p.then(s, func() {
			p.r.addTo(s.scope, &tasks.Task{Label: label, Depend: depend, Runner: hostBody(f), Group: group})
		})
		return
	}
	p.then(s, func() {
		p.onHostDevice(host.Region{
			Construct: construct.Construct{Label: label, Scope: s.scope, Depend: depend, Group: group, NoWait: by == onPool || by == onPoolTarget},
			Target:    by == onPoolTarget || by == onCallerTarget,
			Body:      func(context.Context) error { f(); return nil },
		})
	})
}

func (p *program) onHostDevice(g host.Region) {
	run := func() {
		if err := p.host.Run(context.Background(), g); err != nil {
			p.fail("%s: %v", g.Label, err)
		}
	}
	if g.NoWait {
		run()
		return
	}
	p.released(run)
}

// member updates one cell of a variable, in a task that is member of an inoutset on all of it.
func (p *program) member(s *programScope) {
	v := rapid.SampledFrom(s.variables).Draw(p.t, "variable")
	c := rapid.IntRange(0, programCells-1).Draw(p.t, "cell")
	x := section{v, c, c + 1}
	if v.members[c] {
		p.update("", x, p.writing(v.whole()))
		return
	}
	v.members[c] = true
	p.update("inoutset ", x, depends(tasks.DependInOutSet, v.host))
}

// reader compares the host's copy of a section with the oracle's.
func (p *program) reader(s *programScope) {
	x := p.section(s)
	by := rapid.SampledFrom([]carrier{onHost, onPool, onPoolTarget, onCaller, onCallerTarget}).Draw(p.t, "carrier")
	label := p.say("%s reads %v", by, x)
	p.onHost(s, by, label, p.items(tasks.DependIn, x), p.comparing(label, x))
}

func (p *program) comparing(label string, x section) func() {
	got, want := x.of(x.v.host), slices.Clone(x.of(x.v.want))
	return func() {
		if !slices.Equal(got, want) {
			p.fail("%s: found %v, want %v", label, got, want)
		}
	}
}

// joins puts an update between two tasks without work. Only these name the section in their
// depend clauses: the update depends on them by a token.
func (p *program) joins(s *programScope) {
	x := p.section(s)
	before, after := p.writing(x), p.writing(x)
	token := depends(tasks.DependInOut, s.token)
	group := s.group()
	join := func(depend []tasks.Depend) {
		label := p.say("join")
		p.then(s, func() {
			p.r.addTo(s.scope, &tasks.Task{
				Label: label, Domain: tasks.AnyDomain, Depend: append(depend, token...), Runner: joiner{p.r.s}, Group: group,
			})
		})
	}
	join(before)
	p.update("between joins: ", x, token)
	join(after)
}

// group begins a taskgroup, or ends one.
func (p *program) group(s *programScope) {
	if len(s.groups) == 0 || p.chance(3, "nest") {
		p.say("taskgroup begins")
		s.groups = append(s.groups, tasks.NewGroup(s.group()))
		return
	}
	p.say("taskgroup ends")
	g := s.group()
	s.groups = s.groups[:len(s.groups)-1]
	p.then(s, func() {
		p.released(func() {
			if err := g.Wait(context.Background(), nil); err != nil {
				p.fail("a group: %v", err)
			}
		})
	})
}

// waitFor is a taskwait with a depend clause. The goroutine that generates the tasks reads what
// the clause names when the wait is over.
func (p *program) waitFor(s *programScope) {
	x := p.section(s)
	label := p.say("taskwait depend(in: %v)", x)
	depend, compare, group := p.items(tasks.DependIn, x), p.comparing(label, x), s.group()
	p.then(s, func() {
		p.released(func() {
			n := p.r.addTo(s.scope, &tasks.Task{Label: label, Included: true, Depend: depend, Runner: joiner{p.r.s}, Group: group})
			if err := n.Wait(context.Background(), nil); err != nil {
				p.fail("%s: %v", label, err)
			}
			n.Release()
			compare()
		})
	})
}

// waitForAll waits for all tasks, and checks that just those blocks are left which data regions
// and allocations hold.
func (p *program) waitForAll() {
	p.say("wait for all")
	present, chunks := 0, 0
	for _, s := range p.all {
		for _, v := range s.variables {
			if v.count > 0 {
				present++
			}
			if v.count > 0 && v.associated == nil {
				chunks++
			}
		}
		chunks += len(s.chunks)
	}
	p.then(nil, func() {
		p.released(func() {
			for _, s := range p.all {
				if err := s.scope.Wait(context.Background(), nil); err != nil {
					p.fail("%v", err)
				}
			}
			p.r.s.mu.Lock()
			blocks, live := p.r.s.presence.table.Len(), p.r.s.life.live
			p.r.s.mu.Unlock()
			storage, staging := p.r.s.memory.Storage.Stats().Allocations, p.r.s.memory.Staging.Stats().Allocations
			if blocks != present || live != 0 || storage != chunks || staging != 0 {
				p.fail("%d blocks are mapped, want %d; %d tasks are live; %d allocations of storage and %d of staging", blocks, present, live, storage, staging)
			}
		})
	})
}
