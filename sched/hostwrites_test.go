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
		device  bool
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
				writer := &writers[rapid.IntRange(0, 2).Draw(t, "writer")]
				for _, section := range rapid.SliceOfN(sections, 1, 6).Draw(t, "sections") {
					if section.Size > 0 {
						w := write{section, writer, rapid.Bool().Draw(t, "device")}
						h.collect(section, w.device)
						list = append(list, w)
					}
				}
				h.add(writer)
			},
			"remove": func(t *rapid.T) {
				writer := &writers[rapid.IntRange(0, 2).Draw(t, "writer")]
				most := rapid.IntRange(1, 6).Draw(t, "writes")
				list = slices.DeleteFunc(list, func(w write) bool {
					if w.writer != writer || most == 0 || rapid.Bool().Draw(t, "stays") {
						return false
					}
					most--
					h.collect(w.section, w.device)
					return true
				})
				h.remove(writer)
			},
			"": func(t *rapid.T) {
				if len(h.byStart) != len(list) || !slices.IsSortedFunc(h.byStart, hostWrite.compare) {
					t.Fatalf("the index has %d writes, want %d, or is not sorted", len(h.byStart), len(list))
				}
				section := sections.Draw(t, "looked for")
				for _, byHost := range []bool{false, true} {
					got := h.touching(section)
					if byHost {
						got = h.byHost(section)
					}
					var writing []*parkedTasks
					for _, w := range list {
						if section.Size > 0 && w.section.Start() < section.End() && section.Start() < w.section.End() && !(byHost && w.device) {
							writing = append(writing, w.writer)
						}
					}
					switch {
					case got == nil && len(writing) > 0:
						t.Errorf("nobody writes %s, of %d, by the host: %v", section, len(writing), byHost)
					case got != nil && !slices.Contains(writing, got):
						t.Errorf("%s is written by who does not write it, by the host: %v", section, byHost)
					}
				}
			},
		})
	})
}
