//go:build mutants

package mutant

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Noticed reports whether the tests of the running test binary that match the pattern fail
// with a mutant, "" for none. They run in a process of their own, with the flags.
func Noticed(t *testing.T, m Name, tests string, flags ...string) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
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
