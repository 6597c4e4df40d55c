package memory

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"pgregory.net/rapid"
)

// arena is host storage whose bytes tests map.
type arena struct{ bytes []byte }

func newArena(size int) arena { return arena{make([]byte, size)} }

func (a arena) section(start, end int) Section {
	return Section{Ptr: unsafe.Pointer(&a.bytes[start]), Size: uint64(end - start)}
}

func (a arena) offset(s Section) int {
	return int(s.Start() - uintptr(unsafe.Pointer(unsafe.SliceData(a.bytes))))
}

const modelBytes = 24

// modelBlock is a block in the naive model. Its count falls when an exit begins,
// as if the exit happened at once, which OpenMP calls atomic.
type modelBlock struct {
	start, end int
	count      int
	infinite   bool
	uses       uint64
	shared     bool
	ending     int  // exits that have begun and not ended
	dying      bool // the count has reached zero, the storage still exists
	present    *Present
	device     [modelBytes]byte // contents of device memory if every due copy is made
}

// modelItem is an item as the model sees it.
type modelItem struct {
	start, end int
	typ        MapType
	always     bool
	delete     bool
	presence   Presence
	share      Share
}

func (i modelItem) encloses(o modelItem) bool { return i.start <= o.start && o.end <= i.end }
func (i modelItem) touches(o modelItem) bool  { return i.start < o.end && o.start < i.end }
func (i modelItem) empty() bool               { return i.start == i.end }
func (i modelItem) to() bool                  { return i.typ == MapTo || i.typ == MapToFrom }
func (i modelItem) from() bool                { return i.typ == MapFrom || i.typ == MapToFrom }
func (i modelItem) counts() bool              { return !i.empty() || i.presence == IfPresent }
func (i modelItem) deletes() bool             { return i.typ == MapDelete || i.delete }
func (i modelItem) equals(o modelItem) bool   { return i.encloses(o) && o.encloses(i) }

// begun is the exit of a construct that has begun, and the blocks that it refers
// to.
type begun struct {
	exits  []Exit
	blocks []*modelBlock
}

// entered is a construct that has entered, with what that returned.
type entered struct {
	model []modelItem
	items []Map
	uses  []Use
}

// tableMachine runs a Table, with simulated device memory to which exactly the
// copies that the table requests are made, beside a model that records the block of
// every byte and performs the entry and exit sequences item by item.
type tableMachine struct {
	arena arena
	table *Table

	owner     [modelBytes]*modelBlock
	hostModel [modelBytes]byte // contents of host memory if every due copy is made

	devices map[uint64][]byte // by storage that the table holds
	next    uint64
	begun   []begun
	entered []entered
	uses    []Use // reused between calls, as the scheduler does
}

func newTableMachine() *tableMachine {
	return &tableMachine{arena: newArena(modelBytes + 1), table: NewTable(), devices: map[uint64][]byte{}}
}

var errFull = fmt.Errorf("no room: %w", ErrOutOfMemory)

func drawItem(t *rapid.T, types []MapType) modelItem {
	start := rapid.IntRange(0, modelBytes-1).Draw(t, "start")
	length := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, modelBytes)).Draw(t, "length")
	return modelItem{
		start:  start,
		end:    min(start+length, modelBytes),
		typ:    rapid.SampledFrom(types).Draw(t, "type"),
		always: rapid.IntRange(0, 3).Draw(t, "always") == 0,
		delete: rapid.IntRange(0, 7).Draw(t, "delete") == 0,
		presence: rapid.SampledFrom([]Presence{
			MayBeAbsent, MayBeAbsent, MayBeAbsent, MayBeAbsent, MustBePresent, IfPresent,
		}).Draw(t, "presence"),
		share: rapid.SampledFrom([]Share{ShareNever, ShareNever, ShareNever, ShareMay, ShareMay, ShareMust}).Draw(t, "share"),
	}
}

func (m *tableMachine) drawItems(t *rapid.T, types []MapType) ([]modelItem, []Map) {
	model := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelItem { return drawItem(t, types) }), 1, 5).Draw(t, "items")
	// Half of the constructs name blocks that exist, or parts of them.
	if blocks := m.modelBlocks(); len(blocks) > 0 {
		for i := range model {
			if !rapid.Bool().Draw(t, "inside a block") {
				continue
			}
			b := rapid.SampledFrom(blocks).Draw(t, "block")
			model[i].start = rapid.IntRange(b.start, b.end-1).Draw(t, "from")
			model[i].end = rapid.IntRange(model[i].start, b.end).Draw(t, "to")
		}
	}
	return model, m.maps(model)
}

func (m *tableMachine) maps(model []modelItem) []Map {
	var items []Map
	for i, x := range model {
		items = append(items, Map{
			Section: m.arena.section(x.start, x.end), Type: x.typ, Always: x.always, Delete: x.delete,
			Presence: x.presence, Share: x.share, DeviceSize: uint64(i), Label: fmt.Sprint("item", i),
		})
	}
	return items
}

func (m *tableMachine) modelBlocks() []*modelBlock {
	var blocks []*modelBlock
	for _, b := range m.owner {
		if b != nil && !slices.Contains(blocks, b) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// find returns the block that contains all bytes of x. partly says that only some
// bytes are present, or that they lie in several blocks.
func (m *tableMachine) find(x modelItem) (found *modelBlock, partly bool) {
	if x.empty() {
		return m.owner[x.start], false
	}
	found = m.owner[x.start]
	for _, b := range m.owner[x.start:x.end] {
		partly = partly || b != found
	}
	if partly {
		return nil, true
	}
	return found, false
}

func (m *tableMachine) check(t *rapid.T) {
	if err := m.table.Validate(); err != nil {
		t.Fatal(err)
	}
	blocks := m.modelBlocks()
	if m.table.Len() != len(blocks) || len(m.devices) != len(blocks) {
		t.Fatalf("%d blocks, %d storages, want %d", m.table.Len(), len(m.devices), len(blocks))
	}
	i := 0
	for p := range m.table.All() {
		b := blocks[i]
		i++
		if p != b.present || m.arena.offset(p.Section) != b.start || int(p.Section.Size) != b.end-b.start {
			t.Fatalf("block %d is %s, want [%d,%d)", i, p.Section, b.start, b.end)
		}
		count, infinite := p.Count()
		if infinite != b.infinite || int(p.remaining()) != b.count || p.Exiting() != b.dying || p.Uses() != b.uses || p.Shared != b.shared {
			t.Fatalf("block %+v: %+v", *p, *b)
		}
		if b.ending == 0 && int(count) != b.count {
			t.Fatalf("block %s counts %d, want %d", p.Section, count, b.count)
		}
		if got, want := m.device(p), b.device[b.start:b.end]; !slices.Equal(got, want) {
			t.Fatalf("block %s holds %v on the device, want %v", p.Section, got, want)
		}
	}
	if got := m.arena.bytes[:modelBytes]; !slices.Equal(got, m.hostModel[:]) {
		t.Fatalf("the host holds %v, want %v", got, m.hostModel)
	}
	m.checkLookups(t)
}

// checkLookups looks every section of the arena up.
func (m *tableMachine) checkLookups(t *rapid.T) {
	for start := range modelBytes {
		for end := start; end <= modelBytes; end++ {
			s := m.arena.section(start, end)
			b, partly := m.find(modelItem{start: start, end: end})
			p, offset, err := m.table.Lookup(s)
			switch {
			case partly:
				var overlap *OverlapError
				if p != nil || !errors.Is(err, ErrPartialOverlap) || !errors.As(err, &overlap) || overlap.Section != s || !overlap.Present {
					t.Fatalf("lookup of [%d,%d), present in part: %v, %v", start, end, p, err)
				}
				if at := m.arena.offset(overlap.With); m.owner[at] == nil || m.owner[at].present.Section != overlap.With {
					t.Fatalf("lookup of [%d,%d) overlaps %s, which is no block", start, end, overlap.With)
				}
			case b == nil:
				if p != nil || err != nil {
					t.Fatalf("lookup of [%d,%d), absent: %v, %v", start, end, p, err)
				}
			case p != b.present || offset != uint64(start-b.start) || err != nil:
				t.Fatalf("lookup of [%d,%d): %v at %d, %v", start, end, p, offset, err)
			}
			var touching []*Present
			for _, b := range m.owner[start:end] {
				if b != nil && !slices.Contains(touching, b.present) {
					touching = append(touching, b.present)
				}
			}
			if got := slices.Collect(m.table.Touching(s)); start < end && !slices.Equal(got, touching) {
				t.Fatalf("touching [%d,%d): %v, want %v", start, end, got, touching)
			}
			var exiting *Present
			for _, b := range m.owner[start:max(end, start+1)] {
				if b != nil && b.dying {
					exiting = b.present
					break
				}
			}
			if got := m.table.Exiting(s); got != exiting {
				t.Fatalf("exiting in [%d,%d): %v, want %v", start, end, got, exiting)
			}
		}
	}
}
