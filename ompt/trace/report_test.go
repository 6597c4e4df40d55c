package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/ompt"
)

// page returns the report as text.
func page(t *testing.T, traced *Trace, title string) string {
	t.Helper()
	var written bytes.Buffer
	if err := traced.WriteReport(&written, title); err != nil {
		t.Fatal(err)
	}
	return written.String()
}

// element returns the contents of the only element of a page with that beginning.
func element(t *testing.T, page, begin, end string) string {
	t.Helper()
	parts := strings.Split(page, begin)
	if len(parts) != 2 {
		t.Fatalf("%d times %s in the page", len(parts)-1, begin)
	}
	inside, _, closed := strings.Cut(parts[1], end)
	if !closed {
		t.Fatalf("%s has no end", begin)
	}
	return inside
}

// drawnData returns the data of the page's script.
func drawnData(t *testing.T, page string) (d reportData) {
	t.Helper()
	if err := json.Unmarshal([]byte(element(t, page, `<script type="application/json" id="data">`, "</script>")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// cells returns the texts of a table's body by row.
func cells(t *testing.T, page, table string) []string {
	t.Helper()
	body := element(t, page, `<table id="`+table+`">`, "</table>")
	_, body, _ = strings.Cut(body, "<tbody>")
	var rows []string
	tags := regexp.MustCompile(`<[^>]*>|\s+`)
	for _, row := range strings.Split(body, "</tr>") {
		row = strings.ReplaceAll(row, "</td>", " |")
		if row = strings.Join(strings.Fields(tags.ReplaceAllString(row, " ")), " "); row != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestReportOfThePicture(t *testing.T) {
	collector := New(Options{})
	newProgram(collector, &tracedDevice{}).picture()
	traced := collector.Trace()
	made := page(t, traced, "a picture")
	if diff := cmp.Diff([]string{
		"1 | blur | 1 | 2.00 µs | 0 ns | 18.0 µs | 31.6 % |",
		"2 | edges | 6 | 20.0 µs | 0 ns | 15.0 µs | 26.3 % |",
		"3 | blend | 9 | 40.0 µs | 5.00 µs | 14.0 µs | 24.6 % |",
		"4 | save | 15 | 60.0 µs | 6.00 µs | 10.0 µs | 17.5 % |",
	}, cells(t, made, "steps")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"device 0: test device | 43.0 µs | 55.0 µs | 78.2 % | 21.8 % | 5.00 µs at 35.0 µs 5.00 µs at 50.0 µs 2.00 µs at 0 ns |",
		"queue 0 | 35.0 µs | 55.0 µs | 63.6 % | 36.4 % | 10.0 µs at 0 ns 5.00 µs at 35.0 µs 5.00 µs at 50.0 µs |",
		"queue 1 | 10.0 µs | 55.0 µs | 18.2 % | 81.8 % | 32.0 µs at 23.0 µs 11.0 µs at 10.0 µs 2.00 µs at 0 ns |",
	}, cells(t, strings.ReplaceAll(made, "&emsp;", ""), "uses")); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"blur | 1 | 18.0 µs | 18.0 µs | 18.0 µs | 1000 B | 0 B | 0 B |",
		"edges | 1 | 15.0 µs | 15.0 µs | 15.0 µs | 0 B | 0 B | 0 B |",
		"blend | 1 | 14.0 µs | 14.0 µs | 14.0 µs | 0 B | 500 B | 0 B |",
		"save | 1 | 10.0 µs | 10.0 µs | 10.0 µs | 0 B | 0 B | 0 B |",
		"pack | 1 | 4.00 µs | 4.00 µs | 4.00 µs | 0 B | 0 B | 0 B |",
		"side | 1 | 2.00 µs | 2.00 µs | 2.00 µs | 0 B | 0 B | 0 B |",
	}, cells(t, made, "labels")); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	d := drawnData(t, made)
	if d.Begin != 10_000 || d.End != 80_000 || len(d.Critical) != 4 || len(d.Arrows) != 6*5 || len(d.Graph.Nodes) != 3*6 || len(d.Graph.Edges) != 2*5 {
		t.Errorf("data: %+v", d)
	}
	if strings.Contains(made, `class="note">The`) {
		t.Error("a whole trace has a note that something is left out")
	}
	if diff := cmp.Diff(reportMemory{Name: "device 0: test device", Peak: 1000, Levels: []int64{11_000, 1000, 64_000, 0}}, d.Memory[0]); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	depths := map[string]int{}
	for _, track := range d.Tracks {
		depths[track.Name] = track.Depth
		for i := 0; i < len(track.Slices); i += 7 {
			if s := track.Slices[i : i+7]; s[0] > s[1] || s[6] >= int64(track.Depth) || int(s[2]) >= len(d.Labels) || int(s[4]) >= len(d.Kinds) {
				t.Errorf("track %s has box %v", track.Name, s)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"worker 1": 3, programWaits: 1, "queue 0": 1, "queue 1": 1, dataTracks: 1}, depths); diff != "" {
		t.Errorf("depths (-want +got):\n%s", diff)
	}
}

func TestReportLetsNoLabelOut(t *testing.T) {
	hostile := []string{
		`</script><img src=x onerror=alert(1)>`, `"><script>alert(2)</script>`, `<!--<script>`, "a\u2028b'`${c}`&amp;", "{{.Title}}", `</style><b>`, "\xff\x00",
	}
	collector := New(Options{})
	p := newProgram(collector, nil)
	p.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 0, Type: hostile[0], Device: &tracedDevice{startErr: errors.New(hostile[1])}})
	var before *madeTask
	for i, label := range hostile {
		made := p.task(label, ompt.TaskTarget)
		if before != nil {
			p.TaskDependence(ompt.TaskDependenceEvent{Source: &before.data, Sink: &made.data})
		}
		made.region(ompt.ScopeBegin, ompt.Target, 0)
		made.submit(label, 10*i+5)
		made.region(ompt.ScopeEnd, ompt.Target, 0)
		before = made
	}
	for _, title := range hostile {
		made := page(t, collector.Trace(), title)
		if !utf8.ValidString(made) {
			t.Errorf("title %q: the page is not UTF-8", title)
		}
		for tag, want := range map[string]int{"<script": 2, "</script": 2, "<img": 0, "<style": 1, "</style": 1, "<!--": 0, "<b>alert": 0} {
			if got := strings.Count(strings.ToLower(made), tag); got != want {
				t.Errorf("title %q: %d times %s, want %d", title, got, tag, want)
			}
		}
		d := drawnData(t, made)
		for _, label := range hostile[:6] {
			if !strings.Contains(strings.Join(d.Labels, "\n"), label) {
				t.Errorf("label %q is not among %q", label, d.Labels)
			}
		}
	}
}

func TestReportNeedsNothingElse(t *testing.T) {
	collector := New(Options{})
	newProgram(collector, &tracedDevice{}).picture()
	made := page(t, collector.Trace(), "a picture")
	for _, reference := range []string{`\ssrc\s*=`, `\shref\s*=`, `url\(`, `@import`, `https?:`, `fetch\(`, `XMLHttpRequest`} {
		if found := regexp.MustCompile(`(?i)` + reference).FindString(made); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	// The content security policy would block these attributes.
	for _, attribute := range []string{`\son[a-z]+\s*=`, `\sstyle\s*=`} {
		markup := strings.ReplaceAll(made, element(t, made, "<script>", "</script>"), "")
		if found := regexp.MustCompile(attribute).FindString(markup); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	// The policy has the hash of each element.
	for tag, policy := range map[string]string{"script": "script-src '", "style": "style-src '"} {
		sum := sha256.Sum256([]byte(element(t, made, "<"+tag+">", "</"+tag+">")))
		if want, got := "sha256-"+base64.StdEncoding.EncodeToString(sum[:]), element(t, made, policy, "'"); got != want {
			t.Errorf("the policy lets %s in, the page's %s is %s", got, tag, want)
		}
	}
}

func TestReportSaysWhatItLeavesOut(t *testing.T) {
	h := history{tasks: make([]task, mostNodes+1), now: time.Second, dropped: 7, problems: []string{"it broke"}}
	for i := range h.tasks {
		h.tasks[i] = task{parent: none, id: ompt.ID(i + 1), label: fmt.Sprint("task ", i), ended: never}
		if i > 0 {
			h.edges = append(h.edges, edge{int32(i - 1), int32(i)})
		}
		h.runs = append(h.runs, run{task: int32(i), parent: none, begin: time.Duration(i), end: time.Duration(i + 1)})
	}
	made := page(t, newTrace(h), "many")
	for _, want := range []string{
		fmt.Sprintf("The graph shows %d of %d tasks", mostNodes, mostNodes+1), "7 things that began later are missing", "it broke",
		fmt.Sprintf("%d further steps are not listed", mostNodes+1-mostSteps), fmt.Sprintf("%d further labels are not listed", mostNodes+1-mostRows),
	} {
		if !strings.Contains(made, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if d := drawnData(t, made); len(d.Graph.Nodes) != 3*mostNodes || len(d.Critical) != mostNodes+1 {
		t.Errorf("%d nodes, a path of %d", len(d.Graph.Nodes)/3, len(d.Critical))
	}
	// If there is one box more than the limit, the last is left out.
	h = history{runs: make([]run, mostSlices+1), tasks: []task{{parent: none}}, now: time.Second}
	for i := range h.runs {
		h.runs[i] = run{parent: none, begin: time.Duration(i), end: time.Duration(i + 1)}
	}
	made = page(t, newTrace(h), "many boxes")
	if want := fmt.Sprintf("the first %d of %d boxes", mostSlices, mostSlices+1); !strings.Contains(made, want) {
		t.Errorf("the page does not say %q", want)
	}
	if d := drawnData(t, made); len(d.Tracks[0].Slices) != 7*mostSlices {
		t.Errorf("%d boxes", len(d.Tracks[0].Slices)/7)
	}
}

func TestReportOfNothingAndOnFullDisks(t *testing.T) {
	if made := page(t, New(Options{}).Trace(), "nothing"); !strings.Contains(made, "No task was run.") || !strings.Contains(made, "No device was used.") {
		t.Error("an empty page does not say that it is")
	}
	for _, room := range []int{0, 5000} {
		if err := New(Options{}).Trace().WriteReport(&fullDisk{room}, "x"); !errors.Is(err, errFullDisk) {
			t.Errorf("error %v, want %v", err, errFullDisk)
		}
	}
}

func TestFiguresOfTheReport(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 12_340: "12.3 µs", 123_400: "123 µs", 1_234_000: "1.23 ms", 61 * time.Second: "61.0 s", -1500: "-1.50 µs",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%d ns is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 30: "3.0 GiB", 1<<64 - 1: "16.0 EiB"} {
		if got := shortBytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
	for part, want := range map[time.Duration]string{0: "0 %", 1: "33.3 %", 3: "100 %"} {
		if got := percent(part, 3); got != want {
			t.Errorf("%d of 3 is %q, want %q", part, got, want)
		}
	}
	if got := percent(1, 0); got != "–" {
		t.Errorf("a part of nothing is %q", got)
	}
}
