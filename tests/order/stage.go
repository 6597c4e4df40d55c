package order

// class is a stage that commands run in, as far as orders tell them apart.
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

// classSet has bit c for class c.
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

// named are the classes of the stages that a mask names.
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

// source are the classes in the scope of a source mask: those of logically earlier
// stages too. Nothing is before the top of the pipe, all is before its bottom.
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

// destination are the classes in the scope of a destination mask: those of
// logically later stages too.
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

// readers and writers are the classes whose accesses of that kind a mask names.
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

// dependency is one memory barrier of a pipeline barrier, or its bare stages.
type dependency struct {
	srcStages, dstStages uint64
	srcAccess, dstAccess uint64
	// within: the barrier is for these bytes alone, if it is not nil; kept for its
	// execution only if the bytes are none.
	within *section
}

// section is a range of bytes of one space.
type section struct {
	space  *space
	lo, hi uint64
}

// available are the classes whose writes the dependency makes available.
func (d *dependency) available() classSet {
	s := named(d.srcStages)
	if d.srcStages&stageBottom != 0 {
		s |= onDevice
	}
	return s & writers(d.srcAccess)
}

// visible are the classes whose reads, and whose writes, see what is available.
func (d *dependency) visible() (read, written classSet) {
	s := named(d.dstStages)
	if d.dstStages&stageTop != 0 {
		s |= onDevice
	}
	return s & readers(d.dstAccess), s & writers(d.dstAccess)
}
