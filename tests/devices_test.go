package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// sectionOf returns the section that depend items and maps of a slice name.
func sectionOf(s []uint32) memory.Section {
	return memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(s)), Size: 4 * uint64(len(s))}
}

// A physical device that is opened several times counts as several devices. A chain in one task
// graph alternates between them, and each link maps what it uses.
func TestChainOverOnePhysicalDeviceOpenedMoreThanOnce(t *testing.T) {
	const devices, links, elements = 3, 40, 1000
	instance, err := vk.Open(vk.InstanceOptions{ApplicationName: "vkomp", Validation: true})
	if err != nil {
		t.Fatal(err)
	}
	var graph tasks.Graph
	scope := graph.NewScope()
	k, err := kernel.New("affine", affineModule, "main", nil)
	if err != nil {
		t.Fatal(err)
	}
	var schedulers []*sched.Scheduler
	for i := range devices {
		d, err := instance.PhysicalDevices()[0].Open(vk.DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := sched.New(sched.FromVulkan(d), sched.Options{Domain: tasks.Host + 1 + tasks.Domain(i)})
		if err != nil {
			t.Fatal(err)
		}
		schedulers = append(schedulers, s)
	}
	x, y := make([]uint32, elements), make([]uint32, elements)
	wantX, wantY := uint32(1), uint32(2)
	for i := range x {
		x[i], y[i] = wantX, wantY
	}
	link := func(s *sched.Scheduler, label string, dst, src []uint32, add uint32) error {
		maps := []memory.Map{{Section: sectionOf(src), Type: memory.MapTo}, {Section: sectionOf(dst), Type: memory.MapToFrom}}
		var values [][]byte
		for _, v := range []uint32{elements, 3, 1, add} {
			values = append(values, unsafe.Slice((*byte)(unsafe.Pointer(&v)), 4))
		}
		return s.Run(t.Context(), &sched.Region{
			Construct: construct.Construct{Label: label, Scope: scope, NoWait: true, Depend: []tasks.Depend{
				{Kind: tasks.DependIn, Ptr: maps[0].Section.Ptr, Size: maps[0].Section.Size},
				{Kind: tasks.DependInOut, Ptr: maps[1].Section.Ptr, Size: maps[1].Section.Size},
			}},
			Enter:      maps,
			Structured: true,
			Kernel:     k,
			Range:      [3]uint64{elements, 1, 1},
			Values:     values,
		})
	}
	for i := range links {
		s := schedulers[i%devices]
		if err := errors.Join(link(s, fmt.Sprint("x ", i), x, y, uint32(i)), link(schedulers[(i+1)%devices], fmt.Sprint("y ", i), y, x, 7)); err != nil {
			t.Fatal(err)
		}
		wantX = 3*wantX + wantY + uint32(i)
		wantY = 3*wantY + wantX + 7
	}
	if err := scope.Wait(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if x[i] != wantX || y[i] != wantY {
			t.Fatalf("element %d is %d and %d, want %d and %d", i, x[i], y[i], wantX, wantY)
		}
	}
	for i, s := range schedulers {
		if n := s.Stats().Dispatches; n < links/devices {
			t.Errorf("device %d ran %d kernels", i, n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := instance.Messages(); n > 0 {
		t.Errorf("%d validation messages", n)
	}
	if err := instance.Close(); err != nil {
		t.Error(err)
	}
}

// otherDrivers is set in the process in which the drivers for its test are loaded.
const otherDrivers = "VKOMP_TEST_OTHER_DRIVERS"

// driverFiles returns the manifests of lavapipe and SwiftShader, and a reason if one is missing.
func driverFiles() (files []string, missing string) {
	lavapipe, _ := filepath.Glob("/usr/share/vulkan/icd.d/lvp_icd*.json")
	if len(lavapipe) == 0 {
		return nil, "no lavapipe: /usr/share/vulkan/icd.d/lvp_icd*.json is missing"
	}
	swiftshader := os.Getenv("SWIFTSHADER_ICD")
	if swiftshader == "" {
		swiftshader, _ = filepath.Abs("../.cache/swiftshader/vk_swiftshader_icd.json")
	}
	if _, err := os.Stat(swiftshader); err != nil {
		return nil, fmt.Sprintf("no SwiftShader (see scripts/setup): %v", err)
	}
	return []string{lavapipe[0], swiftshader}, ""
}

// withBothDrivers runs a test with two devices, each of another driver.
func withBothDrivers(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	vktest.Once(t)
	files, missing := driverFiles()
	if missing != "" {
		t.Skip(missing)
	}
	withDrivers(t, files, test)
}

// withDrivers runs a test in a process of its own in which those drivers are loaded.
func withDrivers(t *testing.T, files []string, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(otherDrivers) != "" {
		test(t)
		return
	}
	list := strings.Join(files, string(os.PathListSeparator))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	child.Env = append(os.Environ(), otherDrivers+"=1", "VK_DRIVER_FILES="+list, "VK_ICD_FILENAMES="+list)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("with %s: %v\n%s", list, err, out)
	}
}

// One runtime has the devices of two drivers.
func TestChainOverTwoDrivers(t *testing.T) { withBothDrivers(t, chainOverTwoDrivers) }

// chainOverTwoDrivers maps data on two devices and alternates between them in a chain that also
// copies from the memory of one to that of the other.
func chainOverTwoDrivers(t *testing.T) {
	rt := vktest.Open(t)
	if rt.NumDevices() != 2 {
		t.Fatalf("%d devices, want one of each driver", rt.NumDevices())
	}
	var devices [2]vkomp.Device
	for i := range devices {
		var err error
		if devices[i], err = rt.Device(i); err != nil {
			t.Fatal(err)
		}
	}
	if devices[0].Info().Driver == devices[1].Info().Driver {
		t.Fatalf("both devices are %q", devices[0].Info().Driver)
	}
	ctx := t.Context()
	k := newAffine(t, rt)
	const links, elements = 30, 5000
	newSlice := func(v uint32) []uint32 { return slices.Repeat([]uint32{v}, elements) }

	// Mapped on both in turns: each device returns what the other one uses next.
	turn, constant := newSlice(1), newSlice(5)
	wantTurn := uint32(1)
	// Mapped on both all the time: only the device's copy changes until the exits.
	held := [2][]uint32{newSlice(1), newSlice(2)}
	wantHeld := [2]uint32{1, 2}
	// Only in device memory: copied to the other device in every link.
	var memories [2]vkomp.DevicePtr
	token := make([]uint32, 1)
	wantMoved := uint32(9)
	start := newSlice(9)
	for i, d := range devices {
		p, err := d.Alloc(ctx, 4*elements)
		if err != nil {
			t.Fatal(err)
		}
		memories[i] = p
		if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(held[i]), vkomp.To(constant)}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(d vkomp.Device, target vkomp.Target) {
		t.Helper()
		target.Device = d
		check(rt.Target(ctx, target))
	}
	check(rt.MemcpyAsync(ctx, memories[0], vkomp.HostPtr(start), 4*elements, vkomp.InOut(token)))
	for i := range links {
		at := i % 2
		add := uint32(i)
		run(devices[at], k.on(turn, turn, 3, 0, add, vkomp.InOut(turn)))
		wantTurn = 3*wantTurn + add
		run(devices[at], k.on(held[at], constant, 3, 1, add, vkomp.InOut(held[at]), vkomp.In(constant)))
		wantHeld[at] = 3*wantHeld[at] + 5 + add
		run(devices[at], vkomp.Target{
			Kernel: k.Kernel, Range: vkomp.Range{X: elements}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(token)},
			Args: []vkomp.Arg{vkomp.To(constant), vkomp.IsDevicePtr(memories[at]),
				vkomp.Value(uint32(elements)), vkomp.Value(uint32(3)), vkomp.Value(uint32(1)), vkomp.Value(add)},
		})
		wantMoved = 3*wantMoved + 5 + add
		check(rt.MemcpyAsync(ctx, memories[1-at], memories[at], 4*elements, vkomp.InOut(token)))
	}
	moved := newSlice(0)
	check(rt.MemcpyAsync(ctx, vkomp.HostPtr(moved), memories[links%2], 4*elements, vkomp.InOut(token)))
	check(rt.Taskwait(ctx))
	for i, d := range devices {
		check(rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.From(held[i]), vkomp.Release(constant)}}))
		check(d.Free(ctx, memories[i]))
	}
	for name, pair := range map[string][2][]uint32{
		"what takes turns": {turn, newSlice(wantTurn)}, "what was copied over": {moved, newSlice(wantMoved)},
		"what the first holds": {held[0], newSlice(wantHeld[0])}, "what the second holds": {held[1], newSlice(wantHeld[1])},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s begins with %v, want %v", name, pair[0][:4], pair[1][:4])
		}
	}
}
