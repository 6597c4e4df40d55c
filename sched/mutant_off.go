//go:build !mutants

package sched

// mutated reports whether the place that asks is to be wrong.
func mutated(mutant) bool { return false }
