//go:build unix

package vgpu

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// A submission that waits for its predecessors when the device is lost is never made. It must
// not keep the Device from being closed, before or after the object is destroyed.
func TestCloseAfterTheLossOfTheDevice(t *testing.T) {
	for name, destroyed := range map[string]bool{"object in use": false, "object destroyed": true} {
		t.Run(name, func(t *testing.T) {
			f := vktest.InjectFaults(t)
			rt := vktest.Open(t)
			ctx, device := t.Context(), rt.DefaultDevice(t.Context())
			o, d := opened(t, rt)
			s, err := d.NewComputeSystem("recorded")
			if err != nil {
				t.Fatal(err)
			}
			values := make([]float32, 64)
			hold := make(chan struct{})
			held := vkomp.Task{Body: func(context.Context) error { <-hold; return nil }, Depend: []vkomp.Depend{vkomp.Out(values)}}
			if err := rt.Task(ctx, held); err != nil {
				t.Fatal(err)
			}
			use(t, rt, o, vkomp.InOut(values))
			if err := d.Submit(ctx, s.CmdPool.Buff); err != nil {
				t.Fatal(err)
			}
			use(t, rt, o, vkomp.InOut(values))
			wants(t, d.Close(), ErrBusy, "1 submissions")
			f.Fail("vkQueueSubmit", 1, -1, vk.ErrorDeviceLost)
			close(hold)
			wants(t, rt.Taskwait(ctx), vkomp.ErrDeviceLost)
			destroy := func() {
				gone := o
				wants(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&gone}}), vkomp.ErrDeviceLost, "foreign work of value 2")
			}
			if destroyed {
				destroy()
			}
			closed(t, d)
			forgotten(t, d)
			if !destroyed {
				destroy()
			}
			if err := rt.PauseResource(ctx, vkomp.PauseHard, device); err != nil {
				t.Error(err)
			}
		})
	}
}
