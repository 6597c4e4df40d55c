package vkomp

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
)

// AssociatePtr makes device memory the corresponding storage of host storage (OpenMP 4.5
// omp_target_associate_ptr): size bytes from host, a [HostPtr] or memory of the initial device, correspond to the memory
// offset bytes past p, which is from [Device.Alloc]. The reference count is infinite: maps
// of the host storage find it present, copy only with Always or Deleting, and remove nothing;
// [Runtime.TargetUpdate] copies. [Device.DisassociatePtr] ends the association. Until then
// the memory cannot be freed; it may still be used through p.
//
// Repeating an association does nothing and succeeds. Host storage that has other
// corresponding storage is ErrAssociated, or ErrPartialOverlap if only a part of it has, or is
// pinned. A size beyond the end of the slice or the memory is ErrInvalidPointer; one that is
// not positive, and a negative offset, are ErrInvalidArgument. The initial device, where host
// storage corresponds to itself, is ErrInvalidDevice.
func (d Device) AssociatePtr(ctx context.Context, host, p DevicePtr, size, offset int) error {
	if err := d.associate(ctx, &host, &p, size, offset); err != nil {
		return fmt.Errorf("vkomp: associate: %w", err)
	}
	return nil
}

func (d Device) associate(ctx context.Context, host, p *DevicePtr, size, offset int) error {
	if size <= 0 || offset < 0 {
		return fmt.Errorf("%w: %d bytes at offset %d", ErrInvalidArgument, size, offset)
	}
	defer d.use().end()
	if _, err := d.construct(ctx); err != nil {
		return err
	}
	s, section, err := d.correspondence(host, uint64(size))
	if err != nil {
		return err
	}
	if p.d != d.d {
		return d.wrongDevice(p)
	}
	section.Size = uint64(size)
	events := d.d.rt.events.Load()
	if events == nil {
		return d.makeAssociation(s, host, section, p.p, uint64(offset))
	}
	to := p.p
	op := ompt.DataOp{Type: ompt.TargetDataAssociate, DestAddr: to.Address + uint64(offset), Bytes: uint64(size)}
	e := d.associationEvent(ctx, events, "associate", section, op)
	e.Pointer = to.Add(int64(offset))
	from := *host
	return events.Storage(e, func() error { return d.makeAssociation(s, &from, e.Host, to, uint64(offset)) })
}

// makeAssociation associates a section, at host, with memory of the device, whose scheduler is s.
func (d Device) makeAssociation(s *sched.Scheduler, host *DevicePtr, section memory.Section, to sched.Pointer, offset uint64) error {
	associate := func() error { return s.Associate(section, to, offset, "host") }
	if host.d != nil { // memory of the initial device
		return d.d.rt.hostMemory.associate(host, associate)
	}
	return associate()
}

// associated returns an ErrBusy if some of the storage is associated with memory of a device, other than
// those in except.
func (rt *Runtime) associated(storage memory.Section, except []*device) error {
	for _, d := range rt.devices {
		// What is being opened has no associations yet.
		if s := d.live.Load(); s != nil && !slices.Contains(except, d) {
			if err := s.Associated(storage); err != nil {
				return fmt.Errorf("on device %d: %w", d.number, err)
			}
		}
	}
	return nil
}

// DisassociatePtr ends an association (OpenMP 4.5 omp_target_disassociate_ptr); host points
// to the beginning of the associated storage. The memory and its contents stay as they
// are. It does not wait, and that ctx has ended does not matter. Tasks that have begun use
// the memory until they are complete. A deferred task that has not begun finds no association
// when it does, and maps the host storage itself.
//
// Host storage without corresponding storage is ErrNotPresent, storage that is mapped
// rather than associated is ErrAssociated. Nil is ErrInvalidPointer.
func (d Device) DisassociatePtr(ctx context.Context, host DevicePtr) error {
	if err := d.disassociate(ctx, &host); err != nil {
		return fmt.Errorf("vkomp: disassociate: %w", err)
	}
	return nil
}

func (d Device) disassociate(ctx context.Context, host *DevicePtr) error {
	defer d.use().end()
	if _, err := d.usable(ctx); err != nil {
		return err
	}
	s, section, err := d.correspondence(host, 0)
	if err != nil {
		return err
	}
	start := memory.Section{Ptr: section.Ptr}
	events := d.d.rt.events.Load()
	if events == nil {
		return s.Disassociate(start)
	}
	mapped, size := s.MappedStorage(start)
	op := ompt.DataOp{Type: ompt.TargetDataDisassociate, DestAddr: mapped.Address, Bytes: size}
	e := d.associationEvent(ctx, events, "disassociate", section, op)
	return events.Storage(e, func() error { return s.Disassociate(start) })
}

// associationEvent returns the event of the beginning or the end of an association of
// host storage.
func (d Device) associationEvent(ctx context.Context, events *observe.Listeners, label string, host memory.Section, op ompt.DataOp) *observe.Storage {
	op.SrcAddr, op.SrcDeviceNum, op.DestDeviceNum = uint64(host.Start()), d.d.rt.NumDevices(), d.d.number
	e := d.storageEvent(ctx, events, label, op)
	e.Host = host
	return e
}

// correspondence returns the device's scheduler and the host storage from host, which has
// at least size bytes.
func (d Device) correspondence(host *DevicePtr, size uint64) (*sched.Scheduler, memory.Section, error) {
	fail := func(err error) (*sched.Scheduler, memory.Section, error) { return nil, memory.Section{}, err }
	rt := d.d.rt
	if d.IsInitial() {
		return fail(fmt.Errorf("%w: on the initial device host storage corresponds to itself", ErrInvalidDevice))
	}
	if host.onVulkan() && rt.owns(host) == nil {
		return fail(fmt.Errorf("%w: %v is no host pointer", ErrInvalidPointer, *host))
	}
	section, atEnd, err := rt.hostStorage(host, 0, size)
	switch {
	case err != nil:
		return fail(fmt.Errorf("the host pointer: %w", err))
	case atEnd:
		return fail(fmt.Errorf("%w: %v is the end of its storage", ErrNotPresent, *host))
	}
	s, err := d.d.open()
	return s, section, err
}

// IsPresent reports whether the storage that host points into has corresponding storage on
// the device, by a map or by an association (OpenMP 4.5 omp_target_is_present). It is true
// for every host pointer on the initial device, and false for nil and on a lost device: see
// [Device.Lost]. Storage of [Runtime.DeclareTarget] is present once the device has been used, and
// once it is used again after a hard pause.
func (d Device) IsPresent(host DevicePtr) bool {
	first, s, ok := d.resolveHost(&host)
	return ok && (s == nil || s.Present(first))
}

// MappedPtr returns the device address that corresponds to host, nil if there is none
// (OpenMP 5.1 omp_get_mapped_ptr). On the initial device it is host itself, on a lost device
// nil: see [Device.Lost]. The address is valid while the storage is mapped. Of a value with a [Mapper], only the
// first byte has one: that of the value's image.
func (d Device) MappedPtr(host DevicePtr) DevicePtr {
	first, s, ok := d.resolveHost(&host)
	switch {
	case !ok:
		return DevicePtr{}
	case s == nil:
		return host
	}
	p, ok := s.MappedPointer(first)
	if !ok {
		return DevicePtr{}
	}
	d.d.pointed(p, first.Ptr)
	return DevicePtr{d: d.d, p: p}
}

// resolveHost returns the first byte of the storage that host points to, as an empty section, and the
// scheduler of d, which knows what corresponds to it. The initial device, where the storage
// corresponds to itself, has none. It is not ok if nothing can correspond to host.
func (d Device) resolveHost(host *DevicePtr) (first memory.Section, s *sched.Scheduler, ok bool) {
	if d.d == nil || d.d.rt.open() != nil {
		return memory.Section{}, nil, false
	}
	if host.onVulkan() {
		return memory.Section{}, nil, false
	}
	section, atEnd, err := d.d.rt.hostStorage(host, 0, 0)
	if err != nil {
		return memory.Section{}, nil, false
	}
	if d.IsInitial() {
		return memory.Section{}, nil, true
	}
	s = d.d.opened()
	return memory.Section{Ptr: section.Ptr}, s, s != nil && !atEnd
}
