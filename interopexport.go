package vkomp

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/memory"
)

// InteropBuffer returns where the size bytes from p on lie on the object's device, so that
// foreign code can use them without a copy. p points to memory of the device, or is a HostPtr
// of storage that is mapped there. Size 0 means the rest of the memory or of the slice. For a value
// that is mapped as an image (see [Mapper]) a HostPtr is ErrPartialOverlap, because the image has other
// bytes: [Device.MappedPtr] returns the pointer to it.
//
// An object that was destroyed, is [interop.None] or belongs to another runtime is
// ErrInvalidArgument, memory of another device ErrInvalidDevice. A slice that is not mapped there is
// ErrNotPresent, one of which only a part is mapped ErrPartialOverlap. A pointer that is nil or points
// into freed memory, and bytes past the end of the memory or of the slice, are ErrInvalidPointer.
//
// From then on the runtime assumes that foreign work of the device's objects may write there:
// after a construct with a task (NoWait or Depend), tasks and copies to the host see what was
// written before it. A task that such a construct follows has made its copies of these bytes to
// the host before foreign work behind the construct begins, if InteropBuffer was called before
// the construct. The buffer is valid until the storage is unmapped, disassociated or freed.
func (rt *Runtime) InteropBuffer(o interop.Object, p DevicePtr, size uint64) (interop.Buffer, error) {
	b, err := rt.interopBuffer(o, &p, size)
	if err != nil {
		return interop.Buffer{}, fmt.Errorf("vkomp: interop buffer: %w", err)
	}
	return b, nil
}

func (rt *Runtime) interopBuffer(o interop.Object, p *DevicePtr, size uint64) (b interop.Buffer, err error) {
	if err := rt.open(); err != nil {
		return b, err
	}
	owner := rt.ownerOf(o)
	if o.Types() == 0 || owner == nil {
		return b, fmt.Errorf("%w: %v was destroyed, or is of another runtime", ErrInvalidArgument, o)
	}
	if err := rt.owns(p); err != nil {
		return b, err
	}
	s := rt.devices[owner.Number].opened()
	if s == nil {
		return b, ErrClosed
	}
	switch {
	case p.d != nil && p.d.number != owner.Number:
		return b, fmt.Errorf("%w: %v is no memory of device %d, to which %v belongs", ErrInvalidDevice, *p, owner.Number, o)
	case p.d != nil:
		r, address, err := s.ExportPointer(p.p, size)
		return interop.Buffer{Buffer: r.Buffer, Offset: r.Offset, Size: r.Size, Address: address}, err
	case p.host.Ptr == nil:
		return b, fmt.Errorf("%w: %v: want memory of device %d, or HostPtr of what is mapped there", ErrInvalidPointer, *p, owner.Number)
	}
	if left := int64(p.host.Size) - p.at; p.at < 0 || left < 0 || size > uint64(left) {
		return b, fmt.Errorf("%w: %d bytes at %v are not all in the slice", ErrInvalidPointer, size, *p)
	} else if size == 0 {
		size = uint64(left)
	}
	section := memory.Section{Ptr: unsafe.Add(p.host.Ptr, p.at), Size: size}
	r, address, err := s.Export(section)
	return interop.Buffer{Buffer: r.Buffer, Offset: r.Offset, Size: r.Size, Address: address}, err
}

// InteropSemaphoreFd returns a file descriptor of the semaphore of an object with targetsync
// (VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT), which the caller has to close. Other
// VkDevices of the same driver and the same GPU can use it to order their work, as foreign work
// of the explicit protocol. If the device cannot export timeline semaphores, the error is
// ErrUnsupported.
func (rt *Runtime) InteropSemaphoreFd(o interop.Object) (fd int, err error) {
	fd, err = rt.interopSemaphoreFd(o)
	if err != nil {
		return -1, fmt.Errorf("vkomp: interop semaphore: %w", err)
	}
	return fd, nil
}

func (rt *Runtime) interopSemaphoreFd(o interop.Object) (fd int, err error) {
	if err := rt.open(); err != nil {
		return -1, err
	}
	owner := rt.ownerOf(o)
	semaphore, ok := o.Semaphore()
	if !ok || owner == nil {
		return -1, fmt.Errorf("%w: %v has no semaphore of this runtime", ErrInvalidArgument, o)
	}
	_, v, err := Device{rt.devices[owner.Number]}.vulkanOf(context.Background())
	if err != nil {
		return -1, err
	}
	if !v.Properties().Features.ExternalTimelineFd {
		return -1, fmt.Errorf("%w: device %d cannot export timeline semaphores (VK_KHR_external_semaphore_fd)", ErrUnsupported, owner.Number)
	}
	fd, err = v.ExportSemaphore(semaphore)
	return fd, vulkanError(err)
}
