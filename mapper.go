package vkomp

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/sched/transfer"
)

// Mapper says how values of type T, which may contain Go pointers, are mapped (OpenMP 5.0
// declare mapper directive). The device has a pointer-free image of type D in their place,
// because Go pointers have no meaning there; device addresses are never stored in Go
// pointers.
//
// Encode and Decode determine how a value's own members are mapped: Encode copies the
// members that are mapped to, Decode those that are mapped from. A copy to an image that is
// already on the device, by TargetUpdate or with Always, changes only the members that
// Encode sets; in a new image the other members are zero. A copy to the host changes what
// Decode changes.
//
// Both run on goroutines of the runtime. A panic in one is a failure of the task, and so is
// runtime.Goexit, for example by testing.T.FailNow.
//
// D must have the layout of the kernel's block: its fields have the offsets of the std430 or
// scalar layout, and a DeviceAddress stands for a buffer reference.
type Mapper[T, D any] struct {
	// Encode writes the members of the value to its image, except addresses, when the value
	// is copied to the device. The result must depend only on the value: Encode may be
	// called several times for one copy, with images of any contents.
	Encode func(image *D, value *T)
	// Decode writes the members back to the value when it is copied to the host.
	Decode func(value *T, image *D)
	// Members returns the slices that the value's pointers point to, with their map types,
	// and the fields of the image for their addresses. It is called when the value is made
	// an argument; the image is only used for the addresses of its fields. A panic in it is the
	// error of the construct that gets the argument.
	Members func(value *T, image *D) []Member
}

// DeviceAddress is the address of device memory in an image.
type DeviceAddress uint64

// Member is a slice to which a mapped value has a pointer: see Attach.
type Member struct {
	// address is the position of the pointer in the image.
	address unsafe.Pointer
	arg     Arg
}

// Attach maps a slice that a value points to, made with To, From, ToFrom or Alloc, and makes
// the image's field point to it (OpenMP 5.0 pointer attachment). The address is written when
// the image or the slice is new on the device and both are present.
func Attach(address *DeviceAddress, slice Arg) Member {
	return Member{address: unsafe.Pointer(address), arg: slice}
}

// To maps a value as the function To maps a slice. The value's map type limits those of its
// members: one that is mapped ToFrom is only copied to the device (OpenMP 5.0 §2.19.7.3,
// map-type decay). Modifiers apply to the members too.
func (m Mapper[T, D]) To(value *T) Arg { return m.arg(value, memory.MapTo) }

// From maps a value as the function From maps a slice.
func (m Mapper[T, D]) From(value *T) Arg { return m.arg(value, memory.MapFrom) }

// ToFrom maps a value both ways, and each of its members with the map type of Members.
func (m Mapper[T, D]) ToFrom(value *T) Arg { return m.arg(value, memory.MapToFrom) }

// Alloc allocates storage for the value's image and its members, and copies nothing except
// addresses.
func (m Mapper[T, D]) Alloc(value *T) Arg { return m.arg(value, memory.MapAlloc) }

// Release decrements the counts of the value and its members, in TargetExitData.
func (m Mapper[T, D]) Release(value *T) Arg { return m.arg(value, memory.MapRelease) }

// Delete removes the value and its members from the device, in TargetExitData.
func (m Mapper[T, D]) Delete(value *T) Arg { return m.arg(value, memory.MapDelete) }

func (m Mapper[T, D]) arg(value *T, t memory.MapType) Arg {
	escape(unsafe.Pointer(value))
	var image D
	i := &imageArg{size: uint64(unsafe.Sizeof(image))}
	i.rare.image = i
	escape(unsafe.Pointer(i))
	a := Arg{kind: argMap, mapType: t, rare: &i.rare}
	a.at = DevicePtr{host: memory.Section{Ptr: unsafe.Pointer(value), Size: uint64(unsafe.Sizeof(*value))}, elem: reflect.TypeFor[T]()}
	switch path := pointerPath(reflect.TypeFor[D]()); {
	case value == nil:
		i.err = fmt.Errorf("%w: no value to map", ErrInvalidArgument)
	case i.size == 0 || a.at.host.Size == 0:
		i.err = fmt.Errorf("%w: values of %v with images of %v have no bytes", ErrInvalidArgument, reflect.TypeFor[T](), reflect.TypeFor[D]())
	case path != "":
		i.err = fmt.Errorf("%w: images of %v hold Go pointers (%s), which mean nothing on a device", ErrInvalidArgument, reflect.TypeFor[D](), path)
	case t.To() && m.Encode == nil:
		i.err = fmt.Errorf("%w: map type %v of a mapper without Encode", ErrInvalidArgument, t)
	case t.From() && m.Decode == nil:
		i.err = fmt.Errorf("%w: map type %v of a mapper without Decode", ErrInvalidArgument, t)
	}
	if i.err != nil {
		return a
	}
	i.write = func(image unsafe.Pointer) error { m.Encode((*D)(image), value); return nil }
	i.read = func(image unsafe.Pointer) error { m.Decode(value, (*D)(image)); return nil }
	if m.Members != nil {
		image := new(D)
		i.err = protect.Call(func() error { return i.members(m.Members(value, image), unsafe.Pointer(image)) })
	}
	return a
}

// imageArg is the part of an Arg that only a Mapper sets.
type imageArg struct {
	// rare is what the Arg points to. Its image is this imageArg: one allocation has both.
	rare rareArg
	size uint64
	// write and read are those of transfer.Image.
	write, read func(image unsafe.Pointer) error
	slices      []imageMember
	err         error
}

// imageMember is a slice that the value points to.
type imageMember struct {
	offset uint64
	arg    Arg
}

// members sets the slices to those of the members of a value that has this image.
func (i *imageArg) members(members []Member, image unsafe.Pointer) error {
	for k, m := range members {
		offset := uint64(uintptr(m.address) - uintptr(image))
		switch {
		case m.address == nil || offset >= i.size || i.size-offset < pointerSize:
			return fmt.Errorf("%w: member %d is attached to no address in the image", ErrInvalidArgument, k)
		case m.arg.kind != argMap || m.arg.image() != nil || m.arg.part() != nil || m.arg.self || !m.arg.mapType.Enters():
			return fmt.Errorf("%w: member %d is not made with To, From, ToFrom or Alloc, or is Self", ErrInvalidArgument, k)
		}
		if err := m.arg.check(fmt.Sprintf("member %d", k)); err != nil {
			return err
		}
		i.slices = append(i.slices, imageMember{offset, m.arg})
	}
	return nil
}

// check returns an error for arguments that a mapped value cannot have.
func (i *imageArg) check(a *Arg, label string) error {
	switch {
	case i.err != nil:
		return fmt.Errorf("%s: %w", label, i.err)
	case a.self:
		return fmt.Errorf("%w: %s: an image is no storage of the host's own", ErrInvalidArgument, label)
	case a.part() != nil:
		return fmt.Errorf("%w: %s: a section of a mapped value", ErrInvalidArgument, label)
	}
	return nil
}

// member returns the k-th of the slices that a mapped value points to, with the map type that remains
// under that of the value (OpenMP 5.0 §2.19.7.3).
func (a *Arg) member(k int) Arg {
	m := a.members()[k].arg
	switch inner := m.mapType; {
	case a.mapType == memory.MapRelease || a.mapType == memory.MapDelete:
		m.mapType = a.mapType
	case a.mapType.To() && a.mapType.From():
	case a.mapType.To() && inner.To():
		m.mapType = memory.MapTo
	case a.mapType.From() && inner.From():
		m.mapType = memory.MapFrom
	default:
		m.mapType = memory.MapAlloc
	}
	m.always, m.deletes = m.always || a.always, m.deletes || a.deletes
	m.presence = max(m.presence, a.presence)
	return m
}

// addTo adds the image for the last item of list, which was made from a, and, by calls of
// add, the items of its members.
func (i *imageArg) addTo(images []transfer.Image, list *[]memory.Map, a *Arg, label string, add func(a *Arg, label string) error) ([]transfer.Image, error) {
	item := len(*list) - 1
	(*list)[item].DeviceSize = i.size
	image := transfer.Image{Item: item, Write: i.write, Read: i.read}
	for k := range i.slices {
		m := a.member(k)
		image.Attach = append(image.Attach, transfer.Attachment{Offset: i.slices[k].offset, Item: len(*list)})
		if err := add(&m, fmt.Sprintf("%s, member %d", label, k)); err != nil {
			return nil, err
		}
	}
	return append(images, image), nil
}
