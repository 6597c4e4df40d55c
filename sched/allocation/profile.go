package allocation

import (
	"fmt"
	"math"

	"github.com/vkomp/vkomp/vk"
)

// Kind says what the memory of a device is to the host.
type Kind uint8

const (
	// Unified memory is read and written by the host itself: the host caches it, or has no memory
	// that is better for it.
	Unified Kind = iota
	// WholeWindow memory can all be mapped by the host, which does not cache it (resizable BAR).
	WholeWindow
	// SmallWindow memory can be mapped by the host in small part.
	SmallWindow
	// NoWindow memory cannot be mapped by the host, or is not to be.
	NoWindow
)

// String describes the memory.
func (k Kind) String() string {
	switch k {
	case Unified:
		return "unified"
	case WholeWindow:
		return "all mapped by the host, not cached"
	case SmallWindow:
		return "a small part mapped by the host"
	case NoWindow:
		return "not mapped by the host"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// windowWrites is up to how many bytes the host writes at once to memory of the device that it
// does not cache. Such writes pass the bus as they are made, at some 9 GB/s where it was measured
// (NVIDIA H100, PCIe 5), and need no submission, which costs some 20 µs; a copy command reads
// staging memory at 50 GB/s.
const windowWrites = 256 << 10

// kernelCopies is from how many bytes on a kernel copies within a device with memory of its own. A
// copy command needs 10 µs for so many bytes, as long as a submission, and the kernel a third of
// that (NVIDIA H100).
const kernelCopies = 4 << 20

// Profile is how the memory of a device is used. It is derived once, from the device's memory
// types and heaps.
type Profile struct {
	// Kind is what the device's memory is to the host.
	Kind Kind
	// Shared says that the device has no memory apart from the host's, so that host storage which
	// it imports is as near to it as its own.
	Shared bool
	// Storage and Staging are the memory types of storage and of staging.
	Storage, Staging int
	// HostReads says that the host reads storage itself. The host never reads memory that it does
	// not cache where the device has a type that it caches: a read of device memory over the bus is
	// hundreds of times slower than one of cached memory.
	HostReads bool
	// HostWrites is up to how many bytes the host writes at once to storage itself, if nothing on
	// the device can touch them.
	HostWrites uint64
	// KernelCopies is from how many bytes on a kernel of vkomp's copies within storage, rather than
	// a copy command; 0 if it never does.
	KernelCopies uint64
}

// NewProfile returns the profile of a device whose blocks can be in the memory types in bits.
// hidden ignores that the host can see the memory of storage. The error matches
// vk.ErrUnsupported if there is no memory type for a use.
func NewProfile(p *vk.Properties, bits uint32, hidden bool) (Profile, error) {
	storage, err := chooseMemoryType(p, bits, forStorage, hidden)
	if err != nil {
		return Profile{}, err
	}
	staging, err := chooseMemoryType(p, bits, forStaging, false)
	if err != nil {
		return Profile{}, err
	}
	r := Profile{Kind: NoWindow, Storage: storage, Staging: staging}
	flags := p.MemoryTypes[storage].Flags
	r.Shared = p.Type != vk.DeviceDiscrete && !hidden && flags&vk.MemoryHostVisible != 0
	if p.Type == vk.DeviceDiscrete && flags&vk.MemoryDeviceLocal != 0 {
		r.KernelCopies = kernelCopies
	}
	switch {
	case flags&vk.MemoryHostVisible != 0 && !hidden && (flags&vk.MemoryHostCached != 0 || storage == staging):
		// Where storage and staging are of one type that is not cached, staging would make no read
		// faster.
		r.Kind, r.HostReads, r.HostWrites = Unified, true, math.MaxUint64
	case flags&vk.MemoryHostVisible != 0 && !hidden:
		r.Kind, r.HostWrites = WholeWindow, windowWrites
	case !hidden && hasWindow(p, bits):
		r.Kind = SmallWindow
	}
	return r, nil
}

// hasWindow reports whether the host can map memory that is local to the device.
func hasWindow(p *vk.Properties, bits uint32) bool {
	const window = vk.MemoryDeviceLocal | vk.MemoryHostVisible
	for i, t := range p.MemoryTypes {
		if bits>>i&1 != 0 && t.Flags&window == window && p.MemoryHeaps[t.Heap].Size > 0 {
			return true
		}
	}
	return false
}

// Decision is a choice with its reason.
type Decision struct{ Name, Choice, Reason string }

// Decisions returns the profile in words. hidden is what NewProfile was given.
func (r Profile) Decisions(p *vk.Properties, hidden bool) []Decision {
	describe := func(memoryType int) string {
		t := p.MemoryTypes[memoryType]
		return fmt.Sprintf("memory type %d (%v) in heap %d", memoryType, t.Flags, t.Heap)
	}
	decisions := []Decision{
		{"memory", r.Kind.String(), ""},
		{"storage", describe(r.Storage), "it is local to the device"},
		{"staging", describe(r.Staging), "the host caches it and reads results from it"},
		{"host reads storage", "never", "it would read memory that it does not cache, over the bus"},
		{"host writes storage", fmt.Sprintf("up to %d bytes", r.HostWrites), "few bytes are there before a copy command could be submitted"},
		{"copies within storage", "by copy commands", "the device has no memory of its own"},
	}
	if r.KernelCopies > 0 {
		decisions[5].Choice = fmt.Sprintf("by a kernel from %d bytes on", r.KernelCopies)
		decisions[5].Reason = "copy commands do not reach the speed of the device's memory"
	}
	if p.MemoryTypes[r.Storage].Flags&vk.MemoryDeviceLocal == 0 {
		decisions[1].Reason = "there is no memory that is local to the device"
	}
	if p.MemoryTypes[r.Staging].Flags&vk.MemoryHostCached == 0 {
		decisions[2].Reason = "the host sees it; there is no memory type that it caches, so results come back slowly"
	}
	why, reads, writes := &decisions[0].Reason, &decisions[3], &decisions[4]
	switch r.Kind {
	case Unified:
		*why = "the host caches storage"
		if p.MemoryTypes[r.Storage].Flags&vk.MemoryHostCached == 0 {
			*why = "the host sees storage, and no other memory type is better for it"
		}
		reads.Choice, reads.Reason = "always", "it is as fast as staging, and needs no copy"
		writes.Choice, writes.Reason = "always", reads.Reason
	case WholeWindow:
		*why = "the host sees all of storage and does not cache it"
	case SmallWindow:
		*why = "the host sees less than half of the device's memory"
	case NoWindow:
		*why = "the host does not see storage"
		if hidden {
			*why = "the program says so (Options.MemoryPath)"
		}
	}
	if r.HostWrites == 0 {
		reads.Reason = "storage is not mapped by the host"
		writes.Choice, writes.Reason = "never", reads.Reason
	}
	return append(decisions, pinnedDecision(p, describe))
}

// pinnedDecision says where pinned storage is.
func pinnedDecision(p *vk.Properties, describe func(memoryType int) string) Decision {
	const name = "pinned storage"
	memoryType, err := chooseMemoryType(p, 1<<len(p.MemoryTypes)-1, forPinned, false)
	switch imports := p.Limits.MinImportedHostPointerAlignment > 0; {
	case err != nil && imports:
		return Decision{name, "imported from the host", "the driver has no memory for it"}
	case err != nil:
		return Decision{name, "none", "the device imports no host memory, and the driver has no memory for it"}
	case imports:
		return Decision{name, "imported from the host, or " + describe(memoryType), "the driver allocates it if the device refuses an import"}
	}
	return Decision{name, describe(memoryType), "the device imports no host memory, so the driver allocates it"}
}
