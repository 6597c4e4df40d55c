package vkomp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vkomp/vkomp/tasks"
)

// Graph is a snapshot of a runtime's task graph: see [Runtime.Graph].
type Graph struct {
	// Tasks are ordered by ID.
	Tasks []GraphTask
	Edges []GraphEdge // dependences between them
}

// GraphTask is a task of a Graph.
type GraphTask struct {
	// ID is the task's number in its runtime, 1 or more; siblings are numbered in the
	// order in which they were generated.
	ID uint64
	// Parent is the ID of the explicit task that generated this one, 0 for the
	// initial task. The graph may not contain the parent: see Options.KeepGraph.
	Parent uint64
	Label  string // the task's label
	// Device is the number of the Vulkan device that a target task runs on, and
	// InitialDeviceNumber for one on the initial device and for a host task.
	Device int
	// Included says that the construct that generated the task waits for it.
	Included bool
	State    GraphState // how far the task has come
	// Failure is the error with which the task failed or was not run, nil if it did not
	// fail; a *TaskError says which of the two.
	Failure error
	// Depend are the items of the task's depend clauses.
	Depend []GraphDepend
}

// GraphState is the state of a task.
type GraphState string

const (
	// GraphWaiting means that the task waits for a predecessor.
	GraphWaiting GraphState = "waiting"
	// GraphStarted means that the task runs or is being submitted to its device.
	GraphStarted GraphState = "started"
	// GraphPlaced means that the task's commands are in a queue's order.
	GraphPlaced GraphState = "placed"
	// GraphComplete means that the task is done, has failed, or was not run.
	GraphComplete GraphState = "complete"
)

// GraphDepend is an item of a depend clause. It does not keep the storage reachable.
type GraphDepend struct {
	// Kind is the dependence-type in OpenMP.
	Kind string
	// Address is the address of the storage, 0 for none and for omp_all_memory. Size is
	// its size in bytes.
	Address uintptr
	Size    uint64
}

// String returns the item in the form "inout 0xc000012000 +64 B".
func (d GraphDepend) String() string {
	if d.Address == 0 {
		return d.Kind
	}
	return fmt.Sprintf("%s %#x +%d B", d.Kind, d.Address, d.Size)
}

// GraphEdge is a dependence of the task with the ID To on the task with the ID From.
type GraphEdge struct {
	From, To uint64 // IDs of tasks
	// Exclusion says that the tasks only exclude each other (mutexinoutset); From was
	// generated first.
	Exclusion bool
}

// Graph returns a snapshot of the task graph: the tasks that are not complete and the
// dependences between them; with Options.KeepGraph all tasks since Open. Without it, the tasks
// include the joins that the runtime puts between large sets of tasks: a join depends on the tasks of
// one set, and those of the next set depend on the join. The states of running tasks may be read at
// slightly different moments.
func (rt *Runtime) Graph() Graph { return graphOf(rt.graph.Snapshot()) }

func graphOf(s tasks.Snapshot) Graph {
	g := Graph{Tasks: make([]GraphTask, len(s.Tasks)), Edges: make([]GraphEdge, len(s.Edges))}
	for i, t := range s.Tasks {
		g.Tasks[i] = GraphTask{
			ID:       t.ID,
			Parent:   t.Parent,
			Label:    t.Label,
			Device:   InitialDeviceNumber,
			Included: t.Included,
			State:    GraphState(t.State.String()),
			Failure:  t.Failure,
			Depend:   make([]GraphDepend, len(t.Depend)),
		}
		if t.Domain != tasks.Host {
			g.Tasks[i].Device = int(t.Domain) - 1
		}
		for k, d := range t.Depend {
			g.Tasks[i].Depend[k] = GraphDepend{Kind: d.Kind.String(), Address: uintptr(d.Ptr), Size: d.Size}
		}
	}
	for i, e := range s.Edges {
		g.Edges[i] = GraphEdge(e)
	}
	return g
}

// WriteDOT writes the graph in the language of Graphviz's dot. A task is a node with its
// label and ID: a box for a target task, an ellipse for a host task, with a heavy outline
// if it is included. The fill shows the state: white for waiting, yellow for started, blue
// for placed, green for complete, red for failed, and dashed if it was not run because
// another task failed. Tooltips (in SVG) show the state, the device, the depend items and
// the error. The children of an explicit task share a frame. Dependences are arrows; a
// dashed line without a head connects tasks that exclude each other.
//
// Equal graphs give equal output, whatever the order of tasks and edges. Edges of tasks
// that are not in the graph are left out. Control characters and invalid UTF-8 in labels
// are escaped as in a Go string. The only errors are those of w.
func (g Graph) WriteDOT(w io.Writer) error {
	// The writer keeps its first error until Flush.
	out := bufio.NewWriter(w)
	out.WriteString(dotHead)
	for _, f := range g.families() {
		if f.parent != 0 {
			fmt.Fprintf(out, "\tsubgraph cluster_%d {\n\tlabel=%s\n", f.parent, dotLabel(f.title))
		}
		for i := range f.tasks {
			f.tasks[i].writeDOT(out)
		}
		if f.parent != 0 {
			out.WriteString("\t}\n")
		}
	}
	for _, e := range g.drawnEdges() {
		fmt.Fprintf(out, "\tt%d -> t%d", e.From, e.To)
		if e.Exclusion {
			out.WriteString(` [style=dashed dir=none tooltip="mutually exclusive"]`)
		}
		out.WriteByte('\n')
	}
	out.WriteString("}\n")
	return out.Flush()
}

// family is the set of children of one task, ordered by ID.
type family struct {
	parent uint64 // 0 for the initial task
	title  string // "" for the family of the initial task
	tasks  []GraphTask
}

// families groups the tasks of the graph by the task that generated them, in the order of
// the parents' IDs.
func (g Graph) families() []family {
	labels := make(map[uint64]string, len(g.Tasks))
	children := make(map[uint64][]GraphTask)
	for _, t := range g.Tasks {
		labels[t.ID] = t.Label
		children[t.Parent] = append(children[t.Parent], t)
	}
	var families []family
	for _, parent := range slices.Sorted(maps.Keys(children)) {
		f := family{parent: parent, tasks: children[parent]}
		if parent != 0 {
			name, ok := labels[parent]
			if !ok {
				name = "task"
			}
			f.title = fmt.Sprintf("children of %s #%d", name, parent)
		}
		slices.SortFunc(f.tasks, func(a, b GraphTask) int { return cmp.Compare(a.ID, b.ID) })
		families = append(families, f)
	}
	return families
}

// drawnEdges returns the edges between tasks of the graph, sorted.
func (g Graph) drawnEdges() []GraphEdge {
	held := make(map[uint64]bool, len(g.Tasks))
	for _, t := range g.Tasks {
		held[t.ID] = true
	}
	edges := make([]GraphEdge, 0, len(g.Edges))
	for _, e := range g.Edges {
		if held[e.From] && held[e.To] {
			edges = append(edges, e)
		}
	}
	slices.SortFunc(edges, GraphEdge.compare)
	return edges
}

// compare orders edges by To first.
func (e GraphEdge) compare(o GraphEdge) int {
	exclusion := func(e GraphEdge) int {
		if e.Exclusion {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(e.To, o.To), cmp.Compare(e.From, o.From), exclusion(e)-exclusion(o))
}

const dotHead = `digraph vkomp {
	graph [fontname="Helvetica" style=rounded color="#808080" tooltip=" "]
	node [fontname="Helvetica" style=filled]
	edge [color="#404040"]
`

// stateFill holds the fill colour of nodes that have not failed.
var stateFill = map[GraphState]string{
	GraphWaiting:  "#ffffff",
	GraphStarted:  "#fff2a8",
	GraphPlaced:   "#bcd9ff",
	GraphComplete: "#c9eec9",
}

const failedFill = "#ff8f8f"

// writeDOT writes the task's node.
func (t *GraphTask) writeDOT(out *bufio.Writer) {
	shape := "ellipse"
	if t.Device != InitialDeviceNumber {
		shape = "box"
	}
	fmt.Fprintf(out, "\tt%d [label=%s shape=%s", t.ID, dotLabel(t.caption()), shape)
	if t.Included {
		out.WriteString(" penwidth=2.5")
	}
	fill, outline := t.colours()
	if fill != "" {
		fmt.Fprintf(out, " fillcolor=%q", fill)
	}
	if outline != "" {
		fmt.Fprintf(out, " color=%q", outline)
	}
	if t.notRun() {
		out.WriteString(` style="filled,dashed"`)
	}
	fmt.Fprintf(out, " tooltip=%s]\n", dotTooltip(t.describe()))
}

// colours returns the colours of the task's node, "" for the default.
func (t *GraphTask) colours() (fill, outline string) {
	if t.Failure != nil {
		return failedFill, "#c00000"
	}
	return stateFill[t.State], ""
}

// notRun reports whether the task was not run because a predecessor failed.
func (t *GraphTask) notRun() bool {
	var failure *TaskError
	return errors.As(t.Failure, &failure) && failure.Dependent
}

// describe returns lines with details of the task for the tooltip.
func (t *GraphTask) describe() string {
	var b strings.Builder
	b.WriteString(string(t.State))
	if t.Included {
		b.WriteString(", included")
	}
	if t.Device == InitialDeviceNumber {
		b.WriteString(", on the host")
	} else {
		fmt.Fprintf(&b, ", on device %d", t.Device)
	}
	for _, d := range t.Depend {
		fmt.Fprintf(&b, "\ndepend %s", d)
	}
	if t.Failure != nil {
		fmt.Fprintf(&b, "\n%v", t.Failure)
	}
	return b.String()
}

// caption returns the text in the node of the task.
func (t *GraphTask) caption() string { return fmt.Sprintf("%s\n#%d", t.Label, t.ID) }

// dotLabel quotes s for a label, in which a backslash begins an escape sequence and an
// ampersand an HTML entity.
func dotLabel(s string) string { return `"` + labelEscapes.Replace(visible(s)) + `"` }

// dotTooltip quotes s for a tooltip, in which Graphviz replaces escape sequences twice.
func dotTooltip(s string) string { return `"` + tooltipEscapes.Replace(visible(s)) + `"` }

var (
	labelEscapes   = strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\`, "&", "&amp;")
	tooltipEscapes = strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\\\`, "&", "&amp;")
)

// visible escapes invisible characters of s as in a Go string, except for line feeds.
func visible(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, s[i])
		case r != '\n' && !unicode.IsPrint(r):
			escaped := strconv.QuoteRune(r)
			b = append(b, escaped[1:len(escaped)-1]...)
		default:
			b = append(b, s[i:i+size]...)
		}
		i += size
	}
	return string(b)
}
