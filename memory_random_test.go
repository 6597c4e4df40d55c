package vkomp_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// area is storage that random copies read and write, and its expected contents.
type area struct {
	name string
	p    vkomp.DevicePtr
	want []byte
	// item is what tasks on the area depend on.
	item []int
}

// randomCopies copies and fills areas and their expected contents.
type randomCopies struct {
	t     *rapid.T
	rt    *vkomp.Runtime
	areas []area
}

func (r *randomCopies) number(name string, below int) int {
	return rapid.IntRange(0, below-1).Draw(r.t, name)
}

// part returns a range of at most size bytes.
func (r *randomCopies) part(size int) (at, n int) {
	at = r.number("at", size)
	return at, min(rapid.SampledFrom([]int{0, 1, 3, 4, 64, 999, size}).Draw(r.t, "size"), size-at)
}

// depend returns the items of a deferred task. For a routine that waits it returns none and
// waits for the tasks that use its storage.
func (r *randomCopies) depend(async bool, dst, src *area) []vkomp.Depend {
	items := []vkomp.Depend{vkomp.InOut(dst.item)}
	if src != dst {
		items = append(items, vkomp.In(src.item))
	}
	if async {
		return items
	}
	// The item of a reader does not wait for other readers.
	must(r.t, r.rt.Taskwait(r.t.Context(), items...))
	return nil
}

func (r *randomCopies) step() {
	ctx := r.t.Context()
	dst, src := &r.areas[r.number("dst", len(r.areas))], &r.areas[r.number("src", len(r.areas))]
	async := rapid.Bool().Draw(r.t, "async")
	switch r.number("what", 3) {
	case 0:
		to, n := r.part(len(dst.want))
		from := r.number("from", len(src.want))
		n = min(n, len(src.want)-from)
		if dst == src && to < from+n && from < to+n {
			n = max(to-from, from-to)
		}
		depend := r.depend(async, dst, src)
		if async {
			must(r.t, r.rt.MemcpyAsync(ctx, dst.p.Add(to), src.p.Add(from), n, depend...))
		} else {
			must(r.t, r.rt.Memcpy(ctx, dst.p.Add(to), src.p.Add(from), n))
		}
		copy(dst.want[to:to+n], src.want[from:])
	case 1:
		at, n := r.part(len(dst.want))
		value := rapid.Byte().Draw(r.t, "value")
		d := dst.p.Device()
		if d == (vkomp.Device{}) {
			d = r.rt.InitialDevice()
		}
		depend := r.depend(async, dst, dst)
		if async {
			must(r.t, d.MemsetAsync(ctx, dst.p.Add(at), value, n, depend...))
		} else {
			must(r.t, d.Memset(ctx, dst.p.Add(at), value, n))
		}
		for i := range n {
			dst.want[at+i] = value
		}
	case 2:
		if dst == src {
			return
		}
		rect := vkomp.Rect{Elem: 1 + r.number("elem", 5)}
		for range 1 + r.number("dims", 4) {
			v, moreDst, moreSrc := r.number("volume", 7), r.number("dst more", 3), r.number("src more", 3)
			rect.Volume = append(rect.Volume, v)
			rect.DstDims, rect.SrcDims = append(rect.DstDims, v+moreDst), append(rect.SrcDims, v+moreSrc)
			rect.DstOffsets = append(rect.DstOffsets, r.number("dst at", moreDst+1))
			rect.SrcOffsets = append(rect.SrcOffsets, r.number("src at", moreSrc+1))
		}
		to, from := len(dst.want)-sizeOf(rect.Elem, rect.DstDims), len(src.want)-sizeOf(rect.Elem, rect.SrcDims)
		if to < 0 || from < 0 {
			return
		}
		to, from = r.number("to", to+1), r.number("from", from+1)
		depend := r.depend(async, dst, src)
		if async {
			must(r.t, r.rt.MemcpyRectAsync(ctx, dst.p.Add(to), src.p.Add(from), rect, depend...))
		} else {
			must(r.t, r.rt.MemcpyRect(ctx, dst.p.Add(to), src.p.Add(from), rect))
		}
		copyRect(dst.want[to:], src.want[from:], rect)
	}
}

func TestRandomCopiesAgreeWithSlices(t *testing.T) {
	vktest.Long(t)
	check := func(t *testing.T, rt *vkomp.Runtime) {
		const size = 3000
		first := make([]area, 0)
		for name, p := range ends(t, rt, size) {
			first = append(first, area{name: name, p: p})
		}
		slices.SortFunc(first, func(a, b area) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
		rapid.Check(t, func(t *rapid.T) {
			r := &randomCopies{t: t, rt: rt}
			for i, a := range first {
				a.want, a.item = noise(size, uint32(i)), make([]int, 1)
				memcpy(t, rt, a.p, vkomp.HostPtr(a.want), size)
				r.areas = append(r.areas, a)
			}
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				r.step()
			}
			must(t, rt.Taskwait(t.Context()))
			for _, a := range r.areas {
				if got := contents(t, rt, a.p, size); !bytes.Equal(got, a.want) {
					t.Errorf("%s: %s", a.name, firstDifference(got, a.want))
				}
			}
		})
	}
	for _, m := range memoryModes {
		t.Run(m.name, func(t *testing.T) { check(t, vktest.Open(t, m.option)) })
	}
	t.Run("two devices", func(t *testing.T) {
		rt, _ := openTwice(t)
		check(t, rt)
	})
}

func firstDifference(got, want []byte) string {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d is %d, want %d", i, got[i], want[i])
		}
	}
	return "no difference"
}
