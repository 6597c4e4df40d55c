package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestDevicesAreListedWithTheDefaultMarked(t *testing.T) {
	list := []vkomp.DeviceInfo{
		{Number: 0, Name: "Radeon", Type: "discrete", UUID: "00000000-0000-0000-0000-000000000001", Driver: "radv 22.3.6", Vulkan: "1.3.230", Memory: 8 << 30},
		{Number: 1, Name: "llvmpipe (LLVM 15.0.6, 256 bits)", Type: "software", UUID: "00000000-0000-0000-0000-000000000002", Driver: "llvmpipe", Vulkan: "1.3.230", Memory: 1536 << 20, Default: true},
		{Number: 2, Name: "host", Type: "initial"},
	}
	var printed bytes.Buffer
	if err := printDevices(&printed, list); err != nil {
		t.Fatal(err)
	}
	golden(t, "devices.golden", printed.Bytes())
}

func TestDevicesAsJSONAgreeWithTheRuntime(t *testing.T) {
	var list []vkomp.DeviceInfo
	if err := json.Unmarshal([]byte(succeed(t, "devices", "-json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 2 {
		t.Fatalf("%d devices, want a Vulkan device and the initial device", len(list))
	}
	for i, info := range list {
		last := i == len(list)-1
		if info.Number != i || (info.Type == "initial") != last || info.Name == "" || info.Default != (i == 0) {
			t.Errorf("device %d of %d: %+v", i, len(list), info)
		}
		if !last && (len(info.UUID) != 36 || info.Memory == 0 || info.Vulkan == "") {
			t.Errorf("device %d says too little: %+v", i, info)
		}
	}
}
