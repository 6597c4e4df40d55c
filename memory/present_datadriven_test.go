package memory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The files under testdata/present draw one byte of host storage a column.
//
//	enter [fail=n]       one construct; the n-th allocation fails
//	x tofrom         ..####....        an item: label, [modifiers,]type, section
//	p alloc          ...@......        of size zero, pointing at the @
//	exit                 begins and ends the exit of one construct
//	begin name=e         begins it, end name=e ends it
//	associate            x  ..####.. a block with infinite count
//	remove, lookup, exiting, check     one section each
//	declare                            makes its block infinite
//
// Each answers what is due item by item, then draws the table: a letter a
// block, then the blocks' counts.
func TestPresenceTableCases(t *testing.T) {
	datadriven.Walk(t, "testdata/present", func(t *testing.T, path string) {
		d := &drawing{arena: newArena(80), table: NewTable(), begun: map[string][]Exit{}, shared: map[uint64]bool{}}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out := d.run(t, td)
			if err := d.table.Validate(); err != nil {
				t.Error(td.Pos, err)
			}
			return out + d.draw()
		})
	})
}

type drawing struct {
	arena    arena
	table    *Table
	begun    map[string][]Exit
	storages int
	shared   map[uint64]bool // by storage: with the host
}

func (d *drawing) run(t *testing.T, td *datadriven.TestData) string {
	items := d.items(t, td)
	var b strings.Builder
	switch td.Cmd {
	case "enter":
		fail := 0
		td.MaybeScanArgs(t, "fail", &fail)
		calls := 0
		uses, err := d.table.Enter(items, nil, func(m *Map) (Storage, error) {
			if calls++; calls == fail {
				return Storage{}, errFull
			}
			d.storages++
			fmt.Fprintf(&b, "allocate #%d, %d bytes%s\n", d.storages, m.StorageSize(), [...]string{"", ", may share", ", must share"}[m.Share])
			d.shared[uint64(d.storages)] = m.Share != ShareNever
			return Storage{Block: HeapBlock{ID: uint64(d.storages)}, Size: m.StorageSize()}, nil
		}, func(s Storage) { fmt.Fprintf(&b, "release #%d\n", s.Block.ID) })
		if err != nil {
			return b.String() + d.describe(err)
		}
		for i, u := range uses {
			if u.Created {
				u.Present.Shared = d.shared[u.Present.Storage.Block.ID]
			}
			fmt.Fprintf(&b, "%s: %s\n", items[i].Label, describeUse(u))
		}
	case "exit":
		exits := d.begin(&b, items)
		d.end(&b, exits)
	case "begin":
		var name string
		td.ScanArgs(t, "name", &name)
		d.begun[name] = d.begin(&b, items)
	case "end":
		var name string
		td.ScanArgs(t, "name", &name)
		d.end(&b, d.begun[name])
	case "associate":
		d.storages++
		if _, err := d.table.InsertInfinite(items[0].Section, Storage{Block: HeapBlock{ID: uint64(d.storages)}}); err != nil {
			return d.describe(err)
		}
	case "remove":
		p, _, err := d.table.Lookup(items[0].Section)
		if err == nil && p == nil {
			p = &Present{Section: items[0].Section}
		}
		if err == nil {
			err = d.table.Remove(p)
		}
		if err != nil {
			return d.describe(err)
		}
	case "declare":
		p, _, err := d.table.Lookup(items[0].Section)
		if err != nil {
			return d.describe(err)
		}
		d.table.MakeInfinite(p)
	case "lookup":
		p, offset, err := d.table.Lookup(items[0].Section)
		switch {
		case err != nil:
			return d.describe(err)
		case p == nil:
			return "absent\n"
		}
		return fmt.Sprintf("#%d+%d\n", p.Storage.Block.ID, offset)
	case "exiting":
		p := d.table.Exiting(items[0].Section)
		if p == nil {
			return "none\n"
		}
		return fmt.Sprintf("#%d\n", p.Storage.Block.ID)
	case "check":
		if err := d.table.CheckExit(items); err != nil {
			return d.describe(err)
		}
		return "ok\n"
	default:
		td.Fatalf(t, "unknown command %s", td.Cmd)
	}
	return b.String()
}

func describeUse(u Use) string {
	if u.Present == nil {
		return "absent"
	}
	out := fmt.Sprintf("#%d+%d", u.Present.Storage.Block.ID, u.Offset)
	if u.Created {
		out += " created"
	}
	if u.CopyIn {
		out += " copy-in"
	}
	return out
}

func (d *drawing) begin(b *strings.Builder, items []Map) []Exit {
	exits := d.table.BeginExit(items, nil)
	for _, e := range exits {
		fmt.Fprintf(b, "%s: #%d+%d", items[e.Item].Label, e.Present.Storage.Block.ID, e.Offset)
		if e.CopyOut {
			b.WriteString(" copy-out")
		}
		if e.Remove {
			b.WriteString(" remove")
		}
		b.WriteByte('\n')
	}
	return exits
}

func (d *drawing) end(b *strings.Builder, exits []Exit) {
	for _, p := range d.table.EndExit(exits, nil) {
		fmt.Fprintf(b, "free #%d\n", p.Storage.Block.ID)
	}
}

// describe writes err with columns instead of addresses.
func (d *drawing) describe(err error) string {
	var overlap *OverlapError
	if !errors.As(err, &overlap) || errors.Is(err, ErrNotPresent) {
		for _, sentinel := range []error{ErrExiting, ErrInvalidMapType, ErrInvalidSection, ErrAlreadyPresent, ErrNotPresent, ErrNotShared, ErrOutOfMemory} {
			if errors.Is(err, sentinel) {
				return "error: " + sentinel.Error() + "\n"
			}
		}
		return "error: " + err.Error() + "\n"
	}
	with := "item"
	if overlap.Present {
		with = "block"
	}
	return fmt.Sprintf("error: %s %s overlaps %s %s %s in part\n",
		cmp.Or(overlap.Label, "section"), d.columns(overlap.Section), with, cmp.Or(overlap.WithLabel, "-"), d.columns(overlap.With))
}

func (d *drawing) columns(s Section) string {
	start := d.arena.offset(s)
	return fmt.Sprintf("[%d,%d)", start, start+int(s.Size))
}

func (d *drawing) items(t *testing.T, td *datadriven.TestData) []Map {
	var items []Map
	for line := range strings.Lines(td.Input) {
		fields := strings.Fields(line)
		picture := fields[len(fields)-1]
		m := Map{}
		if at := strings.IndexByte(picture, '@'); at >= 0 {
			m.Section = d.arena.section(at, at)
		} else {
			m.Section = d.arena.section(strings.IndexByte(picture, '#'), strings.LastIndexByte(picture, '#')+1)
		}
		if len(fields) > 1 {
			m.Label = fields[0]
		}
		if len(fields) > 2 {
			name := fields[1]
			for again := true; again; {
				again = false
				for modifier, set := range modifiers {
					if rest, ok := strings.CutPrefix(name, modifier+","); ok {
						name, again = rest, true
						set(&m)
					}
				}
			}
			i := slices.Index(mapTypeNames[:], name)
			if i < 0 {
				td.Fatalf(t, "unknown map type %s", name)
			}
			m.Type = MapType(i)
		}
		items = append(items, m)
	}
	return items
}

// modifiers may precede the type of an item.
var modifiers = map[string]func(*Map){
	"always":    func(m *Map) { m.Always = true },
	"delete":    func(m *Map) { m.Delete = true },
	"present":   func(m *Map) { m.Presence = MustBePresent },
	"ifpresent": func(m *Map) { m.Presence = IfPresent },
	"may":       func(m *Map) { m.Share = ShareMay },
	"self":      func(m *Map) { m.Share = ShareMust },
	"image":     func(m *Map) { m.DeviceSize = 3 * m.Size },
}

func (d *drawing) draw() string {
	if d.table.Len() == 0 {
		return "empty\n"
	}
	var picture, list strings.Builder
	letter := byte('a')
	for p := range d.table.All() {
		start := d.arena.offset(p.Section)
		picture.WriteString(strings.Repeat(".", start-picture.Len()))
		picture.WriteString(strings.Repeat(string(letter), int(p.Section.Size)))
		count, infinite := p.Count()
		fmt.Fprintf(&list, "%c: #%d count %d", letter, p.Storage.Block.ID, count)
		if infinite {
			list.WriteString(" infinite")
		}
		if p.Shared {
			list.WriteString(" shared")
		}
		if p.Exiting() {
			list.WriteString(" exiting")
		}
		list.WriteByte('\n')
		letter++
	}
	return picture.String() + "\n" + list.String()
}
