package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/traits"
	"github.com/vkomp/vkomp/vk"
)

// chooseDefault returns the initial value of the ICV default-device-var (OpenMP 6.0
// §4.3.8); the zero Device is omp_invalid_device.
func (rt *Runtime) chooseDefault() (Device, error) {
	d, err := rt.defaultByOptions()
	if err != nil {
		return Device{}, err
	}
	if rt.noDefault != "" {
		rt.log.Error("there is no default device: constructs without a device clause fail", "reason", rt.noDefault)
	} else if d.d.physical != nil && d.d.physical.Properties().Type == vk.DeviceSoftware {
		rt.log.Warn("the default device is a software driver", "device", d.Number(), "name", d.d.physical.Properties().Name)
	}
	return d, nil
}

// defaultByOptions chooses by Options.Device or, without that, by the environment. It sets
// noDefault if that gives no device.
func (rt *Runtime) defaultByOptions() (Device, error) {
	if selector := rt.options.Device; selector != "" {
		return rt.selected(selector)
	}
	n, list, mandatory := rt.NumDevices(), rt.icvs.defaultDevice, rt.icvs.offload == offloadMandatory
	choice, index := traits.ChooseDefault, 0
	if list != nil {
		described := make([]traits.Device, n+1)
		for i, d := range rt.devices {
			described[i] = d.traits
		}
		choice, index = list.Choose(described)
	}
	switch choice {
	case traits.ChooseDevice:
		return Device{rt.devices[index]}, nil
	case traits.ChooseInitial:
		return rt.InitialDevice(), nil
	case traits.ChooseInvalid:
		rt.noDefault = fmt.Sprintf("OMP_DEFAULT_DEVICE is %s", list)
	case traits.ChooseDefault:
		if n > 0 || !mandatory {
			return Device{rt.devices[0]}, nil
		}
		rt.noDefault = "OMP_TARGET_OFFLOAD is mandatory, and there is no non-host device: " + rt.noDevices
	default:
		// A single number has the meaning of OpenMP 5: one that is not a device's number
		// means the host, unless offloading is mandatory.
		_, alone := list.Number()
		switch {
		case alone && !mandatory:
			rt.log.Warn("no such device: target regions run on the initial device", "OMP_DEFAULT_DEVICE", list, "devices", n)
			return rt.InitialDevice(), nil
		case alone:
			rt.noDefault = fmt.Sprintf("OMP_TARGET_OFFLOAD is mandatory, and OMP_DEFAULT_DEVICE is %s of %d non-host devices", list, n)
		default:
			rt.noDefault = fmt.Sprintf("OMP_DEFAULT_DEVICE is %s, which none of %d non-host devices matches, nor the host", list, n)
		}
	}
	return Device{}, nil
}

// DefaultDevice returns the device of constructs without a device clause in the current task
// (omp_get_default_device). It is the zero Device if there is none (omp_invalid_device),
// because OMP_TARGET_OFFLOAD is mandatory and cannot be met, or because OMP_DEFAULT_DEVICE
// says so or matches no device. Constructs without a device clause are then
// ErrInvalidDevice.
func (rt *Runtime) DefaultDevice(ctx context.Context) Device { return rt.current(ctx).device() }

// SetDefaultDevice sets the device of the current task's later constructs without a device
// clause (omp_set_default_device). Tasks inherit it when they are generated.
func (rt *Runtime) SetDefaultDevice(ctx context.Context, d Device) error {
	if d.d == nil || d.d.rt != rt {
		return fmt.Errorf("vkomp: set default device: %w: not a device of this runtime", ErrInvalidDevice)
	}
	rt.current(ctx).defaultDevice.Store(d.d)
	return nil
}
