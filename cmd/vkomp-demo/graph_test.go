package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
)

// chain returns a graph of n target tasks in a chain.
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

var errFullDisk = errors.New("no space left on device")

func TestGraphThatCannotBeWrittenIsAnErrorAndLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "absent", "run.svg")
	if err := writeGraph(path, chain(2)); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want %q in it", err, path)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("files %v (%v), want none", left, err)
	}
}

func TestLargeGraphIsDrawn(t *testing.T) {
	for _, extension := range []string{".dot", ".SVG"} {
		path := filepath.Join(t.TempDir(), "run"+extension)
		if err := writeGraph(path, chain(20000)); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if n := bytes.Count(file, []byte("link")); err != nil || n != 20000 {
			t.Errorf("%s: %d nodes (%v), want 20000", extension, n, err)
		}
	}
}

func TestGraphOfFailedWorkIsWrittenWithTheError(t *testing.T) {
	folder := t.TempDir()
	path, taken := filepath.Join(folder, "run.dot"), filepath.Join(folder, "taken.dot")
	fail := func(path string, before func() error) error {
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: vkomp.Open}
		flags := sampleFlags{Graph: path, Device: "initial"}
		return flags.with(&sh, func(s *session) error {
			_, err := s.measure(func() error {
				task := vkomp.Task{Label: "doomed", Body: func(context.Context) error { return errFullDisk }}
				return errors.Join(before(), s.rt.Task(sh.ctx, task), s.rt.Taskwait(sh.ctx))
			})
			return err
		})
	}
	if err := fail(path, func() error { return nil }); !errors.Is(err, errFullDisk) {
		t.Errorf("error %v, want %v", err, errFullDisk)
	}
	if file, err := os.ReadFile(path); err != nil || !strings.Contains(string(file), errFullDisk.Error()) {
		t.Errorf("graph %q (%v), want the error in it", file, err)
	}
	take := func() error { return os.Mkdir(taken, 0o755) }
	if err := fail(taken, take); !errors.Is(err, errFullDisk) || !strings.Contains(err.Error(), taken) {
		t.Errorf("error %v, want both %v and the file that cannot be written", err, errFullDisk)
	}
}

// An interrupted run writes no graph, unless its work is done.
func TestInterruptedRunWritesNoGraph(t *testing.T) {
	for _, done := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "run.dot")
		ctx, cancel := context.WithCancel(t.Context())
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}
		flags := sampleFlags{Graph: path, Device: "initial"}
		err := flags.with(&sh, func(s *session) error {
			_, err := s.measure(func() error {
				cancel()
				if done {
					return nil
				}
				return ctx.Err()
			})
			return err
		})
		_, missing := os.Stat(path)
		switch {
		case done && (err != nil || missing != nil || !strings.Contains(stdout.String(), path)),
			!done && (!errors.Is(err, context.Canceled) || !errors.Is(missing, os.ErrNotExist) || stdout.Len() != 0):
			t.Errorf("done %v: error %v, file %v, output %q", done, err, missing, stdout.String())
		}
	}
}
