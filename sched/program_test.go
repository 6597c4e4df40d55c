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
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/tasks"
)

// A random program has a few task regions, each with a few variables of a few cells. Every
// access of a cell is named in a depend clause, but for those by members of inoutsets, which
// commute or touch different cells. So a program has one meaning, that of its constructs
// executed one after the other, and the oracle computes it on slices while the program is
// drawn. What is drawn is a list of steps. They run in its order on one goroutine, or on one
// goroutine for each region.
const (
	programScopes    = 2
	programVariables = 2
	programCells     = 3
)

// variable is one array of the program.
type variable struct {
	name  string
	scope *programScope
	// cell is the number of elements of a cell.
	cell int
	// host is what the scheduler works on, and want what the oracle has on the host.
	host, want []uint32
	// device is what the oracle has on the device, while data constructs hold the whole
	// variable; count is its reference count.
	device []uint32
	count  int
	// defined says that the copy on the device has been given a value.
	defined bool
	// associated is the memory that the variable is associated with, if any.
	associated *chunk
	// pinned is the variable's storage while the program has pinned it, and reserved says that it is only reserved. The
	// steps of the variable's region change them.
	pinned   *PinnedStorage
	reserved bool
	// members are the cells that members of the last inoutset have updated. Nothing would order
	// another member on the same cell.
	members [programCells]bool
}

// programScope is a task region of the program.
type programScope struct {
	scope     *tasks.Scope
	variables []*variable
	// chunks are the region's allocations.
	chunks []*chunk
	// token is storage that depend clauses name and no task accesses.
	token []uint32
	// groups are the taskgroups around the next construct, the innermost last.
	groups []*tasks.Group
}

// step is what one construct does when the program runs.
type step struct {
	scope *programScope
	run   func()
}

// section is a run of a variable's cells.
type section struct {
	v      *variable
	lo, hi int
}

func (v *variable) whole() section { return section{v, 0, programCells} }

func (s section) of(array []uint32) []uint32 { return array[s.lo*s.v.cell : s.hi*s.v.cell] }

func (s section) String() string {
	switch s.hi - s.lo {
	case programCells:
		return s.v.name
	case 1:
		return fmt.Sprintf("%s[%d]", s.v.name, s.lo)
	}
	return fmt.Sprintf("%s[%d:%d]", s.v.name, s.lo, s.hi)
}

type program struct {
	t     *rapid.T
	r     *rig
	host  *host.Device
	all   []*programScope
	steps []step
	log   []string
	// chunks counts the allocations made so far.
	chunks int
	// pins says that storage is pinned, and no longer is, while the program runs.
	pins bool
	// held says that the device has been stopped. Only programs on one goroutine stop it.
	held bool

	mu       sync.Mutex
	failures []string
}

func (p *program) fail(format string, args ...any) {
	p.mu.Lock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
	p.mu.Unlock()
}

// say describes the construct whose step comes next, and returns its label.
func (p *program) say(format string, args ...any) string {
	label := fmt.Sprint(len(p.log), " ", fmt.Sprintf(format, args...))
	p.log = append(p.log, label)
	return label
}

func (p *program) then(s *programScope, run func()) { p.steps = append(p.steps, step{s, run}) }

func (s *programScope) group() *tasks.Group {
	if n := len(s.groups); n > 0 {
		return s.groups[n-1]
	}
	return nil
}

func (p *program) chance(oneIn int, what string) bool {
	return rapid.IntRange(1, oneIn).Draw(p.t, what) == oneIn
}

func (p *program) constant() uint32 { return rapid.Uint32Range(1, 100).Draw(p.t, "c") }

// section draws a run of a variable's cells.
func (p *program) section(s *programScope) section {
	v := rapid.SampledFrom(s.variables).Draw(p.t, "variable")
	lo := rapid.IntRange(0, programCells-1).Draw(p.t, "from cell")
	return section{v, lo, rapid.IntRange(lo+1, programCells).Draw(p.t, "to cell")}
}

// items draws one of the ways to name a section in a clause: as a whole, cell by cell, or both.
func (p *program) items(kind tasks.DependKind, s section) (d []tasks.Depend) {
	s.v.members = [programCells]bool{}
	how := rapid.IntRange(0, 2).Draw(p.t, "items")
	if how > 0 {
		d = depends(kind, s.of(s.v.host))
	}
	if how != 1 {
		for c := s.lo; c < s.hi; c++ {
			d = append(d, depends(kind, section{s.v, c, c + 1}.of(s.v.host))...)
		}
	}
	return d
}

// writing draws the depend items of a task that is ordered with all other accesses of the
// section.
func (p *program) writing(s section) []tasks.Depend {
	if p.chance(12, "all memory") {
		for _, v := range s.v.scope.variables {
			v.members = [programCells]bool{}
		}
		return []tasks.Depend{{Kind: rapid.SampledFrom([]tasks.DependKind{tasks.DependInOutAllMemory, tasks.DependOutAllMemory}).Draw(p.t, "kind")}}
	}
	return p.items(rapid.SampledFrom([]tasks.DependKind{tasks.DependInOut, tasks.DependOut}).Draw(p.t, "kind"), s)
}

func TestRandomProgramsMeanWhatTheirConstructsMeanInOrder(t *testing.T) {
	for _, mode := range append(slices.Clone(pinnedModes), memoryModes...) {
		t.Run(mode.name+" on one goroutine", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { runProgram(rt, mode, false) })
		})
		t.Run(mode.name+" on several", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { runProgram(rt, mode, true) })
		})
	}
	for _, mode := range queueModes(memoryModes...) {
		t.Run(mode.name+" on one goroutine", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { runProgram(rt, mode, false) })
		})
	}
	for _, mode := range append(queueModes(slices.Concat(chunkModes, pinnedModes, memoryModes)...), chunkModes...) {
		t.Run(mode.name+" on several", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { runProgram(rt, mode, true) })
		})
	}
}

func runProgram(t *rapid.T, mode memoryMode, concurrent bool) {
	// The program means the same whichever tasks are targets.
	mode.general = rapid.IntRange(0, 2).Draw(t, "general") == 2
	p := &program{t: t, host: host.NewDevice(2), pins: !mode.driver && rapid.Bool().Draw(t, "pins")}
	r := newRig(programReporter{t, p}, mode, rapid.Uint64().Draw(t, "seed"))
	p.r = r
	if rapid.Bool().Draw(t, "intake") {
		r.s.intake.many = rapid.IntRange(1, 4).Draw(t, "open from so many tasks on")
		r.s.intake.group = rapid.Uint32Range(1, 6).Draw(t, "tasks of a group")
		r.s.intake.serial = rapid.Bool().Draw(t, "one goroutine at a time")
	}
	r.d.report = func(what string) { p.fail("%s", what) }
	for range programScopes {
		s := &programScope{scope: r.graph.NewScope(), token: array32(1)}
		for range programVariables {
			i := len(p.all)*programVariables + len(s.variables)
			v := &variable{name: string(rune('w' + i)), scope: s, cell: rapid.SampledFrom([]int{5, 16}).Draw(t, "cell size")}
			v.host = array32(programCells * v.cell)
			for k := range v.host {
				v.host[k] = uint32(100*i + k)
			}
			v.want = slices.Clone(v.host)
			if mode.pinned && !p.pins {
				initial := v.host
				v.host = r.pinnedArray(mode, len(initial), 0)
				copy(v.host, initial)
			}
			s.variables = append(s.variables, v)
		}
		p.all = append(p.all, s)
	}
	for range rapid.IntRange(1, 40).Draw(t, "constructs") {
		p.construct(rapid.SampledFrom(p.all).Draw(t, "scope"), concurrent)
	}
	for _, s := range p.all {
		p.endMemory(s)
		for _, v := range s.variables {
			for v.count > 0 {
				p.exitData(v)
			}
		}
	}
	if concurrent {
		var wg sync.WaitGroup
		for _, s := range p.all {
			wg.Go(func() {
				for _, st := range p.steps {
					if st.scope == s {
						st.run()
					}
				}
			})
		}
		wg.Wait()
	} else {
		for _, st := range p.steps {
			st.run()
		}
	}
	r.d.release()
	for _, s := range p.all {
		if err := s.scope.Wait(context.Background(), nil); err != nil {
			p.fail("%v", err)
		}
		for _, g := range s.groups {
			if err := g.Wait(context.Background(), nil); err != nil {
				p.fail("a group: %v", err)
			}
		}
		if !s.scope.Settled() {
			p.fail("a scope is not settled")
		}
		for _, v := range s.variables {
			if !slices.Equal(v.host, v.want) {
				p.fail("%s is %v, want %v", v.name, v.host, v.want)
			}
		}
	}
	for _, s := range p.all {
		for _, v := range s.variables {
			switch {
			case v.reserved:
				r.s.CancelPinned(v.pinned)
			case v.pinned != nil || mode.pinned && !p.pins:
				r.unpin(v.host)
			}
		}
	}
	r.close()
	r.eventually("the pool is idle", p.host.Pool().Idle)
	if len(p.failures) > 0 {
		// A program that fails once may pass when it runs again, since goroutines are scheduled
		// by chance: so the failure has the whole program.
		t.Fatalf("%s\nin the program\n%s", strings.Join(p.failures, "\n"), strings.Join(p.log, "\n"))
	}
}

// released runs a function that waits for tasks, with the device released meanwhile.
func (p *program) released(f func()) {
	if p.held {
		p.held = false
		p.r.d.release()
		defer func() {
			p.held = true
			p.r.d.hold()
		}()
	}
	f()
}

// programReporter collects the failures that the rig finds, for a report that has the program
// too.
type programReporter struct {
	*rapid.T
	p *program
}

func (r programReporter) Error(args ...any)                 { r.p.fail("%s", fmt.Sprint(args...)) }
func (r programReporter) Errorf(format string, args ...any) { r.p.fail(format, args...) }

// operand is an argument of a kernel, for the program and for the oracle.
type operand struct {
	section
	kind   memory.MapType
	always bool
	// writes says that the kernel writes it.
	writes bool
}

func (o operand) String() string {
	always := ""
	if o.always {
		always = "always "
	}
	return fmt.Sprintf("%s%v(%v)", always, o.kind, o.section)
}
