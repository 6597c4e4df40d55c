//go:build cgo

package vk

import (
	"math"
	"testing"
)

func TestSpecializationOverridesDefaults(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	b, data := newBlock(t, d, 4)
	var value uint64
	for _, c := range []struct {
		spec []SpecEntry
		want [4]uint32
	}{
		{[]SpecEntry{{0, 2, 4}}, [4]uint32{2, 7, 0, math.Float32bits(0.5)}},
		{[]SpecEntry{{0, 16, 4}, {1, 1 << 31, 4}, {2, 1, 4}, {3, uint64(math.Float32bits(2.25)), 4}},
			[4]uint32{16, 1 << 31, 1, math.Float32bits(2.25)}},
		// A constant that the module does not declare is ignored.
		{[]SpecEntry{{99, 1, 8}, {1, 5, 4}, {0, 1, 4}}, [4]uint32{1, 5, 0, math.Float32bits(0.5)}},
	} {
		p := newPipeline(t, d, "spec", PipelineOptions{Bindings: []uint32{0}, Specialization: c.spec})
		var s Stream
		s.Dispatch(p, []BufferRange{all(b)}, nil, [3]uint32{}, [3]uint32{1, 1, 1})
		s.Barrier(toHost)
		value++
		run(t, d, &s, value)
		if got := [4]uint32(data); got != c.want {
			t.Errorf("%v wrote %v, want %v", c.spec, got, c.want)
		}
	}
}

func TestDestroyedPipelineLeavesNothing(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		o := PipelineOptions{Code: shader(t, "add"), Entry: "main", Bindings: []uint32{0, 1}, PushConstants: 8}
		first, err := d.CreatePipeline(o)
		if err != nil {
			t.Fatal(err)
		}
		second, err := d.CreatePipeline(o)
		if err != nil {
			t.Fatal(err)
		}
		if n := d.Live()["VkPipeline"]; n != 2 {
			t.Errorf("%d pipelines are live", n)
		}
		d.DestroyPipeline(first)
		d.DestroyPipeline(first)      // destroyed already
		d.DestroyPipeline(Pipeline{}) // never created
		d.DestroyPipeline(second)
		if live := d.Live(); len(live) != 0 {
			t.Errorf("live: %v", live)
		}
	})
}

func TestGarbagePipelineIsRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	for name, o := range garbagePipelines(t) {
		if p, err := d.CreatePipeline(o); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
		if live := d.Live(); len(live) != 0 {
			t.Errorf("%s: live: %v", name, live)
		}
	}
}
