package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/protect"
)

// traceBuffers fills the buffers of a tool with the records of a device. Its methods are
// called one after the other, and call the tool.
type traceBuffers struct {
	device   int
	request  ompt.BufferRequest
	complete ompt.BufferComplete
	// buffer has the records of the buffer under way, nil for none; the tool has been given
	// the first told of them.
	buffer []ompt.Record
	told   int
	// refused: the tool wants no more.
	refused bool
	// failed hears of a failure of the tool's functions.
	failed func(error)
}

// add puts a record in the buffer, asking for one where there is none. A full one is
// complete.
func (b *traceBuffers) add(r ompt.Record) {
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
	b.buffer = append(b.buffer, r)
	if len(b.buffer) == cap(b.buffer) {
		b.give(true)
	}
}

// flush gives the tool what it does not have; more may follow in the same buffer.
func (b *traceBuffers) flush() {
	if len(b.buffer) > b.told {
		b.give(false)
	}
}

// stop gives the buffer back.
func (b *traceBuffers) stop() {
	if b.buffer != nil {
		b.give(true)
	}
}

func (b *traceBuffers) give(owned bool) {
	records := b.buffer[b.told:len(b.buffer):len(b.buffer)]
	b.told = len(b.buffer)
	if owned {
		b.buffer = nil
	}
	if err := protect.Apart(func() error { b.complete(b.device, records, owned); return nil }); err != nil {
		b.failed(fmt.Errorf("BufferComplete: %w", err))
	}
}
