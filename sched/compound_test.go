package sched

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// compoundProgram is a list of constructs that is run several times, each time as a compound task or one
// by one, between other constructs. Every access is named in a depend clause, so that it means the same
// in all ways. Variables of cells are present while it runs, some since they are associated with memory that the program
// has allocated, or are mapped as a whole by the constructs, which are then run one by one.
type compoundProgram struct {
	t         *rapid.T
	r         *rig
	variables []*compoundVariable
	launches  []launch
	log       []string
	failures  []string
}

type compoundVariable struct {
	present    bool
	host, want []uint32
	// at points to the memory with which it is associated, if it is.
	at Pointer
}

const compoundCells, compoundCell = 3, 16

// section draws a part of a variable.
func (p *compoundProgram) section() (v *compoundVariable, lo, hi int) {
	v = rapid.SampledFrom(p.variables).Draw(p.t, "variable")
	if !v.present {
		return v, 0, len(v.host)
	}
	lo = rapid.IntRange(0, compoundCells-1).Draw(p.t, "from cell")
	return v, lo * compoundCell, rapid.IntRange(lo+1, compoundCells).Draw(p.t, "to cell") * compoundCell
}

// arg draws how the kernel gets a section of a variable: a map of that type, a pointer to it, or an item without bytes.
func (p *compoundProgram) arg(v *compoundVariable, lo, hi int, mapped memory.MapType) arg {
	a := arg{s: v.host[lo:hi], kind: mapped}
	if !v.present {
		return a
	}
	if !v.at.IsNil() && rapid.Bool().Draw(p.t, "pointer") {
		a.at = v.at.Add(4 * int64(lo))
	}
	a.toEnd = rapid.IntRange(0, 3).Draw(p.t, "to the end") == 0
	return a
}

// launch draws a construct, and returns what it means with that constant.
func (p *compoundProgram) launch() (l launch, means func(c uint32)) {
	out, olo, ohi := p.section()
	a, alo, ahi := p.section()
	b, blo, bhi := p.section()
	c := rapid.Uint32Range(1, 9).Draw(p.t, "c")
	l = launch{
		label: fmt.Sprint("construct ", len(p.launches)), kernel: "mix", constant: c,
		args: []arg{p.arg(out, olo, ohi, memory.MapToFrom), p.arg(a, alo, ahi, memory.MapTo), p.arg(b, blo, bhi, memory.MapTo)},
	}
	l.empty = rapid.IntRange(1, 8).Draw(p.t, "empty") == 8
	// Most of those that map storage in different ways cannot be one task.
	if out.present && rapid.IntRange(1, 16).Draw(p.t, "to") == 16 {
		l.args[0].kind = memory.MapTo // its results stay on the device
	}
	if a.present && rapid.IntRange(1, 16).Draw(p.t, "alloc") == 16 {
		l.args[1].kind = memory.MapAlloc
	}
	write := rapid.SampledFrom([]tasks.DependKind{tasks.DependInOut, tasks.DependOut, tasks.DependInOutAllMemory}).Draw(p.t, "kind")
	l.depend = append(depends(tasks.DependIn, a.host[alo:ahi], b.host[blo:bhi]), depends(write, out.host[olo:ohi])...)
	if write == tasks.DependInOutAllMemory {
		l.depend = []tasks.Depend{{Kind: write}}
	}
	var ways []string
	for _, x := range l.args {
		ways = append(ways, fmt.Sprintf("pointer %v, to the end %v", !x.at.IsNil(), x.toEnd))
	}
	p.log = append(p.log, fmt.Sprintf("%s: out %d..%d, a %d..%d, b %d..%d, c %d, %v, empty %v, %q", l.label, olo, ohi, alo, ahi, blo, bhi, c, write, l.empty, ways))
	n := int(l.elements())
	empty := l.empty
	return l, func(c uint32) {
		if empty {
			return
		}
		for i := range n {
			out.want[olo+i] = 3*out.want[olo+i] + a.want[alo+i] + b.want[blo+i] + c
		}
	}
}

func TestCompoundTaskMeansWhatItsConstructsMeanInOrder(t *testing.T) {
	compounds, besides := 0, 0
	for _, mode := range append(slices.Clone(memoryModes), queueModes(memoryModes...)...) {
		t.Run(mode.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				n, memory := runCompoundProgram(rt, mode)
				compounds += n
				if memory {
					besides += n
				}
			})
		})
	}
	// In short mode there are few programs.
	if (compounds == 0 || besides == 0) && !testing.Short() {
		t.Errorf("there were %d compound tasks, %d with memory besides their items", compounds, besides)
	}
}

// runCompoundProgram returns how many compound tasks there were, and whether they had memory besides their items.
func runCompoundProgram(t *rapid.T, mode memoryMode) (compounds int, memory bool) {
	p := &compoundProgram{t: t}
	r := newRig(compoundReporter{t, p}, mode, rapid.Uint64().Draw(t, "seed"))
	r.watches = false
	p.r = r
	r.d.report = func(what string) { p.failures = append(p.failures, what) }
	for i := range 3 {
		v := &compoundVariable{present: rapid.IntRange(0, 5).Draw(t, "present") > 0, host: array32(compoundCells * compoundCell)}
		for k := range v.host {
			v.host[k] = uint32(100*i + k)
		}
		v.want = slices.Clone(v.host)
		if v.present && rapid.IntRange(0, 2).Draw(t, "associated") == 0 {
			v.at = r.allocate(len(v.host))
			if err := r.s.Associate(sectionOf(v.host), v.at, 0, "associated"); err != nil {
				p.failures = append(p.failures, err.Error())
			}
			r.transfer(launch{label: "first contents", included: true}, transfer.Request{Kind: transfer.UpdateTo, Host: sectionOf(v.host), Size: uint64(4 * len(v.host))})
		}
		p.variables = append(p.variables, v)
	}
	enter := func(included bool) {
		for _, v := range p.variables {
			if v.present {
				r.run(launch{label: "enter", enter: []arg{to(v.host)}, out: [][]uint32{v.host}, included: included})
			}
		}
	}
	exit := func() {
		for _, v := range p.variables {
			if v.present {
				r.run(launch{label: "exit", exit: []arg{from(v.host)}, out: [][]uint32{v.host}})
			}
		}
	}
	var regions []*Region
	var meanings []func(c uint32)
	for range rapid.IntRange(1, 12).Draw(t, "constructs") {
		l, means := p.launch()
		p.launches = append(p.launches, l)
		regions = append(regions, r.region(l))
		meanings = append(meanings, means)
	}
	constructs := len(p.launches)
	oneByOne := func(constants []uint32) {
		for i, l := range p.launches[:constructs] {
			l.constant = constants[i]
			r.run(l)
		}
	}
	compound := r.s.NewCompound(regions)
	enter(rapid.Bool().Draw(t, "included"))
	for range rapid.IntRange(1, 5).Draw(t, "rounds") {
		switch rapid.IntRange(0, 4).Draw(t, "between") {
		case 0:
			exit()
			enter(false) // the device may be held
		case 1:
			r.d.hold()
			defer r.d.release()
		case 2:
			r.d.release()
			r.taskwait() // so that a compound task does not wait for the host
		case 3:
			l, means := p.launch()
			r.run(l)
			means(l.constant)
		}
		// Some constructs get other constants than those with which they were made.
		constants := make([]uint32, constructs)
		var values []CompoundValue
		others := rapid.IntRange(0, 2).Draw(t, "other constants") == 0
		for i := range constants {
			constants[i] = p.launches[i].constant
			if others && rapid.Bool().Draw(t, "another constant") {
				constants[i] = rapid.Uint32Range(1, 9).Draw(t, "c")
				values = append(values, CompoundValue{Construct: i, Value: 1, Bytes: valueBytes(constants[i])[0]})
			}
		}
		if compound != nil && rapid.IntRange(0, 3).Draw(t, "one by one") > 0 {
			ran, err := r.s.RunCompound(context.Background(), compound, construct.Construct{Scope: r.scope}, values...)
			if err != nil {
				p.failures = append(p.failures, fmt.Sprintf("the compound task: %v", err))
			}
			if ran {
				compounds++
			} else {
				oneByOne(constants)
			}
		} else {
			oneByOne(constants)
		}
		for i, means := range meanings {
			means(constants[i])
		}
	}
	exit()
	r.d.release()
	r.taskwait()
	for _, v := range p.variables {
		if v.at.IsNil() {
			continue
		}
		r.transfer(launch{label: "results", included: true}, transfer.Request{Kind: transfer.UpdateFrom, Host: sectionOf(v.host), Size: uint64(4 * len(v.host))})
		if err := r.s.Disassociate(sectionOf(v.host)); err != nil {
			p.failures = append(p.failures, err.Error())
		}
		r.free(v.at)
	}
	for i, v := range p.variables {
		if !slices.Equal(v.host, v.want) {
			p.failures = append(p.failures, fmt.Sprintf("variable %d is %v, want %v", i, v.host, v.want))
		}
	}
	r.close()
	if len(p.failures) > 0 {
		t.Fatalf("%s\nin the program\n%s", strings.Join(p.failures, "\n"), strings.Join(p.log, "\n"))
	}
	return compounds, compound != nil && len(compound.memory) > 0
}

// compoundReporter collects the failures that the rig finds.
type compoundReporter struct {
	*rapid.T
	p *compoundProgram
}

func (r compoundReporter) Error(args ...any) {
	r.p.failures = append(r.p.failures, fmt.Sprint(args...))
}
func (r compoundReporter) Errorf(format string, args ...any) {
	r.p.failures = append(r.p.failures, fmt.Sprintf(format, args...))
}

// A level is above those of earlier constructs with which the construct shares storage that one of the
// two writes, and no higher than it has to be.
func TestLevelsOfConstructs(t *testing.T) {
	storage := make([]byte, 12)
	kinds := []tasks.DependKind{tasks.DependIn, tasks.DependIn, tasks.DependOut, tasks.DependInOut, tasks.DependMutexInOutSet, tasks.DependInOutSet, tasks.DependOutAllMemory}
	rapid.Check(t, func(t *rapid.T) {
		constructs := make([][]tasks.Depend, rapid.IntRange(1, 30).Draw(t, "constructs"))
		for i := range constructs {
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				at := rapid.IntRange(0, len(storage)-1).Draw(t, "at")
				d := tasks.Depend{
					Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Ptr: unsafe.Pointer(&storage[at]),
					Size: uint64(rapid.IntRange(1, min(3, len(storage)-at)).Draw(t, "size")),
				}
				if d.Kind.AllMemory() {
					d = tasks.Depend{Kind: d.Kind}
				}
				constructs[i] = append(constructs[i], d)
			}
		}
		levels, err := dependLevels(constructs)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]int32, len(constructs))
		for i := range constructs {
			for k := range i {
				if follows(constructs[k], constructs[i]) {
					want[i] = max(want[i], want[k]+1)
				}
			}
		}
		if !slices.Equal(levels, want) {
			t.Fatalf("the levels are %v, want %v, of %v", levels, want, constructs)
		}
	})
}

// follows reports whether a construct with the depend items later depends on an earlier one.
func follows(earlier, later []tasks.Depend) bool {
	if len(earlier) == 0 || len(later) == 0 {
		return false // not even omp_all_memory orders it
	}
	if slices.ContainsFunc(earlier, func(a tasks.Depend) bool { return a.Kind.AllMemory() }) || slices.ContainsFunc(later, func(b tasks.Depend) bool { return b.Kind.AllMemory() }) {
		return true
	}
	for _, a := range earlier {
		for _, b := range later {
			start, end := max(uintptr(a.Ptr), uintptr(b.Ptr)), min(uintptr(a.Ptr)+uintptr(a.Size), uintptr(b.Ptr)+uintptr(b.Size))
			both := func(k tasks.DependKind) bool { return a.Kind == k && b.Kind == k }
			if start < end && !both(tasks.DependIn) && !both(tasks.DependInOutSet) {
				return true
			}
		}
	}
	return false
}

func TestCompoundWhoseStorageIsAbsentOrWhoseKernelIsClosedIsNotRun(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x, zero := filled(16, 1), filled(16, 0)
	l := launch{label: "mix", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}}
	c := r.s.NewCompound([]*Region{r.region(l), r.region(l)})
	run := func(want bool) {
		t.Helper()
		if ran, err := r.s.RunCompound(t.Context(), c, construct.Construct{Scope: r.scope}); ran != want || err != nil {
			t.Errorf("ran is %v, the error %v", ran, err)
		}
	}
	run(false)
	r.d.hold()
	r.run(l) // has the storage while it is in flight
	run(false)
	r.d.release()
	r.taskwait()
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	run(false)
	r.run(launch{label: "enter", enter: []arg{to(zero)}, included: true})
	run(true)
	r.kernels["mix"].Close()
	run(false)
	r.run(launch{label: "exit", exit: []arg{from(x), from(zero)}, included: true, out: [][]uint32{x}})
	r.expect("x", x, filled(16, 40)...)
}

// One of the constructs depends on a host task, which ends only when another one is complete: one task
// for both would never start.
func TestCompoundDoesNotWaitForTheHost(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x, y, zero := filled(16, 1), filled(16, 1), filled(16, 0)
	mix := func(s []uint32) *Region {
		return r.region(launch{label: "mix", kernel: "mix", args: []arg{tofrom(s), to(zero), to(zero)}, constant: 1, out: [][]uint32{s}})
	}
	c := r.s.NewCompound([]*Region{mix(x), mix(y)})
	r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(zero)}, included: true})
	end := make(chan struct{})
	r.host("before y", nil, [][]uint32{y}, func() { <-end })
	run := func(want bool) {
		t.Helper()
		if ran, err := r.s.RunCompound(t.Context(), c, construct.Construct{Scope: r.scope}); ran != want || err != nil {
			t.Errorf("ran is %v, the error %v", ran, err)
		}
	}
	run(false)
	close(end)
	r.taskwait()
	run(true)
	run(true) // the first may be in flight
	r.run(launch{label: "exit", exit: []arg{from(x), from(y), from(zero)}, included: true, out: [][]uint32{x, y}})
	r.expect("x", x, filled(16, 13)...)
	r.expect("y", y, filled(16, 13)...)
}

// What an item finds in storage that is absent before each construct must not depend on whether the
// constructs are one task.
func TestConstructsThatOneTaskCannotReplace(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x, y, zero := filled(32, 1), filled(16, 1), filled(16, 0)
	mix := func(args ...arg) launch { return launch{kernel: "mix", args: args, out: [][]uint32{x}} }
	stencil := func(left []uint32) launch { // which has no offset members
		return launch{kernel: "stencil", args: []arg{from(y), to(left), to(zero), to(zero)}, out: [][]uint32{y}}
	}
	for name, c := range map[string]struct {
		launches []launch
		possible bool
	}{
		"as they are":               {[]launch{mix(tofrom(x), to(zero), to(zero)), mix(tofrom(y), to(x), to(zero))}, true},
		"results that are dropped":  {[]launch{mix(to(y), to(zero), to(zero)), mix(tofrom(x[:16]), to(y), to(zero))}, false},
		"dropped by both":           {[]launch{mix(to(y), to(zero), to(zero)), mix(to(y), to(zero), to(zero))}, false},
		"result, then scratch":      {[]launch{mix(from(y), to(zero), to(zero)), mix(alloc(y), to(zero), to(zero))}, false},
		"scratch storage":           {[]launch{mix(alloc(y), to(zero), to(zero)), mix(alloc(y), to(zero), to(zero))}, true},
		"parts mapped alike":        {[]launch{mix(tofrom(x), to(zero), to(zero)), mix(tofrom(x[8:]), to(zero), to(zero))}, true},
		"part that can be bound":    {[]launch{stencil(x), stencil(x[16:])}, true},
		"part that cannot be bound": {[]launch{stencil(x), stencil(x[8:])}, false},
		"to and tofrom":             {[]launch{mix(tofrom(x), to(y), to(zero)), mix(tofrom(y), to(x[8:24]), to(zero))}, true},
		"a part is written":         {[]launch{mix(tofrom(x[:16]), to(zero), to(zero)), mix(tofrom(y), to(x[8:24]), to(zero))}, false},
	} {
		var regions []*Region
		for _, l := range c.launches {
			regions = append(regions, r.region(l))
		}
		if got := r.s.NewCompound(regions) != nil; got != c.possible {
			t.Errorf("%s: one task can replace them: %v", name, got)
		}
	}
}

// A construct that wants more than its kernel on mapped storage has a task of its own.
func TestConstructsThatWantMoreAreNotPlain(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x := filled(16, 1)
	for name, change := range map[string]func(g *Region){
		"nothing":     nil,
		"its buffers": func(g *Region) { g.Buffers = make([]Buffer, 1) },
		"a priority":  func(g *Region) { g.Priority = 1 },
		"no storage":  func(g *Region) { g.Enter[0].Size = 0 },
		"always":      func(g *Region) { g.Enter[0].Always = true },
		"self":        func(g *Region) { g.Enter[0].Share = memory.ShareMust },
		"a pointer":   func(g *Region) { g.Pointers = make([]Pointer, 1) },
		"an address":  func(g *Region) { g.Addresses = make([]Address, 1) },
		"bound twice": func(g *Region) { g.Buffers = make([]Buffer, 2) },
		"no kernel":   func(g *Region) { g.Kernel = nil },
	} {
		g := r.region(launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
		if change != nil {
			change(g)
		}
		if got := g.Plain(); got != (change == nil || name == "its buffers") {
			t.Errorf("%s: plain is %v", name, got)
		}
	}
}

// A launch of which one dimension is folded into another has another pipeline, so that it stays a task of its own, also
// where one dispatch does it.
func TestCompoundOfLongRanges(t *testing.T) {
	d := newFakeDevice(t, unifiedMemory, 1)
	d.props.Limits.MaxComputeWorkGroupCount = [3]uint32{8, 8, 8}
	r := newRigOn(t, d, memoryModes[1])
	defer r.close()
	r.watches = false
	for elements, possible := range map[int]bool{32: true, 64: false, 100: false} { // in workgroups of four
		x, y := filled(elements, 1), filled(elements, 1)
		var regions []*Region
		for _, s := range [][]uint32{x, y} {
			regions = append(regions, r.region(launch{label: "add", kernel: "add", args: []arg{tofrom(s)}, constant: 1, out: [][]uint32{s}}))
		}
		if got := r.s.NewCompound(regions) != nil; got != possible {
			t.Errorf("%d elements: one task can replace the constructs: %v, want %v", elements, got, possible)
		}
	}
}

// One by one, launches of many invocations go to the device in submissions that drivers let run to their
// end.
func TestCompoundIsNoLongerThanASubmission(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x, zero := filled(16, 1), filled(16, 0)
	half := r.region(launch{label: "mix", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, out: [][]uint32{x}})
	half.Range = [3]uint64{order.MostInvocations >> 16, 1 << 15, 1}
	if r.s.NewCompound([]*Region{half, half}) == nil {
		t.Error("no compound task has as many invocations as a submission may have")
	}
	if r.s.NewCompound([]*Region{half, half, half}) != nil {
		t.Error("a compound task has more invocations than a submission may have")
	}
}

// Storage that moves now and then leaves no recordings behind, however long it is until the next garbage
// collection.
func TestRecordingsOfStorageThatMovesAreFreed(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x, other, zero := filled(16, 1), filled(16, 1), filled(16, 0)
	l := launch{label: "mix", kernel: "mix", args: []arg{tofrom(x), to(zero), to(zero)}, constant: 1, out: [][]uint32{x}}
	c := r.s.NewCompound([]*Region{r.region(l), r.region(l)})
	enter := func(s []uint32) { r.run(launch{label: "enter", enter: []arg{to(s)}, included: true}) }
	exit := func(s []uint32) { r.run(launch{label: "exit", exit: []arg{to(s)}, included: true}) }
	enter(zero)
	enter(x)
	executions := 0
	for round := range 10 {
		for range 3 {
			if ran, err := r.s.RunCompound(t.Context(), c, construct.Construct{Scope: r.scope}); !ran || err != nil {
				t.Fatalf("ran is %v, the error %v", ran, err)
			}
			r.taskwait()
		}
		r.d.mu.Lock()
		if n := len(r.d.recordings); n != 1 {
			t.Errorf("there are %d recordings, want that of the storage where it is", n)
		}
		if r.d.executions < executions+2 {
			t.Errorf("%d executions, %d before: the storage did not stay for three tasks", r.d.executions, executions)
		}
		executions = r.d.executions
		r.d.mu.Unlock()
		exit(x)
		if round%2 == 0 {
			enter(other) // where x was
		} else {
			exit(other)
		}
		enter(x)
	}
	exit(x)
	exit(zero)
}
