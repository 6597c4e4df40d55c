package vk

import (
	"math"
	"slices"
)

// How many queues a device is opened with where DeviceOptions does not say.
const (
	defaultComputeQueues  = 8
	defaultTransferQueues = 2
	defaultInteropQueues  = 1
)

// mainFamily is the family that the first queue is of: the first that can
// compute, or -1. Such a family can transfer too.
func mainFamily(families []QueueFamily) int {
	return slices.IndexFunc(families, computes)
}

func computes(f QueueFamily) bool { return f.Flags&QueueCompute != 0 && f.Count > 0 }

func transfersOnly(f QueueFamily) bool {
	return f.Flags&(QueueGraphics|QueueCompute|QueueTransfer) == QueueTransfer
}

// planQueues chooses the queues of a device: it gives the family of each, in the
// order of Device.Queues, at most mostCompute that compute and mostTransfer that
// only transfer, and never more of a family than it has. There is none without a
// family that computes.
//
// Families come one after the other, each with all its queues until there are
// enough: the main family, those that do not draw, those that do. One queue is
// kept for a family that does not draw: it is the hardware's own path for compute
// work, and a main family with many queues would take them all. Families that
// transfer and do nothing else come before those that, say, decode video.
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

// planDevice chooses the queues of a device, as planQueues does, and those for
// interop, at most mostInterop: all of the first family that can spare one, in the
// order main family, those that do not draw, those that do. A family spares what
// planQueues leaves of it; one of which that leaves nothing spares a single queue
// where it has two or more, and the other queues are planned without that one.
func planDevice(families []QueueFamily, mostCompute, mostTransfer, mostInterop int) (queues, interop []int) {
	queues = planQueues(families, mostCompute, mostTransfer)
	if mostInterop < 1 || len(queues) == 0 {
		return queues, nil
	}
	used := map[int]int{}
	for _, f := range queues {
		used[f]++
	}
	for _, f := range slices.Compact(planQueues(families, math.MaxInt, 0)) { // all that compute
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

// queuesOf lists the families' queues in that order, at most that many: each as
// its family.
func queuesOf(families []QueueFamily, order []int, most int) (queues []int) {
	for _, f := range order {
		n := min(families[f].Count, max(0, most-len(queues)))
		queues = append(queues, slices.Repeat([]int{f}, n)...)
	}
	return queues
}
