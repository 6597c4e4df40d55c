//go:build cgo

package vk

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"
)

// hostMemory returns size bytes of the Go heap that begin at a multiple of alignment and
// are pinned until the test ends.
func hostMemory(t *testing.T, size, alignment uint64) []byte {
	t.Helper()
	data := make([]byte, size+alignment)
	var pin runtime.Pinner
	pin.Pin(&data[0])
	t.Cleanup(pin.Unpin)
	skip := (alignment - uint64(uintptr(unsafe.Pointer(&data[0])))%alignment) % alignment
	return data[skip:][:size:size]
}

// importing opens a device that can import host memory, which all drivers under test can.
func importing(t *testing.T) (d *Device, unit uint64) {
	t.Helper()
	d = openDevice(t, DeviceOptions{})
	unit = d.Properties().Limits.MinImportedHostPointerAlignment
	if !d.Properties().Features.ExternalMemoryHost || unit == 0 {
		t.Fatalf("device %q imports no host memory", d.Properties().Name)
	}
	return d, unit
}

func TestImportedBlockIsTheHostsMemory(t *testing.T) {
	d, unit := importing(t)
	data := hostMemory(t, 4*unit, unit)
	for k := range data {
		data[k] = byte(k * 7)
	}
	before := bytes.Clone(data)
	b, err := d.ImportBlock(uintptr(unsafe.Pointer(&data[unit])), 2*unit)
	if err != nil {
		t.Fatal(err)
	}
	if b.Host != nil || b.Size != 2*unit || b.Memory == 0 || b.Buffer == 0 ||
		(b.Address != 0) != d.Properties().Features.BufferDeviceAddress {
		t.Errorf("block %+v", b)
	}
	// It is not mapped and cannot be flushed, so it must be coherent.
	if flags := d.Properties().MemoryTypes[b.MemoryType].Flags; flags&MemoryHostCoherent == 0 {
		t.Errorf("imported as %v", flags)
	}
	if err := d.Flush([]MemoryRange{{b.Memory, 0, 4}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("flushing it: %v", err)
	}
	if live := d.Live(); live["VkBuffer"] != 1 || live["VkDeviceMemory"] != 1 {
		t.Errorf("live: %v", live)
	}
	if !bytes.Equal(data, before) {
		t.Error("importing changed the memory")
	}
	// The device reads what the host wrote, and the host reads what the device wrote.
	out, words := newBlock(t, d, int(2*unit/4))
	var s Stream
	s.Copy(b.Buffer, out.Buffer, 0, 0, 2*unit)
	s.Barrier(between)
	s.Fill(b.Buffer, unit, 64, 0x01020304)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if got := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 2*unit); !bytes.Equal(got, before[unit:3*unit]) {
		t.Error("the device read other bytes than the host's")
	}
	want := bytes.Clone(before)
	copy(want[2*unit:], bytes.Repeat([]byte{4, 3, 2, 1}, 16))
	if !bytes.Equal(data, want) {
		t.Error("the host sees other bytes than the device's")
	}
	d.DestroyBlock(b)
	d.DestroyBlock(b)
	if live := d.Live(); live["VkBuffer"] != 1 || live["VkDeviceMemory"] != 1 { // only out is left
		t.Errorf("live after DestroyBlock: %v", live)
	}
	if !bytes.Equal(data, want) {
		t.Error("destroying the block changed the memory")
	}
}

// A Go slice is imported with the pages that enclose it; the binding begins at the slice's
// offset in the block.
func TestKernelWorksOnPinnedSlicesInPlace(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		unit := d.Properties().Limits.MinImportedHostPointerAlignment
		add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
		// Objects of more than 32 KiB without pointers have pages of their own; they need
		// not fill the last one.
		const n = 9024
		x, y := make([]uint32, n), make([]uint32, n)
		var pin runtime.Pinner
		defer pin.Unpin()
		pin.Pin(&x[0])
		pin.Pin(&y[0])
		for k := range x {
			x[k], y[k] = uint32(k), 5
		}
		var value uint64
		align := int(d.Properties().Limits.MinStorageBufferOffsetAlignment / 4)
		for _, section := range [][2]int{{0, n}, {align, n - 2*align}, {3 * align, 64}, {n - align, align}} {
			from, count := section[0], section[1]
			bx, rx := importSection(t, d, x[from:][:count], unit)
			by, ry := importSection(t, d, y[from:][:count], unit)
			want := make([]uint32, n)
			for k := range y {
				want[k] = y[k]
				if k >= from && k < from+count {
					want[k] += 3 * x[k]
				}
			}
			var s Stream
			s.Dispatch(add, []BufferRange{rx, ry}, push(uint32(count), 3), [3]uint32{}, [3]uint32{uint32(count+63) / 64, 1, 1})
			s.Barrier(toHost)
			value++
			run(t, d, &s, value)
			for k := range y {
				if y[k] != want[k] {
					t.Fatalf("section %v: element %d is %d, want %d", section, k, y[k], want[k])
				}
			}
			d.DestroyBlock(bx)
			d.DestroyBlock(by)
		}
	})
}

// importSection imports the pages that enclose a section and returns its range.
func importSection(t *testing.T, d *Device, section []uint32, unit uint64) (Block, BufferRange) {
	t.Helper()
	if unit == 0 {
		t.Fatalf("device %q imports no host memory", d.Properties().Name)
	}
	start := unsafe.Pointer(&section[0])
	before := uint64(uintptr(start)) % unit
	size := 4 * uint64(len(section))
	b, err := d.ImportBlock(uintptr(start)-uintptr(before), (before+size+unit-1)/unit*unit)
	if err != nil {
		t.Fatal(err)
	}
	return b, BufferRange{b.Buffer, before, size}
}

func TestKernelReachesImportedMemoryByAddress(t *testing.T) {
	d, unit := importing(t)
	if !d.Properties().Features.BufferDeviceAddress {
		t.Fatalf("device %q has no addresses", d.Properties().Name)
	}
	data := hostMemory(t, unit, unit)
	b, err := d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), unit)
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroyBlock(b)
	none := newPipeline(t, d, "none", PipelineOptions{PushConstants: 16})
	at := b.Address + unit - 8
	var s Stream
	s.Dispatch(none, nil, append(push(uint32(at), uint32(at>>32)), push(40, 0)...), [3]uint32{}, [3]uint32{2, 1, 1})
	s.Barrier(toHost)
	run(t, d, &s, 1)
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&data[0])), unit/4)
	if last := words[len(words)-3:]; last[0] != 0 || last[1] != 40 || last[2] != 41 {
		t.Errorf("the last words are %v", last)
	}
}

func TestImpossibleImportsAreRefusedWithoutLeak(t *testing.T) {
	d, unit := importing(t)
	data := hostMemory(t, 2*unit, unit)
	start := unsafe.Pointer(&data[0])
	for name, c := range map[string]struct {
		host unsafe.Pointer
		size uint64
		want error
	}{
		"no memory":           {nil, unit, ErrInvalid},
		"no bytes":            {start, 0, ErrInvalid},
		"misaligned start":    {unsafe.Pointer(&data[unit/2]), unit, ErrInvalid},
		"misaligned size":     {start, unit + 4, ErrInvalid},
		"wraps around":        {start, math.MaxUint64 - unit + 1, ErrInvalid},
		"larger than allowed": {start, 1 << 50, ErrOutOfMemory},
	} {
		if b, err := d.ImportBlock(uintptr(c.host), c.size); !errors.Is(err, c.want) || b != (Block{}) {
			t.Errorf("%s: %+v, error %v", name, b, err)
		}
	}
	if live := d.Live(); len(live) != 0 {
		t.Errorf("left: %v", live)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ImportBlock(uintptr(start), unit); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed device: %v", err)
	}
}

func TestClosingLeavesImportedMemoryAlone(t *testing.T) {
	d, err := usable(t, openInstance(t)).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unit := d.Properties().Limits.MinImportedHostPointerAlignment
	data := hostMemory(t, unit, unit)
	data[0], data[unit-1] = 1, 2
	if _, err := d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), unit); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("Close: %v", err)
	}
	if data[0] != 1 || data[unit-1] != 2 {
		t.Error("the memory has changed")
	}
	data[0] = 3 // the memory still belongs to the host
}

// Memory may be imported twice, as happens with two sections that share a page.
func TestOverlappingImportsSeeOneMemory(t *testing.T) {
	d, unit := importing(t)
	data := hostMemory(t, 3*unit, unit)
	var blocks [2]Block
	for k := range blocks {
		var err error
		if blocks[k], err = d.ImportBlock(uintptr(unsafe.Pointer(&data[uint64(k)*unit])), 2*unit); err != nil {
			t.Fatal(err)
		}
		defer d.DestroyBlock(blocks[k])
	}
	var s Stream
	s.Fill(blocks[0].Buffer, unit, 4, 0x11111111)
	s.Barrier(between)
	s.Copy(blocks[1].Buffer, blocks[1].Buffer, 0, unit, 4)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if got := fmt.Sprintf("%x %x", data[unit:][:5], data[2*unit:][:5]); got != "1111111100 1111111100" {
		t.Errorf("memory: %s", got)
	}
}
