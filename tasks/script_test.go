package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cockroachdb/datadriven"
)

// script drives one scope by hand: a task starts when the scope starts it, and
// is placed and completed when the test says so.
type script struct {
	graph  Graph
	scope  *Scope
	work   Work
	nodes  map[string]*Node
	events []string
	memory map[string]*uint64
}

func newScript() *script {
	s := &script{nodes: make(map[string]*Node), memory: make(map[string]*uint64)}
	s.scope = s.graph.NewScope()
	return s
}

// scripted records what happens to one task.
type scripted struct {
	script *script
	label  string
}

func (r scripted) Start(n *Node, _ *Work) {
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
}

func (r scripted) Drop(n *Node) {
	if done, failure := n.Completed(); done && failure == nil {
		r.script.events = append(r.script.events, fmt.Sprintf("dropped %s, which did not fail", r.label))
	}
	r.script.events = append(r.script.events, "drop "+r.label)
}

// storage returns where the named variable lies.
func (s *script) storage(name string) unsafe.Pointer {
	if s.memory[name] == nil {
		s.memory[name] = new(uint64)
	}
	return unsafe.Pointer(s.memory[name])
}

func (s *script) add(t Task) *Node {
	t.Runner = scripted{s, t.Label}
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

// take returns the events since the last call.
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

// waitNow waits for what is complete already.
func (s *script) waitNow() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("tasks are under way"))
	return s.scope.Wait(ctx, nil)
}

// TestScripts runs the files of testdata. A file is a list of "run" blocks, each
// a new scope; a line is a step, and the output gives each step with what it
// caused:
//
//	task NAME [on=DOMAIN] [included] [in=X] [out=X] [inout=X] ...
//	place NAME | done NAME | fail NAME | abandon NAME | wait
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			s := newScript()
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

func (s *script) step(d *datadriven.TestData, t *testing.T, step []string) {
	say := func(format string, args ...any) { s.events = append(s.events, fmt.Sprintf(format, args...)) }
	switch step[0] {
	case "task":
		task := Task{Label: step[1]}
		for _, word := range step[2:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "on":
				fmt.Sscan(value, &task.Domain)
			case "included":
				task.Included = true
			default:
				kind := map[string]DependKind{"in": DependIn, "out": DependOut, "inout": DependInOut}[key]
				if kind == 0 {
					d.Fatalf(t, "unknown word %q", word)
				}
				task.Depend = append(task.Depend, Depend{Kind: kind, Ptr: s.storage(value), Size: 8})
			}
		}
		s.add(task)
	case "place":
		s.place(step[1])
	case "done":
		s.complete(step[1], nil)
	case "fail":
		s.complete(step[1], errBroken)
	case "wait":
		if err := s.waitNow(); err != nil {
			say("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			say("nothing failed")
		}
	case "abandon":
		s.nodes[step[1]].Abandon()
	default:
		d.Fatalf(t, "unknown step %q", step[0])
	}
}
