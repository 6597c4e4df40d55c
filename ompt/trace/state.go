package trace

import (
	"context"

	"github.com/vkomp/vkomp/ompt"
)

// state is what the tools of this package keep in the Data of a task or of a target
// region: each its own fields, so that they can be used together.
type state struct {
	// The collector's.
	task   *task
	region *region
	// goTrace is GoTrace's, labels that of Labels: nil for a task that has none.
	goTrace *goState
	labels  context.Context
}

// attach returns what Data holds, which is new if it holds nothing of ours.
func attach(d *ompt.Data) *state {
	if s, ok := d.Ptr.(*state); ok {
		return s
	}
	s := new(state)
	d.Ptr = s
	return s
}

// stateOf returns nil for what the tools have not been told of.
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
