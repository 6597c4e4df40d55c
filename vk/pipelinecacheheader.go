package vk

import "encoding/binary"

// The beginning of a pipeline cache's contents, VkPipelineCacheHeaderVersionOne: five fields, of
// which the first four are numbers of 4 bytes, the low byte first.
const (
	cacheHeaderBytes   = 32
	cacheHeaderVersion = 1 // VK_PIPELINE_CACHE_HEADER_VERSION_ONE
)

// CheckPipelineCache returns an error that matches ErrInvalid if data does not begin as the contents
// of a pipeline cache of this device and driver. What follows the beginning is the driver's own and
// is not checked.
func (p *Properties) CheckPipelineCache(data []byte) error {
	const op = "pipeline cache"
	if len(data) < cacheHeaderBytes {
		return invalid(op, "%d bytes, of %d that a header has", len(data), cacheHeaderBytes)
	}
	field := func(n int) uint32 { return binary.LittleEndian.Uint32(data[4*n:]) }
	if size := field(0); size < cacheHeaderBytes || uint64(size) > uint64(len(data)) {
		return invalid(op, "a header of %d bytes, in %d", size, len(data))
	}
	if version := field(1); version != cacheHeaderVersion {
		return invalid(op, "a header of version %d", version)
	}
	if vendor, device := field(2), field(3); vendor != p.VendorID || device != p.DeviceID {
		return invalid(op, "it is of device %#x:%#x, and not of %#x:%#x", vendor, device, p.VendorID, p.DeviceID)
	}
	if uuid := [16]byte(data[16:]); uuid != p.PipelineCacheUUID {
		return invalid(op, "it is of driver %x, and not of %x", uuid, p.PipelineCacheUUID)
	}
	return nil
}
