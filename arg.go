package vkomp

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
)

// Arg is one argument of a target region: a slice with its map type, or a
// firstprivate value. The k-th slice of Target.Args is binding k of the
// kernel's descriptor set 0; the values fill the kernel's push constants in
// order.
//
// An Arg refers to the caller's slice; it copies a value when it is made.
type Arg struct {
	elem    reflect.Type
	section memory.Section
	mapType memory.MapType
	// isValue tells a firstprivate value from a mapped slice.
	isValue bool
	// size is a value's size in bytes; up to inlineValue of them lie in data,
	// else all in long.
	size int
	data [inlineValue]byte
	long []byte
}

// inlineValue is the size in bytes up to which a value needs no allocation.
const inlineValue = 16

// To maps s to the device: its elements are copied there when the region is
// the first to hold them (OpenMP map(to: s)).
func To[T any](s []T) Arg { return mapSlice(s, memory.MapTo) }

// From maps s from the device: its elements are copied back when no region
// holds them any more; until then the device's storage is uninitialised
// (OpenMP map(from: s)).
func From[T any](s []T) Arg { return mapSlice(s, memory.MapFrom) }

// ToFrom maps s both ways (OpenMP map(tofrom: s)).
func ToFrom[T any](s []T) Arg { return mapSlice(s, memory.MapToFrom) }

// Alloc gives s storage on the device and copies nothing (OpenMP
// map(alloc: s), which 6.0 spells storage).
func Alloc[T any](s []T) Arg { return mapSlice(s, memory.MapAlloc) }

// Value passes v by value, as it is now (OpenMP firstprivate). Its size must
// be that of the push-constant member it fills.
func Value[T any](v T) Arg {
	a := Arg{elem: reflect.TypeFor[T](), isValue: true, size: int(unsafe.Sizeof(v))}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&v)), a.size)
	if a.size <= inlineValue {
		copy(a.data[:], bytes)
	} else {
		a.long = append([]byte(nil), bytes...)
	}
	return a
}

func mapSlice[T any](s []T, t memory.MapType) Arg {
	section := sectionOf(s)
	escape(section.Ptr)
	return Arg{elem: reflect.TypeFor[T](), section: section, mapType: t}
}

func sectionOf[T any](s []T) memory.Section {
	var zero T
	return memory.Section{
		Ptr:  unsafe.Pointer(unsafe.SliceData(s)),
		Size: uint64(len(s)) * uint64(unsafe.Sizeof(zero)),
	}
}

// bytes returns a value's bytes.
func (a *Arg) bytes() []byte {
	if a.size <= inlineValue {
		return a.data[:a.size]
	}
	return a.long
}

// check refuses arguments that cannot live on a device.
func (a *Arg) check(k int) error {
	if a.elem == nil {
		return fmt.Errorf("%w: argument %d is the zero Arg: make it with To, From, ToFrom, Alloc or Value", ErrInvalidArgument, k)
	}
	if path := pointerPath(a.elem); path != "" {
		what := "slice of"
		if a.isValue {
			what = "value of type"
		}
		return fmt.Errorf("%w: argument %d: %s %s holds Go pointers (%s), which mean nothing on a device", ErrInvalidArgument, k, what, a.elem, path)
	}
	return nil
}

// pointerPaths remembers pointerPath's answer for each type met.
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
