package vkomp

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/vkomp/vkomp/traits"
	"github.com/vkomp/vkomp/vk"
)

// hostUID is the UID of the initial device.
const hostUID = "host"

// vendors are the names of vendors by their PCI or Khronos number.
var vendors = map[uint32]string{
	0x1002: "amd", 0x1010: "imagination", 0x106b: "apple", 0x10de: "nvidia", 0x13b5: "arm", 0x1414: "microsoft", 0x144d: "samsung",
	0x14e4: "broadcom", 0x19e5: "huawei", 0x1ae0: "google", 0x5143: "qualcomm", 0x8086: "intel",
	0x10001: "vivante", 0x10002: "verisilicon", 0x10003: "kazan", 0x10004: "codeplay", 0x10005: "mesa", 0x10006: "pocl", 0x10007: "mobileye",
}

// gpuArchs are the names that OpenMP compilers use for the GPU architecture of a vendor.
var gpuArchs = map[string][]string{"amd": {"amdgcn", "gcn"}, "intel": {"gen"}, "nvidia": {"nvptx64", "nvptx"}}

// hostArchs returns the names of the processor's architecture: those of compilers, and Go's.
func hostArchs() []string {
	switch runtime.GOARCH {
	case "amd64":
		return []string{"x86_64", "amd64"}
	case "arm64":
		return []string{"aarch64", "arm64"}
	}
	return []string{runtime.GOARCH}
}

// traitsOf returns the traits of a device for OMP_AVAILABLE_DEVICES and OMP_DEFAULT_DEVICE;
// docs/environment.md describes them.
func traitsOf(p *vk.Properties) traits.Device {
	t := traits.Device{Kinds: []string{"nohost"}, Archs: []string{"spirv"}, UID: vk.UUIDString(p.UUID)}
	maker, known := vendors[p.VendorID]
	if known {
		t.Vendors = append(t.Vendors, maker)
	} else {
		t.Vendors = append(t.Vendors, "unknown")
	}
	t.Vendors = append(t.Vendors, fmt.Sprintf("0x%04x", p.VendorID))
	// A quoted name cannot contain quotes.
	if driver := strings.ReplaceAll(p.DriverName, `"`, "'"); driver != "" {
		t.Vendors = append(t.Vendors, driver)
	}
	switch p.Type {
	case vk.DeviceDiscrete, vk.DeviceIntegrated, vk.DeviceVirtual:
		t.Kinds = append(t.Kinds, "gpu", p.Type.String())
		t.Archs = append(t.Archs, gpuArchs[maker]...)
	case vk.DeviceSoftware:
		t.Kinds = append(t.Kinds, "cpu", p.Type.String())
		t.Archs = append(t.Archs, hostArchs()...)
	default:
		t.Kinds = append(t.Kinds, vk.DeviceOther.String())
	}
	// A device also supports the instructions of earlier versions.
	for minor := range p.APIVersion >> 12 & 0x3ff {
		t.ISAs = append(t.ISAs, fmt.Sprintf("vulkan%d.%d", p.APIVersion>>22&0x7f, minor+1))
	}
	f := &p.Features
	for _, feature := range []struct {
		name string
		has  bool
	}{
		{"shaderFloat64", f.ShaderFloat64}, {"shaderFloat16", f.ShaderFloat16},
		{"shaderInt64", f.ShaderInt64}, {"shaderInt16", f.ShaderInt16}, {"shaderInt8", f.ShaderInt8},
		{"storageBuffer16BitAccess", f.StorageBuffer16Bit}, {"storageBuffer8BitAccess", f.StorageBuffer8Bit},
		{"shaderBufferInt64Atomics", f.ShaderBufferInt64Atomics}, {"shaderSharedInt64Atomics", f.ShaderSharedInt64Atomics},
		{"bufferDeviceAddress", f.BufferDeviceAddress}, {"vulkanMemoryModel", f.VulkanMemoryModel}, {"variablePointers", f.VariablePointers},
	} {
		if feature.has {
			t.ISAs = append(t.ISAs, feature.name)
		}
	}
	return t
}

// distinctUIDs makes distinct UIDs from UUIDs. Two drivers may show the same device, and some
// drivers give several devices the same UUID: the second and later ones get ".2" and so on.
func distinctUIDs(uuids []string) []string {
	seen := map[string]int{}
	uids := make([]string, len(uuids))
	for i, uuid := range uuids {
		seen[uuid]++
		uids[i] = uuid
		if n := seen[uuid]; n > 1 {
			uids[i] = fmt.Sprintf("%s.%d", uuid, n)
		}
	}
	return uids
}

// numberDevices numbers the devices, or those that OMP_AVAILABLE_DEVICES lists. The host
// comes last.
func (rt *Runtime) numberDevices(available *traits.Available) {
	found := rt.devices
	described, uuids := make([]traits.Device, len(found)), make([]string, len(found))
	for i, d := range found {
		described[i] = traitsOf(d.physical.Properties())
		uuids[i] = described[i].UID
	}
	for i, uid := range distinctUIDs(uuids) {
		described[i].UID = uid
		found[i].traits = described[i]
	}
	if available != nil {
		rt.devices = nil
		taken := make([]bool, len(found))
		for _, i := range available.Devices(described) {
			rt.devices = append(rt.devices, found[i])
			taken[i] = true
		}
		for i, d := range found {
			if !taken[i] {
				rt.log.Info("device left out", "name", d.physical.Properties().Name, "uid", d.traits.UID, "OMP_AVAILABLE_DEVICES", available)
			}
		}
		if len(rt.devices) == 0 && len(found) > 0 {
			rt.noDevices = fmt.Sprintf("OMP_AVAILABLE_DEVICES is %s, which none of %d devices matches", available, len(found))
			rt.log.Warn("no device is available", "OMP_AVAILABLE_DEVICES", available, "devices", len(found))
		}
	}
	host := traits.Device{Kinds: []string{"host", "cpu"}, Archs: hostArchs(), UID: hostUID}
	rt.devices = append(rt.devices, &device{rt: rt, traits: host})
	for number, d := range rt.devices {
		d.number, d.traits.Number = number, number
	}
}

// UID returns a string that identifies the device on this machine, and that is the same in
// every run with the same drivers (omp_get_uid_from_device, OpenMP 6.0): its UUID, followed
// by ".2" and so on if the drivers show several devices with the same one; "host" for the
// initial device. It is empty for the zero Device.
func (d Device) UID() string {
	if d.d == nil {
		return ""
	}
	return d.d.traits.UID
}

// DeviceFromUID returns the device with that UID, ignoring case (omp_get_device_from_uid,
// OpenMP 6.0). If no available device has it, the Device is the zero one, whose number is
// InvalidDeviceNumber, and the error is ErrInvalidDevice.
func (rt *Runtime) DeviceFromUID(uid string) (Device, error) {
	for _, d := range rt.devices {
		if strings.EqualFold(d.traits.UID, uid) {
			return Device{d}, nil
		}
	}
	return Device{}, fmt.Errorf("vkomp: device from uid: %w: no device has the uid %q", ErrInvalidDevice, uid)
}
