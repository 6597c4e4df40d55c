package vk

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// deviceClass ranks device types, best first.
func deviceClass(t DeviceType) int {
	switch t {
	case DeviceDiscrete:
		return 0
	case DeviceIntegrated:
		return 1
	case DeviceVirtual:
		return 2
	case DeviceSoftware:
		return 3
	}
	return 4
}

// bestFirst returns the order of Instance.PhysicalDevices as a stable permutation of
// 0..len(types)-1, so that devices of one class keep the driver's order.
func bestFirst(types []DeviceType) []int {
	order := make([]int, len(types))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return deviceClass(types[a]) - deviceClass(types[b])
	})
	return order
}

// SelectDevice returns the index of the device that a selector means:
//
//   - "" is the first device;
//   - 32 hexadecimal digits, in any case, alone or grouped by dashes as 8-4-4-4-12,
//     are a device UUID;
//   - other decimal digits are an index;
//   - anything else is searched for in the names, ignoring case. A whole name takes
//     precedence over a part of one. Of several devices with the same name the first
//     is meant; the others are selected by index or UUID. A part that occurs in
//     several different names is an error.
//
// Spaces around the selector are ignored. The error lists the existing devices. It matches
// ErrUnsupported if there is none, else ErrInvalid.
func SelectDevice(devices []*Properties, selector string) (int, error) {
	if len(devices) == 0 {
		return 0, fmt.Errorf("%w: no Vulkan device", ErrUnsupported)
	}
	s := strings.TrimSpace(selector)
	if s == "" {
		return 0, nil
	}
	if id, ok := parseUUID(s); ok {
		i := slices.IndexFunc(devices, func(p *Properties) bool { return p.UUID == id })
		if i < 0 {
			return 0, selectError(devices, selector, "no device has that UUID")
		}
		return i, nil
	}
	if strings.Trim(s, "0123456789") == "" {
		i, err := strconv.Atoi(s)
		if err != nil || i >= len(devices) {
			return 0, selectError(devices, selector, "the index is out of range")
		}
		return i, nil
	}
	return selectByName(devices, selector, strings.ToLower(s))
}

func selectByName(devices []*Properties, selector, want string) (int, error) {
	found, several := -1, false
	for i, p := range devices {
		name := strings.ToLower(p.Name)
		if name == want {
			return i, nil
		}
		if !strings.Contains(name, want) {
			continue
		}
		if found < 0 {
			found = i
		} else if p.Name != devices[found].Name {
			several = true
		}
	}
	if found < 0 {
		return 0, selectError(devices, selector, "no device name contains it")
	}
	if several {
		return 0, selectError(devices, selector, "it fits several devices")
	}
	return found, nil
}

// parseUUID parses 32 hexadecimal digits, optionally grouped 8-4-4-4-12.
func parseUUID(s string) (id [16]byte, ok bool) {
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(s) != 32 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// UUIDString formats a device UUID in groups 8-4-4-4-12, as SelectDevice accepts it.
func UUIDString(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func selectError(devices []*Properties, selector, why string) error {
	var b strings.Builder
	for i, p := range devices {
		fmt.Fprintf(&b, "; device %d is %q (%s, UUID %s)", i, p.Name, p.Type, UUIDString(p.UUID))
	}
	return fmt.Errorf("%w: device %q: %s%s", ErrInvalid, selector, why, b.String())
}
