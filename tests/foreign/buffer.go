package foreign

// NewBuffer is a VkBuffer created by Code.Buffer, exclusive to a queue family.
type NewBuffer struct {
	Buffer, Memory uint64 // VkBuffer and VkDeviceMemory
	Size           uint64 // bytes
	Usage          uint32 // VkBufferUsageFlags
	Family         uint32 // queue family
}
