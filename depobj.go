package vkomp

import (
	"fmt"

	"github.com/vkomp/vkomp/tasks"
)

// Depobj is a depend object (OpenMP 5.0 omp_depend_t), which stores a dependence. The zero
// Depobj is uninitialised. It is not safe for concurrent use.
type Depobj struct {
	item        tasks.Depend
	initialised bool
}

// Init sets the object's dependence (OpenMP depobj construct with a depend clause). It is
// ErrInvalidDepend for an initialised object and for an invalid item.
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

// Update changes the dependence type (OpenMP depobj construct, update clause). For an object
// with omp_all_memory the type must be one of the two types for that; DependOut and
// DependInOut stand for them.
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

// Destroy makes the object uninitialised (OpenMP depobj construct, destroy clause).
func (o *Depobj) Destroy() error {
	if !o.initialised {
		return fmt.Errorf("vkomp: depobj: %w: destroy of an uninitialised object", ErrInvalidDepend)
	}
	*o = Depobj{}
	return nil
}

// Depend returns the object's current dependence (OpenMP depend(depobj: o)). Constructs
// refuse that of an uninitialised object.
func (o *Depobj) Depend() Depend { return Depend{o.item} }
