package tasks

import (
	"fmt"
	"unsafe"
)

// DependKind is a dependence-type of the depend clause (OpenMP 5.2 §15.9.1), or one of the two
// types for omp_all_memory, which stands for all storage. The values are those of
// ompt_dependence_type_t.
type DependKind uint8

const (
	// DependIn is ompt_dependence_type_in.
	DependIn DependKind = 1
	// DependOut is ompt_dependence_type_out.
	DependOut DependKind = 2
	// DependInOut is ompt_dependence_type_inout.
	DependInOut DependKind = 3
	// DependMutexInOutSet is ompt_dependence_type_mutexinoutset.
	DependMutexInOutSet DependKind = 4
	// DependInOutSet is ompt_dependence_type_inoutset.
	DependInOutSet DependKind = 7
	// DependOutAllMemory is ompt_dependence_type_out_all_memory: out on omp_all_memory.
	DependOutAllMemory DependKind = 34
	// DependInOutAllMemory is ompt_dependence_type_inout_all_memory: inout on omp_all_memory.
	DependInOutAllMemory DependKind = 35
)

// String returns the type's name in OpenMP.
func (k DependKind) String() string {
	switch k {
	case DependIn:
		return "in"
	case DependOut:
		return "out"
	case DependInOut:
		return "inout"
	case DependMutexInOutSet:
		return "mutexinoutset"
	case DependInOutSet:
		return "inoutset"
	case DependOutAllMemory:
		return "out omp_all_memory"
	case DependInOutAllMemory:
		return "inout omp_all_memory"
	}
	return fmt.Sprintf("DependKind(%d)", uint8(k))
}

// AllMemory reports whether the kind stands for omp_all_memory.
func (k DependKind) AllMemory() bool { return k-DependOutAllMemory <= 1 }

// class is the effect of a dependence-type on order: out and inout have the same.
type class uint8

const (
	classIn class = iota
	classOut
	classMutex
	classSet
	classes
)

// classOfKind holds the classes of valid kinds.
var classOfKind = [64]class{
	DependIn: classIn, DependOut: classOut, DependInOut: classOut, DependMutexInOutSet: classMutex,
	DependInOutSet: classSet, DependOutAllMemory: classOut, DependInOutAllMemory: classOut,
}

func (k DependKind) class() class { return classOfKind[k%64] }

// ordered[a][b] reports whether a task with class b depends on an earlier one with class a for the
// same storage (OpenMP 5.2 §15.9.5). Two of classMutex exclude each other instead. It is a variable
// for the tests that show that every entry matters.
var ordered = [classes][classes]bool{
	classIn:    {classIn: false, classOut: true, classMutex: true, classSet: true},
	classOut:   {classIn: true, classOut: true, classMutex: true, classSet: true},
	classMutex: {classIn: true, classOut: true, classMutex: false, classSet: true},
	classSet:   {classIn: true, classOut: true, classMutex: true, classSet: false},
}

// Depend is one item of a depend clause: storage and how the task uses it. Items match if their
// storage has a byte in common, which extends OpenMP, where sections are identical or disjoint. An
// item without storage (Ptr is nil or Size is 0) orders nothing.
type Depend struct {
	// Kind is the dependence-type.
	Kind DependKind
	// Ptr is the address of the storage.
	Ptr unsafe.Pointer
	// Size is the storage's size in bytes.
	Size uint64
}

// section returns the item's storage.
func (d *Depend) section() section {
	return section{start: uintptr(d.Ptr), size: uintptr(d.Size)}
}

// empty reports whether the item orders nothing.
func (d *Depend) empty() bool { return d.Ptr == nil || d.Size == 0 }

// CheckDepend returns an error for an invalid item.
func CheckDepend(d Depend) error { return d.check(0) }

// kinds is the set of dependence-types, one bit each.
const kinds = 1<<DependIn | 1<<DependOut | 1<<DependInOut | 1<<DependMutexInOutSet | 1<<DependInOutSet |
	1<<DependOutAllMemory | 1<<DependInOutAllMemory

// valid reports whether the item has a dependence-type and storage inside the address space.
func (d *Depend) valid() bool {
	return d.Kind < 64 && uint64(kinds)>>d.Kind&1 != 0 && uintptr(d.Ptr)+uintptr(d.Size) >= uintptr(d.Ptr)
}

// check returns what is wrong with the k-th item, or nil.
func (d *Depend) check(k int) error {
	switch {
	case d.valid():
		return nil
	case d.Kind < 64 && uint64(kinds)>>d.Kind&1 != 0:
		return fmt.Errorf("%w: depend item %d of %d bytes ends beyond the address space", ErrInvalidDepend, k, d.Size)
	case d.Kind == 0:
		return fmt.Errorf("%w: depend item %d has no dependence type: it is zero, as that of an uninitialised depobj, or of elements without size, or of omp_all_memory with storage",
			ErrInvalidDepend, k)
	}
	return fmt.Errorf("%w: depend item %d has no dependence type (%v)", ErrInvalidDepend, k, d.Kind)
}

// section is the storage of a depend item: size bytes, starting at start.
type section struct {
	start, size uintptr
}

func (s section) end() uintptr { return s.start + s.size }

// overlaps reports whether s and o have a byte in common.
func (s section) overlaps(o section) bool { return s.start < o.end() && o.start < s.end() }

// intersect returns the bytes that s and o have in common; the size is 0 if there are none.
func (s section) intersect(o section) section {
	start, end := max(s.start, o.start), min(s.end(), o.end())
	return section{start, max(end, start) - start}
}
