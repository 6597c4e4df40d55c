package tests

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/vkomp/vkomp"
)

// A program is a random tree of constructs on a few arrays of numbers. Executed sequentially it
// has one result, and its depend clauses are such that it must have the same result when it runs
// in parallel. Tasks that may run in any order perform commutative operations: mutexinoutset
// tasks add; inoutset tasks add atomically on the host, and use separate tiles on the device.

const (
	programArrays = 3
	// mappedArray is the array that data regions map.
	mappedArray = programArrays - 1
	tiles       = 6
	// tile is a number of elements: 256 bytes, so that each tile can be bound.
	tile = 64
)

// area is some tiles of an array.
type area struct{ array, lo, hi int }

// item is a depend item for an area; all-memory kinds have no area.
type item struct {
	kind vkomp.DependKind
	area
}

type stepKind int

const (
	hostStep stepKind = iota
	// nestStep is a host task with children.
	nestStep
	targetStep
	// regionStep is a target data region on the whole of mappedArray.
	regionStep
	groupStep
	// waitStep and waitOnStep are taskwaits, after which the generator itself uses the
	// storage.
	waitStep
	waitOnStep
	// joinStep is two tasks that are ordered only by a join. Another join orders them after those of the
	// same step of a run before.
	joinStep
)

// step is one construct of a program.
type step struct {
	kind  stepKind
	items []item
	c     uint32
	steps []*step

	undeferred, final, mergeable bool
	transparent                  vkomp.Transparency
	priority                     int
	// detach, if not 0, says when the event is fulfilled.
	detach int
	// areas are what an all-memory task, a wait or a nest may use.
	areas []area
	// dst and src are what a target task writes and reads; they may be the same.
	dst, src       area
	mul, fac       uint32
	onHost, derive bool
	// private is the number of the storage that only this joinStep uses.
	private int
	// byTarget says which of a joinStep's tasks are target tasks.
	byTarget [2]bool
}

// generator generates the steps of one region.
type generator struct {
	random *rand.Rand
	areas  []area
	// taken are the tiles that inoutset target tasks have used.
	taken map[area]bool
	// lingering says that a taskwait does not wait for all tasks that use the storage, for
	// example not for children of transparent children.
	lingering bool
	// inRegion restricts the steps to target tasks, and to those on mappedArray.
	inRegion bool
	final    bool
	depth    int
	privates *int
	// made counts the kinds of steps, for the test that checks that all occur.
	made map[string]int
}

func newProgram(seed uint64) ([]*step, int, map[string]int) {
	privates := 0
	g := &generator{random: rand.New(rand.NewPCG(seed, 17)), taken: make(map[area]bool), privates: &privates, made: make(map[string]int)}
	for a := range programArrays {
		g.areas = append(g.areas, area{a, 0, tiles})
	}
	return g.steps(6 + g.random.IntN(20)), privates, g.made
}

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func (g *generator) steps(n int) []*step {
	steps := make([]*step, 0, n)
	for range n {
		steps = append(steps, g.step())
	}
	return steps
}

// part returns some tiles of the generator's areas.
func (g *generator) part() area {
	a := g.areas[g.random.IntN(len(g.areas))]
	lo := a.lo + g.random.IntN(a.hi-a.lo)
	return area{a.array, lo, lo + 1 + g.random.IntN(a.hi-lo)}
}

func (g *generator) tileOf(a area) area {
	lo := a.lo + g.random.IntN(a.hi-a.lo)
	return area{a.array, lo, lo + 1}
}

var anyKind = []vkomp.DependKind{
	vkomp.DependIn, vkomp.DependIn, vkomp.DependOut, vkomp.DependInOut,
	vkomp.DependMutexInOutSet, vkomp.DependMutexInOutSet, vkomp.DependInOutSet, vkomp.DependInOutSet,
}

func (g *generator) items(n int) []item {
	var items []item
	for range n {
		items = append(items, item{anyKind[g.random.IntN(len(anyKind))], g.part()})
	}
	return items
}

func (g *generator) step() *step {
	s := &step{c: g.random.Uint32(), priority: g.random.IntN(4), areas: g.areas}
	if g.inRegion {
		g.target(s)
		return s
	}
	switch p := g.random.IntN(100); {
	case p < 30:
		s.kind, s.items = hostStep, g.items(1+g.random.IntN(3))
		s.undeferred, s.mergeable, s.final = g.chance(15), g.chance(30), g.chance(10)
		switch {
		case g.chance(8):
			s.items = append(s.items, item{kind: vkomp.DependInOutAllMemory})
			g.made["all memory"]++
		case g.chance(25) && !g.final && !s.mergeable:
			s.detach = 1 + g.random.IntN(3)
			g.made["detach"]++
		}
		if s.undeferred && s.mergeable {
			g.made["merged"]++
		}
		for _, i := range s.items {
			g.made[i.kind.String()]++
		}
	case p < 60:
		g.target(s)
	case p < 72 && g.depth < 3:
		g.nest(s)
	case p < 78 && g.depth < 2:
		s.kind, s.steps = groupStep, g.steps(1+g.random.IntN(4))
		g.made["taskgroup"]++
	case p < 84 && g.depth == 0:
		s.kind, s.undeferred = regionStep, g.chance(60)
		inner := *g
		inner.inRegion, inner.areas = true, []area{{mappedArray, 0, tiles}}
		s.steps = inner.steps(1 + g.random.IntN(5))
		g.made["target data"]++
	case p < 88:
		s.kind = waitStep
		if g.lingering {
			// Other tasks may still use the storage.
			s.areas = nil
		}
		g.made["taskwait"]++
	case p < 94:
		s.kind = waitOnStep
		s.items = []item{{anyKind[g.random.IntN(4)], g.part()}}
		g.made["taskwait depend"]++
	default:
		s.kind, s.private = joinStep, *g.privates
		*g.privates++
		s.dst = g.tileOf(g.part())
		s.byTarget = [2]bool{g.chance(50), g.chance(50)}
		g.made["join"]++
	}
	return s
}

// nest generates a task with children, which use the task's own storage.
func (g *generator) nest(s *step) {
	s.kind = nestStep
	inner := *g
	inner.depth++
	inner.lingering = false
	switch {
	case g.chance(20):
		// Undeferred and transparent: its children are ordered among all siblings, which
		// continue while it waits for its children.
		s.undeferred, s.transparent = true, vkomp.ImpEx
		g.lingering, inner.lingering = true, true
		g.made["window"]++
	default:
		inner.areas = nil
		for range 1 + g.random.IntN(2) {
			a := g.part()
			s.items = append(s.items, item{vkomp.DependInOut, a})
			inner.areas = append(inner.areas, a)
		}
		s.undeferred, s.mergeable, s.final = g.chance(20), g.chance(40), g.chance(20)
		if g.chance(35) && !s.mergeable {
			s.transparent = vkomp.Export + vkomp.Transparency(g.random.IntN(2))
			g.lingering = true
			g.made["exporting"]++
		} else {
			inner.taken = make(map[area]bool)
		}
	}
	if s.final {
		g.made["final"]++
	}
	if s.undeferred {
		g.made["undeferred"]++
	}
	inner.final = g.final || s.final
	s.areas = inner.areas
	s.steps = inner.steps(1 + g.random.IntN(5))
	if inner.lingering {
		// The children of a merged task are children of the generator.
		g.lingering = g.lingering || s.mergeable
	}
}

// target generates a target task: it uses one tile of its depend item, in a data region the whole
// item.
func (g *generator) target(s *step) {
	s.kind, s.mul = targetStep, 3
	s.undeferred = g.chance(15)
	s.onHost = !g.inRegion && g.chance(15)
	s.derive = g.chance(20)
	out := item{vkomp.DependInOut, g.part()}
	if g.inRegion {
		s.dst = out.area
	} else {
		s.dst = g.tileOf(out.area)
	}
	switch kind := anyKind[2+g.random.IntN(6)]; {
	case s.derive:
		// The arguments are the items.
		out.area = s.dst
	case kind == vkomp.DependMutexInOutSet:
		out.kind, s.mul = kind, 1
	case kind == vkomp.DependInOutSet && !g.inRegion && s.dst.lo%2 == 1 && !g.taken[s.dst]:
		g.taken[s.dst] = true
		out.kind, s.mul = kind, 1
	default:
		out.kind = vkomp.DependOut
	}
	s.items, s.src = []item{out}, s.dst
	if g.chance(60) {
		from := item{vkomp.DependIn, g.part()}
		src := g.tileOf(from.area)
		if size := s.dst.hi - s.dst.lo; g.inRegion {
			src.lo = g.random.IntN(tiles - size + 1)
			src.hi = src.lo + size
			from.area = src
		}
		apart := src.array != s.dst.array || src.hi <= s.dst.lo || s.dst.hi <= src.lo
		if apart {
			s.src, s.fac = src, 5
			if s.derive {
				from.area = src
			}
			s.items = append(s.items, from)
		}
	}
	if s.derive {
		g.made["DependArgs"]++
	}
	g.made["target "+out.kind.String()]++
}

// state is the data of a program.
type state struct {
	arrays  [programArrays][]uint32
	private [][]uint32
	tokens  [][]byte
}

func newState(privates int) *state {
	s := &state{}
	for a := range s.arrays {
		s.arrays[a] = make([]uint32, tiles*tile)
		for i := range s.arrays[a] {
			s.arrays[a][i] = uint32(1000*a + i)
		}
	}
	for range privates {
		s.private = append(s.private, make([]uint32, tile))
		s.tokens = append(s.tokens, make([]byte, 3))
	}
	return s
}

func (s *state) slice(a area) []uint32 { return s.arrays[a.array][a.lo*tile : a.hi*tile] }

// depend converts the items to those of the API.
func (s *state) depend(items []item) []vkomp.Depend {
	var depend []vkomp.Depend
	for _, i := range items {
		if i.kind.AllMemory() {
			depend = append(depend, vkomp.InOutAllMemory())
			continue
		}
		depend = append(depend, vkomp.DependOn(i.kind, s.slice(i.area)))
	}
	return depend
}

func (s *state) sum(a area) uint32 {
	sum := uint32(0)
	for _, v := range s.slice(a) {
		sum = 31*sum + v
	}
	return sum
}

// scramble changes an area with an operation that does not commute with others.
func (s *state) scramble(a area, c uint32) {
	slice := s.slice(a)
	for i := range slice {
		slice[i] = 3*slice[i] + c
	}
}

// read returns a value computed from the storage that a host task reads.
func (s *state) read(items []item, c uint32) uint32 {
	for _, i := range items {
		if i.kind == vkomp.DependIn {
			c = 31*c + s.sum(i.area)
		}
	}
	return c
}

// write performs the writes of a host task.
func (s *state) write(st *step, c uint32) {
	for _, i := range st.items {
		switch i.kind {
		case vkomp.DependOut, vkomp.DependInOut:
			s.scramble(i.area, c)
		case vkomp.DependMutexInOutSet:
			slice := s.slice(i.area)
			for k := range slice {
				slice[k] += c
			}
		case vkomp.DependInOutSet:
			for t := i.lo; t < i.hi; t++ {
				// Odd tiles belong to target tasks.
				if t%2 == 1 {
					continue
				}
				slice := s.slice(area{i.array, t, t + 1})
				for k := range slice {
					atomic.AddUint32(&slice[k], c)
				}
			}
		case vkomp.DependInOutAllMemory:
			for _, a := range st.areas {
				s.scramble(a, c+7)
			}
		}
	}
}

// run executes a program sequentially.
func (s *state) run(steps []*step) {
	acc := uint32(0)
	for _, st := range steps {
		c := st.c + acc
		switch st.kind {
		case hostStep:
			s.write(st, s.read(st.items, c))
		case nestStep:
			s.write(st, c)
			s.run(st.steps)
		case groupStep, regionStep:
			s.run(st.steps)
		case targetStep:
			affineOnHost(s.slice(st.dst), s.slice(st.src), st.mul, st.fac, c)
		case waitStep:
			for _, a := range st.areas {
				s.scramble(a, c)
			}
		case waitOnStep:
			acc = s.after(st, acc)
		case joinStep:
			affineOnHost(s.private[st.private], s.private[st.private], 0, 0, c)
			affineOnHost(s.slice(st.dst), s.private[st.private], 3, 5, c)
		}
	}
}

// after executes the generator's actions after a taskwait with depend, and returns its new
// accumulator.
func (s *state) after(st *step, acc uint32) uint32 {
	i := st.items[0]
	if i.kind == vkomp.DependIn {
		return 31*acc + s.sum(i.area)
	}
	s.scramble(i.area, st.c)
	return acc
}

func affineOnHost(dst, src []uint32, mul, fac, add uint32) {
	for i := range dst {
		dst[i] = mul*dst[i] + fac*src[i] + add
	}
}
