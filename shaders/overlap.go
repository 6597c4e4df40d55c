package shaders

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp"
)

// disjoint refuses slices that share storage: a kernel whose invocations read
// elements that others write has no defined result.
func disjoint[A, B any](aName string, a []A, bName string, b []B) error {
	aStart, aEnd := extent(a)
	bStart, bEnd := extent(b)
	if len(a) == 0 || len(b) == 0 || aEnd <= bStart || bEnd <= aStart {
		return nil
	}
	return fmt.Errorf("%w: %s and %s share storage", vkomp.ErrInvalidArgument, aName, bName)
}

// disjointOrSame is disjoint for kernels in which an invocation reads only the
// elements that it writes: these may work in place.
func disjointOrSame[T any](aName string, a []T, bName string, b []T) error {
	if len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b) {
		return nil
	}
	return disjoint(aName, a, bName, b)
}

func extent[T any](s []T) (start, end uintptr) {
	var zero T
	start = uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	return start, start + uintptr(len(s))*unsafe.Sizeof(zero)
}

// sameLength refuses slices of different lengths, or too long for a shader.
func sameLength(aName string, a int, bName string, b int) error {
	if a != b {
		return fmt.Errorf("%w: %s has %d elements, %s has %d", vkomp.ErrInvalidArgument, aName, a, bName, b)
	}
	return addressable(aName, a)
}

// addressable refuses a slice too long for a shader's index.
func addressable(name string, n int) error {
	if n > maxElements {
		return fmt.Errorf("%w: %s has %d elements, more than %d", vkomp.ErrInvalidArgument, name, n, maxElements)
	}
	return nil
}
