package vkomp_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// openTwice returns two devices of a runtime that opens its first device twice.
func openTwice(t *testing.T, options ...func(*vkomp.Options)) (*vkomp.Runtime, [2]vkomp.Device) {
	t.Helper()
	rt := vktest.Open(t, options...)
	d := rt.DefaultDevice(t.Context())
	return rt, [2]vkomp.Device{d, vkomp.OpenAgain(rt, d)}
}

func TestMemcpyBetweenDevices(t *testing.T) {
	vktest.Long(t)
	for name, option := range map[string]func(*vkomp.Options){
		"device":     func(*vkomp.Options) {},
		"staging":    vktest.Staging,
		"one thread": func(o *vkomp.Options) { o.LookupEnv = environment("OMP_NUM_THREADS", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			rt, d := openTwice(t, option)
			if rt.NumDevices() < 2 || d[0] == d[1] {
				t.Fatalf("%d devices: %v", rt.NumDevices(), d)
			}
			const size = 2*vkomp.ChunkBytes + 12_345
			a, b := alloc(t, d[0], size), alloc(t, d[1], size)
			for i, c := range []struct{ dstAt, srcAt, n int }{
				{0, 0, size}, {0, 0, 1}, {3, 9, 5000}, {1, 2, vkomp.ChunkBytes}, {1, 0, vkomp.ChunkBytes + 1}, {0, 5, vkomp.ChunkBytes - 1},
			} {
				have, want := noise(size, uint32(i)), noise(size, uint32(i+100))
				memcpy(t, rt, a, vkomp.HostPtr(have), size)
				memcpy(t, rt, b, vkomp.HostPtr(want), size)
				memcpy(t, rt, b.Add(c.dstAt), a.Add(c.srcAt), c.n)
				copy(want[c.dstAt:c.dstAt+c.n], have[c.srcAt:])
				if !bytes.Equal(contents(t, rt, b, size), want) || !bytes.Equal(contents(t, rt, a, size), have) {
					t.Errorf("%+v: wrong bytes", c)
				}
			}

			// Both directions as tasks.
			want, got := noise(size, 77), make([]byte, size)
			release := held(t, rt, vkomp.Out(got))
			depend := vkomp.InOut(got)
			if err := errors.Join(
				rt.MemcpyAsync(ctx, a, vkomp.HostPtr(want), size, depend),
				rt.MemcpyAsync(ctx, b, a, size, depend),
				d[0].MemsetAsync(ctx, a, 0, size, depend),
				rt.MemcpyAsync(ctx, a, b, size, depend),
				d[1].MemsetAsync(ctx, b, 0, size, depend),
				rt.MemcpyAsync(ctx, vkomp.HostPtr(got), a, size, depend),
			); err != nil {
				t.Fatal(err)
			}
			release()
			if err := rt.Taskwait(ctx); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("tasks between devices gave wrong bytes")
			}
		})
	}
}

func TestMemcpyRectBetweenDevices(t *testing.T) {
	rt, d := openTwice(t)
	for _, r := range []vkomp.Rect{
		{Elem: 4, Volume: []int{3, 5, 7}, DstOffsets: []int{1, 0, 2}, SrcOffsets: []int{0, 2, 0}, DstDims: []int{4, 5, 9}, SrcDims: []int{3, 8, 8}},
		// More rows than fit in a chunk, and rows longer than a chunk.
		{Elem: 1, Volume: []int{vkomp.ChunkRows + 3, 2}, DstOffsets: []int{0, 1}, SrcOffsets: []int{1, 0}, DstDims: []int{vkomp.ChunkRows + 3, 3}, SrcDims: []int{vkomp.ChunkRows + 4, 4}},
		{Elem: 1000, Volume: []int{2, vkomp.ChunkBytes/1000 + 7}, DstOffsets: []int{0, 1}, SrcOffsets: []int{0, 0}, DstDims: []int{2, vkomp.ChunkBytes/1000 + 9}, SrcDims: []int{2, vkomp.ChunkBytes/1000 + 8}},
	} {
		have, want := noise(sizeOf(r.Elem, r.SrcDims), 1), noise(sizeOf(r.Elem, r.DstDims), 2)
		src, dst := alloc(t, d[0], len(have)), alloc(t, d[1], len(want))
		memcpy(t, rt, src, vkomp.HostPtr(have), len(have))
		memcpy(t, rt, dst, vkomp.HostPtr(want), len(want))
		if err := rt.MemcpyRect(t.Context(), dst, src, r); err != nil {
			t.Fatal(err)
		}
		copyRect(want, have, r)
		if !bytes.Equal(contents(t, rt, dst, len(want)), want) {
			t.Errorf("%v: wrong bytes", r.Volume)
		}
	}
}

func TestMemcpyBetweenDevicesRefusesAtOnce(t *testing.T) {
	ctx := t.Context()
	rt, d := openTwice(t)
	a, b := alloc(t, d[0], 100), alloc(t, d[1], 100)
	freed, err := d[1].Alloc(ctx, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := d[1].Free(ctx, freed); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		dst, src vkomp.DevicePtr
		size     int
	}{
		"more than the destination has": {b.Add(1), a, 100},
		"more than the source has":      {b, a.Add(100), 1},
		"to freed memory":               {freed, a, 100},
		"from freed memory":             {a, freed, 100},
	} {
		refused(t, what, rt.Memcpy(ctx, c.dst, c.src, c.size), vkomp.ErrInvalidPointer, "memcpy", "bytes")
		refused(t, what, rt.MemcpyAsync(ctx, c.dst, c.src, c.size), vkomp.ErrInvalidPointer, "memcpy", "bytes")
	}
	refused(t, "a rect", rt.MemcpyRectAsync(ctx, b, a, square(20, 6)), vkomp.ErrInvalidPointer)
	if d[0].IsAccessible(b, 1) || d[1].IsAccessible(a, 1) {
		t.Error("memory of one device is accessible from the other")
	}
	refused(t, "free on the other device", d[0].Free(ctx, b), vkomp.ErrInvalidDevice)
	if err := rt.Taskwait(ctx); err != nil {
		t.Errorf("a refused copy left a task: %v", err)
	}
}

func TestMemcpyBetweenDevicesOfMemoryFreedMeanwhile(t *testing.T) {
	ctx := t.Context()
	rt, d := openTwice(t)
	const size = 1000
	a, b := alloc(t, d[0], size), alloc(t, d[1], size)
	want := noise(size, 1)
	memcpy(t, rt, b, vkomp.HostPtr(want), size)
	freed, err := d[1].Alloc(ctx, size)
	must(t, err)
	gate := []int{0}
	release := held(t, rt, vkomp.Out(gate))
	must(t, errors.Join(
		rt.MemcpyAsync(ctx, freed, a, size, vkomp.InOut(gate)),
		d[1].Free(ctx, freed),
	))
	next := alloc(t, d[1], size)
	memcpy(t, rt, next, vkomp.HostPtr(want), size)
	release()
	refused(t, "the taskwait", rt.Taskwait(ctx), vkomp.ErrInvalidPointer, "memcpy", "freed")
	for name, p := range map[string]vkomp.DevicePtr{"other memory": b, "memory allocated since": next} {
		if !bytes.Equal(contents(t, rt, p, size), want) {
			t.Errorf("%s changed", name)
		}
	}
}

// A copy that has begun fails too, with a part copied.
func TestMemcpyBetweenDevicesOfMemoryFreedBetweenChunks(t *testing.T) {
	vktest.Long(t)
	rt, d := openTwice(t, vktest.NoSynchronizationChecks) // the test reads what the copy writes
	ctx := t.Context()
	const size = 16 * vkomp.ChunkBytes
	to := alloc(t, d[0], size)
	first, last := make([]byte, 1), make([]byte, 1)
	var err error
	// The copy can be complete before the memory is freed.
	for try := 0; err == nil && try < 20; try++ {
		from, failed := d[1].Alloc(ctx, size)
		must(t, failed)
		must(t, errors.Join(d[0].Memset(ctx, to, 0, size), d[1].Memset(ctx, from, 7, size), rt.MemcpyAsync(ctx, to, from, size)))
		for first[0] = 0; first[0] == 0; {
			memcpy(t, rt, vkomp.HostPtr(first), to, 1)
		}
		must(t, d[1].Free(ctx, from))
		err = rt.Taskwait(ctx)
	}
	refused(t, "the taskwait", err, vkomp.ErrInvalidPointer, "memcpy", "freed")
	memcpy(t, rt, vkomp.HostPtr(last), to.Add(size-1), 1)
	if last[0] != 0 {
		t.Error("all was copied")
	}
}

func TestCopiesBetweenDevicesRunInTasksOfTheirOwn(t *testing.T) {
	rt, d := openTwice(t)
	const size = 1000
	a, b := alloc(t, d[0], size), alloc(t, d[1], size)
	memcpy(t, rt, a, vkomp.HostPtr(noise(size, 1)), size)
	gate := []int{0}
	release := held(t, rt, vkomp.Out(gate))
	// Inside a task, while the tasks of the initial task cannot complete.
	var done bool
	generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		err := rt.Memcpy(ctx, b, a, size)
		done = err == nil
		return errors.Join(err, rt.Taskwait(ctx))
	}, Depend: []vkomp.Depend{vkomp.Out(make([]int, 1))}, If: vkomp.If(false)})
	if !done {
		t.Error("the copy is not done")
	}
	release()
	must(t, rt.Taskwait(t.Context()))
	if !bytes.Equal(contents(t, rt, b, size), noise(size, 1)) {
		t.Error("wrong bytes")
	}
}

// Both devices use the same host storage itself.
func TestMemcpyBetweenDevicesWithinHostStorage(t *testing.T) {
	ctx := t.Context()
	rt, d := openTwice(t)
	if !imports(t, rt, d[0]) {
		return
	}
	const size = 1000
	x := allocPinned[byte](t, rt, size, d[:]...)
	var p [2]vkomp.DevicePtr
	for i := range d {
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d[i], Maps: []vkomp.Arg{vkomp.To(x).Self()}}))
		p[i] = d[i].MappedPtr(vkomp.HostPtr(x))
	}
	for _, c := range []struct {
		dst, src int
		overlaps bool
	}{{0, 1, true}, {300, 0, true}, {0, 0, false}, {400, 0, false}, {0, 400, false}} {
		copy(x, noise(size, 4))
		want := bytes.Clone(x)
		err := rt.Memcpy(ctx, p[1].Add(c.dst), p[0].Add(c.src), 400)
		if c.overlaps {
			refused(t, "across", err, vkomp.ErrInvalidArgument, "overlap")
		} else {
			must(t, err)
			copy(want[c.dst:c.dst+400], want[c.src:])
		}
		if !bytes.Equal(x, want) {
			t.Errorf("400 bytes from %d to %d: wrong bytes", c.src, c.dst)
		}
	}
	// The array of the source begins before the storage.
	r := square(8, 4)
	for column, overlaps := range map[int]bool{3: true, 4: false} {
		r.SrcOffsets, r.DstOffsets = []int{2, 0}, []int{0, column}
		if err := rt.MemcpyRect(ctx, p[1], p[0].Add(-16), r); overlaps {
			refused(t, "columns", err, vkomp.ErrInvalidArgument, "overlap")
		} else {
			must(t, err)
		}
	}
	for i := range d {
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d[i], Maps: []vkomp.Arg{vkomp.Release(x)}}))
	}
}
