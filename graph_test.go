package vkomp

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

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

// variety returns a graph with an instance of everything that pictures distinguish.
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

// brokenPipe is a writer that fails after that many bytes.
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

// writers are the output formats of a graph.
var writers = map[string]func(Graph, io.Writer) error{"DOT": Graph.WriteDOT, "SVG": Graph.WriteSVG}

func TestWriteErrorIsReturnedWhereverItHappens(t *testing.T) {
	g := variety()
	g.Tasks[0].Label = strings.Repeat("long ", 2000) // more than the buffer of the writer
	for name, write := range writers {
		var whole bytes.Buffer
		if err := write(g, &whole); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < whole.Len(); n += 101 {
			if err := write(g, &brokenPipe{n}); !errors.Is(err, errBrokenPipe) {
				t.Fatalf("%s: error %v behind %d of %d bytes, want %v", name, err, n, whole.Len(), errBrokenPipe)
			}
		}
		if err := write(g, &brokenPipe{whole.Len()}); err != nil {
			t.Errorf("%s: error %v where all fits", name, err)
		}
	}
}

// picture is an SVG file and its source.
type picture struct {
	name   string
	source []byte
	svg    *element
}

// element is an element of an SVG file.
type element struct {
	XMLName  xml.Name
	Class    string     `xml:"class,attr"`
	Tip      string     `xml:"title,attr"` // of xlink
	Stroke   string     `xml:"stroke-width,attr"`
	Head     string     `xml:"marker-end,attr"`
	Path     string     `xml:"d,attr"`
	Rounded  string     `xml:"rx,attr"`
	X        string     `xml:"x,attr"`
	Y        string     `xml:"y,attr"`
	Width    string     `xml:"width,attr"`
	Height   string     `xml:"height,attr"`
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

// tip returns the tooltip of a node: an attribute in Graphviz's pictures, an element in
// WriteSVG's.
func (e *element) tip() string {
	if tips := e.all(func(e *element) bool { return e.Tip != "" }); len(tips) > 0 {
		return tips[0].Tip
	}
	return e.named("title")[0].Text
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ours draws the graph with WriteSVG.
func ours(t failer, g Graph) picture {
	t.Helper()
	var svg bytes.Buffer
	if err := g.WriteSVG(&svg); err != nil {
		t.Fatalf("WriteSVG: %v", err)
	}
	return parsePicture(t, "ours", svg.Bytes(), svg.Bytes())
}

// graphviz draws the graphs with Graphviz, all in one process, because starting it takes
// longer than drawing a small graph.
func graphviz(t failer, graphs ...Graph) (pictures []picture) {
	t.Helper()
	var all bytes.Buffer
	var sources [][]byte
	for _, g := range graphs {
		var dot bytes.Buffer
		if err := g.WriteDOT(&dot); err != nil {
			t.Fatalf("WriteDOT: %v", err)
		}
		all.Write(dot.Bytes())
		sources = append(sources, dot.Bytes())
	}
	const end = "</svg>\n"
	drawn := bytes.SplitAfter(runGraphviz(t, all.Bytes(), "dot", "-Tsvg"), []byte(end))
	if len(drawn) != len(graphs)+1 {
		t.Fatalf("Graphviz draws %d pictures of %d graphs", len(drawn)-1, len(graphs))
	}
	for i, source := range sources {
		pictures = append(pictures, parsePicture(t, "Graphviz's", drawn[i], source))
	}
	return pictures
}

// runGraphviz returns the output of a Graphviz program for a graph. Any message on standard
// error is an error.
func runGraphviz(t failer, dot []byte, program string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s, of the package graphviz, is needed: %v", program, err)
	}
	cmd := exec.Command(path, args...)
	var drawn, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(dot), &drawn, &complaint
	if err := cmd.Run(); err != nil || complaint.Len() > 0 {
		t.Fatalf("%s: %v: %s, reading\n%s", program, err, complaint.Bytes(), dot)
	}
	return drawn.Bytes()
}

func parsePicture(t failer, name string, svg, source []byte) picture {
	t.Helper()
	p := picture{name: name, source: source, svg: new(element)}
	if err := xml.Unmarshal(svg, p.svg); err != nil {
		t.Fatalf("%v in the picture\n%s\nof\n%s", err, svg, source)
	}
	return p
}

// check compares the numbers of nodes, edges and frames.
func (p picture) check(t failer, nodes, edges, frames int) {
	t.Helper()
	n, e, f := len(p.svg.ofClass("node")), len(p.svg.ofClass("edge")), len(p.svg.ofClass("cluster"))
	if n != nodes || e != edges || f != frames {
		t.Fatalf("%s: %d nodes, %d edges, %d frames, want %d, %d, %d, in\n%s", p.name, n, e, f, nodes, edges, frames, p.source)
	}
}

// shown returns the lines of s as a picture has to show them: invisible characters are escaped
// as in a Go string.
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

// texts returns the lines of text in the element.
func texts(e *element) (lines []string) {
	for _, text := range e.named("text") {
		if text.Text != "" {
			lines = append(lines, strings.ReplaceAll(text.Text, "\u00a0", " "))
		}
	}
	return lines
}

// labelled returns a graph of a failed task with that label and a child of it.
func labelled(label, failure string) Graph {
	return Graph{
		Tasks: []GraphTask{
			{ID: 1, Label: label, Device: -1, State: GraphComplete, Failure: errors.New(failure)},
			{ID: 2, Label: "child", Parent: 1, Device: 0, State: GraphPlaced},
		},
		Edges: []GraphEdge{{From: 1, To: 2}},
	}
}

// checkLabel compares every text in a picture of labelled with the given strings.
func checkLabel(t failer, p picture, label, failure string) {
	t.Helper()
	p.check(t, 2, 1, 1)
	node, frame := p.svg.ofClass("node")[0], p.svg.ofClass("cluster")[0]
	if diff := cmp.Diff(append(shown(label), "#1"), texts(node)); diff != "" {
		t.Fatalf("%s: label %q (-want +got):\n%s", p.name, label, diff)
	}
	if diff := cmp.Diff(shown("children of "+label+" #1"), texts(frame)); diff != "" {
		t.Fatalf("%s: frame of %q (-want +got):\n%s", p.name, label, diff)
	}
	want := append([]string{"complete, on the host"}, shown(failure)...)
	var got []string
	for line := range strings.SplitSeq(strings.ReplaceAll(node.tip(), "\u00a0", " "), "\n") {
		if line != "" {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: tooltip of %q (-want +got):\n%s", p.name, failure, diff)
	}
}

// nasty holds labels that have a meaning in Graphviz or XML, or that are not text.
var nasty = []string{
	"", "plain", `"`, `\`, `\\`, `a\`, `\"`, `"; t9 [`, "two\nlines", "\n", "a\n\nb\n", "a\rb", "a\r\nb", "tab\tstop",
	`\n \l \r \N \G \E \T \H \L`, `\N`, "<b>bold</b>", "<<table>>", "<", ">", "a&b", "&amp;", "&lt;i&gt;", "&#65;", "&#x41;", "&unknown;", "&", "&&amp;",
	"\x00", "a\x00b", "\x1b[31m", "\xff\xfe", "caf\xe9", "\xc3", "é", "日本語", "😀", "\u202eright to left", "\ufeff", "\ufffe", "\ufffd", "\u00a0", "\u200b",
	"//", "/* */", "# no comment", "%s %d", "{a|b}", "a -> b", "node", "]", "}", "'", "`", "-", "a--b", "  two  spaces  ", "]]>", "<!--",
}

func TestEveryLabelIsShownAsItIs(t *testing.T) {
	var graphs []Graph
	for _, label := range nasty {
		graphs = append(graphs, labelled(label, label))
	}
	for i, p := range graphviz(t, graphs...) {
		t.Run(strconv.Quote(nasty[i]), func(t *testing.T) {
			checkLabel(t, p, nasty[i], nasty[i])
			checkLabel(t, ours(t, graphs[i]), nasty[i], nasty[i])
		})
	}
}

func TestAnyLabelIsShownAsItIs(t *testing.T) {
	var graphs []Graph
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.SampledFrom(nasty), rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
		text := rapid.Map(rapid.SliceOfN(part, 0, 4), func(parts []string) string { return strings.Join(parts, "") })
		label, failure := text.Draw(t, "label"), text.Draw(t, "failure")
		g := labelled(label, failure)
		checkLabel(t, ours(t, g), label, failure)
		graphs = append(graphs, g)
	})
	for i, p := range graphviz(t, graphs...) {
		task := graphs[i].Tasks[0]
		checkLabel(t, p, task.Label, task.Failure.Error())
	}
}

func FuzzLabelIsShownAsItIs(f *testing.F) {
	f.Add(strings.Join(nasty, ""), strings.Join(nasty, "\n"))
	f.Fuzz(func(t *testing.T, label, failure string) {
		if len(label)+len(failure) > 1<<10 {
			return // long text takes time and tests nothing new
		}
		g := labelled(label, failure)
		checkLabel(t, ours(t, g), label, failure)
		checkLabel(t, graphviz(t, g)[0], label, failure)
	})
}

// heldBy is a graph with what a picture of it has to show.
type heldBy struct {
	graph                                           Graph
	frames, edges, exclusions, boxes, heavyOutlines int
}

func (h *heldBy) check(t failer, p picture) {
	t.Helper()
	p.check(t, len(h.graph.Tasks), h.edges, h.frames)
	boxes, heavy, heads := 0, 0, 0
	for _, node := range p.svg.ofClass("node") {
		boxes += len(node.all(func(e *element) bool {
			return e.XMLName.Local == "polygon" || e.XMLName.Local == "rect" && e.Rounded == "0"
		}))
		heavy += len(node.all(func(e *element) bool { return e.Stroke == "2.5" }))
	}
	for _, edge := range p.svg.ofClass("edge") {
		heads += len(edge.all(func(e *element) bool { return e.XMLName.Local == "polygon" || e.Head != "" }))
	}
	if boxes != h.boxes || heavy != h.heavyOutlines {
		t.Fatalf("%s: %d boxes and %d heavy outlines, want %d and %d", p.name, boxes, heavy, h.boxes, h.heavyOutlines)
	}
	if want := h.edges - h.exclusions; heads != want {
		t.Fatalf("%s: %d arrow heads, want %d: exclusion has no direction", p.name, heads, want)
	}
}

func TestPicturesShowWhatTheGraphHolds(t *testing.T) {
	var all []heldBy
	rapid.Check(t, func(t *rapid.T) {
		var h heldBy
		n := rapid.Uint64Range(0, 20).Draw(t, "tasks")
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
				h.frames++
			}
			if task.Device >= 0 {
				h.boxes++
			}
			if task.Included {
				h.heavyOutlines++
			}
			h.graph.Tasks = append(h.graph.Tasks, task)
		}
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			e := GraphEdge{From: rapid.Uint64Range(0, n+1).Draw(t, "from"), To: rapid.Uint64Range(0, n+1).Draw(t, "to"), Exclusion: rapid.Bool().Draw(t, "exclusion")}
			h.graph.Edges = append(h.graph.Edges, e)
			if e.From == 0 || e.From > n || e.To == 0 || e.To > n {
				continue
			}
			h.edges++
			if e.Exclusion {
				h.exclusions++
			}
		}
		h.check(t, ours(t, h.graph))
		all = append(all, h)

		// The order of tasks and edges makes no difference.
		shuffled := Graph{Tasks: slices.Clone(h.graph.Tasks), Edges: slices.Clone(h.graph.Edges)}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		order.Shuffle(len(shuffled.Tasks), func(i, j int) {
			shuffled.Tasks[i], shuffled.Tasks[j] = shuffled.Tasks[j], shuffled.Tasks[i]
		})
		order.Shuffle(len(shuffled.Edges), func(i, j int) {
			shuffled.Edges[i], shuffled.Edges[j] = shuffled.Edges[j], shuffled.Edges[i]
		})
		for name, write := range writers {
			var one, other bytes.Buffer
			if err := errors.Join(write(h.graph, &one), write(shuffled, &other)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one.String(), other.String()); diff != "" {
				t.Fatalf("%s: the order of the fields shows (-one +other):\n%s", name, diff)
			}
		}
	})
	var graphs []Graph
	for _, h := range all {
		graphs = append(graphs, h.graph)
	}
	for i, p := range graphviz(t, graphs...) {
		all[i].check(t, p)
	}
}

func pixels(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// outline returns the bounding box of a node or frame.
func outline(t *testing.T, e *element) image.Rectangle {
	t.Helper()
	for _, c := range e.Children {
		if c.XMLName.Local == "rect" {
			x, y := pixels(t, c.X), pixels(t, c.Y)
			return image.Rect(x, y, x+pixels(t, c.Width), y+pixels(t, c.Height))
		}
	}
	t.Fatal("no outline")
	return image.Rectangle{}
}

func TestNothingOfThePictureLiesOnSomethingElse(t *testing.T) {
	var g Graph
	for id := range uint64(400) {
		task := GraphTask{ID: id + 1, Label: strings.Repeat("long", int(id*7%13)), Device: int(id%3) - 1}
		if id%9 == 4 {
			task.Label += "\nline\nline"
		}
		if id > 40 {
			task.Parent = id * id % 37
		}
		g.Tasks = append(g.Tasks, task)
		for _, back := range []uint64{1, 2, 5, 17} {
			if id > back && id%(back+1) == 0 {
				g.Edges = append(g.Edges, GraphEdge{From: id - back, To: id + 1})
			}
		}
	}
	p := ours(t, g)
	nodes, frames := p.svg.ofClass("node"), p.svg.ofClass("cluster")
	var all []image.Rectangle
	for _, node := range nodes {
		all = append(all, outline(t, node))
	}
	for _, frame := range frames {
		all = append(all, outline(t, frame))
	}
	if len(nodes) != len(g.Tasks) || len(frames) < 10 {
		t.Fatalf("%d nodes in %d frames", len(nodes), len(frames))
	}
	width, height := pixels(t, p.svg.Width), pixels(t, p.svg.Height)
	for i, a := range all {
		if !a.In(image.Rect(0, 0, width, height)) {
			t.Errorf("%v lies outside of the picture, of %d×%d", a, width, height)
		}
		for k, b := range all[:i] {
			inFrame := i >= len(nodes) && k < len(nodes) && b.In(a)
			if a.Overlaps(b) && !inFrame {
				t.Errorf("%v lies on %v", a, b)
			}
		}
	}
}

func TestEdgePastAColumnRunsBetweenTheRows(t *testing.T) {
	g := chainOf(6)
	g.Edges = append(g.Edges, GraphEdge{From: 1, To: 3}, GraphEdge{From: 2, To: 6})
	p := ours(t, g)
	var nodes []image.Rectangle
	for _, node := range p.svg.ofClass("node") {
		nodes = append(nodes, outline(t, node))
	}
	level := regexp.MustCompile(`(\d+) (\d+)H(\d+)C`)
	past := 0
	for _, edge := range p.svg.named("path") {
		if found := level.FindStringSubmatch(edge.Path); found != nil {
			past++
			y := pixels(t, found[2])
			line := image.Rect(pixels(t, found[1]), y, pixels(t, found[3]), y+1)
			for _, node := range nodes {
				if line.Overlaps(node) {
					t.Errorf("an edge runs through %v, at %v", node, line)
				}
			}
		}
	}
	if past != 2 {
		t.Errorf("%d edges run between rows, want the two that pass a column", past)
	}
}

// chainOf returns a chain of n tasks.
func chainOf(n uint64) (g Graph) {
	for id := range n {
		g.Tasks = append(g.Tasks, GraphTask{ID: id + 1, Label: fmt.Sprint("task ", id), State: GraphComplete})
		if id > 0 {
			g.Edges = append(g.Edges, GraphEdge{From: id, To: id + 1})
		}
	}
	return g
}

func TestNestingTenThousandDeepIsStillDrawn(t *testing.T) {
	var g Graph
	const depth = 10_000
	for id := range uint64(depth) {
		g.Tasks = append(g.Tasks, GraphTask{ID: id + 1, Parent: id, Label: "deeper", Device: -1})
	}
	ours(t, g).check(t, depth, 0, depth-1)
	var dot bytes.Buffer
	if err := g.WriteDOT(&dot); err != nil {
		t.Fatal(err)
	}
	// Laying out so many frames takes Graphviz too long, reading them does not.
	counted := strings.Fields(string(runGraphviz(t, dot.Bytes(), "gc", "-n", "-C")))
	if want := []string{fmt.Sprint(depth), fmt.Sprint(depth - 1)}; len(counted) < 2 || !slices.Equal(counted[:2], want) {
		t.Errorf("Graphviz counts %q, want %q nodes and frames", counted, want)
	}
}

func BenchmarkWriteGraph(b *testing.B) {
	var g Graph
	for id := range uint64(10_000) {
		g.Tasks = append(g.Tasks, GraphTask{ID: id + 1, Label: fmt.Sprint("task ", id), State: GraphComplete, Depend: []GraphDepend{{Kind: "inout", Address: 0xc000, Size: 8}}})
		g.Edges = append(g.Edges, GraphEdge{From: id, To: id + 1})
	}
	for name, write := range writers {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := write(g, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.Tasks)), "ns/task")
		})
	}
}
