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

// binding is vgpu's binding of Vulkan, which keeps its functions in variables of the
// process.
var binding struct {
	mu    sync.Mutex
	ready bool
}

// bind gives vgpu's binding its functions, once. They are resolved from an instance, as
// vkomp has done before: the table is written with the values that it has, but for those of
// the hooks. The binding's Init, without an instance, would clear it first.
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

// dispatchable turns an address into one of the binding's handle types, which are pointers
// that the garbage collector does not follow.
func dispatchable[H any](address uintptr) H { return *(*H)(unsafe.Pointer(&address)) }

// handle turns a 64-bit name into one of the binding's non-dispatchable handle types.
func handle[H any](name uint64) H { return *(*H)(unsafe.Pointer(&name)) }

// pointer makes a C address passable; it must not be an address in Go's heap.
func pointer(address uintptr) unsafe.Pointer { return dispatchable[unsafe.Pointer](address) }
