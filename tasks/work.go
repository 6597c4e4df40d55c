package tasks

import (
	"slices"
	"sync"
)

// Work collects the tasks that became ready, so that a long chain is started
// by a loop and not by recursion, outside of every lock.
type Work struct {
	ready []step
	head  int
}

var spareWork = sync.Pool{New: func() any { return new(Work) }}

// NewWork returns an empty Work, to be given back with Finish.
func NewWork() *Work { return spareWork.Get().(*Work) }

// Finish runs what is ready and gives w back.
func (w *Work) Finish() {
	w.Run()
	if cap(w.ready) <= 1024 {
		spareWork.Put(w)
	}
}

// step is a task to start or a function to call.
type step struct {
	node *Node
	call func(*Work)
}

func (w *Work) push(n *Node) { w.ready = append(w.ready, step{node: n}) }

// Restart starts a task once more whose Start put it off. The runner sees to it
// that the task has not been placed or completed.
func (w *Work) Restart(n *Node) {
	w.ready = append(w.ready, step{call: func(w *Work) { n.restart(w) }})
}

// Defer calls f when what is ready now has been started.
func (w *Work) Defer(f func(*Work)) { w.ready = append(w.ready, step{call: f}) }

// Empty reports whether nothing is ready.
func (w *Work) Empty() bool { return w.head == len(w.ready) }

// Run starts what is ready, and what becomes ready by that, until nothing is.
// The caller holds no locks.
//
// A task's runner calls code of the program's, which may end the goroutine: then the rest
// is started on another.
func (w *Work) Run() {
	over := false
	defer func() {
		if !over {
			w.moveOn()
		}
	}()
	for w.head < len(w.ready) {
		next := &w.ready[w.head]
		n, call := next.node, next.call
		next.node = nil
		if call != nil {
			next.call = nil
		}
		w.head++
		switch {
		case w.head == len(w.ready):
			w.ready, w.head = w.ready[:0], 0
		case w.head >= 1024 && 2*w.head >= len(w.ready):
			// A stream of tasks that never runs dry must not grow the queue.
			rest := copy(w.ready, w.ready[w.head:])
			clear(w.ready[rest:])
			w.ready, w.head = w.ready[:rest], 0
		}
		switch {
		case call != nil:
			call(w)
		case n.outcome == dropped || n.traits.has(conditional):
			n.start(w)
		default:
			n.runner.Start(n, w)
		}
	}
	over = true
}

// moveOn has another goroutine start what is ready.
func (w *Work) moveOn() {
	rest := &Work{ready: slices.Clone(w.ready[w.head:])}
	clear(w.ready)
	w.ready, w.head = w.ready[:0], 0
	if len(rest.ready) > 0 {
		go rest.Run()
	}
}
