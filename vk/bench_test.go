//go:build cgo

package vk

import (
	"testing"
)

// The results depend on the driver's threads: for lavapipe's own cost run with
// LP_NUM_THREADS=0 on one processor.
const batch = 10000

func benchmarkDevice(b *testing.B, o DeviceOptions) (*Device, Pipeline, [2]Block) {
	b.Helper()
	i, err := Open(InstanceOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { i.Close() })
	if len(i.PhysicalDevices()) == 0 {
		b.Fatal("no device")
	}
	d, err := i.PhysicalDevices()[0].Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	p, err := d.CreatePipeline(PipelineOptions{
		Code: shader(b, "group"), Entry: "main", Bindings: []uint32{0}, PushConstants: 8,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.DestroyPipeline(p) })
	var blocks [2]Block
	for k := range blocks {
		if blocks[k], err = d.CreateBlock(4096, 0); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { d.DestroyBlock(blocks[k]) })
	}
	return d, p, blocks
}

// BenchmarkBatch submits 10,000 dispatches, a barrier after each, and waits.
func BenchmarkBatch(b *testing.B) {
	for _, c := range []struct {
		name        string
		options     DeviceOptions
		alternating bool // consecutive dispatches bind different buffers
	}{
		{"same", DeviceOptions{}, false},
		{"alternating", DeviceOptions{}, true},
		{"pools-alternating", DeviceOptions{NoPushDescriptors: true}, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, p, blocks := benchmarkDevice(b, c.options)
			q := d.Queues()[0]
			var bindings [2][]BufferRange
			for k := range bindings {
				from := blocks[0]
				if c.alternating {
					from = blocks[k]
				}
				bindings[k] = []BufferRange{{Buffer: from.Buffer, Size: from.Size}}
			}
			constants := push(1, 1)
			var s Stream
			for k := range batch {
				s.Dispatch(p, bindings[k%2], constants, [3]uint32{}, [3]uint32{1, 1, 1})
				s.Barrier(Barrier{StageCompute, StageCompute, AccessShaderWrite, AccessShaderRead | AccessShaderWrite})
			}
			value := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				value++
				if err := q.Submit(&s, nil, nil, value); err != nil {
					b.Fatal(err)
				}
				if done, err := q.Wait(value, -1); !done || err != nil {
					b.Fatal(done, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/dispatch")
		})
	}
}

// BenchmarkStream appends a dispatch and a barrier.
func BenchmarkStream(b *testing.B) {
	var s Stream
	bindings := []BufferRange{{1, 0, 4096}, {2, 0, 4096}}
	constants := push(1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if s.Len() > batch {
			s.Reset()
		}
		s.Dispatch(Pipeline{1, 2, 3, 2, 3, 8, 0, false}, bindings, constants, [3]uint32{}, [3]uint32{1, 1, 1})
		s.Barrier(Barrier{StageCompute, StageCompute, AccessShaderWrite, AccessShaderRead})
	}
}

// BenchmarkEmptySubmit submits only a signal and waits for it.
func BenchmarkEmptySubmit(b *testing.B) {
	d, _, _ := benchmarkDevice(b, DeviceOptions{})
	q := d.Queues()[0]
	value := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		value++
		if err := q.Submit(nil, nil, nil, value); err != nil {
			b.Fatal(err)
		}
		if done, err := q.Wait(value, -1); !done || err != nil {
			b.Fatal(done, err)
		}
	}
}
