package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCostOfARunIsPrinted(t *testing.T) {
	golden(t, "cost.golden", []byte(succeed(t, "cost", "testdata/cost.log", "-workgroup", "20us")))
}

func TestLogsAndProfilesThatCannotBeUsedAreRefusedByName(t *testing.T) {
	log, err := os.ReadFile("testdata/cost.log")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines := strings.SplitAfter(string(log), "\n")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no log", []string{}, `expected "<log>"`},
		{"a log that is absent", []string{filepath.Join(folder, "absent")}, "absent: no such file or directory"},
		{"no log of the layer", []string{"go.mod"}, `go.mod: not a log of the recording layer: it does not begin with "vkomp-order 1"`},
		{"a log that ends in a line", []string{file("line", string(log[:len(log)-4]))}, "line: not a log of the recording layer: line 32 is cut off"},
		{"a log that ends in a command buffer", []string{file("commands", strings.Join(lines[:24], ""))}, "the log ends inside a command buffer"},
		{"a wait for what is not signalled", []string{file("signal", strings.Replace(string(log), "s 2:1:10000", "s", 1))}, "device 0 queue 2.0 submission 1 (signals semaphore 1 value 1) waits for what is not signalled"},
		{"a family that the profile does not have", []string{file("family", strings.Replace(string(log), "queue 1 0 2 0 6", "queue 1 0 2 0 2", 1))}, "profile h100 has no queue family like device 0 queue 2.0's, with flags 2"},
		{"an unknown profile", []string{"testdata/cost.log", "-profile", "voodoo"}, `-profile: there is no profile "voodoo": the profiles are h100`},
		{"a time without a limit", []string{"testdata/cost.log", "-workgroup", "100000h"}, "-workgroup 100000h0m0s is out of range: 0 to 1h0m0s"},
		{"a negative time", []string{"testdata/cost.log", "-workgroup", "-1s"}, "-workgroup -1s is out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := demo(t, append([]string{"cost"}, c.args...)...)
			if result.status != 1 || !strings.HasPrefix(result.stderr, "vkomp-demo: ") || !strings.Contains(result.stderr, c.want) || result.stdout != "" {
				t.Errorf("status %d, stderr %q, stdout %q; want %q", result.status, result.stderr, result.stdout, c.want)
			}
		})
	}
}
