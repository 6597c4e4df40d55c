package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/vk"
)

// copies is what a task copies between the host's storage and the device's.
type copies struct {
	// moves are Region.Moves under way, reading the stores from which the task
	// copies when it finishes.
	moves   []move
	reading []*store
	// writing are the host's storage that the task writes when it finishes.
	writing []memory.Section
	// uploads are copy-ins through staging, downloads copy-outs that the task's
	// batch brought to staging.
	uploads   []upload
	downloads []download
	// streams are copy-ins through rings, outs the copy-outs that were foreseen.
	streams, outs []*stream
	// staging is given back when the task is complete.
	staging []memory.Storage
	// results are the copies to the host that finish makes.
	results []hostCopy
	// incoherent is memory that the host has written or is to read.
	incoherent []vk.MemoryRange
}

func (c *copies) reset() {
	empty(&c.moves)
	c.reading, c.writing = c.reading[:0], c.writing[:0]
	empty(&c.uploads)
	empty(&c.downloads)
	empty(&c.streams)
	empty(&c.outs)
	c.staging = c.staging[:0]
	empty(&c.results)
}

// upload is a copy-in of an item of Region.Enter through staging.
type upload struct {
	use     int
	staging memory.Storage
}

// download is a copy from a block to staging.
type download struct {
	block        *memory.Present
	offset, size uint64
	staging      memory.Storage
	// uses is the block's count of constructs when the copy was placed: a later
	// one may have changed the contents since.
	uses uint64
	// label names the item; op is the copy as the task's observer knows it, or nil.
	label string
	op    *construct.Op
}

// hostCopy is a copy from memory that the host sees to a mapped slice.
type hostCopy struct {
	to, from unsafe.Pointer
	size     uint64
	// image, if not nil, reads what to gets; stream brings it.
	image  *Image
	stream *stream
	op     *construct.Op
}
