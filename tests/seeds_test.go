//go:build !race

package tests

// programSeeds is the number of random programs.
const programSeeds = 1000
