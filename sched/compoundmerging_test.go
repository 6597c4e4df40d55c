package sched

import (
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
)

// A compound task gets the pipeline for launches that bind the same though that for others, of which it has some, too,
// cannot be had.
func TestCompoundGetsThePipelineThatCanBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		indexes     bool   // the device chooses among storage buffers
		descriptors uint32 // that it has
	}{
		"the device cannot":                    {false, 8},
		"too few descriptors for two launches": {true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			mode := memoryModes[1]
			d := newFakeDeviceWith(t, oneQueue, mode.memory, 1)
			d.props.Features.StorageBufferArrayDynamicIndexing = c.indexes
			d.props.Limits.MaxPerStageDescriptorStorageBuffers = c.descriptors
			r := newRigOn(t, d, mode)
			defer r.close()
			r.d.report = func(string) {} // it takes what a launch binds for what it writes, and nothing orders these
			x, zero := array32(3*joinCell), array32(joinCell)
			cells := cellsOf(x)
			r.enter(x, zero)
			mix := func(out []uint32) launch {
				return launch{label: "mix", kernel: "mix", args: []arg{tofrom(out), to(zero), to(zero)}}
			}
			p := r.compound(mix(cells[0]), mix(cells[2]), mix(cells[2]))
			for range 3 {
				p.expect(true, 3)
				r.awaitCompilations()
			}
			r.s.mu.Lock()
			k := r.s.kernels.UseLocked(r.kernels["mix"])
			r.s.mu.Unlock()
			if k.Ready(kernel.MergingShared) == nil || k.Ready(kernel.MergingOwn) != nil {
				t.Error("the pipeline for launches that bind the same is not there, or there is another one")
			}
			k.Release()
			r.exit(x, zero)
		})
	}
}

// compileMerging has all pipelines of a kernel compiled that merge, so that its commands are not encoded anew later because one is
// there.
func (r *rig) compileMerging(name string) {
	r.t.Helper()
	r.s.mu.Lock()
	k := r.s.kernels.UseLocked(r.kernels[name])
	r.s.mu.Unlock()
	defer k.Release()
	for merging := kernel.Merging; merging < kernel.Pipelines; merging++ {
		r.awaitCompilations()
		r.s.mu.Lock()
		k.MergeLocked(merging, r.s.props, assumedReplays)
		r.s.mu.Unlock()
	}
	r.awaitCompilations()
}

// awaitCompilations waits for what is compiled in the background.
func (r *rig) awaitCompilations() {
	for {
		r.s.mu.Lock()
		underWay := r.s.kernels.CompilingLocked()
		r.s.mu.Unlock()
		if len(underWay) == 0 {
			return
		}
		for _, c := range underWay {
			<-c.Done()
		}
	}
}
