package pipeline

import (
	"errors"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// merging returns the properties of a device that merges dispatches.
func merging() *vk.Properties {
	p := &vk.Properties{Name: "fake"}
	p.Features.StorageBufferArrayDynamicIndexing = true
	p.Limits.MaxPerStageDescriptorStorageBuffers, p.Limits.MaxPushConstantsSize = 32, 128
	p.Limits.MaxComputeWorkGroupCount[2] = 65535
	return p
}

// merge tells of as many launches as are needed.
func (r *rig) merge(k *Kernel, p *vk.Properties) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.MergeLocked(kernel.MergingOwn, p, fewRepeats)
}

// mergings returns MergingsLocked.
func (r *rig) mergings(k *Kernel) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return k.MergingsLocked()
}

// compiled returns a kernel whose pipeline is there.
func (r *rig) compiled() *Kernel {
	k := r.use(load(r.T, "set"))
	r.d.gate <- works
	<-r.compile(k, 0).Done()
	<-r.d.begun
	<-r.ended
	return k
}

// Once the pipeline that merges is there, the other one names it. It is made once, and both are
// destroyed.
func TestMergingPipelineIsMadeOnce(t *testing.T) {
	r := newRig(t)
	k := r.compiled()
	if k.Ready(0).Merging != 0 {
		t.Fatalf("the first pipeline is %+v", k.Ready(0))
	}
	r.mu.Lock()
	for range fewRepeats - 1 {
		k.MergeLocked(kernel.MergingOwn, merging(), 1)
	}
	if k.compilations[kernel.MergingOwn] != nil {
		t.Error("it is made for few launches")
	}
	r.mu.Unlock()
	r.merge(k, merging())
	r.merge(k, merging())
	<-r.d.begun
	r.d.gate <- works
	if c := <-r.ended; c.NeededLocked() {
		t.Error("somebody has needed it")
	}
	if p := k.Ready(0); p.Handle != 1 || p.Merging != 2 {
		t.Errorf("the pipeline is %+v, want the first one, merged by the second", p)
	}
	r.merge(k, merging())
	if len(r.d.begun) > 0 {
		t.Error("it is made again")
	}
	k.Release()
	r.Destroy()
	r.pipelines(0)
}

// The second pipeline that merges is made when the first one is there, for the number of which it is told, and what it
// gets stands for both.
func TestPipelinesThatMergeAreMadeOneAfterTheOther(t *testing.T) {
	for name, order := range map[string][2]int{
		"own first":    {kernel.MergingOwn, kernel.MergingShared},
		"shared first": {kernel.MergingShared, kernel.MergingOwn},
		"spaced first": {kernel.MergingSpaced, kernel.MergingShared},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			k := r.compiled()
			tell := func(which, launches int) {
				r.mu.Lock()
				defer r.mu.Unlock()
				k.MergeLocked(which, merging(), launches)
			}
			tell(order[0], fewRepeats)
			tell(order[1], fewRepeats-1)
			<-r.d.begun
			tell(order[1], 1)
			if len(r.d.begun) > 0 {
				t.Error("both are under way")
			}
			r.d.gate <- works
			<-r.ended
			if n, p := r.mergings(k), k.Ready(0); n != 1 || p.Merging != 2 {
				t.Errorf("%d pipelines merge, and the number is %d", n, p.Merging)
			}
			tell(order[1], 1)
			<-r.d.begun
			r.d.gate <- works
			<-r.ended
			if n, p := r.mergings(k), k.Ready(0); n != 2 || p.Merging != 3 {
				t.Errorf("%d pipelines merge, and the number is %d", n, p.Merging)
			}
			if got := r.d.merges; !slices.Equal(got, []uint32{0, 2}) {
				t.Errorf("they were made for the numbers %d", got)
			}
			k.Release()
			r.Destroy()
			r.pipelines(0)
		})
	}
}

// A kernel that cannot be merged, or that the driver refuses, is left alone from then on, and works as
// before. Want of memory is no reason.
func TestMergingThatFailsIsNoError(t *testing.T) {
	refused := errors.New("refused by the driver")
	for name, test := range map[string]struct {
		p     *vk.Properties
		gate  error
		begun int // compilations of three attempts
	}{
		"a device that does not": {&vk.Properties{Name: "fake"}, nil, 0},
		"no room":                {func() *vk.Properties { p := merging(); p.Limits.MaxPerStageDescriptorStorageBuffers = 1; return p }(), nil, 0},
		"a refusal":              {merging(), refused, 1},
		"want of memory":         {merging(), vk.ErrOutOfDeviceMemory, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			k := r.compiled()
			begun := 0
			for range 3 {
				r.d.gate <- func() error { return test.gate }
				r.merge(k, test.p)
				r.mu.Lock()
				under := k.compilations[kernel.MergingOwn] != nil && !k.compilations[kernel.MergingOwn].OverLocked()
				r.mu.Unlock()
				if under || len(r.ended) > 0 {
					<-r.ended
				}
				begun += len(r.d.begun)
				for len(r.d.begun) > 0 {
					<-r.d.begun
				}
				for len(r.d.gate) > 0 {
					<-r.d.gate
				}
			}
			if begun != test.begun {
				t.Errorf("%d compilations, want %d", begun, test.begun)
			}
			if p := k.Ready(0); p == nil || p.Merging != 0 {
				t.Errorf("the pipeline is %+v", p)
			}
			// What a launch needs has nothing to do with it.
			if c := r.compile(k, 0); !c.OverLocked() {
				t.Error("the pipeline for launches is compiled again")
			}
			k.Release()
			r.Destroy()
			r.pipelines(0)
		})
	}
}

// A task that was generated before its kernel was closed can be placed after that.
func TestClosedKernelIsNotMerged(t *testing.T) {
	r := newRig(t)
	k := r.compiled()
	r.Release(k.Kernel)
	r.mu.Lock()
	r.HoldAheadLocked()
	r.mu.Unlock()
	r.merge(k, merging())
	r.mu.Lock()
	if k.compilations[kernel.MergingOwn] != nil || len(r.Cache.ahead.queue) > 0 {
		t.Error("the pipeline that merges is queued")
	}
	r.mu.Unlock()
	k.Release()
	<-r.d.gone
	r.Destroy()
	r.pipelines(0)
}

// A kernel that is closed while its pipeline that merges is queued or under way leaves nothing behind.
func TestMergingOfAClosedKernelIsDropped(t *testing.T) {
	for _, hold := range []bool{false, true} {
		r := newRig(t)
		k := r.compiled()
		r.mu.Lock()
		if hold {
			r.HoldAheadLocked()
		}
		r.mu.Unlock()
		r.merge(k, merging())
		if !hold {
			<-r.d.begun
		}
		r.Release(k.Kernel)
		k.Release()
		if !hold {
			r.d.gate <- works
			<-r.d.gone
			<-r.ended
		}
		<-r.d.gone
		r.pipelines(0)
		r.Destroy()
	}
}
