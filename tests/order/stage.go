package order

// class is a pipeline stage, as far as the checker distinguishes them.
type class uint8

const (
	computing class = iota // COMPUTE_SHADER
	copying                // COPY
	clearing               // CLEAR: fills and updates
	drawing                // DRAW_INDIRECT: reads the size of an indirect dispatch
	hosting                // HOST
	classes

	deviceClasses = int(hosting)
)

// classSet is a set of classes: bit c stands for class c.
type classSet uint8

func (s classSet) has(c class) bool { return s>>c&1 != 0 }

const onDevice = classSet(1)<<hosting - 1

// Vulkan's stage bits (VkPipelineStageFlagBits2).
const (
	stageTop          = 0x1
	stageDrawIndirect = 0x2
	stageCompute      = 0x800
	stageTransfer     = 0x1000
	stageBottom       = 0x2000
	stageHost         = 0x4000
	stageAllGraphics  = 0x8000
	stageAllCommands  = 0x10000
	stageCopy         = 0x1_0000_0000
	stageClear        = 0x8_0000_0000
)

// Vulkan's access bits (VkAccessFlagBits2).
const (
	accessIndirectRead  = 0x1
	accessShaderRead    = 0x20
	accessShaderWrite   = 0x40
	accessTransferRead  = 0x800
	accessTransferWrite = 0x1000
	accessHostRead      = 0x2000
	accessHostWrite     = 0x4000
	accessMemoryRead    = 0x8000
	accessMemoryWrite   = 0x10000
	accessStorageRead   = 0x2_0000_0000
	accessStorageWrite  = 0x4_0000_0000
)

// named returns the classes of the stages in a mask.
func named(stages uint64) classSet {
	var s classSet
	if stages&stageAllCommands != 0 {
		s |= onDevice
	}
	for _, e := range [...]struct {
		stage uint64
		class classSet
	}{
		{stageCompute, 1 << computing}, {stageTransfer, 1<<copying | 1<<clearing}, {stageHost, 1 << hosting},
		{stageCopy, 1 << copying}, {stageClear, 1 << clearing}, {stageDrawIndirect | stageAllGraphics, 1 << drawing},
	} {
		if stages&e.stage != 0 {
			s |= e.class
		}
	}
	return s
}

// source returns the classes in the first scope of a source mask, which includes logically
// earlier stages. Nothing is before the top of the pipe, everything is before its bottom.
func source(stages uint64) classSet {
	s := named(stages)
	if stages&stageBottom != 0 {
		s |= onDevice
	}
	if s.has(computing) {
		s |= 1 << drawing
	}
	return s
}

// destination returns the classes in the second scope of a destination mask, which includes
// logically later stages.
func destination(stages uint64) classSet {
	s := named(stages)
	if stages&stageTop != 0 {
		s |= onDevice
	}
	if s.has(drawing) {
		s |= 1 << computing
	}
	return s
}

// readers and writers return the classes whose reads or writes a mask names.
func readers(access uint64) classSet {
	return pick(access, 1<<computing, accessShaderRead|accessStorageRead|accessMemoryRead) |
		pick(access, 1<<copying, accessTransferRead|accessMemoryRead) |
		pick(access, 1<<drawing, accessIndirectRead|accessMemoryRead) |
		pick(access, 1<<hosting, accessHostRead|accessMemoryRead)
}

func writers(access uint64) classSet {
	return pick(access, 1<<computing, accessShaderWrite|accessStorageWrite|accessMemoryWrite) |
		pick(access, 1<<copying|1<<clearing, accessTransferWrite|accessMemoryWrite) |
		pick(access, 1<<hosting, accessHostWrite|accessMemoryWrite)
}

func pick(access uint64, s classSet, bits uint64) classSet {
	if access&bits != 0 {
		return s
	}
	return 0
}

// dependency is one memory barrier of a pipeline barrier, or its stages alone.
type dependency struct {
	srcStages, dstStages uint64
	srcAccess, dstAccess uint64
	// within, if not nil, is the range of bytes to which the barrier applies; without bytes it is
	// only an execution dependency.
	within *section
}

// section is a range of bytes of one space.
type section struct {
	space  *space
	lo, hi uint64
}

// available returns the classes whose writes the dependency makes available.
func (d *dependency) available() classSet {
	s := named(d.srcStages)
	if d.srcStages&stageBottom != 0 {
		s |= onDevice
	}
	return s & writers(d.srcAccess)
}

// visible returns the classes to whose reads, and to whose writes, the dependency makes them
// visible.
func (d *dependency) visible() (read, written classSet) {
	s := named(d.dstStages)
	if d.dstStages&stageTop != 0 {
		s |= onDevice
	}
	return s & readers(d.dstAccess), s & writers(d.dstAccess)
}
