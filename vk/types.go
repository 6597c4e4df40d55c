package vk

import (
	"fmt"
	"log/slog"
	"strings"
	"unsafe"
)

// Memory names a VkDeviceMemory of one device. Zero is no memory.
type Memory uint64

// Buffer names a VkBuffer of one device. Zero is no buffer.
type Buffer uint64

// Semaphore names a timeline VkSemaphore of one device. Zero is no semaphore.
type Semaphore uint64

// MemoryRange is Size bytes of a block's memory from byte Offset on.
type MemoryRange struct {
	Memory       Memory
	Offset, Size uint64
}

// HeapBudget is what a memory heap has for this process, in bytes.
type HeapBudget struct {
	Budget uint64 // what the process may have in all before allocations fail or grow slow
	Usage  uint64 // what it has now
}

// Block is one VkDeviceMemory with one VkBuffer bound over all of it.
type Block struct {
	Memory     Memory
	Buffer     Buffer
	Size       uint64         // bytes, as asked
	Host       unsafe.Pointer // mapping of the whole block while it lives; nil when the host cannot see it, or imported
	Address    uint64         // buffer device address; 0 when the device has none
	MemoryType int            // index into Properties.MemoryTypes; -1 when foreign
	Foreign    bool           // of Device.AdoptBuffer: somebody else's
}

// Pipeline is a compute pipeline with its layouts: a plain value that a Stream
// copies. The Device that made it owns the objects.
type Pipeline struct {
	Handle    uint64 // VkPipeline
	Layout    uint64 // VkPipelineLayout
	SetLayout uint64 // VkDescriptorSetLayout of set 0; 0 when there are no bindings
	Bindings  uint32 // how many storage buffers a dispatch must bind
	// BindingMask has bit b set when set 0 declares binding number b. The k-th
	// buffer range of a dispatch goes to the k-th set bit.
	BindingMask   uint32
	PushConstants uint32 // bytes; the most that a dispatch may push
}

// QueryPool is a VkQueryPool of timestamps: a plain value that a Stream copies. The
// Device that made it owns the object.
type QueryPool struct {
	Handle uint64 // VkQueryPool
	Count  uint32 // queries
}

// MaxBindings bounds the binding numbers of set 0: they are 0 to MaxBindings-1.
// Vulkan guarantees that many push descriptors wherever there are any.
const MaxBindings = 32

// SpecEntry gives a specialization constant its value.
type SpecEntry struct {
	ID    uint32
	Value uint64 // the low Size bytes are used
	Size  uint32 // bytes: 1, 2, 4 or 8; a boolean takes 4
}

// PipelineOptions describes a compute pipeline.
type PipelineOptions struct {
	Code           []uint32 // SPIR-V in native-endian words
	Entry          string
	Bindings       []uint32 // storage-buffer binding numbers in set 0, ascending
	PushConstants  uint32   // bytes, a multiple of 4
	Specialization []SpecEntry
	Label          string // names the pipeline in errors; may be empty
}

// SemaphoreType is VkSemaphoreType.
type SemaphoreType int32

// The types of semaphores, with Vulkan's values.
const (
	BinarySemaphore   SemaphoreType = 0
	TimelineSemaphore SemaphoreType = 1
)

// SemaphoreValue is a value of a timeline semaphore: one that a submission waits
// for, or one that it signals.
type SemaphoreValue struct {
	Semaphore Semaphore
	Value     uint64
}

// InstanceOptions says how to open Vulkan.
type InstanceOptions struct {
	ApplicationName string
	// Validation loads VK_LAYER_KHRONOS_validation with synchronization
	// validation; Open fails, naming the layer, where it is not installed.
	Validation bool
	// NoSynchronizationChecks leaves synchronization validation out. It takes
	// every byte that a dispatch binds for one that it accesses, so it reports
	// dispatches whose bindings overlap and whose accesses do not.
	NoSynchronizationChecks bool
	Logger                  *slog.Logger // receives validation messages; nil: silent
}

// DeviceOptions says how to open a device.
type DeviceOptions struct {
	// NoPushDescriptors binds buffers through descriptor pools even where the
	// device has push descriptors.
	NoPushDescriptors bool
	// ComputeQueues is the most queues that compute; 0: 8. Fewer than 0 is an error.
	ComputeQueues int
	// TransferQueues is the most queues of families that transfer and neither
	// compute nor draw; 0: 2; negative: none.
	TransferQueues int
	// InteropQueues is the most queues that [Device.InteropQueues] lists instead of
	// Device.Queues; 0: 1; negative: none.
	InteropQueues int
}

// DeviceType is VkPhysicalDeviceType.
type DeviceType uint32

// The device types, with Vulkan's values.
const (
	DeviceOther      DeviceType = 0
	DeviceIntegrated DeviceType = 1
	DeviceDiscrete   DeviceType = 2
	DeviceVirtual    DeviceType = 3
	DeviceSoftware   DeviceType = 4 // VK_PHYSICAL_DEVICE_TYPE_CPU
)

// String names the type in one word, such as "discrete" or "software".
func (t DeviceType) String() string {
	switch t {
	case DeviceOther:
		return "other"
	case DeviceIntegrated:
		return "integrated"
	case DeviceDiscrete:
		return "discrete"
	case DeviceVirtual:
		return "virtual"
	case DeviceSoftware:
		return "software"
	}
	return fmt.Sprintf("DeviceType(%d)", uint32(t))
}

// MemoryFlags is VkMemoryPropertyFlags.
type MemoryFlags uint32

// The memory properties, with Vulkan's values.
const (
	MemoryDeviceLocal  MemoryFlags = 1 << 0
	MemoryHostVisible  MemoryFlags = 1 << 1
	MemoryHostCoherent MemoryFlags = 1 << 2
	MemoryHostCached   MemoryFlags = 1 << 3
	MemoryLazy         MemoryFlags = 1 << 4
	MemoryProtected    MemoryFlags = 1 << 5
)

// String lists the flags, such as "device-local|host-visible".
func (f MemoryFlags) String() string {
	return flagNames(uint32(f), "device-local", "host-visible", "host-coherent", "host-cached", "lazily-allocated", "protected")
}

// QueueFlags is VkQueueFlags.
type QueueFlags uint32

// The queue capabilities, with Vulkan's values.
const (
	QueueGraphics      QueueFlags = 1 << 0
	QueueCompute       QueueFlags = 1 << 1
	QueueTransfer      QueueFlags = 1 << 2
	QueueSparseBinding QueueFlags = 1 << 3
)

// String lists the flags, such as "graphics|compute|transfer".
func (f QueueFlags) String() string {
	return flagNames(uint32(f), "graphics", "compute", "transfer", "sparse-binding")
}

// flagNames joins the names of the bits that are set; a bit past the names is
// shown by its number, so that a driver newer than this package stays readable.
func flagNames(bits uint32, names ...string) string {
	if bits == 0 {
		return "none"
	}
	var parts []string
	for i := 0; i < 32; i++ {
		switch {
		case bits&(1<<i) == 0:
		case i < len(names):
			parts = append(parts, names[i])
		default:
			parts = append(parts, fmt.Sprintf("bit%d", i))
		}
	}
	return strings.Join(parts, "|")
}

// MemoryType is one entry of a device's memory types.
type MemoryType struct {
	Heap  int // index into Properties.MemoryHeaps
	Flags MemoryFlags
}

// MemoryHeap is one of a device's memory heaps.
type MemoryHeap struct {
	Size        uint64 // bytes
	DeviceLocal bool
}

// QueueFamily is one of a device's queue families. Every family that draws or
// computes can transfer, whether its flags say so or not.
type QueueFamily struct {
	Flags              QueueFlags
	Count              int // queues
	TimestampValidBits int // meaningful bits of a timestamp; 0: none
}

// Limits are the figures of VkPhysicalDeviceLimits and its extensions that the
// runtime honours.
type Limits struct {
	MaxStorageBufferRange               uint32 // bytes
	MinStorageBufferOffsetAlignment     uint64 // bytes
	MaxPushConstantsSize                uint32 // bytes
	MaxComputeWorkGroupCount            [3]uint32
	MaxComputeWorkGroupSize             [3]uint32
	MaxComputeWorkGroupInvocations      uint32
	MaxMemoryAllocationCount            uint32
	MaxMemoryAllocationSize             uint64 // bytes
	NonCoherentAtomSize                 uint64 // bytes
	MaxTimelineSemaphoreValueDifference uint64
	TimestampPeriod                     float32 // nanoseconds a tick
	MaxPerStageDescriptorStorageBuffers uint32
	MinImportedHostPointerAlignment     uint64 // bytes; 0 when host memory cannot be imported
}

// Features says what a device can do. Opening a device enables all of them that
// are true, so they describe the opened device too.
type Features struct {
	TimelineSemaphore   bool
	BufferDeviceAddress bool
	Synchronization2    bool
	RobustBufferAccess  bool
	RobustBufferAccess2 bool
	PushDescriptor      bool
	ExternalMemoryHost  bool
	MemoryBudget        bool
	ExternalMemoryFd    bool // blocks go to other devices and processes as files
	ExternalTimelineFd  bool // so do timelines
	ExternalBinaryFd    bool // and binary semaphores
	HostQueryReset      bool // there are query pools
	// CalibratedTimestamps: the device's clock is read without a submission.
	CalibratedTimestamps bool

	ShaderFloat64                        bool
	ShaderInt64                          bool
	ShaderInt16                          bool
	ShaderInt8                           bool
	ShaderFloat16                        bool
	StorageBuffer8Bit                    bool
	UniformAndStorageBuffer8Bit          bool
	StoragePushConstant8                 bool
	StorageBuffer16Bit                   bool
	UniformAndStorageBuffer16Bit         bool
	StoragePushConstant16                bool
	VulkanMemoryModel                    bool
	VulkanMemoryModelDeviceScope         bool
	VariablePointers                     bool
	VariablePointersStorageBuffer        bool
	ShaderBufferInt64Atomics             bool
	ShaderSharedInt64Atomics             bool
	ScalarBlockLayout                    bool
	ShaderSubgroupExtendedTypes          bool
	StorageBufferArrayDynamicIndexing    bool
	UniformBufferArrayDynamicIndexing    bool
	StorageBufferArrayNonUniformIndexing bool

	SubgroupSize uint32
	// SubgroupOperations is VkSubgroupFeatureFlags for the compute stage: basic 1,
	// vote 2, arithmetic 4, ballot 8, shuffle 16, shuffle-relative 32, clustered
	// 64, quad 128. Zero when the compute stage has none.
	SubgroupOperations uint32
}

// Properties describes a physical device. Treat it as read-only: all holders of
// the device share it.
type Properties struct {
	Name          string
	Type          DeviceType
	VendorID      uint32
	DeviceID      uint32
	UUID          [16]byte
	APIVersion    uint32 // major<<22 | minor<<12 | patch
	DriverVersion uint32 // in the vendor's own encoding
	DriverName    string
	DriverInfo    string
	Limits        Limits
	MemoryTypes   []MemoryType
	MemoryHeaps   []MemoryHeap
	QueueFamilies []QueueFamily
	Features      Features
	Extensions    []string // sorted
}

// Version spells an API version, such as "1.3.230".
func Version(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}
