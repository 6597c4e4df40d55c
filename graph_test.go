package vkomp

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/goccy/go-graphviz"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vkomp/vkomp/tasks"
	"pgregory.net/rapid"
)

func openInitial(t *testing.T, keep bool) *Runtime {
	t.Helper()
	rt, err := Open(Options{Device: "initial", KeepGraph: keep})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func TestGraphOfASnapshotNamesDevicesStorageAndEdges(t *testing.T) {
	storage := make([]byte, 64)
	lost := errors.New("lost")
	got := graphOf(tasks.Snapshot{
		Tasks: []tasks.TaskInfo{
			{ID: 1, Label: "host", Domain: tasks.Host, State: tasks.StateComplete, Failure: lost},
			{ID: 2, Parent: 1, Label: "target", Domain: 1, Included: true, State: tasks.StatePlaced, Depend: []tasks.Depend{
				{Kind: tasks.DependInOut, Ptr: unsafe.Pointer(&storage[0]), Size: 64}, {Kind: tasks.DependIn},
			}},
			{ID: 3, Label: "other", Domain: 4, State: tasks.StateStarted},
			{ID: 4, Label: "last", State: tasks.StateWaiting},
		},
		Edges: []tasks.EdgeInfo{{From: 1, To: 2}, {From: 2, To: 3, Exclusion: true}},
	})
	want := Graph{
		Tasks: []GraphTask{
			{ID: 1, Label: "host", Device: -1, State: GraphComplete, Failure: lost},
			{ID: 2, Parent: 1, Label: "target", Device: 0, Included: true, State: GraphPlaced, Depend: []GraphDepend{
				{Kind: "inout", Address: uintptr(unsafe.Pointer(&storage[0])), Size: 64}, {Kind: "in"},
			}},
			{ID: 3, Label: "other", Device: 3, State: GraphStarted},
			{ID: 4, Label: "last", Device: -1, State: GraphWaiting},
		},
		Edges: []GraphEdge{{From: 1, To: 2}, {From: 2, To: 3, Exclusion: true}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("graph (-want +got):\n%s", diff)
	}
}

func TestCompletedTasksAreKeptOnDemandOnly(t *testing.T) {
	for _, keep := range []bool{true, false} {
		rt := openInitial(t, keep)
		v := []int{0}
		for range 3 {
			err := rt.Task(t.Context(), Task{Label: "count", Depend: []Depend{InOut(v)}, Body: func(context.Context) error {
				v[0]++
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		g := rt.Graph()
		if !keep {
			if len(g.Tasks) != 0 || len(g.Edges) != 0 {
				t.Errorf("%d tasks and %d edges of complete tasks are kept unasked", len(g.Tasks), len(g.Edges))
			}
			continue
		}
		if diff := cmp.Diff([]GraphEdge{{From: 1, To: 2}, {From: 2, To: 3}}, g.Edges); diff != "" {
			t.Errorf("edges (-want +got):\n%s", diff)
		}
		if len(g.Tasks) != 3 {
			t.Fatalf("%d tasks, want 3", len(g.Tasks))
		}
		for i, task := range g.Tasks {
			want := GraphTask{
				ID: uint64(i + 1), Label: "count", Device: InitialDeviceNumber, State: GraphComplete,
				Depend: []GraphDepend{{Kind: "inout", Address: uintptr(unsafe.Pointer(&v[0])), Size: 8}},
			}
			if diff := cmp.Diff(want, task); diff != "" {
				t.Errorf("task (-want +got):\n%s", diff)
			}
		}
	}
}

func TestGraphShowsWhoRunsWhoWaitsAndWhoFailed(t *testing.T) {
	rt := openInitial(t, true)
	v := []int{0}
	running, end := make(chan struct{}), make(chan struct{})
	for _, task := range []Task{
		{Label: "first", Body: func(context.Context) error {
			close(running)
			<-end
			return errors.New("no luck")
		}},
		{Label: "second", Body: func(context.Context) error { return nil }},
	} {
		task.Depend = []Depend{InOut(v)}
		if err := rt.Task(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	<-running
	g := rt.Graph()
	if len(g.Tasks) != 2 || g.Tasks[0].State != GraphStarted || g.Tasks[1].State != GraphWaiting {
		t.Errorf("tasks %+v, want one started and one waiting", g.Tasks)
	}
	close(end)
	if err := rt.Taskwait(t.Context()); err == nil {
		t.Fatal("no error of a failed task")
	}
	g = rt.Graph()
	for i, notRun := range []bool{false, true} {
		var failure *TaskError
		if task := g.Tasks[i]; task.State != GraphComplete || !errors.As(task.Failure, &failure) || failure.Dependent != notRun {
			t.Errorf("task %+v, want it failed, not run: %v", task, notRun)
		}
	}
	var dot bytes.Buffer
	if err := g.WriteDOT(&dot); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(dot.String(), failedFill); n != 2 || strings.Count(dot.String(), "dashed") != 1 {
		t.Errorf("%d nodes of failed tasks, want 2, one of them dashed:\n%s", n, dot.String())
	}
}

func TestGraphNamesTheTaskThatGeneratedAnother(t *testing.T) {
	rt := openInitial(t, true)
	err := rt.Task(t.Context(), Task{Label: "parent", Body: func(ctx context.Context) error {
		err := rt.Task(ctx, Task{Label: "child", Body: func(context.Context) error { return nil }})
		return errors.Join(err, rt.Taskwait(ctx))
	}})
	if err := errors.Join(err, rt.Taskwait(t.Context())); err != nil {
		t.Fatal(err)
	}
	byLabel := make(map[string]GraphTask)
	for _, task := range rt.Graph().Tasks {
		byLabel[task.Label] = task
	}
	parent, child := byLabel["parent"], byLabel["child"]
	if parent.Parent != 0 || parent.ID == 0 || child.Parent != parent.ID {
		t.Errorf("task %d of the initial task has parent %d; its child has parent %d", parent.ID, parent.Parent, child.Parent)
	}
}

// variety is a graph with one of everything that WriteDOT tells apart.
func variety() Graph {
	return Graph{
		Tasks: []GraphTask{
			{ID: 1, Label: "load", Device: -1, State: GraphComplete},
			{ID: 2, Label: "blur", Device: 0, State: GraphPlaced, Depend: []GraphDepend{{Kind: "in", Address: 0xc000, Size: 64}, {Kind: "out omp_all_memory"}}},
			{ID: 3, Label: "all", Device: -1, Included: true, State: GraphStarted},
			{ID: 4, Parent: 3, Label: "part", Device: 1, State: GraphComplete, Failure: &TaskError{Task: "part", Cause: errors.New(`disk "C:\new" full`)}},
			{ID: 5, Parent: 3, Label: "sum", Device: -1, State: GraphComplete, Failure: &TaskError{Task: "sum", Cause: errors.New("lost"), Dependent: true}},
			{ID: 6, Parent: 99, Label: "orphan", Device: -1, State: GraphWaiting},
			{ID: 7, Label: "later", Device: -1, State: "suspended"},
		},
		Edges: []GraphEdge{{From: 1, To: 2}, {From: 4, To: 5}, {From: 2, To: 3, Exclusion: true}, {From: 98, To: 1}, {From: 1, To: 97}},
	}
}

func TestDOTOfEveryKindOfTask(t *testing.T) {
	want := dotHead + `	t1 [label="load\n#1" shape=ellipse fillcolor="#c9eec9" tooltip="complete, on the host"]
	t2 [label="blur\n#2" shape=box fillcolor="#bcd9ff" tooltip="placed, on device 0\ndepend in 0xc000 +64 B\ndepend out omp_all_memory"]
	t3 [label="all\n#3" shape=ellipse penwidth=2.5 fillcolor="#fff2a8" tooltip="started, included, on the host"]
	t7 [label="later\n#7" shape=ellipse tooltip="suspended, on the host"]
	subgraph cluster_3 {
	label="children of all #3"
	t4 [label="part\n#4" shape=box fillcolor="#ff8f8f" color="#c00000" tooltip="complete, on device 1\ntask \"part\": disk \"C:\\\\new\" full"]
	t5 [label="sum\n#5" shape=ellipse fillcolor="#ff8f8f" color="#c00000" style="filled,dashed" tooltip="complete, on the host\ntask \"sum\" not run: it depends on failed lost"]
	}
	subgraph cluster_99 {
	label="children of task #99"
	t6 [label="orphan\n#6" shape=ellipse fillcolor="#ffffff" tooltip="waiting, on the host"]
	}
	t1 -> t2
	t2 -> t3 [style=dashed dir=none tooltip="mutually exclusive"]
	t4 -> t5
}
`
	var got bytes.Buffer
	if err := variety().WriteDOT(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("DOT (-want +got):\n%s", diff)
	}
}

// brokenPipe takes that many bytes.
type brokenPipe struct{ left int }

var errBrokenPipe = errors.New("broken pipe")

func (p *brokenPipe) Write(b []byte) (int, error) {
	n := min(len(b), p.left)
	p.left -= n
	if n < len(b) {
		return n, errBrokenPipe
	}
	return n, nil
}

func TestWriteErrorIsReturnedWhereverItHappens(t *testing.T) {
	g := variety()
	g.Tasks[0].Label = strings.Repeat("long ", 2000) // more than a buffer
	var whole bytes.Buffer
	if err := g.WriteDOT(&whole); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < whole.Len(); n += 11 {
		if err := g.WriteDOT(&brokenPipe{n}); !errors.Is(err, errBrokenPipe) {
			t.Fatalf("error %v behind %d of %d bytes, want %v", err, n, whole.Len(), errBrokenPipe)
		}
	}
	if err := g.WriteDOT(&brokenPipe{whole.Len()}); err != nil {
		t.Errorf("error %v where all fits", err)
	}
}

// laidOut is what Graphviz makes of a graph.
type laidOut struct {
	nodes, edges, frames int
	svg                  *element
}

// element is an element of an SVG file.
type element struct {
	XMLName  xml.Name
	Class    string     `xml:"class,attr"`
	Tip      string     `xml:"title,attr"` // of xlink
	Stroke   string     `xml:"stroke-width,attr"`
	Text     string     `xml:",chardata"`
	Children []*element `xml:",any"`
}

// all returns the elements below e that match.
func (e *element) all(match func(*element) bool) (found []*element) {
	if match(e) {
		found = append(found, e)
	}
	for _, c := range e.Children {
		found = append(found, c.all(match)...)
	}
	return found
}

func (e *element) named(name string) []*element {
	return e.all(func(e *element) bool { return e.XMLName.Local == name })
}

func (e *element) ofClass(class string) []*element {
	return e.all(func(e *element) bool { return e.Class == class })
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// layOut has Graphviz read and draw the graph.
func layOut(t failer, g Graph) laidOut {
	t.Helper()
	var dot bytes.Buffer
	if err := g.WriteDOT(&dot); err != nil {
		t.Fatalf("WriteDOT: %v", err)
	}
	parsed, err := graphviz.ParseBytes(dot.Bytes())
	if err != nil || parsed == nil {
		t.Fatalf("Graphviz: %v, reading\n%s", err, dot.Bytes())
	}
	defer parsed.Close()
	var l laidOut
	for _, count := range []struct {
		n    *int
		read func() (int, error)
	}{{&l.nodes, parsed.NodeNum}, {&l.edges, parsed.EdgeNum}, {&l.frames, parsed.SubGraphNum}} {
		if *count.n, err = count.read(); err != nil {
			t.Fatalf("Graphviz: %v", err)
		}
	}
	engine, err := graphviz.New(context.Background())
	if err != nil {
		t.Fatalf("Graphviz: %v", err)
	}
	defer engine.Close()
	var svg bytes.Buffer
	if err := engine.Render(context.Background(), parsed, graphviz.SVG, &svg); err != nil {
		t.Fatalf("Graphviz: %v, drawing\n%s", err, dot.Bytes())
	}
	l.svg = new(element)
	if err := xml.Unmarshal(svg.Bytes(), l.svg); err != nil {
		t.Fatalf("%v in the picture\n%s\nof\n%s", err, svg.Bytes(), dot.Bytes())
	}
	return l
}

// shown returns the lines of s as a picture has to show them: what cannot be
// shown as in a Go string.
func shown(s string) (lines []string) {
	plain := strings.NewReplacer(`\\`, `\`, `\"`, `"`)
	for line := range strings.SplitSeq(s, "\n") {
		quoted := strconv.Quote(line)
		if line != "" {
			lines = append(lines, plain.Replace(quoted[1:len(quoted)-1]))
		}
	}
	return lines
}

// texts returns the lines that the element shows.
func texts(e *element) (lines []string) {
	for _, text := range e.named("text") {
		if text.Text != "" {
			lines = append(lines, strings.ReplaceAll(text.Text, "\u00a0", " "))
		}
	}
	return lines
}

// checkLabel draws a failed task, and a child of it, and compares every text of
// the picture with what was given.
func checkLabel(t failer, label, failure string) {
	t.Helper()
	l := layOut(t, Graph{
		Tasks: []GraphTask{
			{ID: 1, Label: label, Device: -1, State: GraphComplete, Failure: errors.New(failure)},
			{ID: 2, Label: "child", Parent: 1, Device: 0, State: GraphPlaced},
		},
		Edges: []GraphEdge{{From: 1, To: 2}},
	})
	if l.nodes != 2 || l.edges != 1 || l.frames != 1 {
		t.Fatalf("%d nodes, %d edges, %d frames of label %q", l.nodes, l.edges, l.frames, label)
	}
	node, frame := l.svg.ofClass("node")[0], l.svg.ofClass("cluster")[0]
	if diff := cmp.Diff(append(shown(label), "#1"), texts(node)); diff != "" {
		t.Fatalf("label %q (-want +got):\n%s", label, diff)
	}
	if diff := cmp.Diff(shown("children of "+label+" #1"), texts(frame)); diff != "" {
		t.Fatalf("frame of %q (-want +got):\n%s", label, diff)
	}
	tips := node.all(func(e *element) bool { return e.Tip != "" })
	want := append([]string{"complete, on the host"}, shown(failure)...)
	var got []string
	for line := range strings.SplitSeq(strings.ReplaceAll(tips[0].Tip, "\u00a0", " "), "\n") {
		if line != "" {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("tooltip of %q (-want +got):\n%s", failure, diff)
	}
}

// nasty are labels that mean something to Graphviz or to XML, or are no text.
var nasty = []string{
	"", "plain", `"`, `\`, `\\`, `a\`, `\"`, `"; t9 [`, "two\nlines", "\n", "a\n\nb\n", "a\rb", "a\r\nb", "tab\tstop",
	`\n \l \r \N \G \E \T \H \L`, `\N`, "<b>bold</b>", "<<table>>", "<", ">", "a&b", "&amp;", "&lt;i&gt;", "&#65;", "&#x41;", "&unknown;", "&", "&&amp;",
	"\x00", "a\x00b", "\x1b[31m", "\xff\xfe", "caf\xe9", "\xc3", "é", "日本語", "😀", "\u202eright to left", "\ufeff", "\ufffe", "\ufffd", "\u00a0", "\u200b",
	"//", "/* */", "# no comment", "%s %d", "{a|b}", "a -> b", "node", "]", "}", "'", "`", "-", "a--b", "  two  spaces  ", "]]>", "<!--",
}

func TestEveryLabelIsShownAsItIs(t *testing.T) {
	for _, label := range nasty {
		t.Run(strconv.Quote(label), func(t *testing.T) { checkLabel(t, label, label) })
	}
}

func TestAnyLabelIsShownAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.SampledFrom(nasty), rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
		text := rapid.Map(rapid.SliceOfN(part, 0, 4), func(parts []string) string { return strings.Join(parts, "") })
		checkLabel(t, text.Draw(t, "label"), text.Draw(t, "failure"))
	})
}

func FuzzLabelIsShownAsItIs(f *testing.F) {
	for _, label := range nasty {
		f.Add(label, label)
	}
	f.Fuzz(func(t *testing.T, label, failure string) {
		if len(label)+len(failure) > 1<<10 {
			return // long text adds time and nothing new
		}
		checkLabel(t, label, failure)
	})
}

func TestGraphvizReadsWhatTheGraphHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Graph
		n := rapid.Uint64Range(0, 20).Draw(t, "tasks")
		var frames, boxes, heavy, exclusions, edges int
		families := map[uint64]bool{0: true}
		for id := uint64(1); id <= n; id++ {
			task := GraphTask{
				ID: id, Parent: rapid.Uint64Range(0, n+2).Draw(t, "parent"),
				Label:    rapid.SampledFrom(nasty).Draw(t, "label"),
				Device:   rapid.IntRange(-1, 2).Draw(t, "device"),
				Included: rapid.Bool().Draw(t, "included"),
				State:    rapid.SampledFrom([]GraphState{GraphWaiting, GraphStarted, GraphPlaced, GraphComplete, ""}).Draw(t, "state"),
			}
			if !families[task.Parent] {
				families[task.Parent] = true
				frames++
			}
			if task.Device >= 0 {
				boxes++
			}
			if task.Included {
				heavy++
			}
			g.Tasks = append(g.Tasks, task)
		}
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			e := GraphEdge{From: rapid.Uint64Range(0, n+1).Draw(t, "from"), To: rapid.Uint64Range(0, n+1).Draw(t, "to"), Exclusion: rapid.Bool().Draw(t, "exclusion")}
			g.Edges = append(g.Edges, e)
			if e.From == 0 || e.From > n || e.To == 0 || e.To > n {
				continue
			}
			edges++
			if e.Exclusion {
				exclusions++
			}
		}
		l := layOut(t, g)
		if l.nodes != int(n) || l.edges != edges || l.frames != frames {
			t.Fatalf("%d nodes, %d edges, %d frames, want %d, %d, %d", l.nodes, l.edges, l.frames, n, edges, frames)
		}
		for _, node := range l.svg.ofClass("node") {
			boxes -= len(node.named("polygon"))
			heavy -= len(node.all(func(e *element) bool { return e.Stroke == "2.5" }))
		}
		if boxes != 0 || heavy != 0 {
			t.Fatalf("%d boxes and %d heavy outlines too few", boxes, heavy)
		}
		heads := 0
		for _, edge := range l.svg.ofClass("edge") {
			heads += len(edge.named("polygon"))
		}
		if heads != edges-exclusions {
			t.Fatalf("%d arrow heads, want %d: exclusion has no direction", heads, edges-exclusions)
		}

		// Neither the order of tasks nor that of edges shows.
		var one, other bytes.Buffer
		shuffled := Graph{Tasks: slices.Clone(g.Tasks), Edges: slices.Clone(g.Edges)}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		order.Shuffle(len(shuffled.Tasks), func(i, j int) {
			shuffled.Tasks[i], shuffled.Tasks[j] = shuffled.Tasks[j], shuffled.Tasks[i]
		})
		order.Shuffle(len(shuffled.Edges), func(i, j int) {
			shuffled.Edges[i], shuffled.Edges[j] = shuffled.Edges[j], shuffled.Edges[i]
		})
		if err := errors.Join(g.WriteDOT(&one), shuffled.WriteDOT(&other)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one.String(), other.String()); diff != "" {
			t.Fatalf("the order of the fields shows (-one +other):\n%s", diff)
		}
	})
}

func TestNestingTenThousandDeepIsStillReadByGraphviz(t *testing.T) {
	var g Graph
	const depth = 10_000
	for id := range uint64(depth) {
		g.Tasks = append(g.Tasks, GraphTask{ID: id + 1, Parent: id, Label: "deeper", Device: -1})
	}
	var dot bytes.Buffer
	if err := g.WriteDOT(&dot); err != nil {
		t.Fatal(err)
	}
	parsed, err := graphviz.ParseBytes(dot.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	defer parsed.Close()
	nodes, err := parsed.NodeNum()
	if frames, err2 := parsed.SubGraphNum(); err != nil || err2 != nil || nodes != depth || frames != depth-1 {
		t.Errorf("%d nodes in %d frames (%v, %v), want %d and one less", nodes, frames, err, err2, depth)
	}
}

func BenchmarkWriteDOT(b *testing.B) {
	var g Graph
	for id := range uint64(10_000) {
		g.Tasks = append(g.Tasks, GraphTask{ID: id + 1, Label: fmt.Sprint("task ", id), State: GraphComplete, Depend: []GraphDepend{{Kind: "inout", Address: 0xc000, Size: 8}}})
		g.Edges = append(g.Edges, GraphEdge{From: id, To: id + 1})
	}
	for b.Loop() {
		if err := g.WriteDOT(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.Tasks)), "ns/task")
}
