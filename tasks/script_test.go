package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cockroachdb/datadriven"
)

// script drives one scope by hand. A task starts when the scope starts it, and is placed and
// completed when the test says so.
type script struct {
	graph  Graph
	scope  *Scope
	work   Work
	nodes  map[string]*Node
	events []string
	memory map[string]*[16]byte
	groups map[string]*Group
	ends   map[string]context.CancelCauseFunc
	live   map[string]context.Context
	detach map[string]Event
}

func newScript() *script {
	s := &script{
		nodes: make(map[string]*Node), memory: make(map[string]*[16]byte),
		groups: make(map[string]*Group), ends: make(map[string]context.CancelCauseFunc),
		live: make(map[string]context.Context), detach: make(map[string]Event),
	}
	s.scope = s.graph.NewScope()
	return s
}

// scripted records what happens to one task.
type scripted struct {
	script *script
	label  string
	join   bool
}

func (r scripted) Start(n *Node, w *Work) {
	event := "start " + r.label
	if p := n.Predecessors(); len(p) > 0 {
		labels := make([]string, len(p))
		for i := range p {
			labels[i] = p[i].Label()
		}
		slices.Sort(labels)
		event += " after " + strings.Join(labels, " ")
	}
	r.script.events = append(r.script.events, event)
	if !r.join {
		return
	}
	if n.Domain() != Host {
		r.script.say("%s is on %d", r.label, n.Domain())
		n.Placed(w)
	}
	n.Complete(nil, w)
}

func (r scripted) Drop(n *Node, failure error) {
	event := "drop " + r.label
	if failure == nil {
		event += " without failure"
	}
	r.script.events = append(r.script.events, event)
}

func (scripted) Recycle() {}

// storage returns the address of a variable.
func (s *script) storage(name string) unsafe.Pointer {
	if s.memory[name] == nil {
		s.memory[name] = new([16]byte)
	}
	return unsafe.Pointer(s.memory[name])
}

func (s *script) add(t Task) *Node {
	t.Runner = scripted{s, t.Label, t.Domain == AnyDomain}
	t.Held = true
	n, err := s.scope.Add(&t, &s.work)
	if err != nil {
		s.events = append(s.events, err.Error())
		return nil
	}
	s.nodes[t.Label] = n
	s.work.Run()
	return n
}

func (s *script) complete(label string, err error) {
	s.nodes[label].Complete(err, &s.work)
	s.work.Run()
}

func (s *script) place(label string) {
	s.nodes[label].Placed(&s.work)
	s.work.Run()
}

// take returns the events since its last call.
func (s *script) take() []string {
	e := s.events
	s.events = nil
	return e
}

func (s *script) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

var errBroken = errors.New("broken")

// waitNow is a Wait for tasks that are complete.
func (s *script) waitNow() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("tasks are under way"))
	return s.scope.Wait(ctx, nil)
}

// TestScripts runs the files of testdata/scripts. A file is a list of "run" blocks, each
// a new scope; a line is a step, and the output gives each step with what it
// caused:
//
//	task NAME [on=DOMAIN|join] [included] [detached] [group=G] [context=C] [KIND=X]...
//	place NAME | done NAME | fail NAME | fulfill NAME | abandon NAME | wait
//	late NAME | ondevice DOMAIN
//	group G [in PARENT] | cancel G | waitgroup G | context C | end C
//	joinsets N | counts
//
// X is a variable, V[FROM:TO] some bytes of one, or * for omp_all_memory. The
// wait steps wait for what is complete already. A task that fails late is not complete yet, and ondevice
// asks whether a task would start at once, whatever it depends on. A join starts and is done by
// itself, placed first if it is of a device's domain. After joinsets, sets of more than N tasks are joined.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			s := newScript()
			defer func() {
				for _, end := range s.ends {
					end(nil)
				}
			}()
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				step := strings.Fields(line)
				s.step(d, t, step)
				fmt.Fprintf(&out, "%s", strings.Join(step, " "))
				if events := s.take(); len(events) > 0 {
					fmt.Fprintf(&out, " → %s", strings.Join(events, ", "))
				}
				out.WriteByte('\n')
			}
			return out.String()
		})
	})
}

func (s *script) say(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *script) report(err error) {
	if err == nil {
		s.say("nothing failed")
		return
	}
	s.say("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

func (s *script) step(d *datadriven.TestData, t *testing.T, step []string) {
	switch step[0] {
	case "task":
		s.stepTask(d, t, step)
	case "place":
		s.place(step[1])
	case "done":
		s.complete(step[1], nil)
	case "fail":
		s.complete(step[1], errBroken)
	case "late":
		s.nodes[step[1]].Fail(errBroken)
	case "ondevice":
		domain, err := strconv.Atoi(step[1])
		if err != nil {
			d.Fatalf(t, "step %q: %v", step, err)
		}
		s.say("%v", s.scope.OnDevice(Domain(domain)))
	case "joinsets":
		s.graph.JoinSets(scripted{s, joinLabel, true})
		fmt.Sscan(step[1], &s.graph.largeSet)
	case "counts":
		c := s.graph.Counts()
		s.say("%d tasks, %d edges, %d failures, %d live", c.Tasks, c.Edges, c.Failures, c.Tasks-c.Done)
	case "fulfill":
		if err := s.detach[step[1]].Fulfill(&s.work); err != nil {
			s.say("%v", err)
		}
		s.work.Run()
	case "wait":
		s.report(s.waitNow())
	case "abandon":
		s.nodes[step[1]].Abandon()
	case "group":
		var parent *Group
		if len(step) > 2 {
			parent = s.groups[step[3]]
		}
		s.groups[step[1]] = NewGroup(parent)
	case "cancel":
		s.groups[step[1]].Cancel()
	case "waitgroup":
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("tasks are under way"))
		s.report(s.groups[step[1]].Wait(ctx, nil))
	case "context":
		s.live[step[1]], s.ends[step[1]] = context.WithCancelCause(context.Background())
	case "end":
		s.ends[step[1]](fmt.Errorf("%s ended", step[1]))
	default:
		d.Fatalf(t, "unknown step %q", step[0])
	}
}

func (s *script) stepTask(d *datadriven.TestData, t *testing.T, step []string) {
	task := Task{Label: step[1]}
	var event Event
	for _, word := range step[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "on":
			if value == "join" {
				task.Domain = AnyDomain
				continue
			}
			fmt.Sscan(value, &task.Domain)
		case "included":
			task.Included = true
		case "detached":
			task.Event = &event
		case "group":
			task.Group = s.groups[value]
		case "context":
			task.Context = s.live[value]
		default:
			item, ok := s.item(key, value)
			if !ok {
				d.Fatalf(t, "unknown word %q", word)
			}
			task.Depend = append(task.Depend, item)
		}
	}
	s.add(task)
	s.detach[task.Label] = event
}

// item reads a depend item.
func (s *script) item(kind, storage string) (Depend, bool) {
	d := Depend{Kind: map[string]DependKind{
		"in": DependIn, "out": DependOut, "inout": DependInOut, "mutex": DependMutexInOutSet, "set": DependInOutSet,
	}[kind], Size: 16}
	if storage == "*" {
		d.Kind = map[DependKind]DependKind{DependOut: DependOutAllMemory, DependInOut: DependInOutAllMemory}[d.Kind]
		return d, d.Kind != 0
	}
	name, part, ok := strings.Cut(storage, "[")
	d.Ptr = s.storage(name)
	if ok {
		var from, to uint64
		if _, err := fmt.Sscanf(part, "%d:%d]", &from, &to); err != nil {
			return d, false
		}
		d.Ptr, d.Size = unsafe.Add(d.Ptr, from), to-from
	}
	return d, d.Kind != 0
}

// failure returns the failure of a complete task, and nil of one that is not complete.
func (n *Node) failure() error {
	n.scope.lock()
	defer n.scope.unlock()
	if !n.phase.complete() {
		return nil
	}
	return n.failureLocked()
}

// wasDropped reports whether a complete task was not run.
func (n *Node) wasDropped() bool {
	n.scope.lock()
	defer n.scope.unlock()
	return n.outcome == dropped
}
