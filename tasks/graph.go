package tasks

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Graph is the set of all tasks of a runtime, in the scopes made by NewScope.
type Graph struct {
	// ids is the last task number given to a family; the others are totals.
	ids, tasks, done, edges, failures atomic.Uint64
	// keep says that completed tasks are kept for snapshots. It is set before the first task.
	keep bool
	// errors are set before the first task, if at all.
	errors Errors
	// joiner runs the joins of sets of more than largeSet accesses, nil if there are none.
	joiner   Runner
	largeSet int
	// waits is the function passed to OnWait, or nil.
	waits func()

	mu lockrank.Mutex[lockrank.Graph]
	// newest and oldest are the ends of the list of scopes.
	newest, oldest *Scope
	kept           []*Node
	keptEdges      []EdgeInfo

	// spares has nodes of scopes whose regions have ended, for others.
	spares sync.Pool // of *magazine
}

// Counts are totals since the graph was made.
type Counts struct {
	// Tasks is the number of tasks added, Done how many of them are complete. Done is never more than
	// that, also while other goroutines add tasks and complete them. Both become less by a task that was
	// passed and is added after all (see Scope.Unpass).
	Tasks, Done uint64
	// Edges is the number of dependences found: pairs of a task and a
	// predecessor that was not complete when the task was added, or, if Keep was
	// called, of any predecessor. The pairs of a join between sets (see JoinSets) count too.
	Edges uint64
	// Failures is the number of tasks that failed or were not run because of
	// a failed predecessor.
	Failures uint64
}

// Counts returns the totals so far.
func (g *Graph) Counts() Counts {
	for _, s := range g.scopes() {
		s.lock()
		s.family.flushLocked(g)
		s.unlock()
	}
	// Done is read first: flushLocked adds tasks before it adds how many of them are complete. Unpass may
	// lower both between the two reads, so Tasks is at least Done.
	c := Counts{Done: g.done.Load()}
	c.Tasks, c.Edges, c.Failures = max(g.tasks.Load(), c.Done), g.edges.Load(), g.failures.Load()
	return c
}

// Pending reports whether a task is not complete.
func (g *Graph) Pending() bool {
	return slices.ContainsFunc(g.scopes(), (*Scope).Pending)
}

// Keep makes snapshots include complete tasks with all their edges. It must be called before the
// first task is added. Memory then grows with every task.
func (g *Graph) Keep() { g.keep = true }

// OnWait has f called by each goroutine that is about to wait for tasks that are not complete, without locks. f must not
// call functions of the program. OnWait must be called before the first task is added.
func (g *Graph) OnWait(f func()) { g.waits = f }

// beforeWait is called before a wait for tasks.
func (g *Graph) beforeWait() {
	if g.waits != nil {
		g.waits()
	}
}

// scopes returns the scopes that have had tasks and are not retired.
func (g *Graph) scopes() []*Scope {
	g.mu.Lock()
	defer g.mu.Unlock()
	var scopes []*Scope
	for s := g.oldest; s != nil; s = s.newer {
		scopes = append(scopes, s)
	}
	return scopes
}

// NewScope returns the scope of the initial task's region.
func (g *Graph) NewScope() *Scope { return g.NewScopeOf(0) }

// NewScopeOf returns the scope of the region of the task with that number (see Task.ID).
func (g *Graph) NewScopeOf(task uint64) *Scope {
	s := &Scope{graph: g, family: &family{}, id: task}
	s.everything.refs = 1
	return s
}

// register includes the scope in snapshots.
func (s *Scope) register() {
	g := s.graph
	g.mu.Lock()
	defer g.mu.Unlock()
	s.registered, s.unkept = true, !g.keep
	if g.newest == nil {
		g.oldest = s
	} else {
		g.newest.newer, s.older = s, g.newest
	}
	g.newest = s
}

// Retire removes the scope from snapshots until another task is added: its region has ended. Other scopes use
// the nodes that are spare by then.
func (s *Scope) Retire() {
	s.lock()
	defer s.unlock()
	if !s.registered {
		return
	}
	s.registered, s.unkept = false, false
	s.giveSparesLocked()
	g := s.graph
	s.family.flushLocked(g)
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.older == nil {
		g.oldest = s.newer
	} else {
		s.older.newer = s.newer
	}
	if s.newer == nil {
		g.newest = s.older
	} else {
		s.newer.older = s.older
	}
	s.older, s.newer = nil, nil
}

func (g *Graph) keepNode(n *Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = append(g.kept, n)
}

func (g *Graph) keepEdge(from, to *Node, exclusion bool) {
	if !g.keep {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keptEdges = append(g.keptEdges, EdgeInfo{From: from.seq, To: to.seq, Exclusion: exclusion})
}
