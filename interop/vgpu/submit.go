package vgpu

// #include "hook.h"
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/goki/vulkan"
)

// Submit submits a command buffer that vgpu has recorded and ended, as the next foreign
// task of the interop object: after what the object's constructs depend on and earlier
// foreign tasks, and before what depends on the constructs that come later. Memory that one
// of them has written the next one sees. Until the task is complete the command buffer, and
// what it uses, stay as they are.
//
// It waits neither for the device nor for predecessors. Where vkomp uses the object's queue
// too, the submission is made when theirs have been; what fails then, and the end of ctx
// before, is an error of the object's next construct.
func (d *Device) Submit(ctx context.Context, commands vulkan.CommandBuffer) error {
	if err := d.submit(ctx, *(*unsafe.Pointer)(unsafe.Pointer(&commands))); err != nil {
		return fmt.Errorf("vgpu: submit: %w", err)
	}
	return nil
}

func (d *Device) submit(ctx context.Context, commands unsafe.Pointer) error {
	if err := d.usable(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.submitting.Add(1)
	defer d.submitting.Add(-1)
	d.pending.Add(1)
	// Either the call below or the end of ctx is the end of it.
	ended := context.AfterFunc(ctx, func() { d.pending.Add(-1) })
	err := d.object.Submit(ctx, func(queue uintptr) error {
		if !ended() {
			return context.Cause(ctx)
		}
		defer d.pending.Add(-1)
		if err := vulkan.Error(vulkan.Result(C.vkvgpu_submit(pointer(queue), commands))); err != nil {
			return fmt.Errorf("vkQueueSubmit: %w", err)
		}
		return nil
	})
	if err != nil && ended() {
		d.pending.Add(-1)
	}
	return err
}
