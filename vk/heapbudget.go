package vk

// heapBudgets combines the arrays of VkPhysicalDeviceMemoryBudgetPropertiesEXT with the
// heaps. Usage may exceed the budget, which shrinks when other processes allocate memory.
func heapBudgets(heaps []MemoryHeap, budget, usage []uint64) []HeapBudget {
	told := make([]HeapBudget, len(heaps))
	for k := range told {
		told[k] = HeapBudget{Budget: budget[k], Usage: usage[k]}
	}
	return told
}
