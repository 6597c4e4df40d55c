package races

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// host is host storage of 64 bytes.
type host [64]byte

func (h *host) section(start, end int) memory.Section {
	return memory.Section{Ptr: unsafe.Pointer(&h[start]), Size: uint64(end - start)}
}

func (h *host) item(t memory.MapType, start, end int) memory.Map {
	return memory.Map{Section: h.section(start, end), Type: t, Label: t.String()}
}

// deviceMemory is the address of the first allocation.
const deviceMemory = 1 << 40

// accessesOf describes what a construct of device 0 with this data accesses, one access a line.
func accessesOf(d *Detector, h *host, data observe.Data, depend ...tasks.Depend) string {
	a := accesses{depend: depend}
	d.add(&a, &observe.Construct{Data: &data}, false)
	spaces := map[uint64]string{uint64(hostSpace): "host", uint64(mappedSpace(0)): "device", uint64(unheldSpace(0)): "unheld"}
	var lines []string
	for _, x := range a.list {
		where, at := spaces[uint64(x.Space)], x.Start
		name := at + x.Offset - uint64(uintptr(unsafe.Pointer(h)))
		does, local, named := "reads", "", ""
		if where == "" {
			where = fmt.Sprintf("allocation %d", uint64(x.Space)>>deviceBits)
			at -= deviceMemory
			if !x.Unnamed {
				named = fmt.Sprintf(" as [%d,%d)", name, name+x.Size)
			}
		} else {
			at = name
		}
		if x.Write {
			does = "writes"
		}
		if x.Local {
			local = ", for its siblings"
		}
		lines = append(lines, fmt.Sprintf("%s %s [%d,%d)%s%s", does, where, at, at+x.Size, named, local))
	}
	return strings.Join(lines, "; ")
}

// What a construct accesses depends on what is present: the first to map storage copies it to
// the device, and the last copies it back.
func TestWhatConstructsDoFollowsWhatIsPresent(t *testing.T) {
	h := new(host)
	enter := func(items ...memory.Map) observe.Data { return observe.Data{Enter: items} }
	exit := func(items ...memory.Map) observe.Data { return observe.Data{Exit: items} }
	always := func(m memory.Map) memory.Map { m.Always = true; return m }
	self := func(m memory.Map) memory.Map { m.Share = memory.ShareMust; return m }
	present := func(m memory.Map) memory.Map { m.Presence = memory.MustBePresent; return m }
	kernel := func(m memory.Map, reads, writes bool) observe.Data {
		return observe.Data{Arguments: []observe.Argument{{Kind: observe.Mapped, Map: m, Reads: reads, Writes: writes}}}
	}
	type step struct {
		data observe.Data
		want string
	}
	for name, steps := range map[string][]step{
		"the first holder copies, the last copies back": {
			{enter(h.item(memory.MapTo, 0, 32)), "reads host [0,32); reads device [0,32)"},
			{enter(h.item(memory.MapTo, 8, 16)), ""},
			{exit(h.item(memory.MapFrom, 8, 16)), ""},
			{exit(h.item(memory.MapFrom, 0, 32)), "writes host [0,32); writes device [0,32), for its siblings"},
			{exit(h.item(memory.MapFrom, 0, 32)), ""},
		},
		"always copies whoever holds it": {
			{enter(h.item(memory.MapAlloc, 0, 32)), "writes device [0,32)"},
			{enter(always(h.item(memory.MapTo, 0, 16))), "reads host [0,16); writes device [0,16)"},
			{exit(always(h.item(memory.MapFrom, 0, 16))), "writes host [0,16); reads device [0,16)"},
			{exit(h.item(memory.MapDelete, 0, 8)), "writes device [0,8), for its siblings"},
		},
		"items in one block count once": {
			{enter(h.item(memory.MapTo, 0, 32), h.item(memory.MapAlloc, 4, 8)), "reads host [0,32); reads device [0,32)"},
			{exit(h.item(memory.MapRelease, 0, 32), h.item(memory.MapRelease, 4, 8)), "writes device [0,32), for its siblings; writes device [4,8), for its siblings"},
			{exit(h.item(memory.MapRelease, 0, 32)), ""},
		},
		"a construct that fails when it runs holds nothing": {
			{enter(h.item(memory.MapTo, 0, 32)), "reads host [0,32); reads device [0,32)"},
			{enter(h.item(memory.MapTo, 40, 48), h.item(memory.MapTo, 16, 40)), ""},
			{enter(present(h.item(memory.MapTo, 40, 48))), ""},
			{exit(h.item(memory.MapFrom, 40, 48)), ""},
		},
		"the host's own storage is not copied": {
			{enter(self(h.item(memory.MapTo, 0, 32))), ""},
			{kernel(h.item(memory.MapToFrom, 0, 8), true, true), "writes host [0,8); writes device [0,8)"},
			{exit(h.item(memory.MapFrom, 0, 32)), ""},
			{kernel(h.item(memory.MapFrom, 0, 8), true, true), "writes host [0,8); writes device [0,8)"},
		},
		"a target region copies what nobody holds": {
			{kernel(h.item(memory.MapTo, 0, 8), true, false), "reads host [0,8); reads device [0,8)"},
			{enter(h.item(memory.MapTo, 0, 32)), "reads host [0,32); reads device [0,32)"},
			{kernel(h.item(memory.MapTo, 0, 8), true, false), "reads device [0,8)"},
			{kernel(h.item(memory.MapTo, 0, 8), true, true), "writes device [0,8); writes unheld [0,8)"},
		},
	} {
		d := New(nil, func(Report) {})
		for i, s := range steps {
			if got := accessesOf(d, h, s.data); got != s.want {
				t.Errorf("%s: step %d: it %s, want %s", name, i, got, s.want)
			}
		}
	}
}

// A data region ends without a taskgroup. Its copy to the host and its removal of the storage
// race with tasks that rely on the region, and not with those that have mapped the storage
// themselves.
func TestTheEndOfARegionWithoutATaskgroup(t *testing.T) {
	h, d := new(host), New(nil, func(Report) {})
	accessesOf(d, h, observe.Data{Enter: []memory.Map{h.item(memory.MapTo, 0, 8)}})
	got := accessesOf(d, h, observe.Data{Exit: []memory.Map{h.item(memory.MapTo, 0, 8)}, Ends: true, NoGroup: true})
	if want := "writes unheld [0,8), for its siblings"; got != want {
		t.Errorf("it %s, want %s", got, want)
	}
}

func TestDeclaredAndAssociatedStorageStays(t *testing.T) {
	h, d := new(host), New(nil, func(Report) {})
	updates := observe.Data{Updates: []transfer.Request{{Kind: transfer.UpdateTo, Host: h.section(0, 8)}}}
	held := func(start, end int) bool {
		held, _ := d.storageOf(0).holds(h.section(start, end))
		return held
	}
	accessesOf(d, h, observe.Data{Enter: []memory.Map{h.item(memory.MapTo, 0, 8), h.item(memory.MapTo, 16, 24)}})
	// Declaring storage has succeeded, so nothing that overlaps it is mapped: the constructs that
	// would have mapped these sections must have failed.
	d.Declared([]int{0}, []memory.Map{h.item(memory.MapTo, 4, 20)})
	if held(0, 8) || held(16, 24) || !held(4, 20) {
		t.Errorf("held: before %v, behind %v, declared %v", held(0, 8), held(16, 24), held(4, 20))
	}
	d.Declared([]int{0}, []memory.Map{h.item(memory.MapTo, 8, 12)})
	if held(4, 8) || !held(8, 12) {
		t.Error("what is declared inside of other storage takes its place")
	}
	accessesOf(d, h, observe.Data{Exit: []memory.Map{h.item(memory.MapDelete, 8, 12)}})
	if !held(8, 12) {
		t.Error("declared storage has gone with an exit")
	}
	var p sched.Pointer
	p.Address = deviceMemory
	d.Allocated(0, p, 64)
	associate := observe.Storage{Op: ompt.DataOp{Type: ompt.TargetDataAssociate}, Pointer: p.Add(16), Host: h.section(32, 48)}
	if err := d.Storage(&associate, func() error { return nil }); err != nil || !held(32, 48) {
		t.Errorf("associated: %v, held %v", err, held(32, 48))
	}
	through := observe.Data{Copy: &observe.Copy{Rows: memory.Rows{RowBytes: 8}, Dst: observe.Side{Pointer: p.Add(24)}, Fill: true}}
	if got, want := accessesOf(d, h, through), "writes allocation 1 [24,32) as [40,48)"; got != want {
		t.Errorf("a pointer into an association %s, want %s", got, want)
	}
	associate.Op.Type, associate.Host = ompt.TargetDataDisassociate, h.section(32, 33)
	if err := d.Storage(&associate, func() error { return nil }); err != nil || held(32, 48) {
		t.Errorf("disassociated: %v, held %v", err, held(32, 48))
	}
	if got, want := accessesOf(d, h, through), "writes allocation 1 [24,32)"; got != want {
		t.Errorf("a pointer into an allocation %s, want %s", got, want)
	}
	d.Discarded(0)
	if got, want := accessesOf(d, h, updates), "reads host [0,8); writes device [0,8); writes unheld [0,8)"; got != want || held(8, 12) {
		t.Errorf("an update %s, want %s", got, want)
	}
}

// What pointers reach in the host's own storage is what tasks on the host use.
func TestTheHostsOwnStorageIsReachedByPointers(t *testing.T) {
	h, d := new(host), New(nil, func(Report) {})
	p := sched.Pointer{Address: deviceMemory}
	all := h.item(memory.MapTo, 0, 32)
	toEnd := observe.Data{Arguments: []observe.Argument{{Kind: observe.ByPointer, Pointer: p.Add(16), ToEnd: true, Writes: true}}}
	part := observe.Data{Arguments: []observe.Argument{{Kind: observe.ByPointer, Pointer: p, Size: 8, Reads: true}}}
	implicit := observe.Data{Arguments: []observe.Argument{{Kind: observe.Implicit, Map: memory.Map{Section: h.section(8, 8)}, Reads: true}}}
	fill := observe.Data{Copy: &observe.Copy{Rows: memory.Rows{RowBytes: 4}, Dst: observe.Side{Pointer: p}, Fill: true}}
	for _, own := range []bool{true, false} {
		all.Share = memory.ShareNever
		if own {
			all.Share = memory.ShareMust
		}
		accessesOf(d, h, observe.Data{Enter: []memory.Map{all}})
		d.Pointed(0, p, h.section(8, 8).Ptr)
		for _, c := range []struct {
			data                observe.Data
			onHost, whereMapped string
		}{
			{part, "reads host [8,16); ", "reads device [8,16); reads unheld [8,16)"},
			{toEnd, "writes host [24,32); ", "writes device [24,32); writes unheld [24,32)"},
			{implicit, "reads host [8,32); ", "reads device [8,32); reads unheld [8,32)"},
			{fill, "writes host [8,12); ", "writes device [8,12); writes unheld [8,12)"},
		} {
			want := c.whereMapped
			if own {
				want = c.onHost + want
			}
			if got := accessesOf(d, h, c.data); got != want {
				t.Errorf("the host's own storage %t: it %s, want %s", own, got, want)
			}
		}
		accessesOf(d, h, observe.Data{Exit: []memory.Map{h.item(memory.MapDelete, 0, 32)}})
	}
	if got := accessesOf(d, h, implicit); got != "" {
		t.Errorf("storage that is gone: it %s", got)
	}
}

// Associated storage is memory of its allocation, by whatever it is accessed.
func TestAssociatedStorageIsMemoryOfItsAllocation(t *testing.T) {
	h, d := new(host), New(nil, func(Report) {})
	p := sched.Pointer{Address: deviceMemory}
	d.Allocated(0, p, 64)
	associate := func(start, end int, at int64) {
		d.associated(0, p.Add(at), h.section(start, end))
	}
	kernel := func(start, end int) observe.Data {
		return observe.Data{Arguments: []observe.Argument{{Kind: observe.Mapped, Map: h.item(memory.MapToFrom, start, end), Reads: true, Writes: true}}}
	}
	toEnd := func(at int64) observe.Data {
		return observe.Data{Arguments: []observe.Argument{{Kind: observe.ByPointer, Pointer: p.Add(at), ToEnd: true, Reads: true}}}
	}
	update := observe.Data{Updates: []transfer.Request{{Kind: transfer.UpdateFrom, Host: h.section(36, 40)}}}
	fill := func(start, end int64) observe.Data {
		return observe.Data{Copy: &observe.Copy{Rows: memory.Rows{RowBytes: uint64(end - start)}, Dst: observe.Side{Pointer: p.Add(start)}, Fill: true}}
	}
	part := func(kind tasks.DependKind, start, end int) tasks.Depend {
		s := h.section(start, end)
		return tasks.Depend{Kind: kind, Ptr: s.Ptr, Size: s.Size}
	}
	check := func(data observe.Data, want string, depend ...tasks.Depend) {
		t.Helper()
		if diff := cmp.Diff(want, accessesOf(d, h, data, depend...)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	associate(32, 48, 16)
	associate(32, 48, 16)
	check(kernel(32, 48), "writes allocation 1 [16,32) as [32,48)")
	check(kernel(32, 48), "writes allocation 1 [16,20) as [32,36)", part(tasks.DependOut, 28, 36))
	check(update, "writes host [36,40); reads allocation 1 [20,24) as [36,40)")
	check(toEnd(0), "reads allocation 1 [0,16); reads allocation 1 [16,32) as [32,48); reads allocation 1 [32,64)")
	check(toEnd(24), "reads allocation 1 [24,32) as [40,48); reads allocation 1 [32,64)")
	check(fill(0, 16), "writes allocation 1 [0,16)")
	check(fill(8, 20), "writes allocation 1 [8,16); writes allocation 1 [16,20) as [32,36)")
	check(fill(28, 40), "writes allocation 1 [28,32) as [44,48); writes allocation 1 [32,40)")
	check(fill(0, 64), "writes allocation 1 [0,16); writes allocation 1 [16,20) as [32,36); writes allocation 1 [32,64)", part(tasks.DependOut, 28, 36))
	// Another slice is associated with some of the same memory.
	associate(0, 16, 24)
	check(kernel(32, 48), "writes allocation 1 [16,32) as [32,48)")
	check(kernel(0, 16), "writes allocation 1 [24,40) as [0,16)")
	check(fill(0, 64), "writes allocation 1 [0,16); writes allocation 1 [16,24) as [32,40); writes allocation 1 [24,32) as [0,8); writes allocation 1 [32,40) as [8,16); writes allocation 1 [40,64)")
	d.disassociated(0, h.section(32, 33))
	check(fill(0, 64), "writes allocation 1 [0,24); writes allocation 1 [24,40) as [0,16); writes allocation 1 [40,64)")
	check(kernel(32, 48), "writes host [32,48); writes device [32,48)")
}

func TestDependItemsNameParts(t *testing.T) {
	h, d := new(host), New(nil, func(Report) {})
	item := func(kind tasks.DependKind, start, end int) tasks.Depend {
		s := h.section(start, end)
		return tasks.Depend{Kind: kind, Ptr: s.Ptr, Size: s.Size}
	}
	data := observe.Data{Arguments: []observe.Argument{{Map: h.item(memory.MapToFrom, 0, 32), Reads: true, Writes: true}}}
	for _, c := range []struct {
		depend []tasks.Depend
		want   string
	}{
		{nil, "writes host [0,32)"},
		{[]tasks.Depend{item(tasks.DependOut, 0, 8), item(tasks.DependIn, 16, 40)}, "writes host [0,8); reads host [16,32)"},
		{[]tasks.Depend{item(tasks.DependOut, 0, 8), item(tasks.DependIn, 0, 32)}, "writes host [0,8); reads host [0,32)"},
		{[]tasks.Depend{item(tasks.DependIn, 0, 40), item(tasks.DependInOut, 24, 40), item(tasks.DependIn, 8, 16)}, "reads host [0,32); writes host [24,32); reads host [8,16)"},
		{[]tasks.Depend{item(tasks.DependOut, 0, 32), item(tasks.DependIn, 0, 32), item(tasks.DependOut, 0, 8)}, "writes host [0,32)"},
		{[]tasks.Depend{item(tasks.DependIn, 0, 32)}, "writes host [0,32)"},
		{[]tasks.Depend{item(tasks.DependIn, 0, 8)}, "writes host [0,32)"},
		{[]tasks.Depend{item(tasks.DependOut, 40, 48)}, "writes host [0,32)"},
	} {
		if diff := cmp.Diff(c.want, accessesOf(d, h, data, c.depend...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.depend, diff)
		}
	}
}
