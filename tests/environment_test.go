package tests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// OMP_AVAILABLE_DEVICES numbers the devices, and everything that takes or returns a device number
// uses these numbers.
func TestC08AvailableDevicesOfTwoDrivers(t *testing.T) { withBothDrivers(t, availableDevices) }

func availableDevices(t *testing.T) {
	all := vktest.Open(t)
	if all.NumDevices() != 2 {
		t.Fatalf("%d devices, want one of each driver", all.NumDevices())
	}
	var uids, names, vendors [2]string
	for i := range uids {
		d, err := all.Device(i)
		if err != nil {
			t.Fatal(err)
		}
		uids[i], names[i] = d.UID(), d.Info().Name
		_, rest, _ := strings.Cut(d.Info().Traits, "vendor(")
		vendors[i], _, _ = strings.Cut(rest, ")")
	}
	if uids[0] == uids[1] || vendors[0] == vendors[1] {
		t.Fatalf("the devices are not told apart: uids %q, vendors %q", uids, vendors)
	}
	for _, c := range []struct {
		available string
		want      []int
	}{
		{"*", []int{0, 1}},
		{fmt.Sprintf("uid(%s),uid(%s)", uids[1], uids[0]), []int{1, 0}},
		{fmt.Sprintf("vendor(%s),*", vendors[1]), []int{1, 0}},
		{fmt.Sprintf("vendor(%s)&&kind(cpu),*", vendors[0]), []int{0, 1}},
		{fmt.Sprintf("!vendor(%s)", vendors[0]), []int{1}},
		{"kind(cpu)[1],kind(cpu)[0:9]", []int{1, 0}},
		{"kind(cpu)[1:5]", []int{1}},
		{fmt.Sprintf("vendor(%s)||vendor(%s)", vendors[1], vendors[0]), []int{0, 1}},
	} {
		t.Run(c.available, func(t *testing.T) {
			rt := vktest.Open(t, environment("OMP_AVAILABLE_DEVICES", c.available))
			if rt.NumDevices() != len(c.want) {
				t.Fatalf("%d devices, want %d", rt.NumDevices(), len(c.want))
			}
			for number, of := range c.want {
				d, err := rt.Device(number)
				if err != nil || d.UID() != uids[of] || d.Info().Number != number {
					t.Fatalf("device %d is %+v, want %s: %v", number, d.Info(), names[of], err)
				}
				if from, err := rt.DeviceFromUID(uids[of]); err != nil || from != d {
					t.Errorf("the device of %s is %d, want %d: %v", uids[of], from.Number(), number, err)
				}
			}
			if rt.DefaultDevice(t.Context()).Number() != 0 {
				t.Errorf("the default device is %d", rt.DefaultDevice(t.Context()).Number())
			}
			if len(c.want) == 1 {
				left := 1 - c.want[0]
				if _, err := rt.DeviceFromUID(uids[left]); !errors.Is(err, vkomp.ErrInvalidDevice) {
					t.Errorf("%s is not available: %v", uids[left], err)
				}
			}
			switchingDefaultDevice(t, rt)
		})
	}

	// OMP_DEFAULT_DEVICE and Options.Device use the new numbers.
	reversed := fmt.Sprintf("uid(%s),uid(%s)", uids[1], uids[0])
	for preferred, want := range map[string]string{
		"0": uids[1], "1": uids[0], "2": "host", "kind(cpu)": uids[1], "kind(cpu)[1]": uids[0], "kind(cpu)[2]": "host",
		"uid(" + uids[0] + ")": uids[0], "device_num(1)": uids[0], "vendor(" + vendors[0] + "),initial": uids[0], "vendor(none),initial": "host",
	} {
		rt := vktest.Open(t, environment("OMP_AVAILABLE_DEVICES", reversed, "OMP_DEFAULT_DEVICE", preferred))
		if uid := rt.DefaultDevice(t.Context()).UID(); uid != want {
			t.Errorf("OMP_DEFAULT_DEVICE=%s: %s, want %s", preferred, uid, want)
		}
	}
	rt := vktest.Open(t, environment("OMP_AVAILABLE_DEVICES", reversed, "OMP_DEFAULT_DEVICE", "0"), func(o *vkomp.Options) { o.Device = "1" })
	if uid := rt.DefaultDevice(t.Context()).UID(); uid != uids[0] {
		t.Errorf("Options.Device is 1: %s, want %s", uid, uids[0])
	}
}

// Two devices that report the same UUID, as lavapipe's do, have different UIDs.
func TestUIDsTellDevicesWithOneUUIDApart(t *testing.T) {
	files, missing := driverFiles()
	if missing != "" {
		t.Skip(missing)
	}
	manifest, err := os.ReadFile(files[0])
	succeed(t, err)
	// The loader reads each manifest only once.
	again := filepath.Join(t.TempDir(), "again.json")
	succeed(t, os.WriteFile(again, manifest, 0o644))
	withDrivers(t, []string{files[0], again}, func(t *testing.T) {
		rt := vktest.Open(t)
		if rt.NumDevices() != 2 {
			t.Fatalf("%d devices, want lavapipe twice", rt.NumDevices())
		}
		second, err := rt.Device(1)
		succeed(t, err)
		if want := second.Info().UUID + ".2"; second.UID() != want {
			t.Errorf("the second device has the uid %s, want %s", second.UID(), want)
		}
		for number := range 2 {
			d, err := rt.Device(number)
			succeed(t, err)
			if from, err := rt.DeviceFromUID(d.UID()); err != nil || from != d {
				t.Errorf("the device of %s is %d, want %d: %v", d.UID(), from.Number(), number, err)
			}
		}
		// They keep their UIDs when they are numbered differently.
		again := vktest.Open(t, environment("OMP_AVAILABLE_DEVICES", "uid("+second.UID()+"),*"))
		if first, err := again.Device(0); err != nil || again.NumDevices() != 2 || first.UID() != second.UID() {
			t.Errorf("the first of %d devices is %s, want %s: %v", again.NumDevices(), first.UID(), second.UID(), err)
		}
		if d, err := again.SelectDevice(second.UID()); err != nil || d.Number() != 0 {
			t.Errorf("%s selects %d: %v", second.UID(), d.Number(), err)
		}
	})
}

// switchingDefaultDevice makes each device in turn, including the host, the default device of a
// data region and a target region in it.
func switchingDefaultDevice(t *testing.T, rt *vkomp.Runtime) {
	t.Helper()
	k := newAffine(t, rt)
	x := make([]uint32, 64)
	for number := range rt.NumDevices() + 1 {
		d, err := rt.Device(number)
		succeed(t, err)
		succeed(t, rt.SetDefaultDevice(t.Context(), d))
		before := rt.Stats()
		succeed(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.From(x)}}, body(func() {
			if got := rt.DefaultDevice(t.Context()); got != d {
				t.Errorf("the default device is %d, want %d", got.Number(), number)
			}
			offload(t, rt, now(k.set(x, uint32(number))))
		})))
		checkAll(t, "x", x, uint32(number))
		if ran := rt.Stats().HostRegions - before.HostRegions; (ran == 1) != d.IsInitial() {
			t.Errorf("device %d: %d host regions", number, ran)
		}
	}
}

func TestC06DefaultDeviceSwitching(t *testing.T) { switchingDefaultDevice(t, vktest.Open(t)) }

// An adopted device can be made available or not, like any other.
func TestAdoptedDeviceIsAvailableAsOthersAre(t *testing.T) {
	application := vktest.Open(t)
	a, _ := adoption(t, application)
	for value, want := range map[string]int{"*": 1, "arch(spirv)": 1, "kind(fpga)": 0} {
		o := vkomp.Options{Adopt: a}
		environment("OMP_AVAILABLE_DEVICES", value)(&o)
		rt, err := vkomp.Open(o)
		succeed(t, err)
		if rt.NumDevices() != want {
			t.Errorf("%s: %d devices, want %d", value, rt.NumDevices(), want)
		}
		switchingDefaultDevice(t, rt)
		succeed(t, rt.Close())
	}
}
