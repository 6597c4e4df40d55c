package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/memory"
)

// MaxRectDims is the number of dimensions that a Rect can have: what
// omp_target_memcpy_rect answers for two null pointers.
const MaxRectDims = memory.MaxRectDims

// Rect says which part of one array is copied to which of another. All but Elem are
// in elements, one for each dimension, the outermost first; the last dimension is
// contiguous.
type Rect struct {
	// Elem is the size of an element in bytes.
	Elem int
	// Volume is how much is copied.
	Volume []int
	// DstOffsets and SrcOffsets are where the parts begin in the arrays.
	DstOffsets, SrcOffsets []int
	// DstDims and SrcDims are what the arrays have.
	DstDims, SrcDims []int
}

// MemcpyRect copies the part of the array at src that r says to the array at dst
// (OpenMP 4.5 omp_target_memcpy_rect), anywhere that [Runtime.Memcpy] does, with its
// errors. Parts that overlap are ErrInvalidArgument, as are dimensions of different
// numbers, none or more than MaxRectDims of them, a negative number, an element
// without bytes, and a part that is not in its array. Of the arrays only the parts
// need be there. A volume of nothing does nothing, whatever the pointers.
func (rt *Runtime) MemcpyRect(ctx context.Context, dst, src DevicePtr, r Rect) error {
	return rt.memcpyRect(ctx, &dst, &src, hide(&r), false, nil)
}

// MemcpyRectAsync is MemcpyRect as a task that may be deferred, with depend items
// (OpenMP 5.1 omp_target_memcpy_rect_async); see [Runtime.MemcpyAsync]. It keeps
// nothing of r.
func (rt *Runtime) MemcpyRectAsync(ctx context.Context, dst, src DevicePtr, r Rect, depend ...Depend) error {
	return rt.memcpyRect(ctx, &dst, &src, hide(&r), true, depend)
}

func (rt *Runtime) memcpyRect(ctx context.Context, dst, src *DevicePtr, rect *Rect, async bool, depend []Depend) error {
	r := newRoutine(rt, "memcpy rect")
	var rows memory.Rows
	err := rt.construct(ctx)
	if err == nil {
		rows, err = r.normal(rect)
	}
	if err == nil {
		err = r.between(dst, src, rows)
	}
	if err == nil && r.overlaps() {
		err = fmt.Errorf("%w: the parts from %v and to %v overlap", ErrInvalidArgument, *src, *dst)
	}
	return r.generate(ctx, async, depend, err)
}

// rectNumbers are the numbers of a Rect, as package memory takes them.
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
