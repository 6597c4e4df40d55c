package spirv

// Limits of a module. Each bounds something that can grow faster than the module. Modules
// of compilers are far below them.
const (
	// maxBound is the specification's universal limit on the id bound.
	maxBound = 4194303

	// maxOperands is the largest number of words behind the first one of an instruction.
	maxOperands = 0xffff - 1

	// maxEntryPoints bounds the number of walks over the call graph.
	maxEntryPoints = 1024

	// maxListed bounds the number of bindings of all entry points together, since every
	// entry point may list every variable.
	maxListed = 1 << 16

	// maxConstantNodes bounds the number of operations in a folded constant, and so the
	// depth of the recursion that collects them.
	maxConstantNodes = 128

	// maxTypeSize bounds the size of a type in bytes, so that sums of an offset and a
	// size cannot overflow.
	maxTypeSize = 1 << 48
)
