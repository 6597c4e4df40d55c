//go:build race

package sched

// The race detector makes everything ten times as slow, and sees no difference between one
// random order of the device's commands and another: so there are fewer of each, and still
// every kind of test, memory and placement.
const (
	rapidChecks  = "8"
	shortChecks  = "8"
	deviceOrders = 1
	faultStep    = 3
	shareRounds  = 3
	poolTries    = 2
)
