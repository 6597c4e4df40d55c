// Package rawvulkan is plain Vulkan for vkomp-demo bench to be measured against: what a careful
// program in C makes of the same launches, copies and fills, by the same kernels.
//
// Before any clock runs, [Open] and the methods of [Device] prepare with package vk what such a
// program would have: a device with one queue, pipelines, buffers. What is measured is C that
// calls the driver's own functions:
//
//	Batch.Record    begin, for each launch bind and dispatch, barriers between, end
//	Batch.Run       that, one vkQueueSubmit, one vkWaitSemaphores
//	Batch.RunEach   all of it for each launch by itself
//	Device.CopyIn   memcpy where the host caches device memory, else through staging memory
//
// Every launch binds all of its buffers, by push descriptors where the device has them, and pushes
// its constants. The pipeline is bound where it changes. Commands know their order beforehand: the
// caller says after which launches a barrier stands, which nobody has to find out.
//
// A Device belongs to one goroutine at a time. Without cgo, Open returns an error that says so.
package rawvulkan
