// Package vgpu runs goki/vgpu on a device of vkomp's, so that vgpu draws what vkomp's target
// tasks compute in a mapped slice, without a copy and without a wait of the host:
//
//	vkomp   step ─▶ step ─▶ interop(use) ───────▶ interop(use) ─▶ step ─▶ …
//	                            │ before            ▲ after
//	vgpu                        └─▶ render pass ────┘      on the same VkBuffer
//
// [Open] gets the device from an interop object with the types target and targetsync. The
// object also gives the order: what [Device.Submit] submits is foreign work of the object.
// Render passes are recorded as always and submitted by Submit, never by vgpu's own calls,
// which would wait for the queue.
//
// vgpu panics on errors, takes no locks, and assumes that it owns the device. All of its code
// therefore runs inside [Device.Do], which turns a panic into an error, lets in one goroutine
// at a time, and keeps vgpu from destroying the device, from submitting while vkomp does, and
// from waiting for queues that are not its own. Code of vgpu outside of Do is not kept from
// any of this.
//
// vgpu's binding of Vulkan and vkomp's own define the same names in C. The program is linked
// with -Wl,--allow-multiple-definition, which GNU's and LLVM's linkers support, so that there is
// one table of Vulkan's functions for both.
//
// vgpu.Init, vgpu.InitNoDisplay, and the Config method of vgpu.GPU would write into that table
// while vkomp uses it: a program that shares a device with vkomp does not call them.
//
// A device that vkomp has opened has the features that vkomp needs. vgpu's textures need more:
// samplerAnisotropy, and the features of descriptor indexing. A program that uses textures
// makes the device itself and has vkomp adopt it.
package vgpu
