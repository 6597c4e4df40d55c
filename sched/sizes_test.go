//go:build !race && !invariants

package sched

// These numbers are lower in a build with the race detector or with checks of invariants. Otherwise its
// tests are the same.
const (
	// rapidChecks is the number of random programs of each kind, unless the flag -rapid.checks
	// is given.
	rapidChecks = "100"
	// shortChecks is their number with -short.
	shortChecks = "30"
	// deviceOrders is the number of random orders of the device in which a test runs.
	deviceOrders = 4
	// faultStep is the distance between calls of which each is once made to fail or to lose the
	// device.
	faultStep = 1
	// shareRounds is how often goroutines start to share storage at the same time.
	shareRounds = 10
	// poolTries is how often a test looks for a target in a sync.Pool, which may drop what it
	// is given.
	poolTries = 6
)
