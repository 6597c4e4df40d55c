//go:build !race

package tasks

// goRaces says that Go's race detector watches the tests.
const goRaces = false
