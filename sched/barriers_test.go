package sched

import (
	"fmt"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/vk"
)

// barrierCount counts the barriers between levels and those to the host.
type barrierCount struct{ levels, host int }

// countBarriers returns the barriers that the device has got since the last call. It reports those
// with other masks: a barrier between levels is for the accesses of kernels and copies alone, and
// one with HOST or MEMORY among its masks costs half as much again, or twice as much (NVIDIA H100).
func (r *rig) countBarriers() (n barrierCount) {
	r.t.Helper()
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	const (
		stages = vk.StageCompute | vk.StageTransfer
		writes = vk.AccessShaderWrite | vk.AccessTransferWrite
		reads  = vk.AccessShaderRead | vk.AccessTransferRead
	)
	for b, times := range r.d.masks {
		switch {
		case b.SrcStage&^stages != 0 || b.SrcAccess&^writes != 0:
			r.t.Errorf("%d barriers after %v, %v", times, b.SrcStage, b.SrcAccess)
		case b.DstStage&^stages == 0 && b.DstAccess&^(writes|reads) == 0:
			n.levels += times
		case b.DstStage == vk.StageHost && b.DstAccess == vk.AccessHostRead|vk.AccessHostWrite:
			n.host += times
		default:
			r.t.Errorf("%d barriers before %v, %v", times, b.DstStage, b.DstAccess)
		}
	}
	clear(r.d.masks)
	return n
}

// A barrier to the host ends a batch in which something is to be read, or whose memory the host
// may write for the next user, and no other.
func TestBarriersToTheHostAreOfBatchesThatItReads(t *testing.T) {
	const n = 20
	type device struct {
		memoryMode
		// reads says that the host reads storage itself, writes that it writes it.
		reads, writes bool
	}
	var devices []device
	for _, m := range memoryModes {
		on := m.memory == unifiedMemory || m.memory == incoherentMemory
		devices = append(devices, device{m, on && !m.hidden, m.memory != discreteMemory && !m.hidden})
	}
	// what returns one or none.
	when := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	for _, d := range devices {
		if d.share == ShareAll {
			continue // the host reads whatever is mapped
		}
		for _, c := range []struct {
			name string
			run  func(r *rig, x, y []uint32)
			// the batch is what was collected behind others; otherwise each construct waits.
			held bool
			want barrierCount
		}{
			{"chain", func(r *rig, x, _ []uint32) {
				for range n {
					r.run(launch{label: "step", kernel: "add", args: []arg{alloc(x)}, out: [][]uint32{x}})
				}
			}, true, barrierCount{levels: n - 1}},
			{"stencil", func(r *rig, x, y []uint32) {
				for i := range n {
					from, to := x, y
					if i%2 == 1 {
						from, to = y, x
					}
					for k := range 4 {
						cell := func(s []uint32, k int) []uint32 { return s[16*(k%4):][:16] }
						a, b, c := cell(from, k+3), cell(from, k), cell(from, k+1)
						r.run(launch{label: "cell", kernel: "stencil", args: []arg{alloc(cell(to, k)), alloc(a), alloc(b), alloc(c)},
							in: [][]uint32{a, b, c}, out: [][]uint32{cell(to, k)}})
					}
				}
			}, true, barrierCount{levels: n - 1}},
			{"independent", func(r *rig, x, _ []uint32) {
				for k := range 4 {
					r.run(launch{label: "cell", kernel: "add", args: []arg{alloc(x[16*k:][:16])}})
				}
			}, true, barrierCount{}},
			{"results come back", func(r *rig, x, _ []uint32) {
				z := filled(16, 1)
				r.run(launch{label: "tofrom", kernel: "add", args: []arg{tofrom(z)}, constant: 1, included: true})
				r.expect("z", z, filled(16, 2)...)
			}, false, barrierCount{levels: when(!d.writes) + when(!d.reads), host: 1}},
			{"nothing comes back", func(r *rig, x, _ []uint32) {
				r.run(launch{label: "scratch", kernel: "add", args: []arg{alloc(filled(16, 1))}, included: true})
			}, false, barrierCount{host: when(d.reads)}},
			{"what nobody wrote goes", func(r *rig, x, _ []uint32) {
				z := filled(16, 1)
				r.run(launch{label: "enter", enter: []arg{to(z)}, included: true})
				r.run(launch{label: "exit", exit: []arg{{s: z, kind: memory.MapRelease}}, included: true})
			}, false, barrierCount{}},
			{"update to", func(r *rig, x, _ []uint32) {
				r.transfer(launch{label: "update", included: true}, update(transfer.UpdateTo, x))
			}, false, barrierCount{levels: when(!d.writes)}},
			{"update from", func(r *rig, x, _ []uint32) {
				r.run(launch{label: "add", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true})
				r.transfer(launch{label: "update", included: true}, update(transfer.UpdateFrom, x))
				r.expect("x", x, filled(64, 2)...)
			}, false, barrierCount{levels: when(!d.writes) + when(!d.reads), host: 1}},
		} {
			t.Run(fmt.Sprint(d.name, "/", c.name), func(t *testing.T) {
				r := newRig(t, d.memoryMode, 1)
				defer r.close()
				x, y, before := filled(64, 1), filled(64, 1), filled(64, 1)
				r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(before)}, included: true})
				r.taskwait()
				if c.held {
					r.d.hold()
					for k := range order.MaxInFlight {
						r.run(launch{label: "before", kernel: "add", args: []arg{alloc(before[16*k:][:16])}})
					}
				}
				r.countBarriers()
				c.run(r, x, y)
				r.d.release()
				r.taskwait()
				if got := r.countBarriers(); got != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
				release := []arg{{s: x, kind: memory.MapRelease}, {s: y, kind: memory.MapRelease}, {s: before, kind: memory.MapRelease}}
				r.run(launch{label: "exit", exit: release, included: true})
			})
		}
	}
}
