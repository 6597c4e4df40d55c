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
// The report of each of the device's heaps has the blocks that vkomp took from it
// and what is in use of them, with peaks and fragmentation, and the budget where the
// device tells it. Fragmentation is the part of the free bytes that a request for
// all of them could not have, from 0 to 1.
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
	sched.MemoryReport
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
		m.Opened, m.MemoryReport = true, d.d.rt.hostMemory.report()
		return m
	}
	if s := d.d.opened(); s != nil {
		m.Opened, m.MemoryReport = true, s.Memory()
	} else {
		m.MemoryReport = sched.ReportHeaps(d.d.physical.Properties())
	}
	return m
}

// WriteJSON writes the report as indented JSON, whose names stay what they are.
func (r MemoryReport) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
