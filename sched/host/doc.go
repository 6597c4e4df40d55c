// Package host runs tasks on the host: explicit tasks, and target regions of the initial device,
// which are Go functions on the program's own storage. It is internal to this module.
//
//	construct.Construct ──▶ tasks.Scope ── start ──▶ Pool ──▶ body, on one of its places
//	                                        │
//	                                        └─ undeferred ──▶ body, on the caller's goroutine
//
// A [Pool] bounds the number of bodies that run at once, but not of those that wait: a body that
// waits gives its place to another. A [Device] runs the tasks of a runtime's initial device.
package host
