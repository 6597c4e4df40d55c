package order

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ErrClauses matches the error for a malformed clauses file.
var ErrClauses = errors.New("not a clauses file")

// ErrNoCommands matches the error for a log without commands beside a clauses file with tasks of a
// device.
var ErrNoCommands = errors.New("the log has no commands of the tasks in the clauses file")

// task is a line of the clauses file.
type task struct {
	name string
	// host says that the task runs on the host. Its inputs are copied to the host, unless a host
	// task wrote them, and its output is copied back. Tasks after its output are after
	// everything before the task; tasks after one of its inputs are only after the copy of that
	// input, and have an edge from the task that wrote it.
	host bool
	from []edge
	// body has the edges from tasks that must end before the host's work begins. Those in from
	// need only end before its output is copied back.
	body []edge
	runs []access // its dispatches
	// next is a dispatch of a task that must come after this one, if there is one.
	next *Command
}

// edge says that a task comes after another, and in which way.
type edge struct {
	task *task
	kind needKind
}

type taskKey struct{ step, point uint32 }

// taskGraph is the tasks of a graph line.
type taskGraph struct {
	number  uint32
	tasks   map[taskKey]*task
	objects map[string]*object
	waiting int // number of device tasks without a dispatch so far
}

// object is a dependence object: its last out and the ins since.
type object struct {
	out *task
	ins []*task
}

// clauses reads a clauses file as far as its tasks are needed. A graph is dropped when it and the
// next two are complete.
type clauses struct {
	in     *bufio.Scanner
	line   int
	graphs []*taskGraph // in the order of the file
	// single says that the file has no graph lines, so that the third push constant is not a graph.
	single bool
	tasks  int // number of tasks read so far
	ended  bool
	err    error
}

func newClauses(in io.Reader) *clauses {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 1<<16), 1<<26)
	// An incomplete last line is left out, as in the log.
	s.Split(func(data []byte, _ bool) (int, []byte, error) { return bufio.ScanLines(data, false) })
	return &clauses{in: s}
}

func (c *clauses) fail(format string, args ...any) bool {
	if c.err == nil {
		c.err = fmt.Errorf("%w: line %d: %s", ErrClauses, c.line, fmt.Sprintf(format, args...))
	}
	c.ended = true
	return false
}

// find returns the task of a dispatch, or nil.
func (c *clauses) find(step, point, graph uint32) (*task, *taskGraph) {
	for {
		for i := len(c.graphs) - 1; i >= 0; i-- {
			if g := c.graphs[i]; c.single || g.number == graph {
				if t := g.tasks[taskKey{step, point}]; t != nil {
					return t, g
				}
			}
		}
		if !c.read() {
			return nil, nil
		}
	}
}

// read reads a line. It returns false at the end.
func (c *clauses) read() bool {
	if c.ended || !c.in.Scan() {
		if err := c.in.Err(); err != nil {
			return c.fail("%v", err)
		}
		c.ended = true
		return false
	}
	c.line++
	fields := strings.Fields(c.in.Text())
	switch {
	case len(fields) == 0 || fields[0][0] == '#':
		return true
	case fields[0] == "graph" && len(fields) == 2 && !c.single:
		n, err := strconv.ParseUint(fields[1], 10, 32)
		if err != nil {
			return c.fail("graph %q", fields[1])
		}
		c.forget()
		c.graphs = append(c.graphs, &taskGraph{number: uint32(n), tasks: map[taskKey]*task{}, objects: map[string]*object{}})
		return true
	case fields[0] == "task" && len(fields) >= 3:
		if len(c.graphs) == 0 {
			c.single = true
			c.graphs = []*taskGraph{{tasks: map[taskKey]*task{}, objects: map[string]*object{}}}
		}
		return c.add(c.graphs[len(c.graphs)-1], fields[1:])
	}
	return c.fail("%.100q", c.in.Text())
}

// missing reads the file to its end and calls found for each device task without a dispatch: by graph,
// step and point.
func (c *clauses) missing(found func(*task)) {
	for more := true; more; {
		more = c.read()
		// The last graph is complete only at the end of the file.
		complete := len(c.graphs)
		if more && complete > 0 {
			complete--
		}
		for _, g := range c.graphs[:complete] {
			for _, t := range g.missing() {
				found(t)
			}
		}
		c.graphs = slices.Delete(c.graphs, 0, complete)
	}
}

// missing returns the device tasks without a dispatch, by step and point.
func (g *taskGraph) missing() []*task {
	if g.waiting == 0 {
		return nil
	}
	var keys []taskKey
	for key, t := range g.tasks {
		if !t.host && len(t.runs) == 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b taskKey) int { return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.point, b.point)) })
	var tasks []*task
	for _, key := range keys {
		tasks = append(tasks, g.tasks[key])
	}
	return tasks
}

func (c *clauses) forget() {
	const keep = 2
	done := 0
	for done < len(c.graphs) && c.graphs[done].waiting == 0 {
		done++
	}
	if done > keep {
		c.graphs = append(c.graphs[:0], c.graphs[done-keep:]...)
	}
}

func (c *clauses) add(g *taskGraph, fields []string) bool {
	step, err1 := strconv.ParseUint(fields[0], 10, 32)
	point, err2 := strconv.ParseUint(fields[1], 10, 32)
	if err1 != nil || err2 != nil {
		return c.fail("task %q %q", fields[0], fields[1])
	}
	t := &task{name: fmt.Sprintf("task %d %d", step, point)}
	if !c.single {
		t.name = fmt.Sprintf("graph %d %s", g.number, t.name)
	}
	key := taskKey{uint32(step), uint32(point)}
	if g.tasks[key] != nil {
		return c.fail("a second %s", t.name)
	}
	ins, outs := map[string]bool{}, map[string]bool{}
	for _, f := range fields[2:] {
		kind, list, _ := strings.Cut(f, "=")
		for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			switch kind {
			case "in":
				ins[name] = true
			case "out":
				outs[name] = true
			case "inout":
				ins[name], outs[name] = true, true
			default:
				return c.fail("clause %q", kind)
			}
		}
		if kind == "host" && list == "" {
			t.host = true
		}
	}
	for name := range ins {
		if !outs[name] {
			o := g.object(name)
			if t.host && o.out != nil && o.out.host {
				t.from = o.out.bodyTo(t.from)
			} else {
				t.after(o.out, needRead)
			}
			o.ins = append(o.ins, t)
		}
	}
	t.body = slices.Clone(t.from)
	for name := range outs {
		o := g.object(name)
		if ins[name] {
			t.after(o.out, needRead)
		}
		t.after(o.out, needWritten)
		for _, in := range o.ins {
			if !in.host {
				t.after(in, needDone)
			}
		}
		o.out, o.ins = t, nil
	}
	g.tasks[key] = t
	c.tasks++
	if !t.host {
		g.waiting++
	}
	return true
}

func (g *taskGraph) object(name string) *object {
	o := g.objects[name]
	if o == nil {
		o = &object{}
		g.objects[name] = o
	}
	return o
}

// after adds an edge or, if from is a host task, the edges that stand for it.
func (t *task) after(from *task, kind needKind) {
	switch {
	case from == nil || from == t:
	case from.host:
		for _, e := range from.from {
			t.add(edge{e.task, min(e.kind, kind)})
		}
	default:
		t.add(edge{from, kind})
	}
}

func (t *task) add(e edge) {
	if !slices.Contains(t.from, e) {
		t.from = append(t.from, e)
	}
}

// bodyTo adds the edges before a host task's body to edges.
func (t *task) bodyTo(edges []edge) []edge {
	for _, e := range t.body {
		if !slices.Contains(edges, e) {
			edges = append(edges, e)
		}
	}
	return edges
}
