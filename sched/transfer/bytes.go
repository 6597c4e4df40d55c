package transfer

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/protect"
)

// put writes the host's bytes of a transfer to memory that the host sees: packed one behind the
// other, or where they lie on the device's side. It returns how many bytes of host storage it has
// copied.
func (x *Transfer) put(to unsafe.Pointer, packed bool) (copied uint64, err error) {
	switch {
	case x.Image != nil:
		return x.Image.write(to, x.Size, !x.Fresh, x.Kind == CopyIn)
	case x.rows == nil:
		return copyBytes(to, x.Host.Ptr, x.Size)
	case packed:
		return x.copyRows(to, x.Host.Ptr, x.rows.Packed())
	}
	return x.copyRows(to, x.Host.Ptr, *x.rows)
}

// get is the opposite of put: it reads the memory and writes the host's storage.
func (x *Transfer) get(from unsafe.Pointer, packed bool) (copied uint64, err error) {
	switch {
	case x.Image != nil:
		return x.Size, x.Image.read(from, x.Size)
	case x.rows == nil:
		return copyBytes(x.Host.Ptr, from, x.Size)
	case packed:
		return x.copyRows(x.Host.Ptr, from, x.rows.Unpacked())
	}
	return x.copyRows(x.Host.Ptr, from, *x.rows)
}

// between copies from one place of device memory to another, both of which the host sees.
func (x *Transfer) between(to, from unsafe.Pointer) (err error) {
	if x.rows == nil {
		_, err = copyBytes(to, from, x.Size)
	} else {
		_, err = x.copyRows(to, from, *x.rows)
	}
	return err
}

// copyRows copies rows between memory that the host sees. If the device memory of a section is the
// section itself, there is nothing to copy.
func (x *Transfer) copyRows(dst, src unsafe.Pointer, rows memory.Rows) (copied uint64, err error) {
	if x.Block != nil && dst == src {
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

// copyBytes copies n bytes, and returns how many it copied: none if to and from are the same. The
// storage is the program's and may not be accessible, which is an error (see protect.Touch).
func copyBytes(to, from unsafe.Pointer, n uint64) (copied uint64, err error) {
	if to == from {
		return 0, nil
	}
	err = protect.Touch(func() { copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n)) })
	return n, err
}

// fillBytes sets n bytes to a value.
func fillBytes(to unsafe.Pointer, value byte, n uint64) {
	bytes := unsafe.Slice((*byte)(to), n)
	for i := range bytes {
		bytes[i] = value
	}
}
