// Package allocation has the memory of a device: where it comes from, who keeps it, how the
// device has used it, and by which pointers programs name it. It knows ranges of bytes and sync
// points, but no tasks, copies or maps. It is internal to this module.
//
//	Pointer ──Find──▶ ┌────────────────────────────┐
//	                  │ Allocation                 │
//	Block of the ───▶ │  keepers   who still needs │──last Unpin──▶ freed after the uses
//	presence table    │  uses      what the device │
//	                  │            did to it       │
//	                  └──────────┬─────────────────┘
//	                             │ memory.Storage: part of a block
//	          ┌──────────────────┼────────────────────────┐
//	   memory.Allocator    memory.Allocator          imported host
//	   of storage          of staging                storage
//	          └───── heap ───────┘                        │
//	                  │ Device.CreateBlock                │ Device.ImportBlock
//	              VkDeviceMemory                    VkDeviceMemory
//
// An Allocation is device memory with its history. Storage that corresponds to mapped host
// storage is one, and so is what a memory routine allocated, a buffer that the program
// registered, or memory that is shared with another process. Blocks of host storage that are
// associated with a part of an allocation share its record.
//
// The presence table or the program keeps an allocation, and so does each task that was generated
// with it. When the last of them lets go, the memory is freed up to its last use by the device:
// the allocator gives it out again at once, and commands of the next user come after those of
// the one before.
//
// Pinned storage is host storage that is an allocation for as long as the program wants, imported or
// allocated by the driver. The allocations of blocks that device and host share there are parts of
// it, with whose record their uses are.
//
// # Memory types
//
// Storage is taken from a memory type that is local to the device. If the host can see all of
// that memory, it needs no staging for maps. Staging is memory that the host sees and, if
// possible, caches.
//
// # Locking
//
// Memory, Allocations and Pointers are guarded by the lock of the queues that are passed to Open, which
// callers must hold, except where a function says that it needs no lock.
package allocation
