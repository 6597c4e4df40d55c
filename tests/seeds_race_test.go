//go:build race

package tests

// programSeeds is the number of random programs, less under the race detector,
// which is slow.
const programSeeds = 100
