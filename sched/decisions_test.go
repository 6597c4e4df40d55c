package sched

import (
	"testing"

	"github.com/vkomp/vkomp/vk"
)

func TestDecisionsSayWhichQueuesDoWhat(t *testing.T) {
	const (
		draws    = vk.QueueGraphics | vk.QueueCompute | vk.QueueTransfer
		computes = vk.QueueCompute | vk.QueueTransfer
	)
	card := []vk.QueueFamily{{Flags: draws, Count: 16}, {Flags: vk.QueueTransfer, Count: 2}, {Flags: computes, Count: 8}}
	for _, c := range []struct {
		name                     string
		families                 []vk.QueueFamily
		queues, interop          []int
		kernels, copies, foreign string
		reasons                  [3]string
	}{
		{
			"H100", card, []int{2, 2, 2, 0, 1, 1}, []int{0},
			"3 queues of family 2, 1 queue of family 0", "2 queues of family 1", "1 queue of family 0",
			[3]string{
				"those of families that do not draw run side by side; others are for what only they can do",
				"they copy beside the kernels, and do nothing else", "tasks can spare it, and foreign work may draw",
			},
		},
		{
			"one queue", card[:1], []int{0}, nil,
			"1 queue of family 0", "the queues of kernels", "the queues of tasks",
			[3]string{"there is no other", "there is none that copies and does nothing else", "there is none to spare"},
		},
		{
			"one family", card[:1], []int{0, 0}, []int{0},
			"2 queues of family 0", "the queues of kernels", "1 queue of family 0",
			[3]string{"every family that computes draws too", "there is none that copies and does nothing else", "tasks can spare it, and foreign work may draw"},
		},
		{
			"no drawing", card, []int{2, 2, 1}, []int{2},
			"2 queues of family 2", "1 queue of family 1", "1 queue of family 2",
			[3]string{"their families do not draw, so that they run side by side", "they copy beside the kernels, and do nothing else", "tasks can spare it"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := queueDecisions(c.families, c.queues, c.interop)
			for i, want := range []struct{ name, choice string }{{"kernels", c.kernels}, {"copies to and from the host", c.copies}, {"interop objects", c.foreign}} {
				if d := got[i]; d.Name != want.name || d.Choice != want.choice || d.Reason != c.reasons[i] {
					t.Errorf("%+v, want %s on %q because %q", d, want.name, want.choice, c.reasons[i])
				}
			}
		})
	}
}
