//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"fmt"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// pipelineCaches is the VkPipelineCache with which a device makes pipelines.
type pipelineCaches struct {
	// current is the cache in use.
	current *pipelineCache
	// made counts the pipelines that were made since the last renewal, and those that there were then.
	made int
	// slack is by how much made may exceed twice the number of the pipelines that there are: cacheSlack, except
	// in tests.
	slack int
	// first is DeviceOptions.PipelineCache, with which each cache begins.
	first []byte
}

// cacheSlack bounds what a cache has of pipelines that are gone. Drivers keep in it all that they compile: a
// program that makes kernels without end would need memory without end.
const cacheSlack = 1024

// pipelineCache is a VkPipelineCache. users counts the calls that use it.
type pipelineCache struct {
	handle C.vkoHandle
	users  int
}

// PipelineCacheData returns the contents of the device's pipeline cache, for
// DeviceOptions.PipelineCache. If other is not empty, it is such contents too, and the result has
// both. It may be called while pipelines are created, and has or has not what is created meanwhile.
// Once 1,024 more pipelines have been destroyed than there are, the cache begins anew with DeviceOptions.PipelineCache,
// and has nothing else of the pipelines created before, not even of those that there still are.
// The error is ErrDeviceLost for a device that is lost.
func (d *Device) PipelineCacheData(other []byte) ([]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if d.lost.Load() {
		return nil, fmt.Errorf("%w: Device.PipelineCacheData", ErrDeviceLost)
	}
	cache := d.usePipelineCache()
	defer d.endUse(cache)
	if len(other) == 0 {
		return d.pipelineCacheData(cache)
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
	if err := check("vkMergePipelineCaches", Result(C.vko_pipeline_cache_merge(d.c, both.handle, cache.handle)), ""); err != nil {
		return nil, err
	}
	return d.pipelineCacheData(both)
}

// pipelineCacheData returns the contents of a pipeline cache.
func (d *Device) pipelineCacheData(cache *pipelineCache) ([]byte, error) {
	const op = "vkGetPipelineCacheData"
	for {
		var size C.size_t
		if err := check(op, Result(C.vko_pipeline_cache_data(d.c, cache.handle, nil, &size)), ""); err != nil || size == 0 {
			return nil, err
		}
		data := make([]byte, size)
		r := Result(C.vko_pipeline_cache_data(d.c, cache.handle, unsafe.Pointer(unsafe.SliceData(data)), &size))
		if r == Incomplete {
			continue // it has grown between the calls
		}
		return data[:min(int(size), len(data))], check(op, r, "")
	}
}

// openPipelineCache creates the device's pipeline cache. A driver that refuses the data begins with
// nothing.
func (d *Device) openPipelineCache(data []byte) (*pipelineCache, error) {
	if len(data) > 0 {
		if cache, err := d.createPipelineCache(data); err == nil {
			return cache, nil
		}
	}
	return d.createPipelineCache(nil)
}

// createPipelineCache creates a pipeline cache with that contents.
func (d *Device) createPipelineCache(data []byte) (*pipelineCache, error) {
	if len(data) > 0 {
		if err := d.Properties().CheckPipelineCache(data); err != nil {
			return nil, err
		}
	}
	var h C.vkoHandle
	r := C.vko_pipeline_cache(d.c, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), &h)
	if err := check("vkCreatePipelineCache", Result(r), "%d bytes", len(data)); err != nil {
		return nil, err
	}
	return &pipelineCache{handle: h}, nil
}

// destroyPipelineCache destroys a pipeline cache; nil is none.
func (d *Device) destroyPipelineCache(cache *pipelineCache) {
	if cache != nil {
		vulkan.DestroyPipelineCache(d.handle, handle[vulkan.PipelineCache](uint64(cache.handle)), nil)
	}
}

// usePipelineCache returns the device's pipeline cache, which is not destroyed before endUse.
func (d *Device) usePipelineCache() *pipelineCache {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.caches.current.users++
	return d.caches.current
}

// endUse ends what usePipelineCache has begun.
func (d *Device) endUse(cache *pipelineCache) {
	d.mu.Lock()
	cache.users--
	over := cache.users == 0 && cache != d.caches.current
	d.mu.Unlock()
	if over {
		d.destroyPipelineCache(cache)
	}
}

// renewPipelineCache replaces the pipeline cache by one with the contents that it had at first, if most of
// the pipelines that were made with it are gone. After an error of the driver it stays until as many more
// are gone.
func (d *Device) renewPipelineCache() {
	c := &d.caches
	d.mu.Lock()
	due := c.made > 2*len(d.pipelines)+c.slack
	if due {
		c.made = len(d.pipelines)
	}
	d.mu.Unlock()
	if !due {
		return
	}
	fresh, err := d.openPipelineCache(c.first)
	if err != nil {
		return
	}
	d.mu.Lock()
	old := c.current
	old.users++ // its last user destroys it
	c.current = fresh
	d.mu.Unlock()
	d.endUse(old)
}
