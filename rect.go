package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
)

// MaxRectDims is the largest number of dimensions of a Rect, which omp_target_memcpy_rect
// returns when it is called with null pointers.
const MaxRectDims = memory.MaxRectDims

// Rect describes a rectangular part of one array and its destination in another. All fields
// except Elem are in elements, with one entry for each dimension, the outermost first; the
// last dimension is contiguous.
type Rect struct {
	// Elem is the size of an element in bytes.
	Elem int
	// Volume is the extent of the part.
	Volume []int
	// DstOffsets and SrcOffsets are the beginning of the part in each array.
	DstOffsets, SrcOffsets []int
	// DstDims and SrcDims are the extents of the whole arrays.
	DstDims, SrcDims []int
}

// MemcpyRect copies a rectangular part of the array at src to the array at dst (OpenMP 4.5
// omp_target_memcpy_rect), between the same kinds of memory and with the same errors as
// [Runtime.Memcpy]. It is ErrInvalidArgument if the parts overlap, if the slices of r differ
// in length or do not have 1 to MaxRectDims elements, if a number is negative, if an element
// has no size, or if a part is not inside its array. Only the parts need to be valid memory.
// An empty volume copies nothing, wherever the runtime's pointers lead.
func (rt *Runtime) MemcpyRect(ctx context.Context, dst, src DevicePtr, r Rect) error {
	return rt.memcpyRect(ctx, &dst, &src, hide(&r), false, nil)
}

// MemcpyRectAsync is MemcpyRect as a task that may be deferred, with depend items (OpenMP
// 5.1 omp_target_memcpy_rect_async); see [Runtime.MemcpyAsync]. It does not retain r.
func (rt *Runtime) MemcpyRectAsync(ctx context.Context, dst, src DevicePtr, r Rect, depend ...Depend) error {
	return rt.memcpyRect(ctx, &dst, &src, hide(&r), true, depend)
}

func (rt *Runtime) memcpyRect(ctx context.Context, dst, src *DevicePtr, rect *Rect, async bool, depend []Depend) error {
	r := newRoutine(rt, "memcpy rect")
	r.form = observe.RectRoutine
	err := rt.construct(ctx)
	if err == nil {
		r.rows, err = r.normal(rect)
	}
	if err == nil {
		err = r.between(dst, src)
	}
	return r.generate(ctx, async, dst, src, depend, err)
}

// rectNumbers holds the numbers of a Rect in the form of package memory.
type rectNumbers struct {
	memory.Rect
	all [5][MaxRectDims]uint64
}

// normal returns the normal form of rect.
func (r *routine) normal(rect *Rect) (memory.Rows, error) {
	if rect.Elem < 0 {
		return memory.Rows{}, fmt.Errorf("%w: elements of %d bytes", ErrInvalidArgument, rect.Elem)
	}
	m := &r.rect
	m.Elem = uint64(rect.Elem)
	names := [...]string{"Volume", "DstOffsets", "SrcOffsets", "DstDims", "SrcDims"}
	to := [...]*[]uint64{&m.Volume, &m.DstOffsets, &m.SrcOffsets, &m.DstDims, &m.SrcDims}
	for i, from := range [...][]int{rect.Volume, rect.DstOffsets, rect.SrcOffsets, rect.DstDims, rect.SrcDims} {
		if n := len(from); n > MaxRectDims {
			return memory.Rows{}, fmt.Errorf("%w: %s has %d dimensions, and %d are possible", ErrInvalidArgument, names[i], n, MaxRectDims)
		}
		for k, v := range from {
			if v < 0 {
				return memory.Rows{}, fmt.Errorf("%w: %s[%d] is %d", ErrInvalidArgument, names[i], k, v)
			}
			m.all[i][k] = uint64(v)
		}
		*to[i] = m.all[i][:len(from)]
	}
	rows, err := m.Rows()
	if err != nil {
		return memory.Rows{}, fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	return rows, nil
}
