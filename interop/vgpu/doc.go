// Package vgpu runs goki/vgpu on a device of vkomp's, so that what vkomp's target tasks
// compute in a mapped slice is what vgpu draws, without a copy and without a wait of the
// host:
//
//	vkomp   step ─▶ step ─▶ interop(use) ───────▶ interop(use) ─▶ step ─▶ …
//	                            │ before            ▲ after
//	vgpu                        └─▶ render pass ────┘      on the same VkBuffer
//
// An interop object with the types target and targetsync gives [Open] the device, and the
// order: what [Device.Submit] submits is a foreign task of that object. vgpu's render
// passes are recorded as ever and submitted by Submit; never by vgpu's own calls, which wait
// for the queue.
//
// vgpu panics on errors, holds no locks, and takes the device for its own. All of its code
// therefore runs inside [Device.Do], which makes an error of a panic, lets one goroutine in
// at a time, and keeps vgpu from destroying the device, from submitting while vkomp does,
// and from waiting for queues that are not its own. Code of vgpu outside Do is not kept
// from any of it.
//
// vgpu's binding of Vulkan and vkomp's have the same names in C. The program is linked with
// -Wl,--allow-multiple-definition, which GNU's linkers and LLVM's know, and has one table of
// Vulkan's functions for both.
//
// A call of vgpu.Init, of vgpu.InitNoDisplay, or of vgpu.GPU's Config would write into that
// table while vkomp uses it: a program that shares a device with vkomp makes none.
//
// A device that vkomp has opened has the features that vkomp needs. vgpu's textures need more,
// samplerAnisotropy and those of descriptor indexing: a program that uses them makes the
// device itself and has vkomp adopt it.
package vgpu
