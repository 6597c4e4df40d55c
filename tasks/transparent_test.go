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

// tree is a region of tasks inside of tasks, held against a naive model of
// what transparent tasks let each other see. All of it runs on the host; a task
// may make children while its body runs.
type tree struct {
	choose func(int) int
	graph  Graph
	work   Work
	root   *Scope
	memory [6]byte
	tasks  []*treeTask
	steps  []string
}

type treeTask struct {
	i            int
	parent       *treeTask
	scope, inner *Scope
	depend       []Depend
	transparency Transparency
	included     bool
	node         *Node

	saidStart, started, complete bool
}

func (task *treeTask) Start(*Node, *Work) { task.saidStart = true }
func (task *treeTask) Drop(*Node)         {}

// visible reports whether p is among what t can follow, by where they stand and
// by what exporting tasks have to do with t.
func visible(p, t *treeTask) bool {
	for anchor := t; ; anchor = anchor.parent {
		if p.parent == anchor.parent && p.i < anchor.i {
			return true
		}
		if anchor.parent == nil || anchor.parent.transparency&Import == 0 {
			break
		}
	}
	e := p.parent
	return e != nil && e.transparency&Export != 0 && visible(e, t) &&
		(e.included || relateAll(e.depend, t.depend) != unrelated)
}

func (x *tree) ready(t *treeTask) bool {
	return !slices.ContainsFunc(x.tasks, func(p *treeTask) bool {
		return p != t && !p.complete && relateAll(p.depend, t.depend) != unrelated && visible(p, t)
	})
}

func (x *tree) check() error {
	for _, t := range x.tasks {
		if !t.started {
			t.started = x.ready(t)
		}
	}
	for _, t := range x.tasks {
		if t.started != t.saidStart {
			return fmt.Errorf("t%d started %v, want %v", t.i, t.saidStart, t.started)
		}
	}
	return nil
}

// mayGenerate: the task's body runs and waits for no included child.
func (x *tree) mayGenerate(parent *treeTask) bool {
	if parent != nil && (!parent.started || parent.complete) {
		return false
	}
	return !slices.ContainsFunc(x.tasks, func(t *treeTask) bool { return t.parent == parent && t.included && !t.complete })
}

func (x *tree) add() error {
	generators := append([]*treeTask{nil}, x.tasks...)
	generators = slices.DeleteFunc(generators, func(t *treeTask) bool { return !x.mayGenerate(t) })
	if len(generators) == 0 {
		return nil
	}
	t := &treeTask{i: len(x.tasks), parent: generators[x.choose(len(generators))], included: x.choose(4) == 0}
	t.scope = x.root
	if t.parent != nil {
		t.scope = t.parent.inner
	}
	if x.choose(3) > 0 {
		t.transparency = Transparency(x.choose(4))
	}
	kinds := []DependKind{DependIn, DependIn, DependOut, DependInOut, DependInOutSet, DependOutAllMemory}
	for range x.choose(3) {
		d := Depend{Kind: kinds[x.choose(len(kinds))]}
		start := x.choose(len(x.memory))
		d.Ptr, d.Size = unsafe.Pointer(&x.memory[start]), uint64(1+x.choose(min(2, len(x.memory)-start)))
		t.depend = append(t.depend, d)
	}
	added := Task{Label: fmt.Sprint("t", t.i), Held: true, Included: t.included, Depend: t.depend, Runner: t, Transparency: t.transparency}
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
	x.tasks = append(x.tasks, t)
	line := fmt.Sprintf("add t%d transparency %d included %v", t.i, t.transparency, t.included)
	if t.parent != nil {
		line += fmt.Sprintf(" in t%d", t.parent.i)
	}
	for _, d := range t.depend {
		line += fmt.Sprintf(" %v[%d:%d]", d.Kind, uintptr(d.Ptr)-uintptr(unsafe.Pointer(&x.memory)), d.Size)
	}
	x.steps = append(x.steps, line)
	x.work.Run()
	return x.check()
}

func (x *tree) finish() (bool, error) {
	var running []*treeTask
	for _, t := range x.tasks {
		if t.started && !t.complete && x.mayGenerate(t) {
			running = append(running, t)
		}
	}
	if len(running) == 0 {
		return false, nil
	}
	t := running[x.choose(len(running))]
	t.complete = true
	x.steps = append(x.steps, fmt.Sprintf("finish t%d", t.i))
	t.node.Complete(nil, &x.work)
	x.work.Run()
	return true, x.check()
}

func (x *tree) run(steps int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	x.root = x.graph.NewScope()
	for range steps {
		if x.choose(5) < 3 {
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
		t.node.Release()
		scopes = append(scopes, t.inner)
	}
	for _, s := range scopes {
		if err := s.Wait(context.Background(), nil); err != nil || s.index.len() != 0 {
			return fmt.Errorf("%v, %d locations remembered at rest", err, s.index.len())
		}
		if len(s.children) != 0 || s.lingering != 0 || s.onlookers != 0 || s.exporters != 0 {
			return fmt.Errorf("tasks are kept: %d lingering, %d onlookers", s.lingering, s.onlookers)
		}
	}
	return nil
}

func TestTransparentTasksSeeWhatTheRulesLetThemSee(t *testing.T) {
	for seed := range uint64(4000) {
		choices := rand.New(rand.NewPCG(seed, 1))
		x := &tree{choose: choices.IntN}
		if err := x.run(int(4 + seed%60)); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(x.steps, "\n"))
		}
	}
}

// inner makes the script go on in the scope of the children of a transparent task,
// and returns the way back.
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
	s.scope = s.nodes["p"].inner
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.expect(t, "start w", "start p")
	s.complete("w", nil)
	// v is later than p: c does not wait for it.
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
			if n := root.index.len(); n == 0 || root.lingering != 1 {
				t.Errorf("the exporting task is forgotten, with a child under way")
			}
			s.complete("other", nil)
			if err := root.Wait(context.Background(), nil); err != nil || root.index.len() != 0 || root.lingering != 0 {
				t.Errorf("%v, %d locations left", err, root.index.len())
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
