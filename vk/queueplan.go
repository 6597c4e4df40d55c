package vk

import (
	"math"
	"slices"
)

// Numbers of queues of a device if DeviceOptions does not say.
const (
	defaultComputeQueues  = 8
	defaultTransferQueues = 2
	defaultInteropQueues  = 1
)

// mainFamily returns the family of the first queue: the first family that supports
// compute, or -1. Such a family supports transfers too.
func mainFamily(families []QueueFamily) int {
	return slices.IndexFunc(families, computes)
}

func computes(f QueueFamily) bool { return f.Flags&QueueCompute != 0 && f.Count > 0 }

func transfersOnly(f QueueFamily) bool {
	return f.Flags&(QueueGraphics|QueueCompute|QueueTransfer) == QueueTransfer
}

// planQueues chooses the queues of a device. It returns the family of each in the order
// of Device.Queues: at most mostCompute compute queues, then at most mostTransfer queues
// that support only transfers, and never more of a family than it has. The plan is empty
// if no family supports compute.
//
// Each family gives all its queues until there are enough, in the order: main family,
// families without graphics, families with graphics. One queue is reserved for a family
// without graphics, which is the hardware's asynchronous compute path; a main family with
// many queues would otherwise take all. Families that support nothing but transfers come
// before others without compute, such as those that decode video.
func planQueues(families []QueueFamily, mostCompute, mostTransfer int) []int {
	main := mainFamily(families)
	if main < 0 || mostCompute < 1 {
		return nil
	}
	var async, drawing, transfer, special []int
	for k, f := range families {
		switch {
		case k == main:
		case computes(f) && f.Flags&QueueGraphics == 0:
			async = append(async, k)
		case computes(f):
			drawing = append(drawing, k)
		case transfersOnly(f) && f.Flags&^(QueueTransfer|QueueSparseBinding) == 0:
			transfer = append(transfer, k)
		case transfersOnly(f):
			special = append(special, k)
		}
	}
	most := mostCompute
	if len(async) > 0 && families[main].Flags&QueueGraphics != 0 && mostCompute > 1 {
		most--
	}
	plan := queuesOf(families, []int{main}, most)
	plan = append(plan, queuesOf(families, append(async, drawing...), mostCompute-len(plan))...)
	return append(plan, queuesOf(families, append(transfer, special...), mostTransfer)...)
}

// planDevice chooses the queues of a device as planQueues does, and at most mostInterop
// queues for interop. These all come from the first family that can spare one, in the
// order: main family, families without graphics, families with graphics. A family can
// spare the queues that planQueues does not use. If it uses all of them and there are two
// or more, the family spares one, and the others are planned without that queue.
func planDevice(families []QueueFamily, mostCompute, mostTransfer, mostInterop int) (queues, interop []int) {
	queues = planQueues(families, mostCompute, mostTransfer)
	if mostInterop < 1 || len(queues) == 0 {
		return queues, nil
	}
	used := map[int]int{}
	for _, f := range queues {
		used[f]++
	}
	for _, f := range slices.Compact(planQueues(families, math.MaxInt, 0)) { // all compute families
		switch left := families[f].Count - used[f]; {
		case left > 0:
			return queues, slices.Repeat([]int{f}, min(left, mostInterop))
		case used[f] > 1:
			without := slices.Clone(families)
			without[f].Count--
			return planQueues(without, mostCompute, mostTransfer), []int{f}
		}
	}
	return queues, nil
}

// queuesOf lists the queues of the families in the given order, at most most of them;
// each is represented by its family.
func queuesOf(families []QueueFamily, order []int, most int) (queues []int) {
	for _, f := range order {
		n := min(families[f].Count, max(0, most-len(queues)))
		queues = append(queues, slices.Repeat([]int{f}, n)...)
	}
	return queues
}
