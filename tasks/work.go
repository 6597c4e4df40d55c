package tasks

import (
	"slices"
	"sync"
)

// Work collects tasks that have become ready. They are started in a loop without locks, so that a
// long chain needs no recursion.
type Work struct {
	ready []step
	head  int
	// Creates says that the goroutine goes on to create other tasks, so that runners may put off the start of a task
	// of this work. Finish clears it.
	Creates bool
}

var spareWork = sync.Pool{New: func() any { return new(Work) }}

// NewWork returns an empty Work; Finish returns it to the pool.
func NewWork() *Work { return spareWork.Get().(*Work) }

// Finish starts what is ready and returns w to the pool.
func (w *Work) Finish() {
	w.Run()
	w.Creates = false
	if cap(w.ready) <= 1024 {
		spareWork.Put(w)
	}
}

// step is a task to start, for the first time or again, or a function to call.
type step struct {
	node  *Node
	call  func(*Work)
	again bool
}

func (w *Work) push(n *Node) { w.ready = append(w.ready, step{node: n}) }

// Restart starts a task again whose Start has postponed it. The runner makes sure that the task
// has not been placed or completed.
func (w *Work) Restart(n *Node) {
	w.ready = append(w.ready, step{node: n, again: true})
}

// Defer calls f when everything that is ready now has been started.
func (w *Work) Defer(f func(*Work)) { w.ready = append(w.ready, step{call: f}) }

// Empty reports whether nothing is ready.
func (w *Work) Empty() bool { return w.head == len(w.ready) }

// Run starts what is ready, and what becomes ready by that, until nothing is left. The caller
// must hold no locks.
//
// A task's runner calls code of the program, which may end the goroutine: then the rest is
// started on another one.
func (w *Work) Run() {
	over := false
	defer func() {
		if !over {
			w.moveOn()
		}
	}()
	for w.head < len(w.ready) {
		n, call, again := w.take()
		switch {
		case call != nil:
			call(w)
		case again:
			n.restart(w)
		case n.outcome == dropped || n.traits.has(conditional):
			n.start(w)
		default:
			n.runner.Start(n, w)
		}
	}
	over = true
}

// Next returns the task that Run would start next. It returns nil if Run would not just call the Start of
// the task's runner, but call a function or drop the task. It calls no function of the program.
func (w *Work) Next() *Node {
	if w.Empty() {
		return nil
	}
	next := &w.ready[w.head]
	n := next.node
	if n == nil || next.again || n.outcome == dropped || n.traits.has(conditional) && n.special.stopped() {
		return nil
	}
	return n
}

// Take removes the task that Next has returned, and returns it. The caller starts it in place of its runner.
func (w *Work) Take() *Node {
	n, _, _ := w.take()
	return n
}

// take removes the first step.
func (w *Work) take() (n *Node, call func(*Work), again bool) {
	next := &w.ready[w.head]
	n, call, again = next.node, next.call, next.again
	next.node = nil
	if call != nil {
		next.call = nil
	}
	w.head++
	switch {
	case w.head == len(w.ready):
		w.ready, w.head = w.ready[:0], 0
	case w.head >= 1024 && 2*w.head >= len(w.ready):
		// The queue must not grow if it never becomes empty.
		rest := copy(w.ready, w.ready[w.head:])
		clear(w.ready[rest:])
		w.ready, w.head = w.ready[:rest], 0
	}
	return n, call, again
}

// moveOn starts the rest on another goroutine.
func (w *Work) moveOn() {
	rest := &Work{ready: slices.Clone(w.ready[w.head:])}
	clear(w.ready)
	w.ready, w.head = w.ready[:0], 0
	if len(rest.ready) > 0 {
		go rest.Run()
	}
}
