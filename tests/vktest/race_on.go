//go:build race

package vktest

// GoRaces reports whether Go's race detector watches the test.
const GoRaces = true
