package memory

import (
	"fmt"
	"unsafe"
)

// MapType is the type of a map clause (OpenMP 5.1 §2.21.7.1).
type MapType uint8

const (
	MapAlloc   MapType = iota // storage without copies
	MapTo                     // host to device on entry
	MapFrom                   // device to host on exit
	MapToFrom                 // both
	MapRelease                // exit only: count down
	MapDelete                 // exit only: count to zero, no copy
)

var mapTypeNames = [...]string{"alloc", "to", "from", "tofrom", "release", "delete"}

// String spells the type as OpenMP does.
func (t MapType) String() string {
	if int(t) < len(mapTypeNames) {
		return mapTypeNames[t]
	}
	return fmt.Sprintf("MapType(%d)", uint8(t))
}

// To reports whether the type includes to: a copy from host to device.
func (t MapType) To() bool { return t == MapTo || t == MapToFrom }

// From reports whether the type includes from: a copy from device to host.
func (t MapType) From() bool { return t == MapFrom || t == MapToFrom }

// Enters reports whether the type may stand on a construct that maps.
func (t MapType) Enters() bool { return t <= MapToFrom }

// Section is contiguous host storage. Its pointer keeps the storage reachable.
type Section struct {
	Ptr  unsafe.Pointer
	Size uint64 // bytes
}

// Start returns the address of the first byte.
func (s Section) Start() uintptr { return uintptr(s.Ptr) }

// End returns the address past the last byte.
func (s Section) End() uintptr { return uintptr(s.Ptr) + uintptr(s.Size) }

// String writes the section as a half-open range of addresses.
func (s Section) String() string {
	return fmt.Sprintf("[%#x,%#x)", s.Start(), s.End())
}

// contains reports whether all bytes of o, which starts below the end of s,
// are in s; when o has none, whether its pointer is.
func (s Section) contains(o Section) bool {
	return s.Start() <= o.Start() && o.End() <= s.End()
}

func (s Section) valid() bool {
	if s.Size == 0 {
		return true
	}
	return s.Ptr != nil && s.Size <= uint64(^uintptr(0)-s.Start())
}

// Map is one list item of a map clause.
type Map struct {
	Section
	Type   MapType
	Always bool   // copy whatever the count
	Label  string // names the item in errors; may be empty
}

func (m *Map) String() string {
	modifier := ""
	if m.Always {
		modifier = "always,"
	}
	return fmt.Sprintf("map(%s%s: %s)", modifier, m.Type, describe(m.Section, m.Label))
}
