package order

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/vkomp/vkomp/vk/spirv"
)

type device struct {
	id   int
	name string
	// live counts the existing objects by kind.
	live map[string]int
}

type queue struct {
	*QueueTotals
	id     int
	device *device
	column int // of its first class
	// last is the last submission, batch its place in the queue, and pos that of its last command.
	last  *Submission
	batch access
	pos   uint64
}

type memory struct {
	id         int
	device     *device
	size       uint64
	space      *space
	base       uint64 // its beginning in the space
	properties uint64 // VkMemoryPropertyFlags of its type
	// users have accessed bytes through this memory. Imported memory may share bytes with another import.
	users users
}

// users are the last commands of each column that have used an object, or the last batches of each
// queue. The object may not end before they have.
type users []access

// add records a use.
func (u *users) add(a access) {
	for i := range *u {
		if (*u)[i].column == a.column {
			(*u)[i] = a
			return
		}
	}
	*u = append(*u, a)
}

// needs returns the orders that the end of the object requires. at is what ends of a memory.
func (u users) needs(at section) []need {
	var needs []need
	for _, a := range u {
		needs = append(needs, need{kind: needDone, column: a.column, pos: a.pos, other: a.by, at: at})
	}
	return needs
}

// ended returns the orders that the end of an object requires of the batches that use it.
func (u users) ended() []need {
	var needs []need
	for _, a := range u {
		needs = append(needs, need{kind: needEnded, column: a.column, pos: a.pos, other: a.by})
	}
	return needs
}

type buffer struct {
	id        int
	device    *device
	size      uint64
	exclusive bool
	memory    *memory
	offset    uint64
	family    int // the last to use it, for exclusive buffers; -1 for none
	users     users
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
	// copies says that its kernels only copy.
	copies bool
}

// pipeline is a kernel.
type pipeline struct {
	device   *device
	name     string
	bindings []spirv.Binding
	// addresses says that it may access memory without a binding, copies that it only copies.
	addresses, copies bool
	// launches is the largest number of launches that a dispatch does, if the kernel is one that
	// spirv.Merge has made. The push constants of the first begin at byte base, and those of each take
	// stride bytes. spaced says that what launches have are parts of what is bound. A binding of a kernel whose
	// launches bind the same has a Count of 1.
	launches, base, stride int
	spaced                 bool
	// skips says for each of bindings how much of its range the kernel skips.
	skips []skip
	users users
	// destroyed says that no command may use it any more.
	destroyed bool
}

// skip is the part of a descriptor's range that a kernel does not access: that before the element whose
// number is a word of the push constants. The runtime binds the aligned address before an argument, and
// passes the distance in a member vkomp_offset_<binding>. With stride 0 nothing is skipped.
type skip struct {
	word   int
	stride uint32
}

// skipsOf returns what the kernel of an entry point skips of its bindings. For those that spirv.Merge has
// made it returns nil.
func skipsOf(e *spirv.EntryPoint) []skip {
	var skips []skip
	for i := range e.Bindings {
		b := &e.Bindings[i]
		if e.PushConstants == nil || b.Set != 0 {
			continue
		}
		for _, m := range slices.Concat(e.PushConstants.Members, e.PushConstants.Inner) {
			if m.Name == fmt.Sprintf("vkomp_offset_%d", b.Binding) && m.Size == 4 {
				if skips == nil {
					skips = make([]skip, len(e.Bindings))
				}
				skips[i] = skip{int(m.Offset / 4), b.Stride}
			}
		}
	}
	return skips
}

// maxPushes is the number of words of push constants that are kept.
const maxPushes = 64

func parseModule(text []byte) (*module, error) {
	code := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(code, text); err != nil {
		return nil, err
	}
	parsed, err := spirv.Parse(code)
	return &module{parsed: parsed, copies: onlyCopies(code)}, err
}

type heldSemaphore struct {
	device *device
	binary bool
	name   string
	users  users // batches
}

type fence struct {
	device *device
	users  users // batches
}

// use is a command's access to a range of a buffer.
type use struct {
	buffer       *buffer
	offset, size uint64
	class        class
	read, write  bool
}

// skip removes the first bytes from the range.
func (u *use) skip(bytes uint64) {
	if bytes < u.size {
		u.offset += bytes
		if u.size != math.MaxUint64 {
			u.size -= bytes
		}
	}
}

// command is a command in a command buffer.
type command struct {
	kind     string
	class    class
	pipeline *pipeline
	groups   uint64 // workgroups of a dispatch
	push     [4]uint32
	pushes   int
	uses     []use
	// part says that the command is part of the dispatch before it.
	part bool
	// For a barrier, buffers has an entry for each dependency.
	dependencies []dependency
	buffers      []bufferRange
	unknown      string // name of an unknown command
}

// counts reports whether the command has a place of its own in its queue.
func (x *command) counts() bool { return x.unknown == "" && x.kind != "barrier" }

type bufferRange struct {
	buffer       *buffer
	offset, size uint64
}

type commandBuffer struct {
	device   *device
	commands []command
	// discarded says that it was reset, or its recording begun again and has not ended.
	discarded bool
	users     users // batches
}

// batch is a batch of a submission, or a fence without one.
type batch struct {
	*Submission // nil for a fence
	queue       *queue
	// at is its place in the queue, and then that of its last command that was processed.
	at             access
	line           int // of the log
	waits, signals []point
	commands       [][]command
	fences         []int
}

// point is an operation on a semaphore.
type point struct {
	semaphore     int
	value, stages uint64
}
