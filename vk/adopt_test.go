//go:build cgo

package vk

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

const apiVersion13 = 1<<22 | 3<<12

// countingLocker is a queue's lock that counts how often it is taken.
type countingLocker struct {
	sync.Locker
	taken int // guarded by the Locker
}

func (l *countingLocker) Lock() { l.Locker.Lock(); l.taken++ }

// application opens a validated device for adoption and describes it. Its queues are
// locked by countingLockers in addition to the application's own locks.
func application(t *testing.T) (*Device, Adoption) {
	t.Helper()
	app := openDevice(t, DeviceOptions{InteropQueues: -1})
	return app, adoptionOf(app)
}

func adoptionOf(app *Device) Adoption {
	a := Adoption{
		Instance: app.instance.Handle(), PhysicalDevice: app.physical.Handle(), Device: app.Handle(),
		APIVersion: apiVersion13, Extensions: app.Properties().Extensions, Features: app.Properties().Features,
	}
	for _, q := range app.Queues() {
		a.Queues = append(a.Queues, AdoptedQueue{q.Handle(), q.Family(), &countingLocker{Locker: q.Locker()}})
	}
	return a
}

// adopt opens an adopted device, which must have no live objects when the test ends.
func adopt(t *testing.T, a Adoption, o DeviceOptions) *Device {
	t.Helper()
	i, err := Adopt(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(i.PhysicalDevices()) != 1 {
		t.Fatalf("%d devices of an adopted instance", len(i.PhysicalDevices()))
	}
	d, err := i.PhysicalDevices()[0].Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if live := d.Live(); len(live) != 0 {
			t.Errorf("left when the test ended: %v", live)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestAdoptedDeviceIsTheApplications(t *testing.T) {
	app, a := application(t)
	i, err := Adopt(a)
	if err != nil {
		t.Fatal(err)
	}
	p := i.PhysicalDevices()[0]
	if i.Handle() != app.instance.Handle() || p.Handle() != app.physical.Handle() || i.GetInstanceProcAddr() != app.instance.GetInstanceProcAddr() {
		t.Errorf("instance %#x, physical device %#x, vkGetInstanceProcAddr %#x", i.Handle(), p.Handle(), i.GetInstanceProcAddr())
	}
	if p.Properties().Features != app.Properties().Features || p.Properties().Name != app.Properties().Name {
		t.Errorf("%+v, want %+v", p.Properties(), app.Properties())
	}
	// It may be opened while it is open, and again after it was closed.
	for range 2 {
		first, err := p.Open(DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := p.Open(DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*Device{first, second} {
			q := d.Queues()[0]
			if d.Handle() != app.Handle() || q.Handle() != app.Queues()[0].Handle() || q.Family() != app.Queues()[0].Family() {
				t.Errorf("device %#x with queue %#x of family %d", d.Handle(), q.Handle(), q.Family())
			}
			if q.Timeline() == app.Queues()[0].Timeline() {
				t.Error("the application's timeline")
			}
			if q.Locker() != a.Queues[0].Locker {
				t.Error("another Locker than the application's")
			}
		}
		if err := i.Close(); !errors.Is(err, ErrBusy) {
			t.Errorf("closing an instance with open devices: %v", err)
		}
		for _, d := range []*Device{first, second} {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if err := app.Queues()[0].Submit(nil, nil, nil, 1); err != nil {
		t.Error(err)
	}
	wait(t, app.Queues()[0], 1)
}

// Both sides submit to one VkQueue in turns and wait for each other's timelines.
func TestTimelinesOrderBothSidesOfAnAdoptedDevice(t *testing.T) {
	for name, o := range map[string]DeviceOptions{"default": {}, "pools": {NoPushDescriptors: true}} {
		t.Run(name, func(t *testing.T) {
			app, a := application(t)
			d := adopt(t, a, o)
			const rounds = 50
			ones, from := newBlock(t, app, 1024)
			sum, words := newBlock(t, d, 1024)
			for n := range from {
				from[n] = 1
			}
			sides := []*Device{app, d}
			var add []Pipeline
			for _, side := range sides {
				add = append(add, newPipeline(t, side, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8}))
			}
			turns := newTimeline(t, app, 0)
			for n := range uint64(rounds) {
				for k, side := range sides {
					var s Stream
					s.Dispatch(add[k], []BufferRange{all(ones), all(sum)}, push(1024, uint32(k)+1), [3]uint32{}, [3]uint32{16, 1, 1})
					s.Barrier(toHost)
					turn := 2*n + uint64(k)
					if err := side.Queues()[0].Submit(&s, []SemaphoreValue{{turns, turn}}, []SemaphoreValue{{turns, turn + 1}}, n+1); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, side := range sides {
				wait(t, side.Queues()[0], rounds)
			}
			checkSemaphore(t, d, turns, 2*rounds)
			for n, v := range words {
				if v != 3*rounds {
					t.Fatalf("word %d is %d", n, v)
				}
			}
		})
	}
}

// Both sides create, use and destroy objects concurrently. Validation reports concurrent
// calls that use the same VkQueue.
func TestBothSidesOfAnAdoptedDeviceWorkAtOnce(t *testing.T) {
	app, a := application(t)
	d := adopt(t, a, DeviceOptions{})
	const rounds = 100
	var ends sync.WaitGroup
	for _, side := range []*Device{app, d} {
		q := side.Queues()[0]
		ends.Go(func() {
			for value := uint64(1); value <= rounds; value++ {
				b, err := side.CreateBlock(256, hostType(side))
				if err != nil {
					t.Error(err)
					return
				}
				p, err := side.CreatePipeline(PipelineOptions{Code: shader(t, "group"), Entry: "main", Bindings: []uint32{0}, PushConstants: 8})
				if err != nil {
					t.Error(err)
					return
				}
				data := unsafe.Slice((*uint32)(b.Host), 64)
				clear(data)
				var s Stream
				s.Dispatch(p, []BufferRange{all(b)}, push(1, 1), [3]uint32{}, [3]uint32{64, 1, 1})
				s.Barrier(toHost)
				if err := q.Submit(&s, nil, nil, value); err != nil {
					t.Error(err)
					return
				}
				if done, err := q.Wait(value, -1); !done || err != nil {
					t.Errorf("value %d: %v, %v", value, done, err)
				}
				if data[63] != 64 {
					t.Errorf("value %d: %v", value, data)
				}
				side.DestroyPipeline(p)
				side.DestroyBlock(b)
			}
		})
	}
	ends.Wait()
	if err := d.Queues()[0].Order(nil, nil); err != nil {
		t.Error(err)
	}
	if got := a.Queues[0].Locker.(*countingLocker).taken; got != rounds+1 {
		t.Errorf("the lock is taken %d times for %d submissions", got, rounds+1)
	}
}

// hostType returns a memory type that is host-visible and coherent.
func hostType(d *Device) int {
	return slices.IndexFunc(d.Properties().MemoryTypes, func(m MemoryType) bool {
		return m.Flags&(MemoryHostVisible|MemoryHostCoherent) == MemoryHostVisible|MemoryHostCoherent
	})
}

// A submission of the application that waits for a signal of the application does not
// block closing the adopted device.
func TestClosingAnAdoptedDeviceWaitsForItsOwnWorkAlone(t *testing.T) {
	app, a := application(t)
	i, err := Adopt(a)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	d, err := i.PhysicalDevices()[0].Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := d.CreateTimeline(0)
	if err != nil {
		t.Fatal(err)
	}
	b, data := newBlock(t, app, 1<<20)
	var s Stream
	for n := range uint32(20) {
		s.Fill(b.Buffer, 0, b.Size, n+1)
		s.Barrier(between)
	}
	s.Barrier(toHost)
	if err := d.Queues()[0].Submit(&s, nil, nil, 5); err != nil {
		t.Fatal(err)
	}
	if err := d.Queues()[0].Order(nil, []SemaphoreValue{{own, 1}}); err != nil {
		t.Fatal(err)
	}
	gate, behind := newTimeline(t, app, 0), app.Queues()[0]
	if err := behind.Submit(nil, []SemaphoreValue{{gate, 1}}, nil, 1); err != nil {
		t.Fatal(err)
	}
	// Validation would report objects that are destroyed while in use.
	if err := d.Close(); !errors.Is(err, ErrBusy) || !strings.HasSuffix(err.Error(), "1 VkSemaphore") {
		t.Errorf("Close: %v", err)
	}
	if data[1<<20-1] != 20 {
		t.Errorf("the device was closed when the last word was %d", data[1<<20-1])
	}
	if done, err := behind.Wait(1, 0); done || err != nil {
		t.Errorf("the application's work: done %v, %v", done, err)
	}
	if err := app.SignalSemaphore(gate, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, behind, 1)
	if err := d.Queues()[0].Submit(nil, nil, nil, 100); !errors.Is(err, ErrClosed) {
		t.Errorf("submission to a closed device: %v", err)
	}
}

// Semaphores are destroyed when the device is idle. A driver that still used one to end a
// submission would crash.
func TestIdleDeviceUsesNoSemaphore(t *testing.T) {
	app, a := application(t)
	for name, d := range map[string]*Device{"own": app, "adopted": adopt(t, a, DeviceOptions{})} {
		t.Run(name, func(t *testing.T) {
			q := d.Queues()[0]
			for round := range uint64(3000) {
				s, err := d.CreateTimeline(0)
				if err != nil {
					t.Fatal(err)
				}
				values := []SemaphoreValue{{s, 1}}
				err = q.Order(nil, values)
				if round%2 == 0 {
					err = errors.Join(err, q.Order(values, nil))
				} else {
					err = errors.Join(err, q.Submit(nil, values, nil, round+1))
				}
				if err = errors.Join(err, d.WaitIdle()); err != nil {
					t.Fatal(err)
				}
				d.DestroySemaphore(s)
			}
		})
	}
}

func TestWhatAnAdoptedDeviceWasMadeWithoutIsNamed(t *testing.T) {
	_, given := application(t)
	without := func(change func(a *Adoption)) Adoption {
		a := given
		change(&a)
		return a
	}
	const version, timelines, robust, queue = "Vulkan 1.2 (it has 1.1.0)", "timelineSemaphore", "robustBufferAccess", "a compute queue"
	for _, c := range []struct {
		adoption Adoption
		missing  string
	}{
		{without(func(a *Adoption) { a.APIVersion = 1<<22 | 1<<12 }), version + ", " + timelines},
		{without(func(a *Adoption) { a.APIVersion = 0 }), "Vulkan 1.2 (it has 0.0.0), " + timelines},
		{without(func(a *Adoption) { a.Features.TimelineSemaphore = false }), timelines},
		{without(func(a *Adoption) { a.Queues = nil }), queue},
		{without(func(a *Adoption) { a.Features.RobustBufferAccess, a.Robust = false, true }), robust},
		{without(func(a *Adoption) { a.Features, a.Robust = Features{}, true }), timelines + ", " + robust},
		{without(func(a *Adoption) { a.Features, a.Queues = Features{}, nil }), timelines + ", " + queue},
		{without(func(a *Adoption) { a.APIVersion, a.Queues = 1<<22|1<<12, nil }), version + ", " + timelines + ", " + queue},
	} {
		i, err := Adopt(c.adoption)
		if i != nil || !errors.Is(err, ErrUnsupported) || !strings.HasSuffix(err.Error(), " was made without "+c.missing) {
			t.Errorf("%v, want %s", err, c.missing)
		}
	}
}

func TestImpossibleAdoptionsAreRefused(t *testing.T) {
	app, given := application(t)
	families := app.Properties().QueueFamilies
	for name, c := range map[string]struct {
		change func(a *Adoption)
		want   string
	}{
		"no instance":        {func(a *Adoption) { a.Instance = 0 }, "no Instance"},
		"no physical device": {func(a *Adoption) { a.PhysicalDevice = 0 }, "no PhysicalDevice"},
		"no device":          {func(a *Adoption) { a.Device = 0 }, "no Device"},
		"device of nobody":   {func(a *Adoption) { a.PhysicalDevice = a.Device }, "the instance does not show PhysicalDevice"},
		"no queue":           {func(a *Adoption) { a.Queues[0].Handle = 0 }, "queue 0 has no Handle"},
		"no lock":            {func(a *Adoption) { a.Queues[0].Locker = nil }, "queue 0 has no Locker"},
		"one queue twice":    {func(a *Adoption) { a.Queues = append(a.Queues, a.Queues[0]) }, "are the same"},
		"no such family":     {func(a *Adoption) { a.Queues[0].Family = 1 << 31 }, "queue 0 is of family 2147483648"},
		"no family to share": {func(a *Adoption) { a.Families = []uint32{uint32(len(families))} }, "of"},
		"too many queues": {func(a *Adoption) {
			for k := range families[a.Queues[0].Family].Count + 1 {
				a.Queues = append(a.Queues, AdoptedQueue{uintptr(k) + 1, a.Queues[0].Family, new(sync.Mutex)})
			}
		}, "queues of family"},
	} {
		a := given
		a.Queues = slices.Clone(given.Queues)
		c.change(&a)
		if i, err := Adopt(a); i != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A description of what the device cannot have been created with is an error.
func TestClaimsThatCannotBeTrueAreRefused(t *testing.T) {
	app, given := application(t)
	p := app.physical
	have, haveExtensions := p.c.features, p.c.extensions
	defer func() { p.c.features, p.c.extensions = have, haveExtensions }()
	a := &adopted{Adoption: given}
	a.readClaims()
	q := *p
	q.c.extensions = 0
	err := a.restrict(&q, func() { q.c.features = have; q.c.features.shader_int64, q.c.features.scalar_block_layout = 0, 0 })
	var want []string
	for _, name := range given.Extensions {
		if name == "VK_KHR_push_descriptor" || name == "VK_EXT_external_memory_host" {
			want = append(want, name)
		}
	}
	if app.Properties().Features.ShaderInt64 {
		want = append(want, "shaderInt64")
	}
	if app.Properties().Features.ScalarBlockLayout {
		want = append(want, "scalarBlockLayout")
	}
	if len(want) < 2 {
		t.Fatalf("the device has only %v", want)
	}
	if !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	for _, name := range want {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if strings.Contains(err.Error(), "timelineSemaphore") {
		t.Errorf("names what the device has: %v", err)
	}
}

// openMinimal creates a VkDevice with only the required feature, and describes it.
func openMinimal(t *testing.T) (*Device, Adoption) {
	t.Helper()
	p := *usable(t, openInstance(t))
	a := &adopted{Adoption: Adoption{Features: Features{TimelineSemaphore: true}}}
	a.readClaims()
	p.c.features, p.c.extensions = a.features, 0
	p.properties.Features = Features{TimelineSemaphore: true}
	app, err := p.Open(DeviceOptions{InteropQueues: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
	adoption := adoptionOf(app)
	adoption.Extensions = nil
	return app, adoption
}

func TestOnlyWhatIsSaidToBeEnabledIsUsed(t *testing.T) {
	_, a := openMinimal(t)
	d := adopt(t, a, DeviceOptions{})
	got := d.Properties().Features
	got.SubgroupSize, got.SubgroupOperations = 0, 0
	// Vulkan 1.3 needs nothing enabled for this one.
	feedback := d.Properties().APIVersion >= apiVersion13
	if got != (Features{TimelineSemaphore: true, PipelineCreationFeedback: feedback}) {
		t.Errorf("features %+v", got)
	}
	// Dispatches through descriptor pools.
	group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
	b, data := newBlock(t, d, 64)
	if b.Address != 0 {
		t.Errorf("a block has address %#x", b.Address)
	}
	var s Stream
	s.Dispatch(group, []BufferRange{all(b)}, push(64, 1), [3]uint32{}, [3]uint32{64, 1, 1})
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if data[63] != 64 {
		t.Errorf("the dispatch left %v", data)
	}
	unit := max(4096, uint64(d.Properties().Limits.MinImportedHostPointerAlignment))
	memory := hostMemory(t, unit, unit)
	if _, err := d.ImportBlock(uintptr(unsafe.Pointer(&memory[0])), unit); !errors.Is(err, ErrUnsupported) {
		t.Errorf("import without VK_EXT_external_memory_host: %v", err)
	}
	if heaps, ok := d.MemoryBudget(); ok {
		t.Errorf("budget %v without VK_EXT_memory_budget", heaps)
	}
}

// Validation reports commands that these barriers do not order.
func TestBarriersOfADeviceWithoutSynchronization2(t *testing.T) {
	_, a := openMinimal(t)
	d := adopt(t, a, DeviceOptions{})
	group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
	b, _ := newBlock(t, d, 64)
	out, data := newBlock(t, d, 64)
	var s Stream
	s.Fill(b.Buffer, 0, b.Size, 7)
	s.Barrier(Barrier{StageTransfer, StageCompute, AccessTransferWrite, AccessShaderRead | AccessShaderWrite})
	s.Dispatch(group, []BufferRange{all(b)}, push(64, 1), [3]uint32{}, [3]uint32{64, 1, 1})
	s.Barrier(Barrier{StageCompute, StageTransfer, AccessShaderWrite, AccessTransferRead})
	s.Copy(b.Buffer, out.Buffer, 0, 0, b.Size)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if data[63] != 7+64 {
		t.Errorf("the copy is %v", data)
	}
}

// featureStructure has the memory layout of Vulkan's feature structures.
type featureStructure struct {
	sType int32
	next  *featureStructure
	on    [56]uint32 // VkBool32s
}

type createInfo struct {
	sType          int32
	next           *featureStructure
	_              uint32
	queues         uint32
	_              uintptr
	layers         uint32
	_              uintptr
	extensionCount uint32
	extensions     **byte
	enabled        *[56]uint32
}

// claims reads a VkDeviceCreateInfo and returns its extensions and features by name.
func claims(t *testing.T, extensions []string, enabled *[56]uint32, chain ...*featureStructure) (features []string, a *adopted) {
	t.Helper()
	var pins runtime.Pinner
	defer pins.Unpin()
	info := &createInfo{sType: 3, enabled: enabled, extensionCount: uint32(len(extensions))}
	var names []*byte
	for _, name := range extensions {
		text := append([]byte(name), 0)
		pins.Pin(&text[0])
		names = append(names, &text[0])
	}
	if len(names) > 0 {
		pins.Pin(&names[0])
		info.extensions = &names[0]
	}
	if enabled != nil {
		pins.Pin(enabled)
	}
	end := &info.next
	for _, s := range chain {
		pins.Pin(s)
		*end, s.next = s, nil
		end = &s.next
	}
	a = &adopted{Adoption: Adoption{CreateInfo: unsafe.Pointer(info)}}
	a.readClaims()
	if a.CreateInfo != nil {
		t.Error("the pointer is kept")
	}
	var f Features
	for _, field := range f.fields(&a.features) {
		if *field.c != 0 {
			features = append(features, field.name)
		}
	}
	return features, a
}

func TestFeaturesAreReadFromEveryStructureThatEnablesThem(t *testing.T) {
	const core = 1000059000
	seen := map[string]int{}
	for sType, members := range map[int32]map[int]string{
		core: {0: "robustBufferAccess", 33: "shaderUniformBufferArrayDynamicIndexing", 35: "shaderStorageBufferArrayDynamicIndexing",
			39: "shaderFloat64", 40: "shaderInt64", 41: "shaderInt16"},
		49: {0: "storageBuffer16BitAccess", 1: "uniformAndStorageBuffer16BitAccess", 2: "storagePushConstant16",
			7: "variablePointersStorageBuffer", 8: "variablePointers"},
		51: {2: "storageBuffer8BitAccess", 3: "uniformAndStorageBuffer8BitAccess", 4: "storagePushConstant8",
			5: "shaderBufferInt64Atomics", 6: "shaderSharedInt64Atomics", 7: "shaderFloat16", 8: "shaderInt8",
			15: "shaderStorageBufferArrayNonUniformIndexing", 31: "scalarBlockLayout", 34: "shaderSubgroupExtendedTypes",
			36: "hostQueryReset", 37: "timelineSemaphore", 38: "bufferDeviceAddress", 41: "vulkanMemoryModel", 42: "vulkanMemoryModelDeviceScope",
			46: "subgroupBroadcastDynamicId"},
		53:         {9: "synchronization2", 11: "shaderZeroInitializeWorkgroupMemory", 14: "maintenance4"},
		1000083000: {0: "storageBuffer16BitAccess", 1: "uniformAndStorageBuffer16BitAccess", 2: "storagePushConstant16"},
		1000082000: {0: "shaderFloat16", 1: "shaderInt8"},
		1000120000: {0: "variablePointersStorageBuffer", 1: "variablePointers"},
		1000161001: {5: "shaderStorageBufferArrayNonUniformIndexing"},
		1000175000: {0: "shaderSubgroupExtendedTypes"},
		1000177000: {0: "storageBuffer8BitAccess", 1: "uniformAndStorageBuffer8BitAccess", 2: "storagePushConstant8"},
		1000180000: {0: "shaderBufferInt64Atomics", 1: "shaderSharedInt64Atomics"},
		1000207000: {0: "timelineSemaphore"},
		1000211000: {0: "vulkanMemoryModel", 1: "vulkanMemoryModelDeviceScope"},
		1000221000: {0: "scalarBlockLayout"},
		1000257000: {0: "bufferDeviceAddress"},
		1000261000: {0: "hostQueryReset"},
		1000286000: {0: "robustBufferAccess2"},
		1000314007: {0: "synchronization2"},
		1000325000: {0: "shaderZeroInitializeWorkgroupMemory"},
		1000413000: {0: "maintenance4"},
		1000059001: {}, // not a structure of features
	} {
		for member := range len(featureStructure{}.on) {
			var want []string
			if name, ok := members[member]; ok {
				want = []string{name}
				seen[name]++
			}
			s := featureStructure{sType: sType}
			s.on[member] = 1
			if got, _ := claims(t, nil, nil, &featureStructure{sType: 7}, &s, &featureStructure{sType: 51}); !slices.Equal(got, want) {
				t.Errorf("structure %d, member %d: %v, want %v", sType, member, got, want)
			}
			if sType == core {
				if got, _ := claims(t, nil, &s.on); !slices.Equal(got, want) {
					t.Errorf("pEnabledFeatures, member %d: %v, want %v", member, got, want)
				}
			}
		}
	}
	var f Features
	for _, field := range f.fields(&new(adopted).features) {
		if seen[field.name] == 0 {
			t.Errorf("%s is in no structure", field.name)
		}
	}
}

func TestClaimsOfAllKindsAddUp(t *testing.T) {
	enabled := new([56]uint32)
	enabled[0] = 1
	timelines := &featureStructure{sType: 1000207000}
	timelines.on[0] = 1
	got, a := claims(t, []string{"VK_KHR_swapchain", "VK_KHR_push_descriptor"}, enabled, timelines)
	if !slices.Equal(got, []string{"timelineSemaphore", "robustBufferAccess"}) {
		t.Errorf("features %v", got)
	}
	a.Extensions = []string{"VK_EXT_memory_budget", "VK_KHR_no_such_extension"}
	a.Features = Features{ShaderInt64: true, PushDescriptor: true}
	a.readClaims()
	if a.features.shader_int64 == 0 || a.features.timeline_semaphore == 0 || a.features.shader_float64 != 0 {
		t.Errorf("features %+v", a.features)
	}
	if a.extensions != 1<<0|1<<2 {
		t.Errorf("extensions %#b", a.extensions)
	}
}

// What Vulkan 1.3 has in its core is an extension of a device below that.
func TestFeaturesOfExtensionsAreAdoptedBelowVulkan13(t *testing.T) {
	for name, f := range map[string]Features{
		"VK_KHR_zero_initialize_workgroup_memory": {ShaderZeroInitializeWorkgroupMemory: true},
		"VK_KHR_maintenance4":                     {Maintenance4: true},
		"VK_EXT_robustness2":                      {RobustBufferAccess2: true},
		"VK_KHR_robustness2":                      {RobustBufferAccess2: true},
	} {
		app, a := openMinimal(t)
		if !slices.Contains(app.Properties().Extensions, name) {
			continue
		}
		f.TimelineSemaphore = true
		a.APIVersion, a.Extensions, a.Features = 1<<22|2<<12, []string{name}, f
		got := adopt(t, a, DeviceOptions{}).Properties().Features
		got.SubgroupSize, got.SubgroupOperations = 0, 0
		if got != f {
			t.Errorf("%s: %+v, want %+v", name, got, f)
		}
	}
}

func TestApplicationDescribesItsDeviceByItsCreateInfo(t *testing.T) {
	_, a := openMinimal(t)
	timelines := &featureStructure{sType: 1000207000}
	timelines.on[0] = 1
	info := &createInfo{sType: 3, next: timelines}
	var pins runtime.Pinner
	pins.Pin(timelines)
	defer pins.Unpin()
	a.Features, a.CreateInfo = Features{}, unsafe.Pointer(info)
	d := adopt(t, a, DeviceOptions{})
	if err := d.Queues()[0].Submit(nil, nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, d.Queues()[0], 1)
}

func TestForeignBufferIsUsedAndNeverDestroyed(t *testing.T) {
	app, a := application(t)
	d := adopt(t, a, DeviceOptions{})
	theirs, data := newBlock(t, app, 64)
	foreign := ForeignBuffer{Buffer: theirs.Buffer, Memory: theirs.Memory, Size: 256, Exclusive: true,
		Family: d.Queues()[0].Family(), Usage: blockUsage | BufferDeviceAddress}
	b, err := d.AdoptBuffer(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Block{Memory: theirs.Memory, Buffer: theirs.Buffer, Size: 256, Address: theirs.Address, MemoryType: -1, Foreign: true}); b != want {
		t.Errorf("%+v, want %+v", b, want)
	}
	if live := d.Live(); len(live) != 0 {
		t.Errorf("live: %v", live)
	}
	group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
	var s Stream
	s.Fill(b.Buffer, 0, b.Size, 1)
	s.Barrier(between)
	s.Dispatch(group, []BufferRange{all(b)}, push(64, 1), [3]uint32{}, [3]uint32{64, 1, 1})
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if data[0] != 2 || data[63] != 65 {
		t.Errorf("left %v", data)
	}
	// When the buffer is destroyed, its handle may be reused for another block.
	own, words := newBlock(t, d, 64)
	for _, gone := range []Block{b, {Buffer: own.Buffer, Memory: own.Memory, Foreign: true}} {
		d.DestroyBlock(gone)
	}
	s.Reset()
	s.Copy(b.Buffer, own.Buffer, 0, 0, 256)
	s.Barrier(toHost)
	run(t, d, &s, 2)
	if words[63] != 65 {
		t.Errorf("copied %v", words)
	}
	without := foreign
	without.Usage = blockUsage
	if b, err := d.AdoptBuffer(without); b.Address != 0 || err != nil {
		t.Errorf("a buffer without addresses: %+v, %v", b, err)
	}
	beyond := foreign
	beyond.Size = 1 << 20
	nowhere := foreign
	nowhere.Family = uint32(len(d.Properties().QueueFamilies))
	for _, wrong := range []ForeignBuffer{{}, beyond, nowhere} {
		if b, err := d.AdoptBuffer(wrong); b != (Block{}) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %+v, %v", wrong, b, err)
		}
	}
	if err := d.Close(); err == nil {
		t.Error("closed with a pipeline and a block")
	}
	if data[63] != 65 {
		t.Error("the application's memory is gone")
	}
}

func TestForeignBufferOfADeviceWithoutAddressesHasNone(t *testing.T) {
	app, a := openMinimal(t)
	d := adopt(t, a, DeviceOptions{})
	theirs, err := app.CreateBlock(64, hostType(app))
	if err != nil {
		t.Fatal(err)
	}
	defer app.DestroyBlock(theirs)
	b, err := d.AdoptBuffer(ForeignBuffer{Buffer: theirs.Buffer, Memory: theirs.Memory, Size: 64, Usage: blockUsage | BufferDeviceAddress,
		Families: []uint32{d.Queues()[0].Family()}})
	if err != nil || b.Address != 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

// adoptToLose opens an adopted device that the test loses: closing it, by done, may fail then. That waits for the device's work, which
// uses what the test has made.
func adoptToLose(t *testing.T, a Adoption) (d *Device, done func()) {
	t.Helper()
	i, err := Adopt(a)
	if err != nil {
		t.Fatal(err)
	}
	if d, err = i.PhysicalDevices()[0].Open(DeviceOptions{}); err != nil {
		i.Close()
		t.Fatal(err)
	}
	return d, func() {
		d.Close()
		i.Close()
	}
}

// WaitIdle waits for the VkQueue of an adopted device that is lost, although waits for the queue's timeline succeed then.
func TestWaitIdleOfAnAdoptedDeviceThatIsLost(t *testing.T) {
	app := openWithoutValidation(t, DeviceOptions{InteropQueues: -1})
	d, done := adoptToLose(t, adoptionOf(app))
	defer done()
	q, gate, ended := d.Queues()[0], newTimeline(t, app, 0), newTimeline(t, app, 0)
	if err := app.Queues()[0].Order([]SemaphoreValue{{gate, 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Submit(nil, nil, []SemaphoreValue{{ended, 1}}, 1); err != nil {
		t.Fatal(err)
	}
	if err := app.SignalSemaphore(q.timeline, math.MaxUint64); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- d.WaitIdle() }()
	for range 10_000 {
		runtime.Gosched()
	}
	if now, err := app.SemaphoreValue(ended); now != 0 || err != nil {
		t.Fatalf("the submission has ended: %d, %v", now, err)
	}
	early := len(over) > 0
	if err := app.SignalSemaphore(gate, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-over; early || !errors.Is(err, ErrDeviceLost) && err != nil {
		t.Errorf("WaitIdle returned %v, while the submission was under way: %v", err, early)
	}
}

// Trim uses the command pool and not the VkQueue, whose lock the application may hold for long. It notes the loss of
// the device as other calls do.
func TestTrimOfAnAdoptedDevice(t *testing.T) {
	app := openWithoutValidation(t, DeviceOptions{InteropQueues: -1})
	a := adoptionOf(app)
	d, done := adoptToLose(t, a)
	defer done()
	q, gate := d.Queues()[0], newTimeline(t, app, 0)
	b, _ := newBlock(t, d, 16)
	var s Stream
	s.Fill(b.Buffer, 0, 64, 1)
	if err := q.Submit(&s, nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, q, 1)
	taken := &a.Queues[0].Locker.(*countingLocker).taken
	before := *taken
	if err := d.Trim(); err != nil || *taken != before || q.commandBuffers() != 0 {
		t.Errorf("%v, the application's lock was taken %d times, %d command buffers are left", err, *taken-before, q.commandBuffers())
	}
	if err := app.Queues()[0].Order([]SemaphoreValue{{gate, 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Submit(&s, nil, nil, 2); err != nil {
		t.Fatal(err)
	}
	if err := app.SignalSemaphore(q.timeline, math.MaxUint64); err != nil {
		t.Fatal(err)
	}
	if err := d.Trim(); !errors.Is(err, ErrDeviceLost) || !d.lost.Load() {
		t.Errorf("%v, noted: %v", err, d.lost.Load())
	}
	if err := app.SignalSemaphore(gate, 1); err != nil {
		t.Fatal(err)
	}
}
