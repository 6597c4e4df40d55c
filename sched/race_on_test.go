//go:build race

package sched

// rapidChecks is the number of random programs of each kind, unless -rapid.checks says
// another: less under the race detector, which is slow.
const rapidChecks = "25"
