package vkomp_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// collectGarbage collects unreachable memory and lets other objects reuse it.
func collectGarbage() {
	for range 3 {
		runtime.GC()
		for range 20 {
			_ = bytes.Repeat([]byte{0xdd}, 1<<20)
		}
	}
}

// square copies the upper left n by n bytes between images of that width.
func square(width, n int) vkomp.Rect {
	return vkomp.Rect{
		Elem: 1, Volume: []int{n, n}, DstOffsets: []int{0, 0}, SrcOffsets: []int{0, 0},
		DstDims: []int{width, width}, SrcDims: []int{width, width},
	}
}

// sizeOf returns the size of an array in bytes.
func sizeOf(elem int, dims []int) int {
	for _, d := range dims {
		elem *= d
	}
	return elem
}

// copyRect does the same as MemcpyRect, element by element.
func copyRect(dst, src []byte, r vkomp.Rect) {
	index := make([]int, len(r.Volume))
	if slices.Contains(r.Volume, 0) {
		return
	}
	for {
		to, from := 0, 0
		for k, i := range index {
			to = to*r.DstDims[k] + r.DstOffsets[k] + i
			from = from*r.SrcDims[k] + r.SrcOffsets[k] + i
		}
		copy(dst[to*r.Elem:(to+1)*r.Elem], src[from*r.Elem:])
		k := len(index) - 1
		for ; k >= 0; k-- {
			if index[k]++; index[k] < r.Volume[k] {
				break
			}
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// randomRect returns a random part of random arrays with that many dimensions.
func randomRect(random *rand.Rand, dims int) vkomp.Rect {
	r := vkomp.Rect{Elem: 1 + random.IntN(9)}
	most := 2 + 12/dims
	for range dims {
		v := 1 + random.IntN(most)
		d, s := v+random.IntN(3), v+random.IntN(3)
		r.Volume = append(r.Volume, v)
		r.DstDims, r.SrcDims = append(r.DstDims, d), append(r.SrcDims, s)
		r.DstOffsets, r.SrcOffsets = append(r.DstOffsets, random.IntN(d-v+1)), append(r.SrcOffsets, random.IntN(s-v+1))
	}
	return r
}

func TestMemcpyRectOfEveryDimension(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		random := rand.New(rand.NewPCG(1, 2))
		for dims := 1; dims <= vkomp.MaxRectDims; dims++ {
			for range 2 {
				r := randomRect(random, dims)
				if sizeOf(r.Elem, r.DstDims) > 50_000 || sizeOf(r.Elem, r.SrcDims) > 50_000 {
					r.Elem = 1
				}
				have, want := noise(sizeOf(r.Elem, r.SrcDims), 1), noise(sizeOf(r.Elem, r.DstDims), 2)
				src, dst := alloc(t, d, len(have)), alloc(t, d, len(want))
				hostSrc, hostDst := vkomp.HostPtr(have), slices.Clone(want)
				before := slices.Clone(want)
				copyRect(want, have, r)
				for _, c := range []struct {
					name     string
					dst, src vkomp.DevicePtr
				}{
					{"device to host", vkomp.HostPtr(hostDst), src},
					{"host to device", dst, hostSrc},
					{"within the device", dst, src},
					{"host to host", vkomp.HostPtr(hostDst), hostSrc},
				} {
					memcpy(t, rt, src, hostSrc, len(have))
					memcpy(t, rt, c.dst, vkomp.HostPtr(before), len(before))
					if err := rt.MemcpyRect(t.Context(), c.dst, c.src, r); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(contents(t, rt, c.dst, len(want)), want) {
						t.Errorf("%s, %+v: wrong bytes", c.name, r)
					}
				}
			}
		}
		if vkomp.MaxRectDims < 5 {
			t.Errorf("%d dimensions", vkomp.MaxRectDims)
		}
	})
}

func TestMemcpyRectNeedsOnlyThePart(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		// The last rows of the images do not exist.
		r := square(10, 3)
		r.SrcOffsets = []int{1, 4}
		have, want := noise(10*3+7, 1), make([]byte, 10*2+3)
		copyRect(want, have, r)
		dst := alloc(t, d, len(want))
		memcpy(t, rt, dst, vkomp.HostPtr(make([]byte, len(want))), len(want))
		if err := rt.MemcpyRect(t.Context(), dst, vkomp.HostPtr(have), r); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(contents(t, rt, dst, len(want)), want) {
			t.Error("wrong bytes")
		}
		refused(t, "a source too short", rt.MemcpyRect(t.Context(), dst, vkomp.HostPtr(have[1:]), r), vkomp.ErrInvalidPointer, "the source")
		refused(t, "a destination too short", rt.MemcpyRect(t.Context(), dst.Add(1), vkomp.HostPtr(have), r), vkomp.ErrInvalidPointer)
	})
}

// The address of a part is not counted modulo 2^64.
func TestMemcpyRectOfAPartBehindAllStorage(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		p, q := alloc(t, d, 64), alloc(t, d, 64)
		host, zeros := make([]byte, 64), make([]byte, 64)
		for i := range host {
			host[i] = byte(i + 1)
		}
		memcpy(t, rt, p, vkomp.HostPtr(zeros), 64)
		memcpy(t, rt, q, vkomp.HostPtr(host), 64)
		for _, volume := range [][]int{{1}, {1, 1}} {
			n := len(volume)
			none, behind, dims := make([]int, n), make([]int, n), slices.Clone(volume)
			behind[n-1], dims[n-1] = math.MaxInt-7, math.MaxInt // 2^64-16 bytes
			few := slices.Repeat([]int{4}, n)
			r := vkomp.Rect{Elem: 2, Volume: volume, DstOffsets: none, SrcOffsets: behind, DstDims: few, SrcDims: dims}
			back := vkomp.Rect{Elem: 2, Volume: volume, DstOffsets: behind, SrcOffsets: none, DstDims: dims, SrcDims: few}
			for name, ends := range map[string][2]vkomp.DevicePtr{"within the device": {p, q}, "to the host": {vkomp.HostPtr(zeros), q}, "to the device": {p, vkomp.HostPtr(host)}} {
				dst, src := ends[0], ends[1]
				refused(t, name, rt.MemcpyRect(t.Context(), dst, src.Add(16), r), vkomp.ErrInvalidPointer, "the source")
				refused(t, name+", as destination", rt.MemcpyRect(t.Context(), dst.Add(16), src, back), vkomp.ErrInvalidPointer, "the destination")
			}
		}
		if !bytes.Equal(contents(t, rt, p, 64), make([]byte, 64)) || !bytes.Equal(zeros, make([]byte, 64)) {
			t.Error("a refused copy changed the memory")
		}
	})
}

func TestMemcpyRectRefuses(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		p, host := alloc(t, d, 64), vkomp.HostPtr(make([]byte, 64))
		memcpy(t, rt, p, host, 64)
		for name, change := range map[string]func(r *vkomp.Rect){
			"no dimensions":                       func(r *vkomp.Rect) { *r = vkomp.Rect{Elem: 1} },
			"dimensions of different numbers":     func(r *vkomp.Rect) { r.SrcDims = r.SrcDims[:1] },
			"other dimensions":                    func(r *vkomp.Rect) { r.Volume = r.Volume[:1] },
			"elements without bytes":              func(r *vkomp.Rect) { r.Elem = 0 },
			"elements of less than no bytes":      func(r *vkomp.Rect) { r.Elem = -1 },
			"a negative volume":                   func(r *vkomp.Rect) { r.Volume[1] = -1 },
			"a negative offset":                   func(r *vkomp.Rect) { r.DstOffsets[0] = -1 },
			"a negative dimension":                func(r *vkomp.Rect) { r.SrcDims[0] = -8 },
			"a part that is not in the source":    func(r *vkomp.Rect) { r.SrcOffsets[1] = 5 },
			"a part that is not in the other one": func(r *vkomp.Rect) { r.DstOffsets[0] = 5 },
			"more bytes than can be counted":      func(r *vkomp.Rect) { r.DstDims[1] = 1 << 62 },
			"too many dimensions": func(r *vkomp.Rect) {
				ones := slices.Repeat([]int{1}, vkomp.MaxRectDims+1)
				*r = vkomp.Rect{Elem: 1, Volume: ones, DstOffsets: make([]int, len(ones)), SrcOffsets: make([]int, len(ones)), DstDims: ones, SrcDims: ones}
			},
		} {
			for _, volume := range []int{4, 0} {
				r := square(8, volume)
				change(&r)
				text := ""
				if strings.Contains(name, "negative") || strings.Contains(name, "less than") {
					text = " -"
				}
				refused(t, name, rt.MemcpyRect(ctx, p, host, r), vkomp.ErrInvalidArgument, "memcpy rect", text)
				refused(t, name, rt.MemcpyRectAsync(ctx, p, host, r), vkomp.ErrInvalidArgument, "memcpy rect")
				if name == "a part that is not in the source" || name == "a part that is not in the other one" {
					break // an empty part fits anywhere
				}
			}
		}
		refused(t, "to nil", rt.MemcpyRect(ctx, vkomp.DevicePtr{}, host, square(8, 4)), vkomp.ErrInvalidPointer, "the destination")
		refused(t, "from nil", rt.MemcpyRect(ctx, p, vkomp.DevicePtr{}, square(8, 4)), vkomp.ErrInvalidPointer, "the source")
		if err := rt.MemcpyRect(ctx, vkomp.DevicePtr{}, vkomp.DevicePtr{}, square(8, 0)); err != nil {
			t.Errorf("a volume of nothing: %v", err)
		}
		if !bytes.Equal(contents(t, rt, p, 64), make([]byte, 64)) {
			t.Error("a refused copy changed the memory")
		}
	})
}

func TestMemcpyRectWithinOneArray(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		for name, p := range map[string]vkomp.DevicePtr{"device": alloc(t, d, 64), "slice": vkomp.HostPtr(make([]byte, 64))} {
			for _, c := range []struct {
				dst, src []int
				overlap  bool
			}{
				{[]int{0, 4}, []int{0, 0}, false},
				{[]int{4, 0}, []int{0, 0}, false},
				{[]int{1, 4}, []int{3, 0}, false},
				{[]int{0, 3}, []int{0, 0}, true},
				{[]int{3, 3}, []int{0, 0}, true},
				{[]int{0, 0}, []int{3, 3}, true},
				{[]int{2, 2}, []int{2, 2}, true},
				{[]int{3, 1}, []int{0, 4}, true},
			} {
				r := square(8, 4)
				r.DstOffsets, r.SrcOffsets = c.dst, c.src
				want := noise(64, 3)
				memcpy(t, rt, p, vkomp.HostPtr(want), 64)
				err := rt.MemcpyRect(t.Context(), p, p, r)
				if c.overlap {
					refused(t, fmt.Sprintf("%s: from %v to %v", name, c.src, c.dst), err, vkomp.ErrInvalidArgument, "overlap")
				} else {
					if err != nil {
						t.Errorf("%s: from %v to %v: %v", name, c.src, c.dst, err)
					}
					copyRect(want, slices.Clone(want), r)
				}
				if !bytes.Equal(contents(t, rt, p, 64), want) {
					t.Errorf("%s: from %v to %v: wrong bytes", name, c.src, c.dst)
				}
			}
		}
	})
}

// Bounds are compared before rows, of which there can be more than a computer has memory.
func TestMemcpyRectOfTooManyRowsIsRefusedAtOnce(t *testing.T) {
	rt := vktest.Open(t)
	d := rt.DefaultDevice(t.Context())
	const n = 1 << 40
	for name, p := range map[string]vkomp.DevicePtr{"device": alloc(t, d, 64), "slice": vkomp.HostPtr(make([]byte, 64))} {
		err := rt.MemcpyRect(t.Context(), p, p.Add(1), vkomp.Rect{Elem: 1, Volume: []int{n, 1}, DstOffsets: []int{0, 0}, SrcOffsets: []int{0, 0}, DstDims: []int{n, 2}, SrcDims: []int{n, 2}})
		refused(t, name, err, vkomp.ErrInvalidPointer)
	}
}

func TestMemcpyRectAsyncKeepsNothingOfTheRect(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		have, want := noise(64, 1), make([]byte, 64)
		p := alloc(t, d, 64)
		memcpy(t, rt, p, vkomp.HostPtr(want), 64)
		r := square(8, 3)
		copyRect(want, have, r)
		release := held(t, rt, vkomp.Out(have))
		if err := rt.MemcpyRectAsync(ctx, p, vkomp.HostPtr(have), r, vkomp.In(have)); err != nil {
			t.Fatal(err)
		}
		r.Volume[0], r.SrcDims[1], r.Elem = 8, 4, 7
		release()
		if err := rt.Taskwait(ctx); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(contents(t, rt, p, 64), want) {
			t.Error("wrong bytes")
		}
	})
}
