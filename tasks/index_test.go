package tasks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// indexModel is an index, and a list of what has been put in it.
type indexModel struct {
	index
	locations []*location
}

func (m *indexModel) has(s section) *location {
	for _, l := range m.locations {
		if l.section == s {
			return l
		}
	}
	return nil
}

// toggle inserts s if it is absent, and removes it otherwise.
func (m *indexModel) toggle(s section) {
	for i, l := range m.locations {
		if l.section == s {
			m.remove(l)
			m.locations[i] = m.locations[len(m.locations)-1]
			m.locations = m.locations[:len(m.locations)-1]
			return
		}
	}
	l := &location{section: s}
	m.insert(l)
	m.locations = append(m.locations, l)
}

// check compares what index and list have for s, and checks the index's invariants.
func (m *indexModel) check(s section) error {
	if err := m.validate(); err != nil {
		return err
	}
	if m.len() != len(m.locations) {
		return fmt.Errorf("len is %d, not %d", m.len(), len(m.locations))
	}
	return m.ask(s)
}

func (m *indexModel) ask(s section) error {
	if got, want := m.find(s), m.has(s); got != want {
		return fmt.Errorf("find %#x+%d: %v, want %v", s.start, s.size, got, want)
	}
	kept := &location{}
	got := m.appendOverlapping([]*location{kept}, s)
	if got[0] != kept {
		return fmt.Errorf("overlapping %#x+%d: did not append", s.start, s.size)
	}
	times := make(map[*location]int)
	for _, l := range got[1:] {
		times[l]++
	}
	for _, l := range m.locations {
		want := 0
		if l.start <= s.start+(s.size-1) && s.start <= l.start+(l.size-1) {
			want = 1
		}
		if times[l] != want {
			return fmt.Errorf("overlapping %#x+%d: %#x+%d %d times, want %d",
				s.start, s.size, l.start, l.size, times[l], want)
		}
		delete(times, l)
	}
	if len(times) > 0 {
		return fmt.Errorf("overlapping %#x+%d: %d that are not in the index", s.start, s.size, len(times))
	}
	return nil
}

// universe returns every section of whole units between base and base+n units.
func universe(base, unit uintptr, n int) []section {
	var all []section
	for from := range n {
		for to := from + 1; to <= n; to++ {
			all = append(all, section{base + uintptr(from)*unit, uintptr(to-from) * unit})
		}
	}
	return all
}

// universes are small sets of sections: bytes, granules, and sizes at which classes end, each
// at the bottom, in the middle and at the top of the address space.
func universes(n int) map[string][]section {
	all := make(map[string][]section)
	for _, shift := range []uint{0, 1, 2, 3, 6, 9, 20, 40, 60} {
		unit := uintptr(1) << shift
		top := -unit*uintptr(n) - 1
		all[fmt.Sprintf("bottom/%d", unit)] = universe(0, unit, n)
		all[fmt.Sprintf("middle/%d", unit)] = universe(min(1<<47-3*unit, top), unit, n)
		all[fmt.Sprintf("top/%d", unit)] = universe(top, unit, n)
	}
	return all
}

func TestIndexAnswersForEverySetOfASmallUniverse(t *testing.T) {
	for name, sections := range universes(4) {
		t.Run(name, func(t *testing.T) {
			var m indexModel
			// A Gray code goes through all subsets, changing one location at a time.
			for i := 1; i < 1<<len(sections); i++ {
				bit := 0
				for i>>bit&1 == 0 {
					bit++
				}
				m.toggle(sections[bit])
				if err := m.validate(); err != nil {
					t.Fatal(err)
				}
				for _, s := range sections {
					if err := m.ask(s); err != nil {
						t.Fatalf("set %b: %v", i^i>>1, err)
					}
				}
			}
		})
	}
}

func TestIndexForgetsInEveryOrder(t *testing.T) {
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for name, sections := range universes(3) {
		t.Run(name, func(t *testing.T) {
			for i := range sections {
				for j := range sections {
					for k := range sections {
						if i == j || j == k || i == k {
							continue
						}
						chosen := [3]section{sections[i], sections[j], sections[k]}
						for _, order := range orders {
							var m indexModel
							for _, s := range chosen {
								m.toggle(s)
							}
							for _, n := range order {
								m.toggle(chosen[n])
								if err := m.check(chosen[n]); err != nil {
									t.Fatal(err)
								}
							}
						}
					}
				}
			}
		})
	}
}

// TestIndexRaisesAndLowersAtEveryStride lets a class grow through all its heights and shrink
// again, in three orders.
func TestIndexRaisesAndLowersAtEveryStride(t *testing.T) {
	oneGoroutine(t)
	const n = 3 * maxRoots
	for shift := uint(0); shift <= 58; shift++ {
		for _, size := range []uintptr{1, 8, 100, 4096} {
			if size > 1<<shift && shift > 8 {
				continue
			}
			sections := make([]section, n)
			for i := range sections {
				sections[i] = section{uintptr(i) << shift, size}
			}
			shuffled := rand.New(rand.NewPCG(uint64(shift), uint64(size))).Perm(n)
			for _, order := range []func(i int) int{
				func(i int) int { return i },
				func(i int) int { return n - 1 - i },
				func(i int) int { return shuffled[i] },
			} {
				var m indexModel
				for i := range n {
					m.toggle(sections[i])
					if err := m.check(section{sections[i].start, sections[i/2].start + 1}); err != nil {
						t.Fatalf("stride 1<<%d, size %d, %d inserted: %v", shift, size, i+1, err)
					}
				}
				if c := m.classes[classOf(size)-minClass]; m.granules.count > maxRoots && c.height == 0 {
					t.Fatalf("stride 1<<%d, size %d: %d granules without bitmaps", shift, size, m.granules.count)
				}
				for i := range n {
					s := sections[order(i)]
					m.toggle(s)
					if err := m.check(section{0, s.start + 1}); err != nil {
						t.Fatalf("stride 1<<%d, size %d, %d removed: %v", shift, size, i+1, err)
					}
				}
				if c := m.classes[classOf(size)-minClass]; c.height != 0 || m.groups.count != 0 {
					t.Fatalf("stride 1<<%d, size %d: empty, but height %d", shift, size, c.height)
				}
			}
		}
	}
}

// drawSection draws sections that are often close together: few bases, distances of few scales,
// and sizes about powers of two up to 1 TiB.
func drawSection(t *rapid.T) section {
	size := uintptr(1) << rapid.IntRange(0, 40).Draw(t, "log2 size")
	size = max(size+uintptr(rapid.IntRange(-1, 1).Draw(t, "more")), 1)
	start := uintptr(rapid.IntRange(0, 24).Draw(t, "distance")) << rapid.SampledFrom([]int{0, 3, 6, 9, 12, 20, 30}).Draw(t, "scale")
	switch rapid.IntRange(0, 2).Draw(t, "base") {
	case 0:
		start += 1 << 40
	case 1:
		start = math.MaxUint - size - start
	}
	return section{start, size}
}

func TestIndexMatchesAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m indexModel
		step := func(s section) {
			m.toggle(s)
			if err := m.check(s); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"toggle": func(t *rapid.T) { step(drawSection(t)) },
			"remove": func(t *rapid.T) {
				if len(m.locations) == 0 {
					t.Skip("empty")
				}
				step(m.locations[rapid.IntRange(0, len(m.locations)-1).Draw(t, "which")].section)
			},
			"array": func(t *rapid.T) {
				s := drawSection(t)
				stride := uintptr(1) << rapid.IntRange(0, 30).Draw(t, "log2 stride")
				for range rapid.IntRange(1, 40).Draw(t, "elements") {
					if s.start > math.MaxUint-s.size {
						break
					}
					step(s)
					s.start += stride
				}
			},
			"clear": func(t *rapid.T) {
				for len(m.locations) > 3 {
					step(m.locations[0].section)
				}
			},
			"ask": func(t *rapid.T) {
				s := drawSection(t)
				if rapid.Bool().Draw(t, "everything after") {
					s.size = math.MaxUint - s.start
				}
				if err := m.ask(s); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// TestIndexAnswersAmongThousands uses a set too large to compare with a list at each step: it
// has every height, sizes of all scales, and queries that find much or nothing.
func TestIndexAnswersAmongThousands(t *testing.T) {
	oneGoroutine(t)
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 6 {
		var m indexModel
		for len(m.locations) < 4000 {
			size := 1 + uintptr(r.Uint64())&(1<<r.UintN(20)-1)
			start := uintptr(0xc000000000) + uintptr(r.Uint64())&(1<<(16+r.UintN(24))-1)
			if m.find(section{start, size}) == nil {
				l := &location{section: section{start, size}}
				m.insert(l)
				m.locations = append(m.locations, l)
			}
		}
		for len(m.locations) > 0 {
			if err := m.validate(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			for range 20 {
				l := m.locations[r.IntN(len(m.locations))]
				for _, s := range []section{l.section, {l.start + l.size, 1 << r.UintN(30)}, {l.start - 1, 1}, {0xc000000000, 1 << 41}} {
					if err := m.ask(s); err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
				}
			}
			for range min(1000, len(m.locations)) {
				i := r.IntN(len(m.locations))
				m.remove(m.locations[i])
				m.locations[i] = m.locations[len(m.locations)-1]
				m.locations = m.locations[:len(m.locations)-1]
			}
		}
	}
}

func TestIndexFindsTheLongestSectionOfAll(t *testing.T) {
	var m indexModel
	for _, s := range []section{{0, math.MaxUint}, {1, math.MaxUint - 1}, {1, 1<<63 + 5}, {0, 1 << 63}, {math.MaxUint - 1, 1}, {0, 1}} {
		m.toggle(s)
		for _, q := range []section{s, {0, 1}, {math.MaxUint - 1, 1}, {1 << 63, 1}, {0, math.MaxUint}} {
			if err := m.check(q); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestIndexGivesMemoryBack(t *testing.T) {
	oneGoroutine(t)
	const n = 100_000
	var x index
	empty := 2 * minSlots
	locations := spaced(0xc000000000, n, 8, 4096)
	insertAll(&x, locations)
	if err := x.validate(); err != nil {
		t.Fatal(err)
	}
	if x.slots() < n {
		t.Fatalf("%d slots for %d locations", x.slots(), n)
	}
	for i, l := range locations {
		x.remove(l)
		if l.next != nil {
			t.Fatalf("%#x still leads to another location", l.start)
		}
		// The locations are as far apart as pages: there are 8 slots in a granule and at most
		// 1.2 groups for each.
		if left := n - i - 1; x.slots() > max(20*left, empty) {
			t.Fatalf("%d slots for %d locations", x.slots(), left)
		}
	}
	// validate checks that free slots are cleared, among others.
	if err := x.validate(); err != nil {
		t.Fatal(err)
	}
	if x.slots() > empty {
		t.Fatalf("%d slots for no location", x.slots())
	}
}

func TestIndexForgetsTheChainOfWhatItRemoves(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}} {
		var x index
		chain := []*location{{section: section{64, 60}}, {section: section{64, 61}}, {section: section{64, 62}}}
		insertAll(&x, chain)
		for _, i := range order {
			x.remove(chain[i])
			if chain[i].next != nil {
				t.Fatalf("order %v: %d still leads to another location", order, i)
			}
		}
	}
}

// TestIndexStaysAsLargeAsItIs removes a location and inserts it again at every size, while the
// index grows and while it shrinks: the tables must not be reallocated each time.
func TestIndexStaysAsLargeAsItIs(t *testing.T) {
	var x index
	locations := spaced(0xc000000000, 5_000, 8, 4096)
	steady := func(l *location, there bool) {
		t.Helper()
		slots := x.slots()
		for range 2 {
			if there {
				x.remove(l)
			} else {
				x.insert(l)
			}
			there = !there
			if x.slots() != slots {
				t.Fatalf("%d locations: %d slots became %d", x.len(), slots, x.slots())
			}
		}
	}
	for _, l := range locations {
		x.insert(l)
		steady(l, true)
	}
	for _, l := range locations {
		x.remove(l)
		steady(l, false)
	}
}

func TestIndexDoesNotAllocateInSteadyState(t *testing.T) {
	for _, stride := range []uintptr{1, 8, 4096, 1 << 30} {
		var x index
		locations := spaced(0xc000000000, 1_000, 8, stride)
		insertAll(&x, locations)
		dst := make([]*location, 0, len(locations))
		i := 0
		if allocs := testing.AllocsPerRun(2000, func() {
			l := locations[i*7%len(locations)]
			i++
			x.remove(l)
			x.insert(l)
			x.find(l.section)
			x.appendOverlapping(dst, l.section)
			x.appendOverlapping(dst, section{l.start, 1 << 36})
		}); allocs != 0 {
			t.Errorf("stride %d: %v allocations an operation", stride, allocs)
		}
	}
}

func TestPowersOfTwoAreTheLongestOfTheirClass(t *testing.T) {
	for size, class := range map[uintptr]uint{
		1: 3, 2: 3, 8: 3, 9: 4, 16: 4, 17: 5, 64: 6, 65: 7,
		1 << 40: 40, 1<<40 + 1: 41, 1 << 63: 63, 1<<63 + 1: 64, math.MaxUint: 64,
	} {
		if got := classOf(size); got != class {
			t.Errorf("size %d: class %d, want %d", size, got, class)
		}
	}
}

// TestGranulesHaveKeysOfTheirOwn compares the keys of the first and the last granule and group
// of each class and height: those of the others lie between them.
func TestGranulesHaveKeysOfTheirOwn(t *testing.T) {
	type interval struct {
		name        string
		first, last uint64
	}
	disjoint := func(all []interval) {
		for i, a := range all {
			if a.first == 0 || a.last-a.first != 0 && a.last < a.first {
				t.Errorf("%s: %#x to %#x", a.name, a.first, a.last)
			}
			for _, b := range all[:i] {
				if a.first <= b.last && b.first <= a.last {
					t.Errorf("%s and %s share keys", a.name, b.name)
				}
			}
		}
	}
	var granules, groups []interval
	for c := uint(minClass); c <= maxClass; c++ {
		last := uint64(math.MaxUint64) >> granuleShift(c)
		granules = append(granules, interval{fmt.Sprint("class ", c), granuleKey(c, 0), granuleKey(c, last)})
		for h := uint(1); h <= 10; h++ {
			groups = append(groups, interval{fmt.Sprint("class ", c, " height ", h), groupKey(c, h, 0), groupKey(c, h, last>>(6*h))})
		}
	}
	disjoint(granules)
	disjoint(groups)
}
