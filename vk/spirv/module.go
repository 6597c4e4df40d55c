package spirv

import (
	"fmt"
	"strings"
)

// Module is the result of Parse. It is immutable: its slices and the blocks that they point
// to are shared and must not be changed.
type Module struct {
	Version        uint32         // as in the header: 0x00010500 is 1.5
	Capabilities   []Capability   // in the order of declaration, each once
	Extensions     []string       // in the order of declaration
	EntryPoints    []EntryPoint   // of every execution model, in the order of declaration
	Descriptors    []Descriptor   // of all variables, in the order of declaration, used or not
	Launches       uint32         // Merged.Launches of a module that Merge has returned, else 0
	LaunchBindings MergedBindings // MergeOptions.Bindings of such a module
	Words          []uint32       // the module in native byte order, for vkCreateShaderModule

	// Each of the following needs a feature of Vulkan that no capability of SPIR-V stands for alone. All are
	// about the whole module, used or not.
	//
	// InitializesShared says that a variable of storage class Workgroup has an initial value, and SizeByID
	// that an entry point has the execution mode LocalSizeId.
	InitializesShared, SizeByID bool
	// SharedInt64Atomics and BufferInt64Atomics say that there are atomic operations on integers of 64 bits
	// of storage class Workgroup, and of other classes.
	SharedInt64Atomics, BufferInt64Atomics bool
	// SubgroupExtendedTypes says that there are group operations (OpGroupNonUniform) on integers of 8, 16 or
	// 64 bits or floating-point numbers of 16 bits, and SubgroupBroadcastDynamicID that the number of the
	// invocation that one broadcasts from is no constant.
	SubgroupExtendedTypes, SubgroupBroadcastDynamicID bool

	spec map[uint32]uint32 // as given to ParseSpecialized
}

// Descriptor names a descriptor, or an array of them, by the numbers in the module.
type Descriptor struct{ Set, Binding uint32 }

// EntryPoint is one entry point of a module. Only compute shaders (Model ModelGLCompute)
// are reflected; for other models only Name and Model are set.
type EntryPoint struct {
	Name  string         // name in the module
	Model ExecutionModel // pipeline stage

	// LocalSize is the size of a workgroup in invocations, with every
	// specialization constant at its default. It comes from the object
	// decorated BuiltIn WorkgroupSize where the module has one, else from the
	// execution mode LocalSize or LocalSizeId. A dimension that depends on a
	// specialization constant may be zero by default.
	LocalSize [3]uint32

	// LocalSizeSpec has the SpecId of each dimension that is itself a specialization
	// constant, else nil. A dimension that is computed from specialization constants
	// also has nil; see WorkgroupSize.
	LocalSizeSpec [3]*uint32

	// Bindings are the descriptors that this entry point uses statically,
	// sorted by set and binding, each pair once.
	Bindings []Binding

	// PushConstants is the push constant block that this entry point uses, or
	// nil.
	PushConstants *Block

	// UsesNumWorkgroups says that the entry point reads the built-in
	// NumWorkgroups, so its result depends on how a launch is cut into
	// dispatches.
	UsesNumWorkgroups bool

	// SharedBytes is how many bytes the variables of storage class Workgroup take that this entry
	// point uses statically, at least: without what an implementation leaves free between them.
	// Booleans take 4 (Vulkan, maxComputeSharedMemorySize).
	SharedBytes uint64

	// UsesAddresses says that the entry point makes pointers to physical
	// storage buffers: it may access memory that no binding names.
	UsesAddresses bool

	// Loops says that the entry point has a loop, in its function or in one that it calls. Without
	// one, each of its instructions is executed at most once for each call of its function.
	Loops bool

	// SpecConstants are the specialization constants of the whole module that
	// have a SpecId, sorted by it. All entry points share the slice.
	SpecConstants []SpecConstant

	size [3]constant
}

// EntryPoint returns the compute entry point with that name. The error wraps ErrEntryPoint
// and lists the existing names, or the execution model if it is not GLCompute.
func (m *Module) EntryPoint(name string) (*EntryPoint, error) {
	var other *EntryPoint
	for i := range m.EntryPoints {
		switch e := &m.EntryPoints[i]; {
		case e.Name != name:
		case e.Model == ModelGLCompute:
			return e, nil
		default:
			other = e
		}
	}
	if other != nil {
		return nil, fmt.Errorf("%w: entry point %.64q has execution model %v, not GLCompute", ErrEntryPoint, name, other.Model)
	}
	return nil, fmt.Errorf("%w: %.64q: the module has %s", ErrEntryPoint, name, m.entryPointNames())
}

func (m *Module) entryPointNames() string {
	const most = 16
	if len(m.EntryPoints) == 0 {
		return "no entry points"
	}
	var b strings.Builder
	for i, e := range m.EntryPoints {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(m.EntryPoints)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.64q", e.Name)
		if e.Model != ModelGLCompute {
			fmt.Fprintf(&b, " (%v)", e.Model)
		}
	}
	return b.String()
}

// WorkgroupSize returns the size of a workgroup. spec holds values of specialization
// constants by SpecId; the others have their defaults. A dimension is zero if it divides by
// zero or does not fit 32 bits.
func (e *EntryPoint) WorkgroupSize(spec map[uint32]uint32) [3]uint32 {
	size := e.LocalSize
	for i := range e.size {
		if e.size[i].specialized {
			size[i] = e.size[i].dimension(spec)
		}
	}
	return size
}

// ExecutionModel is the pipeline stage of an entry point.
type ExecutionModel uint32

// Execution models, with the specification's values.
const (
	ModelVertex    ExecutionModel = 0 // vertex shader
	ModelFragment  ExecutionModel = 4 // fragment shader
	ModelGLCompute ExecutionModel = 5 // compute shader
	ModelKernel    ExecutionModel = 6 // OpenCL
)

var executionModelNames = map[ExecutionModel]string{
	ModelVertex: "Vertex", 1: "TessellationControl", 2: "TessellationEvaluation", 3: "Geometry",
	ModelFragment: "Fragment", ModelGLCompute: "GLCompute", ModelKernel: "Kernel",
	5267: "TaskNV", 5268: "MeshNV", 5313: "RayGenerationKHR", 5314: "IntersectionKHR",
	5315: "AnyHitKHR", 5316: "ClosestHitKHR", 5317: "MissKHR", 5318: "CallableKHR",
	5364: "TaskEXT", 5365: "MeshEXT",
}

// String returns the specification's name, or "ExecutionModel(number)".
func (m ExecutionModel) String() string {
	if name, ok := executionModelNames[m]; ok {
		return name
	}
	return fmt.Sprintf("ExecutionModel(%d)", uint32(m))
}
