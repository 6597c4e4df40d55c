package memory

import (
	"errors"
	"fmt"
)

// Errors of the allocator.
var (
	// ErrOutOfMemory says that neither the blocks at hand nor the heap could
	// serve a request. A Heap's error wraps it when the driver is out of
	// memory; any other error of a Heap stops the request at once.
	ErrOutOfMemory error = outOfMemory{}

	// ErrUnknownStorage says that a storage is not one that this allocator
	// handed out and that is still allocated.
	ErrUnknownStorage = errors.New("unknown or already freed storage")

	// ErrInvalidSize says that a size of zero bytes was asked for.
	ErrInvalidSize = errors.New("size must be at least one byte")

	// ErrClosed says that the allocator has been closed.
	ErrClosed = errors.New("allocator is closed")

	// ErrLeaked says that storage was still allocated at Close.
	ErrLeaked = errors.New("storage still allocated")
)

// Errors of the presence table.
var (
	// ErrPartialOverlap says that a section covers a block that is present, or
	// another item of its construct, in part. OpenMP 5.1 §2.21.7.1 makes that
	// non-conforming: a block never grows.
	ErrPartialOverlap = errors.New("section overlaps mapped storage in part")

	// ErrNotPresent says that host storage has no corresponding storage.
	ErrNotPresent = errors.New("storage is not present on the device")

	// ErrAlreadyPresent says that host storage has corresponding storage
	// already, where an association needs that it has none.
	ErrAlreadyPresent = errors.New("storage is already present on the device")

	// ErrExiting says that a section touches a block that another construct is
	// removing: entry has to wait until that exit has ended.
	ErrExiting = errors.New("storage is being removed from the device")

	// ErrInvalidSection says that a section has bytes and no pointer, or runs
	// past the end of the address space.
	ErrInvalidSection = errors.New("invalid section")

	// ErrInvalidMapType says that a map type has no meaning on the construct:
	// release and delete at entry.
	ErrInvalidMapType = errors.New("map type is not allowed here")

	// ErrNotShared says that an item must share the host's storage and that its
	// block, present already, has storage of its own.
	ErrNotShared = errors.New("present storage is not shared with the host")

	// ErrCountOverflow says that a block's reference count is at its maximum.
	ErrCountOverflow = errors.New("reference count is at its maximum")
)

// ErrInvalidRect says that a Rect or a strided section is not one: its
// dimensions disagree, or a part lies outside of its array.
var ErrInvalidRect = errors.New("invalid rectangular part")

// outOfMemory is the type of ErrOutOfMemory.
type outOfMemory struct{}

func (outOfMemory) Error() string { return "out of device memory" }

// OutOfMemory marks the error, so that errors of other packages that have this
// method, such as those of the Vulkan driver, match ErrOutOfMemory.
func (outOfMemory) OutOfMemory() {}

// Is reports whether target is an out-of-memory error of any package.
func (outOfMemory) Is(target error) bool {
	_, is := target.(interface{ OutOfMemory() })
	return is
}

// OutOfMemoryError is a request that failed, with the figures at that time. It
// matches ErrOutOfMemory.
type OutOfMemoryError struct {
	Asked      uint64 // bytes
	LiveBytes  uint64 // bytes that allocations occupy
	BlockBytes uint64 // bytes of all blocks
	Blocks     int    // of the heap
	Cause      error  // the heap's error, or the limit that was met
}

// Error names the figures and the cause.
func (e *OutOfMemoryError) Error() string {
	return fmt.Sprintf("memory: allocate %d bytes (%d of %d bytes in use in %d blocks): %v",
		e.Asked, e.LiveBytes, e.BlockBytes, e.Blocks, e.Cause)
}

// Unwrap makes the error match its cause and ErrOutOfMemory.
func (e *OutOfMemoryError) Unwrap() []error { return []error{ErrOutOfMemory, e.Cause} }

// OverlapError is a section that covers other mapped storage in part. It
// matches ErrPartialOverlap.
type OverlapError struct {
	Section   Section // the refused item
	Label     string  // its label
	With      Section // the block or item that it overlaps
	WithLabel string  // the label of the item that created the block, or of the other item
	Present   bool    // With is a block in the table
	Declared  bool    // With was declared by an earlier construct; if neither, it is another item of the same one
}

// Error names both ranges.
func (e *OverlapError) Error() string {
	other := "another item of the construct,"
	switch {
	case e.Present:
		other = "the present block"
	case e.Declared:
		other = "the earlier declaration"
	}
	return fmt.Sprintf("memory: section %s overlaps %s %s in part",
		describe(e.Section, e.Label), other, describe(e.With, e.WithLabel))
}

// Is reports whether target is ErrPartialOverlap.
func (e *OverlapError) Is(target error) bool { return target == ErrPartialOverlap }

func describe(s Section, label string) string {
	if label == "" {
		return s.String()
	}
	return label + " " + s.String()
}
