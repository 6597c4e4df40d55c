package memory

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// numbers reads small and huge numbers from bytes, zeros at their end.
type numbers []byte

func (n *numbers) next() uint64 {
	if len(*n) == 0 {
		return 0
	}
	kind := (*n)[0]
	*n = (*n)[1:]
	if kind < 0xf0 {
		return uint64(kind % 8)
	}
	var raw [8]byte
	*n = (*n)[copy(raw[:], *n):]
	return binary.LittleEndian.Uint64(raw[:])
}

func (n *numbers) list(length int) []uint64 {
	list := make([]uint64, length)
	for i := range list {
		list[i] = n.next()
	}
	return list
}

// product returns the product of the numbers, ok when 64 bits hold it.
func product(elem uint64, of []uint64) (p uint64, ok bool) {
	if slices.Contains(of, 0) {
		return 0, true
	}
	p = elem
	for _, n := range of {
		high, low := bits.Mul64(p, n)
		if high != 0 {
			return 0, false
		}
		p = low
	}
	return p, true
}

// checkSpans checks rows that were accepted: the right number of bytes, in
// bounds on both sides, and no byte of the destination twice.
func checkSpans(t *testing.T, rows Rows, bytes, dstBytes, srcBytes uint64) {
	if rows.Bytes() != bytes || (rows.RowBytes == 0) != (bytes == 0) {
		t.Fatalf("%d rows of %d bytes where %d bytes are copied", rows.Count(), rows.RowBytes, bytes)
	}
	dst, dstSize := rows.DstSpan()
	src, srcSize := rows.SrcSpan()
	if dst > dstBytes || dstSize > dstBytes-dst || src > srcBytes || srcSize > srcBytes-src {
		t.Fatalf("spans [%d,+%d) of %d bytes and [%d,+%d) of %d", dst, dstSize, dstBytes, src, srcSize, srcBytes)
	}
	n, end := 0, dst
	for d, s := range rows.All() {
		if d < end || d-dst > dstSize-rows.RowBytes || s < src || s-src > srcSize-rows.RowBytes {
			t.Fatalf("row %d is at %d and %d, the one before ends at %d", n, d, s, end)
		}
		end = d + rows.RowBytes
		if n++; n == 4096 {
			break
		}
	}
	if uint64(n) != min(rows.Count(), 4096) {
		t.Fatalf("%d rows of %d", n, rows.Count())
	}
	if p := rows.Packed(); p.Bytes() != bytes || p.Unpacked().Count() > 1 {
		t.Fatalf("%d bytes are %d once packed", bytes, p.Bytes())
	}
}

// No rectangle makes Rows panic or reach outside an array, and none is refused
// without a reason.
func FuzzRect(f *testing.F) {
	f.Add([]byte{2, 4, 2, 2, 0, 1, 1, 0, 3, 3, 2, 4})
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 2, 2, 2})
	f.Add([]byte{5, 1, 2, 2, 2, 2, 2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := numbers(data)
		dims := int(n.next() % (MaxRectDims + 2))
		r := Rect{Elem: n.next(), Volume: n.list(dims), DstOffsets: n.list(dims), SrcOffsets: n.list(dims), DstDims: n.list(dims), SrcDims: n.list(dims)}
		dstBytes, dstOK := product(r.Elem, r.DstDims)
		srcBytes, srcOK := product(r.Elem, r.SrcDims)
		fits := dims > 0 && dims <= MaxRectDims && r.Elem > 0 && dstOK && srcOK
		for i := range dims {
			fits = fits && r.DstOffsets[i] <= r.DstDims[i] && r.Volume[i] <= r.DstDims[i]-r.DstOffsets[i] &&
				r.SrcOffsets[i] <= r.SrcDims[i] && r.Volume[i] <= r.SrcDims[i]-r.SrcOffsets[i]
		}
		rows, err := r.Rows()
		if (err == nil) != fits || err != nil && !errors.Is(err, ErrInvalidRect) {
			t.Fatalf("%+v: %v", r, err)
		}
		if err == nil {
			bytes, _ := product(r.Elem, r.Volume)
			checkSpans(t, rows, bytes, dstBytes, srcBytes)
		}
	})
}

func FuzzStrided(f *testing.F) {
	f.Add([]byte{2, 4, 5, 7, 1, 2, 2, 0, 3, 3})
	f.Add([]byte{1, 1, 7, 1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := numbers(data)
		count := int(n.next() % (MaxRectDims + 2))
		elem, dims := n.next(), n.list(count)
		spans := make([]Span, count)
		volume := make([]uint64, count)
		bytes, ok := product(elem, dims)
		fits := count > 0 && count <= MaxRectDims && elem > 0 && ok
		for i := range spans {
			spans[i] = Span{n.next(), n.next(), n.next()}
			s := spans[i]
			volume[i] = s.Count
			last, wraps := s.Start, uint64(0)
			if s.Count > 0 {
				high, way := bits.Mul64(s.Count-1, max(s.Stride, 1))
				last, wraps = bits.Add64(last, way, 0)
				wraps += high
			}
			fits = fits && wraps == 0 && last <= dims[i] && (s.Count == 0 || last < dims[i])
		}
		rows, err := Strided(elem, dims, spans)
		if (err == nil) != fits || err != nil && !errors.Is(err, ErrInvalidRect) {
			t.Fatalf("%d bytes, %v, %v: %v", elem, dims, spans, err)
		}
		if err == nil {
			selected, _ := product(elem, volume)
			checkSpans(t, rows, selected, bytes, bytes)
		}
	})
}

// Random histories of a table agree with the model, as in
// TestTableAgreesWithByteModel, found by coverage.
func FuzzTable(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(tableHistory))
}
