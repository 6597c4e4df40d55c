package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/tracecheck"
)

// checkTraceFile reads a file of -trace and checks its format.
func checkTraceFile(t *testing.T, path string) tracecheck.Counts {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := tracecheck.Check(file)
	if err != nil {
		t.Error(err)
	}
	return counts
}

func TestTraceHasTheWorkOfTheReportAndNoneOfVerify(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		sample, flags string
		// kernels counts the kernels of the sample; dependences says that some tasks were created
		// before tasks on which they depend were complete.
		kernels     map[string]int
		dependences bool
	}{
		{"saxpy", "-n 3000000", map[string]int{"saxpy": 3}, false},
		{"heat", "-n 64 -steps 5 -bands 4 -out heat.png", map[string]int{"heat": 20}, true},
		{"image", "-n 4", map[string]int{"blur_rows": 4, "blur_columns": 4, "sobel": 4, "blend": 4}, true},
		{"image", "-n 4 -device host", map[string]int{"blur_rows": 4, "blur_columns": 4, "sobel": 4, "blend": 4}, true},
	} {
		t.Run(c.sample+c.flags, func(t *testing.T) {
			args := append([]string{"run", c.sample, "-verify", "-trace", "run.json", "-report", "run.html"}, strings.Fields(c.flags)...)
			// Validation would report neighbouring bands: see demoInBands.
			printed := output(t, demoWith(t, func(*vkomp.Options) {}, args...))
			if want := "trace written to run.json\nreport written to run.html\n"; !strings.HasSuffix(printed, want) {
				t.Errorf("output does not end in %q:\n%s", want, printed)
			}
			counts := checkTraceFile(t, "run.json")
			for name, want := range c.kernels {
				// A target enter data with the same label may have a box too.
				if got := counts.Names[name]; got < want || got > want+2 {
					t.Errorf("%d boxes of %s, want %d", got, name, want)
				}
			}
			onHost := strings.Contains(c.flags, "host")
			if edges := figure(t, printed, "edges"); c.dependences && edges > 0 && counts.Phases["s"] == 0 || counts.Phases["s"] > edges {
				t.Errorf("%d arrows for %d edges", counts.Phases["s"], edges)
			}
			// Slices that saxpy maps for a single task may be used in place.
			if values := counts.Phases["C"]; onHost && values > 0 || !onHost && values == 0 && c.sample != "saxpy" || counts.Counters["device memory in use"] != 0 {
				t.Errorf("%d values of memory, the last %v", counts.Phases["C"], counts.Counters["device memory in use"])
			}
			if !slices.Contains(counts.Processes, "host") || (len(counts.Processes) == 1) != onHost {
				t.Errorf("processes %q", counts.Processes)
			}
			page, err := os.ReadFile("run.html")
			if err != nil {
				t.Fatal(err)
			}
			if found := regexp.MustCompile(`(?i)\s(src|href)\s*=|url\(|@import|https?:`).Find(page); found != nil {
				t.Errorf("the page has %q", found)
			}
		})
	}
}

func TestOnlyTheFlagsAskForATool(t *testing.T) {
	for _, flags := range [][]string{nil, {"-trace", filepath.Join(t.TempDir(), "run.json")}, {"-report", filepath.Join(t.TempDir(), "run.html")}} {
		var tool bool
		result := demoWith(t, func(o *vkomp.Options) { tool = o.Tool.TaskCreate != nil }, append([]string{"run", "saxpy", "-n", "10"}, flags...)...)
		output(t, result)
		if tool != (flags != nil) {
			t.Errorf("flags %v: a tool %v", flags, tool)
		}
	}
}

func TestTraceOfFailedWorkIsWrittenWithTheErrorAndOfInterruptedWorkIsNot(t *testing.T) {
	folder := t.TempDir()
	run := func(path string, interrupt bool) (string, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}
		flags := sampleFlags{Device: "initial", traceFlags: traceFlags{Trace: path}}
		err := flags.with(&sh, func(s *session) error {
			_, err := s.measure(func() error {
				if interrupt {
					cancel()
				}
				task := vkomp.Task{Label: "doomed", Body: func(context.Context) error { return errFullDisk }}
				return errors.Join(s.rt.Task(t.Context(), task), s.rt.Taskwait(t.Context()))
			})
			return err
		})
		return stdout.String(), err
	}
	path := filepath.Join(folder, "failed.json")
	if printed, err := run(path, false); !errors.Is(err, errFullDisk) || !strings.Contains(printed, "trace written to "+path) {
		t.Errorf("error %v, output %q", err, printed)
	}
	if counts := checkTraceFile(t, path); counts.Names["doomed"] != 1 {
		t.Errorf("boxes %v", counts.Names)
	}
	path = filepath.Join(folder, "interrupted.json")
	if printed, err := run(path, true); !errors.Is(err, errFullDisk) || printed != "" {
		t.Errorf("error %v, output %q", err, printed)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of interrupted work: %v", err)
	}
}

func TestFilesThatCannotBeWrittenAreFoundOutWithoutATrace(t *testing.T) {
	folder := t.TempDir()
	if err := checkWritable(filepath.Join(folder, "new.json")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("files %v (%v), want none", left, err)
	}
	for _, path := range []string{folder, filepath.Join(folder, "absent", "new.json"), filepath.Join(folder, strings.Repeat("x", 300)+".json")} {
		if err := checkWritable(path); err == nil {
			t.Errorf("%s could be written", path)
		}
	}
}
