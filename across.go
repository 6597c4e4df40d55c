package vkomp

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/transfer"
)

// A copy between two Vulkan devices goes through the host in chunks: one device copies a
// chunk to a host buffer, and the other copies it from there.

const (
	// chunkBytes is the size of a chunk.
	chunkBytes = 4 << 20
	// chunkRows is the largest number of rows in a chunk.
	chunkRows = 4096
)

// chunk is a part of a copy that passes through the host at once.
type chunk struct {
	bytes  []byte
	filled uint64
	// from are the copies from the source device to bytes, to those from bytes to the
	// destination device.
	from, to []transfer.Request
}

// bothLive returns an error for a copy from Vulkan memory to Vulkan memory if an end of it does
// not lie entirely in live memory. It finds out which of them are host storage.
func (r *routine) bothLive() error {
	there := func(what string, e *endpoint, span func() (offset, size uint64)) error {
		offset, size := span()
		s, err := e.d.open()
		if err != nil {
			return err
		}
		if err := s.Lost(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		first, ok := s.HostAddress(e.p.Add(int64(offset)), size)
		if !ok {
			return fmt.Errorf("%s: %w: %d bytes from %#x on are not all live memory of device %d", what, ErrInvalidPointer, size, e.p.Add(int64(offset)).Address, e.d.number)
		}
		if first != 0 {
			e.shared = first - uintptr(offset) // p itself need not lie in the memory
		}
		return nil
	}
	if err := there("the destination", &r.dst, r.rows.DstSpan); err != nil {
		return err
	}
	return there("the source", &r.src, r.rows.SrcSpan)
}

var spareChunks = sync.Pool{New: func() any { return &chunk{bytes: make([]byte, chunkBytes)} }}

// acrossDevices copies rows between two Vulkan devices. Once begun it is not interrupted:
// the devices must have finished with a chunk before its buffer is used again.
func (r *routine) acrossDevices(ctx context.Context) error {
	from, err := r.src.d.open()
	if err != nil {
		return err
	}
	to, err := r.dst.d.open()
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	// The chunks' tasks are not siblings of the routine's task.
	scope := r.rt.graph.NewScope()
	defer scope.Retire()
	region := sched.Region{Construct: construct.Construct{Label: r.label, Scope: scope, Place: r.place}}
	p := spareChunks.Get().(*chunk)
	defer p.giveBack()
	flush := func() error {
		if len(p.from) == 0 {
			return nil
		}
		region.Transfers = p.from
		if err := from.Run(ctx, &region); err != nil {
			return err
		}
		region.Transfers = p.to
		if err := to.Run(ctx, &region); err != nil {
			return err
		}
		p.empty()
		return nil
	}
	for dst, src := range r.rows.All() {
		for done := uint64(0); done < r.rows.RowBytes; {
			done += p.add(r.dst.p.Add(int64(dst+done)), r.src.p.Add(int64(src+done)), r.rows.RowBytes-done)
			if !p.full() {
				continue
			}
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// add adds the first part of a copy of size bytes to the chunk, and returns the size of that
// part.
func (p *chunk) add(dst, src sched.Pointer, size uint64) uint64 {
	size = min(size, uint64(len(p.bytes))-p.filled)
	host := memory.Section{Ptr: unsafe.Pointer(&p.bytes[p.filled]), Size: size}
	p.from = append(p.from, transfer.Request{Kind: transfer.CopyToHost, Host: host, Src: src, Size: size})
	p.to = append(p.to, transfer.Request{Kind: transfer.CopyToDevice, Host: host, Dst: dst, Size: size})
	p.filled += size
	return size
}

// full reports whether nothing more can be added.
func (p *chunk) full() bool {
	return p.filled == uint64(len(p.bytes)) || len(p.from) == chunkRows
}

// empty removes the copies from the chunk.
func (p *chunk) empty() {
	clear(p.from)
	clear(p.to)
	p.from, p.to, p.filled = p.from[:0], p.to[:0], 0
}

func (p *chunk) giveBack() {
	p.empty()
	spareChunks.Put(p)
}
