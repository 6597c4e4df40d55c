package vkomp

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// Depend is one item of a depend clause. Items match when their storage has a
// byte in common: identical slices, as in OpenMP, and overlapping ones too. An
// empty slice orders nothing. The zero Depend is no item: constructs refuse it.
type Depend struct {
	// item's storage lies on the heap: see escape.
	item tasks.Depend
}

// Kind returns the item's dependence type.
func (d Depend) Kind() DependKind { return DependKind(d.item.Kind) }

// Address returns where the item's storage begins, 0 for omp_all_memory.
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

// DependKind is the dependence type of an item, with the values of
// ompt_dependence_type_t (OpenMP 5.2 §15.9.1), or one of the two of omp_all_memory, which
// takes the place of storage.
type DependKind uint8

// The dependence types; see [In], [Out] and the others.
const (
	DependIn             = DependKind(tasks.DependIn)
	DependOut            = DependKind(tasks.DependOut)
	DependInOut          = DependKind(tasks.DependInOut)
	DependMutexInOutSet  = DependKind(tasks.DependMutexInOutSet)
	DependInOutSet       = DependKind(tasks.DependInOutSet)
	DependOutAllMemory   = DependKind(tasks.DependOutAllMemory)
	DependInOutAllMemory = DependKind(tasks.DependInOutAllMemory)
)

// String returns the type as OpenMP spells it.
func (k DependKind) String() string { return tasks.DependKind(k).String() }

// AllMemory reports whether the type is one of omp_all_memory.
func (k DependKind) AllMemory() bool { return tasks.DependKind(k).AllMemory() }

// In orders the task after earlier siblings that have s in any way but In (OpenMP
// depend(in: s)).
func In[T any](s []T) Depend { return dependOn(s, tasks.DependIn) }

// Out orders the task after earlier siblings that have s in any way (OpenMP
// depend(out: s)).
func Out[T any](s []T) Depend { return dependOn(s, tasks.DependOut) }

// InOut orders like Out (OpenMP depend(inout: s)).
func InOut[T any](s []T) Depend { return dependOn(s, tasks.DependInOut) }

// MutexInOutSet orders the task after earlier siblings that have s in any other
// way; two with MutexInOutSet run in any order, never at once (OpenMP
// depend(mutexinoutset: s)).
func MutexInOutSet[T any](s []T) Depend { return dependOn(s, tasks.DependMutexInOutSet) }

// InOutSet orders the task after earlier siblings that have s in any other way;
// those with InOutSet may run at once (OpenMP 5.1 depend(inoutset: s)).
func InOutSet[T any](s []T) Depend { return dependOn(s, tasks.DependInOutSet) }

// InOutAllMemory orders the task after all earlier siblings that have a depend
// clause, and before all later ones (OpenMP 5.1 depend(inout: omp_all_memory);
// out is the same).
func InOutAllMemory() Depend { return Depend{tasks.Depend{Kind: tasks.DependInOutAllMemory}} }

// DependOn returns the item for s with a dependence type that is not known before.
// With one that is none, or one of omp_all_memory, constructs refuse the item.
func DependOn[T any](kind DependKind, s []T) Depend {
	if kind.AllMemory() {
		return Depend{}
	}
	return dependOn(s, tasks.DependKind(kind))
}

func dependOn[T any](s []T, kind tasks.DependKind) Depend {
	var zero T
	if unsafe.Sizeof(zero) == 0 && len(s) > 0 {
		// No kind: the construct refuses it. Elements without bytes have no storage
		// that could tell one slice from another.
		return Depend{}
	}
	section := sectionOf(s)
	escape(section.Ptr)
	return Depend{tasks.Depend{Kind: kind, Ptr: section.Ptr, Size: section.Size}}
}

// Iterate returns the items of a depend clause with an iterator: item(i) for
// i = begin, begin+step, … short of end (OpenMP 5.0 depend(iterator(i =
// begin:end:step), …)). A step of 0 counts as 1.
func Iterate(begin, end, step int, item func(i int) Depend) []Depend {
	return iterate(begin, end, step, item)
}

// Depobj is a depend object (OpenMP 5.0 omp_depend_t): a dependence kept in a
// variable. The zero Depobj is uninitialised. It is not safe for concurrent use.
type Depobj struct {
	item        tasks.Depend
	initialised bool
}

// Init gives the object its dependence (OpenMP depobj construct with a depend
// clause). An initialised object is ErrInvalidDepend, as is an item that is none.
func (o *Depobj) Init(item Depend) error {
	if o.initialised {
		return fmt.Errorf("vkomp: depobj: %w: the object is initialised already: destroy it first", ErrInvalidDepend)
	}
	if err := tasks.CheckDepend(item.item); err != nil {
		return fmt.Errorf("vkomp: depobj: %w", err)
	}
	*o = Depobj{item: item.item, initialised: true}
	return nil
}

// Update changes the dependence type (OpenMP depobj construct, update clause).
// Of an object for omp_all_memory it stays one of the two all-memory types, or
// DependOut or DependInOut for short.
func (o *Depobj) Update(kind DependKind) error {
	if !o.initialised {
		return fmt.Errorf("vkomp: depobj: %w: update of an uninitialised object", ErrInvalidDepend)
	}
	item := o.item
	switch {
	case !item.Kind.AllMemory() && !kind.AllMemory():
		item.Kind = tasks.DependKind(kind)
	case item.Kind.AllMemory() && (kind == DependOut || kind == DependOutAllMemory):
		item.Kind = tasks.DependOutAllMemory
	case item.Kind.AllMemory() && (kind == DependInOut || kind == DependInOutAllMemory):
		item.Kind = tasks.DependInOutAllMemory
	default:
		return fmt.Errorf("vkomp: depobj: %w: update from %v to %v: omp_all_memory has out and inout, storage has not", ErrInvalidDepend, item.Kind, kind)
	}
	if err := tasks.CheckDepend(item); err != nil {
		return fmt.Errorf("vkomp: depobj: %w", err)
	}
	o.item = item
	return nil
}

// Destroy makes the object uninitialised (OpenMP depobj construct, destroy
// clause).
func (o *Depobj) Destroy() error {
	if !o.initialised {
		return fmt.Errorf("vkomp: depobj: %w: destroy of an uninitialised object", ErrInvalidDepend)
	}
	*o = Depobj{}
	return nil
}

// Depend returns the object's dependence as it is now (OpenMP depend(depobj: o)).
// That of an uninitialised object is refused by the construct that uses it.
func (o *Depobj) Depend() Depend { return Depend{o.item} }
