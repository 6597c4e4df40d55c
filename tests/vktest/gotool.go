package vktest

import (
	"os/exec"
	"testing"
)

// GoTool returns the path of the go command. It skips the test if there is none, because test
// binaries also run on machines that have a device but no Go.
func GoTool(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("the test runs the go command: %v", err)
	}
	return path
}
