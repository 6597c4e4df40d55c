package vkomp_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

func TestUIDsNameDevices(t *testing.T) {
	rt := vktest.Open(t)
	seen := map[string]bool{}
	for number := range rt.NumDevices() + 1 {
		d, err := rt.Device(number)
		if err != nil {
			t.Fatal(err)
		}
		uid := d.UID()
		if uid == "" || seen[uid] {
			t.Errorf("device %d has the uid %q", number, uid)
		}
		seen[uid] = true
		for _, spelt := range []string{uid, strings.ToUpper(uid)} {
			if from, err := rt.DeviceFromUID(spelt); err != nil || from != d {
				t.Errorf("the device of %s is %d, not %d: %v", spelt, from.Number(), number, err)
			}
		}
		if selected, err := rt.SelectDevice(uid); err != nil || selected != d {
			t.Errorf("%s selects %d, not %d: %v", uid, selected.Number(), number, err)
		}
		if traits := d.Info().Traits; !strings.HasSuffix(traits, " uid("+uid+")") {
			t.Errorf("device %d has the traits %s", number, traits)
		}
	}
	if uid := rt.InitialDevice().UID(); uid != "host" {
		t.Errorf("the initial device has the uid %q", uid)
	}
	if uid := (vkomp.Device{}).UID(); uid != "" {
		t.Errorf("no device has the uid %q", uid)
	}
	for _, uid := range []string{"", "none", "0"} {
		d, err := rt.DeviceFromUID(uid)
		if !errors.Is(err, vkomp.ErrInvalidDevice) || !strings.Contains(err.Error(), `"`+uid+`"`) || d.Number() != vkomp.InvalidDeviceNumber {
			t.Errorf("%q: device %d, %v", uid, d.Number(), err)
		}
	}
}

func TestUIDsAreDistinctWhereUUIDsAreNot(t *testing.T) {
	got := vkomp.DistinctUIDs([]string{"a", "b", "a", "c", "a", "b"})
	if want := []string{"a", "b", "a.2", "c", "a.3", "b.2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTraitsOfDevices(t *testing.T) {
	archs := map[string]string{"amd64": "arch(x86_64) arch(amd64)", "arm64": "arch(aarch64) arch(arm64)"}[runtime.GOARCH]
	if archs == "" {
		archs = fmt.Sprintf("arch(%s)", runtime.GOARCH)
	}
	const nothing = "uid(00000000-0000-0000-0000-000000000000)"
	const version = 1<<22 | 2<<12 | 230
	for _, c := range []struct {
		properties vk.Properties
		want       string
	}{
		{vk.Properties{Type: vk.DeviceDiscrete, VendorID: 0x10de, DriverName: "NVIDIA", APIVersion: version, Features: vk.Features{ShaderFloat64: true, ShaderInt64: true}},
			"kind(nohost) kind(gpu) kind(discrete) vendor(nvidia) vendor(0x10de) vendor(NVIDIA) arch(spirv) arch(nvptx64) arch(nvptx) isa(vulkan1.1) isa(vulkan1.2) isa(shaderFloat64) isa(shaderInt64) " + nothing},
		{vk.Properties{Type: vk.DeviceIntegrated, VendorID: 0x8086, DriverName: "Intel open-source Mesa driver"},
			`kind(nohost) kind(gpu) kind(integrated) vendor(intel) vendor(0x8086) vendor("Intel open-source Mesa driver") arch(spirv) arch(gen) ` + nothing},
		{vk.Properties{Type: vk.DeviceVirtual, VendorID: 0x1002, DriverName: `a "radv"`},
			`kind(nohost) kind(gpu) kind(virtual) vendor(amd) vendor(0x1002) vendor("a 'radv'") arch(spirv) arch(amdgcn) arch(gcn) ` + nothing},
		{vk.Properties{Type: vk.DeviceSoftware, VendorID: 0x10005, DriverName: "llvmpipe"},
			"kind(nohost) kind(cpu) kind(software) vendor(mesa) vendor(0x10005) vendor(llvmpipe) arch(spirv) " + archs + " " + nothing},
		{vk.Properties{Type: vk.DeviceOther, VendorID: 0xabc, UUID: [16]byte{0xab}},
			"kind(nohost) kind(other) vendor(unknown) vendor(0x0abc) arch(spirv) uid(ab000000-0000-0000-0000-000000000000)"},
	} {
		d := vkomp.TraitsOf(&c.properties)
		if got := d.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	host := vktest.Open(t, vktest.Host).InitialDevice().Info().Traits
	if want := "kind(host) kind(cpu) " + archs + " uid(host)"; host != want {
		t.Errorf("the host has %s, want %s", host, want)
	}
}

func ExampleRuntime_DeviceFromUID() {
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	uid := rt.InitialDevice().UID()
	d, err := rt.DeviceFromUID(uid)
	fmt.Println(uid, d.Number(), err)
	d, err = rt.DeviceFromUID("no such device")
	fmt.Println(d.Number() == vkomp.InvalidDeviceNumber, err)
	// Output:
	// host 0 <nil>
	// true vkomp: device from uid: invalid device: no device has the uid "no such device"
}
