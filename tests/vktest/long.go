package vktest

import "testing"

// Long is called first by tests that take seconds; go test -short, which `make check` runs at
// every edit, skips them.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
}

// LongConcurrent is Long for a test that is about goroutines: Go's race detector, below which
// everything takes ten times as long and `make race` runs the short tests, watches it too.
func LongConcurrent(t *testing.T) {
	t.Helper()
	if !GoRaces {
		Long(t)
	}
}
