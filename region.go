package vkomp

import (
	"context"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// taskRegion is the region of a task: the scope of its children, and the internal control
// variables of its data environment.
type taskRegion struct {
	rt *Runtime
	// final says that tasks generated here are final and included.
	final bool
	// place is the place in the host pool that a goroutine of the region leaves while it
	// waits, nil if it holds none.
	place tasks.Place

	// observer observes the task, nil for the initial task and without listeners.
	observer construct.Observer
	// id is the task's number in snapshots of the graph, 0 for the initial task.
	id uint64

	// scope is made together with the first child.
	scope atomic.Pointer[tasks.Scope]
	// defaultDevice is the ICV default-device-var; nil is omp_invalid_device.
	defaultDevice atomic.Pointer[device]
}

// children returns the scope of the region's children.
func (r *taskRegion) children() *tasks.Scope {
	s := r.scope.Load()
	if s == nil {
		r.scope.CompareAndSwap(nil, r.rt.graph.NewScopeOf(r.id))
		s = r.scope.Load()
	}
	return s
}

// device returns the region's default device.
func (r *taskRegion) device() Device { return Device{r.defaultDevice.Load()} }

// current is the part of a context that belongs to a runtime: the task region, the innermost
// taskgroup in it, and what records the constructs.
type current struct {
	*taskRegion
	inside *taskgroup
	// recording is that of the taskgraph region that the context is of, nil outside of one that
	// is recorded.
	recording *recording
}

// taskgroup is a taskgroup region.
type taskgroup struct {
	group  *tasks.Group
	cancel context.CancelCauseFunc
	// notes are what listeners know the taskgroup by, nil without listeners.
	notes *observe.Notes
}

// group returns the innermost taskgroup, or nil.
func (c *current) group() *tasks.Group {
	if c.inside == nil {
		return nil
	}
	return c.inside.group
}

// regionKey is the key in contexts of the current region in one runtime.
type regionKey struct{ rt *Runtime }

// current returns the region of ctx, that of the initial task if ctx has none.
func (rt *Runtime) current(ctx context.Context) current {
	if c, ok := ctx.Value(regionKey{rt}).(*current); ok {
		return *c
	}
	return current{taskRegion: &rt.initial}
}

// taskContext is the context of an explicit task's body, together with the task's region.
type taskContext struct {
	context.Context
	current current
	region  taskRegion
	// waiting counts the waiting goroutines of the region: the first leaves the task's
	// place, the last takes it again.
	mu      lockrank.Mutex[lockrank.TaskRegion]
	waiting int
}

// Value implements context.Context.
func (c *taskContext) Value(key any) any {
	if k, ok := key.(regionKey); ok && k.rt == c.region.rt {
		return &c.current
	}
	return c.Context.Value(key)
}

// Leave implements tasks.Place.
func (c *taskContext) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	if c.waiting == 1 {
		c.region.rt.host.Pool().Leave()
	}
}

// Return implements tasks.Place.
func (c *taskContext) Return() {
	// The lock is held until the place is taken, so that another goroutine cannot leave
	// it before.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if c.waiting == 0 {
		c.region.rt.host.Pool().Return()
	}
}

// yield gives the place to another task for a while. It returns false if another goroutine of the body has left it.
func (c *taskContext) yield() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting > 0 {
		return false
	}
	c.region.rt.host.Pool().Yield()
	return true
}

// Ended hands the scope of a finished task to Close if it has children that are not complete
// or failures that no wait has reported, because a task need not wait for its children.
func (c *taskContext) Ended() {
	if s := c.region.scope.Load(); s != nil {
		c.region.rt.adopt(s)
	}
}

// newTaskContext returns the context for the body of a task generated in c.
func (rt *Runtime) newTaskContext(ctx context.Context, c current) *taskContext {
	if outer, ok := ctx.(*taskContext); ok && outer.region.rt == rt {
		// The new context replaces the outer one, so that nesting does not build a chain.
		ctx = outer.Context
	}
	t := &taskContext{Context: ctx}
	t.region.rt, t.region.final = rt, c.final
	t.region.defaultDevice.Store(c.defaultDevice.Load())
	t.current = current{taskRegion: &t.region, inside: c.inside}
	return t
}

// adopt keeps a scope until its tasks are complete, and its unreported failures, for Close.
func (rt *Runtime) adopt(s *tasks.Scope) {
	if s.Settled() {
		s.Retire()
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.orphans == nil {
		rt.orphans = make(map[*tasks.Scope]struct{})
	}
	rt.orphans[s] = struct{}{}
	rt.releaseLocked(s)
}

// release drops a scope that was kept, as its tasks are complete.
func (rt *Runtime) release(s *tasks.Scope) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.releaseLocked(s)
}

// releaseLocked drops a scope, or has that done when its tasks are complete.
func (rt *Runtime) releaseLocked(s *tasks.Scope) {
	for !s.Settle(&rt.unreported) {
		if s.WhenEmpty(rt.release) {
			return
		}
	}
	s.Retire()
	delete(rt.orphans, s)
}
