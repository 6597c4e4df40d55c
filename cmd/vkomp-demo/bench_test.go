package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
)

// figuresOf holds the prefixes of the figures of rows that do not begin with the row's name.
var figuresOf = map[string][]string{
	"sync":        {"sync.", "nowait_then_taskwait"},
	"memcpysmall": {"memcpy.64B."},
	"memcpy":      {"memcpy.4KiB."},
}

func TestBenchRowsAreNamedOnceAndExplained(t *testing.T) {
	listed := succeed(t, "bench", "-rows", "list")
	names := map[string]bool{"list": true}
	for _, row := range benchRows {
		if names[row.name] || strings.ContainsAny(row.name, ",*?[\\ ") || row.name == "" {
			t.Errorf("%q cannot be the name of a row", row.name)
		}
		names[row.name] = true
		if row.measures == "" || !strings.Contains(listed, row.measures) {
			t.Errorf("row %s is not explained in\n%s", row.name, listed)
		}
	}
	if lines := strings.Count(listed, "\n"); lines != len(benchRows) {
		t.Errorf("%d lines for %d rows", lines, len(benchRows))
	}
}

func TestBenchRowsAreChosenByNamesAndPatterns(t *testing.T) {
	for list, want := range map[string]string{
		"chain": "chain", "fan,chain,fan": "chain fan", "chain*": "chain chain2", "mem*,sync": "sync memcpysmall memcpy memset",
	} {
		rows, err := chooseBenchRows(list)
		var names []string
		for _, row := range rows {
			names = append(names, row.name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("-rows %s: %q, %v; want %q", list, got, err, want)
		}
	}
	if rows, err := chooseBenchRows("*"); len(rows) != len(benchRows) || err != nil {
		t.Errorf("%d rows of %d, %v", len(rows), len(benchRows), err)
	}
}

// The rows check their results themselves, those of plain Vulkan too. Both sides run under the
// validation layer here.
func TestEveryBenchRowGivesFigures(t *testing.T) {
	file := t.TempDir() + "/bench.txt"
	var report benchReport
	decoder := json.NewDecoder(strings.NewReader(succeed(t, "bench", "-quick", "-count", "1", "-json", "-gobench", file)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatal(err)
	}
	if report.Device.Name == "" || report.Cores < 1 || report.Alternations != 1 || report.Samples != 1 || !report.Quick || report.Skipped != nil {
		t.Errorf("%+v", report)
	}
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	names := map[string]bool{}
	for _, f := range report.Figures {
		// So few tasks can end without a collection.
		if f.Unit == benchPercent && f.Vkomp.Best == 0 {
			continue
		}
		for _, s := range []*benchSeries{&f.Vkomp, f.Raw} {
			if s != nil && (!positive(s.Best) || !positive(s.Median) || len(s.Alternations) != 1 || s.Alternations[0] != s.Best) {
				t.Errorf("%s: %+v", f.Name, *s)
			}
		}
		if positive(f.Ratio) != (f.Raw != nil) || f.Unit == "" || f.Goals != nil || names[f.Name] {
			t.Errorf("%+v", f)
		}
		names[f.Name] = true
	}
	for _, row := range benchRows {
		prefixes, others := figuresOf[row.name]
		if !others {
			prefixes = []string{row.name + "."}
		}
		for _, prefix := range prefixes {
			if !slices.ContainsFunc(report.Figures, func(f benchFigure) bool { return strings.HasPrefix(f.Name, prefix) }) {
				t.Errorf("row %s has no figure %s", row.name, prefix)
			}
		}
	}
	for _, name := range []string{
		"sync.empty", "sync.inc", "nowait_then_taskwait", "chain.create", "chain.total", "chain2.total", "independent.total", "fan.total", "stencil.create", "stencil.total",
		"memcpy.64B.h2d_sync", "memcpy.64B.d2h_sync", "memcpy.4KiB.h2d", "memcpy.4KiB.d2d", "memcpy.4KiB.d2h", "memset.4KiB",
	} {
		if !slices.ContainsFunc(report.Figures, func(f benchFigure) bool { return f.Name == name && f.Raw != nil }) {
			t.Errorf("%s is not measured beside plain Vulkan", name)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, f := range report.Figures {
		lines++
		if f.Raw != nil {
			lines++
		}
	}
	if n := strings.Count(string(text), "\nBenchmark"); n != lines {
		t.Errorf("%d lines of benchmarks, want %d:\n%s", n, lines, text)
	}
}

func TestGoalsAreJudgedByTheBestFigure(t *testing.T) {
	figure := func(name string, best, raw float64) benchFigure {
		f := benchFigure{Name: name, Unit: "ns/task", Vkomp: benchSeries{Best: best, Median: 2 * best}}
		if raw > 0 {
			f.Raw, f.Ratio = &benchSeries{Best: raw, Median: 9 * raw}, best/raw
		}
		return f
	}
	rate := benchFigure{Name: "rate", Unit: benchRate, Vkomp: benchSeries{Best: 20}, Raw: &benchSeries{Best: 30}, Ratio: 1.5}
	for _, c := range []struct {
		name string
		goal benchGoal
		want []benchVerdict
	}{
		{"within its unit", benchGoal{"a", 450, ""}, []benchVerdict{{"≤ 450 ns/task", 400, true}}},
		{"exactly", benchGoal{"a", 400, ""}, []benchVerdict{{"≤ 400 ns/task", 400, true}}},
		{"beyond", benchGoal{"a", 399, ""}, []benchVerdict{{"≤ 399 ns/task", 400, false}}},
		{"within a multiple of raw", benchGoal{"a", 2, ofRaw}, []benchVerdict{{"≤ 2 × raw", 2, true}}},
		{"beyond a multiple of raw", benchGoal{"a", 1.5, ofRaw}, []benchVerdict{{"≤ 1.5 × raw", 2, false}}},
		{"a rate is judged by its time", benchGoal{"rate", 1.2, ofRaw}, []benchVerdict{{"≤ 1.2 × raw", 1.5, false}}},
		{"within a multiple of another figure", benchGoal{"a", 1.6, "b"}, []benchVerdict{{"≤ 1.6 × b", 1.6, true}}},
		{"beyond a multiple of another figure", benchGoal{"a", 1.5, "b"}, []benchVerdict{{"≤ 1.5 × b", 1.6, false}}},
		{"without raw", benchGoal{"b", 2, ofRaw}, nil},
		{"without the other figure", benchGoal{"a", 2, "absent"}, nil},
		{"without the figure", benchGoal{"absent", 2, ""}, nil},
	} {
		figures := []benchFigure{figure("a", 400, 200), figure("b", 250, 0), rate}
		judge([]benchGoal{c.goal}, figures)
		var got []benchVerdict
		for _, f := range figures {
			if f.Goals != nil && f.Name != c.goal.figure {
				t.Errorf("%s: a verdict on %s", c.name, f.Name)
			}
			got = append(got, f.Goals...)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestGoalsDependOnTheProcessors(t *testing.T) {
	goal := func(cores int, figure, of string) float64 {
		for _, g := range benchGoals(cores) {
			if g.figure == figure && g.of == of {
				return g.most
			}
		}
		return 0
	}
	if one, two := goal(1, "sync.inc", ofRaw), goal(2, "sync.inc", ofRaw); one != 1.2 || two != 1.5 {
		t.Errorf("a synchronous target: %v and %v", one, two)
	}
	for _, figure := range []string{"goroutines.2.create", "goroutines.2_regions.create"} {
		if one, two := goal(1, figure, "goroutines.1.create"), goal(2, figure, "goroutines.1.create"); one != 0 || two != 0.625 {
			t.Errorf("%s: %v and %v", figure, one, two)
		}
	}
}

// What goals are about is in the table that is kept for comparison, and so is every row.
func TestKeptTableHasAllRowsAndGoals(t *testing.T) {
	kept, err := os.ReadFile("testdata/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	has := func(what, figure string) {
		if !strings.Contains(string(kept), "\n"+gobenchName(figure)) {
			t.Errorf("%s: testdata/bench.txt has no %s", what, gobenchName(figure))
		}
	}
	for _, g := range benchGoals(2) {
		has("a goal", g.figure+"/by=")
		if g.of != "" && g.of != ofRaw {
			has("a goal of "+g.figure, g.of+"/by=")
		}
	}
	for _, row := range benchRows {
		prefixes, others := figuresOf[row.name]
		if !others {
			prefixes = []string{row.name + "."}
		}
		for _, prefix := range prefixes {
			has("row "+row.name, strings.Replace(prefix, "4KiB", "64MiB", 1))
		}
	}
}

func TestBadBenchCommandLinesAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-rows", "nosuch"}, "-rows nosuch: the rows are sync, chain, chain2, independent, fan,"},
		{[]string{"-rows", "chain,nosuch*"}, "-rows nosuch*: the rows are "},
		{[]string{"-rows", "chain,,fan"}, "-rows : the rows are "},
		{[]string{"-rows", "[chain"}, "-rows [chain: syntax error in pattern"},
		{[]string{"-count", "0"}, "-count 0 is out of range: 1 to 1000"},
		{[]string{"-count", "1001"}, "-count 1001 is out of range"},
		{[]string{"-count", "few"}, `"few"`},
		{[]string{"-gobench", "bench.csv"}, "-gobench bench.csv: the extension must be .txt"},
		{[]string{"-gobench", "absent/bench.txt"}, "-gobench absent/bench.txt: stat absent"},
		{[]string{"-device", "no-such-device"}, "no-such-device"},
		{[]string{"-device", "host"}, "bench needs a Vulkan device"},
		{[]string{"-fast"}, "unknown flag --fast"},
	} {
		result := demo(t, append([]string{"bench", "-quick"}, c.args...)...)
		if result.status != 1 || !strings.HasPrefix(result.stderr, "vkomp-demo: ") || !strings.Contains(result.stderr, c.want) || result.stdout != "" {
			t.Errorf("%v: status %d, stderr %q, stdout %q; want %q", c.args, result.status, result.stderr, result.stdout, c.want)
		}
	}
}

func TestInterruptedBenchLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	for _, rows := range []string{"chain,alloc,maphit", "inflight"} {
		var stdout, stderr bytes.Buffer
		leaks := goleak.IgnoreCurrent()
		status := run(shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open, openRaw: rawvulkan.Open}, []string{"bench", "-quick", "-rows", rows})
		goleak.VerifyNone(t, leaks)
		first, _, _ := strings.Cut(rows, ",")
		if want := "vkomp-demo: row " + first + ": interrupted\n"; status != 1 || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("status %d, stdout %q, stderr %q, want %q", status, stdout.String(), stderr.String(), want)
		}
	}
}

// A row that the device cannot run is left out, and another error ends the command.
func TestRowsThatADeviceCannotRunAreSkipped(t *testing.T) {
	ran := 0
	failing := func(err error) benchRow {
		return benchRow{name: fmt.Sprint(err), run: func(*bench) error { ran++; return err }}
	}
	errBroken := errors.New("broken")
	sh := shell{ctx: t.Context(), stdout: t.Output(), stderr: t.Output(), open: vkomp.Open, openRaw: rawvulkan.Open}
	b := &bench{sh: &sh, ctx: t.Context(), benchSizes: benchQuick, count: 1}
	err := (&sampleFlags{}).with(&sh, func(s *session) error {
		b.session = s
		return b.measure([]benchRow{failing(vkomp.ErrOutOfMemory), failing(vkomp.ErrUnsupported), failing(nil), failing(errBroken), failing(nil)})
	})
	if !errors.Is(err, errBroken) || !strings.Contains(fmt.Sprint(err), "row broken: ") || ran != 4 {
		t.Errorf("%d rows ran: %v", ran, err)
	}
	want := []benchSkipped{{fmt.Sprint(vkomp.ErrOutOfMemory), fmt.Sprint(vkomp.ErrOutOfMemory)}, {fmt.Sprint(vkomp.ErrUnsupported), fmt.Sprint(vkomp.ErrUnsupported)}}
	if diff := cmp.Diff(want, b.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// testReport has a figure of each kind.
func testReport() benchReport {
	r := benchReport{
		Device: vkomp.DeviceInfo{Number: 1, Name: "Radeon", Type: "discrete", Driver: "radv 25.1"}, Cores: 2, Alternations: 2, Samples: 10,
		Figures: []benchFigure{
			{Name: "chain.total", Unit: "ns/task", Vkomp: benchSeries{1234.56, 1500, []float64{1234.56, 1400}}, Raw: &benchSeries{1000, 1100.4, []float64{1024, 1000}}, Ratio: 1.23456},
			{Name: "memset.64MiB", Unit: benchRate, Vkomp: benchSeries{20, 18.25, []float64{20, 19}}, Raw: &benchSeries{40, 38, []float64{40, 38}}, Ratio: 2},
			{Name: "trace.off.chain", Unit: "ns/task", Vkomp: benchSeries{1000, 1000, []float64{1000, 1001}}},
			{Name: "trace.on.chain", Unit: "ns/task", Vkomp: benchSeries{1750, 1800, []float64{1750, 1755}}},
			{Name: "inflight.chain.heap", Unit: "bytes/task", Vkomp: benchSeries{640.5, 640.5, []float64{640.5}}},
			{Name: "inflight.collector", Unit: benchPercent, Vkomp: benchSeries{16.25, 16.25, []float64{16.25}}},
		},
		Skipped: []benchSkipped{{"interop", "vkomp: unsupported"}},
	}
	judge(benchGoals(2), r.Figures)
	return r
}

func TestBenchIsATableWithVerdicts(t *testing.T) {
	var printed bytes.Buffer
	r := testReport()
	if err := r.print(&printed); err != nil {
		t.Fatal(err)
	}
	golden(t, "bench.golden", printed.Bytes())
	if err := r.print(full{}); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

func TestBenchIsWrittenForBenchstat(t *testing.T) {
	var written bytes.Buffer
	r := testReport()
	if err := r.writeGobench(&written); err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(written.String(), "pkg: ")
	want := `github.com/vkomp/vkomp/cmd/vkomp-demo
device: Radeon
driver: radv 25.1
Unit raw-ratio better=lower
Unit %CPU better=lower
BenchmarkChain/total/by=raw-2 10 1024 ns/op
BenchmarkChain/total/by=vkomp-2 10 1234.56 ns/op 1.206 raw-ratio
BenchmarkChain/total/by=raw-2 10 1000 ns/op
BenchmarkChain/total/by=vkomp-2 10 1400 ns/op 1.4 raw-ratio
BenchmarkMemset/64MiB/by=raw-2 10 40000 MB/s
BenchmarkMemset/64MiB/by=vkomp-2 10 20000 MB/s 2 raw-ratio
BenchmarkMemset/64MiB/by=raw-2 10 38000 MB/s
BenchmarkMemset/64MiB/by=vkomp-2 10 19000 MB/s 2 raw-ratio
BenchmarkTrace/off/chain/by=vkomp-2 10 1000 ns/op
BenchmarkTrace/off/chain/by=vkomp-2 10 1001 ns/op
BenchmarkTrace/on/chain/by=vkomp-2 10 1750 ns/op
BenchmarkTrace/on/chain/by=vkomp-2 10 1755 ns/op
BenchmarkInflight/chain/heap/by=vkomp-2 10 640.5 B/op
BenchmarkInflight/collector/by=vkomp-2 10 16.25 %CPU
`
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSeriesHaveTheBestOfEachAlternation(t *testing.T) {
	ms := func(create, total time.Duration) benchTimes {
		return benchTimes{create * time.Millisecond, total * time.Millisecond}
	}
	s := benchSamples{{ms(1, 30), ms(2, 20), ms(9, 50)}, {ms(3, 40), ms(4, 60), ms(5, 10)}}
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	if diff := cmp.Diff(benchSeries{0.010, 0.040, []float64{0.020, 0.010}}, s.series(benchTotal, seconds)); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	if got := s.least(benchCreate); got != time.Millisecond {
		t.Errorf("least %v", got)
	}
	b := &bench{}
	b.rate("rate", 1000, benchSamples{{ms(0, 10)}}, benchSamples{{ms(0, 20)}})
	if f := b.figures[0]; f.Ratio != 0.5 || f.Vkomp.Best != 2*f.Raw.Best {
		t.Errorf("%+v", f)
	}
}

func TestSizesInNamesOfFigures(t *testing.T) {
	for size, want := range map[int]string{64: "64B", 4096: "4KiB", 64 << 20: "64MiB", 2 << 30: "2048MiB"} {
		if got := sizeName(size); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
}

func TestCopyThatBringsNothingBackIsAnError(t *testing.T) {
	want := []byte{1, 2, 3}
	// As after the copy of the other side.
	got := slices.Clone(want)
	if err := checkBack("vkomp", got, want, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "vkomp") {
		t.Errorf("error %v, want that the bytes of vkomp differ", err)
	}
	if err := checkBack("vkomp", got, want, func() error { copy(got, want); return nil }); err != nil {
		t.Error(err)
	}
	failure := errors.New("lost")
	if err := checkBack("vkomp", got, want, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
}

// The results of a row are not right if one of its launches reads what another point has.
func TestStencilThatReadsAnotherPointIsAnError(t *testing.T) {
	sh := shell{ctx: t.Context(), stdout: t.Output(), stderr: t.Output(), open: vkomp.Open, openRaw: rawvulkan.Open}
	for _, wrong := range []bool{false, true} {
		b := &bench{sh: &sh, ctx: t.Context(), benchSizes: benchQuick, count: 1}
		measure := func(_ string, create func() error, launches []rawvulkan.Launch) error {
			if wrong {
				last := launches[len(launches)-1].Buffers
				last[0] = last[1]
			}
			batch, err := b.raw.NewBatch(launches)
			for i := 0; i < b.runs() && err == nil; i++ {
				err = errors.Join(batch.Run(), create(), b.rt.Taskwait(b.ctx))
			}
			return err
		}
		err := (&sampleFlags{}).with(&sh, func(s *session) error {
			b.session = s
			return b.measure([]benchRow{{name: "stencil", run: func(b *bench) error { return b.stencilBy(measure, false) }}})
		})
		if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "raw Vulkan's row 0[") {
			t.Errorf("wrong %v: %v", wrong, err)
		}
	}
}

func TestEveryElementOfARowIsChecked(t *testing.T) {
	err := benchCheckAll("y", []uint32{1, 2, 4, 4}, []uint32{1, 2, 3, 4})
	if err == nil || err.Error() != "y[2] is 4, want 3" {
		t.Errorf("error %v, want the element that differs", err)
	}
	if err := benchCheckAll("y", []uint32{1, 2}, []uint32{1, 2}); err != nil {
		t.Error(err)
	}
}
