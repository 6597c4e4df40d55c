package vkomp

// ChunkBytes and ChunkRows are the largest chunk that is copied between devices at once.
const (
	ChunkBytes = chunkBytes
	ChunkRows  = chunkRows
)

// OpenAgain adds a device to a runtime that has not been used yet: another one on the physical
// device of d.
func OpenAgain(rt *Runtime, d Device) Device {
	initial := rt.devices[len(rt.devices)-1]
	again := &device{rt: rt, number: initial.number, physical: d.d.physical}
	initial.number++
	rt.devices = append(rt.devices[:again.number], again, initial)
	return Device{again}
}
