package memory

import (
	"fmt"
	"strings"
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
	Ptr  unsafe.Pointer // the first byte
	Size uint64         // bytes
}

// Start returns the address of the first byte.
func (s Section) Start() uintptr { return uintptr(s.Ptr) }

// End returns the address past the last byte.
func (s Section) End() uintptr { return uintptr(s.Ptr) + uintptr(s.Size) }

// String writes the section as a half-open range of addresses.
func (s Section) String() string {
	return fmt.Sprintf("[%#x,%#x)", s.Start(), s.End())
}

// contains reports whether all bytes of o are in s or, when o is empty, whether
// its pointer is. o must start below the end of s.
func (s Section) contains(o Section) bool {
	return s.Start() <= o.Start() && o.End() <= s.End()
}

func (s Section) valid() bool {
	if s.Size == 0 {
		return true
	}
	return s.Ptr != nil && s.Size <= uint64(^uintptr(0)-s.Start())
}

// Presence is what an item asks of the presence table when its construct
// enters, or when an exit construct is met.
type Presence uint8

const (
	MayBeAbsent   Presence = iota // entry creates absent storage
	MustBePresent                 // the present modifier (OpenMP 5.1): absent storage is an error
	IfPresent                     // counts if it is present, creates nothing
)

// Share reports whether corresponding storage may be the host's own.
type Share uint8

const (
	ShareNever Share = iota // the device has storage of its own
	ShareMay                // the host's storage, if the device can access it
	ShareMust               // the self modifier (OpenMP 6.0): the host's storage, or an error
)

// Map is one list item of a map clause.
type Map struct {
	Section
	Type     MapType  // map-type
	Always   bool     // always modifier: copy whatever the count is
	Delete   bool     // delete modifier (OpenMP 6.0): the exit copies out, then takes the count to zero
	Presence Presence // whether the item may or must be absent
	Share    Share    // whether the host's storage may be used
	Close    bool     // close modifier: a hint

	// DeviceSize is the size in bytes of the corresponding storage if it differs
	// from Size, because a mapper gives the device another layout. 0 means Size.
	DeviceSize uint64

	Label string // names the item in errors; may be empty
}

// StorageSize returns the size in bytes of the item's corresponding storage.
func (m *Map) StorageSize() uint64 {
	if m.DeviceSize != 0 {
		return m.DeviceSize
	}
	return m.Size
}

// Counts reports whether the item raises the count of its block.
func (m *Map) Counts() bool { return m.Size > 0 || m.Presence == IfPresent }

// String names the item in errors: its label, if it has one, and its section.
func (m *Map) String() string {
	var modifiers strings.Builder
	for _, modifier := range [...]struct {
		set  bool
		name string
	}{
		{m.Always, "always,"},
		{m.Presence == MustBePresent, "present,"},
		{m.Share == ShareMust, "self,"},
		{m.Delete, "delete,"},
	} {
		if modifier.set {
			modifiers.WriteString(modifier.name)
		}
	}
	return fmt.Sprintf("map(%s%s: %s)", modifiers.String(), m.Type, describe(m.Section, m.Label))
}
