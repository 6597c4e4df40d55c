//go:build invariants

package memory

import (
	"testing"

	"github.com/vkomp/vkomp/timeline"
)

// With the invariants tag, every change validates the state left by the one before.
func TestDamageShowsAtTheNextChange(t *testing.T) {
	section := newArena(8).section(0, 8)
	other := newArena(8).section(0, 8)
	items := []Map{{Section: section}}
	for name, change := range map[string]func(*Table, *Present){
		"enter": func(table *Table, _ *Present) { table.Enter(items, nil, anyStorage, nil) },
		"refused entry": func(table *Table, _ *Present) {
			table.Enter([]Map{{Section: section, Type: MapDelete}}, nil, anyStorage, nil)
		},
		"begin exit": func(table *Table, _ *Present) { table.BeginExit(items, nil) },
		"end exit":   func(table *Table, _ *Present) { table.EndExit(nil, nil) },
		"associate":  func(table *Table, _ *Present) { table.InsertInfinite(other, Storage{}) },
		"remove":     func(table *Table, p *Present) { table.Remove(p) },
		"declare":    func(table *Table, p *Present) { table.MakeInfinite(p) },
	} {
		t.Run(name, func(t *testing.T) {
			table := NewTable()
			p := enterOne(t, table, items[0]).Present
			enterOne(t, table, items[0])
			table.exiting++
			mustPanic(t, func() { change(table, p) })
		})
	}
	for name, change := range map[string]func(*Allocator, Storage){
		"allocate": func(a *Allocator, _ Storage) { a.Allocate(100) },
		"free":     func(a *Allocator, s Storage) { a.Free(&s, timeline.Frontier{}) },
		"trim":     func(a *Allocator, _ Storage) { a.Trim() },
	} {
		t.Run(name, func(t *testing.T) {
			a, err := NewAllocator(&fakeHeap{}, AllocatorOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s := allocate(t, a, 100)
			a.blockBytes++
			mustPanic(t, func() { change(a, s) })
		})
	}
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("damage was not seen")
		}
	}()
	f()
}
