package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
)

// Alloc allocates size bytes of device memory with undefined contents, aligned to at least
// 8 bytes (OpenMP 4.5 omp_target_alloc). [Device.Free] frees it; memory that is not freed
// before Runtime.Close is an error there. On the initial device it is Go memory.
//
// A size of 0 gives nil and no error (OpenMP 6.0); a negative one is ErrInvalidArgument.
// An ErrOutOfMemory says how much was asked for and how much is in use.
func (d Device) Alloc(ctx context.Context, size int) (p DevicePtr, err error) {
	if err = d.alloc(ctx, size, &p); err != nil {
		return DevicePtr{}, fmt.Errorf("vkomp: alloc: %w", err)
	}
	return p, nil
}

// alloc sets p, which is nil, to the memory. DevicePtr is large, and copies of it would take a good part
// of the time.
func (d Device) alloc(ctx context.Context, size int, p *DevicePtr) error {
	rt, err := d.construct(ctx)
	if err != nil {
		return err
	}
	switch {
	case size < 0:
		return fmt.Errorf("%w: %d bytes", ErrInvalidArgument, size)
	case size == 0:
		return nil
	}
	if s := d.ready(rt); s != nil && d.allocate(s, uint64(size), p) == nil {
		return nil
	}
	defer rt.using.leave(rt.using.enter())
	s, err := d.d.open()
	if err != nil {
		return err
	}
	if events := rt.events.Load(); events != nil {
		*p, err = d.allocateObserved(ctx, events, uint64(size), func() (p DevicePtr, err error) {
			err = d.allocate(s, uint64(size), &p)
			return p, err
		})
		return err
	}
	return d.allocate(s, uint64(size), p)
}

// ready returns the scheduler of an open device if no listener has to hear of an allocation or a release, or nil. Such
// a call is made without rt.using at first. It either gets the scheduler's lock before a pause does, or it fails because
// the pause has closed the scheduler. The caller then makes it again with rt.using, which waits for the end of the pause.
func (d Device) ready(rt *Runtime) *sched.Scheduler {
	if rt.events.Load() != nil {
		return nil
	}
	return d.d.live.Load()
}

// allocate allocates with s, or on the initial device if s is nil.
func (d Device) allocate(s *sched.Scheduler, size uint64, p *DevicePtr) (err error) {
	if s == nil {
		p.block, err = d.d.rt.hostMemory.alloc(size)
	} else {
		p.p, err = s.Allocate(size)
	}
	if err == nil {
		p.d = d.d
	}
	return err
}

// allocateObserved calls allocate and announces it to listeners.
func (d Device) allocateObserved(ctx context.Context, events *observe.Listeners, size uint64, allocate func() (DevicePtr, error)) (p DevicePtr, err error) {
	op := ompt.DataOp{Type: ompt.TargetDataAlloc, SrcDeviceNum: ompt.NoDevice, DestDeviceNum: d.d.number, Bytes: size}
	e := d.storageEvent(ctx, events, "alloc", op)
	err = events.Storage(e, func() (err error) {
		p, err = allocate()
		e.Op.DestAddr, e.Pointer = uint64(p.block.address)+p.p.Address, p.p
		return err
	})
	return p, err
}

// storageEvent returns the event of a memory routine that generates no task.
func (d Device) storageEvent(ctx context.Context, events *observe.Listeners, label string, op ompt.DataOp) *observe.Storage {
	e := &observe.Storage{Label: label, Device: d.d.number, Op: op}
	c := d.d.rt.current(ctx)
	c.origin(events, &e.Origin)
	return e
}

// Free frees memory from [Device.Alloc] (OpenMP 4.5 omp_target_free). It does not wait:
// tasks that were generated before and use the memory keep it until they are complete, except
// that a copy between two Vulkan devices fails, even if a part of it is copied already: see
// [Runtime.MemcpyAsync]. Any later use of p is ErrInvalidPointer, including a second Free. Nil
// is ignored. That ctx has ended does not matter: Free can be deferred.
//
// A pointer that is not to the beginning of a live allocation is ErrInvalidPointer; the
// error names the allocation that it points into. Memory with which host storage is
// associated, and host storage that is associated, if d is the initial device, is ErrBusy
// until [Device.DisassociatePtr]. A pointer of another device is ErrInvalidDevice.
func (d Device) Free(ctx context.Context, p DevicePtr) error {
	if err := d.free(ctx, &p); err != nil {
		return fmt.Errorf("vkomp: free: %w", err)
	}
	return nil
}

func (d Device) free(ctx context.Context, p *DevicePtr) error {
	rt, err := d.usable(ctx)
	if err != nil {
		return err
	}
	switch {
	case p.IsNil():
		return nil
	case p.d == nil:
		return fmt.Errorf("%w: %v is host storage, not memory from Alloc", ErrInvalidPointer, *p)
	case p.d != d.d:
		return d.wrongDevice(p)
	}
	if s := d.ready(rt); s != nil && d.release(s, p) == nil {
		return nil
	}
	defer rt.using.leave(rt.using.enter())
	s, err := d.d.open()
	if err != nil {
		return err
	}
	if events := rt.events.Load(); events != nil {
		return d.freeObserved(ctx, events, s, p)
	}
	return d.release(s, p)
}

// release frees memory allocated with s, or on the initial device if s is nil.
func (d Device) release(s *sched.Scheduler, p *DevicePtr) error {
	if s == nil {
		return d.d.rt.hostMemory.free(p)
	}
	return s.Free(p.p)
}

// freeObserved announces a release to listeners and calls release.
func (d Device) freeObserved(ctx context.Context, events *observe.Listeners, s *sched.Scheduler, p *DevicePtr) (err error) {
	what := *p
	op := ompt.DataOp{Type: ompt.TargetDataDelete, SrcDeviceNum: ompt.NoDevice, DestDeviceNum: d.d.number}
	if s == nil {
		op.DestAddr = uint64(p.block.address)
		op.Bytes, err = d.d.rt.hostMemory.freeable(p)
	} else {
		op.DestAddr = p.p.Address
		op.Bytes, err = s.Freeable(p.p)
	}
	if err != nil {
		return err
	}
	return events.Storage(d.storageEvent(ctx, events, "free", op), func() error { return d.release(s, &what) })
}

// wrongDevice returns the error for a pointer that does not belong to d.
func (d Device) wrongDevice(p *DevicePtr) error {
	if p.IsNil() {
		return fmt.Errorf("%w: the device pointer is nil", ErrInvalidPointer)
	}
	if p.d != nil && p.d.rt != d.d.rt {
		return fmt.Errorf("%w: %v belongs to another runtime", ErrInvalidDevice, *p)
	}
	return fmt.Errorf("%w: %v is no memory of device %d", ErrInvalidDevice, *p, d.d.number)
}

// IsAccessible reports whether the device can access all of the size bytes from p (OpenMP
// 6.0 omp_target_is_accessible): p points into live memory of the device that has that many
// bytes left, or into such a slice if the device is the initial one. True remains valid
// until the memory is freed or the device is lost. It is false for nil and for a size that
// is not positive.
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
