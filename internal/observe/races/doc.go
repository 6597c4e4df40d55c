// Package races is the race detector of a runtime: it listens to the stream of events
// (package observe) and tells package tasks/race what tasks access. For that it follows
// what is present on the devices, in the order in which the program generates its
// constructs, in tables of package memory.
//
// The package promises nothing to importers outside of this module.
//
// # Storage
//
// A mapped slice has two storages that can differ: the host's, and that of each device,
// which is known by the host's address all the same. Memory from an allocation is known by
// the device's. Each of these is a space of its own, and each allocation too: what is
// allocated later may lie where it was.
package races
