package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-graphviz"
	"github.com/vkomp/vkomp"
)

// chain is a graph of n target tasks, each behind the one before.
func chain(n int) vkomp.Graph {
	var g vkomp.Graph
	for id := range uint64(n) {
		g.Tasks = append(g.Tasks, vkomp.GraphTask{ID: id + 1, Label: "link", State: vkomp.GraphComplete})
		if id > 0 {
			g.Edges = append(g.Edges, vkomp.GraphEdge{From: id, To: id + 1})
		}
	}
	return g
}

func TestGraphHoldsTheTasksOfTheReportAndNoneOfVerify(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ sample, flags string }{
		{"saxpy", "-n 3000000"}, {"heat", "-n 64 -steps 5 -bands 4 -out heat.png"}, {"image", "-n 4"},
	} {
		for _, extension := range []string{".dot", ".svg"} {
			t.Run(c.sample+extension, func(t *testing.T) {
				args := append([]string{"run", c.sample, "-verify", "-graph", "run" + extension}, strings.Fields(c.flags)...)
				printed := succeed(t, args...)
				tasks, edges := figure(t, printed, "tasks"), figure(t, printed, "edges")
				if want := "graph written to run" + extension + "\n"; !strings.HasSuffix(printed, want) {
					t.Errorf("output does not end in %q:\n%s", want, printed)
				}
				file, err := os.ReadFile("run" + extension)
				if err != nil {
					t.Fatal(err)
				}
				node, edge := "[label=", " -> "
				if extension == ".svg" {
					node, edge = `class="node"`, `class="edge"`
				}
				if n, e := bytes.Count(file, []byte(node)), bytes.Count(file, []byte(edge)); n != tasks || e != edges {
					t.Errorf("%d nodes and %d edges, want %d and %d as reported", n, e, tasks, edges)
				}
			})
		}
	}
}

func TestGraphIsKeptOnlyForTheFlag(t *testing.T) {
	for _, flags := range [][]string{nil, {"-graph", filepath.Join(t.TempDir(), "run.dot")}} {
		var kept bool
		result := demoWith(t, func(o *vkomp.Options) { kept = o.KeepGraph }, append([]string{"run", "saxpy", "-n", "10"}, flags...)...)
		output(t, result)
		if kept != (flags != nil) {
			t.Errorf("flags %v: KeepGraph %v", flags, kept)
		}
	}
}

func TestGraphPictureHasFilledNodesOutlinesAndThinEdges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graph.png")
	g := chain(2)
	g.Tasks[1].Device = vkomp.InitialDeviceNumber // an ellipse
	if err := writeGraph(t.Context(), path, g); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	fill := color.NRGBA{0xc9, 0xee, 0xc9, 0xff}
	var filled, outlined, edge int // rows
	for y := range drawn.Bounds().Dy() {
		dark, darkBefore, green := 0, 0, 0
		for x := range drawn.Bounds().Dx() {
			switch c := color.NRGBAModel.Convert(drawn.At(x, y)).(color.NRGBA); {
			case c == fill:
				green++
			case c.R < 0x90:
				dark++
				if green == 0 {
					darkBefore++
				}
			}
		}
		switch {
		case green > 0:
			filled++
			if darkBefore > 0 {
				outlined++
			}
		case 0 < dark && dark <= 2:
			edge++
		}
	}
	if filled < 60 || outlined < filled*9/10 || edge < 20 {
		t.Errorf("%d rows of nodes, %d of them with an outline, and %d of the edge: too few", filled, outlined, edge)
	}
}

func TestLargeGraphIsRefusedByItsNumberOfTasksAndLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	for extension, most := range graphMost {
		path := filepath.Join(folder, "run"+strings.ToUpper(extension))
		// n tasks have n-1 edges.
		err := writeGraph(t.Context(), path, chain(most/2+1))
		for _, want := range []string{fmt.Sprintf("%d tasks", most/2+1), filepath.Join(folder, "run.dot"), path} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("files %v (%v), want none", left, err)
	}
	path := filepath.Join(folder, "run.dot")
	if err := writeGraph(t.Context(), path, chain(20000)); err != nil {
		t.Error(err)
	}
	if file, err := os.ReadFile(path); err != nil || bytes.Count(file, []byte("[label=")) != 20000 {
		t.Errorf("%d bytes (%v), want 20000 nodes", len(file), err)
	}
}

func TestLongPictureIsDrawnSmaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.png")
	if err := writeGraph(t.Context(), path, chain(200)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	config, err := png.DecodeConfig(file)
	if err != nil || config.Height > pngInches*96+8 || config.Height < pngInches*90 {
		t.Errorf("%d×%d (%v), want %d high", config.Width, config.Height, err, pngInches*96)
	}
}

type fullDisk struct{}

var errFullDisk = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }

func TestPictureThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, format := range []graphviz.Format{graphviz.SVG, graphviz.PNG} {
		if err := drawGraph(t.Context(), fullDisk{}, chain(2), format); !errors.Is(err, errFullDisk) {
			t.Errorf("%s: error %v, want %v", format, err, errFullDisk)
		}
	}
}

func TestGraphOfFailedWorkIsWrittenWithTheError(t *testing.T) {
	folder := t.TempDir()
	path, taken := filepath.Join(folder, "run.dot"), filepath.Join(folder, "taken.dot")
	if err := os.Mkdir(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	fail := func(path string) error {
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: vkomp.Open}
		flags := sampleFlags{Graph: path, Device: "initial"}
		return flags.with(&sh, func(s *session) error {
			_, err := s.measure(func() error {
				task := vkomp.Task{Label: "doomed", Body: func(context.Context) error { return errFullDisk }}
				return errors.Join(s.rt.Task(sh.ctx, task), s.rt.Taskwait(sh.ctx))
			})
			return err
		})
	}
	if err := fail(path); !errors.Is(err, errFullDisk) {
		t.Errorf("error %v, want %v", err, errFullDisk)
	}
	if file, err := os.ReadFile(path); err != nil || !strings.Contains(string(file), errFullDisk.Error()) {
		t.Errorf("graph %q (%v), want the error in it", file, err)
	}
	if err := fail(taken); !errors.Is(err, errFullDisk) || !strings.Contains(err.Error(), taken) {
		t.Errorf("error %v, want both %v and the file that cannot be written", err, errFullDisk)
	}
}

func TestInterruptedRunWritesNoGraph(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.dot")
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}
	flags := sampleFlags{Graph: path, Device: "initial"}
	err := flags.with(&sh, func(s *session) error {
		_, err := s.measure(func() error {
			cancel()
			return ctx.Err()
		})
		return err
	})
	if _, missing := os.Stat(path); !errors.Is(err, context.Canceled) || !errors.Is(missing, os.ErrNotExist) || stdout.Len() != 0 {
		t.Errorf("error %v, file %v, output %q", err, missing, stdout.String())
	}
}
