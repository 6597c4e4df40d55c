package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/interop"
)

// InteropInit is an interop construct with an init clause (OpenMP 5.1 §2.15.1).
type InteropInit struct {
	// Device is the device clause; the zero Device is the default device.
	Device Device
	// Types are the interop types, at least one.
	Types interop.Types
	// Prefer is the prefer_type modifier, best first. Vulkan is the one foreign
	// runtime that vkomp supports: where it is not among those preferred, the
	// object is Vulkan's all the same, as OpenMP leaves the choice then to the
	// implementation.
	Prefer []interop.Preference
}

// InteropInit returns a new interop object (OpenMP interop construct, init
// clause): with type target it gives access to the device's Vulkan handles, and
// opens the device if need be. The handles stay the runtime's; they are valid
// until InteropDestroy, or Close at the latest.
//
// What cannot be initialised is interop.None and no error, as OpenMP has it: any
// object of the initial device, one with type targetsync, one of a device that
// cannot be opened. The log says which it was.
func (rt *Runtime) InteropInit(ctx context.Context, i InteropInit) (interop.Object, error) {
	o, err := rt.interopInit(ctx, &i)
	if err != nil {
		return interop.None, fmt.Errorf("vkomp: interop init: %w", err)
	}
	return o, nil
}

func (rt *Runtime) interopInit(ctx context.Context, i *InteropInit) (interop.Object, error) {
	if err := rt.construct(ctx); err != nil {
		return interop.None, err
	}
	if err := interop.CheckInit(i.Types, i.Prefer); err != nil {
		return interop.None, fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	d, err := rt.resolve(rt.current(ctx), i.Device, condAbsent)
	if err != nil {
		return interop.None, err
	}
	none := func(why any) (interop.Object, error) {
		rt.log.Warn("interop object is none", "device", d.number, "types", i.Types, "reason", why)
		return interop.None, nil
	}
	switch {
	case d.physical == nil:
		return none("the initial device has no foreign runtime")
	case i.Types&interop.TypeTargetSync != 0:
		return none("targetsync is not supported")
	}
	if _, err := d.open(); errors.Is(err, ErrClosed) {
		return interop.None, err
	} else if err != nil {
		return none(err)
	}
	return d.interop().Init(i.Types), nil
}

// InteropDestroy ends an interop object, with all its copies, and sets *o to
// interop.None (OpenMP interop construct, destroy clause). When *o is None
// already it does nothing; another copy of a destroyed object, and an object of
// another runtime, are ErrInvalidArgument.
func (rt *Runtime) InteropDestroy(ctx context.Context, o *interop.Object) error {
	if err := rt.interopDestroy(ctx, o); err != nil {
		return fmt.Errorf("vkomp: interop destroy: %w", err)
	}
	return nil
}

func (rt *Runtime) interopDestroy(ctx context.Context, o *interop.Object) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	switch {
	case o == nil:
		return fmt.Errorf("%w: no object", ErrInvalidArgument)
	case *o == interop.None:
		return nil
	}
	for _, d := range rt.devices {
		made := d.interop()
		if made == nil || !made.Owns(*o) {
			continue
		}
		if err := made.Destroy(*o); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidArgument, err)
		}
		*o = interop.None
		return nil
	}
	return fmt.Errorf("%w: the object is of another runtime", ErrInvalidArgument)
}
