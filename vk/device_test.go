//go:build cgo

package vk

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

func TestOpenTellsAboutTheDevice(t *testing.T) {
	i := openInstance(t)
	if i.Handle() == 0 || i.GetInstanceProcAddr() == 0 {
		t.Error("an open instance has no handle or no vkGetInstanceProcAddr")
	}
	p := usable(t, i)
	q := p.Properties()
	l := q.Limits
	if p.Handle() == 0 || q.Name == "" || q.APIVersion < apiVersion12 || q.DriverName == "" {
		t.Errorf("handle %#x, properties %+v", p.Handle(), q)
	}
	// The minimum values that the specification requires.
	if l.MaxStorageBufferRange < 1<<27 || l.MaxPushConstantsSize < 128 ||
		l.MaxComputeWorkGroupCount[2] < 65535 || l.MaxComputeWorkGroupInvocations < 128 ||
		l.MaxMemoryAllocationCount < 4096 || l.MaxMemoryAllocationSize < 1<<30 ||
		l.MinStorageBufferOffsetAlignment == 0 || l.NonCoherentAtomSize == 0 ||
		l.MaxPerStageDescriptorStorageBuffers < 4 || l.TimestampPeriod == 0 {
		t.Errorf("limits %+v", l)
	}
	if !q.Features.TimelineSemaphore || !q.Features.RobustBufferAccess || q.Features.SubgroupSize == 0 {
		t.Errorf("features %+v", q.Features)
	}
	if len(q.MemoryTypes) == 0 || len(q.MemoryHeaps) == 0 || q.MemoryHeaps[0].Size == 0 || len(q.QueueFamilies) == 0 {
		t.Errorf("memory types %v, heaps %v, families %v", q.MemoryTypes, q.MemoryHeaps, q.QueueFamilies)
	}
	listed := false
	for _, e := range q.Extensions {
		listed = listed || e == "VK_KHR_push_descriptor"
	}
	if listed != q.Features.PushDescriptor {
		t.Errorf("push descriptors: listed %v, feature %v", listed, q.Features.PushDescriptor)
	}
}

func TestClosingAgainDoesNothing(t *testing.T) {
	i := openInstance(t)
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Handle() == 0 || d.Queues()[0].Handle() == 0 {
		t.Error("an open device or its queue has no handle")
	}
	if err := i.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("closing an instance with an open device: %v", err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	if i.Handle() != 0 {
		t.Error("a closed instance has a handle")
	}
}

func TestCallsAfterCloseSayClosed(t *testing.T) {
	i := openInstance(t)
	p := usable(t, i)
	d, err := p.Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	q := d.Queues()[0]
	calls := map[string]error{"Submit": q.Submit(nil, nil, nil, 1)}
	_, calls["CreateBlock"] = d.CreateBlock(64, 0)
	_, calls["BlockMemoryTypes"] = d.BlockMemoryTypes(64)
	_, calls["AdoptBuffer"] = d.AdoptBuffer(ForeignBuffer{})
	_, calls["ImportBlock"] = d.ImportBlock(uintptr(unsafe.Pointer(new(int))), 4096)
	calls["Flush"], calls["Invalidate"] = d.Flush(nil), d.Invalidate(nil)
	_, calls["CreateTimeline"] = d.CreateTimeline(0)
	_, calls["SemaphoreValue"] = d.SemaphoreValue(1)
	_, calls["WaitSemaphore"] = d.WaitSemaphore(1, 1, 0)
	calls["SignalSemaphore"] = d.SignalSemaphore(1, 1)
	_, calls["CreatePipeline"] = d.CreatePipeline(PipelineOptions{Code: shader(t, "add"), Entry: "main"})
	_, calls["CreateQueryPool"] = d.CreateQueryPool(1)
	calls["ResetQueryPool"], calls["Timestamps"] = d.ResetQueryPool(QueryPool{}, 0, 1), d.Timestamps(QueryPool{}, 0, nil)
	_, calls["Calibrate"] = d.Calibrate()
	_, calls["Completed"] = q.Completed()
	_, calls["Wait"] = q.Wait(1, 0)
	calls["WaitIdle"] = d.WaitIdle()
	d.DestroyBlock(Block{Buffer: 1})
	d.DestroyPipeline(Pipeline{Handle: 1})
	d.DestroySemaphore(1)
	d.DestroyQueryPool(QueryPool{Handle: 1})
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	_, calls["Open"] = p.Open(DeviceOptions{})
	for name, err := range calls {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCloseDestroysAndNamesWhatIsLeft(t *testing.T) {
	d, err := usable(t, openInstance(t)).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateBlock(64, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreatePipeline(PipelineOptions{
		Code: shader(t, "add"), Entry: "main", Bindings: []uint32{0, 1}, PushConstants: 8,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateTimeline(0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateQueryPool(3); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"VkBuffer": 1, "VkDeviceMemory": 1, "VkSemaphore": 1, "VkQueryPool": 1,
		"VkDescriptorSetLayout": 1, "VkPipelineLayout": 1, "VkPipeline": 1}
	live := d.Live()
	for kind, n := range want {
		if live[kind] != n {
			t.Errorf("%d %s are live, want %d", live[kind], kind, n)
		}
	}
	if len(live) != len(want) {
		t.Errorf("live: %v", live)
	}
	err = d.Close()
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "1 VkBuffer") {
		t.Errorf("Close: %v", err)
	}
	// The instance's clean-up finds no leak message: all objects were destroyed.
	if live := d.Live(); len(live) != 0 {
		t.Errorf("live after Close: %v", live)
	}
}

func TestQueuesAreAsPlannedAndDistinct(t *testing.T) {
	p := usable(t, openInstance(t))
	families := p.Properties().QueueFamilies
	for _, o := range []DeviceOptions{{}, {ComputeQueues: 1, TransferQueues: -1}, {ComputeQueues: 100, TransferQueues: 100}, {InteropQueues: -1}, {InteropQueues: 100}} {
		d, err := p.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		queues, interop := planDevice(families, o.ComputeQueues, cmp.Or(o.TransferQueues, 2), cmp.Or(o.InteropQueues, 1))
		checkQueues(t, d, queues, interop)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkQueues compares the families of the device's queues and interop queues with want
// and wantInterop.
func checkQueues(t *testing.T, d *Device, want, wantInterop []int) {
	t.Helper()
	seen := map[uintptr]bool{}
	timelines := map[Semaphore]bool{}
	check := func(kind string, queues []*Queue, want []int) {
		t.Helper()
		var got []int
		for _, q := range queues {
			got = append(got, int(q.Family()))
			seen[q.Handle()], timelines[q.Timeline()] = true, true
			if flags := d.Properties().QueueFamilies[q.Family()].Flags; q.Compute() != (flags&QueueCompute != 0) {
				t.Errorf("queue of family %d, %v: computes %v", q.Family(), flags, q.Compute())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s of families %v, want %v", kind, got, want)
		}
	}
	check("queues", d.Queues(), want)
	check("interop queues", d.InteropQueues(), wantInterop)
	if n := len(want) + len(wantInterop); len(seen) != n || len(timelines) != n || seen[0] || timelines[0] {
		t.Errorf("%d queues have handles %v and timelines %v", n, seen, timelines)
	}
	adopted := d.physical.adopted
	indices := queueIndices(want, wantInterop, adopted == nil && interopFirst(d.Properties().QueueFamilies, want, wantInterop))
	for k, q := range d.allQueues() {
		var h vulkan.Queue
		vulkan.GetDeviceQueue(d.handle, q.Family(), uint32(indices[k]), &h)
		handle := address(h)
		if adopted != nil {
			handle = adopted.queue(q.Family(), indices[k]).Handle
		}
		if q.Handle() != handle {
			t.Errorf("queue %d is not the one with index %d of family %d", k, indices[k], q.Family())
		}
	}
}

func TestNumbersOfQueuesThatCannotBeAreRefused(t *testing.T) {
	p := usable(t, openInstance(t))
	if _, err := p.Open(DeviceOptions{ComputeQueues: -1}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "-1 compute queues") {
		t.Errorf("-1 compute queues: %v", err)
	}
	family := slices.IndexFunc(p.Properties().QueueFamilies, computes)
	count := p.Properties().QueueFamilies[family].Count
	beyond := slices.Repeat([]int{family}, count+1)
	want := fmt.Sprintf("%d queues of family %d, which has %d", count+1, family, count)
	if _, err := p.openQueues(beyond, nil, DeviceOptions{}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("%d queues of a family that has %d: %v", len(beyond), count, err)
	}
	if _, err := p.openQueues(nil, nil, DeviceOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no queue: %v", err)
	}
}

func TestLeakAtDeviceDestructionIsReported(t *testing.T) {
	log := &recorder{}
	i, err := Open(InstanceOptions{Validation: true, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	info := vulkan.FenceCreateInfo{SType: vulkan.StructureTypeFenceCreateInfo}
	defer info.Free()
	var leaked vulkan.Fence
	if r := vulkan.CreateFence(d.handle, &info, nil, &leaked); r != vulkan.Success {
		t.Fatal(Result(r))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := log.find("VkFence"); !ok || i.Messages() == 0 {
		t.Errorf("%d messages, none about the fence", i.Messages())
	}
}

func TestLeakAtInstanceDestructionIsReported(t *testing.T) {
	log := &recorder{}
	i, err := Open(InstanceOptions{Validation: true, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := usable(t, i).open(DeviceOptions{}); err != nil { // bypassing the instance
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := log.find("VkDevice"); !ok || i.Messages() == 0 {
		t.Errorf("%d messages, none about the device", i.Messages())
	}
}

func TestBlockIsMappedAndAddressable(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	p := d.Properties()
	bits, err := d.BlockMemoryTypes(1 << 20)
	if err != nil || bits == 0 || bits>>len(p.MemoryTypes) != 0 {
		t.Fatalf("memory types %#b, error %v", bits, err)
	}
	for k, mt := range p.MemoryTypes {
		if bits>>k&1 == 0 {
			continue
		}
		b, err := d.CreateBlock(1000, k)
		if err != nil {
			t.Fatal(err)
		}
		if visible := mt.Flags&MemoryHostVisible != 0; visible != (b.Host != nil) {
			t.Errorf("type %d (%v): host pointer %v", k, mt.Flags, b.Host)
		}
		if p.Features.BufferDeviceAddress != (b.Address != 0) {
			t.Errorf("type %d: address %#x", k, b.Address)
		}
		if b.Size != 1000 || b.MemoryType != k || b.Memory == 0 || b.Buffer == 0 {
			t.Errorf("block %+v", b)
		}
		d.DestroyBlock(b)
		d.DestroyBlock(b) // destroyed already
	}
}

func TestImpossibleBlocksAreRefusedWithoutLeak(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	for _, c := range []struct {
		size       uint64
		memoryType int
		want       error
	}{
		{0, 0, ErrInvalid},
		{64, -1, ErrInvalid},
		{64, len(d.Properties().MemoryTypes), ErrInvalid},
		{1 << 50, 0, ErrOutOfMemory},
		{math.MaxUint64, 0, ErrOutOfMemory},
	} {
		if _, err := d.CreateBlock(c.size, c.memoryType); !errors.Is(err, c.want) {
			t.Errorf("%d bytes of type %d: %v", c.size, c.memoryType, err)
		}
	}
	if _, err := d.BlockMemoryTypes(0); !errors.Is(err, ErrInvalid) {
		t.Errorf("no bytes: %v", err)
	}
}

func TestSeveralInstancesAndDevicesWorkSideBySide(t *testing.T) {
	var devices []*Device
	for range 2 {
		i := openInstance(t)
		for range 2 {
			d, err := usable(t, i).Open(DeviceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			devices = append(devices, d)
		}
	}
	var all sync.WaitGroup
	for n, d := range devices {
		all.Go(func() {
			for value := uint64(1); value <= 20; value++ {
				b, err := d.CreateBlock(4096, 0)
				if err != nil {
					t.Error(err)
					return
				}
				var s Stream
				s.Fill(b.Buffer, 0, b.Size, uint32(n))
				s.Barrier(toHost)
				if err := d.Queues()[0].Submit(&s, nil, nil, value); err != nil {
					t.Error(err)
				}
				if done, err := d.Queues()[0].Wait(value, -1); !done || err != nil {
					t.Errorf("wait: done %v, error %v", done, err)
				}
				if b.Host != nil && *(*uint32)(b.Host) != uint32(n) {
					t.Errorf("device %d reads %d", n, *(*uint32)(b.Host))
				}
				d.DestroyBlock(b)
			}
		})
	}
	all.Wait()
}

func TestMissingLibraryIsNamed(t *testing.T) {
	_, err := findLibrary([]string{"libvulkan-absent.so.1", "libvulkan-absent.so"})
	if !errors.Is(err, ErrUnsupported) {
		t.Fatalf("error %v", err)
	}
	for _, name := range []string{"libvulkan-absent.so.1", "libvulkan-absent.so"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}

func TestLibraryWithoutVulkanIsNotTaken(t *testing.T) {
	library := map[string]string{
		"linux": "libc.so.6", "freebsd": "libc.so.7", "darwin": "/usr/lib/libSystem.B.dylib", "windows": "kernel32.dll",
	}[runtime.GOOS]
	_, err := findLibrary([]string{library})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "vkGetInstanceProcAddr") {
		t.Errorf("error %v", err)
	}
}

func TestLibraryNamesOfEverySystem(t *testing.T) {
	for goos, want := range map[string]string{
		"linux":   "libvulkan.so.1 libvulkan.so",
		"freebsd": "libvulkan.so.1 libvulkan.so",
		"windows": "vulkan-1.dll",
		"darwin":  "libvulkan.dylib libvulkan.1.dylib libMoltenVK.dylib",
	} {
		if got := strings.Join(libraryNames(goos), " "); got != want {
			t.Errorf("%s: %s", goos, got)
		}
	}
}

func TestNoDriverIsUnsupported(t *testing.T) {
	for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(variable, t.TempDir()+"/absent.json")
	}
	i, err := Open(InstanceOptions{})
	if err == nil {
		// A loader may create an instance that has no device.
		if n := len(i.PhysicalDevices()); n != 0 {
			t.Errorf("%d devices without a driver", n)
		}
		i.Close()
		return
	}
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "driver") {
		t.Errorf("error %v", err)
	}
}

func TestAbsentValidationLayerIsNamed(t *testing.T) {
	t.Setenv("VK_LAYER_PATH", t.TempDir())
	_, err := Open(InstanceOptions{Validation: true})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "VK_LAYER_KHRONOS_validation") {
		t.Errorf("error %v", err)
	}
}

func TestApplicationNameWithZeroByteIsRefused(t *testing.T) {
	if _, err := Open(InstanceOptions{ApplicationName: "a\x00b"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestMessageSeveritiesBecomeLogLevels(t *testing.T) {
	for severity, want := range map[uint32]slog.Level{
		0x1: slog.LevelDebug, 0x10: slog.LevelInfo, 0x100: slog.LevelWarn, 0x1000: slog.LevelError,
	} {
		if got := severityLevel(severity); got != want {
			t.Errorf("severity %#x is logged at %v", severity, got)
		}
	}
	if !isFinding(0x100, 2) || !isFinding(0x1000, 4) || isFinding(0x10, 2) || isFinding(0x1000, 1) {
		t.Error("findings are warnings and errors of validation and performance")
	}
}

func TestConstantsAreVulkans(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"StageCompute":        {uint64(StageCompute), uint64(vulkan.PipelineStageComputeShaderBit)},
		"StageTransfer":       {uint64(StageTransfer), uint64(vulkan.PipelineStageTransferBit)},
		"StageHost":           {uint64(StageHost), uint64(vulkan.PipelineStageHostBit)},
		"StageAllCommands":    {uint64(StageAllCommands), uint64(vulkan.PipelineStageAllCommandsBit)},
		"AccessShaderRead":    {uint64(AccessShaderRead), uint64(vulkan.AccessShaderReadBit)},
		"AccessShaderWrite":   {uint64(AccessShaderWrite), uint64(vulkan.AccessShaderWriteBit)},
		"AccessTransferRead":  {uint64(AccessTransferRead), uint64(vulkan.AccessTransferReadBit)},
		"AccessTransferWrite": {uint64(AccessTransferWrite), uint64(vulkan.AccessTransferWriteBit)},
		"AccessHostRead":      {uint64(AccessHostRead), uint64(vulkan.AccessHostReadBit)},
		"AccessHostWrite":     {uint64(AccessHostWrite), uint64(vulkan.AccessHostWriteBit)},
		"AccessMemoryRead":    {uint64(AccessMemoryRead), uint64(vulkan.AccessMemoryReadBit)},
		"AccessMemoryWrite":   {uint64(AccessMemoryWrite), uint64(vulkan.AccessMemoryWriteBit)},
		"MemoryDeviceLocal":   {uint64(MemoryDeviceLocal), uint64(vulkan.MemoryPropertyDeviceLocalBit)},
		"MemoryHostVisible":   {uint64(MemoryHostVisible), uint64(vulkan.MemoryPropertyHostVisibleBit)},
		"MemoryHostCoherent":  {uint64(MemoryHostCoherent), uint64(vulkan.MemoryPropertyHostCoherentBit)},
		"MemoryHostCached":    {uint64(MemoryHostCached), uint64(vulkan.MemoryPropertyHostCachedBit)},
		"MemoryLazy":          {uint64(MemoryLazy), uint64(vulkan.MemoryPropertyLazilyAllocatedBit)},
		"MemoryProtected":     {uint64(MemoryProtected), uint64(vulkan.MemoryPropertyProtectedBit)},
		"BufferTransferSrc":   {uint64(BufferTransferSrc), uint64(vulkan.BufferUsageTransferSrcBit)},
		"BufferTransferDst":   {uint64(BufferTransferDst), uint64(vulkan.BufferUsageTransferDstBit)},
		"BufferStorage":       {uint64(BufferStorage), uint64(vulkan.BufferUsageStorageBufferBit)},
		"QueueGraphics":       {uint64(QueueGraphics), uint64(vulkan.QueueGraphicsBit)},
		"QueueCompute":        {uint64(QueueCompute), uint64(vulkan.QueueComputeBit)},
		"QueueTransfer":       {uint64(QueueTransfer), uint64(vulkan.QueueTransferBit)},
		"QueueSparseBinding":  {uint64(QueueSparseBinding), uint64(vulkan.QueueSparseBindingBit)},
		"DeviceOther":         {uint64(DeviceOther), uint64(vulkan.PhysicalDeviceTypeOther)},
		"DeviceIntegrated":    {uint64(DeviceIntegrated), uint64(vulkan.PhysicalDeviceTypeIntegratedGpu)},
		"DeviceDiscrete":      {uint64(DeviceDiscrete), uint64(vulkan.PhysicalDeviceTypeDiscreteGpu)},
		"DeviceVirtual":       {uint64(DeviceVirtual), uint64(vulkan.PhysicalDeviceTypeVirtualGpu)},
		"DeviceSoftware":      {uint64(DeviceSoftware), uint64(vulkan.PhysicalDeviceTypeCpu)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, Vulkan has %#x", name, pair[0], pair[1])
		}
	}
	for want, got := range map[vulkan.Result]Result{
		vulkan.ErrorOutOfHostMemory: ErrorOutOfHostMemory, vulkan.ErrorOutOfDeviceMemory: ErrorOutOfDeviceMemory,
		vulkan.ErrorInitializationFailed: ErrorInitialization, vulkan.ErrorDeviceLost: ErrorDeviceLost,
		vulkan.ErrorMemoryMapFailed: ErrorMemoryMap, vulkan.ErrorLayerNotPresent: ErrorLayerNotPresent,
		vulkan.ErrorExtensionNotPresent: ErrorExtensionNotPresent, vulkan.ErrorFeatureNotPresent: ErrorFeatureNotPresent,
		vulkan.ErrorIncompatibleDriver: ErrorIncompatibleDriver, vulkan.ErrorTooManyObjects: ErrorTooManyObjects,
		vulkan.ErrorFormatNotSupported: ErrorFormatNotSupported, vulkan.ErrorFragmentedPool: ErrorFragmentedPool,
		vulkan.ErrorOutOfPoolMemory: ErrorOutOfPoolMemory, vulkan.NotReady: NotReady,
		vulkan.Timeout: Timeout, vulkan.Incomplete: Incomplete, vulkan.Success: Success,
	} {
		if Result(want) != got {
			t.Errorf("%v is %d, Vulkan has %d", got, got, want)
		}
	}
}

// Vulkan does not allow to create a buffer that is larger than maxBufferSize, not even to ask for its memory types.
func TestMemoryTypesOfABlockThatIsTooLarge(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	for name, types := range map[string]func(uint64) (uint32, error){
		"BlockMemoryTypes": d.BlockMemoryTypes, "ExportableMemoryTypes": d.ExportableMemoryTypes,
	} {
		if _, err := types(d.Properties().Limits.MaxMemoryAllocationSize + 1); !errors.Is(err, ErrOutOfMemory) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
