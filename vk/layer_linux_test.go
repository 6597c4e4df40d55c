//go:build cgo

package vk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// layer is a Vulkan layer that a test compiles.
type layer struct {
	name    string
	sources []string
}

// faultLayer makes calls fail; see its source.
var faultLayer = layer{"VK_LAYER_VKOMP_test", []string{"testdata/layer/layer.c"}}

const validationLayer = "VK_LAYER_KHRONOS_validation"

// useLayers inserts layers between the driver and the instances that the test opens:
// validation first, nearest to the program, then these in order.
func useLayers(t *testing.T, layers ...layer) {
	t.Helper()
	folders := []string{"/usr/share/vulkan/explicit_layer.d", "/usr/local/share/vulkan/explicit_layer.d", "/etc/vulkan/explicit_layer.d"}
	names := []string{validationLayer}
	for _, l := range layers {
		library := compile(t, l.sources...)
		text := fmt.Sprintf(`{"file_format_version": "1.1.2", "layer": {"name": %q, "type": "GLOBAL", "library_path": %q,
			"api_version": "1.3.0", "implementation_version": "1", "description": "for tests"}}`, l.name, library)
		if err := os.WriteFile(filepath.Join(filepath.Dir(library), "layer.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, filepath.Dir(library))
		names = append(names, l.name)
	}
	t.Setenv("VK_LAYER_PATH", strings.Join(folders, ":"))
	t.Setenv("VK_INSTANCE_LAYERS", strings.Join(names, ":"))
}

// openLayered opens an instance with only the fault layer of testdata.
func openLayered(t *testing.T) *Instance {
	t.Helper()
	useLayers(t, faultLayer)
	t.Setenv("VK_INSTANCE_LAYERS", faultLayer.name)
	i, err := Open(InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// Push constants of one layout are undefined for another that has more of them. The drivers keep
// them, and validation reports nothing, so the recording layer says what is pushed.
func TestSameConstantsArePushedAgainForAnotherLayout(t *testing.T) {
	const layers = "../tests/layers/"
	useLayers(t, layer{"VK_LAYER_VKOMP_record", []string{layers + "record.c", layers + "layer.c", layers + "map.c", "-pthread", "-fvisibility=hidden"}})
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("VKOMP_RECORD", log)
	t.Run("dispatches", func(t *testing.T) { // the log is complete when the device is closed
		d := openDevice(t, DeviceOptions{})
		b, _ := newBlock(t, d, 64)
		small := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
		large := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 16})
		var s Stream
		for _, p := range []Pipeline{small, small, large, small} {
			s.Dispatch(p, []BufferRange{all(b)}, push(64, 1), [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(between)
		}
		run(t, d, &s, 1)
	})
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\nk 0 40,1\n"); n != 3 {
		t.Errorf("the constants are pushed %d times, want 3", n)
	}
}

func layeredDevice(t *testing.T) *Device {
	t.Helper()
	d, err := usable(t, openLayered(t)).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestMemoryBudgetIsTheDrivers(t *testing.T) {
	d := layeredDevice(t)
	heaps, ok := d.MemoryBudget()
	if !ok || len(heaps) != len(d.Properties().MemoryHeaps) {
		t.Fatalf("%v, %v", heaps, ok)
	}
	for k, h := range heaps {
		if want := (HeapBudget{Budget: uint64(k+1) << 33, Usage: uint64(k+1) << 3}); h != want {
			t.Errorf("heap %d: %+v, want %+v", k, h, want)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if heaps, ok := d.MemoryBudget(); ok {
		t.Errorf("of a closed device: %v", heaps)
	}
}

// Each call on the way to a block fails in turn.
func TestBlockThatFailsHalfwayLeavesNothing(t *testing.T) {
	d := layeredDevice(t)
	type making struct {
		name  string
		calls []string
		make  func() (Block, error)
	}
	calls := []string{"vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory"}
	ways := []making{{"CreateBlock", append(calls, "vkMapMemory"), func() (Block, error) { return d.CreateBlock(64, 0) }}}
	if unit := d.Properties().Limits.MinImportedHostPointerAlignment; d.Properties().Features.ExternalMemoryHost {
		data := hostMemory(t, 3*unit, unit)
		ways = append(ways, making{"ImportBlock", append(calls[:3:3], "vkGetMemoryHostPointerPropertiesEXT"),
			func() (Block, error) { return d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), unit) }})
	}
	for _, way := range ways {
		for _, call := range way.calls {
			for result, want := range map[Result]error{ErrorOutOfHostMemory: ErrOutOfMemory, ErrorInvalidExternalHandle: ErrUnsupported, ErrorDeviceLost: ErrDeviceLost} {
				t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("%s=%d", call, result))
				b, err := way.make()
				if !errors.Is(err, want) || !strings.Contains(err.Error(), call+": "+result.String()) || b != (Block{}) {
					t.Errorf("%s, %s gives %v: %+v, %v", way.name, call, result, b, err)
				}
				if live := d.Live(); len(live) != 0 {
					t.Errorf("%s, %s gives %v: %v are left", way.name, call, result, live)
				}
			}
			t.Setenv("VKOMP_TEST_FAIL", "")
			b, err := way.make()
			if err != nil {
				t.Fatalf("%s after %s failed: %v", way.name, call, err)
			}
			d.DestroyBlock(b)
		}
	}
	if len(d.mapped) != 0 {
		t.Errorf("mapped: %v", d.mapped)
	}
}

func TestTimelineThatFailsLeavesNothing(t *testing.T) {
	d := layeredDevice(t)
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("vkCreateSemaphore=%d", ErrorOutOfHostMemory))
	s, err := d.CreateTimeline(3)
	if want := "vkCreateSemaphore: VK_ERROR_OUT_OF_HOST_MEMORY: a timeline from 3 on"; s != 0 || !errors.Is(err, ErrOutOfMemory) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%#x, %v; want %s", uint64(s), err, want)
	}
	if live := d.Live(); len(live) != 0 {
		t.Errorf("left: %v", live)
	}
}

func TestCalibrationAsksADeviceThatTellsItsClock(t *testing.T) {
	t.Setenv("VKOMP_TEST_CLOCK", "0x123456789")
	d := layeredDevice(t)
	if !d.Properties().Features.CalibratedTimestamps {
		t.Fatal("the device does not have the extension")
	}
	before := time.Now()
	c, err := d.Calibrate()
	if after := time.Now(); err != nil || c.Ticks != 0x123456789 || c.Host.Before(before) || c.Host.After(after) {
		t.Errorf("%+v, %v", c, err)
	}
	if n := d.Queues()[0].commandBuffers(); n != 0 {
		t.Errorf("%d command buffers", n)
	}
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("vkGetCalibratedTimestampsEXT=%d", ErrorOutOfHostMemory))
	if c, err := d.Calibrate(); c != (Calibration{}) || !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDeviceThatTellsOtherClocksAloneIsNotAskedForIt(t *testing.T) {
	t.Setenv("VKOMP_TEST_CLOCK", "7")
	t.Setenv("VKOMP_TEST_FAIL", "timeDomain=1")
	d := layeredDevice(t)
	if d.Properties().Features.CalibratedTimestamps {
		t.Error("the feature is there")
	}
	if c, err := d.Calibrate(); c.Ticks == 7 || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// Each call on the way to a calibration by submissions fails in turn.
func TestCalibrationThatFailsLeavesNothing(t *testing.T) {
	d := layeredDevice(t)
	for _, call := range []string{"vkCreateQueryPool", "vkCreateSemaphore", "vkQueueSubmit@1", "vkQueueSubmit@3", "vkGetQueryPoolResults@2"} {
		for result, want := range map[Result]error{ErrorOutOfHostMemory: ErrOutOfMemory, ErrorDeviceLost: ErrDeviceLost} {
			t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("%s=%d", call, result))
			if c, err := d.Calibrate(); c != (Calibration{}) || !errors.Is(err, want) || !strings.Contains(err.Error(), result.String()) {
				t.Errorf("%s gives %v: %+v, %v", call, result, c, err)
			}
			if live := d.Live(); len(live) != 0 {
				t.Errorf("%s gives %v: %v are left", call, result, live)
			}
		}
		t.Setenv("VKOMP_TEST_FAIL", "")
		if _, err := d.Calibrate(); err != nil {
			t.Errorf("after %s failed: %v", call, err)
		}
	}
}

func TestMemoryThatTheDriverGivesNoTypeIsNotImported(t *testing.T) {
	d := layeredDevice(t)
	unit := d.Properties().Limits.MinImportedHostPointerAlignment
	if !d.Properties().Features.ExternalMemoryHost {
		unit = 4096
	}
	data := hostMemory(t, unit, unit)
	t.Setenv("VKOMP_TEST_FAIL", "memoryTypeBits=1")
	if _, err := d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), unit); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	if live := d.Live(); len(live) != 0 {
		t.Errorf("left: %v", live)
	}
}

// A device may have the extension without being able to import buffers like a block's.
func TestDeviceThatCannotImportBlocksSaysSo(t *testing.T) {
	for features, want := range map[int]bool{
		0x4: true, 0x6: true,
		0x2:       false, // exportable alone
		0x4 | 0x1: false, // with dedicated allocations only
	} {
		t.Run(fmt.Sprint(features), func(t *testing.T) {
			t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("externalMemoryFeatures=%d", features))
			d := layeredDevice(t)
			p := d.Properties()
			listed := false
			for _, e := range p.Extensions {
				listed = listed || e == "VK_EXT_external_memory_host"
			}
			if can := p.Features.ExternalMemoryHost; can != (want && listed) || can != (p.Limits.MinImportedHostPointerAlignment != 0) {
				t.Errorf("listed %v, feature %v, alignment %d", listed, can, p.Limits.MinImportedHostPointerAlignment)
			}
			if can := p.Features.ExternalMemoryFd; can != (features == 0x6 && has(d, "VK_KHR_external_memory_fd")) {
				t.Errorf("blocks as files: %v", can)
			}
			data := hostMemory(t, 1<<16, 1<<16)
			b, err := d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), 1<<16)
			if p.Features.ExternalMemoryHost {
				if err != nil {
					t.Fatal(err)
				}
				d.DestroyBlock(b)
			} else if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), p.Name) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestFlushGivesTheDriverNoEmptyRangeAndNamesWhatFailed(t *testing.T) {
	d := layeredDevice(t)
	b, err := d.CreateBlock(4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroyBlock(b)
	if b.Host == nil {
		t.Fatal("memory type 0 is not the host's")
	}
	for call, sync := range map[string]func([]MemoryRange) error{
		"vkFlushMappedMemoryRanges": d.Flush, "vkInvalidateMappedMemoryRanges": d.Invalidate,
	} {
		t.Setenv("VKOMP_TEST_FAIL", "")
		for _, empty := range [][]MemoryRange{nil, {{b.Memory, 0, 0}}, {{b.Memory, 0, 0}, {b.Memory, 64, 4}}} {
			if err := sync(empty); err != nil {
				t.Errorf("%s of %v: %v", call, empty, err)
			}
		}
		t.Setenv("VKOMP_TEST_FAIL", call+"=-2")
		err := sync([]MemoryRange{{b.Memory, 64, 128}})
		if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), call+": VK_ERROR_OUT_OF_DEVICE_MEMORY: 1 ranges, the first of 128 bytes at byte 64") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
