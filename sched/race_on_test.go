//go:build race

package sched

// As without the race detector, but fewer: it makes each ten times as slow. What the device
// does in another order is the same to the detector, and every kind of test, every memory
// and every placement is left.
const (
	rapidChecks  = "8"
	deviceOrders = 1
	faultStep    = 3
	shareRounds  = 3
	poolTries    = 2
)
