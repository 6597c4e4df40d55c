package vkomp

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/internal/observe/tool"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Runtime is an OpenMP device and task runtime. It is safe for concurrent use, and so are [Device],
// [Kernel], [Event] and [Pinned].
type Runtime struct {
	options Options
	log     *slog.Logger
	icvs    icvs
	// instance is nil without Vulkan.
	instance *vk.Instance
	// devices are the non-host devices by number, followed by the initial device.
	devices []*device
	// noDevices says why there is no non-host device, if there is none.
	noDevices string
	host      *host.Device
	// hostMemory is the memory that Alloc has allocated on the initial device.
	hostMemory hostMemory
	// pinned is the storage that AllocPinned and Pin have pinned.
	pinned pinnedStorages
	graph  tasks.Graph
	// initial is the region of the initial task.
	initial taskRegion
	labels  labels
	// declared are the sections declared with DeclareTarget, disjoint and sorted by address. To write it, every device's life and
	// pinned.mu must be held; to read it, one of them.
	declared []memory.Map
	// initialDefault is the initial value of default-device-var. noDefault says why it is
	// omp_invalid_device, if it is.
	initialDefault Device
	noDefault      string

	races foundRaces
	// validator is nil without Options.Validate.
	validator *validator

	// state only increases; closing is the progress from stateOpen to stateClosed.
	state   atomic.Int32
	closing closing

	// tool is nil without a tool. events are the listeners: the tool and the race
	// detector. It is nil without any.
	tool   atomic.Pointer[tool.Tool]
	events atomic.Pointer[observe.Listeners]

	// using are the calls under way that use a device or generate tasks.
	using users

	// mu guards the fields below.
	mu lockrank.Mutex[lockrank.Runtime]
	// kernels are the kernels for devices that are not closed, in the order in which they were
	// made.
	kernels []*kernel.Kernel
	// orphans are scopes of finished tasks that still have children.
	orphans map[*tasks.Scope]struct{}
	// unreported are the failures of dropped scopes.
	unreported tasks.Failures
	// recorded are the keepers of the runtime's taskgraph records.
	recorded recordsKeepers
}

// Open returns a runtime with the devices of this machine. A device can be used if it has Vulkan
// 1.2 with the feature timelineSemaphore, and a compute queue; Options.Logger hears what others lack.
// A device is opened when it is first used. If there is no such device, target regions run on the
// initial device; if OMP_TARGET_OFFLOAD is mandatory there is no default device then: see
// [Runtime.DefaultDevice]. A malformed OMP_ variable is an ErrInvalidArgument that names and quotes
// it; docs/environment.md lists the variables.
func Open(o Options) (*Runtime, error) {
	v, err := o.icvs()
	if err != nil {
		return nil, fmt.Errorf("vkomp: %w", err)
	}
	rt := &Runtime{options: o, icvs: v, host: host.NewDevice(v.host.threads[0])}
	rt.hostMemory.associated = rt.associated
	rt.hostMemory.leakSites, rt.pinned.leakSites = o.LeakSites, o.LeakSites
	rt.log = slog.New(slog.DiscardHandler)
	if o.Logger != nil {
		rt.log = slog.New(guarded{o.Logger.Handler()})
	}
	rt.graph.SetErrors(taskErrors)
	rt.graph.OnWait(rt.submitGathered)
	rt.graph.JoinSets(joiner{rt})
	if o.KeepGraph {
		rt.graph.Keep()
	}
	if o.Validate {
		if rt.validator, err = findValidator(); err != nil {
			return nil, fmt.Errorf("vkomp: %w", err)
		}
	}
	rt.closing.turn = make(chan struct{}, 1)
	rt.initial.rt = rt
	rt.initial.scope.Store(rt.graph.NewScope())
	if v.offload == offloadDisabled {
		rt.noDevices = "OMP_TARGET_OFFLOAD is disabled"
	} else if err := rt.findDevices(); err != nil {
		return nil, fmt.Errorf("vkomp: %w", err)
	}
	rt.numberDevices(v.available)
	if o.Race {
		rt.startRaces()
	}
	if err = rt.icvs.readDevices(o.environment(), rt.NumDevices()); err == nil {
		rt.initialDefault, err = rt.chooseDefault()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("vkomp: %w", err), rt.closeDevices())
	}
	rt.initial.defaultDevice.Store(rt.initialDefault.d)
	if err := rt.startTool(); err != nil {
		return nil, errors.Join(fmt.Errorf("vkomp: %w", err), rt.closeDevices())
	}
	rt.listen()
	rt.logTool()
	rt.displayInitially()
	return rt, nil
}

// findDevices opens Vulkan and lists its usable devices.
func (rt *Runtime) findDevices() error {
	if a := rt.options.Adopt; a != nil {
		return rt.adoptDevice(a)
	}
	instance, err := vk.Open(vk.InstanceOptions{
		ApplicationName:         "vkomp",
		Validation:              rt.options.Validation,
		NoSynchronizationChecks: rt.options.NoSynchronizationChecks,
		Logger:                  rt.log,
	})
	if err != nil {
		if errors.Is(err, vk.ErrUnsupported) && !rt.options.Validation {
			rt.log.Warn("no Vulkan: target regions run on the initial device", "reason", err)
			rt.noDevices = err.Error()
			return nil
		}
		return err
	}
	rt.instance = instance
	var unusable []string
	for _, p := range instance.PhysicalDevices() {
		if missing := p.Missing(); len(missing) > 0 {
			name, lacks := p.Properties().Name, strings.Join(missing, ", ")
			rt.log.Info("device left out", "name", name, "lacks", lacks)
			unusable = append(unusable, fmt.Sprintf("%s lacks %s", name, lacks))
			continue
		}
		rt.devices = append(rt.devices, &device{rt: rt, physical: p})
	}
	if len(rt.devices) == 0 {
		rt.noDevices = "the Vulkan drivers show no device"
		if len(unusable) > 0 {
			rt.noDevices = strings.Join(unusable, "; ")
		}
		rt.log.Warn("no usable Vulkan device: target regions run on the initial device", "reason", rt.noDevices)
	}
	return nil
}

// NumDevices returns the number of non-host devices (omp_get_num_devices).
func (rt *Runtime) NumDevices() int { return len(rt.devices) - 1 }

// InitialDevice returns the host as a device (omp_get_initial_device).
func (rt *Runtime) InitialDevice() Device { return Device{rt.devices[len(rt.devices)-1]} }

// Device returns the device with the given number: 0 to NumDevices, or InitialDeviceNumber.
// Any other number, including InvalidDeviceNumber, is ErrInvalidDevice. Where OpenMP runs a
// region for a device that does not exist on the host, the program gets this error instead
// and can choose InitialDevice.
func (rt *Runtime) Device(number int) (Device, error) {
	d, err := rt.numbered(number)
	if err != nil {
		return Device{}, fmt.Errorf("vkomp: device: %w", err)
	}
	return d, nil
}

// numbered is Device, whose name its errors lack.
func (rt *Runtime) numbered(number int) (Device, error) {
	switch n := rt.NumDevices(); {
	case number == InitialDeviceNumber:
		return rt.InitialDevice(), nil
	case (number < 0 || number > n) && n == 0:
		return Device{}, fmt.Errorf("%w: number %d: there is no Vulkan device, 0 or %d is the initial device", ErrInvalidDevice, number, InitialDeviceNumber)
	case number < 0 || number > n:
		return Device{}, fmt.Errorf("%w: number %d: devices are 0 to %d, and %d or %d is the initial device", ErrInvalidDevice, number, n-1, n, InitialDeviceNumber)
	default:
		return Device{rt.devices[number]}, nil
	}
}

// SelectDevice returns the device that a selector names: a number as for Device, "host" or "initial",
// a UID or UUID, or a device's name or part of it, which must not fit devices of different names.
// Upper and lower case count as the same, and space around the selector is ignored. An empty selector
// names the first Vulkan device.
func (rt *Runtime) SelectDevice(selector string) (Device, error) {
	d, err := rt.selected(selector)
	if err != nil {
		return Device{}, fmt.Errorf("vkomp: select device: %w", err)
	}
	return d, nil
}

// selected is SelectDevice, whose name its errors lack.
func (rt *Runtime) selected(selector string) (Device, error) {
	selector = strings.TrimSpace(selector)
	switch strings.ToLower(selector) {
	case "host", "initial":
		return rt.InitialDevice(), nil
	}
	if number, err := strconv.Atoi(selector); err == nil {
		return rt.numbered(number)
	}
	if d, err := rt.DeviceFromUID(selector); err == nil {
		return d, nil
	}
	properties := make([]*vk.Properties, rt.NumDevices())
	for i := range properties {
		properties[i] = rt.devices[i].physical.Properties()
	}
	i, err := vk.SelectDevice(properties, selector)
	if err != nil {
		return Device{}, fmt.Errorf("%w: %w", ErrInvalidDevice, err)
	}
	return Device{rt.devices[i]}, nil
}

// resolve returns the device of a construct in c: that of its device clause, or c's default
// device, or the initial device if its if clause is false.
func (rt *Runtime) resolve(c current, d Device, condition Cond) (*device, error) {
	if condition.isFalse() {
		return rt.InitialDevice().d, nil
	}
	if d.d == nil {
		d = c.device()
	}
	if d.d == nil {
		return nil, fmt.Errorf("%w: there is no default device: %s", ErrInvalidDevice, rt.noDefault)
	}
	if d.d.rt != rt {
		return nil, fmt.Errorf("%w: device %d belongs to another runtime", ErrInvalidDevice, d.d.number)
	}
	return d.d, nil
}
