package sched

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/memory"
)

// The index of the sections that are being written by the host answers as a list of them does
// that is searched from end to end.
func TestHostWritesFindWhoWritesASection(t *testing.T) {
	type write struct {
		section memory.Section
		writer  *parkedTasks
	}
	storage := make([]byte, 64)
	sections := rapid.Custom(func(t *rapid.T) memory.Section {
		from := rapid.IntRange(0, len(storage)-1).Draw(t, "from")
		size := rapid.IntRange(0, min(len(storage)-from, 12)).Draw(t, "size")
		return memory.Section{Ptr: unsafe.Pointer(&storage[from]), Size: uint64(size)}
	})
	rapid.Check(t, func(t *rapid.T) {
		var h hostWrites
		var list []write
		writers := make([]parkedTasks, 3)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				w := write{sections.Draw(t, "section"), &writers[rapid.IntRange(0, 2).Draw(t, "writer")]}
				if w.section.Size == 0 {
					t.Skip("nothing to write")
				}
				h.add(w.writer, w.section)
				list = append(list, w)
			},
			"remove": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip("nothing to remove")
				}
				i := rapid.IntRange(0, len(list)-1).Draw(t, "write")
				h.remove(list[i].writer, list[i].section)
				list = slices.Delete(list, i, i+1)
			},
			"": func(t *rapid.T) {
				section := sections.Draw(t, "looked for")
				var writing []*parkedTasks
				for _, w := range list {
					if section.Size > 0 && w.section.Start() < section.End() && section.Start() < w.section.End() {
						writing = append(writing, w.writer)
					}
				}
				switch got := h.touching(section); {
				case got == nil && len(writing) > 0:
					t.Errorf("nobody writes %s, of %d", section, len(writing))
				case got != nil && !slices.Contains(writing, got):
					t.Errorf("%s is written by who does not write it", section)
				}
			},
		})
	})
}
