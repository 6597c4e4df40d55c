package vktest

import (
	"os/exec"
	"testing"
)

// GoTool returns the path of the go command. A test that runs it is skipped where there is
// none: test binaries also run on machines that have a device and no Go.
func GoTool(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("the test runs the go command: %v", err)
	}
	return path
}
