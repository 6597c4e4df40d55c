//go:build cgo

package vk

import (
	"errors"
	"fmt"
	"testing"
)

// Each call fails in turn; the device goes on.
func TestPipelineCacheThatFailsLeavesNothing(t *testing.T) {
	d := layeredDevice(t)
	createPipeline(t, d, "add")
	data, err := d.PipelineCacheData(nil)
	if err != nil {
		t.Fatal(err)
	}
	for call, merges := range map[string]bool{
		"vkGetPipelineCacheData@1": false, "vkGetPipelineCacheData@2": false,
		"vkCreatePipelineCache": true, "vkMergePipelineCaches": true, "vkGetPipelineCacheData": true,
	} {
		t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("%s=%d", call, ErrorOutOfHostMemory))
		var other []byte
		if merges {
			other = data
		}
		if _, err := d.PipelineCacheData(other); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%s: %v", call, err)
		}
	}
	// It grows between the call that asks for the size and the one that fills the bytes.
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("vkGetPipelineCacheData@2=%d", Incomplete))
	again, err := d.PipelineCacheData(nil)
	if err != nil || len(again) != len(data) {
		t.Errorf("%d bytes, %v", len(again), err)
	}
	if err := d.Properties().CheckPipelineCache(again); err != nil {
		t.Error(err)
	}
}

// Drivers that keep nothing do not show whether the cache is used and what it has at first, so the
// layer refuses a pipeline without a cache and a cache without data.
func TestPipelineCacheIsFilledAndUsed(t *testing.T) {
	p := usable(t, openLayered(t))
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("pipelineWithoutCache=%d", ErrorOutOfHostMemory))
	first, err := p.Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Close() })
	createPipeline(t, first, "add")
	data, err := first.PipelineCacheData(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("emptyPipelineCache=%d", ErrorOutOfHostMemory))
	second, err := p.Open(DeviceOptions{PipelineCache: data})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	third, err := p.Open(DeviceOptions{})
	if err == nil {
		third.Close()
	}
	if !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("a cache without data: %v", err)
	}
}

// A driver that does not take what an earlier device had begins with nothing.
func TestDriverThatRefusesAPipelineCacheStartsWithNone(t *testing.T) {
	p := usable(t, openLayered(t))
	var data []byte
	for _, fail := range []string{"", fmt.Sprintf("vkCreatePipelineCache@1=%d", ErrorInitialization)} {
		t.Setenv("VKOMP_TEST_FAIL", fail)
		d, err := p.Open(DeviceOptions{PipelineCache: data})
		if err != nil {
			t.Fatalf("%q: %v", fail, err)
		}
		made, err := d.CreatePipeline(PipelineOptions{Code: shader(t, "spec"), Entry: "main", Bindings: []uint32{0}})
		if err != nil || made.Found {
			t.Errorf("%q: found %v, %v", fail, made.Found, err)
		}
		if data, err = d.PipelineCacheData(nil); err != nil {
			t.Error(err)
		}
		d.DestroyPipeline(made)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A lost device is asked for nothing.
func TestPipelineCacheOfALostDevice(t *testing.T) {
	d := layeredDevice(t)
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("vkQueueSubmit=%d", ErrorDeviceLost))
	if err := d.Queues()[0].Submit(nil, nil, nil, 1); !errors.Is(err, ErrDeviceLost) {
		t.Fatal(err)
	}
	t.Setenv("VKOMP_TEST_FAIL", "")
	if data, err := d.PipelineCacheData(nil); data != nil || !errors.Is(err, ErrDeviceLost) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// A cache that cannot be renewed stays, and is tried again after as many more pipelines.
func TestPipelineCacheThatCannotBeRenewedStays(t *testing.T) {
	d := layeredDevice(t)
	d.caches.slack = 4
	cache := d.caches.current
	made := func(n int) {
		for range n {
			d.DestroyPipeline(createPipeline(t, d, "add"))
		}
	}
	t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("vkCreatePipelineCache=%d", ErrorOutOfHostMemory))
	made(6)
	if d.caches.current != cache {
		t.Error("the cache was renewed")
	}
	t.Setenv("VKOMP_TEST_FAIL", "")
	made(3)
	if d.caches.current != cache {
		t.Error("the cache was renewed too early")
	}
	made(1)
	if d.caches.current == cache {
		t.Error("the cache was not renewed")
	}
}
