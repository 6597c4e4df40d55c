package transfer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/internal/softdevice"
)

// Large copies of a step are gathered and made by several goroutines: runs of bytes and rows, some
// of which the task's own goroutine makes at once because they are small. An observer hears of each
// when its bytes are there.
func TestLargeTransfersOfAStepAreMadeTogether(t *testing.T) {
	const size = 3*partBytes + 77
	for _, m := range []mode{
		{"unified", softdevice.Unified, false, DefaultChunk, MaxThreads},
		{"discrete", softdevice.Discrete, false, DefaultChunk, MaxThreads},
		{"incoherent", softdevice.Incoherent, true, DefaultChunk, 3},
	} {
		for _, observed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, observed %v", m.name, observed), func(t *testing.T) {
				r := newRig(t, m)
				var pointers allocation.Pointers
				pointers.Init(0)
				// Columns of an array whose rows are as long as a large part, and as long as a small one.
				wide, narrow := columns(t, 3, partBytes), columns(t, 3000, 1000)
				sizes := []int{size, 1000, 3 * partBytes, 3000 * 1000, size}
				var in, out []Request
				var from, to [][]byte
				for i, n := range sizes {
					a := r.device(uint64(n))
					from, to = append(from, random(n)), append(to, make([]byte, n))
					in = append(in, Request{Kind: CopyToDevice, Host: section(from[i]), Dst: pointers.To(a), Size: uint64(n), Label: "in"})
					out = append(out, Request{Kind: CopyToHost, Host: section(to[i]), Src: pointers.To(a), Size: uint64(n), Label: fmt.Sprint("out ", i)})
				}
				in[2].Rows, out[2].Rows = wide, wide
				in[3].Rows, out[3].Rows = narrow, narrow
				if err := r.list.Resolve(&pointers, append(in, out...)); err != nil {
					t.Fatal(err)
				}
				by := &task{rig: r, quiet: !observed}
				by.ended = func(label string) {
					i := slices.IndexFunc(out, func(r Request) bool { return r.Label == label })
					if i >= 0 && out[i].Rows == nil && !slices.Equal(to[i], from[i]) {
						t.Errorf("the observer is told of the end of %q before its bytes are there", label)
					}
				}
				by.run()
				for i, n := range sizes {
					rows := out[i].Rows
					if rows == nil {
						if !slices.Equal(to[i], from[i]) {
							t.Errorf("copy %d of %d bytes brought others", i, n)
						}
						continue
					}
					want := make([]byte, n)
					for d, s := range rows.All() {
						copy(want[d:][:rows.RowBytes], from[i][s:])
					}
					if !slices.Equal(to[i], want) {
						t.Errorf("copy %d of rows brought other bytes", i)
					}
				}
				if told := 2 * 2 * len(sizes); observed && len(by.told) != told {
					t.Errorf("the observer was told %d times, want %d", len(by.told), told)
				}
				if r.list.gathered != nil || r.d.crews.hired.Load() != 0 {
					t.Error("a crew is left")
				}
			})
		}
	}
}

// columns returns the rows of all but the last byte of so many lines.
func columns(t *testing.T, lines, bytes uint64) *memory.Rows {
	t.Helper()
	rect := memory.Rect{
		Elem: 1, Volume: []uint64{lines, bytes - 1}, DstOffsets: []uint64{0, 0}, SrcOffsets: []uint64{0, 0},
		DstDims: []uint64{lines, bytes}, SrcDims: []uint64{lines, bytes},
	}
	rows, err := rect.Rows()
	if err != nil {
		t.Fatal(err)
	}
	return &rows
}

// Copies that write the same bytes are made one after the other: the last one counts.
func TestCopiesToTheSameBytesAreMadeInTheirOrder(t *testing.T) {
	const size = 2 * partBytes
	to := make([]byte, 2*size)
	for _, c := range []struct {
		name   string
		second uint64
		apart  bool
	}{{"the same bytes", 0, false}, {"some of the same", size - 1, false}, {"others", size, true}} {
		d := &Device{Threads: MaxThreads}
		var l List
		for i, at := range []uint64{0, c.second} {
			from := random(size + i)[:size]
			x := &Transfer{Kind: CopyToDevice, Host: section(from), Size: size}
			if _, err := x.put(&l, d, section(to[at:]).Ptr, true); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.gathered.copying.apart(); got != c.apart {
			t.Errorf("%s: apart %v, want %v", c.name, got, c.apart)
		}
		if err := l.copyGathered(d); err != nil {
			t.Error(err)
		}
		if !slices.Equal(to[c.second:][:size], random(size + 1)[:size]) {
			t.Errorf("%s: the second copy is not what is there", c.name)
		}
	}
}
