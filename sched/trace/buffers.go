package trace

import (
	"fmt"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/protect"
)

// buffers fills the buffers of a tool with the records of a device. Its methods call the tool, and
// are called one after the other.
type buffers struct {
	device   int
	request  ompt.BufferRequest
	complete ompt.BufferComplete
	// buffer is the tool's buffer with the records in it so far, nil if there is none.
	buffer []ompt.Record
	// told is the number of records in buffer that the tool has been told of.
	told int
	// refused says that the tool has refused a buffer, so that it gets no more records.
	refused bool
	// failed is called with a failure of the tool's functions.
	failed func(error)
}

// add puts a record into the buffer, after a request for one if there is none. A full buffer is
// given back to the tool.
func (b *buffers) add(r *ompt.Record) {
	if b.refused {
		return
	}
	if b.buffer == nil {
		var room []ompt.Record
		if err := protect.Apart(func() error { room = b.request(b.device); return nil }); err != nil {
			b.failed(fmt.Errorf("BufferRequest: %w", err))
		}
		if cap(room) == 0 {
			b.refused = true
			return
		}
		b.buffer, b.told = room[:0], 0
	}
	b.buffer = append(b.buffer, *r)
	if len(b.buffer) == cap(b.buffer) {
		b.give(true)
	}
}

// mostDue is the largest number of records that wait for the trace's goroutine. It takes many at once,
// because a record costs less than it does to wake the goroutine.
const mostDue = 256

// due returns how many records are to be put into the buffer before long: as many as fill it, or the one
// for which it is requested.
func (b *buffers) due() int {
	switch {
	case b.refused:
		return mostDue
	case b.buffer == nil:
		return 1
	}
	return min(cap(b.buffer)-len(b.buffer), mostDue)
}

// flush tells the tool of the records that it has not been told of. The buffer stays in use.
func (b *buffers) flush() {
	if len(b.buffer) > b.told {
		b.give(false)
	}
}

// stop gives the buffer back to the tool, if there is one.
func (b *buffers) stop() {
	if b.buffer != nil {
		b.give(true)
	}
}

// give tells the tool of the records that are new in the buffer. If owned is set the tool has the
// buffer back.
func (b *buffers) give(owned bool) {
	records := b.buffer[b.told:len(b.buffer):len(b.buffer)]
	b.told = len(b.buffer)
	if owned {
		b.buffer = nil
	}
	if err := protect.Apart(func() error { b.complete(b.device, records, owned); return nil }); err != nil {
		b.failed(fmt.Errorf("BufferComplete: %w", err))
	}
}
