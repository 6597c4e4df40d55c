package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// part is one dimension of a copy: volume elements from offsets dst and src of
// dimensions of dstDim and srcDim elements.
type part struct{ volume, dst, src, dstDim, srcDim uint64 }

func (p part) fits() bool { return p.dst+p.volume <= p.dstDim && p.src+p.volume <= p.srcDim }

// parts returns all of dimensions up to n elements, and a few that do not fit.
func parts(n uint64) (all []part) {
	for dstDim := range n + 1 {
		for srcDim := range n + 1 {
			for volume := range n + 2 {
				for dst := range dstDim + 1 {
					for src := range srcDim + 1 {
						p := part{volume, dst, src, dstDim, srcDim}
						if p.fits() || volume == n+1 && dst == 0 && src == 0 {
							all = append(all, p)
						}
					}
				}
			}
		}
	}
	return all
}

func rectOf(elem uint64, parts []part) *Rect {
	r := &Rect{Elem: elem}
	for _, p := range parts {
		r.Volume = append(r.Volume, p.volume)
		r.DstOffsets = append(r.DstOffsets, p.dst)
		r.SrcOffsets = append(r.SrcOffsets, p.src)
		r.DstDims = append(r.DstDims, p.dstDim)
		r.SrcDims = append(r.SrcDims, p.srcDim)
	}
	return r
}

// pair is one element of a copy, in bytes.
type pair struct{ dst, src uint64 }

// elements is the naive nested loop: it returns the element pairs of a rect that
// fits, the last dimension varying fastest, and the sizes of both arrays in bytes.
func elements(elem uint64, parts []part) (pairs []pair, dstBytes, srcBytes uint64) {
	pairs, dstBytes, srcBytes = []pair{{}}, elem, elem
	for _, p := range parts {
		var next []pair
		for _, at := range pairs {
			for i := range p.volume {
				next = append(next, pair{at.dst*p.dstDim + p.dst + i, at.src*p.srcDim + p.src + i})
			}
		}
		pairs = next
		dstBytes *= p.dstDim
		srcBytes *= p.srcDim
	}
	for i := range pairs {
		pairs[i].dst *= elem
		pairs[i].src *= elem
	}
	return pairs, dstBytes, srcBytes
}

// checkRows compares rows with the elements that they are to copy, in an array
// of dstBytes and one of srcBytes.
func checkRows(t *testing.T, what any, rows Rows, elem uint64, pairs []pair, dstBytes, srcBytes uint64) {
	t.Helper()
	n := uint64(0)
	var got []pair
	for dst, src := range rows.All() {
		n++
		for at := uint64(0); at < rows.RowBytes; at += elem {
			got = append(got, pair{dst + at, src + at})
		}
	}
	if !slices.Equal(got, pairs) {
		t.Fatalf("%v: elements are %v, want %v", what, got, pairs)
	}
	if rows.Count() != n || rows.Bytes() != uint64(len(pairs))*elem {
		t.Fatalf("%v: %d rows, %d bytes, want %d, %d", what, rows.Count(), rows.Bytes(), n, uint64(len(pairs))*elem)
	}
	for i, a := range rows.axes[:rows.dims] {
		below := axis{1, rows.RowBytes, rows.RowBytes}
		if i > 0 {
			below = rows.axes[i-1]
		}
		if a.count < 2 || a.dst == below.count*below.dst && a.src == below.count*below.src {
			t.Fatalf("%v: %+v is not the normal form", what, rows)
		}
	}
	span := func(side func(pair) uint64) (offset, size uint64) {
		if len(pairs) == 0 {
			return 0, 0
		}
		low, high := uint64(math.MaxUint64), uint64(0)
		for _, p := range pairs {
			low, high = min(low, side(p)), max(high, side(p)+elem)
		}
		return low, high - low
	}
	for name, c := range map[string]struct {
		got func() (uint64, uint64)
		of  func(pair) uint64
	}{
		"destination": {rows.DstSpan, func(p pair) uint64 { return p.dst }},
		"source":      {rows.SrcSpan, func(p pair) uint64 { return p.src }},
	} {
		offset, size := c.got()
		if wantOffset, wantSize := span(c.of); offset != wantOffset || size != wantSize {
			t.Fatalf("%v: the %s spans %d bytes at %d, want %d at %d", what, name, size, offset, wantSize, wantOffset)
		}
	}

	from := make([]byte, srcBytes)
	for i := range from {
		from[i] = byte(i*7 + 1)
	}
	want := make([]byte, dstBytes)
	for _, p := range pairs {
		copy(want[p.dst:p.dst+elem], from[p.src:p.src+elem])
	}
	if got := make([]byte, dstBytes); !slices.Equal(copyRows(rows, got, from), want) {
		t.Fatalf("%v: the destination is %v, want %v", what, got, want)
	}
	staging := copyRows(rows.Packed(), make([]byte, rows.Bytes()), from)
	if got := copyRows(rows.Unpacked(), make([]byte, dstBytes), staging); !slices.Equal(got, want) {
		t.Fatalf("%v: through a packed copy the destination is %v, want %v", what, got, want)
	}
	if p := rows.Packed(); p.Count() > rows.Count() || p.Bytes() != rows.Bytes() || p.Unpacked().Count() > 1 {
		t.Fatalf("%v: %d rows are %d once packed", what, rows.Count(), p.Count())
	}
}

func copyRows(r Rows, dst, src []byte) []byte {
	for d, s := range r.All() {
		copy(dst[d:d+r.RowBytes], src[s:s+r.RowBytes])
	}
	return dst
}

// forEach calls f with every list of n elements of things.
func forEach[T any](n int, things []T, f func([]T)) {
	list := make([]T, n)
	var rec func(int)
	rec = func(i int) {
		if i == n {
			f(list)
			return
		}
		for _, thing := range things {
			list[i] = thing
			rec(i + 1)
		}
	}
	rec(0)
}

// Every small shape, of 1 to 6 dimensions, copies what nested loops copy.
func TestRectAgreesWithNestedLoops(t *testing.T) {
	few := []part{
		{volume: 1, dstDim: 1, srcDim: 1},
		{volume: 2, dstDim: 2, srcDim: 2},
		{volume: 2, dst: 1, dstDim: 3, srcDim: 2},
		{volume: 2, src: 1, dstDim: 2, srcDim: 3},
		{volume: 1, dst: 1, src: 2, dstDim: 2, srcDim: 3},
		{volume: 3, dstDim: 3, srcDim: 3},
		{volume: 0, dst: 1, dstDim: 1, srcDim: 0},
		{volume: 2, dst: 1, dstDim: 2, srcDim: 2}, // does not fit
	}
	for dims, things := range [...][]part{1: parts(5), 2: parts(2), 3: few, 4: few[:7], 5: few[:5], 6: few[:4]} {
		for _, elem := range []uint64{1, 3} {
			if dims == 0 || elem == 3 && dims > 4 {
				continue
			}
			forEach(dims, things, func(list []part) {
				rows, err := rectOf(elem, list).Rows()
				if slices.ContainsFunc(list, func(p part) bool { return !p.fits() }) {
					if !errors.Is(err, ErrInvalidRect) || rows != (Rows{}) {
						t.Fatalf("%v does not fit: %v", list, err)
					}
					return
				}
				if err != nil {
					t.Fatalf("%v: %v", list, err)
				}
				pairs, dst, src := elements(elem, list)
				checkRows(t, list, rows, elem, pairs, dst, src)
				// Elements that are contiguous on both sides belong to one row.
				runs := uint64(0)
				for i, p := range pairs {
					if i == 0 || p.dst != pairs[i-1].dst+elem || p.src != pairs[i-1].src+elem {
						runs++
					}
				}
				if rows.Count() != runs {
					t.Fatalf("%v: %d rows, want %d", list, rows.Count(), runs)
				}
			})
		}
	}
}

// The same for strided sections, which are alike on both sides.
func TestStridedAgreesWithNestedLoops(t *testing.T) {
	type selection struct {
		span Span
		dim  uint64
	}
	indices := func(a selection) (all []uint64, fits bool) {
		fits = a.span.Start <= a.dim
		for i := range a.span.Count {
			index := a.span.Start + i*max(a.span.Stride, 1)
			fits = fits && index < a.dim
			all = append(all, index)
		}
		return all, fits
	}
	axes := func(n uint64) (all []selection) {
		for dim := range n + 1 {
			for start := range n + 1 {
				for count := range n + 1 {
					for stride := range n {
						all = append(all, selection{Span{start, count, stride}, dim})
					}
				}
			}
		}
		return all
	}
	few := []selection{
		{Span{0, 2, 1}, 2}, {Span{0, 2, 2}, 4}, {Span{1, 2, 2}, 4}, {Span{0, 1, 9}, 1}, {Span{1, 2, 0}, 3},
	}
	for dims, things := range [...][]selection{1: axes(6), 2: axes(3), 3: few, 4: few, 5: few, 6: few[:3]} {
		if dims == 0 {
			continue
		}
		forEach(dims, things, func(list []selection) {
			const elem = 2
			var spans []Span
			var sizes []uint64
			offsets, bytes, fits := []uint64{0}, uint64(elem), true
			for _, a := range list {
				spans, sizes = append(spans, a.span), append(sizes, a.dim)
				all, ok := indices(a)
				fits = fits && ok
				bytes *= a.dim
				var next []uint64
				for _, at := range offsets {
					for _, i := range all {
						next = append(next, at*a.dim+i)
					}
				}
				offsets = next
			}
			rows, err := Strided(elem, sizes, spans)
			if !fits {
				if !errors.Is(err, ErrInvalidRect) || rows != (Rows{}) {
					t.Fatalf("%v does not fit: %v", list, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %v", list, err)
			}
			pairs := make([]pair, len(offsets))
			for i, o := range offsets {
				pairs[i] = pair{o * elem, o * elem}
			}
			checkRows(t, list, rows, elem, pairs, bytes, bytes)
		})
	}
}

func TestImpossibleRectsAreRefused(t *testing.T) {
	const most = math.MaxUint64
	ok := func() *Rect {
		return rectOf(4, []part{{volume: 2, dstDim: 3, srcDim: 4}, {volume: 2, dstDim: 3, srcDim: 4}})
	}
	if _, err := ok().Rows(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Rect){
		"no dimension":            func(r *Rect) { *r = Rect{Elem: 4} },
		"volume too short":        func(r *Rect) { r.Volume = r.Volume[:1] },
		"destination offsets":     func(r *Rect) { r.DstOffsets = nil },
		"source offsets":          func(r *Rect) { r.SrcOffsets = append(r.SrcOffsets, 0) },
		"destination dimensions":  func(r *Rect) { r.DstDims = r.DstDims[:1] },
		"source dimensions":       func(r *Rect) { r.SrcDims = r.SrcDims[:1] },
		"no element":              func(r *Rect) { r.Elem = 0 },
		"huge element":            func(r *Rect) { r.Elem = 1 << 62 },
		"huge destination":        func(r *Rect) { r.DstDims[0] = most },
		"huge source":             func(r *Rect) { r.SrcDims[1] = most / 2 },
		"offset that wraps":       func(r *Rect) { r.DstOffsets[0] = most },
		"source offset wraps":     func(r *Rect) { r.SrcOffsets[1] = most - 1 },
		"volume that wraps":       func(r *Rect) { r.Volume[0] = most },
		"nothing outside":         func(r *Rect) { r.Volume[0], r.SrcOffsets[0] = 0, 5 },
		"too many dimensions":     func(r *Rect) { *r = *rectOf(1, slices.Repeat([]part{{1, 0, 0, 1, 1}}, MaxRectDims+1)) },
		"huge volume of nothing":  func(r *Rect) { r.Volume[0], r.Volume[1] = 0, most },
		"dimension one too small": func(r *Rect) { r.SrcDims[0] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := ok()
			change(r)
			if rows, err := r.Rows(); !errors.Is(err, ErrInvalidRect) || rows != (Rows{}) {
				t.Errorf("%+v: %v", *r, err)
			}
		})
	}
	for name, c := range map[string]struct {
		elem  uint64
		dims  []uint64
		spans []Span
	}{
		"no dimension":        {1, nil, nil},
		"a span too few":      {1, []uint64{2, 2}, []Span{{}}},
		"no element":          {0, []uint64{2}, []Span{{0, 1, 1}}},
		"stride that wraps":   {1, []uint64{8}, []Span{{1, 2, most}}},
		"count that wraps":    {1, []uint64{8}, []Span{{0, most, 2}}},
		"product that wraps":  {1, []uint64{8}, []Span{{0, 1<<32 + 1, 1 << 32}}},
		"all that wraps":      {1, []uint64{8}, []Span{{7, most, most}}},
		"huge array":          {1 << 40, []uint64{1 << 12, 1 << 12}, []Span{{0, 1, 1}, {0, 1, 1}}},
		"start past the end":  {1, []uint64{8}, []Span{{9, 0, 1}}},
		"too many dimensions": {1, make([]uint64, MaxRectDims+1), make([]Span, MaxRectDims+1)},
	} {
		if rows, err := Strided(c.elem, c.dims, c.spans); !errors.Is(err, ErrInvalidRect) || rows != (Rows{}) {
			t.Errorf("strided, %s: %v", name, err)
		}
	}
}

// Huge arrays cost no more than small ones, and MaxRectDims dimensions work.
func TestRowsOfLargeArrays(t *testing.T) {
	r := rectOf(8, []part{{1 << 20, 1 << 39, 0, 1 << 40, 1 << 20}, {4, 1, 0, 16, 4}})
	rows, err := r.Rows()
	if err != nil || rows.Count() != 1<<20 || rows.RowBytes != 32 {
		t.Fatalf("%d rows of %d bytes, %v", rows.Count(), rows.RowBytes, err)
	}
	if offset, size := rows.DstSpan(); offset != 1<<39*16*8+8 || size != (1<<20-1)*128+32 {
		t.Errorf("the destination spans %d bytes at %d", size, offset)
	}
	whole, err := rectOf(1, []part{{1 << 62, 0, 0, 1 << 62, 1 << 62}, {3, 0, 0, 3, 3}}).Rows()
	if err != nil || whole.Count() != 1 || whole.Bytes() != 3<<62 {
		t.Errorf("a whole array is %d rows of %d bytes, %v", whole.Count(), whole.Bytes(), err)
	}
	// An array without elements has no bytes, whatever its other dimensions are.
	for i := range 3 {
		dims := []uint64{1 << 40, 1 << 40, 1 << 40}
		dims[i] = 0
		nothing := Rect{Elem: 1, Volume: make([]uint64, 3), DstOffsets: make([]uint64, 3), SrcOffsets: make([]uint64, 3), DstDims: dims, SrcDims: []uint64{1, 1, 1}}
		if rows, err := nothing.Rows(); err != nil || rows != (Rows{}) {
			t.Errorf("nothing of %v is %d bytes, %v", dims, rows.Bytes(), err)
		}
	}
	most, err := Strided(1, slices.Repeat([]uint64{3}, MaxRectDims), slices.Repeat([]Span{{0, 2, 2}}, MaxRectDims))
	if err != nil || most.Count() != 1<<MaxRectDims || most.RowBytes != 1 {
		t.Errorf("%d rows of %d bytes, %v", most.Count(), most.RowBytes, err)
	}
}

func TestRowsAllocateNothing(t *testing.T) {
	r := rectOf(4, []part{{2, 1, 0, 4, 3}, {3, 1, 0, 5, 7}, {2, 0, 0, 2, 4}})
	sum := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		rows, err := r.Rows()
		if err != nil {
			t.Fatal(err)
		}
		for dst, src := range rows.Packed().All() {
			sum += dst + src
		}
		for dst, src := range rows.Unpacked().All() {
			sum += dst + src
		}
	}); n != 0 || sum == 0 {
		t.Errorf("the rows of a rect allocate %v objects", n)
	}
	for range (Rows{}).All() {
		t.Error("no rows are some")
	}
}

// From yields what All does, without the first rows, and stops where it is told to.
func TestRowsFromTheMiddle(t *testing.T) {
	r := rectOf(4, []part{{2, 1, 0, 4, 3}, {3, 1, 0, 5, 7}, {2, 0, 0, 3, 4}})
	rows, err := r.Rows()
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ dst, src uint64 }
	var all []row
	for dst, src := range rows.All() {
		all = append(all, row{dst, src})
	}
	if len(all) < 6 {
		t.Fatalf("%d rows", len(all))
	}
	for first := range len(all) + 2 {
		for most := 1; most < 4; most++ {
			var got []row
			rows.From(uint64(first), func(dst, src uint64) bool {
				got = append(got, row{dst, src})
				return len(got) < most
			})
			from := min(first, len(all))
			if want := all[from:min(from+most, len(all))]; !slices.Equal(got, want) {
				t.Errorf("%d rows from %d on are %v, want %v", most, first, got, want)
			}
		}
	}
}

func ExampleRect_Rows() {
	// Columns 1 and 2 of a 2 x 4 array go to a 2 x 2 array of floats.
	r := Rect{
		Elem:       4,
		Volume:     []uint64{2, 2},
		DstOffsets: []uint64{0, 0}, DstDims: []uint64{2, 2},
		SrcOffsets: []uint64{0, 1}, SrcDims: []uint64{2, 4},
	}
	rows, err := r.Rows()
	if err != nil {
		fmt.Println(err)
		return
	}
	for dst, src := range rows.All() {
		fmt.Println(rows.RowBytes, "bytes from", src, "to", dst)
	}
	// Output:
	// 8 bytes from 4 to 0
	// 8 bytes from 20 to 8
}

// Rows overlap if a byte that is read is one that is written: all small shapes of rows at all small distances. They are in
// place if each byte is written where it is read.
func TestRowsOverlapByTheirBytes(t *testing.T) {
	const dst = 16
	inPlace := 0
	for shape := range 3 * 3 * 4 * 4 {
		n, count := uint64(1+shape%3), uint64(1+shape/3%3)
		r := Rect{
			Elem: 1, Volume: []uint64{count, n}, DstOffsets: []uint64{0, 1}, SrcOffsets: []uint64{0, 0},
			DstDims: []uint64{count, n + 1 + uint64(shape/9%4)}, SrcDims: []uint64{count, n + uint64(shape/36)},
		}
		rows, err := r.Rows()
		if err != nil {
			t.Fatal(err)
		}
		for src := range uint64(32) {
			var written, read [64]bool
			overlap, stay := false, true
			for d, s := range rows.All() {
				for i := range rows.RowBytes {
					written[dst+d+i], read[src+s+i] = true, true
				}
				stay = stay && dst+d == src+s
			}
			for i := range written {
				overlap = overlap || written[i] && read[i]
			}
			if got := rows.Overlap(dst, src); got != overlap {
				t.Errorf("%+v from %d to %d: overlap is %v, want %v", r, src, dst, got, overlap)
			}
			if got := rows.InPlace(dst, src); got != stay {
				t.Errorf("%+v from %d to %d: in place is %v, want %v", r, src, dst, got, stay)
			}
			if stay {
				inPlace++
			}
		}
	}
	if none := (&Rows{}).Overlap(0, 0); none || inPlace == 0 {
		t.Errorf("nothing overlaps itself: %v; %d are in place", none, inPlace)
	}
}
