package spirv

// Limits on a module. Each bounds something that grows faster than the module
// does; no module that a compiler emits comes near one.
const (
	// maxBound is the specification's universal limit on the id bound.
	maxBound = 4194303

	// maxEntryPoints bounds the walks over the call graph, one an entry point.
	maxEntryPoints = 1024

	// maxListed bounds the bindings listed by all entry points together, since
	// every entry point may list every variable.
	maxListed = 1 << 16

	// maxConstantNodes bounds the operations that one folded constant is made
	// of, and with them the depth of the recursion that collects them.
	maxConstantNodes = 128

	// maxTypeSize bounds the size of a type, in bytes, so that sums of an
	// offset and a size stay far from overflow.
	maxTypeSize = 1 << 48
)
