package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/protect"
)

// put writes the host's bytes of a transfer to memory that the host sees, one behind the
// other or where they lie on the device's side. It returns how many bytes of host storage it
// has copied.
func (x *transfer) put(to unsafe.Pointer, packed bool) (copied uint64, err error) {
	switch {
	case x.image != nil:
		return x.image.write(to, x.size, !x.fresh, x.kind == copyIn)
	case x.rows == nil:
		return copyBytes(to, x.host.Ptr, x.size)
	case packed:
		return x.copyRows(to, x.host.Ptr, x.rows.Packed())
	}
	return x.copyRows(to, x.host.Ptr, *x.rows)
}

// get is the opposite of put: it writes the host's storage.
func (x *transfer) get(from unsafe.Pointer, packed bool) (copied uint64, err error) {
	switch {
	case x.image != nil:
		return x.size, x.image.read(from, x.size)
	case x.rows == nil:
		return copyBytes(x.host.Ptr, from, x.size)
	case packed:
		return x.copyRows(x.host.Ptr, from, x.rows.Unpacked())
	}
	return x.copyRows(x.host.Ptr, from, *x.rows)
}

// between copies from one place of device memory to another, both of which the host sees.
func (x *transfer) between(to, from unsafe.Pointer) (err error) {
	if x.rows == nil {
		_, err = copyBytes(to, from, x.size)
	} else {
		_, err = x.copyRows(to, from, *x.rows)
	}
	return err
}

// copyRows copies rows between memory that the host sees. Where the device memory of a
// section is the section itself there is nothing to copy.
func (x *transfer) copyRows(dst, src unsafe.Pointer, rows memory.Rows) (copied uint64, err error) {
	if x.block != nil && dst == src {
		return 0, nil
	}
	err = protect.Touch(func() {
		n := rows.RowBytes
		for d, s := range rows.All() {
			copy(unsafe.Slice((*byte)(unsafe.Add(dst, d)), n), unsafe.Slice((*byte)(unsafe.Add(src, s)), n))
		}
	})
	return rows.Bytes(), err
}

// copyBytes copies n bytes between memory that does not overlap, or that is the
// same, and returns how many it copied.
func copyBytes(to, from unsafe.Pointer, n uint64) (copied uint64, err error) {
	if to == from {
		return 0, nil
	}
	err = protect.Touch(func() { copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n)) })
	return n, err
}

func fillBytes(to unsafe.Pointer, value byte, n uint64) {
	bytes := unsafe.Slice((*byte)(to), n)
	for i := range bytes {
		bytes[i] = value
	}
}
