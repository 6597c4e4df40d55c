package allocation

import (
	"errors"
	"math"
	"testing"

	"github.com/vkomp/vkomp/vk"
)

func TestMemoryTypeFollowsUse(t *testing.T) {
	const mapped = vk.MemoryHostVisible | vk.MemoryHostCoherent
	heaps := []vk.MemoryHeap{{Size: 8 << 30, DeviceLocal: true}, {Size: 16 << 30}, {Size: 256 << 20, DeviceLocal: true}}
	types := []vk.MemoryType{
		{Heap: 1, Flags: mapped},
		{Heap: 0, Flags: vk.MemoryDeviceLocal},
		{Heap: 2, Flags: vk.MemoryDeviceLocal | mapped},
		{Heap: 1, Flags: mapped | vk.MemoryHostCached},
		{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryLazy},
		{Heap: 0, Flags: vk.MemoryDeviceLocal | mapped},
		{Heap: 0, Flags: vk.MemoryDeviceLocal | vk.MemoryHostVisible | vk.MemoryHostCached},
	}
	for _, c := range []struct {
		name   string
		kind   vk.DeviceType
		bits   uint32
		use    use
		hidden bool
		want   int
	}{
		{"storage of a discrete device avoids the window", vk.DeviceDiscrete, 0b011111, forStorage, false, 1},
		{"storage takes memory that is all visible", vk.DeviceDiscrete, 0b111111, forStorage, false, 5},
		{"the window serves when nothing else is local", vk.DeviceDiscrete, 0b011101, forStorage, false, 2},
		{"storage of an integrated device is visible", vk.DeviceIntegrated, 0b011111, forStorage, false, 2},
		{"staging is cached", vk.DeviceDiscrete, 0b111111, forStaging, false, 3},
		{"staging takes any visible memory", vk.DeviceDiscrete, 0b000011, forStaging, false, 0},
		{"storage without local memory", vk.DeviceSoftware, 0b000001, forStorage, false, 0},
		{"no staging", vk.DeviceDiscrete, 0b000010, forStaging, false, -1},
		{"lazy memory is no storage", vk.DeviceDiscrete, 0b010000, forStorage, false, -1},
		{"storage that is hidden anyway need not be visible", vk.DeviceDiscrete, 0b111111, forStorage, true, 1},
		{"visible and not coherent is better than only local", vk.DeviceIntegrated, 0b1000010, forStorage, false, 6},
		{"storage is rather cached than coherent", vk.DeviceIntegrated, 0b1100000, forStorage, false, 6},
		{"staging is rather cached than coherent", vk.DeviceIntegrated, 0b1000001, forStaging, false, 6},
		{"pinned storage is cached", vk.DeviceDiscrete, 0b111111, forPinned, false, 3},
		{"pinned storage is rather not local to the device", vk.DeviceIntegrated, 0b100001, forPinned, false, 0},
		{"pinned storage is coherent", vk.DeviceIntegrated, 0b1000100, forPinned, false, 2},
		{"no pinned storage", vk.DeviceIntegrated, 0b1000010, forPinned, false, -1},
		{"staging that is not coherent", vk.DeviceIntegrated, 0b1000000, forStaging, false, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &vk.Properties{Name: "fake", Type: c.kind, MemoryTypes: types, MemoryHeaps: heaps}
			got, err := chooseMemoryType(p, c.bits, c.use, c.hidden)
			if c.want < 0 {
				if !errors.Is(err, vk.ErrUnsupported) {
					t.Errorf("got type %d, %v", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got type %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

// Pinned storage is imported, or allocated by the driver, or there is none.
func TestDecisionOnPinnedStorage(t *testing.T) {
	const visible = vk.MemoryHostVisible | vk.MemoryHostCoherent
	for _, c := range []struct {
		flags vk.MemoryFlags
		align uint64
		want  string
	}{
		{visible, 4096, "imported from the host, or memory type 0 (host-visible|host-coherent) in heap 0"},
		{visible, 0, "memory type 0 (host-visible|host-coherent) in heap 0"},
		{vk.MemoryHostVisible, 4096, "imported from the host"},
		{vk.MemoryHostVisible, 0, "none"},
	} {
		p := &vk.Properties{Limits: vk.Limits{MinImportedHostPointerAlignment: c.align}, MemoryTypes: []vk.MemoryType{{Flags: c.flags}}, MemoryHeaps: []vk.MemoryHeap{{Size: 1 << 30}}}
		r, err := NewProfile(p, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		made := r.Decisions(p, false)
		if last := made[len(made)-1]; last.Name != "pinned storage" || last.Choice != c.want || last.Reason == "" {
			t.Errorf("%+v, want %q", last, c.want)
		}
	}
}

func TestProfileFollowsTheMemoryTypes(t *testing.T) {
	const (
		local    = vk.MemoryDeviceLocal
		visible  = vk.MemoryHostVisible
		coherent = vk.MemoryHostCoherent
		cached   = vk.MemoryHostCached
	)
	two := []vk.MemoryHeap{{Size: 8 << 30, DeviceLocal: true}, {Size: 16 << 30}}
	window := append(two[:2:2], vk.MemoryHeap{Size: 256 << 20, DeviceLocal: true})
	one := two[:1]
	empty := []vk.MemoryHeap{{DeviceLocal: true}, two[1]}
	// The types of an NVIDIA H100, the last of which is in another heap on cards with a small window.
	card := func(heap int) []vk.MemoryType {
		return []vk.MemoryType{
			{Heap: 1}, {Heap: 0, Flags: local}, {Heap: 1, Flags: visible | coherent},
			{Heap: 1, Flags: visible | coherent | cached}, {Heap: heap, Flags: local | visible | coherent},
		}
	}
	for _, c := range []struct {
		name   string
		kind   vk.DeviceType
		heaps  []vk.MemoryHeap
		types  []vk.MemoryType
		hidden bool
		want   Profile
	}{
		{"software driver", vk.DeviceSoftware, one, []vk.MemoryType{{Flags: local | visible | coherent | cached}}, false,
			Profile{Unified, true, 0, 0, true, math.MaxUint64, 0}},
		{"software driver, hidden", vk.DeviceSoftware, one, []vk.MemoryType{{Flags: local | visible | coherent | cached}}, true,
			Profile{NoWindow, false, 0, 0, false, 0, 0}},
		{"card, all of it visible", vk.DeviceDiscrete, two, card(0), false, Profile{WholeWindow, false, 4, 3, false, windowWrites, kernelCopies}},
		{"card, all of it visible, hidden", vk.DeviceDiscrete, two, card(0), true, Profile{NoWindow, false, 1, 3, false, 0, kernelCopies}},
		{"card with a small window", vk.DeviceDiscrete, window, card(2), false, Profile{SmallWindow, false, 1, 3, false, 0, kernelCopies}},
		{"card without a window", vk.DeviceDiscrete, two, card(0)[:4], false, Profile{NoWindow, false, 1, 3, false, 0, kernelCopies}},
		{"card without cached memory", vk.DeviceDiscrete, two, card(0)[:3], false, Profile{NoWindow, false, 1, 2, false, 0, kernelCopies}},
		{"card without memory of its own", vk.DeviceDiscrete, empty, card(0), false, Profile{Unified, false, 3, 3, true, math.MaxUint64, 0}},
		{"card without memory of its own, hidden", vk.DeviceDiscrete, empty, card(0), true, Profile{NoWindow, false, 0, 3, false, 0, 0}},
		{"card with memory in a window alone", vk.DeviceDiscrete, append(empty[:2:2], window[2]), card(2), false,
			Profile{WholeWindow, false, 4, 3, false, windowWrites, kernelCopies}},
		{"card with a window of no bytes", vk.DeviceDiscrete, append(two[:2:2], vk.MemoryHeap{DeviceLocal: true}), card(2), false,
			Profile{NoWindow, false, 1, 3, false, 0, kernelCopies}},
		{"integrated, cached and not", vk.DeviceIntegrated, one,
			[]vk.MemoryType{{Flags: local}, {Flags: local | visible | coherent}, {Flags: local | visible | coherent | cached}}, false,
			Profile{Unified, true, 2, 2, true, math.MaxUint64, 0}},
		{"integrated, write-combined", vk.DeviceIntegrated, two,
			[]vk.MemoryType{{Flags: local | visible | coherent}, {Heap: 1, Flags: visible | coherent | cached}}, false,
			Profile{WholeWindow, true, 0, 1, false, windowWrites, 0}},
		{"integrated, one type that is not cached", vk.DeviceIntegrated, one, []vk.MemoryType{{Flags: local | visible | coherent}}, false,
			Profile{Unified, true, 0, 0, true, math.MaxUint64, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := NewProfile(&vk.Properties{Type: c.kind, MemoryTypes: c.types, MemoryHeaps: c.heaps}, 1<<len(c.types)-1, c.hidden)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}
