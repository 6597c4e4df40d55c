// Package interop holds OpenMP's interop objects (OpenMP 5.1 §2.15 and §3.12):
// through them a program gets hold of what a device is to Vulkan, to use it with
// Vulkan code of its own, and has OpenMP's tasks and that code's wait for each other
// on the device.
//
//	Object ──platform───────▶ VkInstance             type target
//	       ──device─────────▶ VkPhysicalDevice
//	       ──device_context─▶ VkDevice
//	       ──0──────────────▶ vkGetInstanceProcAddr  any type
//	       ──targetsync─────▶ VkSemaphore, timeline  type targetsync
//	       ──1, 2───────────▶ VkQueue and its family
//	       ──3, 4───────────▶ values to wait for and to signal
//
// Objects are made and destroyed by the runtime's interop constructs; anyone may
// read them, at any time, from any goroutine. An [Object] is a handle: copies
// are the same object, and destroying one destroys all. The device's closing
// makes its objects stale, which reads like a destroyed one. Reading a property is a
// look-up; it enters no driver.
//
// Foreign work for a device that is lost (vk.ErrDeviceLost) is refused with that error,
// and what was announced counts as withdrawn.
//
// # Order
//
// An object with targetsync has foreign work and constructs come one after the other.
// What it was given before a construct is complete before the construct's task begins,
// what it is given later begins when that is complete. Each is a value of the
// semaphore, in the order of the program:
//
//	program    interop use   Next      interop use   Next
//	value            1         2             3         4
//	           ──────●─────────●─────────────●─────────●────▶ semaphore
//	                 │         │             │         │
//	on a queue     task ─▶ foreign work ─▶ task ─▶ foreign work
//	                 ▲                       │
//	depend           └── target tasks        └─▶ target tasks
//
// There are two protocols. In the explicit one, foreign code waits for one value and
// signals the next, on any queue: [Object.Next] announces the work and
// [Object.Submitted] says that it is on its way, or [Object.Withdraw] that it never
// will be. A submission to a queue that others use waits for [Object.Ready] before, or
// it would hold up what it waits for. vkomp does the same: a construct stays with the
// host until what it waits for was submitted, so a foreign side that never submits
// blocks waits that say so, and no queue.
//
// In the implicit one, foreign code has no semaphores. Where the object has a queue of
// its own (see [Object.Queue]), work is simply submitted there, and constructs put empty
// submissions between:
//
//	queue      work  work │ signal 1, wait 2 │ work │ signal 3, wait 4 │ work
//	task                  └──▶ from 1 to 2         └──▶ from 3 to 4
//
// Elsewhere, [Object.Submit] calls back with a queue when the work's turn comes. It
// does for both.
package interop
