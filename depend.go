package vkomp

import (
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// Depend is one item of a depend clause. Two items match if their storage has a byte in
// common, which includes slices that overlap in part. An empty slice orders nothing. The
// zero Depend is not an item, and constructs refuse it, as they do items of elements without size.
type Depend struct {
	// item's storage is on the heap: see escape.
	item tasks.Depend
}

// Kind returns the item's dependence type.
func (d Depend) Kind() DependKind { return DependKind(d.item.Kind) }

// Address returns the address of the item's storage, 0 for omp_all_memory.
func (d Depend) Address() uintptr { return uintptr(d.item.Ptr) }

// Size returns the size of the item's storage in bytes.
func (d Depend) Size() uint64 { return d.item.Size }

// appendItems appends the items of a clause.
func appendItems(to []tasks.Depend, items []Depend) []tasks.Depend {
	for k := range items {
		to = append(to, items[k].item)
	}
	return to
}

// dependItems is heap memory for the items of a construct that passes on no other clauses.
type dependItems struct {
	items []tasks.Depend
}

// noItems is for constructs without items.
var noItems dependItems

var spareItems = sync.Pool{New: func() any { return new(dependItems) }}

// newItems returns the items of a clause.
func newItems(items []Depend) *dependItems {
	if len(items) == 0 {
		return &noItems
	}
	p := spareItems.Get().(*dependItems)
	p.items = appendItems(p.items, items)
	return p
}

// giveBack makes the memory that of another construct.
func (p *dependItems) giveBack() {
	if p != &noItems {
		clear(p.items)
		p.items = p.items[:0]
		spareItems.Put(p)
	}
}

// DependKind is a dependence-type with the values of ompt_dependence_type_t (OpenMP 5.2
// §15.9.1), or one of the two types for omp_all_memory, which has no storage.
type DependKind uint8

// The dependence types; see [In], [Out] and the others.
const (
	DependIn             = DependKind(tasks.DependIn)             // depend(in: …)
	DependOut            = DependKind(tasks.DependOut)            // depend(out: …)
	DependInOut          = DependKind(tasks.DependInOut)          // depend(inout: …)
	DependMutexInOutSet  = DependKind(tasks.DependMutexInOutSet)  // depend(mutexinoutset: …)
	DependInOutSet       = DependKind(tasks.DependInOutSet)       // depend(inoutset: …)
	DependOutAllMemory   = DependKind(tasks.DependOutAllMemory)   // depend(out: omp_all_memory)
	DependInOutAllMemory = DependKind(tasks.DependInOutAllMemory) // depend(inout: omp_all_memory)
)

// String returns the type's name in OpenMP.
func (k DependKind) String() string { return tasks.DependKind(k).String() }

// AllMemory reports whether the type is one for omp_all_memory.
func (k DependKind) AllMemory() bool { return tasks.DependKind(k).AllMemory() }

// In makes the task depend on earlier siblings that have an item for s other than In
// (OpenMP depend(in: s)).
func In[T any](s []T) Depend { return dependOn(s, tasks.DependIn) }

// Out makes the task depend on earlier siblings that have any item for s (OpenMP
// depend(out: s)).
func Out[T any](s []T) Depend { return dependOn(s, tasks.DependOut) }

// InOut is like Out (OpenMP depend(inout: s)).
func InOut[T any](s []T) Depend { return dependOn(s, tasks.DependInOut) }

// MutexInOutSet makes the task depend on earlier siblings that have another kind of item
// for s. Two tasks with MutexInOutSet run in any order but never at the same time (OpenMP
// depend(mutexinoutset: s)).
func MutexInOutSet[T any](s []T) Depend { return dependOn(s, tasks.DependMutexInOutSet) }

// InOutSet makes the task depend on earlier siblings that have another kind of item for s.
// Tasks with InOutSet may run at the same time (OpenMP 5.1 depend(inoutset: s)).
func InOutSet[T any](s []T) Depend { return dependOn(s, tasks.DependInOutSet) }

// InOutAllMemory makes the task depend on all earlier siblings that have a depend clause,
// and all later such siblings depend on it (OpenMP 5.1 depend(inout: omp_all_memory); out
// is the same). A task whose items are all empty slices counts as one without a depend
// clause.
func InOutAllMemory() Depend { return Depend{tasks.Depend{Kind: tasks.DependInOutAllMemory}} }

// DependOn returns the item for s with a dependence-type given at run time. Constructs
// refuse the item if kind is not a type or is one for omp_all_memory.
func DependOn[T any](kind DependKind, s []T) Depend {
	if kind.AllMemory() {
		return Depend{}
	}
	return dependOn(s, tasks.DependKind(kind))
}

func dependOn[T any](s []T, kind tasks.DependKind) Depend {
	var zero T
	if unsafe.Sizeof(zero) == 0 && len(s) > 0 {
		// Without a kind the construct refuses the item. Elements without size have no
		// storage by which slices could be compared.
		return Depend{}
	}
	section := sectionOf(s)
	escape(section.Ptr)
	return Depend{tasks.Depend{Kind: kind, Ptr: section.Ptr, Size: section.Size}}
}

// Iterate returns the items of a depend clause with an iterator: item(i) for i = begin,
// begin+step, … up to but not including end (OpenMP 5.0 depend(iterator(i =
// begin:end:step), …)). A step of 0 counts as 1.
func Iterate(begin, end, step int, item func(i int) Depend) []Depend {
	return iterate(begin, end, step, item)
}
