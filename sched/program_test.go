package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/memory"
)

// A random program has a few variables of a few cells each. Every access of a
// cell is in the depend clause, so the program has one meaning: that of its
// constructs one after the other, which the oracle computes on slices.
const (
	programVariables = 3
	programCells     = 3
)

// variable is one array of the program.
type variable struct {
	name string
	// cell is the number of elements of a cell.
	cell int
	// host is what the scheduler works on, want the oracle's host copy.
	host, want []uint32
	// device is the oracle's device copy while a data construct holds the whole
	// variable, count times.
	device []uint32
	count  int
	// defined: the device copy has contents.
	defined bool
}

// section is a cell of a variable, or all of it (cell < 0).
type section struct {
	v    *variable
	cell int
}

func (s section) of(array []uint32) []uint32 {
	if s.cell < 0 {
		return array
	}
	return array[s.cell*s.v.cell : (s.cell+1)*s.v.cell]
}

func (s section) String() string {
	if s.cell < 0 {
		return s.v.name
	}
	return fmt.Sprintf("%s[%d]", s.v.name, s.cell)
}

// locations are the depend items of the section: its cells.
func (s section) locations() (l [][]uint32) {
	for c := range programCells {
		if s.cell < 0 || s.cell == c {
			l = append(l, section{s.v, c}.of(s.v.host))
		}
	}
	return l
}

type program struct {
	t         *rapid.T
	r         *rig
	variables []*variable
	log       []string
	mu        sync.Mutex
	failures  []string
	// held: the device stands still.
	held bool
}

func (p *program) variable() *variable {
	return p.variables[rapid.IntRange(0, len(p.variables)-1).Draw(p.t, "variable")]
}

func (p *program) section(whole bool) section {
	s := section{p.variable(), rapid.IntRange(-1, programCells-1).Draw(p.t, "cell")}
	if !whole && s.cell < 0 {
		s.cell = 0
	}
	return s
}

func (p *program) fail(format string, args ...any) {
	p.mu.Lock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
	p.mu.Unlock()
}

func (p *program) say(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// operand is an argument of a kernel as program and oracle see it.
type operand struct {
	section
	kind   memory.MapType
	always bool
	// writes: the kernel does.
	writes bool
}

// kernel runs a kernel on random sections.
func (p *program) kernel() {
	name := rapid.SampledFrom([]string{"mix", "mix", "mix", "set"}).Draw(p.t, "kernel")
	l := launch{kernel: name, constant: rapid.Uint32Range(0, 100).Draw(p.t, "c")}
	l.label = fmt.Sprintf("%d %s", len(p.log), name)
	l.included = rapid.IntRange(0, 9).Draw(p.t, "included") == 0
	l.empty = rapid.IntRange(0, 19).Draw(p.t, "empty") == 0
	var operands []operand
	for i, a := range fakeKernels[name].arguments {
		o := operand{section: p.section(true), writes: a.writes}
		present := o.v.count > 0
		switch {
		case i > 0 && o.v == operands[0].v && !present:
			// Several items of an array that is absent lie one in another only
			// if they are the same.
			o.section, o.kind = operands[0].section, memory.MapAlloc
		case present:
			o.kind = rapid.SampledFrom([]memory.MapType{memory.MapTo, memory.MapToFrom, memory.MapAlloc, memory.MapFrom}).Draw(p.t, "map")
			o.always = a.writes && o.v.defined && rapid.IntRange(0, 3).Draw(p.t, "always") == 0
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
		if present && !o.v.defined && !(name == "set" && o.cell < 0) {
			// Nothing to read there yet.
			return
		}
		operands = append(operands, o)
		// What holds an absent array, holds all of it or one cell; readers that
		// nothing orders have to agree, so only readers of one cell may be
		// unordered, and those of an array that is whole.
		ordered := a.writes || o.always || o.cell < 0 && !present
		if ordered {
			l.out = append(l.out, o.locations()...)
		} else {
			l.in = append(l.in, o.locations()...)
		}
	}
	// As many elements as the shortest has: a partial result is one too, but a
	// map(from) has to be written whole.
	for _, o := range operands {
		l.args = append(l.args, arg{o.of(o.v.host), o.kind, o.always})
	}
	n := uint64(l.elements())
	if operands[0].kind == memory.MapFrom && operands[0].v.count == 0 && n != uint64(len(l.args[0].s)) {
		return
	}
	if operands[0].v.count > 0 && !operands[0].v.defined {
		operands[0].v.defined = !l.empty
	}
	var described []string
	for _, o := range operands {
		always := ""
		if o.always {
			always = "always "
		}
		described = append(described, fmt.Sprintf("%s%v(%v)", always, o.kind, o.section))
	}
	p.say("%s(%s) empty=%v included=%v c=%d", l.label, strings.Join(described, ", "), l.empty, l.included, l.constant)

	// The oracle: entry, kernel, exit, one after the other.
	buffers := make([][]uint32, len(operands))
	for i, o := range operands {
		switch {
		case o.v.count > 0:
			buffers[i] = o.of(o.v.device)
			if o.always && o.kind.To() {
				copy(buffers[i], o.of(o.v.want))
			}
		case i > 0 && o.section == operands[0].section:
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
	if p.held && l.included {
		p.r.d.release()
		defer p.r.d.hold()
	}
	p.r.run(l)
}

func (p *program) enterData() {
	v := p.variable()
	whole := section{v, -1}
	kind := rapid.SampledFrom([]memory.MapType{memory.MapTo, memory.MapTo, memory.MapAlloc}).Draw(p.t, "map")
	p.say("%d enter data %v(%v)", len(p.log), kind, whole)
	if v.count == 0 {
		v.device = slices.Clone(v.want)
		v.defined = kind.To()
	}
	v.count++
	p.r.run(launch{label: p.log[len(p.log)-1], enter: []arg{{v.host, kind, false}}, out: whole.locations()})
}

func (p *program) exitData(v *variable) {
	whole := section{v, -1}
	kinds := []memory.MapType{memory.MapRelease, memory.MapDelete}
	if v.defined {
		kinds = append(kinds, memory.MapFrom, memory.MapFrom, memory.MapFrom)
	}
	kind := rapid.SampledFrom(kinds).Draw(p.t, "map")
	p.say("%d exit data %v(%v)", len(p.log), kind, whole)
	if v.count > 0 {
		v.count--
		if kind == memory.MapDelete {
			v.count = 0
		} else if kind.From() && v.count == 0 {
			copy(v.want, v.device)
		}
	}
	p.r.run(launch{label: p.log[len(p.log)-1], exit: []arg{{v.host, kind, false}}, out: whole.locations()})
}

func (p *program) hostTask() {
	s := p.section(true)
	c := rapid.Uint32Range(0, 100).Draw(p.t, "c")
	p.say("%d host %v += %d", len(p.log), s, c)
	for i := range s.of(s.v.want) {
		s.of(s.v.want)[i] += c
	}
	array := s.of(s.v.host)
	p.r.host(p.log[len(p.log)-1], nil, s.locations(), func() {
		for i := range array {
			array[i] += c
		}
	})
}

func TestRandomProgramsMeanWhatTheirConstructsMeanInOrder(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { runProgram(rt, mode) })
		})
	}
}

func runProgram(t *rapid.T, mode memoryMode) {
	p := &program{t: t}
	r := newRig(programReporter{t, p}, mode, rapid.Uint64().Draw(t, "seed"))
	p.r = r
	r.d.report = func(what string) { p.fail("%s", what) }
	for i := range programVariables {
		v := &variable{name: string(rune('x' + i)), cell: rapid.SampledFrom([]int{5, 16}).Draw(t, "cell size")}
		v.host = make([]uint32, programCells*v.cell)
		for k := range v.host {
			v.host[k] = uint32(100*i + k)
		}
		v.want = slices.Clone(v.host)
		p.variables = append(p.variables, v)
	}
	for range rapid.IntRange(1, 30).Draw(t, "constructs") {
		switch rapid.IntRange(0, 15).Draw(t, "construct") {
		default:
			p.kernel()
		case 0, 1:
			p.enterData()
		case 2, 3:
			p.exitData(p.variable())
		case 4:
			p.hostTask()
		case 5:
			p.say("%d taskwait", len(p.log))
			p.held = false
			r.d.release()
			if err := r.scope.Wait(context.Background(), nil); err != nil {
				p.fail("%v", err)
			}
		case 6:
			p.held = !p.held
			p.say("%d hold %v", len(p.log), p.held)
			if p.held {
				r.d.hold()
			} else {
				r.d.release()
			}
		}
	}
	for _, v := range p.variables {
		for v.count > 0 {
			p.exitData(v)
		}
	}
	r.d.release()
	if err := r.scope.Wait(context.Background(), nil); err != nil {
		p.fail("%v", err)
	}
	for _, v := range p.variables {
		if !slices.Equal(v.host, v.want) {
			p.fail("%s is %v, want %v", v.name, v.host, v.want)
		}
	}
	r.close()
	if len(p.failures) > 0 {
		// Not all runs of a program fail: the timing of goroutines is part of it.
		t.Fatalf("%s\nin the program\n%s", strings.Join(p.failures, "\n"), strings.Join(p.log, "\n"))
	}
}

// programReporter collects what the rig finds wrong, to be told with the program.
type programReporter struct {
	*rapid.T
	p *program
}

func (r programReporter) Error(args ...any)                 { r.p.fail("%s", fmt.Sprint(args...)) }
func (r programReporter) Errorf(format string, args ...any) { r.p.fail(format, args...) }
