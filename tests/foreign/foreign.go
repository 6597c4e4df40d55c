// Package foreign is Vulkan code outside of vkomp, in C like an application's own: it makes copies
// with the handles of an interop object.
package foreign

// #include "foreign.h"
import "C"

import (
	"fmt"
	"sync"

	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/vk"
)

// Code records and submits copies. It is not safe for concurrent use.
type Code struct {
	c      *C.foreign
	family uint32
	mu     sync.Mutex
}

// Commands is a VkCommandBuffer.
type Commands uintptr

// Open returns code that works on the device of an object with types target and targetsync, and on
// the family of its queue.
func Open(o interop.Object) (*Code, error) {
	h, ok := o.Vulkan()
	if !ok {
		return nil, fmt.Errorf("%v has no handles", o)
	}
	q, ok := o.Queue()
	if !ok {
		return nil, fmt.Errorf("%v has no queue", o)
	}
	c := C.foreign_open(C.uintptr_t(h.GetInstanceProcAddr), C.uintptr_t(h.Instance), C.uintptr_t(h.Device), C.uint32_t(q.Family))
	if c == nil {
		return nil, fmt.Errorf("no command pool of %v", o)
	}
	return &Code{c: c, family: q.Family}, nil
}

// Close frees the command buffers, none of which may be in flight.
func (f *Code) Close() { C.foreign_close(f.c) }

// Copy records a copy between two buffers of the same size.
func (f *Code) Copy(from, to interop.Buffer) (Commands, error) {
	c := C.foreign_copy(f.c, C.uint64_t(from.Buffer), C.uint64_t(from.Offset), C.uint64_t(to.Buffer), C.uint64_t(to.Offset), C.uint64_t(from.Size))
	if c == 0 {
		return 0, fmt.Errorf("the copy of %d bytes cannot be recorded", from.Size)
	}
	return Commands(c), nil
}

// Buffer creates a buffer of that size, exclusive to the family of the object's queue.
func (f *Code) Buffer(size uint64) (NewBuffer, error) {
	var buffer, memory C.uint64_t
	if r := C.foreign_buffer(f.c, C.uint64_t(size), &buffer, &memory); r < 0 {
		return NewBuffer{}, fmt.Errorf("a buffer of %d bytes: VkResult %d", size, r)
	}
	return NewBuffer{
		Buffer: uint64(buffer), Memory: uint64(memory), Size: size,
		Usage:  uint32(vk.BufferTransferSrc | vk.BufferTransferDst | vk.BufferStorage),
		Family: f.family,
	}, nil
}

// Free destroys a buffer that nothing uses.
func (f *Code) Free(b NewBuffer) {
	C.foreign_buffer_free(f.c, C.uint64_t(b.Buffer), C.uint64_t(b.Memory))
}

// Submit submits commands to a VkQueue without semaphores. The queue's lock must be held.
func (f *Code) Submit(queue uintptr, c Commands) error { return f.submit(queue, c, 0, 0, 0) }

// SubmitBetween submits commands that wait for a value of the object's semaphore and signal another
// one; 0 means none.
func (f *Code) SubmitBetween(queue uintptr, c Commands, o interop.Object, wait, signal uint64) error {
	s, ok := o.Semaphore()
	if !ok {
		return fmt.Errorf("%v has no semaphore", o)
	}
	return f.submit(queue, c, uint64(s), wait, signal)
}

func (f *Code) submit(queue uintptr, c Commands, semaphore, wait, signal uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := C.foreign_submit(f.c, C.uintptr_t(queue), C.uintptr_t(c), C.uint64_t(semaphore), C.uint64_t(wait), C.uint64_t(signal)); r < 0 {
		return fmt.Errorf("vkQueueSubmit: VkResult %d", r)
	}
	return nil
}
