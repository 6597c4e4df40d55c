package trace

import (
	"context"

	"github.com/vkomp/vkomp/ompt"
)

// state is what the tools of this package store in the Data of a task or a target region.
// Each has fields of its own, so that they can be combined.
type state struct {
	// The collector's.
	task   *task
	region *region
	// goTrace belongs to GoTrace and labels to Labels; nil if the task has none.
	goTrace *goState
	labels  context.Context
}

// attach returns the state in Data, which it creates if there is none.
func attach(d *ompt.Data) *state {
	if s, ok := d.Ptr.(*state); ok {
		return s
	}
	s := new(state)
	d.Ptr = s
	return s
}

// stateOf returns the state in Data, nil if the tools do not know the task.
func stateOf(d *ompt.Data) *state {
	if d == nil {
		return nil
	}
	s, _ := d.Ptr.(*state)
	return s
}

func taskOf(d *ompt.Data) *task {
	if s := stateOf(d); s != nil {
		return s.task
	}
	return nil
}

func regionOf(d *ompt.Data) *region {
	if s := stateOf(d); s != nil {
		return s.region
	}
	return nil
}

func indexOf(t *task) int32 {
	if t == nil {
		return none
	}
	return t.index
}
