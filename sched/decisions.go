package sched

import (
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// Decisions returns how a scheduler with these options uses a device, and why. They are nil if the
// device has no memory that it could use, which is an error of New. Buffers are taken to be allowed
// in all memory types, which only the open device can tell.
func Decisions(p *vk.Properties, o Options) []allocation.Decision {
	profile, err := allocation.NewProfile(p, 1<<len(p.MemoryTypes)-1, o.HideHostVisible)
	if err != nil {
		return nil
	}
	return profile.Decisions(p, o.HideHostVisible)
}
