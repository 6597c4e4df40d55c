package trace

import (
	"context"

	"github.com/vkomp/vkomp/ompt"
)

// What the tools of this package store in the Data of a task or a target region: the collector an index
// in Data.Value, and the others a state in Data.Ptr. So they can be combined.

// state is what GoTrace and Labels store. Each has fields of its own.
type state struct {
	// goTrace belongs to GoTrace and labels to Labels; nil if the task has none.
	goTrace *goState
	labels  context.Context
}

// stateFor returns the state in Data, which it creates if there is none.
func stateFor(d *ompt.Data) *state {
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

// mark is set in Data.Value, beside the index, for a target task, and for a region on a device that is
// traced.
const mark = 1 << 32

// attach stores the index of a task or a region.
func attach(d *ompt.Data, index int, isMarked bool) {
	d.Value = uint64(index) + 1
	if isMarked {
		d.Value |= mark
	}
}

// indexOf returns the index of a task or a region, none if the collector does not keep it.
func indexOf(d *ompt.Data) int32 {
	if d == nil {
		return none
	}
	return int32(uint32(d.Value)) - 1
}

// marked reports whether a task or a region is kept and has a mark.
func marked(d *ompt.Data) bool { return d != nil && d.Value&mark != 0 }
