package vkomp

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
)

// Arg is one item of a construct: storage with its map type or the direction of its
// motion, memory of a device, or a firstprivate value. In a target region the k-th item
// with storage is bound to binding k of the kernel's descriptor set 0, and the values fill
// the kernel's push constants in order.
//
// Modifiers return a changed copy: To(x).Always().Present().
//
// An Arg refers to the caller's slice; it copies a value when it is made.
type Arg struct {
	// The size is a multiple of 16 bytes. While a directive is made, an Arg is copied several times in pieces of 16 bytes. If
	// the last two pieces overlapped, each copy would have to wait until the one before it is in the cache.

	// at is a slice, as HostPtr returns it, or memory of a device. For a value of more
	// than inlineValue bytes it is host storage that holds the value.
	at DevicePtr
	// size is the size in bytes of a value or of the elements of HasDeviceAddr. For other
	// pointers it is the number of bytes up to the slice's capacity.
	size     int
	kind     argKind
	mapType  memory.MapType
	presence memory.Presence
	// always, deletes and self say which of the map-type modifiers always, delete and self the
	// argument has.
	always, deletes, self bool
	// close is the close modifier, a hint.
	close bool
	// data holds a value of up to inlineValue bytes.
	data [inlineValue]byte
	// rare is nil for arguments that have neither an array section nor an image.
	rare *rareArg
	// param is the parameter whose value this is, else nil.
	param *param
}

// rareArg is the array section and the image of an Arg, of which most have neither. It is immutable.
type rareArg struct {
	// section is the array section of the slice. It counts if parted is set; otherwise the argument is the whole slice.
	section arraySection
	parted  bool
	// image is set for a value that a Mapper maps, else nil.
	image *imageArg
}

// part returns the array section of the slice, nil for all of it.
func (a *Arg) part() *arraySection {
	if a.rare == nil || !a.rare.parted {
		return nil
	}
	return &a.rare.section
}

// image returns how the value is mapped that a Mapper maps, nil for other arguments.
func (a *Arg) image() *imageArg {
	if a.rare == nil {
		return nil
	}
	return a.rare.image
}

// members returns the slices that a mapped value points to.
func (a *Arg) members() []imageMember {
	if i := a.image(); i != nil {
		return i.slices
	}
	return nil
}

// argKind says which constructor made an Arg.
type argKind uint8

const (
	// argZero is the kind of the zero Arg.
	argZero argKind = iota
	// argMap is a slice with a map type.
	argMap
	// argImplicit is a slice that is used where it is present.
	argImplicit
	// argDevicePtr is device memory up to the end of its storage, argDeviceAddr device
	// memory of size bytes.
	argDevicePtr
	argDeviceAddr
	// argValue is a value, argPointer a DevicePtr passed as a value, argAddress the
	// address of a slice.
	argValue
	argPointer
	argAddress
)

// inlineValue is the largest size in bytes of a value that needs no allocation.
const inlineValue = 16

// pointerSize is the size in bytes of an address in a kernel's push constants.
const pointerSize = 8

// To maps s to the device: its elements are copied there if the construct creates the
// corresponding storage (OpenMP map(to: s)). As a motion it always copies them (OpenMP
// target update to(s)).
func To[T any](s []T) Arg { return mapSlice(s, memory.MapTo) }

// From maps s from the device: its elements are copied back when the last construct that
// maps them ends; until then the corresponding storage is uninitialised (OpenMP
// map(from: s)). As a motion it always copies them back (OpenMP target update from(s)).
func From[T any](s []T) Arg { return mapSlice(s, memory.MapFrom) }

// ToFrom maps s both ways (OpenMP map(tofrom: s), the default map type).
func ToFrom[T any](s []T) Arg { return mapSlice(s, memory.MapToFrom) }

// Alloc gives s storage on the device and copies nothing (OpenMP
// map(alloc: s), which 6.0 spells storage).
func Alloc[T any](s []T) Arg { return mapSlice(s, memory.MapAlloc) }

// Release decrements the reference count of s and copies nothing (OpenMP target exit data
// map(release: s)). It is only for TargetExitData.
func Release[T any](s []T) Arg { return mapSlice(s, memory.MapRelease) }

// Delete removes s from the device whatever its reference count is, and copies nothing
// (OpenMP target exit data map(delete: s)). Storage whose count is infinite stays. It is
// only for TargetExitData.
func Delete[T any](s []T) Arg { return mapSlice(s, memory.MapDelete) }

// Implicit is a slice that a kernel uses through a pointer and that no clause names
// (OpenMP 5.0 §2.19.7 treats such a pointer p as map(alloc: p[:0]), OpenMP 6.0 as an
// assumed-size array). It maps nothing. If the first element of s is present, the binding
// reaches from there to the end of the storage in which it is present, or as far as the device
// can bind (maxStorageBufferRange, at least 128 MiB), and the region counts that storage once.
// If it is not present, a kernel that uses the binding fails the region with ErrNotPresent.
//
// The length of s does not matter; a Host variant receives s up to its capacity.
func Implicit[T any](s []T) Arg {
	a := mapSlice(s, memory.MapAlloc)
	a.kind, a.presence, a.size = argImplicit, memory.IfPresent, capacity(s)
	return a
}

// AddressOf passes the address of the first element of s as an 8-byte value. If the element
// is present, the address is that on the device, and the region counts its storage as with
// Implicit; otherwise it is the host address (OpenMP 5.2 §5.8.6: a pointer without a match
// keeps its value). A nil slice gives 0. A Host variant receives the host address, as a
// uint64 or a DevicePtr, and HostPointee returns the slice up to its capacity.
func AddressOf[T any](s []T) Arg {
	a := Implicit(s)
	a.kind = argAddress
	address := uint64(uintptr(a.at.host.Ptr))
	copy(a.data[:], unsafe.Slice((*byte)(unsafe.Pointer(&address)), pointerSize))
	return a
}

// IsDevicePtr binds memory of the device, from p to the end of the allocation or mapped
// storage that p points into, or as far as the device can bind, as for Implicit (OpenMP 4.5
// is_device_ptr). A p that is nil or points into freed memory is ErrInvalidPointer; one of
// another device, including the initial one, is ErrInvalidDevice. On the initial device p may
// be a HostPtr.
func IsDevicePtr(p DevicePtr) Arg { return Arg{at: p, kind: argDevicePtr} }

// HasDeviceAddr binds n elements at p, which are already on the device (OpenMP 5.1
// has_device_addr). The errors are those of IsDevicePtr; elements beyond the end of p's
// storage are ErrInvalidPointer.
func HasDeviceAddr[T any](p DevicePtr, n int) Arg {
	a := Arg{at: p, kind: argDeviceAddr, size: -1}
	var zero T
	if size := int(unsafe.Sizeof(zero)); n >= 0 && (size == 0 || n <= int(^uint(0)>>1)/size) {
		a.size = n * size
	}
	if a.at.elem == nil {
		a.at.elem = reflect.TypeFor[T]()
	}
	return a
}

// Value passes the current value of v (OpenMP firstprivate). Its size must be that of the
// push-constant member that it fills; a structure may have the padding at its end, too. An
// integer for a floating-point number of 4 or 8 bytes, or the other way round, is
// ErrInvalidLaunch, as are arrays of them: of values in the wrong order the kernel would take the
// bits of an integer for a floating-point number.
//
// A DevicePtr is passed as an 8-byte address, and its memory cannot be freed during the
// region. One that points into freed memory is ErrInvalidPointer, one of another device
// ErrInvalidDevice. Nil is passed as 0 and a HostPtr as the host address.
func Value[T any](v T) (a Arg) {
	if p, ok := any(&v).(*DevicePtr); ok {
		a.at, a.kind, a.size = *p, argPointer, pointerSize
		address := p.Address()
		copy(a.data[:], unsafe.Slice((*byte)(unsafe.Pointer(&address)), pointerSize))
		return a
	}
	a.kind, a.size, a.at.elem = argValue, int(unsafe.Sizeof(v)), reflect.TypeFor[T]()
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&v)), a.size)
	if a.size <= inlineValue {
		copy(a.data[:], bytes)
	} else {
		long := append([]byte(nil), bytes...)
		escape(unsafe.Pointer(unsafe.SliceData(long)))
		a.at.host = memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(long)), Size: uint64(a.size)}
	}
	return a
}

// IterateMaps returns the items of a map or motion clause with an iterator: item(i) for
// i = begin, begin+step, … up to but not including end (OpenMP 5.1 map(iterator(i =
// begin:end:step), …)). A step of 0 counts as 1.
func IterateMaps(begin, end, step int, item func(i int) Arg) []Arg {
	return iterate(begin, end, step, item)
}

// Always copies as the map type says, whatever the reference count is (OpenMP 4.5 always
// modifier). It is for maps.
func (a Arg) Always() Arg {
	a.always = true
	return a
}

// Close asks for storage near the device (OpenMP 5.0 close modifier). It is a hint without
// effect, since storage is always as near as possible.
func (a Arg) Close() Arg {
	a.close = true
	return a
}

// Present makes the construct fail with ErrNotPresent if any of the storage is absent when
// it begins (OpenMP 5.1 present modifier). It is for maps and motions.
func (a Arg) Present() Arg {
	a.presence = memory.MustBePresent
	return a
}

// Self makes the device use the host's storage (OpenMP 6.0 self modifier): nothing is
// copied, and each side sees what the other writes, even while a kernel runs. If the device
// cannot access that storage, or already has other storage for it, the construct fails with
// ErrNotShared. Storage that is pinned ([AllocPinned], [Pin]) can always be accessed; other
// storage is imported for as long as it is mapped, which takes as long as a copy. A graphics
// card accesses it over the bus, whenever a kernel does. On a device without
// robustBufferAccess2, a kernel that exceeds the bounds of the slice can access other data on
// its pages, or the rest of the pinned storage. It is for maps, except those of TargetExitData.
func (a Arg) Self() Arg {
	a.self = true
	return a
}

// Deleting removes the storage from the device whatever its reference count is, after a
// copy to the host if the map type includes one (OpenMP 6.0 delete modifier). It is only
// for TargetExitData.
func (a Arg) Deleting() Arg {
	a.deletes = true
	return a
}

func mapSlice[T any](s []T, t memory.MapType) (a Arg) {
	a.at.host = sectionOf(s)
	escape(a.at.host.Ptr)
	a.at.elem, a.kind, a.mapType = reflect.TypeFor[T](), argMap, t
	return a
}

func sectionOf[T any](s []T) memory.Section {
	var zero T
	return memory.Section{
		Ptr:  unsafe.Pointer(unsafe.SliceData(s)),
		Size: uint64(len(s)) * uint64(unsafe.Sizeof(zero)),
	}
}

// capacity returns the size in bytes of s up to its capacity.
func capacity[T any](s []T) int {
	var zero T
	return cap(s) * int(unsafe.Sizeof(zero))
}

// isValue reports whether the item fills push constants, rather than a binding.
func (a *Arg) isValue() bool { return a.kind >= argValue }

// bytes returns the bytes of a value; those of an address are the host address.
func (a *Arg) bytes() []byte {
	switch {
	case a.kind != argValue:
		return a.data[:pointerSize]
	case a.size <= inlineValue:
		return a.data[:a.size]
	}
	return unsafe.Slice((*byte)(a.at.host.Ptr), a.size)
}

// check returns an error for an item that cannot be on a device; label names the item.
func (a *Arg) check(label string) error {
	if a.kind == argZero {
		return fmt.Errorf("%w: %s is the zero Arg: make it with To or another function that returns an Arg; ParamVar.Arg returns it where the parameter is not bound", ErrInvalidArgument, label)
	}
	if a.kind != argMap && (a.always || a.close || a.deletes || a.self || a.part() != nil || a.presence == memory.MustBePresent) {
		return fmt.Errorf("%w: %s has a modifier or a section, which are for slices that are mapped or updated", ErrInvalidArgument, label)
	}
	if image := a.image(); image != nil {
		return image.check(a, label)
	}
	if a.at.elem == nil {
		return nil
	}
	if path := pointerPath(a.at.elem); path != "" {
		what := "slice of"
		if a.kind == argValue {
			what = "value of type"
		}
		return fmt.Errorf("%w: %s: %s %s holds Go pointers (%s), which mean nothing on a device", ErrInvalidArgument, label, what, a.at.elem, path)
	}
	return nil
}

// item returns the item as one of a map clause. Its storage is contiguous.
func (a *Arg) item(label string) (m memory.Map, err error) {
	err = a.setItem(&m, label)
	return m, err
}

// setItem sets m, which is zero, to the item as one of a map clause.
func (a *Arg) setItem(m *memory.Map, label string) (err error) {
	if m.Section = a.at.host; a.part() != nil {
		if m.Section, err = a.contiguous(); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	m.Type, m.Always, m.Close, m.Delete, m.Presence, m.Label = a.mapType, a.always, a.close, a.deletes, a.presence, label
	if a.self {
		m.Share = memory.ShareMust
	}
	return nil
}

// entering returns the item for the beginning of a construct.
func (a *Arg) entering(label string) (memory.Map, error) {
	if err := a.enters(label); err != nil {
		return memory.Map{}, err
	}
	return a.item(label)
}

// enters returns an error for an item that cannot be one of the beginning of a construct: its map type is only
// allowed at the end.
func (a *Arg) enters(label string) error {
	switch {
	case a.kind != argMap:
		return a.wrongKind("mapped slice", label)
	case !a.mapType.Enters():
		return fmt.Errorf("%w: %s: map type %v is for target exit data alone", ErrInvalidArgument, label, a.mapType)
	case a.deletes:
		return fmt.Errorf("%w: %s: the delete modifier is for target exit data alone", ErrInvalidArgument, label)
	}
	return nil
}

// wrongKind returns the error for an item of another kind than what.
func (a *Arg) wrongKind(what, label string) error {
	is := [...]string{
		argImplicit: "an implicit slice", argDevicePtr: "a device pointer", argDeviceAddr: "a device address",
		argValue: "a value", argPointer: "a pointer value", argAddress: "the address of a slice", argMap: "a mapped slice", argZero: "nothing",
	}
	return fmt.Errorf("%w: %s is %s, not a %s", ErrInvalidArgument, label, is[a.kind], what)
}

// pointerPaths caches the results of pointerPath.
var pointerPaths sync.Map // reflect.Type → string

// pointerPath returns the path to the first Go pointer inside a value of type
// t, or "" when there is none.
func pointerPath(t reflect.Type) string {
	if k := t.Kind(); k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr {
		return ""
	}
	if path, ok := pointerPaths.Load(t); ok {
		return path.(string)
	}
	path := findPointer(t, t.String())
	pointerPaths.Store(t, path)
	return path
}

func findPointer(t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return ""
		}
		return findPointer(t.Elem(), path+"[0]")
	case reflect.Struct:
		for f := range t.Fields() {
			if found := findPointer(f.Type, path+"."+f.Name); found != "" {
				return found
			}
		}
		return ""
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func,
		reflect.Interface, reflect.Slice, reflect.String:
		return path + " is a " + t.Kind().String()
	}
	return ""
}
