package vkomp

import (
	"encoding/json"
	"io"

	"github.com/vkomp/vkomp/sched"
)

// MemoryReport says what the memory of all devices is used for.
type MemoryReport struct {
	// Devices are the non-host devices by number, then the initial one.
	Devices []DeviceMemory `json:"devices"`
}

// DeviceMemory says what the memory of one device is used for. Sizes are in bytes.
//
// The initial device has no heaps: its memory is Go's, and Total and Allocated count
// what [Device.Alloc] returned.
type DeviceMemory struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	// Opened: the device is in use. Another one has nothing but the sizes of its
	// heaps; the initial one always is.
	Opened bool `json:"opened"`

	// Heaps are the device's, by their number in Vulkan; Total is their sum.
	Heaps []HeapMemory `json:"heaps"`
	Total MemoryStats  `json:"total"`

	// Mapped are the blocks of host storage that have corresponding storage and a
	// reference count, Associated those whose storage is an allocation's, Declared
	// those that are declared for the target; each with the bytes of its
	// corresponding storage.
	Mapped     MemoryCount `json:"mapped"`
	Associated MemoryCount `json:"associated"`
	Declared   MemoryCount `json:"declared"`
	// Allocated is the memory that the program has allocated and not freed.
	Allocated MemoryCount `json:"allocated"`
}

// HeapMemory says what one of a device's memory heaps (VkMemoryHeap) is used for.
type HeapMemory struct {
	Size        uint64 `json:"size"`
	DeviceLocal bool   `json:"device_local"`
	// BudgetKnown: the device tells Budget, what the process may have of the heap,
	// and Usage, what it has (VK_EXT_memory_budget).
	BudgetKnown bool   `json:"budget_known"`
	Budget      uint64 `json:"budget"`
	Usage       uint64 `json:"usage"`

	// Storage is what mapped slices and allocations have of the heap, Staging the
	// buffers for copies between it and the host. Total is both. Its
	// PeakBlockBytes is exact; its PeakLiveBytes is a bound where both were used.
	Total   MemoryStats `json:"total"`
	Storage MemoryStats `json:"storage"`
	Staging MemoryStats `json:"staging"`
	// Imported is host storage that the device uses in place. It is in no total,
	// since the heap gives nothing for it.
	Imported ImportedMemory `json:"imported"`
}

// MemoryCount is a number of things and how many bytes they have together.
type MemoryCount struct {
	Count int    `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// ImportedMemory counts host storage that is device memory: what is so at the moment, in
// whole pages.
type ImportedMemory struct {
	MemoryCount
	// PeakBytes is the highest Bytes so far, Imports how often storage was imported.
	PeakBytes uint64 `json:"peak_bytes"`
	Imports   uint64 `json:"imports"`
}

// MemoryReport returns what the memory of all devices is used for at the moment. It
// opens no device, and any goroutine can call it at any time. It is linear in the
// blocks of storage that are present.
func (rt *Runtime) MemoryReport() MemoryReport {
	r := MemoryReport{Devices: make([]DeviceMemory, len(rt.devices))}
	for i, d := range rt.devices {
		r.Devices[i] = Device{d}.Memory()
	}
	return r
}

// Memory returns the device's part of [Runtime.MemoryReport]; that of the zero Device
// is empty.
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

// fill takes over what a device's scheduler reports.
func (m *DeviceMemory) fill(r sched.MemoryReport) {
	m.Heaps, m.Total = make([]HeapMemory, len(r.Heaps)), MemoryStats(r.Total)
	for i, h := range r.Heaps {
		m.Heaps[i] = HeapMemory{
			Size: h.Size, DeviceLocal: h.DeviceLocal, BudgetKnown: h.BudgetKnown, Budget: h.Budget, Usage: h.Usage,
			Total: MemoryStats(h.Total), Storage: MemoryStats(h.Storage), Staging: MemoryStats(h.Staging),
			Imported: ImportedMemory{MemoryCount(h.Imported.Tally), h.Imported.PeakBytes, h.Imported.Imports},
		}
	}
	m.Mapped, m.Associated = MemoryCount(r.Mapped), MemoryCount(r.Associated)
	m.Declared, m.Allocated = MemoryCount(r.Declared), MemoryCount(r.Allocated)
}

// WriteJSON writes the report as indented JSON, whose names stay what they are.
func (r MemoryReport) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
