// Package races is the race detector of a runtime. It listens to what the runtime does
// (package observe) and tells package tasks/race which storage tasks access. To know that, it follows
// which storage is present on the devices, in tables of package memory, in the order in which the
// program generates its constructs.
//
// The package is internal to this module.
//
// # Storage
//
// A mapped slice has storage on the host and on each device, and their values can differ. All of
// these are identified by the host address. Allocated device memory is identified by its device
// address. Each of them is an address space of its own, and so is each allocation, because a
// later allocation may have the same address. The device's storage of a slice that is associated with
// memory of an allocation is that memory; depend items still name it by the host address.
package races
