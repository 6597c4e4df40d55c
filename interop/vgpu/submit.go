package vgpu

// #include "hook.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goki/vulkan"
)

// Submit submits a command buffer that vgpu has recorded and ended, as the next foreign work of
// the interop object: it comes after what the object's earlier constructs depend on and after
// earlier foreign work, whose writes it sees, and before what depends on later constructs. Until
// it is complete, the command buffer and what that uses must not be changed.
//
// Submit waits neither for the device nor for predecessors. If vkomp uses the object's queue
// too, the submission is made when its predecessors' have been. If it fails then, or if ctx
// ends before, the object's next construct returns the error.
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
	if commands == nil { // the driver would crash
		return errors.New("there is no command buffer")
	}
	d.submitting.Add(1)
	defer d.submitting.Add(-1)
	d.pending.Add(1)
	// The submission ends either with the call below or with the end of ctx.
	ended := context.AfterFunc(ctx, func() { d.pending.Add(-1) })
	err := d.object.Submit(ctx, func(queue uintptr) error {
		if !ended() {
			return context.Cause(ctx)
		}
		defer d.pending.Add(-1)
		if d.closed.Load() {
			return fmt.Errorf("the device is %w", ErrClosed)
		}
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
