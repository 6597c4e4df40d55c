package order

import (
	"encoding/hex"

	"github.com/vkomp/vkomp/vk/spirv"
)

type device struct {
	id   int
	name string
	// live counts the objects that are left, by kind.
	live map[string]int
}

type queue struct {
	*QueueTotals
	id     int
	device *device
	column int // of its first class
	pos    uint64
	// last is the submission under way or the last one.
	last *Submission
	// lastOf are the last commands of each class.
	lastOf [deviceClasses]access
}

type memory struct {
	device *device
	size   uint64
	space  *space
	base   uint64 // where it begins in the space
}

type buffer struct {
	id        int
	device    *device
	size      uint64
	exclusive bool
	memory    *memory
	offset    uint64
	family    int // that used it last, for exclusive ones; -1: none
}

// section is a range of the buffer in memory.
func (b *buffer) section(offset, size uint64) section {
	if b.memory == nil || size == 0 {
		return section{}
	}
	lo := b.memory.base + b.offset + offset
	return section{b.memory.space, lo, lo + size}
}

type module struct {
	device *device
	parsed *spirv.Module
}

// pipeline is a kernel.
type pipeline struct {
	device   *device
	name     string
	bindings []spirv.Binding
	// addresses: it may access memory that no binding names.
	addresses bool
}

func parseModule(text []byte) (*spirv.Module, error) {
	code := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(code, text); err != nil {
		return nil, err
	}
	return spirv.Parse(code)
}

type heldSemaphore struct {
	device *device
	binary bool
	name   string
}

// use is a command's access to a range of a buffer.
type use struct {
	buffer       *buffer
	offset, size uint64
	class        class
	read, write  bool
}

// command is one of a command buffer's.
type command struct {
	kind     string
	class    class
	pipeline *pipeline
	push     [4]uint32
	pushes   int
	uses     []use
	// Of a barrier: buffers has an entry for each dependency.
	dependencies []dependency
	buffers      []bufferRange
	unknown      string // what is not understood
}

type bufferRange struct {
	buffer       *buffer
	offset, size uint64
}

type commandBuffer struct {
	device   *device
	commands []command
}
