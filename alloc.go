package vkomp

import (
	"context"
	"fmt"
)

// Alloc returns new memory of the device (OpenMP 4.5 omp_target_alloc): size bytes,
// aligned to 8 bytes at least, with any contents. [Device.Free] ends it; what is left
// at Runtime.Close is an error there. On the initial device it is Go memory.
//
// A size of 0 gives nil and no error (OpenMP 6.0); a negative one is
// ErrInvalidArgument. ErrOutOfMemory says how much was asked for and is in use.
func (d Device) Alloc(ctx context.Context, size int) (DevicePtr, error) {
	p, err := d.alloc(ctx, size)
	if err != nil {
		return DevicePtr{}, fmt.Errorf("vkomp: alloc: %w", err)
	}
	return p, nil
}

func (d Device) alloc(ctx context.Context, size int) (DevicePtr, error) {
	rt, err := d.runtime()
	if err != nil {
		return DevicePtr{}, err
	}
	if err := rt.construct(ctx); err != nil {
		return DevicePtr{}, err
	}
	rt.using.RLock()
	defer rt.using.RUnlock()
	switch {
	case size < 0:
		return DevicePtr{}, fmt.Errorf("%w: %d bytes", ErrInvalidArgument, size)
	case size == 0:
		return DevicePtr{}, nil
	case d.IsInitial():
		block, err := rt.hostMemory.alloc(uint64(size))
		if err != nil {
			return DevicePtr{}, err
		}
		return DevicePtr{d: d.d, block: block}, nil
	}
	s, err := d.d.open()
	if err != nil {
		return DevicePtr{}, err
	}
	p, err := s.Allocate(uint64(size))
	if err != nil {
		return DevicePtr{}, err
	}
	rt.race.allocated(d.d, p, uint64(size))
	return DevicePtr{d: d.d, p: p}, nil
}

// Free ends memory from [Device.Alloc] (OpenMP 4.5 omp_target_free). It does not
// wait: tasks that were generated before and use the memory keep it until they are
// complete. Of later uses of p each is ErrInvalidPointer, a second Free too. Nil is
// ignored.
//
// A pointer that is not to the beginning of a live allocation is ErrInvalidPointer,
// which names the allocation that it falls in; memory that host storage is
// associated with is ErrBusy until [Device.DisassociatePtr]; a pointer of another
// device is ErrInvalidDevice.
func (d Device) Free(ctx context.Context, p DevicePtr) error {
	if err := d.free(ctx, &p); err != nil {
		return fmt.Errorf("vkomp: free: %w", err)
	}
	return nil
}

func (d Device) free(ctx context.Context, p *DevicePtr) error {
	rt, err := d.runtime()
	if err != nil {
		return err
	}
	if err := rt.construct(ctx); err != nil {
		return err
	}
	rt.using.RLock()
	defer rt.using.RUnlock()
	switch {
	case p.IsNil():
		return nil
	case p.d == nil:
		return fmt.Errorf("%w: %v is host storage, not memory from Alloc", ErrInvalidPointer, *p)
	case p.d != d.d:
		return d.notOf(p)
	case d.IsInitial():
		return rt.hostMemory.free(p)
	}
	s, err := d.d.open()
	if err != nil {
		return err
	}
	return s.Free(p.p)
}

// notOf is the error of a pointer that is not one of d.
func (d Device) notOf(p *DevicePtr) error {
	if p.d != nil && p.d.rt != d.d.rt {
		return fmt.Errorf("%w: %v belongs to another runtime", ErrInvalidDevice, *p)
	}
	return fmt.Errorf("%w: %v is no memory of device %d", ErrInvalidDevice, *p, d.d.number)
}

// IsAccessible reports whether the device can access all size bytes from p on
// (OpenMP 6.0 omp_target_is_accessible): p points into memory of the device that
// is live and goes on for size bytes, or into that much of a slice and the device
// is the initial one. When it says yes that is so until the memory is freed; it
// says no for nil, and for a size that is not positive.
func (d Device) IsAccessible(p DevicePtr, size int) bool {
	if d.d == nil || size <= 0 || d.d.rt.open() != nil {
		return false
	}
	at, err := d.d.rt.endpoint(&p, 0, uint64(size))
	switch {
	case err != nil:
		return false
	case d.IsInitial():
		return at.d == nil
	case at.d != d.d:
		return false
	}
	s := d.d.opened()
	return s != nil && s.Accessible(at.p, uint64(size))
}
