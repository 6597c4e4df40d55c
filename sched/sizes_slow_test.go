//go:build race || invariants

package sched

// The race detector and the checks of invariants make everything up to ten times as slow. The one sees
// no difference between one random order of the device's commands and another, and the others have as
// much to check in each. So there are fewer of each, and still every kind of test, memory and placement.
const (
	rapidChecks  = "8"
	shortChecks  = "8"
	deviceOrders = 1
	faultStep    = 3
	shareRounds  = 3
	poolTries    = 2
)
