package ompt

import "log/slog"

// Callbacks are what a tool registers with a runtime; any may be nil. They may
// be called concurrently. A panic in one is not recovered.
type Callbacks struct {
	// DeviceInitialize is called once for each time that a non-host device is
	// opened, before anything is offloaded to it. Constructs for that device
	// made meanwhile wait until it returns; it must make none itself.
	DeviceInitialize func(DeviceInitialize)
	// DeviceFinalize is called once for each such device after its last use,
	// immediately before it is closed.
	DeviceFinalize func(DeviceFinalize)
}

// DeviceInitialize is what ompt_callback_device_initialize tells.
type DeviceInitialize struct {
	// DeviceNum is the device's number, 0 to omp_get_num_devices()-1.
	DeviceNum int
	// Type names the device, its kind and its Vulkan version, such as
	// "llvmpipe (LLVM 15.0.6, 256 bits) software Vulkan 1.3.230".
	Type string
	// Documentation says what a tool can ask of this device.
	Documentation string
}

// DeviceFinalize is what ompt_callback_device_finalize tells.
type DeviceFinalize struct {
	DeviceNum int
}

// Tee returns callbacks that call those of every tool, in the order given. An
// event that none of them asks for stays unregistered.
func Tee(tools ...Callbacks) Callbacks {
	return Callbacks{
		DeviceInitialize: tee(tools, func(c Callbacks) func(DeviceInitialize) { return c.DeviceInitialize }),
		DeviceFinalize:   tee(tools, func(c Callbacks) func(DeviceFinalize) { return c.DeviceFinalize }),
	}
}

func tee[Event any](tools []Callbacks, callback func(Callbacks) func(Event)) func(Event) {
	var all []func(Event)
	for _, t := range tools {
		if f := callback(t); f != nil {
			all = append(all, f)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(e Event) {
		for _, f := range all {
			f(e)
		}
	}
}

// Log returns callbacks that write every event to l at level Info; none when l
// is nil. The message is the specification's name of the callback.
func Log(l *slog.Logger) Callbacks {
	if l == nil {
		return Callbacks{}
	}
	return Callbacks{
		DeviceInitialize: func(e DeviceInitialize) {
			l.Info(CallbackDeviceInitialize.String(), "device_num", e.DeviceNum, "type", e.Type)
		},
		DeviceFinalize: func(e DeviceFinalize) {
			l.Info(CallbackDeviceFinalize.String(), "device_num", e.DeviceNum)
		},
	}
}
