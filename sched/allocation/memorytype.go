package allocation

import (
	"fmt"

	"github.com/vkomp/vkomp/vk"
)

// use is what blocks of device memory are for.
type use int

const (
	// forStorage: corresponding storage, and what memory routines allocate.
	forStorage use = iota
	// forStaging: memory between the host and storage.
	forStaging
	// forPinned: host storage of the program that the driver allocates.
	forPinned
)

// chooseMemoryType returns the memory type to use among those in bits, the best by its score. If
// hidden is set, it does not matter whether the host can see storage.
func chooseMemoryType(p *vk.Properties, bits uint32, use use, hidden bool) (int, error) {
	var largest uint64
	for _, h := range p.MemoryHeaps {
		if h.DeviceLocal {
			largest = max(largest, h.Size)
		}
	}
	score := func(t vk.MemoryType) int {
		switch {
		case t.Flags&(vk.MemoryProtected|vk.MemoryLazy) != 0:
			return -1
		case p.MemoryHeaps[t.Heap].Size == 0:
			return -1 // no allocation would succeed
		case use == forPinned && t.Flags&vk.MemoryHostCoherent == 0:
			return -1 // the program flushes nothing
		case use != forStorage:
			return stagingScore(t.Flags)
		}
		// A discrete GPU without resizable BAR shows the host only a window of its memory, which
		// is too small to hold what programs map.
		window := p.Type == vk.DeviceDiscrete && p.MemoryHeaps[t.Heap].Size < largest/2
		return storageScore(t.Flags, window, hidden)
	}
	best, bestScore := -1, -1
	for i, t := range p.MemoryTypes {
		if bits&(1<<i) == 0 {
			continue
		}
		if n := score(t); n > bestScore {
			best, bestScore = i, n
		}
	}
	if best < 0 {
		what := [...]string{forStorage: "storage", forStaging: "staging (host-visible)", forPinned: "pinned storage (host-visible and coherent)"}[use]
		return 0, fmt.Errorf("%w: device %q has no memory type for %s among %#x", vk.ErrUnsupported, p.Name, what, bits)
	}
	return best, nil
}

// storageScore rates a memory type for storage: the highest is best. Storage is local to the
// device, and visible to the host as well, which can then write small amounts without a
// submission. If it is cached, the host reads it in place. window says that the host sees only a
// small part of the device's memory through this type.
func storageScore(flags vk.MemoryFlags, window, hidden bool) (score int) {
	if flags&vk.MemoryDeviceLocal != 0 {
		score += 8
	}
	switch {
	case flags&vk.MemoryHostVisible == 0 || hidden:
		// If the host's view is not used, memory without one is as good.
		return score
	case window:
		return score - 1
	}
	score++
	if flags&vk.MemoryHostCached != 0 {
		score += 2
	}
	if flags&vk.MemoryHostCoherent != 0 {
		score++
	}
	return score
}

// stagingScore rates a memory type for staging: the highest is best, and -1 is unfit. Staging is
// cached if possible, because the host reads results from it.
func stagingScore(flags vk.MemoryFlags) (score int) {
	if flags&vk.MemoryHostVisible == 0 {
		return -1
	}
	score = 1
	if flags&vk.MemoryHostCached != 0 {
		score += 4
	}
	if flags&vk.MemoryDeviceLocal == 0 {
		score += 2
	}
	if flags&vk.MemoryHostCoherent != 0 {
		score++
	}
	return score
}
