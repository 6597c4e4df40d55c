package memory

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTableAgreesWithByteModel(t *testing.T) { rapid.Check(t, tableHistory) }

func tableHistory(t *rapid.T) {
	m := newTableMachine()
	// The check looks every block up, and so none is dormant after it.
	dormantFirst := func(f func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			m.makeDormant(t)
			f(t)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"enter":     dormantFirst(m.enter),
		"enter2":    dormantFirst(m.enter),
		"leave":     dormantFirst(m.leave),
		"begin":     dormantFirst(m.begin),
		"end":       dormantFirst(m.end),
		"end2":      dormantFirst(m.end),
		"count":     dormantFirst(m.count),
		"associate": dormantFirst(m.associate),
		"remove":    dormantFirst(m.remove),
		"declare":   dormantFirst(m.makeInfinite),
		"write":     m.write,
		"write2":    m.write,
		"":          m.check,
	})
}

// makeDormant makes some blocks dormant, and counts constructs that enter and leave them.
func (m *tableMachine) makeDormant(t *rapid.T) {
	for _, b := range m.modelBlocks() {
		if !rapid.Bool().Draw(t, "dormant") {
			continue
		}
		dormant := !b.dying && b.ending == 0
		m.table.MakeDormant(b.present)
		m.table.MakeDormant(b.present)
		whole := m.arena.section(b.start, b.end)
		for range rapid.IntRange(0, 4).Draw(t, "constructs") {
			section := m.arena.section(b.start, rapid.IntRange(b.start+1, b.end).Draw(t, "end"))
			leaving := rapid.Bool().Draw(t, "leaving")
			r := m.table.Dormant(section, leaving)
			if want := dormant && (!leaving || b.infinite || b.count > 1); (r != nil) != want {
				t.Fatalf("%+v: dormant: %t, want %t", *b, r != nil, want)
			}
			if r == nil {
				continue
			}
			change := 1
			if leaving {
				r.Leave()
				change = -1
			} else {
				r.Enter()
				b.uses++
			}
			if !b.infinite {
				b.count += change
			}
		}
		others := []Section{{Ptr: whole.Ptr}, {Ptr: whole.Ptr, Size: whole.Size + 1}}
		if whole.Size > 1 {
			others = append(others, m.arena.section(b.start+1, b.end))
		}
		for _, s := range others {
			if m.table.Dormant(s, false) != nil || m.table.Dormant(s, true) != nil {
				t.Fatalf("%s is counted in the dormant block %s", s, whole)
			}
		}
	}
	for i, b := range m.owner {
		if m.table.Has(m.arena.section(i, i).Start()) != (b != nil) {
			t.Fatalf("byte %d is present: %t", i, b == nil)
		}
	}
}

// count counts a construct that enters or leaves some blocks, of which each stays.
func (m *tableMachine) count(t *rapid.T) {
	blocks := m.modelBlocks()
	if len(blocks) == 0 {
		t.Skip("no block is present")
	}
	leaving := rapid.Bool().Draw(t, "leaving")
	var counted []*Present
	var of []*modelBlock
	for _, b := range rapid.SliceOfN(rapid.SampledFrom(blocks), 1, 5).Draw(t, "blocks") {
		p, _, _ := m.table.Lookup(m.arena.section(b.start, b.end))
		if b.dying || leaving && !p.Stays() {
			continue
		}
		counted = append(counted, p)
		if !slices.Contains(of, b) {
			of = append(of, b)
		}
	}
	for _, b := range of {
		switch {
		case !leaving && !b.infinite:
			b.count++
		case leaving && !b.infinite:
			b.count--
		}
		if !leaving {
			b.uses++
		}
	}
	if leaving {
		m.table.Relinquish(counted)
	} else {
		m.table.Retain(counted)
	}
}

func (m *tableMachine) enter(t *rapid.T) {
	model, items := m.drawItems(t, []MapType{MapAlloc, MapTo, MapFrom, MapToFrom, MapTo, MapToFrom, MapAlloc, MapRelease})
	m.enterItems(t, model, items, rapid.IntRange(-1, 3).Draw(t, "failing allocation"))
}

// refusals returns the errors with which entering the items may be refused, and
// otherwise the blocks that it creates, with the item of each.
func (m *tableMachine) refusals(model []modelItem) (want []error, made map[*modelBlock]int) {
	var absent []int
	for i, x := range model {
		b, partly := m.find(x)
		if x.typ == MapRelease || x.typ == MapDelete {
			want = append(want, ErrInvalidMapType)
		}
		if partly && x.presence == IfPresent {
			continue
		}
		if partly {
			want = append(want, ErrPartialOverlap)
		}
		if b == nil && x.presence == MustBePresent {
			want = append(want, ErrNotPresent)
		}
		if b != nil && x.share == ShareMust && !b.shared {
			want = append(want, ErrNotShared)
		}
		for _, b := range m.owner[x.start:max(x.end, x.start+1)] {
			if b != nil && b.dying {
				want = append(want, ErrExiting)
			}
		}
		if b == nil && !partly && !x.empty() && x.presence == MayBeAbsent {
			absent = append(absent, i)
		}
	}
	// A block is created for every absent item that no other absent item encloses.
	made = map[*modelBlock]int{}
	for _, i := range absent {
		enclosed := false
		for _, j := range absent {
			enclosed = enclosed || j != i && model[j].encloses(model[i]) && (!model[i].encloses(model[j]) || j < i)
		}
		if enclosed {
			continue
		}
		for b := range made {
			if model[i].touches(modelItem{start: b.start, end: b.end}) {
				want = append(want, ErrPartialOverlap)
			}
		}
		made[&modelBlock{start: model[i].start, end: model[i].end}] = i
	}
	return want, made
}

// shareOf returns the Share of a new block, combined from its items.
func shareOf(model []modelItem, b *modelBlock) Share {
	share := ShareMust
	for _, x := range model {
		if !(modelItem{start: b.start, end: b.end}).encloses(x) || x.start == b.end {
			continue
		}
		if x.share == ShareMust {
			return ShareMust
		}
		if !x.empty() {
			share = min(share, x.share)
		}
	}
	return share
}

// enterItems enters one construct. The allocation with index failing fails, if
// there is one.
func (m *tableMachine) enterItems(t *rapid.T, model []modelItem, items []Map, failing int) {
	want, made := m.refusals(model)
	if len(want) == 0 && failing >= 0 && failing < len(made) {
		want = append(want, errFull)
	}
	blocks := make([]*modelBlock, len(model))

	allocated, released := map[uint64]bool{}, 0
	allocate := func(item *Map) (Storage, error) {
		if len(allocated) == failing {
			return Storage{}, errFull
		}
		for b, i := range made {
			if b.start != m.arena.offset(item.Section) {
				continue
			}
			expected := items[i]
			expected.Share = shareOf(model, b)
			if *item != expected {
				t.Fatalf("storage is asked for %+v, want %+v", *item, expected)
			}
		}
		m.next++
		allocated[m.next] = true
		m.devices[m.next] = make([]byte, item.Size)
		return Storage{Block: HeapBlock{ID: m.next}, Size: item.StorageSize()}, nil
	}
	release := func(s Storage) {
		if !allocated[s.Block.ID] {
			t.Fatalf("storage %d is given back and was not allocated, or twice", s.Block.ID)
		}
		delete(allocated, s.Block.ID)
		delete(m.devices, s.Block.ID)
		released++
	}
	uses, err := m.table.Enter(items, m.uses, allocate, release)
	m.uses = uses
	if len(want) > 0 {
		if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
			t.Fatalf("entering %v: %v, want one of %v", items, err, want)
		}
		if len(uses) != 0 || len(allocated) != 0 {
			t.Fatalf("a refused construct has %d uses and %d storages", len(uses), len(allocated))
		}
		return
	}
	if err != nil {
		t.Fatalf("entering %v: %v", items, err)
	}
	if len(allocated) != len(made) || released != 0 || len(uses) != len(items) {
		t.Fatalf("%d allocations, %d released, %d uses; want %d, 0, %d", len(allocated), released, len(uses), len(made), len(items))
	}

	// 1. create, 2. count once a block, 3. copy item by item.
	for b := range made {
		share := shareOf(model, b)
		b.shared = share == ShareMust || share == ShareMay && b.start%2 == 0
		for i := b.start; i < b.end; i++ {
			m.owner[i] = b
		}
	}
	isMade := func(b *modelBlock) bool { _, ok := made[b]; return ok }
	counted := map[*modelBlock]bool{}
	for i, x := range model {
		blocks[i], _ = m.find(x)
		if b := blocks[i]; b != nil && x.counts() && !counted[b] {
			counted[b] = true
			b.uses++
			if !b.infinite {
				b.count++
			}
		}
	}
	due := make([]bool, len(model))
	for i, x := range model {
		if b := blocks[i]; b != nil && !x.empty() && x.to() && (isMade(b) || x.always) {
			due[i] = true
			copy(b.device[x.start:x.end], m.arena.bytes[x.start:x.end])
		}
	}
	for i, u := range uses {
		b := blocks[i]
		if (b == nil) != (u.Present == nil) {
			t.Fatalf("item %d: use %+v", i, u)
		}
		if b == nil {
			if u != (Use{}) {
				t.Fatalf("absent item %d: use %+v", i, u)
			}
			continue
		}
		if b.present == nil {
			b.present = u.Present
			u.Present.Shared = b.shared
		}
		if u.Present != b.present || u.Offset != uint64(model[i].start-b.start) || u.Created != isMade(b) {
			t.Fatalf("item %d: use %+v", i, u)
		}
		if want := due[i] && !enclosedByDue(model, due, i); u.CopyIn != want {
			t.Fatalf("item %d of %v: copy in %t, want %t", i, items, u.CopyIn, want)
		}
		if u.CopyIn {
			copy(m.device(u.Present)[u.Offset:], m.arena.bytes[model[i].start:model[i].end])
		}
	}
	m.entered = append(m.entered, entered{model, items, slices.Clone(uses)})
}

func enclosedByDue(model []modelItem, due []bool, i int) bool {
	for j := range model {
		if j == i || !due[j] || !model[j].encloses(model[i]) {
			continue
		}
		// Of equal items the first copies; those with IfPresent come last.
		asksI, asksJ := model[i].presence == IfPresent, model[j].presence == IfPresent
		if !model[i].equals(model[j]) || (asksI == asksJ && j < i) || asksI && !asksJ {
			return true
		}
	}
	return false
}

func (m *tableMachine) device(p *Present) []byte { return m.devices[p.Storage.Block.ID] }

// begin begins the exit of one construct.
func (m *tableMachine) begin(t *rapid.T) {
	model, items := m.drawItems(t, []MapType{MapRelease, MapFrom, MapToFrom, MapTo, MapAlloc, MapRelease, MapFrom, MapDelete})
	m.beginItems(t, model, items, nil)
}

// leave begins the exit of a construct that has entered, even if other constructs
// have removed its blocks or made new ones in their places since then.
func (m *tableMachine) leave(t *rapid.T) {
	if len(m.entered) == 0 {
		t.Skip("no construct has entered")
	}
	i := rapid.IntRange(0, len(m.entered)-1).Draw(t, "construct")
	e := m.entered[i]
	m.entered = slices.Delete(m.entered, i, i+1)
	m.beginItems(t, e.model, e.items, e.uses)
}

// beginItems begins the exit of a construct with what its entry returned, or nil.
func (m *tableMachine) beginItems(t *rapid.T, model []modelItem, items []Map, uses []Use) {
	var want []error
	blocks := make([]*modelBlock, len(model))
	present := make([]bool, len(model)) // and not removed by a construct before
	var touched []*modelBlock
	for i, x := range model {
		b, partly := m.find(x)
		switch {
		case partly && x.presence == IfPresent:
		case partly:
			want = append(want, ErrPartialOverlap)
			if x.presence == MustBePresent {
				want = append(want, ErrNotPresent)
			}
		case b == nil && x.presence == MustBePresent:
			want = append(want, ErrNotPresent)
		case b != nil && b.dying && x.presence == MustBePresent:
			want = append(want, ErrExiting)
		}
		blocks[i] = b
		present[i] = b != nil && !b.dying && x.counts()
		if present[i] && !slices.Contains(touched, b) {
			touched = append(touched, b)
		}
	}
	if err := m.table.CheckExit(items); (err != nil) != (len(want) > 0) ||
		err != nil && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("check of %v: %v, want one of %v", items, err, want)
	}
	m.makeDormant(t) // the check has looked the items up
	// 1. copy item by item, 2. count down, 3. delete, 4. at zero, remove.
	due := make([]bool, len(model))
	for i, x := range model {
		if b := blocks[i]; present[i] && x.from() && !x.empty() && (x.always || x.delete || !b.infinite && b.count == 1) {
			due[i] = true
			copy(m.hostModel[x.start:x.end], b.device[x.start:x.end])
		}
	}
	for _, b := range touched {
		b.ending++
		if b.infinite {
			continue
		}
		b.count--
		for i, x := range model {
			if present[i] && blocks[i] == b && x.deletes() {
				b.count = 0
			}
		}
		b.dying = b.count == 0
	}

	exits := m.table.BeginExitOf(items, uses, nil)
	next := 0
	for i := range model {
		if !present[i] {
			continue
		}
		if next >= len(exits) || exits[next].Item != i {
			t.Fatalf("item %d has no exit in its place in %+v", i, exits)
		}
		e := exits[next]
		next++
		b := blocks[i]
		if e.Present != b.present || e.Offset != uint64(model[i].start-b.start) {
			t.Fatalf("item %d: exit %+v", i, e)
		}
		if want := due[i] && !enclosedByDue(model, due, i); e.CopyOut != want {
			t.Fatalf("item %d of %v: copy out %t, want %t", i, items, e.CopyOut, want)
		}
		last := true
		for j := i + 1; j < len(model); j++ {
			last = last && !(present[j] && blocks[j] == b)
		}
		if want := last && b.dying; e.Remove != want {
			t.Fatalf("item %d of %v: remove %t, want %t", i, items, e.Remove, want)
		}
		if e.CopyOut {
			copy(m.arena.bytes[model[i].start:model[i].end], m.device(e.Present)[e.Offset:])
		}
	}
	if next != len(exits) {
		t.Fatalf("%d exits for %d present items", len(exits), next)
	}
	m.begun = append(m.begun, begun{exits, touched})
}

// end ends the exit of one construct that has begun.
func (m *tableMachine) end(t *rapid.T) {
	if len(m.begun) == 0 {
		t.Skip("no exit has begun")
	}
	i := rapid.IntRange(0, len(m.begun)-1).Draw(t, "exit")
	exits, blocks := m.begun[i].exits, m.begun[i].blocks
	m.begun = slices.Delete(m.begun, i, i+1)
	var want []*Present
	for _, b := range blocks {
		if m.owner[b.start] != b {
			continue // removed in the meantime
		}
		if b.ending--; b.ending == 0 && b.dying {
			want = append(want, b.present)
			m.drop(b)
		}
	}
	m.checkRemoved(t, m.table.EndExit(exits, nil), want)
	if again := m.table.EndExit(exits, nil); len(again) != 0 {
		t.Fatalf("an exit that ended removes %d blocks again", len(again))
	}
}

func (m *tableMachine) drop(b *modelBlock) {
	for i := b.start; i < b.end; i++ {
		m.owner[i] = nil
	}
}

func (m *tableMachine) checkRemoved(t *rapid.T, got, want []*Present) {
	if len(got) != len(want) {
		t.Fatalf("%d blocks are removed, want %d", len(got), len(want))
	}
	for _, p := range got {
		if !slices.Contains(want, p) {
			t.Fatalf("block %s is removed", p.Section)
		}
		delete(m.devices, p.Storage.Block.ID)
		m.table.Recycle(p)
	}
}

func (m *tableMachine) associate(t *rapid.T) {
	x := drawItem(t, []MapType{MapAlloc})
	m.next++
	s := Storage{Block: HeapBlock{ID: m.next}, Size: uint64(x.end - x.start)}
	p, err := m.table.InsertInfinite(m.arena.section(x.start, x.end), s)
	b, partly := m.find(x)
	var want error
	switch {
	case x.empty():
		want = ErrInvalidSection
	case partly:
		want = ErrPartialOverlap
	case b != nil:
		want = ErrAlreadyPresent
	}
	if !errors.Is(err, want) || (p == nil) != (want != nil) {
		t.Fatalf("associating [%d,%d): %v, want %v", x.start, x.end, err, want)
	}
	if want != nil {
		return
	}
	m.devices[m.next] = make([]byte, s.Size)
	b = &modelBlock{start: x.start, end: x.end, infinite: true, present: p}
	for i := b.start; i < b.end; i++ {
		m.owner[i] = b
	}
}

func (m *tableMachine) remove(t *rapid.T) {
	blocks := m.modelBlocks()
	if len(blocks) == 0 || rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		t.Skip("nothing to remove")
	}
	b := rapid.SampledFrom(blocks).Draw(t, "block")
	if err := m.table.Remove(b.present); err != nil {
		t.Fatal(err)
	}
	m.drop(b)
	delete(m.devices, b.present.Storage.Block.ID)
	if err := m.table.Remove(b.present); !errors.Is(err, ErrNotPresent) {
		t.Fatalf("removing twice: %v", err)
	}
	// Recycle has no effect while exits of the block are under way.
	m.table.Recycle(b.present)
	m.table.Recycle(b.present)
	m.table.MakeInfinite(b.present)
}

// makeInfinite gives a block an infinite count, as declare target does.
func (m *tableMachine) makeInfinite(t *rapid.T) {
	blocks := m.modelBlocks()
	if len(blocks) == 0 || rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		t.Skip("nothing to declare")
	}
	b := rapid.SampledFrom(blocks).Draw(t, "block")
	m.table.Recycle(b.present) // no effect: the block is in the table
	m.table.MakeInfinite(b.present)
	b.infinite, b.count, b.dying = true, 0, false
}

// write changes a byte of the host or of a block's device memory, on both
// sides.
func (m *tableMachine) write(t *rapid.T) {
	i, v := rapid.IntRange(0, modelBytes-1).Draw(t, "byte"), rapid.Byte().Draw(t, "value")
	if b := m.owner[i]; b != nil && rapid.Bool().Draw(t, "on the device") {
		b.device[i] = v
		m.device(b.present)[i-b.start] = v
		return
	}
	m.arena.bytes[i], m.hostModel[i] = v, v
}
