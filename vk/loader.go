//go:build cgo

package vk

// #cgo CFLAGS: -std=c11
// #cgo linux LDFLAGS: -ldl
// #include <stdlib.h>
// #include "vko.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// loader is the Vulkan library of the process. It is found once and never unloaded,
// because vulkan-go keeps its functions in process-wide variables.
var loader struct {
	mu            sync.Mutex
	address       uintptr // of vkGetInstanceProcAddr; 0: not found yet
	instanceReady bool    // vulkan-go has resolved its instance functions
}

// libraryNames returns the names of the Vulkan loader in the order in which to try them.
func libraryNames(goos string) []string {
	switch goos {
	case "windows":
		return []string{"vulkan-1.dll"}
	case "darwin", "ios":
		return []string{"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"}
	}
	// The unversioned name is usually only there with the development package.
	return []string{"libvulkan.so.1", "libvulkan.so"}
}

// loadVulkan initializes vulkan-go with the process's loader and returns a
// vkGetInstanceProcAddr: given if that is not 0, else the loader's own. The first
// successful call decides which loader it is. A failure is not remembered.
func loadVulkan(given uintptr) (uintptr, error) {
	loader.mu.Lock()
	defer loader.mu.Unlock()
	if loader.address != 0 {
		if given == 0 {
			return loader.address, nil
		}
		if C.vko_same_loader(C.uintptr_t(loader.address), C.uintptr_t(given)) == 0 {
			return 0, fmt.Errorf("%w: GetInstanceProcAddr %#x is of another Vulkan library than the one in use",
				ErrUnsupported, given)
		}
		return given, nil
	}
	address := given
	if given == 0 {
		var err error
		if address, err = findLibrary(libraryNames(runtime.GOOS)); err != nil {
			return 0, err
		}
	}
	vulkan.SetGetInstanceProcAddr(pointer(address))
	if err := vulkan.Init(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	loader.address = address
	return address, nil
}

func findLibrary(names []string) (uintptr, error) {
	var tried []string
	for _, name := range names {
		library := C.CString(name)
		var why [256]C.char
		address := uintptr(C.vko_load(library, &why[0], C.size_t(len(why))))
		C.free(unsafe.Pointer(library))
		if address != 0 {
			return address, nil
		}
		tried = append(tried, name+" ("+C.GoString(&why[0])+")")
	}
	return 0, fmt.Errorf("%w: no Vulkan loader: tried %s", ErrUnsupported, strings.Join(tried, ", "))
}

// initInstance makes vulkan-go resolve its instance functions with the first instance of
// the process. The loader's entry points serve every instance, and resolving them again
// would write variables through which other goroutines call.
func initInstance(handle uintptr) error {
	loader.mu.Lock()
	defer loader.mu.Unlock()
	if loader.instanceReady {
		return nil
	}
	if err := vulkan.InitInstance(dispatchable[vulkan.Instance](handle)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	loader.instanceReady = true
	return nil
}

// dispatchable turns an address into one of vulkan-go's dispatchable handle types. They
// are pointers to types that the garbage collector does not follow.
func dispatchable[H any](address uintptr) H { return *(*H)(unsafe.Pointer(&address)) }

// handle turns a 64-bit name into one of vulkan-go's non-dispatchable handle types,
// which have 64 bits on every platform.
func handle[H any](name uint64) H { return *(*H)(unsafe.Pointer(&name)) }

// address is the inverse of dispatchable.
func address[H any](h H) uintptr { return *(*uintptr)(unsafe.Pointer(&h)) }

// name is the inverse of handle.
func name[H any](h H) uint64 { return *(*uint64)(unsafe.Pointer(&h)) }

// pointer turns a C address into a pointer; it must not be an address in Go's heap.
func pointer(address uintptr) unsafe.Pointer { return dispatchable[unsafe.Pointer](address) }

// faultError turns an error reported by the C code into a Go error; op is the Go method.
func faultError(op string, f *C.vko_fault) error {
	// Read in Go, because passing its address to C would make every fault escape to the heap.
	bytes := (*[len(f.detail)]byte)(unsafe.Pointer(&f.detail))
	end := max(0, slices.Index(bytes[:], 0))
	detail := string(bytes[:end])
	if f.call == nil {
		return invalid(op, "%s", detail)
	}
	return &Error{Op: C.GoString(f.call), Result: Result(f.result), Detail: detail}
}

// fault is faultError for a call that uses the device.
func (d *Device) fault(op string, f *C.vko_fault) error {
	d.noteLoss(Result(f.result))
	return faultError(op, f)
}

// startError makes an error of creating an instance match ErrUnsupported if it means
// that the machine has no working driver. Which call fails then depends on the drivers:
// if drivers are installed but find no device, the loader creates an instance and
// vkEnumeratePhysicalDevices fails.
func startError(err error) error {
	var e *Error
	if errors.As(err, &e) && (e.Result == ErrorIncompatibleDriver || e.Result == ErrorInitialization) {
		return fmt.Errorf("%w: no Vulkan driver: %w", ErrUnsupported, err)
	}
	return err
}
