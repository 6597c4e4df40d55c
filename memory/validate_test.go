package memory

import (
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/timeline"
)

// Every other test relies on Validate, so each kind of damage must be detected.
func TestAllocatorValidateSeesDamage(t *testing.T) {
	// Chunks of the first block by offset: used, free, used, free.
	build := func() (*Allocator, *chunk, *block) {
		h := &fakeHeap{}
		a := newAllocatorUnchecked(t, h)
		allocate(t, a, 1000)
		gap := allocate(t, a, 2000)
		allocate(t, a, 1000)
		dedicated := allocate(t, a, 1<<20)
		free(t, a, gap)
		free(t, a, dedicated)
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		return a, a.blocks[0].first, a.blocks[1]
	}
	for name, damage := range map[string]func(a *Allocator, used *chunk, dedicated *block){
		"live bytes":          func(a *Allocator, _ *chunk, _ *block) { a.liveBytes++ },
		"block bytes":         func(a *Allocator, _ *chunk, _ *block) { a.blockBytes-- },
		"pooled bytes":        func(a *Allocator, _ *chunk, _ *block) { a.pooledBytes++ },
		"allocations":         func(a *Allocator, _ *chunk, _ *block) { a.allocations++ },
		"peak":                func(a *Allocator, _ *chunk, _ *block) { a.peakLiveBytes = 0 },
		"block index":         func(a *Allocator, _ *chunk, d *block) { d.index = 0 },
		"block owner":         func(a *Allocator, _ *chunk, d *block) { d.owner = nil },
		"block size":          func(a *Allocator, _ *chunk, d *block) { d.heap.Size *= 2 },
		"empty block missing": func(a *Allocator, _ *chunk, _ *block) { a.empty = nil },
		"empty block twice":   func(a *Allocator, _ *chunk, d *block) { a.empty = append(a.empty, d) },
		"used block as empty": func(a *Allocator, _ *chunk, _ *block) { a.empty = append(a.empty, a.blocks[0]) },
		"asked":               func(a *Allocator, used *chunk, _ *block) { used.asked = 1 << 19 },
		"live count":          func(a *Allocator, used *chunk, _ *block) { used.region.live++ },
		"chunk size":          func(a *Allocator, used *chunk, _ *block) { used.size++ },
		"chunk offset":        func(a *Allocator, used *chunk, _ *block) { used.next.offset++ },
		"chunk region":        func(a *Allocator, used *chunk, d *block) { used.region = &d.region },
		"backward link":       func(a *Allocator, used *chunk, _ *block) { used.next.previous = nil },
		"used chunk free":     func(a *Allocator, used *chunk, _ *block) { used.free = true },
		"free chunk used":     func(a *Allocator, used *chunk, _ *block) { used.next.free = false },
		"chunk cut off":       func(a *Allocator, used *chunk, _ *block) { used.next.next = nil },
		"not merged": func(a *Allocator, used *chunk, _ *block) {
			used.free, used.region.live, used.asked = true, used.region.live-1, 0
			a.index.link(used)
			a.allocations--
			a.liveBytes -= used.size << a.shift
		},
		"not listed":       func(a *Allocator, used *chunk, _ *block) { a.index.unlink(used.next) },
		"used chunk in it": func(a *Allocator, used *chunk, _ *block) { a.index.link(used) },
		"wrong class": func(a *Allocator, used *chunk, _ *block) {
			i, j := classOf(used.next.size)
			a.index.lists[i][j], a.index.lists[i][j+1] = nil, a.index.lists[i][j]
			a.index.secondLevel[i] ^= 3 << j
		},
		"list link":         func(a *Allocator, used *chunk, _ *block) { used.next.previousFree = used },
		"first-level bit":   func(a *Allocator, _ *chunk, _ *block) { a.index.firstLevel ^= 1 << 40 },
		"second-level bit":  func(a *Allocator, _ *chunk, _ *block) { a.index.secondLevel[3] ^= 1 << 30 },
		"first-level clear": func(a *Allocator, _ *chunk, _ *block) { a.index.firstLevel = 0 },
		"dedicated chunk":   func(a *Allocator, _ *chunk, d *block) { d.first.offset = 1 },
		"dedicated cut": func(a *Allocator, _ *chunk, d *block) {
			rest := &chunk{region: &d.region, offset: 1, size: d.first.size - 1, previous: d.first, asked: 1}
			d.first.size, d.first.next = 1, rest
			d.live++
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, used, dedicated := build()
			damage(a, used, dedicated)
			if err := a.Validate(); err == nil {
				t.Error("not seen")
			}
		})
	}
}

// newAllocatorUnchecked returns an allocator that a test may damage.
func newAllocatorUnchecked(t *testing.T, h *fakeHeap) *Allocator {
	t.Helper()
	a, err := NewAllocator(h, AllocatorOptions{
		MinBlock: 1 << 16, MaxBlock: 1 << 20,
		Completed: func(timeline.Frontier) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTableValidateSeesDamage(t *testing.T) {
	for name, damage := range map[string]func(table *Table, x, y, exiting, infinite *Present){
		"count zero":             func(_ *Table, x, _, _, _ *Present) { x.count = 0 },
		"more ending than count": func(_ *Table, x, _, _, _ *Present) { x.ending = x.count + 1 },
		"exiting uncounted":      func(_ *Table, x, _, _, _ *Present) { x.exiting, x.ending = true, 1 },
		"exiting without exit":   func(_ *Table, _, _, e, _ *Present) { e.ending = 0 },
		"exits to zero":          func(_ *Table, x, _, _, _ *Present) { x.ending = x.count },
		"infinite with count":    func(_ *Table, _, _, _, i *Present) { i.count = 1 },
		"removed":                func(_ *Table, x, _, _, _ *Present) { x.removed = true },
		"moved":                  func(_ *Table, x, _, _, _ *Present) { x.Section.Ptr = unsafe.Add(x.Section.Ptr, 1) },
		"empty":                  func(_ *Table, x, _, _, _ *Present) { x.Section.Size = 0 },
		"overlap":                func(_ *Table, x, _, _, _ *Present) { x.Section.Size += 8 },
		"exiting counter":        func(table *Table, _, _, _, _ *Present) { table.exiting++ },
		"start missing":          func(table *Table, x, _, _, _ *Present) { table.starts.remove(x.Section.Start()) },
		"start too many":         func(table *Table, x, _, _, _ *Present) { table.starts.put(Dormant{start: 1, block: x}) },
		"start of another":       func(table *Table, x, y, _, _ *Present) { table.starts.slotOf(x).block = y },
		"start out of reach": func(table *Table, x, _, _, _ *Present) {
			slot := table.starts.slotOf(x)
			moved := *slot
			*slot = Dormant{}
			table.starts.slots[(table.starts.home(x.Section.Start())+9)%len(table.starts.slots)] = moved
		},
		"start's size":              func(table *Table, x, _, _, _ *Present) { table.starts.slotOf(x).size++ },
		"dormant without count":     func(_ *Table, x, _, _, _ *Present) { x.dormant = true },
		"count and not dormant":     func(table *Table, x, _, _, _ *Present) { table.starts.slotOf(x).count = 2 },
		"entries and not dormant":   func(table *Table, x, _, _, _ *Present) { table.starts.slotOf(x).entered = 1 },
		"dormant infinite counts":   func(table *Table, _, _, _, i *Present) { table.MakeDormant(i); table.starts.slotOf(i).count = 2 },
		"dormant count is infinite": func(table *Table, x, _, _, _ *Present) { table.MakeDormant(x); table.starts.slotOf(x).count = forever },
		"dormant during an exit":    func(table *Table, x, _, _, _ *Present) { table.MakeDormant(x); x.ending = 1 },
		"start counter":             func(table *Table, _, _, _, _ *Present) { table.starts.n++ },
		"order counter":             func(table *Table, _, _, _, _ *Present) { table.blocks.n-- },
		"order of a leaf": func(table *Table, _, _, _, _ *Present) {
			f := table.blocks.leaves[0]
			f.slots[0], f.slots[1] = f.slots[1], f.slots[0]
		},
		"leaf start":       func(table *Table, _, _, _, _ *Present) { table.blocks.starts[0]++ },
		"leaf list":        func(table *Table, _, _, _, _ *Present) { table.blocks.starts = append(table.blocks.starts, 1<<60) },
		"empty leaf":       func(table *Table, _, _, _, _ *Present) { table.blocks.addLeaf(1, 1<<60) },
		"leaf remembers":   func(table *Table, x, _, _, _ *Present) { table.blocks.leaves[0].slots[4].block = x },
		"spare leaf":       func(table *Table, x, _, _, _ *Present) { table.blocks.spare = &leaf{n: 1} },
		"spare and filed":  func(_ *Table, x, _, _, _ *Present) { x.spare = true },
		"spare and in use": func(table *Table, x, _, _, _ *Present) { table.spares = append(table.spares, x) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newArena(40)
			table := NewTable()
			var p [4]*Present
			for i := range p {
				s := a.section(i*8, i*8+8)
				if i == 3 {
					var err error
					if p[i], err = table.InsertInfinite(s, Storage{}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				p[i] = enterOne(t, table, Map{Section: s}).Present
				enterOne(t, table, Map{Section: s})
			}
			table.BeginExit([]Map{{Section: p[2].Section, Type: MapDelete}}, nil)
			if err := table.Validate(); err != nil {
				t.Fatal(err)
			}
			damage(table, p[0], p[1], p[2], p[3])
			if err := table.Validate(); err == nil {
				t.Error("not seen")
			}
		})
	}
}

// slotOf returns the slot of a block.
func (s *starts) slotOf(p *Present) *Dormant {
	for i := range s.slots {
		if s.slots[i].block == p {
			return &s.slots[i]
		}
	}
	return nil
}
