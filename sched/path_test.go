package sched

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// The path of a transfer is decided from a few facts: the table has a row for each that
// matters.
func TestPathOfATransfer(t *testing.T) {
	const chunk = 1 << 20
	var (
		hidden  = memoryFacts{whole: true}
		busy    = memoryFacts{visible: true, whole: true}
		idle    = memoryFacts{visible: true, idle: true, whole: true}
		partial = memoryFacts{visible: true, idle: true}
		filling = memoryFacts{visible: true, idle: true, whole: true, filling: true}
		fresh   = memoryFacts{visible: true, idle: true, fresh: true}
		shared  = memoryFacts{visible: true, shared: true, whole: true}
		unseen  = memoryFacts{fresh: true}
	)
	for _, c := range []struct {
		name string
		facts
		want *path
	}{
		{"map, fresh and idle", facts{kind: copyIn, dst: fresh}, &directIn},
		{"map, fresh and idle, large", facts{kind: copyIn, dst: fresh, bytes: 1 << 30, contiguous: true}, &directIn},
		{"map, the host's own storage", facts{kind: copyIn, dst: shared}, &directIn},
		{"map, present and idle", facts{kind: copyIn, dst: idle}, &stagingIn},
		{"map, fresh on memory still in use", facts{kind: copyIn, dst: memoryFacts{visible: true, fresh: true}}, &stagingIn},
		{"map, fresh and out of sight", facts{kind: copyIn, dst: unseen}, &stagingIn},
		{"map, out of sight, as large as a ring", facts{kind: copyIn, dst: unseen, bytes: ringChunks * chunk, contiguous: true}, &stagingIn},
		{"map, out of sight, larger than a ring", facts{kind: copyIn, dst: unseen, bytes: ringChunks*chunk + 1, contiguous: true}, &ringIn},
		{"map, a large image", facts{kind: copyIn, dst: unseen, bytes: 1 << 30}, &stagingIn},

		{"attachment, idle", facts{kind: attach, dst: idle}, &directIn},
		{"attachment, out of sight", facts{kind: attach, dst: hidden}, &stagingIn},

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

		{"copy to the host, awaited", facts{kind: CopyToHost, src: busy, awaited: true}, &directOut},
		{"copy to the host, deferred", facts{kind: CopyToHost, src: idle}, &stagingOut},
		{"copy to the host, deferred and large", facts{kind: CopyToHost, src: idle, bytes: 1 << 30, contiguous: true}, &ringOut},
		{"copy to the host, out of sight", facts{kind: CopyToHost, src: hidden, awaited: true}, &stagingOut},
		{"update from, shared and deferred", facts{kind: UpdateFrom, src: shared}, &directOut},
		{"update from, large rows", facts{kind: UpdateFrom, src: hidden, bytes: 1 << 30}, &stagingOut},

		{"map back, visible and deferred", facts{kind: copyOut, src: busy}, &directOut},
		{"map back, out of sight", facts{kind: copyOut, src: hidden, awaited: true}, &stagingOut},
		{"map back, out of sight and large", facts{kind: copyOut, src: hidden, bytes: 1 << 30, contiguous: true}, &ringOut},

		{"fill, idle", facts{kind: Fill, dst: idle, bytes: directBytes}, &directFill},
		{"fill, idle and large", facts{kind: Fill, dst: idle, bytes: directBytes + 1, contiguous: true}, &deviceFill},
		{"fill, in use", facts{kind: Fill, dst: busy}, &deviceFill},
		{"fill, parts of units of a flush", facts{kind: Fill, dst: partial}, &deviceFill},

		{"copy within, idle", facts{kind: CopyWithin, dst: idle, src: idle, bytes: directBytes}, &directCopy},
		{"copy within, idle and large", facts{kind: CopyWithin, dst: idle, src: idle, bytes: 1 << 30, contiguous: true}, &deviceCopy},
		{"copy within, source in use", facts{kind: CopyWithin, dst: idle, src: busy}, &deviceCopy},
		{"copy within, destination in use", facts{kind: CopyWithin, dst: busy, src: idle}, &deviceCopy},
		{"copy within, parts of units of a flush", facts{kind: CopyWithin, dst: partial, src: idle}, &deviceCopy},
	} {
		c.chunk = chunk
		if got := c.facts.path(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.name, c.want.name)
		}
	}
}

// pathRig takes transfers along a path, step by step, on a device with memory but without
// tasks, so that each path is tested alone.
type pathRig struct {
	*rig
	ts    transfers
	value uint64
}

func newPathRig(t *testing.T, mode memoryMode) *pathRig {
	p := &pathRig{rig: newRig(t, mode, 1)}
	t.Cleanup(p.close)
	return p
}

// device returns new device memory of that many bytes.
func (p *pathRig) device(size uint64) *allocation.Allocation {
	p.t.Helper()
	m, err := p.s.memory.New(size)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.(*testing.T).Cleanup(m.Unpin)
	return m
}

// submit submits what is recorded, behind a barrier to all earlier submissions, and waits for
// it.
func (p *pathRig) submit(record func(*vk.Stream)) error {
	var stream vk.Stream
	stream.Barrier(order.LevelBarrier)
	record(&stream)
	stream.Barrier(order.HostBarrier)
	p.value++
	if err := p.d.Submit(0, &stream, []timeline.Point(nil), order.Foreign{}, p.value); err != nil {
		return err
	}
	_, err := p.d.Wait(0, p.value, -1)
	return err
}

// place implements lane.
func (p *pathRig) place(x *transfer, part *stagingChunk, at, n uint64) error {
	part.busy = order.SyncPoint{Value: p.value + 1}
	return p.submit(func(stream *vk.Stream) { x.recordChunk(stream, part, at, n) })
}

// await implements lane.
func (p *pathRig) await(part *stagingChunk) error {
	part.busy = order.SyncPoint{}
	return nil
}

// along takes a transfer through all steps of a path.
func (p *pathRig) along(way *path, x *transfer) {
	p.t.Helper()
	m, ts := &p.s.memory, &p.ts
	ts.chunk = p.s.chunk
	must := func(step string, err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(fmt.Sprintf("%s, %s: %v", way.name, step, err))
		}
	}
	home := x.kind.toHost()
	reads := func() {
		if way.reads != nil {
			way.reads(m, ts, x)
			must("invalidate", ts.invalidate(m))
		}
	}
	x.path = way
	if way.take != nil {
		must("take", way.take(m, ts, x))
	}
	if !home {
		reads()
	}
	if way.begin != nil {
		_, err := way.begin(m, ts, x)
		must("begin", err)
		must("flush", ts.flush(m))
	}
	if way.bring != nil {
		must("bring", way.bring(m, ts, x, p))
	}
	if way.record != nil {
		r := recorder{}
		must("record", p.submit(func(stream *vk.Stream) {
			r.stream = stream
			way.record(&r, x)
		}))
		if r.copies+r.fills == 0 || r.copied+r.filled < x.size {
			p.t.Errorf("%s: %d copies and %d fills are counted, of %d and %d bytes for %d", way.name, r.copies, r.fills, r.copied, r.filled, x.size)
		}
	}
	if home {
		reads()
	}
	if way.end != nil {
		_, err := way.end(x)
		must("end", err)
	}
}

// release gives back the staging memory of earlier transfers.
func (p *pathRig) release() {
	for _, st := range p.ts.staging {
		p.s.memory.FreeStaging(st, &order.SyncSet{})
	}
	p.ts.reset()
}

// Every path brings the bytes of a transfer to their destination, and changes no other byte.
func TestPathsBringTheirBytes(t *testing.T) {
	const size = 256
	for _, mode := range append(memoryModes[:4:4], chunkModes...) {
		visible := mode.memory != discreteMemory && !mode.hidden
		ins, outs := []*path{&stagingIn, &ringIn}, []*path{&stagingOut, &ringOut}
		copies, fills := []*path{&deviceCopy}, []*path{&deviceFill}
		if visible {
			ins, outs = append(ins, &directIn), append(outs, &directOut)
			copies, fills = append(copies, &directCopy), append(fills, &directFill)
		}
		for _, in := range ins {
			for _, out := range outs {
				for k, within := range copies {
					t.Run(fmt.Sprintf("%s/%s, %s, %s, %s", mode.name, in.name, fills[k].name, within.name, out.name), func(t *testing.T) {
						p := newPathRig(t, mode)
						from, to := make([]byte, size), make([]byte, size)
						for i := range from {
							from[i] = byte(i) | 1
						}
						a, b := p.device(size), p.device(size)
						section := func(s []byte) memory.Section {
							return memory.Section{Ptr: unsafe.Pointer(&s[0]), Size: uint64(len(s))}
						}
						p.along(in, &transfer{kind: CopyToDevice, host: section(from), dst: a, size: size})
						p.along(fills[k], &transfer{kind: Fill, dst: b, size: size, value: 2})
						p.along(fills[k], &transfer{kind: Fill, dst: b, dstAt: 65, size: 62, value: 4})
						p.along(within, &transfer{kind: CopyWithin, dst: b, dstAt: 128, src: a, srcAt: 64, size: 64})
						p.along(out, &transfer{kind: CopyToHost, host: section(to), src: b, size: size})
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
						p.release()
					})
				}
			}
		}
	}
}

// A ring takes as much staging as its chunks, however large the copy.
func TestRingTakesFewChunks(t *testing.T) {
	p := newPathRig(t, chunkModes[0])
	a := p.device(1000)
	host := make([]byte, 1000)
	x := &transfer{kind: CopyToDevice, host: memory.Section{Ptr: unsafe.Pointer(&host[0]), Size: 1000}, dst: a, size: 1000}
	p.along(&ringIn, x)
	if n := len(p.ts.staging); n != ringChunks || x.ring == nil || len(x.ring.chunks) != n {
		t.Errorf("%d chunks of staging, want %d", n, ringChunks)
	}
	for _, st := range p.ts.staging {
		if st.Size != p.s.chunk {
			t.Errorf("a chunk of %d bytes, want %d", st.Size, p.s.chunk)
		}
	}
	p.release()
}
