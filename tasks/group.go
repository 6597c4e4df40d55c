package tasks

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Group is the taskgroup set: the tasks that a region generates, and their descendants (OpenMP
// 5.2 §15.4). The lock of a group may be taken while that of a scope is held, and that of its
// parent while its own is held.
type Group struct {
	parent    *Group
	cancelled atomic.Bool

	mu lockrank.Mutex[lockrank.Group]
	// live counts the tasks that are not complete, and one for each inner group that has
	// such tasks.
	live     int
	failures []*tally
	// abandoned says that its wait gave up. Its failures then go to the parent and mark
	// no storage. It is set with the lock held.
	abandoned atomic.Bool
	waiters   []chan struct{}
	// left says that nobody gets what its wait returns: failures go to the parent.
	left atomic.Bool
	// scope is that of the group's first task: its region's. When the group was abandoned, last was the number
	// of the last task in the scope's family.
	scope *Scope
	last  uint64
}

// NewGroup returns a group inside parent, which may be nil.
func NewGroup(parent *Group) *Group { return &Group{parent: parent} }

// Cancel drops the tasks of the group that have not started: they count as complete and not as
// failed (OpenMP 5.2 §11.4, cancel taskgroup).
func (g *Group) Cancel() { g.cancelled.Store(true) }

// Cancelled reports whether the group or an enclosing one was cancelled.
func (g *Group) Cancelled() bool {
	for ; g != nil; g = g.parent {
		if g.cancelled.Load() {
			return true
		}
	}
	return false
}

// add counts a task of a scope.
func (g *Group) add(s *Scope) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.scope == nil {
		g.scope = s
	}
	if g.live == 0 {
		g.parent.add(s)
	}
	g.live++
}

func (g *Group) done() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live--
	if g.live > 0 {
		return
	}
	for _, c := range g.waiters {
		close(c)
	}
	g.waiters = nil
	g.parent.done()
}

// reporter returns the innermost group, g or an enclosing one, whose wait will report failures or has, or nil.
func (g *Group) reporter() *Group {
	for g != nil && (g.abandoned.Load() || g.left.Load()) {
		g = g.parent
	}
	return g
}

// encloses reports whether g is inner, which may be nil, or one around it. nil is around all groups.
func (g *Group) encloses(inner *Group) bool {
	for ; inner != nil; inner = inner.parent {
		if inner == g {
			return true
		}
	}
	return g == nil
}

// leftBehind reports whether g, or an enclosing group, was abandoned before a task was generated in the family of
// the group's region.
func (g *Group) leftBehind(n *Node) bool {
	for ; g != nil; g = g.parent {
		if g.abandoned.Load() && g.scope.family == n.scope.family && n.seq > g.last {
			return true
		}
	}
	return false
}

// reports returns the group that reports failures of tasks in g, and whether g or an enclosing
// group was abandoned.
func (g *Group) reports() (reporter *Group, abandoned bool) {
	reporter = g.reporter()
	for ; g != nil; g = g.parent {
		abandoned = abandoned || g.abandoned.Load()
	}
	return reporter, abandoned
}

// fail adds a failure for the group to report.
func (g *Group) fail(t *tally) {
	for ; g != nil; g = g.parent {
		g.mu.Lock()
		if g.abandoned.Load() {
			g.mu.Unlock()
			t.abandon()
			continue
		}
		if t.told != g {
			t.told = g
			if len(g.failures) == cap(g.failures) {
				g.failures = slices.DeleteFunc(g.failures, func(t *tally) bool { return t.reported.Load() })
			}
			g.failures = append(g.failures, t)
		}
		g.mu.Unlock()
		return
	}
}

// abandon records that the taskgroup of the failure was abandoned. Tasks that were not run
// because their context had ended then do not count as failed.
func (t *tally) abandon() {
	t.spent.Store(true)
	if t.root.unrun {
		t.reported.Store(true)
	}
}

// Wait waits for all tasks of the group, including those generated during the wait, and returns
// the first failure that no wait inside the group has reported; the others count as reported. If ctx ends
// first, its cause is returned and the group is abandoned: failures so far and later ones are
// reported by the enclosing group and by waits of the scopes, but mark no storage, and tasks that
// are dropped because their context ended do not count as failed. Wait leaves place, if there is
// one, while it blocks.
func (g *Group) Wait(ctx context.Context, place Place) error {
	if !g.await(ctx, place) {
		return context.Cause(ctx)
	}
	failed := g.take()
	if len(failed) == 0 {
		return nil
	}
	first := failed[0]
	for _, t := range failed {
		t.reported.Store(true)
	}
	unmarkStorage(failed)
	return first.root.shown()
}

// Leave is Wait for a goroutine that ends and can return nothing: the failures are left to the enclosing group and to waits of
// the scopes.
func (g *Group) Leave(ctx context.Context, place Place) {
	if !g.await(ctx, place) {
		return
	}
	g.left.Store(true)
	for _, t := range g.take() {
		g.parent.fail(t)
	}
}

// await waits for all tasks of the group. It returns false if ctx has ended first; then the group is abandoned.
func (g *Group) await(ctx context.Context, place Place) (complete bool) {
	g.mu.Lock()
	if g.live == 0 {
		g.mu.Unlock()
		return true
	}
	idle := make(chan struct{})
	g.waiters = append(g.waiters, idle)
	graph := g.scope.graph
	g.mu.Unlock()
	graph.beforeWait()
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return !g.abandon(idle)
	}
}

// take removes the failures that no other wait has reported.
func (g *Group) take() []*tally {
	g.mu.Lock()
	defer g.mu.Unlock()
	failed := g.failures
	g.failures = nil
	return slices.DeleteFunc(failed, func(t *tally) bool { return t.reported.Load() })
}

// abandon withdraws a wait and reports whether it was still waiting.
func (g *Group) abandon(idle chan struct{}) bool {
	g.mu.Lock()
	s := g.scope // not nil, since there are tasks
	g.mu.Unlock()
	s.lock()
	last := s.family.last
	s.unlock()
	g.mu.Lock()
	i := slices.Index(g.waiters, idle)
	if i < 0 {
		g.mu.Unlock()
		return false
	}
	g.waiters = slices.Delete(g.waiters, i, i+1)
	g.last = last
	g.abandoned.Store(true)
	failed := g.failures
	g.failures = nil
	g.mu.Unlock()
	for _, t := range failed {
		t.abandon()
		if !t.reported.Load() {
			g.parent.fail(t)
		}
	}
	unmarkStorage(failed)
	return true
}
