//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"fmt"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// PipelineCacheData returns the contents of the device's pipeline cache, for
// DeviceOptions.PipelineCache. If other is not empty, it is such contents too, and the result has
// both. It may be called while pipelines are created, and has or has not what is created meanwhile.
// The error is ErrDeviceLost for a device that is lost.
func (d *Device) PipelineCacheData(other []byte) ([]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if d.lost.Load() {
		return nil, fmt.Errorf("%w: Device.PipelineCacheData", ErrDeviceLost)
	}
	if len(other) == 0 {
		return d.pipelineCacheData(d.cache)
	}
	// Vulkan lets nobody else use the cache that others are added to, so that is one of its own.
	both, err := d.createPipelineCache(other)
	if err != nil {
		return nil, err
	}
	d.count("VkPipelineCache", 1)
	defer func() {
		d.destroyPipelineCache(both)
		d.count("VkPipelineCache", -1)
	}()
	if err := check("vkMergePipelineCaches", Result(C.vko_pipeline_cache_merge(d.c, both, d.cache)), ""); err != nil {
		return nil, err
	}
	return d.pipelineCacheData(both)
}

// pipelineCacheData returns the contents of a pipeline cache.
func (d *Device) pipelineCacheData(cache C.vkoHandle) ([]byte, error) {
	const op = "vkGetPipelineCacheData"
	for {
		var size C.size_t
		if err := check(op, Result(C.vko_pipeline_cache_data(d.c, cache, nil, &size)), ""); err != nil || size == 0 {
			return nil, err
		}
		data := make([]byte, size)
		r := Result(C.vko_pipeline_cache_data(d.c, cache, unsafe.Pointer(unsafe.SliceData(data)), &size))
		if r == Incomplete {
			continue // it has grown between the calls
		}
		return data[:min(int(size), len(data))], check(op, r, "")
	}
}

// openPipelineCache creates the device's pipeline cache. A driver that refuses the data begins with
// nothing.
func (d *Device) openPipelineCache(data []byte) (C.vkoHandle, error) {
	if len(data) > 0 {
		if cache, err := d.createPipelineCache(data); err == nil {
			return cache, nil
		}
	}
	return d.createPipelineCache(nil)
}

// createPipelineCache creates a pipeline cache with that contents.
func (d *Device) createPipelineCache(data []byte) (C.vkoHandle, error) {
	if len(data) > 0 {
		if err := d.Properties().CheckPipelineCache(data); err != nil {
			return 0, err
		}
	}
	var cache C.vkoHandle
	r := C.vko_pipeline_cache(d.c, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), &cache)
	return cache, check("vkCreatePipelineCache", Result(r), "%d bytes", len(data))
}

// destroyPipelineCache destroys a pipeline cache; 0 is none.
func (d *Device) destroyPipelineCache(cache C.vkoHandle) {
	if cache != 0 {
		vulkan.DestroyPipelineCache(d.handle, handle[vulkan.PipelineCache](uint64(cache)), nil)
	}
}
