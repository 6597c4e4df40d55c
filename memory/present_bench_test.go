package memory

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/internal/invariants"
)

// crowd returns a table with n blocks of 64 bytes, 128 bytes apart, and the
// sections of a few of them, spread over the table.
func crowd(tb testing.TB, n int) (*Table, []Section) {
	const size, stride = 64, 128
	host := make([]byte, n*stride)
	table := NewTable()
	var sections []Section
	var uses []Use
	for i := range n {
		s := Section{Ptr: unsafe.Pointer(&host[i*stride]), Size: size}
		var err error
		if uses, err = table.Enter([]Map{{Section: s, Type: MapToFrom}}, uses, anyStorage, nil); err != nil {
			tb.Fatal(err)
		}
		if i%max(1, n/64) == 0 {
			sections = append(sections, s)
		}
	}
	return table, sections
}

var crowds = []int{1, 100, 10_000, 100_000}

func BenchmarkEnterExitHit(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprint("present=", n), func(b *testing.B) {
			table, sections := crowd(b, n)
			items := make([]Map, 1)
			var uses []Use
			var exits []Exit
			var removed []*Present
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				items[0] = Map{Section: sections[i%len(sections)], Type: MapToFrom}
				uses, _ = table.Enter(items, uses, nil, nil)
				exits = table.BeginExit(items, exits)
				removed = table.EndExit(exits, removed)
			}
		})
	}
}

func BenchmarkEnterExitHitFourItems(b *testing.B) {
	table, sections := crowd(b, 10_000)
	items := make([]Map, 4)
	for i := range items {
		items[i] = Map{Section: sections[(i*37+5)%len(sections)], Type: MapToFrom}
	}
	var uses []Use
	var exits []Exit
	var removed []*Present
	b.ReportAllocs()
	for b.Loop() {
		uses, _ = table.Enter(items, uses, nil, nil)
		exits = table.BeginExit(items, exits)
		removed = table.EndExit(exits, removed)
	}
}

// Constructs that map slices inside of blocks and leave them after others have entered.
func BenchmarkEnterExitInside(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprint("present=", n), func(b *testing.B) {
			table, sections := crowd(b, n)
			var items [256][4]Map
			var uses [len(items)][]Use
			var exits []Exit
			var removed []*Present
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k := i % len(items)
				if i >= len(items) {
					exits = table.BeginExitOf(items[k][:], uses[k], exits)
					removed = table.EndExit(exits, removed)
				}
				for j := range items[k] {
					s := sections[(i*17+j*5)%len(sections)]
					items[k][j] = Map{Section: Section{Ptr: unsafe.Add(s.Ptr, 8), Size: 8}, Type: MapToFrom}
				}
				uses[k], _ = table.Enter(items[k][:], uses[k], nil, nil)
			}
		})
	}
}

func BenchmarkEnterExitMiss(b *testing.B) {
	host := make([]byte, 4096)
	items := []Map{{Section: Section{Ptr: unsafe.Pointer(&host[0]), Size: 4096}, Type: MapToFrom}}
	table, _ := crowd(b, 10_000)
	var uses []Use
	var exits []Exit
	var removed []*Present
	b.ReportAllocs()
	for b.Loop() {
		uses, _ = table.Enter(items, uses, anyStorage, nil)
		exits = table.BeginExit(items, exits)
		removed = table.EndExit(exits, removed)
	}
}

// An association made and taken away again among others, in one place and all
// over the table.
func BenchmarkInsertRemoveInfinite(b *testing.B) {
	for _, c := range []struct{ others, places int }{{0, 1}, {10_000, 1}, {10_000, 64}} {
		b.Run(fmt.Sprintf("others=%d/places=%d", c.others, c.places), func(b *testing.B) {
			host := make([]byte, 128*(c.others+1))
			table := NewTable()
			var sections []Section
			for i := range c.others + 1 {
				s := Section{Ptr: unsafe.Pointer(&host[i*128]), Size: 64}
				if i > 0 {
					enterOne(b, table, Map{Section: s})
				}
				if len(sections) < c.places && i >= len(sections)*c.others/c.places {
					sections = append(sections, Section{Ptr: unsafe.Add(s.Ptr, 64), Size: 64})
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p, err := table.InsertInfinite(sections[i&(c.places-1)], Storage{})
				if err != nil {
					b.Fatal(err)
				}
				if err := table.Remove(p); err != nil {
					b.Fatal(err)
				}
				table.Recycle(p)
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range crowds {
		b.Run(fmt.Sprint("present=", n), func(b *testing.B) {
			table, sections := crowd(b, n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if p, _, _ := table.Lookup(sections[i%len(sections)]); p == nil {
					b.Fatal("absent")
				}
			}
		})
	}
}

func TestHitsAllocateNothing(t *testing.T) {
	table, sections := crowd(t, 1000)
	items := []Map{
		{Section: sections[7], Type: MapToFrom},
		{Section: sections[3], Type: MapTo, Always: true},
		{Section: Section{Ptr: sections[7].Ptr, Size: 8}, Type: MapFrom},
	}
	var uses []Use
	var exits []Exit
	var removed []*Present
	if n := testing.AllocsPerRun(100, func() {
		var err error
		if uses, err = table.Enter(items, uses, nil, nil); err != nil {
			t.Fatal(err)
		}
		exits = table.BeginExit(items, exits)
		removed = table.EndExit(exits, removed)
		if p, _, _ := table.Lookup(items[0].Section); p == nil || table.Exiting(items[0].Section) != nil {
			t.Fatal("absent")
		}
	}); n != 0 && !invariants.Enabled {
		t.Errorf("entering and leaving present blocks allocates %v objects", n)
	}
}

func TestAssociationsAllocateNothing(t *testing.T) {
	table, sections := crowd(t, 1000)
	gap := Section{Ptr: unsafe.Add(sections[30].Ptr, 64), Size: 64}
	item := []Map{{Section: gap, Type: MapToFrom}}
	var uses []Use
	var exits []Exit
	var removed []*Present
	if n := testing.AllocsPerRun(100, func() {
		p, err := table.InsertInfinite(gap, Storage{})
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Remove(p); err != nil {
			t.Fatal(err)
		}
		table.Recycle(p)
		if uses, err = table.Enter(item, uses, anyStorage, nil); err != nil {
			t.Fatal(err)
		}
		exits = table.BeginExit(item, exits)
		removed = table.EndExit(exits, removed)
		table.Recycle(removed[0])
	}); n != 0 && !invariants.Enabled {
		t.Errorf("inserting and removing blocks allocates %v objects", n)
	}
}
