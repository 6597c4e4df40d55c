package vk

import (
	"slices"

	"github.com/vkomp/vkomp/internal/mutant"
)

// Numbers of queues of a device if DeviceOptions does not say.
const (
	defaultComputeQueues  = 8
	defaultTransferQueues = 2
	defaultInteropQueues  = 1
)

func computes(f QueueFamily) bool { return f.Flags&QueueCompute != 0 && f.Count > 0 }

func draws(f QueueFamily) bool { return f.Flags&QueueGraphics != 0 }

// transfersOnly reports whether a family copies and does nothing else. Some such families copy images
// in large units alone (minImageTransferGranularity); all of them copy any bytes of buffers.
func transfersOnly(f QueueFamily) bool {
	return f.Flags&(QueueGraphics|QueueCompute|QueueTransfer) == QueueTransfer
}

// ranking lists the families of a device by what their queues are good for, each kind in the
// order of the indices. Families that support compute support transfers too.
type ranking struct {
	// async families compute and do not draw. This is the hardware's asynchronous compute path:
	// queues of such a family run side by side.
	async []int
	// drawing families compute and draw. Their queues can do everything, but share one path of
	// the hardware and take turns there: 16 kernels that one queue runs one after the other in
	// 57 ms took 61 ms on 16 queues of the drawing family, and 7 ms on 8 of the async one
	// (NVIDIA H100).
	drawing []int
	// transfer families support nothing but transfers. Special ones have another purpose besides,
	// such as decoding video.
	transfer, special []int
}

func rank(families []QueueFamily) (r ranking) {
	for k, f := range families {
		switch {
		case computes(f) && !draws(f):
			r.async = append(r.async, k)
		case computes(f):
			r.drawing = append(r.drawing, k)
		case transfersOnly(f) && f.Flags&^(QueueTransfer|QueueSparseBinding) == 0:
			r.transfer = append(r.transfer, k)
		case transfersOnly(f):
			r.special = append(r.special, k)
		}
	}
	if len(r.drawing) > 0 && mutant.Active(mutant.DrawingQueues) {
		r.async, r.drawing = r.drawing, r.async
	}
	return r
}

// planQueues chooses the queues of a device. It returns the family of each in the order of
// Device.Queues: compute queues, those of async families first, then at most mostTransfer queues
// of transfer families and of special ones, and never more of a family than it has. The plan is
// empty if no family supports compute.
//
// If mostCompute is 0, there are at most defaultComputeQueues queues of async families, and one
// of each drawing family, for what only that can do. Without async families there are at most
// defaultComputeQueues of the drawing ones. Otherwise there are at most mostCompute, and families
// give all their queues until there are enough: there is no queue of a drawing family if the async
// ones have enough.
func planQueues(families []QueueFamily, mostCompute, mostTransfer int) (plan []int) {
	r := rank(families)
	switch {
	case len(r.async)+len(r.drawing) == 0:
		return nil
	case mostCompute > 0:
		plan = queuesOf(families, slices.Concat(r.async, r.drawing), mostCompute)
	case len(r.async) > 0:
		plan = append(queuesOf(families, r.async, defaultComputeQueues), r.drawing...)
	default:
		plan = queuesOf(families, r.drawing, defaultComputeQueues)
	}
	return append(plan, queuesOf(families, slices.Concat(r.transfer, r.special), mostTransfer)...)
}

// planDevice chooses the queues of a device as planQueues does, and at most mostInterop
// queues for interop. These all come from the first family that can spare one, drawing families
// before async ones. A family can spare the queues that planQueues does not use. If it uses all
// of them and there are two or more, the family spares one, and the others are planned without
// that queue. So the last queue of a family that planQueues uses is never spared, but all of a family
// that it does not use may be, as with families GCT with one queue and CT with eight, of which
// mostCompute 2 uses two of CT: the one of GCT is for interop.
//
// Drawing families come first because foreign work may draw, and because a family has queues to
// spare there that would gain the scheduler nothing. See interopFirst for what the semaphores
// between such a queue and the async ones cost.
func planDevice(families []QueueFamily, mostCompute, mostTransfer, mostInterop int) (queues, interop []int) {
	queues = planQueues(families, mostCompute, mostTransfer)
	if mostInterop < 1 || len(queues) == 0 {
		return queues, nil
	}
	used := map[int]int{}
	for _, f := range queues {
		used[f]++
	}
	r := rank(families)
	for _, f := range slices.Concat(r.drawing, r.async) {
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

// interopFirst reports whether interop objects are to have the first queues of their family: where tasks run on
// queues of async families, and the objects' queues are of a drawing one. On an NVIDIA H200, two
// semaphores, from the first async queue to the first drawing one and back, take 12 µs, as between two async
// queues, but 324 µs if it is the second drawing queue. So the scheduler's own drawing queue, which has only
// what no other can execute, comes behind them.
func interopFirst(families []QueueFamily, queues, interop []int) bool {
	return len(queues) > 0 && len(interop) > 0 && !draws(families[queues[0]]) && draws(families[interop[0]])
}

// queueIndices returns the index that each queue of a plan has within its family: those of queues, then those
// of interop. Both count up in that order or, if those of interop go before, in the other one.
func queueIndices(queues, interop []int, before bool) (indices []int) {
	next := make(map[int]int)
	number := func(plan []int) (indices []int) {
		for _, f := range plan {
			indices = append(indices, next[f])
			next[f]++
		}
		return indices
	}
	if before {
		first := number(interop)
		return append(number(queues), first...)
	}
	return number(slices.Concat(queues, interop))
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
