//go:build invariants

package memory

// invariants says that every change of an Allocator or a Table is followed by
// its Validate, and that what Validate finds is a panic. It is for tests: a
// change then costs as much as there are blocks and chunks.
const invariants = true
