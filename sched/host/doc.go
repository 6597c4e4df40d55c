// Package host carries out what runs on the host: explicit tasks, and target regions of the
// initial device, which are Go functions on the program's own storage. It is for this
// repository alone.
//
//	construct.Construct ──▶ tasks.Scope ── start ──▶ Pool ──▶ body, on one of its places
//	                                        │
//	                                        └─ undeferred ──▶ body, on the caller's goroutine
//
// A [Pool] bounds how many bodies run at once, and not how many wait: a body that waits gives
// its place to another. A [Device] runs the tasks of a runtime's initial device.
package host
