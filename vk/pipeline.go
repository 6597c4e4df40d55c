//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
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
	d.pipelines[p.Handle] = p
	d.mu.Unlock()
	return p, nil
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
	d.mu.Unlock()
	if ok {
		d.destroyPipeline(own)
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
		r = C.vko_set_layout(d.c, C.uint32_t(p.BindingMask), &h)
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
	r = C.vko_pipeline(d.c, d.cache, module, (*C.char)(unsafe.Pointer(&entry[0])), C.vkoHandle(p.Layout),
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
