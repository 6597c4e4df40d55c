package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func anyStorage(m *Map) (Storage, error) { return Storage{Size: m.StorageSize()}, nil }

// enterOne enters a construct of one item that must succeed.
func enterOne(t testing.TB, table *Table, m Map) Use {
	t.Helper()
	uses, err := table.Enter([]Map{m}, nil, anyStorage, func(Storage) { t.Error("storage was released") })
	if err != nil {
		t.Fatal(err)
	}
	return uses[0]
}

// The table of OpenMP's map types: what an entry does to an absent block and to
// a present one, and an exit at count 1, at count 2 and at an infinite count.
func TestMapTypesFollowTheEntryAndExitTable(t *testing.T) {
	type exit struct {
		copies bool
		left   uint32 // count afterwards; 0: removed
	}
	for _, c := range []struct {
		typ                  MapType
		always               bool
		copyAbsent, copyIn   bool
		refused              bool
		one, two, infinitely exit
	}{
		{typ: MapTo, copyAbsent: true, two: exit{left: 1}},
		{typ: MapFrom, one: exit{copies: true}, two: exit{left: 1}},
		{typ: MapToFrom, copyAbsent: true, one: exit{copies: true}, two: exit{left: 1}},
		{typ: MapAlloc, two: exit{left: 1}},
		{typ: MapRelease, refused: true, two: exit{left: 1}},
		{typ: MapDelete, refused: true},
		{typ: MapTo, always: true, copyAbsent: true, copyIn: true, two: exit{left: 1}},
		{typ: MapFrom, always: true, one: exit{copies: true}, two: exit{copies: true, left: 1}, infinitely: exit{copies: true}},
		{typ: MapToFrom, always: true, copyAbsent: true, copyIn: true, one: exit{copies: true}, two: exit{copies: true, left: 1}, infinitely: exit{copies: true}},
		{typ: MapAlloc, always: true, two: exit{left: 1}},
		{typ: MapRelease, always: true, refused: true, two: exit{left: 1}},
		{typ: MapDelete, always: true, refused: true},
	} {
		name := c.typ.String()
		if c.always {
			name = "always," + name
		}
		t.Run(name, func(t *testing.T) {
			s := newArena(8).section(0, 8)
			m := Map{Section: s, Type: c.typ, Always: c.always}
			present := func(count int) (*Table, *Present) {
				table := NewTable()
				var p *Present
				for range count {
					p = enterOne(t, table, Map{Section: s, Type: MapAlloc}).Present
				}
				if count == 0 {
					var err error
					if p, err = table.InsertInfinite(s, Storage{}); err != nil {
						t.Fatal(err)
					}
				}
				return table, p
			}

			if c.refused {
				table, _ := present(1)
				for _, table := range []*Table{NewTable(), table} {
					if _, err := table.Enter([]Map{m}, nil, anyStorage, nil); !errors.Is(err, ErrInvalidMapType) {
						t.Errorf("entry: %v", err)
					}
				}
			} else {
				if u := enterOne(t, NewTable(), m); !u.Created || u.CopyIn != c.copyAbsent {
					t.Errorf("entry, absent: %+v", u)
				}
				table, p := present(1)
				if u := enterOne(t, table, m); u.Created || u.CopyIn != c.copyIn || u.Present != p || p.count != 2 {
					t.Errorf("entry, present: %+v, count %d", u, p.count)
				}
				table, p = present(0)
				if u := enterOne(t, table, m); u.Created || u.CopyIn != c.copyIn || p.count != 0 || !p.infinite {
					t.Errorf("entry, infinite: %+v, %+v", u, *p)
				}
			}

			for count, want := range []exit{c.infinitely, c.one, c.two} {
				table, p := present(count)
				exits := table.BeginExit([]Map{m}, nil)
				if len(exits) != 1 || exits[0].CopyOut != want.copies {
					t.Fatalf("exit at count %d: %+v", count, exits)
				}
				gone := count > 0 && want.left == 0
				if exits[0].Remove != gone || p.Exiting() != gone {
					t.Errorf("exit at count %d: %+v", count, exits)
				}
				removed := table.EndExit(exits, nil)
				if gone != (len(removed) == 1 && removed[0] == p && table.Len() == 0) {
					t.Errorf("exit at count %d removes %d blocks, %d are left", count, len(removed), table.Len())
				}
				if n, infinite := p.Count(); n != want.left || infinite != (count == 0) {
					t.Errorf("exit at count %d leaves %d, infinite %t", count, n, infinite)
				}
			}
			table := NewTable()
			if exits := table.BeginExit([]Map{m}, nil); len(exits) != 0 {
				t.Errorf("exit, absent: %+v", exits)
			}
		})
	}
}

func TestErrorsNameItemsAndRanges(t *testing.T) {
	a := newArena(40)
	table := NewTable()
	s := a.section(8, 16)
	enterOne(t, table, Map{Section: s, Type: MapTo, Label: "field"})
	refuse := func(items ...Map) error {
		t.Helper()
		uses, err := table.Enter(items, nil, anyStorage, nil)
		if err == nil || len(uses) != 0 {
			t.Fatalf("entered %v", items)
		}
		return err
	}
	half, other := a.section(12, 20), a.section(30, 34)
	for _, c := range []struct {
		err  error
		is   error
		says []string
	}{
		{refuse(Map{Section: half, Label: "halo"}), ErrPartialOverlap, []string{"halo", half.String(), "present block field", s.String()}},
		{refuse(Map{Section: other, Label: "u"}, Map{Section: a.section(32, 36), Label: "v"}), ErrPartialOverlap, []string{"v", "another item", "u", other.String()}},
		{refuse(Map{Section: other, Type: MapDelete, Label: "u"}), ErrInvalidMapType, []string{"map(delete: u", other.String()}},
		{refuse(Map{Section: Section{Size: 8}, Always: true}), ErrInvalidSection, []string{"map(always,alloc: [0x0,0x8))"}},
		{refuse(Map{Section: Section{Ptr: s.Ptr, Size: math.MaxUint64}}), ErrInvalidSection, nil},
		{table.CheckExit([]Map{{Section: Section{Size: 8}, Type: MapFrom}}), ErrInvalidSection, []string{"map(from: [0x0,0x8))"}},
	} {
		if !errors.Is(c.err, c.is) {
			t.Errorf("%v is not %v", c.err, c.is)
		}
		for _, want := range c.says {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("%q is not in %q", want, c.err)
			}
		}
	}
	if table.Len() != 1 {
		t.Errorf("%d blocks after refusals", table.Len())
	}
}

// Neither the caller's slice nor the table's scratch space keeps the storage of a
// refused construct reachable.
func TestRefusedEntryLeavesNothingBehind(t *testing.T) {
	a := newArena(40)
	table := NewTable()
	present := Map{Section: a.section(0, 8), Type: MapTo}
	enterOne(t, table, present)
	uses := make([]Use, 3)
	got, err := table.Enter([]Map{present, {Section: a.section(8, 16)}, {Section: a.section(16, 24)}}, uses,
		func(*Map) (Storage, error) { return Storage{}, errFull }, nil)
	if !errors.Is(err, errFull) || len(got) != 0 {
		t.Fatalf("%d uses, %v", len(got), err)
	}
	for i, u := range uses {
		if u != (Use{}) {
			t.Errorf("use %d is left as %+v", i, u)
		}
	}
	for _, c := range table.created[:cap(table.created)] {
		if c != (creation{}) {
			t.Errorf("the table holds on to %s", c.block.Section)
		}
	}
	if table.asked != (Map{}) {
		t.Errorf("the table holds on to %s", &table.asked)
	}
}

func TestInvalidItemDoesNotKeepOthersFromLeaving(t *testing.T) {
	table := NewTable()
	s := newArena(8).section(0, 8)
	enterOne(t, table, Map{Section: s, Type: MapTo})
	exits := table.BeginExit([]Map{{Section: Section{Size: 8}, Type: MapFrom}, {Section: s, Type: MapFrom}}, nil)
	if len(exits) != 1 || exits[0].Item != 1 || len(table.EndExit(exits, nil)) != 1 {
		t.Errorf("exits are %+v", exits)
	}
}

func TestFullCountRefusesEntry(t *testing.T) {
	table := NewTable()
	s := newArena(8).section(0, 8)
	p := enterOne(t, table, Map{Section: s, Type: MapTo}).Present
	p.count = math.MaxUint32
	if _, err := table.Enter([]Map{{Section: s, Type: MapTo}}, nil, anyStorage, nil); !errors.Is(err, ErrCountOverflow) || p.count != math.MaxUint32 {
		t.Errorf("entering a full count: %v, count %d", err, p.count)
	}
}

// Many items take the same path as few: they are processed by address and answered
// in the order of the items.
func TestManyItemsInAnyOrder(t *testing.T) {
	const n = 500
	a := newArena(4 * n)
	var items []Map
	for i := range n {
		at := (i * 7919) % n * 4
		items = append(items, Map{Section: a.section(at, at+4), Type: MapToFrom, Label: fmt.Sprint(at)})
	}
	table := NewTable()
	uses, err := table.Enter(items, nil, anyStorage, nil)
	if err != nil || table.Len() != n {
		t.Fatalf("%d blocks, %v", table.Len(), err)
	}
	for i, u := range uses {
		if u.Present.Section != items[i].Section || !u.Created || !u.CopyIn {
			t.Fatalf("item %d: %+v", i, u)
		}
	}
	previous := uintptr(0)
	for p := range table.All() {
		if p.Section.Start() <= previous || p.Label != fmt.Sprint(a.offset(p.Section)) {
			t.Fatalf("block %s follows %#x", describe(p.Section, p.Label), previous)
		}
		previous = p.Section.Start()
		if a.offset(p.Section) == 4*10 {
			break
		}
	}
	exits := table.BeginExit(items, nil)
	for i, e := range exits {
		if e.Item != i || !e.CopyOut || !e.Remove {
			t.Fatalf("exit %d: %+v", i, e)
		}
	}
	if removed := table.EndExit(exits, nil); len(removed) != n || table.Len() != 0 {
		t.Errorf("%d blocks removed, %d left", len(removed), table.Len())
	}
}

func TestMapSpelling(t *testing.T) {
	s := newArena(8).section(0, 8)
	for want, m := range map[string]Map{
		"map(to: x ":                               {Type: MapTo},
		"map(always,tofrom: x ":                    {Type: MapToFrom, Always: true},
		"map(present,from: x ":                     {Type: MapFrom, Presence: MustBePresent},
		"map(always,present,self,delete,tofrom: x": {Type: MapToFrom, Always: true, Presence: MustBePresent, Share: ShareMust, Delete: true},
		"map(alloc: x ":                            {Presence: IfPresent, Share: ShareMay},
	} {
		m.Section, m.Label = s, "x"
		if got := m.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%+v is spelled %q, want %q", m, got, want)
		}
	}
	if m := (Map{Section: s}); m.StorageSize() != 8 {
		t.Errorf("the storage has %d bytes", m.StorageSize())
	}
	if m := (Map{Section: s, DeviceSize: 3}); m.StorageSize() != 3 {
		t.Errorf("the image has %d bytes", m.StorageSize())
	}
}

// A record that exits still refer to is not reused. One without references is
// reused, and is reset.
func TestRecordsAreUsedAgain(t *testing.T) {
	a := newArena(16)
	x, y := Map{Section: a.section(0, 8), Type: MapTo, Label: "x"}, Map{Section: a.section(8, 16), Type: MapTo}
	table := NewTable()
	enterOne(t, table, x)
	p := enterOne(t, table, x).Present
	p.State, p.Shared = 1, true
	table.Recycle(p)
	if q, _, _ := table.Lookup(x.Section); q != p || p.count != 2 {
		t.Fatal("a block was taken away by recycling it")
	}
	for _, begin := range []func() []Exit{
		func() []Exit { return table.BeginExit([]Map{x}, nil) },
		func() []Exit { table.MakeInfinite(p); return table.BeginExit([]Map{x}, nil) },
	} {
		exits := begin()
		if err := table.Remove(p); err != nil {
			t.Fatal(err)
		}
		table.Recycle(p)
		if q := enterOne(t, table, y).Present; q == p || p.Label != "x" {
			t.Error("a record that an exit refers to was used again")
		} else if err := table.Remove(q); err != nil {
			t.Fatal(err)
		}
		if removed := table.EndExit(exits, nil); len(removed) != 0 {
			t.Error("a block was removed twice")
		}
		p = enterOne(t, table, x).Present
	}
	p.State, p.Shared = 1, true
	if err := table.Remove(p); err != nil {
		t.Fatal(err)
	}
	if table.MakeInfinite(p); p.infinite {
		t.Error("a block that is not in the table was made infinite")
	}
	table.Recycle(p)
	table.Recycle(p)
	q, err := table.InsertInfinite(y.Section, Storage{})
	if err != nil || q != p {
		t.Fatalf("the record was not used again, %v", err)
	}
	if r := enterOne(t, table, x).Present; r == q || q.State != nil || q.Shared || q.Label != "" || q.uses != 0 || !q.infinite || q.removed {
		t.Errorf("the record is %+v", *q)
	}
	if err := table.Validate(); err != nil {
		t.Error(err)
	}
}

// Records of a refused construct serve the next one.
func TestRefusedEntryGivesRecordsBack(t *testing.T) {
	s := newArena(8).section(0, 8)
	table := NewTable()
	items := []Map{{Section: s}}
	refuse := func(*Map) (Storage, error) { return Storage{}, ErrOutOfMemory }
	for range 3 {
		if _, err := table.Enter(items, nil, refuse, nil); !errors.Is(err, ErrOutOfMemory) {
			t.Fatal(err)
		}
	}
	if len(table.spares) != 1 {
		t.Errorf("%d records are spare", len(table.spares))
	}
	if err := table.Validate(); err != nil {
		t.Error(err)
	}
}

// An item with the present modifier that is present in part matches both errors.
func TestPresentInPartIsBothErrors(t *testing.T) {
	a := newArena(16)
	table := NewTable()
	enterOne(t, table, Map{Section: a.section(0, 8), Label: "u"})
	m := Map{Section: a.section(4, 12), Presence: MustBePresent, Label: "v"}
	_, entered := table.Enter([]Map{m}, nil, nil, nil)
	for _, err := range []error{entered, table.CheckExit([]Map{m})} {
		var overlap *OverlapError
		if !errors.Is(err, ErrNotPresent) || !errors.As(err, &overlap) || overlap.WithLabel != "u" || !overlap.Present {
			t.Errorf("%v", err)
		}
	}
}

func TestMapTypeSpelling(t *testing.T) {
	for typ, want := range map[MapType]string{
		MapAlloc: "alloc", MapTo: "to", MapFrom: "from", MapToFrom: "tofrom",
		MapRelease: "release", MapDelete: "delete", 9: "MapType(9)",
	} {
		if got := typ.String(); got != want {
			t.Errorf("%d is spelled %q, want %q", typ, got, want)
		}
	}
}

func TestZeroSizeWithoutPointerIsAbsent(t *testing.T) {
	table := NewTable()
	host := make([]byte, 8)
	enterOne(t, table, Map{Section: Section{Ptr: unsafe.Pointer(&host[0]), Size: 8}})
	if u := enterOne(t, table, Map{}); u != (Use{}) {
		t.Errorf("entry: %+v", u)
	}
	if p, _, err := table.Lookup(Section{}); p != nil || err != nil {
		t.Errorf("lookup: %v, %v", p, err)
	}
}

func TestExitDoesNotTakeARecycledRecordForItsBlock(t *testing.T) {
	a := newArena(16)
	table := NewTable()
	p, err := table.InsertInfinite(a.section(0, 8), Storage{})
	if err != nil {
		t.Fatal(err)
	}
	items := []Map{{Section: a.section(4, 4), Type: MapToFrom, Presence: IfPresent}}
	uses, err := table.Enter(items, nil, nil, nil)
	if err != nil || uses[0].Present != p {
		t.Fatal(uses, err)
	}
	if err := table.Remove(p); err != nil {
		t.Fatal(err)
	}
	table.Recycle(p)
	// The record's new block ends where the item is.
	if q, err := table.InsertInfinite(a.section(0, 4), Storage{}); err != nil || q != p {
		t.Fatal(q, err)
	}
	if exits := table.BeginExitOf(items, uses, nil); len(exits) != 0 {
		t.Errorf("an item behind the block leaves it: %+v", exits)
	}
}

// A claimed block keeps the reference that it was created with, whatever exits there are, and its contents are not
// copied out as if it went.
func TestExitsLeaveAClaimedBlock(t *testing.T) {
	for _, kind := range []MapType{MapFrom, MapRelease, MapDelete} {
		for users := range 3 {
			a := newArena(8)
			var table Table
			x := Map{Section: a.section(0, 8), Type: MapTo}
			enter := func() *Present {
				uses, err := table.Enter([]Map{x}, nil, anyStorage, nil)
				if err != nil {
					t.Fatal(err)
				}
				return uses[0].Present
			}
			p := enter()
			table.Claim(p)
			for range users {
				enter()
			}
			for range users + 2 {
				exits := table.BeginExit([]Map{{Section: x.Section, Type: kind}}, nil)
				if slices.ContainsFunc(exits, func(e Exit) bool { return e.Remove || e.CopyOut }) {
					t.Errorf("%v with %d users: %+v", kind, users, exits)
				}
				if removed := table.EndExit(exits, nil); len(removed) > 0 {
					t.Errorf("%v with %d users: the block is removed", kind, users)
				}
			}
			if n, infinite := p.Count(); n != 0 || !infinite {
				t.Errorf("counts %d, infinite %t", n, infinite)
			}
			table.Disclaim(p)
			if n, infinite := p.Count(); n != 1 || infinite {
				t.Errorf("%v with %d users: then it counts %d, infinite %t", kind, users, n, infinite)
			}
			if removed := table.EndExit(table.BeginExit([]Map{{Section: x.Section, Type: MapRelease}}, nil), nil); len(removed) != 1 {
				t.Errorf("%v with %d users: the last reference leaves the block", kind, users)
			}
		}
	}
}
