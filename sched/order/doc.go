// Package order keeps the order of a device's work: what has to come before what, with as
// few barriers and waits as that takes. It is for this repository alone, and knows commands
// and bytes, not what they are for.
//
// A command has a sync point: a level of a batch of a queue. A sync set is a point on each
// of several queues; a wait set is what commands that are to be placed wait for. A clock
// says, queue by queue, up to where work has happened before something. The history of an
// allocation has, for ranges of its bytes, the sync sets of the commands that wrote them.
//
// Nothing here locks: whoever uses a value guards it.
package order
