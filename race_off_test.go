//go:build !race

package vkomp_test

// goRaces: Go's race detector watches the test.
const goRaces = false
