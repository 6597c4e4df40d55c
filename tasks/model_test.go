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

// relation is what two depend items demand of their tasks (OpenMP 5.2 §15.9.5),
// written down without the engine's tables.
type relation uint8

const (
	unrelated relation = iota
	follows
	excludes
)

func (r relation) String() string {
	return [...]string{"no order", "follows", "excludes, no order"}[r]
}

// relate says what an item of a later task demands with regard to one of an
// earlier task.
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

// relateAll is relate for all pairs of items; an order is more than exclusion.
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

// history drives a scope through steps that choose picks, and holds it against
// a naive model: all pairs of items of all pairs of tasks.
type history struct {
	// choose returns a number below n.
	choose func(label string, n int) int

	graph    Graph
	scope    *Scope
	work     Work
	keep     bool
	memory   *[12]byte
	failing  bool
	tasks    []*modelTask
	groups   []*modelGroup
	contexts []*modelContext
	waits    []*modelWait
	// pending are the failures that no wait under way will report.
	pending []*modelTally
	steps   []string
	// broken is what a callback found wrong.
	broken error
}

// modelTask is a task as the naive model sees it.
type modelTask struct {
	label    string
	depend   []Depend
	domain   Domain
	included bool
	held     bool
	detached bool
	// hostOrdered: the device keeps nothing before the task.
	hostOrdered bool
	group       *modelGroup
	context     *modelContext

	// follows and excludes are the earlier tasks that some item relates to;
	// excludes has the later ones too.
	follows, excludes []int
	node              *Node
	event             Event

	// What the engine said: started and dropped, whom the task was told to be
	// ordered after, which failure dropped it.
	saidStart, saidDrop bool
	told                []int
	dropRoot            string

	// What the model knows.
	started, dropped, placed, bodyDone, fulfilled bool
	// tainted: what the task follows has failed.
	tainted  bool
	failed   bool
	complete bool
	// root is the label of the task whose failure this one's is.
	root  string
	tally *modelTally
	// poisons: tasks made after it has failed follow it all the same.
	poisons bool
	// startedAt and completedAt count the model's steps.
	startedAt, completedAt int
}

type modelGroup struct {
	parent    *modelGroup
	group     *Group
	cancelled bool
	abandoned bool
	failures  []*modelTally
}

func (g *modelGroup) isCancelled() bool {
	for ; g != nil; g = g.parent {
		if g.cancelled {
			return true
		}
	}
	return false
}

// within reports whether g is outer or lies in it.
func (g *modelGroup) within(outer *modelGroup) bool {
	for ; g != nil; g = g.parent {
		if g == outer {
			return true
		}
	}
	return false
}

// reporter returns the group that reports for g: that which was not abandoned.
func (g *modelGroup) reporter() *modelGroup {
	for g != nil && g.abandoned {
		g = g.parent
	}
	return g
}

// cut reports whether g or a group around it was abandoned.
func (g *modelGroup) cut() bool {
	return g != nil && (g.abandoned || g.parent.cut())
}

type modelContext struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	cause  error
}

// modelTally is one root failure as a wait reports it.
type modelTally struct {
	root    string
	group   *modelGroup
	dropped int
	// unrun: the root was not run because its context had ended.
	unrun    bool
	reported bool
	// spent: the group was abandoned, and the failure keeps nothing more from running.
	spent bool
}

// abandon takes note that the failure's group was abandoned.
func (t *modelTally) abandon() {
	t.spent = true
	t.reported = t.reported || t.unrun
}

// modelWait is a Wait under way.
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

// close ends what would outlive a history that went wrong.
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

func (r modelRunner) Drop(n *Node) {
	task := r.h.tasks[r.i]
	if task.saidStart || task.saidDrop {
		r.h.broken = fmt.Errorf("%s dropped twice, or after it started", task.label)
	}
	task.saidDrop = true
	// One that was given storage behind others on the device is complete after them.
	r.h.tell(task, n)
	var failure *Error
	if errors.As(n.FailedBy(), &failure) {
		task.dropRoot = failure.Task
	}
}

func (h *history) tell(task *modelTask, n *Node) {
	for _, p := range n.Predecessors() {
		task.told = append(task.told, h.byLabel(p.Label()))
	}
}

func (h *history) byLabel(label string) int {
	return slices.IndexFunc(h.tasks, func(task *modelTask) bool { return task.label == label })
}

// depend draws one item.
func (h *history) depend() Depend {
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
		// No storage.
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
			if t := earlier.tally; earlier.complete && earlier.failed && t != nil && earlier.poisons && !t.reported && !t.spent {
				task.tainted = true
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

// onDevice: the device keeps the order of i after p.
func (h *history) onDevice(p, i int) bool {
	return h.tasks[p].domain == h.tasks[i].domain && h.tasks[i].domain != Host && !h.tasks[p].detached && !h.tasks[i].hostOrdered
}

// ready: nothing that i has to follow is still ahead of it.
func (h *history) ready(i int) bool {
	for _, p := range h.tasks[i].follows {
		if !h.tasks[p].complete && !(h.onDevice(p, i) && h.tasks[p].placed) {
			return false
		}
	}
	return true
}

// obstacle: a task that is under way excludes i.
func (h *history) obstacle(i int) bool {
	return slices.ContainsFunc(h.tasks[i].excludes, func(k int) bool {
		other := h.tasks[k]
		return (other.started || other.dropped) && !other.complete && !(other.placed && h.onDevice(k, i))
	})
}

// excluded: i is ready and neither started nor dropped, so another keeps it out.
func (h *history) excluded(i int) bool {
	task := h.tasks[i]
	return !task.started && !task.dropped && h.ready(i)
}

// obstructed: a task that is under way excludes i, or one that waits for such a
// thing itself and that i may have to come after.
func (h *history) obstructed(i int, seen map[int]bool) bool {
	seen[i] = true
	return h.obstacle(i) || slices.ContainsFunc(h.tasks[i].excludes, func(k int) bool {
		return !seen[k] && h.excluded(k) && h.obstructed(k, seen)
	})
}

// finished: i is done by itself, and so is all that the device keeps before it.
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

// settle makes the model follow what has happened, until nothing changes.
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
				// The engine chooses who goes first: see check.
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

func (h *history) complete(i int) {
	task := h.tasks[i]
	task.complete, task.completedAt = true, len(h.steps)
	if !task.failed {
		return
	}
	for _, later := range h.tasks[i+1:] {
		if !later.started && !later.dropped && slices.Contains(later.follows, i) {
			later.tainted = true
		}
	}
	cut := task.group.cut()
	if !task.included && !(cut && task.dropped) {
		task.tally, task.poisons = h.note(i), !cut
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

// newTally returns a tally of the failure of task i.
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

// note puts the failure of a complete task where it will be reported.
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

// check compares what the engine did with what the model knows, both ways: every
// order that the items demand was kept, and nothing was held back for another.
func (h *history) check() error {
	h.settle()
	if h.broken != nil {
		return h.broken
	}
	for i, task := range h.tasks {
		if task.saidStart != task.started || task.saidDrop != task.dropped {
			return fmt.Errorf("%s: started %v and dropped %v, want %v and %v", task.label, task.saidStart, task.saidDrop, task.started, task.dropped)
		}
		if task.tainted && task.dropped && !slices.ContainsFunc(task.follows, func(p int) bool {
			return h.tasks[p].failed && h.tasks[p].root == task.root
		}) {
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
		done, err := task.node.Completed()
		if done != task.complete || (err != nil) != (task.complete && task.failed) {
			return fmt.Errorf("%s: complete %v (%v), want %v, failed %v", task.label, done, err, task.complete, task.failed)
		}
		if got := task.node.Dropped(); done && got != task.dropped {
			return fmt.Errorf("%s: dropped %v, want %v", task.label, got, task.dropped)
		}
		if task.failed && done && task.root == task.label && task.dropped && !errors.Is(err, errEnded) {
			return fmt.Errorf("%s: %v does not wrap the cause", task.label, err)
		}
	}
	return h.checkWaits()
}

// checkExclusion: no task that i excludes is under way beside it, unless the
// device keeps them apart.
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

// after reports whether the engine told i, or those it told i of, of p.
func (h *history) after(i, p int) bool {
	return slices.ContainsFunc(h.tasks[i].told, func(q int) bool { return q == p || h.after(q, p) })
}

// checkTold: a task that starts is told whom the device has to keep before it,
// and nobody else.
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

// checkWaits: the waits whose tasks are complete end, the others do not.
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

// live counts the tasks up to that one which are not complete.
func (h *history) live(upTo int) int {
	n := 0
	for _, task := range h.tasks[:upTo+1] {
		if !task.complete {
			n++
		}
	}
	return n
}

// compareReport holds what a wait returned against the failures it has to
// report, each root once, and marks them reported.
func compareReport(err error, tallies []*modelTally) error {
	var want []string
	dropped := 0
	for _, t := range tallies {
		t.reported = true
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

// step takes one step.
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

// finish completes a body. A placed task does not fail here: what becomes of its
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

// fulfill fulfils an event, that of a complete task too, or one a second time.
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

// wait begins a Wait that ends when its tasks are complete. Which of two waits
// under way reports a failure can hang on the order in which the engine drops
// its dependents, so with failures there is one at a time.
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

// cutWait cuts a Wait short: one under way, or one that begins now.
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

// waitGroup waits for a group, and is cut short if the group has tasks.
func (h *history) waitGroup() error {
	g := h.groups[h.choose("group", len(h.groups))]
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
		g.abandoned = true
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

// letGo releases a task that is held.
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
		// Reported by the next wait, but what was made since has used its storage.
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

// run takes steps, and then completes all that is left.
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

// rest checks that nothing is left when all is complete and reported.
func (h *history) rest() error {
	pending := slices.DeleteFunc(h.pending, func(t *modelTally) bool { return t.reported })
	h.pending = nil
	if err := compareReport(h.scope.Wait(context.Background(), nil), pending); err != nil {
		return err
	}
	if !h.scope.Settled() || h.scope.Pending() {
		return errors.New("the scope has something left")
	}
	if !h.keep && h.scope.index.len() != 0 || h.scope.poison != nil {
		return fmt.Errorf("%d locations remembered at rest", h.scope.index.len())
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

// seeded is a history whose steps a seed decides.
func seeded(seed uint64) *history {
	choices := rand.New(rand.NewPCG(seed, 0))
	return newHistory(func(_ string, n int) int { return choices.IntN(n) })
}
