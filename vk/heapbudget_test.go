package vk

import (
	"slices"
	"testing"
)

func TestBudgetsAreOfTheHeapsThatExist(t *testing.T) {
	budget, usage := make([]uint64, 16), make([]uint64, 16)
	for k := range budget {
		budget[k], usage[k] = uint64(100+k), uint64(200+k) // usage above the budget
	}
	want := []HeapBudget{{100, 200}, {101, 201}, {102, 202}}
	if got := heapBudgets(make([]MemoryHeap, 3), budget, usage); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := heapBudgets(nil, budget, usage); len(got) != 0 {
		t.Errorf("without heaps: %v", got)
	}
}
