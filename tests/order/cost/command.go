package cost

import (
	"fmt"
	"time"

	"github.com/vkomp/vkomp/tests/order"
)

// VkPipelineStageFlags2 and VkAccessFlags2 that make a barrier expensive.
const (
	stageHost        = 0x4000
	stageAllGraphics = 0x8000
	stageAllCommands = 0x10000
	accessMemory     = 0x8000 | 0x10000 // reads and writes
)

// of returns the name and the cost of a barrier.
func (b *BarrierCosts) of(dependencies []order.Dependency) (string, time.Duration) {
	name, cost := "barriers of execution", b.Execution
	for _, d := range dependencies {
		stages, accesses := d.SrcStages|d.DstStages, d.SrcAccess|d.DstAccess
		switch {
		case stages&(stageAllCommands|stageAllGraphics) != 0 || accesses&accessMemory != 0:
			return "barriers with ALL_COMMANDS or MEMORY", b.All
		case stages&stageHost != 0:
			name, cost = "barriers with HOST", b.Host
		case accesses != 0 && cost < b.Memory:
			name, cost = "barriers of COMPUTE and TRANSFER", b.Memory
		}
	}
	return name, cost
}

// activity returns what a command does, alone.
func (m *model) activity(q *queue, c *order.Operation) *activity {
	switch c.Kind {
	case order.OperationCopy:
		return m.copy(q, c)
	case order.OperationFill:
		return m.fill(q, c)
	}
	if c.Copies {
		return m.copyKernel(c)
	}
	return m.kernel(c)
}

// copyKernel returns a dispatch that copies: it is limited by the memory, whatever its workgroups are.
func (m *model) copyKernel(c *order.Operation) *activity {
	a, way := &activity{}, "within the device"
	a.share[bandwidth] = 1
	rate := m.profile.Memory / 2
	for _, r := range c.Regions {
		if r.Write {
			a.bytes += r.Bytes
		}
		switch onHost := r.Properties&deviceLocal == 0; {
		case onHost && r.Write:
			way, rate = "to the host", m.profile.Bus
			a.share[toHost] = 1
		case onHost:
			way, rate = "to the device", m.profile.Bus
			a.share[toDevice] = 1
		}
	}
	if rate == m.profile.Bus {
		a.share[bandwidth] = 0
	}
	a.name, a.alone = "copies by kernels, "+way, rate.nanoseconds(a.bytes)
	return a
}

// kernel returns a dispatch: the workgroups of one that has more than there is room for take
// longer.
func (m *model) kernel(c *order.Operation) *activity {
	room := float64(m.profile.Workgroups)
	share := float64(c.Groups) / room
	a := &activity{name: "kernels", alone: m.workgroup * max(1, share)}
	if c.Groups == 0 {
		a.alone = 0
	}
	a.share[workgroups] = min(1, share)
	return a
}

// copy returns a copy, whose way is that of its first region.
func (m *model) copy(q *queue, c *order.Operation) *activity {
	a := &activity{}
	for i := 0; i < len(c.Regions); i += 2 {
		a.bytes += c.Regions[i].Bytes
	}
	if a.bytes == 0 {
		return a
	}
	from, to := c.Regions[0].Properties&deviceLocal != 0, c.Regions[1].Properties&deviceLocal != 0
	a.share[engine] = 1
	way, rate := "within the device", q.f.Copy
	if from && to {
		a.share[bandwidth] = min(1, 2*float64(rate)/float64(m.profile.Memory))
	} else {
		rate = m.profile.Bus
	}
	if !from {
		way = "to the device"
		a.share[toDevice] = 1
	}
	if !to {
		way = "to the host"
		a.share[toHost] = 1
	}
	if !from && !to {
		way = "within the host"
	}
	a.name = fmt.Sprintf("copies %s, family %d", way, q.family)
	a.alone = rate.nanoseconds(a.bytes)
	return a
}

// fill returns a fill or an update.
func (m *model) fill(q *queue, c *order.Operation) *activity {
	a := &activity{name: fmt.Sprintf("fills, family %d", q.family), bytes: c.Regions[0].Bytes}
	rate := q.f.Fill
	a.share[engine] = 1
	if c.Regions[0].Properties&deviceLocal == 0 {
		rate = min(rate, m.profile.Bus)
		a.share[toHost] = 1
	} else {
		a.share[bandwidth] = min(1, float64(rate)/float64(m.profile.Memory))
	}
	a.alone = rate.nanoseconds(a.bytes)
	return a
}
