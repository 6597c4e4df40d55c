//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"fmt"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"github.com/vkomp/vkomp/vk/spirv"
)

// CreatePipeline creates a compute pipeline. Its dispatches may have a base workgroup
// other than zero. Before the driver is called, the structure of the module and the entry
// point are checked, but not what the code does.
func (d *Device) CreatePipeline(o PipelineOptions) (Pipeline, error) {
	if err := d.enter(); err != nil {
		return Pipeline{}, err
	}
	defer d.leave()
	mask, err := o.check(&d.Properties().Limits)
	if err != nil {
		return Pipeline{}, err
	}
	p := Pipeline{Bindings: uint32(len(o.Bindings)), BindingMask: mask, PushConstants: o.PushConstants}
	if err := d.buildPipeline(&o, &p); err != nil {
		d.destroyPipeline(p)
		return Pipeline{}, err
	}
	d.mu.Lock()
	d.caches.made++
	if o.Merges.Handle != 0 {
		p.Merging, err = d.addMerging(&o, &p)
	}
	if err == nil {
		d.pipelines[p.Handle] = p
	}
	d.mu.Unlock()
	if err != nil {
		d.destroyPipeline(p)
		return Pipeline{}, err
	}
	return p, nil
}

// The C code has the same limits.
var (
	_ = [1]struct{}{}[MaxMergedPush-C.VKO_MERGED_PUSH_BYTES]
	_ = [1]struct{}{}[MaxMergedGroups-C.VKO_MERGED_GROUPS]
	_ = [1]struct{}{}[MaxBindings-C.VKO_BINDINGS]
)

// mergings are the numbers of a device's pipelines that merge the dispatches of others.
type mergings struct {
	last uint32   // the largest that was given
	free []uint32 // those up to last that are not in use
}

// addMerging gives a number to a pipeline that merges the dispatches of another one. d.mu is held.
func (d *Device) addMerging(o *PipelineOptions, p *Pipeline) (uint32, error) {
	n := &d.mergings
	if len(n.free) == 0 {
		if n.last == C.VKO_MERGING_CHUNK*C.VKO_MERGING_CHUNKS-1 {
			return 0, fmt.Errorf("%w: Device.CreatePipeline: %q: %d pipelines merge others already", ErrUnsupported, o.name(), n.last)
		}
		n.last++
		n.free = append(n.free, n.last)
	}
	number := n.free[len(n.free)-1]
	m := C.vko_merging{merged: C.vkoHandle(o.Merges.Handle), mask: C.uint32_t(p.BindingMask)}
	if others := C.vko_merging_at(d.c, C.uint32_t(o.Merges.Merging)); others != nil {
		m = *others
	}
	variant := [...]*C.vko_variant{spirv.OwnBindings: &m.own, spirv.SharedBindings: &m.shared, spirv.SpacedBindings: &m.spaced}[o.LaunchBindings]
	if m.merged != C.vkoHandle(o.Merges.Handle) || variant.launches > 0 {
		return 0, invalid("Device.CreatePipeline", "%q: number %d is not of the pipeline, or of one that merges as this one does", o.name(), o.Merges.Merging)
	}
	*variant = C.vko_variant{
		pipeline: C.vkoHandle(p.Handle), layout: C.vkoHandle(p.Layout), set_layout: C.vkoHandle(p.SetLayout),
		launches: C.uint32_t(o.Launches), elements: C.uint32_t(o.elements()), base: C.uint32_t(o.Base), stride: C.uint32_t(o.Stride),
	}
	for i, bytes := range o.Elements {
		m.bytes[i] = C.uint32_t(bytes)
	}
	if err := check("vkCreateComputePipelines", Result(C.vko_merging_set(d.c, C.uint32_t(number), &m)), "%s", o.name()); err != nil {
		return 0, err
	}
	n.free = n.free[:len(n.free)-1]
	return number, nil
}

// removeMerging makes a number free for another pipeline. d.mu is held.
func (d *Device) removeMerging(number uint32) {
	C.vko_merging_set(d.c, C.uint32_t(number), &C.vko_merging{})
	d.mergings.free = append(d.mergings.free, number)
}

// DestroyPipeline destroys a pipeline of this device and its layouts. The device must not
// be using it. Unknown pipelines and pipelines that were destroyed before are ignored.
func (d *Device) DestroyPipeline(p Pipeline) {
	if d.enter() != nil {
		return
	}
	defer d.leave()
	d.mu.Lock()
	own, ok := d.pipelines[p.Handle]
	delete(d.pipelines, p.Handle)
	if own.Merging != 0 {
		d.removeMerging(own.Merging)
	}
	d.mu.Unlock()
	if ok {
		d.destroyPipeline(own)
		d.renewPipelineCache()
	}
}

// buildPipeline fills the handles of p. After an error p has those already created.
func (d *Device) buildPipeline(o *PipelineOptions, p *Pipeline) error {
	var h C.vkoHandle
	r := C.vko_shader_module(d.c, (*C.uint32_t)(unsafe.Pointer(&o.Code[0])), C.size_t(len(o.Code)), &h)
	if err := check("vkCreateShaderModule", Result(r), "%s", o.name()); err != nil {
		return err
	}
	module := h
	d.count("VkShaderModule", 1)
	defer func() {
		vulkan.DestroyShaderModule(d.handle, handle[vulkan.ShaderModule](uint64(module)), nil)
		d.count("VkShaderModule", -1)
	}()
	if len(o.Bindings) > 0 {
		r = C.vko_set_layout(d.c, C.uint32_t(p.BindingMask), C.uint32_t(o.elements()), &h)
		if err := check("vkCreateDescriptorSetLayout", Result(r), "%s", o.name()); err != nil {
			return err
		}
		p.SetLayout = uint64(h)
		d.count("VkDescriptorSetLayout", 1)
	}
	r = C.vko_pipeline_layout(d.c, C.vkoHandle(p.SetLayout), C.uint32_t(o.PushConstants), &h)
	if err := check("vkCreatePipelineLayout", Result(r), "%s", o.name()); err != nil {
		return err
	}
	p.Layout = uint64(h)
	d.count("VkPipelineLayout", 1)

	ids, sizes, data := o.specialization()
	entry := append([]byte(o.Entry), 0)
	var found C.uint32_t
	feedback := &found
	if !d.Properties().Features.PipelineCreationFeedback {
		feedback = nil
	}
	cache := d.usePipelineCache()
	defer d.endUse(cache)
	r = C.vko_pipeline(d.c, cache.handle, module, (*C.char)(unsafe.Pointer(&entry[0])), C.vkoHandle(p.Layout),
		C.uint32_t(len(ids)),
		(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(ids))),
		(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(sizes))),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(data))), &h, feedback)
	if err := check("vkCreateComputePipelines", Result(r), "%s", o.name()); err != nil {
		return err
	}
	p.Handle, p.Found = uint64(h), found != 0
	d.count("VkPipeline", 1)
	return nil
}

// destroyPipeline destroys the handles that are set in p.
func (d *Device) destroyPipeline(p Pipeline) {
	if p.Handle != 0 {
		vulkan.DestroyPipeline(d.handle, handle[vulkan.Pipeline](p.Handle), nil)
		d.count("VkPipeline", -1)
	}
	if p.Layout != 0 {
		vulkan.DestroyPipelineLayout(d.handle, handle[vulkan.PipelineLayout](p.Layout), nil)
		d.count("VkPipelineLayout", -1)
	}
	if p.SetLayout != 0 {
		vulkan.DestroyDescriptorSetLayout(d.handle, handle[vulkan.DescriptorSetLayout](p.SetLayout), nil)
		d.count("VkDescriptorSetLayout", -1)
	}
}
