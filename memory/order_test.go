package memory

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// bothIndices runs order and starts beside a sorted list of the addresses.
type bothIndices struct {
	order  order
	starts starts
	arena  arena
	sorted []uintptr
	blocks map[uintptr]*Present
}

func (m *bothIndices) insert(t *rapid.T, at int) {
	p := &Present{Section: m.arena.section(at, at+1)}
	start := p.Section.Start()
	i, found := slices.BinarySearch(m.sorted, start)
	if found {
		return
	}
	m.order.insert(m.order.below(start), p)
	m.starts.insert(p)
	m.sorted = slices.Insert(m.sorted, i, start)
	m.blocks[start] = p
}

func (m *bothIndices) remove(i int) {
	start := m.sorted[i]
	m.order.remove(m.order.below(start))
	m.starts.remove(start)
	m.sorted = slices.Delete(m.sorted, i, i+1)
	delete(m.blocks, start)
}

func (m *bothIndices) search(t *rapid.T, at int) {
	address := uintptr(unsafe.Pointer(&m.arena.bytes[at]))
	i, found := slices.BinarySearch(m.sorted, address)
	var got *Present
	if slot := m.starts.at(address); slot != nil {
		got = slot.block
	}
	if got != m.blocks[address] {
		t.Fatalf("at %d starts %v, want %v", at, got, m.blocks[address])
	}
	if !found {
		i--
	}
	place := m.order.below(address)
	var rest []uintptr
	for p := range m.order.all(place) {
		if rest = append(rest, p.Section.Start()); len(rest) == 3 {
			break
		}
	}
	if got, want := rest, m.sorted[max(i, 0):]; !slices.Equal(got, want[:min(len(want), 3)]) {
		t.Fatalf("from %d on there are %v, want %v", at, got, want)
	}
	if (m.order.at(place) == nil) != (i < 0) {
		t.Fatalf("at or below %d is %v, %d blocks are", at, m.order.at(place), i+1)
	}
}

// The model of the table has room for few blocks. This test uses many, so that
// leaves are split and merged and slots collide.
func TestIndicesAgreeWithSortedList(t *testing.T) {
	const bytes = 3000
	arena := newArena(bytes)
	rapid.Check(t, func(t *rapid.T) {
		m := &bothIndices{arena: arena, blocks: map[uintptr]*Present{}}
		at := rapid.IntRange(0, bytes-1)
		run := func(f func(int)) func(*rapid.T) {
			return func(t *rapid.T) {
				from, step := at.Draw(t, "from"), rapid.SampledFrom([]int{1, -1, 7, 601}).Draw(t, "step")
				for i := range rapid.IntRange(1, 300).Draw(t, "times") {
					f(((from+i*step)%bytes + bytes) % bytes)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": run(func(at int) { m.insert(t, at) }),
			"inser2": run(func(at int) { m.insert(t, at) }),
			"remove": run(func(at int) {
				if len(m.sorted) > 0 {
					m.remove(at % len(m.sorted))
				}
			}),
			"search": run(func(at int) { m.search(t, at) }),
			"": func(t *rapid.T) {
				for _, err := range []error{m.order.validate(), m.starts.validate()} {
					if err != nil {
						t.Fatal(err)
					}
				}
				all := []uintptr{}
				for p := range m.order.all(place{}) {
					all = append(all, p.Section.Start())
				}
				if !slices.Equal(all, m.sorted) || m.order.n != len(all) || m.starts.n != len(all) {
					t.Fatalf("%d and %d blocks are %v, want %v", m.order.n, m.starts.n, all, m.sorted)
				}
			},
		})
		for len(m.sorted) > 0 {
			m.remove(len(m.sorted) / 2)
		}
		if m.order.n != 0 || len(m.order.leaves) != 0 || m.starts.n != 0 {
			t.Fatalf("%d leaves without blocks", len(m.order.leaves))
		}
	})
}

// Mapping memory in ascending order fills the leaves; unmapping gives them back.
func TestLeavesFollowTheBlocks(t *testing.T) {
	const n = 40 * leafBlocks
	arena := newArena(n)
	m := &bothIndices{arena: arena, blocks: map[uintptr]*Present{}}
	for i := range n {
		m.insert(nil, i)
	}
	if got := len(m.order.leaves); got != n/leafBlocks {
		t.Errorf("%d blocks in ascending order take %d leaves", n, got)
	}
	for i := range n {
		if i%8 != 0 {
			m.remove(slices.Index(m.sorted, uintptr(unsafe.Pointer(&arena.bytes[i]))))
		}
	}
	if got, most := len(m.order.leaves), 1+n/8/(leafBlocks/4); got > most {
		t.Errorf("%d blocks that are left take %d leaves", n/8, got)
	}
}
