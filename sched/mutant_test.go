//go:build mutants

package sched

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// Every mutant makes tests of this package fail, those named here: random programs on
// a device that breaks every promise that it did not make, and what those leave out.
// Each has a process of its own.
func TestEveryMutantIsNoticed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, m mutant, tests string, flags ...string) (noticed bool) {
		// Well above what the tests take: a mutant may hang.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, self, append(flags, "-test.run="+tests, "-test.failfast", "-rapid.nofailfile", "-rapid.shrinktime=1ns")...)
		c.Env = append(os.Environ(), "VKOMP_MUTANT="+string(m))
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if bytes.Contains(out, []byte("no tests to run")) || bytes.Contains(out, []byte("VKOMP_MUTANT:")) {
			t.Fatalf("%s", out)
		}
		return err != nil
	}
	const programs = "RandomPrograms/any_queue"
	except := map[mutant]string{
		transfersForgotten:     "SharersComeAfterTheCopy",
		earlierWritesForgotten: "CompleteWriteIsSeen",
		followsTooMuch:         "HistoryKnows",
	}
	for m := range mutants {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			tests := except[m]
			if tests == "" {
				tests = programs
			}
			if !run(t, m, tests, "-rapid.checks=400") {
				t.Errorf("%s does not notice it", tests)
			}
		})
	}
	for _, tests := range append(slices.Collect(maps.Values(except)), programs) {
		t.Run("none in "+tests, func(t *testing.T) {
			t.Parallel()
			if run(t, "", tests, "-rapid.checks=25") {
				t.Errorf("%s fails without a mutant", tests)
			}
		})
	}
}
