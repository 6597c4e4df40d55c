package memory_test

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/timeline"
)

// blocks is a heap without a device.
type blocks struct{ made uint64 }

func (b *blocks) AllocateBlock(size uint64) (memory.HeapBlock, error) {
	b.made++
	return memory.HeapBlock{ID: b.made, Size: size}, nil
}

func (b *blocks) FreeBlock(memory.HeapBlock) {}

// Freed memory is handed out again at once, with the frontier that its next
// user is ordered after.
func ExampleAllocator() {
	a, err := memory.NewAllocator(&blocks{}, memory.AllocatorOptions{MinBlock: 1 << 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	x, _ := a.Allocate(1000)
	fmt.Println("x at", x.Offset, "after", x.LastUse())
	if err := a.Free(&x, timeline.NewFrontier(timeline.Point{Queue: 0, Value: 7})); err != nil {
		fmt.Println(err)
	}
	y, _ := a.Allocate(500)
	fmt.Println("y at", y.Offset, "after", y.LastUse())
	fmt.Println(a.Close())
	// Output:
	// x at 0 after {}
	// y at 0 after {0:7}
	// memory: close: storage still allocated: 1 allocations, 500 bytes
}

// A data region maps x; a target inside it maps a part of x, finds it present,
// and copies nothing.
func ExampleTable() {
	x := make([]float32, 100)
	section := func(from, to int) memory.Section {
		return memory.Section{Ptr: unsafe.Pointer(&x[from]), Size: uint64(4 * (to - from))}
	}
	a, err := memory.NewAllocator(&blocks{}, memory.AllocatorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	allocate := func(m *memory.Map) (memory.Storage, error) { return a.Allocate(m.StorageSize()) }
	release := func(s memory.Storage) {
		if err := a.Free(&s, timeline.Frontier{}); err != nil {
			fmt.Println(err)
		}
	}
	table := memory.NewTable()
	region := []memory.Map{{Section: section(0, 100), Type: memory.MapToFrom}}
	target := []memory.Map{{Section: section(10, 20), Type: memory.MapToFrom}}

	for _, construct := range [][]memory.Map{region, target} {
		uses, err := table.Enter(construct, nil, allocate, release)
		if err != nil {
			fmt.Println(err)
			return
		}
		count, _ := uses[0].Present.Count()
		fmt.Println("enter: offset", uses[0].Offset, "copy in", uses[0].CopyIn, "count", count)
	}
	for _, construct := range [][]memory.Map{target, region} {
		exits := table.BeginExit(construct, nil)
		fmt.Println("exit: copy out", exits[0].CopyOut, "remove", exits[0].Remove)
		for _, p := range table.EndExit(exits, nil) {
			release(p.Storage)
		}
	}
	fmt.Println("present:", table.Len(), "allocated:", a.Stats().Allocations)
	// Output:
	// enter: offset 0 copy in true count 1
	// enter: offset 40 copy in false count 2
	// exit: copy out false remove false
	// exit: copy out true remove true
	// present: 0 allocated: 0
}
