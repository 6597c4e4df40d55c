// Package memory holds the two parts of device memory management that need no
// device to be tested: an Allocator, which sub-allocates device storage from the
// driver's few large blocks, and a Table, the presence table, which records which
// host storage has corresponding storage on one device and how many constructs
// refer to it. Rows is the normal form of a rectangular or strided copy.
//
//	host    ──[ x 4096 B ]────────[ y 256 B ]──        Table: disjoint host
//	               │ count 2           │ count ∞              intervals
//	               ▼                   ▼
//	block 0 [ x  | free {0:7} | y | free      ]        Allocator: TLSF over
//	block 1 [ free {0:9 1:3}                  ]        a Heap's blocks
//
// Freed memory carries the frontier of its last use, {queue:value …}, and its
// next user gets that frontier with it. So memory can be reused while the device
// may still read it, because the new user is ordered after the old one. A block
// goes back to the heap only when the device has passed its frontier.
//
// The scheduler is the one caller. It adapts the driver to Heap and guards a
// Table with its own lock; an Allocator has a lock of its own. Neither ever
// starts a copy: Enter and BeginExit say which copies are due (OpenMP 5.1
// §2.21.7.1) and the caller makes them, row by row or in one go.
//
// Cost: Allocate and Free are constant time, whatever the number of blocks and
// allocations, and touch no driver unless a block is made or given back. Enter
// and the exit pair are linear in the items of the construct (n log n past a
// dozen): an item that starts where its block starts is found by hashing, any
// other by two binary searches over the blocks present. A construct that only counts
// one block to which nothing else refers touches one line of the processor's cache
// (see Table.MakeDormant). A block that enters or
// leaves moves a few dozen others by a place. In the steady state none of them
// allocates Go memory, except the record of a new block, and that only as long as
// the records of removed blocks are not returned through Recycle.
//
// Built with the tag invariants, every change is followed by Validate.
package memory
