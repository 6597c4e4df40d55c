package vk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func named(name string, id byte) *Properties {
	p := &Properties{Name: name, Type: DeviceDiscrete}
	for k := range p.UUID {
		p.UUID[k] = id + byte(k)*0x11
	}
	return p
}

func TestSelectDevice(t *testing.T) {
	devices := []*Properties{
		named("NVIDIA GeForce RTX 4090", 0x10),
		named("NVIDIA GeForce RTX 4090", 0x20),
		named("AMD Radeon RX 7900", 0x30),
		named("AMD Radeon RX 7900 XT", 0xa0),
		named("llvmpipe (LLVM 15.0.6, 256 bits)", 0x50),
	}
	for _, c := range []struct {
		selector string
		want     int // -1 for an error
	}{
		{"", 0},
		{"  ", 0},
		{"0", 0},
		{"4", 4},
		{" 2 ", 2},
		{"002", 2},
		{"5", -1},
		{"4090", -1}, // digits are always an index
		{"99999999999999999999999", -1},
		{"-1", -1},
		{"1.0", -1},
		{UUIDString(devices[1].UUID), 1},
		{strings.ToUpper(UUIDString(devices[3].UUID)), 3},
		{strings.ReplaceAll(UUIDString(devices[4].UUID), "-", ""), 4},
		{"00000000-0000-0000-0000-000000000000", -1},
		{"00000000000000000000000000000000", -1},
		{"111111111111111111111111111111111", -1}, // 33 digits: an index, not a UUID
		{"rtx", 0}, // two devices of one name: the first
		{"nvidia geforce RTX 4090", 0},
		{"LLVMpipe", 4},
		{"radeon rx 7900 xt", 3},
		{"AMD Radeon RX 7900", 2}, // a whole name, and part of another
		{"radeon", -1},            // several different names
		{"e", -1},
		{"voodoo", -1},
	} {
		got, err := SelectDevice(devices, c.selector)
		if c.want < 0 {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: device %d, error %v", c.selector, got, err)
				continue
			}
			for _, p := range devices {
				if !strings.Contains(err.Error(), p.Name) || !strings.Contains(err.Error(), UUIDString(p.UUID)) {
					t.Errorf("%q: the error does not list %s: %v", c.selector, p.Name, err)
				}
			}
		} else if err != nil || got != c.want {
			t.Errorf("%q: device %d, error %v; want %d", c.selector, got, err, c.want)
		}
	}
}

func TestErrorOfSelectDeviceListsTheDevices(t *testing.T) {
	_, err := SelectDevice([]*Properties{named("llvmpipe (LLVM 15)", 0x10), named("RTX", 0x20)}, "radeon")
	const want = `device "radeon": no device name contains it; device 0 is "llvmpipe (LLVM 15)" (discrete, UUID 10213243-5465-7687-98a9-bacbdcedfe0f); device 1 is "RTX" (discrete, UUID 20314253-6475-8697-a8b9-cadbecfd0e1f)`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

func TestSelectDeviceWithoutDevices(t *testing.T) {
	for _, selector := range []string{"", "0", "rtx"} {
		if _, err := SelectDevice(nil, selector); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%q: %v", selector, err)
		}
	}
}

func TestDeviceIsFoundByWhatIdentifiesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var devices []*Properties
		for k := range rapid.IntRange(1, 6).Draw(t, "devices") {
			p := &Properties{Name: rapid.StringMatching(`[a-c ]{0,4}x`).Draw(t, "name")}
			p.UUID[0] = byte(k)
			devices = append(devices, p)
		}
		want := rapid.IntRange(0, len(devices)-1).Draw(t, "want")
		if got, err := SelectDevice(devices, UUIDString(devices[want].UUID)); err != nil || got != want {
			t.Fatalf("by UUID: %d, %v", got, err)
		}
		name := strings.TrimSpace(devices[want].Name)
		got, err := SelectDevice(devices, name)
		if err == nil && !strings.Contains(devices[got].Name, name) {
			t.Fatalf("%q found %q", name, devices[got].Name)
		}
		if err != nil {
			different := map[string]bool{}
			for _, p := range devices {
				if strings.Contains(p.Name, name) {
					different[p.Name] = true
				}
			}
			if len(different) < 2 {
				t.Fatalf("%q fits %v, yet: %v", name, different, err)
			}
		}
	})
}

func TestDevicesAreSortedBestFirst(t *testing.T) {
	types := []DeviceType{DeviceSoftware, DeviceOther, DeviceDiscrete, DeviceVirtual, 77, DeviceIntegrated, DeviceDiscrete, DeviceSoftware}
	if got, want := bestFirst(types), []int{2, 6, 5, 3, 0, 7, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if got := bestFirst(nil); len(got) != 0 {
		t.Errorf("order of nothing: %v", got)
	}
}
