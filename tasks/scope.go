package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Graph counts what its scopes do.
type Graph struct {
	tasks, edges, failures atomic.Uint64
}

// Counts are totals since the graph was made.
type Counts struct {
	// Tasks is the number of tasks added.
	Tasks uint64
	// Edges is the number of dependences found: pairs of a task and a
	// predecessor that a depend clause names, those already complete included.
	Edges uint64
	// Failures is the number of tasks that failed or were not run because of
	// a failed predecessor.
	Failures uint64
}

// Counts returns the totals so far.
func (g *Graph) Counts() Counts {
	return Counts{Tasks: g.tasks.Load(), Edges: g.edges.Load(), Failures: g.failures.Load()}
}

// NewScope returns the scope of a new task region.
func (g *Graph) NewScope() *Scope {
	return &Scope{graph: g, locations: make(map[unsafe.Pointer]*location), sweepAt: minSweep}
}

// minSweep is the number of locations below which no sweep is worth its time.
const minSweep = 1024

// Scope holds the children of one task region: dependences hold among them,
// and Wait waits for them.
type Scope struct {
	graph *Graph

	mu sync.Mutex
	// created and live count the children: made so far, and not complete.
	created uint64
	live    int
	// locations are the depend items seen, by base address.
	locations map[unsafe.Pointer]*location
	// sweepAt is the size of locations at which the completed are forgotten.
	sweepAt int
	waiters []*waiter
	// failures are those that no wait has reported yet.
	failures []failure
}

// location is the history of one depend item that later tasks can depend on.
type location struct {
	// writer is the last task with out or inout.
	writer *Node
	// readers are the tasks with in since then.
	readers []*Node
	// compactAt is the length of readers at which completed ones are dropped.
	compactAt int
}

type failure struct {
	seq uint64
	err *Error
}

// waiter is one Wait under way.
type waiter struct {
	// upTo is the last child waited for.
	upTo      uint64
	remaining int
	failures  []failure
	done      chan struct{}
}

// Add makes a task of the scope, with a dependence on each earlier sibling
// that the items of depend name, and puts it into w if nothing holds it back.
// On an error nothing was added.
func (s *Scope) Add(t Task, w *Work) (*Node, error) {
	for k, d := range t.Depend {
		if err := d.check(k); err != nil {
			return nil, fmt.Errorf("task %q: %w", t.Label, err)
		}
	}
	n := &Node{label: t.Label, domain: t.Domain, included: t.Included, runner: t.Runner, scope: s, waiting: 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created++
	s.live++
	n.seq = s.created
	s.graph.tasks.Add(1)
	for _, d := range t.Depend {
		if d.Ptr != nil {
			s.follow(n, d)
		}
	}
	// Recording comes after every look-up, so that no item of the task finds
	// the task itself.
	for _, d := range t.Depend {
		if d.Ptr != nil {
			s.record(n, d)
		}
	}
	n.release(w)
	return n, nil
}

// Task describes a task to add.
type Task struct {
	// Label names the task in errors.
	Label string
	// Domain says who can keep the task's order.
	Domain Domain
	// Included: the generating construct waits for the task and returns its
	// failure, so no Wait of the scope reports it.
	Included bool
	Depend   []Depend
	Runner   Runner
}

// follow makes n a successor of the tasks that d names.
func (s *Scope) follow(n *Node, d Depend) {
	l := s.locations[d.Ptr]
	if l == nil {
		return
	}
	if d.Kind.writes() {
		for _, r := range l.readers {
			s.edge(r, n)
		}
		// Readers follow the writer before them: who follows one follows it.
		// Its failure can be later than they are, though.
		if len(l.readers) > 0 && l.writer != nil && l.writer.failure == nil {
			return
		}
	}
	if l.writer != nil {
		s.edge(l.writer, n)
	}
}

func (s *Scope) edge(from, to *Node) {
	if from.visited == to.seq {
		return
	}
	from.visited = to.seq
	s.graph.edges.Add(1)
	if from.state == stateComplete {
		if !from.forgettable() && to.failedBy == nil {
			to.failedBy = from.failure
		}
		return
	}
	onDevice := from.domain == to.domain && to.domain != Host
	if onDevice {
		to.predecessors = append(to.predecessors, from)
		to.behind++
	}
	released := onDevice && from.state == statePlaced
	if !released {
		to.waiting++
	}
	from.successors = append(from.successors, edge{to: to, onDevice: onDevice, released: released})
}

// record makes n what later items on d's storage follow.
func (s *Scope) record(n *Node, d Depend) {
	l := s.locations[d.Ptr]
	if l == nil {
		if len(s.locations) >= s.sweepAt {
			s.sweep()
		}
		l = &location{compactAt: 16}
		s.locations[d.Ptr] = l
	}
	switch {
	case d.Kind.writes():
		l.writer = n
		clear(l.readers)
		l.readers = l.readers[:0]
	case l.writer == n:
		// The same task writes the item too: that orders more.
	default:
		if len(l.readers) >= l.compactAt {
			l.compact()
		}
		l.readers = append(l.readers, n)
	}
}

// compact drops readers that nobody has to wait for.
func (l *location) compact() {
	kept := l.readers[:0]
	for _, r := range l.readers {
		if !r.forgettable() {
			kept = append(kept, r)
		}
	}
	clear(l.readers[len(kept):])
	l.readers = kept
	l.compactAt = max(16, 2*len(kept))
}

// forgettable reports whether no later task has to know of n: it is complete,
// and its failure, if any, is reported.
func (n *Node) forgettable() bool {
	return n.state == stateComplete && (n.failure == nil || n.included || n.failure.reported)
}

// sweep forgets the locations whose tasks are all complete, so that the table
// grows with the tasks in flight and not with the addresses ever named.
func (s *Scope) sweep() {
	for ptr, l := range s.locations {
		l.compact()
		if len(l.readers) == 0 && (l.writer == nil || l.writer.forgettable()) {
			delete(s.locations, ptr)
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.locations))
}

// childComplete settles what waits for n, under mu.
func (s *Scope) childComplete(n *Node) {
	err := n.failure
	s.live--
	if err != nil {
		s.graph.failures.Add(1)
	}
	awaited := false
	kept := s.waiters[:0]
	for _, wt := range s.waiters {
		if n.seq > wt.upTo {
			kept = append(kept, wt)
			continue
		}
		awaited = true
		if err != nil && !n.included {
			wt.failures = append(wt.failures, failure{n.seq, err})
		}
		wt.remaining--
		if wt.remaining == 0 {
			wt.end()
		} else {
			kept = append(kept, wt)
		}
	}
	clear(s.waiters[len(kept):])
	s.waiters = kept
	if err != nil && !n.included && !awaited {
		s.failures = append(s.failures, failure{n.seq, err})
	}
}

// Wait waits for the children made so far (OpenMP taskwait: direct children
// only) and returns their failures joined: each root failure once, not those
// of its dependents. A failure is reported by every wait that is under way when
// the task completes, or else by the next one; what it poisoned can be used
// again afterwards. When ctx ends first its cause is returned, and nothing
// counts as reported.
func (s *Scope) Wait(ctx context.Context) error {
	s.mu.Lock()
	wt := &waiter{upTo: s.created, remaining: s.live, done: make(chan struct{})}
	wt.failures, s.failures = s.failures, nil
	if wt.remaining > 0 {
		s.waiters = append(s.waiters, wt)
	} else {
		wt.end()
	}
	s.mu.Unlock()

	select {
	case <-wt.done:
	default:
		select {
		case <-wt.done:
		case <-ctx.Done():
			if s.abandon(wt) {
				return context.Cause(ctx)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == 0 && len(s.failures) == 0 {
		// At rest, nothing is left to depend on.
		clear(s.locations)
		s.sweepAt = minSweep
	}
	return joinFailures(wt.failures)
}

// end finishes the wait, which reports its failures from here on, under mu.
func (wt *waiter) end() {
	for _, f := range wt.failures {
		f.err.reported = true
	}
	close(wt.done)
}

// abandon takes back an unfinished wait and reports whether it was one.
func (s *Scope) abandon(wt *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiters {
		if other == wt {
			s.waiters = append(s.waiters[:i], s.waiters[i+1:]...)
			for _, f := range wt.failures {
				if !f.err.reported && !s.awaits(f) {
					s.failures = append(s.failures, f)
				}
			}
			return true
		}
	}
	return false
}

// awaits reports whether a wait under way will report f.
func (s *Scope) awaits(f failure) bool {
	for _, wt := range s.waiters {
		if slices.Contains(wt.failures, f) {
			return true
		}
	}
	return false
}

// Settled reports whether every child is complete and every failure reported.
func (s *Scope) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live == 0 && len(s.failures) == 0
}

// joinFailures joins the root failures, each once, in order of creation, and
// counts the tasks that were not run because of them.
func joinFailures(failures []failure) error {
	if len(failures) == 0 {
		return nil
	}
	slices.SortFunc(failures, func(a, b failure) int { return cmp.Compare(a.seq, b.seq) })
	var roots []error
	seen := make(map[*Error]bool)
	dropped := 0
	for _, f := range failures {
		root := f.err.root()
		if f.err.Dependent {
			dropped++
		}
		if !seen[root] {
			seen[root] = true
			roots = append(roots, root)
		}
	}
	err := errors.Join(roots...)
	if dropped > 0 {
		return fmt.Errorf("%w (%d dependent tasks not run)", err, dropped)
	}
	return err
}
