// Package interop holds OpenMP's interop objects (OpenMP 5.1 §2.15 and §3.12):
// through them a program gets hold of what a device is to Vulkan, to use it with
// Vulkan code of its own.
//
//	Object ──platform───────▶ VkInstance        properties of an object that was
//	       ──device─────────▶ VkPhysicalDevice  initialised with type target
//	       ──device_context─▶ VkDevice
//	       ──0──────────────▶ vkGetInstanceProcAddr
//
// Objects are made and destroyed by the runtime's interop constructs; anyone may
// read them, at any time, from any goroutine. An [Object] is a handle: copies
// are the same object, and destroying one destroys all. The device's closing
// makes its objects stale, which reads like a destroyed one.
//
// Reading a property is a table look-up; it enters no driver.
package interop
