//go:build !race

package sched

// rapidChecks is the number of random programs of each kind, unless -rapid.checks says
// another.
const rapidChecks = "100"
