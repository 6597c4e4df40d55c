package sched

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// Decisions returns how a scheduler with these options uses a device, and why. queues and interop
// are what vk.PhysicalDevice.PlanQueues returns. They are nil if the device has no memory that it
// could use, which is an error of New. Buffers are taken to be allowed in all memory types, which
// only the open device can tell.
func Decisions(p *vk.Properties, o Options, queues, interop []int) []allocation.Decision {
	profile, err := allocation.NewProfile(p, 1<<len(p.MemoryTypes)-1, o.HideHostVisible)
	if err != nil {
		return nil
	}
	return append(profile.Decisions(p, o.HideHostVisible), queueDecisions(p.QueueFamilies, queues, interop)...)
}

// queueDecisions returns the choice of queues in words.
func queueDecisions(families []vk.QueueFamily, queues, interop []int) []allocation.Decision {
	is := func(flags vk.QueueFlags) func(int) bool {
		return func(family int) bool { return families[family].Flags&flags != 0 }
	}
	only := func(queues []int, wanted func(int) bool) []int {
		return slices.DeleteFunc(slices.Clone(queues), func(family int) bool { return !wanted(family) })
	}
	computing := only(queues, is(vk.QueueCompute))
	copying := only(queues, func(family int) bool { return families[family].Flags&vk.QueueCompute == 0 })
	drawing := only(computing, is(vk.QueueGraphics))

	kernels := allocation.Decision{Name: "kernels", Choice: countQueues(computing)}
	switch {
	case len(computing) == 1:
		kernels.Reason = "there is no other"
	case len(drawing) == 0:
		kernels.Reason = "their families do not draw, so that they run side by side"
	case len(drawing) == len(computing):
		kernels.Reason = "every family that computes draws too"
	default:
		kernels.Reason = "those of families that do not draw run side by side; others are for what only they can do"
	}
	copies := allocation.Decision{Name: "copies to and from the host", Choice: countQueues(copying), Reason: "they copy beside the kernels, and do nothing else"}
	if len(copying) == 0 {
		copies.Choice, copies.Reason = "the queues of kernels", "there is none that copies and does nothing else"
	}
	own := allocation.Decision{Name: "interop objects", Choice: countQueues(interop), Reason: "tasks can spare it"}
	switch {
	case len(interop) == 0:
		own.Choice, own.Reason = "the queues of tasks", "there is none to spare"
	case is(vk.QueueGraphics)(interop[0]):
		own.Reason = "tasks can spare it, and foreign work may draw"
	}
	return []allocation.Decision{kernels, copies, own}
}

// countQueues describes queues that are given by their families.
func countQueues(queues []int) string {
	var families []int
	count := make(map[int]int)
	for _, family := range queues {
		if count[family]++; count[family] == 1 {
			families = append(families, family)
		}
	}
	var all []string
	for _, family := range families {
		plural := "s"
		if count[family] == 1 {
			plural = ""
		}
		all = append(all, fmt.Sprintf("%d queue%s of family %d", count[family], plural, family))
	}
	return strings.Join(all, ", ")
}
