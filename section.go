package vkomp

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
)

// Span selects Count indices of one dimension: Start, Start+Stride, and so on (OpenMP 5.0
// array section [Start : Count : Stride]). A Stride of 0 counts as 1.
type Span struct {
	Start, Count, Stride int // in elements
}

// Shape says that the slice is an array with these dimensions, the outermost first (OpenMP
// 5.0 shape-operator). The slice must be at least that long; the rest of it is left out. At
// most MaxRectDims dimensions are possible.
func (a Arg) Shape(dims ...int) Arg {
	section := arraySection{dims: slices.Clone(dims)}
	if part := a.part(); part != nil {
		section.spans = part.spans
	}
	if section.dims == nil {
		section.dims = []int{}
	}
	return a.parted(section)
}

// Section selects part of the slice (OpenMP 5.0 array section), with a span for each
// dimension of its Shape, the outermost first; without a Shape the slice has one dimension.
// Dimensions without a span are selected as a whole. Only TargetUpdate accepts a section that
// is not contiguous: for others it is ErrInvalidArgument, as is one that exceeds the array. A
// section without elements is at the beginning of the slice.
func (a Arg) Section(spans ...Span) Arg {
	section := arraySection{spans: slices.Clone(spans)}
	if part := a.part(); part != nil {
		section.dims = part.dims
	}
	return a.parted(section)
}

// parted returns the item with another array section.
func (a Arg) parted(section arraySection) Arg {
	rare := &rareArg{section: section, parted: true, image: a.image()}
	escape(unsafe.Pointer(rare))
	a.rare = rare
	return a
}

// arraySection is a section of an array. It is immutable.
type arraySection struct {
	// dims is nil for a slice of one dimension.
	dims  []int
	spans []Span
}

// selection is an array section in bytes.
type selection struct {
	// section reaches from the first selected byte to the end of the last.
	section memory.Section
	// gaps says that it contains bytes that are not selected.
	gaps bool
	elem uint64
	dims []uint64
	// spans are relative to the beginning of section.
	spans []memory.Span
}

// selected evaluates the item's array section.
func (a *Arg) selected() (selection, error) {
	elem := uint64(a.at.elem.Size())
	if elem == 0 {
		return selection{}, fmt.Errorf("%w: a section of %v, whose elements have no bytes", ErrInvalidArgument, a.at.elem)
	}
	elements := a.at.host.Size / elem
	part := a.part()
	dims := part.dims
	if dims == nil {
		dims = []int{int(elements)}
	}
	if n := len(dims); n == 0 || n > memory.MaxRectDims {
		return selection{}, fmt.Errorf("%w: a shape of %d dimensions: 1 to %d are possible", ErrInvalidArgument, n, memory.MaxRectDims)
	}
	if len(part.spans) > len(dims) {
		return selection{}, fmt.Errorf("%w: %d spans for %d dimensions", ErrInvalidArgument, len(part.spans), len(dims))
	}
	left, none := elements, slices.Contains(dims, 0)
	for _, d := range dims {
		if d < 0 || d > 0 && left/uint64(d) == 0 && !none {
			return selection{}, fmt.Errorf("%w: shape %d of a slice of %d elements", ErrInvalidArgument, dims, elements)
		}
		left /= uint64(max(d, 1))
	}
	s := selection{section: a.at.host, elem: elem, dims: make([]uint64, len(dims)), spans: make([]memory.Span, len(dims))}
	first, last, volume, bytes := uint64(0), uint64(0), elem, elem
	for i := len(dims) - 1; i >= 0; i-- {
		span := Span{Count: dims[i], Stride: 1}
		if i < len(part.spans) {
			span = part.spans[i]
		}
		if span.Stride == 0 {
			span.Stride = 1
		}
		if span.Start < 0 || span.Count < 0 || span.Stride < 0 || span.Start > dims[i] ||
			span.Count > 0 && (span.Start == dims[i] || span.Count-1 > (dims[i]-1-span.Start)/span.Stride) {
			return selection{}, fmt.Errorf("%w: section [%d:%d:%d] of dimension %d, which has %d elements", ErrInvalidArgument, span.Start, span.Count, span.Stride, i, dims[i])
		}
		s.dims[i] = uint64(dims[i])
		s.spans[i] = memory.Span{Count: uint64(span.Count), Stride: uint64(span.Stride)}
		volume *= uint64(span.Count)
		if volume > 0 {
			first += uint64(span.Start) * bytes
			last += uint64((span.Count-1)*span.Stride) * bytes
		}
		bytes *= uint64(dims[i])
	}
	if volume == 0 {
		s.section.Size = 0
		return s, nil
	}
	s.section = memory.Section{Ptr: unsafe.Add(a.at.host.Ptr, first), Size: last + elem}
	s.gaps = s.section.Size != volume
	return s, nil
}

// contiguous returns the storage of a section without gaps.
func (a *Arg) contiguous() (memory.Section, error) {
	s, err := a.selected()
	if err == nil && s.gaps {
		err = fmt.Errorf("%w: a section that is not contiguous: only target update takes those", ErrInvalidArgument)
	}
	return s.section, err
}

// rows returns the rows of bytes of a section with gaps, on the heap.
func (s *selection) rows() (*memory.Rows, error) {
	rows, err := memory.Strided(s.elem, s.dims, s.spans)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	return &rows, nil
}
