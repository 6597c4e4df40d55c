package vk

import (
	"fmt"
	"log/slog"
	"strings"
	"unsafe"

	"github.com/vkomp/vkomp/vk/spirv"
)

// Memory names a VkDeviceMemory of one device. Zero is no memory.
type Memory uint64

// Buffer names a VkBuffer of one device. Zero is no buffer.
type Buffer uint64

// Semaphore names a timeline VkSemaphore of one device. Zero is no semaphore.
type Semaphore uint64

// MemoryRange is a range of a block's memory.
type MemoryRange struct {
	Memory       Memory // the VkDeviceMemory
	Offset, Size uint64 // bytes
}

// HeapBudget describes how much of a memory heap this process can use, in bytes.
type HeapBudget struct {
	Budget uint64 // how much the process may use before allocations fail or become slow
	Usage  uint64 // how much it uses now
}

// Block is one VkDeviceMemory with one VkBuffer that is bound to all of it.
type Block struct {
	Memory     Memory         // the VkDeviceMemory
	Buffer     Buffer         // the VkBuffer
	Size       uint64         // bytes, as asked
	Host       unsafe.Pointer // mapping of the whole block; nil if it is not host-visible, or imported
	Address    uint64         // buffer device address; 0 if the device does not support it
	MemoryType int            // index into Properties.MemoryTypes; -1 if foreign
	Foreign    bool           // made by Device.AdoptBuffer: owned by somebody else
}

// Pipeline is a compute pipeline with its layouts, as plain data that a Stream copies. The
// Device that created it owns the objects.
type Pipeline struct {
	Handle    uint64 // VkPipeline
	Layout    uint64 // VkPipelineLayout
	SetLayout uint64 // VkDescriptorSetLayout of set 0; 0 when there are no bindings
	Bindings  uint32 // number of storage buffers that a dispatch must bind
	// BindingMask has bit b set if set 0 declares binding number b. The k-th buffer
	// range of a dispatch is bound to the number of the k-th set bit.
	BindingMask   uint32
	PushConstants uint32 // bytes; the largest size that a dispatch may push
	// Merging is the number of the pipelines that can do several dispatches of this one at once, or 0:
	// see PipelineOptions.Merges. A pipeline that merges has its own number here, and is not
	// dispatched itself.
	Merging uint32
	// Found says that the driver found it in the device's pipeline cache. A device without
	// Features.PipelineCreationFeedback does not tell.
	Found bool
}

// QueryPool is a VkQueryPool of timestamps, as plain data that a Stream copies. The Device
// that created it owns the object.
type QueryPool struct {
	Handle uint64 // VkQueryPool
	Count  uint32 // number of queries
}

// MaxMergedPush bounds the push constants of a pipeline that merges dispatches of another one, in
// bytes: see VKO_MERGED_PUSH_BYTES.
const MaxMergedPush = 256

// MaxMergedLaunches bounds the number of dispatches that one does of a pipeline that merges them. With more, one of
// them costs hardly less.
const MaxMergedLaunches = 64

// MaxMergedGroups is the largest number of workgroups of a dispatch that is merged with others. What a
// dispatch costs is little beside a longer one, and a kernel whose launches have their own bindings takes up to a sixth
// longer, because it has to choose among descriptors (measured on software drivers).
const MaxMergedGroups = 256

// MaxBindings bounds the binding numbers of set 0: they are 0 to MaxBindings-1. Every
// device with push descriptors supports at least that many.
const MaxBindings = 32

// SpecEntry is the value of a specialization constant.
type SpecEntry struct {
	ID    uint32 // the constant's SpecId
	Value uint64 // the low Size bytes are used
	Size  uint32 // bytes: 1, 2, 4 or 8; a boolean takes 4
}

// PipelineOptions describes a compute pipeline.
type PipelineOptions struct {
	Code           []uint32    // SPIR-V in native-endian words
	Entry          string      // name of the entry point
	Bindings       []uint32    // storage-buffer binding numbers in set 0, ascending
	PushConstants  uint32      // bytes, a multiple of 4
	Specialization []SpecEntry // values of specialization constants; others keep their defaults
	Label          string      // names the pipeline in errors; may be empty

	// Merges, if its Handle is not 0, is another pipeline of the device, with the same bindings. A
	// dispatch of the new pipeline does what up to Launches dispatches of that one do, each of which has
	// the same number of workgroups, and one along z: z is the number of the dispatch, and the push
	// constants of each begin Stride bytes, a multiple of 4, behind those of the one before it, and those of
	// the first at Base. PushConstants is Base plus Launches times Stride. LaunchBindings says what the bindings
	// are: with spirv.OwnBindings arrays of Launches descriptors, with spirv.SharedBindings those of Merges, and
	// with spirv.SpacedBindings what spirv.Merge says, for elements of as many bytes as Elements has for each
	// binding. What spaced dispatches bind has no gaps.
	//
	// A Stream with dispatches of a Pipeline whose Merging is that of the new one is submitted in such
	// dispatches, as far as they stand side by side and have at most MaxMergedGroups workgroups each. If
	// Merges has a Merging itself, of pipelines with other LaunchBindings, the new number stands for
	// all of them, and more dispatches are merged. None of these pipelines may be destroyed before the last such
	// Stream is submitted and complete, and the last Recording of one is forgotten.
	Merges                 Pipeline
	Launches, Base, Stride uint32
	LaunchBindings         spirv.MergedBindings
	Elements               []uint32
}

// SemaphoreType is VkSemaphoreType.
type SemaphoreType int32

// Types of semaphores, with Vulkan's values.
const (
	BinarySemaphore   SemaphoreType = 0 // VK_SEMAPHORE_TYPE_BINARY
	TimelineSemaphore SemaphoreType = 1 // VK_SEMAPHORE_TYPE_TIMELINE
)

// SemaphoreValue is a value of a timeline semaphore that a submission waits for or
// signals.
type SemaphoreValue struct {
	Semaphore Semaphore // a timeline semaphore, or an exportable binary one
	Value     uint64    // ignored for a binary semaphore
}

// InstanceOptions are the options of Open.
type InstanceOptions struct {
	ApplicationName string // VkApplicationInfo.pApplicationName
	// Validation loads VK_LAYER_KHRONOS_validation with synchronization
	// validation. Open returns an error that names the layer if it is not installed.
	Validation bool
	// NoSynchronizationChecks turns synchronization validation off. It assumes that a
	// dispatch accesses every byte that it binds, so it reports dispatches whose
	// bindings overlap even if their accesses do not.
	NoSynchronizationChecks bool
	Logger                  *slog.Logger // receives validation messages; nil drops them
}

// DeviceOptions are the options of PhysicalDevice.Open.
type DeviceOptions struct {
	// NoPushDescriptors binds buffers through descriptor pools even if the device has
	// push descriptors.
	NoPushDescriptors bool
	// ComputeQueues is the largest number of compute queues. Those of families that do not draw
	// come first. 0 means 8 of these, and one of each family that draws; 8 if all families draw.
	// A negative number is an error.
	ComputeQueues int
	// TransferQueues is the largest number of queues of families that support transfers
	// but neither compute nor graphics; 0 means 2, a negative number none.
	TransferQueues int
	// InteropQueues is the largest number of queues that are in [Device.InteropQueues]
	// instead of Device.Queues; 0 means 1, a negative number none.
	InteropQueues int
	// PipelineCache is what the device's pipeline cache has at first: the result of
	// Device.PipelineCacheData for an earlier device, or nothing. The device keeps the slice, whose
	// bytes may not change. Open ignores that of another driver (see Properties.CheckPipelineCache).
	// Drivers trust the rest.
	PipelineCache []byte
}

// DeviceType is VkPhysicalDeviceType.
type DeviceType uint32

// Device types, with Vulkan's values.
const (
	DeviceOther      DeviceType = 0 // VK_PHYSICAL_DEVICE_TYPE_OTHER
	DeviceIntegrated DeviceType = 1 // VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
	DeviceDiscrete   DeviceType = 2 // VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
	DeviceVirtual    DeviceType = 3 // VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU
	DeviceSoftware   DeviceType = 4 // VK_PHYSICAL_DEVICE_TYPE_CPU
)

// String returns the type in one word, such as "discrete" or "software".
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

// Memory properties, with Vulkan's values.
const (
	MemoryDeviceLocal  MemoryFlags = 1 << 0 // VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
	MemoryHostVisible  MemoryFlags = 1 << 1 // VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
	MemoryHostCoherent MemoryFlags = 1 << 2 // VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
	MemoryHostCached   MemoryFlags = 1 << 3 // VK_MEMORY_PROPERTY_HOST_CACHED_BIT
	MemoryLazy         MemoryFlags = 1 << 4 // VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT
	MemoryProtected    MemoryFlags = 1 << 5 // VK_MEMORY_PROPERTY_PROTECTED_BIT
)

// String returns the names of the flags, such as "device-local|host-visible".
func (f MemoryFlags) String() string {
	return flagNames(uint32(f), "device-local", "host-visible", "host-coherent", "host-cached", "lazily-allocated", "protected")
}

// QueueFlags is VkQueueFlags.
type QueueFlags uint32

// Queue capabilities, with Vulkan's values.
const (
	QueueGraphics      QueueFlags = 1 << 0 // VK_QUEUE_GRAPHICS_BIT
	QueueCompute       QueueFlags = 1 << 1 // VK_QUEUE_COMPUTE_BIT
	QueueTransfer      QueueFlags = 1 << 2 // VK_QUEUE_TRANSFER_BIT
	QueueSparseBinding QueueFlags = 1 << 3 // VK_QUEUE_SPARSE_BINDING_BIT
)

// String returns the names of the flags, such as "graphics|compute|transfer".
func (f QueueFlags) String() string {
	return flagNames(uint32(f), "graphics", "compute", "transfer", "sparse-binding")
}

// flagNames joins the names of the bits that are set. A bit without a name is shown by its
// number, so that flags of newer drivers stay readable.
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

// MemoryType is a memory type of a device (VkMemoryType).
type MemoryType struct {
	Heap  int         // index into Properties.MemoryHeaps
	Flags MemoryFlags // its properties
}

// MemoryHeap is a memory heap of a device (VkMemoryHeap).
type MemoryHeap struct {
	Size        uint64 // bytes
	DeviceLocal bool   // VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
}

// QueueFamily is a queue family of a device (VkQueueFamilyProperties). Every family that
// supports graphics or compute supports transfers, even without QueueTransfer.
type QueueFamily struct {
	Flags              QueueFlags // its capabilities
	Count              int        // number of queues
	TimestampValidBits int        // number of valid bits of a timestamp; 0 if the family has no timestamps
}

// Limits holds those members of VkPhysicalDeviceLimits, and of the limits of extensions,
// that the runtime observes. They have Vulkan's names and units.
type Limits struct {
	MaxStorageBufferRange               uint32    // bytes
	MinStorageBufferOffsetAlignment     uint64    // bytes
	MaxPushConstantsSize                uint32    // bytes
	MaxComputeWorkGroupCount            [3]uint32 // workgroups of a dispatch, for each dimension
	MaxComputeWorkGroupSize             [3]uint32 // invocations of a workgroup, for each dimension
	MaxComputeWorkGroupInvocations      uint32    // invocations of a workgroup
	MaxMemoryAllocationCount            uint32    // number of allocations that may exist
	MaxMemoryAllocationSize             uint64    // bytes, which a buffer can have too (maxBufferSize)
	NonCoherentAtomSize                 uint64    // bytes
	TimestampPeriod                     float32   // nanoseconds per tick
	MaxComputeSharedMemorySize          uint32    // bytes of the shared variables of a workgroup
	MaxPerStageDescriptorStorageBuffers uint32    // storage buffers that a compute shader may bind
	MinImportedHostPointerAlignment     uint64    // bytes; 0 if host memory cannot be imported
}

// Features describes what a device supports. Opening a device enables all features that
// are true, so this also describes the opened device.
type Features struct {
	// Vulkan's features of the same names, then extensions, whose names are without the
	// prefix and underscores.
	TimelineSemaphore   bool
	BufferDeviceAddress bool
	Synchronization2    bool
	RobustBufferAccess  bool
	RobustBufferAccess2 bool
	PushDescriptor      bool
	ExternalMemoryHost  bool
	MemoryBudget        bool
	ExternalMemoryFd    bool // blocks can be exported and imported as files
	ExternalTimelineFd  bool // so can timeline semaphores
	ExternalBinaryFd    bool // so can binary semaphores
	HostQueryReset      bool // there are query pools
	// CalibratedTimestamps says that the device's clock can be read without a submission.
	CalibratedTimestamps bool
	// PipelineCreationFeedback says that the driver tells which pipelines it found in its cache.
	PipelineCreationFeedback bool

	// What shaders may use: Vulkan's features of these names.
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
	SubgroupBroadcastDynamicID           bool
	ShaderZeroInitializeWorkgroupMemory  bool
	Maintenance4                         bool

	// SubgroupSize is the number of invocations in a subgroup.
	SubgroupSize uint32
	// SubgroupOperations is VkPhysicalDeviceSubgroupProperties.supportedOperations:
	// basic 1, vote 2, arithmetic 4, ballot 8, shuffle 16, shuffle-relative 32,
	// clustered 64, quad 128. It is zero if compute shaders have no subgroup operations.
	SubgroupOperations uint32
}

// Properties describes a physical device. It is shared and must not be changed.
type Properties struct {
	Name          string     // VkPhysicalDeviceProperties.deviceName
	Type          DeviceType // discrete, integrated, …
	VendorID      uint32     // PCI or Khronos vendor ID
	DeviceID      uint32     // the vendor's ID of the device
	UUID          [16]byte   // VkPhysicalDeviceIDProperties.deviceUUID
	APIVersion    uint32     // major<<22 | minor<<12 | patch
	DriverVersion uint32     // in an encoding of the vendor
	DriverName    string     // VkPhysicalDeviceDriverProperties.driverName
	DriverInfo    string     // VkPhysicalDeviceDriverProperties.driverInfo
	// PipelineCacheUUID is VkPhysicalDeviceProperties.pipelineCacheUUID.
	PipelineCacheUUID [16]byte
	Limits            Limits        // limits of the device
	MemoryTypes       []MemoryType  // at the indices that Vulkan uses
	MemoryHeaps       []MemoryHeap  // at the indices that Vulkan uses
	QueueFamilies     []QueueFamily // at the indices that Vulkan uses
	Features          Features      // what the device supports or, if it is adopted, has enabled
	Adopted           bool          // see Adopt
	Extensions        []string      // names of the device extensions, sorted
}

// Version formats an API version, for example "1.3.230".
func Version(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}
