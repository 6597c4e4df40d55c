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
)

// tree is a random program of tasks inside of tasks, some of them transparent. A task may generate children while its body
// runs.
type tree struct {
	aim    aim
	choose func(int) int
	graph  Graph
	work   Work
	root   *Scope
	memory [6]byte
	// With patient, outer tasks tend to end before inner ones. With cells, items have one byte.
	// With device, children of the initial task that are not transparent are of a device.
	patient, cells, device bool
	tasks                  []*treeTask
	joins                  int
	steps                  []string
}

// aim is what a tree is for: it chooses the program, and looks at what becomes of it.
type aim interface {
	// grows chooses whether a task is generated next, rather than one ending.
	grows(x *tree) bool
	// shape chooses who generates a task, for which a choice has been made, and what kind of task it is. It returns false
	// for no task.
	shape(x *tree, t *treeTask) bool
	// items chooses how many items a task has, and item what one of them is, for which a choice has been made.
	items(x *tree) int
	item(x *tree, d *Depend, start int)
	// chooseFailure chooses whether a task fails.
	chooseFailure(x *tree) bool
	// check is called after each step, and rest at the end with the scopes of all tasks.
	check(x *tree) error
	rest(x *tree, scopes []*Scope) error
}

// modelled is the aim to compare a tree with a model that is the text of OpenMP 6.0 §17.9.5 and of the glossary, applied
// to all tasks that there ever were.
type modelled struct {
	// With recycle, nodes of complete tasks are used again, also by tasks of other regions.
	// With sets, the graph joins sets, and most items are of the same kind as those of the tasks before.
	// With failing, which excludes recycle and devices, tasks can fail, and none exports or is undeferred.
	recycle, sets, failing bool
}

type treeTask struct {
	i            int
	parent       *treeTask
	scope, inner *Scope
	depend       []Depend
	transparency Transparency
	included     bool
	domain       Domain
	node         *Node

	// The sets of OpenMP's text, with a bit for each task: matches are the tasks whose items
	// demand an order with this one's, compatible the preceding dependence-compatible tasks,
	// antecedents those of them that match, and predecessors the antecedents with their
	// predecessors.
	matches, compatible, antecedents, predecessors uint64

	saidStart, started, placed, done, complete bool
	// failed says that the task has failed, dropped that it was not run because an antecedent has failed or was
	// not run.
	failed, saidDrop, dropped bool
	// released says that the test does not hold the node any more.
	released bool
}

func (task *treeTask) Start(*Node, *Work) { task.saidStart = true }
func (task *treeTask) Drop(*Node, error)  { task.saidDrop = true }

func (*treeTask) Recycle() {}

func (task *treeTask) imports() bool { return task != nil && task.transparency&Import != 0 }
func (task *treeTask) exports() bool { return task != nil && task.transparency&Export != 0 }

// depth returns how many tasks are around this one.
func (task *treeTask) depth() int {
	if task.parent == nil {
		return 0
	}
	return task.parent.depth() + 1
}

// has reports whether the set has task k.
func has(set uint64, k *treeTask) bool { return k != nil && set>>k.i&1 != 0 }

// precedes reports whether a is a preceding dependence-compatible task of b, by what is known
// of the other tasks so far.
func precedes(a, b *treeTask) bool {
	switch {
	case a == b:
		return false
	case a.parent == b.parent && a.i < b.i:
		// A is a sibling of B that was generated before.
		return true
	case b.parent.imports() && has(b.parent.compatible, a):
		// A precedes the importing task that B is a child of.
		return true
	case a.parent.exports() && has(b.predecessors, a.parent):
		// A is a child of an exporting task that is a predecessor of B.
		return true
	}
	// A is a child of an undeferred exporting task that precedes B.
	return a.parent.exports() && a.parent.included && has(b.compatible, a.parent)
}

// relate applies the rules until nothing changes. Tasks that are generated later do not make
// anything untrue that the rules have found.
func (x *tree) relate() {
	for changed := true; changed; {
		changed = false
		for _, b := range x.tasks {
			compatible, predecessors := b.compatible, b.predecessors
			for _, a := range x.tasks {
				if !has(compatible, a) && precedes(a, b) {
					compatible |= 1 << a.i
				}
			}
			b.antecedents = compatible & b.matches
			predecessors |= b.antecedents
			for _, a := range x.tasks {
				if has(b.antecedents, a) {
					predecessors |= a.predecessors
				}
			}
			changed = changed || compatible != b.compatible || predecessors != b.predecessors
			b.compatible, b.predecessors = compatible, predecessors
		}
	}
}

// ready reports whether all antecedents of t are complete, or placed on its device, which
// orders t behind them.
func (x *tree) ready(t *treeTask) bool {
	return !slices.ContainsFunc(x.tasks, func(p *treeTask) bool {
		return has(t.antecedents, p) && !p.complete && !(p.placed && t.domain == p.domain)
	})
}

// fails reports whether an antecedent of t has failed or was not run.
func (x *tree) fails(t *treeTask) bool {
	return slices.ContainsFunc(x.tasks, func(p *treeTask) bool { return has(t.antecedents, p) && (p.failed || p.dropped) })
}

// finished reports whether t has ended, and so have its antecedents.
func (x *tree) finished(t *treeTask) bool {
	return t.done && !slices.ContainsFunc(x.tasks, func(p *treeTask) bool { return has(t.antecedents, p) && !p.complete })
}

func (m *modelled) check(x *tree) error {
	for changed := true; changed; {
		changed = false
		for _, t := range x.tasks {
			if !t.started && !t.dropped && x.ready(t) {
				changed = true
				t.dropped = x.fails(t)
				t.done = t.dropped
				t.started = !t.dropped
			}
			if !t.complete && x.finished(t) {
				changed, t.complete = true, true
			}
		}
	}
	for _, t := range x.tasks {
		if t.started != t.saidStart {
			return fmt.Errorf("t%d started %v, want %v", t.i, t.saidStart, t.started)
		}
		if t.dropped != t.saidDrop {
			return fmt.Errorf("t%d dropped %v, want %v", t.i, t.saidDrop, t.dropped)
		}
		if t.released {
			continue
		}
		if complete := t.node.Completed(); complete != t.complete {
			return fmt.Errorf("t%d complete %v, want %v", t.i, complete, t.complete)
		}
		if t.complete && m.recycle {
			t.release()
		}
	}
	for _, t := range x.tasks {
		if t.done && m.recycle && t.inner.Settled() {
			t.inner.Retire()
		}
	}
	return nil
}

// release gives up the node.
func (task *treeTask) release() {
	if !task.released {
		task.released = true
		task.node.Release()
	}
}

// mayGenerate reports whether the task's body runs and does not wait for an included child.
func (x *tree) mayGenerate(parent *treeTask) bool {
	if parent != nil && (!parent.started || parent.done || parent.domain != Host) {
		return false
	}
	return !slices.ContainsFunc(x.tasks, func(t *treeTask) bool { return t.parent == parent && t.included && !t.complete })
}

func (x *tree) add() error {
	if len(x.tasks) == 64 {
		return nil
	}
	generators := append([]*treeTask{nil}, x.tasks...)
	generators = slices.DeleteFunc(generators, func(t *treeTask) bool { return !x.mayGenerate(t) })
	if len(generators) == 0 {
		return nil
	}
	t := &treeTask{i: len(x.tasks), parent: generators[x.choose(len(generators))]}
	if x.patient && x.choose(2) == 0 {
		t.parent = generators[0]
	}
	t.included = x.choose(4) == 0 && !(x.patient && t.parent == nil)
	t.scope = x.root
	if t.parent != nil {
		t.scope = t.parent.inner
	}
	switch x.choose(3) {
	case 0:
		if x.device && t.parent == nil || x.choose(4) == 0 {
			t.domain = 1
		}
	default:
		t.transparency = Transparency(x.choose(4))
	}
	if !x.aim.shape(x, t) {
		return nil
	}
	kinds := []DependKind{DependIn, DependIn, DependOut, DependInOut, DependInOutSet, DependOutAllMemory}
	for range x.aim.items(x) {
		d := Depend{Kind: kinds[x.choose(len(kinds))]}
		start := x.choose(len(x.memory))
		d.Ptr, d.Size = unsafe.Pointer(&x.memory[start]), uint64(1+x.choose(min(2, len(x.memory)-start)))
		if x.cells {
			d.Size = 1
		}
		x.aim.item(x, &d, start)
		t.depend = append(t.depend, d)
	}
	added := Task{Label: fmt.Sprint("t", t.i), Held: true, Included: t.included, Domain: t.domain, Depend: t.depend, Runner: t, Transparency: t.transparency}
	if t.transparency != NotImpex {
		t.inner = t.scope.NewInner()
		added.Inner = t.inner
	} else {
		t.inner = x.graph.NewScope()
	}
	var err error
	if t.node, err = t.scope.Add(&added, &x.work); err != nil {
		return err
	}
	for _, p := range x.tasks {
		if relateAll(p.depend, t.depend) != unrelated {
			t.matches |= 1 << p.i
			p.matches |= 1 << t.i
		}
	}
	x.tasks = append(x.tasks, t)
	x.relate()
	line := fmt.Sprintf("add t%d on %d transparency %d included %v", t.i, t.domain, t.transparency, t.included)
	if t.parent != nil {
		line += fmt.Sprintf(" in t%d", t.parent.i)
	}
	for _, d := range t.depend {
		line += fmt.Sprintf(" %v[%d:%d]", d.Kind, uintptr(d.Ptr)-uintptr(unsafe.Pointer(&x.memory)), d.Size)
	}
	x.steps = append(x.steps, line)
	x.work.Run()
	return x.aim.check(x)
}

func (m *modelled) grows(x *tree) bool { return x.choose(5) < 3 }

func (m *modelled) shape(_ *tree, t *treeTask) bool {
	if m.failing {
		t.transparency, t.included, t.domain = t.transparency&Import, false, Host
	}
	return true
}

func (m *modelled) items(x *tree) int { return x.choose(4) }

func (m *modelled) item(x *tree, d *Depend, start int) {
	if m.sets && x.choose(10) > 0 {
		x.ofASet(d, start)
	}
}

// ofASet makes an item one of those that make sets: a few tasks in a row have the same kind of it.
func (x *tree) ofASet(d *Depend, start int) {
	d.Kind = [...]DependKind{DependIn, DependInOutSet}[len(x.tasks)/6%2]
	d.Ptr, d.Size = unsafe.Pointer(&x.memory[start/3]), 1
}

func (m *modelled) chooseFailure(x *tree) bool { return m.failing && x.choose(6) == 0 }

func (x *tree) finish() (bool, error) {
	var running []*treeTask
	for _, t := range x.tasks {
		if t.started && !t.done && (t.domain != Host || x.mayGenerate(t)) {
			running = append(running, t)
		}
	}
	if len(running) == 0 {
		return false, nil
	}
	t := running[x.choose(len(running))]
	for range 4 {
		if other := running[x.choose(len(running))]; x.patient && other.depth() < t.depth() {
			t = other
		}
	}
	if t.domain != Host && !t.placed {
		t.placed = true
		x.steps = append(x.steps, fmt.Sprintf("place t%d", t.i))
		t.node.Placed(&x.work)
		x.work.Run()
		return true, x.aim.check(x)
	}
	t.done, t.failed = true, x.aim.chooseFailure(x)
	x.steps = append(x.steps, fmt.Sprintf("finish t%d, failed %v", t.i, t.failed))
	var err error
	if t.failed {
		err = errBroken
	}
	t.node.Complete(err, &x.work)
	x.work.Run()
	return true, x.aim.check(x)
}

func (x *tree) run(steps int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	x.root = x.graph.NewScope()
	for range steps {
		if x.aim.grows(x) {
			err = x.add()
		} else {
			_, err = x.finish()
		}
		if err != nil {
			return err
		}
	}
	for more := true; more; {
		if more, err = x.finish(); err != nil {
			return err
		}
	}
	scopes := []*Scope{x.root}
	for _, t := range x.tasks {
		if !t.complete {
			return errors.New("tasks are left that nothing lets go on")
		}
		t.release()
		scopes = append(scopes, t.inner)
	}
	return x.aim.rest(x, scopes)
}

func (m *modelled) rest(x *tree, scopes []*Scope) error {
	for _, s := range scopes {
		failed := slices.ContainsFunc(x.tasks, func(t *treeTask) bool { return t.scope == s && (t.failed || t.dropped) })
		if err := s.Wait(context.Background(), nil); (err != nil) != failed || remembered(s) != 0 {
			return fmt.Errorf("%v, %d locations remembered at rest", err, remembered(s))
		}
		if len(s.children) != 0 || s.lingering != 0 || s.onlookers != 0 {
			return fmt.Errorf("tasks are kept: %d lingering, %d onlookers", s.lingering, s.onlookers)
		}
	}
	return nil
}

func TestTransparentTasksSeeWhatTheRulesLetThemSee(t *testing.T) {
	for seed := range random(12000) {
		choices := rand.New(rand.NewPCG(seed, 1))
		m := &modelled{}
		x := &tree{aim: m, choose: choices.IntN}
		x.patient, x.cells, x.device, m.recycle = x.choose(2) == 0, x.choose(2) == 0, x.choose(2) == 0, x.choose(2) == 0
		if x.choose(4) == 0 {
			x.device, m.recycle, m.failing = false, false, true
		}
		if m.sets = x.choose(3) == 0; m.sets {
			x.graph.JoinSets(joinSet(func(*Node) { x.joins++ }))
			x.graph.largeSet = 1
		}
		if err := x.run(int(4 + seed%60)); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(x.steps, "\n"))
		}
	}
}

// inner adds a transparent task and lets the script go on in the scope of its children. The
// result leads back to the scope around it.
func (s *script) inner(label string, how Transparency, task Task) (back func()) {
	outer := s.scope
	inner := outer.NewInner()
	task.Label, task.Transparency, task.Inner = label, how, inner
	s.add(task)
	s.scope = inner
	return func() { s.scope = outer }
}

func (s *script) use(kind DependKind, names ...string) []Depend {
	var d []Depend
	for _, name := range names {
		d = append(d, Depend{Kind: kind, Ptr: s.storage(name), Size: 8})
	}
	return d
}

func TestImportedChildFollowsWhatPrecedesItsParentThoughSuperseded(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "w", Depend: s.use(DependOut, "x")})
	back := s.inner("p", Import, Task{})
	back()
	s.add(Task{Label: "r", Depend: s.use(DependInOut, "x")})
	s.add(Task{Label: "v", Depend: s.use(DependOut, "x")})
	s.scope = s.nodes["p"].special.inner
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.expect(t, "start w", "start p")
	s.complete("w", nil)
	// v was generated after p: c does not depend on it.
	s.expect(t, "start r", "start c")
}

func TestImportOutlivesTheTaskThatItPassesThrough(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "w", Depend: s.use(DependOut, "x")})
	root := s.scope
	s.inner("p", Import, Task{})
	s.inner("q", Import, Task{})
	deepest := s.scope
	s.complete("p", nil)
	s.scope = root
	s.add(Task{Label: "r", Depend: s.use(DependInOut, "x")})
	s.add(Task{Label: "v", Depend: s.use(DependInOut, "x")})
	s.scope = deepest
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.expect(t, "start w", "start p", "start q")
	s.complete("w", nil)
	s.expect(t, "start r", "start c")
}

func TestWithoutImportChildrenKeepToThemselves(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "w", Depend: s.use(DependOut, "x")})
	s.inner("p", Export, Task{})
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.expect(t, "start w", "start p", "start c")
}

func TestWhatFollowsAnExportingTaskFollowsItsChildren(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("made after the exporting task was complete ", late), func(t *testing.T) {
			s := newScript()
			back := s.inner("p", Export, Task{Depend: s.use(DependOut, "x")})
			s.add(Task{Label: "c", Depend: s.use(DependOut, "y")})
			s.add(Task{Label: "other", Depend: s.use(DependOut, "z")})
			back()
			if late {
				s.complete("p", nil)
			}
			s.add(Task{Label: "f", Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
			s.add(Task{Label: "stranger", Depend: s.use(DependIn, "y")})
			if !late {
				s.complete("p", nil)
			}
			s.expect(t, "start p", "start c", "start other", "start stranger")
			s.complete("c", nil)
			s.expect(t, "start f")
			s.complete("f", nil)
			s.complete("stranger", nil)
			root := s.scope
			if n := root.index.len(); n == 0 || root.lingering == 0 {
				t.Errorf("the exporting task is forgotten, with a child under way")
			}
			s.complete("other", nil)
			if err := root.Wait(context.Background(), nil); err != nil || remembered(root) != 0 || root.lingering != 0 {
				t.Errorf("%v, %d locations left", err, remembered(root))
			}
		})
	}
}

func TestWhatFollowsAnExportingTaskFindsItThoughSuperseded(t *testing.T) {
	s := newScript()
	back := s.inner("p", Export, Task{Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "c", Depend: s.use(DependOut, "y")})
	back()
	s.add(Task{Label: "q", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "f", Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
	s.complete("p", nil)
	s.complete("q", nil)
	s.expect(t, "start p", "start c", "start q")
	s.complete("c", nil)
	s.expect(t, "start f")
}

func TestAnySiblingFollowsTheChildrenOfAnIncludedExportingTask(t *testing.T) {
	s := newScript()
	back := s.inner("p", Export, Task{Included: true})
	s.add(Task{Label: "c", Depend: s.use(DependOut, "y")})
	back()
	s.complete("p", nil)
	s.add(Task{Label: "f", Depend: s.use(DependIn, "y")})
	s.expect(t, "start p", "start c")
	s.complete("c", nil)
	s.expect(t, "start f")
}

func TestMutexInOutSetOfTwoRegionsIsKeptByAnOrder(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "m", Depend: s.use(DependMutexInOutSet, "x")})
	s.inner("p", Import, Task{})
	s.add(Task{Label: "c", Depend: s.use(DependMutexInOutSet, "x")})
	s.expect(t, "start m", "start p")
	s.complete("m", nil)
	s.expect(t, "start c")
}

func TestFailureReachesImportingChildren(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "w", Depend: s.use(DependOut, "x")})
	s.complete("w", errBroken)
	s.inner("p", Import, Task{})
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.expect(t, "start w", "start p", "drop c")
}

// A child of an importing task depends on what precedes its parent, and not on the parent's later siblings:
// it is run if only these have failed. If one of either kind was not run because of one failure, it is not, in
// whatever order they were dropped.
func TestFailureOfALaterSiblingDoesNotReachImportingChildren(t *testing.T) {
	s := newScript()
	s.inner("p", Import, Task{})
	inner := s.scope
	s.scope = inner.outer
	s.add(Task{Label: "later", Depend: s.use(DependOut, "x")})
	s.complete("later", errBroken)
	s.scope = inner
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.expect(t, "start p", "start later", "start c")

	s = newScript()
	s.add(Task{Label: "w", Depend: s.use(DependOut, "y")})
	s.add(Task{Label: "z", Depend: s.use(DependOut, "z")})
	s.add(Task{Label: "earlier", Depend: append(s.use(DependIn, "y", "z"), s.use(DependIn, "x")...)})
	back := s.inner("p", Import, Task{})
	inner = s.scope
	back()
	s.add(Task{Label: "later", Depend: append(s.use(DependIn, "y"), s.use(DependIn, "x")...)})
	s.complete("w", errBroken)
	s.expect(t, "start w", "start z", "start p", "drop later")
	s.complete("z", nil)
	s.expect(t, "drop earlier")
	s.scope = inner
	s.add(Task{Label: "c", Depend: s.use(DependOut, "x")})
	s.expect(t, "drop c")
}

// A child of an exporting task fails, and a task on the device that depends on it hands the
// failure on to its siblings. When the failure is reported in the child's scope, it is over for
// them too.
func TestFailureThatReachedAnotherScopeIsForgottenWhenItIsReported(t *testing.T) {
	for name, report := range map[string]func(s *script, inner *Scope, g *Group) error{
		"wait":      func(_ *script, inner *Scope, _ *Group) error { return inner.Wait(context.Background(), nil) },
		"taskgroup": func(_ *script, _ *Scope, g *Group) error { return g.Wait(context.Background(), nil) },
		"the end of the scope, which counts it with another": func(_ *script, inner *Scope, _ *Group) error {
			var all Failures
			other := newScript()
			other.add(Task{Label: "c"})
			other.complete("c", errBroken)
			other.scope.Settle(&all)
			inner.Settle(&all)
			return all.Report()
		},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", twice ", twice), func(t *testing.T) {
				s, g := newScript(), NewGroup(nil)
				group := g
				if name != "taskgroup" {
					group = nil
				}
				back := s.inner("e", Export, Task{Depend: s.use(DependOut, "x")})
				s.add(Task{Label: "c", Group: group, Domain: 1, Depend: s.use(DependOut, "y")})
				inner := s.scope
				back()
				s.complete("e", nil)
				s.place("c")
				s.add(Task{Label: "f", Domain: 1, Depend: append(s.use(DependIn, "x", "y"), s.use(DependOut, "z")...)})
				s.place("f")
				s.expect(t, "start e", "start c", "start f after c")
				s.complete("f", nil)
				s.complete("c", errBroken)
				if twice {
					s.add(Task{Label: "before", Depend: s.use(DependIn, "z")})
					s.expect(t, "drop before")
					if err := s.waitNow(); !errors.Is(err, errBroken) {
						t.Errorf("the outer wait: %v", err)
					}
				}
				if err := report(s, inner, g); !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
				if s.scope.failedStorage != nil {
					t.Errorf("the scope keeps storage marked with a failure that is reported")
				}
				s.add(Task{Label: "after", Depend: s.use(DependIn, "z")})
				s.expect(t, "start after")
				for _, name := range []string{"before", "e", "c", "f"} {
					if n := s.nodes[name]; n != nil {
						n.Release()
					}
				}
			})
		}
	}
}

func TestWhatFollowsAnExportingTaskThroughOthersFollowsItsChildren(t *testing.T) {
	for _, domain := range []Domain{Host, 1} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("between them a task of domain %d, made after the exporting task was complete %v", domain, late), func(t *testing.T) {
				s := newScript()
				back := s.inner("p", Export, Task{Depend: s.use(DependOut, "y")})
				s.add(Task{Label: "c", Depend: s.use(DependOut, "x")})
				back()
				if late {
					s.complete("p", nil)
				}
				s.add(Task{Label: "q", Domain: domain, Depend: append(s.use(DependIn, "y"), s.use(DependOut, "z")...)})
				s.add(Task{Label: "f", Domain: domain, Depend: append(s.use(DependIn, "z"), s.use(DependIn, "x")...)})
				if !late {
					s.complete("p", nil)
				}
				s.expect(t, "start p", "start c", "start q")
				if domain != Host {
					s.place("q")
				}
				// This task is generated when q is placed.
				s.add(Task{Label: "h", Domain: domain, Depend: append(s.use(DependIn, "z"), s.use(DependIn, "x")...)})
				s.complete("q", nil)
				s.expect(t)
				// This task is generated when all tasks between are complete.
				s.add(Task{Label: "g", Depend: append(s.use(DependIn, "z"), s.use(DependIn, "x")...)})
				s.add(Task{Label: "stranger", Depend: s.use(DependIn, "x")})
				s.expect(t, "start stranger")
				s.complete("c", nil)
				if domain == Host {
					s.expect(t, "start f", "start h", "start g")
				} else {
					s.expect(t, "start f after q", "start h after q", "start g")
				}
				if n := s.scope.lingering; n != 0 {
					t.Errorf("%d complete tasks stay though no child is left", n)
				}
			})
		}
	}
}

func TestChildrenOfAnImportingTaskFollowThoseOfAnExportingOneBeforeIt(t *testing.T) {
	s := newScript()
	back := s.inner("e", ImpEx, Task{Depend: s.use(DependInOut, "y")})
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	back()
	s.complete("e", nil)
	back = s.inner("i", ImpEx, Task{Depend: s.use(DependInOut, "y")})
	s.add(Task{Label: "b", Depend: s.use(DependInOut, "x")})
	back()
	s.complete("i", nil)
	s.inner("j", Import, Task{Depend: s.use(DependIn, "y")})
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "d", Depend: s.use(DependIn, "z")})
	s.expect(t, "start e", "start a", "start i", "start j", "start d")
	s.complete("a", nil)
	s.expect(t, "start b")
	s.complete("b", nil)
	s.expect(t, "start c")
}

// Tasks that follow an exporting task are kept while a child of that is not complete, because
// later tasks can depend on the child through them. However many follow one another, the number
// that is kept is bounded.
func TestCompleteTasksBehindAnExportingTaskAreKeptOnceForEachUseOfStorage(t *testing.T) {
	for name, from := range map[string]uintptr{"of the same storage": 0, "of storage shared in part": 4} {
		t.Run(name, func(t *testing.T) { keptBehindAnExportingTask(t, from) })
	}
}

// keptBehindAnExportingTask generates tasks on y, from an offset on, behind an exporting task
// on all of y.
func keptBehindAnExportingTask(t *testing.T, from uintptr) {
	s := newScript()
	y := func(kind DependKind) []Depend {
		return []Depend{{Kind: kind, Ptr: unsafe.Add(s.storage("y"), from), Size: 8}}
	}
	back := s.inner("p", Export, Task{Depend: s.use(DependOut, "y")})
	s.add(Task{Label: "c", Depend: s.use(DependOut, "x")})
	back()
	s.complete("p", nil)
	trails := func() int {
		var count func(t *trail) int
		count = func(t *trail) int {
			n := 1
			for _, b := range t.before {
				n += count(b)
			}
			return n
		}
		most := 0
		for _, n := range s.scope.children {
			for _, t := range n.special.trails {
				most = max(most, count(t), len(t.after))
			}
		}
		return most
	}
	for i := range 10_000 {
		if i%100 == 50 {
			// Another exporting task, and a task that depends on both.
			back = s.inner("e", Export, Task{Depend: s.use(DependInOut, "z")})
			s.add(Task{Label: "d", Depend: s.use(DependInOut, "w")})
			back()
			for _, label := range []string{"e", "both", "d"} {
				if label == "both" {
					s.add(Task{Label: label, Depend: append(y(DependInOut), s.use(DependInOut, "z")...)})
				}
				s.complete(label, nil)
				s.nodes[label].Release()
			}
		}
		n := s.add(Task{Label: "q", Depend: y(DependInOut)})
		s.complete("q", nil)
		n.Release()
		if !slices.ContainsFunc(s.scope.children, func(n *Node) bool { return n.label == "q" }) {
			t.Fatalf("after %d tasks nobody is kept who leads to the children", i)
		}
		if kept := s.scope.lingering; kept > 2*maxKept || i%1000 == 0 && trails() > maxKept {
			t.Fatalf("after %d tasks %d complete ones are kept, and %d trails", i, kept, trails())
		}
	}
	s.take()
	s.add(Task{Label: "f", Depend: append(y(DependIn), s.use(DependIn, "x")...)})
	s.expect(t)
	s.complete("c", nil)
	s.expect(t, "start f")
	s.complete("f", nil)
	for _, n := range s.nodes {
		if n.refs > 0 {
			n.Release()
		}
	}
	if s.scope.lingering != 0 || len(s.scope.children) != 0 {
		t.Errorf("%d tasks of %d stay", s.scope.lingering, len(s.scope.children))
	}
}

func TestChildrenOfAnExportingTaskAreTheHostsToSee(t *testing.T) {
	s := newScript()
	back := s.inner("p", Export, Task{Domain: 1, Depend: s.use(DependOut, "x")})
	s.place("p")
	s.add(Task{Label: "c", Depend: s.use(DependOut, "y")})
	back()
	s.add(Task{Label: "f", Domain: 1, Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
	s.expect(t, "start p", "start c")
	s.complete("p", nil)
	s.expect(t)
	s.complete("c", nil)
	s.expect(t, "start f")
}

// However long an importing task lives, only accesses from before it are kept for its children,
// and only while they are in flight. The children have edges from nothing else.
func TestRetiredHistoryIsThatBeforeTheImportingTask(t *testing.T) {
	s := newScript()
	x := lane(5)
	items := func(kind DependKind, from, to int) []Depend { return []Depend{long(kind, x[from:to])} }
	s.add(Task{Label: "w", Depend: items(DependInOut, 0, 2)})
	s.add(Task{Label: "r", Depend: items(DependIn, 2, 5)})
	s.add(Task{Label: "v", Depend: items(DependInOut, 1, 3)})
	back := s.inner("p", Import, Task{})
	inner := s.scope
	back()
	outer := s.scope
	for i := range 5000 {
		kind := []DependKind{DependInOut, DependIn, DependInOutSet}[i%3]
		s.add(Task{Label: "later", Depend: items(kind, i%3, i%3+2)})
		if k := outer.tangle.retired; k != nil && k.members.count > 3 {
			t.Fatalf("after %d tasks %d accesses are retired", i, k.members.count)
		}
	}
	s.expect(t, "start w", "start r", "start p")
	edges := s.graph.Counts().Edges
	s.scope = inner
	s.add(Task{Label: "a", Depend: items(DependIn, 0, 1)})
	s.add(Task{Label: "b", Depend: items(DependInOut, 4, 5)})
	s.add(Task{Label: "c", Depend: items(DependIn, 2, 3)})
	if made := s.graph.Counts().Edges - edges; made != 3 {
		t.Errorf("%d edges to tasks of which each follows one", made)
	}
	s.expect(t)
	s.complete("r", nil)
	s.expect(t, "start b")
	s.complete("w", nil)
	s.expect(t, "start v", "start a")
	s.complete("v", nil)
	s.expect(t, "start later", "start c")
	if k := outer.tangle.retired.members.count; k != 0 {
		t.Errorf("%d accesses of complete tasks are retired", k)
	}
}

// A child of an importing task has edges from the newest tasks before its parent, which follow those before them, however
// many of these are kept for the children of other importing tasks.
func TestImportedChildHasNoImpliedEdges(t *testing.T) {
	s := newScript()
	outer := s.scope
	read := func(label string) { s.add(Task{Label: label, Depend: s.use(DependIn, "x")}) }
	write := func(label string) { s.add(Task{Label: label, Depend: s.use(DependInOut, "x")}) }
	var inners []*Scope
	for range 5 {
		s.scope = outer
		write("w")
		read("r")
		read("r")
		s.inner("p", Import, Task{})
		inners = append(inners, s.scope)
	}
	for i, inner := range inners {
		s.scope = inner
		edges := s.graph.Counts().Edges
		read("c")
		write("d")
		// From the writer before to the reader, and from the two readers and c to the writer.
		if made := s.graph.Counts().Edges - edges; made != 4 {
			t.Errorf("the children of task %d have %d edges, want 4", i, made)
		}
	}
}

// A later reader of the same storage can replace an earlier one among the predecessors of a
// writer. It must not for the children of an importing task that was generated between the two,
// which do not depend on the later one.
func TestImportedChildFollowsAReaderThatALaterOneStandsFor(t *testing.T) {
	s := newScript()
	x := lane(4)
	read := func(label string) { s.add(Task{Label: label, Depend: []Depend{long(DependIn, x)}}) }
	write := func(label string, k int) { s.add(Task{Label: label, Depend: []Depend{cell(DependInOut, &x[k])}}) }
	write("w0", 0)
	read("r0")
	write("w1", 1)
	s.inner("p", Import, Task{})
	inner := s.scope
	s.scope = inner.outer
	read("r1")
	s.scope = inner
	write("c", 2)
	s.expect(t, "start w0", "start p")
	s.complete("w0", nil)
	s.expect(t, "start r0")
	s.complete("r0", nil)
	s.expect(t, "start w1", "start c")
	s.complete("w1", nil)
	s.expect(t, "start r1")
}

// A reader can join a set of readers that are kept already for the children of an importing
// task: the children must follow the reader too.
func TestImportedChildFollowsAReaderWhoseSegmentHasJoinedItsNeighbour(t *testing.T) {
	s := newScript()
	x := lane(30)
	add := func(label string, kind DependKind, from, to int) {
		s.add(Task{Label: label, Depend: []Depend{long(kind, x[from:to])}})
	}
	add("w", DependInOut, 0, 20)
	add("a", DependInOut, 20, 30)
	back := s.inner("p", Import, Task{})
	inner := s.scope
	back()
	add("r1", DependIn, 0, 20)
	add("x", DependInOut, 0, 5)
	add("r2", DependIn, 5, 30)
	add("y", DependInOut, 5, 30)
	s.scope = inner
	add("c", DependIn, 20, 30)
	s.expect(t, "start w", "start a", "start p")
	s.complete("a", nil)
	s.expect(t, "start c")
}
