//go:build invariants

package memory

// invariants enables a call of Validate after every change of an Allocator or a
// Table, which panics if it finds a defect. It is for tests, since every change
// then takes time linear in the number of blocks and chunks.
const invariants = true
