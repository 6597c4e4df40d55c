package vktest

import (
	"os"
	"testing"
)

// repeated is set by scripts/test in runs that repeat the tests on another driver, or through
// a layer.
var repeated = os.Getenv("VKOMP_TEST_REPEATED") != ""

// Once is called first by tests that use no driver, or drivers of their own choice: a run that
// repeats the tests on another driver, or through a layer, would only do the same again.
func Once(t testing.TB) {
	t.Helper()
	if repeated {
		t.Skip("the same on every driver: it has run on the first")
	}
}
