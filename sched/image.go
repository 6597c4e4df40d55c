package sched

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
)

// Image is a mapped value whose corresponding storage is no copy of its bytes but a
// pointer-free image of it (OpenMP declare mapper). The item's DeviceSize is the
// image's size.
type Image struct {
	// Item is the index of the value's item, in Region.Enter, in Region.Exit, or in
	// both.
	Item int
	// Write sets the members of the image that the value's map has in it, to what they
	// are in the value: others it leaves alone, and it depends on nothing that is in the
	// image before. It may be called more than once for one copy. Read reads the value
	// from an image. Neither has to do with attached pointers. They are the program's: what
	// they fail with, and how they fail, is the task's failure (see protect.Apart).
	Write, Read func(image unsafe.Pointer) error
	// Attach are the image's pointers to other items. The task keeps the slice.
	Attach []Attachment

	// pointers are those that the image has when the task enters.
	pointers []attached
	// parts are what Write set, of an image whose storage was there before.
	parts []order.Span
}

// Attachment is a pointer in an image, of 8 bytes: the device address of an item's
// storage (OpenMP 5.1 §2.21.7.1, pointer attachment).
type Attachment struct {
	// Offset is where it is in the image, in bytes.
	Offset uint64
	// Item is the index of the item that it points to.
	Item int
}

// attached is a pointer in the image that a block is, and what it points to.
type attached struct{ offset, address uint64 }

// image returns the image that an item is, nil for one that is mapped as it is.
func (t *target) image(item int) *Image {
	for i := range t.Images {
		if t.Images[i].Item == item {
			return &t.Images[i]
		}
	}
	return nil
}

// checkImagesLocked refuses items that are in a block as an image and otherwise.
func (t *target) checkImagesLocked() error {
	for i := range t.entry.uses {
		u, m := &t.entry.uses[i], &t.Enter[i]
		if u.Present == nil {
			continue
		}
		state := stateOf(u.Present)
		if u.Created && m.DeviceSize != 0 && m.Section == u.Present.Section {
			state.image = true
		}
		if state.image != (m.DeviceSize != 0) || state.image && (m.Section != u.Present.Section || m.DeviceSize != u.Present.Storage.Size) {
			return fmt.Errorf("%s: %w: %s is mapped with another image, or none", m.Label, memory.ErrPartialOverlap, u.Present.Section)
		}
	}
	return nil
}

// addAttachmentsLocked finds the pointers of images that are new, or that point to what is new,
// and adds transfers of those in an image which is not copied in anyway.
func (s *Scheduler) addAttachmentsLocked(t *target) {
	for i := range t.Images {
		image := &t.Images[i]
		if image.Item >= len(t.entry.uses) || t.entry.uses[image.Item].Present == nil {
			continue
		}
		u := &t.entry.uses[image.Item]
		state := stateOf(u.Present)
		image.pointers = append(image.pointers[:0], state.pointers...)
		for _, a := range image.Attach {
			pointee := &t.entry.uses[a.Item]
			if pointee.Present == nil || !u.Created && !pointee.Created {
				continue
			}
			address := s.pointerIntoLocked(pointee.Present, pointee.Offset).Address
			image.pointers = withPointer(image.pointers, attached{a.Offset, address})
			if u.CopyIn {
				continue
			}
			bytes := binary.NativeEndian.AppendUint64(nil, address)
			at := blockAt(u.Present) + a.Offset
			t.pin(state.Allocation)
			x := t.transfers.add(attach)
			x.host, x.size, x.label = memory.Section{Ptr: unsafe.Pointer(&bytes[0]), Size: 8}, 8, "attachment"
			x.dst, x.dstAt, x.block = state.Allocation, at, u.Present
		}
	}
}

// attachLocked notes the pointers that addAttachmentsLocked found.
func (t *target) attachLocked() {
	for i := range t.Images {
		if image := &t.Images[i]; image.Item < len(t.entry.uses) && t.entry.uses[image.Item].Present != nil {
			state := stateOf(t.entry.uses[image.Item].Present)
			state.pointers = append(state.pointers[:0], image.pointers...)
		}
	}
}

// withPointer returns the pointers with one more, or with another in its place.
func withPointer(pointers []attached, a attached) []attached {
	for i := range pointers {
		if pointers[i].offset == a.offset {
			pointers[i] = a
			return pointers
		}
	}
	return append(pointers, a)
}

// write writes the image, with its pointers, to memory that the host sees, and returns how
// many bytes that is. An image that is new is written as a whole. Of one that the device
// has already, only parts are: what Write sets, and with attach the pointers. The device
// may have changed the rest, and may be about to.
func (image *Image) write(to unsafe.Pointer, size uint64, present, attach bool) (uint64, error) {
	// Not in place: device memory may be slow to read.
	set := scratch(size)
	if err := image.call(image.Write, set); err != nil {
		return 0, err
	}
	image.parts = append(image.parts[:0], order.Span{Start: 0, Size: size})
	if present {
		// What Write sets is the same whatever the image held before, and what it does not
		// set is what the image held.
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
		for _, p := range image.pointers {
			if attach {
				clear(other[p.offset:][:8])
			}
		}
		image.parts = partsOf(other, image.parts[:0])
	}
	for _, p := range image.pointers {
		binary.NativeEndian.PutUint64(set[p.offset:], p.address)
	}
	for _, p := range image.parts {
		copy(unsafe.Slice((*byte)(unsafe.Add(to, p.Start)), p.Size), set[p.Start:])
	}
	return size, nil
}

// partsOf appends the runs of bytes other than 0xff.
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

// call calls one of the program's functions, for an image that is not the device's.
func (image *Image) call(f func(unsafe.Pointer) error, bytes []byte) error {
	return protect.Apart(func() error { return f(unsafe.Pointer(&bytes[0])) })
}

// scratch returns memory for an image of any type of that size.
func scratch(size uint64) []byte {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}
