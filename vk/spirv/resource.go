package spirv

import "fmt"

// Binding is one descriptor binding that an entry point uses. Several variables with the
// same set and binding, such as views of one buffer with different types, are one Binding:
// it is read or written if any of them is, and has the largest MinSize.
type Binding struct {
	Set, Binding uint32      // numbers in the module
	Name         string      // of the variable, else of its block; may be empty
	Kind         BindingKind // kind of descriptor

	// Read and Written say whether the entry point may access the descriptor's memory
	// with the instructions that are reachable from it. The length of a runtime array
	// does not belong to the memory. Uniform buffers, samplers and sampled images are
	// never written.
	Read, Written bool

	// NonWritable and NonReadable say that the variable, or every member of its
	// block, has that decoration.
	NonWritable, NonReadable bool

	// ReadOnly is NonWritable or not Written; WriteOnly is NonReadable or not Read. A
	// binding that is neither read nor written has both. WriteOnly does not mean that
	// all of it is written.
	ReadOnly, WriteOnly bool

	// Stride is the ArrayStride in bytes of the runtime array that ends the
	// block; 0 without one, or where several views disagree.
	Stride uint32

	// MinSize is the size in bytes of the fixed part of the block: up to the end of its
	// last member, or to the start of its runtime array. Each element of an array
	// counts with the array's stride. Arrays sized by specialization constants have
	// the length for the values given to ParseSpecialized, else their default length.
	MinSize uint64

	// Count is the number of descriptors: 1, the length of an array of them, or
	// 0 for an array without a length.
	Count uint32
}

// BindingKind is a kind of descriptor (VkDescriptorType).
type BindingKind uint8

// The kinds of descriptors, with Vulkan's names.
const (
	Other                 BindingKind = iota // a kind that this package does not know
	StorageBuffer                            // VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
	UniformBuffer                            // VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
	StorageImage                             // VK_DESCRIPTOR_TYPE_STORAGE_IMAGE
	SampledImage                             // VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE
	Sampler                                  // VK_DESCRIPTOR_TYPE_SAMPLER
	CombinedImageSampler                     // VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER
	StorageTexelBuffer                       // VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER
	UniformTexelBuffer                       // VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
	InputAttachment                          // VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT
	AccelerationStructure                    // VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR
)

var bindingKindNames = [...]string{
	"other", "storage buffer", "uniform buffer", "storage image", "sampled image", "sampler",
	"combined image sampler", "storage texel buffer", "uniform texel buffer", "input attachment",
	"acceleration structure",
}

// String returns Vulkan's name in words, such as "storage buffer".
func (k BindingKind) String() string {
	if int(k) < len(bindingKindNames) {
		return bindingKindNames[k]
	}
	return fmt.Sprintf("BindingKind(%d)", uint8(k))
}

// writable reports whether a shader can write to such a descriptor.
func (k BindingKind) writable() bool {
	switch k {
	case Other, StorageBuffer, StorageImage, StorageTexelBuffer:
		return true
	}
	return false
}

// Block is a push constant block.
type Block struct {
	Name    string   // of the structure type, else of the variable; may be empty
	Size    uint32   // bytes, to the end of the last member, not rounded up to 4 as a VkPushConstantRange requires
	Members []Member // in the order of declaration
	// Inner are the members of the only member, if that is a structure, at their places in the block.
	Inner []Member
}

// Member is one member of a Block, in the order of declaration.
type Member struct {
	Name         string // name in the module; may be empty
	Offset, Size uint32 // bytes

	// Kind is the kind of the member's scalars, Width their size in bytes and
	// Components their number: a vec3 has {ScalarFloat, 4, 3}. A structure has
	// {ScalarNone, 0, 0}.
	Kind       ScalarKind
	Width      uint32
	Components uint32

	// Align is the base alignment of a structure, or an array of them, in bytes (std430: of its largest
	// vector), and ScalarAlign that of its largest scalar. They are 0 for other members.
	Align, ScalarAlign uint32
}

// Type describes the member's type, such as "uint, 4 bytes" or "structure, 12 bytes".
func (m *Member) Type() string {
	kind := m.Kind.String()
	if m.Kind == ScalarNone {
		kind = "structure"
	}
	return fmt.Sprintf("%s, %d bytes", kind, m.Size)
}

// Holds reports whether a value of size bytes has what the member takes: it may have the padding of a structure at
// its end, too, by either alignment.
func (m *Member) Holds(size int) bool {
	return uint64(size) == uint64(m.Size) || m.padded(uint64(size), m.Align) || m.padded(uint64(size), m.ScalarAlign)
}

// padded reports whether size is the member's, rounded up to a multiple of align, which is 0 for none.
func (m *Member) padded(size uint64, align uint32) bool {
	return align > 0 && size == (uint64(m.Size)+uint64(align)-1)/uint64(align)*uint64(align)
}

// ScalarKind is the kind of a scalar.
type ScalarKind uint8

// The kinds of scalars.
const (
	ScalarNone    ScalarKind = iota // not made of scalars of one kind
	ScalarInt                       // signed integer
	ScalarUint                      // unsigned integer
	ScalarFloat                     // floating-point number
	ScalarBool                      // boolean
	ScalarAddress                   // pointer to a physical storage buffer, 8 bytes
)

var scalarKindNames = [...]string{"none", "int", "uint", "float", "bool", "address"}

// String returns the name of the kind, such as "float".
func (k ScalarKind) String() string {
	if int(k) < len(scalarKindNames) {
		return scalarKindNames[k]
	}
	return fmt.Sprintf("ScalarKind(%d)", uint8(k))
}

// SpecConstant is a scalar specialization constant.
type SpecConstant struct {
	ID      uint32     // the SpecId
	Name    string     // name in the module; may be empty
	Size    uint32     // bytes, the required VkSpecializationMapEntry::size; 4 for a bool
	Default uint64     // the bits of the value, zero-extended
	Kind    ScalarKind // kind of the scalar
}
