package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
)

// AssociatePtr makes device memory the corresponding storage of host storage (OpenMP 4.5
// omp_target_associate_ptr): size bytes from host, a [HostPtr], correspond to the memory
// offset bytes past p, which is from [Device.Alloc]. The reference count is infinite: maps
// of the host storage find it present, copy only with Always, and remove nothing;
// [Runtime.TargetUpdate] copies. [Device.DisassociatePtr] ends the association. Until then
// the memory cannot be freed; it may still be used through p.
//
// Repeating an association does nothing and succeeds. Host storage that has other
// corresponding storage is ErrAssociated, or ErrPartialOverlap if only a part of it has. A
// size beyond the end of the slice or the memory is ErrInvalidPointer; one that is not
// positive, and a negative offset, are ErrInvalidArgument. The initial device, where host
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
	defer d.use()()
	s, section, err := d.correspondence(ctx, host, uint64(size))
	if err != nil {
		return err
	}
	switch {
	case p.IsNil():
		return fmt.Errorf("%w: the device pointer is nil", ErrInvalidPointer)
	case p.d != d.d:
		return d.wrongDevice(p)
	}
	section.Size = uint64(size)
	op := ompt.DataOp{Type: ompt.TargetDataAssociate, DestAddr: p.p.Address + uint64(offset), Bytes: section.Size}
	if err := d.observeAssociation(ctx, "associate", section, op, func() (uint64, error) {
		return 0, s.Associate(section, p.p, uint64(offset), "host")
	}); err != nil {
		return err
	}
	d.d.rt.race.associates(d.d, p.p.Add(int64(offset)), section)
	return nil
}

// DisassociatePtr ends an association (OpenMP 4.5 omp_target_disassociate_ptr); host points
// to the beginning of the associated storage. The memory and its contents stay as they
// are. It does not wait: tasks that were generated before and use the storage keep it until
// they are complete.
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
	defer d.use()()
	s, section, err := d.correspondence(ctx, host, 0)
	if err != nil {
		return err
	}
	op := ompt.DataOp{Type: ompt.TargetDataDisassociate}
	if d.d.rt.tool.Load() != nil {
		mapped, _ := s.MappedPointer(memory.Section{Ptr: section.Ptr})
		op.DestAddr = mapped.Address
	}
	if err := d.observeAssociation(ctx, "disassociate", section, op, func() (uint64, error) {
		return 0, s.Disassociate(memory.Section{Ptr: section.Ptr})
	}); err != nil {
		return err
	}
	d.d.rt.race.drops(d.d, section)
	return nil
}

// observeAssociation calls do, which begins or ends an association, and reports it to the tool if
// there is one.
func (d Device) observeAssociation(ctx context.Context, label string, host memory.Section, op ompt.DataOp, do func() (uint64, error)) error {
	rt := d.d.rt
	t := rt.tool.Load()
	if t == nil {
		_, err := do()
		return err
	}
	op.SrcAddr, op.SrcDeviceNum, op.DestDeviceNum = uint64(host.Start()), rt.NumDevices(), d.d.number
	return t.storageRoutine(rt.current(ctx), d.d.number, label, op, do)
}

// correspondence returns the device's scheduler and the host storage from host, which has
// at least size bytes.
func (d Device) correspondence(ctx context.Context, host *DevicePtr, size uint64) (*sched.Scheduler, memory.Section, error) {
	fail := func(err error) (*sched.Scheduler, memory.Section, error) { return nil, memory.Section{}, err }
	rt, err := d.runtime()
	if err != nil {
		return fail(err)
	}
	if err := rt.construct(ctx); err != nil {
		return fail(err)
	}
	if d.IsInitial() {
		return fail(fmt.Errorf("%w: on the initial device host storage corresponds to itself", ErrInvalidDevice))
	}
	at, err := rt.endpoint(host, 0, size)
	switch {
	case err != nil:
		return fail(fmt.Errorf("the host pointer: %w", err))
	case at.d != nil:
		return fail(fmt.Errorf("%w: %v is no host pointer", ErrInvalidPointer, *host))
	case at.atEnd:
		return fail(fmt.Errorf("%w: %v is the end of its storage", ErrNotPresent, *host))
	}
	s, err := d.d.open()
	return s, at.host, err
}

// IsPresent reports whether the storage that host points into has corresponding storage on
// the device, by a map or by an association (OpenMP 4.5 omp_target_is_present). It is true
// for every host pointer on the initial device, and false for nil and on a lost device: see
// [Device.Lost].
func (d Device) IsPresent(host DevicePtr) bool { return !d.MappedPtr(host).IsNil() }

// MappedPtr returns the device address that corresponds to host, nil if there is none
// (OpenMP 5.1 omp_get_mapped_ptr). On the initial device it is host itself, on a lost device
// nil: see [Device.Lost]. The address is valid while the storage is mapped.
func (d Device) MappedPtr(host DevicePtr) DevicePtr {
	if d.d == nil || d.d.rt.open() != nil {
		return DevicePtr{}
	}
	at, err := d.d.rt.endpoint(&host, 0, 0)
	switch {
	case err != nil || at.d != nil:
		return DevicePtr{}
	case d.IsInitial():
		return host
	case at.atEnd:
		return DevicePtr{}
	}
	s := d.d.opened()
	if s == nil {
		return DevicePtr{}
	}
	p, ok := s.MappedPointer(memory.Section{Ptr: at.host.Ptr})
	if !ok {
		return DevicePtr{}
	}
	d.d.rt.race.points(d.d, p, at.host.Ptr)
	return DevicePtr{d: d.d, p: p}
}
