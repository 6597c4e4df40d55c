package transfer

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/internal/softdevice"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// The path of a transfer is decided from a few facts: the table has a row for each that
// matters.
func TestPathOfATransfer(t *testing.T) {
	const chunk, room = 1 << 20, 16 << 20
	var (
		hidden  = memoryFacts{whole: true}
		busy    = memoryFacts{readable: true, writable: true, whole: true}
		idle    = memoryFacts{readable: true, writable: true, idle: true, whole: true}
		partial = memoryFacts{readable: true, writable: true, idle: true}
		filling = memoryFacts{readable: true, writable: true, idle: true, whole: true, filling: true}
		fresh   = memoryFacts{readable: true, writable: true, idle: true, fresh: true}
		shared  = memoryFacts{readable: true, writable: true, shared: true, whole: true}
		unseen  = memoryFacts{fresh: true}
		window  = memoryFacts{writable: true, idle: true, fresh: true, whole: true}
		beyond  = memoryFacts{idle: true, fresh: true, whole: true}
	)
	for _, c := range []struct {
		name string
		facts
		want *path
	}{
		{"map, fresh and idle", facts{kind: CopyIn, dst: fresh}, &directIn},
		{"map, fresh and idle, large", facts{kind: CopyIn, dst: fresh, bytes: 1 << 30, contiguous: true}, &directIn},
		{"map, the host's own storage", facts{kind: CopyIn, dst: shared}, &directIn},
		{"map, present and idle", facts{kind: CopyIn, dst: idle}, &stagingIn},
		{"map, fresh on memory still in use", facts{kind: CopyIn, dst: memoryFacts{readable: true, writable: true, fresh: true}}, &stagingIn},
		{"map, fresh and out of sight", facts{kind: CopyIn, dst: unseen}, &stagingIn},
		{"map, deferred, out of sight, as large as the room", facts{kind: CopyIn, dst: unseen, bytes: room, contiguous: true}, &stagingIn},
		{"map, deferred, out of sight, larger than the room", facts{kind: CopyIn, dst: unseen, bytes: room + 1, contiguous: true}, &ringIn},
		{"map, awaited, out of sight, a chunk", facts{kind: CopyIn, dst: unseen, bytes: chunk, contiguous: true, awaited: true}, &stagingIn},
		{"map, awaited, out of sight, more than a chunk", facts{kind: CopyIn, dst: unseen, bytes: chunk + 1, contiguous: true, awaited: true}, &ringIn},
		{"map, fresh, few bytes through a window", facts{kind: CopyIn, dst: window}, &directIn},
		{"map, fresh, many bytes through a window", facts{kind: CopyIn, dst: beyond}, &stagingIn},
		{"map, a large image", facts{kind: CopyIn, dst: unseen, bytes: 1 << 30}, &stagingIn},

		{"attachment, idle", facts{kind: Attach, dst: idle}, &directIn},
		{"attachment, out of sight", facts{kind: Attach, dst: hidden}, &stagingIn},

		{"update to, absent", facts{kind: UpdateTo, absent: true}, &nowhere},
		{"update from, absent", facts{kind: UpdateFrom, absent: true}, &nowhere},
		{"update to, idle", facts{kind: UpdateTo, dst: idle}, &directIn},
		{"update to, the host's own storage", facts{kind: UpdateTo, dst: shared}, &directIn},
		{"update to, in use", facts{kind: UpdateTo, dst: busy}, &stagingIn},
		{"update to, first contents on their way", facts{kind: UpdateTo, dst: filling}, &stagingIn},
		{"update to, parts of units of a flush", facts{kind: UpdateTo, dst: partial}, &stagingIn},
		{"update to, large and in use", facts{kind: UpdateTo, dst: busy, bytes: 1 << 30, contiguous: true}, &ringIn},
		{"update to, large rows", facts{kind: UpdateTo, dst: busy, bytes: 1 << 30}, &stagingIn},

		{"copy to the device, idle", facts{kind: CopyToDevice, dst: idle, bytes: 1 << 30, contiguous: true}, &directIn},
		{"copy to the device, in use", facts{kind: CopyToDevice, dst: busy}, &stagingIn},
		{"copy to the device, out of sight", facts{kind: CopyToDevice, dst: hidden}, &stagingIn},
		{"copy to shared memory in use", facts{kind: CopyToDevice, dst: shared}, &stagingIn},

		{"copy to the device, few bytes through a window", facts{kind: CopyToDevice, dst: window}, &directIn},
		{"copy to the device, many bytes through a window", facts{kind: CopyToDevice, dst: beyond}, &stagingIn},
		{"copy to the host, through a window", facts{kind: CopyToHost, src: window, awaited: true}, &stagingOut},
		{"copy to the host, awaited", facts{kind: CopyToHost, src: busy, awaited: true}, &directOut},
		{"copy to the host, deferred", facts{kind: CopyToHost, src: idle}, &stagingOut},
		{"copy to the host, deferred and large", facts{kind: CopyToHost, src: idle, bytes: 1 << 30, contiguous: true}, &ringOut},
		{"copy to the host, out of sight", facts{kind: CopyToHost, src: hidden, awaited: true}, &stagingOut},
		{"update from, shared and deferred", facts{kind: UpdateFrom, src: shared}, &directOut},
		{"update from, large rows", facts{kind: UpdateFrom, src: hidden, bytes: 1 << 30}, &stagingOut},

		{"map back, through a window", facts{kind: CopyOut, src: window, awaited: true}, &stagingOut},
		{"map back, visible and deferred", facts{kind: CopyOut, src: busy}, &directOut},
		{"map back, out of sight", facts{kind: CopyOut, src: hidden, awaited: true}, &stagingOut},
		{"map back, awaited, out of sight, two chunks", facts{kind: CopyOut, src: hidden, bytes: 2 * chunk, contiguous: true, awaited: true}, &stagingOut},
		{"map back, awaited, out of sight, more than two chunks", facts{kind: CopyOut, src: hidden, bytes: 2*chunk + 1, contiguous: true, awaited: true}, &ringOut},
		{"map back, out of sight and large", facts{kind: CopyOut, src: hidden, bytes: 1 << 30, contiguous: true}, &ringOut},

		{"fill, idle", facts{kind: Fill, dst: idle, bytes: directBytes}, &directFill},
		{"fill, idle and large", facts{kind: Fill, dst: idle, bytes: directBytes + 1, contiguous: true}, &deviceFill},
		{"fill, through a window", facts{kind: Fill, dst: window}, &directFill},
		{"fill, in use", facts{kind: Fill, dst: busy}, &deviceFill},
		{"fill, parts of units of a flush", facts{kind: Fill, dst: partial}, &deviceFill},

		{"map, pinned", facts{kind: CopyIn, dst: unseen, bytes: 1 << 30, contiguous: true, pinned: true}, &pinnedIn},
		{"map, pinned, rows or few bytes", facts{kind: CopyIn, dst: unseen, pinned: true}, &pinnedIn},
		{"map, pinned, few bytes through a window", facts{kind: CopyIn, dst: window, pinned: true}, &directIn},
		{"map, pinned, present and idle", facts{kind: CopyIn, dst: idle, pinned: true}, &pinnedIn},
		{"update to, pinned and in use", facts{kind: UpdateTo, dst: busy, pinned: true}, &pinnedIn},
		{"copy to the device, pinned and large", facts{kind: CopyToDevice, dst: hidden, bytes: 1 << 30, contiguous: true, pinned: true}, &pinnedIn},
		{"copy to the host, pinned", facts{kind: CopyToHost, src: hidden, bytes: 1 << 30, contiguous: true, pinned: true}, &pinnedOut},
		{"copy to the host, pinned and readable", facts{kind: CopyToHost, src: idle, pinned: true}, &pinnedOut},
		{"copy to the host, pinned, readable and awaited", facts{kind: CopyToHost, src: idle, awaited: true, pinned: true}, &directOut},
		{"update from, pinned", facts{kind: UpdateFrom, src: hidden, pinned: true}, &pinnedOut},
		{"map back, pinned", facts{kind: CopyOut, src: hidden, bytes: 1 << 30, contiguous: true, pinned: true}, &pinnedOut},
		{"map back, pinned and foreseen", facts{kind: CopyOut, src: hidden, pinned: true, foreseen: true}, &stagingOut},
		{"map back, pinned, foreseen and large", facts{kind: CopyOut, src: hidden, bytes: 1 << 30, contiguous: true, pinned: true, foreseen: true}, &ringOut},
		{"map back, pinned and readable", facts{kind: CopyOut, src: busy, pinned: true}, &directOut},

		{"copy within, idle", facts{kind: CopyWithin, dst: idle, src: idle, bytes: directBytes}, &directCopy},
		{"copy within, idle and large", facts{kind: CopyWithin, dst: idle, src: idle, bytes: 1 << 30, contiguous: true}, &deviceCopy},
		{"copy within, large, by a kernel", facts{kind: CopyWithin, dst: busy, src: idle, bytes: 1 << 30, contiguous: true, kernel: true}, &kernelCopy},
		{"copy within, through a window", facts{kind: CopyWithin, dst: window, src: window}, &deviceCopy},
		{"copy within, source in use", facts{kind: CopyWithin, dst: idle, src: busy}, &deviceCopy},
		{"copy within, destination in use", facts{kind: CopyWithin, dst: busy, src: idle}, &deviceCopy},
		{"copy within, parts of units of a flush", facts{kind: CopyWithin, dst: partial, src: idle}, &deviceCopy},
	} {
		c.chunk, c.room = chunk, room
		if got := c.facts.path(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.name, c.want.name)
		}
	}
}

// rig has a device with memory for transfers that belong to no task.
type rig struct {
	t     *testing.T
	soft  *softdevice.Device
	d     Device
	list  List
	value uint64
	// placing is held by Place and Await: the device is for one goroutine.
	placing sync.Mutex
}

// mode is the shape of a device's memory, and the size of the chunks of rings.
type mode struct {
	name   string
	shape  softdevice.Memory
	hidden bool
	chunk  uint64
	// threads is how many goroutines share a copy.
	threads int
}

var modes = []mode{
	{"unified", softdevice.Unified, false, 1 << 20, 1},
	{"discrete", softdevice.Discrete, false, 1 << 20, 1},
	{"hidden", softdevice.Unified, true, 1 << 20, 1},
	{"incoherent", softdevice.Incoherent, false, 1 << 20, 1},
	{"chunks", softdevice.Discrete, false, 12, 1},
	{"chunks, several goroutines", softdevice.Discrete, false, 12, MaxThreads},
	{"incoherent chunks", softdevice.Incoherent, true, 20, MaxThreads},
	{"window", softdevice.Window, false, 1 << 20, 1},
}

// visible reports whether the host reads and writes storage itself.
func (m *mode) visible() bool {
	return m.shape != softdevice.Discrete && m.shape != softdevice.Window && !m.hidden
}

// newRig returns a rig whose memory has to be given back by the end of the test.
func newRig(t *testing.T, m mode) *rig {
	t.Helper()
	r := &rig{t: t, soft: softdevice.New(t, m.shape)}
	r.d.Memory, r.d.Queues, r.d.Chunk, r.d.Threads, r.d.Staging = new(allocation.Memory), r.soft.Queues(), m.chunk, m.threads, DefaultStaging
	if err := r.d.Memory.Open(r.soft, r.d.Queues, allocation.Options{Hidden: m.hidden}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.list.FreeStaging(&r.d, &order.SyncSet{})
		if err := r.d.Memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// device returns new device memory of that many bytes.
func (r *rig) device(size uint64) *allocation.Allocation {
	r.t.Helper()
	a, err := r.d.Memory.New(size)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(a.Unpin)
	return a
}

// section returns a slice of the host as a section.
func section(s []byte) memory.Section {
	return memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(s)), Size: uint64(len(s))}
}

// submit has the device carry out what is recorded.
func (r *rig) submit(record func(*vk.Stream)) error {
	var stream vk.Stream
	record(&stream)
	r.value++
	return r.soft.Submit(0, &stream, []timeline.Point(nil), order.Foreign{}, r.value)
}

// Place implements Lane.
func (r *rig) Place(x *Transfer, c *Chunk, at, n uint64) error {
	r.placing.Lock()
	defer r.placing.Unlock()
	c.Busy = order.SyncPoint{Value: r.value + 1}
	return r.submit(func(stream *vk.Stream) { x.RecordChunk(stream, c, at, n) })
}

// Await implements Lane.
func (r *rig) Await(c *Chunk) error {
	c.Busy = order.SyncPoint{}
	return nil
}

// along takes a transfer through all steps of a path.
func (r *rig) along(way *path, x *Transfer) {
	r.t.Helper()
	d, l := &r.d, &r.list
	must := func(step string, err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatalf("%s, %s: %v", way.name, step, err)
		}
	}
	home := x.Kind.ToHost()
	reads := func() {
		if way.reads != nil {
			way.reads(d, l, x)
			must("invalidate", l.invalidate(d))
		}
	}
	x.path = way
	if way.take != nil {
		must("take", way.take(d, l, x))
	}
	if !home {
		reads()
	}
	if way.begin != nil {
		_, err := way.begin(d, l, x)
		must("begin", err)
		must("copy", l.copyGathered(d))
		must("flush", l.flush(d))
	}
	if way.ring {
		must("bring", l.bring(d, []*Transfer{x}, r))
	}
	if way.record != nil {
		rec := recorder{copier: d.Copier, computes: true}
		must("record", r.submit(func(stream *vk.Stream) {
			rec.stream = stream
			way.record(&rec, x)
		}))
		commands, bytes := rec.copies, rec.copied
		if x.Kind.within() {
			commands, bytes = rec.inner+rec.fills, rec.within
		}
		if commands == 0 || bytes < x.Size {
			r.t.Errorf("%s: %d commands are counted, of %d bytes for %d", way.name, commands, bytes, x.Size)
		}
	}
	if home {
		reads()
	}
	if way.end != nil {
		_, err := way.end(d, l, x)
		must("end", err)
		must("copy", l.copyGathered(d))
	}
}

// Every path brings the bytes of a transfer to their destination, and changes no other byte.
func TestPathsBringTheirBytes(t *testing.T) {
	const size = 256
	for _, mode := range modes {
		ins, outs := []*path{&stagingIn, &ringIn, &pinnedIn}, []*path{&stagingOut, &ringOut, &pinnedOut}
		copies, fills := []*path{&deviceCopy}, []*path{&deviceFill}
		if mode.visible() {
			ins, outs = append(ins, &directIn), append(outs, &directOut)
			copies, fills = append(copies, &directCopy), append(fills, &directFill)
		}
		if mode.shape == softdevice.Window {
			ins = append(ins, &directIn)
		}
		for _, in := range ins {
			for _, out := range outs {
				for k, within := range copies {
					t.Run(fmt.Sprintf("%s/%s, %s, %s, %s", mode.name, in.name, fills[k].name, within.name, out.name), func(t *testing.T) {
						r := newRig(t, mode)
						from, to := make([]byte, size), make([]byte, size)
						fromPinned, toPinned := r.pinned(from), r.pinned(to)
						for i := range from {
							from[i] = byte(i) | 1
						}
						a, b := r.device(size), r.device(size)
						r.along(in, &Transfer{Kind: CopyToDevice, Host: section(from), Dst: a, Size: size, pinned: fromPinned})
						r.along(fills[k], &Transfer{Kind: Fill, Dst: b, Size: size, value: 2})
						r.along(fills[k], &Transfer{Kind: Fill, Dst: b, DstAt: 65, Size: 62, value: 4})
						r.along(within, &Transfer{Kind: CopyWithin, Dst: b, DstAt: 128, Src: a, SrcAt: 64, Size: 64})
						r.along(out, &Transfer{Kind: CopyToHost, Host: section(to), Src: b, Size: size, pinned: toPinned})
						for i, got := range to {
							want := byte(2)
							switch {
							case i >= 65 && i < 65+62:
								want = 4
							case i >= 128 && i < 192:
								want = from[i-64]
							}
							if got != want {
								t.Fatalf("byte %d is %d, want %d", i, got, want)
							}
						}
					})
				}
			}
		}
	}
}
