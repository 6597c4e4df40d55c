package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
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

// decision is a row of `devices -v`.
type decision struct{ choice, reason string }

// printedDecisions runs `devices -v` and returns each device's decisions by name. It fails the test
// if a row is not a name, a choice and a reason.
func printedDecisions(t *testing.T) []map[string]decision {
	t.Helper()
	var devices []map[string]decision
	printed := succeed(t, "devices", "-v")
	_, sections, _ := strings.Cut(printed, "\n\n")
	columns := regexp.MustCompile(`^  (\S.*?)  +(\S.*?)  +(\S.*)$`)
	for i, section := range strings.Split(sections, "\n\n") {
		lines := strings.Split(strings.TrimSuffix(section, "\n"), "\n")
		if !strings.HasPrefix(lines[0], fmt.Sprintf("device %d, ", i)) {
			t.Errorf("section %d begins with %q", i, lines[0])
		}
		made := make(map[string]decision)
		for _, line := range lines[1:] {
			row := columns.FindStringSubmatch(line)
			if row == nil {
				t.Errorf("%q is not a decision with its choice and its reason", line)
				continue
			}
			made[row[1]] = decision{row[2], row[3]}
		}
		devices = append(devices, made)
	}
	if t.Failed() {
		t.Logf("printed:\n%s", printed)
	}
	return devices
}

// Every decision of every Vulkan device is printed with its reason, and those about memory and
// queues are there on each.
func TestVerboseDevicesSayWhatIsDecidedAndWhy(t *testing.T) {
	devices := printedDecisions(t)
	rt := vktest.Open(t)
	if len(devices) != rt.NumDevices() {
		t.Errorf("%d devices are printed with decisions, want %d", len(devices), rt.NumDevices())
	}
	for i, printed := range devices {
		device, err := rt.Device(i)
		if err != nil {
			t.Fatal(err)
		}
		made := device.Decisions()
		if len(made) != len(printed) {
			t.Errorf("device %d: %d decisions are printed, want %d", i, len(printed), len(made))
		}
		for _, d := range made {
			if got := printed[d.Name]; got != (decision{d.Choice, d.Reason}) {
				t.Errorf("device %d: %s is printed as %q, want %q because %q", i, d.Name, got, d.Choice, d.Reason)
			}
		}
		for _, name := range []string{"memory", "storage", "staging", "host reads storage", "host writes storage", "kernels", "copies to and from the host", "interop objects"} {
			if printed[name].choice == "" {
				t.Errorf("device %d: nothing is said of %q", i, name)
			}
		}
	}
}

// The decisions about memory, through the layer that shows devices with memory of their own.
func TestDecisionsFollowTheMemoryOfTheDevice(t *testing.T) {
	for _, c := range []struct {
		profile, memory, storage, staging, reads, writes string
	}{
		{"bar", "all mapped by the host, not cached", "memory type 4 .* in heap 0", "memory type 3 .*cached.* in heap 1", "never", "up to [0-9]+ bytes"},
		{"smallbar", "a small part mapped by the host", "memory type 1 .* in heap 0", "memory type 3 .*cached.* in heap 1", "never", "never"},
		{"nobar", "not mapped by the host", "memory type 1 .* in heap 0", "memory type 3 .*cached.* in heap 1", "never", "never"},
		{"nocached", "a small part mapped by the host", "memory type 1 .* in heap 0", "memory type 2 .* in heap 1", "never", "never"},
		{"integrated", "unified", "memory type 2 .*cached.* in heap 0", "memory type 2 .*cached.* in heap 0", "always", "always"},
	} {
		t.Run(c.profile, func(t *testing.T) {
			vktest.Discrete(t, c.profile)
			got := printedDecisions(t)[0]
			for name, want := range map[string]string{"memory": c.memory, "storage": c.storage, "staging": c.staging, "host reads storage": c.reads, "host writes storage": c.writes} {
				if !regexp.MustCompile("^" + want + "$").MatchString(got[name].choice) {
					t.Errorf("%s: %q, want %q", name, got[name].choice, want)
				}
			}
			if slow := strings.Contains(got["staging"].reason, "slowly"); slow != (c.profile == "nocached") {
				t.Errorf("the reason for staging is %q", got["staging"].reason)
			}
		})
	}
}
