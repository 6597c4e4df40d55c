package vktest

import "testing"

// Long is called first by a test that takes seconds: go test -short, which `make check` runs
// at every edit, leaves it out.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
}
