package transfer

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
)

// Image is a mapped value whose corresponding storage is not a copy of its bytes but a pointer-free
// image of it (OpenMP declare mapper). The item's DeviceSize is the image's size.
type Image struct {
	// Item is the index of the value's item among the region's maps.
	Item int
	// Write sets the members of an image that the map of the value includes, to what they are in
	// the value. It leaves the other members alone and does not depend on what the image held. It
	// may be called more than once for one copy. Read reads the value from an image. Neither has
	// to do with attached pointers. They are code of the program's, so however they fail, that is
	// the task's failure (see protect.Apart).
	Write, Read func(image unsafe.Pointer) error
	// Attach lists the image's pointers to other items. The task keeps the slice.
	Attach []Attachment

	// Attached are the pointers with which the image is copied in: those that it has, and those that the task attaches to it
	// by any item. New are those that it attaches by this one.
	Attached, New Pointers
	// parts are the bytes to copy: those that Write set, of an image whose storage was there
	// before, otherwise all.
	parts []order.Span
}

// Attachment is a pointer in an image, of 8 bytes: the device address of an item's
// storage (OpenMP 5.1 §2.21.7.1, pointer attachment).
type Attachment struct {
	// Offset is the offset of the pointer in the image, in bytes.
	Offset uint64
	// Item is the index of the item that it points to.
	Item int
}

// Attached is a pointer in an image: where it is, in bytes, and the device address that it has.
type Attached struct{ Offset, Address uint64 }

// Pointers are the pointers of an image, by their offsets.
type Pointers []Attached

// Point adds a pointer. It replaces one at the same place. An image can have thousands of pointers, most often added in
// the order of their offsets.
func (p *Pointers) Point(a Attached) {
	at := len(*p)
	if at > 0 && a.Offset <= (*p)[at-1].Offset {
		var found bool
		at, found = slices.BinarySearchFunc(*p, a.Offset, func(o Attached, offset uint64) int { return cmp.Compare(o.Offset, offset) })
		if found {
			(*p)[at] = a
			return
		}
	}
	*p = slices.Insert(*p, at, a)
}

// write writes the image, with its pointers, to memory that the host sees, and returns the number
// of its bytes. An image that is new is written as a whole. If present says that the device has it
// already, only parts are written: what Write sets and, with attach, the pointers. The device may
// have changed the rest, or be about to.
func (image *Image) write(to unsafe.Pointer, size uint64, present, attach bool) (uint64, error) {
	// The image is not made in place, because device memory may be slow to read.
	set := scratch(size)
	if err := image.call(image.Write, set); err != nil {
		return 0, err
	}
	image.parts = append(image.parts[:0], order.Span{Start: 0, Size: size})
	if present {
		// Bytes that Write sets are the same in both images, whatever these held before. The
		// others are zero in the one and 0xff in the other.
		other := scratch(size)
		for i := range other {
			other[i] = 0xff
		}
		if err := image.call(image.Write, other); err != nil {
			return 0, err
		}
		for i := range other {
			other[i] &^= set[i] // 0xff where nothing was set
		}
		for _, p := range image.Attached {
			if attach {
				clear(other[p.Offset:][:8])
			}
		}
		image.parts = partsOf(other, image.parts[:0])
	}
	for _, p := range image.Attached {
		binary.NativeEndian.PutUint64(set[p.Offset:], p.Address)
	}
	for _, p := range image.parts {
		copy(unsafe.Slice((*byte)(unsafe.Add(to, p.Start)), p.Size), set[p.Start:])
	}
	return size, nil
}

// partsOf appends the runs of bytes that Write has set to parts. kept has 0xff for each byte that it
// has not set.
func partsOf(kept []byte, parts []order.Span) []order.Span {
	for i, b := range kept {
		switch last := len(parts) - 1; {
		case b == 0xff:
		case last >= 0 && parts[last].Start+parts[last].Size == uint64(i):
			parts[last].Size++
		default:
			parts = append(parts, order.Span{Start: uint64(i), Size: 1})
		}
	}
	return parts
}

// read reads the value from an image in memory that the host sees.
func (image *Image) read(from unsafe.Pointer, size uint64) error {
	bytes := scratch(size)
	copy(bytes, unsafe.Slice((*byte)(from), size))
	return image.call(image.Read, bytes)
}

// call calls one of the program's functions with an image in memory of its own.
func (image *Image) call(f func(unsafe.Pointer) error, bytes []byte) error {
	return protect.Apart(func() error { return f(unsafe.Pointer(&bytes[0])) })
}

// scratch returns memory for an image of any type of that size.
func scratch(size uint64) []byte {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}
