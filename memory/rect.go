package memory

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// MaxRectDims is the largest number of dimensions of a Rect and of a strided
// section. omp_target_memcpy_rect returns it when it is called with null pointers.
const MaxRectDims = 8

// Rect describes a copy between rectangular parts of two arrays, as
// omp_target_memcpy_rect does (OpenMP 5.1 §3.8.7). All counts are in elements, the
// first dimension is the outermost, and all slices have the same length.
type Rect struct {
	Elem       uint64   // bytes of an element
	Volume     []uint64 // extent of the part that is copied
	DstOffsets []uint64 // beginning of the part in the destination
	SrcOffsets []uint64 // beginning of the part in the source
	DstDims    []uint64 // extent of the whole destination
	SrcDims    []uint64 // extent of the whole source
}

// Span selects Count indices of one dimension: Start, Start+Stride, and so on. A
// Stride of 0 is 1.
type Span struct{ Start, Count, Stride uint64 }

// Rows describes a copy as rows of bytes, the normal form of a Rect: each row is
// as long as it is contiguous on both sides, no dimension has a single index, and
// dimensions that can be merged are merged. The zero value copies nothing. Offsets
// are bytes from the beginning of either array.
type Rows struct {
	RowBytes uint64 // of each row; 0 when nothing is copied
	dst, src uint64 // offsets of the first row
	dims     int
	axes     [MaxRectDims]axis // the first dims are used, the innermost first
}

// axis is one dimension of rows: the number of indices, at least 2, and their
// distance in bytes in the destination and in the source.
type axis struct{ count, dst, src uint64 }

// Rows returns the normal form of r. The error matches ErrInvalidRect: the
// slices' lengths differ or are not 1 to MaxRectDims, an element has no bytes, a
// part does not fit in its array, or an array has more bytes than 64 bits count.
// A Rect of volume zero gives Rows without bytes.
func (r *Rect) Rows() (Rows, error) {
	n := len(r.Volume)
	for _, s := range [...][]uint64{r.DstOffsets, r.SrcOffsets, r.DstDims, r.SrcDims} {
		if len(s) != n {
			return Rows{}, fmt.Errorf("memory: rect: %w: %d dimensions and %d", ErrInvalidRect, n, len(s))
		}
	}
	var dst, src layout
	if err := dst.of("rect: destination", r.Elem, r.DstDims); err != nil {
		return Rows{}, err
	}
	if err := src.of("rect: source", r.Elem, r.SrcDims); err != nil {
		return Rows{}, err
	}
	rows := Rows{RowBytes: r.Elem}
	for i := n - 1; i >= 0; i-- {
		d, s := Span{r.DstOffsets[i], r.Volume[i], 1}, Span{r.SrcOffsets[i], r.Volume[i], 1}
		if err := d.within("rect: destination", i, r.DstDims[i]); err != nil {
			return Rows{}, err
		}
		if err := s.within("rect: source", i, r.SrcDims[i]); err != nil {
			return Rows{}, err
		}
		rows.dst += d.Start * dst[i]
		rows.src += s.Start * src[i]
		rows.push(axis{r.Volume[i], dst[i], src[i]})
	}
	if slices.Contains(r.Volume, 0) {
		return Rows{}, nil
	}
	return rows, nil
}

// Strided returns the rows of a strided section (OpenMP 5.0 §2.1.5), as target
// update copies it: the array of dims elements, the first dimension the outermost,
// has the same layout on host and device. The error matches ErrInvalidRect, as
// that of Rect.Rows does.
func Strided(elem uint64, dims []uint64, spans []Span) (Rows, error) {
	if len(spans) != len(dims) {
		return Rows{}, fmt.Errorf("memory: strided section: %w: %d dimensions and %d spans", ErrInvalidRect, len(dims), len(spans))
	}
	var bytes layout
	if err := bytes.of("strided section", elem, dims); err != nil {
		return Rows{}, err
	}
	rows, nothing := Rows{RowBytes: elem}, false
	for i := len(dims) - 1; i >= 0; i-- {
		s := spans[i]
		s.Stride = max(s.Stride, 1)
		if err := s.within("strided section", i, dims[i]); err != nil {
			return Rows{}, err
		}
		if s.Count == 0 {
			nothing = true
			continue
		}
		rows.dst += s.Start * bytes[i]
		stride := s.Stride * bytes[i] // with a single index the stride has no effect and may be anything
		rows.push(axis{s.Count, stride, stride})
	}
	if nothing {
		return Rows{}, nil
	}
	rows.src = rows.dst
	return rows, nil
}

// layout holds the distance in bytes between neighbours in each dimension.
type layout [MaxRectDims]uint64

// of computes the layout of an array of dims elements. An array with an empty
// dimension has no bytes, whatever the other dimensions are.
func (l *layout) of(what string, elem uint64, dims []uint64) error {
	if n := len(dims); n < 1 || n > MaxRectDims {
		return fmt.Errorf("memory: %s: %w: %d dimensions, 1 to %d are possible", what, ErrInvalidRect, n, MaxRectDims)
	}
	if elem == 0 {
		return fmt.Errorf("memory: %s: %w: elements of no bytes", what, ErrInvalidRect)
	}
	if slices.Contains(dims, 0) {
		return nil
	}
	bytes := elem
	for i, dim := range slices.Backward(dims) {
		l[i] = bytes
		high, low := bits.Mul64(bytes, dim)
		if high != 0 {
			return fmt.Errorf("memory: %s: %w: dimensions %d of %d bytes do not fit in 64 bits", what, ErrInvalidRect, dims, elem)
		}
		bytes = low
	}
	return nil
}

// within returns an error unless all indices of s, whose stride is not 0, are below
// dim.
func (s Span) within(what string, i int, dim uint64) error {
	if s.Start <= dim && (s.Count == 0 || s.Start < dim && (s.Count-1) <= (dim-1-s.Start)/s.Stride) {
		return nil
	}
	return fmt.Errorf("memory: %s: %w: dimension %d: %d elements from %d on, every %d, where there are %d",
		what, ErrInvalidRect, i, s.Count, s.Start, s.Stride, dim)
}

// push adds a dimension outside of those that r has. It extends the row or the
// outermost axis if the two are contiguous.
func (r *Rows) push(a axis) {
	switch outer := &r.axes[max(r.dims-1, 0)]; {
	case a.count == 1:
	case a.dst == r.RowBytes && a.src == r.RowBytes:
		r.RowBytes *= a.count
	case r.dims > 0 && a.dst == outer.count*outer.dst && a.src == outer.count*outer.src:
		outer.count *= a.count
	default:
		r.axes[r.dims] = a
		r.dims++
	}
}

// Count returns the number of rows.
func (r Rows) Count() uint64 {
	if r.RowBytes == 0 {
		return 0
	}
	n := uint64(1)
	for _, a := range r.axes[:r.dims] {
		n *= a.count
	}
	return n
}

// Bytes returns how many bytes are copied.
func (r Rows) Bytes() uint64 { return r.Count() * r.RowBytes }

// DstSpan returns the range of the destination from the first byte that is
// written to past the last one.
func (r Rows) DstSpan() (offset, size uint64) {
	size = r.RowBytes
	for _, a := range r.axes[:r.dims] {
		size += (a.count - 1) * a.dst
	}
	return r.dst, size
}

// SrcSpan returns the range of the source from the first byte that is read to
// past the last one.
func (r Rows) SrcSpan() (offset, size uint64) {
	size = r.RowBytes
	for _, a := range r.axes[:r.dims] {
		size += (a.count - 1) * a.src
	}
	return r.src, size
}

// All iterates over the rows in the order of the array and yields the offset of
// each in the destination and in the source.
func (r Rows) All() iter.Seq2[uint64, uint64] {
	return func(yield func(dst, src uint64) bool) { r.From(0, yield) }
}

// From calls yield for the rows from the first-th on, as All does, until it returns
// false.
func (r *Rows) From(first uint64, yield func(dst, src uint64) bool) {
	if first >= r.Count() {
		return
	}
	dst, src := r.dst, r.src
	var index [MaxRectDims]uint64
	for i, a := range r.axes[:r.dims] {
		index[i] = first % a.count
		dst += index[i] * a.dst
		src += index[i] * a.src
		first /= a.count
	}
	for yield(dst, src) {
		i := 0
		for ; i < r.dims; i++ {
			a := r.axes[i]
			if index[i]++; index[i] < a.count {
				dst += a.dst
				src += a.src
				break
			}
			index[i] = 0
			dst -= (a.count - 1) * a.dst
			src -= (a.count - 1) * a.src
		}
		if i == r.dims {
			return
		}
	}
}

// Overlap reports whether a byte of the destination, which begins at dst, is also one of the source, which begins at src.
func (r *Rows) Overlap(dst, src uint64) bool {
	dstAt, dstSize := r.DstSpan()
	srcAt, srcSize := r.SrcSpan()
	if r.RowBytes == 0 || dst+dstAt+dstSize <= src+srcAt || src+srcAt+srcSize <= dst+dstAt {
		return false
	}
	if r.dims == 0 {
		return true
	}
	// Rows are in ascending order on both sides.
	nextWritten, stop := iter.Pull2(r.All())
	defer stop()
	w, _, more := nextWritten()
	for _, s := range r.All() {
		for more && dst+w+r.RowBytes <= src+s {
			w, _, more = nextWritten()
		}
		if more && dst+w < src+s+r.RowBytes {
			return true
		}
	}
	return false
}

// InPlace reports whether each row is copied to where it is, if the destination begins at dst and the source at src.
func (r *Rows) InPlace(dst, src uint64) bool {
	return dst+r.dst == src+r.src && !slices.ContainsFunc(r.axes[:r.dims], func(a axis) bool { return a.dst != a.src })
}

// Packed returns the copy from the same source to a contiguous buffer. Unpacked
// is the copy from that buffer to r's destination.
func (r Rows) Packed() Rows {
	p := Rows{RowBytes: r.RowBytes, src: r.src}
	bytes := r.RowBytes
	for _, a := range r.axes[:r.dims] {
		p.push(axis{a.count, bytes, a.src})
		bytes *= a.count
	}
	return p
}

// Unpacked returns the copy from a contiguous buffer to the same destination.
func (r Rows) Unpacked() Rows {
	u := Rows{RowBytes: r.RowBytes, dst: r.dst}
	bytes := r.RowBytes
	for _, a := range r.axes[:r.dims] {
		u.push(axis{a.count, a.dst, bytes})
		bytes *= a.count
	}
	return u
}
