package vk

// importType chooses the memory type as which to import host memory, among those whose
// bits are set: the first that is coherent and cached, else the first that is coherent,
// or -1. Imported memory is not mapped, so memory that is not coherent could not be
// flushed.
func importType(types []MemoryType, bits uint32) int {
	const coherent = MemoryHostVisible | MemoryHostCoherent
	best := -1
	for k, t := range types {
		if bits>>k&1 == 0 || t.Flags&(coherent|MemoryProtected) != coherent {
			continue
		}
		if t.Flags&MemoryHostCached != 0 {
			return k
		}
		if best < 0 {
			best = k
		}
	}
	return best
}

// checkImport returns an error for memory that Vulkan does not allow to import.
func checkImport(l *Limits, host uintptr, size uint64) error {
	unit := max(1, l.MinImportedHostPointerAlignment)
	switch {
	case host == 0:
		return invalid("Device.ImportBlock", "no memory")
	case size == 0:
		return invalid("Device.ImportBlock", "no bytes")
	case uint64(host)%unit != 0 || size%unit != 0:
		return invalid("Device.ImportBlock", "%d bytes at %#x: no multiples of %d", size, host, unit)
	case uint64(host)+size < size:
		return invalid("Device.ImportBlock", "%d bytes at %#x wrap around", size, host)
	case size > l.MaxMemoryAllocationSize:
		return check("vkAllocateMemory", ErrorOutOfDeviceMemory,
			"%d bytes, where the largest allocation is %d", size, l.MaxMemoryAllocationSize)
	}
	return nil
}
