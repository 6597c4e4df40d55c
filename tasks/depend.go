package tasks

import (
	"fmt"
	"unsafe"
)

// DependKind is a dependence type of the depend clause (OpenMP 5.2 §15.9.1).
// The values are those of ompt_dependence_type_t.
type DependKind uint8

const (
	DependIn    DependKind = 1
	DependOut   DependKind = 2
	DependInOut DependKind = 3
)

// String returns the type as OpenMP spells it.
func (k DependKind) String() string {
	switch k {
	case DependIn:
		return "in"
	case DependOut:
		return "out"
	case DependInOut:
		return "inout"
	}
	return fmt.Sprintf("DependKind(%d)", uint8(k))
}

// writes reports whether the kind excludes every other access: out and inout
// order alike.
func (k DependKind) writes() bool { return k != DependIn }

// Depend is one item of a depend clause: storage and how the task uses it.
// Items match by base address. An item without storage (nil Ptr) orders
// nothing.
type Depend struct {
	Kind DependKind
	Ptr  unsafe.Pointer
	// Size is the storage's size in bytes, for messages and graphs.
	Size uint64
}

func (d Depend) check(k int) error {
	switch d.Kind {
	case DependIn, DependOut, DependInOut:
		return nil
	}
	return fmt.Errorf("%w: depend item %d has no dependence type (%v): make it with In, Out or InOut", ErrInvalidDepend, k, d.Kind)
}
