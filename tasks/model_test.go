package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// modelTask is a task as the naive model sees it: all pairs of items of all
// pairs of tasks.
type modelTask struct {
	depend []Depend
	domain Domain
	state  state
	placed bool
	failed bool
	// follows are the earlier tasks that an item of this one demands order with.
	follows []int
	// stop: a task that this one follows failed before this one started.
	stop bool
	node *Node
}

// settled: complete, and so is all that the device keeps before it.
func (m *model) settled(i int) bool {
	if m.tasks[i].state != stateComplete {
		return false
	}
	for _, p := range m.tasks[i].follows {
		if m.onDevice(p, i) && !m.settled(p) {
			return false
		}
	}
	return true
}

func (m *model) onDevice(p, i int) bool {
	return m.tasks[p].domain == m.tasks[i].domain && m.tasks[i].domain != Host
}

// ready: nothing that i has to follow is still ahead of it.
func (m *model) ready(i int) bool {
	for _, p := range m.tasks[i].follows {
		if m.settled(p) || m.onDevice(p, i) && m.tasks[p].placed {
			continue
		}
		return false
	}
	return true
}

type model struct {
	tasks   []*modelTask
	started map[*Node]bool
	dropped map[*Node]bool
}

func (m *model) Start(n *Node, _ *Work) {
	if m.started[n] {
		panic("started twice")
	}
	m.started[n] = true
}
func (m *model) Drop(n *Node) { m.dropped[n] = true }

// poisoned: a failure stops what follows it.
func (m *model) poisoned(i int) bool {
	for _, p := range m.tasks[i].follows {
		if m.settled(p) && m.tasks[p].failed {
			return true
		}
	}
	return false
}

// check compares who has started with who should have, both ways: every order
// that the items demand is kept, and no other.
func (m *model) check(t *rapid.T) {
	for changed := true; changed; {
		changed = false
		for i, task := range m.tasks {
			if task.state != stateWaiting || !m.ready(i) {
				continue
			}
			changed = true
			task.state = stateStarted
			if m.poisoned(i) {
				task.stop, task.failed, task.state = true, true, stateComplete
			}
		}
	}
	for i, task := range m.tasks {
		wantStart := task.state != stateWaiting && !task.stop
		if m.started[task.node] != wantStart {
			t.Fatalf("task %d started is %v, want %v\n%s", i, m.started[task.node], wantStart, m)
		}
		if m.dropped[task.node] != task.stop {
			t.Fatalf("task %d dropped is %v, want %v\n%s", i, m.dropped[task.node], task.stop, m)
		}
		done, err := task.node.Completed()
		if done != m.settled(i) || (err != nil) != (done && task.failed) {
			t.Fatalf("task %d complete %v (%v), want %v, failed %v\n%s", i, done, err, m.settled(i), task.failed, m)
		}
	}
}

func (m *model) String() string {
	var b strings.Builder
	for i, task := range m.tasks {
		fmt.Fprintf(&b, "task %d on %d follows %v state %d failed %v\n", i, task.domain, task.follows, task.state, task.failed)
	}
	return b.String()
}

func conflict(a, b []Depend) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Ptr == y.Ptr && (x.Kind != DependIn || y.Kind != DependIn) {
				return true
			}
		}
	}
	return false
}

func TestOrderIsWhatAllPairsOfItemsDemand(t *testing.T) {
	var storage [4]uint64
	rapid.Check(t, func(t *rapid.T) {
		var g Graph
		s := g.NewScope()
		m := &model{started: make(map[*Node]bool), dropped: make(map[*Node]bool)}
		var w Work
		failures := rapid.Bool().Draw(t, "with failures")
		waited := 0
		running := func() []int {
			var r []int
			for i, task := range m.tasks {
				if task.state == stateStarted || task.state == statePlaced {
					r = append(r, i)
				}
			}
			return r
		}
		actions := map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				task := &modelTask{domain: Domain(rapid.IntRange(0, 2).Draw(t, "domain"))}
				for range rapid.IntRange(0, 3).Draw(t, "items") {
					task.depend = append(task.depend, Depend{
						Kind: DependKind(rapid.IntRange(1, 3).Draw(t, "kind")),
						Ptr:  unsafe.Pointer(&storage[rapid.IntRange(0, len(storage)-1).Draw(t, "location")]),
					})
				}
				for i, earlier := range m.tasks[waited:] {
					if conflict(earlier.depend, task.depend) {
						task.follows = append(task.follows, waited+i)
					}
				}
				m.tasks = append(m.tasks, task)
				var err error
				task.node, err = s.Add(Task{Domain: task.domain, Depend: task.depend, Runner: m}, &w)
				if err != nil {
					t.Fatal(err)
				}
				w.Run()
			},
			"place": func(t *rapid.T) {
				r := slices.DeleteFunc(running(), func(i int) bool {
					return m.tasks[i].domain == Host || m.tasks[i].state == statePlaced
				})
				if len(r) == 0 {
					return
				}
				task := m.tasks[rapid.SampledFrom(r).Draw(t, "task")]
				task.state, task.placed = statePlaced, true
				task.node.Placed(&w)
				w.Run()
			},
			"complete": func(t *rapid.T) {
				r := running()
				if len(r) == 0 {
					return
				}
				task := m.tasks[rapid.SampledFrom(r).Draw(t, "task")]
				// A placed task does not fail here: what of its dependents has
				// started is the runner's to say (see the scripts).
				task.failed = failures && task.state != statePlaced && rapid.Bool().Draw(t, "fails")
				task.state = stateComplete
				if task.failed {
					task.node.Complete(errBroken, &w)
				} else {
					task.node.Complete(nil, &w)
				}
				w.Run()
			},
			"wait": func(t *rapid.T) {
				if len(running()) > 0 {
					return
				}
				want := slices.ContainsFunc(m.tasks[waited:], func(task *modelTask) bool { return task.failed })
				if err := s.Wait(context.Background()); (err != nil) != want {
					t.Fatalf("wait reports %v, some failed %v\n%s", err, want, m)
				}
				// All before is complete and reported: it orders nothing.
				waited = len(m.tasks)
			},
			"": m.check,
		}
		t.Repeat(actions)
		for r := running(); len(r) > 0; r = running() {
			i := rapid.SampledFrom(r).Draw(t, "last")
			m.tasks[i].state = stateComplete
			m.tasks[i].node.Complete(nil, &w)
			w.Run()
			m.check(t)
		}
		if s.Wait(context.Background()); !s.Settled() {
			t.Fatalf("tasks left\n%s", m)
		}
	})
}
