//go:build !race

package sched

// How much of what differs by its numbers alone the tests do.
const (
	// rapidChecks is the number of random programs of each kind, unless -rapid.checks says
	// another.
	rapidChecks = "100"
	// deviceOrders is the number of orders of the device in which a test is run.
	deviceOrders = 4
	// faultStep is the distance of the calls that fail, or lose the device.
	faultStep = 1
	// shareRounds is how often storage is shared by goroutines that come at once.
	shareRounds = 10
	// poolTries is how often a target is looked for in a sync.Pool, which keeps no promise.
	poolTries = 6
)
