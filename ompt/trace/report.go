package trace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed report.html
var reportHTML string

//go:embed report.css
var reportCSS string

//go:embed report.js
var reportJS string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"duration": shortDuration, "bytes": shortBytes, "percent": percent,
}).Parse(reportHTML))

// Limits of what a page shows; the page says what is left out.
const (
	mostSlices  = 100_000
	mostArrows  = 200_000
	mostSteps   = 500
	mostRows    = 500
	gapsOfAUse  = 5
	reportStamp = "2006-01-02 15:04:05 MST"
)

// report is the data of the page's template. Script and Style are trusted; all other
// strings may come from anywhere.
type report struct {
	Title, Started        string
	Duration              time.Duration
	Tasks, Edges, Regions int
	CriticalTime          time.Duration
	Peak                  uint64
	Uses                  []use
	Steps                 []step
	StepsLeftOut          int
	Labels                []labelSummary
	LabelsLeftOut         int
	Notes                 []string
	Data                  reportData
	Style                 template.CSS
	Script                template.JS
	// StyleHash and ScriptHash are for the page's content security policy, which allows
	// nothing else to run or to be loaded.
	StyleHash, ScriptHash string
}

// step is a task of the critical path.
type step struct {
	Number             int
	Task               uint64
	Label              string
	Begin, Waited, Own time.Duration
}

// reportData is the data of the page's script. Lists of numbers are flat, in nanoseconds.
type reportData struct {
	Begin     int64         `json:"begin"`
	End       int64         `json:"end"`
	Processes []string      `json:"processes"`
	Labels    []string      `json:"labels"`
	Kinds     []string      `json:"kinds"`
	Tracks    []reportTrack `json:"tracks"`
	// Tasks has 8 numbers for each task: id, label, begin, end, own time, bytes to
	// devices, bytes from them, and 1 if it was not run.
	Tasks []int64 `json:"tasks"`
	// Arrows has 6 numbers for each dependence between tasks with boxes: task, track and
	// end of the box of the predecessor, and task, track and begin of the dependent's.
	Arrows   []int64        `json:"arrows"`
	Critical []int32        `json:"critical"`
	Memory   []reportMemory `json:"memory"`
	Graph    reportGraph    `json:"graph"`
}

type reportTrack struct {
	Process int    `json:"process"`
	Name    string `json:"name"`
	Depth   int    `json:"depth"`
	// Slices has 7 numbers for each box: begin, end, label, task or -1, kind, bytes, and
	// the number of boxes that enclose it.
	Slices []int64 `json:"slices"`
}

type reportMemory struct {
	Name   string  `json:"name"`
	Peak   uint64  `json:"peak"`
	Levels []int64 `json:"levels"`
}

type reportGraph struct {
	// Nodes has 3 numbers for each task: task, column and row. Edges has pairs of
	// indices of nodes.
	Nodes []int64 `json:"nodes"`
	Edges []int64 `json:"edges"`
}

// WriteReport writes the trace as a self-contained HTML page, which can be opened from
// disk: the timeline of queues and workers with the memory in use, the task graph, the
// critical path, how busy each device was, and a summary of the tasks of each label. The
// critical path is the path of dependences along which the sum of the tasks' own times is
// largest. The title says what was traced. The page is UTF-8; bytes of the title or of
// labels that are not are replaced by U+FFFD.
func (t *Trace) WriteReport(w io.Writer, title string) error {
	r := report{
		Title: title, Started: t.start.Add(t.begin).Format(reportStamp), Duration: t.now - t.begin,
		Edges: len(t.edges), Regions: len(t.regions), CriticalTime: t.criticalTime, Uses: t.uses(),
		Style: template.CSS(reportCSS), Script: template.JS(reportJS), StyleHash: hash(reportCSS), ScriptHash: hash(reportJS),
	}
	r.Tasks = t.countTasks()
	for i := range r.Uses {
		for j := range r.Uses[i].Gaps {
			r.Uses[i].Gaps[j].begin -= t.begin
			r.Uses[i].Gaps[j].end -= t.begin
		}
		r.Uses[i].Gaps = r.Uses[i].Gaps[:min(len(r.Uses[i].Gaps), gapsOfAUse)]
	}
	r.Steps, r.StepsLeftOut = t.steps()
	r.Labels = t.summaries()
	if n := len(r.Labels) - mostRows; n > 0 {
		r.Labels, r.LabelsLeftOut = r.Labels[:mostRows], n
	}
	r.Data, r.Notes = t.reportData()
	for _, m := range r.Data.Memory {
		r.Peak += m.Peak
	}
	for _, problem := range t.problems {
		r.Notes = append(r.Notes, "Something went wrong: "+problem+".")
	}
	if t.dropped > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("The collector was full: %d things that began later are missing.", t.dropped))
	}
	var page bytes.Buffer
	if err := reportPage.Execute(&page, r); err != nil {
		return err
	}
	// The title, labels and names of devices may be any bytes.
	_, err := w.Write(bytes.ToValidUTF8(page.Bytes(), []byte("\ufffd")))
	return err
}

// hash returns the hash of a script or a style as a content security policy writes it.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// steps returns the steps of the critical path.
func (t *Trace) steps() (all []step, leftOut int) {
	for i, v := range t.critical {
		if t.implicit(v) {
			continue
		}
		s := step{Number: len(all) + 1, Task: uint64(t.tasks[v].id), Label: t.taskLabel(v), Begin: t.spans[v].end - t.own[v] - t.begin, Own: t.own[v]}
		if i > 0 {
			s.Waited = max(s.Begin+t.begin-t.spans[t.critical[i-1]].end, 0)
		}
		all = append(all, s)
	}
	if n := len(all) - mostSteps; n > 0 {
		return all[:mostSteps], n
	}
	return all, 0
}

// reportData returns the data of the script, and notes about what is left out.
func (t *Trace) reportData() (d reportData, notes []string) {
	d.Begin, d.End = int64(t.begin), int64(t.now)
	d.Kinds = kindNames[:]
	labels := map[string]int64{}
	label := func(s string) int64 {
		i, ok := labels[s]
		if !ok {
			i = int64(len(d.Labels))
			labels[s] = i
			d.Labels = append(d.Labels, s)
		}
		return i
	}
	for p := host; p < len(t.devices); p++ {
		d.Processes = append(d.Processes, t.deviceName(p))
	}
	d.Tracks = t.reportTracks(label)
	if n := len(t.slices); n > mostSlices {
		notes = append(notes, fmt.Sprintf("The timeline shows the first %d of %d boxes.", mostSlices, n))
	}
	bytes := t.taskBytes()
	for i := range t.tasks {
		notRun := int64(0)
		if !t.ran(int32(i)) {
			notRun = 1
		}
		d.Tasks = append(d.Tasks, int64(t.tasks[i].id), label(t.taskLabel(int32(i))), int64(t.spans[i].begin), int64(t.spans[i].end), int64(t.own[i]),
			int64(bytes[i].to), int64(bytes[i].from), notRun)
	}
	for _, e := range t.edges[:min(len(t.edges), mostArrows)] {
		if from, to := t.anchors[e.from].last, t.anchors[e.to].first; from != none && to != none {
			a, b := &t.slices[from], &t.slices[to]
			d.Arrows = append(d.Arrows, int64(e.from), int64(a.track), int64(a.end), int64(e.to), int64(b.track), int64(b.begin))
		}
	}
	if n := len(t.edges); n > mostArrows {
		notes = append(notes, fmt.Sprintf("The timeline has arrows for %d of %d dependences.", mostArrows, n))
	}
	d.Critical = slices.DeleteFunc(slices.Clone(t.critical), t.implicit)
	for p, levels := range t.memory {
		m := reportMemory{Name: t.deviceName(p)}
		for _, l := range levels {
			m.Levels = append(m.Levels, int64(l.At), int64(l.Value))
			m.Peak = max(m.Peak, l.Value)
		}
		d.Memory = append(d.Memory, m)
	}
	d.Graph = t.reportGraph()
	if shown, of := len(d.Graph.Nodes)/3, t.countTasks(); shown < of {
		notes = append(notes, fmt.Sprintf("The graph shows %d of %d tasks: those of the critical path, and the earliest.", shown, of))
	}
	return d, notes
}

func (t *Trace) countTasks() int {
	n := 0
	for i := range t.tasks {
		if !t.implicit(int32(i)) {
			n++
		}
	}
	return n
}

// reportTracks returns the boxes of each track in order of time.
func (t *Trace) reportTracks(label func(string) int64) []reportTrack {
	tracks := make([]reportTrack, len(t.tracks))
	for i, of := range t.tracks {
		tracks[i] = reportTrack{Process: of.process + 1, Name: of.name}
	}
	order := make([]int32, len(t.slices))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.slices[a].begin, t.slices[b].begin), cmp.Compare(t.slices[b].end, t.slices[a].end))
	})
	ends := make([][]time.Duration, len(t.tracks))
	for _, i := range order[:min(len(order), mostSlices)] {
		s := &t.slices[i]
		in := ends[s.track]
		for len(in) > 0 && in[len(in)-1] <= s.begin {
			in = in[:len(in)-1]
		}
		ends[s.track] = append(in, s.end)
		to := &tracks[s.track]
		to.Depth = max(to.Depth, len(in)+1)
		to.Slices = append(to.Slices, int64(s.begin), int64(s.end), label(s.label), int64(s.task), int64(s.kind), int64(s.bytes), int64(len(in)))
	}
	return tracks
}

func (t *Trace) reportGraph() (g reportGraph) {
	nodes := layOut(len(t.tasks), t.implicit, t.edges, t.critical, mostNodes)
	place := map[int32]int64{}
	for i, n := range nodes {
		place[n.task] = int64(i)
		g.Nodes = append(g.Nodes, int64(n.task), int64(n.column), int64(n.row))
	}
	for _, e := range t.edges {
		from, ok := place[e.from]
		to, ok2 := place[e.to]
		if ok && ok2 {
			g.Edges = append(g.Edges, from, to)
		}
	}
	return g
}

// shortDuration formats a duration with three or four digits.
func shortDuration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if v := float64(d) / float64(unit.of); v >= 1 || v <= -1 {
			digits := 2 - min(len(fmt.Sprintf("%d", int64(max(v, -v))))-1, 2)
			return fmt.Sprintf("%.*f %s", digits, v, unit.name)
		}
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}

// shortBytes formats a size in binary units.
func shortBytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}

func percent(part, whole time.Duration) string {
	if whole <= 0 {
		return "–"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*float64(part)/float64(whole)), ".0") + " %"
}
