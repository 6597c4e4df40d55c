package vkomp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// within returns an option for a runtime with these environment variables. Validation is off,
// because there is none without a device.
func within(pairs ...string) func(*vkomp.Options) {
	return func(o *vkomp.Options) { o.Validation, o.LookupEnv = false, environment(pairs...) }
}

// runsOn returns where a target region without a device clause ran: on the "device", on the
// "host", or nowhere because the default device is "invalid". It checks the region's
// results.
func runsOn(t *testing.T, rt *vkomp.Runtime, device vkomp.Device) string {
	t.Helper()
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := constant(40, 53), constant(40, 17)
	before := rt.Stats()
	target := saxpyOn(t, k, 1, x, y)
	target.Device = device
	err := rt.Target(t.Context(), target)
	after := rt.Stats()
	onHost, onDevice := after.HostRegions-before.HostRegions, after.Dispatches-before.Dispatches
	if err != nil {
		if !errors.Is(err, vkomp.ErrInvalidDevice) || onHost+onDevice != 0 || y[0] != 17 {
			t.Errorf("after %d host regions and %d dispatches y is %v: %v", onHost, onDevice, y[0], err)
		}
		if n := strings.Count(err.Error(), "there is no default device"); n != 1 {
			t.Errorf("it is said %d times that there is no default device: %v", n, err)
		}
		return "invalid"
	}
	for _, v := range y {
		if v != 70 {
			t.Errorf("y is %v, want 70", v)
			break
		}
	}
	if onHost+onDevice != 1 {
		t.Errorf("%d host regions and %d dispatches", onHost, onDevice)
	}
	if onHost == 1 {
		return "host"
	}
	return "device"
}

// Where a region runs for each value of OMP_TARGET_OFFLOAD and for OMP_DEFAULT_DEVICE as a
// list, with a device and without.
func TestWhereARegionRuns(t *testing.T) {
	for _, c := range []struct {
		name    string
		options func(*vkomp.Options)
		// with is where the region runs if there is a device, without if there is none.
		env           []string
		with, without string
	}{
		{name: "nothing", with: "device", without: "host"},
		{name: "default", env: []string{"OMP_TARGET_OFFLOAD", "DEFAULT"}, with: "device", without: "host"},
		{name: "disabled", env: []string{"OMP_TARGET_OFFLOAD", "disabled"}, with: "host", without: "host"},
		{name: "mandatory", env: []string{"OMP_TARGET_OFFLOAD", "mandatory"}, with: "device", without: "invalid"},

		{name: "0", env: []string{"OMP_DEFAULT_DEVICE", "0"}, with: "device", without: "host"},
		{name: "the initial device's number", env: []string{"OMP_DEFAULT_DEVICE", "1"}, with: "host", without: "host"},
		{name: "0, mandatory", env: []string{"OMP_DEFAULT_DEVICE", "0", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "device", without: "host"},
		{name: "1, mandatory", env: []string{"OMP_DEFAULT_DEVICE", "1", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "host", without: "invalid"},
		{name: "none's number", env: []string{"OMP_DEFAULT_DEVICE", "77"}, with: "host", without: "host"},
		{name: "none's number, disabled", env: []string{"OMP_DEFAULT_DEVICE", "77", "OMP_TARGET_OFFLOAD", "disabled"}, with: "host", without: "host"},
		{name: "none's number, mandatory", env: []string{"OMP_DEFAULT_DEVICE", "77", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "invalid", without: "invalid"},

		{name: "none's number in a list", env: []string{"OMP_DEFAULT_DEVICE", "77,0"}, with: "device", without: "host"},
		{name: "initial", env: []string{"OMP_DEFAULT_DEVICE", "initial", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "host", without: "host"},
		{name: "invalid", env: []string{"OMP_DEFAULT_DEVICE", "Invalid"}, with: "invalid", without: "invalid"},
		{name: "default", env: []string{"OMP_DEFAULT_DEVICE", "77,default"}, with: "device", without: "host"},
		{name: "default, mandatory", env: []string{"OMP_DEFAULT_DEVICE", "default", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "device", without: "invalid"},
		{name: "a trait", env: []string{"OMP_DEFAULT_DEVICE", "kind(nohost)&&arch(spirv)"}, with: "device", without: "invalid"},
		{name: "a trait, or the host", env: []string{"OMP_DEFAULT_DEVICE", "kind(nohost),initial"}, with: "device", without: "host"},
		{name: "kind(host)", env: []string{"OMP_DEFAULT_DEVICE", "kind(host)"}, with: "host", without: "host"},
		{name: "uid(host)", env: []string{"OMP_DEFAULT_DEVICE", "uid(HOST)"}, with: "host", without: "host"},
		{name: "device_num", env: []string{"OMP_DEFAULT_DEVICE", "!device_num(0),invalid"}, with: "host", without: "invalid"},
		{name: "nothing matches", env: []string{"OMP_DEFAULT_DEVICE", "kind(fpga),device_num(9)"}, with: "invalid", without: "invalid"},
		{name: "nothing matches, disabled", env: []string{"OMP_DEFAULT_DEVICE", "kind(nohost)", "OMP_TARGET_OFFLOAD", "disabled"}, with: "invalid", without: "invalid"},

		{name: "Options.Device", options: func(o *vkomp.Options) { o.Device = "-1" },
			env: []string{"OMP_DEFAULT_DEVICE", "invalid", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "host", without: "host"},
		{name: "Options.Device, none's number", options: func(o *vkomp.Options) { o.Device = "0" },
			env: []string{"OMP_DEFAULT_DEVICE", "77", "OMP_TARGET_OFFLOAD", "mandatory"}, with: "device", without: "host"},
	} {
		for _, where := range []struct{ name, want string }{{"with a device", c.with}, {"without", c.without}} {
			t.Run(c.name+" "+where.name, func(t *testing.T) {
				available := "*[0]"
				if where.name == "without" {
					available = "kind(fpga)"
				}
				env := append([]string{"OMP_AVAILABLE_DEVICES", available}, c.env...)
				options := []func(*vkomp.Options){within(env...)}
				if c.options != nil {
					options = append(options, c.options)
				}
				rt := vktest.Open(t, options...)
				if got := runsOn(t, rt, vkomp.Device{}); got != where.want {
					t.Errorf("it runs on %s, want %s", got, where.want)
				}
				if d := rt.DefaultDevice(t.Context()); (d.Number() == vkomp.InvalidDeviceNumber) != (where.want == "invalid") || where.want == "host" && !d.IsInitial() {
					t.Errorf("the default device is %d", d.Number())
				}
				// The host can be used explicitly, whatever the policy is.
				for _, number := range []int{vkomp.InitialDeviceNumber, rt.NumDevices()} {
					d, err := rt.Device(number)
					if err != nil {
						t.Fatal(err)
					}
					if got := runsOn(t, rt, d); got != "host" {
						t.Errorf("device %d ran it on %s", number, got)
					}
				}
				if where.want == "invalid" {
					usesOfAnInvalidDevice(t, rt)
				}
			})
		}
	}
}

// usesOfAnInvalidDevice checks that constructs for the default device fail, and that they work
// again once the task has a valid one.
func usesOfAnInvalidDevice(t *testing.T, rt *vkomp.Runtime) {
	t.Helper()
	ctx, x := t.Context(), ramp(4)
	for name, err := range map[string]error{
		"target data":       rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}}, nothing),
		"target enter data": rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}),
		"target exit data":  rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}}),
		"target update":     rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}}),
		"alloc":             func() error { _, err := rt.DefaultDevice(ctx).Alloc(ctx, 8); return err }(),
		"device":            func() error { _, err := rt.Device(vkomp.InvalidDeviceNumber); return err }(),
		"uid":               func() error { _, err := rt.DeviceFromUID(rt.DefaultDevice(ctx).UID()); return err }(),
	} {
		if !errors.Is(err, vkomp.ErrInvalidDevice) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}})
	if !strings.Contains(err.Error(), "OMP_DEFAULT_DEVICE is") && !strings.Contains(err.Error(), "OMP_TARGET_OFFLOAD is mandatory") {
		t.Errorf("the error does not say why: %v", err)
	}
	if err := rt.SetDefaultDevice(ctx, rt.InitialDevice()); err != nil {
		t.Error(err)
	}
	if got := runsOn(t, rt, vkomp.Device{}); got != "host" {
		t.Errorf("with the host for default device it ran on %s", got)
	}
}

func TestAvailableDevicesLeaveOutWhatTheyDoNotList(t *testing.T) {
	all := vktest.Open(t)
	n := all.NumDevices()
	first, err := all.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{
		"*": n, " ": n, "kind(nohost)": n, "kind(any)": n, "arch(SPIRV)": n, "isa(vulkan1.2)": n,
		"uid(" + strings.ToUpper(first.UID()) + ")": 1, "*[0]": 1, "*[:1],*[0]": 1, "*[7],*[100:3]": 0, "!kind(nohost)": 0, "uid(host)": 0,
	} {
		rt := vktest.Open(t, within("OMP_AVAILABLE_DEVICES", value))
		if rt.NumDevices() != want {
			t.Errorf("%s: %d devices, want %d", value, rt.NumDevices(), want)
		}
		for number := range want + 1 {
			d, err := rt.Device(number)
			if err != nil || d.Number() != number || d.IsInitial() != (number == want) {
				t.Errorf("%s: device %d: %+v, %v", value, number, d.Info(), err)
			}
		}
		if want == 0 {
			if _, err := rt.SelectDevice(first.Info().UUID); !errors.Is(err, vkomp.ErrInvalidDevice) {
				t.Errorf("%s: a device that is not available was selected: %v", value, err)
			}
		}
		where := map[bool]string{true: "device", false: "host"}[want > 0]
		if got := runsOn(t, rt, vkomp.Device{}); got != where {
			t.Errorf("%s: it ran on %s, want %s", value, got, where)
		}
	}
}
