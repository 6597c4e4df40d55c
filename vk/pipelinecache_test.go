//go:build cgo

package vk

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// contents returns what the pipeline cache of a device has that has created some pipelines.
func contents(t *testing.T, o DeviceOptions, kernels ...string) (*Device, []byte) {
	t.Helper()
	d := openDevice(t, o)
	for _, name := range kernels {
		createPipeline(t, d, name)
	}
	data, err := d.PipelineCacheData(nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, data
}

// bindingsOf are the bindings of the shaders of testdata.
var bindingsOf = map[string][]uint32{"add": {0, 1}, "spec": {0}}

func createPipeline(t *testing.T, d *Device, name string) Pipeline {
	t.Helper()
	return newPipeline(t, d, name, PipelineOptions{Bindings: bindingsOf[name], PushConstants: map[string]uint32{"add": 8}[name]})
}

func TestPipelineCacheGoesFromOneDeviceToTheNext(t *testing.T) {
	first, add := contents(t, DeviceOptions{}, "add")
	if err := first.Properties().CheckPipelineCache(add); err != nil {
		t.Fatalf("what the driver gives: %v", err)
	}
	// Drivers that keep nothing for a process give the header alone, and find nothing.
	keeps := len(add) > cacheHeaderBytes
	second, both := contents(t, DeviceOptions{PipelineCache: add}, "spec")
	if p := createPipeline(t, second, "add"); p.Found != (keeps && second.Properties().Features.PipelineCreationFeedback) {
		t.Errorf("a pipeline of the first device is found: %v", p.Found)
	}
	if len(both) < len(add) {
		t.Errorf("%d bytes after %d", len(both), len(add))
	}
	// What others have is added.
	third, spec := contents(t, DeviceOptions{}, "spec")
	merged, err := third.PipelineCacheData(add)
	if err != nil || len(merged) < max(len(add), len(spec)) || third.Properties().CheckPipelineCache(merged) != nil {
		t.Errorf("%d and %d bytes make %d: %v", len(add), len(spec), len(merged), err)
	}
	if live := third.Live(); live["VkPipeline"] != 1 || live["VkPipelineCache"] != 0 {
		t.Errorf("live: %v", live)
	}
	t.Logf("%s: %d, %d, %d and %d bytes, tells what it finds: %v", third.Properties().Name, len(add), len(spec), len(both), len(merged),
		third.Properties().Features.PipelineCreationFeedback)
}

func TestForeignPipelineCacheIsIgnored(t *testing.T) {
	_, data := contents(t, DeviceOptions{}, "add")
	foreign := slices.Clone(data)
	foreign[16]++ // its UUID
	d, own := contents(t, DeviceOptions{PipelineCache: foreign}, "add")
	if err := d.Properties().CheckPipelineCache(own); err != nil {
		t.Error(err)
	}
	if _, err := d.PipelineCacheData(foreign); !errors.Is(err, ErrInvalid) {
		t.Errorf("added to others: %v", err)
	}
}

// The header is read without trust in it.
func TestPipelineCacheHeader(t *testing.T) {
	d, data := contents(t, DeviceOptions{})
	p := d.Properties()
	for at := range cacheHeaderBytes {
		wrong := slices.Clone(data)
		wrong[at] ^= 0x80
		// A header may be longer than what is known of it, if it is all there.
		fine := at == 0 && len(data) >= cacheHeaderBytes|0x80
		if err := p.CheckPipelineCache(wrong); errors.Is(err, ErrInvalid) == fine {
			t.Errorf("byte %d is changed: %v", at, err)
		}
	}
	for n := range cacheHeaderBytes {
		if err := p.CheckPipelineCache(data[:n]); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A device that makes pipelines without end does not keep all of them in its cache, but what the cache had at first.
func TestPipelineCacheIsRenewed(t *testing.T) {
	_, add := contents(t, DeviceOptions{}, "add")
	keeps := len(add) > cacheHeaderBytes
	d := openDevice(t, DeviceOptions{PipelineCache: add})
	d.caches.slack = 4
	for range 3 {
		createPipeline(t, d, "add")
	}
	temporary := func(n uint64) {
		t.Helper()
		p, err := d.CreatePipeline(PipelineOptions{Code: shader(t, "spec"), Entry: "main", Bindings: []uint32{0}, Specialization: []SpecEntry{{1, n, 4}}})
		if err != nil {
			t.Fatal(err)
		}
		d.DestroyPipeline(p)
	}
	for round := range uint64(3) {
		// All pipelines may be 10: twice 3, and 4.
		cache := d.caches.current
		for n := range uint64(7) {
			temporary(8*round + n)
		}
		if d.caches.current != cache {
			t.Errorf("round %d: the cache was renewed too early", round)
		}
		full, err := d.PipelineCacheData(nil)
		if err != nil {
			t.Fatal(err)
		}
		temporary(8*round + 7)
		if d.caches.current == cache {
			t.Errorf("round %d: the cache was not renewed", round)
		}
		after, err := d.PipelineCacheData(nil)
		if err != nil || keeps && (len(after) < len(add) || len(after) >= len(full)) {
			t.Errorf("round %d: %d bytes at first, %d when full and %d after: %v", round, len(add), len(full), len(after), err)
		}
	}
	if p := createPipeline(t, d, "add"); p.Found != (keeps && d.Properties().Features.PipelineCreationFeedback) {
		t.Errorf("a pipeline that the cache had at first is found: %v", p.Found)
	}
}

// Pipelines are created while the contents are read and merged, and the cache is renewed.
func TestPipelineCacheIsSharedByAllThreads(t *testing.T) {
	d, other := contents(t, DeviceOptions{}, "add")
	d.caches.slack = 2
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for n := range uint64(8) {
				p, err := d.CreatePipeline(PipelineOptions{Code: shader(t, "spec"), Entry: "main", Bindings: []uint32{0},
					Specialization: []SpecEntry{{1, uint64(k)<<8 | n, 4}}})
				if err != nil {
					t.Error(err)
					return
				}
				d.DestroyPipeline(p)
			}
		})
		all.Go(func() {
			for n := range 8 {
				with := other
				if n%2 == 0 {
					with = nil
				}
				data, err := d.PipelineCacheData(with)
				if err == nil {
					err = d.Properties().CheckPipelineCache(data)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestPipelineCacheOfAClosedDevice(t *testing.T) {
	i := openInstance(t)
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := d.PipelineCacheData(nil); data != nil || !errors.Is(err, ErrClosed) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestAdoptedDeviceHasAPipelineCacheOfItsOwn(t *testing.T) {
	_, a := application(t)
	d := adopt(t, a, DeviceOptions{})
	createPipeline(t, d, "add")
	data, err := d.PipelineCacheData(nil)
	if err == nil {
		err = d.Properties().CheckPipelineCache(data)
	}
	if err != nil {
		t.Error(err)
	}
}
