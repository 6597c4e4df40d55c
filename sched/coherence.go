package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// Memory that the host sees and that is not coherent is flushed after the host
// wrote to it, and invalidated before it reads. The task gathers the ranges, so
// that there is one call for all.

// touches adds the bytes to those that the host has written, or is about to read,
// if their memory is not coherent. h is the heap of the storage.
func (t *target) touches(h *deviceHeap, st *memory.Storage, at, size uint64) {
	if h.coherent || t.s.isImported(*st) {
		return
	}
	t.copies.incoherent = append(t.copies.incoherent, vk.MemoryRange{Memory: h.memoryOf(st.Block.ID), Offset: st.Offset + at, Size: size})
}

// flushTouched makes what the host wrote visible to the device.
func (t *target) flushTouched() error {
	if len(t.copies.incoherent) == 0 {
		return nil
	}
	err := t.s.device.Flush(t.copies.incoherent)
	t.forgetTouched()
	if err != nil {
		return fmt.Errorf("flush of what the host copied: %w", err)
	}
	return nil
}

// invalidateTouched makes what the device wrote visible to the host.
func (t *target) invalidateTouched() error {
	if len(t.copies.incoherent) == 0 {
		return nil
	}
	err := t.s.device.Invalidate(t.copies.incoherent)
	t.forgetTouched()
	if err != nil {
		return fmt.Errorf("invalidation of what the host is to copy: %w", err)
	}
	return nil
}

func (t *target) forgetTouched() {
	empty(&t.copies.incoherent)
}
