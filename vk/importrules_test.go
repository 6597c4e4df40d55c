package vk

import (
	"errors"
	"math"
	"testing"
)

func TestImportTypePrefersCoherentThenCached(t *testing.T) {
	const local, visible, coherent, cached, protected = MemoryDeviceLocal, MemoryHostVisible, MemoryHostCoherent, MemoryHostCached, MemoryProtected
	for name, c := range map[string]struct {
		flags []MemoryFlags
		bits  uint32
		want  int
	}{
		"coherent and cached":     {[]MemoryFlags{local, visible | coherent, visible | coherent | cached, visible | cached}, 15, 2},
		"coherent before cached":  {[]MemoryFlags{visible | cached, visible | coherent}, 3, 1},
		"the first of equals":     {[]MemoryFlags{local, visible | coherent, visible | coherent | local}, 7, 1},
		"the first of the best":   {[]MemoryFlags{visible | coherent | cached, visible | coherent | cached | local}, 3, 0},
		"only those of the bits":  {[]MemoryFlags{visible | coherent | cached, visible | coherent}, 2, 1},
		"none to be flushed":      {[]MemoryFlags{visible, visible | cached}, 3, -1},
		"none that nobody sees":   {[]MemoryFlags{local, local | coherent}, 3, -1},
		"none that is protected":  {[]MemoryFlags{visible | coherent | protected}, 1, -1},
		"none without bits":       {[]MemoryFlags{visible | coherent}, 0, -1},
		"bits past the last type": {[]MemoryFlags{visible | coherent}, 0xfffffffe, -1},
	} {
		var types []MemoryType
		for _, f := range c.flags {
			types = append(types, MemoryType{Flags: f})
		}
		if got := importType(types, c.bits); got != c.want {
			t.Errorf("%s: type %d, want %d", name, got, c.want)
		}
	}
}

func TestImportsAreHeldToTheLimits(t *testing.T) {
	l := &Limits{MinImportedHostPointerAlignment: 4096, MaxMemoryAllocationSize: 1 << 30}
	for _, c := range []struct {
		host uintptr
		size uint64
		want error
	}{
		{0x10000, 4096, nil},
		{0x11000, 1 << 30, nil},
		{0, 4096, ErrInvalid},
		{0x10000, 0, ErrInvalid},
		{0x10800, 4096, ErrInvalid},
		{0x10000, 2048, ErrInvalid},
		{math.MaxUint - 4095, 8192, ErrInvalid},
		{0x10000, 1<<30 + 4096, ErrOutOfMemory},
	} {
		if err := checkImport(l, c.host, c.size); !errors.Is(err, c.want) {
			t.Errorf("%d bytes at %#x: %v", c.size, c.host, err)
		}
	}
}
