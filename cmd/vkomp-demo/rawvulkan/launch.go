package rawvulkan

import (
	"log/slog"

	"github.com/vkomp/vkomp/vk"
)

const (
	MaxBuffers = 4 // the largest number of buffers of a kernel
	MaxPush    = 4 // the largest number of words that a kernel is pushed
)

// Options are the options of Open.
type Options struct {
	// UUID chooses the physical device: see vkomp.DeviceInfo.
	UUID string
	// Validation loads Vulkan's validation layer with synchronization checks; its messages go to
	// Logger, which may be nil.
	Validation bool
	Logger     *slog.Logger
	// NoPushDescriptors binds buffers through a descriptor pool even if the device has push
	// descriptors.
	NoPushDescriptors bool
	// NoSynchronization2 records barriers by vkCmdPipelineBarrier even if the device has
	// vkCmdPipelineBarrier2.
	NoSynchronization2 bool
}

// Kernel is a compute pipeline of a Device.
type Kernel struct {
	index         int
	buffers, push int
}

// Buffer is memory of a Device with one VkBuffer.
type Buffer struct {
	block vk.Block
	// coherent says that the host has the buffer's bytes: the memory is mapped, coherent and
	// cached by the host.
	coherent bool
}

// Size returns the size in bytes.
func (b Buffer) Size() int { return int(b.block.Size) }

// Range is a part of a buffer.
type Range struct {
	Buffer       Buffer // the buffer
	Offset, Size int    // bytes
}

// All returns the whole buffer.
func (b Buffer) All() Range { return Range{Buffer: b, Size: b.Size()} }

// Launch is a dispatch of Groups workgroups of a kernel, with the buffers of its bindings from 0 on
// and its push constants.
type Launch struct {
	Kernel  Kernel   // what runs
	Groups  int      // workgroups along x
	Buffers []Range  // of the bindings, by their numbers
	Push    []uint32 // from offset 0 on
	// Barrier makes what the launch and those before it wrote visible to those after it. The last
	// launch of a batch always has one.
	Barrier bool
}
