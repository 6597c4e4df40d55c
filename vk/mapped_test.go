//go:build cgo

package vk

import (
	"errors"
	"testing"
)

// Coherent memory may be flushed too; validation checks the ranges.
func TestAnyRangeCanBeFlushedAndInvalidated(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	atom := d.Properties().Limits.NonCoherentAtomSize
	// Sizes that end inside an atom, which is flushed as a whole.
	var blocks []Block
	for _, words := range []int{1, 3, 64, 1000} {
		b, _ := newBlock(t, d, words)
		blocks = append(blocks, b)
	}
	var many []MemoryRange
	for _, b := range blocks {
		ranges := []MemoryRange{
			{b.Memory, 0, b.Size}, {b.Memory, 1, b.Size - 1}, {b.Memory, b.Size - 1, 1}, {b.Memory, b.Size / 2, 1},
			{b.Memory, b.Size, 0}, {b.Memory, 0, 0},
		}
		if b.Size > 2*atom {
			ranges = append(ranges, MemoryRange{b.Memory, atom, atom}, MemoryRange{b.Memory, atom - 1, 2})
		}
		for _, r := range ranges {
			if err := errors.Join(d.Flush([]MemoryRange{r}), d.Invalidate([]MemoryRange{r})); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
		}
		many = append(many, ranges...)
	}
	for len(many) < 100 {
		many = append(many, many...)
	}
	if err := errors.Join(d.Flush(many), d.Invalidate(many), d.Flush(nil), d.Invalidate(nil)); err != nil {
		t.Error(err)
	}
}

func TestFlushedWritesReachTheDeviceAndInvalidatedOnesTheHost(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	from, in := newBlock(t, d, 64)
	to, out := newBlock(t, d, 64)
	for k := range in {
		in[k] = uint32(k) + 1
	}
	if err := d.Flush([]MemoryRange{{from.Memory, 0, from.Size}}); err != nil {
		t.Fatal(err)
	}
	var s Stream
	s.Copy(from.Buffer, to.Buffer, 0, 0, from.Size)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if err := d.Invalidate([]MemoryRange{{to.Memory, 0, to.Size}}); err != nil {
		t.Fatal(err)
	}
	for k, v := range out {
		if v != uint32(k)+1 {
			t.Fatalf("word %d is %d", k, v)
		}
	}
}

func TestRangesOutsideMappedMemoryAreRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	b, _ := newBlock(t, d, 1<<10)
	good := MemoryRange{b.Memory, 0, 4}
	gone, err := d.CreateBlock(64, b.MemoryType)
	if err != nil {
		t.Fatal(err)
	}
	d.DestroyBlock(gone)
	for name, r := range map[string]MemoryRange{
		"no memory":    {0, 0, 4},
		"other memory": {b.Memory ^ 1, 0, 4},
		"destroyed":    {gone.Memory, 0, 4},
		"past the end": {b.Memory, b.Size - 4, 5},
		"offset":       {b.Memory, b.Size + 1, 0},
		"wraps around": {b.Memory, 8, 1<<64 - 4},
	} {
		for _, err := range []error{d.Flush([]MemoryRange{good, r}), d.Invalidate([]MemoryRange{good, r})} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := d.Flush([]MemoryRange{good}); err != nil {
		t.Error(err)
	}
}

func TestFlushingDoesNotAllocate(t *testing.T) {
	i, err := Open(InstanceOptions{}) // without validation, which allocates
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := d.CreateBlock(1<<12, 0)
	if err != nil || b.Host == nil {
		t.Fatalf("block %+v, error %v", b, err)
	}
	defer d.DestroyBlock(b)
	ranges := []MemoryRange{{b.Memory, 0, 64}, {b.Memory, 256, 4}}
	allocations := testing.AllocsPerRun(100, func() {
		if d.Flush(ranges) != nil || d.Invalidate(ranges) != nil {
			t.Error("failed")
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// The drivers under test do not have VK_EXT_memory_budget; the test with the fault layer
// checks the values.
func TestBudgetIsToldWhereTheExtensionIs(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	listed := false
	for _, e := range d.Properties().Extensions {
		listed = listed || e == "VK_EXT_memory_budget"
	}
	heaps, ok := d.MemoryBudget()
	if ok != listed || ok != d.Properties().Features.MemoryBudget || ok != (len(heaps) > 0) {
		t.Errorf("listed %v: %v, %v", listed, heaps, ok)
	}
}
