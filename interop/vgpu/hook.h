// What stands between vgpu's binding and the Vulkan loader; see hook.c.
#ifndef VKOMP_VGPU_HOOK_H
#define VKOMP_VGPU_HOOK_H

#include <stdint.h>

// vkvgpu_device is an adopted device; handle is 0 for none.
typedef struct vkvgpu_device {
	void *instance, *device, *queue; // VkInstance, VkDevice, VkQueue
	uintptr_t handle;                // a cgo.Handle of the Go side's *Device
} vkvgpu_device;

// vkvgpu_install takes the address of the loader's vkGetInstanceProcAddr and resolves
// from the instance what the hooks call. It returns the address that vgpu's binding gets
// in its place, NULL where a function is missing.
void *vkvgpu_install(void *get_instance_proc_addr, void *instance);

// vkvgpu_enter makes d the device whose vgpu code runs on the calling thread, and returns
// the one before.
vkvgpu_device vkvgpu_enter(vkvgpu_device d);

// vkvgpu_thread returns a number that names the calling thread among those that run, and is not 0.
uintptr_t vkvgpu_thread(void);

// vkvgpu_submit is vkQueueSubmit of one command buffer, without semaphores. It returns a
// VkResult. The caller holds the queue's lock.
int32_t vkvgpu_submit(void *queue, void *commands);

#endif
