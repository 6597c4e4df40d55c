package vkomp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
)

// Pinned is host storage that devices access themselves (the allocator trait pinned of OpenMP
// 5.0): maps, updates and copies between Slice, or parts of it, and the memory of a device need
// no staging memory, and a map with [Arg.Self] lets kernels work on it in place. It is an
// ordinary slice for everything else.
//
// AllocPinned and Pin make it, for some devices; for the other devices its storage is like any
// other. To pin storage, or to allocate it, takes about as long as to copy it, so it pays for
// storage that is copied often.
//
// While a task that copies is not complete, the device itself may read or write the storage at
// any time, as OpenMP allows: tasks that are ordered by depend clauses see no difference.
type Pinned[T any] struct {
	slice   []T
	storage *pinnedStorage
}

// AllocPinned allocates n elements of zero host storage that the devices can access, that of the
// current task's default device if none is given (OpenMP 5.0 omp_alloc with the pinned trait;
// OpenMP 6.0 omp_get_devices_and_host_allocator). Type T must not contain Go pointers. The
// storage is not freed before [Pinned.Free], and storage that is not freed before Runtime.Close
// is an error there.
//
// The storage is Go memory that the devices import (VK_EXT_external_memory_host). If a device
// cannot import it and is the only one, its driver allocates the storage, outside of Go's heap:
// then no slice of it may be used after Free or Close, and the device cannot be paused by
// PauseHard before Free. If it is one of several, the error is ErrUnsupported and names it.
//
// On the initial device the storage is plain Go memory. With n = 0 there is none. A negative n
// and a T with Go pointers are ErrInvalidArgument; an ErrOutOfMemory says how much was asked
// for.
func AllocPinned[T any](ctx context.Context, rt *Runtime, n int, devices ...Device) (*Pinned[T], error) {
	var zero T
	size, elem := unsafe.Sizeof(zero), reflect.TypeFor[T]()
	if n < 0 || size > 0 && uint64(n) > uint64(maxBytes/size) {
		return nil, fmt.Errorf("vkomp: alloc pinned: %w: %d elements of %v", ErrInvalidArgument, n, elem)
	}
	storage, err := rt.allocPinned(ctx, uint64(n)*uint64(size), elem, devices)
	if err != nil {
		return nil, fmt.Errorf("vkomp: alloc pinned: %w", err)
	}
	p := &Pinned[T]{storage: storage}
	if storage == nil {
		p.slice = make([]T, n)
	} else {
		p.slice = unsafe.Slice((*T)(storage.section.Ptr), n)
	}
	return p, nil
}

// Pin gives the devices access to the storage of s until [Pinned.Free], or else the Close of the
// runtime: that of the current task's default device if none is given. The slice stays
// reachable until then. The whole pages on which it lies are imported
// (VK_EXT_external_memory_host); on a device without robustBufferAccess2, a kernel that exceeds
// the bounds of an argument made with Self can access other data on them.
//
// Storage of which some is pinned already is ErrBusy, as is storage that a device shares with
// the host at the moment, because of Self or since a large target uses it in place. If
// only a part of what is mapped, associated or declared on a device would be pinned, that is
// ErrPartialOverlap, because constructs find a slice pinned as a whole or not at all. A device
// that cannot import the storage is ErrUnsupported, unless the driver has another reason. After
// an error nothing is pinned. A slice of no bytes is accepted.
func Pin[T any](ctx context.Context, rt *Runtime, s []T, devices ...Device) (*Pinned[T], error) {
	section := sectionOf(s)
	escape(section.Ptr)
	storage, err := rt.pin(ctx, section, reflect.TypeFor[T](), devices)
	if err != nil {
		return nil, fmt.Errorf("vkomp: pin: %w", err)
	}
	return &Pinned[T]{slice: s, storage: storage}, nil
}

// Slice returns the storage as a slice, nil after Free. That of a nil Pinned is nil.
func (p *Pinned[T]) Slice() []T {
	if p == nil || p.storage != nil && p.storage.state.Load() == pinnedFreed {
		return nil
	}
	return p.slice
}

// Free ends the devices' access to the storage (OpenMP 5.0 omp_free). Storage of AllocPinned is
// given back, and no slice of it may be used any more; that of Pin stays the program's. That ctx
// has ended does not matter: Free can be deferred.
//
// Free is ErrBusy, and nothing has changed, while some of the storage is mapped on the devices or
// tasks of theirs that were generated are not complete and use it. If the device's driver has
// allocated the storage, that holds for maps on all devices, and for fills, copies from host to
// host and target regions on the host. Tasks of other devices that are to map or copy the
// storage do not count: wait for them. Storage of which some is declared (DeclareTarget) is
// ErrBusy until Close, which does not report it. A second Free is ErrInvalidPointer. Free of a
// nil Pinned does nothing.
func (p *Pinned[T]) Free(ctx context.Context) error {
	if p == nil || p.storage == nil {
		return nil
	}
	if err := p.storage.free(ctx); err != nil {
		return fmt.Errorf("vkomp: free pinned: %w", err)
	}
	return nil
}

// maxBytes is the largest size in bytes of a slice.
const maxBytes = ^uintptr(0) >> 1

// allocPinned allocates size bytes of pinned storage for elements of a type; nil if there are none.
func (rt *Runtime) allocPinned(ctx context.Context, size uint64, elem reflect.Type, devices []Device) (*pinnedStorage, error) {
	p, err := rt.newPinned(ctx, elem, devices)
	if err != nil || size == 0 {
		return nil, err
	}
	defer rt.using.leave(rt.using.enter())
	p.allocated = true
	unit := uintptr(hostAlignment)
	for _, d := range p.devices {
		unit = max(unit, uintptr(d.physical.Properties().Limits.MinImportedHostPointerAlignment))
	}
	if err := canReserve(size + 2*uint64(unit)); err != nil {
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrOutOfHostMemory, size, err)
	}
	p.section = pages(size, unit)
	err = rt.pinOn(p)
	if err == nil || len(p.devices) != 1 || errors.Is(err, ErrDeviceLost) {
		return p, err
	}
	// The driver's own memory does for one device, whatever keeps it from importing the host's.
	s, opening := p.devices[0].open()
	if opening != nil {
		return nil, opening
	}
	section, allocating := s.AllocatePinned(size)
	if allocating != nil {
		return nil, fmt.Errorf("%w; %w", err, allocating)
	}
	p.section, p.driver = section, true
	p.state.Store(pinnedLive)
	return p, rt.pinned.add(p)
}

// pages returns size bytes of Go memory that begin at a multiple of unit and have the rest of their
// last unit to themselves.
func pages(size uint64, unit uintptr) memory.Section {
	whole := (uintptr(size) + unit - 1) / unit * unit
	bytes := make([]byte, whole+unit)
	first := unsafe.Pointer(unsafe.SliceData(bytes))
	return memory.Section{Ptr: unsafe.Add(first, (unit-uintptr(first)%unit)%unit), Size: size}
}

// pin pins a section that has elements of a type; the result is nil for one without bytes.
func (rt *Runtime) pin(ctx context.Context, section memory.Section, elem reflect.Type, devices []Device) (*pinnedStorage, error) {
	p, err := rt.newPinned(ctx, elem, devices)
	if err != nil || section.Size == 0 {
		return nil, err
	}
	defer rt.using.leave(rt.using.enter())
	p.section = section
	return p, rt.pinOn(p)
}

// newPinned returns the record of storage with elements of a type that is to be pinned for some
// devices.
func (rt *Runtime) newPinned(ctx context.Context, elem reflect.Type, devices []Device) (*pinnedStorage, error) {
	if err := rt.construct(ctx); err != nil {
		return nil, err
	}
	if path := pointerPath(elem); path != "" {
		return nil, fmt.Errorf("%w: elements of %v hold Go pointers (%s), which mean nothing on a device", ErrInvalidArgument, elem, path)
	}
	p := &pinnedStorage{rt: rt}
	if rt.pinned.leakSites {
		p.site = memory.CallSite()
	}
	c := rt.current(ctx)
	if len(devices) == 0 {
		devices = []Device{{}}
	}
	for _, of := range devices {
		d, err := rt.resolve(c, of, condAbsent)
		if err != nil {
			return nil, err
		}
		p.addDevice(d)
	}
	// Free can hold the life of several devices, as DeclareTarget does in this order.
	slices.SortFunc(p.devices, func(a, b *device) int { return cmp.Compare(a.number, b.number) })
	return p, nil
}

// pinOn pins storage on its devices and adds it to what is pinned. After an error nothing has changed.
func (rt *Runtime) pinOn(p *pinnedStorage) error {
	if err := rt.pinned.add(p); err != nil {
		return err
	}
	var reserved []pinnedOn
	for _, d := range p.devices {
		var a *sched.PinnedStorage
		s, err := d.open()
		if err == nil {
			a, err = s.ReservePinned(p.section)
		}
		if err != nil {
			for _, r := range reserved {
				r.s.CancelPinned(r.storage)
			}
			rt.pinned.remove(p)
			return fmt.Errorf("device %d: %w", d.number, err)
		}
		reserved = append(reserved, pinnedOn{s, a})
	}
	for _, r := range reserved {
		r.s.ConfirmPinned(r.storage)
	}
	p.state.Store(pinnedLive)
	return nil
}
