package spirv

import "fmt"

// Binding is one descriptor binding that an entry point uses. Where several
// variables share a set and binding, as views of one buffer under different
// types, they are one Binding: read or written if any of them is, of the
// largest MinSize.
type Binding struct {
	Set, Binding uint32
	Name         string // of the variable, else of its block; may be empty
	Kind         BindingKind

	// Read and Written say what the entry point may do to the descriptor's
	// memory, from the instructions that it reaches. The length of a runtime
	// array is not part of the memory. Uniform buffers, samplers and sampled
	// images are never written.
	Read, Written bool

	// NonWritable and NonReadable say that the variable, or every member of its
	// block, has that decoration.
	NonWritable, NonReadable bool

	// ReadOnly is NonWritable or not Written; WriteOnly is NonReadable or not
	// Read. A binding that is neither read nor written has both. WriteOnly does
	// not mean that all of it is written.
	ReadOnly, WriteOnly bool

	// Stride is the ArrayStride in bytes of the runtime array that ends the
	// block; 0 without one, or where several views disagree.
	Stride uint32

	// MinSize is the number of bytes that the fixed part of the block needs: up
	// to the end of its last member, or to the start of its runtime array. An
	// array counts its stride for each element. Arrays sized by specialization
	// constants count at their default.
	MinSize uint64

	// Count is the number of descriptors: 1, the length of an array of them, or
	// 0 for an array without a length.
	Count uint32
}

// BindingKind says which kind of descriptor a binding takes.
type BindingKind uint8

// The kinds of descriptors, in Vulkan's names.
const (
	Other BindingKind = iota // a kind that this package does not know
	StorageBuffer
	UniformBuffer
	StorageImage
	SampledImage
	Sampler
	CombinedImageSampler
	StorageTexelBuffer
	UniformTexelBuffer
	InputAttachment
	AccelerationStructure
)

var bindingKindNames = [...]string{
	"other", "storage buffer", "uniform buffer", "storage image", "sampled image", "sampler",
	"combined image sampler", "storage texel buffer", "uniform texel buffer", "input attachment",
	"acceleration structure",
}

// String returns Vulkan's name in words, as "storage buffer".
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
	Name    string // of the structure type, else of the variable; may be empty
	Size    uint32 // bytes, to the end of the last member; a VkPushConstantRange takes it rounded up to 4
	Members []Member
}

// Member is one member of a Block, in the order of declaration.
type Member struct {
	Name         string
	Offset, Size uint32 // bytes

	// Kind is the kind of the scalars that the member is made of, Width their
	// size in bytes and Components their number: a vec3 has {ScalarFloat, 4, 3}.
	// A structure has {ScalarNone, 0, 0}.
	Kind       ScalarKind
	Width      uint32
	Components uint32
}

// ScalarKind is the kind of a scalar.
type ScalarKind uint8

// The kinds of scalars.
const (
	ScalarNone ScalarKind = iota // not made of scalars of one kind
	ScalarInt                    // signed integer
	ScalarUint
	ScalarFloat
	ScalarBool
	ScalarAddress // pointer to a physical storage buffer, 8 bytes
)

var scalarKindNames = [...]string{"none", "int", "uint", "float", "bool", "address"}

func (k ScalarKind) String() string {
	if int(k) < len(scalarKindNames) {
		return scalarKindNames[k]
	}
	return fmt.Sprintf("ScalarKind(%d)", uint8(k))
}

// SpecConstant is a scalar constant that a pipeline can set.
type SpecConstant struct {
	ID      uint32 // the SpecId
	Name    string
	Size    uint32 // bytes that VkSpecializationMapEntry::size must be; 4 for a bool
	Default uint64 // the bits of the value, zero-extended
	Kind    ScalarKind
}
