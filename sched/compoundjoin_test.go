package sched

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// compoundRun is a Compound of launches that is run again and again.
type compoundRun struct {
	r *rig
	c *Compound
}

func (r *rig) compound(launches ...launch) *compoundRun {
	r.t.Helper()
	r.watches = false
	regions := make([]*Region, len(launches))
	for i, l := range launches {
		regions[i] = r.region(l)
	}
	c := r.s.NewCompound(regions)
	if c == nil {
		r.t.Fatal("one task cannot do the constructs")
	}
	return &compoundRun{r, c}
}

// tries runs the compound task, with some other values, and checks whether one task does the constructs. It does not wait for it.
func (p *compoundRun) tries(asOne bool, values ...CompoundValue) {
	p.r.t.Helper()
	ran, err := p.r.s.RunCompound(context.Background(), p.c, construct.Construct{Scope: p.r.scope}, values...)
	if ran != asOne || err != nil {
		p.r.t.Errorf("one task: %v, want %v; the error is %v", ran, asOne, err)
	}
}

// expect runs the compound task, and checks whether it runs, and of how many items.
func (p *compoundRun) expect(ran bool, items int) {
	p.r.t.Helper()
	p.tries(ran)
	if n := len(p.c.joined.maps); n != items {
		p.r.t.Errorf("the task has %d items, want %d: %v", n, items, p.c.joined.maps)
	}
	p.r.taskwait()
}

func (r *rig) enter(slices ...[]uint32) {
	for _, s := range slices {
		r.run(launch{label: "enter", enter: []arg{to(s)}, included: true})
	}
}

func (r *rig) exit(slices ...[]uint32) {
	for _, s := range slices {
		r.run(launch{label: "exit", exit: []arg{from(s)}, included: true, out: [][]uint32{s}})
	}
}

const joinCell = 64

// cellsOf returns the cells of a variable.
func cellsOf(x []uint32) [][]uint32 { return slices.Collect(slices.Chunk(x, joinCell)) }

// addTo is a construct that adds 1 to the slice.
func addTo(s []uint32) launch { return adding(tofrom(s)) }

// adding is a construct that adds 1 to what the argument names.
func adding(a arg) launch {
	return launch{label: "add", kernel: "add", args: []arg{a}, constant: 1, out: [][]uint32{a.s}}
}

func TestItemsThatAreNeighboursInABlockAreOne(t *testing.T) {
	x, zero := array32(4*joinCell), array32(joinCell)
	cells := cellsOf(x)
	copyOf := func(out, a arg) launch {
		return launch{label: "mix", kernel: "mix", args: []arg{out, a, to(zero)}, out: [][]uint32{out.s}}
	}
	for name, c := range map[string]struct {
		present  [][]uint32
		launches []launch
		items    int
		depends  int
	}{
		"one block":            {[][]uint32{x}, []launch{addTo(cells[0]), addTo(cells[1]), addTo(cells[2]), addTo(cells[3])}, 1, 1},
		"in any order":         {[][]uint32{x}, []launch{addTo(cells[2]), addTo(cells[0]), addTo(cells[1])}, 1, 1},
		"of different sizes":   {[][]uint32{x}, []launch{addTo(x[:joinCell]), addTo(x[joinCell:])}, 1, 1},
		"overlapping":          {[][]uint32{x}, []launch{addTo(x[:2*joinCell]), addTo(x[joinCell : 3*joinCell]), addTo(cells[3])}, 1, 1},
		"a gap":                {[][]uint32{x}, []launch{addTo(cells[0]), addTo(cells[2]), addTo(cells[3])}, 2, 2},
		"a block for each":     {cells, []launch{addTo(cells[0]), addTo(cells[1]), addTo(cells[2])}, 3, 1},
		"two blocks":           {[][]uint32{x[:2*joinCell], x[2*joinCell:]}, []launch{addTo(cells[0]), addTo(cells[1]), addTo(cells[2]), addTo(cells[3])}, 2, 1},
		"one is only read":     {[][]uint32{x, zero}, []launch{copyOf(tofrom(cells[0]), tofrom(cells[1]))}, 3, 1},
		"all are only read":    {[][]uint32{x, zero}, []launch{copyOf(tofrom(cells[0]), tofrom(cells[2])), copyOf(tofrom(cells[0]), tofrom(cells[3]))}, 3, 1},
		"mapped in other ways": {[][]uint32{x}, []launch{addTo(cells[0]), {label: "add", kernel: "add", args: []arg{to(cells[1])}, constant: 1, out: [][]uint32{cells[1]}}}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			clear(x)
			r.enter(c.present...)
			p := r.compound(c.launches...)
			if n := len(p.c.depend); n != c.depends {
				t.Errorf("the task has %d depend items, want %d: %v", n, c.depends, p.c.depend)
			}
			for range 3 {
				p.expect(true, c.items)
			}
			r.exit(c.present...)
			want := array32(len(x))
			for range 3 {
				for _, l := range c.launches {
					r.mean(want, x, l)
				}
			}
			r.expect("x", x, want...)
		})
	}
}

// mean does what a launch of addTo or copyOf means to x, in want.
func (r *rig) mean(want, x []uint32, l launch) {
	at := func(s []uint32) int {
		return int(uintptr(unsafe.Pointer(&s[0]))-uintptr(unsafe.Pointer(&x[0]))) / 4
	}
	out := l.args[0].s
	for i := range out {
		if l.kernel == "add" {
			want[at(out)+i] += l.constant
			continue
		}
		want[at(out)+i] = 3*want[at(out)+i] + want[at(l.args[1].s)+i] + l.constant
	}
}

// Storage that was one block can later be several blocks, and the other way round.
func TestItemsFollowTheBlocks(t *testing.T) {
	for _, mode := range append(slices.Clone(memoryModes), queueModes(memoryModes...)...) {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x := array32(4 * joinCell)
			cells := cellsOf(x)
			p := r.compound(addTo(cells[0]), addTo(cells[1]), addTo(cells[2]), addTo(cells[3]))
			p.expect(false, 4) // nothing is present
			const rounds = 3
			for round := range rounds {
				r.enter(x)
				if round == 0 {
					p.expect(true, 1)
				} else {
					p.expect(true, 4) // each of them is present; that they are in one block shows at the next task
				}
				p.expect(true, 1)
				p.expect(true, 1)
				r.exit(x)
				r.enter(cells...)
				p.expect(false, 1)
				p.expect(true, 4)
				p.expect(true, 4)
				r.exit(cells...)
			}
			r.expect("x", x, filled(len(x), 5*rounds)...)
		})
	}
}

// The commands are for the storage of all parts, and not only for where items begin.
func TestCommandsAreForTheItems(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, filler := array32(3*joinCell), array32(joinCell)
	a, b, c, ab, bc := x[:joinCell], x[joinCell:2*joinCell], x[2*joinCell:], x[:2*joinCell], x[joinCell:]
	p := r.compound(addTo(a), addTo(b), addTo(c))
	r.enter(bc, a)
	p.expect(true, 2)
	p.expect(true, 2)
	begins := func() (all []compoundStorage) {
		for _, b := range p.c.bound {
			all = append(all, compoundStorage{buffer: b.buffer, at: b.at})
		}
		return all
	}
	before := begins()
	r.exit(bc, a)
	r.enter(c, filler, ab) // ab where a was, and c where bc was
	p.expect(false, 2)
	p.expect(true, 2)
	if !slices.Equal(before, begins()) {
		t.Errorf("the items were at %v and are at %v: this tests nothing", before, begins())
	}
	r.exit(ab, c, filler)
	r.expect("x", x, filled(len(x), 3)...)
}

// A kernel finds the length of its construct's item, and not that of the items that are one.
func TestLaunchBindsItsPartOfAnItem(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x := array32(4 * joinCell)
	r.enter(x)
	p := r.compound(addTo(x[:joinCell]), addTo(x[joinCell:3*joinCell]), addTo(x[3*joinCell:]))
	p.expect(true, 1)
	var sizes []uint64
	for op := range p.c.commands.Ops() {
		if op.Code == vk.OpDispatch {
			sizes = append(sizes, op.Bindings[0].Size/4)
		}
	}
	slices.Sort(sizes)
	if want := []uint64{joinCell, joinCell, 2 * joinCell}; !slices.Equal(sizes, want) {
		t.Errorf("the launches bind %d words, want %d", sizes, want)
	}
	r.exit(x)
}

// Joined depend items match what the items match.
func TestJoinedDependItems(t *testing.T) {
	bytes := make([]byte, 8)
	kinds := []tasks.DependKind{tasks.DependIn, tasks.DependInOut}
	var all []tasks.Depend
	for _, kind := range kinds {
		for lo := range bytes {
			for _, size := range []int{1, 2, 3} {
				if lo+size <= len(bytes) {
					all = append(all, tasks.Depend{Kind: kind, Ptr: unsafe.Pointer(&bytes[lo]), Size: uint64(size)})
				}
			}
		}
	}
	covered := func(items []tasks.Depend) (in map[string]bool) {
		in = make(map[string]bool)
		for _, d := range items {
			for k := range d.Size {
				in[fmt.Sprint(d.Kind, " ", uintptr(d.Ptr)+uintptr(k)-uintptr(unsafe.Pointer(&bytes[0])))] = true
			}
		}
		return in
	}
	least := 3
	for _, one := range all {
		for _, two := range all {
			for _, three := range all {
				items := []tasks.Depend{one, two, three}
				joined := joinDepend(slices.Clone(items))
				if want, got := covered(items), covered(joined); fmt.Sprint(want) != fmt.Sprint(got) {
					t.Fatalf("%v: joined %v", items, joined)
				}
				least = min(least, len(joined))
				for i, d := range joined {
					for _, e := range joined[:i] {
						if d.Kind == e.Kind && uintptr(d.Ptr) <= uintptr(e.Ptr)+uintptr(e.Size) && uintptr(e.Ptr) <= uintptr(d.Ptr)+uintptr(d.Size) {
							t.Fatalf("%v: %v are not joined", items, joined)
						}
					}
				}
			}
		}
	}
	if least != 1 {
		t.Errorf("no three items are one")
	}
	allMemory := tasks.Depend{Kind: tasks.DependInOutAllMemory}
	if joined := joinDepend([]tasks.Depend{allMemory, all[0]}); len(joined) != 2 || !slices.Contains(joined, allMemory) {
		t.Errorf("with all memory: %v", joined)
	}
}

// changing is a context that calls a function when a construct asks for its channel, which is just before the task is
// generated.
type changing struct {
	context.Context
	change func()
}

func (c *changing) Done() <-chan struct{} {
	c.change()
	return nil
}

// The block in which neighbours lie when one task is chosen for them can be gone when that starts, and they can be blocks
// of their own: another goroutine may change that at any time.
func TestNeighboursAreApartWhenTheTaskStarts(t *testing.T) {
	for name, entered := range map[string][]int{"in two blocks": {0, 1}, "the lower one absent": {1}, "the upper one absent": {0}, "both absent": nil} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			x := filled(3*joinCell, 1)
			both, parts := x[joinCell:], [][]uint32{x[joinCell : 2*joinCell], x[2*joinCell:]}
			p := r.compound(add1(parts[0]), add1(parts[1]))
			r.compile()
			r.enter(both)
			p.expect(true, 1)
			ran, err := r.s.RunCompound(&changing{t.Context(), func() {
				r.exit(both)
				for _, i := range entered {
					r.enter(parts[i])
				}
				r.d.hold()
			}}, p.c, construct.Construct{Scope: r.scope})
			if !ran || err != nil {
				t.Errorf("one task: %v; the error is %v", ran, err)
			}
			r.run(launch{label: "keep", enter: []arg{to(parts[1])}}) // and not the lower part
			r.d.release()
			r.taskwait()
			for _, i := range entered {
				r.exit(parts[i])
			}
			r.enter(x[:2*joinCell])
			r.exit(x[:2*joinCell], parts[1])
			r.expect("x", both, filled(2*joinCell, 3)...)
			p.expect(false, 2)
		})
	}
}

// The block can also be there when the task starts first, while another task removes it: the task starts again then.
func TestNeighboursAreApartWhenTheTaskStartsAgain(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x := filled(2*joinCell, 1)
	parts := cellsOf(x)
	p := r.compound(add1(parts[0]), add1(parts[1]))
	r.compile()
	r.enter(x)
	p.expect(true, 1)
	ran, err := r.s.RunCompound(&changing{t.Context(), func() {
		r.d.hold()
		r.run(launch{label: "exit", exit: []arg{from(x)}, out: [][]uint32{x}})
	}}, p.c, construct.Construct{Scope: r.scope})
	if !ran || err != nil {
		t.Errorf("one task: %v; the error is %v", ran, err)
	}
	if len(p.c.bound) != 1 {
		t.Error("the task has started: this tests nothing")
	}
	r.d.release()
	r.taskwait()
	if len(p.c.bound) != 2 {
		t.Error("the task has mapped the neighbours as one")
	}
	r.expect("x", x, filled(2*joinCell, 3)...)
}
