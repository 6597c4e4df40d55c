package vkomp

import (
	"encoding/json"
	"io"

	"github.com/vkomp/vkomp/sched"
)

// MemoryReport describes the use of the memory of all devices.
type MemoryReport struct {
	// Devices are the non-host devices by number, then the initial one.
	Devices []DeviceMemory `json:"devices"`
}

// DeviceMemory describes the use of one device's memory. Sizes are in bytes.
//
// The initial device has no heaps, because its memory is Go's. Its Total and Allocated count
// the memory returned by [Device.Alloc].
type DeviceMemory struct {
	Number int    `json:"number"` // device number
	Name   string `json:"name"`   // as in DeviceInfo
	Type   string `json:"type"`   // as in DeviceInfo
	// Opened says that the device is in use, as the initial device always is. For another
	// device only the sizes of its heaps are set.
	Opened bool `json:"opened"`

	// Heaps are the device's heaps by their index in Vulkan; Total is their sum.
	Heaps []HeapMemory `json:"heaps"`
	Total MemoryStats  `json:"total"`

	// Mapped counts the blocks of host storage that have corresponding storage with a
	// finite reference count, Associated those associated with an allocation, Declared
	// those of declare target; the sizes are those of the corresponding storage.
	Mapped     MemoryCount `json:"mapped"`
	Associated MemoryCount `json:"associated"`
	Declared   MemoryCount `json:"declared"`
	// Allocated is the memory that the program has allocated and not freed.
	Allocated MemoryCount `json:"allocated"`
	// Pinned is the host storage that is pinned for the device.
	Pinned MemoryCount `json:"pinned"`
}

// HeapMemory describes the use of one memory heap of a device (VkMemoryHeap).
type HeapMemory struct {
	Size        uint64 `json:"size"`         // in bytes
	DeviceLocal bool   `json:"device_local"` // VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
	// BudgetKnown says that the device reports Budget, what the process may use of the
	// heap, and Usage, what it uses (VK_EXT_memory_budget), in bytes.
	BudgetKnown bool   `json:"budget_known"`
	Budget      uint64 `json:"budget"`
	Usage       uint64 `json:"usage"`

	// Storage is the memory of mapped slices and allocations, Staging the buffers for
	// copies between the heap and the host, Pinned the pinned storage that the driver has
	// allocated, External the memory of [Device.AllocExternal] and of [Device.ImportMemory], which
	// the device that has exported it counts, too, and Total the sum. The PeakBlockBytes of Total
	// is exact; its PeakLiveBytes is an upper bound if more than one was used.
	Total    MemoryStats `json:"total"`
	Storage  MemoryStats `json:"storage"`
	Staging  MemoryStats `json:"staging"`
	Pinned   MemoryCount `json:"pinned"`
	External MemoryCount `json:"external"`
	// Imported is host storage that the device uses in place. It is not part of any total,
	// because it takes nothing from the heap.
	Imported ImportedMemory `json:"imported"`
}

// MemoryCount is a number of things and their size.
type MemoryCount struct {
	Count int    `json:"count"` // number of things
	Bytes uint64 `json:"bytes"` // total size
}

// ImportedMemory counts host storage that is device memory at the moment, in whole pages.
type ImportedMemory struct {
	MemoryCount
	// PeakBytes is the highest Bytes so far, Imports the number of imports so far.
	PeakBytes uint64 `json:"peak_bytes"`
	Imports   uint64 `json:"imports"`
}

// MemoryReport returns the current use of the memory of all devices. It does not open a
// device, and may be called at any time. It takes time linear in the number of present
// storage blocks.
func (rt *Runtime) MemoryReport() MemoryReport {
	r := MemoryReport{Devices: make([]DeviceMemory, len(rt.devices))}
	for i, d := range rt.devices {
		r.Devices[i] = Device{d}.Memory()
	}
	return r
}

// Memory returns the device's part of [Runtime.MemoryReport]. It is empty for the zero
// Device.
func (d Device) Memory() DeviceMemory {
	if d.d == nil {
		return DeviceMemory{}
	}
	info := d.Info()
	m := DeviceMemory{Number: info.Number, Name: info.Name, Type: info.Type}
	if d.IsInitial() {
		m.Opened = true
		d.d.rt.hostMemory.report(&m)
		return m
	}
	if s := d.d.opened(); s != nil {
		m.Opened = true
		m.fill(s.Memory())
	} else {
		m.fill(sched.ReportHeaps(d.d.physical.Properties()))
	}
	return m
}

// fill copies the report of a device's scheduler.
func (m *DeviceMemory) fill(r sched.MemoryReport) {
	m.Heaps, m.Total = make([]HeapMemory, len(r.Heaps)), MemoryStats(r.Total)
	for i, h := range r.Heaps {
		m.Heaps[i] = HeapMemory{
			Size: h.Size, DeviceLocal: h.DeviceLocal, BudgetKnown: h.BudgetKnown, Budget: h.Budget, Usage: h.Usage,
			Total: MemoryStats(h.Total), Storage: MemoryStats(h.Storage), Staging: MemoryStats(h.Staging), Pinned: MemoryCount(h.Pinned), External: MemoryCount(h.External),
			Imported: ImportedMemory{MemoryCount(h.Imported.Tally), h.Imported.PeakBytes, h.Imported.Imports},
		}
	}
	m.Mapped, m.Associated = MemoryCount(r.Mapped), MemoryCount(r.Associated)
	m.Declared, m.Allocated, m.Pinned = MemoryCount(r.Declared), MemoryCount(r.Allocated), MemoryCount(r.Pinned)
}

// WriteJSON writes the report as indented JSON with stable names.
func (r MemoryReport) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
