package tasks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// relation is what a pair of depend items demands of their tasks (OpenMP 5.2 §15.9.5). It is
// written down here a second time, without the tables of the engine.
type relation uint8

const (
	unrelated relation = iota
	follows
	excludes
)

func (r relation) String() string {
	return [...]string{"no order", "follows", "excludes, no order"}[r]
}

// relate returns what an item of a later task demands with regard to an item of an earlier one.
func relate(earlier, later Depend) relation {
	for _, d := range []Depend{earlier, later} {
		if !d.Kind.AllMemory() && (d.Ptr == nil || d.Size == 0) {
			return unrelated
		}
	}
	if earlier.Kind.AllMemory() || later.Kind.AllMemory() {
		return follows
	}
	a, b := uintptr(earlier.Ptr), uintptr(later.Ptr)
	if a+uintptr(earlier.Size) <= b || b+uintptr(later.Size) <= a {
		return unrelated
	}
	switch [2]DependKind{earlier.Kind, later.Kind} {
	case [2]DependKind{DependIn, DependIn}, [2]DependKind{DependInOutSet, DependInOutSet}:
		return unrelated
	case [2]DependKind{DependMutexInOutSet, DependMutexInOutSet}:
		return excludes
	}
	return follows
}

// relateAll is relate for all pairs of items. An order is the stronger demand, exclusion the
// weaker.
func relateAll(earlier, later []Depend) relation {
	r := unrelated
	for _, x := range earlier {
		for _, y := range later {
			switch relate(x, y) {
			case follows:
				return follows
			case excludes:
				r = excludes
			}
		}
	}
	return r
}

// history drives a scope through random steps, and compares it with a model that looks at all
// pairs of items of all pairs of tasks.
type history struct {
	// choose returns a number below n.
	choose func(label string, n int) int

	graph Graph
	scope *Scope
	work  Work
	keep  bool
	// sets says that most items join sets, or begin them.
	sets bool
	// joined are the tasks that the latest join of a node follows on its device, joins the number of joins.
	joined   map[*Node][]int
	joins    int
	memory   *[12]byte
	failing  bool
	tasks    []*modelTask
	groups   []*modelGroup
	contexts []*modelContext
	waits    []*modelWait
	// pending are the failures that no wait in progress will report.
	pending []*modelTally
	steps   []string
	// broken is the error of a callback that found something wrong.
	broken error
}

// modelTask is a task as the model sees it.
type modelTask struct {
	label    string
	depend   []Depend
	domain   Domain
	included bool
	held     bool
	detached bool
	// hostOrdered says that the device orders nothing before the task: the host does.
	hostOrdered bool
	group       *modelGroup
	context     *modelContext

	// follows are the earlier tasks that the items order before this one, and excludes the
	// tasks, earlier and later, that they exclude.
	follows, excludes []int
	node              *Node
	event             Event

	// What the engine has said: whether the task was started or dropped, which tasks it was
	// told to be ordered after, and whose failure dropped it.
	saidStart, saidDrop bool
	told                []int
	dropRoot            string

	// What the model expects.
	started, dropped, placed, bodyDone, fulfilled bool
	// tainted says that a task which this one depends on has failed.
	tainted bool
	// roots are the tasks because of whose failures it may fail. through are the groups of the failed tasks
	// that it depends on.
	roots    []int
	through  []*modelGroup
	failed   bool
	complete bool
	// root is the label of the task whose failure this one has.
	root  string
	tally *modelTally
	// marks says that the failure, once the task is complete, still drops tasks that are
	// generated later and depend on it.
	marks bool
	// startedAt and completedAt are numbers of steps.
	startedAt, completedAt int
}

type modelGroup struct {
	parent    *modelGroup
	group     *Group
	cancelled bool
	abandoned bool
	// last is the number of tasks that were generated when the wait was cut short.
	last     int
	failures []*modelTally
}

func (g *modelGroup) isCancelled() bool {
	for ; g != nil; g = g.parent {
		if g.cancelled {
			return true
		}
	}
	return false
}

// within reports whether g is outer or inside of it.
func (g *modelGroup) within(outer *modelGroup) bool {
	for ; g != nil; g = g.parent {
		if g == outer {
			return true
		}
	}
	return false
}

// leftBehind reports whether the wait for g, or for a group around it, was cut short before task i was generated.
func (g *modelGroup) leftBehind(i int) bool {
	return g != nil && (g.abandoned && i >= g.last || g.parent.leftBehind(i))
}

// reporter returns the group that reports the failures of g: the innermost one whose wait was
// not cut short.
func (g *modelGroup) reporter() *modelGroup {
	for g != nil && g.abandoned {
		g = g.parent
	}
	return g
}

// cut reports whether the wait for g, or for a group around it, was cut short.
func (g *modelGroup) cut() bool {
	return g != nil && (g.abandoned || g.parent.cut())
}

type modelContext struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	cause  error
}

// modelTally is the failure of one task, as a wait reports it.
type modelTally struct {
	root    string
	group   *modelGroup
	dropped int
	// unrun says that the task was not run because its context had ended.
	unrun    bool
	reported bool
	// spent says that the group's wait was cut short, after which the failure drops no more
	// tasks.
	spent bool
}

// abandon notes that the wait for the failure's group was cut short.
func (t *modelTally) abandon() {
	t.spent = true
	t.reported = t.reported || t.unrun
}

// modelWait is a Wait in progress.
type modelWait struct {
	upTo     int
	failures []*modelTally
	cancel   context.CancelCauseFunc
	result   <-chan error
}

var (
	errCut   = errors.New("wait was cut")
	errEnded = errors.New("context ended")
)

func newHistory(choose func(string, int) int) *history {
	h := &history{choose: choose, memory: new([12]byte)}
	if h.keep = choose("keep", 5) == 0; h.keep {
		h.graph.Keep()
	}
	if choose("joins", 2) == 0 {
		h.graph.JoinSets(joinSet(func(n *Node) {
			h.joins++
			h.joined[n] = h.toldOf(n)
		}))
		h.graph.largeSet = 1
	}
	h.joined = make(map[*Node][]int)
	h.sets = choose("sets", 2) == 0
	h.failing = choose("failures", 2) == 0
	h.scope = h.graph.NewScope()
	for i := range 3 {
		g := &modelGroup{}
		if i > 0 && choose("nested", 2) == 0 {
			g.parent = h.groups[choose("parent", i)]
			g.group = NewGroup(g.parent.group)
		} else {
			g.group = NewGroup(nil)
		}
		h.groups = append(h.groups, g)
	}
	for range 2 {
		c := &modelContext{}
		c.ctx, c.cancel = context.WithCancelCause(context.Background())
		h.contexts = append(h.contexts, c)
	}
	return h
}

// close ends the goroutines of a history that has failed.
func (h *history) close() {
	for _, c := range h.contexts {
		c.cancel(nil)
	}
	for _, wt := range h.waits {
		wt.cancel(nil)
		<-wt.result
	}
}

// modelRunner is the runner of task i.
type modelRunner struct {
	h *history
	i int
}

func (r modelRunner) Start(n *Node, _ *Work) {
	task := r.h.tasks[r.i]
	if task.saidStart || task.saidDrop {
		r.h.broken = fmt.Errorf("%s started twice, or after it was dropped", task.label)
	}
	task.saidStart = true
	r.h.tell(task, n)
}

func (r modelRunner) Drop(n *Node, _ error) {
	task := r.h.tasks[r.i]
	if task.saidStart || task.saidDrop {
		r.h.broken = fmt.Errorf("%s dropped twice, or after it started", task.label)
	}
	task.saidDrop = true
	// A task that got storage behind others on its device is complete only after them.
	r.h.tell(task, n)
	var failure *Error
	if errors.As(n.FailedBy(), &failure) {
		task.dropRoot = failure.Task
	}
}

func (modelRunner) Recycle() {}

func (h *history) tell(task *modelTask, n *Node) {
	task.told = append(task.told, h.toldOf(n)...)
}

// toldOf returns the predecessors that n is told of, and those of joins in place of the joins.
func (h *history) toldOf(n *Node) (told []int) {
	for _, p := range n.Predecessors() {
		if p.Label() == joinLabel {
			told = append(told, h.joined[p]...)
		} else {
			told = append(told, h.byLabel(p.Label()))
		}
	}
	return told
}

// joinSet runs joins of sets, after it has been called.
type joinSet func(n *Node)

func (f joinSet) Start(n *Node, w *Work) {
	f(n)
	if n.Domain() != Host {
		n.Placed(w)
	}
	n.Complete(nil, w)
}

func (joinSet) Recycle() {}

func (h *history) byLabel(label string) int {
	return slices.IndexFunc(h.tasks, func(task *modelTask) bool { return task.label == label })
}

// depend draws one depend item.
func (h *history) depend() Depend {
	if h.sets && h.choose("set", 50) > 0 {
		// The same kind for some tasks in succession.
		kinds := []DependKind{DependIn, DependMutexInOutSet, DependInOutSet}
		kind := kinds[(len(h.tasks)/4+h.choose("stray", 8)/7)%len(kinds)]
		return Depend{Kind: kind, Ptr: unsafe.Pointer(&h.memory[4*h.choose("place", 2)]), Size: 4}
	}
	kinds := []DependKind{
		DependIn, DependIn, DependOut, DependInOut, DependMutexInOutSet, DependMutexInOutSet,
		DependInOutSet, DependInOutSet, DependOutAllMemory, DependInOutAllMemory,
	}
	d := Depend{Kind: kinds[h.choose("kind", len(kinds))]}
	if d.Kind.AllMemory() && h.choose("rather not", 2) == 0 {
		d.Kind = DependIn
	}
	var start, size int
	switch h.choose("shape", 8) {
	case 0, 1, 2, 3:
		start, size = 4*h.choose("third", 3), 4
	case 4:
		// An item without storage.
		start, size = 0, 0
	default:
		start = h.choose("start", len(h.memory))
		size = 1 + h.choose("size", len(h.memory)-start)
	}
	d.Ptr, d.Size = unsafe.Pointer(&h.memory[start]), uint64(size)
	return d
}

func (h *history) add() error {
	i := len(h.tasks)
	task := &modelTask{
		label: fmt.Sprint("t", i), domain: Domain(h.choose("domain", 3)),
		included: h.choose("included", 8) == 0, held: h.choose("held", 4) > 0, detached: h.choose("detached", 8) == 0,
		hostOrdered: h.choose("host ordered", 4) == 0,
	}
	join := h.choose("join", 10) == 0
	if join {
		task.domain = AnyDomain
	}
	for range h.choose("items", 4) {
		task.depend = append(task.depend, h.depend())
	}
	if k := h.choose("group", 6); k < len(h.groups) {
		task.group = h.groups[k]
	}
	if k := h.choose("context", 8); k < len(h.contexts) {
		task.context = h.contexts[k]
	}
	for j, earlier := range h.tasks {
		switch relateAll(earlier.depend, task.depend) {
		case follows:
			task.follows = append(task.follows, j)
			if t := earlier.tally; earlier.complete && earlier.failed && t != nil && earlier.marks && !t.reported && !t.spent && !t.group.leftBehind(i) {
				task.tainted = true
				h.takeRoots(task, earlier)
				task.through = append(task.through, t.group)
			}
		case excludes:
			task.excludes = append(task.excludes, j)
			earlier.excludes = append(earlier.excludes, i)
		}
	}
	t := Task{
		Label: task.label, Domain: task.domain, Included: task.included, Held: task.held, Depend: task.depend,
		HostOrdered: task.hostOrdered, Runner: modelRunner{h, i},
	}
	if task.detached {
		t.Event = &task.event
	}
	task.held = task.held || task.included
	if task.group != nil {
		t.Group = task.group.group
	}
	if task.context != nil {
		t.Context = task.context.ctx
	}
	node, err := h.scope.Add(&t, &h.work)
	if err != nil {
		return err
	}
	task.node, task.domain = node, node.Domain()
	if join {
		if err := h.checkJoin(task); err != nil {
			return err
		}
	}
	h.tasks = append(h.tasks, task)
	h.say("add %v", task)
	h.work.Run()
	return h.check()
}

func (h *history) checkJoin(task *modelTask) error {
	allowed := []Domain{}
	for _, p := range task.follows {
		if p := h.tasks[p]; !p.complete && !slices.Contains(allowed, p.domain) {
			allowed = append(allowed, p.domain)
		}
	}
	if len(allowed) != 1 {
		allowed = append(allowed, Host)
	}
	if !slices.Contains(allowed, task.domain) {
		return fmt.Errorf("join %s is of domain %d, want one of %v", task.label, task.domain, allowed)
	}
	return nil
}

// onDevice reports whether a device orders i after p.
func (h *history) onDevice(p, i int) bool {
	return h.tasks[p].domain == h.tasks[i].domain && h.tasks[i].domain != Host && !h.tasks[p].detached && !h.tasks[i].hostOrdered
}

// ready reports whether nothing that i depends on keeps it from starting.
func (h *history) ready(i int) bool {
	for _, p := range h.tasks[i].follows {
		if !h.tasks[p].complete && !(h.onDevice(p, i) && h.tasks[p].placed) {
			return false
		}
	}
	return true
}

// obstacle reports whether a task that excludes i has started and is not complete.
func (h *history) obstacle(i int) bool {
	return slices.ContainsFunc(h.tasks[i].excludes, func(k int) bool {
		other := h.tasks[k]
		return (other.started || other.dropped) && !other.complete && !(other.placed && h.onDevice(k, i))
	})
}

// excluded reports whether i waits for a task that excludes it: it is ready, and neither
// started nor dropped.
func (h *history) excluded(i int) bool {
	task := h.tasks[i]
	return !task.started && !task.dropped && h.ready(i)
}

// obstructed reports whether i has to wait: for a task that excludes it and has started, or for
// one that excludes it, has to wait itself, and may go before i.
func (h *history) obstructed(i int, seen map[int]bool) bool {
	seen[i] = true
	return h.obstacle(i) || slices.ContainsFunc(h.tasks[i].excludes, func(k int) bool {
		return !seen[k] && h.excluded(k) && h.obstructed(k, seen)
	})
}

// finished reports whether i has ended, and so have all tasks that its device orders before it.
func (h *history) finished(i int) bool {
	task := h.tasks[i]
	if !task.bodyDone && !task.dropped || task.detached && !task.fulfilled && !task.failed && !task.dropped {
		return false
	}
	for _, p := range task.follows {
		if h.onDevice(p, i) && !h.tasks[p].complete {
			return false
		}
	}
	return !slices.ContainsFunc(task.told, func(p int) bool { return !h.tasks[p].complete })
}

// settle brings the model up to date with what has happened.
func (h *history) settle() {
	for changed := true; changed; {
		changed = false
		for i, task := range h.tasks {
			if !task.complete && h.finished(i) {
				changed = true
				h.complete(i)
			}
			if task.started || task.dropped || !h.ready(i) {
				continue
			}
			switch {
			case task.tainted:
				task.dropped, task.failed, task.root = true, true, task.dropRoot
			case len(task.excludes) > 0 && !task.saidStart && !task.saidDrop:
				// The engine chooses which of the tasks goes first: check looks whether it
				// could.
				continue
			case task.group.isCancelled():
				task.dropped = true
			case task.context != nil && task.context.cause != nil:
				task.dropped, task.failed, task.root = true, true, task.label
			default:
				task.started, task.startedAt = true, len(h.steps)
			}
			changed = true
		}
	}
}

// takeRoots notes that task may fail because of whatever predecessor may have failed because of.
func (h *history) takeRoots(task, predecessor *modelTask) {
	for _, root := range append(slices.Clone(predecessor.roots), h.byLabel(predecessor.root)) {
		if !slices.Contains(task.roots, root) {
			task.roots = append(task.roots, root)
		}
	}
}

// taint notes that a task which task k depends on has failed or was not run, or has such predecessors itself.
func (h *history) taint(k int, task, predecessor *modelTask) {
	h.takeRoots(task, predecessor)
	for _, g := range append(predecessor.through, predecessor.group) {
		if !g.leftBehind(k) && !slices.Contains(task.through, g) {
			task.tainted = task.tainted || !task.started
			task.through = append(task.through, g)
		}
	}
}

func (h *history) complete(i int) {
	task := h.tasks[i]
	task.complete, task.completedAt = true, len(h.steps)
	if !task.failed {
		return
	}
	for k, later := range h.tasks {
		if !later.complete && !later.dropped && slices.Contains(later.follows, i) {
			h.taint(k, later, task)
		}
	}
	cut := task.group.cut()
	if !task.included && !(cut && task.dropped) {
		task.tally, task.marks = h.note(i), !cut
		task.group.reporter().fail(task.tally)
	}
}

func (g *modelGroup) fail(t *modelTally) {
	for ; g != nil; g = g.parent {
		if !g.abandoned {
			if !slices.Contains(g.failures, t) {
				g.failures = append(g.failures, t)
			}
			return
		}
		t.abandon()
	}
}

// newTally returns a tally for the failure of task i.
func (h *history) newTally(i int) *modelTally {
	task := h.tasks[i]
	root := h.byLabel(task.root)
	return &modelTally{root: task.root, group: task.group.reporter(), unrun: root >= 0 && h.tasks[root].dropped}
}

func findTally(list []*modelTally, root string, group *modelGroup) *modelTally {
	i := slices.IndexFunc(list, func(t *modelTally) bool { return t.root == root && t.group == group && !t.reported })
	if i < 0 {
		return nil
	}
	return list[i]
}

// note adds the failure of a complete task to what a wait will report.
func (h *history) note(i int) *modelTally {
	task := h.tasks[i]
	var t *modelTally
	in := func(list *[]*modelTally) {
		switch {
		case t == nil:
			if t = findTally(*list, task.root, task.group.reporter()); t == nil {
				t = h.newTally(i)
				*list = append(*list, t)
			}
		case !slices.Contains(*list, t):
			*list = append(*list, t)
		}
	}
	for _, wt := range h.waits {
		if i <= wt.upTo {
			in(&wt.failures)
		}
	}
	if t == nil {
		in(&h.pending)
	}
	if task.root != task.label {
		t.dropped++
	}
	return t
}

// check compares the engine with the model, both ways: every order that the items demand was
// kept, and no task waits without a reason.
func (h *history) check() error {
	h.settle()
	if h.broken != nil {
		return h.broken
	}
	for i, task := range h.tasks {
		if task.saidStart != task.started || task.saidDrop != task.dropped {
			return fmt.Errorf("%s: started %v and dropped %v, want %v and %v", task.label, task.saidStart, task.saidDrop, task.started, task.dropped)
		}
		if task.tainted && task.dropped && !slices.Contains(task.roots, h.byLabel(task.root)) {
			return fmt.Errorf("%s: not run because of %q, which it does not follow", task.label, task.root)
		}
		if h.excluded(i) && !h.obstructed(i, make(map[int]bool)) {
			return fmt.Errorf("%s: waits for nothing", task.label)
		}
		if err := h.checkExclusion(i); err != nil {
			return err
		}
		if err := h.checkTold(i); err != nil {
			return err
		}
		if !task.held {
			continue
		}
		done, err := task.node.Completed(), task.node.failure()
		if done != task.complete || (err != nil) != (task.complete && task.failed) {
			return fmt.Errorf("%s: complete %v (%v), want %v, failed %v", task.label, done, err, task.complete, task.failed)
		}
		if got := task.node.wasDropped(); done && got != task.dropped {
			return fmt.Errorf("%s: dropped %v, want %v", task.label, got, task.dropped)
		}
		if task.failed && done && task.root == task.label && task.dropped && !errors.Is(err, errEnded) {
			return fmt.Errorf("%s: %v does not wrap the cause", task.label, err)
		}
	}
	return h.checkWaits()
}

// checkExclusion checks that no task which excludes i is executing at the same time, unless a
// device keeps the two apart.
func (h *history) checkExclusion(i int) error {
	task := h.tasks[i]
	if !task.started || task.complete {
		return nil
	}
	for _, k := range task.excludes {
		other := h.tasks[k]
		if k > i || !other.started || other.complete {
			continue
		}
		if !(h.onDevice(k, i) && other.placed && h.after(i, k) || h.onDevice(i, k) && task.placed && h.after(k, i)) {
			return fmt.Errorf("%s and %s are under way together", other.label, task.label)
		}
	}
	return nil
}

// after reports whether i was told of p, directly or through the tasks that it was told of.
func (h *history) after(i, p int) bool {
	return slices.ContainsFunc(h.tasks[i].told, func(q int) bool { return q == p || h.after(q, p) })
}

// checkTold checks that a task which starts is told of the tasks that its device has to order
// before it, and of no others.
func (h *history) checkTold(i int) error {
	task := h.tasks[i]
	if !task.started || task.placed || task.complete {
		return nil
	}
	for _, p := range task.follows {
		if h.onDevice(p, i) && !h.tasks[p].complete && !h.after(i, p) {
			return fmt.Errorf("%s started and was not told of %s", task.label, h.tasks[p].label)
		}
	}
	for _, p := range task.told {
		if !slices.Contains(task.follows, p) && !slices.Contains(task.excludes, p) || !h.tasks[p].placed && !h.tasks[p].complete {
			return fmt.Errorf("%s was told of %s", task.label, h.tasks[p].label)
		}
	}
	return nil
}

// checkWaits checks that the waits whose tasks are complete have ended, and the others have
// not.
func (h *history) checkWaits() error {
	kept := h.waits[:0]
	defer func() { h.waits = kept }()
	for _, wt := range h.waits {
		if h.live(wt.upTo) > 0 {
			kept = append(kept, wt)
			select {
			case err := <-wt.result:
				return fmt.Errorf("wait ended before its tasks: %v", err)
			default:
			}
			continue
		}
		if err := compareReport(<-wt.result, wt.failures); err != nil {
			return err
		}
	}
	return nil
}

// live counts the tasks up to number upTo that are not complete.
func (h *history) live(upTo int) int {
	n := 0
	for _, task := range h.tasks[:upTo+1] {
		if !task.complete {
			n++
		}
	}
	return n
}

// compareReport compares what a wait returned with the failures that it has to report, each
// once, and marks these as reported.
func compareReport(err error, tallies []*modelTally) error {
	var want []string
	dropped := 0
	for _, t := range tallies {
		if t.group.reporter() == nil {
			t.reported = true // or else the group's own wait reports it, too
		}
		want = append(want, t.root)
		dropped += t.dropped
	}
	slices.Sort(want)
	want = slices.Compact(want)
	got := roots(err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("wait reports %q, want %q", got, want)
	}
	if count := fmt.Sprintf("(%d dependent tasks not run)", dropped); dropped > 0 && !strings.HasSuffix(err.Error(), count) {
		return fmt.Errorf("wait reports %v, want %s", err, count)
	}
	return nil
}

// roots returns the labels of the failed tasks that err joins.
func roots(err error) []string {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []string{e.Task}
	case interface{ Unwrap() []error }:
		var all []string
		for _, err := range e.Unwrap() {
			all = append(all, roots(err)...)
		}
		return all
	}
	if inner := errors.Unwrap(err); inner != nil {
		return roots(inner)
	}
	return []string{err.Error()}
}

// pick chooses a task for which ok holds, nil if there is none.
func (h *history) pick(label string, ok func(*modelTask) bool) *modelTask {
	var some []*modelTask
	for _, task := range h.tasks {
		if ok(task) {
			some = append(some, task)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[h.choose(label, len(some))]
}

func (h *history) say(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func (task *modelTask) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on=%d", task.label, int32(task.domain))
	for _, flag := range []struct {
		name string
		set  bool
	}{{"included", task.included}, {"detached", task.detached}, {"host ordered", task.hostOrdered}, {"group", task.group != nil}, {"context", task.context != nil}} {
		if flag.set {
			b.WriteString(" " + flag.name)
		}
	}
	for _, d := range task.depend {
		fmt.Fprintf(&b, " %v[%d:%d]", d.Kind, uintptr(d.Ptr)%16, d.Size)
	}
	fmt.Fprintf(&b, " follows %v excludes %v", task.follows, task.excludes)
	return b.String()
}

// step takes one random step.
func (h *history) step() error {
	switch k := h.choose("step", 32); {
	case k < 12:
		return h.add()
	case k < 17:
		return h.place()
	case k < 24:
		return h.finish(h.failing)
	case k < 26:
		return h.fulfill()
	case k == 26:
		return h.cutWait()
	case k == 27:
		return h.wait()
	case k == 28:
		return h.waitGroup()
	case k == 29:
		return h.letGo()
	case k == 30:
		return h.abandon()
	case h.choose("end", 3) == 0:
		return h.end()
	}
	return nil
}

func (h *history) place() error {
	task := h.pick("place", func(task *modelTask) bool {
		return task.started && task.domain != Host && !task.placed && !task.bodyDone
	})
	if task == nil {
		return nil
	}
	h.say("place %s", task.label)
	task.placed = true
	task.node.Placed(&h.work)
	h.work.Run()
	return h.check()
}

// finish ends a task's body. A task that is placed does not fail here: what becomes of its
// dependents that have started is the runner's to say (see the scripts).
func (h *history) finish(failing bool) error {
	task := h.pick("finish", func(task *modelTask) bool { return task.started && !task.bodyDone })
	if task == nil {
		return nil
	}
	task.bodyDone = true
	var err error
	if failing && !task.placed && h.choose("fails", 2) == 0 {
		task.failed, task.root = true, task.label
		err = errBroken
	}
	h.say("finish %s: %v", task.label, err)
	task.node.Complete(err, &h.work)
	h.work.Run()
	return h.check()
}

// fulfill fulfils an event, of a complete task too, and also a second time.
func (h *history) fulfill() error {
	task := h.pick("fulfill", func(task *modelTask) bool { return task.detached })
	if task == nil {
		return nil
	}
	h.say("fulfill %s", task.label)
	again := task.fulfilled && !task.complete && !task.failed && !task.dropped
	task.fulfilled = true
	if err := task.event.Fulfill(&h.work); errors.Is(err, ErrFulfilled) != again {
		return fmt.Errorf("fulfilled %s, again is %v: %v", task.label, again, err)
	}
	h.work.Run()
	return h.check()
}

// wait begins a Wait, which ends when its tasks are complete. With several waits in progress,
// it depends on the order in which the engine drops tasks which of them reports a failure: in
// histories with failures there is only one at a time.
func (h *history) wait() error {
	if len(h.waits) == 2 || len(h.waits) == 1 && h.failing {
		return nil
	}
	h.say("wait")
	ctx, cancel := context.WithCancelCause(context.Background())
	wt := &modelWait{upTo: len(h.tasks) - 1, cancel: cancel}
	wt.failures = slices.DeleteFunc(h.pending, func(t *modelTally) bool { return t.reported })
	h.pending = nil
	wt.result = startWait(h.scope, ctx)
	h.waits = append(h.waits, wt)
	return h.check()
}

// cutWait ends the context of a Wait that is in progress, or of one that begins now.
func (h *history) cutWait() error {
	if len(h.waits) == 0 {
		if err := h.wait(); err != nil || len(h.waits) == 0 {
			return err
		}
	}
	k := h.choose("cut", len(h.waits))
	wt := h.waits[k]
	h.say("cut wait %d", k)
	wt.cancel(errCut)
	if err := <-wt.result; err != errCut {
		return fmt.Errorf("a wait that was cut short returned %v", err)
	}
	h.waits = slices.Delete(h.waits, k, k+1)
	for _, t := range wt.failures {
		awaited := slices.ContainsFunc(h.waits, func(wt *modelWait) bool { return slices.Contains(wt.failures, t) })
		if !t.reported && !awaited {
			h.pending = append(h.pending, t)
		}
	}
	return h.check()
}

// waitGroup waits for a group, with a context that has ended if the group has tasks.
func (h *history) waitGroup() error { return h.waitFor(h.groups[h.choose("group", len(h.groups))]) }

func (h *history) waitFor(g *modelGroup) error {
	h.say("wait for group %d", slices.Index(h.groups, g))
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCut)
	err := g.group.Wait(ctx, nil)
	failures := g.failures
	g.failures = nil
	if slices.ContainsFunc(h.tasks, func(task *modelTask) bool { return !task.complete && task.group.within(g) }) {
		if err != errCut {
			return fmt.Errorf("wait for a group with tasks returned %v", err)
		}
		g.abandoned, g.last = true, len(h.tasks)
		for _, t := range failures {
			if t.abandon(); !t.reported {
				g.parent.fail(t)
			}
		}
		return h.check()
	}
	failures = slices.DeleteFunc(failures, func(t *modelTally) bool { return t.reported })
	var failure *Error
	switch {
	case len(failures) == 0 && err == nil:
	case !errors.As(err, &failure) || !slices.ContainsFunc(failures, func(t *modelTally) bool { return t.root == failure.Task }):
		return fmt.Errorf("wait for a group returned %v, with %d failures to report", err, len(failures))
	}
	for _, t := range failures {
		t.reported = true
	}
	return h.check()
}

// letGo releases a task whose node was held.
func (h *history) letGo() error {
	task := h.pick("release", func(task *modelTask) bool { return task.held && (!task.included || task.complete) })
	if task == nil {
		return nil
	}
	h.say("release %s", task.label)
	task.held = false
	task.node.Release()
	return h.check()
}

func (h *history) abandon() error {
	i := slices.IndexFunc(h.tasks, func(task *modelTask) bool { return task.held && task.included })
	if i < 0 {
		return nil
	}
	task := h.tasks[i]
	h.say("abandon %s", task.label)
	task.held, task.included = false, false
	if task.complete && task.failed {
		// The next wait would report it, but a task that was generated since has used its
		// storage.
		t := findTally(h.pending, task.root, task.group.reporter())
		if t == nil {
			t = h.newTally(i)
			h.pending = append(h.pending, t)
		}
		if task.root != task.label {
			t.dropped++
		}
		task.group.reporter().fail(t)
	}
	task.node.Abandon()
	return h.check()
}

// end cancels a group or ends a context.
func (h *history) end() error {
	if k := h.choose("which", len(h.groups)+len(h.contexts)); k < len(h.groups) || !h.failing {
		k %= len(h.groups)
		h.say("cancel group %d", k)
		h.groups[k].cancelled = true
		h.groups[k].group.Cancel()
	} else {
		c := h.contexts[k-len(h.groups)]
		h.say("end context %d", k-len(h.groups))
		c.cause = errEnded
		c.cancel(c.cause)
	}
	return h.check()
}

// run takes steps, and completes all tasks at the end.
func (h *history) run(steps int) error {
	defer h.close()
	for range steps {
		if err := h.step(); err != nil {
			return err
		}
	}
	for h.live(len(h.tasks)-1) > 0 {
		task := h.pick("last", func(task *modelTask) bool {
			return !task.complete && (task.started && !task.bodyDone || task.detached && !task.fulfilled)
		})
		if task == nil {
			return errors.New("tasks are left that nothing lets go on")
		}
		switch {
		case task.bodyDone || !task.started:
			task.fulfilled = true
			h.say("last fulfill %s", task.label)
			if err := task.event.Fulfill(&h.work); err != nil {
				return err
			}
		default:
			h.say("last finish %s", task.label)
			task.bodyDone = true
			task.node.Complete(nil, &h.work)
		}
		h.work.Run()
		if err := h.check(); err != nil {
			return err
		}
	}
	return h.rest()
}

// rest checks that nothing is left when all tasks are complete and all failures reported.
func (h *history) rest() error {
	pending := slices.DeleteFunc(h.pending, func(t *modelTally) bool { return t.reported })
	h.pending = nil
	if err := compareReport(h.scope.Wait(context.Background(), nil), pending); err != nil {
		return err
	}
	for _, g := range h.groups {
		if err := h.waitFor(g); err != nil {
			return err
		}
	}
	if !h.scope.Settled() || h.scope.Pending() {
		return errors.New("the scope has something left")
	}
	if !h.keep && remembered(h.scope) != 0 || h.scope.failedStorage != nil {
		return fmt.Errorf("%d locations remembered at rest", remembered(h.scope))
	}
	return nil
}

func (h *history) String() string {
	var b strings.Builder
	for _, step := range h.steps {
		b.WriteString(step + "\n")
	}
	for _, task := range h.tasks {
		fmt.Fprintf(&b, "%v: started %v dropped %v placed %v body done %v complete %v failed %v\n",
			task, task.started, task.dropped, task.placed, task.bodyDone, task.complete, task.failed)
	}
	return b.String()
}

func TestOrderIsWhatAllPairsOfItemsDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) })
		if err := h.run(rapid.IntRange(1, 60).Draw(t, "steps")); err != nil {
			t.Fatalf("%v\n%s", err, h)
		}
	})
}

// seeded returns a history whose choices are drawn from a seed.
func seeded(seed uint64) *history {
	choices := rand.New(rand.NewPCG(seed, 0))
	return newHistory(func(_ string, n int) int { return choices.IntN(n) })
}
