package rawvulkan

import (
	"log/slog"

	"github.com/vkomp/vkomp/vk"
)

const (
	// MaxBuffers is the largest number of buffers of a kernel.
	MaxBuffers = 4
	// MaxPush is the largest number of words that a kernel is pushed.
	MaxPush = 4
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

// Launch is a dispatch of a kernel.
type Launch struct {
	Kernel  Kernel   // the kernel
	Groups  int      // workgroups, at least 1
	Buffers []Range  // those of its bindings from 0 on
	Push    []uint32 // its push constants
	// Barrier makes what the launch and those before it wrote visible to those after it. The last
	// launch of a batch always has one.
	Barrier bool
}
