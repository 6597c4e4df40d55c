package sched

import (
	"sync"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// watch is an observer that checks the order in which it is called.
type watch struct {
	r     *rig
	label string

	mu                           sync.Mutex
	created, begun, over, mapped bool
	open                         map[*construct.Op]bool
	transfers, allocated         int
}

// watched returns a watch for a task of the rig. Only every other rig has them, so that tests
// run without observers too.
func (r *rig) watched(label string) construct.Observer {
	if !r.watches {
		return nil
	}
	r.watching.Lock()
	defer r.watching.Unlock()
	w := &watch{r: r, label: label}
	r.watchers = append(r.watchers, w)
	return w
}

// enter is called at the beginning of every method. It calls Stats, as a tool may, which would
// not return if the scheduler called its observers with a lock held.
func (w *watch) enter(method string, right func() bool) (leave func()) {
	w.r.s.Stats()
	w.mu.Lock()
	if w.over || !right() {
		w.r.t.Errorf("%s: %s with %+v", w.label, method, w.String())
	}
	return w.mu.Unlock
}

func (w *watch) String() string {
	switch {
	case w.over:
		return "the task over"
	case len(w.open) > 0:
		return "an operation open"
	case w.begun:
		return "the task under way"
	case w.created:
		return "the task created"
	}
	return "no task"
}

func (w *watch) Interest() (run, operations bool) { return true, true }

func (w *watch) Release() {}

func (w *watch) Follows(tasks.Witness) {}

func (w *watch) Dropped() {
	defer w.enter("Dropped", func() bool { return w.created && len(w.open) == 0 })()
	w.over = true
}

func (w *watch) Created(n *tasks.Node, _ []tasks.Depend) {
	w.mu.Lock()
	// the region is run again
	if w.over {
		w.created, w.begun, w.over, w.mapped, w.transfers, w.allocated = false, false, false, false, 0, 0
	}
	w.mu.Unlock()
	defer w.enter("Created", func() bool { return !w.created && n.Witness() == w })()
	w.created = true
}

func (w *watch) Begin() {
	defer w.enter("Begin", func() bool { return w.created && !w.begun })()
	w.begun = true
}

func (w *watch) Map([]ompt.MapItem) {
	defer w.enter("Map", func() bool { return w.begun && !w.mapped && w.allocated == 0 })()
	w.mapped = true
}

func (w *watch) Op(end ompt.ScopeEndpoint, o *construct.Op) {
	defer w.enter("Op", func() bool {
		// The commands of one task are placed together: several transfers by the device may be
		// open at once, and nothing else may be.
		together := o.Type == ompt.TargetDataTransfer || o.Type == ompt.TargetDataMemset
		return w.mapped && (end == ompt.ScopeBegin && (len(w.open) == 0 || together) || end == ompt.ScopeEnd && w.open[o])
	})()
	if end == ompt.ScopeBegin {
		if w.open == nil {
			w.open = make(map[*construct.Op]bool)
		}
		w.open[o] = true
		return
	}
	delete(w.open, o)
	w.r.watching.Lock()
	defer w.r.watching.Unlock()
	switch o.Type {
	case ompt.TargetDataAlloc:
		if _, there := w.r.memory[o.DestAddr]; there || w.transfers > 0 {
			w.r.t.Errorf("%s: allocated at %#x twice, or late", w.label, o.DestAddr)
		}
		w.allocated++
		w.r.memory[o.DestAddr] = o.Bytes
	case ompt.TargetDataDelete:
		if w.r.memory[o.DestAddr] != o.Bytes {
			w.r.t.Errorf("%s: %d bytes deleted at %#x, where %d are", w.label, o.Bytes, o.DestAddr, w.r.memory[o.DestAddr])
		}
		delete(w.r.memory, o.DestAddr)
	default:
		w.transfers++
	}
}

func (w *watch) End(error) {
	defer w.enter("End", func() bool { return w.begun && len(w.open) == 0 })()
	w.over = true
}

// checkWatched checks that the observers have heard of the end of every task, and of the end of
// all device memory that they heard of.
func (r *rig) checkWatched() {
	r.t.Helper()
	r.watching.Lock()
	defer r.watching.Unlock()
	for _, w := range r.watchers {
		if w.created && !w.over {
			r.t.Errorf("%s: the observer did not hear of the end", w.label)
		}
	}
	if len(r.memory) > 0 {
		r.t.Errorf("the observers know of memory %v", r.memory)
	}
}
