// Package interop has OpenMP's interop objects (OpenMP 5.1 §2.15 and §3.12). With one of
// them a program gets the Vulkan handles of a device for Vulkan code of its own, and orders
// the work of that code before and after tasks, on the device.
//
//	Object ──platform───────▶ VkInstance             type target
//	       ──device─────────▶ VkPhysicalDevice
//	       ──device_context─▶ VkDevice
//	       ──0──────────────▶ vkGetInstanceProcAddr  any type
//	       ──targetsync─────▶ VkSemaphore, timeline  type targetsync
//	       ──1, 2───────────▶ VkQueue and its family
//	       ──3, 4───────────▶ values to wait for and to signal
//
// Objects are made and destroyed by interop constructs (vkomp.Runtime.Interop). Their properties
// can be read on any goroutine and at any time; reading one makes no call of the driver. An
// [Object] is a handle: copies are the same object, and destroying one destroys all. When its
// device is closed, an object becomes like one that was destroyed.
//
// Methods of an object that fail return [ErrInvalid], unless they say otherwise. A device that is
// lost refuses foreign work (vkomp.ErrDeviceLost), and work that was announced before counts as
// withdrawn.
//
// # Order
//
// An object with targetsync orders foreign work and constructs one after the other. Foreign
// work that it was given before a construct is complete before the construct's task begins;
// work that it is given later begins when the task is complete. Each of them signals a value
// of the object's semaphore, in the order of the program:
//
//	program    interop use   Next      interop use   Next
//	value            1         2             3         4
//	           ──────●─────────●─────────────●─────────●────▶ semaphore
//	                 │         │             │         │
//	on a queue     task ─▶ foreign work ─▶ task ─▶ foreign work
//	                 ▲                       │
//	depend           └── target tasks        └─▶ target tasks
//
// There are two protocols. In the explicit one, foreign code waits for one value and signals
// the next, on any queue. [Object.Next] announces the work, and [Object.Submitted] says that
// it was submitted, or [Object.Withdraw] that it never will be. Before a submission to a
// queue that others use, the program calls [Object.Ready]: otherwise the submission could
// hold up the work for which it waits. vkomp does the same, and keeps a construct on the host
// until everything before it was submitted. So foreign code that never submits blocks only
// waits, whose errors say so, and no queue.
//
// In the implicit protocol foreign code uses no semaphores. If the object has a queue of its
// own (see [Object.Queue]), work is simply submitted there, and constructs make empty
// submissions in between:
//
//	queue      work  work │ signal 1, wait 2 │ work │ signal 3, wait 4 │ work
//	task                  └──▶ from 1 to 2         └──▶ from 3 to 4
//
// Otherwise [Object.Submit] calls a function with a queue when the time for the work has
// come. Submit can be used in both protocols.
package interop
