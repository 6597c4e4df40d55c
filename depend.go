package vkomp

import "github.com/vkomp/vkomp/tasks"

// Depend is one item of a depend clause. Items match when they begin at the
// same address; an item without storage orders nothing.
type Depend = tasks.Depend

// In orders the task after earlier siblings that have s as out or inout
// (OpenMP depend(in: s)).
func In[T any](s []T) Depend { return dependOn(s, tasks.DependIn) }

// Out orders the task after earlier siblings that have s in any way (OpenMP
// depend(out: s)).
func Out[T any](s []T) Depend { return dependOn(s, tasks.DependOut) }

// InOut orders like Out (OpenMP depend(inout: s)).
func InOut[T any](s []T) Depend { return dependOn(s, tasks.DependInOut) }

func dependOn[T any](s []T, kind tasks.DependKind) Depend {
	section := sectionOf(s)
	return Depend{Kind: kind, Ptr: section.Ptr, Size: section.Size}
}
