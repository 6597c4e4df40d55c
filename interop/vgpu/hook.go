package vgpu

// #cgo CFLAGS: -std=c11
// #cgo LDFLAGS: -Wl,--allow-multiple-definition
// #include <stdlib.h>
// #include "hook.h"
import "C"

import (
	"errors"
	"runtime/cgo"
	"sync"
	"unsafe"

	"github.com/goki/vulkan"
	"github.com/vkomp/vkomp/interop"
)

//export vkvgpuLock
func vkvgpuLock(device C.uintptr_t) { cgo.Handle(device).Value().(*Device).queue.Lock.Lock() }

//export vkvgpuUnlock
func vkvgpuUnlock(device C.uintptr_t) { cgo.Handle(device).Value().(*Device).queue.Lock.Unlock() }

// binding has the functions of vgpu's binding of Vulkan, which are variables of the process.
var binding struct {
	mu    sync.Mutex
	ready bool
}

// bind gives vgpu's binding its functions, once. They are resolved from an instance as vkomp
// has done before, so that the table gets the values that it has, except for the hooked
// functions. The binding's Init, without an instance, would clear the table first.
func bind(h interop.Handles) error {
	binding.mu.Lock()
	defer binding.mu.Unlock()
	if binding.ready {
		return nil
	}
	hooked := C.vkvgpu_install(pointer(h.GetInstanceProcAddr), pointer(h.Instance))
	if hooked == nil {
		return errors.New("the Vulkan loader lacks functions of Vulkan 1.0")
	}
	vulkan.SetGetInstanceProcAddr(hooked)
	if err := vulkan.InitInstance(dispatchable[vulkan.Instance](h.Instance)); err != nil {
		return err
	}
	binding.ready = true
	return nil
}

// dispatchable turns an address into one of the binding's types for dispatchable handles, which
// are pointers that the garbage collector does not follow.
func dispatchable[H any](address uintptr) H { return *(*H)(unsafe.Pointer(&address)) }

// handle turns a 64-bit number into one of the binding's types for non-dispatchable handles.
func handle[H any](name uint64) H { return *(*H)(unsafe.Pointer(&name)) }

// pointer turns a C address into a pointer that can be passed on. It must not be an address in
// Go's heap.
func pointer(address uintptr) unsafe.Pointer { return dispatchable[unsafe.Pointer](address) }
